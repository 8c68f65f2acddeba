/*
 * job.c - threads for tool calls (job.h).
 */
#include "loop/job.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

#define JOB_STACK (1 * MIB)

struct job_board *job_board_new(void)
{
        struct job_board *b = calloc(1, sizeof(*b));
        if (!b)
                return NULL;
        b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (b->fd < 0 || steno_stop_new(&b->stop, NULL) != 0) {
                if (b->fd >= 0)
                        close(b->fd);
                free(b);
                return NULL;
        }
        pthread_mutex_init(&b->lock, NULL);
        b->refs = 1;
        return b;
}

void job_board_unref(struct job_board *b)
{
        if (!b)
                return;
        pthread_mutex_lock(&b->lock);
        int left = --b->refs;
        pthread_mutex_unlock(&b->lock);
        if (left)
                return;
        pthread_mutex_destroy(&b->lock);
        steno_stop_free(b->stop);
        close(b->fd);
        free(b);
}

void job_unref(struct job *job)
{
        if (!job)
                return;
        struct job_board *b = job->board;
        pthread_mutex_lock(&b->lock);
        int left = --job->refs;
        pthread_mutex_unlock(&b->lock);
        if (left)
                return;
        pthread_mutex_destroy(&job->lock);
        buf_release(&job->steps);
        buf_release(&job->result.extra);
        free(job->ref);
        free(job->id);
        free(job->run_id);
        free(job->args);
        toolset_let_go(&job->tool);
        steno_conv_close(job->call.conv);
        free(job);
        job_board_unref(b);
}

/* ---- what the tool reaches ---- */

static int job_write(struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err)
{
        struct job *job = (struct job *)call;
        pthread_mutex_lock(&job->lock);
        int rc;
        if (job->over) {
                rc = error_set(err, STENO_EINTERRUPTED, "the call is over");
        } else {
                struct steno_error why = {0};
                rc = steno_output_write(job->output, p, n, &why);
                /* A quota ends the output and not the run. */
                job->quota_reached = job->quota_reached || rc == STENO_EQUOTA;
                if (rc && rc != STENO_EQUOTA) {
                        job->store_failed = why;
                        job->store_failed.code = rc;
                }
                job->written += rc ? 0 : n;
                if (rc && err)
                        *err = why;
        }
        pthread_mutex_unlock(&job->lock);
        return rc;
}

static void put_step(struct jsonw *w, struct str text, uint64_t done, uint64_t total)
{
        jsonw_field_str(w, "text", text);
        if (done || total) {
                jsonw_field_u64(w, "progress", done);
        }
        if (total) {
                jsonw_field_u64(w, "total", total);
        }
}

/* Is this one told? Then *text is as much of it as is told. */
static bool is_told(struct job *job, struct str *text)
{
        int64_t now = time_monotonic_ms();
        bool early = job->step_count < CALL_STEPS_TOLD && job->step_bytes < CALL_STEPS_BYTES;
        if (!early && now - job->step_at < CALL_STEP_LATER_MS)
                return false;
        if (!early && text->n > CALL_STEP_LATER_BYTES)
                text->n = text_floor(text->p, text->n, CALL_STEP_LATER_BYTES);
        job->step_at = now;
        job->step_bytes += text->n;
        return true;
}

static int tell_step(struct job *job, struct str text, uint64_t done, uint64_t total)
{
        struct event e;
        journal_event_begin(&e, job->journal, STENO_EVENT_TOOL_CALL_STEP, job->message_id);
        jsonw_field_cstr(&e.w, "toolCallId", job->id);
        put_step(&e.w, text, done, total);
        int rc = journal_event_end(&e, job->journal);
        if (job->step_count < CALL_STEPS_MAX) {
                if (job->steps.n)
                        buf_putc(&job->steps, ',');
                struct jsonw w = jsonw_to(&job->steps);
                jsonw_object(&w);
                put_step(&w, text, done, total);
                jsonw_object_end(&w);
        }
        job->step_count++;
        return rc;
}

static int job_step(struct steno_tool_call *call, const char *text, uint64_t done, uint64_t total,
    struct steno_error *err)
{
        struct job *job = (struct job *)call;
        struct str told = str_of(text ? text : "");
        int rc = 0;
        pthread_mutex_lock(&job->lock);
        if (job->over)
                rc = error_set(err, STENO_EINTERRUPTED, "the call is over");
        else if (is_told(job, &told) && (rc = tell_step(job, told, done, total)) != 0)
                error_set(err, rc, "the run's log cannot be written");
        pthread_mutex_unlock(&job->lock);
        return rc;
}

static const char *job_ref(struct steno_tool_call *call)
{
        struct job *job = (struct job *)call;
        pthread_mutex_lock(&job->lock);
        const char *ref = job->over ? NULL : steno_output_ref(job->output);
        if (ref && !job->ref)
                job->ref = strdup(ref);
        ref = job->ref;
        pthread_mutex_unlock(&job->lock);
        return ref;
}

static const struct tool_call_ops job_ops = {job_write, job_step, job_ref};

/* ---- the thread ---- */

static void *job_main(void *ctx)
{
        struct job *job = ctx;
        int rc = job->tool.call(&job->tool, &job->call, &job->result, &job->err);
        pthread_mutex_lock(&job->board->lock);
        job->rc = rc;
        job->returned = true;
        pthread_mutex_unlock(&job->board->lock);
        uint64_t one = 1;
        ssize_t wrote = write(job->board->fd, &one, sizeof(one));
        (void)wrote;
        job_unref(job);
        return NULL;
}

/* Signals belong to the program's own threads: a tool's must not be the one that is woken. */
static int start_thread(struct job *job)
{
        sigset_t all, old;
        pthread_attr_t attr;
        pthread_t thread;
        sigfillset(&all);
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attr, JOB_STACK);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        int rc = pthread_create(&thread, &attr, job_main, job);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
        return rc;
}

static struct job *job_new(struct job_board *b, const struct job_plan *plan)
{
        struct job *job = calloc(1, sizeof(*job));
        if (!job)
                return NULL;
        pthread_mutex_init(&job->lock, NULL);
        buf_init(&job->steps, MESSAGE_MAX);
        buf_init(&job->result.extra, MESSAGE_MAX);
        pthread_mutex_lock(&b->lock);
        b->refs++;
        pthread_mutex_unlock(&b->lock);
        job->board = b;
        job->refs = 1;
        job->tool = *plan->tool;
        toolset_hold(&job->tool);
        steno_conv_keep(plan->conv);
        job->call.conv = plan->conv;
        job->output = plan->output;
        job->journal = plan->journal;
        job->message_id = plan->message_id;
        job->id = strdup(plan->id);
        job->args = malloc(plan->args.n + 1);
        job->run_id = strdup(plan->run_id);
        if (!job->id || !job->args || !job->run_id) {
                job_unref(job);
                return NULL;
        }
        memcpy(job->args, plan->args.p, plan->args.n);
        job->args[plan->args.n] = '\0';
        job->call = (struct steno_tool_call){
            .id = job->id,
            .run_id = job->run_id,
            .request = plan->request,
            .args = str_span(job->args, plan->args.n),
            .conv = plan->conv,
            .stop = b->stop,
            .deadline = plan->deadline,
            .ops = &job_ops,
        };
        return job;
}

int job_start(
    struct job_board *b, const struct job_plan *plan, struct job **out, struct steno_error *err)
{
        struct job *job = job_new(b, plan);
        if (!job)
                return error_nomem(err);
        job->refs++;
        int rc = start_thread(job);
        if (rc) {
                job->refs--;
                job_unref(job);
                return error_sys(err, rc, "a thread for tool \"%s\"", plan->tool->name);
        }
        *out = job;
        return 0;
}

bool job_returned(struct job *job)
{
        pthread_mutex_lock(&job->board->lock);
        bool returned = job->returned;
        pthread_mutex_unlock(&job->board->lock);
        return returned;
}

void job_wait(struct job_board *b, const struct steno_stop *stop, int64_t until)
{
        bool passed_on = steno_stop_requested(b->stop);
        if (!passed_on && steno_stop_requested(stop)) {
                steno_stop_request(b->stop);
                return;
        }
        int64_t left = until ? until - time_monotonic_ms() : -1;
        if (until && left < 0)
                left = 0;
        struct pollfd p[2] = {
            {.fd = b->fd, .events = POLLIN},
            {.fd = passed_on ? -1 : steno_stop_fd(stop), .events = POLLIN},
        };
        poll(p, 2, left > INT32_MAX ? INT32_MAX : (int)left);
        uint64_t count;
        ssize_t got = read(b->fd, &count, sizeof(count));
        (void)got;
        if (steno_stop_requested(stop))
                steno_stop_request(b->stop);
}

void job_let_go(struct job *job)
{
        pthread_mutex_lock(&job->lock);
        job->over = true;
        job->output = NULL;
        job->journal = NULL;
        pthread_mutex_unlock(&job->lock);
}
