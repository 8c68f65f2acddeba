/*
 * tokens_data.h - the vocabulary as tables, and finding a token in it.
 *
 * The tables are written by tools/tokens-data, which checks what is taken for granted here:
 * ranks have no gaps, every byte is a token, and a token that merging can reach has a higher rank
 * than its halves. Only the files tokens*.c include this.
 */
#ifndef VIEW_TOKENS_DATA_H
#define VIEW_TOKENS_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TOKENS_COUNT 199998
#define TOKENS_SLOT_BITS 19
#define TOKENS_SEEN_BITS 22
#define TOKENS_RANK_BITS 18
#define TOKENS_TAG_BITS (32 - TOKENS_RANK_BITS)
#define TOKENS_LENGTH_MAX 128 /* bytes of the longest token */
#define TOKENS_UNREACHABLE 255
#define TOKENS_NONE UINT32_MAX

#define TOKENS_TABLE extern const __attribute__((visibility("hidden")))

/* Open addressing with linear probing: 0, or rank + 1 above some bits of the hash. */
TOKENS_TABLE uint32_t tokens_slots[1 << TOKENS_SLOT_BITS];
/* The bytes of rank r are tokens_bytes[tokens_starts[r] .. tokens_starts[r + 1]). */
TOKENS_TABLE uint32_t tokens_starts[TOKENS_COUNT + 1];
TOKENS_TABLE unsigned char tokens_bytes[];
/* A bit for each value of the first bits of a hash: whether some token has it. Smaller than the
 * slots, so that it stays in a cache: most bytes that merging asks for are not a token. */
TOKENS_TABLE uint8_t tokens_seen[1 << (TOKENS_SEEN_BITS - 3)];
/* The rank of one byte. */
TOKENS_TABLE uint32_t tokens_singles[256];
/* The rank of two bytes, which is what is asked most. */
TOKENS_TABLE uint32_t tokens_pairs[256][256];
/* Length of the left half in the last merge that makes a token; 0 for a byte, and
 * TOKENS_UNREACHABLE for a token that only a piece as a whole can be. */
TOKENS_TABLE uint8_t tokens_splits[TOKENS_COUNT];
/* Bit k - 1: some token of k bytes ends in this byte. */
TOKENS_TABLE uint64_t tokens_lengths[256][2];

/* What the pattern of o200k_base tells apart. */
enum tokens_class {
        TOKENS_OTHER = 0,
        TOKENS_UPPER = 1,  /* Lu, Lt */
        TOKENS_LOWER = 2,  /* Ll */
        TOKENS_LETTER = 3, /* Lm, Lo */
        TOKENS_MARK = 4,   /* M */
        TOKENS_NUMBER = 5, /* N */
        TOKENS_SPACE = 6,
        TOKENS_NEWLINE = 7, /* CR, LF */
};
/* The class of c is tokens_blocks[tokens_block_of[c >> 8]][c & 255]; block 0 is the first. */
TOKENS_TABLE uint8_t tokens_block_of[0x1100];
TOKENS_TABLE uint8_t tokens_blocks[][256];

static inline uint32_t tokens_hash(const unsigned char *p, size_t n)
{
        uint32_t h = (uint32_t)n * 0x9e3779b1u;
        uint32_t word;
        for (; n >= 4; p += 4, n -= 4) {
                memcpy(&word, p, 4);
                h = (h ^ word) * 0x85ebca6bu;
                h ^= h >> 15;
        }
        word = 0;
        for (size_t i = 0; i < n; i++)
                word |= (uint32_t)p[i] << (8 * i);
        h = (h ^ word) * 0xc2b2ae35u;
        h ^= h >> 13;
        h *= 0x27d4eb2fu;
        return h ^ h >> 16;
}

/* memcmp for what is short, without the call. */
static inline bool tokens_same(const unsigned char *a, const unsigned char *b, size_t n)
{
        if (n > 8 || n < 3)
                return memcmp(a, b, n) == 0;
        if (n == 3)
                return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
        uint32_t x[2], y[2];
        memcpy(x, a, 4);
        memcpy(y, b, 4);
        memcpy(x + 1, a + n - 4, 4);
        memcpy(y + 1, b + n - 4, 4);
        return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

static inline uint32_t tokens_look_up(const unsigned char *p, size_t n, uint32_t h)
{
        const uint32_t tag_mask = (1u << TOKENS_TAG_BITS) - 1;
        const uint32_t slot_mask = (1u << TOKENS_SLOT_BITS) - 1;
        for (uint32_t at = h >> (32 - TOKENS_SLOT_BITS);; at = (at + 1) & slot_mask) {
                uint32_t slot = tokens_slots[at];
                if (slot == 0)
                        return TOKENS_NONE;
                if ((slot ^ h) & tag_mask)
                        continue;
                uint32_t rank = (slot >> TOKENS_TAG_BITS) - 1;
                uint32_t start = tokens_starts[rank];
                if (tokens_starts[rank + 1] - start == n && tokens_same(tokens_bytes + start, p, n))
                        return rank;
        }
}

/* The rank of the token that is exactly these bytes, or TOKENS_NONE. */
static inline uint32_t tokens_rank(const unsigned char *p, size_t n)
{
        if (n == 2)
                return tokens_pairs[p[0]][p[1]];
        if (n > TOKENS_LENGTH_MAX)
                return TOKENS_NONE;
        return tokens_look_up(p, n, tokens_hash(p, n));
}

/* The same, faster when they are probably none. */
static inline uint32_t tokens_rank_if_any(const unsigned char *p, size_t n)
{
        if (n == 2)
                return tokens_pairs[p[0]][p[1]];
        if (n == 1)
                return tokens_singles[p[0]];
        if (n > TOKENS_LENGTH_MAX)
                return TOKENS_NONE;
        uint32_t h = tokens_hash(p, n);
        uint32_t at = h >> (32 - TOKENS_SEEN_BITS);
        if (!(tokens_seen[at >> 3] >> (at & 7) & 1))
                return TOKENS_NONE;
        return tokens_look_up(p, n, h);
}

#endif
