/*
 * grep_show.h - finds the lines to show for a place in a text. For grep.
 */
#ifndef OUTPUT_GREP_SHOW_H
#define OUTPUT_GREP_SHOW_H

#include "base/arena.h"
#include "output/grep_text.h"

/* The lines are copied into `arena`. */
struct grep_show {
        struct grep_text *text;
        struct arena *arena;
        bool utf8;
};

/* A line, without its line feed, and the match in it. */
struct grep_hit {
        uint64_t from;
        uint64_t to;
        uint64_t start;
        uint64_t end;
};

/* Shows the line, or CONTEXT_LONG_LINE characters of it around [start, end). */
int grep_show_line(const struct grep_show *s, const struct grep_hit *hit, struct grep_line *out,
    struct steno_error *err);

/* Finds up to `count` lines before the line that begins at `from`, or behind the line that ends at
 * `to` (without its LF), in the order of the text. *n is their number. */
int grep_show_before(const struct grep_show *s, uint64_t from, uint32_t count,
    struct grep_line *out, uint32_t *n, struct steno_error *err);
int grep_show_after(const struct grep_show *s, uint64_t to, uint32_t count, struct grep_line *out,
    uint32_t *n, struct steno_error *err);

#endif
