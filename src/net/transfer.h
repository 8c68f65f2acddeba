/*
 * transfer.h - one HTTP POST whose answer is read as it comes, over libcurl's multi interface, so
 * that a stop, a deadline or a silent peer ends it at once. Knows nothing of what is sent.
 */
#ifndef NET_TRANSFER_H
#define NET_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "steno_loop.h"

/* Connections that are kept open from one transfer to the next. For one thread at a time. */
struct transfer_pool;
struct transfer_pool *transfer_pool_new(struct steno_error *err); /* NULL: it says why */
void transfer_pool_free(struct transfer_pool *pool);

struct transfer {
        /* in */
        struct transfer_pool *pool;
        const char *url;
        const char *const *headers; /* "Name: value", NULL-terminated */
        struct str body;
        uint32_t connect_ms;
        uint32_t idle_ms; /* the transfer ends when no byte comes for so long */
        int64_t deadline; /* time_monotonic_ms(); 0: none */
        const struct steno_stop *stop;
        /* Bytes of the answer; status and type are known by then. Non-zero ends the transfer and
         * is returned. */
        int (*data)(void *ctx, struct transfer *t, const char *p, size_t n);
        /* As tick of struct provider_hooks; may be NULL. */
        int (*tick)(void *ctx);
        /* Asked after each piece: is the answer complete? May be NULL. */
        bool (*done)(void *ctx);
        void *ctx;

        /* out */
        long status;         /* 0: no answer */
        char type[80];       /* Content-Type */
        long retry_after_ms; /* -1: not told */
        bool timed_out;      /* the connect or idle limit passed */
        char why[160];       /* how the network failed */
};

/*
 * 0: the answer is there, to its end. STENO_EIO: refused, reset, cut off, timed out: `why` and
 * `timed_out` say how. STENO_EINTERRUPTED, STENO_ETIMEOUT (deadline), STENO_ENOMEM, or what a
 * callback returned.
 */
int transfer_run(struct transfer *t, struct steno_error *err);

/* Waits, with ticks, until `ms` are over, or a stop or the deadline comes: 0,
 * STENO_EINTERRUPTED or STENO_ETIMEOUT. */
int transfer_wait(
    const struct steno_stop *stop, int64_t deadline, int64_t ms, int (*tick)(void *ctx), void *ctx);

#endif
