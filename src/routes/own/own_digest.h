/*
 * own_digest.h - digests (http/digests.h) as JSON, for the routes that answer with them.
 */
#ifndef ROUTES_OWN_OWN_DIGEST_H
#define ROUTES_OWN_OWN_DIGEST_H

#include "base/json.h"
#include "http/digests.h"
#include "http/request.h"

/* "name":[in,out,cached] */
void own_digest_put_tokens(struct jsonw *w, const char *name, const struct digest_tokens *t);
/* "totals":{...} */
void own_digest_put_totals(struct jsonw *w, const struct digest *d);
/* {"n","seq","call","name","text","at","exit"?,"ref"?,"lines"}; `n` counts from 1. */
void own_digest_put_failure(struct jsonw *w, const struct digest_failure *f, size_t n);
/* "prices":{...}, the configuration's, where it has some. */
void own_digest_put_prices(struct jsonw *w, struct request *r);

/* The filter of a list. Members are NULL, 0 or empty where they do not filter. */
struct own_filter {
        const char *is; /* error, running, waiting */
        const char *tool;
        const char *model;
        int64_t after, before; /* ms */
};

/* Reads it from the query; false: a 400 was answered. */
bool own_filter_read(struct request *r, struct own_filter *f);
bool own_filter_is_set(const struct own_filter *f);

/*
 * The digest of a conversation in a list, `item` of `j`: the cached one while the conversation has
 * no new record, otherwise a new one from its files. *d is NULL when the conversation has just been
 * removed; it is closed with digests_close.
 */
int own_row_digest(struct request *r, const struct json *j, json_ref item, const char *id, int ms,
    const struct digest **d, struct steno_error *err);

enum own_row {
        OWN_ROW_LEFT_OUT, /* the filter does not let it pass, or it has just been removed */
        OWN_ROW_SHOWN,
        OWN_ROW_UNREAD, /* not read far enough to decide; the next attempt continues there */
};

/*
 * Writes a conversation of a list, `item` of `j`, with its figures, if the filter lets it pass.
 * Digests are made for about `ms`.
 */
int own_row_put(struct request *r, const struct json *j, json_ref item, const struct own_filter *f,
    int ms, struct jsonw *w, enum own_row *row, struct steno_error *err);

#endif
