/*
 * magic.h - what a binary probably is, by its first bytes.
 */
#ifndef OUTPUT_MAGIC_H
#define OUTPUT_MAGIC_H

#include "base/str.h"

/* "PNG image", "gzip data" ..., or NULL. */
const char *magic_guess(struct str first);

#endif
