/* facts.c - see facts.h */
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

static void parse(struct json *j, struct str s)
{
        json_init(j);
        struct steno_error err;
        if (json_parse(j, s.p, s.n, NULL, &err)) {
                fprintf(stderr, "not JSON: %s\n%.*s\n", err.msg, (int)s.n, s.p);
                abort();
        }
}

static bool is_leaf(const struct json *j, json_ref r)
{
        return json_type(j, r) != JSON_ARRAY && json_type(j, r) != JSON_OBJECT;
}

bool facts_same_tokens(struct str a, struct str b)
{
        struct json x, y;
        parse(&x, a);
        parse(&y, b);
        bool same = x.count == y.count;
        for (json_ref i = 0; same && i < x.count; i++)
                same = json_type(&x, i) == json_type(&y, i) &&
                       json_count(&x, i) == json_count(&y, i) &&
                       (!is_leaf(&x, i) || str_eq(json_raw(&x, i), json_raw(&y, i)));
        json_release(&x);
        json_release(&y);
        return same;
}

/* ---- any order ---- */

struct member {
        char *text;
};

static int by_text(const void *a, const void *b)
{
        return strcmp(((const struct member *)a)->text, ((const struct member *)b)->text);
}

static char *canonical(const struct json *j, json_ref r)
{
        struct buf b;
        buf_init(&b, 0);
        if (json_type(j, r) == JSON_ARRAY) {
                buf_putc(&b, '[');
                for (json_ref e = json_child(j, r); e != JSON_NONE; e = json_next(j, r, e)) {
                        char *t = canonical(j, e);
                        buf_puts(&b, t);
                        buf_putc(&b, ',');
                        free(t);
                }
                buf_putc(&b, ']');
        } else if (json_type(j, r) == JSON_OBJECT) {
                uint32_t n = json_count(j, r), i = 0;
                struct member *m = calloc(n + 1, sizeof *m);
                for (json_ref k = json_child(j, r); k != JSON_NONE; k = json_next_key(j, r, k)) {
                        struct buf one;
                        buf_init(&one, 0);
                        char *t = canonical(j, json_value(j, k));
                        buf_put_str(&one, json_raw(j, k));
                        buf_putc(&one, ':');
                        buf_puts(&one, t);
                        free(t);
                        m[i++].text = buf_take(&one, NULL);
                }
                qsort(m, n, sizeof *m, by_text);
                buf_putc(&b, '{');
                for (i = 0; i < n; i++) {
                        buf_puts(&b, m[i].text);
                        buf_putc(&b, ',');
                        free(m[i].text);
                }
                free(m);
                buf_putc(&b, '}');
        } else {
                buf_put_str(&b, json_raw(j, r));
        }
        return buf_take(&b, NULL);
}

bool facts_same_members(struct str a, struct str b)
{
        struct json x, y;
        parse(&x, a);
        parse(&y, b);
        char *p = canonical(&x, 0), *q = canonical(&y, 0);
        bool same = strcmp(p, q) == 0;
        free(p);
        free(q);
        json_release(&x);
        json_release(&y);
        return same;
}

/* ---- losses ---- */

struct fact {
        char *text;  /* key=value */
        char *cover; /* |key|key|type| of all that it stands in */
        unsigned message;
        bool found;
};

struct facts {
        struct fact *list;
        size_t count;
        size_t cap;
};

static char *decoded(const struct json *j, json_ref r)
{
        struct buf b;
        buf_init(&b, 0);
        bool lossy = false;
        if (!json_string(j, r, &b, &lossy))
                buf_put_str(&b, json_raw(j, r));
        else if (lossy) { /* then the token itself is the value */
                struct str raw = json_inner(j, r);
                buf_clear(&b);
                for (size_t i = 0; i < raw.n; i++) {
                        bool less = raw.n - i >= 6 && memcmp(raw.p + i, "\\u003c", 6) == 0;
                        buf_putc(&b, less ? '<' : raw.p[i]);
                        i += less ? 5 : 0;
                }
        }
        for (size_t i = 0; i < b.n; i++)
                if (!b.p[i])
                        b.p[i] = '\1';
        return buf_take(&b, NULL);
}

static bool is_word(const char *key, const char *const *list)
{
        for (; *list; list++)
                if (strcmp(key, *list) == 0)
                        return true;
        return false;
}

/* What the rules of format.h treat as the same is not a fact. */
static bool is_fact(const char *key, const char *value, bool calls)
{
        static const char *const idle[] = {"annotations", "status", "refusal", "tool_calls",
            "toolCalls", "state", "file_field", "meta", "is_error", "isError", NULL};
        if (strcmp(key, "type") == 0 || strcmp(key, "toolName") == 0 || strcmp(key, "thought") == 0)
                return false;
        /* The frame of a message of LangChain. */
        if (strcmp(key, "lc") == 0 || strcmp(key, "response_metadata") == 0 ||
            (strcmp(key, "id") == 0 && (strstr(value, "Message") || !strcmp(value, "messages") ||
                                           !strcmp(value, "langchain_core"))))
                return false;
        if (strcmp(key, "status") == 0 && strcmp(value, "success") == 0)
                return false;
        if (strcmp(key, "role") == 0)
                return strcmp(value, "system") == 0 || strcmp(value, "developer") == 0;
        if (is_word(key, idle) && (strcmp(value, "null") == 0 || strcmp(value, "[]") == 0 ||
                                      strcmp(value, "false") == 0 ||
                                      strcmp(value, "completed") == 0 || strcmp(key, "state") == 0))
                return false;
        if (strcmp(key, "type") == 0 || (calls && strcmp(key, "text") == 0))
                return *value && strcmp(value, "null") != 0;
        return true;
}

static void add(struct facts *f, const char *key, const char *value, const char *cover,
    unsigned message, bool calls)
{
        if (strcmp(key, "content") == 0 || strcmp(key, "parts") == 0 ||
            strcmp(key, "output") == 0 || strcmp(key, "errorText") == 0 ||
            strcmp(key, "value") == 0)
                key = "text";
        /* A picture of the AI SDK may be an image or a file. */
        if (strcmp(key, "image") == 0)
                key = "data";
        /* An entry that holds its result is the same as a call and a tool message. */
        if (strstr(cover, "|tool_calls|") && (!strcmp(key, "result") || !strcmp(key, "error")))
                key = "text";
        if (!is_fact(key, value, calls))
                return;
        if (f->count == f->cap) {
                f->cap = f->cap ? f->cap * 2 : 64;
                f->list = realloc(f->list, f->cap * sizeof *f->list);
        }
        struct fact *to = &f->list[f->count++];
        *to = (struct fact){.message = message, .cover = strdup(cover)};
        if (asprintf(&to->text, "%s=%s", key, value) < 0)
                abort();
}

static void walk(struct facts *f, const struct json *j, json_ref r, const char *key,
    const char *cover, unsigned message, bool calls);

/* A text with legacy records counts as the facts that they hold. */
static void split(struct facts *f, const char *value, const char *cover, unsigned message)
{
        static const char open[] = "<function_call>", close[] = "</function_call>";
        const char *at;
        while ((at = strstr(value, open))) {
                char *before = strndup(value, (size_t)(at - value));
                add(f, "text", before, cover, message, true);
                free(before);
                at += sizeof open - 1;
                /* The first end at which the text is JSON, plain or still escaped. */
                const char *end = at;
                struct buf plain;
                buf_init(&plain, 0);
                do {
                        end = strstr(end + 1, close);
                        if (!end)
                                abort();
                        struct str record = {at, (size_t)(end - at)};
                        buf_clear(&plain);
                        if (json_valid(record.p, record.n, NULL))
                                buf_put_str(&plain, record);
                        else
                                json_unescape(record, &plain, NULL);
                } while (!json_valid(plain.p, plain.n, NULL));
                struct json j;
                parse(&j, buf_str(&plain));
                walk(f, &j, 0, "record", cover, message, true);
                json_release(&j);
                buf_release(&plain);
                value = end + sizeof close - 1;
        }
        add(f, "text", value, cover, message, true);
}

static void walk(struct facts *f, const struct json *j, json_ref r, const char *key,
    const char *cover, unsigned message, bool calls)
{
        struct buf b;
        buf_init(&b, 0);
        buf_puts(&b, cover);
        buf_printf(&b, "|%s|", key);
        if (json_type(j, json_get(j, r, "type")) == JSON_STRING) {
                char *type = decoded(j, json_get(j, r, "type"));
                buf_printf(&b, "|%s|", type);
                free(type);
        }
        if (json_bool(j, json_get(j, r, "thought"), false))
                buf_puts(&b, "|thinking|");
        const char *inside = buf_cstr(&b);
        if (json_count(j, r) == 0) {
                char *value = decoded(j, r);
                if (strstr(value, "<function_call>") && strchr(value, '{'))
                        split(f, value, inside, message);
                else
                        add(f, key, value, inside, message, calls);
                free(value);
        } else if (json_type(j, r) == JSON_ARRAY) {
                for (json_ref e = json_child(j, r); e != JSON_NONE; e = json_next(j, r, e))
                        walk(f, j, e, key, inside, message, calls);
        } else {
                for (json_ref k = json_child(j, r); k != JSON_NONE; k = json_next_key(j, r, k)) {
                        char *name = decoded(j, k);
                        walk(f, j, json_value(j, k), name, inside, message, calls);
                        free(name);
                }
        }
        buf_release(&b);
}

static struct facts facts_of(struct str s)
{
        struct json j;
        struct facts f = {0};
        parse(&j, s);
        unsigned n = 0;
        for (json_ref m = json_child(&j, 0); m != JSON_NONE; m = json_next(&j, 0, m)) {
                struct str raw = json_raw(&j, m);
                bool calls = memmem(raw.p, raw.n, "tool_calls", 10) ||
                             memmem(raw.p, raw.n, "toolCalls", 9) ||
                             memmem(raw.p, raw.n, "tool-call", 9) ||
                             memmem(raw.p, raw.n, "\"toolCallId\"", 12) ||
                             memmem(raw.p, raw.n, "tool_use\"", 9) ||
                             memmem(raw.p, raw.n, "functionCall", 12) ||
                             memmem(raw.p, raw.n, "\"function_call\"", 15);
                walk(&f, &j, m, "", "", ++n, calls);
        }
        json_release(&j);
        return f;
}

static void facts_free(struct facts *f)
{
        for (size_t i = 0; i < f->count; i++) {
                free(f->list[i].text);
                free(f->list[i].cover);
        }
        free(f->list);
}

static int by_fact(const void *a, const void *b)
{
        return strcmp(((const struct fact *)a)->text, ((const struct fact *)b)->text);
}

/* Other names under which a report may speak of a member. */
static const char *const synonyms[][2] = {
    {"reasoning_content", "thinking"},
    {"original_role", "role"},
    {"input_text", "text"},
    {"output_text", "text"},
    {"thoughtSignature", "signature"},
    {"thought_signature", "signature"},
    {"isError", "is_error"},
    {"toolName", "name"},
    {"text", "content"},
    {"llmContent", "content"},
    {"llmContent", "result"},
    {"output", "result"},
    {"output", "content"},
    {"result", "content"},
    {"response", "content"},
    {"response", "result"},
    {"response", "is_error"},
    {"content", "result"},
    {"input", "arguments"},
    {"args", "arguments"},
    {"error", "content"},
    {"error", "is_error"},
    {"displayName", "name"},
    {"media_type", "mimeType"},
    {"attachments", "image"},
    {"image_url", "image"},
    {"input_image", "image"},
    {"inlineData", "image"},
    {"fileData", "image"},
    {"file", "image"},
    {"image_generation_call", "image"},
    {"errorText", "content"},
    {"errorText", "is_error"},
    {"value", "content"},
    {"value", "result"},
    {"value", "is_error"},
    {"status", "is_error"},
    {"reasoning", "thinking"},
    {"executableCode", "part"},
    {"meta", "signature"},
};

static bool stands_in(const struct fact *f, const char *name)
{
        char word[128];
        snprintf(word, sizeof word, "|%s|", name);
        return strstr(f->cover, word) != NULL;
}

static bool is_covered_by(const struct fact *f, const char *field)
{
        const char *dot = strrchr(field, '.');
        const char *name = dot ? dot + 1 : field;
        if (stands_in(f, name))
                return true;
        for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
                if (strcmp(synonyms[i][1], name) == 0 && stands_in(f, synonyms[i][0]))
                        return true;
        return false;
}

/* The value of a call's id, or NULL. */
static const char *id_of(const struct fact *f)
{
        static const char *const ids[] = {
            "id=", "call_id=", "tool_call_id=", "tool_use_id=", "toolCallId="};
        for (size_t i = 0; i < 5; i++)
                if (strncmp(f->text, ids[i], strlen(ids[i])) == 0)
                        return f->text + strlen(ids[i]);
        return NULL;
}

/* The call got another id, and so did its result. */
static bool is_renamed(const struct fact *f, const struct json *report)
{
        json_ref list = json_get(report, 0, "repairs");
        const char *id = id_of(f);
        bool renamed = false;
        for (json_ref n = json_child(report, list); id && n != JSON_NONE && !renamed;
             n = json_next(report, list, n)) {
                char *call = decoded(report, json_get(report, n, "call"));
                renamed = json_is(report, json_get(report, n, "class"), "renamed") &&
                          strcmp(call, id) == 0;
                free(call);
        }
        return renamed;
}

/* ---- what is said anywhere in a message ---- */

/* Every string of a value, decoded, including strings in text that is JSON. */
static void gather(const struct json *j, json_ref r, struct buf *to)
{
        if (is_leaf(j, r)) {
                char *value = decoded(j, r);
                size_t n = strlen(value);
                struct json inner;
                buf_puts(to, value);
                buf_putc(to, '\n');
                /* Also where the string has a lone surrogate, or is a record inside of a text. */
                size_t at = to->n;
                if (json_string(j, r, to, NULL)) {
                        struct buf plain;
                        buf_init(&plain, 0);
                        buf_put(&plain, to->p + at, to->n - at);
                        buf_putc(to, '\n');
                        json_unescape(buf_str(&plain), to, NULL);
                        buf_putc(to, '\n');
                        buf_release(&plain);
                }
                json_init(&inner);
                if (json_type(j, r) == JSON_STRING && n && strchr("{[\"", value[0]) &&
                    json_parse(&inner, value, n, NULL, NULL) == 0)
                        gather(&inner, 0, to);
                json_release(&inner);
                free(value);
                return;
        }
        buf_put_str(to, json_raw(j, r));
        buf_putc(to, '\n');
        bool object = json_type(j, r) == JSON_OBJECT;
        for (json_ref e = json_child(j, r); e != JSON_NONE;
             e = object ? json_next_key(j, r, e) : json_next(j, r, e))
                gather(j, object ? json_value(j, e) : e, to);
}

/* Message `seq` of a history, 0: all of them. */
static bool says(const struct json *history, uint64_t seq, const char *value)
{
        struct buf all;
        buf_init(&all, 0);
        uint64_t n = 0;
        for (json_ref m = json_child(history, 0); m != JSON_NONE; m = json_next(history, 0, m))
                if (++n == seq || !seq)
                        gather(history, m, &all);
        for (size_t i = 0; i < all.n; i++)
                all.p[i] = all.p[i] ? all.p[i] : '\1'; /* as decoded() has it */
        bool found = strstr(buf_cstr(&all), value) != NULL;
        buf_release(&all);
        return found;
}

/* ---- what a report answers for ---- */

/* One conversion of a history. */
struct step {
        struct json from, to, report;
};

/* These losses are about a place, a form or an order: the content is still there. */
static bool is_change(const struct json *report, json_ref loss)
{
        static const char *const words[] = {"written as", "joined", "moved", "split", "order",
            "put before", "comes back", "may come back"};
        char *why = decoded(report, json_get(report, loss, "why"));
        bool change = false;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                change = change || strstr(why, words[i]);
        free(why);
        return change;
}

/* With `first`, the fact is in the history that this step began with; otherwise in one before
 * that. */
static bool is_mended(const struct json *report, json_ref loss, const char *value)
{
        char *why = decoded(report, json_get(report, loss, "why"));
        bool mended = strstr(why, "surrogate") && strstr(value, "\\ud");
        free(why);
        return mended;
}

static bool covers(const struct step *s, json_ref loss, const struct fact *f, bool first)
{
        const char *value = strchr(f->text, '=') + 1;
        uint64_t seq = 0;
        json_u64(&s->report, json_get(&s->report, loss, "seq"), &seq);
        if (is_mended(&s->report, loss, value))
                return !first || seq == f->message;
        char *field = decoded(&s->report, json_get(&s->report, loss, "field"));
        bool right = is_covered_by(f, field) && (!first || seq == f->message);
        /* Roles and failures are values that other formats spell in their own way. */
        if (right && strcmp(field, "role") != 0 && strcmp(field, "is_error") != 0)
                right = (first || says(&s->from, seq, value)) &&
                        (!is_change(&s->report, loss) || says(&s->to, 0, value));
        free(field);
        return right;
}

static bool is_covered(const struct fact *f, const struct step *s, bool first)
{
        json_ref list = json_get(&s->report, 0, "losses");
        if (is_renamed(f, &s->report))
                return true;
        for (json_ref l = json_child(&s->report, list); l != JSON_NONE;
             l = json_next(&s->report, list, l))
                if (covers(s, l, f, first))
                        return true;
        return false;
}

static void step_parse(struct step *s, struct str from, struct str to, struct str report)
{
        parse(&s->from, from);
        parse(&s->to, to);
        parse(&s->report, report);
}

static void step_release(struct step *s)
{
        json_release(&s->from);
        json_release(&s->to);
        json_release(&s->report);
}

bool facts_accounted(struct str a, struct str mid, struct str b, struct str report1,
    struct str report2, char *why, size_t size)
{
        struct facts x = facts_of(a), y = facts_of(b);
        struct step one, two;
        step_parse(&one, a, mid, report1);
        step_parse(&two, mid, b, report2);
        /* The report does not list every loss, so nothing can be said about the others. */
        if (json_get(&one.report, 0, "more_losses") != JSON_NONE ||
            json_get(&two.report, 0, "more_losses") != JSON_NONE) {
                facts_free(&x);
                facts_free(&y);
                step_release(&one);
                step_release(&two);
                return true;
        }
        qsort(x.list, x.count, sizeof *x.list, by_fact);
        qsort(y.list, y.count, sizeof *y.list, by_fact);
        bool good = true;
        for (size_t i = 0, k = 0; good && i < x.count;) {
                int c = k == y.count ? -1 : strcmp(x.list[i].text, y.list[k].text);
                if (c > 0) {
                        k++;
                        continue;
                }
                if (c == 0) {
                        i++;
                        k++;
                        continue;
                }
                /* Too few of these came back: as many losses must be reported, whichever they
                 * are. */
                size_t from = i, missing = 0, covered = 0;
                while (from > 0 && strcmp(x.list[from - 1].text, x.list[i].text) == 0)
                        from--;
                size_t end = i;
                for (; end < x.count && strcmp(x.list[end].text, x.list[i].text) == 0; end++)
                        missing++;
                for (size_t n = from; n < end; n++)
                        covered += is_covered(&x.list[n], &one, true) ||
                                   is_covered(&x.list[n], &two, false);
                if (covered < missing) {
                        good = false;
                        snprintf(why, size, "message %u: %.120s (in %.120s)", x.list[i].message,
                            x.list[i].text, x.list[i].cover);
                }
                i = end;
        }
        facts_free(&x);
        facts_free(&y);
        step_release(&one);
        step_release(&two);
        return good;
}
