/*
 * sizes.h - limits the images and files in the results of one view: a maximum for each and for all
 * together, the newest first (base/limits.h). A note with the ref of the result, if it has one,
 * replaces what is too large. Used inside format/ only.
 */
#ifndef FORMAT_SIZES_H
#define FORMAT_SIZES_H

#include "format/format.h"

/* Changes `h`, whose list must be the caller's own. 0 or STENO_ENOMEM. */
int sizes_fit(struct writer *w, struct history *h);

#endif
