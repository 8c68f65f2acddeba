/* Faults: the n-th call goes wrong, no other does, and the helpers of fs.h stand it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "faultfs.h"
#include "scratch.h"

struct ground {
        struct scratch scratch;
        struct faultfs *f;
        const struct fs *fs;
        int root;
};

static int ground_make(void **state)
{
        struct ground *g = calloc(1, sizeof(*g));

        if (scratch_make(&g->scratch) < 0)
                return -1;
        g->f = faultfs_new(fs_real());
        g->fs = faultfs_fs(g->f);
        g->root = g->fs->open_root(g->fs, g->scratch.path, false);
        *state = g;
        return g->root < 0 ? -1 : 0;
}

static int ground_drop(void **state)
{
        struct ground *g = *state;

        faultfs_arm(g->f, NULL);
        g->fs->close(g->fs, g->root);
        faultfs_free(g->f);
        int rc = scratch_remove(&g->scratch);
        free(g);
        return rc;
}

static int create(struct ground *g, const char *name)
{
        int fd = g->fs->open(g->fs, g->root, name, O_CREAT | O_RDWR, 0600);

        assert_true(fd >= 0);
        return fd;
}

static void only_the_nth_call_fails(void **state)
{
        struct ground *g = *state;
        struct faultfs_plan plan = {.calls = FAULT_WRITES, .err = ENOSPC, .nth = 2};

        int fd = create(g, "f");
        faultfs_arm(g->f, &plan);
        assert_int_equal(g->fs->write(g->fs, fd, "a", 1), 1);
        assert_int_equal(g->fs->fdatasync(g->fs, fd), 0);
        assert_int_equal(g->fs->pwrite(g->fs, fd, "b", 1, 1), -ENOSPC);
        assert_int_equal(g->fs->write(g->fs, fd, "c", 1), 1);
        assert_int_equal(faultfs_matched(g->f), 3);
        assert_int_equal(faultfs_fired(g->f), 1);
        g->fs->close(g->fs, fd);
}

static void for_good_means_every_call_after(void **state)
{
        struct ground *g = *state;
        struct faultfs_plan plan = {
            .calls = FAULT_MKDIR, .err = EDQUOT, .nth = 2, .for_good = true};

        faultfs_arm(g->f, &plan);
        assert_int_equal(g->fs->mkdir(g->fs, g->root, "a", 0700), 0);
        assert_int_equal(g->fs->mkdir(g->fs, g->root, "b", 0700), -EDQUOT);
        assert_int_equal(g->fs->mkdir(g->fs, g->root, "c", 0700), -EDQUOT);
}

static void a_disk_that_fills_up_takes_half_and_then_nothing(void **state)
{
        struct ground *g = *state;
        struct faultfs_plan plan = {
            .calls = FAULT_WRITES, .kind = FAULT_SHORT, .err = ENOSPC, .nth = 1, .for_good = true};
        struct stat st;

        int fd = create(g, "f");
        faultfs_arm(g->f, &plan);
        assert_int_equal(fs_write_all(g->fs, fd, "12345678", 8), -ENOSPC);
        assert_int_equal(g->fs->fstat(g->fs, fd, &st), 0);
        assert_int_equal(st.st_size, 4);
        g->fs->close(g->fs, fd);
}

static void helpers_go_on_after_interruptions_and_short_transfers(void **state)
{
        struct ground *g = *state;
        const enum faultfs_kind kinds[] = {FAULT_FAIL, FAULT_SHORT};
        char *p;
        size_t n;

        for (int i = 0; i < 2; i++) {
                struct faultfs_plan plan = {
                    .calls = FAULT_WRITES | FAULT_PREAD, .kind = kinds[i], .err = EINTR, .nth = 1};
                faultfs_arm(g->f, &plan);
                assert_int_equal(fs_replace(g->fs, g->root, "f", "12345678", 8), 0);
                assert_int_equal(faultfs_fired(g->f), 1);
                faultfs_arm(g->f, &plan);
                assert_int_equal(fs_slurp(g->fs, g->root, "f", 100, &p, &n), 0);
                assert_int_equal(faultfs_fired(g->f), 1);
                assert_string_equal(p, "12345678");
                free(p);
        }
}

/* Whichever call fails: the error comes out, the file is the old or the new one, and the next
 * attempt succeeds. */
static void replace_survives_the_failure_of_each_call(void **state)
{
        struct ground *g = *state;
        const int errors[] = {EIO, ENOSPC, EDQUOT};
        char *p;
        size_t n;

        for (int e = 0; e < 3; e++) {
                struct faultfs_plan plan = {.err = errors[e]};
                assert_int_equal(fs_replace(g->fs, g->root, "f", "old", 3), 0);
                faultfs_arm(g->f, &plan);
                assert_int_equal(fs_replace(g->fs, g->root, "f", "old", 3), 0);
                long calls = faultfs_matched(g->f);
                assert_true(calls >= 8);
                for (plan.nth = 1; plan.nth <= calls; plan.nth++) {
                        faultfs_arm(g->f, &plan);
                        int rc = fs_replace(g->fs, g->root, "f", "new", 3);
                        assert_int_equal(rc, -errors[e]);
                        faultfs_arm(g->f, NULL);
                        assert_int_equal(fs_slurp(g->fs, g->root, "f", 100, &p, &n), 0);
                        assert_true(strcmp(p, "old") == 0 || strcmp(p, "new") == 0);
                        free(p);
                        assert_int_equal(fs_replace(g->fs, g->root, "f", "old", 3), 0);
                }
        }
}

static void a_directory_whose_sync_failed_is_not_taken_for_durable(void **state)
{
        struct ground *g = *state;
        struct faultfs_plan plan = {.calls = FAULT_FSYNC, .nth = 1};

        faultfs_arm(g->f, &plan);
        assert_int_equal(fs_open_dir(g->fs, g->root, "d", true), -EIO);
        int fd = fs_open_dir(g->fs, g->root, "d", true);
        assert_true(fd >= 0);
        assert_int_equal(faultfs_matched(g->f), 2);
        g->fs->close(g->fs, fd);
}

static void plans_can_speak_of_one_file(void **state)
{
        struct ground *g = *state;
        struct faultfs_plan plan = {
            .calls = FAULT_SYNCS, .nth = 1, .for_good = true, .name = "*.jsonl"};

        int a = create(g, "messages.jsonl");
        int b = create(g, "meta.json");
        faultfs_arm(g->f, &plan);
        assert_int_equal(g->fs->fdatasync(g->fs, a), -EIO);
        assert_int_equal(g->fs->fdatasync(g->fs, b), 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        g->fs->close(g->fs, a);
        g->fs->close(g->fs, b);
        a = create(g, "other");
        assert_int_equal(g->fs->fsync(g->fs, a), 0);
        g->fs->close(g->fs, a);
}

static void forgotten_truncates_answer_0_and_do_nothing(void **state)
{
        struct ground *g = *state;
        struct faultfs_plan plan = {.calls = FAULT_FTRUNCATE, .kind = FAULT_FORGET, .nth = 1};
        struct stat st;

        int fd = create(g, "f");
        assert_int_equal(fs_write_all(g->fs, fd, "abc", 3), 0);
        faultfs_arm(g->f, &plan);
        assert_int_equal(g->fs->ftruncate(g->fs, fd, 0), 0);
        assert_int_equal(g->fs->fstat(g->fs, fd, &st), 0);
        assert_int_equal(st.st_size, 3);
        g->fs->close(g->fs, fd);
}

#define ON_GROUND(f) cmocka_unit_test_setup_teardown(f, ground_make, ground_drop)

int main(void)
{
        const struct CMUnitTest tests[] = {
            ON_GROUND(only_the_nth_call_fails),
            ON_GROUND(for_good_means_every_call_after),
            ON_GROUND(a_disk_that_fills_up_takes_half_and_then_nothing),
            ON_GROUND(helpers_go_on_after_interruptions_and_short_transfers),
            ON_GROUND(replace_survives_the_failure_of_each_call),
            ON_GROUND(a_directory_whose_sync_failed_is_not_taken_for_durable),
            ON_GROUND(plans_can_speak_of_one_file),
            ON_GROUND(forgotten_truncates_answer_0_and_do_nothing),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
