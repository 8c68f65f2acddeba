/*
 * manifest.h - artifacts/manifest.jsonl: reading and appending its lines. For artifact.c alone.
 */
#ifndef STORE_FILES_MANIFEST_H
#define STORE_FILES_MANIFEST_H

#include "store/files/artifact.h"

/* Appends a line (without its line feed); `sync` makes it durable. */
int manifest_append(
    const struct fs *fs, int artifacts, struct str line, bool sync, struct steno_error *err);

/* The line for an artifact as `info` says. */
void manifest_put(struct buf *out, const struct artifact_info *info);

/*
 * All artifacts, each as its last line says, oldest first. *list is freed with free(). Lines that
 * cannot be read are skipped and counted in *bad (may be NULL).
 */
int manifest_read(const struct fs *fs, int artifacts, struct artifact_info **list, size_t *count,
    uint64_t *bad, struct steno_error *err);
/* Only one of them. STENO_ENOTFOUND. */
int manifest_find(const struct fs *fs, int artifacts, struct str id, struct artifact_info *out,
    struct steno_error *err);

#endif
