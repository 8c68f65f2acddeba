/*
 * excerpt_state.h - the state of an excerpt. Only excerpt.c, which fills it, and excerpt_snippet.c,
 * which shows it, include this.
 *
 * Invariants after excerpt_finish:
 *   1. head holds output[0, head_n).
 *   2. last holds output[bytes - last_n, bytes).
 *   3. starts[0, start_count) are the offsets of the last lines, ascending; starts[start_count-1]
 *      is the last line's. The line of starts[i] has number lines - start_count + 1 + i.
 *   4. head_ends[i] is the offset behind line i + 1's bytes (its LF not counted).
 */
#ifndef OUTPUT_EXCERPT_STATE_H
#define OUTPUT_EXCERPT_STATE_H

#include "base/text.h"
#include "output/errors.h"
#include "output/excerpt.h"

#define EXCERPT_BLOCK ((size_t)64 * 1024) /* bytes that are processed at once */
#define EXCERPT_REPORT 704                /* bytes of one failure with the lines around it */
#define EXCERPT_FIRST 3
#define EXCERPT_LAST 3
#define EXCERPT_BEST 8

/* An error line and the lines around it, cleaned. */
struct report {
        uint64_t line; /* number of the error line; 0: an empty slot */
        uint64_t first_line;
        uint64_t last_line;
        uint64_t hash; /* of the error line without its digits */
        int score;
        uint16_t size;
        uint16_t own_at; /* where the error line is in `text` */
        uint16_t own_size;
        char text[EXCERPT_REPORT];
};

struct excerpt {
        size_t max_lines;
        size_t max_bytes;
        uint64_t chars; /* counted as long as it is UTF-8 */
        struct text_utf8 utf8;
        bool nul;
        bool failed;    /* memory was out while an error was read */
        uint64_t lines; /* while feeding: number of line feeds */

        char *block;
        size_t have;
        uint64_t done; /* bytes before the block */

        char *head;
        size_t head_n;
        size_t raw_max; /* capacity of head and of last */
        uint64_t *head_ends;
        size_t head_end_count;

        char *last;
        size_t last_n;
        uint64_t *starts;
        size_t start_count;

        struct finder filter;
        uint64_t hits;
        struct report first[EXCERPT_FIRST];
        struct report best[EXCERPT_BEST];
        struct report recent[EXCERPT_LAST]; /* oldest first */
};

/* Appends a line, cleaned, guarded and clamped to `max` bytes, including the marker and an LF at
 * its end. `raw` is a part of a line, and `whole` is the full length of this line. If the line is
 * too long, its beginning is kept, or its end if `from_end`. *used (may be NULL) becomes the number
 * of raw bytes that are shown. Returns false and appends nothing if not even a clamped form
 * fits. */
bool excerpt_snippet_put_line(
    struct buf *out, struct str raw, uint64_t whole, size_t max, bool from_end, size_t *used);

#endif
