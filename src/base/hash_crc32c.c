/*
 * hash_crc32c.c - CRC-32C (Castagnoli): by tables, with the instruction for it, and by folding
 * where the processor multiplies polynomials two at a time.
 */
#include "base/hash.h"

#include <string.h>

#include "base/hash_crc32c_table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint32_t load32(const unsigned char *p)
{
        return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t hash_crc32c_portable(uint32_t crc, const void *data, size_t n)
{
        const unsigned char *p = data;
        crc = ~crc;
        for (; n >= 8; p += 8, n -= 8) {
                uint32_t a = crc ^ load32(p);
                uint32_t b = load32(p + 4);
                crc = crc32c_table[7][a & 255] ^ crc32c_table[6][a >> 8 & 255] ^
                      crc32c_table[5][a >> 16 & 255] ^ crc32c_table[4][a >> 24] ^
                      crc32c_table[3][b & 255] ^ crc32c_table[2][b >> 8 & 255] ^
                      crc32c_table[1][b >> 16 & 255] ^ crc32c_table[0][b >> 24];
        }
        for (; n > 0; p++, n--)
                crc = crc32c_table[0][(crc ^ *p) & 255] ^ crc >> 8;
        return ~crc;
}

#if defined(__x86_64__)

/* The instruction takes three cycles and can start every cycle, so three lanes run side by side. A
 * lane's sum is moved over the lanes behind it by multiplying with x^(8 * bytes - 33): the product
 * of two reflected words is one power too high, and the instruction itself adds 32. */
#define LANE 168
#define OVER_ONE_LANE 0x1b3d8f29
#define OVER_TWO_LANES 0xa60ce07b

__attribute__((target("sse4.2,pclmul"), always_inline)) static inline uint64_t step8(
    uint64_t crc, const unsigned char *p)
{
        uint64_t v;
        memcpy(&v, p, sizeof v); /* little endian, as this processor is */
        return _mm_crc32_u64(crc, v);
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc_over(uint64_t crc, int64_t by)
{
        __m128i product =
            _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi64_si128(by), 0);
        return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc_lanes(
    uint64_t c, const unsigned char *p)
{
        uint64_t b = 0, d = 0;
        for (size_t i = 0; i < LANE; i += 8) {
                c = step8(c, p + i);
                b = step8(b, p + LANE + i);
                d = step8(d, p + (size_t)2 * LANE + i);
        }
        return crc_over(c, OVER_TWO_LANES) ^ crc_over(b, OVER_ONE_LANE) ^ d;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc_sse42(
    uint32_t crc, const void *data, size_t n)
{
        const unsigned char *p = data;
        uint64_t c = (uint32_t)~crc;
        for (; n >= (size_t)3 * LANE; p += (size_t)3 * LANE, n -= (size_t)3 * LANE)
                c = crc_lanes(c, p);
        for (; n >= 8; p += 8, n -= 8)
                c = step8(c, p);
        for (; n > 0; p++, n--)
                c = _mm_crc32_u8((uint32_t)c, *p);
        return ~(uint32_t)c;
}

/*
 * Folding: 64 bytes are four polynomials of 128 bits. Multiplied with x^(8 * distance), a half at a
 * time, they can be added to bytes that far behind them. Reflected, the low half is the higher one.
 */
#define FOLD_MIN 256
#define FOLD __attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul")))
/* x^(8 * distance + 32) and x^(8 * distance - 32), reflected and shifted by one. */
#define OVER_16 0xf20c0dfe, 0x14cd00bd6
#define OVER_32 0x1384aa63a, 0xba4fc28e
#define OVER_48 0x1c291d04, 0x1d82c63da
#define OVER_64 0x740eef02, 0x9e4addf8
#define OVER_256 0xdcb17aa4, 0xb9e02b86

FOLD static inline __m512i fold(__m512i v, __m512i over, const void *behind)
{
        return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, over, 0x00),
            _mm512_clmulepi64_epi128(v, over, 0x11), _mm512_loadu_si512(behind), 0x96);
}

FOLD static uint32_t crc_fold(uint32_t crc, const void *data, size_t n)
{
        static const uint64_t over_256[] = {OVER_256, OVER_256, OVER_256, OVER_256};
        static const uint64_t over_64[] = {OVER_64, OVER_64, OVER_64, OVER_64};
        static const uint64_t to_last[] = {OVER_48, OVER_32, OVER_16, 0, 0};
        static const uint64_t none[8];
        const unsigned char *p = data;
        __m512i over = _mm512_loadu_si512(over_256);
        __m512i v[4];
        for (int i = 0; i < 4; i++, p += 64)
                v[i] = _mm512_loadu_si512(p);
        v[0] = _mm512_xor_si512(v[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
        for (n -= 256; n >= 256; n -= 256)
                for (int i = 0; i < 4; i++, p += 64)
                        v[i] = fold(v[i], over, p);
        over = _mm512_loadu_si512(over_64);
        for (int i = 1; i < 4; i++)
                v[0] = fold(v[0], over, &v[i]);
        for (; n >= 64; n -= 64, p += 64)
                v[0] = fold(v[0], over, p);
        /* Three of the four go over to the last. */
        __m512i moved = fold(v[0], _mm512_loadu_si512(to_last), none);
        __m128i sum = _mm_xor_si128(_mm512_extracti32x4_epi32(v[0], 3),
            _mm_xor_si128(
                _mm512_castsi512_si128(moved), _mm_xor_si128(_mm512_extracti32x4_epi32(moved, 1),
                                                   _mm512_extracti32x4_epi32(moved, 2))));
        uint64_t c = _mm_crc32_u64(0, (uint64_t)_mm_extract_epi64(sum, 0));
        c = _mm_crc32_u64(c, (uint64_t)_mm_extract_epi64(sum, 1));
        return crc_sse42(~(uint32_t)c, p, n);
}

uint32_t hash_crc32c_baseline(uint32_t crc, const void *p, size_t n)
{
        if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
                return crc_sse42(crc, p, n);
        return hash_crc32c_portable(crc, p, n);
}

uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n)
{
        if (n >= FOLD_MIN && __builtin_cpu_supports("vpclmulqdq") &&
            __builtin_cpu_supports("avx512f"))
                return crc_fold(crc, p, n);
        return hash_crc32c_baseline(crc, p, n);
}

#else

uint32_t hash_crc32c_baseline(uint32_t crc, const void *p, size_t n)
{
        return hash_crc32c_portable(crc, p, n);
}

uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n)
{
        return hash_crc32c_portable(crc, p, n);
}

#endif
