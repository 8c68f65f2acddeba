/*
 * magic.h - guesses the type of a binary from its first bytes.
 */
#ifndef OUTPUT_MAGIC_H
#define OUTPUT_MAGIC_H

#include "base/str.h"

/* Returns "PNG image", "gzip data" ..., or NULL. */
const char *magic_guess(struct str first);

#endif
