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

#define EXCERPT_BLOCK ((size_t)64 * 1024) /* bytes that are looked at in one go */
#define EXCERPT_REPORT 704                /* bytes of one failure with what surrounds it */
#define EXCERPT_FIRST 3
#define EXCERPT_LAST 3
#define EXCERPT_BEST 8

/* A telling line and the lines around it, cleaned. */
struct report {
        uint64_t line; /* of the telling line; 0: an empty slot */
        uint64_t first_line;
        uint64_t last_line;
        uint64_t hash; /* of the telling line without its digits */
        int score;
        uint16_t size;
        uint16_t own_at; /* the telling line within text */
        uint16_t own_size;
        char text[EXCERPT_REPORT];
};

struct excerpt {
        size_t max_lines;
        size_t max_bytes;
        uint64_t chars; /* while it is UTF-8 */
        struct text_utf8 utf8;
        bool nul;
        bool failed;    /* memory was out while an error was looked at */
        uint64_t lines; /* while feeding: line feeds */

        char *block;
        size_t have;
        uint64_t done; /* bytes before the block */

        char *head;
        size_t head_n;
        size_t raw_max; /* room of head and of last */
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

/* Appends a line, cleaned, guarded and clamped to `max` bytes (marker and LF included), LF at its
 * end. `whole` is the full length of the line that `raw` is a part of; `from_end` keeps the end
 * of a line that is too long, else its beginning is kept. *used (may be NULL) is how many raw
 * bytes are shown. False, with nothing appended, when not even a clamped form fits. */
bool excerpt_snippet_put_line(
    struct buf *out, struct str raw, uint64_t whole, size_t max, bool from_end, size_t *used);

#endif
