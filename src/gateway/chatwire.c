/*
 * chatwire.c - see chatwire.h
 */
#include "gateway/chatwire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "provider/assemble.h"

/* ---- the request ---- */

bool chatwire_has_tools(const struct json *body)
{
        json_ref tools = json_get(body, 0, "tools");
        for (json_ref t = json_child(body, tools); t != JSON_NONE; t = json_next(body, tools, t))
                if (!json_is(body, json_get(body, t, "type"), "function"))
                        return false;
        return true;
}

static int put_bytes(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

/* The instructions, and the items as messages. */
static int put_messages(
    struct jsonw *w, const struct json *body, struct str items, struct steno_error *err)
{
        struct steno_convert_options opt = {
            .size = sizeof opt, .from = "responses", .to = "openai", .strict = true};
        struct buf text;
        struct json j;
        buf_init(&text, 0);
        json_init(&j);
        int rc = steno_convert_with(&opt, items.p, items.n, put_bytes, &text, NULL, err);
        if (rc == 0)
                rc = json_parse(&j, text.p, text.n, NULL, err);
        json_ref instructions = json_get(body, 0, "instructions");
        jsonw_key(w, "messages");
        jsonw_array(w);
        if (json_type(body, instructions) == JSON_STRING) {
                jsonw_object(w);
                jsonw_field_cstr(w, "role", "system");
                jsonw_field_copy(w, "content", body, instructions);
                jsonw_object_end(w);
        }
        for (json_ref m = rc ? JSON_NONE : json_child(&j, 0); m != JSON_NONE;
             m = json_next(&j, 0, m))
                jsonw_raw(w, json_raw(&j, m));
        jsonw_array_end(w);
        json_release(&j);
        buf_release(&text);
        return rc;
}

/* The members of a function, which are one level deeper in a chat completion. */
static void put_function(struct jsonw *w, const struct json *j, json_ref obj)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "function");
        jsonw_key(w, "function");
        jsonw_object(w);
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k))
                if (!json_is(j, k, "type") && json_type(j, json_value(j, k)) != JSON_NULL)
                        jsonw_copy_member(w, j, k);
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static void put_tools(struct jsonw *w, const struct json *body)
{
        json_ref tools = json_get(body, 0, "tools"), choice = json_get(body, 0, "tool_choice");
        if (json_count(body, tools) == 0)
                return;
        jsonw_key(w, "tools");
        jsonw_array(w);
        for (json_ref t = json_child(body, tools); t != JSON_NONE; t = json_next(body, tools, t))
                put_function(w, body, t);
        jsonw_array_end(w);
        if (json_type(body, choice) == JSON_OBJECT) {
                jsonw_key(w, "tool_choice");
                put_function(w, body, choice);
        } else if (json_type(body, choice) == JSON_STRING) {
                jsonw_field_copy(w, "tool_choice", body, choice);
        }
        json_ref parallel = json_get(body, 0, "parallel_tool_calls");
        if (parallel != JSON_NONE && json_type(body, parallel) != JSON_NULL)
                jsonw_field_copy(w, "parallel_tool_calls", body, parallel);
}

/* text.format: the members of a schema are one level deeper, too. */
static void put_format(struct jsonw *w, const struct json *body)
{
        json_ref format = json_get(body, json_get(body, 0, "text"), "format");
        if (json_type(body, format) != JSON_OBJECT)
                return;
        jsonw_key(w, "response_format");
        if (!json_is(body, json_get(body, format, "type"), "json_schema")) {
                jsonw_raw(w, json_raw(body, format));
                return;
        }
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "json_schema");
        jsonw_key(w, "json_schema");
        jsonw_object(w);
        for (json_ref k = json_child(body, format); k != JSON_NONE;
             k = json_next_key(body, format, k))
                if (!json_is(body, k, "type") && json_type(body, json_value(body, k)) != JSON_NULL)
                        jsonw_copy_member(w, body, k);
        jsonw_object_end(w);
        jsonw_object_end(w);
}

/* Members that have another name, or none, in a chat completion. Other members are passed on. */
static bool is_translated(const struct json *body, json_ref key)
{
        static const char *const names[] = {"input", "instructions", "tools", "tool_choice",
            "parallel_tool_calls", "text", "max_output_tokens", "reasoning", "conversation",
            "previous_response_id", "background", "store", "stream", "stream_options", "metadata",
            "include", "truncation", "max_tool_calls", "prompt", "context_management",
            "top_logprobs"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (json_is(body, key, names[i]))
                        return true;
        return json_type(body, json_value(body, key)) == JSON_NULL;
}

int chatwire_put_request(
    const struct json *body, struct str items, struct buf *out, struct steno_error *err)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(body, 0); k != JSON_NONE; k = json_next_key(body, 0, k))
                if (!is_translated(body, k))
                        jsonw_copy_member(&w, body, k);
        int rc = put_messages(&w, body, items, err);
        put_tools(&w, body);
        put_format(&w, body);
        json_ref most = json_get(body, 0, "max_output_tokens");
        json_ref effort = json_get(body, json_get(body, 0, "reasoning"), "effort");
        if (json_type(body, most) == JSON_NUMBER)
                jsonw_field_copy(&w, "max_completion_tokens", body, most);
        if (json_type(body, effort) == JSON_STRING)
                jsonw_field_copy(&w, "reasoning_effort", body, effort);
        jsonw_field_bool(&w, "stream", true);
        jsonw_field_raw(&w, "stream_options", STR("{\"include_usage\":true}"));
        jsonw_object_end(&w);
        return rc ? rc : buf_check(out, err);
}

/* ---- the answer ---- */

enum open_item {
        NOTHING,
        TEXT,
        THINKING,
};

struct chatwire {
        const struct json *body;
        sse_event_fn event;
        void *ctx;
        struct assemble reading;
        bool started;
        int64_t created;
        int64_t index;     /* of the item that is open, or of the next one */
        struct buf output; /* items that are done, with commas between */
        enum open_item open;
        char item[64];   /* the id of what is open */
        struct buf text; /* and its words */
        struct buf say;  /* the event at hand */
};

static const struct {
        const char *item; /* the prefix of its id, and its type */
        const char *type;
        const char *part;  /* the type of its only part */
        const char *event; /* of its words */
} kinds[] = {
    [TEXT] = {"msg_", "message", "output_text", "response.output_text"},
    [THINKING] = {"rs_", "reasoning", "reasoning_text", "response.reasoning_text"},
};

static int tell(struct chatwire *w)
{
        int rc = w->say.failed;
        if (rc == 0)
                rc = w->event(w->ctx, (struct str){0}, buf_str(&w->say));
        buf_clear(&w->say);
        return rc;
}

/* An event about an item; the caller adds its members and ends the object. */
static struct jsonw begin(struct chatwire *w, const char *type, const char *end)
{
        char name[80];
        struct jsonw out = jsonw_to(&w->say);
        snprintf(name, sizeof name, "%s%s", type, end);
        jsonw_object(&out);
        jsonw_field_cstr(&out, "type", name);
        jsonw_field_i64(&out, "output_index", w->index);
        return out;
}

static struct jsonw begin_part(struct chatwire *w, const char *type, const char *end)
{
        struct jsonw out = begin(w, type, end);
        jsonw_field_cstr(&out, "item_id", w->item);
        jsonw_field_i64(&out, "content_index", 0);
        return out;
}

static void put_part(struct chatwire *w, struct jsonw *out, struct str text)
{
        jsonw_object(out);
        jsonw_field_cstr(out, "type", kinds[w->open].part);
        jsonw_field_str(out, "text", text);
        if (w->open == TEXT) {
                jsonw_field_raw(out, "annotations", STR("[]"));
                jsonw_field_raw(out, "logprobs", STR("[]"));
        }
        jsonw_object_end(out);
}

static void put_item(struct chatwire *w, struct jsonw *out, bool done)
{
        jsonw_object(out);
        jsonw_field_cstr(out, "type", kinds[w->open].type);
        jsonw_field_cstr(out, "id", w->item);
        if (w->open == TEXT)
                jsonw_field_cstr(out, "role", "assistant");
        else
                jsonw_field_raw(out, "summary", STR("[]"));
        jsonw_field_cstr(out, "status", done ? "completed" : "in_progress");
        jsonw_key(out, "content");
        jsonw_array(out);
        if (done)
                put_part(w, out, buf_str(&w->text));
        jsonw_array_end(out);
        jsonw_object_end(out);
}

/* ---- the response ---- */

static void put_echo(struct jsonw *out, const struct json *body)
{
        static const struct {
                const char *name, *otherwise;
        } members[] = {{"instructions", "null"}, {"max_output_tokens", "null"},
            {"parallel_tool_calls", "true"}, {"reasoning", "null"}, {"temperature", "1"},
            {"text", "{\"format\":{\"type\":\"text\"}}"}, {"tool_choice", "\"auto\""},
            {"tools", "[]"}, {"top_p", "1"}, {"truncation", "\"disabled\""}, {"user", "null"}};
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
                json_ref v = json_get(body, 0, members[i].name);
                bool given = v != JSON_NONE && json_type(body, v) != JSON_NULL;
                jsonw_field_raw(
                    out, members[i].name, given ? json_raw(body, v) : str_of(members[i].otherwise));
        }
}

static uint64_t count_of(const struct json *j, const char *obj, const char *key)
{
        uint64_t n = 0;
        json_u64(j, json_get(j, obj ? json_get(j, 0, obj) : 0, key), &n);
        return n;
}

/* An object with one count, which has the same name in the member `from`. */
static void put_details(
    struct jsonw *out, const char *key, const struct json *j, const char *from, const char *count)
{
        jsonw_key(out, key);
        jsonw_object(out);
        jsonw_field_u64(out, count, count_of(j, from, count));
        jsonw_object_end(out);
}

static void put_usage(struct jsonw *out, struct str usage)
{
        struct json j;
        json_init(&j);
        if (usage.n == 0 || json_parse(&j, usage.p, usage.n, NULL, NULL) != 0) {
                jsonw_null(out);
                json_release(&j);
                return;
        }
        jsonw_object(out);
        jsonw_field_u64(out, "input_tokens", count_of(&j, NULL, "prompt_tokens"));
        put_details(out, "input_tokens_details", &j, "prompt_tokens_details", "cached_tokens");
        jsonw_field_u64(out, "output_tokens", count_of(&j, NULL, "completion_tokens"));
        put_details(
            out, "output_tokens_details", &j, "completion_tokens_details", "reasoning_tokens");
        jsonw_field_u64(out, "total_tokens", count_of(&j, NULL, "total_tokens"));
        jsonw_object_end(out);
        json_release(&j);
}

/* `why` is the reason of an incomplete one. */
static int tell_response(
    struct chatwire *w, const char *event, const char *status, const char *why, struct str usage)
{
        struct jsonw out = jsonw_to(&w->say);
        jsonw_object(&out);
        jsonw_field_cstr(&out, "type", event);
        jsonw_key(&out, "response");
        jsonw_object(&out);
        jsonw_field_cstr(&out, "object", "response");
        jsonw_field_i64(&out, "created_at", w->created);
        jsonw_field_cstr(&out, "status", status);
        jsonw_field_null(&out, "error");
        jsonw_key(&out, "incomplete_details");
        if (why) {
                jsonw_object(&out);
                jsonw_field_cstr(&out, "reason", why);
                jsonw_object_end(&out);
        } else {
                jsonw_null(&out);
        }
        jsonw_field_copy(&out, "model", w->body, json_get(w->body, 0, "model"));
        put_echo(&out, w->body);
        jsonw_key(&out, "usage");
        put_usage(&out, usage);
        jsonw_key(&out, "output");
        jsonw_array(&out);
        if (w->output.n)
                jsonw_raw(&out, buf_str(&w->output));
        jsonw_array_end(&out);
        jsonw_object_end(&out);
        jsonw_object_end(&out);
        return tell(w);
}

static int start(struct chatwire *w)
{
        if (w->started)
                return 0;
        w->started = true;
        int rc = tell_response(w, "response.created", "in_progress", NULL, (struct str){0});
        return rc ? rc
                  : tell_response(w, "response.in_progress", "in_progress", NULL, (struct str){0});
}

/* ---- items ---- */

static void keep_item(struct chatwire *w, struct str item)
{
        if (w->output.n)
                buf_putc(&w->output, ',');
        buf_put_str(&w->output, item);
}

static int open_item(struct chatwire *w, enum open_item kind)
{
        w->open = kind;
        buf_clear(&w->text);
        id_make(env_real(), kinds[kind].item, w->item);
        struct jsonw out = begin(w, "response.output_item", ".added");
        jsonw_key(&out, "item");
        put_item(w, &out, false);
        jsonw_object_end(&out);
        int rc = tell(w);
        if (rc)
                return rc;
        out = begin_part(w, "response.content_part", ".added");
        jsonw_key(&out, "part");
        put_part(w, &out, (struct str){0});
        jsonw_object_end(&out);
        return tell(w);
}

static int close_item(struct chatwire *w)
{
        if (w->open == NOTHING)
                return 0;
        struct jsonw out = begin_part(w, kinds[w->open].event, ".done");
        jsonw_field_str(&out, "text", buf_str(&w->text));
        if (w->open == TEXT)
                jsonw_field_raw(&out, "logprobs", STR("[]"));
        jsonw_object_end(&out);
        int rc = w->text.failed ? w->text.failed : tell(w);
        if (rc)
                return rc;
        out = begin_part(w, "response.content_part", ".done");
        jsonw_key(&out, "part");
        put_part(w, &out, buf_str(&w->text));
        jsonw_object_end(&out);
        rc = tell(w);
        if (rc)
                return rc;
        struct buf item;
        buf_init(&item, 0);
        struct jsonw one = jsonw_to(&item);
        put_item(w, &one, true);
        keep_item(w, buf_str(&item));
        out = begin(w, "response.output_item", ".done");
        jsonw_field_raw(&out, "item", buf_str(&item));
        jsonw_object_end(&out);
        rc = item.failed ? item.failed : tell(w);
        buf_release(&item);
        w->open = NOTHING;
        w->index++;
        return rc;
}

static int on_piece(void *ctx, enum reply_piece piece, struct str text)
{
        struct chatwire *w = ctx;
        enum open_item kind = piece == REPLY_TEXT ? TEXT : THINKING;
        int rc = start(w);
        if (rc == 0 && w->open != kind) {
                rc = close_item(w);
                if (rc == 0)
                        rc = open_item(w, kind);
        }
        if (rc)
                return rc;
        buf_put_str(&w->text, text);
        struct jsonw out = begin_part(w, kinds[kind].event, ".delta");
        jsonw_field_str(&out, "delta", text);
        if (kind == TEXT)
                jsonw_field_raw(&out, "logprobs", STR("[]"));
        jsonw_object_end(&out);
        return tell(w);
}

static void make_id(void *ctx, char out[64])
{
        (void)ctx;
        id_make(env_real(), "call_", out);
}

static void put_call(const struct chatwire *w, struct jsonw *out, const struct reply_call *c,
    struct str args, const char *status)
{
        jsonw_object(out);
        jsonw_field_cstr(out, "type", "function_call");
        jsonw_field_cstr(out, "id", w->item);
        jsonw_field_cstr(out, "call_id", c->id);
        jsonw_field_cstr(out, "name", c->name);
        jsonw_field_str(out, "arguments", args);
        jsonw_field_cstr(out, "status", status);
        jsonw_object_end(out);
}

static int tell_call(struct chatwire *w, const struct reply_call *c)
{
        struct buf item;
        struct str args = c->args.n ? buf_str(&c->args) : STR("{}");
        id_make(env_real(), "fc_", w->item);
        buf_init(&item, 0);
        struct jsonw one = jsonw_to(&item), out = begin(w, "response.output_item", ".added");
        put_call(w, &one, c, args, "completed");
        jsonw_key(&out, "item");
        put_call(w, &out, c, (struct str){0}, "in_progress");
        jsonw_object_end(&out);
        int rc = item.failed ? item.failed : tell(w);
        for (int done = 0; done < 2 && rc == 0; done++) {
                out = begin(w, "response.function_call_arguments", done ? ".done" : ".delta");
                jsonw_field_cstr(&out, "item_id", w->item);
                if (done)
                        jsonw_field_cstr(&out, "name", c->name);
                jsonw_field_str(&out, done ? "arguments" : "delta", args);
                jsonw_object_end(&out);
                rc = tell(w);
        }
        if (rc == 0) {
                out = begin(w, "response.output_item", ".done");
                jsonw_field_raw(&out, "item", buf_str(&item));
                jsonw_object_end(&out);
                keep_item(w, buf_str(&item));
                rc = tell(w);
        }
        buf_release(&item);
        w->index++;
        return rc;
}

/* ---- all of it ---- */

struct chatwire *chatwire_new(
    const struct json *body, sse_event_fn event, void *ctx, struct steno_error *err)
{
        struct chatwire *w = calloc(1, sizeof *w);
        if (!w) {
                error_nomem(err);
                return NULL;
        }
        *w = (struct chatwire){.body = body,
            .event = event,
            .ctx = ctx,
            .created = env_real()->now(env_real()) / 1000};
        buf_init(&w->output, MESSAGE_MAX);
        buf_init(&w->text, MESSAGE_MAX);
        buf_init(&w->say, 0);
        assemble_init(&w->reading, &(struct reply_hooks){make_id, on_piece, w});
        return w;
}

void chatwire_free(struct chatwire *w)
{
        if (!w)
                return;
        assemble_release(&w->reading);
        buf_release(&w->output);
        buf_release(&w->text);
        buf_release(&w->say);
        free(w);
}

int chatwire_chunk(struct chatwire *w, struct str data)
{
        return assemble_chunk(&w->reading, data);
}

int chatwire_whole(struct chatwire *w, struct str json)
{
        return assemble_body(&w->reading, json);
}

static int tell_end(struct chatwire *w, const struct reply *r)
{
        int rc = start(w);
        if (rc == 0)
                rc = close_item(w);
        /* Calls whose arguments were cut off must not be run, so the client does not get them. */
        for (size_t i = 0; i < r->count && rc == 0; i++)
                if (r->calls[i].state == CALL_OK || r->calls[i].state == CALL_INVALID)
                        rc = tell_call(w, &r->calls[i]);
        if (rc == 0)
                rc = w->output.failed;
        if (rc)
                return rc;
        const char *why = r->finish == FINISH_LENGTH   ? "max_output_tokens"
                          : r->finish == FINISH_FILTER ? "content_filter"
                                                       : NULL;
        return tell_response(w, why ? "response.incomplete" : "response.completed",
            why ? "incomplete" : "completed", why, buf_str(&r->usage));
}

int chatwire_end(struct chatwire *w, struct steno_error *err)
{
        struct reply r;
        reply_init(&r);
        int rc = assemble_finish(&w->reading, &r, err);
        if (rc == 0 && r.fault.code)
                rc = error_set(err, STENO_EIO, "%s", r.fault.message);
        if (rc == 0)
                rc = tell_end(w, &r);
        reply_release(&r);
        return rc;
}
