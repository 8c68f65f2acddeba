/*
 * gateway.h - requests to a model, passed on and recorded.
 *
 * A client that is pointed at /openai/v1, /anthropic or /gemini of this server talks to the real
 * endpoint: what it gets is what the endpoint sent, byte for byte and as soon as it came. Beside
 * that, each exchange becomes part of a conversation (recorder.h).
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
 * Those of the three names that are not in it have the provider's own URL and no key: then only
 * tokens in the path work, and the client's own key is passed on. STENO_EINVAL: it says something
 * that is not understood.
 */
struct gateway_options {
        struct steno_store *store;
        const char *path; /* of the store */
        const char *upstreams;
        const char *responses; /* {"upstream": NAME, "wire": "chat"}, JSON; NULL: openai */
        const char *const *env;
};

int gateway_new(const struct gateway_options *opt, struct gateway **out, struct steno_error *err);
/* Nothing more is taken: ends the calls to endpoints and tells all readers. Before the server's
 * connections are closed. */
void gateway_stop(struct gateway *g);
/* Waits until all is recorded. *recorded, *failed (may be NULL): how many were, and were not. */
void gateway_free(struct gateway *g, uint64_t *recorded, uint64_t *failed);

/* Is an app configured whose own route answers /api/chat ("upstreams": {"chat": ...})? */
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

/* The last few requests of /v1/responses, so that one that comes again can join the first: `key`
 * stands for who asked what. Kept for ten minutes. */
#define GATEWAY_ASKED 64
void gateway_remember(struct gateway *g, const char *key, const char *id);
bool gateway_recall(struct gateway *g, const char *key, char id[GATEWAY_ASKED]);

/* Does this path belong to the gateway? The upstream's name, or NULL; *rest is what stands behind
 * the prefix, with its slash. */
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

/* Told on other threads, with a lock held: none of them may call back. */
struct gateway_calls {
        /* Once: status and headers are there, or the call has failed before (status 0). */
        void (*ready)(void *ctx);
        /* gateway_read() is about to answer GATEWAY_LATER: called by it, before `more` can be. */
        void (*later)(void *ctx);
        /* After that: more of the body is there, or its end. Never after gateway_leave(). */
        void (*more)(void *ctx);
};

struct gateway_turn;

/* The request is recorded, and nothing is told yet. STENO_EFULL, STENO_EIO, ...: it could not be
 * recorded and must not be sent. STENO_EINVAL: this upstream has no key, or the conversation that
 * is named cannot be. STENO_EPROTO: a token stands in the path behind the prefix. */
int gateway_start(struct gateway *g, const struct gateway_request *request,
    const struct gateway_calls *calls, void *ctx, struct gateway_turn **out,
    struct steno_error *err);

/* Sends it: from here on `ready` may be called at any moment. After a failure nothing is told, and
 * the turn is to be dropped. */
int gateway_send(
    struct gateway_turn *t, const struct gateway_request *request, struct steno_error *err);

/* Forgets a turn that was not sent, with its record. */
void gateway_drop(struct gateway_turn *t);

/* 0: there is no answer of the endpoint's to pass on; gateway_why() says why, and gateway_code() in
 * a word: "upstream_unreachable"; "upstream_failed", while the gateway used context tools;
 * "no_answer", the model calls such tools without end. */
int gateway_status(const struct gateway_turn *t);
const char *gateway_why(const struct gateway_turn *t);
const char *gateway_code(const struct gateway_turn *t);
/* Each header that the client is to get; hop-by-hop ones and Content-Length are left out. */
void gateway_headers(const struct gateway_turn *t,
    void (*each)(void *ctx, const char *name, const char *value), void *ctx);
/* Content-Length; negative: none was told. */
int64_t gateway_length(const struct gateway_turn *t);

enum gateway_more {
        GATEWAY_END = 0,    /* as the endpoint ended it */
        GATEWAY_CUT = -1,   /* it broke off */
        GATEWAY_LATER = -2, /* nothing yet; `more` will be called */
};
/* Bytes of the body from `at`, or one of the above. */
ssize_t gateway_read(struct gateway_turn *t, uint64_t at, void *p, size_t n);

/* The client's connection is closed, though the reader has not left yet: the answer is awaited for
 * a while only. */
void gateway_gone(struct gateway_turn *t);
/* Ends the turns whose tokens are not valid any more; their clients are cut off. */
void gateway_revoke(struct gateway *g, bool (*valid)(void *ctx, const char *token_id), void *ctx);

/* The reader is done or gone. */
void gateway_leave(struct gateway_turn *t);

#endif
