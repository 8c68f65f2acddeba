/*
 * excerpt.h - collects what is worth showing of a large output while it streams by.
 *
 * Feed the bytes in pieces of any size; the result does not depend on the pieces. Memory is bounded
 * (about 150 KiB). An excerpt keeps the beginning, the end, the most telling error lines with their
 * numbers (errors.h), and the figures. Then take snippets:
 *
 *         struct excerpt *e = excerpt_new(NULL);
 *         excerpt_feed(e, p, n); ...
 *         excerpt_finish(e);
 *         stub_build(e, &meta, &out, err);        (stub.h)
 *
 * A snippet is made of whole lines without escape sequences, valid UTF-8, and safe inside a
 * stub's frame (clean.h). A line that is too long is clamped with a marker that says how much is
 * missing. A snippet never begins or ends inside a character, a surrogate pair, an escape
 * (`\u00e9`) or a grapheme (cut.h).
 *
 * One thread at a time.
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
        size_t lines; /* of head and tail each; 0: EXCERPT_LINES */
        size_t bytes; /* of head and tail each; 0: EXCERPT_BYTES */
};

/* NULL when memory is out. `opt` may be NULL. */
struct excerpt *excerpt_new(const struct excerpt_options *opt);
void excerpt_free(struct excerpt *e);

/* Continues when memory is out: then an error line may be missed, excerpt_failed says so, and
 * stub_build answers STENO_ENOMEM. */
void excerpt_feed(struct excerpt *e, const void *p, size_t n);
/* Call it at the end of the output, before any of the calls below. Do not feed after it. */
void excerpt_finish(struct excerpt *e);

struct excerpt_figures {
        uint64_t bytes;
        uint64_t chars; /* code points, or bytes where it is not UTF-8 */
        uint64_t lines; /* line feeds, and one more when the last line has none */
        bool utf8;      /* all of it is valid UTF-8 */
        bool binary;    /* not UTF-8, and with NULs or mostly bytes that no text has; a log with
                           a few bad bytes is text */
};

bool excerpt_failed(const struct excerpt *e);
void excerpt_figures(const struct excerpt *e, struct excerpt_figures *out);
/* The first raw bytes (at most EXCERPT_BYTES_MAX, at least 4 KiB when there are as many). */
struct str excerpt_first_bytes(const struct excerpt *e);

/* Lines of a snippet. `text` ends with a line feed unless it is empty. */
struct snippet {
        struct buf text;
        uint64_t first_line; /* 1-based, 0 when empty */
        uint64_t last_line;
        uint64_t raw_end; /* head: bytes of the output that lie before what is not shown */
};

void excerpt_snippet_init(struct snippet *s);
void excerpt_snippet_release(struct snippet *s);

/* The beginning, in at most max_bytes (and the options' lines). Empty when not even a clamped
 * line fits. `s` was initialised; it is overwritten. */
void excerpt_head(const struct excerpt *e, size_t max_bytes, struct snippet *s);

/* The end, in at most max_bytes, showing nothing that `head` (may be NULL) shows already. */
void excerpt_tail(
    const struct excerpt *e, size_t max_bytes, const struct snippet *head, struct snippet *s);

#define EXCERPT_ERROR_LINES 16 /* line numbers that are named */

struct error_snippet {
        struct buf text;
        uint64_t lines[EXCERPT_ERROR_LINES]; /* of the telling lines, ascending */
        size_t count;
};

void excerpt_error_snippet_init(struct error_snippet *s);
void excerpt_error_snippet_release(struct error_snippet *s);

/* The most telling failures, first and last favoured, in the order of the output, without those
 * that `head` or `tail` (may be NULL) show already. */
void excerpt_errors(const struct excerpt *e, size_t max_bytes, const struct snippet *head,
    const struct snippet *tail, struct error_snippet *s);

#endif
