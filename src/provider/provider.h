/*
 * provider.h - the loop's end towards a model: one request in, one reply out, streamed.
 *
 * A provider is a row of the table in provider.c. It says in which format it wants the history,
 * which environment variables hold its settings, and how a client for it is opened; a client turns
 * a request into what the endpoint expects and the answer into a reply. The loop knows nothing
 * else of it, so that adding a provider is adding provider_NAME.c and a row. One that speaks HTTP
 * builds on provider_http.h, which owns connections, retries and time limits.
 */
#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "provider/reply.h"
#include "steno_loop.h"

/* What a request says behind a history that ends with the assistant's own, cut-off words. */
#define PROVIDER_GO_ON "Your last reply was cut off. Go on from where it ended."

/* A tool as it is offered to a model. */
struct provider_tool {
        const char *name;
        const char *description; /* may be NULL */
        struct str schema;       /* JSON Schema of the arguments, an object; empty: any object */
};

/* One model call, in no provider's shape. All of it is borrowed until the call returns. */
struct provider_request {
        const char *model;
        struct str history;      /* JSON: what steno_view() gives in the provider's format */
        const char *system;      /* a system prompt that is not part of the history; NULL: none */
        const char *go_on_words; /* instead of PROVIDER_GO_ON, or NULL */
        bool go_on; /* if the history ends with the assistant's words, say PROVIDER_GO_ON */
        const struct provider_tool *tools; /* in a fixed order, so that prompt caches hold */
        size_t tool_count;
        const char *require_tool; /* this tool must be called, or "any"; NULL: as the model likes */
        struct str params;        /* JSON object whose members are added; empty: none */
        bool stream;
        const struct steno_stop *stop; /* may be NULL */
        int64_t deadline;              /* time_monotonic_ms(); 0: none */
};

struct provider_hooks {
        /* Called at least as often as it asked for: it answers in how many milliseconds it wants
         * to be called again, -1 for "when something happened". May be NULL. */
        int (*tick)(void *ctx);
        /* An attempt failed and will be made again in `wait_ms`. May be NULL. */
        void (*retry)(void *ctx, const struct reply_fault *fault, unsigned attempt, int wait_ms);
        struct reply_hooks reply;
        void *ctx; /* of tick and retry */
};

/* An open connection to a model. For one thread at a time. */
struct provider_client {
        /*
         * Fills `out` (empty before). 0: a reply or, with out->fault, a failed call. Stopped:
         * STENO_EINTERRUPTED, past the deadline: STENO_ETIMEOUT, both with the text that had
         * arrived in out->text. Else memory or what a hook returned.
         */
        int (*complete)(struct provider_client *self, const struct provider_request *request,
            const struct provider_hooks *hooks, struct reply *out, struct steno_error *err);
        void (*close)(struct provider_client *self);
};

/* What a person configured. A provider ignores what it has no use for. */
struct provider_options {
        const char *base_url;    /* NULL: the provider's own */
        const char *api_key;     /* may be NULL */
        const char *script_json; /* of `script` */
        uint32_t connect_ms;
        uint32_t idle_ms; /* no byte for so long ends a call */
        uint32_t retries;
};

struct provider_wire;

struct provider {
        const char *name;                 /* of --provider and "provider" in the configuration */
        const char *format;               /* of the history in a request and of a reply's message */
        const char *base_url;             /* when none is configured; NULL: it calls no endpoint */
        const char *url_variable;         /* environment variable for the base URL; NULL: none */
        const char *key_variable;         /* environment variable for the key; NULL: none */
        bool needs_model;                 /* a request without a model's name makes no sense */
        const struct provider_wire *wire; /* of one that speaks HTTP (provider_http.h); else NULL */
        /* Opens a client. The options may go after the return. */
        int (*open)(const struct provider *self, const struct provider_options *opt,
            struct provider_client **out, struct steno_error *err);
};

/* A provider by name; NULL: "openai". STENO_EINVAL when there is none: the message lists them. */
int provider_find(const char *name, const struct provider **out, struct steno_error *err);
/* The i-th row; NULL behind the last one. */
const struct provider *provider_at(size_t i);

/* ---- parameters ---- */

/* Is this key of a parameter object one that the loop sets itself (messages, tools, stream ...)?
 * Such a parameter is never sent: it would replace the conversation. */
bool provider_param_taken(const struct json *j, json_ref key);
/* The first such key of a JSON object, or NULL. */
const char *provider_params_taken(struct str params);

/* ---- the rows ---- */

/* Chat completions of any OpenAI-compatible endpoint. */
extern const struct provider provider_openai;
/* OpenAI's Responses API; the history is that of chat completions. */
extern const struct provider provider_responses;
/* Anthropic's Messages API. */
extern const struct provider provider_anthropic;

/*
 * A model that plays a script, for the demo and for tests. A script is
 * {"replies":[reply ...],"pieceMs"?:n,"pieceChars"?:n}. Which reply is due follows from the
 * history alone, so that a run that was killed goes on in the script: its number is that of
 * assistant messages with calls, plus user messages, less one; the last one answers whatever comes
 * later. A reply that is an array holds one reply for each time it is asked of this client (the
 * last again): for retries and forced choices. A reply:
 * {"text"?,"thinking"?,"calls"?:[{"name","arguments" (object or string),"id"?}],
 * "finish"?,"error"?:{"message","code"?},"cut"?:true (the stream dies)}. Text comes in pieces of
 * pieceChars (12) characters, pieceMs (0) apart; "$REF" in arguments is the last ref of the
 * history.
 */
extern const struct provider provider_script;

#endif
