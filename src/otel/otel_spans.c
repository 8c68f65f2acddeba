/*
 * otel_spans.c - converts the journal of a run to spans (otel.h).
 *
 * All ids are derived from the run's id, so a run that is sent twice is the same trace. OTLP's JSON
 * requires 64-bit numbers as strings and enums as numbers.
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
#include "model/event.h"

#define KIND_INTERNAL 1
#define KIND_CLIENT 3
#define STATUS_ERROR 2

/* A request to the model. */
struct asked {
        char *message;
        uint64_t after; /* the log's last seq when the request was made */
        int64_t start, end;
        struct buf text;
        struct buf thinking;
        uint64_t input, output, cache_read, cache_creation;
        bool counted;
        char *error; /* its error code, or NULL */
        size_t calls;
};

/* A call of a tool. */
struct called {
        char *id;
        char *name;
        char *arguments;
        char *content; /* the output, JSON */
        size_t asked;  /* index of the request that made the call */
        int64_t start, end;
        bool failed;
};

struct trace {
        const struct otel_about *about;
        const char *project;
        const char *run;
        char *conversation;
        char *model;
        int64_t start, end;
        bool finished;
        char *reason;
        char *error;
        char *words;
        struct asked *asked;
        size_t asked_count;
        struct called *calls;
        size_t call_count;
        bool failed; /* out of memory */
};

static void trace_release(struct trace *t)
{
        for (size_t i = 0; i < t->asked_count; i++) {
                free(t->asked[i].message);
                free(t->asked[i].error);
                buf_release(&t->asked[i].text);
                buf_release(&t->asked[i].thinking);
        }
        for (size_t i = 0; i < t->call_count; i++) {
                free(t->calls[i].id);
                free(t->calls[i].name);
                free(t->calls[i].arguments);
                free(t->calls[i].content);
        }
        free(t->asked);
        free(t->calls);
        free(t->conversation);
        free(t->model);
        free(t->reason);
        free(t->error);
        free(t->words);
}

/* ---- reading the journal ---- */

static struct asked *add_asked(struct trace *t)
{
        struct asked *list = realloc(t->asked, (t->asked_count + 1) * sizeof *list);
        if (!list) {
                t->failed = true;
                return NULL;
        }
        t->asked = list;
        struct asked *a = &list[t->asked_count++];
        *a = (struct asked){0};
        buf_init(&a->text, 0);
        buf_init(&a->thinking, 0);
        return a;
}

static struct called *add_call(struct trace *t)
{
        struct called *list = realloc(t->calls, (t->call_count + 1) * sizeof *list);
        if (!list) {
                t->failed = true;
                return NULL;
        }
        t->calls = list;
        struct called *c = &list[t->call_count++];
        *c = (struct called){0};
        return c;
}

static struct asked *newest(struct trace *t)
{
        return t->asked_count ? &t->asked[t->asked_count - 1] : NULL;
}

static void end_asked(struct trace *t, int64_t at)
{
        struct asked *a = newest(t);
        if (a && !a->end)
                a->end = at;
}

static void take_request(struct trace *t, const struct json *j, int64_t at)
{
        end_asked(t, at);
        struct asked *a = add_asked(t);
        if (!a)
                return;
        a->message = json_dup_string(j, json_get(j, 0, "messageId"));
        json_u64(j, json_get(j, 0, "after"), &a->after);
        a->start = at;
}

/* Usage has two notations. OpenAI's input tokens include cached tokens, Anthropic's do not. The
 * convention includes them. */
static void take_usage(struct trace *t, const struct json *j)
{
        struct asked *a = newest(t);
        json_ref u = json_get(j, 0, "usage");
        uint64_t prompt = 0, input = 0;
        if (!a)
                return;
        a->counted = true;
        if (json_u64(j, json_get(j, u, "prompt_tokens"), &prompt)) {
                a->input = prompt;
                json_u64(j, json_get(j, u, "completion_tokens"), &a->output);
                json_u64(j, json_get(j, json_get(j, u, "prompt_tokens_details"), "cached_tokens"),
                    &a->cache_read);
                return;
        }
        json_u64(j, json_get(j, u, "input_tokens"), &input);
        json_u64(j, json_get(j, u, "output_tokens"), &a->output);
        json_u64(j, json_get(j, u, "cache_read_input_tokens"), &a->cache_read);
        json_u64(j, json_get(j, u, "cache_creation_input_tokens"), &a->cache_creation);
        a->input = input + a->cache_read + a->cache_creation;
        json_u64(j, json_get(j, json_get(j, u, "input_tokens_details"), "cached_tokens"),
            &a->cache_read);
}

static void take_call(struct trace *t, const struct json *j, int64_t at)
{
        struct asked *a = newest(t);
        end_asked(t, at);
        struct called *c = add_call(t);
        if (!c)
                return;
        c->id = json_dup_string(j, json_get(j, 0, "toolCallId"));
        c->name = json_dup_string(j, json_get(j, 0, "toolName"));
        c->arguments = json_dup_string(j, json_get(j, 0, "arguments"));
        c->start = at;
        c->asked = t->asked_count ? t->asked_count - 1 : 0;
        if (a)
                a->calls++;
}

static void take_result(struct trace *t, const struct json *j, int64_t at, bool failed)
{
        json_ref content = json_get(j, 0, "content");
        for (size_t i = t->call_count; i-- > 0;) { /* ids are reused: take the newest */
                struct called *c = &t->calls[i];
                if (c->end || !c->id || !json_is(j, json_get(j, 0, "toolCallId"), c->id))
                        continue;
                struct str raw = json_raw(j, content);
                c->end = at;
                c->failed = failed;
                c->content = content == JSON_NONE ? NULL : strndup(raw.p, raw.n);
                return;
        }
}

static void take_error(struct trace *t, const struct json *j, int64_t at)
{
        struct asked *a = newest(t);
        char *code = json_dup_string(j, json_get(j, 0, "code"));
        free(t->error);
        free(t->words);
        t->error = code;
        t->words = json_dup_string(j, json_get(j, 0, "message"));
        /* An error during a request to the model also belongs to the request. */
        if (a && !a->end && code)
                a->error = strdup(code);
        end_asked(t, at);
}

static void take_event(struct trace *t, enum steno_event kind, const struct json *j, int64_t at)
{
        struct asked *a = newest(t);
        switch (kind) {
        case STENO_EVENT_RUN_STARTED:
                t->start = at;
                t->conversation = json_dup_string(j, json_get(j, 0, "conversation"));
                t->model = json_dup_string(j, json_get(j, 0, "model"));
                break;
        case STENO_EVENT_REQUEST:
                take_request(t, j, at);
                break;
        case STENO_EVENT_REPLY_USAGE:
                take_usage(t, j);
                break;
        case STENO_EVENT_MESSAGE:
        case STENO_EVENT_THINKING:
                if (a)
                        json_string(j, json_get(j, 0, "text"),
                            kind == STENO_EVENT_MESSAGE ? &a->text : &a->thinking, NULL);
                break;
        case STENO_EVENT_TOOL_CALL_START:
                take_call(t, j, at);
                break;
        case STENO_EVENT_TOOL_CALL_COMPLETE:
                take_result(t, j, at, false);
                break;
        case STENO_EVENT_TOOL_CALL_ERROR:
                take_result(t, j, at, true);
                break;
        case STENO_EVENT_FINAL_MESSAGE:
                if (a && a->text.n == 0)
                        json_string(j, json_get(j, 0, "text"), &a->text, NULL);
                end_asked(t, at);
                break;
        case STENO_EVENT_RUN_ERROR:
                take_error(t, j, at);
                break;
        case STENO_EVENT_RUN_FINISHED:
                end_asked(t, at);
                t->finished = true;
                t->end = at;
                t->reason = json_dup_string(j, json_get(j, 0, "reason"));
                break;
        default:
                break;
        }
}

static int on_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct trace *t = ctx;
        struct json j;
        int64_t ms = 0;
        (void)seq;
        json_init(&j);
        if (time_parse(at, strlen(at), &ms) && json_parse(&j, data, n, NULL, NULL) == 0)
                take_event(t, event_find(type), &j, ms);
        json_release(&j);
        return t->failed ? STENO_ENOMEM : 0;
}

/* ---- attributes ---- */

static void put_key(struct jsonw *w, const char *key)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "key", key);
        jsonw_key(w, "value");
        jsonw_object(w);
}

static void put_key_end(struct jsonw *w)
{
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static void put_text(struct jsonw *w, const char *key, struct str value)
{
        if (!value.p)
                return;
        put_key(w, key);
        jsonw_field_str(w, "stringValue", value);
        put_key_end(w);
}

static void put_number(struct jsonw *w, const char *key, uint64_t value)
{
        char text[24];
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        put_key(w, key);
        jsonw_field_cstr(w, "intValue", text);
        put_key_end(w);
}

/* Writes a list with one string. */
static void put_list(struct jsonw *w, const char *key, const char *value)
{
        put_key(w, key);
        jsonw_key(w, "arrayValue");
        jsonw_object(w);
        jsonw_key(w, "values");
        jsonw_array(w);
        jsonw_object(w);
        jsonw_field_cstr(w, "stringValue", value);
        jsonw_object_end(w);
        jsonw_array_end(w);
        jsonw_object_end(w);
        put_key_end(w);
}

static void put_usage(
    struct jsonw *w, uint64_t input, uint64_t output, uint64_t read, uint64_t made)
{
        put_number(w, "gen_ai.usage.input_tokens", input);
        put_number(w, "gen_ai.usage.output_tokens", output);
        if (read)
                put_number(w, "gen_ai.usage.cache_read.input_tokens", read);
        if (made)
                put_number(w, "gen_ai.usage.cache_creation.input_tokens", made);
}

/* ---- content ---- */

/* Writes a value that may be JSON in a string: the parsed value if it is JSON, else the text. */
static void put_loose(struct jsonw *w, const char *key, const char *text)
{
        if (text && json_valid(text, strlen(text), NULL))
                jsonw_field_raw(w, key, str_of(text));
        else
                jsonw_field_cstr(w, key, text);
}

static void put_part(struct jsonw *w, const char *type, struct str content)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "type", type);
        jsonw_field_str(w, "content", content);
        jsonw_object_end(w);
}

static void put_call_part(struct jsonw *w, const char *id, const char *name, const char *arguments)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "type", "tool_call");
        jsonw_field_cstr(w, "id", id);
        jsonw_field_cstr(w, "name", name ? name : "");
        put_loose(w, "arguments", arguments);
        jsonw_object_end(w);
}

static const char *finish_reason(const struct trace *t, size_t i)
{
        bool last = i + 1 == t->asked_count;
        const struct asked *a = &t->asked[i];
        if (a->error)
                return "error";
        if (a->calls || !last)
                return "tool_call";
        return t->reason && strcmp(t->reason, "length") == 0           ? "length"
               : t->reason && strcmp(t->reason, "content_filter") == 0 ? "content_filter"
                                                                       : "stop";
}

static void put_output(struct buf *out, const struct trace *t, size_t i)
{
        const struct asked *a = &t->asked[i];
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_key(&w, "parts");
        jsonw_array(&w);
        if (a->thinking.n)
                put_part(&w, "reasoning", buf_str(&a->thinking));
        if (a->text.n)
                put_part(&w, "text", buf_str(&a->text));
        for (size_t k = 0; k < t->call_count; k++)
                if (t->calls[k].asked == i)
                        put_call_part(&w, t->calls[k].id, t->calls[k].name, t->calls[k].arguments);
        jsonw_array_end(&w);
        jsonw_field_cstr(&w, "finish_reason", finish_reason(t, i));
        jsonw_object_end(&w);
        jsonw_array_end(&w);
}

static void put_content(struct jsonw *w, const struct json *j, json_ref content)
{
        struct buf text;
        buf_init(&text, 0);
        if (json_type(j, content) == JSON_STRING) {
                json_string(j, content, &text, NULL);
                if (text.n)
                        put_part(w, "text", buf_str(&text));
        }
        for (json_ref p = json_type(j, content) == JSON_ARRAY ? json_child(j, content) : JSON_NONE;
             p != JSON_NONE; p = json_next(j, content, p)) {
                buf_clear(&text);
                if (json_string(j, json_get(j, p, "text"), &text, NULL))
                        put_part(w, "text", buf_str(&text));
                else
                        jsonw_raw(w, json_raw(j, p)); /* a part of another type, unchanged */
        }
        buf_release(&text);
}

/* Writes a message of the format openai as a message with parts. */
static void put_message(struct jsonw *w, const struct json *j, json_ref m)
{
        json_ref calls = json_get(j, m, "tool_calls"), content = json_get(j, m, "content");
        jsonw_object(w);
        jsonw_field_copy(w, "role", j, json_get(j, m, "role"));
        jsonw_key(w, "parts");
        jsonw_array(w);
        if (json_is(j, json_get(j, m, "role"), "tool")) {
                jsonw_object(w);
                jsonw_field_cstr(w, "type", "tool_call_response");
                jsonw_field_copy(w, "id", j, json_get(j, m, "tool_call_id"));
                jsonw_field_raw(
                    w, "response", content == JSON_NONE ? STR("null") : json_raw(j, content));
                jsonw_object_end(w);
        } else {
                put_content(w, j, content);
        }
        for (json_ref c = json_child(j, calls); c != JSON_NONE; c = json_next(j, calls, c)) {
                json_ref f = json_get(j, c, "function");
                char *id = json_dup_string(j, json_get(j, c, "id"));
                char *name = json_dup_string(j, json_get(j, f, "name"));
                char *arguments = json_dup_string(j, json_get(j, f, "arguments"));
                put_call_part(w, id, name, arguments);
                free(id);
                free(name);
                free(arguments);
        }
        jsonw_array_end(w);
        jsonw_object_end(w);
}

static int to_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

/* Writes the input of a request to the model: the history up to the request. */
static void put_input(struct buf *out, struct steno_conv *conv, uint64_t after)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "openai", .before_seq = after + 1, .no_ids = true};
        struct json j;
        struct buf view;
        json_init(&j);
        buf_init(&view, 0);
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        if (steno_view(conv, &opt, to_buf, &view, NULL, NULL) == 0 &&
            json_parse(&j, view.p, view.n, NULL, NULL) == 0)
                for (json_ref m = json_child(&j, 0); m != JSON_NONE; m = json_next(&j, 0, m))
                        put_message(&w, &j, m);
        jsonw_array_end(&w);
        json_release(&j);
        buf_release(&view);
}

static void put_messages(struct jsonw *w, struct steno_conv *conv, const struct trace *t, size_t i)
{
        struct buf text;
        buf_init(&text, 0);
        if (conv) {
                put_input(&text, conv, t->asked[i].after);
                put_text(w, "gen_ai.input.messages", buf_str(&text));
                buf_clear(&text);
        }
        put_output(&text, t, i);
        put_text(w, "gen_ai.output.messages", buf_str(&text));
        buf_release(&text);
}

/* ---- spans ---- */

/* Writes hexadecimal digits that are derived from the run and from `what` and `i`. */
static void make_id(const struct trace *t, const char *what, size_t i, int digits, char out[33])
{
        char hex[SHA256_HEX];
        struct buf b;
        buf_init(&b, 0);
        buf_printf(&b, "%s\n%s\n%s\n%zu", t->project, t->run, what, i);
        out[0] = '\0';
        if (!b.failed && hash_sha256_hex(b.p, b.n, hex) == 0)
                snprintf(out, 33, "%.*s", digits, hex);
        buf_release(&b);
}

struct span {
        const char *name;
        const char *id;
        const char *parent; /* NULL: none */
        int kind;
        int64_t start, end;
};

static void put_time(struct jsonw *w, const char *key, int64_t ms)
{
        char text[32];
        snprintf(text, sizeof text, "%lld000000", (long long)ms);
        jsonw_field_cstr(w, key, text);
}

static void open_span(struct jsonw *w, const struct trace *t, const struct span *s)
{
        char trace[33];
        make_id(t, "trace", 0, 32, trace);
        jsonw_object(w);
        jsonw_field_cstr(w, "traceId", trace);
        jsonw_field_cstr(w, "spanId", s->id);
        if (s->parent)
                jsonw_field_cstr(w, "parentSpanId", s->parent);
        jsonw_field_cstr(w, "name", s->name);
        jsonw_field_u64(w, "kind", (uint64_t)s->kind);
        put_time(w, "startTimeUnixNano", s->start);
        put_time(w, "endTimeUnixNano", s->end > s->start ? s->end : s->start);
        jsonw_key(w, "attributes");
        jsonw_array(w);
}

static void close_span(struct jsonw *w, const char *error, const char *words)
{
        if (error)
                put_text(w, "error.type", str_of(error));
        jsonw_array_end(w);
        jsonw_key(w, "status");
        jsonw_object(w);
        if (error) {
                jsonw_field_u64(w, "code", STATUS_ERROR);
                if (words)
                        jsonw_field_cstr(w, "message", words);
        }
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static void put_common(struct jsonw *w, const struct trace *t, const char *operation)
{
        put_text(w, "gen_ai.operation.name", str_of(operation));
        put_text(w, "gen_ai.provider.name", str_of(t->about->provider));
        put_text(w, "gen_ai.conversation.id", str_of(t->conversation));
}

static void put_agent(struct jsonw *w, const struct trace *t, const char *id)
{
        uint64_t sum[4] = {0};
        bool counted = false;
        struct span s = {.name = "invoke_agent",
            .id = id,
            .kind = KIND_INTERNAL,
            .start = t->start,
            .end = t->end};
        open_span(w, t, &s);
        put_common(w, t, "invoke_agent");
        put_text(w, "gen_ai.request.model", str_of(t->model));
        put_text(w, "steno.run.id", str_of(t->run));
        put_text(w, "steno.run.reason", str_of(t->reason));
        for (size_t i = 0; i < t->asked_count; i++) {
                const struct asked *a = &t->asked[i];
                sum[0] += a->input;
                sum[1] += a->output;
                sum[2] += a->cache_read;
                sum[3] += a->cache_creation;
                counted = counted || a->counted;
        }
        if (counted)
                put_usage(w, sum[0], sum[1], sum[2], sum[3]);
        close_span(w, t->error, t->words);
}

static void put_chat(
    struct jsonw *w, const struct trace *t, size_t i, const char *parent, struct steno_conv *conv)
{
        const struct asked *a = &t->asked[i];
        char id[33], name[160];
        make_id(t, "chat", i, 16, id);
        snprintf(name, sizeof name, "chat%s%.140s", t->model ? " " : "", t->model ? t->model : "");
        struct span s = {.name = name,
            .id = id,
            .parent = parent,
            .kind = KIND_CLIENT,
            .start = a->start,
            .end = a->end};
        open_span(w, t, &s);
        put_common(w, t, "chat");
        put_text(w, "gen_ai.request.model", str_of(t->model));
        put_text(w, "gen_ai.response.id", str_of(a->message));
        put_list(w, "gen_ai.response.finish_reasons", finish_reason(t, i));
        if (a->counted)
                put_usage(w, a->input, a->output, a->cache_read, a->cache_creation);
        if (t->about->content)
                put_messages(w, conv, t, i);
        close_span(w, a->error, a->error ? t->words : NULL);
}

static void put_tool(struct jsonw *w, const struct trace *t, size_t i, const char *parent)
{
        const struct called *c = &t->calls[i];
        char id[33], name[160];
        make_id(t, "tool", i, 16, id);
        snprintf(name, sizeof name, "execute_tool %.140s", c->name ? c->name : "");
        struct span s = {.name = name,
            .id = id,
            .parent = parent,
            .kind = KIND_INTERNAL,
            .start = c->start,
            .end = c->end ? c->end : t->end};
        open_span(w, t, &s);
        put_common(w, t, "execute_tool");
        put_text(w, "gen_ai.tool.name", str_of(c->name));
        put_text(w, "gen_ai.tool.call.id", str_of(c->id));
        put_text(w, "gen_ai.tool.type", STR("function"));
        if (t->about->content) {
                put_text(w, "gen_ai.tool.call.arguments", str_of(c->arguments));
                put_text(w, "gen_ai.tool.call.result", str_of(c->content));
        }
        bool unanswered = !c->end;
        close_span(w, c->failed ? "tool_error" : unanswered ? "_OTHER" : NULL, NULL);
}

static void put_trace(struct jsonw *w, const struct trace *t, struct steno_conv *conv)
{
        char root[33];
        make_id(t, "run", 0, 16, root);
        jsonw_object(w);
        jsonw_key(w, "resourceSpans");
        jsonw_array(w);
        jsonw_object(w);
        jsonw_key(w, "resource");
        jsonw_object(w);
        jsonw_key(w, "attributes");
        jsonw_array(w);
        put_text(w, "service.name", STR("steno"));
        put_text(w, "service.version", str_of(steno_version()));
        put_text(w, "steno.project", str_of(t->project));
        jsonw_array_end(w);
        jsonw_object_end(w);
        jsonw_key(w, "scopeSpans");
        jsonw_array(w);
        jsonw_object(w);
        jsonw_field_raw(w, "scope", STR("{\"name\":\"steno\"}"));
        jsonw_key(w, "spans");
        jsonw_array(w);
        put_agent(w, t, root);
        for (size_t i = 0; i < t->asked_count; i++)
                put_chat(w, t, i, root, conv);
        for (size_t i = 0; i < t->call_count; i++)
                put_tool(w, t, i, root);
        jsonw_array_end(w);
        jsonw_object_end(w);
        jsonw_array_end(w);
        jsonw_object_end(w);
        jsonw_array_end(w);
        jsonw_object_end(w);
}

int otel_spans_put(struct steno_store *store, const char *project, const char *run,
    const struct otel_about *about, struct buf *out, struct steno_error *err)
{
        struct trace t = {.about = about, .project = project, .run = run};
        struct steno_conv *conv = NULL;
        int rc = steno_run_read(store, project, run, 0, on_event, &t, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        if (rc == 0 && !t.finished)
                rc = error_set(err, STENO_ECONFLICT, "the run %.100s has not finished", run);
        if (rc == 0) {
                if (about->content && t.conversation)
                        steno_conv_open(store, project, t.conversation, &conv, NULL);
                struct jsonw w = jsonw_to(out);
                put_trace(&w, &t, conv);
                rc = buf_check(out, err);
        }
        steno_conv_close(conv);
        trace_release(&t);
        return rc;
}
