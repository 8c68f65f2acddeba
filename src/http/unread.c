/* unread.c - see unread.h */
#include "http/unread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "http/address.h"
#include "http/http_limits.h"

/* Answers of one kind of clients, the oldest first, and what each client has of them. Clients whose
 * names have the same hash count as one. */
struct pool {
        struct unread_answer *first, *last;
        uint64_t bytes, most;
        uint64_t addresses[SERVER_REPLY_SHARES];
        uint64_t tokens[SERVER_REPLY_SHARES];
};

struct unread {
        pthread_mutex_t mutex;
        struct pool pools[2]; /* of owners, and of guests */
};

struct unread *unread_new(void)
{
        struct unread *all = calloc(1, sizeof *all);
        if (all) {
                pthread_mutex_init(&all->mutex, NULL);
                all->pools[false].most = SERVER_REPLIES_MAX;
                all->pools[true].most = SERVER_VISITOR_REPLIES_MAX;
        }
        return all;
}

void unread_free(struct unread *all)
{
        if (!all)
                return;
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

static unsigned share_of(const void *name, size_t n)
{
        return (unsigned)(hash_64(name, n) % SERVER_REPLY_SHARES);
}

/* Of an IPv6 address the half that a provider gives to one client. */
static unsigned address_of(int fd)
{
        union address a = {.any.sa_family = AF_UNSPEC};
        socklen_t n = sizeof a;
        if (getpeername(fd, &a.any, &n) != 0)
                return 0;
        if (a.any.sa_family == AF_INET)
                return share_of(&a.v4.sin_addr, sizeof a.v4.sin_addr);
        if (a.any.sa_family == AF_INET6)
                return share_of(&a.v6.sin6_addr, sizeof a.v6.sin6_addr / 2);
        return 0;
}

static struct pool *pool_of(struct unread *all, const struct unread_answer *a)
{
        return &all->pools[a->guest];
}

static void count(struct pool *p, const struct unread_answer *a)
{
        p->bytes += a->bytes;
        p->addresses[a->address] += a->bytes;
        p->tokens[a->token] += a->bytes;
}

static void discount(struct pool *p, const struct unread_answer *a)
{
        p->bytes -= a->bytes;
        p->addresses[a->address] -= a->bytes;
        p->tokens[a->token] -= a->bytes;
}

/* ---- who makes room ---- */

static bool may_go(const struct unread_answer *a)
{
        return !a->lasting && !a->chosen;
}

static bool is_slow(const struct unread_answer *a, int64_t now)
{
        uint64_t ms = a->bytes * 1000 / SERVER_READ_RATE;
        return now - a->begun_ms > SERVER_READ_GRACE_MS + (int64_t)ms;
}

/* U1. Of one token, where that one has its share already. */
static struct unread_answer *find_slow(const struct pool *p, const unsigned *token, int64_t now)
{
        struct unread_answer *a = p->first;
        while (a && !(may_go(a) && (!token || a->token == *token) && is_slow(a, now)))
                a = a->next;
        return a;
}

/* The oldest one of the token that holds most. */
static struct unread_answer *of_fullest_token(const struct pool *p, unsigned address)
{
        struct unread_answer *found = NULL;
        for (struct unread_answer *a = p->first; a; a = a->next)
                if (may_go(a) && a->address == address &&
                    (!found || p->tokens[a->token] > p->tokens[found->token]))
                        found = a;
        return found;
}

/* U2 */
static struct unread_answer *find_greedy(const struct pool *p, const struct unread_answer *newcomer)
{
        unsigned fullest = newcomer->address;
        for (const struct unread_answer *a = p->first; a; a = a->next)
                if (may_go(a) && p->addresses[a->address] > p->addresses[fullest])
                        fullest = a->address;
        if (p->addresses[fullest] > p->addresses[newcomer->address] + newcomer->bytes)
                return of_fullest_token(p, fullest);
        struct unread_answer *a = of_fullest_token(p, newcomer->address);
        bool greedy = a && p->tokens[a->token] > p->tokens[newcomer->token] + newcomer->bytes;
        return greedy ? a : NULL;
}

static bool fits(uint64_t held, uint64_t size, uint64_t most)
{
        return held == 0 || held + size <= most;
}

/* Chooses answers that are cut off to make room for the new one, until it fits. The chosen ones are
 * no longer counted. */
static bool choose(struct pool *p, const struct unread_answer *newcomer)
{
        int64_t now = time_monotonic_ms();
        for (;;) {
                bool own =
                    fits(p->tokens[newcomer->token], newcomer->bytes, p->most / SERVER_REPLY_SHARE);
                if (own && fits(p->bytes, newcomer->bytes, p->most))
                        return true;
                struct unread_answer *a = find_slow(p, own ? NULL : &newcomer->token, now);
                if (!a && own)
                        a = find_greedy(p, newcomer);
                if (!a)
                        return false;
                a->chosen = true;
                discount(p, a);
        }
}

static void take_out(struct pool *p, struct unread_answer *a)
{
        *(a->prev ? &a->prev->next : &p->first) = a->next;
        *(a->next ? &a->next->prev : &p->last) = a->prev;
        a->bytes = 0;
}

/* Ends the chosen answers, or counts them again. The library notices this and releases them. */
static void settle(struct pool *p, bool cut)
{
        for (struct unread_answer *a = p->first, *next; a; a = next) {
                next = a->next;
                if (!a->chosen)
                        continue;
                a->chosen = false;
                if (cut) {
                        shutdown(a->fd, SHUT_RDWR);
                        take_out(p, a);
                } else {
                        count(p, a);
                }
        }
}

bool unread_hold(struct unread *all, struct unread_answer *a, const char *token, uint64_t bytes)
{
        struct pool *p = pool_of(all, a);
        if (bytes <= SERVER_KEPT_REPLY)
                return true;
        a->bytes = bytes;
        a->begun_ms = time_monotonic_ms();
        a->address = address_of(a->fd);
        a->token = token[0] ? share_of(token, strlen(token)) : a->address;
        pthread_mutex_lock(&all->mutex);
        bool room = choose(p, a);
        settle(p, room);
        if (room || a->lasting) {
                a->next = NULL;
                a->prev = p->last;
                *(p->last ? &p->last->next : &p->first) = a;
                p->last = a;
                count(p, a);
        } else {
                a->bytes = 0;
        }
        pthread_mutex_unlock(&all->mutex);
        a->counted = room || a->lasting;
        return a->counted;
}

void unread_let_go(struct unread *all, struct unread_answer *a)
{
        struct pool *p = pool_of(all, a);
        if (!a->counted)
                return;
        pthread_mutex_lock(&all->mutex);
        if (a->bytes) {
                discount(p, a);
                take_out(p, a);
        }
        pthread_mutex_unlock(&all->mutex);
}

uint64_t unread_bytes(struct unread *all)
{
        pthread_mutex_lock(&all->mutex);
        uint64_t n = all->pools[false].bytes + all->pools[true].bytes;
        pthread_mutex_unlock(&all->mutex);
        return n;
}
