/*
 * steno_disk.h - disks: named files beside the conversations of a project.
 *
 * A disk is a small tree of files that programs write and read by path, as Acontext's clients do.
 * It belongs to a project, not to a conversation. Writing a file replaces all of it, and the old
 * content is gone; a disk that is removed is gone as well. Views, searches, seals and bundles do
 * not include disks; backups do.
 *
 * Paths begin with "/", do not end with "/", and have no part that is empty, "." or ".."; else
 * STENO_EINVAL. Calls that return text return a JSON document, which is freed with steno_free().
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
/* The same for an existing disk. STENO_ENOTFOUND: there is none. */
STENO_API int steno_disk_get(struct steno_store *store, const char *project, const char *id,
    char **json, struct steno_error *err);
/* {"items":[...]}, oldest first. */
STENO_API int steno_disk_list(
    struct steno_store *store, const char *project, char **json, struct steno_error *err);
STENO_API int steno_disk_remove(
    struct steno_store *store, const char *project, const char *id, struct steno_error *err);

/*
 * Writes a file, or replaces it; synced when it returns. `meta` is a JSON object, or NULL: the
 * metadata of the file that is replaced, or {}. *json describes the file:
 * {"path","mime","size","sha256","meta","createdAt","updatedAt"}. STENO_ELIMIT: more than 16 MiB,
 * or too many files.
 */
STENO_API int steno_disk_put(struct steno_store *store, const char *project, const char *id,
    const char *path, const char *mime, const char *meta, const void *bytes, size_t n, char **json,
    struct steno_error *err);
/* Describes the file, as steno_disk_put does. STENO_ENOTFOUND: there is none. */
STENO_API int steno_disk_file(struct steno_store *store, const char *project, const char *id,
    const char *path, char **json, struct steno_error *err);
/* The file's bytes, freed with steno_free(). */
STENO_API int steno_disk_read(struct steno_store *store, const char *project, const char *id,
    const char *path, char **bytes, size_t *n, struct steno_error *err);
/* Replaces the file's metadata. *json describes the file. */
STENO_API int steno_disk_set_meta(struct steno_store *store, const char *project, const char *id,
    const char *path, const char *meta, char **json, struct steno_error *err);
STENO_API int steno_disk_delete(struct steno_store *store, const char *project, const char *id,
    const char *path, struct steno_error *err);
/* All files, ordered by path: {"items":[file...]}. */
STENO_API int steno_disk_files(struct steno_store *store, const char *project, const char *id,
    char **json, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
