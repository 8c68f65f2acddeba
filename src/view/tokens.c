/*
 * tokens.c - exact counting, in a build that has the vocabulary.
 *
 * A text is cut into pieces (tokens_split.c), most of which are one token; those of the others are
 * counted together where they are short (tokens_lattice.c), or piece by piece (tokens_merge.c,
 * tokens_piece.c).
 * Texts repeat themselves: names in code and JSON, phrases in languages without blanks. So counts
 * of pieces are remembered while a long text is counted.
 */
#include "view/tokens.h"

#include <string.h>

#include "view/tokens_data.h"
#include "view/tokens_lattice.h"
#include "view/tokens_merge.h"
#include "view/tokens_piece.h"
#include "view/tokens_split.h"

bool tokens_exact(void)
{
        return true;
}

#define MEMORY_PIECES 256 /* a power of two */
#define MEMORY_BYTES 30   /* of a piece; longer ones are counted each time */
#define MEMORY_LEAST 4    /* shorter ones as well */
#define MEMORY_TEXT 2048  /* a shorter text is counted without */

struct memory {
        struct remembered {
                uint8_t n;     /* 0: nothing */
                uint8_t count; /* 0: not known */
                unsigned char p[MEMORY_BYTES];
        } pieces[MEMORY_PIECES];
};

_Static_assert((MEMORY_PIECES & (MEMORY_PIECES - 1)) == 0, "a place is some bits of a hash");

static struct remembered *memory_place(struct memory *m, struct tokens_text piece)
{
        uint64_t h = piece.n;
        size_t at = 0;
        for (; at + 8 <= piece.n; at += 8) {
                uint64_t word;
                memcpy(&word, piece.p + at, 8);
                h = (h ^ word) * 0x9e3779b97f4a7c15u;
                h ^= h >> 32;
        }
        for (; at < piece.n; at++)
                h = h << 7 ^ h >> 50 ^ piece.p[at];
        return &m->pieces[h * 0x9e3779b97f4a7c15u >> 56 & (MEMORY_PIECES - 1)];
}

struct counter {
        struct memory *memory; /* may be NULL */
        int credit;            /* merging is given up when it is used up */
        struct tokens_lattice lattice;
};

/* Characters of the token with which a short piece begins; those with a longer one are no work for
 * the lattice. Nor are alphabets of two bytes a letter, whose words have many tokens that begin or
 * end inside a letter. */
#define LATTICE_LONGEST 3

static bool has_two_byte_letters(struct tokens_text piece)
{
        unsigned char lead = piece.n > 1 && piece.p[0] == ' ' ? piece.p[1] : piece.p[0];
        return lead >= 0xC0 && lead < 0xE0;
}

static bool is_for_lattice(struct tokens_text piece, size_t longest)
{
        if (has_two_byte_letters(piece))
                return false;
        if (longest <= LATTICE_LONGEST || piece.n > MEMORY_BYTES)
                return true;
        size_t characters = 0;
        for (size_t i = 0; i < longest; i++)
                characters += (piece.p[i] & 0xC0) != 0x80;
        return characters <= LATTICE_LONGEST;
}

/* Merging takes as long as there is to merge. Where that is more than half of the units of the last
 * pieces, as in words that people write, a text is counted without. */
#define CREDIT 64
#define CREDIT_MOST 128

static size_t count_alone(struct counter *c, struct tokens_text piece, bool damaged)
{
        size_t count = 0, units = 0;
        if (c->credit > 0 && piece.n <= MERGE_BYTES && (damaged || has_two_byte_letters(piece)))
                count = tokens_merge(piece, &units);
        if (count == 0)
                return tokens_piece(piece, damaged);
        c->credit += (int)units / 2 - (int)(units - count);
        c->credit = c->credit < CREDIT_MOST ? c->credit : CREDIT_MOST;
        return count;
}

static size_t count_without_memory(struct counter *c, struct tokens_text piece, size_t longest)
{
        if (is_for_lattice(piece, longest) && tokens_lattice_add(&c->lattice, piece))
                return 0;
        return count_alone(c, piece, false);
}

/* What the lattice counts is known too late to be remembered, so the piece is counted alone when it
 * comes again. */
static size_t count_with_memory(struct counter *c, struct tokens_text piece, size_t longest)
{
        struct remembered *r = memory_place(c->memory, piece);
        bool again = r->n == piece.n && memcmp(r->p, piece.p, piece.n) == 0;
        if (again && r->count > 0)
                return r->count;
        r->n = (uint8_t)piece.n;
        memcpy(r->p, piece.p, piece.n);
        size_t count =
            again ? count_alone(c, piece, false) : count_without_memory(c, piece, longest);
        r->count = (uint8_t)count;
        return count;
}

static size_t count_piece(struct counter *c, struct tokens_text piece, bool damaged)
{
        if (damaged)
                return count_alone(c, piece, damaged);
        size_t longest = tokens_longest(piece.p, piece.n)->length;
        if (longest == piece.n)
                return 1;
        return c->memory && piece.n >= MEMORY_LEAST && piece.n <= MEMORY_BYTES
                   ? count_with_memory(c, piece, longest)
                   : count_without_memory(c, piece, longest);
}

size_t tokens_count(const char *text, size_t n)
{
        struct tokens_text rest = {(const unsigned char *)text, n};
        struct memory memory;
        struct counter c;
        size_t count = 0;
        tokens_lattice_init(&c.lattice);
        c.credit = CREDIT;
        c.memory = n >= MEMORY_TEXT ? &memory : NULL;
        if (c.memory)
                memset(c.memory, 0, sizeof *c.memory);
        while (rest.n > 0) {
                bool damaged = false;
                size_t len = tokens_split(rest, &damaged);
                count += count_piece(&c, (struct tokens_text){rest.p, len}, damaged);
                rest.p += len;
                rest.n -= len;
        }
        return count + tokens_lattice_end(&c.lattice);
}
