/*
 * manifest.h - artifacts/manifest.jsonl: reading, appending and mending its lines. For those who
 * look after artifacts.
 */
#ifndef STORE_FILES_MANIFEST_H
#define STORE_FILES_MANIFEST_H

#include "base/json.h"
#include "store/backend_lines.h"
#include "store/files/artifact.h"

#define MANIFEST_NAME "manifest.jsonl"

/* Opens it and takes its lock; negative errno. A repair replaces the file while others wait for its
 * lock; then the lock of the new file is taken. */
int manifest_lock(const struct fs *fs, int artifacts, int flags);
/* Appends a line (without its line feed); `sync` makes it durable. */
int manifest_append(
    const struct fs *fs, int artifacts, struct str line, bool sync, struct steno_error *err);

/*
 * All artifacts, each as its last line says, oldest first. *list is freed with free(). Lines that
 * cannot be read are skipped.
 */
int manifest_read(const struct fs *fs, int artifacts, struct artifact_info **list, size_t *count,
    struct steno_error *err);
/* Only one of them. STENO_ENOTFOUND. */
int manifest_find(const struct fs *fs, int artifacts, struct str id, struct artifact_info *out,
    struct steno_error *err);
struct manifest_damage {
        uint64_t lines; /* that cannot be read */
        bool torn;      /* the last one has no end */
};

/* Looks for damage. `repair`: what cannot be read goes to the quarantine, and the file is replaced
 * by one without it. */
int manifest_mend(struct files_conv *conv, int artifacts, bool repair, struct manifest_damage *out,
    struct steno_error *err);

#endif
