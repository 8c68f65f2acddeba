/*
 * provider_http.h - clients for endpoints that take a POST and answer with a stream of events or
 * with one JSON body.
 *
 * Owns what all such providers share: connections, time limits, the choice between a stream and a
 * whole body, and retries. They are made on 408, 429, 5xx and on a refused or dropped connection,
 * and only while no token has arrived, because text that a watcher has seen cannot be taken back.
 * What a request and its answer look like is the provider's: a `struct provider_wire`.
 */
#ifndef PROVIDER_PROVIDER_HTTP_H
#define PROVIDER_PROVIDER_HTTP_H

#include "provider/provider.h"
#include "provider/provider_reader.h"
#include "provider/provider_request.h"

struct provider_wire {
        const char *path;           /* behind the base URL, "/chat/completions" */
        const char *key_header;     /* what stands before the key, "Authorization: Bearer " */
        const char *const *headers; /* further ones, NULL-terminated; NULL: none */
        /* The members of a request behind "model" (provider_request.h). */
        provider_put_body_fn put_body;
        /* A reader for one attempt; NULL: no memory. The hooks outlive it. */
        struct provider_reader *(*reader_new)(const struct reply_hooks *hooks);
};

/* For provider->open of one that has a wire. STENO_EINVAL: a base URL that is not http(s), a key
 * with a line end. */
int provider_http_open(const struct provider *provider, const struct provider_options *opt,
    struct provider_client **out, struct steno_error *err);

#endif
