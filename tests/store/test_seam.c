/*
 * test_seam.c - everything that the library does with a store goes through store/backend.h: a kind
 * of store that counts sees every slot called, no file is touched outside of a call, and a kind
 * that fails at any call gives an error and breaks nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/api_store.h"
#include "base/buf.h"
#include "base/limits.h"
#include "steno.h"
#include "steno_bundle.h"
#include "steno_import.h"
#include "steno_seal.h"
#include "steno_search.h"
#include "support/probe.h"
#include "support/scratch.h"
#include "support/seed.h"
#include "store/play.h"

struct day {
        struct scratch scratch;
        struct env env;
        struct steno_store *store;
        struct steno_conv *conv;
        char *key;
        struct buf bundle;
        int failures; /* calls that answered an error */
};

/* Counts an error; a day continues after it. */
static int took(struct day *d, int rc)
{
        d->failures += rc < 0;
        return rc;
}

static int take_bytes(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static int ignore_bytes(void *ctx, const void *p, size_t n)
{
        (void)ctx, (void)p, (void)n;
        return 0;
}

static int ignore_record(void *ctx, const struct steno_record *r)
{
        char *json = NULL;
        size_t n;
        (void)ctx;
        if (steno_record_original(r, &json, &n, NULL) == 0)
                steno_free(json);
        return 0;
}

static int ignore_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        (void)ctx, (void)seq, (void)at, (void)type, (void)data, (void)n;
        return 0;
}

static int ignore_finding(void *ctx, const char *json)
{
        (void)ctx, (void)json;
        return 0;
}

static void ignore_mail(void *ctx, const char *approval, bool allow)
{
        (void)ctx, (void)approval, (void)allow;
}

static int say(struct day *d, const char *json)
{
        return took(d, steno_append(d->conv, json, strlen(json), NULL, NULL, NULL));
}

/* ---- the parts of a day ---- */

static int open_store(struct day *d)
{
        struct steno_open_options opt = {.size = sizeof opt, .seal_key = d->key};
        return took(
            d, api_store_open_on(&probe_backend, &d->env, d->scratch.path, &opt, &d->store, NULL));
}

static void talk(struct day *d)
{
        char *large = malloc(600 * 1024);
        assert_non_null(large);
        memset(large, 'a', 600 * 1024);
        say(d, "{\"id\":\"m1\",\"role\":\"user\",\"content\":\"find the needle\"}");
        say(d, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
               "\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}");
        /* A large value of a message that is no output becomes a part. */
        struct buf b;
        buf_init(&b, 0);
        buf_puts(&b, "{\"id\":\"m2\",\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"");
        buf_put(&b, large, 200 * 1024);
        buf_puts(&b, "\",\"raw\":\"");
        buf_put(&b, large, 300 * 1024);
        buf_puts(&b, "\"}");
        took(d, steno_append(d->conv, b.p, b.n, NULL, NULL, NULL));
        took(d, steno_append(d->conv, b.p, b.n, NULL, NULL, NULL)); /* brings back what was lost */
        buf_release(&b);
        free(large);
        say(d, "{\"id\":\"m3\",\"role\":\"user\",\"content\":\"forget this\"}");
        took(d, steno_amend(d->conv, "delete", "m3", NULL, 0, NULL, NULL, NULL));
        uint64_t last = 0;
        took(d, steno_conv_last_seq(d->conv, &last, NULL));
        took(d, steno_conv_wait(d->conv, last, 1, NULL));
        took(d, steno_read(d->conv, 0, 0, ignore_record, NULL, NULL));
        took(d, steno_read_id(d->conv, "m1", ignore_record, NULL, NULL));
        took(d, steno_read_amendments(d->conv, ignore_record, NULL, NULL));
        struct steno_view_options view = {.size = sizeof view, .format = "openai"};
        took(d, steno_view(d->conv, &view, ignore_bytes, NULL, NULL, NULL));
        view.outputs = STENO_OUTPUTS_FULL;
        took(d, steno_view(d->conv, &view, ignore_bytes, NULL, NULL, NULL));
        char *json = NULL;
        if (took(d, steno_conv_set_meta(d->conv, "{\"title\":\"day\"}", NULL)) == 0 &&
            took(d, steno_conv_meta(d->conv, &json, NULL)) == 0)
                steno_free(json);
}

static void call(struct day *d, const char *op, const char *args)
{
        char *json = NULL;
        if (took(d, steno_context(d->conv, op, args, strlen(args), &json, NULL)) == 0)
                steno_free(json);
}

static void look_at_outputs(struct day *d)
{
        struct steno_output_options opt = {.size = sizeof opt, .call_id = "c2", .tool = "t"};
        struct steno_output *o = NULL;
        char ref[64] = "", args[160], *json = NULL;
        say(d, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c2\","
               "\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}");
        if (took(d, steno_output_begin(d->conv, &opt, &o, NULL)) == 0) {
                struct buf lines;
                buf_init(&lines, 0);
                for (int i = 0; i < 4000; i++)
                        buf_printf(&lines, "line %d of an output with a needle\n", i);
                took(d, steno_output_write(o, lines.p, lines.n, NULL));
                buf_release(&lines);
                if (steno_output_ref(o))
                        snprintf(ref, sizeof ref, "%s", steno_output_ref(o));
                if (took(d, steno_output_finish(o, NULL, &json, NULL)) == 0)
                        steno_free(json);
                steno_output_free(o);
        }
        call(d, "list", "{}");
        snprintf(args, sizeof args, "{\"ref\":\"%s\",\"pattern\":\"needle\",\"line\":100}", ref);
        call(d, "read", args);
        call(d, "tail", args);
        call(d, "grep", args);
        took(d, steno_context_raw(d->conv, ref, 0, 0, ignore_bytes, NULL, NULL));
        took(d, steno_context_raw(d->conv, ref, 10, 10, ignore_bytes, NULL, NULL));
}

static void run(struct day *d)
{
        struct steno_run *run = NULL;
        struct steno_watcher *watcher = NULL;
        char *json = NULL;
        static const char RESULT[] = "{\"id\":\"r\",\"role\":\"tool\",\"tool_call_id\":\"c3\","
                                     "\"content\":\"done\"}";
        say(d, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c3\","
               "\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}");
        /* The first one dies with an outcome that never reached the log. */
        if (took(d, steno_run_begin(d->conv, "r1", "chat", &run, NULL)) == 0) {
                took(d, steno_run_dispatch(run, 1, "c3", "t", "{}", 2, NULL));
                took(d, steno_run_outcome(run, 1, "c3", RESULT, sizeof RESULT - 1, NULL));
                steno_run_close(run);
        }
        if (took(d, steno_run_begin(d->conv, "r2", "chat", &run, NULL)) == 0) {
                steno_run_listen(run, ignore_mail, NULL);
                took(d, steno_run_event(run, "note", "{}", 2, STENO_FULL, NULL, NULL));
                took(d, steno_run_check(run, NULL));
                took(d, steno_run_stop(d->store, NULL, "r2", NULL));
                took(d, steno_run_wait(d->store, NULL, "r2", 0, 1, NULL));
                took(d, steno_run_event(run, "run_finished", "{\"reason\":\"stop\"}", 17,
                            STENO_FULL, NULL, NULL));
                steno_run_close(run);
        }
        if (took(d, steno_watch_begin(d->store, NULL, &watcher, NULL)) == 0) {
                steno_watched(d->store, NULL);
                steno_watch_end(watcher);
        }
        took(d, steno_run_read(d->store, NULL, "r2", 0, ignore_event, NULL, NULL));
        if (took(d, steno_run_info(d->store, NULL, "r2", &json, NULL)) == 0)
                steno_free(json);
        if (took(d, steno_run_list(d->conv, &json, NULL)) == 0)
                steno_free(json);
        took(d, steno_recover(d->store, NULL, NULL));
}

static void find(struct day *d)
{
        char *json = NULL;
        struct steno_search_options opt = {.size = sizeof opt, .query = "needle"};
        if (took(d, steno_list(d->store, NULL, NULL, &json, NULL)) == 0)
                steno_free(json);
        took(d, steno_search_index(d->store, 60000, NULL, NULL));
        if (took(d, steno_search(d->store, &opt, &json, NULL)) == 0)
                steno_free(json);
        if (took(d, steno_stats(d->store, &json, NULL)) == 0)
                steno_free(json);
}

static void seal(struct day *d)
{
        char *json = NULL;
        struct steno_verify_options opt = {.size = sizeof opt};
        took(d, steno_seal(d->store, NULL, NULL, NULL, NULL, NULL, NULL));
        took(d, steno_verify(d->store, &opt, ignore_finding, NULL, NULL, NULL));
        if (took(d, steno_prove(d->conv, 1, &json, NULL)) == 0)
                steno_free(json);
        if (took(d, steno_seal_state(d->conv, &json, NULL)) == 0)
                steno_free(json);
}

struct taking {
        struct buf *from;
        size_t at;
};

static long give_bytes(void *ctx, void *p, size_t n)
{
        struct taking *t = ctx;
        size_t left = t->from->n - t->at;
        n = n < left ? n : left;
        memcpy(p, t->from->p + t->at, n);
        t->at += n;
        return (long)n;
}

static void move(struct day *d)
{
        struct steno_import_options in = {.size = sizeof in, .flags = STENO_IMPORT_NEW_IDS};
        struct steno_fork_options fork = {.size = sizeof fork, .id = "f"};
        struct steno_conv *forked = NULL;
        struct taking taking = {&d->bundle, 0};
        char path[300];
        static const char SAID[] = "{\"type\":\"user\",\"sessionId\":\"s1\",\"uuid\":\"u1\","
                                   "\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":"
                                   "{\"role\":\"user\",\"content\":\"hello\"}}\n";
        if (took(d, steno_fork(d->conv, &fork, &forked, NULL)) == 0)
                steno_conv_close(forked);
        buf_clear(&d->bundle);
        took(d, steno_export(d->store, NULL, NULL, 0, NULL, take_bytes, &d->bundle, NULL, NULL));
        took(d, steno_import_bundle(d->store, &in, give_bytes, &taking, NULL, NULL));
        steno_import_transcript(
            d->store, NULL, "s1.jsonl", SAID, sizeof SAID - 1, NULL, NULL); /* locks imports */
        snprintf(path, sizeof path, "%s.backup", d->scratch.path);
        took(d, steno_backup(d->store, path, NULL, NULL, NULL, NULL));
        snprintf(path, sizeof path, "%s.scratch", d->scratch.path);
        took(d, steno_backup_stream(d->store, path, ignore_bytes, NULL, NULL, NULL, NULL, NULL));
        took(d, steno_export_redacted(d->conv, "md", "secrets", ignore_bytes, NULL, NULL, NULL));
}

static void remove_some(struct day *d)
{
        char *json = NULL;
        struct steno_check_options check = {.size = sizeof check};
        took(d, steno_remove(d->store, NULL, "f", NULL, NULL));
        if (took(d, steno_trash_list(d->store, &json, NULL)) == 0)
                steno_free(json);
        struct steno_verify_options verify = {.size = sizeof verify};
        took(d, steno_verify(d->store, &verify, ignore_finding, NULL, NULL, NULL));
        took(d, steno_trash_restore(d->store, NULL, "f", NULL, NULL));
        took(d, steno_remove(d->store, NULL, "f", NULL, NULL));
        took(d, steno_trash_empty(d->store, 0, NULL, NULL));
        took(d, steno_purge(d->store, NULL, "c", NULL, NULL));
        took(d, steno_check(d->store, &check, ignore_finding, NULL, NULL));
}

static void live(struct day *d)
{
        if (open_store(d))
                return;
        if (took(d, steno_conv_create(d->store, NULL, "c", NULL, &d->conv, NULL)) == 0) {
                talk(d);
                look_at_outputs(d);
                run(d);
                find(d);
                seal(d);
                move(d);
                remove_some(d);
                steno_quarantined(d->store);
                steno_conv_close(d->conv);
        }
        steno_close(d->store);
        d->store = NULL;
        d->conv = NULL;
}

/* ---- tests ---- */

static void begin(struct day *d)
{
        memset(d, 0, sizeof *d);
        assert_int_equal(scratch_make(&d->scratch), 0);
        d->env = *env_real();
        d->env.fs = play_fs();
        buf_init(&d->bundle, 0);
        assert_int_equal(steno_key_new("test", &d->key, NULL), 0);
}

static void end(struct day *d)
{
        char backup[300];
        snprintf(backup, sizeof backup, "%s.backup", d->scratch.path);
        const struct fs *fs = fs_real();
        int here = fs->open_root(fs, "/", false);
        fs_remove_tree(fs, here, backup + 1);
        fs->close(fs, here);
        scratch_remove(&d->scratch);
        buf_release(&d->bundle);
        steno_free(d->key);
}

/* Slots that no public call needs on a store without damage. */
static bool is_for_another_day(const char *slot)
{
        static const char *const NAMES[] = {
            "restore",              /* needs no store, */
            "migrate",              /* nor does this, */
            "restore_stream",       /* nor does this */
            "set_settings",         /* steno_init */
            "artifact_begin_again", /* after a loss */
            "artifact_index",       /* of millions of lines */
            "artifact_relist",
            "artifact_undo",
            "search_discard",
            "run_settle_all",
            "seal_log_call",       /* of one that has vanished */
            "aside",               /* by one who may not write */
            "artifact_lift_quota", /* at a quota */
            "conv_store",          /* where a fork asks its origin about runs */
            "document_stamp",
            "document_change",
        };
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (strcmp(slot, NAMES[i]) == 0)
                        return true;
        return false;
}

static void every_slot_is_called(void **state)
{
        struct day d;
        (void)state;
        begin(&d);
        probe_watch(&files_backend);
        live(&d);
        assert_int_equal(d.failures, 0);
        for (size_t i = 0; i < probe_count; i++)
                if (probe_calls(i) == 0 && !is_for_another_day(probe_names[i]))
                        fail_msg("nothing calls the slot %s", probe_names[i]);
        end(&d);
}

static const struct fs *watched;
static pthread_t watcher;
static unsigned long outside;

static int look(const struct fs *self, int dir, const char *path, int flags, mode_t mode)
{
        (void)self;
        outside += pthread_equal(pthread_self(), watcher) && !probe_is_inside();
        return watched->open(watched, dir, path, flags, mode);
}

static int look_at(const struct fs *self, int dir, const char *path, struct stat *st)
{
        (void)self;
        outside += pthread_equal(pthread_self(), watcher) && !probe_is_inside();
        return watched->stat(watched, dir, path, st);
}

static ssize_t look_into(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        (void)self;
        outside += pthread_equal(pthread_self(), watcher) && !probe_is_inside();
        return watched->pread(watched, fd, p, n, at);
}

static void no_file_is_touched_outside_of_a_call(void **state)
{
        struct day d;
        struct fs fs = *play_fs();
        (void)state;
        begin(&d);
        watched = play_fs();
        watcher = pthread_self();
        outside = 0;
        fs.open = look;
        fs.stat = look_at;
        fs.pread = look_into;
        d.env.fs = &fs;
        probe_watch(&files_backend);
        live(&d);
        assert_int_equal(d.failures, 0);
        assert_int_equal(outside, 0);
        end(&d);
}

static int count_finding(void *ctx, const char *json)
{
        (void)json;
        ++*(int *)ctx;
        return 0;
}

/* After a failure the store opens and is in order, as after a kill. */
static void check_after(struct day *d, unsigned long n, const char *slot)
{
        struct steno_store *store;
        struct steno_error err = {0};
        struct steno_check_options opt = {.size = sizeof opt, .repair = true};
        int findings = 0;
        if (steno_open(d->scratch.path, NULL, &store, &err))
                fail_msg("call %lu, %s: the store does not open: %s", n, slot, err.msg);
        if (steno_check(store, &opt, count_finding, &findings, &err) < 0)
                fail_msg("call %lu, %s: the store cannot be checked: %s", n, slot, err.msg);
        opt.repair = false;
        if (steno_check(store, &opt, count_finding, &findings, &err) != 0)
                fail_msg("call %lu, %s: the store is not in order after a repair", n, slot);
        steno_close(store);
}

/* A slot that changes something, or that is all that a call was for, does not fail unnoticed. */
static bool must_be_told(const char *slot)
{
        static const char *const NAMES[] = {"open", "settings", "conv_create", "conv_change_meta",
            "append", "part_put", "artifact_begin", "artifact_write", "artifact_close", "run_claim",
            "run_create", "run_mail_send", "wait", "run_wait", "artifact_each", "list", "totals",
            "tally", "search_each", "trash_put", "trash_list", "trash_put_back", "trash_destroy",
            "trash_sweep", "purge", "fork", "seal", "seal_prove", "seal_log_sign", "bundle_prepare",
            "bundle_send", "bundle_add_text", "incoming_open", "incoming_begin", "incoming_file",
            "incoming_write", "incoming_file_end", "incoming_end", "incoming_install",
            "incoming_look", "backup", "backup_stream", "check"};
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (strcmp(slot, NAMES[i]) == 0)
                        return true;
        return false;
}

static void a_failing_call_is_an_error_and_breaks_nothing(void **state)
{
        struct day d;
        unsigned long step = seed_rounds(20) == 20 ? 1 : 23 * (unsigned long)seed_every(4), n = 1;
        (void)state;
        for (;; n += step) {
                begin(&d);
                probe_watch(&files_backend);
                probe_fail_at(n);
                live(&d);
                const char *slot = probe_failed();
                if (slot && d.failures == 0 && must_be_told(slot))
                        fail_msg("call %lu, %s: it failed, and nobody was told", n, slot);
                probe_fail_at(0);
                if (slot)
                        check_after(&d, n, slot);
                end(&d);
                if (!slot)
                        break;
        }
        print_message("%lu calls could fail; every %lu-th did\n", n, step);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_slot_is_called),
            cmocka_unit_test(no_file_is_touched_outside_of_a_call),
            cmocka_unit_test(a_failing_call_is_an_error_and_breaks_nothing),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
