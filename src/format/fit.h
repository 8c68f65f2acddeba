/*
 * fit.h - a history fitted to what a provider takes, by the provider's table (rules.h), before
 * anything is written: names of tools, media, empty texts, halves of surrogate pairs, cache marks,
 * parts that only another endpoint can read. Whatever had to change is reported. Used inside
 * format/ only.
 */
#ifndef FORMAT_FIT_H
#define FORMAT_FIT_H

#include "format/format.h"
#include "format/rules.h"

/* *out shares with `h` what did not change. Does nothing for a format that is not a provider's, or
 * without `valid`. 0 or STENO_ENOMEM. */
int fit_history(struct writer *w, const struct history *h, struct history *out);

/* JSON text with U+FFFD in the place of each half of a surrogate pair. Escapes are as long, so it
 * keeps its length. */
struct str fit_text(struct str json, struct arena *arena);

#endif
