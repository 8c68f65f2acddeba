/*
 * tokens_piece.h - counts the tokens that byte-pair merging leaves of one piece.
 *
 * Merging repeats one step: it joins the two neighbours whose bytes together are the token of
 * lowest rank, the leftmost first. It ends when no two neighbours make a token.
 */
#ifndef VIEW_TOKENS_PIECE_H
#define VIEW_TOKENS_PIECE_H

#include <stddef.h>

#include "view/tokens_split.h"

/* Counts the tokens of a piece of at least one byte, in linear time and fixed memory. If `damaged`,
 * bytes that are not UTF-8 are read as U+FFFD. */
size_t tokens_piece(struct tokens_text piece, bool damaged);

/* Does the same in the slower of two ways. tokens_piece uses it if the faster way would go back too
 * far. */
size_t tokens_piece_spread(struct tokens_text piece, bool damaged);

#endif
