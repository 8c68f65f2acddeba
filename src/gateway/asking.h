/*
 * asking.h - one call to an upstream that is the server's own, on the caller's thread.
 *
 * For requests that are not passed on as they came: somebody makes the body, and reads the events
 * of the answer. Nothing is recorded here.
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
        bool stream;       /* it was one, and its events were told */
        struct buf answer; /* else all of it; the caller's to initialise and to release */
};

/* 0: the answer came to its end, whatever its status. STENO_EINVAL: the upstream has no key,
 * though it needs one;
 * STENO_EIO: it did not answer, or broke off; STENO_EINTERRUPTED after a stop. */
int asking_run(struct gateway *g, struct asking *a, struct steno_error *err);

#endif
