/*
 * sizes.h - how much of the images and files in results goes into one view: so much of each, so
 * much of all of them together, and the newest first (base/limits.h). A note stands in the place of
 * what is too much, with the ref of the result where there is one. Used inside format/ only.
 */
#ifndef FORMAT_SIZES_H
#define FORMAT_SIZES_H

#include "format/format.h"

/* Changes `h`, whose list must be the caller's own. 0 or STENO_ENOMEM. */
int sizes_fit(struct writer *w, struct history *h);

#endif
