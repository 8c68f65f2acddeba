/*
 * grep_text.h - the searched text, of which only a window is in memory. For grep.
 *
 * The window moves forward with the search. Text outside of it (lines of context) is read into a
 * second, small buffer. Reading costs less than mapping the file: the window stays in the
 * processor's cache, and a mapping costs time for each page.
 */
#ifndef OUTPUT_GREP_TEXT_H
#define OUTPUT_GREP_TEXT_H

#include "base/limits.h"
#include "output/grep.h"

struct grep_text {
        const struct grep_source *source;
        size_t block; /* bytes that are read at once */
        size_t most;  /* a longer line is never in the window as a whole */
        /* the window: text[at, at + n) */
        char *p;
        size_t n;
        uint64_t at;
        /* text[side_at, side_at + side_n), for text outside of the window */
        char *side;
        size_t side_n;
        uint64_t side_at;
};

/* 0 or STENO_ENOMEM. */
int grep_text_open(struct grep_text *t, const struct grep_source *source, struct steno_error *err);
void grep_text_close(struct grep_text *t);

/* Moves the window so that it begins at `from` and has `n` bytes (at most t->most), or all bytes up
 * to the text's end. The window only moves forward. */
int grep_text_load(struct grep_text *t, uint64_t from, size_t n, struct steno_error *err);

/*
 * Moves the window to `from`, where a line begins, and loads whole lines. *n is their length: they
 * end behind a line feed or at the text's end. 0: the line at `from` is longer than t->most, and
 * the window has t->most bytes of it.
 */
int grep_text_lines(struct grep_text *t, uint64_t from, size_t *n, struct steno_error *err);

#define GREP_TEXT_SPAN (64 * KIB)
/* Gets text[from, to), at most GREP_TEXT_SPAN bytes; *p is valid until the next call. */
int grep_text_span(
    struct grep_text *t, uint64_t from, uint64_t to, const char **p, struct steno_error *err);
/* Finds the place behind the last line feed in text[0, to), or 0. */
int grep_text_line_start(
    struct grep_text *t, uint64_t to, uint64_t *start, struct steno_error *err);
/* Finds the first line feed at or behind `from`, or the text's end. */
int grep_text_line_end(struct grep_text *t, uint64_t from, uint64_t *end, struct steno_error *err);

#endif
