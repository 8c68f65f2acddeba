/*
 * chatwire.h - the Responses API for an endpoint that has only chat completions.
 *
 * A request of /v1/responses becomes a chat completion, and the chunks of the answer become the
 * events of Responses. Members that a chat completion does not have are refused (hosted tools) or
 * left out (include, truncation). Reasoning that the endpoint shows becomes an item, which is not
 * sent back.
 *
 *   chatwire_put_request(&body, items, &out, &err);
 *   struct chatwire *w = chatwire_new(&body, event, ctx, &err);
 *   ... chatwire_chunk() for each event, or chatwire_whole() ...
 *   chatwire_end(w, &err);
 *   chatwire_free(w);
 */
#ifndef GATEWAY_CHATWIRE_H
#define GATEWAY_CHATWIRE_H

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "net/sse.h"
#include "steno.h"

/* Can a chat completion offer all tools of the request? */
bool chatwire_has_tools(const struct json *body);

/* `items` is the whole history, an array of items. STENO_EINVAL: messages cannot express it. */
int chatwire_put_request(
    const struct json *body, struct str items, struct buf *out, struct steno_error *err);

struct chatwire;

/* `body` is the request, and must outlive the handle. `event` gets the events of Responses: JSON
 * objects without sequence numbers. A non-zero return of `event` ends the reading and is returned.
 * NULL: no memory. */
struct chatwire *chatwire_new(
    const struct json *body, sse_event_fn event, void *ctx, struct steno_error *err);
void chatwire_free(struct chatwire *w);

/* The data of one event of a streamed chat completion. */
int chatwire_chunk(struct chatwire *w, struct str data);
/* An answer that was not streamed. */
int chatwire_whole(struct chatwire *w, struct str json);
/* To be called at the end of the answer: gives the last events. STENO_EIO: the answer broke off, or
 * was an error. */
int chatwire_end(struct chatwire *w, struct steno_error *err);

#endif
