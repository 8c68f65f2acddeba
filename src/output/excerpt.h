/*
 * excerpt.h - collects the most useful parts of a large output while it streams by.
 *
 * Feed the bytes in pieces of any size; the result does not depend on the pieces. Memory is bounded
 * (about 150 KiB). An excerpt keeps the beginning, the end, the most important error lines with
 * their numbers (errors.h), and the figures. Then take snippets:
 *
 *         struct excerpt *e = excerpt_new(NULL);
 *         excerpt_feed(e, p, n); ...
 *         excerpt_finish(e);
 *         stub_build(e, &meta, &out, err);        (stub.h)
 *
 * A snippet consists of whole lines in valid UTF-8 without escape sequences, and is safe inside a
 * stub's frame (clean.h). A line that is too long is clamped, with a marker that gives its length.
 * A snippet never begins or ends inside a character, a surrogate pair, an escape (`\u00e9`) or a
 * grapheme (cut.h).
 *
 * Only one thread may use an excerpt at a time.
 */
#ifndef OUTPUT_EXCERPT_H
#define OUTPUT_EXCERPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

#define EXCERPT_LINES 40
#define EXCERPT_BYTES 2048
#define EXCERPT_ERROR_BYTES 1024
#define EXCERPT_LINES_MAX 400
#define EXCERPT_BYTES_MAX (32 * 1024)

struct excerpt;

struct excerpt_options {
        size_t lines; /* for head and tail each; 0: EXCERPT_LINES */
        size_t bytes; /* for head and tail each; 0: EXCERPT_BYTES */
};

/* Returns NULL if memory is out. `opt` may be NULL. */
struct excerpt *excerpt_new(const struct excerpt_options *opt);
void excerpt_free(struct excerpt *e);

/* If memory is out, feeding continues. Then an error line may be missed, excerpt_failed returns
 * true, and stub_build returns STENO_ENOMEM. */
void excerpt_feed(struct excerpt *e, const void *p, size_t n);
/* Call it at the end of the output, before any of the calls below. Do not feed after it. */
void excerpt_finish(struct excerpt *e);

struct excerpt_figures {
        uint64_t bytes;
        uint64_t chars; /* code points, or bytes if it is not UTF-8 */
        uint64_t lines; /* line feeds, and one more if the last line has none */
        bool utf8;      /* the whole output is valid UTF-8 */
        bool binary;    /* it is not UTF-8, and has NULs or many bytes that no text has. A log
                           with a few invalid bytes is text. */
};

bool excerpt_failed(const struct excerpt *e);
void excerpt_figures(const struct excerpt *e, struct excerpt_figures *out);
/* Returns the first raw bytes: at most EXCERPT_BYTES_MAX, and at least 4 KiB if there are as
 * many. */
struct str excerpt_first_bytes(const struct excerpt *e);

/* The lines of a snippet. `text` ends with a line feed unless it is empty. */
struct snippet {
        struct buf text;
        uint64_t first_line; /* 1-based, 0 when empty */
        uint64_t last_line;
        uint64_t raw_end; /* head: the number of the output's bytes before the part that is not
                             shown */
};

void excerpt_snippet_init(struct snippet *s);
void excerpt_snippet_release(struct snippet *s);

/* Writes the beginning, in at most max_bytes and the options' lines. The snippet is empty if not
 * even a clamped line fits. `s` must be initialised; it is overwritten. */
void excerpt_head(const struct excerpt *e, size_t max_bytes, struct snippet *s);

/* Writes the end, in at most max_bytes, without lines that `head` (may be NULL) shows already. */
void excerpt_tail(
    const struct excerpt *e, size_t max_bytes, const struct snippet *head, struct snippet *s);

#define EXCERPT_ERROR_LINES 16 /* at most this many line numbers are listed */

struct error_snippet {
        struct buf text;
        uint64_t lines[EXCERPT_ERROR_LINES]; /* numbers of the error lines, ascending */
        size_t count;
};

void excerpt_error_snippet_init(struct error_snippet *s);
void excerpt_error_snippet_release(struct error_snippet *s);

/* Writes the most important failures in the order of the output, without those that `head` or
 * `tail` (may be NULL) show already. The first and the last failures have priority. */
void excerpt_errors(const struct excerpt *e, size_t max_bytes, const struct snippet *head,
    const struct snippet *tail, struct error_snippet *s);

#endif
