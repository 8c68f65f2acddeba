/*
 * sieve_hs.c - implements sieve.h with Hyperscan.
 *
 * Hyperscan reports the end of every match, in any order. A match within a line ends behind one of
 * the line's bytes, so the byte before the end shows the line. If this byte is a line feed, the
 * match is not within a line.
 */
#include "output/sieve.h"

#include <stdlib.h>
#include <string.h>

#include "base/libhs.h"
#include "base/limits.h"
#include "base/scan.h"

#define DATABASE_MAX ((size_t)2 * MIB)
/* With a match in so few bytes on average, most lines have a match, and each call of on_match costs
 * as much as the engine needs for some bytes. */
#define DENSE 12

struct sieve {
        bool chars;
        hs_database_t *database;
        hs_scratch_t *scratch;
        char *copy; /* a copy of a block that cannot be given unchanged */
        size_t room;
        uint32_t at[SIEVE_LINES];
        /* for one call */
        const char *p; /* the text that Hyperscan sees */
        size_t n;
        size_t count;
        size_t events;
        size_t line_end; /* the end of the last line that was found */
        bool unordered;
};

void sieve_free(struct sieve *s)
{
        if (!s)
                return;
        if (s->scratch)
                libhs.free_scratch(s->scratch);
        if (s->database)
                libhs.free_database(s->database);
        free(s->copy);
        free(s);
}

static bool compile(struct sieve *s, const char *expression)
{
        hs_compile_error_t *why = NULL;
        unsigned flags = HS_FLAG_MULTILINE | (s->chars ? HS_FLAG_UTF8 : 0);
        size_t size = 0;
        if (libhs.compile(expression, flags, HS_MODE_BLOCK, NULL, &s->database, &why) !=
            HS_SUCCESS) {
                libhs.free_compile_error(why);
                s->database = NULL;
                return false;
        }
        return libhs.database_size(s->database, &size) == HS_SUCCESS && size <= DATABASE_MAX &&
               libhs.alloc_scratch(s->database, &s->scratch) == HS_SUCCESS;
}

struct sieve *sieve_new(struct str pattern, const struct sieve_mode *mode)
{
        struct steno_error why = {0};
        struct buf expression;
        struct sieve *s = NULL;
        buf_init(&expression, 64 * KIB);
        if (sieve_expression(pattern, mode, &expression) && libhs_need(&why) == 0)
                s = calloc(1, sizeof *s);
        if (s) {
                s->chars = mode->chars;
                const char *text = buf_cstr(&expression);
                if (expression.failed || !compile(s, text)) {
                        sieve_free(s);
                        s = NULL;
                }
        }
        buf_release(&expression);
        return s;
}

/* ---- the text ---- */

/* Copies the text, and replaces CRs at the ends of lines, and bytes that are not UTF-8, by line
 * feeds. */
static bool copy_plainly(struct sieve *s, const char *p, size_t n, size_t valid)
{
        if (s->room < n) {
                char *more = realloc(s->copy, n);
                if (!more)
                        return false;
                s->copy = more;
                s->room = n;
        }
        memcpy(s->copy, p, n);
        for (char *cr = s->copy; (cr = memchr(cr, '\r', n - (size_t)(cr - s->copy))); cr++) {
                if (cr + 1 == s->copy + n || cr[1] == '\n')
                        *cr = '\n';
        }
        while (valid < n) {
                s->copy[valid++] = '\n';
                valid += s->chars ? scan_utf8(p + valid, n - valid) : n - valid;
        }
        s->p = s->copy;
        return true;
}

static bool take_text(struct sieve *s, const char *p, size_t n)
{
        size_t valid = s->chars ? scan_utf8(p, n) : n;
        s->p = p;
        s->n = n;
        s->count = s->events = s->line_end = 0;
        s->unordered = false;
        return (valid == n && !memchr(p, '\r', n)) || copy_plainly(s, p, n, valid);
}

/* ---- the calls ---- */

static int on_match(
    unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *ctx)
{
        struct sieve *s = ctx;
        size_t at = (size_t)to - 1;
        (void)id, (void)from, (void)flags;
        if (++s->events > 64 + s->n / DENSE)
                return 1;
        if (s->count && at >= s->at[s->count - 1] && at < s->line_end)
                return 0;
        if (to == 0 || s->p[at] == '\n')
                return 0;
        if (s->count == SIEVE_LINES)
                return 1;
        s->unordered = s->unordered || (s->count && at < s->at[s->count - 1]);
        const char *nl = memchr(s->p + at, '\n', s->n - at);
        s->line_end = nl ? (size_t)(nl - s->p) : s->n;
        s->at[s->count++] = (uint32_t)at;
        return 0;
}

static int by_place(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a;
        uint32_t y = *(const uint32_t *)b;
        return x < y ? -1 : x > y;
}

int sieve_lines(struct sieve *s, const char *p, size_t n, const uint32_t **at)
{
        if (n > UINT32_MAX / 2 || !take_text(s, p, n) ||
            libhs.scan(s->database, s->p, (unsigned)n, 0, s->scratch, on_match, s) != HS_SUCCESS)
                return -1;
        if (s->unordered)
                qsort(s->at, s->count, sizeof *s->at, by_place);
        *at = s->at;
        return (int)s->count;
}

static int on_any(
    unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *ctx)
{
        (void)id, (void)from, (void)to, (void)flags, (void)ctx;
        return 1;
}

bool sieve_has(struct sieve *s, const char *p, size_t n)
{
        return n > UINT32_MAX / 2 || !take_text(s, p, n) ||
               libhs.scan(s->database, s->p, (unsigned)n, 0, s->scratch, on_any, s) != HS_SUCCESS;
}
