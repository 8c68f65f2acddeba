/*
 * server.h - steno serve: one store, one port, every API.
 *
 *   http.c        libmicrohttpd: headers, bodies, answers
 *   http_check.c  what is refused before a handler runs: hosts, origins, lengths
 *   identities.c  tokens                     route.c    finding a route in the table
 *   workers.c     threads that run handlers  streams.c  answers that go on
 *   follow.c      runs and their readers     tails.c    outputs that grow and their readers
 *   runner.c      runs of this server        form.c     multipart/form-data
 *   metrics.c     figures                    page.c     the web page
 *
 * Only the public API and base/ are used below this.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/identities.h"
#include "steno.h"

struct session;

/* What the gateway did, filled when the server has stopped. */
struct server_tally {
        uint64_t recorded;
        uint64_t unrecorded;
};

struct server_options {
        const char *store;          /* URL */
        const char *listen;         /* "127.0.0.1:7717"; port 0 chooses one */
        const char *const *hosts;   /* more names for Host, NULL-terminated; may be NULL */
        bool allow_remote;          /* listen on what is not loopback */
        const char *public_project; /* visitors' project, or NULL */
        const char *log_path;       /* access log; NULL: stderr, "" none */
        const char *script;         /* of the provider "script", JSON; may be NULL */
        const char *seal_key;       /* private key of seals; may be NULL */
        struct session *session;    /* model, tools and rules of the runs; NULL: no runs */
        const char *upstreams;      /* of the gateway (gateway.h), JSON; may be NULL */
        const char *responses;      /* likewise */
        const char *otlp;           /* where runs are sent as traces (otel.h), JSON; may be NULL */
        const char *const *env;     /* for the keys that they name */
        const char *lent_token;     /* one more token, for the gateway's routes only; may be NULL */
        const char *lent_project;   /* and its project */
        struct server_tally *tally; /* may be NULL; must outlive the server */
        bool fixtures; /* serve only POST /mcp with the fixtures of MCP's conformance suite, without
                          a token; there is no store, and `store` is NULL */
};

struct server;

int server_start(const struct server_options *opt, struct server **out, struct steno_error *err);
/* The address to open, with the token in its fragment. */
const char *server_address(const struct server *s);
int server_port(const struct server *s);
/* Accepts no more connections, finishes the accepted requests, and ends the streams. */
void server_stop(struct server *s);

#endif
