/*
 * passkeys.h - finds Steno's own tokens in what is about to be sent to an endpoint.
 *
 * A token gives access to a whole project, so no endpoint may get one, wherever a client has put
 * it: both its base URL and its key may contain a token. Tokens are found in plain text, behind
 * percent escapes, and in base64 (Authorization: Basic). Bodies are not searched: they are passed
 * on as they are.
 */
#ifndef GATEWAY_PASSKEYS_H
#define GATEWAY_PASSKEYS_H

#include "gateway/gateway.h"

/* Is a token somewhere in this text? */
bool passkeys_in(const struct gateway_request *r, struct str text);
/* Is one where a client has the key of its endpoint: in a header for it, or in the query? */
bool passkeys_as_key(const struct gateway_request *r);

/* Does a header of this name hold the key of an endpoint? */
bool passkeys_is_header(struct str name);
/* Is this member of a query the key, however it is spelled? */
bool passkeys_is_key(struct str member);

#endif
