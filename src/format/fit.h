/*
 * fit.h - changes a history so that a provider accepts it, by the provider's table (rules.h),
 * before anything is written: names of tools, media, empty texts, halves of surrogate pairs, cache
 * marks, parts that only another endpoint can read. Every change is reported. Used inside format/
 * only.
 */
#ifndef FORMAT_FIT_H
#define FORMAT_FIT_H

#include "format/format.h"
#include "format/rules.h"

/* *out shares with `h` everything that did not change. Does nothing for a format that is not a
 * provider's, or without `valid`. 0 or STENO_ENOMEM. */
int fit_history(struct writer *w, const struct history *h, struct history *out);

/* Returns JSON text with U+FFFD in place of each half of a surrogate pair. The length stays the
 * same, because both escapes have the same length. */
struct str fit_text(struct str json, struct arena *arena);

#endif
