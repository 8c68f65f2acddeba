/*
 * files_backend.c - the embedded store as a kind of store (store/backend.h): nothing but the way
 * from a call to the function that does it.
 *
 * The functions of this folder know its own structs, and those of the table the handles of
 * backend.h. For every CALL below, make_casts.py writes a function that is between the two.
 */
#include "store/files/files_backend.h"

#include "files_casts.h"

/* ---- calls that are not one of this folder's ---- */

static int do_last(
    struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err)
{
        int rc = files_last((struct files_conv *)conv, seq, bytes, err);
        if (rc == 0 && bytes)
                *bytes += files_outputs_size((struct files_conv *)conv);
        return rc;
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

static int do_trash_open(struct backend_store *store, const struct trash_item *item,
    struct backend_conv **out, struct steno_error *err)
{
        return files_conv_open_trashed((struct files_store *)store, item->name,
            str_of(item->project), str_of(item->id), (struct files_conv **)out, err);
}

static int do_seal_verify_log(
    struct backend_store *store, struct seal_check *check, struct steno_error *err)
{
        return ((void)store, seal_verify_log(check, err));
}

/* ---- the table ---- */

#define CALL(slot, function) .slot = cast_##slot

const struct steno_backend files_backend = {
    .name = "files",
    .disks = &disk_calls,
    CALL(open, files_open),
    .restore = backup_restore,
    .restore_stream = backup_restore_stream,
    CALL(close, files_close),
    CALL(is_ours, files_is_ours),
    CALL(sync, files_sync),
    CALL(quarantined, files_quarantined),
    CALL(settings, files_settings),
    CALL(set_settings, files_set_settings),
    CALL(conv_create, files_conv_create),
    CALL(conv_open, files_conv_open),
    CALL(conv_release, files_conv_release),
    CALL(conv_id, files_conv_id),
    CALL(conv_project, files_conv_project),
    CALL(conv_store, files_conv_store),
    CALL(conv_meta, files_conv_meta),
    CALL(conv_change_meta, files_conv_change_meta),
    CALL(conv_exclusively, files_conv_exclusively),
    CALL(each_conv, files_each_name),
    CALL(append, files_append),
    CALL(read, files_read),
    CALL(read_last, files_read_last),
    CALL(read_id, files_read_id),
    CALL(read_amendments, files_read_amendments),
    CALL(lookup_open, files_lookup_open),
    CALL(lookup_record, files_lookup_record),
    CALL(lookup_close, files_lookup_close),
    .last = do_last,
    CALL(generation, files_generation),
    CALL(wait, files_wait),
    CALL(run_claim, run_claim),
    CALL(run_claim_release, run_claim_release),
    CALL(run_claim_check, run_claim_check),
    CALL(run_claim_listen, run_claim_listen),
    CALL(run_mail_send, run_mail_send),
    .watch = do_watch,
    CALL(watch_end, presence_release),
    CALL(watched, presence_any),
    .aside = do_aside,
    CALL(run_last, run_last),
    CALL(run_is_dead, run_is_dead),
    CALL(run_settle, run_settle),
    CALL(run_settle_all, run_lease_settle),
    CALL(run_fence, run_lease_take_over),
    CALL(run_create, run_create),
    CALL(run_take_over, run_take_over),
    CALL(run_close, run_log_close),
    CALL(run_write, run_write),
    CALL(run_read, run_read),
    CALL(run_wait, run_wait),
    CALL(run_look, run_look),
    CALL(run_each, run_each),
    CALL(run_find, files_run_find),
    CALL(artifact_begin, artifact_begin),
    CALL(artifact_begin_again, artifact_begin_again),
    CALL(artifact_id, artifact_id),
    CALL(artifact_write, artifact_write),
    CALL(artifact_lift_quota, artifact_lift_quota),
    CALL(artifact_index, artifact_index),
    CALL(artifact_close, artifact_close),
    CALL(artifact_free, artifact_free),
    CALL(artifact_undo, artifact_undo),
    CALL(artifact_find, artifact_find),
    CALL(artifact_each, artifact_each),
    CALL(artifact_open, files_artifact_open),
    CALL(artifact_verify, artifact_verify),
    CALL(artifact_lines, artifact_lines),
    CALL(artifact_relist, relist),
    CALL(reader_read, files_reader_read),
    CALL(reader_whole, files_reader_whole),
    CALL(reader_close, files_reader_close),
    CALL(part_put, part_put),
    CALL(part_get, part_get),
    CALL(set_quota, quota_set),
    CALL(figures_add, figures_add),
    CALL(figures_get, figures_get),
    CALL(catch_up, files_catch_up),
    CALL(list, files_list),
    CALL(list_each, files_list_each),
    CALL(totals, files_totals),
    CALL(tally, files_tally),
    CALL(unfinished, files_unfinished),
    CALL(search_lock, files_search_lock),
    CALL(search_unlock, files_search_unlock),
    CALL(search_progress, files_search_progress),
    CALL(search_each_conv, files_search_each_conv),
    CALL(search_begin, files_search_begin),
    CALL(search_add, files_search_add),
    CALL(search_commit, files_search_commit),
    CALL(search_forget, files_search_forget),
    CALL(search_discard, files_search_discard),
    CALL(search_each, files_search_each),
    CALL(trash_put, trash_put),
    CALL(trash_list, trash_list_read),
    .trash_open = do_trash_open,
    CALL(trash_put_back, trash_put_back),
    CALL(trash_destroy, trash_destroy),
    CALL(trash_sweep, trash_sweep),
    CALL(purge, purge_conv),
    CALL(fork, fork_conv),
    CALL(seal, seal_conv),
    CALL(seal_standing, files_seal_standing),
    CALL(seal_size, seal_size),
    CALL(seal_notes, seal_read_notes),
    CALL(seal_prove, seal_prove),
    CALL(seal_name, files_seal_name),
    CALL(seal_has_log, files_seal_has_log),
    CALL(seal_log_read, seal_log_read),
    CALL(seal_log_call, seal_log_call),
    CALL(seal_log_sign, seal_log_sign),
    CALL(seal_verify, seal_verify),
    CALL(seal_is_known, seal_is_known),
    .seal_verify_log = do_seal_verify_log,
    CALL(bundle_prepare, files_bundle_prepare),
    CALL(bundle_view, files_bundle_view),
    CALL(bundle_add_text, files_bundle_add_text),
    CALL(bundle_send, files_bundle_send),
    CALL(bundle_release, files_bundle_release),
    CALL(incoming_open, files_incoming_open),
    CALL(incoming_close, files_incoming_close),
    CALL(incoming_begin, files_incoming_begin),
    CALL(incoming_file, files_incoming_file),
    CALL(incoming_write, files_incoming_write),
    CALL(incoming_file_end, files_incoming_file_end),
    CALL(incoming_end, files_incoming_end),
    CALL(incoming_look, files_incoming_look),
    CALL(incoming_install, files_incoming_install),
    CALL(backup, backup_store),
    CALL(backup_stream, backup_store_stream),
    CALL(check, files_check_store),
    CALL(lock, files_lock),
    CALL(unlock, files_unlock),
    CALL(document_read, files_document_read),
    CALL(document_stamp, files_document_stamp),
    CALL(document_change, files_document_change),
};
