/*
 * route.h - the table of routes: the one place that defines which requests exist, who may send
 * them, and how large they may be. The docs page and the test of every identity on every route are
 * made from it.
 */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "http/request.h"

enum route_scope {
        SCOPE_OPEN,    /* no token: static files, /healthz */
        SCOPE_SIGNED,  /* a signature in the URL, or a token */
        SCOPE_VISITOR, /* open while --public is on */
        SCOPE_SESSION, /* a token; a visitor's token too, for its own conversation */
        SCOPE_PROJECT, /* a token of a project */
        SCOPE_GATEWAY, /* the same; the token may also be in the place of a provider's key, or in
                          the path */
        SCOPE_PATH,    /* a token of a project; it may stand in the path */
};

enum route_flags {
        ROUTE_MULTIPART = 1, /* takes multipart/form-data as well as JSON */
        ROUTE_BYTES = 4,     /* takes a file, whatever it calls itself */
        ROUTE_STREAMS = 2,   /* may answer with a stream */
        ROUTE_TURN = 8,      /* may last as long as a turn: has a thread of its own */
        ROUTE_URGENT = 16,   /* is answered under any load: it never waits for another request */
        ROUTE_LATER = 32,    /* the handler calls http_finish() itself, perhaps later */
        ROUTE_SPOOL = 64,    /* its body goes to the disk as it comes (spool.h) */
};

typedef void (*route_fn)(struct request *r);

struct route {
        const char *method;  /* "*": any */
        const char *pattern; /* "/api/runs/:id/events"; a parameter is one raw segment, decoded.
                              * "/openai/v1/" and a star: everything below it, unchanged */
        enum route_scope scope;
        unsigned flags;
        uint64_t body_max;
        enum error_style errors;
        route_fn handle;
        const char *words; /* for the docs */
};

/* All of them; the last has no method. */
const struct route *routes_table(void);

#define ROUTE_ALLOW 64 /* a list of methods */

/*
 * Finds the route for a method and a raw path and fills the parameters (decoded into `arena`).
 * NULL: no such path (`allowed` is then empty), or none for this method (it lists those there are).
 */
const struct route *route_find(const char *method, struct str path, struct arena *arena,
    struct str params[REQUEST_PARAMS], char allowed[ROUTE_ALLOW]);

/* The table as JSON: [{"method","path","scope","words"}]. */
void route_put_table(struct buf *out);

#endif
