/*
 * ranks.h - a set of small numbers that knows its k-th member: a Fenwick tree. middle_out needs it
 * to stay fast on long histories.
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

/* Empty. False: out of memory. */
bool ranks_init(struct ranks *r, size_t size, struct arena *arena);
/* `i` must not be in it; resp. must be. */
void ranks_add(struct ranks *r, size_t i);
void ranks_remove(struct ranks *r, size_t i);
/* The k-th member from 0; k < count. */
size_t ranks_find(const struct ranks *r, size_t k);

#endif
