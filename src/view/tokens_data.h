/*
 * tokens_data.h - the vocabulary as tables, and functions that search it.
 *
 * tools/tokens-data writes the tables and checks what this code assumes: ranks have no gaps, the
 * bytes have the ranks 0 to 255, merging the bytes of any token ends in that token, and a token has
 * a higher rank than its halves. Only the files tokens*.c include this.
 */
#ifndef VIEW_TOKENS_DATA_H
#define VIEW_TOKENS_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKENS_COUNT 199998
#define TOKENS_BYTES 256      /* tokens of one byte have the first ranks */
#define TOKENS_LENGTH_MAX 128 /* bytes of the longest token */
#define TOKENS_RANK_BITS 18
#define TOKENS_LABEL_BITS 9
#define TOKENS_ROW_BITS 27
#define TOKENS_DUO_BITS 11
#define TOKENS_NONE ((1u << TOKENS_RANK_BITS) - 1)

#define TOKENS_TABLE extern const __attribute__((visibility("hidden")))

/* A token. The table is sorted by rank. */
struct tokens_token {
        uint64_t left : TOKENS_RANK_BITS; /* the token's halves, which the last merge joined; for
                                             a byte, both are the byte */
        uint64_t right : TOKENS_RANK_BITS;
        uint64_t shorter : TOKENS_RANK_BITS; /* the longest shorter token that this token begins
                                                with */
        uint64_t length : 64 - 3 * TOKENS_RANK_BITS;
        uint32_t row : TOKENS_ROW_BITS; /* its row in tokens_joins */
        uint32_t shift : 32 - TOKENS_ROW_BITS;
};
TOKENS_TABLE struct tokens_token tokens_tokens[TOKENS_COUNT];

/* All beginnings of tokens, as a trie: from a cell, byte b leads to cell `next` + b, if that cell
 * has the label b. The first TOKENS_BYTES cells have labels that no byte matches, and the next
 * TOKENS_BYTES cells are the bytes. */
struct tokens_cell {
        uint32_t label : TOKENS_LABEL_BITS;
        uint32_t next : 32 - TOKENS_LABEL_BITS;
        uint32_t longest : 24; /* the longest token at the start of this beginning */
        uint32_t length : 8;   /* the length of that token */
};
TOKENS_TABLE struct tokens_cell tokens_cells[];

/* The joins of tokens: one row for each left token. A row is a hash table with linear probing. A
 * cell has the rank of the joined token above some bits of the right token. Cells without an empty
 * cell between them all have different bits, and a row ends with an empty cell. The joins of one
 * left token are stored together because they are looked up together. */
TOKENS_TABLE uint32_t tokens_joins[];
#define TOKENS_NO_JOIN UINT32_MAX

/* Two bytes of ASCII are at [first << 7 | second]. The byte b behind them leads to trio `next` + b,
 * if that trio has the label b, and the byte behind that leads to quad `next` + that byte. These
 * tables are small enough to stay in a cache, unlike the trie. */
struct tokens_pair {
        uint32_t rank; /* TOKENS_NONE: no token */
        uint32_t next;
};
TOKENS_TABLE struct tokens_pair tokens_pairs[128 * 128];

struct tokens_trio {
        uint32_t label : 7; /* also in empty cells, which are no tokens and lead nowhere */
        uint32_t rank : TOKENS_RANK_BITS; /* TOKENS_NONE: not a token, only the beginning of
                                             one */
        uint32_t right : 1; /* its last merge joined one byte and two bytes, not two and one */
        uint32_t unused : 32 - 8 - TOKENS_RANK_BITS;
        uint32_t next : 16;
        uint32_t fourths : 16; /* has bit b & 15 for each byte b that follows in a longer
                                  token */
};
TOKENS_TABLE struct tokens_trio tokens_trios[];

struct tokens_quad {
        uint32_t label : 7;
        uint32_t rank : TOKENS_RANK_BITS;
        uint32_t left : 2; /* number of bytes of its left half */
        uint32_t unused : 32 - 9 - TOKENS_RANK_BITS;
        uint32_t fifths; /* has bit b & 31 for each byte b that follows in a longer token */
};
TOKENS_TABLE struct tokens_quad tokens_quads[];

/* For each code point: the token of the character, or TOKENS_NONE. */
TOKENS_TABLE uint32_t tokens_chars[0x10000];

/* A bit for each two bytes x, y, at x << 8 | y. It is set if there is a token whose left half ends
 * in x and whose right half begins with y, and which begins or ends inside a character. */
TOKENS_TABLE uint8_t tokens_torn[0x10000 / 8];

/* A bit for each code point. It is set if merging makes the character from its bytes before any of
 * these bytes joins something else. There is one exception: the token before it may take its first
 * bytes. This is possible only if tokens_begun has a bit for the byte before the character and its
 * first byte, at x << 8 | y: there is a token whose left half ends in x, and whose right half is
 * the beginning of a character. */
TOKENS_TABLE uint8_t tokens_kept[0x10000 / 8];
TOKENS_TABLE uint8_t tokens_begun[0x10000 / 8];

/* The token that joins two characters of two bytes each. For c and d it is at tokens_duo_rows[c] +
 * d: the rank, above TOKENS_DUO_BITS bits that are c. */
TOKENS_TABLE uint32_t tokens_duos[];
TOKENS_TABLE uint16_t tokens_duo_rows[1 << TOKENS_DUO_BITS];

/* The classes of characters in the pattern of o200k_base. */
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

/* Returns the longest token at the beginning of p[0,n), and its length; n > 0. */
static inline const struct tokens_cell *tokens_longest(const unsigned char *p, size_t n)
{
        const struct tokens_cell *cell = &tokens_cells[TOKENS_BYTES + p[0]];
        for (size_t i = 1; i < n; i++) {
                const struct tokens_cell *next = &tokens_cells[cell->next + p[i]];
                if (next->label != p[i])
                        break;
                cell = next;
        }
        return cell;
}

/* Returns the token to which merging may join `left` and `right`, or TOKENS_NONE. The caller must
 * check that its right half is `right`. */
static inline uint32_t tokens_may_join(uint32_t left, uint32_t right)
{
        const uint32_t tag_mask = (1u << (32 - TOKENS_RANK_BITS)) - 1;
        const struct tokens_token *row = &tokens_tokens[left];
        const uint32_t *join = &tokens_joins[row->row + (right * 0x9e3779b1u >> row->shift)];
        for (; *join != TOKENS_NO_JOIN; join++) {
                if (((*join ^ right) & tag_mask) == 0)
                        return *join >> (32 - TOKENS_RANK_BITS);
        }
        return TOKENS_NONE;
}

/* Returns the token to which merging joins `left` and `right`, or TOKENS_NONE. */
static inline uint32_t tokens_joined(uint32_t left, uint32_t right)
{
        uint32_t rank = tokens_may_join(left, right);
        return rank != TOKENS_NONE && tokens_tokens[rank].right == right ? rank : TOKENS_NONE;
}

/* Does merging join `left` and `right` to a token of a rank below `limit`? */
static inline bool tokens_join(uint32_t left, uint32_t right, uint32_t limit)
{
        uint32_t rank = tokens_may_join(left, right);
        return rank != TOKENS_NONE && rank < limit && tokens_tokens[rank].right == right;
}

/*
 * Does merging leave two neighbours unjoined? Their own merges are undone, the latest first (the
 * highest rank; of equal ranks, the right one). At each step, the two parts beside the border must
 * not make a token that would have been merged before the step that is undone: a token of lower
 * rank, or of the same rank if that step was further to the right.
 */
static inline bool tokens_fit(uint32_t left, uint32_t right)
{
        uint32_t limit = TOKENS_NONE;
        while (!tokens_join(left, right, limit)) {
                if (left < TOKENS_BYTES && right < TOKENS_BYTES)
                        return true;
                if (left > right) {
                        limit = left;
                        left = tokens_tokens[left].right;
                } else {
                        limit = right + 1;
                        right = tokens_tokens[right].left;
                }
        }
        return false;
}

#endif
