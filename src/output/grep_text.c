/* grep_text.c - see grep_text.h */
#include "output/grep_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

/* A block fits into a processor's cache, because it is read several times. */
#define BLOCK (256 * KIB)

int grep_text_open(struct grep_text *t, const struct grep_source *source, struct steno_error *err)
{
        memset(t, 0, sizeof(*t));
        t->source = source;
        t->block = source->block ? source->block : BLOCK;
        /* A long line is searched in pieces that overlap by GREP_LONG_SUBJECT; twice that size
         * would be enough. */
        t->most = t->block < GREP_LONG_SUBJECT ? 4 * GREP_LONG_SUBJECT : 4 * t->block;
        t->p = malloc(t->most);
        return t->p ? 0 : error_nomem(err);
}

void grep_text_close(struct grep_text *t)
{
        free(t->p);
        free(t->side);
        memset(t, 0, sizeof(*t));
}

int grep_text_load(struct grep_text *t, uint64_t from, size_t n, struct steno_error *err)
{
        uint64_t left = t->source->file.size - from;
        size_t want = left < n ? (size_t)left : n;
        size_t keep = t->n && from <= t->at + t->n ? (size_t)(t->at + t->n - from) : 0;
        if (keep && from > t->at)
                memmove(t->p, t->p + (from - t->at), keep);
        t->at = from;
        t->n = keep;
        if (want <= keep)
                return 0;
        int rc =
            t->source->file.read(t->source->file.ctx, from + keep, t->p + keep, want - keep, err);
        if (rc == 0)
                t->n = want;
        return rc;
}

/* Returns the length of whole lines in the window, whose first `seen` bytes have no line feed. */
static size_t whole_lines(const struct grep_text *t, size_t seen)
{
        if (t->at + t->n == t->source->file.size)
                return t->n;
        const char *nl = memrchr(t->p + seen, '\n', t->n - seen);
        return nl ? (size_t)(nl - t->p) + 1 : 0;
}

int grep_text_lines(struct grep_text *t, uint64_t from, size_t *n, struct steno_error *err)
{
        /* The rest of the window is the beginning of a line, or the text behind a giant line. A
         * whole block is added behind it. */
        size_t have = t->block + (from <= t->at + t->n ? (size_t)(t->at + t->n - from) : 0);
        size_t seen = 0;
        int rc = grep_text_load(t, from, have < t->most ? have : t->most, err);
        while (rc == 0 && (*n = whole_lines(t, seen)) == 0 && t->n < t->most) {
                seen = t->n;
                have = 2 * seen < t->most ? 2 * seen : t->most;
                rc = grep_text_load(t, from, have, err);
        }
        return rc;
}

/* ---- outside of the window ---- */

static bool is_within(uint64_t from, uint64_t to, uint64_t at, size_t n)
{
        return from >= at && to <= at + n;
}

int grep_text_span(
    struct grep_text *t, uint64_t from, uint64_t to, const char **p, struct steno_error *err)
{
        if (is_within(from, to, t->at, t->n)) {
                *p = t->p + (from - t->at);
                return 0;
        }
        if (!t->side && !(t->side = malloc(GREP_TEXT_SPAN)))
                return error_nomem(err);
        if (!is_within(from, to, t->side_at, t->side_n)) {
                t->side_n = 0;
                int rc = t->source->file.read(
                    t->source->file.ctx, from, t->side, (size_t)(to - from), err);
                if (rc < 0)
                        return rc;
                t->side_at = from;
                t->side_n = (size_t)(to - from);
        }
        *p = t->side + (from - t->side_at);
        return 0;
}

/* The number of bytes that one search for a line feed covers, in the window or beside it. */
#define LOOK (32 * KIB)

int grep_text_line_start(struct grep_text *t, uint64_t to, uint64_t *start, struct steno_error *err)
{
        while (to > 0) {
                bool inside = to > t->at && to <= t->at + t->n;
                uint64_t from = inside ? t->at : to < LOOK ? 0 : to - LOOK;
                const char *p = NULL;
                int rc = grep_text_span(t, from, to, &p, err);
                if (rc < 0)
                        return rc;
                const char *nl = memrchr(p, '\n', (size_t)(to - from));
                if (nl) {
                        *start = from + (uint64_t)(nl - p) + 1;
                        return 0;
                }
                to = from;
        }
        *start = 0;
        return 0;
}

int grep_text_line_end(struct grep_text *t, uint64_t from, uint64_t *end, struct steno_error *err)
{
        uint64_t size = t->source->file.size;
        while (from < size) {
                bool inside = from >= t->at && from < t->at + t->n;
                uint64_t to = inside ? t->at + t->n : size - from < LOOK ? size : from + LOOK;
                const char *p = NULL;
                int rc = grep_text_span(t, from, to, &p, err);
                if (rc < 0)
                        return rc;
                const char *nl = memchr(p, '\n', (size_t)(to - from));
                if (nl) {
                        *end = from + (uint64_t)(nl - p);
                        return 0;
                }
                from = to;
        }
        *end = size;
        return 0;
}
