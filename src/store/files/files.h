/*
 * files.h - the embedded store: conversations as folders of plain files.
 *
 *   <root>/store.json                    version, profile, limits
 *   <root>/place.json                    which folder the store was made in
 *   <root>/projects/<project>/conversations/<conversation>/
 *            messages.jsonl              the log (log.h), append-only
 *            meta.json                   id, project, title, configs ...
 *            ids.idx                     derived (ids.h)
 *            runs/<run>.jsonl            run.h
 *            artifacts/...               artifact.h
 *   <root>/recent, recent.old            which conversations changed (recent.h)
 *   <root>/index.db                      derived (store/index)
 *   <root>/trash/  <root>/quarantine/
 *
 * A folder is the id itself while that is plain, else "~" and a hash (base/env.h); then meta.json
 * has the id (names.c). Nobody outside of this folder, store/index and store/search includes it:
 * the rest knows store/backend.h.
 *
 *   S1  A conversation's folder appears as a whole (made elsewhere, synced, renamed), and is
 *       removed as a whole.
 *   S2  A process that changes a conversation holds flock on its folder. After taking the lock it
 *       has checked that the path still names the locked folder.
 *   S3  After a new name was made, its directory is synced before any caller learns of it.
 *   S4  What a record refers to is synced before the record is written.
 *   S5  After a failed sync the handle is poisoned: what the disk holds is unknown.
 */
#ifndef STORE_FILES_FILES_H
#define STORE_FILES_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/env.h"
#include "steno.h"
#include "store/backend.h"

struct files_store;
struct files_conv;
struct files_lookup;

/* ---- the store ---- */

/* `flags` are enum steno_open_flags. */
int files_open(const struct env *env, const char *path, uint32_t flags, struct files_store **out,
    struct steno_error *err);
void files_close(struct files_store *store);
/*
 * False in a child of fork(): it shares every lock with the process that opened the store, so it
 * could take a lock that is held and, worse, release it; and it has none of the threads that hold
 * mutexes or do the work. In such a child, closing only closes descriptors.
 */
bool files_is_ours(const struct files_store *store);
/* Syncs what was acknowledged as process-durable, as far as it can. */
void files_sync(struct files_store *store);
const struct env *files_env(const struct files_store *store);
int files_root(const struct files_store *store);
const char *files_path(const struct files_store *store);
/* Bytes that this handle moved to the quarantine. */
uint64_t files_quarantined(const struct files_store *store);
/* store.json as it is; freed with free(). STENO_ENOTFOUND, or STENO_ECORRUPT: it cannot be used. A
 * store opens all the same. */
int files_settings(struct files_store *store, char **json, struct steno_error *err);
int files_set_settings(
    struct files_store *store, const char *json, size_t n, struct steno_error *err);

/* Writes the defaults; what is there goes to the quarantine. */
int files_renew_settings(struct files_store *store, const char *why, struct steno_error *err);

/*
 * place.json says which folder the store was made in, by its inode. In another folder the store is
 * a copy. If it was copied while a process wrote to it, the newest records may lack their outputs.
 * files_settle_place notes that the store belongs in its present folder. A store without the file
 * is not a copy.
 */
bool files_is_copied(struct files_store *store);
int files_settle_place(struct files_store *store, struct steno_error *err);

/* What stands in the root where "projects", "trash" or "quarantine" should (folders.c). */
enum files_place {
        FILES_PLACE_OK,    /* the folder, or nothing yet */
        FILES_PLACE_TAKEN, /* something that is not a folder, */
        FILES_PLACE_LINK,  /* or a link, which is not followed and not moved */
};
enum files_place files_look_at_place(struct files_store *store, const char *name);
/* What is not a folder goes to the quarantine. */
int files_free_place(struct files_store *store, const char *name, struct steno_error *err);

/* ---- conversations ---- */

/* `meta` is the whole meta.json. STENO_ECONFLICT: the id is taken. */
int files_conv_create(struct files_store *store, struct str project, struct str id, struct str meta,
    struct files_conv **out, struct steno_error *err);
int files_conv_open(struct files_store *store, struct str project, struct str id,
    struct files_conv **out, struct steno_error *err);
/* By the names of its folders, for walks over a store. Its id may not be known then; the folder's
 * name stands for it, and opens it as well. */
int files_conv_open_folder(struct files_store *store, const char *project_folder,
    const char *folder, struct files_conv **out, struct steno_error *err);
/* One in the trash, by its name there: to look at, not to change. */
int files_conv_open_trashed(struct files_store *store, const char *name, struct str project,
    struct str id, struct files_conv **out, struct steno_error *err);
void files_conv_release(struct files_conv *conv);

const char *files_conv_id(const struct files_conv *conv);
const char *files_conv_project(const struct files_conv *conv);
struct files_store *files_conv_store(const struct files_conv *conv);
/* The folder's descriptor, for artifact.c and run.c. */
int files_conv_dir(const struct files_conv *conv);

/* meta.json with the true names, whatever the file says. Freed with free(). */
int files_conv_meta(struct files_conv *conv, char **json, size_t *n, struct steno_error *err);
/* Rewrites it under the lock: `change` gets the old text and makes the new one. */
int files_conv_change_meta(struct files_conv *conv,
    int (*change)(void *ctx, struct str old, struct buf *out, struct steno_error *err), void *ctx,
    struct steno_error *err);

/* Holds the conversation's lock (S2) for work of one's own: artifacts, purge. */
int files_conv_lock(struct files_conv *conv, struct steno_error *err);
void files_conv_unlock(struct files_conv *conv);

/*
 * Walks by the names of folders. What cannot be a project or a conversation (files, other names)
 * is passed over, and so is what goes away meanwhile. A link in place of a folder is handed out,
 * so that it can be told of; it does not open. A non-zero return of `each` stops a walk, which
 * returns it.
 */

/* `st` is of the folder that holds the conversations. `sys` is 0, or the negative errno that keeps
 * us from looking into it, -ELOOP for a link; then there is no `st`. */
typedef int (*files_project_fn)(
    void *ctx, const char *project_folder, const struct stat *st, int sys);
int files_each_project(
    struct files_store *store, files_project_fn each, void *ctx, struct steno_error *err);

typedef int (*files_conv_fn)(void *ctx, const char *project_folder, const char *folder, bool link);
/* Of one project. */
int files_each_in(struct files_store *store, const char *project_folder, files_conv_fn each,
    void *ctx, struct steno_error *err);
/* Of all projects. One that cannot be opened does not stop it; its error is returned at the end,
 * when nothing else has stopped it. A link is not followed, and no error. */
int files_each_conv(
    struct files_store *store, files_conv_fn each, void *ctx, struct steno_error *err);

/* ---- append ---- */

/* Thread-safe; appends of one process to one conversation share a write and a sync. */
int files_append(struct files_conv *conv, struct backend_batch *batch, struct backend_receipt *out,
    struct steno_error *err);

/* ---- reading ---- */

/* seq > after, oldest first; stops at the first non-zero return of `each`, which it returns. */
int files_read(struct files_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err);
/* The last `lines` records. */
int files_read_last(struct files_conv *conv, uint64_t lines, backend_record_fn each, void *ctx,
    struct steno_error *err);
/* The record with this id (amendments have ids of their own). STENO_ENOTFOUND. */
int files_read_id(struct files_conv *conv, struct str id, backend_record_fn each, void *ctx,
    struct steno_error *err);
/* Amendments, newest first, without reading the log between them. */
int files_read_amendments(
    struct files_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err);
/* Records of this conversation by their seqs, as it is now. Not thread-safe. */
int files_lookup_open(struct files_conv *conv, struct files_lookup **out, struct steno_error *err);
/* Calls `each` with the record of this seq, unless it is not there. Returns what `each` does. */
int files_lookup_record(struct files_lookup *l, uint64_t seq, backend_record_fn each, void *ctx,
    struct steno_error *err);
void files_lookup_close(struct files_lookup *l);
/* Last seq and size of the visible log. */
int files_last(struct files_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err);
/* Bytes of its outputs and large tokens, as they are on the disk; and a time that changes when one
 * of them comes, is closed or goes. */
uint64_t files_outputs_size(struct files_conv *conv);
int64_t files_outputs_changed(struct files_conv *conv);
/* Waits for a record behind `after`: 1, 0 when the time is over. */
int files_wait(struct files_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err);

#endif
