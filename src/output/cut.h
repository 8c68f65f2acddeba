/*
 * cut.h - finds places where a text may be cut without breaking a character, an escape or a
 * grapheme.
 *
 * A cut never falls inside a UTF-8 sequence, inside an escape of JSON or C (`\n`, `\u00e9`,
 * `\x1b`), between the two halves of an escaped surrogate pair (`\ud83d\ude00`), or inside a
 * grapheme: before a combining mark, around a zero-width joiner, before a variation selector or a
 * skin tone, inside a flag. Chains of these are followed for a bounded distance only.
 */
#ifndef OUTPUT_CUT_H
#define OUTPUT_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the largest legal place <= at, or 0 if none is near. Used for the end of a snippet. */
size_t cut_before(const char *p, size_t n, size_t at);
/* Returns the smallest legal place >= at, or n if none is near. Used for the beginning of a
 * snippet. */
size_t cut_after(const char *p, size_t n, size_t at);

#endif
