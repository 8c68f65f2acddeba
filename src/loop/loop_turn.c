/*
 * loop_turn.c - one model call: the stored history as the provider wants it, the reply streamed
 * into the journal, a required tool insisted on once. Stores failures, not replies.
 */
#include "base/error.h"
#include "base/limits.h"
#include "loop/loop.h"

/* ---- the request ---- */

static int into_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

static bool ends_with_assistant(struct str messages)
{
        struct json j;
        json_init(&j);
        bool is = false;
        if (json_parse(&j, messages.p, messages.n, NULL, NULL) == 0) {
                json_ref last = JSON_NONE;
                for (json_ref m = json_child(&j, 0); m != JSON_NONE; m = json_next(&j, 0, m))
                        last = m;
                is = json_is(&j, json_get(&j, last, "role"), "assistant");
        }
        json_release(&j);
        return is;
}

static void put_extra(struct jsonw *w, const char *role, const char *text)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "role", role);
        jsonw_field_cstr(w, "content", text);
        jsonw_object_end(w);
}

/* The view, between the system prompt and, where the history ends with the assistant's own
 * words, a request to go on: neither is stored. */
static int put_messages(struct loop *c, struct buf *out, struct steno_error *err)
{
        struct buf view;
        buf_init(&view, 0);
        struct steno_view_options opt = {.size = sizeof(opt),
            .format = "openai",
            .edit_strategies = c->opt.edit_strategies,
            .budget = c->opt.budget,
            .outputs = STENO_OUTPUTS_STUB};
        int rc = steno_view(c->opt.conv, &opt, into_buf, &view, NULL, err);
        struct json j;
        json_init(&j);
        if (rc == 0)
                rc = json_parse(&j, view.p, view.n, NULL, err);
        if (rc)
                goto out;
        bool nudge = c->nudge && ends_with_assistant(buf_str(&view));
        struct jsonw w = jsonw_to(out);
        jsonw_array(&w);
        if (c->opt.system)
                put_extra(&w, "system", c->opt.system);
        for (json_ref m = json_child(&j, 0); m != JSON_NONE; m = json_next(&j, 0, m))
                jsonw_raw(&w, json_raw(&j, m));
        if (nudge)
                put_extra(&w, "user", PROVIDER_GO_ON);
        jsonw_array_end(&w);
        rc = buf_check(out, err);
out:
        json_release(&j);
        buf_release(&view);
        return rc;
}

/* ---- asking ---- */

static void make_call_id(void *ctx, char out[64])
{
        (void)ctx;
        loop_make_id("call_", out);
}

static int on_piece(void *ctx, enum assemble_piece kind, struct str text)
{
        struct loop *c = ctx;
        return journal_piece(&c->journal, kind, text);
}

static int on_tick(void *ctx)
{
        struct loop *c = ctx;
        return journal_tick(&c->journal);
}

/* An attempt that failed before its first token is no message, but the log keeps it. */
static void on_retry(void *ctx, const struct reply_fault *fault, unsigned attempt, int wait_ms)
{
        struct loop *c = ctx;
        struct event e;
        journal_event_begin(&e, &c->journal, "model_retry", c->message_id);
        jsonw_field_u64(&e.w, "attempt", attempt);
        jsonw_field_i64(&e.w, "waitMs", wait_ms);
        jsonw_field_cstr(&e.w, "code", fault->code);
        jsonw_field_cstr(&e.w, "message", fault->message);
        journal_event_end(&e, &c->journal);
}

static void count_tokens(struct loop *c, const struct reply *reply, struct str messages)
{
        uint64_t n = reply->total_tokens;
        if (n == 0 && c->opt.max_tokens)
                n = steno_count_tokens(messages.p, messages.n, NULL) +
                    steno_count_tokens(reply->message.p, reply->message.n, NULL);
        c->tokens += n;
}

static int ask(struct loop *c, struct str messages, struct str tool_choice, struct reply *reply,
    struct steno_error *err)
{
        struct provider_request request = {
            .model = c->opt.model,
            .messages = messages,
            .tools = buf_str(&c->tools_json),
            .tool_choice = tool_choice,
            .params = str_of(c->opt.params_json),
            .stream = !(c->opt.flags & STENO_LOOP_NO_STREAM),
            .stop = c->opt.stop,
            .deadline = c->deadline,
        };
        struct provider_hooks hooks = {
            .tick = on_tick,
            .retry = on_retry,
            .assemble = {make_call_id, on_piece, c},
            .ctx = c,
        };
        loop_make_id("msg_", c->message_id);
        journal_message(&c->journal, c->message_id);
        c->turns++;
        reply_clear(reply);
        int rc = c->provider->complete(c->provider, &request, &hooks, reply, err);
        journal_flush(&c->journal);
        int stored = journal_check(&c->journal, err);
        count_tokens(c, reply, messages);
        return stored ? stored : rc;
}

/* ---- what came of it ---- */

static int store_failure(struct loop *c, const char *reason, const struct reply_fault *fault,
    const struct reply *reply, struct steno_error *err)
{
        struct json j;
        struct buf thinking;
        json_init(&j);
        buf_init(&thinking, MESSAGE_MAX);
        if (reply->message.n && json_parse(&j, reply->message.p, reply->message.n, NULL, NULL) == 0)
                json_string(&j, json_get(&j, 0, "reasoning_content"), &thinking, NULL);
        int rc = loop_store_fault(c, reason, fault, buf_str(&reply->text), buf_str(&thinking), err);
        buf_release(&thinking);
        json_release(&j);
        return rc;
}

/* Turns what ended a model call into history. Negative only when that could not be stored. */
static int settle(struct loop *c, int rc, struct reply *reply, struct steno_error *err)
{
        struct reply_fault fault = {0};
        if (rc == 0 && !reply->fault.code)
                return 0;
        if (rc == 0)
                return store_failure(c, "error", &reply->fault, reply, err);
        if (rc == STENO_EINTERRUPTED && steno_stop_requested(c->opt.stop)) {
                reply_fault_set(
                    &fault, "INTERRUPTED", true, "stopped while the reply was arriving");
                return store_failure(c, "interrupted", &fault, reply, err);
        }
        if (rc == STENO_ETIMEOUT) {
                reply_fault_set(&fault, "LIMIT_TIME", true,
                    "the run's time limit of %.1f s passed while the reply was arriving",
                    c->opt.max_ms / 1000.0);
                return store_failure(c, "max_time", &fault, reply, err);
        }
        return rc;
}

static bool satisfies(const struct loop *c, const struct reply *reply)
{
        const char *want = c->opt.require_tool;
        if (!want || c->required_met)
                return true;
        if (strcmp(want, "any") == 0)
                return reply->count > 0;
        for (size_t i = 0; i < reply->count; i++)
                if (strcmp(reply->calls[i].name, want) == 0)
                        return true;
        return false;
}

static int drop(struct loop *c, struct steno_error *err)
{
        struct event e;
        journal_event_begin(&e, &c->journal, "message_dropped", c->message_id);
        jsonw_field_cstr(&e.w, "reason", "the required tool was not called");
        jsonw_field_cstr(&e.w, "tool", c->opt.require_tool);
        journal_event_end(&e, &c->journal);
        return journal_check(&c->journal, err);
}

static void put_choice(const struct loop *c, struct buf *out)
{
        if (strcmp(c->opt.require_tool, "any") == 0) {
                buf_puts(out, "\"required\"");
                return;
        }
        buf_puts(out, "{\"type\":\"function\",\"function\":{\"name\":");
        json_put_string(out, str_of(c->opt.require_tool));
        buf_puts(out, "}}");
}

int loop_turn(struct loop *c, struct reply *reply, struct steno_error *err)
{
        struct buf messages, choice;
        buf_init(&messages, 0);
        buf_init(&choice, 1 * KIB);
        int rc = put_messages(c, &messages, err);
        if (rc)
                goto out;
        rc = ask(c, buf_str(&messages), (struct str){NULL, 0}, reply, err);
        rc = settle(c, rc, reply, err);
        if (rc || c->reason)
                goto out;
        if (!satisfies(c, reply)) {
                rc = drop(c, err);
                if (rc)
                        goto out;
                put_choice(c, &choice);
                rc = ask(c, buf_str(&messages), buf_str(&choice), reply, err);
                rc = settle(c, rc, reply, err);
                if (rc || c->reason)
                        goto out;
        }
        c->required_met = c->required_met || (c->opt.require_tool && satisfies(c, reply));
out:
        buf_release(&messages);
        buf_release(&choice);
        return rc;
}
