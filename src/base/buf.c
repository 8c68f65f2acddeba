/* buf.c - see buf.h */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

void buf_init(struct buf *b, size_t max)
{
        *b = (struct buf){.max = max ? max : BUF_MAX_DEFAULT};
}

void buf_release(struct buf *b)
{
        if (!b)
                return;
        free(b->p);
        *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
        b->n = 0;
        b->failed = 0;
}

char *buf_reserve(struct buf *b, size_t n)
{
        if (b->failed)
                return NULL;
        if (n <= b->cap - b->n)
                return b->p + b->n;
        /* One byte is kept back for the NUL of buf_cstr and buf_take. */
        if (n > b->max - b->n) {
                b->failed = STENO_ELIMIT;
                return NULL;
        }
        size_t cap = b->cap ? b->cap : 64;
        while (cap < b->n + n + 1)
                cap = cap < MIB ? cap * 2 : cap + cap / 2;
        if (cap > b->max + 1)
                cap = b->max + 1;
        char *p = realloc(b->p, cap);
        if (!p) {
                b->failed = STENO_ENOMEM;
                return NULL;
        }
        b->p = p;
        b->cap = cap;
        return b->p + b->n;
}

void buf_trim(struct buf *b)
{
        if (b->cap < MIB || b->cap - b->n <= b->cap / 16)
                return;
        char *p = realloc(b->p, b->n + 1); /* one byte for the NUL of buf_cstr and buf_take */
        if (!p)
                return;
        b->p = p;
        b->cap = b->n + 1;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
        if (n == 0)
                return;
        char *to = buf_reserve(b, n);
        if (!to)
                return;
        memcpy(to, p, n);
        b->n += n;
}

void buf_putc(struct buf *b, char c)
{
        if (b->n < b->cap && !b->failed) {
                b->p[b->n++] = c;
                return;
        }
        buf_put(b, &c, 1);
}

void buf_puts(struct buf *b, const char *z)
{
        buf_put(b, z, strlen(z));
}

void buf_put_str(struct buf *b, struct str s)
{
        buf_put(b, s.p, s.n);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        char *to = n < 0 ? NULL : buf_reserve(b, (size_t)n + 1);
        if (!to)
                return;
        va_start(ap, fmt);
        vsnprintf(to, (size_t)n + 1, fmt, ap);
        va_end(ap);
        b->n += (size_t)n;
}

void buf_put_u64(struct buf *b, uint64_t v)
{
        char digits[20];
        size_t i = sizeof digits;
        do {
                digits[--i] = (char)('0' + v % 10);
                v /= 10;
        } while (v);
        buf_put(b, digits + i, sizeof digits - i);
}

void buf_drop_front(struct buf *b, size_t n)
{
        if (n >= b->n) {
                b->n = 0;
                return;
        }
        memmove(b->p, b->p + n, b->n - n);
        b->n -= n;
}

const char *buf_cstr(struct buf *b)
{
        char *end = buf_reserve(b, 1);
        if (!end)
                return NULL;
        *end = '\0';
        return b->p;
}

char *buf_take(struct buf *b, size_t *n)
{
        if (!buf_cstr(b))
                return NULL;
        char *p = b->p;
        if (n)
                *n = b->n;
        *b = (struct buf){.max = b->max};
        return p;
}

int buf_check(const struct buf *b, struct steno_error *err)
{
        switch (b->failed) {
        case 0:
                return 0;
        case STENO_ENOMEM:
                return error_nomem(err);
        default:
                return error_set(err, b->failed, "larger than %zu bytes", b->max);
        }
}
