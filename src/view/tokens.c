/*
 * tokens.c - exact counting, in a build that has the vocabulary.
 *
 * A text is cut into pieces (tokens_split.c), most of which are one token. Other pieces are counted
 * together if they are short (tokens_lattice.c), or one by one (tokens_merge.c, tokens_piece.c).
 * Texts repeat themselves: names in code and JSON, phrases in languages without blanks. So the
 * counts of pieces are remembered while a long text is counted.
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
#define MEMORY_BYTES 30   /* longer pieces are counted each time */
#define MEMORY_LEAST 4    /* and so are shorter pieces */
#define MEMORY_TEXT 2048  /* a shorter text is counted without the memory */

struct memory {
        struct remembered {
                uint8_t n;     /* 0: the slot is free */
                uint8_t count; /* 0: not known */
                unsigned char p[MEMORY_BYTES];
        } pieces[MEMORY_PIECES];
};

_Static_assert((MEMORY_PIECES & (MEMORY_PIECES - 1)) == 0, "a slot is some bits of a hash");

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
        int credit;            /* when it is used up, tokens_merge is no longer used */
        struct tokens_lattice lattice;
};

/* A short piece is counted by the lattice only if the token that it begins with has at most this
 * many characters. The lattice is slow for longer ones. It is also slow for alphabets with two
 * bytes for each letter: their words have many tokens that begin or end inside a letter. */
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

/* The time of merging depends on the number of merges. If more than half of the units of the last
 * pieces are merged, as in natural words, tokens_piece is faster. */
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

/* The lattice returns counts too late for the memory, so a piece is counted alone when it comes
 * again. */
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
