/*
 * about.h - what Steno says about a message, whatever its format: the record's `x`.
 *
 * Pairing, recovery, listing and the common views read this and need not parse the message. A
 * format's `describe` (format/format.h) makes it from a message; about_write and about_read are
 * its form in the log. Strings are decoded and live in the arena that was given.
 */
#ifndef MODEL_ABOUT_H
#define MODEL_ABOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

/* A large token that was taken out of the message: `""` stands at `at` in the stored message and
 * the raw token, quotes included, is artifacts/parts/<name>. */
struct about_part {
        uint64_t at;
        uint64_t size;
        struct str name;
};

struct about {
        uint64_t length;   /* of the stored message in bytes, 0: not said */
        unsigned plain;    /* the rule (view/ready.h) by which it can be copied into the view of its
                              own format; 0: none */
        struct str kind;   /* "" for a message; "delete", "meta", "supersede", "tombstone" */
        struct str target; /* id of the message an amendment is, or was, about */
        struct str role; /* system, developer, user, assistant, tool; "" for items of other types */
        struct str id;   /* the id that the message itself carries, or "" */
        struct str *calls; /* ids of the calls it makes, in order */
        size_t call_count;
        struct str *answers; /* ids of the calls it answers, in order; a call that carries its own
                                result stands in both lists */
        size_t answer_count;
        struct str mode;    /* chat, agent, run, or "" */
        struct str run;     /* run id, or "" */
        struct str ref;     /* artifact that holds the whole output, or "" */
        struct str ref_sha; /* sha256 hex of its bytes, where they were whole by then */
        struct str *refs;   /* of more outputs, where calls and responses stand in the text */
        size_t ref_count;
        struct str key; /* idempotency key, on a batch's first record */
        uint64_t prev;  /* of an amendment: seq of the amendment before it, 0 for the first */
        struct str sha; /* sha256 hex of the message as it came, when parts were taken out */
        struct about_part *parts;
        size_t part_count;
        const char *lacks; /* the id that it should have for a call or a result, and has not, by its
                              name; NULL: none. Of a message that just came, never stored */
        bool own_fields;   /* carries fields of Steno's that the openai view leaves out */
        bool off_context;  /* includeInContext is false */
        bool error;        /* partType error, or a tool result with isError */
        bool orphan;       /* marks of a recording append: a result with no call, */
        bool duplicate;    /* or a second result */
        bool keep_output;  /* the client stored it in full: views give it back in full */
        bool lost;         /* a tombstone of what was damaged */
};

/* Writes the JSON object. Defaults are left out. */
void about_write(const struct about *a, struct buf *out);

/* Reads it back. Unknown members are skipped. 0, STENO_ECORRUPT or STENO_ENOMEM. */
int about_read(struct str json, struct arena *arena, struct about *out, struct steno_error *err);

/* Only the idempotency key, as it stands (escaped), without parsing; false when there is none. */
bool about_key(struct str json, struct str *key);
/* Writes the same object without its idempotency key; false, and nothing written: it has none. */
bool about_without_key(struct str json, struct buf *out);
/* Only whether it is of a tombstone of what was damaged. */
bool about_is_lost(struct str json);

#endif
