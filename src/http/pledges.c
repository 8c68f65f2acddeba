/* pledges.c - see pledges.h */
#include "http/pledges.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "http/server_core.h"

#define PLEDGES_MAX 1024
#define PLEDGE_MS 60000 /* a page asks for its stream right behind its list */

struct pledge {
        uint64_t key;
        int64_t until; /* 0: it is redeemed, or there was none */
};

struct pledges {
        pthread_mutex_t mutex;
        size_t next;
        struct pledge list[PLEDGES_MAX];
};

struct pledges *pledges_new(void)
{
        struct pledges *all = calloc(1, sizeof *all);
        if (all)
                pthread_mutex_init(&all->mutex, NULL);
        return all;
}

void pledges_free(struct pledges *all)
{
        if (!all)
                return;
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

static uint64_t key_of(const char *token_id, const char *run)
{
        char text[2 * ID_MAX];
        int n = snprintf(text, sizeof text, "%s\n%s", token_id, run);
        return hash_64(text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

void pledges_make(struct pledges *all, const char *token_id, const char *run)
{
        struct pledge p = {key_of(token_id, run), http_now_ms() + PLEDGE_MS};
        pthread_mutex_lock(&all->mutex);
        all->list[all->next++ % PLEDGES_MAX] = p;
        pthread_mutex_unlock(&all->mutex);
}

bool pledges_redeem(struct pledges *all, const char *token_id, const char *run)
{
        uint64_t key = key_of(token_id, run);
        int64_t now = http_now_ms();
        bool found = false;
        pthread_mutex_lock(&all->mutex);
        for (struct pledge *p = all->list; p < all->list + PLEDGES_MAX && !found; p++) {
                found = p->key == key && p->until > now;
                if (found)
                        p->until = 0;
        }
        pthread_mutex_unlock(&all->mutex);
        return found;
}
