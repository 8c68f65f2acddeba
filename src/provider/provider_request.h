/*
 * provider_request.h - what the requests of all HTTP APIs share: a model, a history, and the
 * configured parameters.
 */
#ifndef PROVIDER_PROVIDER_REQUEST_H
#define PROVIDER_PROVIDER_REQUEST_H

#include "provider/provider.h"

/* Writes the members of a request behind "model". `params` is an object; it is empty if there are
 * no parameters. */
typedef void (*provider_put_body_fn)(struct jsonw *w, const struct provider_request *r,
    const struct json *history, const struct json *params);

/* Writes one request as a JSON object. */
int provider_put_request(const struct provider_request *r, provider_put_body_fn put_body,
    struct buf *out, struct steno_error *err);

/* Writes the parameters that the loop does not set itself, except `but` (may be NULL). */
void provider_put_params(struct jsonw *w, const struct json *params, const char *but);

/* Writes the schema of a tool's arguments under `key`. */
void provider_put_schema(struct jsonw *w, const char *key, const struct provider_tool *t);

/* Returns the user's text to append to a history that ends with an assistant's message. NULL: the
 * history does not end so, or no text was requested. The text is not stored. */
const char *provider_go_on_words(const struct provider_request *r, const struct json *history);

#endif
