/* workers.c - see workers.h */
#include "http/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/wait.h"
#include "http/server_core.h"
#include "http/http_limits.h"
#include "http/replies.h"

struct workers {
        pthread_mutex_t mutex;
        pthread_cond_t work;
        struct request *first;
        struct request **end;
        unsigned queued;
        unsigned idle;
        unsigned count;
        unsigned max;
        bool closing;
        pthread_t threads[];
};

static void serve(struct request *r)
{
        int64_t from = http_now_us();
        if (!replies_give(r->server->replies, r)) {
                r->route->handle(r);
                replies_keep(r->server->replies, r);
        }
        atomic_fetch_add(&r->server->metrics.micros, (unsigned long long)(http_now_us() - from));
        http_finish(r);
}

static void *run(void *arg)
{
        struct workers *w = arg;
        pthread_mutex_lock(&w->mutex);
        for (;;) {
                while (!w->first && !w->closing) {
                        w->idle++;
                        pthread_cond_wait(&w->work, &w->mutex);
                        w->idle--;
                }
                struct request *r = w->first;
                if (!r)
                        break;
                w->first = r->next;
                if (!w->first)
                        w->end = &w->first;
                w->queued--;
                pthread_mutex_unlock(&w->mutex);
                serve(r);
                pthread_mutex_lock(&w->mutex);
        }
        pthread_mutex_unlock(&w->mutex);
        return NULL;
}

struct workers *workers_new(unsigned count)
{
        struct workers *w = calloc(1, sizeof *w + count * sizeof *w->threads);
        if (!w)
                return NULL;
        w->max = count;
        w->end = &w->first;
        pthread_mutex_init(&w->mutex, NULL);
        wait_init(&w->work);
        return w;
}

bool workers_run(struct workers *w, struct request *r)
{
        pthread_mutex_lock(&w->mutex);
        bool taken = w->queued < SERVER_QUEUE_MAX && !w->closing;
        if (taken) {
                r->next = NULL;
                *w->end = r;
                w->end = &r->next;
                w->queued++;
                /* Threads are made when they are needed and stay. One that was woken for an
                 * earlier request and has not begun yet still counts as idle. */
                if (w->queued > w->idle && w->count < w->max &&
                    pthread_create(&w->threads[w->count], NULL, run, w) == 0)
                        w->count++;
                pthread_cond_signal(&w->work);
        }
        pthread_mutex_unlock(&w->mutex);
        return taken;
}

void workers_free(struct workers *w)
{
        if (!w)
                return;
        pthread_mutex_lock(&w->mutex);
        w->closing = true;
        pthread_cond_broadcast(&w->work);
        unsigned count = w->count;
        pthread_mutex_unlock(&w->mutex);
        for (unsigned i = 0; i < count; i++)
                pthread_join(w->threads[i], NULL);
        pthread_mutex_destroy(&w->mutex);
        pthread_cond_destroy(&w->work);
        free(w);
}
