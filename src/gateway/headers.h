/*
 * headers.h - HTTP header lines "Name: value": reading them, and choosing which are passed on.
 */
#ifndef GATEWAY_HEADERS_H
#define GATEWAY_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* "Name: value" without white space around both. false: the line is not a header. */
bool headers_split(struct str line, struct str *name, struct str *value);
/* Names are compared without regard to case. */
bool headers_name_is(struct str name, const char *z);
/* `list` ends with NULL. */
bool headers_name_in(struct str name, const char *const *list);

/* Does the header belong to one connection and not to the message (RFC 9110, 7.6.1)? `connection`
 * is the value of the Connection header, which may list more of them. */
bool headers_is_hop(struct str name, struct str connection);

/* Every line of a block. */
void headers_each(struct str block, void (*each)(void *ctx, struct str line), void *ctx);

/* What the headers of an answer say about its body. */
struct headers_body {
        bool stream; /* server-sent events */
        bool encoded;
        bool wrong;     /* ambiguous lengths */
        int64_t length; /* negative: none is told */
};
struct headers_body headers_body_of(struct str block);

#endif
