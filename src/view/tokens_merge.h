/*
 * tokens_merge.h - counts the tokens of a short piece by merging it.
 *
 * This is fastest if letters have two bytes. tokens_lattice.h and tokens_piece.h say when they are
 * better.
 */
#ifndef VIEW_TOKENS_MERGE_H
#define VIEW_TOKENS_MERGE_H

#include <stdbool.h>
#include <stddef.h>

#include "view/tokens_split.h"

#define MERGE_BYTES 128 /* longer pieces are never counted here */

/* Returns the number of tokens that merging leaves of a piece, and the number of units that it
 * began with. Returns 0 if the piece is too long. Bytes that are not UTF-8 are read as U+FFFD. */
size_t tokens_merge(struct tokens_text piece, size_t *units);

#endif
