/*
 * provider.h - the loop's end towards a model: one request in, one reply out, streamed.
 *
 * `openai` speaks to any OpenAI-compatible endpoint; `script` is a model that plays a script, for
 * the demo and for tests. Adding one is adding a file.
 */
#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "provider/assemble.h"
#include "provider/reply.h"
#include "steno_loop.h"

/* What a request says behind a history that ends with the assistant's own, cut words. */
#define PROVIDER_GO_ON "Your last reply was cut off. Go on from where it ended."

struct provider_request {
        const char *model;
        struct str messages;    /* JSON array, OpenAI shaped */
        struct str tools;       /* JSON array; empty: none */
        struct str tool_choice; /* JSON value; empty: the endpoint's default */
        struct str params;      /* JSON object whose members are added; empty: none */
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
        struct assemble_hooks assemble;
        void *ctx; /* of tick and retry */
};

struct provider {
        /*
         * Fills `out` (empty before). 0: a reply or, with out->fault, a failed call. Stopped:
         * STENO_EINTERRUPTED, past the deadline: STENO_ETIMEOUT, both with the text that had
         * arrived in out->text. Else memory or what a hook returned.
         */
        int (*complete)(struct provider *self, const struct provider_request *request,
            const struct provider_hooks *hooks, struct reply *out, struct steno_error *err);
        void (*free)(struct provider *self);
};

struct provider_openai_options {
        const char *base_url; /* NULL: OpenAI's */
        const char *api_key;  /* may be NULL */
        uint32_t connect_ms;
        uint32_t idle_ms;
        uint32_t retries;
};

int provider_openai_new(
    const struct provider_openai_options *opt, struct provider **out, struct steno_error *err);

/*
 * A script is {"replies":[reply ...],"pieceMs"?:n,"pieceChars"?:n}. Which reply is due follows
 * from the history alone, so that a run that was killed goes on in the script: its number is that
 * of assistant messages with calls, plus user messages (PROVIDER_GO_ON is none), less one; the last
 * one answers whatever comes later. A reply that is an array holds one reply for each time it is
 * asked of this provider (the last again): for retries and forced choices. A reply:
 * {"text"?,"thinking"?,"calls"?:[{"name","arguments" (object or string),"id"?}],
 * "finish"?,"error"?:{"message","code"?},"cut"?:true (the stream dies)}. Text comes in pieces of
 * pieceChars (12) characters, pieceMs (0) apart; "$REF" in arguments is the last ref of the
 * history.
 */
int provider_script_new(const char *script_json, struct provider **out, struct steno_error *err);

#endif
