/*
 * sending.h - a client's request as it goes out to the endpoint: method, URL and headers.
 *
 * The client's headers go out as they came, without those of its connection and our own. The key
 * that is configured takes the place of the token with which the client came to us.
 */
#ifndef GATEWAY_SENDING_H
#define GATEWAY_SENDING_H

#include "gateway/gateway.h"
#include "gateway/upstreams.h"

#define SENDING_HEADERS 128

struct sending {
        char method[24];
        char *url;
        char *headers[SENDING_HEADERS + 8]; /* NULL-terminated */
        size_t count;
        bool failed;
};

/* `s` is zeroed before, and released after a failure too. */
int sending_make(struct sending *s, const struct upstream *up, const struct gateway_request *r,
    struct steno_error *err);
void sending_release(struct sending *s);

#endif
