/*
 * seal_verify.h - is a sealed conversation what it was when it was sealed?
 *
 * Every checkpoint, and every head that the store's log has of it, is a root that the records must
 * give. `seal/leaves` then says which record does not. Nothing is believed that no root covers.
 */
#ifndef STORE_FILES_SEAL_VERIFY_H
#define STORE_FILES_SEAL_VERIFY_H

#include "store/files/seal.h"
#include "store/files/seal_log.h"

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

/* Verifies one. `name` is that of seal_name_at. Nothing is written. */
int seal_verify(
    struct files_conv *conv, const char *name, struct seal_check *check, struct steno_error *err);
/* Has it a seal, or does the log know of one? */
bool seal_is_known(struct files_conv *conv, const char *name, const struct seal_log *log);

/* The log itself: its checkpoints, and one that somebody kept. Fills log_signed. */
int seal_verify_log(struct seal_check *check, struct steno_error *err);

/* ---- shared with seal_verify_outputs.c ---- */

/* Refs that records name. */
struct seal_named {
        struct arena arena;
        struct str *list;
        size_t count;
        size_t cap;
};

/* The outputs and parts of a record. `covered`: it is what was sealed, so its outputs must be too.
 */
int seal_verify_outputs(struct files_conv *conv, const struct record *rec, bool covered,
    struct seal_named *named, struct seal_check *check, struct steno_error *err);
/* Outputs that no record names. */
int seal_verify_strays(struct files_conv *conv, struct seal_named *named, struct seal_check *check,
    struct steno_error *err);
int seal_verify_tell(struct seal_check *check, struct seal_finding f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
