/*
 * splice.h - makes the request that the model gets: large results are replaced by stubs, and the
 * context tools are offered.
 *
 * The client's bytes stay as they are; strings are spliced into them. The insertions depend only on
 * the history, so the prompt of each request begins with the previous prompt.
 *
 * - A result over the limits becomes a stub (steno_stubs).
 * - The context tools stand behind the client's own. They are left out if the request has no tools,
 *   chooses one tool or none, asks for several answers, or has a tool of the same name.
 * - Hidden calls and results of earlier turns are put back at their places (seams.h).
 */
#ifndef GATEWAY_SPLICE_H
#define GATEWAY_SPLICE_H

#include "base/buf.h"
#include "gateway/elements.h"
#include "gateway/seams.h"
#include "gateway/wire.h"
#include "steno.h"

struct splice_options {
        const struct wire *wire;
        const char *owner;
        struct seams *seams;
        uint64_t max_chars, max_bytes;
        bool tools; /* offer the context tools */
};

struct splice {
        struct buf body; /* what is sent */
        struct steno_stubs *stubs;
        bool offered;               /* the context tools are in it */
        char chain[ELEMENTS_CHAIN]; /* the history as the client sees it; only where offered */
        size_t end;                 /* where the list of messages ends in `body`: its bracket */
        bool empty;                 /* it has none */
};

void splice_init(struct splice *p);
void splice_release(struct splice *p);

/* A request that the gateway does not understand is sent unchanged. */
int splice_make(struct splice *p, const struct splice_options *opt, struct str request,
    struct steno_error *err);
/* The next round's: with further messages (JSON with commas between) behind the others. */
int splice_go_on(struct splice *p, struct str messages, struct steno_error *err);
/* Removes the context tools again, so that the next round is the last one and the model has to
 * answer. */
int splice_withdraw(struct splice *p, const struct wire *wire, struct steno_error *err);

#endif
