/* The crash states themselves: what was synced is there, and what was not synced can really be
 * lost. */
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

#include "crashfs.h"
#include "faultfs.h"
#include "scratch.h"
#include "seed.h"

#define RANDOM_STATES 12
#define BIG 8192

struct ground {
        struct scratch scratch;
        struct crashfs *c;
        const struct fs *fs;
        int root;
        uint64_t seed;
        int random; /* states by chance beside those that are always made */
};

static int ground_make(void **state)
{
        struct ground *g = calloc(1, sizeof(*g));

        if (scratch_make(&g->scratch) < 0)
                return -1;
        g->seed = seed_start().state;
        g->random = RANDOM_STATES;
        g->c = crashfs_new(fs_real(), g->scratch.path);
        g->fs = crashfs_fs(g->c);
        g->root = g->fs->open_root(g->fs, g->scratch.path, false);
        *state = g;
        return g->root < 0 ? -1 : 0;
}

static int ground_drop(void **state)
{
        struct ground *g = *state;

        g->fs->close(g->fs, g->root);
        crashfs_free(g->c);
        int rc = scratch_remove(&g->scratch);
        free(g);
        return rc;
}

/* What the states of the last crash point held in one file. */
struct outcomes {
        const char *name;
        size_t only; /* the crash point to look at */
        int states;
        int absent;
        int empty;
        int whole;       /* == want */
        int prefix_512;  /* a shorter prefix, a multiple of 512 */
        int nuls;        /* the size of want, NULs only */
        int second_only; /* NULs in the first half, want in the second */
        int other;
        const char *want;
        size_t n;
};

static int observe(void *ctx, const char *dir, size_t k, int state)
{
        static const char zero[BIG];
        struct outcomes *o = ctx;
        const struct fs *fs = fs_real();
        char *p = NULL;
        size_t n = 0;

        (void)state;
        if (k != o->only)
                return 0;
        o->states++;
        int root = fs->open_root(fs, dir, false);
        assert_true(root >= 0);
        int rc = fs_slurp(fs, root, o->name, 100000, &p, &n);
        fs->close(fs, root);
        if (rc == -ENOENT)
                o->absent++;
        else if (n == o->n && memcmp(p, o->want, n) == 0)
                o->whole++;
        else if (n == 0)
                o->empty++;
        else if (n < o->n && n % 512 == 0 && memcmp(p, o->want, n) == 0)
                o->prefix_512++;
        else if (n == o->n && memcmp(p, zero, n) == 0)
                o->nuls++;
        else if (n == o->n && memcmp(p, zero, n / 2) == 0 &&
                 memcmp(p + n / 2, o->want + n / 2, n / 2) == 0)
                o->second_only++;
        else
                o->other++;
        free(p);
        return 0;
}

static struct outcomes outcomes_of(struct ground *g, const char *name, const char *want, size_t n)
{
        struct outcomes o = {.name = name, .only = crashfs_calls(g->c), .want = want, .n = n};

        assert_int_equal(crashfs_sweep(g->c, g->seed, g->random, 1, observe, &o, NULL), 0);
        assert_true(o.states > 0);
        return o;
}

static int create(struct ground *g, const char *name)
{
        int fd = g->fs->open(g->fs, g->root, name, O_CREAT | O_RDWR, 0600);

        assert_true(fd >= 0);
        return fd;
}

static const char *text(void)
{
        static char p[BIG];

        for (size_t i = 0; i < sizeof(p); i++)
                p[i] = (char)('a' + i % 26);
        return p;
}

static void a_write_without_sync_can_be_lost_kept_torn_and_zeroed(void **state)
{
        struct ground *g = *state;

        g->random = 0;
        int fd = create(g, "f");
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        assert_int_equal(fs_write_all(g->fs, fd, text(), BIG), 0);
        struct outcomes o = outcomes_of(g, "f", text(), BIG);
        assert_int_equal(o.absent, 0);
        assert_true(o.empty > 0);
        assert_true(o.whole > 0);
        assert_true(o.prefix_512 > 0);
        assert_true(o.nuls > 0);
        assert_int_equal(o.states, CRASH_RANDOM);
        g->fs->close(g->fs, fd);
}

static void what_was_synced_is_in_every_state(void **state)
{
        struct ground *g = *state;

        int fd = create(g, "f");
        int other = create(g, "other");
        assert_int_equal(fs_write_all(g->fs, fd, text(), BIG), 0);
        assert_int_equal(g->fs->fdatasync(g->fs, fd), 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        assert_int_equal(fs_write_all(g->fs, other, text(), BIG), 0);
        struct outcomes o = outcomes_of(g, "f", text(), BIG);
        assert_true(o.states > CRASH_RANDOM);
        assert_int_equal(o.whole, o.states);
        g->fs->close(g->fs, other);
        g->fs->close(g->fs, fd);
}

static void nothing_unsynced_leaves_one_state(void **state)
{
        struct ground *g = *state;

        int fd = create(g, "f");
        assert_int_equal(g->fs->fdatasync(g->fs, fd), 0);
        assert_true(crashfs_states(g->c, crashfs_calls(g->c), 5) == CRASH_RANDOM + 5);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        assert_int_equal(crashfs_states(g->c, crashfs_calls(g->c), 5), 1);
        g->fs->close(g->fs, fd);
}

static void syncing_a_file_does_not_keep_its_name(void **state)
{
        struct ground *g = *state;

        int fd = create(g, "f");
        assert_int_equal(fs_write_all(g->fs, fd, text(), 100), 0);
        assert_int_equal(g->fs->fsync(g->fs, fd), 0);
        struct outcomes o = outcomes_of(g, "f", text(), 100);
        assert_true(o.absent > 0);
        assert_true(o.whole > 0);
        assert_int_equal(o.absent + o.whole, o.states);
        g->fs->close(g->fs, fd);
}

static void syncing_a_directory_does_not_keep_the_bytes(void **state)
{
        struct ground *g = *state;

        int fd = create(g, "f");
        assert_int_equal(fs_write_all(g->fs, fd, text(), 100), 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        struct outcomes o = outcomes_of(g, "f", text(), 100);
        assert_int_equal(o.absent, 0);
        assert_true(o.empty > 0);
        g->fs->close(g->fs, fd);
}

static void later_writes_can_survive_earlier_ones(void **state)
{
        struct ground *g = *state;

        g->random = 0;
        int fd = create(g, "f");
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        assert_int_equal(fs_write_all(g->fs, fd, text(), BIG / 2), 0);
        assert_int_equal(fs_write_all(g->fs, fd, text() + BIG / 2, BIG / 2), 0);
        struct outcomes o = outcomes_of(g, "f", text(), BIG);
        assert_true(o.second_only > 0);
        g->fs->close(g->fs, fd);
}

static void an_append_lands_where_the_file_ended(void **state)
{
        struct ground *g = *state;

        int fd = g->fs->open(g->fs, g->root, "f", O_CREAT | O_WRONLY | O_APPEND, 0600);
        assert_int_equal(fs_write_all(g->fs, fd, text(), 700), 0);
        g->fs->close(g->fs, fd);
        fd = g->fs->open(g->fs, g->root, "f", O_WRONLY | O_APPEND, 0);
        assert_int_equal(fs_write_all(g->fs, fd, text() + 700, 700), 0);
        assert_int_equal(g->fs->fdatasync(g->fs, fd), 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        struct outcomes o = outcomes_of(g, "f", text(), 1400);
        assert_int_equal(o.whole, o.states);
        g->fs->close(g->fs, fd);
}

static void a_rename_can_be_undone_until_its_directory_is_synced(void **state)
{
        struct ground *g = *state;

        int fd = create(g, "a");
        assert_int_equal(fs_write_all(g->fs, fd, text(), 100), 0);
        assert_int_equal(g->fs->fdatasync(g->fs, fd), 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        assert_int_equal(g->fs->rename(g->fs, g->root, "a", g->root, "b"), 0);
        struct outcomes a = outcomes_of(g, "a", text(), 100);
        struct outcomes b = outcomes_of(g, "b", text(), 100);
        assert_true(a.whole > 0 && b.whole > 0);
        assert_int_equal(a.whole + b.whole, a.states);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        a = outcomes_of(g, "a", text(), 100);
        b = outcomes_of(g, "b", text(), 100);
        assert_int_equal(a.absent, a.states);
        assert_int_equal(b.whole, b.states);
        g->fs->close(g->fs, fd);
}

static void an_unlinked_name_can_come_back_until_its_directory_is_synced(void **state)
{
        struct ground *g = *state;

        int fd = create(g, "a");
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        assert_int_equal(g->fs->unlink(g->fs, g->root, "a", 0), 0);
        struct outcomes a = outcomes_of(g, "a", "", 0);
        assert_true(a.absent > 0 && a.whole > 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        a = outcomes_of(g, "a", "", 0);
        assert_int_equal(a.absent, a.states);
        g->fs->close(g->fs, fd);
}

static void a_truncate_can_be_undone_until_synced(void **state)
{
        struct ground *g = *state;

        int fd = create(g, "f");
        assert_int_equal(fs_write_all(g->fs, fd, text(), 1024), 0);
        assert_int_equal(g->fs->fsync(g->fs, fd), 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        assert_int_equal(g->fs->ftruncate(g->fs, fd, 512), 0);
        struct outcomes o = outcomes_of(g, "f", text(), 1024);
        assert_true(o.whole > 0 && o.prefix_512 > 0);
        assert_int_equal(o.whole + o.prefix_512, o.states);
        assert_int_equal(g->fs->fdatasync(g->fs, fd), 0);
        o = outcomes_of(g, "f", text(), 1024);
        assert_int_equal(o.prefix_512, o.states);
        g->fs->close(g->fs, fd);
}

static void a_file_in_an_unsynced_directory_can_vanish_with_it(void **state)
{
        struct ground *g = *state;

        assert_int_equal(g->fs->mkdir(g->fs, g->root, "d", 0700), 0);
        int dir = g->fs->open(g->fs, g->root, "d", O_RDONLY | O_DIRECTORY, 0);
        int fd = create(g, "d/f");
        assert_int_equal(fs_write_all(g->fs, fd, text(), 100), 0);
        assert_int_equal(g->fs->fsync(g->fs, fd), 0);
        assert_int_equal(g->fs->fsync(g->fs, dir), 0);
        struct outcomes o = outcomes_of(g, "d/f", text(), 100);
        assert_true(o.absent > 0 && o.whole > 0);
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        o = outcomes_of(g, "d/f", text(), 100);
        assert_int_equal(o.whole, o.states);
        g->fs->close(g->fs, fd);
        g->fs->close(g->fs, dir);
}

static void what_was_there_at_the_start_is_durable(void **state)
{
        struct ground *g = *state;
        const struct fs *fs = fs_real();

        assert_int_equal(fs->mkdir(fs, g->root, "old", 0700), 0);
        int fd = fs->open(fs, g->root, "old/f", O_CREAT | O_WRONLY, 0600);
        assert_int_equal(fs_write_all(fs, fd, text(), 100), 0);
        fs->close(fs, fd);
        crashfs_free(g->c);
        g->c = crashfs_new(fs, g->scratch.path);
        g->fs = crashfs_fs(g->c);
        assert_int_equal(crashfs_calls(g->c), 0);
        fd = create(g, "new");
        g->fs->close(g->fs, fd);
        struct outcomes o = outcomes_of(g, "old/f", text(), 100);
        assert_true(o.states > 1);
        assert_int_equal(o.whole, o.states);
}

static void a_root_beneath_the_scratch_directory_is_made_durable(void **state)
{
        struct ground *g = *state;
        char path[300];

        snprintf(path, sizeof(path), "%s/x/store", g->scratch.path);
        assert_int_equal(g->fs->open_root(g->fs, path, false), -ENOENT);
        int root = g->fs->open_root(g->fs, path, true);
        assert_true(root >= 0);
        assert_int_equal(crashfs_states(g->c, crashfs_calls(g->c), 0), 1);
        assert_int_equal(g->fs->open_root(g->fs, "/etc", false), -EXDEV);
        g->fs->close(g->fs, root);
}

static void the_same_arguments_make_the_same_bytes(void **state)
{
        struct ground *g = *state;
        struct scratch a;
        struct scratch b;
        char *p[2];
        size_t n[2];
        int differ = 0;

        int fd = create(g, "f");
        assert_int_equal(g->fs->fsync(g->fs, g->root), 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(fs_write_all(g->fs, fd, text(), BIG), 0);
        g->fs->close(g->fs, fd);
        char *before = NULL;
        size_t before_n = 0;
        for (int s = CRASH_RANDOM; s < CRASH_RANDOM + 10; s++) {
                struct scratch *at[] = {&a, &b};
                for (int i = 0; i < 2; i++) {
                        assert_int_equal(scratch_make(at[i]), 0);
                        assert_int_equal(
                            crashfs_crash(g->c, crashfs_calls(g->c), s, 7, at[i]->path), 0);
                        int root = fs_real()->open_root(fs_real(), at[i]->path, false);
                        assert_int_equal(fs_slurp(fs_real(), root, "f", 100000, &p[i], &n[i]), 0);
                        close(root);
                        assert_int_equal(scratch_remove(at[i]), 0);
                }
                assert_int_equal(n[0], n[1]);
                assert_memory_equal(p[0], p[1], n[0]);
                differ += before && (before_n != n[0] || memcmp(before, p[0], n[0]) != 0);
                free(before);
                before = p[0];
                before_n = n[0];
                free(p[1]);
        }
        assert_true(differ > 2);
        free(before);
}

/* ---- a sweep that checks a promise, and the same without each sync ---- */

struct promise {
        size_t acked[4]; /* calls after which version i was acknowledged */
        int versions;
};

/* Version i is 600 bytes of the digit i; whatever a state has is one of them, and not older than
 * the last one that was acknowledged. */
static int keeps_promise(void *ctx, const char *dir, size_t k, int state)
{
        const struct promise *p = ctx;
        const struct fs *fs = fs_real();
        char *got = NULL;
        size_t n = 0;
        int floor = 0;

        (void)state;
        for (int i = 1; i <= p->versions; i++) {
                if (k >= p->acked[i])
                        floor = i;
        }
        int root = fs->open_root(fs, dir, false);
        int rc = fs_slurp(fs, root, "meta", 10000, &got, &n);
        fs->close(fs, root);
        if (rc == -ENOENT)
                return floor == 0 ? 0 : 1;
        int bad = n != 600 || got[0] < '0' + floor || got[0] > '0' + p->versions;
        for (size_t i = 0; i < n && !bad; i++)
                bad = got[i] != got[0];
        free(got);
        return bad;
}

static int replace_and_sweep(
    const struct faultfs_plan *plan, uint64_t seed, int *sites, size_t *made)
{
        struct scratch scratch;
        struct promise p = {.versions = 3};
        char version[600];

        assert_int_equal(scratch_make(&scratch), 0);
        struct crashfs *c = crashfs_new(fs_real(), scratch.path);
        struct faultfs *f = faultfs_new(crashfs_fs(c));
        const struct fs *fs = faultfs_fs(f);
        int root = fs->open_root(fs, scratch.path, false);
        faultfs_arm(f, plan);
        for (int i = 1; i <= p.versions; i++) {
                memset(version, '0' + i, sizeof(version));
                assert_int_equal(fs_replace(fs, root, "meta", version, sizeof(version)), 0);
                p.acked[i] = crashfs_calls(c);
        }
        int rc = crashfs_sweep(c, seed, RANDOM_STATES, 1, keeps_promise, &p, made);
        *sites = faultfs_sites(f, FAULT_SYNCS);
        if (plan)
                assert_true(faultfs_fired(f) > 0);
        fs->close(fs, root);
        faultfs_free(f);
        crashfs_free(c);
        assert_int_equal(scratch_remove(&scratch), 0);
        return rc;
}

static void a_replaced_file_is_whole_in_every_state(void **state)
{
        size_t made = 0;
        int sites;

        (void)state;
        assert_int_equal(replace_and_sweep(NULL, seed_start().state, &sites, &made), 0);
        assert_true(made > 100);
}

static void without_any_one_of_its_syncs_the_sweep_fails(void **state)
{
        int sites = 1;

        (void)state;
        for (int site = 1; site <= sites; site++) {
                struct faultfs_plan plan = {.calls = FAULT_SYNCS,
                    .kind = FAULT_FORGET,
                    .nth = 1,
                    .for_good = true,
                    .site = site};
                assert_int_not_equal(replace_and_sweep(&plan, 1, &sites, NULL), 0);
        }
        assert_int_equal(sites, 2);
}

#define ON_GROUND(f) cmocka_unit_test_setup_teardown(f, ground_make, ground_drop)

int main(void)
{
        const struct CMUnitTest tests[] = {
            ON_GROUND(a_write_without_sync_can_be_lost_kept_torn_and_zeroed),
            ON_GROUND(what_was_synced_is_in_every_state),
            ON_GROUND(nothing_unsynced_leaves_one_state),
            ON_GROUND(syncing_a_file_does_not_keep_its_name),
            ON_GROUND(syncing_a_directory_does_not_keep_the_bytes),
            ON_GROUND(later_writes_can_survive_earlier_ones),
            ON_GROUND(an_append_lands_where_the_file_ended),
            ON_GROUND(a_rename_can_be_undone_until_its_directory_is_synced),
            ON_GROUND(an_unlinked_name_can_come_back_until_its_directory_is_synced),
            ON_GROUND(a_truncate_can_be_undone_until_synced),
            ON_GROUND(a_file_in_an_unsynced_directory_can_vanish_with_it),
            ON_GROUND(what_was_there_at_the_start_is_durable),
            ON_GROUND(a_root_beneath_the_scratch_directory_is_made_durable),
            ON_GROUND(the_same_arguments_make_the_same_bytes),
            cmocka_unit_test(a_replaced_file_is_whole_in_every_state),
            cmocka_unit_test(without_any_one_of_its_syncs_the_sweep_fails),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
