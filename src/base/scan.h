/*
 * scan.h - the inner loops over bytes that decide how fast JSON and UTF-8 are checked.
 *
 * Each has a portable form and forms for SSE2 and AVX2; the machine's best is chosen at run time.
 * None reads outside [p, end). Knows bytes only: what a fault means is for json and text to say.
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* The first quote, backslash or byte below 0x20 at or after `p`; `end` when there is none. */
const char *scan_string(const char *p, const char *end);

enum scan_stop {
        SCAN_QUOTE,   /* at the closing quote */
        SCAN_END,     /* the bytes ran out; what was there was right so far */
        SCAN_CONTROL, /* at a byte below 0x20 */
        SCAN_ESCAPE,  /* at the backslash of an escape that does not exist */
};

/* Walks the inside of a JSON string from *p up to what `scan_stop` says; *p is left there.
 * *escaped is set when a backslash was passed. UTF-8 is not looked at. */
enum scan_stop scan_string_body(const char **p, const char *end, bool *escaped);

/* Length of the longest valid UTF-8 prefix. */
size_t scan_utf8(const char *p, size_t n);

/* Length of the valid UTF-8 sequence that starts at `p`, 0 when there is none within `n`. */
size_t scan_sequence(const unsigned char *p, size_t n);

#endif
