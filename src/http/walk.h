/*
 * walk.h - goes through the records of a conversation and reports messages, calls and results,
 * whatever format a message was stored in.
 *
 * Texts are decoded, cut between characters to WALK_TEXT_MAX bytes, and valid until the callback
 * returns. The text of a failed call is cut to WALK_FAILURE_MAX, which is longer than any excerpt.
 */
#ifndef HTTP_WALK_H
#define HTTP_WALK_H

#include "base/str.h"
#include "steno.h"

#define WALK_TEXT_MAX 4096
#define WALK_FAILURE_MAX 65536

struct walk_message {
        uint64_t seq;
        int64_t at; /* ms since 1970 */
        const char *id;
        const char *role; /* never "tool": results come as such */
        struct str text;
        struct str part;  /* the type of its first part, where it has parts */
        struct str model; /* that said it; empty: not known */
        bool failed;      /* a reply that is an error */
        struct str error;
        /* What the provider counted, where the message itself says so: the JSON of its `usage`. A
         * reply that was stored in several records has it in each of them, and `reply` is the same.
         */
        struct str usage;
        struct str reply;
};

struct walk_call {
        uint64_t seq; /* of the message that makes it */
        int64_t at;
        struct str id;
        struct str name;
        struct str arguments;
};

enum walk_state { WALK_DONE, WALK_FAILED, WALK_DENIED, WALK_STOPPED, WALK_CUT };

struct walk_result {
        uint64_t seq; /* of the message that has it */
        int64_t at;
        struct str call;
        enum walk_state state;
        int64_t duration; /* ms; negative: not known */
        bool has_exit;
        int64_t exit;
        struct str ref; /* of the whole output */
        uint64_t bytes; /* of it */
        uint64_t kept;  /* the part that no model sees, because it gets a stub */
        bool excerpt;   /* `text` is what a stub shows of the output */
        struct str text;
};

/* A non-zero return of a callback ends the walk and is returned. Each callback may be NULL. */
struct walk {
        void *ctx;
        int (*message)(void *ctx, const struct walk_message *m);
        int (*call)(void *ctx, const struct walk_call *c);
        int (*result)(void *ctx, const struct walk_result *r);
};

/* Reports one record. Records that are not messages or cannot be read are skipped. */
int walk_record(const struct walk *to, const struct steno_record *r, struct steno_error *err);

const char *walk_state_name(enum walk_state state);

#endif
