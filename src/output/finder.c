/* finder.c - see finder.h */
#include "output/finder.h"

#include <string.h>

/* The bytes that are common in logs and source text, most common first. Other bytes are rare. */
static const char common[] = " e0taoin1srldc2u3ph4m.5f6g7-98/b:_ywv\tk,\"=()T[]ESAICxRND;'LPFO"
                             "MB{}j<>U\nHq+WzVGK*$#@";

static unsigned rank_of(unsigned char c)
{
        const char *at = c ? strchr(common, c) : NULL;
        return at ? (unsigned)(sizeof(common) - (size_t)(at - common)) : 0;
}

static bool is_letter(unsigned char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static unsigned char lower(unsigned char c)
{
        return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static unsigned rank_folded(unsigned char c, bool fold)
{
        if (!fold || !is_letter(c))
                return rank_of(c);
        return rank_of(c | 0x20) + rank_of(c & 0xDF) / 4;
}

unsigned char finder_fold_bit(const struct finder *f, unsigned char c)
{
        return f->fold && is_letter(c) ? 0x20 : 0;
}

static void set_pair(struct finder *f, size_t a, size_t b)
{
        f->at[0] = (unsigned char)a;
        f->at[1] = (unsigned char)b;
        for (int k = 0; k < 2; k++) {
                f->byte[k] = f->text[0][f->at[k]];
                f->bits[k] = finder_fold_bit(f, f->byte[k]);
        }
}

static void choose_pair(struct finder *f)
{
        const unsigned char *t = f->text[0];
        size_t n = f->size[0];
        size_t best = 0;
        for (size_t i = 1; i < n; i++) {
                if (rank_folded(t[i], f->fold) < rank_folded(t[best], f->fold))
                        best = i;
        }
        size_t second = best == 0 && n > 1 ? 1 : 0;
        for (size_t i = 0; i < n; i++) {
                if (i != best && t[i] != t[best] &&
                    rank_folded(t[i], f->fold) < rank_folded(t[second], f->fold))
                        second = i;
        }
        set_pair(f, best, second);
}

static void fill_head(struct finder *f)
{
        unsigned char head[3][8] = {0};
        for (size_t i = 0; i < 8 && i < f->size[0]; i++) {
                head[0][i] = f->text[0][i];
                head[1][i] = finder_fold_bit(f, f->text[0][i]);
                head[2][i] = 0xFF;
        }
        memcpy(&f->head, head[0], 8);
        memcpy(&f->head_bits, head[1], 8);
        memcpy(&f->head_mask, head[2], 8);
}

#define SAMPLES 64 /* each of 64 places */

void finder_learn(struct finder *f, const char *p, size_t n)
{
        uint64_t places[SAMPLES][FINDER_LITERAL_MAX];
        size_t size = f->size[0];
        size_t step = n / SAMPLES;
        if (!f->wide || f->count != 1 || size < 3 || step < 64 + FINDER_LITERAL_MAX)
                return;
        for (size_t k = 0; k < SAMPLES; k++)
                finder_sample_avx2(f, p + k * step, places[k]);
        uint64_t least = UINT64_MAX;
        for (size_t a = 0; a < size; a++) {
                for (size_t b = a + 1; b < size; b++) {
                        uint64_t cost = 0;
                        for (size_t k = 0; k < SAMPLES; k++)
                                cost += (uint64_t)__builtin_popcountll(places[k][a] & places[k][b]);
                        /* If several pairs are equally rare in the text, take bytes that are rare
                         * in general. */
                        cost = cost << 16 | (rank_folded(f->text[0][a], f->fold) +
                                                rank_folded(f->text[0][b], f->fold));
                        if (cost < least) {
                                least = cost;
                                set_pair(f, a, b);
                        }
                }
        }
}

static void add_to_tables(struct finder *f, const unsigned char *t, unsigned char bit)
{
        for (unsigned k = 0; k < f->depth; k++) {
                unsigned char forms[2] = {t[k], t[k]};
                if (f->fold && is_letter(t[k]))
                        forms[1] = t[k] & 0xDF;
                for (int i = 0; i < 2; i++) {
                        f->low[k][forms[i] & 15] |= bit;
                        f->high[k][forms[i] >> 4] |= bit;
                        f->whole[k][forms[i] & 127] |= bit;
                        if (k == 0)
                                f->first[forms[i]] = 1;
                }
        }
}

static void fill_tables(struct finder *f)
{
        f->depth = f->shortest < 3 ? (unsigned)f->shortest : 3;
        for (size_t i = 0; i < f->count; i++) {
                /* Literals with the same beginning share a bucket, which keeps the tables
                 * sparse. */
                unsigned b = f->count <= 8 ? (unsigned)i : (f->text[i][0] ^ f->text[i][1]) & 7;
                f->bucket[b] |= (uint64_t)1 << i;
                add_to_tables(f, f->text[i], (unsigned char)(1u << b));
        }
}

bool finder_init(struct finder *f, const struct str *literals, size_t count, bool fold)
{
        memset(f, 0, sizeof(*f));
        if (count == 0 || count > FINDER_LITERALS)
                return false;
        f->count = count;
        f->fold = fold;
        f->shortest = FINDER_LITERAL_MAX;
        f->wide = finder_has_avx2();
        f->wider = f->wide && finder_has_avx512();
        for (size_t i = 0; i < count; i++) {
                size_t n = literals[i].n < FINDER_LITERAL_MAX ? literals[i].n : FINDER_LITERAL_MAX;
                if (n == 0)
                        return false;
                for (size_t k = 0; k < n; k++) {
                        unsigned char c = (unsigned char)literals[i].p[k];
                        f->text[i][k] = fold ? lower(c) : c;
                }
                f->size[i] = (unsigned char)n;
                if (n < f->shortest)
                        f->shortest = n;
        }
        if (count == 1) {
                choose_pair(f);
                fill_head(f);
        }
        fill_tables(f);
        return true;
}

static bool stands_at(const struct finder *f, size_t i, const char *p, size_t n)
{
        size_t size = f->size[i];
        if (size > n)
                return false;
        if (!f->fold)
                return memcmp(p, f->text[i], size) == 0;
        for (size_t k = 0; k < size; k++) {
                if (lower((unsigned char)p[k]) != f->text[i][k])
                        return false;
        }
        return true;
}

int finder_verify(const struct finder *f, const char *p, size_t n, uint64_t literals)
{
        while (literals) {
                int i = __builtin_ctzll(literals);
                if (stands_at(f, (size_t)i, p, n))
                        return i;
                literals &= literals - 1;
        }
        return -1;
}

/* Is the only literal at p? Most places differ from it in the first bytes. */
static inline bool stands(const struct finder *f, const char *p, size_t n)
{
        uint64_t x;
        if (n >= sizeof x) {
                memcpy(&x, p, sizeof x);
                if (((x | f->head_bits) & f->head_mask) != f->head)
                        return false;
                if (f->size[0] <= sizeof x)
                        return true;
        }
        return finder_verify(f, p, n, 1) == 0;
}

bool finder_check_pair(
    const struct finder *f, struct str text, size_t at, uint64_t mask, size_t *from)
{
        for (; mask; mask &= mask - 1) {
                size_t k = at + (size_t)__builtin_ctzll(mask);
                if (stands(f, text.p + k, text.n - k)) {
                        *from = k;
                        return true;
                }
        }
        return false;
}

bool finder_check_many(const struct finder *f, struct str text, size_t at,
    const unsigned char *buckets, uint64_t mask, size_t *from, size_t *which)
{
        for (; mask; mask &= mask - 1) {
                unsigned k = (unsigned)__builtin_ctzll(mask);
                uint64_t literals = 0;
                for (unsigned b = buckets[k]; b; b &= b - 1)
                        literals |= f->bucket[__builtin_ctz(b)];
                int i = finder_verify(f, text.p + at + k, text.n - at - k, literals);
                if (i >= 0) {
                        *from = at + k;
                        *which = (size_t)i;
                        return true;
                }
        }
        return false;
}

size_t finder_next(const struct finder *f, const char *p, size_t n, size_t from, size_t *which)
{
        return finder_next_before(f, p, n, from, n, which);
}

size_t finder_next_before(
    const struct finder *f, const char *p, size_t n, size_t from, size_t stop, size_t *which)
{
        size_t unused;
        uint64_t all = f->count == 64 ? UINT64_MAX : ((uint64_t)1 << f->count) - 1;
        which = which ? which : &unused;
        *which = 0;
        if (from >= stop)
                return n;
        if (f->wider && (f->count == 1 ? finder_pair_avx512(f, p, n, stop, &from)
                                       : finder_many_avx512(f, p, n, stop, &from, which)))
                return from < stop ? from : n;
        if (f->wide && f->count == 1 && finder_pair_avx2(f, p, n, stop, &from))
                return from < stop ? from : n;
        if (f->wide && f->count > 1 && finder_many_avx2(f, p, n, stop, &from, which))
                return from < stop ? from : n;
        for (; from < stop && from + f->shortest <= n; from++) {
                if (!f->first[(unsigned char)p[from]])
                        continue;
                int i = finder_verify(f, p + from, n - from, all);
                if (i < 0)
                        continue;
                *which = (size_t)i;
                return from;
        }
        return n;
}

unsigned finder_cost(struct str literal, bool fold)
{
        unsigned best = UINT32_MAX;
        unsigned second = UINT32_MAX;
        for (size_t i = 0; i < literal.n && i < FINDER_LITERAL_MAX; i++) {
                unsigned r = rank_folded((unsigned char)literal.p[i], fold) + 1;
                if (r < best) {
                        second = best;
                        best = r;
                } else if (r < second) {
                        second = r;
                }
        }
        if (literal.n == 0)
                return UINT32_MAX;
        if (literal.n == 1)
                return best * 128;
        unsigned length = literal.n < 8 ? (unsigned)literal.n : 8;
        return best * second / length;
}
