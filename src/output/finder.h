/*
 * finder.h - finding one of a few literals in bytes, as fast as memory delivers them.
 *
 * One literal is found by its two rarest bytes, several by a table of nibbles over their first
 * bytes (the scheme known as Teddy); both have AVX-512, AVX2 and portable forms, chosen at run
 * time. With `fold` ASCII letters match in either case. Knows nothing of lines or patterns.
 */
#ifndef OUTPUT_FINDER_H
#define OUTPUT_FINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define FINDER_LITERALS 64
#define FINDER_LITERAL_MAX 48 /* bytes that are compared; a longer literal is cut to its first */

struct finder {
        size_t count;
        size_t shortest;
        bool fold;
        unsigned char text[FINDER_LITERALS][FINDER_LITERAL_MAX]; /* lower case when folding */
        unsigned char size[FINDER_LITERALS];
        /* one literal: places and values of the two bytes that are looked for first */
        unsigned char at[2];
        unsigned char byte[2];
        unsigned char bits[2]; /* 0x20 where the byte is a letter and case is folded */
        /* and its first 8 bytes as a number, with the bits of letters and of bytes that count */
        uint64_t head;
        uint64_t head_bits;
        uint64_t head_mask;
        /* several: for each of the first `depth` bytes, which buckets a nibble may belong to */
        unsigned depth;
        unsigned char low[3][16];
        unsigned char high[3][16];
        uint64_t bucket[8]; /* literals of each bucket */
        unsigned char first[256];
        unsigned char whole[3][128]; /* the same for a byte without its highest bit */
        bool wide;                   /* this machine has AVX2 */
        bool wider;                  /* and AVX-512 with its tables of bytes */
};

/* False when there is nothing to look for: no literal, an empty one, or too many. */
bool finder_init(struct finder *f, const struct str *literals, size_t count, bool fold);

/* Looks at some of the text that will be searched, and chooses the two bytes of a literal that
 * stand there together least often: in a log every line begins alike. Changes no answer. */
void finder_learn(struct finder *f, const char *p, size_t n);

/* The first place >= from where a literal stands in p[0, n), or n. *which (may be NULL) is its
 * index; where several begin at one place, any of them. */
size_t finder_next(const struct finder *f, const char *p, size_t n, size_t from, size_t *which);
/* The same among the places before `stop`, or n. It is faster if there is text behind them. */
size_t finder_next_before(
    const struct finder *f, const char *p, size_t n, size_t from, size_t stop, size_t *which);

/* Rough cost of looking for this literal: how common its rarest bytes are in tool outputs and
 * logs. Smaller is better. */
unsigned finder_cost(struct str literal, bool fold);

/* ---- between the two halves of the implementation ---- */

/* 0x20 for a letter where case is folded. */
unsigned char finder_fold_bit(const struct finder *f, unsigned char c);
/* Does a literal stand at p? Its index or -1. */
int finder_verify(const struct finder *f, const char *p, size_t n, uint64_t literals);
/* AVX2 loops over p[*from, n): they end at a hit, at or a little behind `stop`, or where fewer than
 * a vector is left; *from is where. */
bool finder_pair_avx2(const struct finder *f, const char *p, size_t n, size_t stop, size_t *from);
bool finder_many_avx2(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which);
uint64_t finder_count_avx2(const char *p, size_t n, char c);
/* The same with vectors of 64 bytes. */
bool finder_has_avx512(void);
bool finder_pair_avx512(const struct finder *f, const char *p, size_t n, size_t stop, size_t *from);
bool finder_many_avx512(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which);
/* The first of the places p[at + k], k a bit of the mask, where the one literal stands. */
bool finder_check_pair(
    const struct finder *f, struct str text, size_t at, uint64_t mask, size_t *from);
/* The same for several literals; buckets[k] says which can stand at a place. */
bool finder_check_many(const struct finder *f, struct str text, size_t at,
    const unsigned char *buckets, uint64_t mask, size_t *from, size_t *which);
/* For each byte of the literal: a bit for each of the 64 places from p on where it stands as far
 * behind. Reads 64 bytes more than the literal is long. */
void finder_sample_avx2(const struct finder *f, const char *p, uint64_t *places);
bool finder_has_avx2(void);

#endif
