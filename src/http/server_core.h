/*
 * server_core.h - struct server, for the files of this folder.
 */
#ifndef HTTP_SERVER_CORE_H
#define HTTP_SERVER_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "http/http_limits.h"
#include "http/identities.h"
#include "http/metrics.h"
#include "http/route.h"
#include "http/server.h"
#include "http/streams.h"
#include "http/workers.h"

struct MHD_Daemon;
struct runner;
struct follow;
struct tails;
struct watches;
struct digests;
struct waiting;
struct replies;
struct buckets;
struct pledges;
struct unread;
struct gateway;
struct otel;

struct server {
        struct steno_store *store;
        struct identities *identities;
        struct MHD_Daemon *daemon;
        struct workers *workers;
        struct workers *turns;  /* of routes with ROUTE_TURN */
        struct workers *urgent; /* of routes with ROUTE_URGENT */
        struct workers *heavy;  /* of large bodies */
        struct streams *streams;
        struct follow *follow; /* runs and their readers */
        struct tails *tails;   /* outputs and theirs */
        struct watches *watches;
        struct digests *digests;
        struct waiting *waiting; /* calls that want permission, here and elsewhere */
        struct replies *replies;
        struct buckets *buckets;
        struct buckets *visitor_reads; /* apart, because a read and a turn count differently */
        struct pledges *pledges;       /* replies that lists left to streams */
        struct metrics metrics;
        FILE *log;
        char *address;
        char *host; /* that we listen on */
        int port;
        char **hosts; /* allowed in Host, NULL-terminated */
        char *public_project;
        char *script;        /* of a scripted model */
        struct runner *chat; /* NULL: no runs are made here */
        struct gateway *gateway;
        struct otel *otel; /* NULL: runs are sent nowhere */
        pthread_mutex_t passing_mutex;
        struct passing *passing;    /* answers of it under way; under the mutex */
        uint64_t tokens_version;    /* that the gateway's turns were last held against */
        struct server_tally *tally; /* or NULL */
        pthread_t ticker;
        struct indexer *indexer;
        bool ticking;
        pthread_t recoverer;
        bool recovering;
        bool fixtures; /* see server_options; store, identities and gateway are NULL */
        atomic_bool stopping;
        atomic_ullong body_bytes[2]; /* held for requests under way: of owners, and of guests */
        atomic_uint visitors_asking; /* visitors' turns that a worker waits for */
        struct unread *unread;       /* answers */
        atomic_uint under_way;
        atomic_uint skipping; /* refused requests whose body is read past */
        struct connections *connections;
        unsigned char signing_key[32];
};

/* http_check.c: 0, or the status to answer with `why` set. Looks at headers only. `method` is the
 * library's own, because it stands at the beginning of the request's bytes. */
/* Method and version are those of the library, which point into the request line. */
int http_check_line(
    const struct request *r, const char *method, const char *version, const char **why);
/* Is there memory left for the head of an answer? */
bool http_check_room(struct request *r);
int http_check_headers(struct server *s, struct request *r, const char *method, const char **why);
/* Host and Origin. */
int http_check_origin(struct server *s, struct request *r, const char **why);
/* Content type and length against the route. */
int http_check_body(struct request *r, const char **why);

/* http.c: the answer is ready, on any thread. */
void http_finish(struct request *r);
/* On a worker: a piece of the body of r->spooling goes to the disk. */
void http_spool(struct request *r);
void http_request_free(struct request *r);

/* A connection whose request line and headers have not come: see http.c. */
int64_t http_now_ms(void);
int64_t http_now_us(void);

#endif
