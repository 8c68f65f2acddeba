/*
 * reply.h - the result of one model call: an assistant message as raw JSON and the calls in it, or
 * a fault with the text that had arrived. Providers fill it, and the loop reads it.
 */
#ifndef PROVIDER_REPLY_H
#define PROVIDER_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* Why a model call failed. `code` is a static word of steno_loop.h; NULL: nothing failed. */
struct reply_fault {
        const char *code;
        bool retryable; /* the same request may succeed later */
        char message[400];
};

void reply_fault_set(struct reply_fault *f, const char *code, bool retryable, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Sets the fault for an HTTP answer other than 2xx. `body` is searched for the endpoint's
 * message. */
void reply_fault_http(struct reply_fault *f, long status, struct str body);
/* Sets the fault that an endpoint describes itself: {"error":{"message","code","type"}} or a
 * variant of it. Returns false if `json` is not such an object. `status` is 0 inside of an answer
 * with status 200. */
bool reply_fault_json(struct reply_fault *f, long status, struct str json);

enum call_state {
        CALL_OK,       /* the arguments are a JSON object, or empty */
        CALL_CUT,      /* the reply reached its maximum length inside of this call, or may have:
                          it must not be run */
        CALL_INVALID,  /* the arguments are not a JSON object: it must not be run */
        CALL_FILTERED, /* a content filter ended the reply: it must not be run, even if it looks
                          complete */
};

struct reply_call {
        char *id;
        char *name;
        struct buf args; /* decoded, exactly as the model wrote them */
        enum call_state state;
};

enum reply_finish {
        FINISH_NONE, /* the stream gave no reason */
        FINISH_STOP,
        FINISH_TOOLS, /* tool_calls, or the older function_call */
        FINISH_LENGTH,
        FINISH_FILTER,
        FINISH_OTHER,
};

struct reply {
        struct buf message;  /* in the provider's format, every token unchanged */
        struct buf text;     /* its text, decoded */
        struct buf thinking; /* its reasoning, decoded, if the provider returns it */
        struct reply_call *calls;
        size_t count;
        size_t room; /* capacity of `calls` */
        enum reply_finish finish;
        struct buf usage;      /* the provider's object, raw; empty if there is none */
        uint64_t total_tokens; /* the total in `usage` */
        struct reply_fault fault;
        /* The endpoint's answer in a file without a name. Set if the answer is larger than a
         * message may be, so that it is not in the members above. */
        bool has_whole;
        int whole;
};

void reply_init(struct reply *r);
void reply_release(struct reply *r);
/* Empties a reply for another attempt. */
void reply_clear(struct reply *r);

/*
 * Decides whether a reply whose members are filled has failed: by the fault that the endpoint
 * reported, or because it was cut off (no finish, and no end mark: `ended`), or because it is empty
 * (`any`).
 */
void reply_judge(struct reply *r, const struct reply_fault *told, bool ended, bool any);

/* ---- while it arrives ---- */

enum reply_piece {
        REPLY_TEXT,
        REPLY_THINKING,
};

/* Functions that a provider calls while it reads a reply. */
struct reply_hooks {
        /* Writes an id for a call that has none. It must be unique in the conversation, and
         * NUL-terminated. */
        void (*make_id)(void *ctx, char out[64]);
        /* Receives a decoded piece of text as it comes; may be NULL. Non-zero ends the call. */
        int (*piece)(void *ctx, enum reply_piece kind, struct str text);
        void *ctx;
};

/*
 * Adds a call. `args` is the decoded text that the model wrote. The hook makes a new id if the id
 * is empty, too long, has control characters, or belongs to another call of this reply. r->finish
 * must be known, because it decides whether broken arguments were cut off. Returns the call's id,
 * or NULL if memory is out.
 */
const char *reply_add_call(struct reply *r, const struct reply_hooks *hooks, const char *id,
    const char *name, struct str args);
/*
 * Call it if the call that was added last is the end of the reply, and nothing behind it shows that
 * it is whole. If the reply ended by its maximum length, this call must not be run, even if its
 * arguments look complete.
 */
void reply_doubt_last(struct reply *r);

#endif
