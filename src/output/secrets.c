/* secrets.c - see secrets.h */
#include "output/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "output/grep_engine.h"

#define RULES_MAX 128
#define NAME_MAX_OURS 40
#define INNER_MAX 3

struct rule {
        char name[NAME_MAX_OURS + 1];
        struct grep_code *code;
        uint64_t count;
};

struct secrets {
        struct rule rules[RULES_MAX];
        size_t count;
        struct grep_code *key; /* matches keys whose values are secret; NULL: none */
        size_t key_rule;
        unsigned depth;  /* nesting depth of JSON in strings */
        struct buf text; /* a decoded string, with its key before it */
        struct buf map;  /* for each byte of `text`, a uint32_t: the offset of its character in
                            the token */
};

/* In JSON inside of JSON, quotes have backslashes before them. */
#define QUOTE "(?:\\\\{0,3}[\"'])?"

/* The text before \K is context and is not masked. */
static const struct {
        const char *name, *pattern;
} BUILT_IN[] = {
    {"private-key", "-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\\K"
                    "(?:\\s|\\\\[nr])*(?:[A-Za-z-]+: [^\\n]*\\n)*(?:\\s|\\\\[nr])*"
                    "(?:[A-Za-z0-9+/=]{16,}+(?:\\s|\\\\[nr])*+)+[A-Za-z0-9+/=]*"},
    {"aws-access-key", "\\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\\b"},
    {"aws-secret-key", "(?i:aws)[A-Za-z0-9_ .-]{0,20}(?i:secret)[A-Za-z0-9_ .-]{0,20}" QUOTE
                       "\\s*[:=]\\s*" QUOTE "\\K"
                       "[A-Za-z0-9/+=]{40}"},
    {"github-token", "\\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255})"},
    {"gitlab-token", "\\bgl(?:pat|rt|dt|ptt)-[A-Za-z0-9_-]{20,64}"},
    {"slack-token", "\\bxox[abceoprs]-[A-Za-z0-9-]{10,250}"},
    {"slack-webhook", "hooks\\.slack\\.com/services/\\K[A-Za-z0-9/]{20,100}"},
    {"model-key", "\\bsk-[A-Za-z0-9_-]{20,255}"},
    {"google-key",
        "\\b(?:AIza[A-Za-z0-9_-]{35}|ya29\\.[A-Za-z0-9_-]{20,512}|GOCSPX-[A-Za-z0-9_-]{20,"
        "64})"},
    {"stripe-key", "\\b(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,255}"},
    {"registry-token",
        "\\b(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,512}|dckr_pat_[A-Za-z0-9_-]{20,"
        "64}|hf_[A-Za-z0-9]{30,64})"},
    {"sendgrid-key", "\\bSG\\.[A-Za-z0-9_-]{16,64}\\.[A-Za-z0-9_-]{16,64}"},
    {"jwt", "\\beyJ[A-Za-z0-9_-]{8,4096}\\.eyJ[A-Za-z0-9_-]{8,8192}\\.[A-Za-z0-9_-]{8,4096}"},
    {"authorization", "(?i)\\b(?:bearer|basic)\\s+\\K[A-Za-z0-9._~+/-]{16,4096}=*"},
    {"url-password",
        "\\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\\s/:@\"'<>]{0,128}:\\K[^\\s/@\"'<>]{1,256}"
        "(?=@)"},
    {"assignment",
        "(?i)(?:password|passwd|passphrase|pwd|secret|token(?!s)|api[_-]?key|access[_-]?key|"
        "private[_-]?key|credential)[a-z0-9_]{0,20}" QUOTE "\\s{0,4}(?:=>|[:=])\\s{0,4}" QUOTE
        "\\K(?!(?:null|none|nil|true|false|undefined|process\\.|os\\.|env\\.|\\$|<|\\{|\\[|"
        "\\(|\\*))(?=[^\\s\"',;&<>]{0,200}[0-9!@#%^*+/=_.~-])[^\\s\"',;&<>\\\\]{6,512}"},
};
static const char KEYS[] =
    "^[a-z0-9_.-]{0,40}(?:password|passwd|passphrase|pwd|secret|api[_-]?key|"
    "access[_-]?key|private[_-]?key|credential|(?:^|[_.-]|auth|access|refresh|"
    "bearer|id)token)[a-z0-9_]{0,20}$";

/* ---- rules ---- */

static int add_rule(struct secrets *s, struct str name, struct str pattern, struct steno_error *err)
{
        struct grep_mode mode = {.case_sensitive = true};
        if (s->count == RULES_MAX)
                return error_set(err, STENO_ELIMIT, "more than %d rules", RULES_MAX);
        struct rule *r = &s->rules[s->count];
        if (!name.n || name.n > NAME_MAX_OURS || !pattern.n)
                return error_set(err, STENO_EPROTO,
                    "a rule is a name, a space and a regular expression: %.*s",
                    (int)(name.n < 60 ? name.n : 60), name.p);
        struct steno_error why = {0};
        int rc = grep_pcre2()->compile(pattern, &mode, &r->code, &why);
        if (rc)
                return error_set(err, rc, "rule %.*s: %s", (int)name.n, name.p, why.msg);
        snprintf(r->name, sizeof r->name, "%.*s", (int)name.n, name.p);
        s->count++;
        return 0;
}

static int add_built_in(struct secrets *s, struct steno_error *err)
{
        struct grep_mode mode = {.case_sensitive = false};
        int rc = s->key ? 0 : grep_pcre2()->compile(str_of(KEYS), &mode, &s->key, err);
        for (size_t i = 0; rc == 0 && i < sizeof BUILT_IN / sizeof *BUILT_IN; i++)
                rc = add_rule(s, str_of(BUILT_IN[i].name), str_of(BUILT_IN[i].pattern), err);
        s->key_rule = s->count - 1; /* the rule for assignments */
        return rc;
}

static int add_line(struct secrets *s, struct str line, struct steno_error *err)
{
        while (line.n && strchr(" \t\r", line.p[line.n - 1]))
                line.n--;
        while (line.n && strchr(" \t", line.p[0]))
                line = str_span(line.p + 1, line.n - 1);
        if (!line.n || line.p[0] == '#')
                return 0;
        if (str_is(line, "secrets"))
                return add_built_in(s, err);
        size_t n = 0;
        while (n < line.n && line.p[n] != ' ' && line.p[n] != '\t')
                n++;
        struct str name = str_span(line.p, n);
        while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t'))
                n++;
        return add_rule(s, name, str_span(line.p + n, line.n - n), err);
}

int secrets_open(const char *rules, struct secrets **out, struct steno_error *err)
{
        struct secrets *s = calloc(1, sizeof *s);
        int rc = s ? 0 : error_nomem(err);
        if (rc)
                return rc;
        buf_init(&s->text, 0);
        buf_init(&s->map, 0);
        while (rc == 0 && *rules) {
                size_t n = strcspn(rules, "\n");
                rc = add_line(s, str_span(rules, n), err);
                rules += n + (rules[n] == '\n');
        }
        if (rc == 0 && !s->count)
                rc = error_set(err, STENO_EPROTO, "there are no rules");
        if (rc) {
                secrets_close(s);
                return rc;
        }
        *out = s;
        return 0;
}

void secrets_close(struct secrets *s)
{
        if (!s)
                return;
        for (size_t i = 0; i < s->count; i++)
                grep_pcre2()->free(s->rules[i].code);
        grep_pcre2()->free(s->key);
        buf_release(&s->text);
        buf_release(&s->map);
        free(s);
}

const char *secrets_rule(const struct secrets *s, size_t i, uint64_t *count)
{
        if (i >= s->count)
                return NULL;
        *count = s->rules[i].count;
        return s->rules[i].name;
}

/* ---- matching ---- */

/* Called for each match [from, end). A negative return value ends the search. */
typedef int (*match_fn)(void *ctx, size_t from, size_t end);

static int each_match(
    struct secrets *s, struct str text, match_fn each, void *ctx, struct steno_error *err)
{
        int count = 0;
        for (size_t i = 0; i < s->count; i++) {
                struct grep_subject subject = {
                    .p = text.p, .n = text.n, .stop = text.n + 1, .effort = GREP_HARD};
                while (subject.from <= text.n) {
                        size_t from, end;
                        struct steno_error why = {0};
                        int rc = grep_pcre2()->next(s->rules[i].code, &subject, &from, &end, &why);
                        if (rc < 0)
                                return error_set(err, rc, "rule %s: %s", s->rules[i].name, why.msg);
                        if (rc == 0)
                                break;
                        if (end > from) {
                                rc = each(ctx, from, end);
                                if (rc < 0)
                                        return rc;
                                if (rc) {
                                        s->rules[i].count++;
                                        count++;
                                }
                        }
                        subject.from = end > subject.from ? end : subject.from + 1;
                }
        }
        return count;
}

/* ---- texts ---- */

struct masking {
        char *p;
        size_t n;
        bool more;
        size_t safe;
};

static bool is_inside_character(unsigned char c)
{
        return (c & 0xC0) == 0x80;
}

static int mask_bytes(void *ctx, size_t from, size_t end)
{
        struct masking *m = ctx;
        bool seen = true;
        if (m->more && end == m->n) { /* the match may continue in the next text */
                m->safe = from < m->safe ? from : m->safe;
                return 0;
        }
        while (from > 0 && is_inside_character((unsigned char)m->p[from]))
                from--;
        while (end < m->n && is_inside_character((unsigned char)m->p[end]))
                end++;
        for (size_t i = from; i < end; i++)
                if (m->p[i] != '\n' && m->p[i] != '\r' && m->p[i] != '*') {
                        m->p[i] = '*';
                        seen = false;
                }
        return !seen; /* a match that another rule has masked already does not count */
}

int secrets_mask_text(
    struct secrets *s, char *p, size_t n, bool more, size_t *safe, struct steno_error *err)
{
        struct masking m = {.p = p, .n = n, .more = more, .safe = n};
        int rc = each_match(s, str_span(p, n), mask_bytes, &m, err);
        if (safe)
                *safe = m.safe;
        return rc;
}

/* ---- strings ---- */

/* Returns the length of one character of a string token, as it is written. */
static size_t unit_length(const char *p, size_t n)
{
        unsigned char c = (unsigned char)p[0];
        size_t k = 1;
        if (c != '\\') {
                while (k < n && is_inside_character((unsigned char)p[k]))
                        k++;
                return k;
        }
        if (n < 2 || p[1] != 'u' || n < 6)
                return n < 2 ? 1 : 2;
        bool high = strchr("dD", p[2]) && strchr("89abAB", p[3]);
        bool pair = high && n >= 12 && p[6] == '\\' && p[7] == 'u' && strchr("dD", p[8]) &&
                    strchr("cdefCDEF", p[9]);
        return pair ? 12 : 6;
}

/* Replaces a character by one of the same length, both written and decoded. */
static bool mask_unit(char *p, size_t n, size_t decoded)
{
        if (p[0] != '\\') {
                bool was = p[0] == '*';
                memset(p, '*', n);
                return !was;
        }
        if (n == 2) {
                if (strchr("nrt", p[1]) || p[1] == '/')
                        return false;
                p[1] = '/';
                return true;
        }
        /* Line ends stay, whatever their notation. */
        if (n == 6 && memcmp(p, "\\u000", 5) == 0 && strchr("9aAdD", p[5]))
                return false;
        memcpy(p,
            n == 12        ? "\\ud83d\\udd12"
            : decoded == 1 ? "\\u002a"
            : decoded == 2 ? "\\u00b7"
                           : "\\u2022",
            n);
        return true;
}

struct token {
        char *p; /* the text between the quotes */
        size_t n;
        size_t before; /* number of bytes in the text that belong to the key */
        const uint32_t *map;
        size_t map_n;
};

static int mask_token(void *ctx, size_t from, size_t end)
{
        struct token *t = ctx;
        bool any = false;
        if (end <= t->before)
                return 0;
        from = from > t->before ? from - t->before : 0;
        end -= t->before;
        for (size_t i = from; i < end && i < t->map_n;) {
                size_t at = t->map[i], k = i;
                while (k < t->map_n && t->map[k] == at)
                        k++;
                size_t first = i;
                while (first > 0 && t->map[first - 1] == at)
                        first--;
                any |= mask_unit(t->p + at, unit_length(t->p + at, t->n - at), k - first);
                i = k;
        }
        return any;
}

/* Appends the decoded token to s->text, and notes where each byte comes from. */
static int decode(struct secrets *s, const char *p, size_t n, struct steno_error *err)
{
        buf_clear(&s->map);
        for (size_t at = 0; at < n;) {
                size_t len = unit_length(p + at, n - at), was = s->text.n;
                json_unescape(str_span(p + at, len), &s->text, NULL);
                uint32_t from = (uint32_t)at;
                for (size_t i = was; i < s->text.n; i++)
                        buf_put(&s->map, &from, sizeof from);
                at += len;
        }
        return s->text.failed || s->map.failed ? error_nomem(err) : 0;
}

static bool is_secret_key(struct secrets *s, struct str key)
{
        struct grep_subject subject = {
            .p = key.p, .n = key.n, .stop = key.n + 1, .effort = GREP_HARD};
        size_t from, end;
        return s->key && key.n && grep_pcre2()->next(s->key, &subject, &from, &end, NULL) == 1;
}

static int open_token(struct secrets *s, struct str key, struct token *t, struct steno_error *err)
{
        buf_clear(&s->text);
        buf_put_str(&s->text, key);
        buf_puts(&s->text, key.n ? "=" : "");
        t->before = s->text.n;
        int rc = decode(s, t->p, t->n, err);
        t->map = (const uint32_t *)(const void *)s->map.p;
        t->map_n = s->map.n / sizeof *t->map;
        return rc;
}

/* Copies masks into a token. `masked` has as many bytes as the decoded token and differs from it
 * only in masks. */
static void copy_masks(struct secrets *s, struct token *t, const char *masked)
{
        for (size_t i = 0; i < t->map_n; i++) {
                char *unit = t->p + t->map[i];
                if (masked[i] == s->text.p[t->before + i])
                        continue;
                size_t first = i, k = i;
                while (first > 0 && t->map[first - 1] == t->map[i])
                        first--;
                while (k + 1 < t->map_n && t->map[k + 1] == t->map[i])
                        k++;
                if (unit[0] != '\\' && first == k)
                        *unit = masked[i]; /* this also replaces the "/" of an escape */
                else
                        mask_unit(unit, unit_length(unit, t->n - t->map[i]), k - first + 1);
                i = k;
        }
}

/* Arguments of calls are JSON in a string, and the strings in this JSON have keys too. */
static int mask_inner(struct secrets *s, struct str key, struct token *t, struct steno_error *err)
{
        struct str text = str_span(s->text.p + t->before, s->text.n - t->before);
        size_t at = 0;
        struct json j;
        int found = 0;
        while (at < text.n && strchr(" \t\r\n", text.p[at]))
                at++;
        if (s->depth >= INNER_MAX || at == text.n || !strchr("{[", text.p[at]))
                return 0;
        size_t n = text.n;
        char *copy = malloc(n);
        if (!copy)
                return error_nomem(err);
        memcpy(copy, text.p, n);
        json_init(&j);
        int rc = json_parse(&j, copy, n, NULL, NULL);
        s->depth++;
        if (rc == 0)
                found = secrets_mask_json(s, &j, 0, copy, NULL, err);
        s->depth--;
        json_release(&j);
        rc = rc == STENO_ENOMEM ? error_nomem(err) : found < 0 ? found : 0;
        if (rc == 0)
                rc = open_token(s, key, t, err); /* the scratch memory was used meanwhile */
        if (rc == 0 && found) {
                copy_masks(s, t, copy);
                rc = open_token(s, key, t, err);
        }
        free(copy);
        return rc ? rc : found;
}

/* `p` is the text between the quotes. */
static int mask_string(
    struct secrets *s, struct str key, char *p, size_t n, struct steno_error *err)
{
        struct token t = {.p = p, .n = n};
        if (!n)
                return 0;
        int rc = open_token(s, key, &t, err);
        int inner = rc ? rc : mask_inner(s, key, &t, err);
        if (inner < 0)
                return inner;
        if (is_secret_key(s, key)) {
                int any = mask_token(&t, t.before, s->text.n);
                s->rules[s->key_rule].count += (uint64_t)any;
                return inner + any;
        }
        rc = each_match(s, buf_str(&s->text), mask_token, &t, err);
        return rc < 0 ? rc : inner + rc;
}

int secrets_mask_token(struct secrets *s, char *p, size_t n, struct steno_error *err)
{
        return n < 2 ? 0 : mask_string(s, STR(""), p + 1, n - 2, err);
}

int secrets_mask_json(struct secrets *s, const struct json *j, json_ref v, char *text,
    bool (*keep)(struct str key), struct steno_error *err)
{
        int count = 0, rc = 0;
        bool object = json_type(j, v) == JSON_OBJECT;
        if (json_type(j, v) == JSON_STRING) {
                struct str inner = json_inner(j, v);
                return mask_string(s, STR(""), text + (inner.p - j->text), inner.n, err);
        }
        for (json_ref c = json_child(j, v); rc >= 0 && c != JSON_NONE;
             c = object ? json_next_key(j, v, c) : json_next(j, v, c)) {
                json_ref value = object ? json_value(j, c) : c;
                struct str key = object ? json_inner(j, c) : STR("");
                if (object && keep && keep(key))
                        continue;
                if (json_type(j, value) == JSON_STRING) {
                        struct str inner = json_inner(j, value);
                        rc = mask_string(s, key, text + (inner.p - j->text), inner.n, err);
                } else {
                        rc = secrets_mask_json(s, j, value, text, keep, err);
                }
                count += rc > 0 ? rc : 0;
        }
        return rc < 0 ? rc : count;
}
