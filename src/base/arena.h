/*
 * arena.h - memory for one request or conversion, freed at once.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/str.h"

struct arena_block;

struct arena {
        struct arena_block *head;
        int failed; /* sticky: STENO_ENOMEM */
};

struct arena_mark {
        const struct arena_block *head;
        size_t used;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);
/* Frees everything but keeps one block for the next use. */
void arena_reset(struct arena *a);

/* Aligned for anything, not cleared; NULL when memory is out (then `failed` is set). */
void *arena_alloc(struct arena *a, size_t n);
/* Cleared. */
void *arena_zalloc(struct arena *a, size_t n);
/* Gives back all but the first `used` bytes of the last allocation, which had `n`. */
void arena_trim(struct arena *a, void *p, size_t n, size_t used);
/* arena_rewind frees everything that was allocated since arena_mark, and keeps the rest. */
struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark mark);
/* A copy with a NUL behind it; {NULL, 0} when memory is out. */
struct str arena_dup(struct arena *a, struct str s);

#endif
