/*
 * backend_records.c - the calls of backend_records.h, each through the table of its handle: a
 * store, its conversations and their records.
 */
#include "store/backend_call.h"

void backend_close(struct backend_store *store)
{
        if (store)
                store->ops->close(store);
}

bool backend_is_ours(const struct backend_store *store)
{
        return store->ops->is_ours(store);
}

void backend_sync(struct backend_store *store)
{
        if (store)
                store->ops->sync(store);
}

uint64_t backend_quarantined(const struct backend_store *store)
{
        return store->ops->quarantined(store);
}

int backend_settings(struct backend_store *store, char **json, struct steno_error *err)
{
        return BACKEND_CALL(store, settings, json, err);
}

int backend_set_settings(
    struct backend_store *store, const char *json, size_t n, struct steno_error *err)
{
        return BACKEND_CALL(store, set_settings, json, n, err);
}

int backend_conv_create(struct backend_store *store, struct str project, struct str id,
    struct str meta, struct backend_conv **out, struct steno_error *err)
{
        return BACKEND_CALL(store, conv_create, project, id, meta, out, err);
}

int backend_conv_open(struct backend_store *store, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err)
{
        return BACKEND_CALL(store, conv_open, project, id, out, err);
}

void backend_conv_release(struct backend_conv *conv)
{
        if (conv)
                conv->ops->conv_release(conv);
}

const char *backend_conv_id(const struct backend_conv *conv)
{
        return conv->ops->conv_id(conv);
}

const char *backend_conv_project(const struct backend_conv *conv)
{
        return conv->ops->conv_project(conv);
}

struct backend_store *backend_conv_store(const struct backend_conv *conv)
{
        return conv->ops->conv_store(conv);
}

int backend_conv_meta(struct backend_conv *conv, char **json, size_t *n, struct steno_error *err)
{
        return BACKEND_CALL(conv, conv_meta, json, n, err);
}

int backend_conv_change_meta(
    struct backend_conv *conv, backend_change_fn change, void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(conv, conv_change_meta, change, ctx, err);
}

int backend_conv_exclusively(
    struct backend_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(conv, conv_exclusively, work, ctx, err);
}

int backend_each_conv(struct backend_store *store, const char *project, backend_conv_fn each,
    void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(store, each_conv, project, each, ctx, err);
}

int backend_append(struct backend_conv *conv, struct backend_batch *batch,
    struct backend_receipt *out, struct steno_error *err)
{
        return BACKEND_CALL(conv, append, batch, out, err);
}

int backend_read(struct backend_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        return BACKEND_CALL(conv, read, after, each, ctx, err);
}

int backend_read_last(struct backend_conv *conv, uint64_t count, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        return BACKEND_CALL(conv, read_last, count, each, ctx, err);
}

int backend_read_id(struct backend_conv *conv, struct str id, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        return BACKEND_CALL(conv, read_id, id, each, ctx, err);
}

int backend_read_amendments(
    struct backend_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(conv, read_amendments, each, ctx, err);
}

int backend_lookup_open(
    struct backend_conv *conv, struct backend_lookup **out, struct steno_error *err)
{
        return BACKEND_CALL(conv, lookup_open, out, err);
}

int backend_lookup_record(struct backend_lookup *l, uint64_t seq, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        return BACKEND_CALL(l, lookup_record, seq, each, ctx, err);
}

void backend_lookup_close(struct backend_lookup *l)
{
        if (l)
                l->ops->lookup_close(l);
}

int backend_last(struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err)
{
        return BACKEND_CALL(conv, last, seq, bytes, err);
}

uint64_t backend_generation(struct backend_conv *conv)
{
        return conv->ops->generation(conv);
}

int backend_wait(struct backend_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err)
{
        return BACKEND_CALL(conv, wait, after, timeout_ms, err);
}
