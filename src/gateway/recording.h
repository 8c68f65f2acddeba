/*
 * recording.h - one exchange becomes records of a conversation.
 *
 * The conversation is found by the history that the request brings (lineage.h). What the request
 * adds to it is appended, then the answer: a reply as messages, anything else as a message that no
 * model is shown. Each append has a key that follows from the exchange, and how the exchange ended
 * is written down first, so that a second try after a kill finds what the first one stored.
 */
#ifndef GATEWAY_RECORDING_H
#define GATEWAY_RECORDING_H

#include "gateway/exchange.h"
#include "gateway/gaps.h"
#include "gateway/lineage.h"
#include "gateway/recorder.h"
#include "steno.h"

/* Where exchanges are recorded. */
struct recording_target {
        struct steno_store *store;
        struct lineage *lineage;
        struct gap *gaps;
};

struct recording_outcome {
        bool understood; /* false: it was passed on, and belongs to no conversation */
        bool torn;       /* its file ends before the request does, so it had not been sent */
};

/* Stores the exchange, which stays open. On failure nothing of it is in the lineage; what was
 * appended is found again by the next try. */
int recording_store(struct recording_target *to, struct exchange *x,
    const struct recorder_fate *fate, struct recording_outcome *out, struct steno_error *err);

#endif
