/*
 * cut.h - where a text may be cut without breaking what a reader sees as one thing.
 *
 * A cut never falls inside a UTF-8 sequence, inside an escape of JSON or C (`\n`, `\u00e9`,
 * `\x1b`), between the two halves of an escaped surrogate pair (`\ud83d\ude00`), or inside a
 * grapheme: before a combining mark, around a zero-width joiner, before a variation selector or
 * a skin tone, inside a flag. Chains of these are followed for a bounded distance only.
 */
#ifndef OUTPUT_CUT_H
#define OUTPUT_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest legal place <= at (0 when there is none nearby), for the end of a snippet. */
size_t cut_before(const char *p, size_t n, size_t at);
/* The smallest legal place >= at (n when there is none nearby), for its beginning. */
size_t cut_after(const char *p, size_t n, size_t at);

#endif
