/* work.c - see work.h */
#include "view/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/token.h"

/* The address range of a message's parts; the list is sorted by address. */
struct work_owner {
        const struct part *parts;
        size_t count;
        size_t index;
};

static int by_address(const void *a, const void *b)
{
        const struct work_owner *x = a, *y = b;
        return x->parts < y->parts ? -1 : x->parts > y->parts;
}

int work_init(struct work *w, struct steno_error *err)
{
        size_t n = w->h->count;
        weigher_init(&w->weigher);
        w->weight = arena_alloc(w->arena, (n + 1) * sizeof *w->weight);
        w->dropped = arena_zalloc(w->arena, n + 1);
        w->tied = arena_zalloc(w->arena, n + 1);
        w->owners = arena_alloc(w->arena, (n + 1) * sizeof *w->owners);
        if (!w->weight || !w->dropped || !w->tied || !w->owners)
                return error_nomem(err);
        for (size_t i = 0; i < n; i++) {
                const struct message *m = &w->h->list[i];
                w->weight[i] = weigh_message(&w->weigher, m, NULL, NULL);
                w->owners[i] = (struct work_owner){m->parts, m->count, i};
                w->tied[i] = message_is_tied(w->h, i);
        }
        if (n)
                qsort(w->owners, n, sizeof *w->owners, by_address);
        return weigher_check(&w->weigher, err);
}

void work_release(struct work *w)
{
        weigher_release(&w->weigher);
}

bool work_sees(const struct work *w, size_t i)
{
        const struct message *m = &w->h->list[i];
        return m->origin && m->seq <= w->pin;
}

uint64_t work_total(const struct work *w)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < w->h->count; i++)
                if (!w->dropped[i] && (w->pin == UINT64_MAX || work_sees(w, i)))
                        sum += w->weight[i];
        return sum;
}

uint64_t work_tokens(const struct work *w)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < w->h->count; i++)
                if (!w->dropped[i])
                        sum += w->weight[i];
        return sum;
}

void work_reweigh(struct work *w, size_t i)
{
        w->weight[i] = weigh_message(&w->weigher, &w->h->list[i], NULL, NULL);
}

size_t work_owner_of(const struct work *w, const struct part *p)
{
        size_t lo = 0, hi = w->h->count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                const struct work_owner *o = &w->owners[mid];
                if (p < o->parts)
                        hi = mid;
                else if (p >= o->parts + o->count)
                        lo = mid + 1;
                else
                        return o->index;
        }
        return w->h->count;
}

/* Messages that were dropped, but whose pairs were not dropped yet. Pairs can chain through a whole
 * history, so this is a queue instead of recursion. */
struct queue {
        size_t *list;
        size_t head, tail, cap;
};

static bool enqueue(struct work *w, struct queue *q, size_t i)
{
        if (i >= w->h->count || w->dropped[i])
                return true;
        if (q->tail == q->cap) {
                size_t cap = q->cap ? 2 * q->cap : 16;
                size_t *more = arena_alloc(w->arena, cap * sizeof *more);
                if (!more)
                        return false;
                if (q->tail)
                        memcpy(more, q->list, q->tail * sizeof *more);
                q->list = more;
                q->cap = cap;
        }
        w->dropped[i] = true;
        q->list[q->tail++] = i;
        return true;
}

void work_drop(struct work *w, size_t i, void (*gone)(void *ctx, size_t i), void *ctx)
{
        struct queue q = {0};
        bool ok = enqueue(w, &q, i);
        while (ok && q.head < q.tail) {
                size_t at = q.list[q.head++];
                const struct message *m = &w->h->list[at];
                if (gone)
                        gone(ctx, at);
                for (size_t k = 0; ok && k < m->count; k++)
                        if (m->parts[k].peer)
                                ok = enqueue(w, &q, work_owner_of(w, m->parts[k].peer));
                if (ok && w->tied[at])
                        ok = enqueue(w, &q, at + 1);
                if (ok && at > 0 && w->tied[at - 1])
                        ok = enqueue(w, &q, at - 1);
        }
}

/* A ref is a string, or an object with an id. */
static struct str ref_text(struct work *w, struct str raw)
{
        struct json j;
        struct str text = {0};
        if (!raw.n)
                return text;
        json_init(&j);
        if (json_parse(&j, raw.p, raw.n, NULL, NULL) == 0)
                text = token_text(
                    &j, json_type(&j, 0) == JSON_OBJECT ? json_get(&j, 0, "id") : 0, w->arena);
        json_release(&j);
        return text;
}

struct str work_ref(struct work *w, const struct message *m, const struct part *result)
{
        struct str ref = ref_text(w, result->ref);
        if (!ref.n && w->ref_of && message_count(m, PART_RESULT) == 1)
                ref = w->ref_of(w->ref_ctx, m);
        return ref.n ? ref : (struct str){0};
}

struct str work_placeholder(
    struct work *w, struct str text, const struct message *m, const struct part *result)
{
        struct str ref = work_ref(w, m, result);
        if (!ref.n)
                return text;
        struct buf b;
        buf_init(&b, 0);
        buf_put_str(&b, text);
        buf_puts(&b, " [full output: ");
        buf_put_str(&b, ref);
        buf_putc(&b, ']');
        struct str made = b.failed ? (struct str){0} : arena_dup(w->arena, buf_str(&b));
        if (b.failed)
                w->arena->failed = STENO_ENOMEM;
        buf_release(&b);
        return made;
}

void work_finish(struct work *w)
{
        size_t kept = 0;
        bool gap = false;
        for (size_t i = 0; i < w->h->count; i++) {
                bool apart = gap;
                gap = w->dropped[i];
                if (w->dropped[i])
                        continue;
                w->h->list[kept] = w->h->list[i];
                w->h->list[kept].apart = w->h->list[i].apart || apart;
                w->weight[kept] = w->weight[i];
                w->dropped[kept] = false;
                w->tied[kept] = w->tied[i];
                for (size_t k = 0; k < w->step_count; k++) {
                        w->steps[k].changed[kept] = w->steps[k].changed[i];
                        w->steps[k].weight[kept] = w->steps[k].weight[i];
                }
                kept++;
        }
        w->h->count = kept;
        for (size_t i = 0; i < kept; i++) {
                const struct message *m = &w->h->list[i];
                w->owners[i] = (struct work_owner){m->parts, m->count, i};
        }
        if (kept)
                qsort(w->owners, kept, sizeof *w->owners, by_address);
}
