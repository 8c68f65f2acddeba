/*
 * gateway_core.h - struct gateway, for gateway.c and gateway_turn.c.
 */
#ifndef GATEWAY_GATEWAY_CORE_H
#define GATEWAY_GATEWAY_CORE_H

#include <pthread.h>

#include "gateway/errands.h"
#include "gateway/exchange.h"
#include "gateway/gateway.h"
#include "gateway/recorder.h"
#include "gateway/rounds.h"
#include "gateway/upstreams.h"
#include "net/relay.h"

/* A request that a client may repeat. */
struct asked {
        char key[GATEWAY_ASKED + 1];
        char id[GATEWAY_ASKED];
        int64_t at;
};

#define GATEWAY_ASKED_COUNT 256

struct gateway {
        struct steno_store *store;
        struct exchanges *exchanges;
        struct recorder *recorder;
        struct relay *relay;
        struct upstreams upstreams;
        const struct upstream *responses; /* which of them serves /v1/responses */
        bool responses_chat;              /* which has chat completions only */
        struct seams *seams;              /* NULL: no upstream has stubs */
        struct errands *errands;
        pthread_mutex_t mutex;
        pthread_cond_t quiet;
        bool stopped;
        struct asked asked[GATEWAY_ASKED_COUNT]; /* a ring, under the mutex */
        size_t asked_next;
        struct gateway_turn *first;
        unsigned turns; /* that are not given to the recorder yet */
};

#endif
