/*
 * vercel_fold.h - one UI message from the chunks of its stream, as a page of the AI SDK folds them.
 */
#ifndef ROUTES_VERCEL_VERCEL_FOLD_H
#define ROUTES_VERCEL_VERCEL_FOLD_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

struct vercel_fold;

/* `id` is the message's unless the stream names another. NULL: no memory. */
struct vercel_fold *vercel_fold_new(const char *id);
void vercel_fold_free(struct vercel_fold *f);

/* A part that the message has before the stream begins. */
void vercel_fold_keep(struct vercel_fold *f, struct str part);
/* The next chunk, a JSON object. */
void vercel_fold_take(struct vercel_fold *f, const struct json *chunk);

const char *vercel_fold_id(const struct vercel_fold *f);
bool vercel_fold_is_empty(const struct vercel_fold *f);
/* The message, JSON. Non-zero: there was no memory for it. */
int vercel_fold_put(const struct vercel_fold *f, struct buf *out);

#endif
