/*
 * wire.c - the four APIs (wire.h). Chat completions and Messages are assembled by the providers'
 * own readers; Responses and Gemini send whole items and parts, which are collected.
 */
#include "gateway/wire.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "net/sse.h"
#include "provider/provider_http.h"

void wire_answer_init(struct wire_answer *a)
{
        *a = (struct wire_answer){0};
        buf_init(&a->messages, 0);
        buf_init(&a->text, MESSAGE_MAX);
        buf_init(&a->usage, 64 * KIB);
        buf_init(&a->model, 4 * KIB);
        buf_init(&a->id, 4 * KIB);
        buf_init(&a->problem, 64 * KIB);
}

void wire_answer_release(struct wire_answer *a)
{
        buf_release(&a->messages);
        buf_release(&a->text);
        buf_release(&a->usage);
        buf_release(&a->model);
        buf_release(&a->id);
        buf_release(&a->problem);
}

/* ---- what all share ---- */

/* A string member, where it has one and none was told before. */
static void take_string(const struct json *j, json_ref obj, const char *key, struct buf *out)
{
        if (out->n == 0)
                json_string(j, json_get(j, obj, key), out, NULL);
}

static void take_word(const struct json *j, json_ref r, char *out, size_t size)
{
        struct str s = json_inner(j, r);
        if (s.n)
                snprintf(out, size, "%.*s", (int)(s.n < size ? s.n : size - 1), s.p);
}

static void take_problem(const struct json *j, json_ref error, struct wire_answer *out)
{
        if (json_type(j, error) == JSON_NOTHING || json_type(j, error) == JSON_NULL)
                return;
        json_ref message = json_get(j, error, "message");
        buf_clear(&out->problem);
        if (!json_string(j, message, &out->problem, NULL) &&
            !json_string(j, error, &out->problem, NULL))
                buf_put_str(&out->problem, json_raw(j, error));
}

static void take_usage(const struct json *j, json_ref usage, struct wire_answer *out)
{
        if (json_type(j, usage) != JSON_OBJECT)
                return;
        buf_clear(&out->usage);
        buf_put_str(&out->usage, json_raw(j, usage));
}

static void make_id(void *ctx, char out[64])
{
        (void)ctx;
        id_make(env_real(), "call_", out);
}

/* What a provider's reader made of an answer. */
static int take_reply(struct reply *r, struct wire_answer *out)
{
        out->complete = !r->fault.code || strcmp(r->fault.code, "LLM_EMPTY") == 0;
        if (r->fault.code && !out->complete)
                buf_puts(&out->problem, r->fault.message);
        if (r->text.n || r->thinking.n || r->count || out->complete) {
                buf_putc(&out->messages, '[');
                buf_put_str(&out->messages, buf_str(&r->message));
                buf_putc(&out->messages, ']');
                out->count = 1;
        }
        buf_put_str(&out->text, buf_str(&r->text));
        buf_put_str(&out->usage, buf_str(&r->usage));
        return out->messages.failed;
}

/* Each event of a stream, parsed, or the whole body, given to `each`. */
struct walk {
        struct json j;
        int (*each)(struct walk *w, const struct json *j);
        struct wire_answer *out;
        void *own;
};

static int walk_event(void *ctx, struct str name, struct str data)
{
        struct walk *w = ctx;
        (void)name;
        if (json_parse(&w->j, data.p, data.n, NULL, NULL) != 0)
                return 0; /* [DONE], and what nobody understands */
        return w->each(w, &w->j);
}

static int walk_answer(struct walk *w, struct str body, bool stream)
{
        int rc = 0;
        json_init(&w->j);
        if (stream) {
                struct sse s;
                sse_init(&s, MESSAGE_MAX, walk_event, w);
                rc = sse_feed(&s, body.p, body.n);
                if (rc == 0)
                        rc = sse_finish(&s);
                sse_release(&s);
        } else if (json_parse(&w->j, body.p, body.n, NULL, NULL) == 0) {
                rc = w->each(w, &w->j);
        }
        json_release(&w->j);
        return rc;
}

/* An answer of an API that a provider speaks is read by that provider's own reader. */
static int feed_event(void *ctx, struct str name, struct str data)
{
        struct provider_reader *reader = ctx;
        return reader->ops->event(reader, name, data);
}

static int feed(struct provider_reader *reader, struct str body, bool stream)
{
        struct sse s;
        if (!stream)
                return reader->ops->body(reader, body);
        sse_init(&s, MESSAGE_MAX, feed_event, reader);
        int rc = sse_feed(&s, body.p, body.n);
        if (rc == 0)
                rc = sse_finish(&s);
        sse_release(&s);
        return rc;
}

static int read_as(
    const struct provider *provider, struct str body, bool stream, struct wire_answer *out)
{
        struct reply_hooks hooks = {make_id, NULL, NULL};
        struct reply r;
        struct provider_reader *reader = provider->wire->reader_new(&hooks);
        if (!reader)
                return STENO_ENOMEM;
        reply_init(&r);
        int rc = feed(reader, body, stream);
        if (rc == 0)
                rc = reader->ops->finish(reader, &r, NULL);
        if (rc == 0)
                rc = take_reply(&r, out);
        reply_release(&r);
        reader->ops->free(reader);
        return rc;
}

/* ---- chat completions ---- */

static int note_chat(struct walk *w, const struct json *j)
{
        struct wire_answer *out = w->out;
        json_ref choice = json_at(j, json_get(j, 0, "choices"), 0);
        take_string(j, 0, "id", &out->id);
        take_string(j, 0, "model", &out->model);
        take_word(j, json_get(j, choice, "finish_reason"), out->finish, sizeof out->finish);
        return 0;
}

static int read_chat(struct str body, bool stream, struct wire_answer *out)
{
        struct walk w = {.each = note_chat, .out = out};
        int rc = walk_answer(&w, body, stream);
        return rc ? rc : read_as(&provider_openai, body, stream, out);
}

/* ---- Anthropic's Messages ---- */

static int note_blocks(struct walk *w, const struct json *j)
{
        struct wire_answer *out = w->out;
        bool start = json_is(j, json_get(j, 0, "type"), "message_start");
        json_ref message = start ? json_get(j, 0, "message") : 0;
        if (start || json_is(j, json_get(j, 0, "type"), "message")) {
                take_string(j, message, "id", &out->id);
                take_string(j, message, "model", &out->model);
                take_word(j, json_get(j, message, "stop_reason"), out->finish, sizeof out->finish);
        }
        take_word(j, json_get(j, json_get(j, 0, "delta"), "stop_reason"), out->finish,
            sizeof out->finish);
        return 0;
}

static int read_blocks(struct str body, bool stream, struct wire_answer *out)
{
        struct walk w = {.each = note_blocks, .out = out};
        int rc = walk_answer(&w, body, stream);
        return rc ? rc : read_as(&provider_anthropic, body, stream, out);
}

/* ---- Responses ---- */

struct item {
        int64_t index;
        size_t order;
        struct buf raw;
};

struct items {
        struct item *list;
        size_t count, cap;
};

static int add_item(struct items *all, int64_t index, struct str raw)
{
        if (all->count == all->cap) {
                size_t cap = all->cap ? 2 * all->cap : 8;
                struct item *list = realloc(all->list, cap * sizeof *list);
                if (!list)
                        return STENO_ENOMEM;
                all->list = list;
                all->cap = cap;
        }
        struct item *i = &all->list[all->count];
        *i = (struct item){.index = index, .order = all->count};
        all->count++;
        buf_init(&i->raw, MESSAGE_MAX);
        buf_put_str(&i->raw, raw);
        return i->raw.failed;
}

static int by_index(const void *a, const void *b)
{
        const struct item *x = a, *y = b;
        if (x->index != y->index)
                return x->index < y->index ? -1 : 1;
        return x->order < y->order ? -1 : x->order > y->order;
}

static void take_response(const struct json *j, json_ref response, struct wire_answer *out)
{
        take_string(j, response, "id", &out->id);
        take_string(j, response, "model", &out->model);
        take_usage(j, json_get(j, response, "usage"), out);
        json_ref status = json_get(j, response, "status");
        if (json_is(j, status, "completed") || json_is(j, status, "incomplete"))
                out->complete = true;
        take_word(j, status, out->finish, sizeof out->finish);
        json_ref details = json_get(j, response, "incomplete_details");
        take_word(j, json_get(j, details, "reason"), out->finish, sizeof out->finish);
        take_problem(j, json_get(j, response, "error"), out);
}

static int note_item(struct walk *w, const struct json *j)
{
        struct items *all = w->own;
        json_ref type = json_get(j, 0, "type");
        int rc = 0;
        if (json_is(j, json_get(j, 0, "object"), "response")) { /* a whole body */
                json_ref output = json_get(j, 0, "output");
                take_response(j, 0, w->out);
                for (json_ref i = json_child(j, output); i != JSON_NONE && rc == 0;
                     i = json_next(j, output, i))
                        rc = add_item(all, 0, json_raw(j, i));
        } else if (json_is(j, type, "response.output_item.done")) {
                int64_t index = INT64_MAX;
                json_i64(j, json_get(j, 0, "output_index"), &index);
                rc = add_item(all, index, json_raw(j, json_get(j, 0, "item")));
        } else if (json_is(j, type, "response.output_text.delta")) {
                json_string(j, json_get(j, 0, "delta"), &w->out->text, NULL);
        } else if (json_is(j, type, "error")) {
                json_string(j, json_get(j, 0, "message"), &w->out->problem, NULL);
                take_problem(j, json_get(j, 0, "error"), w->out);
        } else if (json_type(j, json_get(j, 0, "response")) == JSON_OBJECT) {
                take_response(j, json_get(j, 0, "response"), w->out);
        } else {
                take_problem(j, json_get(j, 0, "error"), w->out);
        }
        return rc;
}

static int read_responses(struct str body, bool stream, struct wire_answer *out)
{
        struct items all = {0};
        struct walk w = {.each = note_item, .out = out, .own = &all};
        int rc = walk_answer(&w, body, stream);
        if (all.count)
                qsort(all.list, all.count, sizeof *all.list, by_index);
        for (size_t i = 0; i < all.count; i++) {
                buf_putc(&out->messages, i ? ',' : '[');
                buf_put_str(&out->messages, buf_str(&all.list[i].raw));
                buf_release(&all.list[i].raw);
        }
        if (all.count)
                buf_putc(&out->messages, ']');
        out->count = all.count;
        free(all.list);
        return rc ? rc : out->messages.failed;
}

/* ---- Gemini ---- */

/* Two texts of one kind that follow each other are one: a stream cuts them anywhere. */
struct parts {
        struct buf list;
        struct buf text; /* the text that is being collected, raw inside of its quotes */
        bool thought;
        bool any;
};

static void flush_text(struct parts *p)
{
        if (!p->any)
                return;
        buf_puts(&p->list, p->list.n ? "," : "");
        buf_puts(&p->list, p->thought ? "{\"thought\":true,\"text\":\"" : "{\"text\":\"");
        buf_put_str(&p->list, buf_str(&p->text));
        buf_puts(&p->list, "\"}");
        buf_clear(&p->text);
        p->any = false;
}

static void add_part(struct parts *p, const struct json *j, json_ref part, struct wire_answer *out)
{
        json_ref text = json_get(j, part, "text");
        json_ref thought = json_get(j, part, "thought");
        uint32_t known = (text != JSON_NONE) + (thought != JSON_NONE);
        if (json_type(j, text) == JSON_STRING && json_count(j, part) == known) {
                if (json_inner(j, text).n == 0)
                        return; /* the last piece of a stream; no endpoint takes it back */
                bool is_thought = json_bool(j, thought, false);
                if (p->any && p->thought != is_thought)
                        flush_text(p);
                p->thought = is_thought;
                p->any = true;
                buf_put_str(&p->text, json_inner(j, text));
        } else {
                flush_text(p);
                buf_puts(&p->list, p->list.n ? "," : "");
                buf_put_str(&p->list, json_raw(j, part));
        }
        if (!json_bool(j, thought, false))
                json_string(j, text, &out->text, NULL);
}

static void take_candidate(const struct json *j, json_ref root, struct walk *w)
{
        struct wire_answer *out = w->out;
        json_ref candidate = json_at(j, json_get(j, root, "candidates"), 0);
        json_ref parts = json_get(j, json_get(j, candidate, "content"), "parts");
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                add_part(w->own, j, p, out);
        take_word(j, json_get(j, candidate, "finishReason"), out->finish, sizeof out->finish);
        take_usage(j, json_get(j, root, "usageMetadata"), out);
        take_string(j, root, "modelVersion", &out->model);
        take_string(j, root, "responseId", &out->id);
        take_problem(j, json_get(j, root, "error"), out);
}

static int note_candidates(struct walk *w, const struct json *j)
{
        if (json_type(j, 0) == JSON_OBJECT) {
                take_candidate(j, 0, w);
                return 0;
        }
        /* Without alt=sse a stream is one array. */
        for (json_ref e = json_child(j, 0); e != JSON_NONE; e = json_next(j, 0, e))
                take_candidate(j, e, w);
        return 0;
}

static int read_gemini(struct str body, bool stream, struct wire_answer *out)
{
        struct parts parts = {0};
        struct walk w = {.each = note_candidates, .out = out, .own = &parts};
        buf_init(&parts.list, 0);
        buf_init(&parts.text, MESSAGE_MAX);
        int rc = walk_answer(&w, body, stream);
        flush_text(&parts);
        out->complete = out->finish[0] != '\0';
        if (parts.list.n) {
                buf_puts(&out->messages, "[{\"role\":\"model\",\"parts\":[");
                buf_put_str(&out->messages, buf_str(&parts.list));
                buf_puts(&out->messages, "]}]");
                out->count = 1;
        }
        if (rc == 0)
                rc = parts.list.failed ? parts.list.failed : out->messages.failed;
        buf_release(&parts.list);
        buf_release(&parts.text);
        return rc;
}

/* ---- the rows ---- */

static const struct wire wires[] = {
    {"chat", "openai", "messages", NULL, read_chat},
    {"responses", "responses", "input", "instructions", read_responses},
    {"anthropic", "anthropic", "messages", "system", read_blocks},
    {"gemini", "gemini", "contents", "systemInstruction", read_gemini},
};

const struct wire *wire_named(const char *name)
{
        for (size_t i = 0; i < sizeof wires / sizeof *wires; i++)
                if (name && strcmp(wires[i].name, name) == 0)
                        return &wires[i];
        return NULL;
}

static bool ends_with(struct str s, const char *z)
{
        size_t n = strlen(z);
        return s.n >= n && memcmp(s.p + s.n - n, z, n) == 0;
}

const struct wire *wire_of(const char *upstream, const char *method, struct str path)
{
        if (strcmp(method, "POST") != 0)
                return NULL;
        if (strcmp(upstream, "gemini") == 0)
                return ends_with(path, ":generateContent") ||
                               ends_with(path, ":streamGenerateContent")
                           ? wire_named("gemini")
                           : NULL;
        if (strcmp(upstream, "anthropic") == 0)
                return str_is(path, "/v1/messages") || str_is(path, "/messages")
                           ? wire_named("anthropic")
                           : NULL;
        if (ends_with(path, "/chat/completions"))
                return wire_named("chat");
        return ends_with(path, "/responses") ? wire_named("responses") : NULL;
}

int wire_messages(const struct wire *w, const struct json *request, struct buf *out)
{
        json_ref list = json_get(request, 0, w->list);
        if (json_type(request, list) == JSON_ARRAY) {
                buf_put_str(out, json_raw(request, list));
        } else if (json_type(request, list) == JSON_STRING) {
                buf_puts(out, "[{\"role\":\"user\",\"content\":");
                buf_put_str(out, json_raw(request, list));
                buf_puts(out, "}]");
        } else {
                buf_puts(out, "[]");
        }
        return out->failed;
}

void wire_put_error(const struct wire *w, const char *code, const char *message, struct buf *out)
{
        bool items = strcmp(w->name, "responses") == 0, blocks = strcmp(w->name, "anthropic") == 0;
        bool gemini = strcmp(w->name, "gemini") == 0;
        buf_puts(out, items || blocks ? "event: error\ndata: " : "data: ");
        struct jsonw j = jsonw_to(out);
        jsonw_object(&j);
        if (items || blocks)
                jsonw_field_cstr(&j, "type", "error");
        if (!items) {
                jsonw_key(&j, "error");
                jsonw_object(&j);
        }
        if (blocks)
                jsonw_field_cstr(&j, "type", "api_error");
        else if (gemini)
                jsonw_field_i64(&j, "code", 500);
        else
                jsonw_field_cstr(&j, "code", code);
        jsonw_field_cstr(&j, "message", message);
        if (gemini)
                jsonw_field_cstr(&j, "status", "INTERNAL");
        else if (!blocks)
                jsonw_field_null(&j, "param");
        if (!items && !blocks && !gemini)
                jsonw_field_cstr(&j, "type", "server_error");
        if (!items)
                jsonw_object_end(&j);
        jsonw_object_end(&j);
        buf_puts(out, "\n\n");
}
