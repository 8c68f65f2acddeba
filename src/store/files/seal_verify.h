/*
 * seal_verify.h - is a sealed conversation what it was when it was sealed?
 *
 * Every checkpoint, and every head that the store's log has of it, is a root that the records must
 * give. `seal/leaves` then says which record does not. Data that no root covers is not trusted.
 */
#ifndef STORE_FILES_SEAL_VERIFY_H
#define STORE_FILES_SEAL_VERIFY_H

#include "store/files/seal.h"
#include "store/files/seal_log.h"

/* Verifies one. `name` is that of seal_name_at. Nothing is written. */
int seal_verify(
    struct files_conv *conv, const char *name, struct seal_check *check, struct steno_error *err);
/* Does the conversation have a seal, or does the log have an entry for one? */
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

#endif
