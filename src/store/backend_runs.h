/*
 * backend_runs.h - runs and their journals.
 *
 * A conversation has at most one live run, and a lease says who holds it: on one machine a lock
 * that the system releases when the process dies, between machines a row that is renewed. A holder
 * whose lease was taken over gets an error at its next write. A journal is named by what
 * id_file_name makes of the run's id.
 */
#ifndef STORE_BACKEND_RUNS_H
#define STORE_BACKEND_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "store/backend_records.h"

struct backend_claim; /* one run at a time */
struct backend_run;
struct backend_watcher; /* a journal that is being written */

struct run_event {
        uint64_t seq;
        struct str at;   /* plain text */
        struct str type; /* JSON-escaped as it stands */
        struct str data; /* a JSON object */
};

typedef int (*run_event_fn)(void *ctx, const struct run_event *e);

/* ---- one run at a time ---- */

/* Claims the conversation, which stays open as long, for run `id`. STENO_ECONFLICT names the run
 * that has it. 1: the run that claimed before did not end, and must be completed first. */
int backend_run_claim(
    struct backend_conv *conv, struct str id, struct backend_claim **out, struct steno_error *err);
/* `finished`: the run's last event is durable, and all that it showed is stored. NULL does
 * nothing. */
void backend_run_claim_release(struct backend_claim *claim, bool finished);
/* STENO_ECONFLICT: somebody took the run over, and its holder must not write any more. */
int backend_run_claim_check(struct backend_claim *claim, struct steno_error *err);
typedef void (*run_mail_fn)(void *ctx, struct str line);

/* The mailbox: lines that others send to the live run, whoever holds it. They are handed out on a
 * thread of the claim's, which must not wait for whoever releases the claim. NULL ends it. */
void backend_run_claim_listen(struct backend_claim *claim, run_mail_fn fn, void *ctx);
/* To the mailbox; durable on return, and handed out once. */
int backend_run_mail_send(struct backend_conv *conv, struct str line, struct steno_error *err);

/* Notes that a client that may answer the questions of a project's runs is connected to this
 * process, until backend_watch_end (NULL does nothing) or the end of the process. STENO_ETIMEOUT:
 * try again. */
int backend_watch(struct backend_store *store, struct str project, struct backend_watcher **out,
    struct steno_error *err);
void backend_watch_end(struct backend_watcher *w);
/* Is such a client connected to any process that uses the store? */
bool backend_watched(struct backend_store *store, struct str project);

/*
 * Opens a second handle of the conversation's store for readers that may not write. What is stored
 * through it can be read only through it, and is gone when it is closed. Its clock, in *env, which
 * lives as long as the handle, stands at the last event of the run `name`, so that all readers see
 * the same.
 */
int backend_aside(struct backend_conv *conv, const char *name, struct backend_store **out,
    const struct env **env, struct steno_error *err);

/* The state of the run that made the last claim. */
enum run_life {
        RUN_ENDED,   /* it came to its end, or there was none */
        RUN_LIVE,    /* somebody holds it */
        RUN_DEAD,    /* it has to be completed */
        RUN_FAILED,  /* it ended, and may have shown what it could not store */
        RUN_UNKNOWN, /* earlier versions left runs here, and any of them may be dead */
};

/* `name` becomes the journal's where there is one. Takes no lock. */
int backend_run_last(struct backend_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err);
/* Is this run dead? It has no last event, and no process will write one. */
bool backend_run_is_dead(struct backend_conv *conv, const char *name);
/* Notes that a run was completed: from now on no process has to look at it. */
void backend_run_settle(struct backend_conv *conv, const char *name);
/* The same of all: every run is known to have ended. */
void backend_run_settle_all(struct backend_conv *conv);
/* Gives the lease of a dead run a new epoch, so that a holder which only seemed to be dead writes
 * nothing more; what it is writing at this moment is stored or refused when this returns. Does
 * nothing to a run that is alive. */
int backend_run_fence(struct backend_conv *conv, const char *name, struct steno_error *err);

/* ---- writing ---- */

/* Makes the journal and holds it. STENO_ECONFLICT: the conversation has a run of this id. */
int backend_run_create(struct backend_conv *conv, struct str id, struct str mode,
    struct backend_run **out, struct steno_error *err);
/* Takes over the journal of a writer that is gone. 1: somebody holds it; *out is untouched. */
int backend_run_take_over(
    struct backend_conv *conv, const char *name, struct backend_run **out, struct steno_error *err);
/* Frees, and lets go of the journal. NULL does nothing. */
void backend_run_close(struct backend_run *run);
/* Writes an event; `data` is one line of JSON. With `sync` it is durable on return, and so is all
 * that was written before it. Behind the event that ends a run: STENO_EINVAL. *seq may be NULL. */
int backend_run_write(struct backend_run *run, struct str type, struct str data, bool sync,
    uint64_t *seq, struct steno_error *err);

/* ---- reading ---- */

/* seq > after, in order. Stops at the first non-zero return of `each`, which it returns.
 * STENO_ENOTFOUND: no such journal. */
int backend_run_read(struct backend_conv *conv, const char *name, uint64_t after, run_event_fn each,
    void *ctx, struct steno_error *err);
/* Waits for an event behind `after`: 1, or 0 when the time is over. */
int backend_run_wait(struct backend_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err);
struct run_state {
        char at[TIME_TEXT]; /* when it began, or "" */
        char *head;         /* data of the first line; "{}" where it cannot be read */
        char *last;         /* data of the last event, "{}" when there is none */
        uint64_t seq;       /* of the last event, 0: none */
        bool finished;
        bool held; /* a writer has it */
};

int backend_run_look(
    struct backend_conv *conv, const char *name, struct run_state *out, struct steno_error *err);
void backend_run_state_release(struct run_state *s);
/* Every journal of a conversation by name, in no order. */
int backend_run_each(struct backend_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err);
/* The conversation of the project that has a journal of this name. STENO_ENOTFOUND. */
int backend_run_find(struct backend_store *store, struct str project, const char *name,
    struct backend_conv **out, struct steno_error *err);

#endif
