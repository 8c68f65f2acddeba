/* indexer.c - see indexer.h */
#include "http/indexer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/env.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "http/digests.h"

#define PIECE_MS 200  /* of work, then others get their turn */
#define PAUSE_MS 1000 /* while there is nothing to do: a message is found within 2 s */

#define DIGESTS_STEP 50   /* conversations of a list, */
#define DIGESTS_MS 10     /* for each at most, */
#define DIGESTS_MAX 10000 /* at a start, */
#define DIGESTS_BYTES                                                                              \
        (1 * GIB) /* and so much of them: a large store is not read at every start                 \
                   */

struct indexer {
        struct steno_store *store;
        struct digests *digests;
        char *cursor;   /* of the list whose digests are read; NULL: from its top */
        uint64_t count; /* conversations whose digests were read, */
        uint64_t bytes; /* and their size */
        bool read;      /* as many as are read */
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

static void read_digest(struct indexer *x, const struct json *j, json_ref item)
{
        char *project = json_dup_string(j, json_get(j, item, "project"));
        char *id = json_dup_string(j, json_get(j, item, "id"));
        struct steno_conv *conv = NULL;
        const struct digest *d = NULL;
        uint64_t bytes = 0;
        if (project && id && steno_conv_open(x->store, project, id, &conv, NULL) == 0 &&
            digests_open(x->digests, x->store, conv, DIGESTS_MS, &d, NULL) == 0)
                digests_close(x->digests, d);
        steno_conv_close(conv);
        json_u64(j, json_get(j, item, "bytes"), &bytes);
        x->count++;
        x->bytes += bytes;
        free(project);
        free(id);
}

/* Reads one page of the list. Errors are ignored on purpose: the next request reads the page again
 * and reports them. */
static void read_digests(struct indexer *x)
{
        struct steno_list_options opt = {
            .size = sizeof opt, .limit = DIGESTS_STEP, .cursor = x->cursor};
        struct json j;
        char *page = NULL;
        json_init(&j);
        if (steno_list(x->store, NULL, &opt, &page, NULL) == 0)
                json_parse(&j, page, strlen(page), NULL, NULL);
        json_ref items = json_get(&j, 0, "items");
        for (json_ref i = json_child(&j, items); i != JSON_NONE && !is_stopping(x, 0);
             i = json_next(&j, items, i))
                read_digest(x, &j, i);
        free(x->cursor);
        x->cursor = json_dup_string(&j, json_get(&j, 0, "next_cursor"));
        x->read = !x->cursor || x->count >= DIGESTS_MAX || x->bytes >= DIGESTS_BYTES;
        json_release(&j);
        steno_free(page);
}

static void *run(void *arg)
{
        struct indexer *x = arg;
        /* On Linux this is the priority of the thread alone. Errors do not matter. */
        setpriority(PRIO_PROCESS, 0, 19);
        uint64_t left = 0;
        while (!is_stopping(x, left || !x->read ? 10 : PAUSE_MS)) {
                for (int64_t end = time_monotonic_ms() + PIECE_MS;
                     !x->read && time_monotonic_ms() < end;)
                        read_digests(x);
                left = 0;
                /* Errors here are ignored on purpose: the next search reports them. */
                if (steno_search_index(x->store, PIECE_MS, &left, NULL))
                        left = 0;
        }
        return NULL;
}

struct indexer *indexer_start(struct steno_store *store, struct digests *digests)
{
        struct indexer *x = calloc(1, sizeof *x);
        if (!x)
                return NULL;
        x->store = store;
        x->digests = digests;
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
        free(x->cursor);
        free(x);
}
