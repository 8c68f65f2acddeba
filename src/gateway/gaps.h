/*
 * gaps.h - requests that were passed on and could not be recorded, counted for each owner until a
 * conversation of the same owner says so.
 *
 * The recorder's thread owns the list; nothing here locks.
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
/* What is counted for an owner. NULL: nothing. */
const struct gap *gaps_find(const struct gap *all, const char *owner);
/* A conversation says it now. */
void gaps_forget(struct gap **all, const char *owner);
void gaps_release(struct gap **all);

#endif
