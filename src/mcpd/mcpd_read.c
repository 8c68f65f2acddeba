/*
 * mcpd_read.c - conversation_read, conversation_search and conversation_list.
 *
 * Messages come from views. Each view has one step: one message, or a message with calls and their
 * results, which views never split. So a page can end when its bytes are used up, and amendments
 * are applied. Long texts are shortened; seq and offset read the whole message.
 */
#include "mcpd/mcpd_call.h"

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "steno_search.h"

#define LIMIT_DEFAULT 20
#define LIMIT_MAX 100
#define TEXT_MAX 2000             /* a longer text is shortened to this many bytes */
#define PAGE_MAX CONTEXT_READ_MAX /* bytes of texts on a page, the same as for an output */
#define QUERY_MAX (8 * KIB)
#define STEP_MAX                                                                                   \
        (2 * MESSAGE_MAX) /* for a step: a message with calls and its results, which are stubs */

/* ---- arguments ---- */

static int take_number(const struct json *args, const char *name, uint64_t fallback, uint64_t max,
    uint64_t *out, struct steno_error *err)
{
        json_ref v = json_get(args, 0, name);
        double d;
        if (v == JSON_NONE || json_type(args, v) == JSON_NULL) {
                *out = fallback;
                return 0;
        }
        if (!json_double(args, v, &d) || d < 0 || d > 9e15 || d != (double)(uint64_t)d)
                return error_set(err, STENO_EPROTO, "%s must be a whole number, 0 or more", name);
        *out = d > (double)max ? max : (uint64_t)d;
        return 0;
}

static bool is_given(const struct json *args, const char *name)
{
        enum json_type t = json_type(args, json_get(args, 0, name));
        return t != JSON_NOTHING && t != JSON_NULL;
}

/* ---- steps ---- */

struct step {
        uint64_t first;
        uint64_t last;
        bool more;
};

static int put(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return ((struct buf *)ctx)->failed;
}

static int drop(void *ctx, const void *p, size_t n)
{
        (void)ctx, (void)p, (void)n;
        return 0;
}

/* Writes a view as JSON to `out` (NULL: it is not needed) and returns its place. first is 0: the
 * view is empty. */
static int take_view(struct steno_conv *conv, const struct steno_view_options *how, struct buf *out,
    struct step *step, struct steno_error *err)
{
        struct steno_view_options opt = *how;
        struct json report;
        char *text = NULL;
        opt.size = sizeof opt;
        opt.format = "openai";
        opt.no_ids = true;
        opt.all_messages = true;
        *step = (struct step){0};
        json_init(&report);
        int rc = steno_view(conv, &opt, out ? put : drop, out, &text, err);
        if (rc == STENO_EINTERRUPTED && out)
                rc = buf_check(out, err);
        if (rc == 0)
                rc = json_parse(&report, text, strlen(text), NULL, err);
        if (rc == 0) {
                json_u64(&report, json_get(&report, 0, "first_seq"), &step->first);
                json_u64(&report, json_get(&report, 0, "last_seq"), &step->last);
                step->more = json_bool(&report, json_get(&report, 0, "has_more"), false);
        }
        json_release(&report);
        steno_free(text);
        return rc;
}

/* ---- writing a message for the model ---- */

struct showing {
        struct jsonw w;
        uint64_t bytes; /* of the texts so far */
        bool shortened; /* the current message was shortened */
};

static void put_short(struct showing *s, const char *key, struct str text)
{
        size_t n = text.n <= TEXT_MAX ? text.n : text_floor(text.p, text.n, TEXT_MAX);
        struct buf b;
        s->bytes += n;
        if (n == text.n) {
                jsonw_field_str(&s->w, key, text);
                return;
        }
        s->shortened = true;
        buf_init(&b, TEXT_MAX + 1 * KIB);
        buf_put(&b, text.p, n);
        buf_printf(&b, "\n[... %zu more bytes]", text.n - n);
        jsonw_field_str(&s->w, key, buf_str(&b));
        buf_release(&b);
}

/* Writes the text of a content: a string, or the texts of its parts. */
static void put_content(struct showing *s, const struct json *j, json_ref content)
{
        struct buf b;
        buf_init(&b, STEP_MAX);
        if (!json_string(j, content, &b, NULL)) {
                for (json_ref p = json_child(j, content);
                     json_type(j, content) == JSON_ARRAY && p != JSON_NONE;
                     p = json_next(j, content, p)) {
                        struct str type = json_inner(j, json_get(j, p, "type"));
                        if (b.n)
                                buf_putc(&b, '\n');
                        if (!json_string(j, json_get(j, p, "text"), &b, NULL))
                                buf_printf(&b, "[%.*s]", type.n < 40 ? (int)type.n : 40, type.p);
                }
        }
        put_short(s, "content", buf_str(&b));
        buf_release(&b);
}

static void put_text_of(struct showing *s, const char *key, const struct json *j, json_ref v)
{
        struct buf b;
        buf_init(&b, STEP_MAX);
        if (json_string(j, v, &b, NULL))
                put_short(s, key, buf_str(&b));
        buf_release(&b);
}

static void put_calls(struct showing *s, const struct json *j, json_ref calls)
{
        if (json_count(j, calls) == 0)
                return;
        jsonw_key(&s->w, "tool_calls");
        jsonw_array(&s->w);
        for (json_ref r = json_child(j, calls); r != JSON_NONE; r = json_next(j, calls, r)) {
                json_ref f = json_get(j, r, "function");
                jsonw_object(&s->w);
                put_text_of(s, "id", j, json_get(j, r, "id"));
                put_text_of(s, "name", j, json_get(j, f, "name"));
                put_text_of(s, "arguments", j, json_get(j, f, "arguments"));
                jsonw_object_end(&s->w);
        }
        jsonw_array_end(&s->w);
}

static void put_message(struct showing *s, uint64_t seq, const struct json *j, json_ref m)
{
        s->shortened = false;
        jsonw_object(&s->w);
        jsonw_field_u64(&s->w, "seq", seq);
        put_text_of(s, "role", j, json_get(j, m, "role"));
        put_content(s, j, json_get(j, m, "content"));
        put_text_of(s, "tool_call_id", j, json_get(j, m, "tool_call_id"));
        put_calls(s, j, json_get(j, m, "tool_calls"));
        if (s->shortened)
                jsonw_field_bool(&s->w, "shortened", true);
        jsonw_object_end(&s->w);
}

/* Writes the messages of a step, each with the seq of the step's beginning. */
static int put_step(struct showing *s, const struct buf *text, const struct step *step,
    uint64_t *count, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, text->p, text->n, NULL, err);
        for (json_ref m = rc ? JSON_NONE : json_child(&j, 0); m != JSON_NONE;
             m = json_next(&j, 0, m)) {
                put_message(s, step->first, &j, m);
                ++*count;
        }
        json_release(&j);
        return rc;
}

/* ---- a page ---- */

/* Where a page begins, and its maximum size. */
struct range {
        uint64_t after;
        uint64_t before; /* 0: no limit */
        uint64_t limit;
};

static int put_page(
    struct steno_conv *conv, const struct range *r, struct buf *out, struct steno_error *err)
{
        struct showing s = {.w = jsonw_to(out)};
        struct step step = {.more = true};
        struct buf text;
        uint64_t at = r->after, count = 0;
        int rc = 0;
        buf_init(&text, STEP_MAX);
        jsonw_object(&s.w);
        jsonw_key(&s.w, "messages");
        jsonw_array(&s.w);
        while (rc == 0 && step.more && count < r->limit && s.bytes < PAGE_MAX) {
                struct steno_view_options one = {
                    .after_seq = at, .before_seq = r->before, .limit = 1};
                buf_clear(&text);
                rc = take_view(conv, &one, &text, &step, err);
                if (rc == 0 && step.last <= at)
                        step.more = false;
                else if (rc == 0)
                        rc = put_step(&s, &text, &step, &count, err);
                if (rc == 0 && step.last > at)
                        at = step.last;
        }
        jsonw_array_end(&s.w);
        jsonw_field_bool(&s.w, "has_more", step.more);
        jsonw_field_u64(&s.w, "next_after", at);
        buf_release(&text);
        return rc;
}

/* Finds where the last `limit` messages begin, or the last ones before a seq. */
static int find_newest(struct steno_conv *conv, struct range *r, struct steno_error *err)
{
        struct steno_view_options newest = {.before_seq = r->before, .last = r->limit};
        struct step step;
        int rc = take_view(conv, &newest, NULL, &step, err);
        if (rc == 0)
                r->after = step.first ? step.first - 1 : 0;
        return rc;
}

static int read_messages(
    struct steno_conv *conv, const struct json *args, struct buf *out, struct steno_error *err)
{
        struct range r;
        uint64_t last = 0;
        int rc = take_number(args, "after", 0, UINT64_MAX, &r.after, err);
        if (rc == 0)
                rc = take_number(args, "before", 0, UINT64_MAX, &r.before, err);
        if (rc == 0)
                rc = take_number(args, "limit", LIMIT_DEFAULT, LIMIT_MAX, &r.limit, err);
        if (rc == 0 && r.limit == 0)
                r.limit = 1;
        if (rc == 0 && !is_given(args, "after"))
                rc = find_newest(conv, &r, err);
        if (rc == 0)
                rc = put_page(conv, &r, out, err);
        if (rc == 0)
                rc = steno_conv_last_seq(conv, &last, err);
        if (rc == 0) {
                struct jsonw w = jsonw_behind(out);
                jsonw_field_u64(&w, "last_seq", last);
                jsonw_object_end(&w);
        }
        return rc;
}

/* ---- one message ---- */

static int read_whole(
    struct steno_conv *conv, const struct json *args, struct buf *out, struct steno_error *err)
{
        uint64_t seq, offset;
        struct step step;
        struct buf text;
        int rc = take_number(args, "seq", 0, UINT64_MAX, &seq, err);
        if (rc == 0)
                rc = take_number(args, "offset", 0, UINT64_MAX, &offset, err);
        if (rc)
                return rc;
        struct steno_view_options one = {.after_seq = seq ? seq - 1 : 0, .limit = 1};
        buf_init(&text, STEP_MAX);
        rc = take_view(conv, &one, &text, &step, err);
        if (rc == 0 && (seq == 0 || step.first != seq))
                rc = error_set(
                    err, STENO_ENOTFOUND, "no message begins at seq %llu", (unsigned long long)seq);
        if (rc == 0) {
                size_t from = offset < text.n ? text_floor(text.p, text.n, (size_t)offset) : text.n;
                size_t n = text.n - from < PAGE_MAX ? text.n - from : PAGE_MAX;
                n = text_floor(text.p + from, text.n - from, n);
                struct jsonw w = jsonw_to(out);
                jsonw_object(&w);
                jsonw_field_u64(&w, "seq", seq);
                jsonw_field_str(&w, "content", str_span(text.p + from, n));
                jsonw_field_u64(&w, "offset", from);
                jsonw_field_u64(&w, "next_offset", from + n);
                jsonw_field_bool(&w, "done", from + n >= text.n);
                jsonw_field_u64(&w, "total_bytes", text.n);
                jsonw_object_end(&w);
        }
        buf_release(&text);
        return rc;
}

int mcpd_read(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err)
{
        (void)scope;
        return (is_given(args, "seq") ? read_whole : read_messages)(conv, args, out, err);
}

/* ---- options of searches and lists ---- */

struct asked {
        uint32_t limit;
        struct buf query, cursor;
        bool has_query, has_cursor;
};

static int take_asked(struct asked *a, const struct json *args, struct steno_error *err)
{
        uint64_t limit = 0;
        *a = (struct asked){0};
        buf_init(&a->query, QUERY_MAX);
        buf_init(&a->cursor, 4 * KIB);
        int rc = take_number(args, "limit", LIMIT_DEFAULT, LIMIT_MAX, &limit, err);
        a->limit = limit ? (uint32_t)limit : 1;
        a->has_query = json_string(args, json_get(args, 0, "query"), &a->query, NULL);
        a->has_cursor = json_string(args, json_get(args, 0, "cursor"), &a->cursor, NULL);
        return rc ? rc : buf_check(&a->query, err);
}

/* Writes the result, and releases everything. */
static int give(struct asked *a, int rc, char *json, struct buf *out)
{
        if (rc == 0)
                buf_puts(out, json);
        steno_free(json);
        buf_release(&a->query);
        buf_release(&a->cursor);
        return rc;
}

/* ---- search ---- */

int mcpd_search(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err)
{
        struct steno_search_options opt = {.size = sizeof opt,
            .project = scope->project,
            .conversation = conv ? steno_conv_id(conv) : NULL};
        struct asked a;
        char *json = NULL;
        int rc = take_asked(&a, args, err);
        if (rc == 0 && !a.has_query)
                rc = error_set(err, STENO_EPROTO, "query must be given, as a string");
        opt.limit = a.limit;
        opt.query = buf_cstr(&a.query);
        opt.cursor = a.has_cursor ? buf_cstr(&a.cursor) : NULL;
        if (rc == 0)
                rc = steno_search(scope->store, &opt, &json, err);
        return give(&a, rc, json, out);
}

/* ---- conversations of a project ---- */

int mcpd_list(const struct mcpd_scope *scope, struct steno_conv *conv, const struct json *args,
    struct buf *out, struct steno_error *err)
{
        struct steno_list_options opt = {.size = sizeof opt, .complete = 1};
        struct asked a;
        char *json = NULL;
        (void)conv;
        int rc = take_asked(&a, args, err);
        opt.limit = a.limit;
        opt.query = a.has_query ? buf_cstr(&a.query) : NULL;
        opt.cursor = a.has_cursor ? buf_cstr(&a.cursor) : NULL;
        if (rc == 0)
                rc = steno_list(scope->store, scope->project, &opt, &json, err);
        return give(&a, rc, json, out);
}
