/*
 * backend_disks.h - disks (steno_disk.h), as a kind of store keeps them. A kind without them has
 * no such table, and the calls are STENO_EUNSUPPORTED.
 *
 * Projects, disks and paths are legal names. Texts are appended to `out`: of a disk
 * {"id","createdAt","updatedAt"}, of a file {"path","mime","size","sha256","meta","createdAt",
 * "updatedAt"}. If something does not exist, the error is STENO_ENOTFOUND.
 */
#ifndef STORE_BACKEND_DISKS_H
#define STORE_BACKEND_DISKS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

struct backend_store;

struct backend_disk {
        struct backend_store *store;
        struct str project;
        struct str id;
};

struct backend_disk_file {
        struct str path;
        struct str mime;
        struct str meta; /* a JSON object; {NULL}: as it was, or {} */
        struct str bytes;
        bool keep_bytes; /* only the metadata changes; the file must be there */
};

/* Non-zero ends a walk, which returns it. */
typedef int (*backend_disk_fn)(void *ctx, struct str json);

struct backend_disks {
        /* STENO_ECONFLICT: the id is taken. */
        int (*create)(const struct backend_disk *disk, struct buf *out, struct steno_error *err);
        int (*get)(const struct backend_disk *disk, struct buf *out, struct steno_error *err);
        int (*remove)(const struct backend_disk *disk, struct steno_error *err);
        /* The disks of a project, in any order. */
        int (*each)(struct backend_store *store, struct str project, backend_disk_fn each,
            void *ctx, struct steno_error *err);
        /* Whole and durable when it returns. STENO_ELIMIT: too large, or too many. */
        int (*put)(const struct backend_disk *disk, const struct backend_disk_file *file,
            struct buf *out, struct steno_error *err);
        int (*file)(const struct backend_disk *disk, struct str path, struct buf *out,
            struct steno_error *err);
        /* Freed with free(). */
        int (*read)(const struct backend_disk *disk, struct str path, char **bytes, size_t *n,
            struct steno_error *err);
        int (*unlink)(const struct backend_disk *disk, struct str path, struct steno_error *err);
        int (*each_file)(const struct backend_disk *disk, backend_disk_fn each, void *ctx,
            struct steno_error *err);
};

#endif
