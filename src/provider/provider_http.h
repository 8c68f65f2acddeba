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

/*
 * Reads one answer. A provider embeds it as the first member of a struct of its own and keeps the
 * four members below up to date, which is all that the transport looks at.
 */
struct provider_reader {
        const struct provider_reader_ops *ops;
        bool any;      /* something of a reply was seen: the call is not made again */
        bool finished; /* the reply is complete, but usage or an end mark may follow */
        bool done;     /* nothing more will come */
        struct reply_fault fault;
};

struct provider_reader_ops {
        /* The next event of a stream. Negative: memory, a limit, or what a hook returned. Faults
         * that the endpoint reports go into reader->fault. */
        int (*event)(struct provider_reader *reader, struct str name, struct str data);
        /* A whole answer, a JSON object. The same. */
        int (*body)(struct provider_reader *reader, struct str json);
        /* Nothing more comes: fills `out`, which is empty before, also after a fault. */
        int (*finish)(struct provider_reader *reader, struct reply *out, struct steno_error *err);
        void (*free)(struct provider_reader *reader);
};

struct provider_wire {
        const char *path;           /* behind the base URL, "/chat/completions" */
        const char *key_header;     /* what stands before the key, "Authorization: Bearer " */
        const char *const *headers; /* further ones, NULL-terminated; NULL: none */
        /* The body of the POST. */
        int (*put_request)(
            const struct provider_request *request, struct buf *out, struct steno_error *err);
        /* A reader for one attempt; NULL: no memory. The hooks outlive it. */
        struct provider_reader *(*reader_new)(const struct reply_hooks *hooks);
};

/* For provider->open of one that has a wire. STENO_EINVAL: a base URL that is not http(s), a key
 * with a line end. */
int provider_http_open(const struct provider *provider, const struct provider_options *opt,
    struct provider_client **out, struct steno_error *err);

#endif
