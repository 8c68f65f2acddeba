/*
 * about.h - what Steno notes about a message, whatever its format: the record's `x`.
 *
 * Pairing, recovery, listing and the common views read this and need not parse the message. A
 * format's `describe` (format/format.h) makes it from a message; about_write and about_read are its
 * form in the log. Strings are decoded and live in the caller's arena.
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

/*
 * A tool output that was taken out of the message and replaced by a stub, or by a piece of one.
 * `at` and `len` say where, in bytes of the message with its parts put back. What stood there is,
 * by the first that holds:
 *
 *   part_size > 0   the raw token in artifacts/parts/<part>
 *   !ref.n          nothing: the bytes were added (the `ref` of an openai tool message)
 *   value           the bytes [from, from + size) of the artifact `ref`, as they stand
 *   else            a string token: the same bytes, escaped
 */
struct about_out {
        uint64_t at;
        uint64_t len;
        struct str ref;
        struct str ref_sha; /* sha256 hex of the artifact's bytes */
        uint64_t ref_size;
        struct str mime; /* of the artifact, where it is not text/plain */
        struct str hint; /* of the artifact */
        struct str call; /* id of the call that it answers, or "" */
        uint64_t from;
        uint64_t size;
        bool value;
        struct str part;
        uint64_t part_size;
};

/* Random bytes of a record's salt, which is their hex. */
#define ABOUT_SALT 16

struct about {
        uint64_t length; /* of the stored message in bytes, 0: not said */
        unsigned plain; /* the rule (format/format.h) by which it can be copied into the view of its
                           own format; 0: none */
        struct str kind;   /* "" for a message; "delete", "meta", "supersede", "tombstone" */
        struct str target; /* id of the message an amendment is, or was, about */
        struct str role; /* system, developer, user, assistant, tool; "" for items of other types */
        struct str id;   /* the id that the message itself carries, or "" */
        struct str *calls; /* ids of the calls it makes, in order */
        size_t call_count;
        struct str *answers; /* ids of the calls that it answers, in order; a call with its own
                                result is in both lists */
        size_t answer_count;
        const uint32_t *answer_calls; /* or NULL: of each answer, 1 and the place among `calls` of
                                         the call that carries it; 0: its id says which. It is not
                                         in the log. */
        struct str mode;              /* chat, agent, run, or "" */
        struct str run;               /* run id, or "" */
        struct str ref;               /* artifact that holds the whole output, or "" */
        struct str ref_sha;           /* sha256 hex of its bytes, where they were whole by then */
        struct str *refs; /* of more outputs, where calls and responses stand in the text */
        size_t ref_count;
        struct str *ref_shas; /* sha256 hex of each of `refs`, "" where it was not whole; or NULL */
        struct about_out *outs; /* outputs that were taken out, in order of `at` */
        size_t out_count;
        uint64_t of;       /* of a result that a run wrote: seq of the message with its call */
        struct str via;    /* of a model's reply: the endpoint that made it, a space, the model */
        uint64_t after;    /* of what was recovered: seq of the record that it stands behind */
        struct str own_id; /* the id that the message carries, where its record has another */
        struct str source; /* of what was imported: a hash of the entry that it was made from */
        struct str key;    /* idempotency key, on a batch's first record */
        uint64_t prev;     /* of an amendment: seq of the amendment before it, 0 for the first */
        struct str sha;    /* sha256 hex of the message as it came, when parts were taken out */
        struct about_part *parts;
        size_t part_count;
        struct str leaf;   /* of a tombstone: sha256 hex of the record that was there, as it was
                              sealed   (leaf.h) */
        struct str salt;   /* random, so that the leaf does not confirm a guess of the message */
        const char *lacks; /* the name of the member for the id of a call or a result, if the
                              message should have it but lacks it; NULL: nothing is missing. Only
                              for a message that has just arrived; never stored */
        /* Of a message that just came: a call or a result has no id, also where its format wants
         * none and goes by the name; and it is a result, so that its call must be found. */
        bool no_id, no_answer_id;
        bool own_fields;  /* carries fields of Steno's that the openai view leaves out */
        bool off_context; /* includeInContext is false */
        bool error;       /* partType error, or a tool result with isError */
        bool orphan;      /* marks of a recording append: a result with no call, */
        bool duplicate;   /* or a second result */
        bool keep_output; /* the client stored it in full: views give it back in full */
        bool inlined;     /* its append asked that outputs over the store's limits stay in the
                             message */
        bool lost;        /* a tombstone of what was damaged */
        bool recovered;   /* written in place of a run that died */
        bool brief; /* says nothing but plain, role, calls, answers and own_fields; false where
                       nobody looked (api/quick_about.h) */
};

/*
 * What a message refers to, whichever member names it: slots 0 to about_ref_slots - 1 hold the ids
 * of its artifacts, each once and in order, or nothing; slots 0 to about_part_slots - 1 its parts.
 */
static inline size_t about_ref_slots(const struct about *a)
{
        return 1 + a->ref_count + a->out_count;
}
struct str about_ref_at(const struct about *a, size_t slot);
/* What `outs` says of the artifact in a slot; NULL: it is named by `ref` or `refs`. */
const struct about_out *about_out_at(const struct about *a, size_t slot);
static inline size_t about_part_slots(const struct about *a)
{
        return a->part_count + a->out_count;
}
/* name.n is 0 where the slot holds nothing. */
struct about_part about_part_at(const struct about *a, size_t slot);

/* Writes the JSON object. Defaults are left out. */
void about_write(const struct about *a, struct buf *out);

/* Reads it back. Unknown members are skipped. 0, STENO_ECORRUPT or STENO_ENOMEM. */
int about_read(struct str json, struct arena *arena, struct about *out, struct steno_error *err);

/* Finds only the idempotency key, escaped as it is stored, without parsing; false when there is
 * none. */
bool about_key(struct str json, struct str *key);
/* Writes the same object without its idempotency key. False: it has none, and nothing was
 * written. */
bool about_without_key(struct str json, struct buf *out);
/* Only whether it is of a tombstone of what was damaged. */
bool about_is_lost(struct str json);

#endif
