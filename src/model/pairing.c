/*
 * pairing.c - see pairing.h for the rule.
 *
 * Invariants:
 *   1. `calls` holds the calls of the last PAIRING_WINDOW records in order of (seq, index);
 *      those before `first` have left the window and wait for the next compaction.
 *   2. A bucket's chain goes from the newest call to the oldest, so a walk may stop at the first
 *      one that has left the window, and calls of one block stand together within an id.
 *   3. Everything is indexes and offsets, so a clone is three copies.
 */
#include "model/pairing.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"

#define NONE UINT32_MAX
#define BUCKETS_MIN 64

struct call {
        uint64_t seq;
        uint64_t block;
        uint64_t answered; /* seq of its result, 0 while open */
        uint64_t hash;
        uint32_t index;
        uint32_t id_off;
        uint32_t id_len;
        uint32_t older; /* next in the bucket's chain */
};

struct pairing {
        struct call *calls;
        uint32_t first;
        uint32_t count;
        uint32_t cap;
        char *ids;
        uint32_t id_used;
        uint32_t id_cap;
        uint32_t *buckets;
        uint32_t bucket_count; /* a power of two */
        uint64_t block;        /* first seq of the current block, 0: none is open */
        uint64_t last_block;   /* first seq of the latest block that had calls, 0: none yet */
        bool answered;         /* the current block has seen a result: a call opens the next */
};

struct pairing *pairing_new(void)
{
        struct pairing *p = calloc(1, sizeof *p);
        if (!p)
                return NULL;
        p->bucket_count = BUCKETS_MIN;
        p->buckets = malloc(p->bucket_count * sizeof *p->buckets);
        if (!p->buckets) {
                free(p);
                return NULL;
        }
        pairing_clear(p);
        return p;
}

void pairing_free(struct pairing *p)
{
        if (!p)
                return;
        free(p->calls);
        free(p->ids);
        free(p->buckets);
        free(p);
}

void pairing_clear(struct pairing *p)
{
        p->first = p->count = p->id_used = 0;
        p->block = p->last_block = 0;
        p->answered = false;
        memset(p->buckets, 0xff, p->bucket_count * sizeof *p->buckets);
}

static void *copy_of(const void *from, size_t n)
{
        void *to = malloc(n ? n : 1);
        if (to && n)
                memcpy(to, from, n);
        return to;
}

struct pairing *pairing_clone(const struct pairing *p)
{
        struct pairing *c = copy_of(p, sizeof *p);
        if (!c)
                return NULL;
        c->calls = copy_of(p->calls, p->count * sizeof *p->calls);
        c->cap = p->count;
        c->ids = copy_of(p->ids, p->id_used);
        c->id_cap = p->id_used;
        c->buckets = copy_of(p->buckets, p->bucket_count * sizeof *p->buckets);
        if (c->calls && c->ids && c->buckets)
                return c;
        pairing_free(c);
        return NULL;
}

static void link_all(struct pairing *p)
{
        memset(p->buckets, 0xff, p->bucket_count * sizeof *p->buckets);
        for (uint32_t i = 0; i < p->count; i++) {
                uint32_t *head = &p->buckets[p->calls[i].hash & (p->bucket_count - 1)];
                p->calls[i].older = *head;
                *head = i;
        }
}

/* Takes what has left the window out of memory, once it is the larger half. */
static void compact(struct pairing *p)
{
        if (p->first < 64 || p->first < p->count / 2)
                return;
        uint32_t live = p->count - p->first;
        uint32_t id_from = live ? p->calls[p->first].id_off : p->id_used;
        memmove(p->calls, p->calls + p->first, live * sizeof *p->calls);
        memmove(p->ids, p->ids + id_from, p->id_used - id_from);
        p->id_used -= id_from;
        for (uint32_t i = 0; i < live; i++)
                p->calls[i].id_off -= id_from;
        p->first = 0;
        p->count = live;
        link_all(p);
}

static bool reserve(struct pairing *p, size_t calls, size_t id_bytes)
{
        if (p->count + calls > p->cap) {
                size_t cap = (p->count + calls) * 2;
                struct call *to = realloc(p->calls, cap * sizeof *to);
                if (!to)
                        return false;
                p->calls = to;
                p->cap = (uint32_t)cap;
        }
        if (p->id_used + id_bytes > p->id_cap) {
                size_t cap = (p->id_used + id_bytes) * 2;
                if (cap > UINT32_MAX)
                        return false;
                char *to = realloc(p->ids, cap);
                if (!to)
                        return false;
                p->ids = to;
                p->id_cap = (uint32_t)cap;
        }
        if (p->count + calls > p->bucket_count) {
                size_t n = p->bucket_count;
                while (n < p->count + calls)
                        n *= 2;
                uint32_t *to = realloc(p->buckets, n * sizeof *to);
                if (!to)
                        return false;
                p->buckets = to;
                p->bucket_count = (uint32_t)n;
                link_all(p);
        }
        return true;
}

static void add_call(struct pairing *p, uint64_t seq, uint32_t index, struct str id)
{
        uint64_t hash = hash_64(id.p, id.n);
        uint32_t *head = &p->buckets[hash & (p->bucket_count - 1)];
        p->calls[p->count] = (struct call){
            .seq = seq,
            .block = p->block,
            .hash = hash,
            .index = index,
            .id_off = p->id_used,
            .id_len = (uint32_t)id.n,
            .older = *head,
        };
        *head = p->count++;
        if (id.n)
                memcpy(p->ids + p->id_used, id.p, id.n);
        p->id_used += (uint32_t)id.n;
}

static bool has_id(const struct pairing *p, const struct call *c, uint64_t hash, struct str id)
{
        return c->hash == hash && str_eq(str_span(p->ids + c->id_off, c->id_len), id);
}

/*
 * The call that a result at `seq` answers: one of its own message, else the earliest open one of
 * the latest block that has one. NULL: none; *answered is then the newest call of that id.
 */
static struct call *find_open(
    struct pairing *p, uint64_t seq, struct str id, struct call **answered)
{
        uint64_t hash = hash_64(id.p, id.n);
        struct call *best = NULL;
        *answered = NULL;
        for (uint32_t i = p->buckets[hash & (p->bucket_count - 1)]; i != NONE && i >= p->first;
             i = p->calls[i].older) {
                struct call *c = &p->calls[i];
                if (!has_id(p, c, hash, id))
                        continue;
                if (!*answered && c->answered)
                        *answered = c;
                if (best && (c->block != best->block || (best->seq == seq && c->seq != seq)))
                        break;
                if (!c->answered)
                        best = c;
        }
        return best;
}

static struct pairing_match match(struct pairing *p, uint64_t seq, struct str id)
{
        struct call *answered;
        struct call *open = find_open(p, seq, id, &answered);
        struct call *c = open ? open : answered;
        if (!c)
                return (struct pairing_match){PAIRING_ORPHAN, .block_seq = p->last_block};
        struct pairing_match m = {
            .verdict = open ? PAIRING_OK : PAIRING_DUPLICATE,
            .call_seq = c->seq,
            .call_index = c->index,
            .block_seq = c->block,
            .result_seq = open ? 0 : c->answered,
        };
        if (open)
                open->answered = seq;
        return m;
}

int pairing_add(
    struct pairing *p, uint64_t seq, const struct about *about, struct pairing_match *matches)
{
        size_t id_bytes = 0;
        for (size_t i = 0; i < about->call_count; i++)
                id_bytes += about->calls[i].n;
        while (p->first < p->count && p->calls[p->first].seq + PAIRING_WINDOW < seq)
                p->first++;
        compact(p);
        if (!reserve(p, about->call_count, id_bytes))
                return STENO_ENOMEM;

        if (!about->call_count && !about->answer_count)
                p->block = 0;
        if (about->call_count && (!p->block || p->answered)) {
                p->block = p->last_block = seq;
                p->answered = false;
        }
        for (size_t i = 0; i < about->call_count; i++)
                add_call(p, seq, (uint32_t)i, about->calls[i]);
        for (size_t i = 0; i < about->answer_count; i++)
                matches[i] = match(p, seq, about->answers[i]);
        if (about->answer_count)
                p->answered = true;
        return 0;
}

int pairing_each_open(const struct pairing *p,
    int (*each)(void *ctx, uint64_t call_seq, uint32_t call_index, struct str id), void *ctx)
{
        for (uint32_t i = p->first; i < p->count; i++) {
                const struct call *c = &p->calls[i];
                if (c->answered)
                        continue;
                int rc = each(ctx, c->seq, c->index, str_span(p->ids + c->id_off, c->id_len));
                if (rc)
                        return rc;
        }
        return 0;
}
