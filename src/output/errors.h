/*
 * errors.h - finds the lines of a tool's output that say what went wrong.
 *
 * It reads one line at a time and keeps no state. It knows compilers and linkers, make and ninja,
 * sanitizers, Python, Node, Java, Go, Rust, shells, and the summaries of common test runners. Lines
 * that only mention the words ("0 errors", "test_error_handling ... ok", "gcc -c error.c") do not
 * count.
 */
#ifndef OUTPUT_ERRORS_H
#define OUTPUT_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "output/finder.h"

/* How much a line says about an error. 0: nothing. */
enum errors_score {
        ERRORS_NONE = 0,
        ERRORS_MENTION = 20, /* the word, but not in a known form */
        ERRORS_LIKELY = 45,  /* "error:" and the like somewhere in the line */
        ERRORS_FRAME = 60,   /* a build step or wrapper that reports the failure of another
                                program */
        ERRORS_SUMMARY = 75, /* counts of failed tests, "build failed" */
        ERRORS_FAILED = 85,  /* one test that failed */
        ERRORS_CAUSE = 100,  /* a diagnostic, an exception with its message, a crash */
};

/* `line` has no line feed and no escape sequences. */
int errors_score(struct str line);

/* Does a line continue the report that an error line began? It may be a stack frame, a caret or a
 * note. */
bool errors_continues(struct str line);

/* Fills a finder with words. Every line with a score contains at least one of them, so other lines
 * need not be scored. */
void errors_filter(struct finder *f);

#endif
