/*
 * arrange.h - prepares a history for a target format, before the format's writer sees it: joins the
 * items of one turn, takes results out of the messages of their calls, moves media to where they
 * are allowed, and makes call ids present and unique. Used inside format/ only.
 */
#ifndef FORMAT_ARRANGE_H
#define FORMAT_ARRANGE_H

#include "format/format.h"

/* *out shares with `h` everything that did not change. `own`: the list of `h` belongs to the caller
 * and may be overwritten. 0 or STENO_ENOMEM. */
int arrange_history(struct writer *w, const struct history *h, bool own, struct history *out);

#endif
