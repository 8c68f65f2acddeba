/*
 * finder.h - finds one of a few literals in bytes, at the speed of memory.
 *
 * A single literal is found by its two rarest bytes. Several literals are found by a table of
 * nibbles over their first bytes (this method is known as Teddy). Both have AVX-512, AVX2 and
 * portable forms, chosen at run time. With `fold`, ASCII letters match in either case. This file
 * knows nothing of lines or patterns.
 */
#ifndef OUTPUT_FINDER_H
#define OUTPUT_FINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define FINDER_LITERALS 64
#define FINDER_LITERAL_MAX 48 /* only these first bytes of a literal are compared */

struct finder {
        size_t count;
        size_t shortest;
        bool fold;
        unsigned char text[FINDER_LITERALS][FINDER_LITERAL_MAX]; /* lower case when folding */
        unsigned char size[FINDER_LITERALS];
        /* for one literal: places and values of the two bytes that are searched first */
        unsigned char at[2];
        unsigned char byte[2];
        unsigned char bits[2]; /* 0x20 if the byte is a letter and case is folded */
        /* its first 8 bytes as a number, a mask of letters' case bits, and a mask of bytes that
         * count */
        uint64_t head;
        uint64_t head_bits;
        uint64_t head_mask;
        /* for several literals: for each of the first `depth` bytes, the buckets that a nibble may
         * belong to */
        unsigned depth;
        unsigned char low[3][16];
        unsigned char high[3][16];
        uint64_t bucket[8]; /* the literals in each bucket */
        unsigned char first[256];
        unsigned char whole[3][128]; /* the same for a byte without its highest bit */
        bool wide;                   /* this machine has AVX2 */
        bool wider;                  /* and it has AVX-512 with look-ups in tables of bytes */
};

/* Returns false if it cannot search: there is no literal, too many, or one that is empty. */
bool finder_init(struct finder *f, const struct str *literals, size_t count, bool fold);

/* Reads some of the text that will be searched, and chooses the two bytes of a literal that occur
 * together least often: in a log, every line has the same beginning. This changes no result. */
void finder_learn(struct finder *f, const char *p, size_t n);

/* Returns the first place >= from of a literal in p[0, n), or n. *which (may be NULL) is the
 * literal's index; if several begin at this place, it is any of them. */
size_t finder_next(const struct finder *f, const char *p, size_t n, size_t from, size_t *which);
/* The same for places before `stop`; returns n if there is none. It is faster if there is text
 * behind `stop`. */
size_t finder_next_before(
    const struct finder *f, const char *p, size_t n, size_t from, size_t stop, size_t *which);

/* Estimates the cost of searching this literal, from how common its rarest bytes are in tool
 * outputs and logs. Smaller is better. */
unsigned finder_cost(struct str literal, bool fold);

/* ---- between the two halves of the implementation ---- */

/* Returns 0x20 for a letter if case is folded. */
unsigned char finder_fold_bit(const struct finder *f, unsigned char c);
/* Is a literal at p? Returns its index or -1. */
int finder_verify(const struct finder *f, const char *p, size_t n, uint64_t literals);
/* The loops with AVX2 over p[*from, n). They end at a hit, at `stop` or a little behind it, or when
 * less than a vector is left. *from becomes the place where they end. */
bool finder_pair_avx2(const struct finder *f, const char *p, size_t n, size_t stop, size_t *from);
bool finder_many_avx2(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which);
uint64_t finder_count_avx2(const char *p, size_t n, char c);
/* The same with vectors of 64 bytes. */
bool finder_has_avx512(void);
bool finder_pair_avx512(const struct finder *f, const char *p, size_t n, size_t stop, size_t *from);
bool finder_many_avx512(
    const struct finder *f, const char *p, size_t n, size_t stop, size_t *from, size_t *which);
/* Returns the first place p[at + k] of the only literal. Only bits k of the mask are checked. */
bool finder_check_pair(
    const struct finder *f, struct str text, size_t at, uint64_t mask, size_t *from);
/* The same for several literals; buckets[k] says which of them are possible at a place. */
bool finder_check_many(const struct finder *f, struct str text, size_t at,
    const unsigned char *buckets, uint64_t mask, size_t *from, size_t *which);
/* For each byte of the literal, writes 64 bits. Bit i says whether the byte at p + i + (its index
 * in the literal) is equal to it. Reads 64 bytes more than the literal is long. */
void finder_sample_avx2(const struct finder *f, const char *p, uint64_t *places);
bool finder_has_avx2(void);

#endif
