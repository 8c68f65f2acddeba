/*
 * loop_calls.c - the tool calls of one reply: permission, dispatch, the tool's work, the outcome.
 *
 * The loop guarantees this order for each call: the dispatch is on the disk before the tool starts,
 * and the outcome with the whole message is on the disk before any event about it. Messages are
 * appended to the log in the order of the calls, whichever tool was faster.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "loop/loop.h"
#include "model/members.h"

#define CALLS_AT_ONCE 8
#define NAME_SHOWN 200 /* bytes of a name that no tool has */
#define TOLD_MAX 200   /* names of tools */

enum slot_state {
        SLOT_WAITING,
        SLOT_RUNNING,
        SLOT_DONE, /* its message is there, and its outcome is stored */
        SLOT_TOLD,
};

struct slot {
        struct loop *c;
        const struct reply_call *call;
        const struct tool *tool;
        enum slot_state state;
        struct job *job;
        struct steno_output *output;
        unsigned repeats; /* how often this very call came in a row, this one included */
        struct buf words; /* why it is not to be run; empty: it may */
        enum call_ending ending;
        int64_t started; /* time_monotonic_ms() */
        int64_t ended;   /* the same */
        char invoked_at[TIME_TEXT];
        char *message;
        size_t message_n;
};

struct work {
        struct loop *c;
        struct slot *slots;
        size_t count;
        size_t running;
        size_t told;
        int64_t stopped_at; /* 0: nobody said stop */
};

/* ---- calls that are not run ---- */

static int refuse(struct work *w, struct slot *s, struct steno_error *err)
{
        const char *text = buf_cstr(&s->words);
        if (text)
                s->message = loop_refusal(w->c, s->call, s->tool, text, s->ending, &s->message_n);
        if (!s->message)
                return error_nomem(err);
        s->state = SLOT_DONE;
        return 0;
}

/* Both the name and the number of tools may be as large as others like. */
static void put_unknown(const struct loop *c, const char *name, struct buf *out)
{
        size_t n = strlen(name), told = c->tools.count < TOLD_MAX ? c->tools.count : TOLD_MAX;
        buf_puts(out, "There is no tool named \"");
        buf_put(out, name, text_floor(name, n, n < NAME_SHOWN ? n : NAME_SHOWN));
        buf_puts(out, n > NAME_SHOWN ? "...\"" : "\"");
        if (n == 0)
                buf_puts(out, ": the call has no name, or it is not valid JSON");
        buf_puts(out, ". It was not run. The tools are: ");
        for (size_t i = 0; i < told; i++) {
                if (i)
                        buf_puts(out, ", ");
                buf_puts(out, c->tools.list[i].name);
        }
        if (told < c->tools.count)
                buf_printf(out, " and %zu more", c->tools.count - told);
        buf_puts(out, told ? "." : "none.");
}

/* The same call again and again: counted over the whole run, broken by any other call. */
static int count_repeats(struct loop *c, struct slot *s)
{
        char key[65];
        int rc = toolset_approval(str_of(s->call->name), buf_str(&s->call->args), key);
        if (rc)
                return rc;
        c->repeats = strcmp(key, c->repeat_key) == 0 ? c->repeats + 1 : 1;
        memcpy(c->repeat_key, key, sizeof(key));
        s->repeats = c->repeats;
        return 0;
}

/* Words for the model when a call must not run, or nothing. */
static void object(const struct work *w, struct slot *s)
{
        const struct loop *c = w->c;
        struct buf *out = &s->words;
        if (s->call->state == CALL_CUT) {
                s->ending = ENDING_CUT;
                buf_puts(out,
                    "Not run: the reply reached its length limit in this call, so that its "
                    "arguments are cut off or may be. Call the tool again with shorter arguments, "
                    "or in several calls.");
        } else if (s->call->state == CALL_FILTERED) {
                buf_puts(out,
                    "Not run: the endpoint's content filter ended the reply in which this "
                    "call stands.");
        } else if (steno_stop_requested(c->opt.stop)) {
                s->ending = ENDING_INTERRUPTED;
                buf_puts(out, "[interrupted] The run was stopped before this call was started. It "
                              "had no effect.");
        } else if (c->deadline && time_monotonic_ms() >= c->deadline) {
                s->ending = ENDING_INTERRUPTED;
                buf_puts(out, "[interrupted] The run's time limit passed before this call was "
                              "started. It had no effect.");
        } else if (!s->tool) {
                put_unknown(c, s->call->name, out);
        } else if (s->call->state == CALL_INVALID) {
                buf_puts(out, "Not run: the arguments are not a JSON object. Call the tool again "
                              "with arguments that follow its schema.");
        } else if (s->repeats > CHAT_REPEATS_CORRECTED) {
                buf_printf(out,
                    "Not run: this is call number %u with exactly the same arguments, and the "
                    "answer is above. Use it, or do something else. The run ends at number %d.",
                    s->repeats, CHAT_REPEATS_STOPPED);
        }
}

/* ---- permission ---- */

static int tell_approval(struct work *w, struct slot *s,
    const struct steno_permission_request *request, const char *state, struct steno_error *err)
{
        struct journal *j = &w->c->journal;
        struct event e;
        journal_event_begin(&e, j, STENO_EVENT_TOOL_CALL_APPROVAL, w->c->message_id);
        jsonw_field_cstr(&e.w, "toolCallId", s->call->id);
        jsonw_field_cstr(&e.w, "toolName", s->tool->name);
        jsonw_field_str(&e.w, "arguments", str_span(request->args, request->args_n));
        jsonw_field_cstr(&e.w, "approval", request->approval);
        jsonw_field_cstr(&e.w, "state", state);
        if (strcmp(state, "pending") == 0) {
                jsonw_field_raw(&e.w, "limits", str_of(request->limits));
                if (request->environment)
                        jsonw_field_raw(&e.w, "environment", str_of(request->environment));
        }
        journal_event_end(&e, j);
        return journal_check(j, err);
}

static struct str args_of(const struct reply_call *call)
{
        return call->args.n ? buf_str(&call->args) : STR("{}");
}

static uint64_t limit_of(const struct loop *c, const struct tool *tool)
{
        return tool->limit_ms ? tool->limit_ms : c->opt.tool_ms;
}

/* What will hold for the call, so that whoever is asked knows it. */
static int put_terms(const struct work *w, const struct slot *s, struct str args,
    struct buf *limits, struct tool_terms *t, struct steno_error *err)
{
        t->ms = limit_of(w->c, s->tool);
        int rc = s->tool->terms ? s->tool->terms(s->tool, args, t, err) : 0;
        struct jsonw j = jsonw_to(limits);
        jsonw_object(&j);
        jsonw_field_u64(&j, "seconds", (t->ms + 999) / 1000);
        if (t->output_bytes)
                jsonw_field_u64(&j, "outputBytes", t->output_bytes);
        if (t->memory_bytes)
                jsonw_field_u64(&j, "memoryBytes", t->memory_bytes);
        if (t->cpu_seconds)
                jsonw_field_u64(&j, "cpuSeconds", t->cpu_seconds);
        jsonw_object_end(&j);
        return rc ? rc : buf_check(limits, err);
}

static int ask_somebody(struct work *w, struct slot *s, struct steno_permission_request *request,
    int *decision, char reason[240], struct steno_error *err)
{
        const struct steno_loop_options *opt = &w->c->opt;
        struct tool_terms terms = {0};
        struct buf limits;
        buf_init(&limits, 4 * KIB);
        buf_init(&terms.environment, 64 * KIB);
        int rc = put_terms(w, s, str_span(request->args, request->args_n), &limits, &terms, err);
        request->limits = buf_cstr(&limits);
        request->environment = terms.environment.n ? buf_cstr(&terms.environment) : NULL;
        if (rc == 0)
                rc = loop_mail_expect(w->c, request, err);
        if (rc)
                goto out;
        rc = tell_approval(w, s, request, "pending", err);
        if (rc) {
                loop_mail_answer(w->c);
                goto out;
        }
        *decision = STENO_ASK;
        if (opt->ask)
                *decision = opt->ask(opt->ask_ctx, request, reason);
        else
                snprintf(reason, 240, "nobody was there to ask");
        /* A person who has decided here has been told so. Another answer that comes in this moment
         * must not undo that: whoever sent it learns that it was too late. */
        int elsewhere = loop_mail_answer(w->c);
        if (*decision == STENO_ASK && elsewhere != STENO_ASK) {
                *decision = elsewhere;
                reason[0] = '\0';
        }
        if (*decision == STENO_ASK)
                *decision = STENO_DENY;
        rc = tell_approval(w, s, request, *decision == STENO_ALLOW ? "allowed" : "denied", err);
out:
        buf_release(&terms.environment);
        buf_release(&limits);
        return rc;
}

/* 0 with *allowed; `reason` holds words when it is denied. */
static int permit(
    struct work *w, struct slot *s, bool *allowed, char reason[240], struct steno_error *err)
{
        const struct steno_loop_options *opt = &w->c->opt;
        char approval[65], repeat[65];
        *allowed = true;
        reason[0] = '\0';
        if (s->tool->flags & TOOL_PUBLIC)
                return 0;
        struct str args = args_of(s->call);
        if (toolset_approval(str_of(s->tool->name), args, repeat) != 0 ||
            toolset_call_approval(steno_run_id(w->c->run), w->c->turns, s->call->id,
                str_of(s->tool->name), args, approval) != 0)
                return error_nomem(err);
        struct steno_permission_request request = {
            .size = sizeof(request),
            .run = steno_run_id(w->c->run),
            .call_id = s->call->id,
            .tool = s->tool->name,
            .server = s->tool->server,
            .raw_name = s->tool->raw_name ? s->tool->raw_name : s->tool->name,
            .args = args.p,
            .args_n = args.n,
            .approval = approval,
            .repeat = repeat,
            .stop = opt->stop,
        };
        int decision = opt->permit ? opt->permit(opt->permit_ctx, &request, reason) : STENO_ASK;
        if (decision == STENO_ASK) {
                int rc = ask_somebody(w, s, &request, &decision, reason, err);
                if (rc)
                        return rc;
        }
        *allowed = decision == STENO_ALLOW;
        return 0;
}

/* ---- running ---- */

static int64_t deadline_of(const struct loop *c, const struct tool *tool, int64_t now)
{
        int64_t end = now + (int64_t)limit_of(c, tool);
        return c->deadline && c->deadline < end ? c->deadline : end;
}

/* The output became a file. Errors are ignored on purpose: the next event meets them as well. */
static void note_output(void *ctx, const char *ref)
{
        struct slot *s = ctx;
        struct buf data;
        buf_init(&data, 64 * KIB);
        struct jsonw w = jsonw_to(&data);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "call", s->call->id);
        jsonw_field_cstr(&w, "ref", ref);
        jsonw_object_end(&w);
        if (!data.failed)
                steno_run_event(s->c->run, event_name(STENO_EVENT_OUTPUT), data.p, data.n,
                    STENO_PROCESS, NULL, NULL);
        buf_release(&data);
}

static int begin_output(struct work *w, struct slot *s, struct steno_error *err)
{
        struct steno_output_options opt = {
            .size = sizeof(opt),
            .tool = s->tool->name,
            .call_id = s->call->id,
            .server = s->tool->server,
            .terminal = s->tool->flags & TOOL_TERMINAL,
            .context_tools = toolset_find(&w->c->tools, STR("context_read")) != NULL,
            .on_ref = note_output,
            .on_ref_ctx = s,
        };
        if (s->tool->flags & TOOL_INLINE) {
                opt.max_inline_chars = MESSAGE_MAX;
                opt.max_inline_bytes = MESSAGE_MAX;
        }
        return steno_output_begin(w->c->opt.conv, &opt, &s->output, err);
}

static int tell_running(struct work *w, struct slot *s, struct steno_error *err)
{
        struct journal *j = &w->c->journal;
        struct event e;
        journal_event_begin(&e, j, STENO_EVENT_TOOL_CALL_RUNNING, w->c->message_id);
        jsonw_field_cstr(&e.w, "toolCallId", s->call->id);
        jsonw_field_cstr(&e.w, "toolName", s->tool->name);
        jsonw_field_cstr(&e.w, "invokedAt", s->invoked_at);
        journal_event_end(&e, j);
        return journal_check(j, err);
}

static int start(struct work *w, struct slot *s, struct steno_error *err)
{
        struct loop *c = w->c;
        struct str args = args_of(s->call);
        int rc = begin_output(w, s, err);
        if (rc)
                return rc;
        rc = steno_run_dispatch(c->run, c->turns, s->call->id, s->tool->name, args.p, args.n, err);
        if (rc)
                return rc;
        const struct env *env = env_real();
        s->started = time_monotonic_ms();
        time_format(env->now(env), s->invoked_at);
        rc = tell_running(w, s, err);
        if (rc)
                return rc;
        struct job_plan plan = {
            .tool = s->tool,
            .id = s->call->id,
            .args = args,
            .run_id = steno_run_id(c->run),
            .request = c->turns,
            .conv = c->opt.conv,
            .deadline = deadline_of(c, s->tool, s->started),
            .output = s->output,
            .journal = &c->journal,
            .message_id = c->message_id,
        };
        rc = job_start(c->board, &plan, &s->job, err);
        if (rc)
                return rc;
        s->state = SLOT_RUNNING;
        w->running++;
        return 0;
}

/* ---- outcomes ---- */

/* May a tool's further members be put into its message? A member that is set already may not come
 * twice: readers would disagree about which one counts. */
static bool extra_ok(const struct buf *extra)
{
        struct buf object;
        struct json j;
        buf_init(&object, MESSAGE_MAX);
        json_init(&j);
        buf_putc(&object, '{');
        buf_put_str(&object, buf_str(extra));
        buf_putc(&object, '}');
        bool ok = !object.failed && json_parse(&j, object.p, object.n, NULL, NULL) == 0;
        for (json_ref k = ok ? json_child(&j, 0) : JSON_NONE; ok && k != JSON_NONE;
             k = json_next_key(&j, 0, k))
                ok = !members_has(members_find(&j, k), MEMBER_BY_OUTPUT | MEMBER_BY_LOOP);
        json_release(&j);
        buf_release(&object);
        return ok;
}

static void put_fields(
    const struct work *w, const struct slot *s, bool is_error, bool left_behind, struct buf *out)
{
        const struct job *job = s->job;
        struct jsonw j = jsonw_to(out);
        jsonw_object(&j);
        jsonw_field_bool(&j, "isError", is_error);
        if (s->ending)
                jsonw_field_bool(&j, members_ending_name(s->ending), true);
        jsonw_field_i64(&j, "duration", s->ended - s->started);
        jsonw_field_cstr(&j, "invokedAt", s->invoked_at);
        if (job->steps.n) {
                jsonw_key(&j, "steps");
                jsonw_array(&j);
                buf_put_str(out, buf_str(&job->steps));
                jsonw_array_end(&j);
        }
        if (!left_behind && (job->result.has_exit || job->result.signal)) {
                jsonw_key(&j, "exitCode"); /* as a shell has it */
                jsonw_i64(
                    &j, job->result.signal ? 128 + job->result.signal : job->result.exit_code);
        }
        if (!left_behind && job->result.signal) {
                jsonw_field_i64(&j, "signal", job->result.signal);
        }
        jsonw_field_cstr(&j, "mode", w->c->opt.mode);
        jsonw_field_cstr(&j, "runId", steno_run_id(w->c->run));
        if (!left_behind && job->result.extra.n && extra_ok(&job->result.extra)) {
                buf_putc(out, ',');
                buf_put_str(out, buf_str(&job->result.extra));
        }
        jsonw_object_end(&j);
}

/* The last line of an output whose tool did not come to its own end; empty when it did. */
static void put_end(const struct work *w, struct slot *s, bool left_behind, struct buf *out)
{
        const struct job *job = s->job;
        const char *lead = job->written ? "\n" : "";
        int rc = left_behind ? STENO_ETIMEOUT : job->rc;
        if (rc == 0 && !job->result.signal)
                return;
        bool stopped = steno_stop_requested(w->c->opt.stop);
        if (rc == 0 && !stopped) /* ended by something else, which the tool has reported */
                return;
        if (stopped)
                s->ending = ENDING_INTERRUPTED;
        if (stopped)
                buf_printf(out,
                    "%s[interrupted] The run was stopped while this call was running; what it had "
                    "done by then stays done.",
                    lead);
        else if (rc == STENO_ETIMEOUT)
                buf_printf(out,
                    "%s[timed out] The tool was ended after %.1f s; what it had done by then stays "
                    "done.",
                    lead, (double)(time_monotonic_ms() - s->started) / 1000.0);
        else
                buf_printf(out, "%s[failed] %s", lead,
                    job->err.msg[0] ? job->err.msg : steno_code_name(rc));
}

/* The tool has ended or was given up: stores its message as the call's outcome. */
static int settle(struct work *w, struct slot *s, bool left_behind, struct steno_error *err)
{
        struct buf end, fields;
        job_let_go(s->job);
        s->ended = time_monotonic_ms();
        w->running--;
        s->state = SLOT_WAITING; /* until its outcome is stored */
        buf_init(&end, 4 * KIB);
        buf_init(&fields, MESSAGE_MAX);
        int rc = s->job->store_failed.code;
        if (rc) {
                if (err)
                        *err = s->job->store_failed;
                goto out;
        }
        put_end(w, s, left_behind, &end);
        if (end.n)
                rc = steno_output_write(s->output, end.p, end.n, err);
        if (rc && rc != STENO_EQUOTA) /* the output says so itself */
                goto out;
        put_fields(
            w, s, end.n || s->job->result.is_error || s->job->quota_reached, left_behind, &fields);
        const char *z = buf_cstr(&fields);
        rc = z ? steno_output_message(s->output, z, &s->message, &s->message_n, err)
               : error_nomem(err);
        const struct tool_result *result = &s->job->result;
        if (rc == 0 && end.n == 0 && (result->has_exit || result->signal))
                rc = loop_note_exit(&s->message, &s->message_n, result, s->ended - s->started, err);
        if (rc == 0)
                rc = steno_run_outcome(
                    w->c->run, w->c->turns, s->call->id, s->message, s->message_n, err);
        if (rc == 0)
                s->state = SLOT_DONE;
out:
        buf_release(&end);
        buf_release(&fields);
        return rc;
}

/* Messages reach the log, and listeners, in the order of the calls. */
static int publish(struct work *w, struct steno_error *err)
{
        while (w->told < w->count && w->slots[w->told].state == SLOT_DONE) {
                struct slot *s = &w->slots[w->told];
                struct str message = str_span(s->message, s->message_n);
                int rc = loop_store_result(w->c, s->call, s->tool, message, err);
                if (rc)
                        return rc;
                s->state = SLOT_TOLD;
                w->told++;
        }
        return 0;
}

/* When a job that does not return is given up. */
static int64_t patience(const struct work *w, const struct slot *s)
{
        int64_t end = s->job->call.deadline + JOB_GRACE_MS;
        if (w->stopped_at && w->stopped_at + JOB_GRACE_MS < end)
                end = w->stopped_at + JOB_GRACE_MS;
        return end;
}

/* Waits until at most `left` calls are running. */
static int wait_for(struct work *w, size_t left, struct steno_error *err)
{
        while (w->running > left) {
                int64_t until = 0;
                for (size_t i = 0; i < w->count; i++)
                        if (w->slots[i].state == SLOT_RUNNING &&
                            (until == 0 || patience(w, &w->slots[i]) < until))
                                until = patience(w, &w->slots[i]);
                job_wait(w->c->board, w->c->opt.stop, until);
                if (!w->stopped_at && steno_stop_requested(w->c->opt.stop))
                        w->stopped_at = time_monotonic_ms();
                for (size_t i = 0; i < w->count; i++) {
                        struct slot *s = &w->slots[i];
                        if (s->state != SLOT_RUNNING)
                                continue;
                        bool back = job_returned(s->job);
                        if (!back && time_monotonic_ms() < patience(w, s))
                                continue;
                        int rc = settle(w, s, !back, err);
                        if (rc)
                                return rc;
                }
                int rc = publish(w, err);
                if (rc)
                        return rc;
        }
        return 0;
}

/* ---- one call after the other ---- */

static int tell_start(struct work *w, struct slot *s, struct steno_error *err)
{
        struct journal *j = &w->c->journal;
        struct event e;
        journal_event_begin(&e, j, STENO_EVENT_TOOL_CALL_START, w->c->message_id);
        jsonw_field_cstr(&e.w, "toolCallId", s->call->id);
        jsonw_field_cstr(&e.w, "toolName", s->call->name);
        if (s->tool && s->tool->server) {
                jsonw_field_cstr(&e.w, "serverName", s->tool->server);
        }
        jsonw_field_str(&e.w, "arguments", buf_str(&s->call->args));
        journal_event_end(&e, j);
        return journal_check(j, err);
}

/* Decides about one call. */
static int decide(struct work *w, struct slot *s, struct steno_error *err)
{
        char reason[240];
        int rc = tell_start(w, s, err);
        if (rc == 0 && count_repeats(w->c, s) != 0)
                rc = error_nomem(err);
        if (rc)
                return rc;
        object(w, s);
        if (s->words.n)
                return 0;
        bool allowed;
        rc = permit(w, s, &allowed, reason, err);
        if (rc == 0 && !allowed)
                object(w, s); /* a stop that ended the question is not a denial */
        if (rc == 0 && !allowed && s->words.n == 0) {
                s->ending = ENDING_DENIED;
                buf_printf(&s->words, "Permission denied: the call was not run.%s%s",
                    reason[0] ? " Reason: " : "", reason);
        }
        return rc;
}

/* Makes room for the call beside those that run. */
static int make_room(struct work *w, const struct slot *s, bool *alone, struct steno_error *err)
{
        bool parallel = s->tool->flags & TOOL_PARALLEL;
        int rc = wait_for(w, parallel && !*alone ? CALLS_AT_ONCE - 1 : 0, err);
        *alone = !parallel;
        return rc;
}

static int begin_call(struct work *w, struct slot *s, bool *alone, struct steno_error *err)
{
        int rc = 0;
        if (s->words.n == 0) {
                rc = make_room(w, s, alone, err);
                object(w, s); /* a stop may have come while we asked and waited */
        }
        if (rc == 0)
                rc = s->words.n ? refuse(w, s, err) : start(w, s, err);
        return rc ? rc : publish(w, err);
}

/* After a failure of the store: tells running tools to stop, waits a moment, and leaves the others
 * behind. */
static void abandon(struct work *w)
{
        if (w->running)
                steno_stop_request(w->c->board->stop);
        int64_t until = time_monotonic_ms() + JOB_GRACE_MS;
        for (size_t i = 0; i < w->count; i++) {
                struct slot *s = &w->slots[i];
                while (s->state == SLOT_RUNNING && !job_returned(s->job) &&
                       time_monotonic_ms() < until)
                        job_wait(w->c->board, NULL, until);
                if (s->job)
                        job_let_go(s->job);
        }
}

int loop_carry_out(struct loop *c, const struct reply *reply, struct steno_error *err)
{
        struct work w = {.c = c, .count = reply->count};
        w.slots = calloc(reply->count, sizeof(*w.slots));
        if (!w.slots)
                return error_nomem(err);
        bool alone = false;
        int rc = 0;
        for (size_t i = 0; i < w.count; i++) {
                struct slot *s = &w.slots[i];
                s->c = c;
                s->call = &reply->calls[i];
                s->tool = toolset_find(&c->tools, str_of(s->call->name));
                buf_init(&s->words, 64 * KIB);
        }
        /* All calls are decided before the first one starts. Otherwise a tool could finish while we
         * wait for a person, and its result would not be stored meanwhile. */
        for (size_t i = 0; i < w.count && rc == 0; i++)
                rc = decide(&w, &w.slots[i], err);
        for (size_t i = 0; i < w.count && rc == 0; i++)
                rc = begin_call(&w, &w.slots[i], &alone, err);
        if (rc == 0)
                rc = wait_for(&w, 0, err);
        if (rc)
                abandon(&w);
        for (size_t i = 0; i < w.count; i++) {
                job_unref(w.slots[i].job);
                steno_output_free(w.slots[i].output);
                steno_free(w.slots[i].message);
                buf_release(&w.slots[i].words);
        }
        free(w.slots);
        return rc;
}
