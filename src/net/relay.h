/*
 * relay.h - many HTTP transfers on one thread, for answers that are passed on as they come.
 *
 * One thread drives all of them, with a pool of open connections, and never waits for one of them.
 * It calls callbacks for what has arrived, so these must be quick: write to a file, or wake another
 * thread. Redirects, encodings and bodies are passed on unchanged.
 */
#ifndef NET_RELAY_H
#define NET_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "steno.h"

struct relay;
struct relay_job;

struct relay_calls {
        /* Status line and headers as they came, without the empty line; interim answers (1xx) are
         * not told. Non-zero ends the job. */
        int (*head)(void *ctx, int status, struct str headers);
        /* A piece of the body. Non-zero ends the job. */
        int (*data)(void *ctx, const char *p, size_t n);
        /* Told exactly once, last. 0: the answer ended as it should. Else `why` says what
         * happened: STENO_EIO of the network, STENO_EINTERRUPTED after a cancel, STENO_ETIMEOUT
         * past a limit, or what a callback returned. */
        void (*end)(void *ctx, int rc, const char *why);
};

/* What to send. The strings are copied; `body` is borrowed until end(). */
struct relay_request {
        const char *method;
        const char *url;
        const char *const *headers; /* "Name: value", NULL-terminated */
        struct str body;
        uint32_t connect_ms;
};

int relay_new(struct relay **out, struct steno_error *err);
/* Ends all jobs, with STENO_EINTERRUPTED, and the thread. */
void relay_free(struct relay *r);

/* From any thread. The job belongs to the relay and is gone after end(). */
int relay_start(struct relay *r, const struct relay_request *what, const struct relay_calls *calls,
    void *ctx, struct relay_job **out, struct steno_error *err);
/* Ends the job `ms` from now, 0: at once. From any thread, before end() has returned. */
void relay_limit(struct relay *r, struct relay_job *job, uint32_t ms);

#endif
