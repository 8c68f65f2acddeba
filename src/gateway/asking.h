/*
 * asking.h - one request that the server itself sends to an upstream, on the caller's thread.
 *
 * It is for requests that are not passed on as they came: the caller makes the body and reads the
 * events of the answer. Nothing is recorded here.
 */
#ifndef GATEWAY_ASKING_H
#define GATEWAY_ASKING_H

#include "base/buf.h"
#include "gateway/gateway.h"
#include "net/sse.h"
#include "steno_loop.h"

struct asking {
        const char *upstream;
        const char *path;   /* behind the upstream's URL, "/responses" */
        const char *header; /* one more, "Name: value"; may be NULL */
        struct str body;
        const struct steno_stop *stop; /* may be NULL */
        sse_event_fn event;            /* non-zero ends it, and is returned */
        void *ctx;

        /* out */
        long status;       /* 0: no answer */
        bool stream;       /* the answer was a stream, and each event was given to the callback */
        struct buf answer; /* otherwise the whole answer; the caller initialises and releases it */
};

/* 0: the answer is complete, whatever its status. STENO_EINVAL: the upstream needs a key and has
 * none; STENO_EIO: it did not answer, or the answer broke off; STENO_EINTERRUPTED after a stop. */
int asking_run(struct gateway *g, struct asking *a, struct steno_error *err);

#endif
