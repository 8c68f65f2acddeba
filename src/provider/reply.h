/*
 * reply.h - what one model call came to: an assistant message as raw JSON, the calls in it, or a
 * fault with whatever text had arrived. Providers fill it, the loop reads it.
 */
#ifndef PROVIDER_REPLY_H
#define PROVIDER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Why a model call failed; `code` is a static word of steno_loop.h, NULL while nothing failed. */
struct reply_fault {
        const char *code;
        bool retryable; /* the same request may succeed later */
        char message[400];
};

void reply_fault_set(struct reply_fault *f, const char *code, bool retryable, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The fault of an HTTP answer other than 2xx; `body` is searched for the endpoint's own words. */
void reply_fault_http(struct reply_fault *f, long status, struct str body);
/* The fault an endpoint describes itself: {"error":{"message","code","type"}} in its variants.
 * False when `json` is not one. `status` 0: inside a 200. */
bool reply_fault_json(struct reply_fault *f, long status, struct str json);

enum call_state {
        CALL_OK,       /* arguments are a JSON object, or nothing at all */
        CALL_CUT,      /* the reply's length ran out in it, or may have: must not be run */
        CALL_INVALID,  /* arguments are not a JSON object: must not be run */
        CALL_FILTERED, /* a content filter ended the reply: must not be run, whole as it may look */
};

struct reply_call {
        char *id;
        char *name;
        struct buf args; /* decoded, byte for byte what the model wrote */
        enum call_state state;
};

enum reply_finish {
        FINISH_NONE, /* the stream gave none */
        FINISH_STOP,
        FINISH_TOOLS, /* tool_calls, or the older function_call */
        FINISH_LENGTH,
        FINISH_FILTER,
        FINISH_OTHER,
};

struct reply {
        struct buf message;  /* of the provider's format: every token as it came */
        struct buf text;     /* its text, decoded */
        struct buf thinking; /* its reasoning, decoded, where the provider shows it */
        struct reply_call *calls;
        size_t count;
        size_t room; /* of `calls` */
        enum reply_finish finish;
        struct buf usage;      /* the provider's object, raw; empty when it told none */
        uint64_t total_tokens; /* of it */
        struct reply_fault fault;
        /* The endpoint's answer as it came, in a file without a name: where it is larger than a
         * message may be, and so is not in the members above. */
        bool has_whole;
        int whole;
};

void reply_init(struct reply *r);
void reply_release(struct reply *r);
/* Empties it for another attempt. */
void reply_clear(struct reply *r);

/*
 * What became of a reply whose members are filled: the fault that was told, or that it was cut off
 * (no finish, and no end mark: `ended`), or that nothing came in it (`any`).
 */
void reply_judge(struct reply *r, const struct reply_fault *told, bool ended, bool any);

/* ---- while it arrives ---- */

enum reply_piece {
        REPLY_TEXT,
        REPLY_THINKING,
};

/* What a provider tells and asks while it reads a reply. */
struct reply_hooks {
        /* Writes an id for a call that came without one: unique in the conversation,
         * NUL-terminated. */
        void (*make_id)(void *ctx, char out[64]);
        /* A decoded piece of text as it comes; may be NULL. Non-zero ends the call. */
        int (*piece)(void *ctx, enum reply_piece kind, struct str text);
        void *ctx;
};

/*
 * Adds a call; `args` is what the model wrote, decoded. An id that is empty, too long, has control
 * characters or that another call of this reply has, is replaced by one that the hook makes.
 * r->finish must be known: it decides whether broken arguments were cut off. Returns the call's id,
 * NULL when there is no memory.
 */
const char *reply_add_call(struct reply *r, const struct reply_hooks *hooks, const char *id,
    const char *name, struct str args);
/*
 * The call that was added last is the last thing of the reply, and nothing behind it says that it
 * is whole: where the reply ended by its length, it must not be run, complete as its arguments may
 * look.
 */
void reply_doubt_last(struct reply *r);

#endif
