/*
 * about.h - what Steno notes about a message, whatever its format: the record's `x`.
 *
 * Pairing, recovery, listing and the common views read this and need not parse the message. A
 * format's `describe` (format/format.h) makes it from a message; about_write and about_read convert
 * it to and from its form in the log. Strings are decoded and live in the caller's arena.
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

/* A large token that was taken out of the message. The stored message has `""` at `at`; the raw
 * token, quotes included, is in artifacts/parts/<name>. */
struct about_part {
        uint64_t at;
        uint64_t size;
        struct str name;
};

/*
 * A tool output that was taken out of the message and replaced by a stub, or by a piece of a stub.
 * `at` and `len` say where, in bytes of the message after its parts were put back. The first line
 * of this table that applies says what was there before:
 *
 *   part_size > 0   the raw token in artifacts/parts/<part>
 *   !ref.n          nothing: Steno added these bytes (the `ref` of an openai tool message)
 *   value           the bytes [from, from + size) of the artifact `ref`, unchanged
 *   else            a string token: the same bytes, escaped
 */
struct about_out {
        uint64_t at;
        uint64_t len;
        struct str ref;
        struct str ref_sha; /* sha256 hex of the artifact's bytes */
        uint64_t ref_size;
        struct str mime; /* of the artifact, if it is not text/plain */
        struct str hint; /* of the artifact */
        struct str call; /* id of the call that the output answers, or "" */
        uint64_t from;
        uint64_t size;
        bool value;
        struct str part;
        uint64_t part_size;
};

/* A record's salt has this many random bytes and is stored as hex. */
#define ABOUT_SALT 16

struct about {
        uint64_t length;   /* length of the stored message in bytes; 0: not known */
        unsigned plain;    /* the rule (format/format.h) by which the message can be copied into the
                              view of its own format; 0: none */
        struct str kind;   /* "" for a message; "delete", "meta", "supersede", "tombstone" */
        struct str target; /* id of the message that an amendment changes, or that a tombstone's
                              record changed */
        struct str role;   /* system, developer, user, assistant, tool; "" for items of other
                              types */
        struct str id;     /* the id that the message itself carries, or "" */
        struct str *calls; /* ids of the calls that the message makes, in order */
        size_t call_count;
        struct str *answers; /* ids of the calls that it answers, in order; a call with its own
                                result is in both lists */
        size_t answer_count;
        const uint32_t *answer_calls; /* for each answer: 1 plus the place among `calls` of the
                                         call that carries it, or 0 if only its id names the
                                         call. May be NULL. Not stored in the log. */
        struct str mode;              /* chat, agent, run, or "" */
        struct str run;               /* run id, or "" */
        struct str ref;               /* id of the artifact that holds the whole output, or "" */
        struct str ref_sha;           /* sha256 hex of its bytes, if it was complete at that
                                         time */
        struct str *refs; /* ids of more artifacts, if calls and responses are in the text */
        size_t ref_count;
        struct str *ref_shas;   /* sha256 hex of each of `refs`, "" if it was not complete; or
                                   NULL */
        struct about_out *outs; /* outputs that were taken out, in order of `at` */
        size_t out_count;
        uint64_t of;       /* for a result that a run wrote: seq of the message with its call */
        struct str via;    /* for a model's reply: the endpoint that made it, a space, the
                              model */
        uint64_t after;    /* for what was recovered: seq of the record that it belongs behind */
        struct str own_id; /* the id in the message, if the record has another id */
        struct str source; /* for what was imported: a hash of the entry that it was made from */
        struct str key;    /* idempotency key, on a batch's first record */
        uint64_t prev;     /* for an amendment: seq of the amendment before it, 0 for the
                              first */
        struct str sha;    /* sha256 hex of the original message, if parts were taken out */
        struct about_part *parts;
        size_t part_count;
        struct str leaf;   /* for a tombstone: sha256 hex of the record that was there, as it was
                              sealed (leaf.h) */
        struct str salt;   /* random, so that the leaf does not confirm a guess of the message */
        const char *lacks; /* the name of the member for the id of a call or a result, if the
                              message should have it but lacks it; NULL: nothing is missing. Only
                              for a message that has just arrived; never stored */
        /* Only for a message that has just arrived. no_id: a call or a result has no id, even if
         * the format needs none and pairs by name. no_answer_id: a result has none, so its call
         * must be found. */
        bool no_id, no_answer_id;
        bool own_fields;  /* has members of Steno's that the openai view leaves out */
        bool off_context; /* includeInContext is false */
        bool error;       /* partType is error, or a tool result has isError */
        bool orphan;      /* set by a recording append: a result without a call */
        bool duplicate;   /* set by a recording append: a second result of a call */
        bool keep_output; /* the client stored the output in full, so views give it back in
                             full */
        bool inlined;     /* the client asked to keep large outputs in the message */
        bool lost;        /* the record is a tombstone of a damaged record */
        bool recovered;   /* recovery wrote the message in place of a run that died */
        bool brief;       /* nothing is set but plain, role, calls, answers and own_fields; false if
                             this was not checked (api/quick_about.h) */
};

/*
 * The artifacts and parts that a message refers to, whichever member names them. Slots 0 to
 * about_ref_slots - 1 hold the ids of its artifacts, each once and in order; a slot may be empty.
 * Slots 0 to about_part_slots - 1 hold its parts.
 */
static inline size_t about_ref_slots(const struct about *a)
{
        return 1 + a->ref_count + a->out_count;
}
struct str about_ref_at(const struct about *a, size_t slot);
/* Returns what `outs` says of the artifact in a slot; NULL: `ref` or `refs` names it. */
const struct about_out *about_out_at(const struct about *a, size_t slot);
static inline size_t about_part_slots(const struct about *a)
{
        return a->part_count + a->out_count;
}
/* name.n is 0 if the slot is empty. */
struct about_part about_part_at(const struct about *a, size_t slot);

/* Writes the JSON object. Defaults are left out. */
void about_write(const struct about *a, struct buf *out);

/* Reads what about_write wrote. Unknown members are skipped. 0, STENO_ECORRUPT or STENO_ENOMEM. */
int about_read(struct str json, struct arena *arena, struct about *out, struct steno_error *err);

/* Finds only the idempotency key, without parsing the rest. The key is escaped as it is stored.
 * False: there is none. */
bool about_key(struct str json, struct str *key);
/* Writes the same object without its idempotency key. False: it has no key, and nothing was
 * written. */
bool about_without_key(struct str json, struct buf *out);
/* Is this the `x` of a tombstone of a damaged record? */
bool about_is_lost(struct str json);

#endif
