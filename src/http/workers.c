/* workers.c - see workers.h */
#include "http/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/env.h"
#include "base/wait.h"
#include "http/server_core.h"
#include "http/http_limits.h"
#include "http/replies.h"

#define IDLE_MS 30000 /* how long a thread waits for another request */
#define STEP_BACK 10  /* niceness: a tenth of the processor where others want it too */
#define WAKING_MAX 2  /* threads that are being woken at once */

/* A thread that waits for work. */
struct idler {
        struct wait_bell bell;
        struct idler *next;
        bool called; /* it was taken off the list, and its bell rings now or soon */
};

struct workers {
        pthread_mutex_t mutex;
        pthread_cond_t left;
        struct request *first;
        struct request **end;
        struct idler *idlers; /* the last to come is called first: its memory is still at hand */
        unsigned queued;
        unsigned idle;   /* in the list */
        unsigned waking; /* were called, and have not looked yet */
        unsigned count;
        unsigned max;
        unsigned queue;
        bool closing;
        bool gives_way;
};

void workers_step_back(void)
{
        /* Of this thread alone: 0 is the caller, and niceness belongs to threads. */
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + STEP_BACK);
}

void workers_give_way(struct workers *w)
{
        w->gives_way = true;
}

static void serve(struct request *r)
{
        if (r->over) {
                http_request_free(r);
                return;
        }
        if (r->spooling) {
                http_spool(r); /* it may be gone after this */
                return;
        }
        /* The gateway passes its query on, whatever it holds. */
        if (r->route->scope != SCOPE_GATEWAY && !request_query_keeps(r)) {
                http_finish(r);
                return;
        }
        if (r->route->flags & ROUTE_LATER) {
                r->route->handle(r); /* it may be gone after this */
                return;
        }
        int64_t from = http_now_us();
        if (!replies_give(r->server->replies, r)) {
                r->route->handle(r);
                replies_keep(r->server->replies, r);
        }
        buf_release(&r->body); /* no thread of the daemon should spend time on it */
        atomic_fetch_add(&r->server->metrics.micros, (unsigned long long)(http_now_us() - from));
        http_finish(r);
}

/* Under the mutex. */
static struct idler *call_one(struct workers *w)
{
        struct idler *i = w->idlers;
        w->idlers = i->next;
        w->idle--;
        w->waking++;
        i->called = true;
        return i;
}

/*
 * The thread to be woken for work, or NULL: then nobody is. Under the mutex; its bell is rung
 * without it, or the thread would wake up to wait for it. Each thread that has been woken asks this
 * again before it begins, so work never waits while a thread could do it. Few are woken at once
 * because on a busy machine those that finish a request take the next one sooner: whoever was woken
 * for it would only go to sleep again, and that costs as much as an append.
 */
static struct idler *wanted(struct workers *w)
{
        if (w->queued <= w->waking || !w->idlers || w->waking == WAKING_MAX)
                return NULL;
        return call_one(w);
}

/* Waits for work, for a while. Under the mutex. False: there was none. */
static bool wait_for_call(struct workers *w)
{
        struct idler me = {.next = w->idlers};
        w->idlers = &me;
        w->idle++;
        pthread_mutex_unlock(&w->mutex);
        bool rang = wait_hear(&me.bell, time_monotonic_ms() + IDLE_MS);
        pthread_mutex_lock(&w->mutex);
        if (me.called) {
                /* The caller uses this memory until the bell has rung. */
                while (!rang)
                        rang = wait_hear(&me.bell, time_monotonic_ms() + IDLE_MS);
                w->waking--;
                return true;
        }
        struct idler **at = &w->idlers;
        while (*at != &me)
                at = &(*at)->next;
        *at = me.next;
        w->idle--;
        return false;
}

/* The next request, or NULL: this thread is not needed any more. Under the mutex. */
static struct request *next(struct workers *w)
{
        bool patient = true;
        while (!w->first && !w->closing && patient)
                patient = wait_for_call(w);
        struct request *r = w->first;
        if (!r)
                return NULL;
        w->first = r->next;
        if (!w->first)
                w->end = &w->first;
        w->queued--;
        return r;
}

static void *run(void *arg)
{
        struct workers *w = arg;
        struct request *r;
        if (w->gives_way)
                workers_step_back();
        pthread_mutex_lock(&w->mutex);
        while ((r = next(w))) {
                struct idler *other = wanted(w);
                pthread_mutex_unlock(&w->mutex);
                if (other)
                        wait_ring(&other->bell);
                serve(r);
                pthread_mutex_lock(&w->mutex);
        }
        w->count--;
        pthread_cond_signal(&w->left);
        pthread_mutex_unlock(&w->mutex);
        return NULL;
}

struct workers *workers_new(unsigned threads, unsigned queue)
{
        struct workers *w = calloc(1, sizeof *w);
        if (!w)
                return NULL;
        w->max = threads;
        w->queue = queue;
        w->end = &w->first;
        pthread_mutex_init(&w->mutex, NULL);
        wait_init(&w->left);
        return w;
}

/* Under the mutex. */
static bool add_thread(struct workers *w)
{
        pthread_t thread;
        pthread_attr_t attr;
        if (w->count == w->max || pthread_attr_init(&attr))
                return false;
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        bool made = pthread_create(&thread, &attr, run, w) == 0;
        pthread_attr_destroy(&attr);
        w->count += made;
        return made;
}

bool workers_run(struct workers *w, struct request *r)
{
        pthread_mutex_lock(&w->mutex);
        /* A thread that was woken for an earlier request and has not begun yet is still free, and
         * that request is still queued. */
        unsigned unused = w->idle + w->waking;
        bool served = !w->closing && (w->queued < unused || add_thread(w));
        bool waits = !w->closing && w->count > 0 && w->queued < unused + w->queue;
        if (served || waits) {
                r->next = NULL;
                *w->end = r;
                w->end = &r->next;
                w->queued++;
        }
        struct idler *other = wanted(w);
        pthread_mutex_unlock(&w->mutex);
        if (other)
                wait_ring(&other->bell);
        return served || waits;
}

void workers_stop(struct workers *w)
{
        if (!w)
                return;
        pthread_mutex_lock(&w->mutex);
        w->closing = true;
        while (w->idlers)
                wait_ring(&call_one(w)->bell);
        while (w->count)
                pthread_cond_wait(&w->left, &w->mutex);
        pthread_mutex_unlock(&w->mutex);
}

void workers_free(struct workers *w)
{
        if (!w)
                return;
        workers_stop(w);
        pthread_mutex_destroy(&w->mutex);
        pthread_cond_destroy(&w->left);
        free(w);
}
