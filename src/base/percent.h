/*
 * percent.h - %41 and the like.
 */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include "base/arena.h"
#include "base/str.h"

/* Decodes into the arena, with a NUL behind; `plus` makes + a space. False: a broken escape, a
 * NUL byte, or no memory. */
bool percent_decode(struct arena *arena, struct str s, bool plus, struct str *out);

#endif
