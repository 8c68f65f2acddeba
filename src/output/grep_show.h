/*
 * grep_show.h - from a place in a text to the lines that are shown. For grep.
 */
#ifndef OUTPUT_GREP_SHOW_H
#define OUTPUT_GREP_SHOW_H

#include "base/arena.h"
#include "output/grep_text.h"

/* What is shown is copied into `arena`. */
struct grep_show {
        struct grep_text *text;
        struct arena *arena;
        bool utf8;
};

/* A line, without its line feed, and what of it matched. */
struct grep_hit {
        uint64_t from;
        uint64_t to;
        uint64_t start;
        uint64_t end;
};

/* Shows the line, or CONTEXT_LONG_LINE characters of it around [start, end). */
int grep_show_line(const struct grep_show *s, const struct grep_hit *hit, struct grep_line *out,
    struct steno_error *err);

/* Up to `count` lines before the line that begins at `from`, or behind the one that ends at `to`
 * (its LF not counted), in the text's order. *n is how many there are. */
int grep_show_before(const struct grep_show *s, uint64_t from, uint32_t count,
    struct grep_line *out, uint32_t *n, struct steno_error *err);
int grep_show_after(const struct grep_show *s, uint64_t to, uint32_t count, struct grep_line *out,
    uint32_t *n, struct steno_error *err);

#endif
