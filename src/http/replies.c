/* replies.c - see replies.h: a table with one place for each hash; a newer answer takes it over. */
#include "http/replies.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "base/wait.h"
#include "http/form.h"
#include "http/http_limits.h"
#include "http/route.h"
#include "http/spool.h"

/* A request that is answered takes longer than this only on a disk that hangs. No thread waits
 * there for ever: the second request is then tried like one that came alone. */
#define PENDING_MS 10000

struct kept {
        char key[SHA256_HEX]; /* "": none */
        char body[SHA256_HEX];
        int status;
        char *text;
        size_t n;
};

/* A request that is being answered. */
struct pending {
        struct pending *next;
        const struct request *request;
        char key[SHA256_HEX];
};

struct replies {
        pthread_mutex_t mutex;
        pthread_cond_t answered;
        struct pending *pending;
        struct kept list[SERVER_IDEMPOTENCY_MAX];
};

struct replies *replies_new(void)
{
        struct replies *all = calloc(1, sizeof *all);
        if (all) {
                pthread_mutex_init(&all->mutex, NULL);
                wait_init(&all->answered);
        }
        return all;
}

void replies_free(struct replies *all)
{
        if (!all)
                return;
        for (size_t i = 0; i < SERVER_IDEMPOTENCY_MAX; i++)
                free(all->list[i].text);
        pthread_cond_destroy(&all->answered);
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

/* A body that went to the disk is read once more: only where a key came with it. */
static bool hash_body(const struct request *r, char hex[SHA256_HEX])
{
        unsigned char sum[SHA256_SIZE];
        struct sha256 sha;
        uint64_t at = 0;
        char block[16 * KIB];
        long got;
        if (hash_sha256_init(&sha))
                return false;
        while ((got = spool_read(r, &at, block, sizeof block)) > 0)
                hash_sha256_update(&sha, block, (size_t)got);
        hash_sha256_finish(&sha, sum);
        hash_hex(sum, sizeof sum, hex);
        return got == 0;
}

/* The hashes of the request. False: its answer is not kept. */
static bool describe(const struct request *r, char key[SHA256_HEX], char body[SHA256_HEX])
{
        /* A form has another boundary every time. */
        return strcmp(r->method, "POST") == 0 && r->who.known && !form_is(r) &&
               request_keyed(r, r->path, key) && hash_body(r, body);
}

static struct kept *place(struct replies *all, const char *key)
{
        return &all->list[hash_64(key, SHA256_HEX - 1) % SERVER_IDEMPOTENCY_MAX];
}

/* ---- the same key twice at once ---- */

/* Requests that last find the other one by themselves, and would keep a thread waiting. */
static bool is_short(const struct request *r)
{
        return !(r->route->flags & (ROUTE_STREAMS | ROUTE_TURN | ROUTE_LATER | ROUTE_URGENT));
}

/* Under the mutex. */
static bool is_pending(const struct replies *all, const char *key)
{
        const struct pending *p = all->pending;
        while (p && strcmp(p->key, key) != 0)
                p = p->next;
        return p != NULL;
}

/* Without memory for it the others do not wait. Under the mutex. */
static void pending_begin(struct replies *all, const struct request *r, const char *key)
{
        struct pending *p = malloc(sizeof *p);
        if (!p)
                return;
        *p = (struct pending){.next = all->pending, .request = r};
        memcpy(p->key, key, sizeof p->key);
        all->pending = p;
}

static void pending_end(struct replies *all, const struct request *r)
{
        pthread_mutex_lock(&all->mutex);
        for (struct pending **at = &all->pending; *at; at = &(*at)->next) {
                struct pending *p = *at;
                if (p->request != r)
                        continue;
                *at = p->next;
                free(p);
                pthread_cond_broadcast(&all->answered);
                break;
        }
        pthread_mutex_unlock(&all->mutex);
}

/* ---- answers ---- */

bool replies_give(struct replies *all, struct request *r)
{
        char key[SHA256_HEX], body[SHA256_HEX];
        if (!describe(r, key, body))
                return false;
        int64_t until = time_monotonic_ms() + PENDING_MS;
        bool in_time = is_short(r);
        pthread_mutex_lock(&all->mutex);
        while (in_time && is_pending(all, key))
                in_time = wait_until(&all->answered, &all->mutex, until);
        const struct kept *k = place(all, key);
        bool known = strcmp(k->key, key) == 0;
        bool same = known && strcmp(k->body, body) == 0;
        if (same) {
                buf_put(&r->reply, k->text, k->n);
                request_reply_json(r, k->status);
        }
        if (!known && is_short(r))
                pending_begin(all, r, key);
        pthread_mutex_unlock(&all->mutex);
        if (known && !same)
                request_error(r, 409, "conflict", "this Idempotency-Key came with another body");
        return known;
}

static void keep(struct replies *all, const struct request *r)
{
        char key[SHA256_HEX], body[SHA256_HEX];
        if (r->stream || r->file || r->status < 200 || r->status > 299 ||
            r->reply.n > SERVER_IDEMPOTENCY_REPLY || r->reply.failed || !describe(r, key, body))
                return;
        char *copy = malloc(r->reply.n + 1);
        if (!copy)
                return;
        memcpy(copy, r->reply.n ? r->reply.p : "", r->reply.n);
        pthread_mutex_lock(&all->mutex);
        struct kept *k = place(all, key);
        free(k->text);
        memcpy(k->key, key, sizeof k->key);
        memcpy(k->body, body, sizeof k->body);
        k->status = r->status;
        k->text = copy;
        k->n = r->reply.n;
        pthread_mutex_unlock(&all->mutex);
}

void replies_keep(struct replies *all, const struct request *r)
{
        keep(all, r);
        pending_end(all, r);
}
