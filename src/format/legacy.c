/*
 * legacy.c - tool records as text inside the assistant's content:
 *
 *   <function_call>{"id","name","arguments","response"?,"isError"?, ...}</function_call>
 *
 * Everything else is as in openai. Inside the tag every '<' is written \u003c, so that no text can
 * close it. If the text between the tags is not such a record, it stays text.
 */
#include "format/format.h"

#include "base/error.h"
#include "format/blocks.h"
#include "format/describe.h"
#include "format/openai_content.h"
#include "format/reading.h"
#include "format/writing.h"
#include "model/members.h"
#include "model/token.h"

static const char OPEN[] = "<function_call>";
#define OPEN_SIZE (sizeof OPEN - 1)
static const char *const CLOSES[] = {"</function_call>", "<\\/function_call>"};

/* A walk over the records in a string (see message.h: its escapes are unchanged), so that the text
 * around them is not changed. */
struct records {
        struct str string;
        struct arena *arena;
        struct json j;   /* the record that was found */
        struct str json; /* the record's text */
        size_t from;     /* where its tag begins in the string */
        size_t to;
};

static void records_begin(struct records *r, struct str string, struct arena *arena)
{
        *r = (struct records){.string = string, .arena = arena};
        json_init(&r->j);
        bool lossy = false;
        if (!string.n || memmem(string.p, string.n, OPEN, OPEN_SIZE))
                return;
        /* Some writers escape every '<'. */
        struct str text = token_decode(string, arena, &lossy);
        if (!lossy)
                r->string = token_make(text, arena);
}

/* Records contain no '<', so the search is for this character. */
static const char *find_close(const char *from, const char *end, size_t *size)
{
        for (const char *p = from; (p = memchr(p, '<', (size_t)(end - p))); p++) {
                for (size_t i = 0; i < 2; i++) {
                        *size = strlen(CLOSES[i]);
                        if ((size_t)(end - p) >= *size && memcmp(p, CLOSES[i], *size) == 0)
                                return p;
                }
        }
        return NULL;
}

static const char *find_open(const char *from, const char *end)
{
        for (const char *p = from; p && (p = memchr(p, '<', (size_t)(end - p))); p++)
                if ((size_t)(end - p) >= OPEN_SIZE && memcmp(p, OPEN, OPEN_SIZE) == 0)
                        return p;
        return NULL;
}

static bool records_next(struct records *r)
{
        const char *end = r->string.p + r->string.n;
        for (const char *look = r->string.p + r->to; look < end;) {
                const char *open = find_open(look, end);
                size_t size = 0;
                const char *json = open ? open + OPEN_SIZE : NULL;
                const char *close = open ? find_close(json, end, &size) : NULL;
                if (!close)
                        return false;
                r->json = token_decode(str_span(json, (size_t)(close - json)), r->arena, NULL);
                if (json_parse(&r->j, r->json.p, r->json.n, NULL, NULL) == 0 &&
                    json_type(&r->j, json_get(&r->j, 0, "name")) == JSON_STRING) {
                        r->from = (size_t)(open - r->string.p);
                        r->to = (size_t)(close - r->string.p) + size;
                        return true;
                }
                look = json;
        }
        return false;
}

static bool is_answered(const struct json *j)
{
        enum json_type t = json_type(j, json_get(j, 0, "response"));
        return t != JSON_NOTHING && t != JSON_NULL;
}

static int describe_record(struct describe *d, const struct json *j)
{
        const struct json *outer = d->j;
        json_ref id = json_get(j, 0, "id");
        json_ref name = json_get(j, 0, "name");
        d->j = j;
        int rc = describe_named_call(d, id, name, "the id of a function_call");
        if (!rc && is_answered(j))
                rc = describe_named_answer(d, id, name, "the id of a function_call");
        d->j = outer;
        return rc;
}

static int describe_text(struct describe *d, json_ref string)
{
        struct str inner = json_inner(d->j, string);
        if (!memmem(inner.p, inner.n, "function_call", 13))
                return 0;
        struct records r;
        records_begin(&r, inner, d->arena);
        int rc = 0;
        while (!rc && records_next(&r))
                rc = describe_record(d, &r.j);
        json_release(&r.j);
        return rc;
}

static const char *const ROLES[] = {"system", "developer", "user", "assistant", NULL};

static int legacy_describe(const struct json *j, json_ref msg, struct arena *arena,
    struct about *out, struct steno_error *err)
{
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        int rc = describe_message(&d, msg, ROLES);
        json_ref content = json_get(j, msg, "content");
        if (!rc && str_is(a.role, "assistant") && json_type(j, content) == JSON_STRING)
                rc = describe_text(&d, content);
        bool list = !rc && str_is(a.role, "assistant") && json_type(j, content) == JSON_ARRAY;
        for (json_ref p = list ? json_child(j, content) : JSON_NONE; !rc && p != JSON_NONE;
             p = json_next(j, content, p)) {
                json_ref text = json_get(j, p, "text");
                if (json_type(j, text) == JSON_STRING)
                        rc = describe_text(&d, text);
        }
        if (rc)
                return rc;
        *out = a;
        return arena->failed ? error_nomem(err) : 0;
}

/* ---- reading ---- */

static void read_record(struct reading *r, const struct json *j, struct str json)
{
        enum { ID, NAME, ARGUMENTS, RESPONSE, IS_ERROR, STEPS, INVOKED, DURATION, REF, COUNT };
        static const char *const keys[] = {"id", "name", "arguments", "response", "isError",
            "steps", "invokedAt", "duration", "ref", NULL};
        const struct json *outer = r->j;
        json_ref f[COUNT];
        r->j = j;
        struct part p = {.kind = PART_CALL, .raw = json};
        reading_members(r, 0, keys, f, &p.extras, false);
        p.id = reading_string_or_keep(r, &p.extras, "id", f[ID]);
        p.name = reading_string(r, f[NAME]);
        p.arguments_text = json_type(j, f[ARGUMENTS]) == JSON_STRING;
        p.arguments =
            p.arguments_text ? reading_string(r, f[ARGUMENTS]) : reading_raw(r, f[ARGUMENTS]);
        p.steps = reading_raw(r, f[STEPS]);
        p.invoked_at = reading_raw(r, f[INVOKED]);
        p.duration = reading_raw(r, f[DURATION]);
        p.ref = reading_raw(r, f[REF]);
        bool failed = json_type(j, f[IS_ERROR]) == JSON_TRUE && is_answered(j);
        if (!failed)
                reading_keep(r, &p.extras, "isError", f[IS_ERROR], false);
        if (!is_answered(j))
                reading_keep(r, &p.extras, "response", f[RESPONSE], false);
        *reading_part(r, PART_CALL, JSON_NONE) = p;
        if (is_answered(j)) {
                struct part *result = reading_part(r, PART_RESULT, JSON_NONE);
                result->raw = json;
                result->with_call = true;
                result->id = p.id;
                result->name = p.name;
                result->error = failed;
                blocks_read_output(r, result, f[RESPONSE]);
        }
        r->j = outer;
}

static void put_text(struct reading *r, struct str string)
{
        if (string.n)
                reading_part(r, PART_TEXT, JSON_NONE)->text = string;
}

/* Estimates the number of parts. Most texts begin with prose, and most records hold a call and its
 * result. */
static size_t expected_parts(struct str text)
{
        size_t n = 1;
        for (const char *p = text.p, *end = p + text.n; (p = find_open(p, end)); p++)
                n += 2;
        return n;
}

/* Splits a text part into texts and records. Also describes the records if `d` is not NULL. */
static int split_text(struct reading *r, const struct part *p, struct describe *d)
{
        struct records found;
        records_begin(&found, p->text, r->arena);
        size_t done = 0;
        int rc = 0;
        while (!rc && records_next(&found)) {
                rc = d ? describe_record(d, &found.j) : 0;
                put_text(r, str_span(found.string.p + done, found.from - done));
                read_record(r, &found.j, found.json);
                done = found.to;
        }
        json_release(&found.j);
        if (done == 0)
                *reading_part(r, PART_TEXT, JSON_NONE) = *p;
        else
                put_text(r, str_span(found.string.p + done, found.string.n - done));
        return rc;
}

static bool may_have_records(const struct part *p)
{
        return p->kind == PART_TEXT && memmem(p->text.p, p->text.n, "function_call", 13);
}

static bool has_records(const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (may_have_records(&m->parts[i]))
                        return true;
        return false;
}

static int read_message(
    const struct json *j, json_ref msg, struct arena *arena, struct message *m, struct describe *d)
{
        static const char *const keys[] = {"role", "content", "id", "name", "createdAt", NULL};
        struct reading r = {.j = j, .arena = arena, .m = m};
        json_ref f[5];
        reading_members(&r, msg, keys, f, &m->extras, false);
        m->role = openai_role(j, f[0]);
        struct str *to[] = {&m->id, &m->name, &m->created_at};
        for (size_t i = 0; i < 3; i++) {
                *to[i] = reading_string_or_keep(&r, &m->extras, keys[i + 2], f[i + 2]);
        }
        openai_read_content(&r, f[1]);
        if (m->role != ROLE_ASSISTANT || !has_records(m))
                return arena->failed;
        struct message whole = *m;
        struct part only = m->parts[0]; /* parts are large: do not keep a list of one */
        if (m->count == 1) {
                arena_trim(arena, m->parts, r.cap * sizeof only, 0);
                whole.parts = &only;
        }
        m->parts = NULL;
        m->count = r.cap = r.expected = 0;
        for (size_t i = 0; i < whole.count; i++)
                r.expected +=
                    whole.parts[i].kind == PART_TEXT ? expected_parts(whole.parts[i].text) : 1;
        int rc = 0;
        for (size_t i = 0; i < whole.count && !rc; i++) {
                const struct part *p = &whole.parts[i];
                if (may_have_records(p))
                        rc = split_text(&r, p, d);
                else
                        *reading_part(&r, p->kind, JSON_NONE) = *p;
        }
        return rc ? rc : arena->failed;
}

static int legacy_read(const struct json *j, json_ref msg, struct arena *arena, struct message *m)
{
        return read_message(j, msg, arena, m, NULL);
}

/* Decodes and parses the records of a text once for both. */
static int legacy_check_and_read(const struct json *j, json_ref msg, struct arena *arena,
    struct message *m, struct steno_error *err)
{
        struct about a = {0};
        struct describe d = {.j = j, .arena = arena, .out = &a, .err = err};
        bool text = json_type(j, json_get(j, msg, "content")) == JSON_STRING;
        int rc = text ? describe_message(&d, msg, ROLES) : legacy_describe(j, msg, arena, &a, err);
        if (!rc)
                rc = read_message(j, msg, arena, m, text ? &d : NULL);
        return !rc || rc == STENO_EPROTO || rc == STENO_ELIMIT ? rc : error_nomem(err);
}

/* ---- writing ---- */

/* Writes a record's JSON to w->out. */
static void write_json(struct writer *w, const struct message *m, const struct part *p)
{
        const struct part *result = p->peer;
        bool own = writing_own(w, m);
        if (own && p->raw.p && (!result || str_eq(result->raw, p->raw))) {
                buf_put_str(w->out, p->raw);
                return;
        }
        jsonw_object(&w->json);
        writing_string(w, "id", p->id);
        writing_string(w, "name", p->name.p ? p->name : STR(""));
        if (!p->arguments_text && own)
                writing_raw(w, "arguments", p->arguments);
        else
                writing_arguments_text(w, m, "arguments", p);
        if (result) {
                struct message from = *m;
                from.seq = result->seq ? result->seq : m->seq;
                blocks_write_output(w, &from, "response", result);
                if (result->error)
                        writing_raw(w, "isError", STR("true"));
                writing_raw(w, "duration", result->duration.p ? result->duration : p->duration);
                writing_raw(w, "steps", result->steps.p ? result->steps : p->steps);
                writing_raw(
                    w, "invokedAt", result->invoked_at.p ? result->invoked_at : p->invoked_at);
                writing_raw(w, "ref", result->ref.p ? result->ref : p->ref);
        }
        writing_extras(w, m, "tool_calls", p->extras, false);
        jsonw_object_end(&w->json);
        if (writing_own(w, m))
                return;
        writing_extras(w, m, "tool_calls", p->extras, true);
        if (p->signature.p)
                writing_lose(w, m, "signature", "the format has no place for it");
        bool held = result >= m->parts && result < m->parts + m->count;
        struct part shown = {.display = held ? result->display : (struct str){0},
            .display_name = p->display_name,
            .description = p->description};
        writing_lose_figures(w, m, result ? &shown : p);
        if (result && result->ending)
                writing_lose(w, m, "state", "the format has no place for it");
}

static size_t about_as_long(const struct part *p)
{
        return 256 + p->arguments.n + (p->peer ? p->peer->output.n : 0);
}

/* Makes the record as a text part. */
static int make_record(
    struct writer *w, const struct message *m, const struct part *p, struct part *to)
{
        struct buf json, text;
        buf_init(&json, 0);
        buf_init(&text, 0);
        struct writer inner = *w;
        inner.out = &json;
        inner.json = jsonw_to(&json);
        buf_reserve(&json, about_as_long(p)); /* a buffer that grows is copied */
        write_json(&inner, m, p);
        buf_reserve(&text, json.n + json.n / 8);
        json_put_escaped(&text, STR(OPEN));
        for (const char *from = json.p, *end = from + json.n; from < end;) {
                const char *mark = memchr(from, '<', (size_t)(end - from));
                json_put_escaped(&text, str_span(from, (size_t)((mark ? mark : end) - from)));
                if (mark)
                        json_put_escaped(&text, STR("\\u003c"));
                from = mark ? mark + 1 : end;
        }
        json_put_escaped(&text, str_of(CLOSES[0]));
        *to = (struct part){.kind = PART_TEXT, .text = arena_dup(w->arena, buf_str(&text))};
        int failed = json.failed || text.failed || w->arena->failed;
        buf_release(&json);
        buf_release(&text);
        return failed ? STENO_ENOMEM : 0;
}

static bool is_plain_text(const struct part *p)
{
        return p->kind == PART_TEXT && !p->extras;
}

/* Joins consecutive texts to one, because the records are inside of the text. */
static void join_texts(struct writer *w, struct message *flat)
{
        size_t n = 0;
        for (size_t i = 0, end; i < flat->count; i = end) {
                struct part *to = &flat->parts[n++];
                *to = flat->parts[i];
                end = i + 1;
                if (!is_plain_text(to) || end == flat->count || !is_plain_text(&flat->parts[end]))
                        continue;
                struct token_sum text;
                token_sum_begin(&text);
                token_sum_add(&text, to->text);
                for (; end < flat->count && is_plain_text(&flat->parts[end]); end++)
                        token_sum_add(&text, flat->parts[end].text);
                to->text = token_sum_end(&text, w->arena);
                to->raw = (struct str){0};
        }
        flat->count = n;
}

static int flatten(struct writer *w, const struct message *m, struct message *flat)
{
        *flat = *m;
        flat->count = 0;
        flat->raw = (struct str){0};
        flat->parts = arena_alloc(w->arena, (m->count + 1) * sizeof *flat->parts);
        if (!flat->parts)
                return STENO_ENOMEM;
        size_t texts = 0;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                struct part made;
                switch (p->kind) {
                case PART_RESULT:
                        break;
                case PART_CALL:
                        if (make_record(w, m, p, &made))
                                return STENO_ENOMEM;
                        flat->parts[flat->count++] = made;
                        break;
                case PART_TEXT:
                        texts++;
                        made = *p;
                        if (!writing_own(w, m)) {
                                writing_lose_extras(w, m, "content", p->extras);
                                made.extras = NULL;
                        }
                        flat->parts[flat->count++] = made;
                        if (!writing_own(w, m) && memmem(p->text.p, p->text.n, "function_call", 13))
                                writing_lose(w, m, "content", "text that looks like a call");
                        break;
                case PART_THINKING:
                case PART_REDACTED:
                        writing_lose_part(w, m, p);
                        break;
                default:
                        flat->parts[flat->count++] = *p;
                }
        }
        join_texts(w, flat);
        if (!writing_own(w, m) && texts > 1)
                writing_lose(w, m, "content", "several texts, joined");
        return 0;
}

static void report_result(struct writer *w, const struct message *m, const struct part *p)
{
        writing_report_result(w, m, p);
        if (p->display.p)
                writing_lose(w, m, "returnDisplay", "the format has no place for it");
        writing_report_silence(w, m, p);
}

/* Is the output for an endpoint, or for a check that applies an endpoint's rules? */
static bool goes_to_endpoint(const struct writer *w)
{
        return w->strict || w->via.n;
}

/* Is it a member that an endpoint does not know? With `strict` all extras are, otherwise only
 * Steno's own. */
static bool is_unknown_there(const struct writer *w, const struct extra *x)
{
        struct str name = str_span(x->key.p + 1, x->key.n - 2); /* without its quotes */
        return w->strict || members_has(members_find_name(name), MEMBER_NOT_SENT);
}

/* Writes the members beside the content. An endpoint reads the message as one of OpenAI's, and
 * strict endpoints refuse a request with an unknown member. */
static void write_rest(struct writer *w, const struct message *m)
{
        if (!goes_to_endpoint(w)) {
                writing_string(w, "createdAt", m->created_at);
                writing_extras(w, m, "", m->extras, false);
                return;
        }
        for (const struct extra *x = m->extras; x; x = x->next) {
                struct extra one = *x;
                one.next = NULL;
                if (!x->inner && is_unknown_there(w, x))
                        writing_lose_extras(w, m, "", &one);
                else
                        writing_extras(w, m, "", &one, false);
        }
}

static int write_message(struct writer *w, const struct message *m)
{
        struct message flat = *m;
        struct arena_mark mark = arena_mark(w->arena);
        if (m->role == ROLE_ASSISTANT && flatten(w, m, &flat))
                return error_nomem(w->err);
        jsonw_object(&w->json);
        if (!goes_to_endpoint(w))
                writing_string(w, "id", m->id);
        writing_text(w, "role", openai_role_name(m->role));
        openai_write_content(w, &flat);
        writing_string(w, "name", m->name);
        write_rest(w, m);
        jsonw_object_end(&w->json);
        if (!writing_own(w, m))
                writing_extras(w, m, "", m->extras, true);
        arena_rewind(w->arena, mark); /* the output has all that was made */
        return 0;
}

static int legacy_write(struct writer *w, const struct history *h)
{
        if (goes_to_endpoint(w))
                w->rebuild = true; /* an unchanged message may have members of any kind */
        return writing_embedded(w, h, write_message, report_result);
}

static int legacy_detect(const struct json *j, json_ref msg)
{
        json_ref role = json_get(j, msg, "role");
        json_ref content = json_get(j, msg, "content");
        if (openai_role(j, role) == ROLE_NONE || json_is(j, role, "tool") ||
            json_get(j, msg, "tool_calls") != JSON_NONE)
                return 0;
        struct str text = json_inner(j, content);
        if (json_is(j, role, "assistant") && text.n && memmem(text.p, text.n, OPEN, OPEN_SIZE))
                return 98;
        return 41;
}

const struct format format_legacy = {
    .name = "legacy",
    .flags = FORMAT_EMBEDS | FORMAT_NAMELESS | FORMAT_USER_MEDIA | FORMAT_TEXT_ARGUMENTS,
    .describe = legacy_describe,
    .read = legacy_read,
    .check_and_read = legacy_check_and_read,
    .write = legacy_write,
    .detect = legacy_detect,
};
