/*
 * tokens_piece.h - how many tokens byte-pair merging leaves of one piece.
 *
 * Merging joins, again and again, the two neighbours whose bytes together are the token of lowest
 * rank, the leftmost first, until no two neighbours are a token.
 */
#ifndef VIEW_TOKENS_PIECE_H
#define VIEW_TOKENS_PIECE_H

#include <stddef.h>

#include "view/tokens_split.h"

/* Tokens of a piece of at least one byte, in linear time and fixed memory. When it is `damaged`,
 * bytes that are not UTF-8 are read as U+FFFD. */
size_t tokens_piece(struct tokens_text piece, bool damaged);

/* The same by the slower of its two ways, which tokens_piece takes when the other one has to go
 * back too far. */
size_t tokens_piece_spread(struct tokens_text piece, bool damaged);

#endif
