/*
 * otel_intake.c - stores spans of other programs as conversations (otel.h).
 *
 * A span of a model call has the whole history that was sent to the model, and the model's answer.
 * The next span repeats this history and adds to it. So the id of a message is made from all
 * messages up to it. Then stored messages are recognised in any span, and two histories share only
 * their common beginning.
 */
#include "otel/otel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

#define DEPTH_MAX 64 /* for a value in OTLP's own notation */

struct span {
        char *conversation;
        uint64_t start;
        json_ref at;
        bool agent; /* invoke_agent: its messages are repeated in the model calls below it */
};

struct intake {
        struct steno_store *store;
        const char *project;
        struct json j;
        struct span *spans;
        size_t count;
        uint64_t left;
        struct steno_error *err;
};

/* ---- attributes ---- */

static json_ref attribute(const struct json *j, json_ref span, const char *key)
{
        json_ref list = json_get(j, span, "attributes");
        for (json_ref a = json_child(j, list); a != JSON_NONE; a = json_next(j, list, a))
                if (json_is(j, json_get(j, a, "key"), key))
                        return json_get(j, a, "value");
        return JSON_NONE;
}

static void put_value(struct jsonw *w, const struct json *j, json_ref v, int depth);

static void put_members(struct jsonw *w, const struct json *j, json_ref list, int depth)
{
        jsonw_object(w);
        for (json_ref e = json_child(j, list); e != JSON_NONE; e = json_next(j, list, e)) {
                struct buf key;
                buf_init(&key, 0);
                json_string(j, json_get(j, e, "key"), &key, NULL);
                jsonw_key_str(w, buf_str(&key));
                buf_release(&key);
                put_value(w, j, json_get(j, e, "value"), depth + 1);
        }
        jsonw_object_end(w);
}

/* Writes an AnyValue as the JSON value that it represents. */
static void put_value(struct jsonw *w, const struct json *j, json_ref v, int depth)
{
        static const char *const PLAIN[] = {
            "stringValue", "boolValue", "doubleValue", "bytesValue"};
        json_ref list = json_get(j, json_get(j, v, "arrayValue"), "values");
        json_ref map = json_get(j, v, "kvlistValue"), number = json_get(j, v, "intValue");
        if (depth > DEPTH_MAX) {
                jsonw_null(w);
                return;
        }
        for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
                json_ref plain = json_get(j, v, PLAIN[i]);
                if (plain != JSON_NONE) {
                        jsonw_raw(w, json_raw(j, plain));
                        return;
                }
        }
        if (number != JSON_NONE) { /* usually a string; some senders write a number */
                struct str digits = json_type(j, number) == JSON_STRING ? json_inner(j, number)
                                                                        : json_raw(j, number);
                jsonw_raw(w, json_valid(digits.p, digits.n, NULL) ? digits : STR("null"));
        } else if (map != JSON_NONE) {
                put_members(w, j, json_get(j, map, "values"), depth);
        } else if (json_get(j, v, "arrayValue") != JSON_NONE) {
                jsonw_array(w);
                for (json_ref e = json_child(j, list); e != JSON_NONE; e = json_next(j, list, e))
                        put_value(w, j, e, depth + 1);
                jsonw_array_end(w);
        } else {
                jsonw_null(w);
        }
}

/* Reads a list in an attribute. It is JSON in a string, or in OTLP's own notation. False: there is
 * none. */
static bool read_list(const struct json *j, json_ref value, struct buf *text, struct json *out)
{
        json_ref string = json_get(j, value, "stringValue");
        if (value == JSON_NONE)
                return false;
        if (string != JSON_NONE) {
                json_string(j, string, text, NULL);
        } else {
                struct jsonw w = jsonw_to(text);
                put_value(&w, j, value, 0);
        }
        return !text->failed && text->n && json_parse(out, text->p, text->n, NULL, NULL) == 0 &&
               json_type(out, 0) == JSON_ARRAY;
}

/* ---- messages ---- */

/* A conversation to which messages are added. */
struct filling {
        struct steno_conv *conv;
        char chain[SHA256_HEX]; /* hash of all messages so far */
        struct buf batch;       /* the new messages, as elements of an array */
        size_t count;
        struct steno_error *err;
        int rc;
};

static int flush(struct filling *f)
{
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_RECORD};
        if (f->rc || !f->count)
                return f->rc;
        buf_putc(&f->batch, ']');
        f->rc = buf_check(&f->batch, f->err);
        if (f->rc == 0)
                f->rc = steno_append(f->conv, f->batch.p, f->batch.n, &opt, NULL, f->err);
        buf_clear(&f->batch);
        f->count = 0;
        return f->rc;
}

static int note_there(void *ctx, const struct steno_record *r)
{
        (void)r;
        *(bool *)ctx = true;
        return 0;
}

/* `members` is a message without its id: `"role":...`. */
static void add_message(struct filling *f, struct str members)
{
        struct buf b;
        char id[48];
        bool there = false;
        if (f->rc)
                return;
        buf_init(&b, 0);
        buf_puts(&b, f->chain);
        buf_put_str(&b, members);
        if (b.failed || hash_sha256_hex(b.p, b.n, f->chain))
                f->rc = error_nomem(f->err);
        buf_release(&b);
        snprintf(id, sizeof id, "otel_%.32s", f->chain);
        steno_read_id(f->conv, id, note_there, &there, NULL);
        if (f->rc || there)
                return;
        buf_puts(&f->batch, f->count ? "," : "[");
        buf_printf(&f->batch, "{\"id\":\"%s\",", id);
        buf_put_str(&f->batch, members);
        buf_putc(&f->batch, '}');
        if (++f->count == BATCH_MAX)
                flush(f);
}

static bool is_part(const struct json *j, json_ref part, const char *type)
{
        return json_is(j, json_get(j, part, "type"), type);
}

/* Writes a value as text: a string as its text, any other value as its JSON. */
static void put_as_text(struct jsonw *w, const char *key, const struct json *j, json_ref v)
{
        if (json_type(j, v) == JSON_STRING)
                jsonw_field_copy(w, key, j, v);
        else
                jsonw_field_str(w, key, v == JSON_NONE ? STR("") : json_raw(j, v));
}

static void put_calls(struct jsonw *w, const struct json *j, json_ref parts)
{
        bool any = false;
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                if (!is_part(j, p, "tool_call"))
                        continue;
                if (!any) {
                        jsonw_key(w, "tool_calls");
                        jsonw_array(w);
                }
                any = true;
                jsonw_object(w);
                if (json_type(j, json_get(j, p, "id")) == JSON_STRING)
                        jsonw_field_copy(w, "id", j, json_get(j, p, "id"));
                jsonw_field_cstr(w, "type", "function");
                jsonw_key(w, "function");
                jsonw_object(w);
                put_as_text(w, "name", j, json_get(j, p, "name"));
                put_as_text(w, "arguments", j, json_get(j, p, "arguments"));
                jsonw_object_end(w);
                jsonw_object_end(w);
        }
        if (any)
                jsonw_array_end(w);
}

/* Writes the parts that are not a call, a result or thinking. Texts are converted; parts of other
 * types are not changed. */
static void put_content(struct jsonw *w, const struct json *j, json_ref parts)
{
        jsonw_key(w, "content");
        jsonw_array(w);
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                if (is_part(j, p, "tool_call") || is_part(j, p, "tool_call_response") ||
                    is_part(j, p, "reasoning"))
                        continue;
                if (!is_part(j, p, "text")) {
                        jsonw_raw(w, json_raw(j, p));
                        continue;
                }
                jsonw_object(w);
                jsonw_field_cstr(w, "type", "text");
                put_as_text(w, "text", j, json_get(j, p, "content"));
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

static void put_thoughts(struct jsonw *w, const struct json *j, json_ref parts)
{
        struct buf text;
        buf_init(&text, 0);
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                if (is_part(j, p, "reasoning"))
                        json_string(j, json_get(j, p, "content"), &text, NULL);
        if (text.n)
                jsonw_field_str(w, "reasoning_content", buf_str(&text));
        buf_release(&text);
}

static bool has_other(const struct json *j, json_ref parts)
{
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                if (!is_part(j, p, "tool_call_response"))
                        return true;
        return false;
}

/* Adds each result as a message of its own. */
static void add_results(struct filling *f, const struct json *j, json_ref parts)
{
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                struct buf text;
                json_ref result = json_get(j, p, "response");
                if (!is_part(j, p, "tool_call_response"))
                        continue;
                if (result == JSON_NONE)
                        result = json_get(j, p, "result");
                buf_init(&text, 0);
                struct jsonw w = jsonw_to(&text);
                jsonw_field_cstr(&w, "role", "tool");
                put_as_text(&w, "tool_call_id", j, json_get(j, p, "id"));
                put_as_text(&w, "content", j, result);
                add_message(f, buf_str(&text));
                buf_release(&text);
        }
}

static const char *role_of(const struct json *j, json_ref m)
{
        static const char *const ROLES[] = {"system", "developer", "assistant"};
        for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++)
                if (json_is(j, json_get(j, m, "role"), ROLES[i]))
                        return ROLES[i];
        return "user";
}

static void add_parts(struct filling *f, const struct json *j, const char *role, json_ref parts)
{
        struct buf text;
        add_results(f, j, parts);
        if (!has_other(j, parts))
                return;
        buf_init(&text, 0);
        struct jsonw w = jsonw_to(&text);
        jsonw_field_cstr(&w, "role", role);
        put_content(&w, j, parts);
        if (strcmp(role, "assistant") == 0) {
                put_thoughts(&w, j, parts);
                put_calls(&w, j, parts);
        }
        add_message(f, buf_str(&text));
        buf_release(&text);
}

static void add_list(struct filling *f, const struct json *j)
{
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m))
                add_parts(f, j, role_of(j, m), json_get(j, m, "parts"));
}

/* ---- spans ---- */

static bool is_operation(const struct json *j, json_ref span, const char *name)
{
        return json_is(
            j, json_get(j, attribute(j, span, "gen_ai.operation.name"), "stringValue"), name);
}

/* Returns the id of the conversation: the one in the span, or else the id of the trace. */
static char *conversation_of(const struct json *j, json_ref span)
{
        char *said = json_dup_string(
            j, json_get(j, attribute(j, span, "gen_ai.conversation.id"), "stringValue"));
        char hex[SHA256_HEX], *made = NULL;
        if (said && id_is_legal(str_of(said), ID_MAX))
                return said;
        char *trace = json_dup_string(j, json_get(j, span, "traceId"));
        const char *text = said && *said ? said : trace ? trace : "";
        if (hash_sha256_hex(text, strlen(text), hex) == 0 &&
            asprintf(&made, "trace_%.32s",
                !said && trace && strlen(trace) == 32 && strspn(trace, "0123456789abcdef") == 32
                    ? trace
                    : hex) < 0)
                made = NULL;
        free(said);
        free(trace);
        return made;
}

static uint64_t start_of(const struct json *j, json_ref span)
{
        json_ref at = json_get(j, span, "startTimeUnixNano");
        char *text = json_dup_string(j, at);
        uint64_t ns = 0;
        if (text)
                ns = strtoull(text, NULL, 10);
        else
                json_u64(j, at, &ns);
        free(text);
        return ns;
}

static int add_span(struct intake *in, json_ref at)
{
        const struct json *j = &in->j;
        bool agent = is_operation(j, at, "invoke_agent");
        bool call = is_operation(j, at, "chat") || is_operation(j, at, "generate_content") ||
                    is_operation(j, at, "text_completion");
        bool filled = attribute(j, at, "gen_ai.input.messages") != JSON_NONE ||
                      attribute(j, at, "gen_ai.output.messages") != JSON_NONE;
        if (!filled || (!agent && !call)) {
                in->left++;
                return 0;
        }
        struct span *list = realloc(in->spans, (in->count + 1) * sizeof *list);
        if (!list)
                return error_nomem(in->err);
        in->spans = list;
        list[in->count] = (struct span){.conversation = conversation_of(j, at),
            .start = start_of(j, at),
            .at = at,
            .agent = agent};
        return list[in->count++].conversation ? 0 : error_nomem(in->err);
}

static int find_spans(struct intake *in)
{
        const struct json *j = &in->j;
        json_ref resources = json_get(j, 0, "resourceSpans");
        int rc = 0;
        for (json_ref r = json_child(j, resources); rc == 0 && r != JSON_NONE;
             r = json_next(j, resources, r)) {
                json_ref scopes = json_get(j, r, "scopeSpans");
                for (json_ref s = json_child(j, scopes); rc == 0 && s != JSON_NONE;
                     s = json_next(j, scopes, s)) {
                        json_ref spans = json_get(j, s, "spans");
                        for (json_ref p = json_child(j, spans); rc == 0 && p != JSON_NONE;
                             p = json_next(j, spans, p))
                                rc = add_span(in, p);
                }
        }
        return rc;
}

static int by_start(const void *a, const void *b)
{
        const struct span *x = a, *y = b;
        return x->start < y->start ? -1 : x->start > y->start;
}

static bool has_calls(const struct intake *in, const char *conversation)
{
        for (size_t i = 0; i < in->count; i++)
                if (!in->spans[i].agent && strcmp(in->spans[i].conversation, conversation) == 0)
                        return true;
        return false;
}

static void fill(struct filling *f, const struct json *j, json_ref span)
{
        static const char *const LISTS[] = {
            "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"};
        for (size_t i = 0; i < 3; i++) {
                struct buf text;
                struct json list;
                buf_init(&text, MESSAGE_MAX);
                json_init(&list);
                bool there = read_list(j, attribute(j, span, LISTS[i]), &text, &list);
                if (there && i == 0)
                        add_parts(f, &list, "system", 0);
                else if (there)
                        add_list(f, &list);
                json_release(&list);
                buf_release(&text);
        }
}

static int store_span(struct intake *in, const struct span *s)
{
        struct filling f = {.err = in->err};
        int rc = steno_conv_open(in->store, in->project, s->conversation, &f.conv, in->err);
        if (rc == STENO_ENOTFOUND) {
                rc = steno_conv_create(
                    in->store, in->project, s->conversation, NULL, &f.conv, in->err);
                if (rc == STENO_ECONFLICT)
                        rc = steno_conv_open(
                            in->store, in->project, s->conversation, &f.conv, in->err);
        }
        if (rc)
                return rc;
        buf_init(&f.batch, 0);
        fill(&f, &in->j, s->at);
        rc = flush(&f);
        buf_release(&f.batch);
        steno_conv_close(f.conv);
        return rc;
}

int otel_intake(struct steno_store *store, const char *project, const char *json, size_t n,
    uint64_t *left, struct steno_error *err)
{
        struct intake in = {.store = store, .project = project, .err = err};
        json_init(&in.j);
        int rc = json_parse(&in.j, json, n, NULL, err);
        if (rc == 0 && json_type(&in.j, json_get(&in.j, 0, "resourceSpans")) != JSON_ARRAY)
                rc = error_set(err, STENO_EINVAL, "resourceSpans must be a list");
        if (rc == 0)
                rc = find_spans(&in);
        if (rc == 0 && in.count)
                qsort(in.spans, in.count, sizeof *in.spans, by_start);
        for (size_t i = 0; rc == 0 && i < in.count; i++)
                if (!in.spans[i].agent || !has_calls(&in, in.spans[i].conversation))
                        rc = store_span(&in, &in.spans[i]);
        for (size_t i = 0; i < in.count; i++)
                free(in.spans[i].conversation);
        free(in.spans);
        json_release(&in.j);
        if (rc == 0)
                *left = in.left;
        return rc;
}
