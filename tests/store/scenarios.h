/*
 * scenarios.h - work on a store while the power may fail; shared by the crash states, the mutants
 * and the fault sweep.
 */
#ifndef STORE_SCENARIOS_H
#define STORE_SCENARIOS_H

#include "play.h"

struct scenario {
        const char *name; /* a sentence */
        /* The state of the disk before the work: made on a separate fs, counts as synced. May be
         * NULL. */
        int (*before)(struct play *p);
        /* The work. Returns 0, or the code of the first failure. Continues after failures where it
         * can. */
        int (*act)(struct play *p);
};

extern const struct scenario SCENARIOS[];
extern const int SCENARIO_COUNT;

#endif
