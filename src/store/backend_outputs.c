/*
 * backend_outputs.c - the calls of backend_outputs.h, each through the table of its handle:
 * outputs, parts, quotas and figures.
 */
#include "store/backend_call.h"

int backend_artifact_begin(struct backend_conv *conv, const char *kind, struct str want,
    struct str hint, struct backend_artifact **out, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_begin, kind, want, hint, out, err);
}

int backend_artifact_begin_again(struct backend_conv *conv, const struct artifact_info *info,
    struct str want, struct backend_artifact **out, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_begin_again, info, want, out, err);
}

const char *backend_artifact_id(const struct backend_artifact *a)
{
        return a->ops->artifact_id(a);
}

int backend_artifact_write(
    struct backend_artifact *a, const void *p, size_t n, struct steno_error *err)
{
        return BACKEND_CALL(a, artifact_write, p, n, err);
}

void backend_artifact_lift_quota(struct backend_artifact *a)
{
        a->ops->artifact_lift_quota(a);
}

void backend_set_quota(
    struct backend_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx)
{
        store->ops->set_quota(store, quota, warn, ctx);
}

void backend_artifact_index(struct backend_artifact *a, struct str bytes)
{
        if (a)
                a->ops->artifact_index(a, bytes);
}

int backend_artifact_close(struct backend_artifact *a, const struct artifact_end *end,
    struct artifact_info *info, struct steno_error *err)
{
        return BACKEND_CALL(a, artifact_close, end, info, err);
}

void backend_artifact_free(struct backend_artifact *a)
{
        if (a)
                a->ops->artifact_free(a);
}

void backend_artifact_undo(struct backend_conv *conv, const char *id)
{
        if (conv)
                conv->ops->artifact_undo(conv, id);
}

int backend_artifact_find(
    struct backend_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_find, id, out, err);
}

int backend_artifact_each(struct backend_conv *conv,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_each, each, ctx, err);
}

int backend_artifact_open(struct backend_conv *conv, const struct artifact_info *info,
    struct backend_reader **out, uint64_t *size, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_open, info, out, size, err);
}

int backend_artifact_verify(
    struct backend_conv *conv, const struct artifact_info *info, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_verify, info, err);
}

int backend_artifact_lines(struct backend_conv *conv, const struct artifact_info *info, char **p,
    size_t *n, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_lines, info, p, n, err);
}

int backend_artifact_relist(struct backend_conv *conv, const struct artifact_info *said,
    struct str call, bool *done, struct steno_error *err)
{
        return BACKEND_CALL(conv, artifact_relist, said, call, done, err);
}

ssize_t backend_reader_read(
    struct backend_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        return BACKEND_CALL(r, reader_read, at, p, n, err);
}

int backend_reader_whole(struct backend_reader *r, const struct artifact_info *info,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(r, reader_whole, info, sink, ctx, err);
}

void backend_reader_close(struct backend_reader *r)
{
        if (r)
                r->ops->reader_close(r);
}

int backend_part_put(
    struct backend_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err)
{
        return BACKEND_CALL(conv, part_put, token, name, err);
}

int backend_part_get(struct backend_conv *conv, struct str name, uint64_t size, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(conv, part_get, name, size, sink, ctx, err);
}

void backend_figures_add(struct backend_store *store, const struct figures *more)
{
        if (store)
                store->ops->figures_add(store, more);
}

void backend_figures_get(struct backend_store *store, struct figures *out)
{
        if (store)
                store->ops->figures_get(store, out);
}
