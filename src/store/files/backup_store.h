/*
 * backup_store.h - a consistent copy of a store that is being written, and a store from a copy.
 *
 * A backup is a folder in the format of a store, with a file backup.json that says so, and
 * complete.json, which is written last and taken away first: without it the folder is in the middle
 * of something. The log of seals is copied first, since what it says of a conversation must be in
 * the copy of that; then the conversations, one by one (backup.h).
 */
#ifndef STORE_FILES_BACKUP_STORE_H
#define STORE_FILES_BACKUP_STORE_H

#include "store/files/files.h"

/* Makes the folder `path`, or brings the backup in it up to date. STENO_ECONFLICT: something else
 * is there. *report is JSON that the caller frees; `report` may be NULL, here and below. */
int backup_store(struct files_store *store, const char *path, const struct backend_backup *asked,
    char **report, struct steno_error *err);
/* The same as a stream; only what is at hand lies in the folder `scratch`. */
int backup_store_stream(struct files_store *store, const char *scratch, steno_sink sink, void *ctx,
    const struct backend_backup *asked, char **report, struct steno_error *err);

/* Into a folder that is empty or not there, which is empty again when this fails.
 * STENO_EPROTO: `path` is no backup. STENO_ECORRUPT: its last backup was cut off. */
int backup_restore(const char *path, const char *to, char **report, struct steno_error *err);
int backup_restore_stream(
    steno_source source, void *ctx, const char *to, char **report, struct steno_error *err);

#endif
