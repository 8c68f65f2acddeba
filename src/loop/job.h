/*
 * job.h - runs one tool call on a thread of its own.
 *
 * The loop starts jobs and waits for them on a board. It abandons ("lets go of") a job that neither
 * finishes nor notices a stop: such a job continues alone, and its writes are refused. Therefore
 * jobs and boards are reference-counted, and an abandoned job never touches data of the loop. The
 * data that its tool reads and the conversation's handle are kept until it returns, even if others
 * close them before.
 */
#ifndef LOOP_JOB_H
#define LOOP_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "loop/journal.h"
#include "tool/tool.h"

#define JOB_GRACE_MS 2000 /* between a stop or a deadline and letting go */

/* Where jobs say that they are done. */
struct job_board {
        pthread_mutex_t lock;
        int refs;
        int fd;                  /* eventfd: a job has returned */
        struct steno_stop *stop; /* the stop that jobs see; it lives as long as they do, but the
                                    caller's stop may not */
};

struct job {
        struct steno_tool_call call; /* first: the tool's view of it */
        struct job_board *board;
        int refs;      /* under the board's lock */
        bool returned; /* the same */

        pthread_mutex_t lock; /* for what follows, while it runs */
        bool over;            /* let go: output and journal are no longer reached */
        struct steno_output *output;
        struct journal *journal;
        const char *message_id;
        char *id;
        char *run_id;
        char *args;
        char *ref;
        size_t written;
        struct buf steps; /* members of a JSON array */
        unsigned step_count;
        size_t step_bytes;               /* of the texts that the journal has */
        int64_t step_at;                 /* when it got the last one; monotonic */
        struct steno_error store_failed; /* code 0 while all is well */
        bool quota_reached;              /* the output was ended by a quota, with a mark */

        /* the thread's; to be read by others once `returned` */
        struct tool tool;
        struct tool_result result;
        int rc;
        struct steno_error err;
};

/* NULL: no memory or descriptors. */
struct job_board *job_board_new(void);
void job_board_unref(struct job_board *b);

/* What a job is made of; `id` and `args` are copied, the rest is borrowed until it is let go. */
struct job_plan {
        const struct tool *tool;
        const char *id;
        struct str args;
        const char *run_id;
        uint64_t request;
        struct steno_conv *conv;
        int64_t deadline;
        struct steno_output *output; /* the caller frees it, after letting go */
        struct journal *journal;
        const char *message_id;
};

/* Starts it. */
int job_start(
    struct job_board *b, const struct job_plan *plan, struct job **out, struct steno_error *err);

/* Waits until a job has returned, `stop` (may be NULL) was requested, which is passed on to the
 * jobs, or `until` (time_monotonic_ms(); 0: for ever). It may return early. */
void job_wait(struct job_board *b, const struct steno_stop *stop, int64_t until);
bool job_returned(struct job *job);

/* The loop abandons the job: its writes are refused from here on. */
void job_let_go(struct job *job);
/* Frees the job; if its thread still runs, the thread frees it later. */
void job_unref(struct job *job);

#endif
