/*
 * provider.h - the interface between the loop and a model: one request in, one reply out, streamed.
 *
 * A provider is a row of the table in provider.c. It names the format of the history that it needs
 * and the environment variables of its settings, and opens clients. A client turns a request into
 * the form of its endpoint, and the answer into a reply. The loop knows nothing else of it. So to
 * add a provider, add provider_NAME.c and a row. A provider that uses HTTP builds on
 * provider_http.h, which handles connections, retries and time limits.
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

/* The request at the end of a history whose last message is an incomplete reply of the
 * assistant. */
#define PROVIDER_GO_ON "Your last reply was cut off. Go on from where it ended."

/* A tool as it is offered to a model. */
struct provider_tool {
        const char *name;
        const char *description; /* may be NULL */
        struct str schema;       /* JSON Schema of the arguments, an object; empty: any object */
};

/* One model call, independent of the provider. All members are borrowed until the call returns. */
struct provider_request {
        const char *model;
        struct str history;      /* JSON: the result of steno_view() in the provider's format */
        const char *system;      /* a system prompt that is not part of the history; NULL: none */
        const char *go_on_words; /* replaces PROVIDER_GO_ON; may be NULL */
        bool go_on; /* if the history ends with an assistant's message, append PROVIDER_GO_ON */
        const struct provider_tool *tools; /* in a fixed order, so that prompt caches stay
                                              valid */
        size_t tool_count;
        const char *require_tool; /* the tool that must be called, or "any"; NULL: the model
                                     decides */
        struct str params;        /* JSON object whose members are added; empty: none */
        bool stream;
        const struct steno_stop *stop; /* may be NULL */
        int64_t deadline;              /* time_monotonic_ms(); 0: none */
};

struct provider_hooks {
        /* Called again after at most the number of milliseconds that its last call returned; -1:
         * only when something happens. May be NULL. */
        int (*tick)(void *ctx);
        /* Called when an attempt failed and will be repeated in `wait_ms`. May be NULL. */
        void (*retry)(void *ctx, const struct reply_fault *fault, unsigned attempt, int wait_ms);
        struct reply_hooks reply;
        void *ctx; /* for tick and retry */
};

/* An open connection to a model. For one thread at a time. */
struct provider_client {
        /*
         * Fills `out`, which must be empty. 0: a reply, or a failed call if out->fault is set.
         * STENO_EINTERRUPTED (stopped) and STENO_ETIMEOUT (past the deadline) leave the text that
         * had arrived in out->text. Other errors: out of memory, or the result of a hook.
         */
        int (*complete)(struct provider_client *self, const struct provider_request *request,
            const struct provider_hooks *hooks, struct reply *out, struct steno_error *err);
        void (*close)(struct provider_client *self);
};

/* The configuration of a provider. A provider ignores the members that it does not use. */
struct provider_options {
        const char *base_url;    /* NULL: the provider's default */
        const char *api_key;     /* may be NULL */
        const char *script_json; /* for the provider `script` */
        uint32_t connect_ms;
        uint32_t idle_ms; /* a call ends if no byte arrives for this time */
        uint32_t retries;
};

struct provider_wire;

struct provider {
        const char *name;                 /* the value of --provider, and of "provider" in the
                                             configuration */
        const char *format;               /* the format of the history in a request, and of a
                                             reply's message */
        const char *base_url;             /* the default base URL; NULL: the provider calls no
                                             endpoint */
        const char *url_variable;         /* environment variable for the base URL; NULL: none */
        const char *key_variable;         /* environment variable for the key; NULL: none */
        bool needs_model;                 /* every request must name a model */
        const struct provider_wire *wire; /* for a provider that uses HTTP (provider_http.h);
                                             else NULL */
        /* Opens a client. The options may be freed after the return. */
        int (*open)(const struct provider *self, const struct provider_options *opt,
            struct provider_client **out, struct steno_error *err);
};

/* Finds a provider by name; NULL means "openai". STENO_EINVAL: there is none, and the message lists
 * the names. */
int provider_find(const char *name, const struct provider **out, struct steno_error *err);
/* The i-th row; NULL behind the last one. */
const struct provider *provider_at(size_t i);

/* ---- parameters ---- */

/* Does the loop set this parameter itself (messages, tools, stream ...)? Such a parameter is never
 * sent, because it would replace the conversation. */
bool provider_param_taken(const struct json *j, json_ref key);
/* Returns the first such key of a JSON object, or NULL. */
const char *provider_params_taken(struct str params);

/* ---- the rows ---- */

/* Chat completions of any OpenAI-compatible endpoint. */
extern const struct provider provider_openai;
/* OpenAI's Responses API. The format of the history is that of chat completions. */
extern const struct provider provider_responses;
/* Anthropic's Messages API. */
extern const struct provider provider_anthropic;

/*
 * A model that plays a script, for the demo and for tests. A script is {"replies":[reply
 * ...],"pieceMs"?:n,"pieceChars"?:n}. The history alone decides which reply is next, so that a
 * killed run continues in the script. The number of the reply is the number of assistant messages
 * with calls, plus the number of user messages, minus one. The last reply is also used for all
 * later requests. If a reply is an array, its elements are the replies for repeated requests of one
 * client (the last element is repeated); this is for retries and forced choices. A reply:
 * {"text"?,"thinking"?,"calls"?:[{"name","arguments" (object or string),"id"?}],
 * "finish"?,"error"?:{"message","code"?},"cut"?:true (the stream dies)}. Text comes in pieces of
 * pieceChars (12) characters, pieceMs (0) apart; "$REF" in arguments is the last ref of the
 * history.
 */
extern const struct provider provider_script;

#endif
