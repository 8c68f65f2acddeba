/*
 * arrange.h - a history cut to the turns that a target format knows, before its writer sees it:
 * items of one turn joined, results taken out of their call's message, media moved to where they
 * may stand, call ids made and made unique. Used inside format/ only.
 */
#ifndef FORMAT_ARRANGE_H
#define FORMAT_ARRANGE_H

#include "format/format.h"

/* *out shares with `h` what did not change. `own`: the list of `h` is the caller's own and may be
 * written over. 0 or STENO_ENOMEM. */
int arrange_history(struct writer *w, const struct history *h, bool own, struct history *out);

#endif
