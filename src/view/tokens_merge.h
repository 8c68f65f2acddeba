/*
 * tokens_merge.h - counting the tokens of a short piece by merging it.
 *
 * That is fastest where letters have two bytes. tokens_lattice.h and tokens_piece.h say where
 * others are.
 */
#ifndef VIEW_TOKENS_MERGE_H
#define VIEW_TOKENS_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "view/tokens_split.h"

#define MERGE_BYTES 128 /* longer pieces are for the others in any case */

/* Tokens that merging leaves of a piece, and how many units it was made of; 0: the piece is too
 * long for this. Bytes that are not UTF-8 are U+FFFD. */
size_t tokens_merge(struct tokens_text piece, size_t *units);

#endif
