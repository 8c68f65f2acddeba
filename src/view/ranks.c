/* ranks.c - see ranks.h */
#include "view/ranks.h"

bool ranks_init(struct ranks *r, size_t size, struct arena *arena)
{
        r->sums = arena_zalloc(arena, (size + 1) * sizeof *r->sums);
        r->size = size;
        r->count = 0;
        return r->sums;
}

static void change(struct ranks *r, size_t i, uint32_t by)
{
        for (size_t k = i + 1; k <= r->size; k += k & -k)
                r->sums[k] += by;
}

void ranks_add(struct ranks *r, size_t i)
{
        change(r, i, 1);
        r->count++;
}

void ranks_remove(struct ranks *r, size_t i)
{
        change(r, i, UINT32_MAX);
        r->count--;
}

size_t ranks_find(const struct ranks *r, size_t k)
{
        size_t at = 0, step = 1;
        while (step * 2 <= r->size)
                step *= 2;
        for (; step; step /= 2) {
                if (at + step > r->size || r->sums[at + step] > k)
                        continue;
                at += step;
                k -= r->sums[at];
        }
        return at;
}
