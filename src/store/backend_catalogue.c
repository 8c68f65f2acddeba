/*
 * backend_catalogue.c - the calls of backend_catalogue.h, each through the table of its handle:
 * lists and search.
 */
#include "store/backend_call.h"

int backend_catch_up(struct backend_store *store, bool at_once, steno_progress progress,
    void *progress_ctx, struct backend_caught_up *out, struct steno_error *err)
{
        return BACKEND_CALL(store, catch_up, at_once, progress, progress_ctx, out, err);
}

int backend_list(struct backend_store *store, const struct backend_query *q, char **json,
    struct steno_error *err)
{
        return BACKEND_CALL(store, list, q, json, err);
}

int backend_list_each(struct backend_store *store,
    int (*each)(void *ctx, const struct backend_listed *row), void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(store, list_each, each, ctx, err);
}

int backend_totals(struct backend_store *store, struct backend_totals *out, struct steno_error *err)
{
        return BACKEND_CALL(store, totals, out, err);
}

int backend_tally(struct backend_store *store, struct backend_tally *out, struct steno_error *err)
{
        return BACKEND_CALL(store, tally, out, err);
}

int backend_unfinished(struct backend_store *store, const char *project, uint32_t max, char **json,
    struct steno_error *err)
{
        return BACKEND_CALL(store, unfinished, project, max, json, err);
}

int backend_search_lock(struct backend_store *store, bool wait, struct steno_error *err)
{
        return BACKEND_CALL(store, search_lock, wait, err);
}

void backend_search_unlock(struct backend_store *store)
{
        if (store)
                store->ops->search_unlock(store);
}

int backend_search_progress(
    struct backend_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err)
{
        return BACKEND_CALL(conv, search_progress, generation, seq, err);
}

int backend_search_each_conv(
    struct backend_store *store, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(store, search_each_conv, each, ctx, err);
}

int backend_search_begin(struct backend_conv *conv, uint64_t generation, struct steno_error *err)
{
        return BACKEND_CALL(conv, search_begin, generation, err);
}

int backend_search_add(
    struct backend_store *store, const struct search_block *b, struct steno_error *err)
{
        return BACKEND_CALL(store, search_add, b, err);
}

int backend_search_commit(struct backend_store *store, uint64_t seq, struct steno_error *err)
{
        return BACKEND_CALL(store, search_commit, seq, err);
}

int backend_search_forget(
    struct backend_store *store, const char *project, const char *id, struct steno_error *err)
{
        return BACKEND_CALL(store, search_forget, project, id, err);
}

int backend_search_discard(struct backend_store *store, struct steno_error *err)
{
        return BACKEND_CALL(store, search_discard, err);
}

int backend_search_each(struct backend_store *store, const struct search_ask *ask,
    search_hit_fn each, void *ctx, struct steno_error *err)
{
        return BACKEND_CALL(store, search_each, ask, each, ctx, err);
}
