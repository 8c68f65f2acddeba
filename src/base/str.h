/*
 * str.h - a view of bytes: pointer and length, never owned, never NUL-terminated.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct str {
        const char *p;
        size_t n;
};

/* A view of a string literal. */
#define STR(lit) ((struct str){(lit), sizeof(lit) - 1})

static inline struct str str_of(const char *z)
{
        return (struct str){z, z ? strlen(z) : 0};
}

static inline struct str str_span(const char *p, size_t n)
{
        return (struct str){p, n};
}

static inline bool str_eq(struct str a, struct str b)
{
        return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_is(struct str a, const char *z)
{
        return str_eq(a, str_of(z));
}

static inline bool str_starts(struct str a, const char *z)
{
        size_t n = strlen(z);
        return a.n >= n && memcmp(a.p, z, n) == 0;
}

/* The text without JSON's white space around it. */
static inline struct str str_trim(struct str s)
{
        while (s.n && s.p[s.n - 1] && strchr(" \t\r\n", s.p[s.n - 1]))
                s.n--;
        while (s.n && s.p[0] && strchr(" \t\r\n", s.p[0]))
                s = str_span(s.p + 1, s.n - 1);
        return s;
}

#endif
