/*
 * wrap.h - a block of text from outside, laid out for a terminal: made safe, indented, wrapped,
 * and cut to a few rows where that is wanted.
 */
#ifndef CLI_WRAP_H
#define CLI_WRAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cli/out.h"

struct wrap {
        struct out *o;
        unsigned width;     /* columns of the whole row */
        const char *prefix; /* what each row begins with, trusted; may be NULL */
        const char *prefix_style;
        const char *style; /* SGR of the text, or NULL */
        bool words;        /* break between words where there are any */
        bool colours;      /* let the text's own colours pass */
        size_t max_rows;   /* 0: all */
};

/* What was not shown. */
struct wrap_left {
        size_t lines;
        size_t bytes;
};

struct wrap_left wrap_put(const struct wrap *w, struct str text);

/* The first line of `text` in at most `columns`, safe, with an ellipsis when cut. */
void wrap_one_line(struct out *o, struct str text, unsigned columns);

#endif
