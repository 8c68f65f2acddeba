/*
 * errands.c - see errands.h
 */
#include "gateway/errands.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/wait.h"

struct errand {
        struct errand *next;
        void (*run)(void *ctx);
        void *ctx;
};

struct errands {
        pthread_mutex_t mutex;
        pthread_cond_t work;
        struct errand *first;
        struct errand **end;
        bool closing;
        unsigned count;
        pthread_t threads[];
};

static void *serve(void *arg)
{
        struct errands *e = arg;
        pthread_mutex_lock(&e->mutex);
        for (;;) {
                while (!e->first && !e->closing)
                        pthread_cond_wait(&e->work, &e->mutex);
                struct errand *one = e->first;
                if (!one)
                        break;
                e->first = one->next;
                if (!e->first)
                        e->end = &e->first;
                pthread_mutex_unlock(&e->mutex);
                one->run(one->ctx);
                free(one);
                pthread_mutex_lock(&e->mutex);
        }
        pthread_mutex_unlock(&e->mutex);
        return NULL;
}

int errands_new(unsigned threads, struct errands **out, struct steno_error *err)
{
        struct errands *e = calloc(1, sizeof *e + threads * sizeof *e->threads);
        if (!e)
                return error_nomem(err);
        pthread_mutex_init(&e->mutex, NULL);
        wait_init(&e->work);
        e->end = &e->first;
        while (e->count < threads && pthread_create(&e->threads[e->count], NULL, serve, e) == 0)
                e->count++;
        if (e->count == 0) {
                errands_free(e);
                return error_nomem(err);
        }
        *out = e;
        return 0;
}

void errands_free(struct errands *e)
{
        if (!e)
                return;
        pthread_mutex_lock(&e->mutex);
        e->closing = true;
        pthread_cond_broadcast(&e->work);
        pthread_mutex_unlock(&e->mutex);
        for (unsigned i = 0; i < e->count; i++)
                pthread_join(e->threads[i], NULL);
        pthread_mutex_destroy(&e->mutex);
        pthread_cond_destroy(&e->work);
        free(e);
}

bool errands_put(struct errands *e, void (*run)(void *ctx), void *ctx)
{
        struct errand *one = malloc(sizeof *one);
        if (!one)
                return false;
        *one = (struct errand){NULL, run, ctx};
        pthread_mutex_lock(&e->mutex);
        *e->end = one;
        e->end = &one->next;
        pthread_cond_signal(&e->work);
        pthread_mutex_unlock(&e->mutex);
        return true;
}
