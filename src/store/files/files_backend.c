/*
 * files_backend.c - the embedded store as a kind of store (store/backend.h): nothing but the way
 * from a call to the function that does it.
 */
#include "store/files/files_backend.h"

static int do_open(const struct env *env, const char *where, uint32_t flags,
    struct backend_store **out, struct steno_error *err)
{
        return files_open(env, where, flags, (struct files_store **)out, err);
}

/* ---- a store, its conversations and their records ---- */

static void do_close(struct backend_store *store)
{
        files_close((struct files_store *)store);
}

static bool do_is_ours(const struct backend_store *store)
{
        return files_is_ours((const struct files_store *)store);
}

static void do_sync(struct backend_store *store)
{
        files_sync((struct files_store *)store);
}

static uint64_t do_quarantined(const struct backend_store *store)
{
        return files_quarantined((const struct files_store *)store);
}

static int do_settings(struct backend_store *store, char **json, struct steno_error *err)
{
        return files_settings((struct files_store *)store, json, err);
}

static int do_set_settings(
    struct backend_store *store, const char *json, size_t n, struct steno_error *err)
{
        return files_set_settings((struct files_store *)store, json, n, err);
}

static int do_conv_create(struct backend_store *store, struct str project, struct str id,
    struct str meta, struct backend_conv **out, struct steno_error *err)
{
        return files_conv_create(
            (struct files_store *)store, project, id, meta, (struct files_conv **)out, err);
}

static int do_conv_open(struct backend_store *store, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err)
{
        return files_conv_open(
            (struct files_store *)store, project, id, (struct files_conv **)out, err);
}

static void do_conv_release(struct backend_conv *conv)
{
        files_conv_release((struct files_conv *)conv);
}

static const char *do_conv_id(const struct backend_conv *conv)
{
        return files_conv_id((const struct files_conv *)conv);
}

static const char *do_conv_project(const struct backend_conv *conv)
{
        return files_conv_project((const struct files_conv *)conv);
}

static struct backend_store *do_conv_store(const struct backend_conv *conv)
{
        return (struct backend_store *)files_conv_store((const struct files_conv *)conv);
}

static int do_conv_meta(struct backend_conv *conv, char **json, size_t *n, struct steno_error *err)
{
        return files_conv_meta((struct files_conv *)conv, json, n, err);
}

static int do_conv_change_meta(
    struct backend_conv *conv, backend_change_fn change, void *ctx, struct steno_error *err)
{
        return files_conv_change_meta((struct files_conv *)conv, change, ctx, err);
}

static int do_conv_exclusively(
    struct backend_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err)
{
        return files_conv_exclusively((struct files_conv *)conv, work, ctx, err);
}

static int do_each_conv(struct backend_store *store, const char *project, backend_conv_fn each,
    void *ctx, struct steno_error *err)
{
        return files_each_name((struct files_store *)store, project, each, ctx, err);
}

static int do_append(struct backend_conv *conv, struct backend_batch *batch,
    struct backend_receipt *out, struct steno_error *err)
{
        return files_append((struct files_conv *)conv, batch, out, err);
}

static int do_read(struct backend_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        return files_read((struct files_conv *)conv, after, each, ctx, err);
}

static int do_read_last(struct backend_conv *conv, uint64_t count, backend_record_fn each,
    void *ctx, struct steno_error *err)
{
        return files_read_last((struct files_conv *)conv, count, each, ctx, err);
}

static int do_read_id(struct backend_conv *conv, struct str id, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        return files_read_id((struct files_conv *)conv, id, each, ctx, err);
}

static int do_read_amendments(
    struct backend_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err)
{
        return files_read_amendments((struct files_conv *)conv, each, ctx, err);
}

static int do_lookup_open(
    struct backend_conv *conv, struct backend_lookup **out, struct steno_error *err)
{
        return files_lookup_open((struct files_conv *)conv, (struct files_lookup **)out, err);
}

static int do_lookup_record(struct backend_lookup *l, uint64_t seq, backend_record_fn each,
    void *ctx, struct steno_error *err)
{
        return files_lookup_record((struct files_lookup *)l, seq, each, ctx, err);
}

static void do_lookup_close(struct backend_lookup *l)
{
        files_lookup_close((struct files_lookup *)l);
}

static int do_last(
    struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err)
{
        int rc = files_last((struct files_conv *)conv, seq, bytes, err);
        if (rc == 0 && bytes)
                *bytes += files_outputs_size((struct files_conv *)conv);
        return rc;
}

static uint64_t do_generation(struct backend_conv *conv)
{
        return files_generation((struct files_conv *)conv);
}

static int do_wait(
    struct backend_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err)
{
        return files_wait((struct files_conv *)conv, after, timeout_ms, err);
}

/* ---- runs and their journals ---- */

static int do_run_claim(
    struct backend_conv *conv, struct str id, struct backend_claim **out, struct steno_error *err)
{
        return run_claim((struct files_conv *)conv, id, (struct run_claim **)out, err);
}

static void do_run_claim_release(struct backend_claim *claim, bool finished)
{
        run_claim_release((struct run_claim *)claim, finished);
}

static int do_run_claim_check(struct backend_claim *claim, struct steno_error *err)
{
        return run_claim_check((struct run_claim *)claim, err);
}

static void do_run_claim_listen(struct backend_claim *claim, run_mail_fn fn, void *ctx)
{
        run_claim_listen((struct run_claim *)claim, fn, ctx);
}

static int do_run_mail_send(struct backend_conv *conv, struct str line, struct steno_error *err)
{
        return run_mail_send((struct files_conv *)conv, line, err);
}

static int do_watch(struct backend_store *store, struct str project, struct backend_watcher **out,
    struct steno_error *err)
{
        struct presence *p;
        int rc = presence_hold((struct files_store *)store, project, &p, err);
        if (rc == 0)
                *out = (struct backend_watcher *)p;
        return rc;
}

static void do_watch_end(struct backend_watcher *w)
{
        presence_release((struct presence *)w);
}

static bool do_watched(struct backend_store *store, struct str project)
{
        return presence_any((struct files_store *)store, project);
}

static int do_aside(struct backend_conv *conv, const char *name, struct backend_store **out,
    const struct env **env, struct steno_error *err)
{
        struct files_store *s;
        int rc = files_aside_open((struct files_conv *)conv, name, &s, err);
        if (rc == 0) {
                *out = (struct backend_store *)s;
                *env = files_env(s);
        }
        return rc;
}

static int do_run_last(struct backend_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err)
{
        return run_last((struct files_conv *)conv, name, out, err);
}

static bool do_run_is_dead(struct backend_conv *conv, const char *name)
{
        return run_is_dead((struct files_conv *)conv, name);
}

static void do_run_settle(struct backend_conv *conv, const char *name)
{
        run_settle((struct files_conv *)conv, name);
}

static void do_run_settle_all(struct backend_conv *conv)
{
        run_lease_settle((struct files_conv *)conv);
}

static int do_run_fence(struct backend_conv *conv, const char *name, struct steno_error *err)
{
        return run_lease_take_over((struct files_conv *)conv, name, err);
}

static int do_run_create(struct backend_conv *conv, struct str id, struct str mode,
    struct backend_run **out, struct steno_error *err)
{
        return run_create((struct files_conv *)conv, id, mode, (struct run_log **)out, err);
}

static int do_run_take_over(
    struct backend_conv *conv, const char *name, struct backend_run **out, struct steno_error *err)
{
        return run_take_over((struct files_conv *)conv, name, (struct run_log **)out, err);
}

static void do_run_close(struct backend_run *run)
{
        run_log_close((struct run_log *)run);
}

static int do_run_write(struct backend_run *run, struct str type, struct str data, bool sync,
    uint64_t *seq, struct steno_error *err)
{
        return run_write((struct run_log *)run, type, data, sync, seq, err);
}

static int do_run_read(struct backend_conv *conv, const char *name, uint64_t after,
    run_event_fn each, void *ctx, struct steno_error *err)
{
        return run_read((struct files_conv *)conv, name, after, each, ctx, err);
}

static int do_run_wait(struct backend_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err)
{
        return run_wait((struct files_conv *)conv, name, after, timeout_ms, err);
}

static int do_run_look(
    struct backend_conv *conv, const char *name, struct run_state *out, struct steno_error *err)
{
        return run_look((struct files_conv *)conv, name, out, err);
}

static int do_run_each(struct backend_conv *conv, int (*each)(void *ctx, const char *name),
    void *ctx, struct steno_error *err)
{
        return run_each((struct files_conv *)conv, each, ctx, err);
}

static int do_run_find(struct backend_store *store, struct str project, const char *name,
    struct backend_conv **out, struct steno_error *err)
{
        return files_run_find(
            (struct files_store *)store, project, name, (struct files_conv **)out, err);
}

/* ---- what stands beside the records: outputs, terminals, parts ---- */

static int do_artifact_begin(struct backend_conv *conv, const char *kind, struct str want,
    struct str hint, struct backend_artifact **out, struct steno_error *err)
{
        return artifact_begin(
            (struct files_conv *)conv, kind, want, hint, (struct artifact **)out, err);
}

static int do_artifact_begin_again(struct backend_conv *conv, const struct artifact_info *info,
    struct str want, struct backend_artifact **out, struct steno_error *err)
{
        return artifact_begin_again(
            (struct files_conv *)conv, info, want, (struct artifact **)out, err);
}

static const char *do_artifact_id(const struct backend_artifact *a)
{
        return artifact_id((const struct artifact *)a);
}

static int do_artifact_write(
    struct backend_artifact *a, const void *p, size_t n, struct steno_error *err)
{
        return artifact_write((struct artifact *)a, p, n, err);
}

static void do_artifact_lift_quota(struct backend_artifact *a)
{
        artifact_lift_quota((struct artifact *)a);
}

static void do_set_quota(
    struct backend_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx)
{
        quota_set((struct files_store *)store, quota, warn, ctx);
}

static void do_artifact_index(struct backend_artifact *a, struct str bytes)
{
        artifact_index((struct artifact *)a, bytes);
}

static int do_artifact_close(struct backend_artifact *a, const struct artifact_end *end,
    struct artifact_info *info, struct steno_error *err)
{
        return artifact_close((struct artifact *)a, end, info, err);
}

static void do_artifact_free(struct backend_artifact *a)
{
        artifact_free((struct artifact *)a);
}

static void do_artifact_undo(struct backend_conv *conv, const char *id)
{
        artifact_undo((struct files_conv *)conv, id);
}

static int do_artifact_find(
    struct backend_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err)
{
        return artifact_find((struct files_conv *)conv, id, out, err);
}

static int do_artifact_each(struct backend_conv *conv,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err)
{
        return artifact_each((struct files_conv *)conv, each, ctx, err);
}

static int do_artifact_open(struct backend_conv *conv, const struct artifact_info *info,
    struct backend_reader **out, uint64_t *size, struct steno_error *err)
{
        return files_artifact_open(
            (struct files_conv *)conv, info, (struct files_reader **)out, size, err);
}

static int do_artifact_verify(
    struct backend_conv *conv, const struct artifact_info *info, struct steno_error *err)
{
        return artifact_verify((struct files_conv *)conv, info, err);
}

static int do_artifact_lines(struct backend_conv *conv, const struct artifact_info *info, char **p,
    size_t *n, struct steno_error *err)
{
        return artifact_lines((struct files_conv *)conv, info, p, n, err);
}

static int do_artifact_relist(struct backend_conv *conv, const struct artifact_info *said,
    struct str call, bool *done, struct steno_error *err)
{
        return relist((struct files_conv *)conv, said, call, done, err);
}

static ssize_t do_reader_read(
    struct backend_reader *r, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        return files_reader_read((struct files_reader *)r, at, p, n, err);
}

static int do_reader_whole(struct backend_reader *r, const struct artifact_info *info,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        return files_reader_whole((struct files_reader *)r, info, sink, ctx, err);
}

static void do_reader_close(struct backend_reader *r)
{
        files_reader_close((struct files_reader *)r);
}

static int do_part_put(
    struct backend_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err)
{
        return part_put((struct files_conv *)conv, token, name, err);
}

static int do_part_get(struct backend_conv *conv, struct str name, uint64_t size, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        return part_get((struct files_conv *)conv, name, size, sink, ctx, err);
}

static void do_figures_add(struct backend_store *store, const struct figures *more)
{
        figures_add((struct files_store *)store, more);
}

static void do_figures_get(struct backend_store *store, struct figures *out)
{
        figures_get((struct files_store *)store, out);
}

/* ---- which conversations there are, and which words are in them ---- */

static int do_catch_up(struct backend_store *store, bool at_once, steno_progress progress,
    void *progress_ctx, struct backend_caught_up *out, struct steno_error *err)
{
        return files_catch_up(
            (struct files_store *)store, at_once, progress, progress_ctx, out, err);
}

static int do_list(struct backend_store *store, const struct backend_query *q, char **json,
    struct steno_error *err)
{
        return files_list((struct files_store *)store, q, json, err);
}

static int do_list_each(struct backend_store *store,
    int (*each)(void *ctx, const struct backend_listed *row), void *ctx, struct steno_error *err)
{
        return files_list_each((struct files_store *)store, each, ctx, err);
}

static int do_totals(
    struct backend_store *store, struct backend_totals *out, struct steno_error *err)
{
        return files_totals((struct files_store *)store, out, err);
}

static int do_tally(struct backend_store *store, struct backend_tally *out, struct steno_error *err)
{
        return files_tally((struct files_store *)store, out, err);
}

static int do_unfinished(struct backend_store *store, const char *project, uint32_t max,
    char **json, struct steno_error *err)
{
        return files_unfinished((struct files_store *)store, project, max, json, err);
}

static int do_search_lock(struct backend_store *store, bool wait, struct steno_error *err)
{
        return files_search_lock((struct files_store *)store, wait, err);
}

static void do_search_unlock(struct backend_store *store)
{
        files_search_unlock((struct files_store *)store);
}

static int do_search_progress(
    struct backend_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err)
{
        return files_search_progress((struct files_conv *)conv, generation, seq, err);
}

static int do_search_each_conv(
    struct backend_store *store, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        return files_search_each_conv((struct files_store *)store, each, ctx, err);
}

static int do_search_begin(struct backend_conv *conv, uint64_t generation, struct steno_error *err)
{
        return files_search_begin((struct files_conv *)conv, generation, err);
}

static int do_search_add(
    struct backend_store *store, const struct search_block *b, struct steno_error *err)
{
        return files_search_add((struct files_store *)store, b, err);
}

static int do_search_commit(struct backend_store *store, uint64_t seq, struct steno_error *err)
{
        return files_search_commit((struct files_store *)store, seq, err);
}

static int do_search_forget(
    struct backend_store *store, const char *project, const char *id, struct steno_error *err)
{
        return files_search_forget((struct files_store *)store, project, id, err);
}

static int do_search_discard(struct backend_store *store, struct steno_error *err)
{
        return files_search_discard((struct files_store *)store, err);
}

static int do_search_each(struct backend_store *store, const struct search_ask *ask,
    search_hit_fn each, void *ctx, struct steno_error *err)
{
        return files_search_each((struct files_store *)store, ask, each, ctx, err);
}

/* ---- trash, purge and forks ---- */

static int do_trash_put(struct backend_conv *conv, char name[TRASH_NAME], struct steno_error *err)
{
        return trash_put((struct files_conv *)conv, name, err);
}

static int do_trash_list(
    struct backend_store *store, bool sizes, struct trash_list *out, struct steno_error *err)
{
        return trash_list_read((struct files_store *)store, sizes, out, err);
}

static int do_trash_open(struct backend_store *store, const struct trash_item *item,
    struct backend_conv **out, struct steno_error *err)
{
        return files_conv_open_trashed((struct files_store *)store, item->name,
            str_of(item->project), str_of(item->id), (struct files_conv **)out, err);
}

static int do_trash_put_back(struct backend_store *store, const struct trash_item *item,
    const char *as, struct steno_error *err)
{
        return trash_put_back((struct files_store *)store, item, as, err);
}

static int do_trash_destroy(
    struct backend_store *store, const struct trash_item *item, struct steno_error *err)
{
        return trash_destroy((struct files_store *)store, item, err);
}

static int do_trash_sweep(struct backend_store *store, struct steno_error *err)
{
        return trash_sweep((struct files_store *)store, err);
}

static int do_purge(struct backend_conv *conv, struct purge_result *out, struct steno_error *err)
{
        return purge_conv((struct files_conv *)conv, out, err);
}

static int do_fork(struct backend_conv *origin, const struct fork_request *request,
    struct backend_conv **out, uint64_t *seq, struct steno_error *err)
{
        return fork_conv((struct files_conv *)origin, request, (struct files_conv **)out, seq, err);
}

/* ---- seals of conversations, and the log of them ---- */

static int do_seal(struct backend_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err)
{
        return seal_conv((struct files_conv *)conv, key, out, err);
}

static enum seal_standing do_seal_standing(struct backend_conv *conv)
{
        return files_seal_standing((struct files_conv *)conv);
}

static uint64_t do_seal_size(struct backend_conv *conv)
{
        return seal_size((struct files_conv *)conv);
}

static int do_seal_notes(struct backend_conv *conv, char **text, size_t *n, struct steno_error *err)
{
        return seal_read_notes((struct files_conv *)conv, text, n, err);
}

static int do_seal_prove(
    struct backend_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err)
{
        return seal_prove((struct files_conv *)conv, seq, out, err);
}

static int do_seal_name(struct backend_conv *conv, char out[SEAL_CONV], struct steno_error *err)
{
        return files_seal_name((struct files_conv *)conv, out, err);
}

static bool do_seal_has_log(struct backend_store *store)
{
        return files_seal_has_log((struct files_store *)store);
}

static int do_seal_log_read(
    struct backend_store *store, struct seal_log *out, struct steno_error *err)
{
        return seal_log_read((struct files_store *)store, out, err);
}

static void do_seal_log_call(struct backend_store *store, const char *conv, struct buf *out)
{
        seal_log_call((struct files_store *)store, conv, out);
}

static int do_seal_log_sign(
    struct backend_store *store, const struct note_key *key, struct steno_error *err)
{
        return seal_log_sign((struct files_store *)store, key, err);
}

static int do_seal_verify(
    struct backend_conv *conv, const char *name, struct seal_check *check, struct steno_error *err)
{
        return seal_verify((struct files_conv *)conv, name, check, err);
}

static bool do_seal_is_known(
    struct backend_conv *conv, const char *name, const struct seal_log *log)
{
        return seal_is_known((struct files_conv *)conv, name, log);
}

static int do_seal_verify_log(
    struct backend_store *store, struct seal_check *check, struct steno_error *err)
{
        return ((void)store, seal_verify_log(check, err));
}

/* ---- conversations on their way out and in, copies, checks, and what belongs to the store ---- */

static int do_bundle_prepare(struct backend_conv *conv, const struct bundle_options *opt,
    struct backend_bundle **out, struct steno_error *err)
{
        return files_bundle_prepare(
            (struct files_conv *)conv, opt, (struct files_bundle **)out, err);
}

static const struct bundle_view *do_bundle_view(const struct backend_bundle *b)
{
        return files_bundle_view((const struct files_bundle *)b);
}

static int do_bundle_add_text(
    struct backend_bundle *b, const char *name, struct str text, struct steno_error *err)
{
        return files_bundle_add_text((struct files_bundle *)b, name, text, err);
}

static int do_bundle_send(
    struct backend_bundle *b, size_t i, steno_sink sink, void *ctx, struct steno_error *err)
{
        return files_bundle_send((struct files_bundle *)b, i, sink, ctx, err);
}

static void do_bundle_release(struct backend_bundle *b)
{
        files_bundle_release((struct files_bundle *)b);
}

static int do_incoming_open(
    struct backend_store *store, struct backend_incoming **out, struct steno_error *err)
{
        return files_incoming_open((struct files_store *)store, (struct files_incoming **)out, err);
}

static void do_incoming_close(struct backend_incoming *in)
{
        files_incoming_close((struct files_incoming *)in);
}

static int do_incoming_begin(struct backend_incoming *in, uint32_t number, struct steno_error *err)
{
        return files_incoming_begin((struct files_incoming *)in, number, err);
}

static int do_incoming_file(struct backend_incoming *in, const char *name, struct steno_error *err)
{
        return files_incoming_file((struct files_incoming *)in, name, err);
}

static int do_incoming_write(
    struct backend_incoming *in, const void *p, size_t n, struct steno_error *err)
{
        return files_incoming_write((struct files_incoming *)in, p, n, err);
}

static int do_incoming_file_end(struct backend_incoming *in, struct steno_error *err)
{
        return files_incoming_file_end((struct files_incoming *)in, err);
}

static int do_incoming_end(struct backend_incoming *in, struct str project, struct str id,
    bool renamed, bool trusted, struct steno_error *err)
{
        return files_incoming_end((struct files_incoming *)in, project, id, renamed, trusted, err);
}

static int do_incoming_look(struct backend_incoming *in, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err)
{
        return files_incoming_look(
            (struct files_incoming *)in, project, id, (struct files_conv **)out, err);
}

static int do_incoming_install(struct backend_incoming *in, uint32_t number, struct str project,
    struct str id, struct steno_error *err)
{
        return files_incoming_install((struct files_incoming *)in, number, project, id, err);
}

static int do_backup(struct backend_store *store, const char *path,
    const struct backend_backup *asked, char **report, struct steno_error *err)
{
        return backup_store((struct files_store *)store, path, asked, report, err);
}

static int do_backup_stream(struct backend_store *store, const char *scratch, steno_sink sink,
    void *ctx, const struct backend_backup *asked, char **report, struct steno_error *err)
{
        return backup_store_stream(
            (struct files_store *)store, scratch, sink, ctx, asked, report, err);
}

static int do_check(
    struct backend_store *store, struct backend_check *check, struct steno_error *err)
{
        return files_check_store((struct files_store *)store, check, err);
}

static int do_lock(struct backend_store *store, const char *name, struct backend_lock **out,
    struct steno_error *err)
{
        return files_lock((struct files_store *)store, name, (struct files_lock **)out, err);
}

static void do_unlock(struct backend_lock *lock)
{
        files_unlock((struct files_lock *)lock);
}

static int do_document_read(struct backend_store *store, const char *name, size_t max, char **text,
    size_t *n, uint64_t *stamp, struct steno_error *err)
{
        return files_document_read((struct files_store *)store, name, max, text, n, stamp, err);
}

static int do_document_stamp(
    struct backend_store *store, const char *name, uint64_t *stamp, struct steno_error *err)
{
        return files_document_stamp((struct files_store *)store, name, stamp, err);
}

static int do_document_change(struct backend_store *store, const char *name, size_t max,
    int patience_ms, backend_change_fn change, void *ctx, struct steno_error *err)
{
        return files_document_change(
            (struct files_store *)store, name, max, patience_ms, change, ctx, err);
}

const struct steno_backend files_backend = {
    .name = "files",
    .disks = &disk_calls,
    .open = do_open,
    .restore = backup_restore,
    .restore_stream = backup_restore_stream,
    .close = do_close,
    .is_ours = do_is_ours,
    .sync = do_sync,
    .quarantined = do_quarantined,
    .settings = do_settings,
    .set_settings = do_set_settings,
    .conv_create = do_conv_create,
    .conv_open = do_conv_open,
    .conv_release = do_conv_release,
    .conv_id = do_conv_id,
    .conv_project = do_conv_project,
    .conv_store = do_conv_store,
    .conv_meta = do_conv_meta,
    .conv_change_meta = do_conv_change_meta,
    .conv_exclusively = do_conv_exclusively,
    .each_conv = do_each_conv,
    .append = do_append,
    .read = do_read,
    .read_last = do_read_last,
    .read_id = do_read_id,
    .read_amendments = do_read_amendments,
    .lookup_open = do_lookup_open,
    .lookup_record = do_lookup_record,
    .lookup_close = do_lookup_close,
    .last = do_last,
    .generation = do_generation,
    .wait = do_wait,
    .run_claim = do_run_claim,
    .run_claim_release = do_run_claim_release,
    .run_claim_check = do_run_claim_check,
    .run_claim_listen = do_run_claim_listen,
    .run_mail_send = do_run_mail_send,
    .watch = do_watch,
    .watch_end = do_watch_end,
    .watched = do_watched,
    .aside = do_aside,
    .run_last = do_run_last,
    .run_is_dead = do_run_is_dead,
    .run_settle = do_run_settle,
    .run_settle_all = do_run_settle_all,
    .run_fence = do_run_fence,
    .run_create = do_run_create,
    .run_take_over = do_run_take_over,
    .run_close = do_run_close,
    .run_write = do_run_write,
    .run_read = do_run_read,
    .run_wait = do_run_wait,
    .run_look = do_run_look,
    .run_each = do_run_each,
    .run_find = do_run_find,
    .artifact_begin = do_artifact_begin,
    .artifact_begin_again = do_artifact_begin_again,
    .artifact_id = do_artifact_id,
    .artifact_write = do_artifact_write,
    .artifact_lift_quota = do_artifact_lift_quota,
    .artifact_index = do_artifact_index,
    .artifact_close = do_artifact_close,
    .artifact_free = do_artifact_free,
    .artifact_undo = do_artifact_undo,
    .artifact_find = do_artifact_find,
    .artifact_each = do_artifact_each,
    .artifact_open = do_artifact_open,
    .artifact_verify = do_artifact_verify,
    .artifact_lines = do_artifact_lines,
    .artifact_relist = do_artifact_relist,
    .reader_read = do_reader_read,
    .reader_whole = do_reader_whole,
    .reader_close = do_reader_close,
    .part_put = do_part_put,
    .part_get = do_part_get,
    .set_quota = do_set_quota,
    .figures_add = do_figures_add,
    .figures_get = do_figures_get,
    .catch_up = do_catch_up,
    .list = do_list,
    .list_each = do_list_each,
    .totals = do_totals,
    .tally = do_tally,
    .unfinished = do_unfinished,
    .search_lock = do_search_lock,
    .search_unlock = do_search_unlock,
    .search_progress = do_search_progress,
    .search_each_conv = do_search_each_conv,
    .search_begin = do_search_begin,
    .search_add = do_search_add,
    .search_commit = do_search_commit,
    .search_forget = do_search_forget,
    .search_discard = do_search_discard,
    .search_each = do_search_each,
    .trash_put = do_trash_put,
    .trash_list = do_trash_list,
    .trash_open = do_trash_open,
    .trash_put_back = do_trash_put_back,
    .trash_destroy = do_trash_destroy,
    .trash_sweep = do_trash_sweep,
    .purge = do_purge,
    .fork = do_fork,
    .seal = do_seal,
    .seal_standing = do_seal_standing,
    .seal_size = do_seal_size,
    .seal_notes = do_seal_notes,
    .seal_prove = do_seal_prove,
    .seal_name = do_seal_name,
    .seal_has_log = do_seal_has_log,
    .seal_log_read = do_seal_log_read,
    .seal_log_call = do_seal_log_call,
    .seal_log_sign = do_seal_log_sign,
    .seal_verify = do_seal_verify,
    .seal_is_known = do_seal_is_known,
    .seal_verify_log = do_seal_verify_log,
    .bundle_prepare = do_bundle_prepare,
    .bundle_view = do_bundle_view,
    .bundle_add_text = do_bundle_add_text,
    .bundle_send = do_bundle_send,
    .bundle_release = do_bundle_release,
    .incoming_open = do_incoming_open,
    .incoming_close = do_incoming_close,
    .incoming_begin = do_incoming_begin,
    .incoming_file = do_incoming_file,
    .incoming_write = do_incoming_write,
    .incoming_file_end = do_incoming_file_end,
    .incoming_end = do_incoming_end,
    .incoming_look = do_incoming_look,
    .incoming_install = do_incoming_install,
    .backup = do_backup,
    .backup_stream = do_backup_stream,
    .check = do_check,
    .lock = do_lock,
    .unlock = do_unlock,
    .document_read = do_document_read,
    .document_stamp = do_document_stamp,
    .document_change = do_document_change,
};
