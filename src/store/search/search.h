/*
 * search.h - search/: which blocks of text may hold a word.
 *
 * The index proposes, the files confirm. It is FTS5, contentless and without positions
 * (detail=none), over blocks of at most SEARCH_BLOCK bytes that overlap; a row says which record or
 * output a block is of and where. The caller reads the block from the files and matches it again,
 * which gives phrases, the place and a snippet.
 *
 *   search/<n>.db   a shard: SQLite, derived, disposable. What it knows of a conversation (up to
 *                   which record) is in the same transaction as the rows.
 *   search/lock     held (flock) by whoever changes a shard
 *
 * A contentless table cannot remove the words of a text that does not exist any more. So a purge
 * drops every shard that has ever held a word of the conversation. The next catch-up indexes their
 * other contents again.
 *
 * Knows neither messages nor formats: it is given blocks.
 */
#ifndef STORE_SEARCH_SEARCH_H
#define STORE_SEARCH_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "store/files/files.h"

#define SEARCH_SHARD_BYTES ((uint64_t)256 * 1024 * 1024) /* of text; a purge costs this much */

struct search;

int search_open(struct files_store *store, struct search **out, struct steno_error *err);
void search_close(struct search *s);

/* ---- indexing: between search_lock and search_unlock ---- */

/* One at a time in all processes. `wait` false: STENO_ETIMEOUT when somebody else has it. */
int search_lock(struct search *s, bool wait, struct steno_error *err);
void search_unlock(struct search *s);

/* What is indexed of a conversation: records up to *seq of the log with this inode. 0: nothing. */
int search_progress(struct search *s, const char *project_folder, const char *folder, uint64_t log,
    uint64_t *seq, struct steno_error *err);

/* The same of all; one that is in several shards comes several times. Also without the lock, where
 * it is denied or somebody else has it. */
int search_each_conv(
    struct search *s, backend_progress_fn each, void *ctx, struct steno_error *err);

/* Begins to add to a conversation, in a transaction. */
struct search_conv {
        const char *project_folder;
        const char *folder;
        const char *project;
        const char *id;
        uint64_t log; /* inode */
};
int search_begin(struct search *s, const struct search_conv *conv, struct steno_error *err);

int search_add(struct search *s, const struct search_block *b, struct steno_error *err);
/* Commits; everything up to `seq` is indexed. */
int search_commit(struct search *s, uint64_t seq, struct steno_error *err);
void search_rollback(struct search *s);

/* Drops every shard that has held words of a conversation of this name, ever. Takes the lock. */
int search_forget(
    struct search *s, const char *project_folder, const char *folder, struct steno_error *err);
/* Removes everything. Takes the lock. */
int search_discard(struct search *s, struct steno_error *err);

/* ---- asking ---- */

/* Candidates, newest first. A non-zero return of `each` ends it and is returned. */
int search_each(struct search *s, const struct search_ask *ask, search_hit_fn each, void *ctx,
    struct steno_error *err);

#endif
