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
#include <string.h>

/* The first quote, backslash or byte below 0x20 at or after `p`; `end` when there is none. */
const char *scan_string(const char *p, const char *end);

enum scan_stop {
        SCAN_QUOTE,   /* at the closing quote */
        SCAN_END,     /* the bytes ran out; everything so far was valid */
        SCAN_CONTROL, /* at a byte below 0x20 */
        SCAN_ESCAPE,  /* at the backslash of an escape that does not exist */
};

/* Walks the inside of a JSON string from *p up to what `scan_stop` says; *p is left there.
 * *escaped is set when a backslash was passed. UTF-8 is not looked at. */
enum scan_stop scan_string_body(const char **p, const char *end, bool *escaped);

/* The first backslash with a `u` right behind it; `end` when there is none. The backslash may be
 * the second half of an escape. */
const char *scan_unicode_escape(const char *p, const char *end);

/* Copies what stands before the next backslash and returns it, or `end`; *to moves behind the copy.
 * There is room for end - p bytes at *to, and all of it may be written to. */
static inline const char *scan_copy_plain(const char *p, const char *end, char **to);

/* Copies SCAN_STEP bytes, and returns how many of them stand before the first that scan_string
 * would find. */
#define SCAN_STEP 16
static inline size_t scan_copy_step(const char *p, char *to);

/* Length of the longest valid UTF-8 prefix. */
size_t scan_utf8(const char *p, size_t n);

/* Is every byte below 0x80? */
bool scan_ascii(const char *p, size_t n);

/* How many bytes are 10xxxxxx, which in UTF-8 begin no character. */
size_t scan_continuations(const char *p, size_t n);

/* The closing quote of a string that is short and has no escapes, NULL for any other: keys and
 * small values then cost no call. */
static inline const char *scan_short_string(const char *p, const char *end);
/* The same of strings of up to 31 bytes: ids, times. */
static inline const char *scan_plain_string(const char *p, const char *end);

/* The form for machines without AVX2. It has a name so that tests can compare both. */
enum scan_stop scan_string_body_baseline(const char **p, const char *end, bool *escaped);
size_t scan_utf8_baseline(const char *p, size_t n);
bool scan_ascii_baseline(const char *p, size_t n);
size_t scan_continuations_baseline(const char *p, size_t n);
const char *scan_unicode_escape_baseline(const char *p, const char *end);

/* Length of the valid UTF-8 sequence that starts at `p`, 0 when there is none within `n`. */
size_t scan_sequence(const unsigned char *p, size_t n);

#if defined(__SSE2__)
#include <emmintrin.h>

/* A bit for each quote, backslash and byte below 0x20. */
static inline unsigned scan_special_sse2(__m128i v)
{
        __m128i hit = _mm_or_si128(
            _mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1F)), v);
        return (unsigned)_mm_movemask_epi8(_mm_or_si128(hit, low));
}

static inline size_t scan_copy_step(const char *p, char *to)
{
        __m128i v = _mm_loadu_si128((const __m128i *)p);
        unsigned mask = scan_special_sse2(v);
        _mm_storeu_si128((__m128i *)to, v);
        return mask ? (size_t)__builtin_ctz(mask) : SCAN_STEP;
}

static inline const char *scan_short_string(const char *p, const char *end)
{
        if (end - p < 16)
                return NULL;
        unsigned mask = scan_special_sse2(_mm_loadu_si128((const __m128i *)p));
        if (!mask || p[__builtin_ctz(mask)] != '"')
                return NULL;
        return p + __builtin_ctz(mask);
}

static inline const char *scan_plain_string(const char *p, const char *end)
{
        if (end - p < 32)
                return scan_short_string(p, end);
        unsigned mask = scan_special_sse2(_mm_loadu_si128((const __m128i *)p)) |
                        scan_special_sse2(_mm_loadu_si128((const __m128i *)(p + 16))) << 16;
        if (!mask || p[__builtin_ctz(mask)] != '"')
                return NULL;
        return p + __builtin_ctz(mask);
}

static inline const char *scan_copy_plain(const char *p, const char *end, char **to)
{
        char *at = *to;
        for (; end - p >= 16; p += 16, at += 16) {
                __m128i v = _mm_loadu_si128((const __m128i *)p);
                unsigned hit = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
                _mm_storeu_si128((__m128i *)at, v);
                if (hit) {
                        *to = at + __builtin_ctz(hit);
                        return p + __builtin_ctz(hit);
                }
        }
        while (p < end && *p != '\\')
                *at++ = *p++;
        *to = at;
        return p;
}
#else
static inline const char *scan_copy_plain(const char *p, const char *end, char **to)
{
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        size_t n = (size_t)((slash ? slash : end) - p);
        memcpy(*to, p, n);
        *to += n;
        return p + n;
}

static inline size_t scan_copy_step(const char *p, char *to)
{
        const char *stop = scan_string(p, p + SCAN_STEP);
        memcpy(to, p, SCAN_STEP);
        return (size_t)(stop - p);
}

static inline const char *scan_short_string(const char *p, const char *end)
{
        (void)p;
        (void)end;
        return NULL;
}

static inline const char *scan_plain_string(const char *p, const char *end)
{
        return scan_short_string(p, end);
}
#endif

#endif
