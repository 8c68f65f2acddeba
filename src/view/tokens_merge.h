/*
 * tokens_merge.h - how many tokens byte-pair merging leaves of one piece.
 *
 * Merging joins, again and again, the two neighbours whose bytes together are the token of lowest
 * rank, the leftmost first, until no two neighbours are a token.
 */
#ifndef VIEW_TOKENS_MERGE_H
#define VIEW_TOKENS_MERGE_H

#include <stddef.h>

#include "view/tokens_split.h"

#define TOKENS_MERGE_MAX 160 /* from about here on, chaining is the faster of the two */

/* Of a piece of 1 to TOKENS_MERGE_MAX bytes, by merging. */
size_t tokens_merge(const unsigned char *p, size_t n);

/* Of a piece of any length, in linear time and fixed memory. Bytes of the piece that are not
 * UTF-8 are read as U+FFFD. */
size_t tokens_chain(struct tokens_text piece);

#endif
