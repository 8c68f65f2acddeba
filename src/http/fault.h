/*
 * fault.h - finds the line of a failed result that says what went wrong, and its place in the
 * output.
 *
 * A long output is in the history as an excerpt (docs/outputs.md), whose error lines were chosen
 * while the output came. The lines are taken from the excerpt, so that the output need not be read
 * again.
 */
#ifndef HTTP_FAULT_H
#define HTTP_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define FAULT_LINES 3

struct fault {
        struct str text;             /* a part of the result's text; empty: it says nothing */
        uint64_t lines[FAULT_LINES]; /* numbers of the first error lines of the output, from 1 */
        size_t count;
};

/* `excerpt`: the text is what Steno shows of a longer output. */
void fault_find(struct str text, bool excerpt, struct fault *out);

#endif
