/*
 * composed.h - texts that look the same and have different code points: an accent can be part of
 * its letter or follow it, and a syllable of Hangul can be one character or several.
 *
 * Unicode calls them canonically equivalent, and has a spelling for all of them, NFC. Texts are
 * brought into it a cluster at a time: a character and those behind it that may join it.
 */
#ifndef BASE_COMPOSED_H
#define BASE_COMPOSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPOSED_MAX 32 /* characters of a cluster; what a person writes has at most five */

/* Does it join the character before it, or is it never in NFC? */
bool composed_is_care(uint32_t c);
/* Does it join the character before it? */
bool composed_joins(uint32_t c);
/* Is it a mark, which means nothing without a character before it? */
bool composed_is_mark(uint32_t c);
/* Brings a cluster of at most COMPOSED_MAX characters into NFC; returns how many it has then, at
 * most COMPOSED_ROOM. Nothing but ASCII becomes ASCII. */
#define COMPOSED_ROOM (4 * COMPOSED_MAX)
size_t composed(uint32_t c[COMPOSED_ROOM], size_t n);

#endif
