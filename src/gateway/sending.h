/*
 * sending.h - a client's request as it goes out to the endpoint: method, URL and headers.
 *
 * The client's headers are sent as they came, except those of its connection and Steno's own. The
 * configured key replaces the token that the client sent.
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

/* The caller zeroes `s` before, and releases it afterwards, also after a failure. */
int sending_make(struct sending *s, const struct upstream *up, const struct gateway_request *r,
    struct steno_error *err);
void sending_release(struct sending *s);

#endif
