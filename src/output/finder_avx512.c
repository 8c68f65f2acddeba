/*
 * finder_avx512.c - the loops of finder_avx2.c with vectors of 64 bytes, for machines that also
 * look up bytes in a table of 128.
 */
#include "output/finder.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512bw,avx512vbmi")))

bool finder_has_avx512(void)
{
        return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi");
}

AVX512 static inline uint64_t equal(const char *p, __m512i bits, __m512i byte)
{
        return _mm512_cmpeq_epi8_mask(_mm512_or_si512(_mm512_loadu_si512(p), bits), byte);
}

AVX512 bool finder_pair_avx512(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from)
{
        __m512i byte[2], bits[2];
        size_t reach = f->at[0] > f->at[1] ? f->at[0] : f->at[1];
        const char *a = p + f->at[0];
        const char *b = p + f->at[1];
        size_t i = *from;
        for (int k = 0; k < 2; k++) {
                byte[k] = _mm512_set1_epi8((char)f->byte[k]);
                bits[k] = _mm512_set1_epi8((char)f->bits[k]);
        }
        for (; i < stop && i + reach + 64 <= n; i += 64) {
                uint64_t mask = equal(a + i, bits[0], byte[0]) & equal(b + i, bits[1], byte[1]);
                if (__builtin_expect(mask != 0, 0) &&
                    finder_check_pair(f, str_span(p, n), i, mask, from))
                        return true;
        }
        *from = i;
        return false;
}

AVX512 bool finder_many_avx512(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which)
{
        __m512i low[3], high[3];
        size_t i = *from;
        for (unsigned k = 0; k < 3; k++) {
                low[k] = _mm512_loadu_si512(f->whole[k]);
                high[k] = _mm512_loadu_si512(f->whole[k] + 64);
        }
        for (; i < stop && i + 64 + 3 <= n; i += 64) {
                __m512i r = _mm512_permutex2var_epi8(low[0], _mm512_loadu_si512(p + i), high[0]);
                for (unsigned k = 1; k < 3 && k < f->depth; k++)
                        r = _mm512_and_si512(r, _mm512_permutex2var_epi8(low[k],
                                                    _mm512_loadu_si512(p + i + k), high[k]));
                uint64_t mask = _mm512_test_epi8_mask(r, r);
                if (__builtin_expect(mask == 0, 1))
                        continue;
                unsigned char buckets[64];
                _mm512_storeu_si512(buckets, r);
                if (finder_check_many(f, str_span(p, n), i, buckets, mask, from, which))
                        return true;
        }
        *from = i;
        return false;
}

#else

bool finder_has_avx512(void)
{
        return false;
}

bool finder_pair_avx512(const struct finder *f, const char *p, size_t n, size_t stop, size_t *from)
{
        (void)f, (void)p, (void)n, (void)stop, (void)from;
        return false;
}

bool finder_many_avx512(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which)
{
        (void)f, (void)p, (void)n, (void)stop, (void)from, (void)which;
        return false;
}

#endif
