/*
 * buf.h - a growable byte buffer with a cap and a sticky error.
 *
 * Puts return no error. The first put that fails (out of memory, or past `max`) sets `failed`, and
 * later puts do nothing. Check once at the end with buf_check(). Contents are not NUL-terminated
 * unless buf_cstr() is called.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "steno.h"

struct buf {
        char *p;
        size_t n;   /* bytes used */
        size_t cap; /* bytes allocated */
        size_t max; /* never grows past this */
        int failed; /* 0, STENO_ENOMEM or STENO_ELIMIT */
};

/* An empty buffer that may grow to `max` bytes (0: BUF_MAX_DEFAULT of limits.h). */
void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
/* Empties it, keeps the memory, clears the error. */
void buf_clear(struct buf *b);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_putc(struct buf *b, char c);
void buf_puts(struct buf *b, const char *z);
void buf_put_str(struct buf *b, struct str s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_put_u64(struct buf *b, uint64_t v);

/* Room for `n` more bytes; returns where to write them, or NULL (then `failed` is set). The
 * caller adds what it wrote to b->n. */
char *buf_reserve(struct buf *b, size_t n);

/* Gives back the memory beyond the contents, where that is a large part of much. */
void buf_trim(struct buf *b);

/* Removes the first `n` bytes. */
void buf_drop_front(struct buf *b, size_t n);

static inline struct str buf_str(const struct buf *b)
{
        return (struct str){b->p, b->n};
}

/* The contents with a NUL after them, or NULL when the buffer failed. Owned by the buffer. */
const char *buf_cstr(struct buf *b);

/* Hands the memory (NUL-terminated) to the caller, who frees it with free(); NULL on failure.
 * The buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *n);

/* 0, or the sticky error described in `err`. */
int buf_check(const struct buf *b, struct steno_error *err);

#endif
