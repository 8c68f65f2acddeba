/*
 * provider_request.h - what the requests of all APIs over HTTP have in common: a model, a history,
 * and the parameters that a person configured.
 */
#ifndef PROVIDER_PROVIDER_REQUEST_H
#define PROVIDER_PROVIDER_REQUEST_H

#include "provider/provider.h"

/* Writes the members of a request behind "model". `params` is an object, empty where none are
 * given. */
typedef void (*provider_put_body_fn)(struct jsonw *w, const struct provider_request *r,
    const struct json *history, const struct json *params);

/* One request, as a JSON object. */
int provider_put_request(const struct provider_request *r, provider_put_body_fn put_body,
    struct buf *out, struct steno_error *err);

/* The parameters that the loop does not set itself. `but` (may be NULL) is left out as well. */
void provider_put_params(struct jsonw *w, const struct json *params, const char *but);

/* The schema of a tool's arguments under `key`. */
void provider_put_schema(struct jsonw *w, const char *key, const struct provider_tool *t);

/* What the user is made to say behind a history that ends with the assistant's own words; NULL: it
 * does not, or nothing is to be said. It is not stored. */
const char *provider_go_on_words(const struct provider_request *r, const struct json *history);

#endif
