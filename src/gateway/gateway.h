/*
 * gateway.h - requests to a model, passed on and recorded.
 *
 * A client that uses /openai/v1, /anthropic or /gemini of this server as its base URL talks to the
 * real endpoint: it gets what the endpoint sent, byte for byte and as soon as it arrives. In
 * addition, each exchange becomes part of a conversation (recorder.h).
 *
 *   struct gateway_turn *t;
 *   gateway_start(g, &request, &calls, ctx, &t, &err);
 *   gateway_send(t, &request, &err);
 *   ... calls.ready: gateway_status, gateway_headers; then gateway_read until the end ...
 *   gateway_leave(t);
 */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "steno.h"

struct gateway;

/*
 * `upstreams` is the configuration, a JSON object or NULL:
 *   {"openai": {"url": "https://api.openai.com/v1", "key": "env:OPENAI_API_KEY",
 *               "stubs": true, "contextTools": true, "whenGone": "cancel"}, ...}
 * Names that are missing have the provider's own URL and no key: then only tokens in the path work,
 * and the client's own key is passed on. STENO_EINVAL: the configuration is wrong.
 */
struct gateway_options {
        struct steno_store *store;
        const char *path; /* of the store */
        const char *upstreams;
        const char *responses; /* {"upstream": NAME, "wire": "chat"}, JSON; NULL: openai */
        const char *const *env;
};

int gateway_new(const struct gateway_options *opt, struct gateway **out, struct steno_error *err);
/* Accepts no more requests, ends the calls to endpoints and informs all readers. To be called
 * before the server's connections are closed. */
void gateway_stop(struct gateway *g);
/* Waits until all is recorded. *recorded, *failed (may be NULL): how many exchanges were recorded
 * and how many were not. */
void gateway_free(struct gateway *g, uint64_t *recorded, uint64_t *failed);

/* Does the configuration name an app that answers /api/chat ("upstreams": {"chat": ...})? */
bool gateway_has_app(const struct gateway *g);

/* Where an upstream is, and its key. STENO_EINVAL: there is no such upstream, or it has no key. */
struct gateway_endpoint {
        const char *url;
        const char *key_header; /* what stands before the key */
        const char *key;        /* NULL: an app without one */
};
int gateway_endpoint(
    struct gateway *g, const char *upstream, struct gateway_endpoint *out, struct steno_error *err);
/* The upstream of /v1/responses, as it is configured. */
const char *gateway_responses(const struct gateway *g);
/* It has chat completions only: "wire": "chat". */
bool gateway_responses_chat(const struct gateway *g);

/* The last few requests of /v1/responses, so that a repeated request can join the first one. `key`
 * identifies the client and the request. Kept for ten minutes. */
#define GATEWAY_ASKED 64
void gateway_remember(struct gateway *g, const char *key, const char *id);
bool gateway_recall(struct gateway *g, const char *key, char id[GATEWAY_ASKED]);

/* Does this path belong to the gateway? Returns the upstream's name, or NULL; *rest is the path
 * after the prefix, with its slash. */
const char *gateway_upstream(struct str path, struct str *rest);

struct gateway_request {
        const char *upstream;
        struct str rest;
        struct str query; /* raw */
        const char *method;
        const char *const *headers; /* "Name: value", NULL-terminated, as they came */
        struct str body;
        const char *project;
        const char *token_id;
        bool own_credentials; /* the token stood in the path: the client's own key is passed on */
        /* Is this one of Steno's tokens? May be NULL: nothing is. */
        bool (*is_token)(void *ctx, struct str text);
        void *is_token_ctx;
};

/* These are called on other threads, with a lock held: they must not call the gateway. */
struct gateway_calls {
        /* Once: status and headers are there, or the call has failed before (status 0). */
        void (*ready)(void *ctx);
        /* gateway_read() calls it just before it returns GATEWAY_LATER, and before `more` can be
         * called. */
        void (*later)(void *ctx);
        /* After that: more of the body is there, or its end. Never after gateway_leave(). */
        void (*more)(void *ctx);
};

struct gateway_turn;

/* Records the request; no callback is called yet. STENO_EFULL, STENO_EIO, ...: the request could
 * not be recorded and must not be sent. STENO_EINVAL: this upstream has no key, or the request
 * names a conversation id that is not valid. STENO_EPROTO: the path has a token after the
 * prefix. */
int gateway_start(struct gateway *g, const struct gateway_request *request,
    const struct gateway_calls *calls, void *ctx, struct gateway_turn **out,
    struct steno_error *err);

/* Sends the request: from now on `ready` may be called at any moment. After a failure no callback
 * is called, and the caller drops the turn. */
int gateway_send(
    struct gateway_turn *t, const struct gateway_request *request, struct steno_error *err);

/* Forgets a turn that was not sent, with its record. */
void gateway_drop(struct gateway_turn *t);

/* 0: there is no answer of the endpoint to pass on. gateway_why() says why, and gateway_code()
 * gives a code: "upstream_unreachable"; "upstream_failed", while the gateway used context tools;
 * "no_answer", the model calls such tools without end. */
int gateway_status(const struct gateway_turn *t);
const char *gateway_why(const struct gateway_turn *t);
const char *gateway_code(const struct gateway_turn *t);
/* Gives each header for the client, without hop-by-hop headers and Content-Length. */
void gateway_headers(const struct gateway_turn *t,
    void (*each)(void *ctx, const char *name, const char *value), void *ctx);
/* Content-Length; negative: there is none. */
int64_t gateway_length(const struct gateway_turn *t);

enum gateway_more {
        GATEWAY_END = 0,    /* as the endpoint ended it */
        GATEWAY_CUT = -1,   /* it broke off */
        GATEWAY_LATER = -2, /* nothing yet; `more` will be called */
};
/* Bytes of the body from `at`, or one of the above. */
ssize_t gateway_read(struct gateway_turn *t, uint64_t at, void *p, size_t n);

/* The client's connection was closed, but the reader still exists: the gateway waits for the answer
 * only a while longer. */
void gateway_gone(struct gateway_turn *t);
/* Ends the turns whose tokens are no longer valid, and disconnects their clients. */
void gateway_revoke(struct gateway *g, bool (*valid)(void *ctx, const char *token_id), void *ctx);

/* The reader has finished or disconnected. */
void gateway_leave(struct gateway_turn *t);

#endif
