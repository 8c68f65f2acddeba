/*
 * run_lease.h - who claimed the conversation last, and whether that run is alive, dead or done.
 *
 * On one machine a lock says who is alive, in whatever container or namespace: the kernel lets go
 * of it when the process ends. A lock says nothing about another machine, or about this one before
 * its last boot. There, a run is dead when its lease has not changed for RUN_LEASE_MS of the
 * observer's monotonic clock. Observers of one boot share what they saw in runs/.seen, so that a
 * program that runs for a second can go on with what another one began to watch.
 */
#ifndef STORE_FILES_RUN_LEASE_H
#define STORE_FILES_RUN_LEASE_H

#include "base/limits.h"
#include "store/files/run.h"

#define RUN_BEAT_MS 5000
#define RUN_LEASE_MS 60000

struct run_lease {
        char id[ID_MAX + 1]; /* "": the last run came to its end */
        uint64_t generation; /* grows with every claim, and when a dead run is taken over */
        uint64_t beat;       /* grows while the holder lives */
        bool held;           /* somebody has the claim's lock */
};

/* -ENOENT: nobody ever claimed the conversation. Other failures are negative as well. */
int run_lease_read(struct files_conv *conv, struct run_lease *out);
/* Makes an empty claim where there is none: every run is known to have ended. Errors are ignored on
 * purpose: then all runs are looked at once more. */
void run_lease_settle(struct files_conv *conv);
/* Writes a new generation, so that a holder which only seemed to be dead writes nothing more. */
int run_lease_take_over(struct files_conv *conv, const char *name, struct steno_error *err);

/* May the run be taken for dead, whose journal `s` describes? It is neither finished nor held. */
bool run_lease_is_over(
    struct files_conv *conv, const struct run_lease *lease, const struct run_state *s);

#endif
