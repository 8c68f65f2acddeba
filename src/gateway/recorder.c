/*
 * recorder.c - see recorder.h. What is stored of an exchange is recording.c's.
 */
#include "gateway/recorder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/wait.h"
#include "gateway/gaps.h"
#include "gateway/lineage.h"
#include "gateway/recording.h"
#include "steno_tables.h"

#define TRIES 4 /* more, of a recording in a database that was away */
#define PAUSE_MS 100

struct task {
        struct task *next;
        struct exchange *x;
        struct recorder_fate fate;
};

struct recorder {
        struct recording_target to; /* the thread's own */
        struct exchanges *all;
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t work;
        struct task *first;
        struct task **end;
        bool closing;
        uint64_t recorded;
        uint64_t failed;
};

/* A database that fails over is unavailable for some seconds. The records of an exchange that were
 * stored before that are found again by their keys. */
static int store(
    struct recorder *r, struct task *t, struct recording_outcome *outcome, struct steno_error *err)
{
        int rc = recording_store(&r->to, t->x, &t->fate, outcome, err);
        for (int i = 0; i < TRIES && steno_tables_exist(r->to.store) &&
                        (rc == STENO_EIO || rc == STENO_EINDOUBT || rc == STENO_ETIMEOUT);
             i++) {
                wait_sleep(PAUSE_MS << i);
                *outcome = (struct recording_outcome){0};
                rc = recording_store(&r->to, t->x, &t->fate, outcome, err);
        }
        return rc;
}

static void work(struct recorder *r, struct task *t)
{
        struct steno_error err = {0};
        struct recording_outcome outcome = {0};
        int rc = store(r, t, &outcome, &err);
        bool done = rc == 0 || outcome.torn;
        /* The next start could not record it either. */
        bool never = rc == STENO_ELIMIT || rc == STENO_EPROTO || rc == STENO_EINVAL;
        bool lost = exchange_in_memory(t->x);
        if (!done)
                fprintf(stderr, "steno: the gateway could not record %s: %s; it is %s%s%s\n",
                    exchange_id(t->x), err.msg, lost ? "lost" : "in gateway/",
                    !lost && never ? "kept_" : "", lost ? "" : exchange_id(t->x));
        pthread_mutex_lock(&r->mutex);
        r->recorded += rc == 0 && outcome.understood;
        r->failed += !done;
        pthread_mutex_unlock(&r->mutex);
        if (done || lost)
                exchange_remove(t->x);
        else if (never)
                exchange_set_aside(t->x);
        else
                exchange_close(t->x);
        free(t);
}

static void *run(void *arg)
{
        struct recorder *r = arg;
        pthread_mutex_lock(&r->mutex);
        for (;;) {
                while (!r->first && !r->closing)
                        pthread_cond_wait(&r->work, &r->mutex);
                struct task *t = r->first;
                if (!t)
                        break;
                r->first = t->next;
                if (!r->first)
                        r->end = &r->first;
                pthread_mutex_unlock(&r->mutex);
                work(r, t);
                pthread_mutex_lock(&r->mutex);
        }
        pthread_mutex_unlock(&r->mutex);
        return NULL;
}

int recorder_new(struct steno_store *store, struct exchanges *all, const char *path,
    struct recorder **out, struct steno_error *err)
{
        struct recorder *r = calloc(1, sizeof *r);
        if (!r)
                return error_nomem(err);
        r->to.store = store;
        r->all = all;
        r->end = &r->first;
        pthread_mutex_init(&r->mutex, NULL);
        wait_init(&r->work);
        int rc = lineage_open(store, path, &r->to.lineage, err);
        if (rc == 0 && pthread_create(&r->thread, NULL, run, r) != 0)
                rc = error_nomem(err);
        if (rc) {
                lineage_close(r->to.lineage);
                free(r);
                return rc;
        }
        *out = r;
        return 0;
}

void recorder_free(struct recorder *r, uint64_t *recorded, uint64_t *failed)
{
        if (!r)
                return;
        pthread_mutex_lock(&r->mutex);
        r->closing = true;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->mutex);
        pthread_join(r->thread, NULL);
        if (recorded)
                *recorded = r->recorded;
        if (failed)
                *failed = r->failed;
        lineage_close(r->to.lineage);
        gaps_release(&r->to.gaps);
        pthread_mutex_destroy(&r->mutex);
        pthread_cond_destroy(&r->work);
        free(r);
}

void recorder_take(struct recorder *r, struct exchange *x, const struct recorder_fate *fate)
{
        struct task *t = malloc(sizeof *t);
        if (!t) { /* its file stays for the next start */
                exchange_close(x);
                return;
        }
        *t = (struct task){.x = x, .fate = *fate};
        pthread_mutex_lock(&r->mutex);
        *r->end = t;
        r->end = &t->next;
        pthread_cond_signal(&r->work);
        pthread_mutex_unlock(&r->mutex);
}

static int take_up(void *ctx, const char *id)
{
        struct recorder *r = ctx;
        struct exchange *x = NULL;
        if (exchange_open(r->all, id, &x, NULL) != 0)
                return 0; /* another process is at it */
        struct recorder_fate fate = {.cut = true,
            .killed = true,
            .gone = true,
            .why = "the gateway was killed while the answer came"};
        recorder_take(r, x, &fate);
        return 0;
}

int recorder_recover(struct recorder *r, struct steno_error *err)
{
        return exchanges_each(r->all, take_up, r, err);
}
