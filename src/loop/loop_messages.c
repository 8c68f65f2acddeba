/*
 * loop_messages.c - the messages that the loop writes: built, stored synced, and only then told.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "loop/loop.h"
#include "model/members.h"

void loop_make_id(const char *prefix, char out[CHAT_ID])
{
        id_make(env_real(), prefix, out);
}

static void put_time(struct jsonw *w, const char *key)
{
        char at[TIME_TEXT];
        const struct env *env = env_real();
        time_format(env->now(env), at);
        jsonw_field_cstr(w, key, at);
}

static void put_origin(struct jsonw *w, const struct loop *c)
{
        jsonw_field_cstr(w, "mode", c->opt.mode);
        jsonw_field_cstr(w, "runId", steno_run_id(c->run));
}

/* `format` NULL: Steno's own, openai. `of` is 0, or the seq of the call that it answers. */
static int append(struct loop *c, struct str json, const char *format, uint32_t flags, uint64_t of,
    struct steno_error *err)
{
        struct steno_append_options opt = {.size = sizeof(opt),
            .durability = STENO_FULL,
            .flags = flags,
            .format = format,
            .via = c->via,
            .of_seq = of,
            .run = c->run};
        struct steno_receipt *receipt = NULL;
        int rc = steno_run_check(c->run, err);
        if (rc == 0)
                rc = steno_append(c->opt.conv, json.p, json.n, &opt, &receipt, err);
        if (rc == 0)
                c->last_stored = steno_receipt_first_seq(receipt);
        steno_receipt_free(receipt);
        return rc;
}

static int append_buf(struct loop *c, struct buf *b, struct steno_error *err)
{
        int rc = buf_check(b, err);
        return rc ? rc : append(c, buf_str(b), NULL, 0, 0, err);
}

/* ---- the user ---- */

static int note_seen(void *ctx, const struct steno_record *r)
{
        (void)r;
        *(bool *)ctx = true;
        return 0;
}

/* The message with its id and with the mode and the run that it belongs to, unless it names them
 * itself. */
static int add_origin(
    struct loop *c, const struct json *j, struct buf *out, struct steno_error *err)
{
        struct json_edits edits;
        struct buf more;
        json_edits_init(&edits);
        buf_init(&more, 4 * KIB);
        struct jsonw w = jsonw_to(&more);
        if (c->opt.message_id && json_get(j, 0, "id") == JSON_NONE)
                jsonw_field_cstr(&w, "id", c->opt.message_id);
        if (json_get(j, 0, "mode") == JSON_NONE && json_get(j, 0, "runId") == JSON_NONE)
                put_origin(&w, c);
        if (more.n)
                json_edit_add_member(&edits, j, 0, buf_str(&more));
        int rc = json_edits_apply(&edits, j, 0, out) ? error_nomem(err) : 0;
        buf_release(&more);
        json_edits_release(&edits);
        return rc;
}

static int put_given_message(struct loop *c, struct buf *out, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        const char *given = c->opt.message_json;
        int rc = json_parse(&j, given, strlen(given), NULL, err);
        if (rc == 0 && json_type(&j, 0) != JSON_OBJECT)
                rc = error_set(err, STENO_EPROTO, "the message is not a JSON object");
        if (rc == 0)
                rc = add_origin(c, &j, out, err);
        json_release(&j);
        return rc;
}

static void put_prompt(struct loop *c, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        if (c->opt.message_id) {
                jsonw_field_cstr(&w, "id", c->opt.message_id);
        }
        jsonw_field_cstr(&w, "role", "user");
        jsonw_field_cstr(&w, "content", c->opt.prompt);
        put_time(&w, "createdAt");
        put_origin(&w, c);
        jsonw_object_end(&w);
}

int loop_store_user(struct loop *c, struct steno_error *err)
{
        if (c->opt.message_id) {
                bool seen = false;
                int rc = steno_read_id(c->opt.conv, c->opt.message_id, note_seen, &seen, NULL);
                if (rc == 0 && seen)
                        return 0;
        }
        /* Our own members have a place in our own format only. */
        if (c->opt.message_json && c->opt.message_format)
                return append(
                    c, str_of(c->opt.message_json), c->opt.message_format, STENO_RECORD, 0, err);
        struct buf json;
        buf_init(&json, MESSAGE_MAX);
        int rc = 0;
        if (c->opt.message_json)
                rc = put_given_message(c, &json, err);
        else
                put_prompt(c, &json);
        if (rc == 0)
                rc = append_buf(c, &json, err);
        buf_release(&json);
        return rc;
}

/* ---- the assistant ---- */

static void tell_assistant(struct loop *c, struct buf *json)
{
        const char *z = buf_cstr(json);
        if (c->opt.on_assistant_message && z)
                c->opt.on_assistant_message(c->opt.ctx, z, json->n);
}

/* The reply as it came, without members that only Steno may set. Otherwise an endpoint could claim
 * that a reply belongs to another run, and readers disagree about duplicate keys. */
static int put_reply(struct buf *out, const struct reply *reply, struct steno_error *err)
{
        const char *own[MEMBER_COUNT + 1];
        members_list(MEMBER_OF_RUN, own);
        struct json j;
        struct json_edits edits;
        json_init(&j);
        json_edits_init(&edits);
        int rc = json_parse(&j, reply->message.p, reply->message.n, NULL, err);
        if (rc == 0) {
                json_edit_remove_members(&edits, &j, 0, own);
                if (json_edits_apply(&edits, &j, 0, out))
                        rc = error_nomem(err);
        }
        json_edits_release(&edits);
        json_release(&j);
        return rc;
}

/* Why the model stopped, in OpenAI's words; NULL: it did not say. */
static const char *finish_word(enum reply_finish finish)
{
        static const char *const words[] = {[FINISH_NONE] = NULL,
            [FINISH_STOP] = "stop",
            [FINISH_TOOLS] = "tool_calls",
            [FINISH_LENGTH] = "length",
            [FINISH_FILTER] = "content_filter",
            [FINISH_OTHER] = "other"};
        return words[finish];
}

/* What Steno says about the reply, and behind it the reply's own members. */
static void put_stored_reply(
    struct loop *c, const struct reply *reply, struct str came, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", c->message_id);
        put_time(&w, "createdAt");
        put_origin(&w, c);
        if (finish_word(reply->finish))
                jsonw_field_cstr(&w, "finishReason", finish_word(reply->finish));
        buf_putc(out, ',');
        /* Without its opening brace; it always has a role. */
        buf_put(out, came.p + 1, came.n - 1);
}

int loop_store_reply(struct loop *c, const struct reply *reply, struct steno_error *err)
{
        struct buf json, came;
        buf_init(&json, MESSAGE_MAX);
        buf_init(&came, MESSAGE_MAX);
        int rc = put_reply(&came, reply, err);
        if (rc == 0) {
                put_stored_reply(c, reply, buf_str(&came), &json);
                rc = buf_check(&json, err);
        }
        if (rc == 0)
                rc = append(c, buf_str(&json), c->provider->format, 0, 0, err);
        if (rc == 0)
                tell_assistant(c, &json);
        buf_release(&came);
        buf_release(&json);
        return rc;
}

static void put_error(struct jsonw *w, const struct reply_fault *fault)
{
        jsonw_field_cstr(w, "code", fault->code);
        jsonw_field_cstr(w, "message", fault->message);
        jsonw_field_bool(w, "retryable", fault->retryable);
}

static void put_fault_message(struct jsonw *w, const char *id, const struct reply_fault *fault,
    struct str text, struct str thinking)
{
        jsonw_object(w);
        jsonw_field_cstr(w, "id", id);
        jsonw_field_cstr(w, "role", "assistant");
        jsonw_field_str(w, "content", text);
        if (thinking.n) {
                jsonw_field_str(w, "reasoning_content", thinking);
        }
        put_time(w, "createdAt");
        jsonw_field_cstr(w, "partType", "error");
        jsonw_key(w, "error");
        jsonw_object(w);
        put_error(w, fault);
        jsonw_object_end(w);
        if (text.n == 0) { /* an empty assistant message is refused by providers */
                jsonw_field_bool(w, "includeInContext", false);
        }
}

int loop_store_fault(struct loop *c, const char *reason, const struct reply_fault *fault,
    struct str text, struct str thinking, struct steno_error *err)
{
        struct buf json;
        buf_init(&json, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&json);
        put_fault_message(&w, c->message_id, fault, text, thinking);
        put_origin(&w, c);
        jsonw_object_end(&w);
        int rc = append_buf(c, &json, err);
        if (rc == 0) {
                tell_assistant(c, &json);
                struct event e;
                journal_event_begin(&e, &c->journal, STENO_EVENT_RUN_ERROR, c->message_id);
                put_error(&e.w, fault);
                journal_event_end(&e, &c->journal);
                rc = journal_check(&c->journal, err);
        }
        c->reason = reason;
        c->fault = *fault;
        buf_release(&json);
        return rc;
}

int loop_store_end(struct loop *c, const char *reason, const char *code, const char *words,
    struct steno_error *err)
{
        struct reply_fault fault = {0};
        struct str none = {NULL, 0};
        reply_fault_set(&fault, code, true, "%s", words);
        loop_make_id("msg_", c->message_id);
        return loop_store_fault(c, reason, &fault, none, none, err);
}

/* ---- tools ---- */

char *loop_refusal(const struct loop *c, const struct reply_call *call, const struct tool *tool,
    const char *text, enum call_ending ending, size_t *n)
{
        struct buf json;
        char id[CHAT_ID];
        buf_init(&json, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&json);
        loop_make_id("msg_", id);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", id);
        jsonw_field_cstr(&w, "role", "tool");
        jsonw_field_cstr(&w, "tool_call_id", call->id);
        jsonw_field_cstr(&w, "toolName", call->name);
        if (tool && tool->server) {
                jsonw_field_cstr(&w, "serverName", tool->server);
        }
        jsonw_field_cstr(&w, "content", text);
        jsonw_field_bool(&w, "isError", true);
        if (ending)
                jsonw_field_bool(&w, members_ending_name(ending), true);
        jsonw_field_u64(&w, "duration", 0);
        put_time(&w, "createdAt");
        put_origin(&w, c);
        jsonw_object_end(&w);
        char *z = buf_take(&json, n);
        buf_release(&json);
        return z;
}

static void put_how_it_ended(
    struct buf *out, const struct tool_result *r, int64_t ms, bool silent, char last)
{
        const char *name = r->signal ? sigabbrev_np(r->signal) : NULL;
        if (!silent && last != '\n')
                buf_putc(out, '\n');
        if (name)
                buf_printf(out, "[killed by SIG%s", name);
        else if (r->signal)
                buf_printf(out, "[killed by signal %d", r->signal);
        else
                buf_printf(out, "[exit %lld", (long long)r->exit_code);
        if (ms < 1000)
                buf_printf(out, " after %lld ms", (long long)ms);
        else
                buf_printf(out, " after %.1f s", (double)ms / 1000);
        buf_puts(out, silent ? ", no output]" : "]");
}

/* A stub has the exit code already, and an output without a failure needs none. */
static bool needs_note(struct str content, const struct tool_result *result)
{
        bool failed = result->signal || result->exit_code;
        return (content.n == 0 || failed) && !str_starts(content, "[INCOMPLETE: ");
}

/* The message with `content` in the place of `at`. NULL: out of memory. */
static char *with_content(const struct json *j, json_ref at, struct str content, size_t *n)
{
        struct json_edits edits;
        struct buf string, out;
        json_edits_init(&edits);
        buf_init(&string, MESSAGE_MAX);
        buf_init(&out, MESSAGE_MAX);
        json_put_string(&string, content);
        json_edit_replace(&edits, j, at, buf_str(&string));
        int rc = json_edits_apply(&edits, j, 0, &out);
        char *z = rc || string.failed || out.failed ? NULL : buf_take(&out, n);
        buf_release(&out);
        buf_release(&string);
        json_edits_release(&edits);
        return z;
}

int loop_note_exit(char **message, size_t *n, const struct tool_result *result, int64_t ms,
    struct steno_error *err)
{
        struct json j;
        struct buf content;
        json_init(&j);
        buf_init(&content, MESSAGE_MAX);
        int rc = json_parse(&j, *message, *n, NULL, err);
        json_ref at = rc ? JSON_NONE : json_get(&j, 0, "content");
        if (rc == 0)
                json_string(&j, at, &content, NULL);
        if (rc == 0 && needs_note(buf_str(&content), result)) {
                put_how_it_ended(&content, result, ms, content.n == 0,
                    content.n ? content.p[content.n - 1] : '\n');
                size_t size = 0;
                char *noted =
                    content.failed ? NULL : with_content(&j, at, buf_str(&content), &size);
                if (noted) {
                        steno_free(*message);
                        *message = noted;
                        *n = size;
                } else {
                        rc = error_nomem(err);
                }
        }
        buf_release(&content);
        json_release(&j);
        return rc;
}

/* A member of `message` under another name, where it has it. */
static void copy(struct jsonw *w, const struct json *j, const char *from, const char *to)
{
        json_ref r = json_get(j, 0, from);
        if (r == JSON_NONE)
                return;
        jsonw_field_copy(w, to, j, r);
}

/* The state of a call whose result is `j`, as the view `chat` has it. */
static const char *state_of(const struct json *j, bool is_error)
{
        for (int i = ENDING_OWN + 1; i < ENDING_COUNT; i++)
                if (json_bool(j, json_get(j, 0, members_ending_name(i)), false))
                        return members_ending_name(i);
        return is_error ? "error" : "complete";
}

/* The event of a result, whose message is `j`. */
static int put_result(
    struct loop *c, const struct reply_call *call, const struct tool *tool, const struct json *j)
{
        struct event e;
        bool is_error = json_bool(j, json_get(j, 0, "isError"), false);
        journal_event_begin(&e, &c->journal,
            is_error ? STENO_EVENT_TOOL_CALL_ERROR : STENO_EVENT_TOOL_CALL_COMPLETE, c->message_id);
        jsonw_field_cstr(&e.w, "toolCallId", call->id);
        jsonw_field_cstr(&e.w, "toolName", call->name);
        if (tool && tool->server)
                jsonw_field_cstr(&e.w, "serverName", tool->server);
        jsonw_field_cstr(&e.w, "state", state_of(j, is_error));
        copy(&e.w, j, "content", "content");
        if (is_error)
                copy(&e.w, j, "content", "error");
        copy(&e.w, j, "ref", "ref");
        copy(&e.w, j, "exitCode", "exitCode");
        copy(&e.w, j, "duration", "duration");
        copy(&e.w, j, "id", "resultId");
        return journal_event_end(&e, &c->journal);
}

static int tell_result(struct loop *c, const struct reply_call *call, const struct tool *tool,
    struct str message, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, message.p, message.n, NULL, err);
        if (rc == 0) {
                rc = put_result(c, call, tool, &j);
                if (rc)
                        journal_check(&c->journal, err);
        }
        json_release(&j);
        return rc;
}

int loop_store_result(struct loop *c, const struct reply_call *call, const struct tool *tool,
    struct str message, struct steno_error *err)
{
        /* Whether the output becomes a file was decided when it was written; a note that was added
         * does not change this.
         */
        int rc = append(c, message, NULL, STENO_DECIDED, c->caller, err);
        if (rc)
                return rc;
        if (c->opt.on_tool_message)
                c->opt.on_tool_message(c->opt.ctx, message.p, message.n);
        return tell_result(c, call, tool, message, err);
}
