/* arena.c - see arena.h */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "steno.h"

#define BLOCK_MIN 4096

struct arena_block {
        struct arena_block *next;
        size_t used;
        size_t size;
        alignas(max_align_t) char data[];
};

static size_t aligned(size_t n)
{
        size_t align = alignof(max_align_t);
        return (n + align - 1) & ~(align - 1);
}

void arena_init(struct arena *a)
{
        *a = (struct arena){0};
}

void arena_release(struct arena *a)
{
        if (!a)
                return;
        for (struct arena_block *b = a->head, *next; b; b = next) {
                next = b->next;
                free(b);
        }
        *a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
        struct arena_block *keep = a->head;
        if (keep) {
                a->head = keep->next;
                arena_release(a);
                keep->next = NULL;
                keep->used = 0;
                a->head = keep;
        }
        a->failed = 0;
}

void *arena_alloc(struct arena *a, size_t n)
{
        if (a->failed || n > SIZE_MAX - BLOCK_MIN - sizeof(struct arena_block))
                goto fail;
        n = aligned(n);
        struct arena_block *b = a->head;
        if (!b || b->size - b->used < n) {
                size_t size = b ? b->size * 2 : BLOCK_MIN;
                if (size > 1024 * 1024)
                        size = 1024 * 1024;
                if (size < n)
                        size = n;
                b = malloc(sizeof *b + size);
                if (!b)
                        goto fail;
                *b = (struct arena_block){.next = a->head, .size = size};
                a->head = b;
        }
        void *p = b->data + b->used;
        b->used += n;
        return p;
fail:
        a->failed = STENO_ENOMEM;
        return NULL;
}

void *arena_zalloc(struct arena *a, size_t n)
{
        void *p = arena_alloc(a, n);
        if (p)
                memset(p, 0, n);
        return p;
}

void arena_trim(struct arena *a, void *p, size_t n, size_t used)
{
        struct arena_block *b = a->head;
        if (b && (char *)p + aligned(n) == b->data + b->used)
                b->used -= aligned(n) - aligned(used);
}

struct arena_mark arena_mark(const struct arena *a)
{
        return (struct arena_mark){a->head, a->head ? a->head->used : 0};
}

/* The newest block stays, because what comes next probably needs it as well. */
void arena_rewind(struct arena *a, struct arena_mark mark)
{
        struct arena_block *b = a->head;
        if (b && b != mark.head) {
                while (b->next != mark.head) {
                        struct arena_block *older = b->next;
                        b->next = older->next;
                        free(older);
                }
                b->used = 0;
        } else if (b) {
                b->used = mark.used;
        }
}

struct str arena_dup(struct arena *a, struct str s)
{
        char *p = arena_alloc(a, s.n + 1);
        if (!p)
                return (struct str){0};
        if (s.n)
                memcpy(p, s.p, s.n);
        p[s.n] = '\0';
        return str_span(p, s.n);
}
