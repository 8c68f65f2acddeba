/* rules.c - see rules.h: searches the tables, and checks values against types. */
#include "format/rules.h"

#include <stdio.h>
#include <string.h>

#include "base/scan.h"

static const struct rules *const tables[] = {
    &rules_openai, &rules_responses, &rules_anthropic, &rules_gemini};

const struct rules *rules_find(const char *format)
{
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
                if (format && strcmp(tables[i]->provider, format) == 0)
                        return tables[i];
        return NULL;
}

static const char *type_text(const struct rules *r, struct str name)
{
        for (const struct rules_type *t = r->types; t->name; t++)
                if (str_is(name, t->name))
                        return t->is;
        return NULL;
}

/* ---- the text of a type ---- */

/* Takes the next word of a text up to `end`; false: there is none. */
static bool next_word(const char **p, char end, struct str *word)
{
        while (**p == ' ')
                ++*p;
        if (!**p)
                return false;
        const char *from = *p;
        while (**p && **p != end)
                ++*p;
        *word = str_span(from, (size_t)(*p - from));
        return true;
}

struct member {
        struct str name;
        struct str what;
        bool optional;
};

static bool next_member(const char **p, struct member *m)
{
        struct str word;
        if (!next_word(p, ' ', &word))
                return false;
        const char *colon = memchr(word.p, ':', word.n);
        size_t n = (size_t)(colon - word.p);
        m->optional = word.p[n - 1] == '?';
        m->name = str_span(word.p, n - m->optional);
        m->what = str_span(colon + 1, word.n - n - 1);
        return true;
}

static bool find_member(const char *text, struct str name, struct member *m)
{
        while (next_member(&text, m))
                if (str_eq(m->name, name))
                        return true;
        return false;
}

bool rules_has_member(const struct rules *r, const char *type, struct str name)
{
        const char *text = type_text(r, str_of(type));
        struct member m;
        return !text || text[0] == '@' || find_member(text, name, &m);
}

bool rules_is_reply_member(const struct rules *r, struct str name)
{
        char word[40];
        if (!r->reply || name.n + 3 > sizeof word)
                return false;
        snprintf(word, sizeof word, " %.*s ", (int)name.n, name.p);
        return strstr(r->reply, word) != NULL;
}

/* ---- checking ---- */

struct check_type {
        const struct rules *r;
        const struct json *j;
        rules_fail_fn fail;
        void *ctx;
        size_t found;
        char path[200];
};

static void fail(struct check_type *c, const char *rule, const char *text)
{
        c->found += strcmp(rule, "member_type") == 0 ? 3 : 1;
        if (c->fail)
                c->fail(c->ctx, rule, c->path, text);
}

static void check_choice(struct check_type *c, struct str what, json_ref v);

/* Takes the next alternative of a choice, between the bars. */
static bool next_choice(struct str *rest, struct str *one)
{
        if (!rest->n)
                return false;
        const char *bar = memchr(rest->p, '|', rest->n);
        size_t n = bar ? (size_t)(bar - rest->p) : rest->n;
        *one = str_span(rest->p, n);
        n += bar != NULL;
        *rest = str_span(rest->p + n, rest->n - n);
        return true;
}

/* Is the value one of the words of a choice? True if the choice has no words. */
static bool is_word(const struct check_type *c, struct str what, json_ref v)
{
        struct str one;
        bool words = false, fits = false;
        while (next_choice(&what, &one)) {
                words |= one.p[0] == '=';
                fits |= one.p[0] == '=' && json_is_str(c->j, v, str_span(one.p + 1, one.n - 1));
                fits |= one.p[0] == '0' && json_type(c->j, v) == JSON_NULL;
        }
        return !words || fits;
}

/* Does the object have the words that its type requires (type, role)? */
static bool is_meant(const struct check_type *c, const char *text, json_ref v)
{
        struct member m;
        while (next_member(&text, &m)) {
                if (!str_is(m.name, "type") && !str_is(m.name, "role"))
                        continue;
                json_ref value = json_get(c->j, v, str_is(m.name, "type") ? "type" : "role");
                if (value == JSON_NONE ? !m.optional : !is_word(c, m.what, value))
                        return false;
        }
        return true;
}

static void check_members(struct check_type *c, const char *text, json_ref v)
{
        size_t depth = strlen(c->path);
        struct member m;
        char key[120], why[200];
        for (json_ref k = json_child(c->j, v); k != JSON_NONE; k = json_next_key(c->j, v, k)) {
                struct str name = json_inner(c->j, k);
                snprintf(key, sizeof key, "%.*s", (int)(name.n > 80 ? 80 : name.n), name.p);
                if (!find_member(text, name, &m)) {
                        snprintf(why, sizeof why, "there is no member \"%s\" here", key);
                        fail(c, "unknown_member", why);
                        continue;
                }
                snprintf(c->path + depth, sizeof c->path - depth, "%s%s", depth ? "." : "", key);
                check_choice(c, m.what, json_value(c->j, k));
                c->path[depth] = '\0';
        }
        while (next_member(&text, &m)) {
                snprintf(key, sizeof key, "%.*s", (int)m.name.n, m.name.p);
                if (m.optional || json_get(c->j, v, key) != JSON_NONE)
                        continue;
                snprintf(why, sizeof why, "the member \"%s\" is missing", key);
                fail(c, "missing_member", why);
        }
}

static void check_list(struct check_type *c, struct str of, json_ref v)
{
        size_t depth = strlen(c->path), i = 0;
        for (json_ref e = json_child(c->j, v); e != JSON_NONE; e = json_next(c->j, v, e), i++) {
                snprintf(c->path + depth, sizeof c->path - depth, "[%zu]", i);
                check_choice(c, of, e);
                c->path[depth] = '\0';
        }
}

static size_t weigh(const struct check_type *c, const char *text, json_ref v)
{
        struct check_type quiet = {.r = c->r, .j = c->j};
        check_members(&quiet, text, v);
        return quiet.found;
}

/* Checks one alternative of a choice. True: the value is of this kind. If the kind holds other
 * values, these were checked. */
static bool check_one(
    struct check_type *c, struct str one, json_ref v, const char **object, size_t *least)
{
        enum json_type t = json_type(c->j, v);
        if (one.n == 1 && strchr("snb0o*", one.p[0])) {
                switch (one.p[0]) {
                case 's':
                        return t == JSON_STRING;
                case 'n':
                        return t == JSON_NUMBER;
                case 'b':
                        return t == JSON_TRUE || t == JSON_FALSE;
                case '0':
                        return t == JSON_NULL;
                case 'o':
                        return t == JSON_OBJECT;
                default:
                        return true;
                }
        }
        if (one.p[0] == '=')
                return json_is_str(c->j, v, str_span(one.p + 1, one.n - 1));
        if (one.p[0] == '[') {
                if (t == JSON_ARRAY)
                        check_list(c, str_span(one.p + 1, one.n - 1), v);
                return t == JSON_ARRAY;
        }
        const char *text = type_text(c->r, one);
        if (text && text[0] == '@') {
                struct str inner, rest = str_of(text + 1);
                while (next_choice(&rest, &inner))
                        if (check_one(c, inner, v, object, least))
                                return true;
                return false;
        }
        if (text && t == JSON_OBJECT && is_meant(c, text, v)) {
                size_t found = weigh(c, text, v);
                if (!*object || found < *least) {
                        *object = text;
                        *least = found;
                }
        }
        return false;
}

static void check_choice(struct check_type *c, struct str what, json_ref v)
{
        struct str one;
        const char *object = NULL;
        size_t least = 0;
        while (next_choice(&what, &one))
                if (check_one(c, one, v, &object, &least))
                        return;
        if (object)
                check_members(c, object, v);
        else
                fail(c, "member_type", "the type or the value is not accepted here");
}

size_t rules_check(const struct rules *r, const char *type, const struct json *j, json_ref v,
    rules_fail_fn fn, void *ctx)
{
        struct check_type c = {.r = r, .j = j, .fail = fn, .ctx = ctx};
        check_choice(&c, str_of(type), v);
        return c.found;
}

static void count_grave(void *ctx, const char *rule, const char *path, const char *text)
{
        (void)path;
        (void)text;
        if (strcmp(rule, "unknown_member") != 0)
                ++*(size_t *)ctx;
}

bool rules_is_whole(const struct rules *r, const char *type, const struct json *j, json_ref v)
{
        size_t grave = 0;
        rules_check(r, type, j, v, count_grave, &grave);
        return grave == 0;
}

/* ---- what is missing ---- */

static bool lacks_value(struct check_type *c, struct str what, json_ref v);

/* Does the object lack a member that it must have? If a type requires no member, as in Gemini's
 * types, it must have at least one. The members that describe how an image is read, or what a text
 * refers to, do not count for that. */
static bool lacks_member(struct check_type *c, const char *text, json_ref v)
{
        const char *rest = text;
        struct member m;
        char key[120];
        bool demands = false;
        while (next_member(&rest, &m))
                demands |= !m.optional;
        while (next_member(&text, &m)) {
                snprintf(key, sizeof key, "%.*s", (int)m.name.n, m.name.p);
                json_ref value = json_get(c->j, v, key);
                if (m.optional ? demands || value == JSON_NONE
                               : strcmp(key, "detail") == 0 || strcmp(key, "annotations") == 0)
                        continue;
                if (lacks_value(c, m.what, value))
                        return true;
        }
        return false;
}

static bool lacks_value(struct check_type *c, struct str what, json_ref v)
{
        struct str one;
        const char *object = NULL;
        size_t least = 0;
        bool words = false;
        if (v == JSON_NONE)
                return true;
        while (next_choice(&what, &one)) {
                words |= one.p[0] == '=';
                if (one.p[0] == '[' ? json_type(c->j, v) == JSON_ARRAY
                                    : check_one(c, one, v, &object, &least))
                        return false;
        }
        if (object)
                return lacks_member(c, object, v);
        if (json_type(c->j, v) == JSON_STRING)
                return !words || !json_inner(c->j, v).n;
        return !json_inner(c->j, json_get(c->j, v, "type")).n;
}

bool rules_lacks(const struct rules *r, const char *type, const struct json *j, json_ref v)
{
        struct check_type c = {.r = r, .j = j};
        return json_type(j, v) == JSON_OBJECT && lacks_value(&c, str_of(type), v);
}

/* ---- pruning ---- */

struct prune {
        struct check_type c; /* the tables and the path */
        struct buf *out;
        void (*lose)(void *ctx, const char *path);
        void *ctx;
};

/* The alternative of a choice that a value matches. */
struct fitting {
        struct str of;      /* if it is a list: the type of its elements */
        const char *object; /* if it is an object: the text of its type */
        bool plain;         /* any other value */
};

static bool fits(struct prune *p, struct str what, json_ref v, struct fitting *f)
{
        struct str one;
        size_t least = 0;
        enum json_type t = json_type(p->c.j, v);
        while (next_choice(&what, &one)) {
                if (one.p[0] == '[') {
                        f->of = str_span(one.p + 1, one.n - 1);
                        if (t == JSON_ARRAY)
                                return true;
                        continue;
                }
                const char *text = type_text(p->c.r, one);
                if (text && text[0] == '@') {
                        if (fits(p, str_of(text + 1), v, f) && !f->object)
                                return true;
                        continue;
                }
                struct check_type quiet = {.r = p->c.r, .j = p->c.j};
                if (check_one(&quiet, one, v, &f->object, &least)) {
                        f->plain = true;
                        return true;
                }
        }
        return f->object != NULL;
}

static void put_pruned(struct prune *p, const struct fitting *f, json_ref v);

static void prune_list(struct prune *p, struct str of, json_ref v)
{
        size_t depth = strlen(p->c.path), i = 0, kept = 0;
        buf_putc(p->out, '[');
        for (json_ref e = json_child(p->c.j, v); e != JSON_NONE; e = json_next(p->c.j, v, e), i++) {
                struct fitting f = {0};
                snprintf(p->c.path + depth, sizeof p->c.path - depth, "[%zu]", i);
                if (fits(p, of, e, &f)) {
                        if (kept++)
                                buf_putc(p->out, ',');
                        put_pruned(p, &f, e);
                } else {
                        p->lose(p->ctx, p->c.path);
                }
                p->c.path[depth] = '\0';
        }
        buf_putc(p->out, ']');
}

static void prune_object(struct prune *p, const char *text, json_ref v)
{
        const struct json *j = p->c.j;
        size_t depth = strlen(p->c.path), kept = 0;
        buf_putc(p->out, '{');
        for (json_ref k = json_child(j, v); k != JSON_NONE; k = json_next_key(j, v, k)) {
                struct str name = json_inner(j, k);
                struct member m;
                struct fitting f = {0};
                snprintf(p->c.path + depth, sizeof p->c.path - depth, "%s%.*s", depth ? "." : "",
                    (int)(name.n > 60 ? 60 : name.n), name.p);
                if (find_member(text, name, &m) &&
                    (fits(p, m.what, json_value(j, k), &f) || !m.optional)) {
                        if (kept++)
                                buf_putc(p->out, ',');
                        buf_put_str(p->out, json_raw(j, k));
                        buf_putc(p->out, ':');
                        put_pruned(p, &f, json_value(j, k));
                } else {
                        p->lose(p->ctx, p->c.path);
                }
                p->c.path[depth] = '\0';
        }
        buf_putc(p->out, '}');
}

static void put_pruned(struct prune *p, const struct fitting *f, json_ref v)
{
        enum json_type t = json_type(p->c.j, v);
        if (f->plain || (t != JSON_ARRAY && t != JSON_OBJECT))
                buf_put_str(p->out, json_raw(p->c.j, v));
        else if (t == JSON_ARRAY && f->of.p)
                prune_list(p, f->of, v);
        else if (t == JSON_OBJECT && f->object)
                prune_object(p, f->object, v);
        else
                buf_put_str(p->out, json_raw(p->c.j, v));
}

void rules_prune(const struct rules *r, const char *type, const struct json *j, json_ref v,
    struct buf *out, void (*lose)(void *ctx, const char *path), void *ctx)
{
        struct prune p = {.c = {.r = r, .j = j}, .out = out, .lose = lose, .ctx = ctx};
        struct fitting f = {0};
        fits(&p, str_of(type), v, &f);
        put_pruned(&p, &f, v);
}

/* ---- values ---- */

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
}

bool rules_is_name(const struct rules *r, struct str name)
{
        if (!name.n || name.n > r->name_max)
                return false;
        if (r->name_letter && ((name.p[0] >= '0' && name.p[0] <= '9') || name.p[0] == '-' ||
                                  (r->name_also && strchr(r->name_also, name.p[0]))))
                return false;
        for (size_t i = 0; i < name.n; i++)
                if (!is_plain(name.p[i]) &&
                    !(r->name_also && name.p[i] && strchr(r->name_also, name.p[i])))
                        return false;
        return true;
}

bool rules_is_id(const struct rules *r, struct str id)
{
        size_t length = 0;
        for (size_t i = 0; i < id.n; i++) {
                length += ((unsigned char)id.p[i] & 0xc0) != 0x80;
                length += (unsigned char)id.p[i] >= 0xf0; /* two units of UTF-16 */
                if (r->id_plain && !is_plain(id.p[i]))
                        return false;
        }
        return id.n && (!r->id_max || length <= r->id_max);
}

bool rules_is_base64(struct str s)
{
        size_t n = s.n;
        if (!n || n % 4)
                return false;
        for (int i = 0; i < 2 && s.p[n - 1] == '='; i++)
                n--;
        for (size_t i = 0; i < n; i++)
                if (!(is_plain(s.p[i]) && s.p[i] != '_' && s.p[i] != '-') && s.p[i] != '+' &&
                    s.p[i] != '/')
                        return false;
        return true;
}

bool rules_is_address(struct str s, bool https_only)
{
        size_t skip = str_starts(s, "https://")                 ? 8
                      : str_starts(s, "http://") && !https_only ? 7
                                                                : 0;
        if (!skip || s.n == skip || strchr("/?#:", s.p[skip]))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if ((unsigned char)s.p[i] <= ' ')
                        return false;
        return true;
}

bool rules_is_space(uint32_t c)
{
        return c <= 0x20 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
               c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000 ||
               c == 0xfeff;
}

size_t rules_next(struct str s, size_t i, bool *space)
{
        const unsigned char *p = (const unsigned char *)s.p + i;
        size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
        uint32_t c = n == 1 ? p[0] : n == 2 ? p[0] & 0x1f : p[0] & 0x0f;
        n = n > s.n - i ? s.n - i : n;
        for (size_t k = 1; k < n; k++)
                c = c << 6 | (p[k] & 0x3f);
        *space = rules_is_space(c);
        return n;
}

bool rules_is_media(const char *const *list, struct str type)
{
        if (!list)
                return true;
        for (; *list; list++)
                if (str_is(type, *list))
                        return true;
        return false;
}

const char *rules_image_type(struct str s)
{
        static const struct {
                const char *first; /* the known first bytes, in base64 */
                const char *type;
        } kinds[] = {{"iVBORw", "image/png"}, {"/9j/", "image/jpeg"}, {"R0lGOD", "image/gif"}};
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
                if (str_starts(s, kinds[i].first))
                        return kinds[i].type;
        if (s.n >= 16 && str_starts(s, "UklGR") && memcmp(s.p + 10, "XRUJQ", 5) == 0)
                return "image/webp";
        return NULL;
}

static int hex_at(struct str s, size_t i)
{
        int v = 0;
        if (s.n - i < 6 || s.p[i] != '\\' || s.p[i + 1] != 'u')
                return -1;
        for (size_t k = i + 2; k < i + 6; k++) {
                char c = s.p[k];
                int d = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
                if (d < 0)
                        return -1;
                v = v * 16 + d;
        }
        return v;
}

/* Finds the first escape with a `u`; no other escapes matter. It begins at the first of the
 * backslashes before it. */
static const char *first_unicode(struct str s)
{
        const char *end = s.p + s.n;
        const char *p = s.p ? scan_unicode_escape(s.p, end) : end;
        if (p == end)
                return NULL;
        while (p > s.p && p[-1] == '\\')
                p--;
        return p;
}

bool rules_has_lone(struct str s)
{
        for (const char *p = first_unicode(s); p;) {
                size_t i = (size_t)(p - s.p);
                int unit = hex_at(s, i);
                if (unit >= 0xdc00 && unit <= 0xdfff)
                        return true;
                i += unit < 0 ? 2 : 6;
                if (unit >= 0xd800 && unit <= 0xdbff) {
                        int low = i < s.n ? hex_at(s, i) : -1;
                        if (low < 0xdc00 || low > 0xdfff)
                                return true;
                        i += 6;
                }
                p = i < s.n ? memchr(s.p + i, '\\', s.n - i) : NULL;
        }
        return false;
}
