/*
 * sizes.h - limits the images and files in the results of one view: there is a maximum for each and
 * for all together, and the newest have priority (base/limits.h). A part that is too large is
 * replaced by a note with the ref of the result, if it has one. Used inside format/ only.
 */
#ifndef FORMAT_SIZES_H
#define FORMAT_SIZES_H

#include "format/format.h"

/* Changes `h`; its list must belong to the caller. 0 or STENO_ENOMEM. */
int sizes_fit(struct writer *w, struct history *h);

#endif
