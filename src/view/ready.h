/*
 * ready.h - may a stored openai message go to a provider as it stands?
 *
 * Most messages of most histories may, and then a view is a copy. This looks at a message without
 * parsing it: it walks the top level and the calls, and steps over strings at the speed of
 * memory. It says yes only to the plain shapes; for everything else the long way through the hub
 * is right, whatever it does.
 */
#ifndef VIEW_READY_H
#define VIEW_READY_H

#include <stdbool.h>

#include "base/str.h"

/* The number of the rule, which stands in records that were found ready when they came
 * (about.plain). It grows when the rule becomes stricter, so that no older yes is believed. */
#define READY_RULE 2

/* `m` is valid JSON on one line, as logs hold it. */
bool ready_openai(struct str m);

#endif
