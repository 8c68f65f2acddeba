/*
 * gaps.h - counts, for each owner, the requests that were passed on but could not be recorded,
 * until a conversation of the same owner reports them.
 *
 * Only the recorder's thread uses the list, so there are no locks.
 */
#ifndef GATEWAY_GAPS_H
#define GATEWAY_GAPS_H

#include "base/env.h"
#include "base/str.h"

struct gap {
        struct gap *next;
        char *owner;
        unsigned count;
        char since[TIME_TEXT]; /* when the first of them began */
};

/* One more exchange of this owner is lost; it began at `at`. Without memory it is not counted. */
void gaps_note(struct gap **all, const char *owner, struct str at);
/* The count of an owner. NULL: nothing is missing. */
const struct gap *gaps_find(const struct gap *all, const char *owner);
/* A conversation has reported the count: resets it. */
void gaps_forget(struct gap **all, const char *owner);
void gaps_release(struct gap **all);

#endif
