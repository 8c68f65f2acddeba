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

/* How many bytes are 10xxxxxx, which in UTF-8 begin no character. */
size_t scan_continuations(const char *p, size_t n);

/* The closing quote of a string that is short and has no escapes, NULL for any other: keys and
 * small values then cost no call. */
static inline const char *scan_short_string(const char *p, const char *end);

/* What machines without AVX2 use, named so that tests can hold both to the same answers. */
enum scan_stop scan_string_body_baseline(const char **p, const char *end, bool *escaped);
size_t scan_utf8_baseline(const char *p, size_t n);
size_t scan_continuations_baseline(const char *p, size_t n);

/* Length of the valid UTF-8 sequence that starts at `p`, 0 when there is none within `n`. */
size_t scan_sequence(const unsigned char *p, size_t n);

#if defined(__SSE2__)
#include <emmintrin.h>

static inline const char *scan_short_string(const char *p, const char *end)
{
        if (end - p < 16)
                return NULL;
        __m128i v = _mm_loadu_si128((const __m128i *)p);
        __m128i hit = _mm_or_si128(
            _mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
        unsigned mask = (unsigned)_mm_movemask_epi8(_mm_or_si128(hit, low));
        if (!mask || p[__builtin_ctz(mask)] != '"')
                return NULL;
        return p + __builtin_ctz(mask);
}
#else
static inline const char *scan_short_string(const char *p, const char *end)
{
        (void)p;
        (void)end;
        return NULL;
}
#endif

#endif
