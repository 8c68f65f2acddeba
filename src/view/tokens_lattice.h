/*
 * tokens_lattice.h - counts pieces of which most tokens are one to three characters.
 *
 * Such pieces are random letters, base64, and words of a language without blanks. First, all tokens
 * at all places of the text are looked up; these look-ups do not depend on each other. Then
 * comparing the ranks shows which tokens merging leaves. tokens_piece.h is better if tokens are
 * long.
 */
#ifndef VIEW_TOKENS_LATTICE_H
#define VIEW_TOKENS_LATTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/tokens_split.h"

#define LATTICE_PIECE 31 /* in characters; longer pieces are counted in windows */
#define LATTICE_UNITS 512
#define LATTICE_START 64 /* the first place; before it is the rest of the last window */
#define LATTICE_AHEAD 32 /* units that must be known behind a place */

/* Place i is before unit i. The first unit is at place LATTICE_START. */
struct tokens_lattice {
        size_t count;  /* number of tokens in the pieces before */
        size_t n;      /* number of units */
        size_t looked; /* the tokens that begin before this place are known */
        size_t done;   /* the last token is known for all places up to this one */
        size_t slow;   /* how many of these places needed try_all */
        bool wide;     /* not only ASCII */

        uint32_t units[LATTICE_UNITS + LATTICE_AHEAD]; /* the token of each unit */
        uint16_t at[LATTICE_UNITS + LATTICE_AHEAD];    /* the offset of each unit's bytes */
        unsigned char bytes[3 * (LATTICE_UNITS + LATTICE_AHEAD)];
        uint8_t first[LATTICE_UNITS + LATTICE_AHEAD]; /* 1: a piece begins here */
        uint8_t torn[LATTICE_UNITS + LATTICE_AHEAD];  /* 1: tokens_torn, for the units beside it */

        /* For each place: the token of two units that begins there; the token of three units that
         * is joined from two and one; and the one that is joined from one and two. TOKENS_NONE:
         * there is none. */
        int32_t two[LATTICE_UNITS + LATTICE_AHEAD];
        int32_t two_one[LATTICE_UNITS + LATTICE_AHEAD];
        int32_t one_two[LATTICE_UNITS + LATTICE_AHEAD];

        /* For each place: the token of four units that begins there, if `longer` says that there is
         * one. */
        struct lattice_four {
                int32_t rank : 30;
                uint32_t left : 2; /* number of units in the left half */
        } four[LATTICE_UNITS + LATTICE_AHEAD];

        /* For each place: a bit for each length, in units, of a longer token that ends there. Two
         * bits are no lengths. Bit 0: a token of four units may stop a token that ends here. Bit 1:
         * a token of more units may. */
        uint32_t longer[LATTICE_UNITS + 2 * LATTICE_AHEAD];

        /* For each place: the number of units of the last token that merging leaves of the text up
         * to it, and the number of tokens since place LATTICE_START. */
        uint8_t last[LATTICE_UNITS + LATTICE_AHEAD];
        uint64_t counts[LATTICE_UNITS + LATTICE_AHEAD];
};

void tokens_lattice_init(struct tokens_lattice *l);

/* Adds a piece. False: it has characters or tokens that are too long for the lattice, and was not
 * added. Bytes that are not UTF-8 are read as U+FFFD. */
bool tokens_lattice_add(struct tokens_lattice *l, struct tokens_text piece);

/* Returns the number of tokens of all pieces since init. */
size_t tokens_lattice_end(struct tokens_lattice *l);

#endif
