/*
 * errors.h - which lines of a tool's output tell what went wrong.
 *
 * A line at a time, no memory: compilers and linkers, make and ninja, sanitizers, Python, Node,
 * Java, Go, Rust, shells, and the summaries of the usual test runners. Lines that only mention
 * the words ("0 errors", "test_error_handling ... ok", "gcc -c error.c") do not count.
 */
#ifndef OUTPUT_ERRORS_H
#define OUTPUT_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "output/finder.h"

/* How telling a line is. 0: not at all. */
enum errors_score {
        ERRORS_NONE = 0,
        ERRORS_MENTION = 20, /* the word, in no known form */
        ERRORS_LIKELY = 45,  /* "error:" and the like somewhere in the line */
        ERRORS_FRAME = 60,   /* a build step or wrapper that reports somebody else's failure */
        ERRORS_SUMMARY = 75, /* counts of failed tests, "build failed" */
        ERRORS_FAILED = 85,  /* one test that failed */
        ERRORS_CAUSE = 100,  /* a diagnostic, an exception with its message, a crash */
};

/* `line` has no line feed and no escape sequences. */
int errors_score(struct str line);

/* Does a line continue the report that an error line began: a stack frame, a caret, a note? */
bool errors_continues(struct str line);

/* Fills a finder with words of which every line with a score has at least one, so that the rest of
 * an output need not be looked at line by line. */
void errors_filter(struct finder *f);

#endif
