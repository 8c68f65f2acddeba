/*
 * steno_disk.h - disks: named files beside the conversations of a project.
 *
 * A disk is a small tree of files that programs write and read by path, as Acontext's clients do.
 * It belongs to a project and to no conversation. A file is replaced whole, and what was there
 * before is gone; a disk that is removed is gone as well. Nothing of a disk is in views, searches,
 * seals or bundles; backups have it.
 *
 * Paths begin with "/", have no empty parts and none that is "." or "..", and do not end with "/":
 * STENO_EINVAL. Calls that return text give a JSON document that is freed with steno_free().
 */
#ifndef STENO_DISK_H
#define STENO_DISK_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

/* {"id","createdAt","updatedAt"}. STENO_ECONFLICT: the id is taken. */
STENO_API int steno_disk_create(struct steno_store *store, const char *project, const char *id,
    char **json, struct steno_error *err);
/* The same of one that is there. STENO_ENOTFOUND. */
STENO_API int steno_disk_get(struct steno_store *store, const char *project, const char *id,
    char **json, struct steno_error *err);
/* {"items":[...]}, oldest first. */
STENO_API int steno_disk_list(
    struct steno_store *store, const char *project, char **json, struct steno_error *err);
STENO_API int steno_disk_remove(
    struct steno_store *store, const char *project, const char *id, struct steno_error *err);

/*
 * Writes a file, in the place of one that may be there; synced when it returns. `meta` is a JSON
 * object, or NULL: that of the file before it, or {}. The answer is the file:
 * {"path","mime","size","sha256","meta","createdAt","updatedAt"}. STENO_ELIMIT: over 16 MiB, or too
 * many files.
 */
STENO_API int steno_disk_put(struct steno_store *store, const char *project, const char *id,
    const char *path, const char *mime, const char *meta, const void *bytes, size_t n, char **json,
    struct steno_error *err);
/* The file. STENO_ENOTFOUND. */
STENO_API int steno_disk_file(struct steno_store *store, const char *project, const char *id,
    const char *path, char **json, struct steno_error *err);
/* Its bytes, freed with steno_free(). */
STENO_API int steno_disk_read(struct steno_store *store, const char *project, const char *id,
    const char *path, char **bytes, size_t *n, struct steno_error *err);
/* Replaces its metadata. The answer is the file. */
STENO_API int steno_disk_set_meta(struct steno_store *store, const char *project, const char *id,
    const char *path, const char *meta, char **json, struct steno_error *err);
STENO_API int steno_disk_delete(struct steno_store *store, const char *project, const char *id,
    const char *path, struct steno_error *err);
/* {"items":[file...]} of all files, ordered by path. */
STENO_API int steno_disk_files(struct steno_store *store, const char *project, const char *id,
    char **json, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
