/*
 * provider_http.h - clients for endpoints that take a POST and answer with a stream of events or
 * with one JSON body.
 *
 * This file has what all such providers share: connections, time limits, the choice between a
 * stream and a whole body, and retries. A call is retried after 408, 429, 5xx and after a refused
 * or dropped connection, but only if no token has arrived, because watchers have seen the text. A
 * provider's `struct provider_wire` defines the form of requests and answers.
 */
#ifndef PROVIDER_PROVIDER_HTTP_H
#define PROVIDER_PROVIDER_HTTP_H

#include "provider/provider.h"
#include "provider/provider_reader.h"
#include "provider/provider_request.h"

struct provider_wire {
        const char *path;           /* the path behind the base URL, such as
                                       "/chat/completions" */
        const char *key_header;     /* the header before the key, such as "Authorization: Bearer
                                       " */
        const char *const *headers; /* more headers, NULL-terminated; NULL: none */
        /* Writes the members of a request behind "model" (provider_request.h). */
        provider_put_body_fn put_body;
        /* Makes a reader for one attempt; NULL: out of memory. The hooks live longer than the
         * reader. */
        struct provider_reader *(*reader_new)(const struct reply_hooks *hooks);
};

/* The `open` of a provider that has a wire. STENO_EINVAL: the base URL is not http(s), or the key
 * contains a line end. */
int provider_http_open(const struct provider *provider, const struct provider_options *opt,
    struct provider_client **out, struct steno_error *err);

#endif
