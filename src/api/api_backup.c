/*
 * api_backup.c - a consistent copy of a store that is being written, and a store from a copy.
 */
#include "api/accepted.h"
#include "api/api_store.h"

#include <stdlib.h>

static bool is_accepted(void *ctx, const struct check_finding *f)
{
        struct accepted_loss loss = {f->project, f->conversation, f->seq, f->what};
        return accepted_has(ctx, &loss);
}

int steno_backup_with(struct steno_store *store, const char *path,
    const struct steno_backup_options *opt, char **report, struct steno_error *err)
{
        struct accepted accepted;
        struct backend_backup asked = {
            .verify = OPTION(opt, struct steno_backup_options, verify, false),
            .progress = OPTION(opt, struct steno_backup_options, progress, NULL),
            .progress_ctx = OPTION(opt, struct steno_backup_options, progress_ctx, NULL),
            .is_accepted = is_accepted,
            .ctx = &accepted};
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        rc = accepted_read(&accepted, store->backend, err);
        if (rc == 0)
                rc = backend_backup(store->backend, path, &asked, report, err);
        accepted_release(&accepted);
        return rc;
}

int steno_backup(struct steno_store *store, const char *path, steno_progress progress,
    void *progress_ctx, char **report, struct steno_error *err)
{
        struct steno_backup_options opt = {
            .size = sizeof opt, .progress = progress, .progress_ctx = progress_ctx};
        return steno_backup_with(store, path, &opt, report, err);
}

int steno_backup_stream(struct steno_store *store, const char *scratch, steno_sink sink, void *ctx,
    steno_progress progress, void *progress_ctx, char **report, struct steno_error *err)
{
        struct accepted accepted;
        struct backend_backup asked = {.progress = progress,
            .progress_ctx = progress_ctx,
            .is_accepted = is_accepted,
            .ctx = &accepted};
        int rc = accepted_read(&accepted, store->backend, err);
        if (rc == 0)
                rc = backend_backup_stream(store->backend, scratch, sink, ctx, &asked, report, err);
        accepted_release(&accepted);
        return rc;
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
