/*
 * finder_avx2.c - the vector loops of finder.h, and replacements for other machines.
 */
#include "output/finder.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

bool finder_has_avx2(void)
{
        return __builtin_cpu_supports("avx2");
}

struct pair {
        __m256i byte[2];
        __m256i bits[2];
};

AVX2 static inline unsigned pair_mask(const struct pair *v, const char *a, const char *b)
{
        __m256i x = _mm256_or_si256(_mm256_loadu_si256((const __m256i *)a), v->bits[0]);
        __m256i y = _mm256_or_si256(_mm256_loadu_si256((const __m256i *)b), v->bits[1]);
        __m256i both =
            _mm256_and_si256(_mm256_cmpeq_epi8(x, v->byte[0]), _mm256_cmpeq_epi8(y, v->byte[1]));
        return (unsigned)_mm256_movemask_epi8(both);
}

AVX2 bool finder_pair_avx2(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from)
{
        struct pair v;
        size_t reach = f->at[0] > f->at[1] ? f->at[0] : f->at[1];
        const char *a = p + f->at[0];
        const char *b = p + f->at[1];
        size_t i = *from;
        for (int k = 0; k < 2; k++) {
                v.byte[k] = _mm256_set1_epi8((char)f->byte[k]);
                v.bits[k] = _mm256_set1_epi8((char)f->bits[k]);
        }
        for (; i < stop && i + reach + 64 <= n; i += 64) {
                uint64_t mask = pair_mask(&v, a + i, b + i) |
                                (uint64_t)pair_mask(&v, a + i + 32, b + i + 32) << 32;
                if (__builtin_expect(mask != 0, 0) &&
                    finder_check_pair(f, str_span(p, n), i, mask, from))
                        return true;
        }
        *from = i;
        return false;
}

struct nibbles {
        __m256i low[3];
        __m256i high[3];
        __m256i mask;
};

AVX2 static inline __m256i buckets_at(const struct nibbles *t, const char *p, unsigned k)
{
        __m256i x = _mm256_loadu_si256((const __m256i *)(p + k));
        __m256i lo = _mm256_shuffle_epi8(t->low[k], _mm256_and_si256(x, t->mask));
        __m256i hi =
            _mm256_shuffle_epi8(t->high[k], _mm256_and_si256(_mm256_srli_epi16(x, 4), t->mask));
        return _mm256_and_si256(lo, hi);
}

AVX2 bool finder_many_avx2(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which)
{
        struct nibbles t;
        size_t i = *from;
        const __m256i zero = _mm256_setzero_si256();
        t.mask = _mm256_set1_epi8(15);
        for (unsigned k = 0; k < 3; k++) {
                t.low[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)f->low[k]));
                t.high[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)f->high[k]));
        }
        for (; i < stop && i + 32 + 3 <= n; i += 32) {
                __m256i r = buckets_at(&t, p + i, 0);
                if (f->depth > 1)
                        r = _mm256_and_si256(r, buckets_at(&t, p + i, 1));
                if (f->depth > 2)
                        r = _mm256_and_si256(r, buckets_at(&t, p + i, 2));
                unsigned none = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(r, zero));
                if (__builtin_expect(none == UINT32_MAX, 1))
                        continue;
                unsigned char buckets[32];
                _mm256_storeu_si256((__m256i *)buckets, r);
                if (finder_check_many(f, str_span(p, n), i, buckets, (uint32_t)~none, from, which))
                        return true;
        }
        *from = i;
        return false;
}

AVX2 uint64_t finder_count_avx2(const char *p, size_t n, char c)
{
        const __m256i want = _mm256_set1_epi8(c);
        const __m256i zero = _mm256_setzero_si256();
        __m256i total = zero;
        uint64_t lanes[4];
        size_t i = 0;
        while (i + 32 <= n) {
                /* A counter of one byte can hold 255 at most. */
                size_t stop = n - i > 255 * 32 ? i + 255 * 32 : n;
                __m256i sum = zero;
                for (; i + 32 <= stop; i += 32) {
                        __m256i x = _mm256_loadu_si256((const __m256i *)(p + i));
                        sum = _mm256_sub_epi8(sum, _mm256_cmpeq_epi8(x, want));
                }
                total = _mm256_add_epi64(total, _mm256_sad_epu8(sum, zero));
        }
        _mm256_storeu_si256((__m256i *)lanes, total);
        uint64_t count = lanes[0] + lanes[1] + lanes[2] + lanes[3];
        for (; i < n; i++)
                count += p[i] == c;
        return count;
}

AVX2 void finder_sample_avx2(const struct finder *f, const char *p, uint64_t *places)
{
        for (size_t i = 0; i < f->size[0]; i++) {
                __m256i byte = _mm256_set1_epi8((char)f->text[0][i]);
                __m256i bits = _mm256_set1_epi8((char)finder_fold_bit(f, f->text[0][i]));
                struct pair v = {{byte, byte}, {bits, bits}};
                places[i] = pair_mask(&v, p + i, p + i) |
                            (uint64_t)pair_mask(&v, p + i + 32, p + i + 32) << 32;
        }
}

#else

bool finder_has_avx2(void)
{
        return false;
}

bool finder_pair_avx2(const struct finder *f, const char *p, size_t n, size_t stop, size_t *from)
{
        (void)f, (void)p, (void)n, (void)stop, (void)from;
        return false;
}

bool finder_many_avx2(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which)
{
        (void)f, (void)p, (void)n, (void)stop, (void)from, (void)which;
        return false;
}

uint64_t finder_count_avx2(const char *p, size_t n, char c)
{
        uint64_t count = 0;
        for (size_t i = 0; i < n; i++)
                count += p[i] == c;
        return count;
}

void finder_sample_avx2(const struct finder *f, const char *p, uint64_t *places)
{
        (void)f, (void)p, (void)places;
}

#endif
