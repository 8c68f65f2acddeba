/*
 * backend_seals.h - seals of conversations, and the log of them.
 *
 * A sealed conversation has leaves, one a record, and signed notes about the tree of the first of
 * them; the store has a log of which conversation had which root. docs/format.md says what they
 * are.
 */
#ifndef STORE_BACKEND_SEALS_H
#define STORE_BACKEND_SEALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/leaf.h"
#include "model/note.h"
#include "store/backend_records.h"

#define SEAL_CONV 65 /* hex of a conversation's name in logs and origins, and a NUL */
#define SEAL_ORIGIN "steno/conversation/"

struct seal_result {
        uint64_t size; /* records that are sealed now */
        uint64_t added;
        bool changed; /* there is a new note */
        struct merkle_hash root;
        char conv[SEAL_CONV];
};

/* Seals everything that is stored; a new note is written where something changed. STENO_ECORRUPT:
 * a record cannot be read, or the leaves are not those that were sealed before. */
int backend_seal(struct backend_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err);
enum seal_standing {
        SEAL_EMPTY, /* there is nothing to seal */
        SEAL_FRESH, /* it is as it was when it was sealed last */
        SEAL_DUE,
};

/* Looks at no record. */
enum seal_standing backend_seal_standing(struct backend_conv *conv);
/* How many records are sealed; 0: none. Unverified. */
uint64_t backend_seal_size(struct backend_conv *conv);
/* All notes as they stand; *text is freed with free(). NULL and 0: there are none. */
int backend_seal_notes(struct backend_conv *conv, char **text, size_t *n, struct steno_error *err);
/* Writes the proof that a record is in a sealed conversation, as JSON. STENO_ENOTFOUND: the seq
 * is not sealed; STENO_ECORRUPT: it is not what was sealed. */
int backend_seal_prove(
    struct backend_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err);
/* Its name in logs; "": it never got one. */
int backend_seal_name(struct backend_conv *conv, char out[SEAL_CONV], struct steno_error *err);
/* Computes that name from a project, an id and the uid of the metadata. 0 or STENO_ENOMEM. */
int backend_seal_conv_name(struct str project, struct str id, struct str uid, char out[SEAL_CONV]);
/* Checks one, without a store. STENO_ECORRUPT says what is wrong. `key` may be NULL: the
 * signature is not looked at. */
int backend_seal_prove_check(struct str json, const struct note_key *key, struct steno_error *err);

/* ---- the log ---- */

enum seal_entry_type { SEAL_ENTRY_HEAD, SEAL_ENTRY_PURGED, SEAL_ENTRY_REMOVED };

struct seal_entry {
        enum seal_entry_type type;
        uint64_t index; /* of its line, */
        char conv[65];  /* whose */
        uint64_t size;  /* of a head */
        struct merkle_hash root;
        struct str seqs; /* of a purge; lives as long as the log that was read */
};

struct seal_log {
        char *text;
        size_t n;
        char id[32];                /* "": there is no log */
        uint64_t lines;             /* whole ones */
        struct merkle_hash *leaves; /* of the lines */
        struct seal_entry *entries; /* sorted by conversation, then by index */
        size_t count;
        uint64_t strange; /* lines that are not entries */
        uint64_t torn;    /* bytes behind the last whole line */
        char *notes;      /* the signed notes */
        size_t notes_n;
};

/* Is there one? */
bool backend_seal_has_log(struct backend_store *store);
int backend_seal_log_read(
    struct backend_store *store, struct seal_log *out, struct steno_error *err);
void backend_seal_log_release(struct seal_log *log);
/* "project/id" of a name, where the store knows it; else the name itself. */
void backend_seal_log_call(struct backend_store *store, const char *conv, struct buf *out);
/* Signs what is there. STENO_ECORRUPT: it is not a continuation of what was signed before. */
int backend_seal_log_sign(
    struct backend_store *store, const struct note_key *key, struct steno_error *err);

/* ---- verifying ---- */

struct seal_finding {
        const char *kind; /* changed, added, removed, moved, lost, output, seal, log, vanished,
                             unsigned; purged, uncovered, unsealed are notes */
        bool note;        /* nothing is wrong */
        uint64_t seq;     /* 0: none */
        uint64_t last_seq;
        const char *ref; /* of an output, or NULL */
        const char *what;
};

/* A non-zero return stops the work, which returns it. */
typedef int (*seal_finding_fn)(void *ctx, const struct seal_finding *f);

struct seal_check {
        const struct note_key *key; /* NULL: signatures are not looked at */
        const struct seal_log *log; /* of the store; NULL: none */
        uint64_t log_signed;        /* entries that a checkpoint of it covers */
        const struct note *kept;    /* checkpoints that somebody kept elsewhere */
        size_t kept_count;
        seal_finding_fn each;
        void *ctx;
        /* What was found. */
        uint64_t records; /* that are covered */
        uint64_t outputs;
        uint64_t purged;
        uint64_t unsealed;
};

/* Hands a finding with a sentence to check->each. */
int backend_seal_tell(struct seal_check *check, struct seal_finding f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Verifies one; `name` is that of backend_seal_name. Nothing is written. */
int backend_seal_verify(
    struct backend_conv *conv, const char *name, struct seal_check *check, struct steno_error *err);
/* Does the conversation have a seal, or does the log have an entry for one? */
bool backend_seal_is_known(struct backend_conv *conv, const char *name, const struct seal_log *log);
/* The log itself: its checkpoints, and one that somebody kept. Fills log_signed. */
int backend_seal_verify_log(
    struct backend_store *store, struct seal_check *check, struct steno_error *err);

#endif
