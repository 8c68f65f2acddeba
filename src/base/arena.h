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

void arena_init(struct arena *a);
void arena_release(struct arena *a);
/* Frees everything but keeps one block for the next use. */
void arena_reset(struct arena *a);

/* Aligned for anything, not cleared; NULL when memory is out (then `failed` is set). */
void *arena_alloc(struct arena *a, size_t n);
/* Cleared. */
void *arena_zalloc(struct arena *a, size_t n);
/* A copy with a NUL behind it; {NULL, 0} when memory is out. */
struct str arena_dup(struct arena *a, struct str s);

#endif
