/*
 * seal_log.h - the store's own log of seals: which conversation had which root, what was purged,
 * and which conversations were removed for good.
 *
 *   <root>/seal/log.jsonl     one entry a line; the first says the log's id
 *     {"type":"log","id":"<ULID>","at":"..."}
 *     {"type":"head","at":"...","conv":"<hex>","size":N,"root":"<base64>"}
 *     {"type":"purged","at":"...","conv":"<hex>","seqs":"3-5,9"}
 *     {"type":"removed","at":"...","conv":"<hex>"}
 *   <root>/seal/checkpoints   signed notes about the tree of its lines; a leaf is
 *                             SHA-256(0x00, the line without its line feed)
 *   <root>/seal/names.jsonl   {"conv","project","id","uid"}: which conversation a hex is of, for
 *                             reports; proven by its hash, and removed with the conversation
 *
 * Conversations are named by hashes, so that the log can be given to somebody without telling what
 * is in the store. Lines are appended under flock on the file and synced.
 */
#ifndef STORE_FILES_SEAL_LOG_H
#define STORE_FILES_SEAL_LOG_H

#include "model/note.h"
#include "store/files/files.h"

#define SEAL_LOG_ORIGIN "steno/log/"

int seal_log_head(struct files_conv *conv, const char *name, uint64_t size,
    const struct merkle_hash *root, struct steno_error *err);
int seal_log_purged(
    struct files_conv *conv, const char *name, struct str seqs, struct steno_error *err);
/* Notes that a conversation was removed for good, and removes its name. */
int seal_log_removed(struct files_store *store, const char *name, struct steno_error *err);
/* Signs what is there. STENO_ECORRUPT: it is not a continuation of what was signed before. */
int seal_log_sign(struct files_store *store, const struct note_key *key, struct steno_error *err);

/* ---- all of it, for those who verify ---- */

int seal_log_read(struct files_store *store, struct seal_log *out, struct steno_error *err);
/* The entries of a conversation: *count of them from the one that is returned. */
const struct seal_entry *seal_log_of(const struct seal_log *log, const char *conv, size_t *count);
/* "project/id" of a name, where the store knows it; else the name itself. */
void seal_log_call(struct files_store *store, const char *conv, struct buf *out);

#endif
