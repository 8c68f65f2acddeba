/* indexer.c - see indexer.h */
#include "http/indexer.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/wait.h"

#define PIECE_MS 200  /* of work, then others get their turn */
#define PAUSE_MS 1000 /* while there is nothing to do: a message is found within 2 s */

struct indexer {
        struct steno_store *store;
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        bool stopping;
};

static bool is_stopping(struct indexer *x, int ms)
{
        pthread_mutex_lock(&x->mutex);
        if (!x->stopping && ms)
                wait_for(&x->wake, &x->mutex, ms);
        bool stopping = x->stopping;
        pthread_mutex_unlock(&x->mutex);
        return stopping;
}

static void *run(void *arg)
{
        struct indexer *x = arg;
        /* On Linux this is the priority of the thread alone. Errors do not matter. */
        setpriority(PRIO_PROCESS, 0, 19);
        uint64_t left = 0;
        while (!is_stopping(x, left ? 10 : PAUSE_MS)) {
                left = 0;
                /* Errors here are ignored on purpose: whoever searches is told of them. */
                if (steno_search_index(x->store, PIECE_MS, &left, NULL))
                        left = 0;
        }
        return NULL;
}

struct indexer *indexer_start(struct steno_store *store)
{
        struct indexer *x = calloc(1, sizeof *x);
        if (!x)
                return NULL;
        x->store = store;
        pthread_mutex_init(&x->mutex, NULL);
        wait_init(&x->wake);
        if (pthread_create(&x->thread, NULL, run, x)) {
                pthread_cond_destroy(&x->wake);
                pthread_mutex_destroy(&x->mutex);
                free(x);
                return NULL;
        }
        return x;
}

void indexer_stop(struct indexer *x)
{
        if (!x)
                return;
        pthread_mutex_lock(&x->mutex);
        x->stopping = true;
        pthread_cond_broadcast(&x->wake);
        pthread_mutex_unlock(&x->mutex);
        pthread_join(x->thread, NULL);
        pthread_cond_destroy(&x->wake);
        pthread_mutex_destroy(&x->mutex);
        free(x);
}
