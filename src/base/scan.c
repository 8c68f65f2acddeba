/*
 * scan.c - see scan.h
 *
 * The string loops differ only in how a block is turned into a mask, so they are one inlined
 * body with the finder as its constant argument. The AVX2 UTF-8 check is the range lookup of
 * Keiser and Lemire ("Validating UTF-8 in less than one instruction per byte").
 */
#include "base/scan.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define SCAN_X86 1
#define AVX2 __attribute__((target("avx2,bmi")))
#else
#define SCAN_X86 0
#endif

#define INLINE static inline __attribute__((always_inline))

typedef const char *find_fn(const char *p, const char *end);

INLINE bool is_special(unsigned char c)
{
        return c < 0x20 || c == '"' || c == '\\';
}

INLINE const char *find_bytewise(const char *p, const char *end)
{
        while (p < end && !is_special((unsigned char)*p))
                p++;
        return p;
}

/* Eight bytes at a time. A borrow can only mark a byte above a true hit, and the exact place is
 * settled bytewise, so false marks cost time and nothing else. */
INLINE const char *find_words(const char *p, const char *end)
{
        const uint64_t ones = 0x0101010101010101u;
        const uint64_t high = 0x8080808080808080u;
        while (end - p >= 8) {
                uint64_t w;
                memcpy(&w, p, sizeof w);
                uint64_t quote = w ^ (ones * '"');
                uint64_t slash = w ^ (ones * '\\');
                uint64_t hit = ((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) |
                               ((slash - ones) & ~slash);
                if (hit & high)
                        break;
                p += 8;
        }
        return find_bytewise(p, end);
}

INLINE int hex_digits(const char *p, const char *end, int want)
{
        int n = 0;
        while (n < want && p + n < end) {
                unsigned char c = (unsigned char)p[n];
                unsigned char l = c | 0x20;
                if (!(c >= '0' && c <= '9') && !(l >= 'a' && l <= 'f'))
                        return -1;
                n++;
        }
        return n;
}

static const unsigned char escapes[256] = {['"'] = 1,
    ['\\'] = 1,
    ['/'] = 1,
    ['b'] = 1,
    ['f'] = 1,
    ['n'] = 1,
    ['r'] = 1,
    ['t'] = 1,
    ['u'] = 2};

INLINE enum scan_stop walk_body(const char **pp, const char *end, bool *escaped, find_fn *find)
{
        const char *p = *pp;
        enum scan_stop stop;
        for (;;) {
                p = find(p, end);
                stop = SCAN_END;
                if (p == end)
                        break;
                stop = SCAN_QUOTE;
                if (*p == '"')
                        break;
                stop = SCAN_CONTROL;
                if (*p != '\\')
                        break;
                *escaped = true;
                stop = SCAN_END;
                if (end - p < 2)
                        break;
                int kind = escapes[(unsigned char)p[1]];
                if (kind == 1) {
                        p += 2;
                        continue;
                }
                int digits = kind ? hex_digits(p + 2, end, 4) : -1;
                stop = digits < 0 ? SCAN_ESCAPE : SCAN_END;
                if (digits != 4)
                        break;
                p += 6;
        }
        *pp = p;
        return stop;
}

size_t scan_sequence(const unsigned char *p, size_t n)
{
        if (n == 0)
                return 0;
        unsigned c = p[0];
        if (c < 0x80)
                return 1;
        if (c < 0xC2 || c > 0xF4 || n < 2)
                return 0;
        unsigned d = p[1];
        if (c < 0xE0)
                return (d & 0xC0) == 0x80 ? 2 : 0;
        unsigned low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
        unsigned top = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
        if (d < low || d > top || n < 3 || (p[2] & 0xC0) != 0x80)
                return 0;
        if (c < 0xF0)
                return 3;
        return n >= 4 && (p[3] & 0xC0) == 0x80 ? 4 : 0;
}

#define BYTE_ONES UINT64_C(0x0101010101010101)

/* Continuation bytes (10xxxxxx) of eight, one bit in each byte. */
static uint64_t continuations_of_eight(const char *p)
{
        uint64_t v;
        memcpy(&v, p, sizeof v);
        return v >> 7 & ~v >> 6 & BYTE_ONES;
}

bool scan_ascii_baseline(const char *p, size_t n)
{
        const uint64_t bits = 0x8080808080808080u;
        size_t i = 0;
        for (; n - i >= 8; i += 8) {
                uint64_t word;
                memcpy(&word, p + i, sizeof word);
                if (word & bits)
                        return false;
        }
        for (; i < n; i++) {
                if ((unsigned char)p[i] & 0x80)
                        return false;
        }
        return true;
}

size_t scan_continuations_baseline(const char *p, size_t n)
{
        size_t count = 0;
        while (n >= 8) {
                size_t words = n / 8 < 255 ? n / 8 : 255; /* no byte of the sum overflows */
                uint64_t sum = 0;
                for (size_t i = 0; i < words; i++)
                        sum += continuations_of_eight(p + i * 8);
                /* Byte by byte in two halves, because eight of them may pass 255. */
                uint64_t pairs = (sum & UINT64_C(0x00FF00FF00FF00FF)) +
                                 (sum >> 8 & UINT64_C(0x00FF00FF00FF00FF));
                count += pairs * UINT64_C(0x0001000100010001) >> 48;
                p += words * 8;
                n -= words * 8;
        }
        for (size_t i = 0; i < n; i++)
                count += (signed char)p[i] < -64;
        return count;
}

size_t scan_utf8_baseline(const char *text, size_t n)
{
        const unsigned char *p = (const unsigned char *)text;
        size_t i = 0;
        while (i < n) {
                uint64_t w;
                while (n - i >= 8 && (memcpy(&w, p + i, 8), (w & 0x8080808080808080u) == 0))
                        i += 8;
                size_t k = scan_sequence(p + i, n - i);
                if (k == 0)
                        break;
                i += k;
        }
        return i;
}

const char *scan_unicode_escape_baseline(const char *p, const char *end)
{
        while (p < end && (p = memchr(p, '\\', (size_t)(end - p)))) {
                if (end - p > 1 && p[1] == 'u')
                        return p;
                p++;
        }
        return end;
}

#if SCAN_X86

INLINE const char *find_sse2(const char *p, const char *end)
{
        const __m128i quote = _mm_set1_epi8('"');
        const __m128i slash = _mm_set1_epi8('\\');
        const __m128i control = _mm_set1_epi8(0x1F);
        while (end - p >= 16) {
                __m128i v = _mm_loadu_si128((const __m128i *)p);
                __m128i hit = _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash));
                hit = _mm_or_si128(hit, _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
                unsigned mask = (unsigned)_mm_movemask_epi8(hit);
                if (mask)
                        return p + __builtin_ctz(mask);
                p += 16;
        }
        return find_words(p, end);
}

AVX2 INLINE unsigned mask_avx2(const char *p)
{
        __m256i v = _mm256_loadu_si256((const __m256i *)p);
        __m256i hit = _mm256_or_si256(_mm256_cmpeq_epi8(v, _mm256_set1_epi8('"')),
            _mm256_cmpeq_epi8(v, _mm256_set1_epi8('\\')));
        __m256i low = _mm256_cmpeq_epi8(_mm256_min_epu8(v, _mm256_set1_epi8(0x1F)), v);
        return (unsigned)_mm256_movemask_epi8(_mm256_or_si256(hit, low));
}

enum scan_stop scan_string_body_baseline(const char **p, const char *end, bool *escaped)
{
        return walk_body(p, end, escaped, find_sse2);
}

/* The length of the escape at `p`; 0: there is no such escape, or it does not end before `end`. */
INLINE size_t whole_escape(const char *p, const char *end)
{
        int kind = end - p >= 2 ? escapes[(unsigned char)p[1]] : 0;
        if (kind == 2)
                return hex_digits(p + 2, end, 4) == 4 ? 6 : 0;
        return kind ? 2 : 0;
}

/* A block is looked at once, however many escapes are in it. The last bytes, and an escape that is
 * wrong or cut, are left to walk_body. */
AVX2 static enum scan_stop body_avx2(const char **pp, const char *end, bool *escaped)
{
        const char *p = *pp;
        while (end - p >= 32) {
                const char *block = p;
                unsigned mask = mask_avx2(block);
                p += 32;
                while (mask) {
                        const char *hit = block + __builtin_ctz(mask);
                        size_t n = *hit == '\\' ? whole_escape(hit, end) : 0;
                        if (!n) {
                                *pp = hit;
                                return walk_body(pp, end, escaped, find_sse2);
                        }
                        *escaped = true;
                        size_t next = (size_t)(hit - block) + n;
                        mask = next < 32 ? mask & (~0u << next) : 0;
                        p = next > 32 ? block + next : p;
                }
        }
        *pp = p;
        return walk_body(pp, end, escaped, find_sse2);
}

#define TOO_SHORT (1 << 0)
#define TOO_LONG (1 << 1)
#define OVERLONG_3 (1 << 2)
#define TOO_LARGE (1 << 3)
#define SURROGATE (1 << 4)
#define OVERLONG_2 (1 << 5)
#define TOO_LARGE_1000 (1 << 6)
#define OVERLONG_4 (1 << 6)
#define TWO_CONTS ((char)(1 << 7))
#define CARRY (TOO_SHORT | TOO_LONG | TWO_CONTS)
#define LARGE (CARRY | TOO_LARGE | TOO_LARGE_1000)
#define CONT (TOO_LONG | OVERLONG_2 | TWO_CONTS)

/* What the high and low half of a byte, and the high half of the next, leave possible. */
static const char first_high[16] = {TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
    TOO_LONG, TOO_LONG, TWO_CONTS, TWO_CONTS, TWO_CONTS, TWO_CONTS, TOO_SHORT | OVERLONG_2,
    TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE,
    TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4};
static const char first_low[16] = {CARRY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4, CARRY | OVERLONG_2,
    CARRY, CARRY, CARRY | TOO_LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE, LARGE,
    LARGE | SURROGATE, LARGE, LARGE};
static const char second_high[16] = {TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
    TOO_SHORT, TOO_SHORT, TOO_SHORT, CONT | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4,
    CONT | OVERLONG_3 | TOO_LARGE, CONT | SURROGATE | TOO_LARGE, CONT | SURROGATE | TOO_LARGE,
    TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT};

AVX2 INLINE __m256i lookup(const char table[16], __m256i index)
{
        __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
        return _mm256_shuffle_epi8(t, index);
}

AVX2 INLINE __m256i utf8_errors(__m256i v, __m256i before)
{
        const __m256i nibble = _mm256_set1_epi8(0x0F);
        __m256i bridge = _mm256_permute2x128_si256(before, v, 0x21);
        __m256i prev1 = _mm256_alignr_epi8(v, bridge, 15);
        __m256i prev2 = _mm256_alignr_epi8(v, bridge, 14);
        __m256i prev3 = _mm256_alignr_epi8(v, bridge, 13);
        __m256i a = lookup(first_high, _mm256_and_si256(_mm256_srli_epi16(prev1, 4), nibble));
        __m256i b = lookup(first_low, _mm256_and_si256(prev1, nibble));
        __m256i c = lookup(second_high, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
        __m256i special = _mm256_and_si256(_mm256_and_si256(a, b), c);
        __m256i third = _mm256_subs_epu8(prev2, _mm256_set1_epi8(0xE0 - 0x80));
        __m256i fourth = _mm256_subs_epu8(prev3, _mm256_set1_epi8((char)(0xF0 - 0x80)));
        __m256i must =
            _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)0x80));
        return _mm256_xor_si256(must, special);
}

/* Steps back from a block's start to the start of the character that may reach into it. */
INLINE size_t boundary_before(const unsigned char *p, size_t i)
{
        for (size_t k = 1; k <= 3 && k <= i; k++) {
                if (p[i - k] >= 0xC0)
                        return i - k;
                if (p[i - k] < 0x80)
                        break;
        }
        return i;
}

/* Stops at the first block that holds a fault or that follows an unfinished character; the
 * bytewise check then names the place. */
AVX2 static size_t utf8_avx2(const unsigned char *p, size_t n)
{
        size_t i = 0;
        __m256i before = _mm256_setzero_si256();
        while (n - i >= 32) {
                __m256i v = _mm256_loadu_si256((const __m256i *)(p + i));
                if (_mm256_testz_si256(_mm256_or_si256(v, before), _mm256_set1_epi8((char)0x80))) {
                        i += 32;
                        while (n - i >= 64) {
                                __m256i x = _mm256_loadu_si256((const __m256i *)(p + i));
                                __m256i y = _mm256_loadu_si256((const __m256i *)(p + i + 32));
                                if (_mm256_movemask_epi8(_mm256_or_si256(x, y)))
                                        break;
                                i += 64;
                        }
                        before = _mm256_setzero_si256();
                        continue;
                }
                __m256i bad = utf8_errors(v, before);
                if (!_mm256_testz_si256(bad, bad))
                        break;
                before = v;
                i += 32;
        }
        i = boundary_before(p, i);
        return i + scan_utf8_baseline((const char *)p + i, n - i);
}

const char *scan_string(const char *p, const char *end)
{
        return find_sse2(p, end);
}

enum scan_stop scan_string_body(const char **p, const char *end, bool *escaped)
{
        if (__builtin_cpu_supports("avx2"))
                return body_avx2(p, end, escaped);
        return scan_string_body_baseline(p, end, escaped);
}

AVX2 static const char *unicode_avx2(const char *p, const char *end)
{
        const __m256i slash = _mm256_set1_epi8('\\');
        const __m256i u = _mm256_set1_epi8('u');
        for (; end - p > 32; p += 32) {
                __m256i a = _mm256_loadu_si256((const __m256i *)p);
                __m256i b = _mm256_loadu_si256((const __m256i *)(p + 1));
                __m256i hit =
                    _mm256_and_si256(_mm256_cmpeq_epi8(a, slash), _mm256_cmpeq_epi8(b, u));
                unsigned mask = (unsigned)_mm256_movemask_epi8(hit);
                if (mask)
                        return p + __builtin_ctz(mask);
        }
        return scan_unicode_escape_baseline(p, end);
}

const char *scan_unicode_escape(const char *p, const char *end)
{
        if (end - p > 32 && __builtin_cpu_supports("avx2"))
                return unicode_avx2(p, end);
        return scan_unicode_escape_baseline(p, end);
}

size_t scan_utf8(const char *p, size_t n)
{
        if (n >= 32 && __builtin_cpu_supports("avx2"))
                return utf8_avx2((const unsigned char *)p, n);
        return scan_utf8_baseline(p, n);
}

/* Whole lines of the cache; *done is how far it came. */
AVX2 static bool ascii_avx2(const char *p, size_t n, size_t *done)
{
        size_t i = 0;
        for (; n - i >= 128; i += 128) {
                const __m256i *v = (const __m256i *)(p + i);
                __m256i x = _mm256_or_si256(_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1));
                __m256i y = _mm256_or_si256(_mm256_loadu_si256(v + 2), _mm256_loadu_si256(v + 3));
                if (_mm256_movemask_epi8(_mm256_or_si256(x, y)))
                        return false;
        }
        *done = i;
        return true;
}

bool scan_ascii(const char *p, size_t n)
{
        size_t done = 0;
        if (n >= 128 && __builtin_cpu_supports("avx2") && !ascii_avx2(p, n, &done))
                return false;
        return scan_ascii_baseline(p + done, n - done);
}

/* Of whole vectors; the caller has the rest. */
AVX2 static size_t continuations_avx2(const char *p, size_t n)
{
        const __m256i lead = _mm256_set1_epi8(-64);
        const __m256i zero = _mm256_setzero_si256();
        __m256i total = zero;
        uint64_t lanes[4];
        for (size_t i = 0; i < n;) {
                /* A byte-wide counter holds 255. */
                size_t stop = n - i > (size_t)255 * 32 ? i + (size_t)255 * 32 : n;
                __m256i sum = zero;
                for (; i < stop; i += 32) {
                        __m256i x = _mm256_loadu_si256((const __m256i *)(p + i));
                        sum = _mm256_sub_epi8(sum, _mm256_cmpgt_epi8(lead, x));
                }
                total = _mm256_add_epi64(total, _mm256_sad_epu8(sum, zero));
        }
        _mm256_storeu_si256((__m256i *)lanes, total);
        return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

size_t scan_continuations(const char *p, size_t n)
{
        if (n < 64 || !__builtin_cpu_supports("avx2"))
                return scan_continuations_baseline(p, n);
        size_t whole = n / 32 * 32;
        return continuations_avx2(p, whole) + scan_continuations_baseline(p + whole, n - whole);
}

#else

const char *scan_string(const char *p, const char *end)
{
        return find_words(p, end);
}

const char *scan_unicode_escape(const char *p, const char *end)
{
        return scan_unicode_escape_baseline(p, end);
}

enum scan_stop scan_string_body_baseline(const char **p, const char *end, bool *escaped)
{
        return walk_body(p, end, escaped, find_words);
}

enum scan_stop scan_string_body(const char **p, const char *end, bool *escaped)
{
        return scan_string_body_baseline(p, end, escaped);
}

size_t scan_utf8(const char *p, size_t n)
{
        return scan_utf8_baseline(p, n);
}

bool scan_ascii(const char *p, size_t n)
{
        return scan_ascii_baseline(p, n);
}

size_t scan_continuations(const char *p, size_t n)
{
        return scan_continuations_baseline(p, n);
}

#endif
