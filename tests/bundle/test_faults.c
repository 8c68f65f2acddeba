/*
 * test_faults.c - forks, exports, imports, backups and seals on a disk that fails and in a process
 * that runs out of memory: at each call in turn, once and from then on for good. What fails says
 * so, what says it is done is right, and the store is in order afterwards with every message it
 * had.
 */
#include "bundle/history.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "api/api_store.h"
#include "base/env.h"
#include "steno_bundle.h"
#include "steno_import.h"
#include "steno_seal.h"
#include "support/failalloc.h"
#include "support/faultfs.h"

struct world {
        struct scratch scratch;
        struct env env;
        struct steno_store *store;
        struct steno_conv *conv;
        struct buf good;   /* what the conversation shows */
        struct buf bundle; /* and exports */
        struct buf out;    /* what an operation gave */
        char *key;
        bool failing; /* something goes wrong on purpose */
};

static int take(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static void remove_path(const char *path)
{
        char parent[320];
        const char *name = strrchr(path, '/') + 1;
        const struct fs *fs = fs_real();
        snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path);
        int dir = fs->open_root(fs, parent, false);
        assert_true(dir >= 0);
        fs_remove_tree(fs, dir, name);
        fs->close(fs, dir);
}

struct giving {
        struct str left;
};

static long give(void *ctx, void *p, size_t n)
{
        struct giving *g = ctx;
        n = n < g->left.n ? n : g->left.n;
        memcpy(p, g->left.p, n);
        g->left = str_span(g->left.p + n, g->left.n - n);
        return (long)n;
}

/* ---- what reports success is correct ---- */

/* Of a conversation as it is on the disk, without the faults of the world in which it was made. */
static void check_copy(struct world *w, const char *root, const char *id, const char *what)
{
        struct steno_view_options view = {
            .size = sizeof view, .format = "openai", .outputs = STENO_OUTPUTS_FULL};
        struct steno_store *store = NULL;
        struct steno_conv *conv = NULL;
        struct buf shown;
        struct steno_error err = {0};
        buf_init(&shown, 0);
        bool paused = failalloc_pause();
        int rc = steno_open(root, NULL, &store, &err);
        if (rc == 0)
                rc = steno_conv_open(store, NULL, id, &conv, &err);
        if (rc == 0)
                rc = steno_view(conv, &view, take, &shown, NULL, &err);
        if (rc)
                fail_msg("%s that succeeded cannot be read: %s", what, err.msg);
        if (shown.n != w->good.n || memcmp(shown.p, w->good.p, shown.n) != 0)
                fail_msg("%s that succeeded lacks something", what);
        steno_conv_close(conv);
        steno_close(store);
        buf_release(&shown);
        failalloc_resume(paused);
}

/* ---- the operations ---- */

static int do_fork(struct world *w, struct steno_error *err)
{
        struct steno_conv *fork = NULL;
        int rc = steno_fork(w->conv, NULL, &fork, err);
        if (rc)
                return rc;
        check_copy(w, w->scratch.path, steno_conv_id(fork), "a fork");
        steno_conv_close(fork);
        return 0;
}

static int do_export(struct world *w, struct steno_error *err)
{
        static const char *const IDS[] = {"c"};
        buf_clear(&w->out);
        int rc = steno_export(w->store, NULL, IDS, 1, NULL, take, &w->out, NULL, err);
        /* The transcript for people leaves out what it cannot read, and goes on. */
        bool same = w->out.n == w->bundle.n && memcmp(w->out.p, w->bundle.p, w->out.n) == 0;
        if (rc == 0 && !w->out.failed && !w->failing && !same)
                fail_msg("an export that succeeded gave other bytes");
        return rc;
}

static int do_redact(struct world *w, struct steno_error *err)
{
        buf_clear(&w->out);
        int rc = steno_export_redacted(w->conv, "md", "secrets", take, &w->out, NULL, err);
        if (rc == 0 && !w->out.failed && memmem(w->out.p, w->out.n, "sk-abcdefghij", 13))
                fail_msg("a masked export that succeeded let a secret through");
        return rc;
}

static int do_import(struct world *w, struct steno_error *err)
{
        struct steno_import_options opt = {.size = sizeof opt, .flags = STENO_IMPORT_NEW_IDS};
        struct giving g = {buf_str(&w->bundle)};
        char *report = NULL, id[64] = "";
        int rc = steno_import_bundle(w->store, &opt, give, &g, &report, err);
        if (rc == 0 && sscanf(strstr(report, "\"id\":\"") + 6, "%63[^\"]", id) == 1)
                check_copy(w, w->scratch.path, id, "an import");
        steno_free(report);
        return rc;
}

static int do_transcript(struct world *w, struct steno_error *err)
{
        static const char TEXT[] =
            "{\"timestamp\":\"2026-11-15T14:32:52.000Z\",\"type\":\"session_meta\",\"payload\":{"
            "\"id\":\"t\",\"base_instructions\":{\"text\":\"Be brief.\"}}}\n"
            "{\"timestamp\":\"2026-11-15T14:32:53.000Z\",\"type\":\"response_item\",\"payload\":{"
            "\"type\":\"message\",\"id\":\"u1\",\"role\":\"user\",\"content\":[{\"type\":"
            "\"input_text\",\"text\":\"hello\"}]}}\n";
        return steno_import_transcript(w->store, NULL, "t.jsonl", TEXT, sizeof TEXT - 1, NULL, err);
}

static int do_backup(struct world *w, struct steno_error *err)
{
        char path[300];
        snprintf(path, sizeof path, "%s.backup", w->scratch.path);
        int rc = steno_backup(w->store, path, NULL, NULL, NULL, err);
        if (rc == 0)
                check_copy(w, path, "c", "a backup");
        return rc;
}

/* Restores what the sink got. */
static void check_file(struct world *w, const char *beside)
{
        char path[320];
        struct giving g = {buf_str(&w->out)};
        struct steno_error err = {0};
        snprintf(path, sizeof path, "%s.restored", beside);
        bool paused = failalloc_pause();
        if (steno_restore_stream(give, &g, path, NULL, &err))
                fail_msg("a backup that succeeded is not restored: %s", err.msg);
        check_copy(w, path, "c", "a backup in one file");
        remove_path(path);
        failalloc_resume(paused);
}

static int do_backup_file(struct world *w, struct steno_error *err)
{
        char path[300];
        snprintf(path, sizeof path, "%s.scratch", w->scratch.path);
        buf_clear(&w->out);
        int rc = steno_backup_stream(w->store, path, take, &w->out, NULL, NULL, NULL, err);
        if (rc == 0 && !w->out.failed)
                check_file(w, path);
        return rc;
}

static int do_seal(struct world *w, struct steno_error *err)
{
        return steno_seal(w->store, NULL, "c", NULL, NULL, NULL, err);
}

static const struct operation {
        const char *name;
        int (*act)(struct world *w, struct steno_error *err);
} OPERATIONS[] = {
    {"a fork", do_fork},
    {"an export", do_export},
    {"a masked export", do_redact},
    {"an import of a bundle", do_import},
    {"an import of a transcript", do_transcript},
    {"a backup", do_backup},
    {"a backup in one file", do_backup_file},
    {"a seal", do_seal},
};

/* ---- the world ---- */

static int note_finding(void *ctx, const char *json)
{
        if (ctx)
                snprintf(ctx, 400, "%s", json);
        return 0;
}

static void open_world(struct world *w, const struct fs *fs)
{
        struct steno_open_options opt = {.size = sizeof opt, .seal_key = w->key};
        w->env = *env_real();
        w->env.fs = fs;
        OK(api_store_open_in(&w->env, w->scratch.path, &opt, &w->store, &err));
        OK(steno_conv_open(w->store, NULL, "c", &w->conv, &err));
}

static void close_world(struct world *w)
{
        steno_conv_close(w->conv);
        steno_close(w->store);
        w->conv = NULL;
        w->store = NULL;
}

static void show(struct world *w, struct buf *out)
{
        struct steno_view_options view = {
            .size = sizeof view, .format = "openai", .outputs = STENO_OUTPUTS_FULL};
        buf_clear(out);
        OK(steno_view(w->conv, &view, take, out, NULL, &err));
}

static void make_world(struct world *w)
{
        static const char *const IDS[] = {"c"};
        struct fixture f = {0};
        struct seed seed = {0};
        memset(w, 0, sizeof *w);
        buf_init(&w->good, 0);
        buf_init(&w->bundle, 0);
        buf_init(&w->out, 0);
        OK(steno_key_new("test", &w->key, &err));
        assert_int_equal(scratch_make(&f.scratch), 0);
        OK(steno_open(f.scratch.path, NULL, &f.store, &err));
        OK(steno_conv_create(f.store, NULL, "c", NULL, &f.conv, &err));
        struct history h = {.conv = f.conv, .seed = &seed};
        fixture_append(&f, "{\"role\":\"user\",\"content\":\"key sk-abcdefghijklmnopqrstuvwx\"}");
        for (int i = 0; i < 3; i++) {
                history_say(&h);
                history_call(&h);
        }
        history_amend(&h);
        fixture_close(&f);
        w->scratch = f.scratch;
        open_world(w, fs_real());
        show(w, &w->good);
        OK(steno_export(w->store, NULL, IDS, 1, NULL, take, &w->bundle, NULL, &err));
        close_world(w);
}

static void remove_beside(struct world *w, const char *end)
{
        char path[320];
        snprintf(path, sizeof path, "%s%s", w->scratch.path, end);
        remove_path(path);
}

static void free_world(struct world *w)
{
        remove_beside(w, ".backup");
        remove_beside(w, ".scratch");
        scratch_remove(&w->scratch);
        buf_release(&w->good);
        buf_release(&w->bundle);
        buf_release(&w->out);
        steno_free(w->key);
}

/* Whatever happened, one repair puts everything in order, as it was. */
static void check_world(struct world *w, const char *what, long n)
{
        struct steno_check_options opt = {.size = sizeof opt, .repair = true};
        open_world(w, fs_real());
        steno_check(w->store, &opt, note_finding, NULL, NULL);
        opt.repair = false;
        struct steno_error err = {0};
        char found[400] = "";
        int left = steno_check(w->store, &opt, note_finding, found, &err);
        if (left)
                fail_msg("%s, call %ld: a repair leaves %s%s", what, n, found, err.msg);
        show(w, &w->out);
        if (w->out.n != w->good.n || memcmp(w->out.p, w->good.p, w->good.n) != 0)
                fail_msg("%s, call %ld: the conversation shows something else", what, n);
        /* And the operation can still be done. */
        for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
                if (strcmp(OPERATIONS[i].name, what) == 0 && OPERATIONS[i].act(w, &err))
                        fail_msg("%s, call %ld: later it fails as well: %s", what, n, err.msg);
        close_world(w);
}

/* ---- sweeps ---- */

static int remove_copy(void *ctx, const char *name, unsigned char type)
{
        int dir = *(int *)ctx;
        (void)type;
        return strcmp(name, "c") == 0 ? 0 : fs_remove_tree(fs_real(), dir, name);
}

/* Removes what earlier rounds made of the conversation, so that a round costs the same however many
 * came before it. */
static void remove_copies(struct world *w)
{
        char path[sizeof w->scratch.path + 64];
        const struct fs *fs = fs_real();
        snprintf(path, sizeof path, "%s/projects/default/conversations", w->scratch.path);
        int dir = fs->open_root(fs, path, false);
        assert_true(dir >= 0);
        assert_int_equal(fs->list(fs, dir, remove_copy, &dir), 0);
        fs->close(fs, dir);
}

/* A failure has a reason, and the code fits the reason. An errno in place of the code would mean
 * something else (-EIO is "there is no such conversation"). */
static void check_answer(const struct operation *op, long n, int rc, const struct steno_error *err)
{
        if (rc && !err->msg[0])
                fail_msg("%s, call %ld: it fails without a reason", op->name, n);
        if (rc && rc != err->code)
                fail_msg("%s, call %ld: it returns %d, and says %d: %s", op->name, n, rc, err->code,
                    err->msg);
}

static void on_a_failing_disk(void **state)
{
        const struct operation *op = *state;
        struct seed seed = seed_start();
        static const int ERRORS[] = {EIO, ENOSPC};
        long runs = 0, every = seed_rounds(20) == 20 ? 1 : 20;
        struct world w;
        make_world(&w);
        for (int i = 0; i < 4; i++) {
                struct faultfs_plan plan = {.err = ERRORS[i / 2],
                    .calls = (i / 2 ? (unsigned)FAULT_SPACE : FAULT_ANY) &
                             ~(i % 2 ? (unsigned)FAULT_FLOCK : 0),
                    .for_good = i % 2};
                long n = 0;
                for (long k = 0; k == 0 || plan.nth <= n; k++) {
                        struct faultfs *f = faultfs_new(fs_real());
                        struct steno_error err = {0};
                        remove_copies(&w);
                        open_world(&w, faultfs_fs(f));
                        faultfs_arm(f, &plan);
                        w.failing = true;
                        int rc = op->act(&w, &err);
                        w.failing = false;
                        if (plan.nth == 0)
                                n = faultfs_matched(f);
                        bool fired = faultfs_fired(f) > 0;
                        faultfs_arm(f, NULL);
                        close_world(&w);
                        faultfs_free(f);
                        if (rc && !fired)
                                fail_msg("%s fails without a fault: %s", op->name, err.msg);
                        check_answer(op, plan.nth, rc, &err);
                        check_world(&w, op->name, plan.nth);
                        plan.nth = plan.nth ? plan.nth + every
                                            : 1 + (long)seed_below(&seed, (uint64_t)every);
                        runs++;
                }
        }
        free_world(&w);
        printf("# %ld runs\n", runs);
}

static void out_of_memory(void **state)
{
        const struct operation *op = *state;
        struct seed seed = seed_start();
        long runs = 0, every = seed_rounds(20) == 20 ? 1 : 20;
        struct world w;
        make_world(&w);
        for (int good = 0; good < 2; good++) {
                bool fired = true;
                for (long n = 1 + (long)seed_below(&seed, (uint64_t)every); fired; n += every) {
                        struct steno_error err = {0};
                        remove_copies(&w);
                        open_world(&w, fs_real());
                        /* The buffer that takes the bytes belongs to this test. */
                        buf_reserve(&w.out, 4 * 1024 * 1024);
                        w.failing = true;
                        (good ? failalloc_start_for_good : failalloc_start)(n);
                        int rc = op->act(&w, &err);
                        fired = failalloc_stop();
                        w.failing = false;
                        if (rc && !fired)
                                fail_msg("%s fails with all its memory: %s", op->name, err.msg);
                        check_answer(op, n, rc, &err);
                        close_world(&w);
                        check_world(&w, op->name, n);
                        runs++;
                }
        }
        free_world(&w);
        printf("# %ld runs\n", runs);
}

/* ---- a check ---- */

/* Changes a bit in the middle of the first file of a folder of the conversation. */
static int change_bit(void *ctx, const char *name, unsigned char type)
{
        int dir = *(int *)ctx;
        const struct fs *fs = fs_real();
        struct stat st;
        char byte;
        (void)type;
        int fd = fs->open(fs, dir, name, O_RDWR, 0);
        assert_true(fd >= 0);
        assert_int_equal(fs->fstat(fs, fd, &st), 0);
        assert_int_equal(fs->pread(fs, fd, &byte, 1, st.st_size / 2), 1);
        byte ^= 1;
        assert_int_equal(fs->pwrite(fs, fd, &byte, 1, st.st_size / 2), 1);
        fs->close(fs, fd);
        return 1;
}

static void damage(struct world *w, const char *folder)
{
        char path[sizeof w->scratch.path + 100];
        const struct fs *fs = fs_real();
        snprintf(path, sizeof path, "%s/projects/default/conversations/c/artifacts/%s",
            w->scratch.path, folder);
        int dir = fs->open_root(fs, path, false);
        assert_true(dir >= 0);
        assert_int_equal(fs->list(fs, dir, change_bit, &dir), 1);
        fs->close(fs, dir);
}

/* -EIO is the number of "there is no such conversation": because of a folder that could not be
 * listed, a conversation once counted as removed, and a check said that all was well. */
static void never_says_that_damage_is_fine(void **state)
{
        struct seed seed = seed_start();
        long runs = 0, every = seed_rounds(20) == 20 ? 1 : 7;
        const char *folder = *state;
        struct world w;
        make_world(&w);
        damage(&w, folder);
        for (int good = 0; good < 2; good++) {
                struct faultfs_plan plan = {.err = EIO, .for_good = good};
                plan.nth = 1 + (long)seed_below(&seed, (uint64_t)every);
                for (bool fired = true; fired; plan.nth += every, runs++) {
                        struct steno_check_options opt = {.size = sizeof opt};
                        struct faultfs *f = faultfs_new(fs_real());
                        struct steno_error err = {0};
                        open_world(&w, faultfs_fs(f));
                        faultfs_arm(f, &plan);
                        int found = steno_check(w.store, &opt, note_finding, NULL, &err);
                        fired = faultfs_fired(f) > 0;
                        faultfs_arm(f, NULL);
                        close_world(&w);
                        faultfs_free(f);
                        if (found == 0)
                                fail_msg("call %ld: the damage is not found", plan.nth);
                }
        }
        free_world(&w);
        printf("# %ld runs\n", runs);
}

#define COUNT (sizeof OPERATIONS / sizeof *OPERATIONS)

int main(void)
{
        static char part[] = "parts", output[] = "tool";
        static struct CMUnitTest tests[2 * COUNT + 2] = {
            [2 * COUNT] = {.name =
                               "a check on a failing disk never says that a damaged part is fine",
                .test_func = never_says_that_damage_is_fine,
                .initial_state = part},
            [2 * COUNT + 1] = {.name =
                                   "a check on a failing disk never says that a damaged output is "
                                   "fine",
                .test_func = never_says_that_damage_is_fine,
                .initial_state = output},
        };
        static char names[2 * COUNT][120];
        cmocka_set_message_output(CM_OUTPUT_TAP);
        for (size_t i = 0; i < COUNT; i++) {
                snprintf(names[2 * i], sizeof names[0], "%s on a failing disk breaks nothing",
                    OPERATIONS[i].name);
                snprintf(names[2 * i + 1], sizeof names[0], "%s without memory breaks nothing",
                    OPERATIONS[i].name);
                tests[2 * i] = (struct CMUnitTest){.name = names[2 * i],
                    .test_func = on_a_failing_disk,
                    .initial_state = (void *)(uintptr_t)&OPERATIONS[i]};
                tests[2 * i + 1] = (struct CMUnitTest){.name = names[2 * i + 1],
                    .test_func = out_of_memory,
                    .initial_state = (void *)(uintptr_t)&OPERATIONS[i]};
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
