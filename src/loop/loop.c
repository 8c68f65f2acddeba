/*
 * loop.c - steno_chat_loop: options, the order of turns, limits, and how a run ends.
 *
 * Whatever happens after the run has begun ends in finish(), so that run_finished is the last
 * event of every run whose store still takes writes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/optstruct.h"
#include "loop/loop.h"

/* ---- options ---- */

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
        return value ? value : fallback;
}

static int check_mode(const char *mode, struct steno_error *err)
{
        if (strcmp(mode, "chat") == 0 || strcmp(mode, "agent") == 0 || strcmp(mode, "run") == 0)
                return 0;
        return error_set(err, STENO_EINVAL, "mode \"%.40s\" is not chat, agent or run", mode);
}

static int check_json_object(const char *what, const char *json, struct steno_error *err)
{
        if (!json)
                return 0;
        size_t n = strlen(json);
        size_t at = strspn(json, " \t\r\n");
        if (json[at] == '{' && json_valid(json, n, NULL))
                return 0;
        return error_set(err, STENO_EINVAL, "%s is not a JSON object", what);
}

static int take_options(
    struct loop *c, const struct steno_loop_options *opt, struct steno_error *err)
{
        struct steno_loop_options *o = &c->opt;
        if (!opt || opt->size < offsetof(struct steno_loop_options, prompt))
                return error_set(err, STENO_EINVAL, "options: size is not set");
        int rc = optstruct_check(opt, sizeof *o, err);
        if (rc)
                return rc;
        memcpy(o, opt, opt->size < sizeof(*o) ? opt->size : sizeof(*o));
        if (!o->store || !o->conv)
                return error_set(
                    err, STENO_EINVAL, "options: a store and a conversation are needed");
        bool prompted = o->prompt || o->message_json;
        if (prompted == !!(o->flags & STENO_LOOP_CONTINUE) || (o->prompt && o->message_json))
                return error_set(
                    err, STENO_EINVAL, "options: give exactly one of prompt, message and continue");
        o->mode = o->mode ? o->mode : "chat";
        o->connect_ms = or_default(o->connect_ms, 10000);
        o->idle_ms = or_default(o->idle_ms, 120000);
        o->retries = o->retries == UINT32_MAX ? 0 : or_default(o->retries, 3);
        o->tool_ms = or_default(o->tool_ms, 600000);
        o->max_turns = or_default(o->max_turns, 50);
        rc = check_mode(o->mode, err);
        if (rc == 0)
                rc = check_json_object("params", o->params_json, err);
        if (rc == 0)
                rc = check_json_object("the message", o->message_json, err);
        return rc;
}

/* The base URL without what may be secret (user and password, a query) or makes no difference. */
static struct str endpoint(const struct loop *c)
{
        const char *url = c->opt.base_url ? c->opt.base_url : c->provider->base_url;
        struct str s = str_of(url ? url : c->provider->name);
        const char *query = memchr(s.p, '?', s.n);
        s.n = query ? (size_t)(query - s.p) : s.n;
        while (s.n && s.p[s.n - 1] == '/')
                s.n--;
        return s;
}

/* Replies are marked with the endpoint and the model that made them. */
static int name_source(struct loop *c, struct steno_error *err)
{
        struct str url = endpoint(c);
        const char *host = memmem(url.p, url.n, "://", 3);
        size_t scheme = host ? (size_t)(host - url.p) + 3 : 0;
        const char *at = memrchr(url.p + scheme, '@', url.n - scheme);
        size_t rest = at ? (size_t)(at - url.p) + 1 : scheme;
        int n = asprintf(&c->via, "%.*s%.*s %s", (int)scheme, url.p, (int)(url.n - rest),
            url.p + rest, c->opt.model ? c->opt.model : "");
        if (n < 0)
                c->via = NULL;
        return n < 0 ? error_nomem(err) : 0;
}

static int open_client(struct loop *c, struct steno_error *err)
{
        const struct steno_loop_options *o = &c->opt;
        int rc = provider_find(o->provider, &c->provider, err);
        if (rc == 0)
                rc = name_source(c, err);
        if (rc)
                return rc;
        if (loop_calls_are_text(c) && strcmp(c->provider->format, "openai") != 0)
                return error_set(err, STENO_EINVAL,
                    "calls as text need an OpenAI-compatible endpoint, not \"%.40s\"",
                    c->provider->name);
        if (c->provider->needs_model && (!o->model || !o->model[0]))
                return error_set(
                    err, STENO_EINVAL, "no model given: use --model NAME or set STENO_MODEL");
        struct provider_options p = {
            .base_url = o->base_url,
            .api_key = o->api_key,
            .script_json = o->script_json,
            .connect_ms = o->connect_ms,
            .idle_ms = o->idle_ms,
            .retries = o->retries,
        };
        return c->provider->open(c->provider, &p, &c->client, err);
}

static int offer_tools(struct loop *c, struct steno_error *err)
{
        c->offered = calloc(c->tools.count + 1, sizeof(*c->offered));
        if (!c->offered)
                return error_nomem(err);
        for (size_t i = 0; i < c->tools.count; i++) {
                const struct tool *t = &c->tools.list[i];
                c->offered[i] = (struct provider_tool){t->name, t->description, t->schema};
        }
        return 0;
}

static int make_tools(struct loop *c, struct steno_error *err)
{
        const struct steno_tools *given = c->opt.tools;
        for (size_t i = 0; given && i < given->count; i++) {
                int rc = toolset_add(&c->tools, &given->list[i], err);
                if (rc)
                        return rc;
        }
        int rc = 0;
        if (!(c->opt.flags & STENO_LOOP_NO_CONTEXT_TOOLS))
                rc = steno_tools_add_context(&c->tools, err);
        /* A stop may have come before the servers that have the tool were there. */
        const char *want = steno_stop_requested(c->opt.stop) ? NULL : c->opt.require_tool;
        if (rc == 0 && want && strcmp(want, "any") != 0 && !toolset_find(&c->tools, str_of(want)))
                rc = error_set(
                    err, STENO_EINVAL, "the required tool \"%.80s\" is not offered", want);
        return rc ? rc : offer_tools(c, err);
}

/* ---- limits ---- */

/* Stores the reason and ends the run when a limit is reached or a stop was requested. */
static int check_limits(struct loop *c, struct steno_error *err)
{
        char words[200];
        const struct steno_loop_options *o = &c->opt;
        if (steno_stop_requested(o->stop))
                return loop_store_end(c, "interrupted", "INTERRUPTED", "stopped on request", err);
        if (c->repeats >= CHAT_REPEATS_STOPPED) {
                snprintf(words, sizeof(words),
                    "stopped: the model made the same call %u times in a row", c->repeats);
                return loop_store_end(c, "repeated_calls", "LIMIT_REPEATED", words, err);
        }
        if (c->turns >= o->max_turns) {
                snprintf(words, sizeof(words), "stopped: the limit of %u model calls is reached",
                    o->max_turns);
                return loop_store_end(c, "max_turns", "LIMIT_TURNS", words, err);
        }
        if (c->deadline && time_monotonic_ms() >= c->deadline) {
                snprintf(words, sizeof(words), "stopped: the time limit of %.1f s is reached",
                    o->max_ms / 1000.0);
                return loop_store_end(c, "max_time", "LIMIT_TIME", words, err);
        }
        if (o->max_tokens && c->tokens >= o->max_tokens) {
                snprintf(words, sizeof(words), "stopped: %llu tokens were used, the limit is %llu",
                    (unsigned long long)c->tokens, (unsigned long long)o->max_tokens);
                return loop_store_end(c, "max_tokens", "LIMIT_TOKENS", words, err);
        }
        return 0;
}

/* ---- turns ---- */

static const char *reason_of(enum reply_finish finish)
{
        if (finish == FINISH_LENGTH)
                return "length";
        return finish == FINISH_FILTER ? "content_filter" : "stop";
}

/* A reply without calls is the last one. */
static int take_final(struct loop *c, const struct reply *reply, struct steno_error *err)
{
        buf_put_str(&c->final_text, buf_str(&reply->text));
        struct event e;
        int rc = loop_tell_final(c, buf_str(&reply->text), err);
        if (rc)
                return rc;
        c->reason = reason_of(reply->finish);
        if (c->opt.require_tool && !c->required_met) {
                c->reason = "required_tool";
                if (strcmp(c->opt.require_tool, "any") == 0)
                        reply_fault_set(&c->fault, "REQUIRED_TOOL", false,
                            "the model called no tool, though one was required");
                else
                        reply_fault_set(&c->fault, "REQUIRED_TOOL", false,
                            "the model did not call the required tool \"%s\"", c->opt.require_tool);
                journal_event_begin(&e, &c->journal, STENO_EVENT_RUN_ERROR, c->message_id);
                jsonw_field_cstr(&e.w, "code", c->fault.code);
                jsonw_field_cstr(&e.w, "message", c->fault.message);
                jsonw_field_bool(&e.w, "retryable", false);
                journal_event_end(&e, &c->journal);
        }
        return journal_check(&c->journal, err);
}

static int take_turns(struct loop *c, struct steno_error *err)
{
        struct reply reply;
        reply_init(&reply);
        int rc = 0;
        while (rc == 0 && !c->reason) {
                rc = check_limits(c, err);
                if (rc || c->reason)
                        break;
                rc = loop_turn(c, &reply, err);
                if (rc || c->reason)
                        break;
                c->nudge = false;
                rc = loop_store_reply(c, &reply, err);
                if (rc == STENO_ELIMIT)
                        rc = loop_reply_too_large(c, &reply, err);
                if (rc || c->reason)
                        break;
                if (reply.count)
                        loop_note_caller(c);
                rc = reply.count ? loop_carry_out(c, &reply, err) : take_final(c, &reply, err);
        }
        reply_release(&reply);
        return rc;
}

/* ---- the run ---- */

static int begin_run(struct loop *c, struct steno_error *err)
{
        int rc = steno_run_start(c->run, err);
        if (rc)
                return rc;
        c->begun = true;
        journal_init(&c->journal, c->run);
        c->journal.on_event = c->opt.on_event;
        c->journal.ctx = c->opt.ctx;
        c->deadline = c->opt.max_ms ? time_monotonic_ms() + c->opt.max_ms : 0;
        return steno_conv_last_seq(c->opt.conv, &c->before, err);
}

/* Whoever hears that the run has begun may forget the user's message, so that is stored by then. */
static int tell_started(struct loop *c, struct steno_error *err)
{
        struct event e;
        journal_event_begin(&e, &c->journal, STENO_EVENT_RUN_STARTED, NULL);
        jsonw_field_cstr(&e.w, "mode", c->opt.mode);
        jsonw_field_cstr(&e.w, "model", c->opt.model);
        jsonw_field_cstr(&e.w, "conversation", steno_conv_id(c->opt.conv));
        journal_event_end(&e, &c->journal);
        return journal_check(&c->journal, err);
}

static void put_end(struct jsonw *w, const struct loop *c)
{
        jsonw_field_cstr(w, "reason", c->reason);
        jsonw_field_u64(w, "turns", c->turns);
        jsonw_key(w, "usage");
        jsonw_object(w);
        jsonw_field_u64(w, "totalTokens", c->tokens);
        jsonw_object_end(w);
}

/* `rc` is a failure of the store, or 0: then the run has its reason. */
static int finish(struct loop *c, int rc, struct steno_error *err)
{
        struct event e;
        if (rc) {
                c->reason = "error";
                reply_fault_set(&c->fault, "STORE_ERROR", false, "%s", err->msg);
                journal_event_begin(&e, &c->journal, STENO_EVENT_RUN_ERROR, NULL);
                jsonw_field_cstr(&e.w, "code", c->fault.code);
                jsonw_field_cstr(&e.w, "message", c->fault.message);
                jsonw_field_bool(&e.w, "retryable", false);
                journal_event_end(&e, &c->journal);
        }
        journal_event_begin(&e, &c->journal, STENO_EVENT_RUN_FINISHED, NULL);
        put_end(&e.w, c);
        journal_event_end(&e, &c->journal);
        return rc ? rc : journal_check(&c->journal, err);
}

/* The calls of a run that ended without its final_message. */
static void put_calls(struct jsonw *w, struct loop *c)
{
        struct steno_error ignored;
        struct buf calls;
        buf_init(&calls, MESSAGE_MAX);
        if (loop_put_calls(c, &calls, &ignored) == 0 && !calls.failed)
                jsonw_field_raw(w, "toolCalls", buf_str(&calls));
        buf_release(&calls);
}

static int put_result(struct loop *c, char **result, struct steno_error *err)
{
        struct buf json;
        buf_init(&json, 0);
        struct jsonw w = jsonw_to(&json);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "runId", steno_run_id(c->run));
        if (c->message_id[0]) {
                jsonw_field_cstr(&w, "messageId", c->message_id);
        }
        put_end(&w, c);
        if (c->final_text.n) {
                jsonw_field_str(&w, "text", buf_str(&c->final_text));
        }
        if (c->fault.code) {
                jsonw_key(&w, "error");
                jsonw_object(&w);
                jsonw_field_cstr(&w, "code", c->fault.code);
                jsonw_field_cstr(&w, "message", c->fault.message);
                jsonw_field_bool(&w, "retryable", c->fault.retryable);
                jsonw_object_end(&w);
        }
        if (!c->told_final && c->callers.n)
                put_calls(&w, c);
        jsonw_object_end(&w);
        int rc = buf_check(&json, err);
        if (rc == 0)
                *result = buf_take(&json, NULL);
        buf_release(&json);
        return rc;
}

static int run(struct loop *c, char **result, struct steno_error *err)
{
        int rc = begin_run(c, err);
        if (!c->begun)
                return rc;
        if (rc == 0 && !(c->opt.flags & STENO_LOOP_CONTINUE))
                rc = loop_store_user(c, err);
        int told = tell_started(c, rc ? NULL : err);
        rc = rc ? rc : told;
        if (rc == 0)
                rc = take_turns(c, err);
        rc = finish(c, rc, err);
        if (rc == 0 && result)
                rc = put_result(c, result, err);
        journal_release(&c->journal);
        return rc;
}

static int prepare(struct loop *c, const struct steno_loop_options *opt, struct steno_error *err)
{
        int rc = take_options(c, opt, err);
        if (rc == 0)
                rc = make_tools(c, err);
        if (rc == 0)
                rc = open_client(c, err);
        if (rc)
                return rc;
        c->board = job_board_new();
        if (!c->board)
                return error_nomem(err);
        /* From here on no other run changes the history, and none that died is incomplete. */
        rc = steno_run_claim(c->opt.conv, c->opt.run_id, c->opt.mode, &c->run, err);
        if (rc == 0)
                rc = loop_mail_begin(c, err);
        c->nudge = c->opt.flags & STENO_LOOP_CONTINUE;
        if (rc == 0 && c->nudge)
                rc = loop_check_continue(c, err);
        return rc;
}

int steno_chat_loop(const struct steno_loop_options *opt, char **result, struct steno_error *err)
{
        struct steno_error own = {0};
        /* run_error needs the message also when the caller does not want it. */
        struct steno_error *why = err ? err : &own;
        struct loop c = {0};
        toolset_init(&c.tools);
        buf_init(&c.callers, MESSAGE_MAX);
        buf_init(&c.shown, 0);
        buf_init(&c.final_text, MESSAGE_MAX);
        int rc = prepare(&c, opt, why);
        if (rc == 0)
                rc = run(&c, result, why);
        bool ran = c.run;
        loop_mail_end(&c);
        steno_run_close(c.run);
        /* The history is stored even if sealing fails; the next seal covers it as well. */
        if (ran && (c.opt.flags & STENO_LOOP_SEAL))
                steno_seal(c.opt.store, steno_conv_project(c.opt.conv), steno_conv_id(c.opt.conv),
                    NULL, NULL, NULL, NULL);
        job_board_unref(c.board);
        if (c.client)
                c.client->close(c.client);
        toolset_release(&c.tools);
        free(c.offered);
        free(c.via);
        buf_release(&c.callers);
        buf_release(&c.shown);
        buf_release(&c.final_text);
        return rc;
}
