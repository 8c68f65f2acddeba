/*
 * tokens_lattice.h - counting pieces of which most tokens are one to three characters.
 *
 * That is what random letters, base64, and words of a language without blanks are cut into. All
 * tokens that stand anywhere in the text are looked up first, which nothing has to wait for; which
 * of them merging leaves then follows from comparing their ranks. tokens_piece.h is better where
 * tokens are long.
 */
#ifndef VIEW_TOKENS_LATTICE_H
#define VIEW_TOKENS_LATTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "view/tokens_split.h"

#define LATTICE_PIECE 31 /* characters; longer pieces are counted in windows */
#define LATTICE_UNITS 512
#define LATTICE_START 64 /* place of the first; before it is what the last window left */
#define LATTICE_AHEAD 32 /* units that must be seen behind a place */

/* Characters are units 0, 1, ...; place i is before unit i. */
struct tokens_lattice {
        size_t count;  /* tokens of the pieces before */
        size_t n;      /* units */
        size_t looked; /* the tokens that begin before this place are known */
        size_t done;   /* places up to this one have a last token */
        size_t slow;   /* how many of them took tokens_fit() */
        bool wide;     /* not only ASCII */

        uint32_t units[LATTICE_UNITS + LATTICE_AHEAD]; /* their tokens */
        uint16_t at[LATTICE_UNITS + LATTICE_AHEAD];    /* where their bytes are */
        unsigned char bytes[3 * (LATTICE_UNITS + LATTICE_AHEAD)];
        uint8_t first[LATTICE_UNITS + LATTICE_AHEAD]; /* 1: a piece begins here */
        uint8_t torn[LATTICE_UNITS +
                     LATTICE_AHEAD]; /* 1: tokens_torn, for the units beside the place */

        /* By the place where they begin: the tokens of two units, and those of three of which the
         * last merge joined two and one, and one and two. TOKENS_NONE: there is none. */
        int32_t two[LATTICE_UNITS + LATTICE_AHEAD];
        int32_t two_one[LATTICE_UNITS + LATTICE_AHEAD];
        int32_t one_two[LATTICE_UNITS + LATTICE_AHEAD];

        /* By the place where they begin: tokens of four units, where `longer` says that there is
         * one. */
        struct lattice_four {
                int32_t rank : 30;
                uint32_t left : 2; /* units of the left half */
        } four[LATTICE_UNITS + LATTICE_AHEAD];

        /* By the place where they end: a bit for each length of a longer token, in units. Bit 0
         * alone: one of four units may be in the way of what ends here; bit 1: one of more. */
        uint32_t longer[LATTICE_UNITS + 2 * LATTICE_AHEAD];

        /* Units of the last token of what merging leaves of the text up to a place, and tokens from
         * place LATTICE_START on. */
        uint8_t last[LATTICE_UNITS + LATTICE_AHEAD];
        uint64_t counts[LATTICE_UNITS + LATTICE_AHEAD];
};

void tokens_lattice_init(struct tokens_lattice *l);

/* Adds a piece. False: it has characters or tokens that do not fit in here, and was not added.
 * Bytes that are not UTF-8 are U+FFFD. */
bool tokens_lattice_add(struct tokens_lattice *l, struct tokens_text piece);

/* Tokens of all pieces since init. */
size_t tokens_lattice_end(struct tokens_lattice *l);

#endif
