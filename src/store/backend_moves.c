/*
 * backend_moves.c - the calls of backend_moves.h, each through the table of its handle: bundles,
 * backups, checks, locks and documents.
 */
#include "store/backend_call.h"

int backend_bundle_prepare(struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_bundle **out, struct steno_error *err)
{
        return BACKEND_CALL(conv, bundle_prepare, opt, out, err);
}

const struct bundle_view *backend_bundle_view(const struct backend_bundle *b)
{
        return b->ops->bundle_view(b);
}

int backend_bundle_add_text(
    struct backend_bundle *b, const char *name, struct str text, struct steno_error *err)
{
        return BACKEND_CALL(b, bundle_add_text, name, text, err);
}

int backend_bundle_send(
    struct backend_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(b, bundle_send, i, sink, ctx, err);
}

void backend_bundle_release(struct backend_bundle *b)
{
        if (b)
                b->ops->bundle_release(b);
}

int backend_incoming_open(
    struct backend_store *store, struct backend_incoming **out, struct steno_error *err)
{
        return BACKEND_CALL(store, incoming_open, out, err);
}

void backend_incoming_close(struct backend_incoming *in)
{
        if (in)
                in->ops->incoming_close(in);
}

int backend_incoming_begin(struct backend_incoming *in, uint32_t number, struct steno_error *err)
{
        return BACKEND_CALL(in, incoming_begin, number, err);
}

int backend_incoming_file(struct backend_incoming *in, const char *name, struct steno_error *err)
{
        return BACKEND_CALL(in, incoming_file, name, err);
}

int backend_incoming_write(
    struct backend_incoming *in, const void *p, size_t n, struct steno_error *err)
{
        return BACKEND_CALL(in, incoming_write, p, n, err);
}

int backend_incoming_file_end(struct backend_incoming *in, struct steno_error *err)
{
        return BACKEND_CALL(in, incoming_file_end, err);
}

int backend_incoming_end(struct backend_incoming *in, struct str project, struct str id,
    bool renamed, bool trusted, struct steno_error *err)
{
        return BACKEND_CALL(in, incoming_end, project, id, renamed, trusted, err);
}

int backend_incoming_look(struct backend_incoming *in, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err)
{
        return in->ops->incoming_look ? in->ops->incoming_look(in, project, id, out, err)
                                      : backend_lacks(err, in->ops, "export with masks");
}

int backend_incoming_install(struct backend_incoming *in, uint32_t number, struct str project,
    struct str id, struct steno_error *err)
{
        return BACKEND_CALL(in, incoming_install, number, project, id, err);
}

int backend_backup(struct backend_store *store, const char *path,
    const struct backend_backup *asked, char **report, struct steno_error *err)
{
        return BACKEND_CALL(store, backup, path, asked, report, err);
}

int backend_backup_stream(struct backend_store *store, const char *scratch, steno_sink sink,
    void *ctx, const struct backend_backup *asked, char **report, struct steno_error *err)
{
        if (!store->ops->backup_stream)
                return backend_lacks(err, store->ops, "backup");
        return store->ops->backup_stream(store, scratch, sink, ctx, asked, report, err);
}

int backend_check(struct backend_store *store, struct backend_check *check, struct steno_error *err)
{
        return BACKEND_CALL(store, check, check, err);
}

int backend_lock(struct backend_store *store, const char *name, struct backend_lock **out,
    struct steno_error *err)
{
        return BACKEND_CALL(store, lock, name, out, err);
}

void backend_unlock(struct backend_lock *lock)
{
        if (lock)
                lock->ops->unlock(lock);
}

int backend_document_read(struct backend_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err)
{
        return BACKEND_CALL(store, document_read, name, max, text, n, stamp, err);
}

int backend_document_stamp(
    struct backend_store *store, const char *name, uint64_t *stamp, struct steno_error *err)
{
        return BACKEND_CALL(store, document_stamp, name, stamp, err);
}

int backend_document_change(struct backend_store *store, const char *name, size_t max,
    int patience_ms, backend_change_fn change, void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(store, document_change, name, max, patience_ms, change, ctx, err);
}
