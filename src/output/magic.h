/*
 * magic.h - what a binary probably is, by its first bytes.
 */
#ifndef OUTPUT_MAGIC_H
#define OUTPUT_MAGIC_H

#include "base/str.h"

/* "PNG image", "gzip data" ..., or NULL. */
const char *magic_guess(struct str first);
/* The media type that goes with it: "image/png" ...; "application/octet-stream" for the rest. */
const char *magic_mime(struct str first);

#endif
