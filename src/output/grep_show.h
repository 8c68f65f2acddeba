/*
 * grep_show.h - from a place in a text to the lines that are shown. For grep.c.
 */
#ifndef OUTPUT_GREP_SHOW_H
#define OUTPUT_GREP_SHOW_H

#include <stddef.h>

#include "output/grep.h"

/* The line [from, to) of a text, or CONTEXT_LONG_LINE characters of it around [start, end). */
void grep_show_line(const char *text, size_t from, size_t to, size_t start, size_t end, bool utf8,
    struct grep_line *out);

/* Up to `count` lines before the line that begins at `from`, or behind the one that ends at `to`
 * (its LF not counted), in the text's order. How many there are. */
uint32_t grep_show_before(
    const char *text, size_t from, uint32_t count, bool utf8, struct grep_line *out);
uint32_t grep_show_after(
    const char *text, size_t n, size_t to, uint32_t count, bool utf8, struct grep_line *out);

#endif
