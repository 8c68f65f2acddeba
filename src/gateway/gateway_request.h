/*
 * gateway_request.h - what the gateway learns from a client's request: its session, its owner, and
 * the head of its record.
 */
#ifndef GATEWAY_GATEWAY_REQUEST_H
#define GATEWAY_GATEWAY_REQUEST_H

#include "base/buf.h"
#include "base/json.h"
#include "gateway/gateway.h"
#include "gateway/upstreams.h"
#include "gateway/wire.h"

/* Is the client's own key sent to the endpoint? It is not if it is one of Steno's tokens. */
bool gateway_request_has_key(const struct gateway_request *r);
/* STENO_EINVAL: the upstream has no key, or the request names a conversation id that is not valid.
 * STENO_EPROTO: the path has a token after the prefix. */
int gateway_request_check(
    const struct gateway_request *r, const struct upstream *up, struct steno_error *err);

/* The value of a header; empty: there is none. */
struct str gateway_request_header(const struct gateway_request *r, const char *wanted);
/* The client's own name for its session; empty: the client names none. */
struct str gateway_request_group(const struct gateway_request *r);
/* The owner: only requests of the same owner are compared with each other. */
void gateway_request_put_owner(
    struct buf *out, const struct gateway_request *r, const struct wire *wire);
/* The head of the exchange's file (exchange.h), JSON. `wire` is NULL for a request that is passed
 * on and not understood. */
void gateway_request_put_head(
    struct buf *out, const struct gateway_request *r, const struct wire *wire);

/* The time of day, as a member. */
void gateway_put_now(struct jsonw *w, const char *key);

#endif
