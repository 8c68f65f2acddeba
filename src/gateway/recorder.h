/*
 * recorder.h - makes conversations of exchanges, one after the other, on a thread of its own.
 *
 * Beside the relay: nobody waits for it. An exchange is taken when it is over; what it says is
 * appended to the conversation that it belongs to (lineage.h), and its file is removed when that is
 * on the disk. Each step can be done twice with the same outcome, so that a kill anywhere between
 * loses nothing and doubles nothing. What cannot be stored stays in its file until the next start.
 */
#ifndef GATEWAY_RECORDER_H
#define GATEWAY_RECORDER_H

#include <stdint.h>

#include "gateway/exchange.h"
#include "steno.h"

struct recorder;

int recorder_new(struct steno_store *store, struct exchanges *all, const char *path,
    struct recorder **out, struct steno_error *err);
/* Finishes what it was given first. *recorded, *failed (may be NULL): how many were, and were not.
 */
void recorder_free(struct recorder *r, uint64_t *recorded, uint64_t *failed);

/* What the file does not say of an exchange. */
struct recorder_fate {
        bool cut;           /* the answer did not come to its end */
        bool killed;        /* nor is it known whether it did */
        bool gone;          /* the client left before it had all of it */
        uint64_t delivered; /* bytes of the answer's body that went to the client */
        char why[240];      /* what ended it, where that was not its end */
        bool known;         /* by the gateway: what came of the answer does not say it */
};

/* Takes the exchange over and closes it. */
void recorder_take(struct recorder *r, struct exchange *x, const struct recorder_fate *fate);
/* Takes up what an earlier process left. */
int recorder_recover(struct recorder *r, struct steno_error *err);

#endif
