/*
 * facts.h - two JSON texts compared in the three ways that the promises of format.h need: token
 * by token, member by member in any order, and by what was lost between them.
 */
#ifndef TESTS_FORMAT_FACTS_H
#define TESTS_FORMAT_FACTS_H

#include <stdbool.h>

#include "base/str.h"

/* The same tokens in the same order, white space aside. */
bool facts_same_tokens(struct str a, struct str b);
/* The same members in any order, tokens as they stand. */
bool facts_same_members(struct str a, struct str b);

/*
 * History `a` went to `mid` and back, which gave `b`. Every leaf of `a` is in `b`, or a loss
 * answers for it: of the first report, at its message; of the second, at a message of `mid` that
 * still says it. A loss that is a change (written as text, joined, moved) answers only for what
 * is said somewhere behind it. On failure `why` says which leaf.
 */
bool facts_accounted(struct str a, struct str mid, struct str b, struct str report1,
    struct str report2, char *why, size_t size);

#endif
