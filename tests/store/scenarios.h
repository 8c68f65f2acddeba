/*
 * scenarios.h - things that are done to a store while the power may fail; shared by the crash
 * states, the mutants and the fault sweep.
 */
#ifndef STORE_SCENARIOS_H
#define STORE_SCENARIOS_H

#include "play.h"

struct scenario {
        const char *name; /* a sentence */
        /* What is on the disk before: done on a fs of its own, counts as synced. May be NULL. */
        int (*before)(struct play *p);
        /* The work. 0, or the first failure's code. Goes on after failures where it can. */
        int (*act)(struct play *p);
};

extern const struct scenario SCENARIOS[];
extern const int SCENARIO_COUNT;

#endif
