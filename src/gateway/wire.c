/*
 * wire.c - the four APIs (wire.h). Chat completions and Messages are assembled by the providers'
 * own readers; Responses and Gemini send whole items and parts, which are collected.
 */
#include "gateway/wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "gateway/doubles.h"
#include "net/sse.h"
#include "provider/blockstream.h"
#include "provider/provider_http.h"

#define ODD_MAX (4 * KIB)
#define CHOICES_MAX 128         /* as many as OpenAI's endpoint gives */
#define CHOICES_BYTES (1 * GIB) /* that are read for them, since a stream is read for each */

void wire_answer_init(struct wire_answer *a)
{
        *a = (struct wire_answer){0};
        buf_init(&a->messages, 0);
        buf_init(&a->others, 0);
        buf_init(&a->odd, ODD_MAX);
        buf_init(&a->text, MESSAGE_MAX);
        buf_init(&a->usage, 64 * KIB);
        buf_init(&a->model, 4 * KIB);
        buf_init(&a->id, 4 * KIB);
        buf_init(&a->problem, 64 * KIB);
}

void wire_answer_release(struct wire_answer *a)
{
        buf_release(&a->messages);
        buf_release(&a->others);
        buf_release(&a->odd);
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

/* ---- what is odd about an answer ---- */

__attribute__((format(printf, 2, 3))) static void note_odd(
    struct wire_answer *out, const char *fmt, ...)
{
        char words[400];
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(words, sizeof words, fmt, ap);
        va_end(ap);
        size_t size = n < 0 ? 0 : (size_t)n < sizeof words ? (size_t)n : sizeof words - 1;
        size = text_utf8_prefix(words, size);
        if (out->odd.n + size + 2 > ODD_MAX || (out->odd.n && strstr(buf_cstr(&out->odd), words)))
                return; /* told already, or enough is told */
        if (out->odd.n)
                buf_puts(&out->odd, "; ");
        buf_put_str(&out->odd, str_span(words, size));
        buf_cstr(&out->odd);
}

static void check_role(
    const struct json *j, json_ref role, const char *wanted, struct wire_answer *out)
{
        struct str said = json_raw(j, role);
        if (said.n && json_type(j, role) != JSON_NULL && !json_is(j, role, wanted) &&
            !str_is(said, "\"\""))
                note_odd(out, "the endpoint gave the role %.*s", (int)(said.n < 100 ? said.n : 100),
                    said.p);
}

/* Each event of a stream, parsed, or the whole body, given to `each`. */
struct walk {
        struct json j;
        int (*each)(struct walk *w, const struct json *j);
        struct wire_answer *out;
        void *own;
        bool stream;
        const char *last; /* the data, or the type, of a stream's last event; NULL: none is known */
        bool any;         /* a part of a reply was seen */
        size_t events, broken, late;
};

static int look_at(struct walk *w, struct str text, struct steno_error *why)
{
        int rc = json_parse(&w->j, text.p, text.n, NULL, why);
        if (rc)
                return rc;
        struct str twice;
        rc = doubles_find(&w->j, &twice);
        if (rc == 0 && twice.p)
                note_odd(w->out, "the member \"%.*s\" stands twice in one object",
                    (int)(twice.n < 100 ? twice.n : 100), twice.p);
        return rc;
}

static int walk_event(void *ctx, struct str name, struct str data)
{
        struct walk *w = ctx;
        struct steno_error why = {0};
        (void)name;
        data = str_trim(data);
        if (data.n == 0)
                return 0;
        w->events++;
        w->late += w->out->ended;
        if (w->last && str_is(data, w->last)) {
                w->out->ended = true;
                return 0;
        }
        int rc = look_at(w, data, &why);
        if (rc == STENO_ENOMEM)
                return rc;
        if (rc || json_type(&w->j, 0) != JSON_OBJECT) {
                if (w->broken++ == 0)
                        note_odd(w->out, "event %zu of the stream is not a JSON object%s%s",
                            w->events, rc ? ": " : "", rc ? why.msg : "");
                return 0;
        }
        if (w->last && json_is(&w->j, json_get(&w->j, 0, "type"), w->last))
                w->out->ended = true;
        return w->each(w, &w->j);
}

static int walk_stream(struct walk *w, struct str body)
{
        struct sse s;
        sse_init(&s, MESSAGE_MAX, walk_event, w);
        int rc = sse_feed(&s, body.p, body.n);
        if (rc == 0)
                rc = sse_finish(&s);
        sse_release(&s);
        if (w->broken > 1)
                note_odd(w->out, "so are %zu more", w->broken - 1);
        if (w->late)
                note_odd(w->out, "%zu event%s came behind the end of the answer", w->late,
                    w->late == 1 ? "" : "s");
        return rc;
}

static int walk_body(struct walk *w, struct str body)
{
        struct steno_error why = {0};
        int rc = look_at(w, body, &why);
        w->out->ended = true;
        if (rc == STENO_ENOMEM)
                return rc;
        if (rc && str_trim(body).n == 0)
                note_odd(w->out, "the answer is empty");
        else if (rc)
                note_odd(w->out, "the answer is not JSON: %s", why.msg);
        else
                return w->each(w, &w->j);
        return 0;
}

static int walk_answer(struct walk *w, struct str body, bool stream)
{
        json_init(&w->j);
        w->stream = stream;
        int rc = stream ? walk_stream(w, body) : walk_body(w, body);
        json_release(&w->j);
        return rc;
}

/* ---- replies ---- */

/* A message as it stands, but with this role, without which it could not be stored. */
static void put_with_role(const struct json *j, json_ref message, const char *role, struct buf *out)
{
        if (json_is(j, json_get(j, message, "role"), role)) {
                buf_put_str(out, json_raw(j, message));
                return;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", role);
        for (json_ref k = json_child(j, message); k != JSON_NONE; k = json_next_key(j, message, k))
                if (!json_is(j, k, "role"))
                        jsonw_copy_member(&w, j, k);
        jsonw_object_end(&w);
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

/* The message of a whole answer, as it came, in place of what the reader made of it. */
static int take_verbatim(struct wire_answer *out, const struct buf *message)
{
        if (out->count == 0 || message->n == 0)
                return message->failed;
        buf_clear(&out->messages);
        buf_putc(&out->messages, '[');
        buf_put_str(&out->messages, buf_str(message));
        buf_putc(&out->messages, ']');
        return out->messages.failed;
}

/* An answer in which there is nothing that could be a reply is not one that says nothing. */
static void refuse_nothing(struct wire_answer *out, const char *what)
{
        buf_clear(&out->messages);
        out->count = 0;
        out->complete = false;
        if (out->problem.n == 0 && out->odd.n == 0)
                buf_printf(&out->problem, "the endpoint's answer has no %s", what);
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

/* One choice of an answer. `finish` (may be NULL) gets the endpoint's word for its end. */
static int read_as(const struct provider *provider, struct str body, bool stream, int64_t choice,
    struct wire_answer *out, char finish[40])
{
        struct reply_hooks hooks = {make_id, NULL, NULL};
        struct reply r;
        struct provider_reader *reader = provider->wire->reader_new(&hooks);
        if (!reader)
                return STENO_ENOMEM;
        reader->verbatim = !out->answered;
        reader->choice = choice;
        reply_init(&r);
        int rc = feed(reader, body, stream);
        if (rc == 0)
                rc = reader->ops->finish(reader, &r, NULL);
        if (rc == 0)
                rc = take_reply(&r, out);
        if (reader->skipped)
                note_odd(out, "the answer has pieces that belong to no part of a reply");
        if (finish)
                snprintf(finish, 40, "%s", reader->finish);
        reply_release(&r);
        reader->ops->free(reader);
        return rc;
}

/* ---- several choices ---- */

/* Which ones a stream has, in the order of their numbers. */
struct choices {
        int64_t index[CHOICES_MAX];
        size_t count;
        struct buf message; /* of a whole answer: the first */
        char finish[40];
};

static void add_choice(struct choices *all, int64_t index, struct wire_answer *out)
{
        size_t at = 0;
        while (at < all->count && all->index[at] < index)
                at++;
        if (at < all->count && all->index[at] == index)
                return;
        if (all->count == CHOICES_MAX) {
                note_odd(out, "the answer has more than %d choices", CHOICES_MAX);
                return;
        }
        memmove(&all->index[at + 1], &all->index[at], (all->count - at) * sizeof *all->index);
        all->index[at] = index;
        all->count++;
}

static void add_other(struct wire_answer *out, struct str choice)
{
        if (out->other_count++)
                buf_putc(&out->others, ',');
        buf_put_str(&out->others, choice);
}

/* The choices in one event or body; those of a body but the first are taken as they are. */
static void note_choices(struct walk *w, const struct json *j, json_ref list)
{
        struct choices *all = w->own;
        size_t n = 0;
        for (json_ref c = json_child(j, list); c != JSON_NONE; c = json_next(j, list, c), n++) {
                int64_t index = 0;
                json_i64(j, json_get(j, c, "index"), &index);
                w->any = w->any || json_type(j, c) == JSON_OBJECT;
                if (w->stream)
                        add_choice(all, index, w->out);
                else if (n)
                        add_other(w->out, json_raw(j, c));
        }
}

/* ---- chat completions ---- */

static int note_chat(struct walk *w, const struct json *j)
{
        struct wire_answer *out = w->out;
        struct choices *all = w->own;
        json_ref list = json_get(j, 0, "choices");
        json_ref choice = json_at(j, list, 0);
        json_ref message = json_get(j, choice, w->stream ? "delta" : "message");
        take_string(j, 0, "id", &out->id);
        take_string(j, 0, "model", &out->model);
        note_choices(w, j, list);
        for (json_ref c = json_child(j, list); c != JSON_NONE; c = json_next(j, list, c))
                check_role(j, json_get(j, json_get(j, c, w->stream ? "delta" : "message"), "role"),
                    "assistant", out);
        if (!w->stream && json_type(j, message) == JSON_OBJECT)
                put_with_role(j, message, "assistant", &all->message);
        return all->message.failed ? all->message.failed : out->others.failed;
}

static int put_choice(struct str body, int64_t index, struct wire_answer *out)
{
        struct wire_answer one;
        struct buf b;
        char finish[40] = "";
        wire_answer_init(&one);
        buf_init(&b, MESSAGE_MAX);
        int rc = read_as(&provider_openai, body, true, index, &one, finish);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_i64(&w, "index", index);
        if (rc == 0 && one.count)
                jsonw_field_raw(&w, "message", str_span(one.messages.p + 1, one.messages.n - 2));
        if (finish[0])
                jsonw_field_str(&w, "finish_reason", str_of(finish));
        else
                jsonw_field_null(&w, "finish_reason");
        jsonw_object_end(&w);
        add_other(out, buf_str(&b));
        if (rc == 0)
                rc = b.failed ? b.failed : out->others.failed;
        wire_answer_release(&one);
        buf_release(&b);
        return rc;
}

static int read_chat(struct str body, bool stream, struct wire_answer *out)
{
        struct choices all = {0};
        struct walk w = {.each = note_chat, .out = out, .own = &all, .last = "[DONE]"};
        buf_init(&all.message, 0);
        int rc = walk_answer(&w, body, stream);
        if (rc == 0)
                rc = read_as(
                    &provider_openai, body, stream, all.count ? all.index[0] : 0, out, out->finish);
        if (rc == 0 && !out->answered)
                rc = take_verbatim(out, &all.message);
        if (rc == 0 && (stream ? !w.any : all.message.n == 0))
                refuse_nothing(out, stream ? "choices" : "message");
        if (all.count > 1 && body.n > CHOICES_BYTES / all.count)
                note_odd(out, "the answer has %zu choices", all.count);
        else
                for (size_t i = 1; i < all.count && rc == 0; i++)
                        rc = put_choice(body, all.index[i], out);
        buf_release(&all.message);
        return rc;
}

/* ---- Anthropic's Messages ---- */

/* What of a whole answer belongs to the history. */
static void put_blocks(const struct json *j, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k))
                if (json_is(j, k, "content") || !blockstream_is_of_answer(json_inner(j, k)))
                        jsonw_copy_member(&w, j, k);
        jsonw_object_end(&w);
}

static int note_blocks(struct walk *w, const struct json *j)
{
        struct wire_answer *out = w->out;
        struct buf *whole = w->own;
        json_ref type = json_get(j, 0, "type");
        bool start = json_is(j, type, "message_start");
        json_ref message = start ? json_get(j, 0, "message") : 0;
        if (start || json_is(j, type, "message") || !w->stream) {
                take_string(j, message, "id", &out->id);
                take_string(j, message, "model", &out->model);
                take_word(j, json_get(j, message, "stop_reason"), out->finish, sizeof out->finish);
                check_role(j, json_get(j, message, "role"), "assistant", out);
                w->any = true;
        }
        w->any = w->any || json_is(j, type, "content_block_start");
        if (!w->stream)
                put_blocks(j, whole);
        take_word(j, json_get(j, json_get(j, 0, "delta"), "stop_reason"), out->finish,
            sizeof out->finish);
        return whole->failed;
}

static int read_blocks(struct str body, bool stream, struct wire_answer *out)
{
        struct buf whole;
        struct walk w = {.each = note_blocks, .out = out, .own = &whole, .last = "message_stop"};
        buf_init(&whole, 0);
        int rc = walk_answer(&w, body, stream);
        if (rc == 0)
                rc = read_as(&provider_anthropic, body, stream, 0, out, NULL);
        if (rc == 0 && !out->answered)
                rc = take_verbatim(out, &whole);
        if (rc == 0 && !w.any)
                refuse_nothing(out, "message");
        buf_release(&whole);
        return rc;
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

/* The items of a response, each of which must be an object to be one. */
static int take_output(struct items *all, const struct json *j, json_ref output)
{
        int rc = 0;
        for (json_ref i = json_child(j, output); i != JSON_NONE && rc == 0;
             i = json_next(j, output, i))
                rc = add_item(all, 0, json_raw(j, i));
        return rc;
}

/* The last event has all items once more. Where they were not told one by one it is what there is;
 * else it is only compared. */
static int take_end(struct walk *w, const struct json *j, json_ref response)
{
        struct items *all = w->own;
        json_ref output = json_get(j, response, "output");
        w->out->ended = w->out->complete;
        if (!w->out->complete || json_count(j, output) == all->count)
                return 0;
        if (all->count == 0)
                return take_output(all, j, output);
        if (json_count(j, output))
                note_odd(w->out, "the stream has %zu items, and its last event has %u", all->count,
                    json_count(j, output));
        return 0;
}

static int note_item(struct walk *w, const struct json *j)
{
        struct items *all = w->own;
        json_ref type = json_get(j, 0, "type"), response = json_get(j, 0, "response");
        int rc = 0;
        if (json_is(j, json_get(j, 0, "object"), "response")) { /* a whole body */
                take_response(j, 0, w->out);
                rc = take_output(all, j, json_get(j, 0, "output"));
        } else if (json_is(j, type, "response.output_item.done")) {
                int64_t index = INT64_MAX;
                json_i64(j, json_get(j, 0, "output_index"), &index);
                json_ref item = json_get(j, 0, "item");
                buf_clear(&w->out->text); /* the item has it */
                if (json_type(j, item) == JSON_OBJECT)
                        rc = add_item(all, index, json_raw(j, item));
                else
                        note_odd(w->out, "an item of the stream is not an object");
        } else if (json_is(j, type, "response.output_text.delta")) {
                json_string(j, json_get(j, 0, "delta"), &w->out->text, NULL);
        } else if (json_is(j, type, "error")) {
                json_string(j, json_get(j, 0, "message"), &w->out->problem, NULL);
                take_problem(j, json_get(j, 0, "error"), w->out);
        } else if (json_type(j, response) == JSON_OBJECT) {
                take_response(j, response, w->out);
                rc = take_end(w, j, response);
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
        if (!stream && !out->complete && out->problem.n == 0 && out->odd.n == 0)
                buf_puts(&out->problem, "the endpoint's answer is no response that was completed");
        free(all.list);
        return rc ? rc : out->messages.failed;
}

/* ---- Gemini ---- */

/* A candidate as it is put together. Two texts of one kind that follow each other are one: a stream
 * cuts them anywhere. */
struct parts {
        struct choices all;
        int64_t wanted; /* which candidate, by its index; of a body the first */
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

static void take_candidate(const struct json *j, json_ref candidate, struct walk *w)
{
        struct wire_answer *out = w->out;
        struct parts *p = w->own;
        json_ref content = json_get(j, candidate, "content");
        json_ref parts = json_get(j, content, "parts");
        check_role(j, json_get(j, content, "role"), "model", out);
        for (json_ref c = json_child(j, parts); c != JSON_NONE; c = json_next(j, parts, c))
                add_part(p, j, c, out);
        take_word(j, json_get(j, candidate, "finishReason"), out->finish, sizeof out->finish);
        if (!w->stream && json_count(j, parts))
                put_with_role(j, content, "model", &p->all.message);
}

static int take_candidates(const struct json *j, json_ref root, struct walk *w)
{
        struct wire_answer *out = w->out;
        struct parts *p = w->own;
        json_ref list = json_get(j, root, "candidates");
        bool first = true;
        note_choices(w, j, list);
        for (json_ref c = json_child(j, list); c != JSON_NONE; c = json_next(j, list, c)) {
                int64_t index = 0;
                json_i64(j, json_get(j, c, "index"), &index);
                if (w->stream ? index == p->wanted : first)
                        take_candidate(j, c, w);
                first = false;
        }
        take_usage(j, json_get(j, root, "usageMetadata"), out);
        take_string(j, root, "modelVersion", &out->model);
        take_string(j, root, "responseId", &out->id);
        take_problem(j, json_get(j, root, "error"), out);
        json_ref blocked = json_get(j, json_get(j, root, "promptFeedback"), "blockReason");
        if (json_count(j, list) == 0 && json_inner(j, blocked).n) {
                struct str why = json_inner(j, blocked);
                buf_clear(&out->problem);
                buf_printf(&out->problem, "the endpoint refused the prompt: %.*s",
                    (int)(why.n < 200 ? why.n : 200), why.p);
        }
        return p->all.message.failed ? p->all.message.failed : out->others.failed;
}

static int note_candidates(struct walk *w, const struct json *j)
{
        int rc = 0;
        if (json_type(j, 0) == JSON_OBJECT)
                return take_candidates(j, 0, w);
        w->stream = true; /* without alt=sse a stream is one array */
        for (json_ref e = json_child(j, 0); e != JSON_NONE && rc == 0; e = json_next(j, 0, e))
                rc = take_candidates(j, e, w);
        return rc;
}

/* One candidate: its message, and how it ended. */
static int read_candidate(
    struct str body, bool stream, struct parts *parts, struct wire_answer *out)
{
        struct walk w = {.each = note_candidates, .out = out, .own = parts};
        int rc = walk_answer(&w, body, stream);
        flush_text(parts);
        out->complete = out->finish[0] != '\0';
        if (!w.stream)
                rc = rc ? rc : parts->all.message.failed;
        else
                out->ended = !stream; /* no event of a stream says that it is the last */
        if (!w.stream && parts->all.message.n && !out->answered) {
                out->count = 1;
                return rc ? rc : take_verbatim(out, &parts->all.message);
        }
        if (parts->list.n) {
                buf_puts(&out->messages, "[{\"role\":\"model\",\"parts\":[");
                buf_put_str(&out->messages, buf_str(&parts->list));
                buf_puts(&out->messages, "]}]");
                out->count = 1;
        }
        if (rc == 0)
                rc = parts->list.failed ? parts->list.failed : out->messages.failed;
        return rc;
}

static void parts_init(struct parts *p, int64_t wanted)
{
        *p = (struct parts){.wanted = wanted};
        buf_init(&p->all.message, 0);
        buf_init(&p->list, 0);
        buf_init(&p->text, MESSAGE_MAX);
}

static void parts_release(struct parts *p)
{
        buf_release(&p->all.message);
        buf_release(&p->list);
        buf_release(&p->text);
}

static int put_candidate(struct str body, bool stream, int64_t index, struct wire_answer *out)
{
        struct wire_answer one;
        struct parts parts;
        struct buf b;
        wire_answer_init(&one);
        parts_init(&parts, index);
        buf_init(&b, MESSAGE_MAX);
        int rc = read_candidate(body, stream, &parts, &one);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        if (rc == 0 && one.count)
                jsonw_field_raw(&w, "content", str_span(one.messages.p + 1, one.messages.n - 2));
        if (one.finish[0])
                jsonw_field_str(&w, "finishReason", str_of(one.finish));
        jsonw_field_i64(&w, "index", index);
        jsonw_object_end(&w);
        add_other(out, buf_str(&b));
        if (rc == 0)
                rc = b.failed ? b.failed : out->others.failed;
        buf_release(&b);
        parts_release(&parts);
        wire_answer_release(&one);
        return rc;
}

static int read_gemini(struct str body, bool stream, struct wire_answer *out)
{
        struct parts parts;
        parts_init(&parts, 0);
        int rc = read_candidate(body, stream, &parts, out);
        struct choices *all = &parts.all;
        bool many = all->count > 1 && body.n > CHOICES_BYTES / all->count;
        if (many)
                note_odd(out, "the answer has %zu candidates", all->count);
        for (size_t i = 0; i < all->count && rc == 0 && !many; i++)
                if (all->index[i] != 0)
                        rc = put_candidate(body, stream, all->index[i], out);
        if (!stream && !out->complete && out->problem.n == 0 && out->odd.n == 0)
                buf_puts(&out->problem, "the endpoint's answer has no candidate that ended");
        parts_release(&parts);
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

bool wire_is_stream(struct str body, bool told)
{
        static const char *const fields[] = {"data:", "event:", "id:", "retry:", ":"};
        body = str_trim(body);
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
                if (str_starts(body, fields[i]))
                        return true;
        return told && !(body.n && (body.p[0] == '{' || body.p[0] == '['));
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
