/* buckets.c - see buckets.h */
#include "http/buckets.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "http/server_core.h"

#define BUCKETS 4096

struct bucket {
        int64_t minute;
        unsigned used;
};

struct buckets {
        pthread_mutex_t mutex;
        struct bucket list[BUCKETS];
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

bool buckets_take(struct buckets *all, const char *key, unsigned most)
{
        int64_t minute = http_now_ms() / 60000;
        pthread_mutex_lock(&all->mutex);
        /* Two keys with the same place share its count, so that together they get at most `most`.
         */
        struct bucket *b = &all->list[hash_64(key, strlen(key)) % BUCKETS];
        if (b->minute != minute)
                *b = (struct bucket){.minute = minute};
        bool ok = b->used < most;
        b->used += ok;
        pthread_mutex_unlock(&all->mutex);
        return ok;
}
