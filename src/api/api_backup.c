/*
 * api_backup.c - a consistent copy of a store that is being written, and a store from a copy.
 */
#include "api/api_store.h"

#include <stdlib.h>

int steno_backup(struct steno_store *store, const char *path, steno_progress progress,
    void *progress_ctx, char **report, struct steno_error *err)
{
        return backend_backup(store->backend, path, progress, progress_ctx, report, err);
}

int steno_backup_stream(struct steno_store *store, const char *scratch, steno_sink sink, void *ctx,
    steno_progress progress, void *progress_ctx, char **report, struct steno_error *err)
{
        return backend_backup_stream(
            store->backend, scratch, sink, ctx, progress, progress_ctx, report, err);
}

int steno_restore_stream(
    steno_source source, void *ctx, const char *store_url, char **report, struct steno_error *err)
{
        const struct steno_backend *kind;
        char *where = NULL;
        int rc = backend_find(store_url, &kind, &where, err);
        if (rc == 0)
                rc = kind->restore_stream ? kind->restore_stream(source, ctx, where, report, err)
                                          : backend_lacks(err, kind, "restore");
        free(where);
        return rc;
}

int steno_restore(const char *path, const char *store_url, char **report, struct steno_error *err)
{
        const struct steno_backend *kind;
        char *where = NULL;
        int rc = backend_find(store_url, &kind, &where, err);
        if (rc == 0)
                rc = kind->restore ? kind->restore(path, where, report, err)
                                   : backend_lacks(err, kind, "restore");
        free(where);
        return rc;
}
