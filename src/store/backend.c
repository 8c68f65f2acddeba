/*
 * backend.c - see backend.h: every call finds the kind of its handle.
 */
#include "store/backend.h"

/* ---- a store, its conversations and their records ---- */

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
        if (!store->ops->settings)
                return backend_lacks(err, store->ops, "settings");
        return store->ops->settings(store, json, err);
}

int backend_set_settings(
    struct backend_store *store, const char *json, size_t n, struct steno_error *err)
{
        if (!store->ops->set_settings)
                return backend_lacks(err, store->ops, "set_settings");
        return store->ops->set_settings(store, json, n, err);
}

int backend_conv_create(struct backend_store *store, struct str project, struct str id,
    struct str meta, struct backend_conv **out, struct steno_error *err)
{
        if (!store->ops->conv_create)
                return backend_lacks(err, store->ops, "conv_create");
        return store->ops->conv_create(store, project, id, meta, out, err);
}

int backend_conv_open(struct backend_store *store, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err)
{
        if (!store->ops->conv_open)
                return backend_lacks(err, store->ops, "conv_open");
        return store->ops->conv_open(store, project, id, out, err);
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
        if (!conv->ops->conv_meta)
                return backend_lacks(err, conv->ops, "conv_meta");
        return conv->ops->conv_meta(conv, json, n, err);
}

int backend_conv_change_meta(
    struct backend_conv *conv, backend_change_fn change, void *ctx, struct steno_error *err)
{
        if (!conv->ops->conv_change_meta)
                return backend_lacks(err, conv->ops, "conv_change_meta");
        return conv->ops->conv_change_meta(conv, change, ctx, err);
}

int backend_conv_exclusively(
    struct backend_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err)
{
        if (!conv->ops->conv_exclusively)
                return backend_lacks(err, conv->ops, "conv_exclusively");
        return conv->ops->conv_exclusively(conv, work, ctx, err);
}

int backend_each_conv(struct backend_store *store, const char *project, backend_conv_fn each,
    void *ctx, struct steno_error *err)
{
        if (!store->ops->each_conv)
                return backend_lacks(err, store->ops, "each_conv");
        return store->ops->each_conv(store, project, each, ctx, err);
}

int backend_append(struct backend_conv *conv, struct backend_batch *batch,
    struct backend_receipt *out, struct steno_error *err)
{
        if (!conv->ops->append)
                return backend_lacks(err, conv->ops, "append");
        return conv->ops->append(conv, batch, out, err);
}

int backend_read(struct backend_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        if (!conv->ops->read)
                return backend_lacks(err, conv->ops, "read");
        return conv->ops->read(conv, after, each, ctx, err);
}

int backend_read_last(struct backend_conv *conv, uint64_t count, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        if (!conv->ops->read_last)
                return backend_lacks(err, conv->ops, "read_last");
        return conv->ops->read_last(conv, count, each, ctx, err);
}

int backend_read_id(struct backend_conv *conv, struct str id, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        if (!conv->ops->read_id)
                return backend_lacks(err, conv->ops, "read_id");
        return conv->ops->read_id(conv, id, each, ctx, err);
}

int backend_read_amendments(
    struct backend_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err)
{
        if (!conv->ops->read_amendments)
                return backend_lacks(err, conv->ops, "read_amendments");
        return conv->ops->read_amendments(conv, each, ctx, err);
}

int backend_lookup_open(
    struct backend_conv *conv, struct backend_lookup **out, struct steno_error *err)
{
        if (!conv->ops->lookup_open)
                return backend_lacks(err, conv->ops, "lookup_open");
        return conv->ops->lookup_open(conv, out, err);
}

int backend_lookup_record(struct backend_lookup *l, uint64_t seq, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        if (!l->ops->lookup_record)
                return backend_lacks(err, l->ops, "lookup_record");
        return l->ops->lookup_record(l, seq, each, ctx, err);
}

void backend_lookup_close(struct backend_lookup *l)
{
        if (l)
                l->ops->lookup_close(l);
}

int backend_last(struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err)
{
        if (!conv->ops->last)
                return backend_lacks(err, conv->ops, "last");
        return conv->ops->last(conv, seq, bytes, err);
}

uint64_t backend_generation(struct backend_conv *conv)
{
        return conv->ops->generation(conv);
}

int backend_wait(struct backend_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err)
{
        if (!conv->ops->wait)
                return backend_lacks(err, conv->ops, "wait");
        return conv->ops->wait(conv, after, timeout_ms, err);
}

/* ---- runs and their journals ---- */

int backend_run_claim(
    struct backend_conv *conv, struct str id, struct backend_claim **out, struct steno_error *err)
{
        if (!conv->ops->run_claim)
                return backend_lacks(err, conv->ops, "run_claim");
        return conv->ops->run_claim(conv, id, out, err);
}

void backend_run_claim_release(struct backend_claim *claim, bool finished)
{
        if (claim)
                claim->ops->run_claim_release(claim, finished);
}

int backend_run_claim_check(struct backend_claim *claim, struct steno_error *err)
{
        return claim ? claim->ops->run_claim_check(claim, err) : 0;
}

void backend_run_claim_listen(struct backend_claim *claim, run_mail_fn fn, void *ctx)
{
        if (claim)
                claim->ops->run_claim_listen(claim, fn, ctx);
}

int backend_run_mail_send(struct backend_conv *conv, struct str line, struct steno_error *err)
{
        if (!conv->ops->run_mail_send)
                return backend_lacks(err, conv->ops, "run_mail_send");
        return conv->ops->run_mail_send(conv, line, err);
}

int backend_watch(struct backend_store *store, struct str project, struct backend_watcher **out,
    struct steno_error *err)
{
        if (!store->ops->watch)
                return backend_lacks(err, store->ops, "watch");
        return store->ops->watch(store, project, out, err);
}

void backend_watch_end(struct backend_watcher *w)
{
        if (w)
                w->ops->watch_end(w);
}

bool backend_watched(struct backend_store *store, struct str project)
{
        return store->ops->watched(store, project);
}

int backend_aside(struct backend_conv *conv, const char *name, struct backend_store **out,
    const struct env **env, struct steno_error *err)
{
        return conv->ops->aside ? conv->ops->aside(conv, name, out, env, err)
                                : backend_lacks(err, conv->ops, "way to complete a run in memory");
}

int backend_run_last(struct backend_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err)
{
        if (!conv->ops->run_last)
                return backend_lacks(err, conv->ops, "run_last");
        return conv->ops->run_last(conv, name, out, err);
}

bool backend_run_is_dead(struct backend_conv *conv, const char *name)
{
        return conv->ops->run_is_dead(conv, name);
}

void backend_run_settle(struct backend_conv *conv, const char *name)
{
        if (conv)
                conv->ops->run_settle(conv, name);
}

void backend_run_settle_all(struct backend_conv *conv)
{
        if (conv)
                conv->ops->run_settle_all(conv);
}

int backend_run_fence(struct backend_conv *conv, const char *name, struct steno_error *err)
{
        if (!conv->ops->run_fence)
                return backend_lacks(err, conv->ops, "run_fence");
        return conv->ops->run_fence(conv, name, err);
}

int backend_run_create(struct backend_conv *conv, struct str id, struct str mode,
    struct backend_run **out, struct steno_error *err)
{
        if (!conv->ops->run_create)
                return backend_lacks(err, conv->ops, "run_create");
        return conv->ops->run_create(conv, id, mode, out, err);
}

int backend_run_take_over(
    struct backend_conv *conv, const char *name, struct backend_run **out, struct steno_error *err)
{
        if (!conv->ops->run_take_over)
                return backend_lacks(err, conv->ops, "run_take_over");
        return conv->ops->run_take_over(conv, name, out, err);
}

void backend_run_close(struct backend_run *run)
{
        if (run)
                run->ops->run_close(run);
}

int backend_run_write(struct backend_run *run, struct str type, struct str data, bool sync,
    uint64_t *seq, struct steno_error *err)
{
        if (!run->ops->run_write)
                return backend_lacks(err, run->ops, "run_write");
        return run->ops->run_write(run, type, data, sync, seq, err);
}

int backend_run_read(struct backend_conv *conv, const char *name, uint64_t after, run_event_fn each,
    void *ctx, struct steno_error *err)
{
        if (!conv->ops->run_read)
                return backend_lacks(err, conv->ops, "run_read");
        return conv->ops->run_read(conv, name, after, each, ctx, err);
}

int backend_run_wait(struct backend_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err)
{
        if (!conv->ops->run_wait)
                return backend_lacks(err, conv->ops, "run_wait");
        return conv->ops->run_wait(conv, name, after, timeout_ms, err);
}

int backend_run_look(
    struct backend_conv *conv, const char *name, struct run_state *out, struct steno_error *err)
{
        if (!conv->ops->run_look)
                return backend_lacks(err, conv->ops, "run_look");
        return conv->ops->run_look(conv, name, out, err);
}

int backend_run_each(struct backend_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err)
{
        if (!conv->ops->run_each)
                return backend_lacks(err, conv->ops, "run_each");
        return conv->ops->run_each(conv, each, ctx, err);
}

int backend_run_find(struct backend_store *store, struct str project, const char *name,
    struct backend_conv **out, struct steno_error *err)
{
        if (!store->ops->run_find)
                return backend_lacks(err, store->ops, "run_find");
        return store->ops->run_find(store, project, name, out, err);
}

/* ---- what stands beside the records: outputs, terminals, parts ---- */

int backend_artifact_begin(struct backend_conv *conv, const char *kind, struct str want,
    struct str hint, struct backend_artifact **out, struct steno_error *err)
{
        if (!conv->ops->artifact_begin)
                return backend_lacks(err, conv->ops, "artifact_begin");
        return conv->ops->artifact_begin(conv, kind, want, hint, out, err);
}

int backend_artifact_begin_again(struct backend_conv *conv, const struct artifact_info *info,
    struct str want, struct backend_artifact **out, struct steno_error *err)
{
        if (!conv->ops->artifact_begin_again)
                return backend_lacks(err, conv->ops, "artifact_begin_again");
        return conv->ops->artifact_begin_again(conv, info, want, out, err);
}

const char *backend_artifact_id(const struct backend_artifact *a)
{
        return a->ops->artifact_id(a);
}

int backend_artifact_write(
    struct backend_artifact *a, const void *p, size_t n, struct steno_error *err)
{
        if (!a->ops->artifact_write)
                return backend_lacks(err, a->ops, "artifact_write");
        return a->ops->artifact_write(a, p, n, err);
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
        if (!a->ops->artifact_close)
                return backend_lacks(err, a->ops, "artifact_close");
        return a->ops->artifact_close(a, end, info, err);
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
        if (!conv->ops->artifact_find)
                return backend_lacks(err, conv->ops, "artifact_find");
        return conv->ops->artifact_find(conv, id, out, err);
}

int backend_artifact_each(struct backend_conv *conv,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err)
{
        if (!conv->ops->artifact_each)
                return backend_lacks(err, conv->ops, "artifact_each");
        return conv->ops->artifact_each(conv, each, ctx, err);
}

int backend_artifact_open(struct backend_conv *conv, const struct artifact_info *info,
    struct backend_reader **out, uint64_t *size, struct steno_error *err)
{
        if (!conv->ops->artifact_open)
                return backend_lacks(err, conv->ops, "artifact_open");
        return conv->ops->artifact_open(conv, info, out, size, err);
}

int backend_artifact_verify(
    struct backend_conv *conv, const struct artifact_info *info, struct steno_error *err)
{
        if (!conv->ops->artifact_verify)
                return backend_lacks(err, conv->ops, "artifact_verify");
        return conv->ops->artifact_verify(conv, info, err);
}

int backend_artifact_lines(struct backend_conv *conv, const struct artifact_info *info, char **p,
    size_t *n, struct steno_error *err)
{
        if (!conv->ops->artifact_lines)
                return backend_lacks(err, conv->ops, "artifact_lines");
        return conv->ops->artifact_lines(conv, info, p, n, err);
}

int backend_artifact_relist(struct backend_conv *conv, const struct artifact_info *said,
    struct str call, bool *done, struct steno_error *err)
{
        if (!conv->ops->artifact_relist)
                return backend_lacks(err, conv->ops, "artifact_relist");
        return conv->ops->artifact_relist(conv, said, call, done, err);
}

ssize_t backend_reader_read(
    struct backend_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        if (!r->ops->reader_read)
                return backend_lacks(err, r->ops, "reader_read");
        return r->ops->reader_read(r, at, p, n, err);
}

int backend_reader_map(struct backend_reader *r, size_t n, struct map *out)
{
        return r->ops->reader_map(r, n, out);
}

int backend_reader_whole(struct backend_reader *r, const struct artifact_info *info,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        if (!r->ops->reader_whole)
                return backend_lacks(err, r->ops, "reader_whole");
        return r->ops->reader_whole(r, info, sink, ctx, err);
}

void backend_reader_close(struct backend_reader *r)
{
        if (r)
                r->ops->reader_close(r);
}

int backend_part_put(
    struct backend_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err)
{
        if (!conv->ops->part_put)
                return backend_lacks(err, conv->ops, "part_put");
        return conv->ops->part_put(conv, token, name, err);
}

int backend_part_get(struct backend_conv *conv, struct str name, uint64_t size, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        if (!conv->ops->part_get)
                return backend_lacks(err, conv->ops, "part_get");
        return conv->ops->part_get(conv, name, size, sink, ctx, err);
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

/* ---- which conversations there are, and which words are in them ---- */

int backend_catch_up(struct backend_store *store, bool at_once, steno_progress progress,
    void *progress_ctx, struct backend_caught_up *out, struct steno_error *err)
{
        if (!store->ops->catch_up)
                return backend_lacks(err, store->ops, "catch_up");
        return store->ops->catch_up(store, at_once, progress, progress_ctx, out, err);
}

int backend_list(struct backend_store *store, const struct backend_query *q, char **json,
    struct steno_error *err)
{
        if (!store->ops->list)
                return backend_lacks(err, store->ops, "list");
        return store->ops->list(store, q, json, err);
}

int backend_list_each(struct backend_store *store,
    int (*each)(void *ctx, const struct backend_listed *row), void *ctx, struct steno_error *err)
{
        if (!store->ops->list_each)
                return backend_lacks(err, store->ops, "list_each");
        return store->ops->list_each(store, each, ctx, err);
}

int backend_totals(struct backend_store *store, struct backend_totals *out, struct steno_error *err)
{
        if (!store->ops->totals)
                return backend_lacks(err, store->ops, "totals");
        return store->ops->totals(store, out, err);
}

int backend_tally(struct backend_store *store, struct backend_tally *out, struct steno_error *err)
{
        if (!store->ops->tally)
                return backend_lacks(err, store->ops, "tally");
        return store->ops->tally(store, out, err);
}

int backend_unfinished(struct backend_store *store, const char *project, uint32_t max, char **json,
    struct steno_error *err)
{
        if (!store->ops->unfinished)
                return backend_lacks(err, store->ops, "unfinished");
        return store->ops->unfinished(store, project, max, json, err);
}

int backend_search_lock(struct backend_store *store, bool wait, struct steno_error *err)
{
        if (!store->ops->search_lock)
                return backend_lacks(err, store->ops, "search_lock");
        return store->ops->search_lock(store, wait, err);
}

void backend_search_unlock(struct backend_store *store)
{
        if (store)
                store->ops->search_unlock(store);
}

int backend_search_progress(
    struct backend_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err)
{
        if (!conv->ops->search_progress)
                return backend_lacks(err, conv->ops, "search_progress");
        return conv->ops->search_progress(conv, generation, seq, err);
}

int backend_search_each_conv(
    struct backend_store *store, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        if (!store->ops->search_each_conv)
                return backend_lacks(err, store->ops, "search_each_conv");
        return store->ops->search_each_conv(store, each, ctx, err);
}

int backend_search_begin(struct backend_conv *conv, uint64_t generation, struct steno_error *err)
{
        if (!conv->ops->search_begin)
                return backend_lacks(err, conv->ops, "search_begin");
        return conv->ops->search_begin(conv, generation, err);
}

int backend_search_add(
    struct backend_store *store, const struct search_block *b, struct steno_error *err)
{
        if (!store->ops->search_add)
                return backend_lacks(err, store->ops, "search_add");
        return store->ops->search_add(store, b, err);
}

int backend_search_commit(struct backend_store *store, uint64_t seq, struct steno_error *err)
{
        if (!store->ops->search_commit)
                return backend_lacks(err, store->ops, "search_commit");
        return store->ops->search_commit(store, seq, err);
}

int backend_search_forget(
    struct backend_store *store, const char *project, const char *id, struct steno_error *err)
{
        if (!store->ops->search_forget)
                return backend_lacks(err, store->ops, "search_forget");
        return store->ops->search_forget(store, project, id, err);
}

int backend_search_discard(struct backend_store *store, struct steno_error *err)
{
        if (!store->ops->search_discard)
                return backend_lacks(err, store->ops, "search_discard");
        return store->ops->search_discard(store, err);
}

int backend_search_each(struct backend_store *store, const struct search_ask *ask,
    search_hit_fn each, void *ctx, struct steno_error *err)
{
        if (!store->ops->search_each)
                return backend_lacks(err, store->ops, "search_each");
        return store->ops->search_each(store, ask, each, ctx, err);
}

/* ---- trash, purge and forks ---- */

int backend_trash_put(struct backend_conv *conv, char name[TRASH_NAME], struct steno_error *err)
{
        if (!conv->ops->trash_put)
                return backend_lacks(err, conv->ops, "trash_put");
        return conv->ops->trash_put(conv, name, err);
}

int backend_trash_list(
    struct backend_store *store, bool sizes, struct trash_list *out, struct steno_error *err)
{
        if (!store->ops->trash_list)
                return backend_lacks(err, store->ops, "trash_list");
        return store->ops->trash_list(store, sizes, out, err);
}

int backend_trash_open(struct backend_store *store, const struct trash_item *item,
    struct backend_conv **out, struct steno_error *err)
{
        if (!store->ops->trash_open)
                return backend_lacks(err, store->ops, "trash_open");
        return store->ops->trash_open(store, item, out, err);
}

int backend_trash_put_back(struct backend_store *store, const struct trash_item *item,
    const char *as, struct steno_error *err)
{
        if (!store->ops->trash_put_back)
                return backend_lacks(err, store->ops, "trash_put_back");
        return store->ops->trash_put_back(store, item, as, err);
}

int backend_trash_destroy(
    struct backend_store *store, const struct trash_item *item, struct steno_error *err)
{
        if (!store->ops->trash_destroy)
                return backend_lacks(err, store->ops, "trash_destroy");
        return store->ops->trash_destroy(store, item, err);
}

int backend_trash_sweep(struct backend_store *store, struct steno_error *err)
{
        if (!store->ops->trash_sweep)
                return backend_lacks(err, store->ops, "trash_sweep");
        return store->ops->trash_sweep(store, err);
}

int backend_purge(struct backend_conv *conv, struct purge_result *out, struct steno_error *err)
{
        if (!conv->ops->purge)
                return backend_lacks(err, conv->ops, "purge");
        return conv->ops->purge(conv, out, err);
}

int backend_fork(struct backend_conv *origin, const struct fork_request *request,
    struct backend_conv **out, uint64_t *seq, struct steno_error *err)
{
        if (!origin->ops->fork)
                return backend_lacks(err, origin->ops, "fork");
        return origin->ops->fork(origin, request, out, seq, err);
}

/* ---- seals of conversations, and the log of them ---- */

int backend_seal(struct backend_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err)
{
        if (!conv->ops->seal)
                return backend_lacks(err, conv->ops, "seal");
        return conv->ops->seal(conv, key, out, err);
}

enum seal_standing backend_seal_standing(struct backend_conv *conv)
{
        return conv->ops->seal_standing(conv);
}

uint64_t backend_seal_size(struct backend_conv *conv)
{
        return conv->ops->seal_size(conv);
}

int backend_seal_notes(struct backend_conv *conv, char **text, size_t *n, struct steno_error *err)
{
        if (!conv->ops->seal_notes)
                return backend_lacks(err, conv->ops, "seal_notes");
        return conv->ops->seal_notes(conv, text, n, err);
}

int backend_seal_prove(
    struct backend_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err)
{
        if (!conv->ops->seal_prove)
                return backend_lacks(err, conv->ops, "seal_prove");
        return conv->ops->seal_prove(conv, seq, out, err);
}

int backend_seal_name(struct backend_conv *conv, char out[SEAL_CONV], struct steno_error *err)
{
        if (!conv->ops->seal_name)
                return backend_lacks(err, conv->ops, "seal_name");
        return conv->ops->seal_name(conv, out, err);
}

bool backend_seal_has_log(struct backend_store *store)
{
        return store->ops->seal_has_log(store);
}

int backend_seal_log_read(
    struct backend_store *store, struct seal_log *out, struct steno_error *err)
{
        if (!store->ops->seal_log_read)
                return backend_lacks(err, store->ops, "seal_log_read");
        return store->ops->seal_log_read(store, out, err);
}

void backend_seal_log_call(struct backend_store *store, const char *conv, struct buf *out)
{
        if (store)
                store->ops->seal_log_call(store, conv, out);
}

int backend_seal_log_sign(
    struct backend_store *store, const struct note_key *key, struct steno_error *err)
{
        if (!store->ops->seal_log_sign)
                return backend_lacks(err, store->ops, "seal_log_sign");
        return store->ops->seal_log_sign(store, key, err);
}

int backend_seal_verify(
    struct backend_conv *conv, const char *name, struct seal_check *check, struct steno_error *err)
{
        if (!conv->ops->seal_verify)
                return backend_lacks(err, conv->ops, "seal_verify");
        return conv->ops->seal_verify(conv, name, check, err);
}

bool backend_seal_is_known(struct backend_conv *conv, const char *name, const struct seal_log *log)
{
        return conv->ops->seal_is_known(conv, name, log);
}

int backend_seal_verify_log(
    struct backend_store *store, struct seal_check *check, struct steno_error *err)
{
        if (!store->ops->seal_verify_log)
                return backend_lacks(err, store->ops, "seal_verify_log");
        return store->ops->seal_verify_log(store, check, err);
}

/* ---- conversations on their way out and in, copies, checks, and what belongs to the store ---- */

int backend_bundle_prepare(struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_bundle **out, struct steno_error *err)
{
        if (!conv->ops->bundle_prepare)
                return backend_lacks(err, conv->ops, "bundle_prepare");
        return conv->ops->bundle_prepare(conv, opt, out, err);
}

const struct bundle_view *backend_bundle_view(const struct backend_bundle *b)
{
        return b->ops->bundle_view(b);
}

int backend_bundle_add_text(
    struct backend_bundle *b, const char *name, struct str text, struct steno_error *err)
{
        if (!b->ops->bundle_add_text)
                return backend_lacks(err, b->ops, "bundle_add_text");
        return b->ops->bundle_add_text(b, name, text, err);
}

int backend_bundle_send(
    struct backend_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err)
{
        if (!b->ops->bundle_send)
                return backend_lacks(err, b->ops, "bundle_send");
        return b->ops->bundle_send(b, i, sink, ctx, err);
}

void backend_bundle_release(struct backend_bundle *b)
{
        if (b)
                b->ops->bundle_release(b);
}

int backend_incoming_open(
    struct backend_store *store, struct backend_incoming **out, struct steno_error *err)
{
        if (!store->ops->incoming_open)
                return backend_lacks(err, store->ops, "incoming_open");
        return store->ops->incoming_open(store, out, err);
}

void backend_incoming_close(struct backend_incoming *in)
{
        if (in)
                in->ops->incoming_close(in);
}

int backend_incoming_begin(struct backend_incoming *in, uint32_t number, struct steno_error *err)
{
        if (!in->ops->incoming_begin)
                return backend_lacks(err, in->ops, "incoming_begin");
        return in->ops->incoming_begin(in, number, err);
}

int backend_incoming_file(struct backend_incoming *in, const char *name, struct steno_error *err)
{
        if (!in->ops->incoming_file)
                return backend_lacks(err, in->ops, "incoming_file");
        return in->ops->incoming_file(in, name, err);
}

int backend_incoming_write(
    struct backend_incoming *in, const void *p, size_t n, struct steno_error *err)
{
        if (!in->ops->incoming_write)
                return backend_lacks(err, in->ops, "incoming_write");
        return in->ops->incoming_write(in, p, n, err);
}

int backend_incoming_file_end(struct backend_incoming *in, struct steno_error *err)
{
        if (!in->ops->incoming_file_end)
                return backend_lacks(err, in->ops, "incoming_file_end");
        return in->ops->incoming_file_end(in, err);
}

int backend_incoming_end(struct backend_incoming *in, struct str project, struct str id,
    bool renamed, bool trusted, struct steno_error *err)
{
        if (!in->ops->incoming_end)
                return backend_lacks(err, in->ops, "incoming_end");
        return in->ops->incoming_end(in, project, id, renamed, trusted, err);
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
        if (!in->ops->incoming_install)
                return backend_lacks(err, in->ops, "incoming_install");
        return in->ops->incoming_install(in, number, project, id, err);
}

int backend_backup(struct backend_store *store, const char *path, steno_progress progress,
    void *progress_ctx, char **report, struct steno_error *err)
{
        if (!store->ops->backup)
                return backend_lacks(err, store->ops, "backup");
        return store->ops->backup(store, path, progress, progress_ctx, report, err);
}

int backend_backup_stream(struct backend_store *store, const char *scratch, steno_sink sink,
    void *ctx, steno_progress progress, void *progress_ctx, char **report, struct steno_error *err)
{
        if (!store->ops->backup_stream)
                return backend_lacks(err, store->ops, "backup");
        return store->ops->backup_stream(
            store, scratch, sink, ctx, progress, progress_ctx, report, err);
}

int backend_check(struct backend_store *store, struct backend_check *check, struct steno_error *err)
{
        if (!store->ops->check)
                return backend_lacks(err, store->ops, "check");
        return store->ops->check(store, check, err);
}

int backend_lock(struct backend_store *store, const char *name, struct backend_lock **out,
    struct steno_error *err)
{
        if (!store->ops->lock)
                return backend_lacks(err, store->ops, "lock");
        return store->ops->lock(store, name, out, err);
}

void backend_unlock(struct backend_lock *lock)
{
        if (lock)
                lock->ops->unlock(lock);
}

int backend_document_read(struct backend_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err)
{
        if (!store->ops->document_read)
                return backend_lacks(err, store->ops, "document_read");
        return store->ops->document_read(store, name, max, text, n, stamp, err);
}

int backend_document_stamp(
    struct backend_store *store, const char *name, uint64_t *stamp, struct steno_error *err)
{
        if (!store->ops->document_stamp)
                return backend_lacks(err, store->ops, "document_stamp");
        return store->ops->document_stamp(store, name, stamp, err);
}

int backend_document_change(struct backend_store *store, const char *name, size_t max,
    int patience_ms, backend_change_fn change, void *ctx, struct steno_error *err)
{
        if (!store->ops->document_change)
                return backend_lacks(err, store->ops, "document_change");
        return store->ops->document_change(store, name, max, patience_ms, change, ctx, err);
}
