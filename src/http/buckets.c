/* buckets.c - see buckets.h */
#include "http/buckets.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "http/server_core.h"

#define ROWS 1024
#define WAYS 8 /* keys of one row that are told apart within a minute */

struct bucket {
        uint64_t key; /* its hash */
        int64_t minute;
        unsigned used;
};

struct buckets {
        pthread_mutex_t mutex;
        struct bucket rows[ROWS][WAYS];
};

struct buckets *buckets_new(void)
{
        struct buckets *all = calloc(1, sizeof *all);
        if (all)
                pthread_mutex_init(&all->mutex, NULL);
        return all;
}

void buckets_free(struct buckets *all)
{
        if (!all)
                return;
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

/* The bucket of a key: its own, or one that nobody has used this minute. In a row that is full of
 * others, keys share one, so that together they get at most what one of them may. */
static struct bucket *find(struct bucket row[WAYS], uint64_t key, int64_t minute)
{
        struct bucket *unused = NULL;
        for (struct bucket *b = row; b < row + WAYS; b++) {
                if (b->minute == minute && b->key == key)
                        return b;
                if (b->minute != minute && !unused)
                        unused = b;
        }
        if (!unused)
                return &row[key / ROWS % WAYS];
        *unused = (struct bucket){.key = key, .minute = minute};
        return unused;
}

bool buckets_take(struct buckets *all, const char *key, unsigned most)
{
        int64_t minute = http_now_ms() / 60000 + 1; /* 0 is a bucket that was never used */
        uint64_t hash = hash_64(key, strlen(key));
        pthread_mutex_lock(&all->mutex);
        struct bucket *b = find(all->rows[hash % ROWS], hash, minute);
        bool ok = b->used < most;
        b->used += ok;
        pthread_mutex_unlock(&all->mutex);
        return ok;
}
