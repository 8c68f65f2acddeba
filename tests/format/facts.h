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
 * Every leaf of history `a` is in `b`, or is covered by a loss of one of the two reports: the
 * first is of a's own messages, the second of those between. On failure `why` says which leaf.
 */
bool facts_accounted(
    struct str a, struct str b, struct str report1, struct str report2, char *why, size_t size);

#endif
