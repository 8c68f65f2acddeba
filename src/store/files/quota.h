/*
 * quota.h - how much room outputs may take: of one, of a conversation, of the store (F9).
 *
 * Counted are artifacts and parts (artifact.h), not logs: a quota ends an output, never the
 * history. What is used is kept in two small files, `artifacts/.idx/usage` of a conversation and
 * `usage` of the store. Both are derived: a missing file is counted again, so code that adds or
 * removes whole folders just deletes the file. They are not synced and not exact: when a process
 * dies, the room that it took in advance counts as used until the next count.
 *
 *   Q1  Room is taken before the bytes are written.
 *   Q2  Errors of the counting itself are ignored: they must not prevent an append.
 */
#ifndef STORE_FILES_QUOTA_H
#define STORE_FILES_QUOTA_H

#include "store/backend_outputs.h"
#include "store/files/files.h"

/* Before anything is stored. Without it nothing is limited. */
void quota_set(struct files_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx);

/* What one output, or one large token, takes. All zero is a start. */
struct quota_share {
        uint64_t taken; /* in advance, of the conversation and the store */
        uint64_t used;  /* of it */
};

/* Room for `n` more bytes (Q1). STENO_EQUOTA says which limit is reached; then nothing was taken.
 */
int quota_take(
    struct files_conv *conv, struct quota_share *share, uint64_t n, struct steno_error *err);
/* The same for a large token of a message, which is not an output. */
int quota_take_part(struct files_conv *conv, uint64_t n, struct steno_error *err);
/* Room for a conversation's folder `dir` that is about to get its place in the store. */
int quota_take_folder(struct files_store *store, int dir, struct steno_error *err);
/* Gives back what was taken and not used. */
void quota_settle(struct files_conv *conv, struct quota_share *share);
/* `n` bytes were removed. */
void quota_give_back(struct files_conv *conv, uint64_t n);
/* Files of the conversation were removed: it is counted anew. */
void quota_recount(struct files_conv *conv);
/* What a conversation takes that is about to leave the store, and that it has left. */
uint64_t quota_leaving(struct files_conv *conv);
void quota_left(struct files_store *store, uint64_t n);
/* All is counted anew when it is needed next: a folder may have come. */
void quota_forget(struct files_store *store);

#endif
