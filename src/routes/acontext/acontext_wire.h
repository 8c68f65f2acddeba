/*
 * acontext_wire.h - what the handlers of Acontext's routes share: its envelope, its ids, its
 * cursors.
 */
#ifndef ROUTES_ACONTEXT_ACONTEXT_WIRE_H
#define ROUTES_ACONTEXT_ACONTEXT_WIRE_H

#include "http/server_core.h"
#include "routes/history.h"

/* The answer {"code":0,"data":...,"msg":""}: begin, write the data, end. */
void acontext_begin(struct request *r, struct jsonw *w);
void acontext_end(struct request *r, struct jsonw *w, int status);

/* A random UUID. */
void acontext_uuid(char out[37]);
/* An id for something new; true: it follows from the Idempotency-Key. */
bool acontext_new_id(struct request *r, const char *purpose, char out[37]);

/* Is it one of Acontext's four formats? False: a 400 was answered. */
bool acontext_knows_format(struct request *r, const char *format);

/* Cursors are a number, made opaque. */
void acontext_put_cursor(struct jsonw *w, uint64_t n);
bool acontext_cursor(struct request *r, uint64_t *n);

/* The answer {"items":[...],"next_cursor"?,"has_more"}: begin, write the items, end. `next` is the
 * number of the first item of the next page, `count` how many there are in all. */
void acontext_page_begin(struct request *r, struct jsonw *w);
void acontext_page_end(struct request *r, struct jsonw *w, uint64_t next, uint64_t count);

/* What Acontext tells of a message beside its role and its parts. */
struct acontext_facts {
        const char *session;
        const char *id;
        const char *parent; /* id of the message before it; may be NULL */
        const char *at;
        const char *meta; /* JSON; NULL: {} */
};

/* The message at `m` of `j` as Acontext shows it, with its parts. */
void acontext_put_message(
    struct jsonw *w, const struct acontext_facts *facts, const struct json *j, json_ref m);

/* A list of the session's events, oldest first. */
int acontext_put_events(
    struct request *r, struct steno_conv *conv, struct jsonw *w, struct steno_error *err);

/* Shows media of a stored message as assets: {sha256: {...}} for public_urls. */
struct asset {
        char sha256[65];
        char mime[128];
        uint64_t size;
        char key[400]; /* "<message>/<part>" */
};
/* Is the part at `p` (of message `id`, the k-th) media with bytes of its own? */
bool acontext_asset(const struct json *j, json_ref p, const char *id, size_t k, struct asset *out);

#endif
