/*
 * loop_turn.c - one model call: the stored history as the provider wants it, the reply streamed
 * into the journal, a second attempt when the reply did not call the required tool. Stores
 * failures, not replies.
 */
#include <string.h>

#include "base/error.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/text.h"
#include "loop/loop.h"

/* Of a reply that no message can hold so much of its text is stored as a message. */
#define SHOWN_MOST (64 * KIB)

/* ---- the request ---- */

static int into_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

/* The stored history in the format that the provider asks for. */
static int put_history(struct loop *c, struct buf *out, struct steno_error *err)
{
        /* Read before the view: the view may have later records as well, but it has all records up
         * to this seq. */
        int found = steno_conv_last_seq(c->opt.conv, &c->asked_at, err);
        if (found)
                return found;
        struct steno_view_options opt = {.size = sizeof(opt),
            .format = loop_calls_are_text(c) ? "legacy" : c->provider->format,
            .edit_strategies = c->opt.edit_strategies,
            .budget = c->opt.budget,
            .outputs = STENO_OUTPUTS_STUB,
            .strict = c->opt.flags & STENO_LOOP_STRICT,
            .via = c->via};
        int rc = steno_view(c->opt.conv, &opt, into_buf, out, NULL, err);
        return rc ? rc : buf_check(out, err);
}

/* ---- asking ---- */

static void make_call_id(void *ctx, char out[64])
{
        (void)ctx;
        loop_make_id("call_", out);
}

static int on_piece(void *ctx, enum reply_piece kind, struct str text)
{
        struct loop *c = ctx;
        size_t room = SHOWN_MOST - c->shown.n;
        if (kind == REPLY_TEXT && room)
                buf_put(
                    &c->shown, text.p, text_floor(text.p, text.n, text.n < room ? text.n : room));
        return journal_piece(&c->journal, kind, text);
}

static int on_tick(void *ctx)
{
        struct loop *c = ctx;
        return journal_tick(&c->journal);
}

/* An attempt that failed before its first token is not a message, but the log keeps it. */
static void on_retry(void *ctx, const struct reply_fault *fault, unsigned attempt, int wait_ms)
{
        struct loop *c = ctx;
        struct event e;
        journal_event_begin(&e, &c->journal, STENO_EVENT_MODEL_RETRY, c->message_id);
        jsonw_field_u64(&e.w, "attempt", attempt);
        jsonw_field_i64(&e.w, "waitMs", wait_ms);
        jsonw_field_cstr(&e.w, "code", fault->code);
        jsonw_field_cstr(&e.w, "message", fault->message);
        journal_event_end(&e, &c->journal);
}

/* Where the provider tells no usage, the tokens are counted here. */
static void count_tokens(struct loop *c, const struct reply *reply, struct str history)
{
        uint64_t n = reply->total_tokens;
        if (n == 0 && c->opt.max_tokens) {
                struct str system = str_of(c->opt.system);
                n = steno_count_tokens(history.p, history.n, NULL) +
                    steno_count_tokens(system.n ? system.p : "", system.n, NULL) +
                    steno_count_tokens(reply->message.p, reply->message.n, NULL);
        }
        c->tokens += n;
}

/* So that the text of a reply that never comes to its end knows what it answers. */
static int note_request(struct loop *c, struct steno_error *err)
{
        struct buf data;
        buf_init(&data, 4 * KIB);
        struct jsonw w = jsonw_to(&data);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "messageId", c->message_id);
        jsonw_field_u64(&w, "after", c->asked_at);
        jsonw_object_end(&w);
        int rc = buf_check(&data, err);
        if (rc == 0)
                rc = steno_run_event(c->run, event_name(STENO_EVENT_REQUEST), data.p, data.n,
                    STENO_PROCESS, NULL, err);
        buf_release(&data);
        return rc;
}

/* What the provider counted for this reply. It is only for statistics. A failure to store it is
 * ignored here, because the events before and behind it report the same failure. */
static void note_usage(struct loop *c, const struct reply *reply)
{
        struct buf data;
        if (reply->usage.n == 0)
                return;
        buf_init(&data, 128 * KIB);
        struct jsonw w = jsonw_to(&data);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "messageId", c->message_id);
        jsonw_field_cstr(&w, "model", c->opt.model);
        jsonw_field_raw(&w, "usage", buf_str(&reply->usage));
        jsonw_object_end(&w);
        if (!data.failed)
                steno_run_event(c->run, event_name(STENO_EVENT_REPLY_USAGE), data.p, data.n,
                    STENO_PROCESS, NULL, NULL);
        buf_release(&data);
}

/* It came whole, and no message can hold it: too many parts, values or calls. */
static void set_too_large(struct reply *reply, const struct steno_error *err)
{
        static const char WHICH[] = "message 1: ";
        const char *why = err->msg;
        why += strncmp(why, WHICH, sizeof WHICH - 1) == 0 ? sizeof WHICH - 1 : 0;
        reply_fault_set(&reply->fault, "LLM_TOO_LARGE", false,
            "the reply is larger than a message may be: %.160s", why);
}

static int ask(struct loop *c, struct str history, const char *require_tool, struct reply *reply,
    struct steno_error *err)
{
        struct provider_request request = {
            .model = c->opt.model,
            .history = history,
            .system = c->opt.system,
            .go_on = c->nudge,
            .tools = c->offered,
            .tool_count = c->tools.count,
            .require_tool = require_tool,
            .params = str_of(c->opt.params_json),
            .stream = !(c->opt.flags & STENO_LOOP_NO_STREAM),
            .stop = c->opt.stop,
            .deadline = c->deadline,
        };
        struct buf system;
        buf_init(&system, 0);
        if (loop_calls_are_text(c)) {
                if (loop_text_system(c, require_tool, &system) || !buf_cstr(&system)) {
                        buf_release(&system);
                        return error_nomem(err);
                }
                request.system = system.n ? system.p : NULL;
                request.tools = NULL;
                request.tool_count = 0;
                request.require_tool = NULL;
                /* Results stand in the assistant's own words. */
                if (!c->nudge)
                        request.go_on_words = LOOP_TEXT_GO_ON;
                request.go_on = true;
        }
        struct provider_hooks hooks = {
            .tick = on_tick,
            .retry = on_retry,
            .reply = {make_call_id, on_piece, c},
            .ctx = c,
        };
        loop_make_id("msg_", c->message_id);
        journal_message(&c->journal, c->message_id);
        c->turns++;
        buf_clear(&c->shown);
        reply_clear(reply);
        int noted = note_request(c, err);
        if (noted) {
                buf_release(&system);
                return noted;
        }
        int rc = c->client->complete(c->client, &request, &hooks, reply, err);
        if (rc == 0 && loop_calls_are_text(c))
                rc = loop_text_take(reply, &hooks.reply, err);
        if (rc == STENO_ELIMIT && reply->message.n) {
                set_too_large(reply, err);
                rc = 0;
        }
        buf_release(&system);
        journal_flush(&c->journal);
        int stored = journal_check(&c->journal, err);
        count_tokens(c, reply, history);
        if (!stored)
                note_usage(c, reply);
        return stored ? stored : rc;
}

/* ---- what came of it ---- */

static int store_failure(struct loop *c, const char *reason, const struct reply_fault *fault,
    const struct reply *reply, struct steno_error *err)
{
        return loop_store_fault(
            c, reason, fault, buf_str(&reply->text), buf_str(&reply->thinking), err);
}

static int to_output(void *ctx, const void *p, size_t n)
{
        return steno_output_write(ctx, p, n, NULL);
}

/* The endpoint's answer, byte for byte where it was too large to be read, else all that it said. */
static int copy_whole(const struct reply *reply, struct steno_output *o)
{
        return reply->has_whole
                   ? fs_copy_out(fs_real(), reply->whole, 0, UINT64_MAX, to_output, o, NULL)
                   : to_output(o, reply->message.p, reply->message.n);
}

/* A reply that no message can hold: the endpoint's answer becomes an output, whole, and the message
 * says where it is. Without one the beginning of its text is still kept. */
static void keep_whole(struct loop *c, struct reply *reply)
{
        struct steno_output_options opt = {
            .size = sizeof(opt), .tool = "model", .call_id = c->message_id};
        struct steno_output *o = NULL;
        struct reply_fault told = reply->fault;
        char *message = NULL;
        size_t n = 0;
        if ((!reply->has_whole && !reply->message.n) ||
            steno_output_begin(c->opt.conv, &opt, &o, NULL))
                return;
        bool kept =
            copy_whole(reply, o) == 0 && steno_output_message(o, NULL, &message, &n, NULL) == 0;
        const char *ref = kept ? steno_output_ref(o) : NULL;
        if (ref)
                reply_fault_set(&reply->fault, told.code, false,
                    "%.250s; the endpoint's whole answer is in %s", told.message, ref);
        steno_free(message);
        steno_output_free(o);
}

/* Stores how a model call ended. Negative only if that could not be stored. */
static int settle(struct loop *c, int rc, struct reply *reply, struct steno_error *err)
{
        struct reply_fault fault = {0};
        if (rc == 0 && !reply->fault.code)
                return 0;
        if (rc == 0 && strcmp(reply->fault.code, "LLM_TOO_LARGE") == 0) {
                keep_whole(c, reply);
                buf_clear(&reply->text);
                buf_put_str(&reply->text, buf_str(&c->shown));
        }
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

int loop_reply_too_large(struct loop *c, struct reply *reply, struct steno_error *err)
{
        set_too_large(reply, err);
        return settle(c, 0, reply, err);
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
        journal_event_begin(&e, &c->journal, STENO_EVENT_MESSAGE_DROPPED, c->message_id);
        jsonw_field_cstr(&e.w, "reason", "the required tool was not called");
        jsonw_field_cstr(&e.w, "tool", c->opt.require_tool);
        journal_event_end(&e, &c->journal);
        return journal_check(&c->journal, err);
}

/* One call of the model, its failure stored. */
static int ask_and_settle(struct loop *c, struct str history, const char *require_tool,
    struct reply *reply, struct steno_error *err)
{
        int rc = ask(c, history, require_tool, reply, err);
        return settle(c, rc, reply, err);
}

/* The model did not call the tool that is required: that reply is dropped, and it is asked once
 * more, with no other choice. */
static int insist(struct loop *c, struct str history, struct reply *reply, struct steno_error *err)
{
        int rc = drop(c, err);
        return rc ? rc : ask_and_settle(c, history, c->opt.require_tool, reply, err);
}

int loop_turn(struct loop *c, struct reply *reply, struct steno_error *err)
{
        struct buf history;
        buf_init(&history, 0);
        int rc = put_history(c, &history, err);
        if (rc == 0)
                rc = ask_and_settle(c, buf_str(&history), NULL, reply, err);
        if (rc == 0 && !c->reason && !satisfies(c, reply))
                rc = insist(c, buf_str(&history), reply, err);
        if (rc == 0 && !c->reason && c->opt.require_tool && satisfies(c, reply))
                c->required_met = true;
        buf_release(&history);
        return rc;
}
