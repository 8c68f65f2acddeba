/*
 * ranks.h - a set of small numbers that can find its k-th member: a Fenwick tree. With it,
 * middle_out is fast on long histories.
 */
#ifndef VIEW_RANKS_H
#define VIEW_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct ranks {
        uint32_t *sums; /* 1-based */
        size_t size;    /* members are 0 .. size - 1 */
        size_t count;
};

/* Makes an empty set. False: out of memory. */
bool ranks_init(struct ranks *r, size_t size, struct arena *arena);
/* ranks_add: `i` must not be in the set. ranks_remove: it must be. */
void ranks_add(struct ranks *r, size_t i);
void ranks_remove(struct ranks *r, size_t i);
/* Returns the k-th member, counted from 0; k < count. */
size_t ranks_find(const struct ranks *r, size_t k);

#endif
