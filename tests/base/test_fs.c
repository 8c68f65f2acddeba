/* Files: paths stay beneath their directory, and the helpers do what fs.h promises. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/fs.h"

struct place {
        const struct fs *fs;
        char path[64];
        int root;
};

static int place_make(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        p->fs = fs_real();
        snprintf(p->path, sizeof(p->path), "/tmp/steno-fs-XXXXXX");
        if (!mkdtemp(p->path))
                return -1;
        p->root = p->fs->open_root(p->fs, p->path, false);
        *state = p;
        return p->root < 0 ? -1 : 0;
}

static int place_drop(void **state)
{
        struct place *p = *state;

        p->fs->close(p->fs, p->root);
        int up = open("/tmp", O_RDONLY | O_DIRECTORY);
        int rc = fs_remove_tree(p->fs, up, p->path + strlen("/tmp/"));
        close(up);
        free(p);
        return rc;
}

static void put(const struct place *p, const char *name, const char *text)
{
        int fd = p->fs->open(p->fs, p->root, name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(fs_write_all(p->fs, fd, text, strlen(text)), 0);
        assert_int_equal(p->fs->close(p->fs, fd), 0);
}

static void expect(const struct place *p, const char *name, const char *text)
{
        char *got = NULL;
        size_t n = 0;

        assert_int_equal(fs_slurp(p->fs, p->root, name, 1000, &got, &n), 0);
        assert_int_equal(n, strlen(text));
        assert_string_equal(got, text);
        free(got);
}

static void paths_cannot_leave_their_directory(void **state)
{
        const struct place *p = *state;
        const struct fs *fs = p->fs;
        struct stat st;

        assert_int_equal(fs->open(fs, p->root, "/etc/passwd", O_RDONLY, 0), -EXDEV);
        assert_int_equal(fs->open(fs, p->root, "../x", O_CREAT | O_RDWR, 0600), -EXDEV);
        assert_int_equal(fs->stat(fs, p->root, "..", &st), -EXDEV);
        assert_int_equal(fs->stat(fs, p->root, "/etc", &st), -EXDEV);
        assert_int_equal(fs->mkdir(fs, p->root, "../steno-out", 0700), -EXDEV);
        assert_int_equal(fs->unlink(fs, p->root, "../x", 0), -EXDEV);
        put(p, "a", "1");
        assert_int_equal(fs->rename(fs, p->root, "a", p->root, "../b"), -EXDEV);
        assert_int_equal(fs->rename(fs, p->root, "../a", p->root, "b"), -EXDEV);
        expect(p, "a", "1");
}

static void links_are_not_followed(void **state)
{
        const struct place *p = *state;
        const struct fs *fs = p->fs;
        struct stat st;

        assert_int_equal(symlinkat("/etc", p->root, "etc"), 0);
        assert_int_equal(symlinkat("/etc/passwd", p->root, "passwd"), 0);
        assert_int_equal(fs->open(fs, p->root, "passwd", O_RDONLY, 0), -ELOOP);
        assert_int_equal(fs->open(fs, p->root, "etc/passwd", O_RDONLY, 0), -ELOOP);
        assert_int_equal(fs->open(fs, p->root, "etc", O_RDONLY | O_DIRECTORY, 0), -ELOOP);
        assert_int_equal(fs->stat(fs, p->root, "etc/passwd", &st), -ELOOP);
        assert_int_equal(fs->stat(fs, p->root, "passwd", &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_int_equal(fs->mkdir(fs, p->root, "etc/x", 0700), -ELOOP);
}

static void descriptors_do_not_leak_into_children(void **state)
{
        const struct place *p = *state;

        int fd = p->fs->open(p->fs, p->root, "a", O_CREAT | O_RDWR, 0600);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_true(fcntl(p->root, F_GETFD) & FD_CLOEXEC);
        p->fs->close(p->fs, fd);
}

static void a_root_is_made_with_its_parents_only_when_asked(void **state)
{
        const struct place *p = *state;
        char path[128];

        snprintf(path, sizeof(path), "%s/one/two", p->path);
        assert_int_equal(p->fs->open_root(p->fs, path, false), -ENOENT);
        int fd = p->fs->open_root(p->fs, path, true);
        assert_true(fd >= 0);
        p->fs->close(p->fs, fd);
        put(p, "file", "");
        snprintf(path, sizeof(path), "%s/file", p->path);
        assert_int_equal(p->fs->open_root(p->fs, path, true), -ENOTDIR);
}

static void nested_paths_reach_every_call(void **state)
{
        const struct place *p = *state;
        const struct fs *fs = p->fs;
        struct stat st;

        assert_int_equal(fs->mkdir(fs, p->root, "a", 0700), 0);
        assert_int_equal(fs->mkdir(fs, p->root, "a/b", 0700), 0);
        put(p, "a/b/c", "deep");
        assert_int_equal(fs->stat(fs, p->root, "a/b/c", &st), 0);
        assert_int_equal(st.st_size, 4);
        assert_int_equal(fs->rename(fs, p->root, "a/b/c", p->root, "d"), 0);
        expect(p, "d", "deep");
        assert_int_equal(fs->unlink(fs, p->root, "a/b", AT_REMOVEDIR), 0);
}

static void rename_new_never_replaces(void **state)
{
        const struct place *p = *state;
        const struct fs *fs = p->fs;

        put(p, "a", "A");
        put(p, "b", "B");
        assert_int_equal(fs->rename_new(fs, p->root, "a", p->root, "b"), -EEXIST);
        expect(p, "b", "B");
        assert_int_equal(fs->rename_new(fs, p->root, "a", p->root, "c"), 0);
        expect(p, "c", "A");
        assert_int_equal(fs->rename(fs, p->root, "c", p->root, "b"), 0);
        expect(p, "b", "A");
}

static void replace_swaps_contents_and_leaves_no_temporary(void **state)
{
        const struct place *p = *state;
        struct stat st;

        assert_int_equal(fs_replace(p->fs, p->root, "meta.json", "long first", 10), 0);
        expect(p, "meta.json", "long first");
        put(p, ".meta.json.tmp", "what a crash left behind, longer than the rest");
        assert_int_equal(fs_replace(p->fs, p->root, "meta.json", "second", 6), 0);
        expect(p, "meta.json", "second");
        assert_int_equal(p->fs->stat(p->fs, p->root, ".meta.json.tmp", &st), -ENOENT);
        assert_int_equal(fs_replace(p->fs, p->root, "a/b", "", 0), -EINVAL);
}

static void writers_that_replace_the_same_file_never_mix(void **state)
{
        const struct place *p = *state;
        char text[3000];
        int status;

        for (int w = 0; w < 4; w++) {
                if (fork() != 0)
                        continue;
                int bad = 0;
                memset(text, 'a' + w, sizeof(text));
                for (int i = 0; i < 25; i++)
                        bad |= fs_replace(p->fs, p->root, "x", text, 1000 + 500 * (size_t)w);
                _exit(bad != 0);
        }
        for (int w = 0; w < 4; w++) {
                assert_true(wait(&status) > 0);
                assert_int_equal(status, 0);
        }
        char *got;
        size_t n;
        assert_int_equal(fs_slurp(p->fs, p->root, "x", 5000, &got, &n), 0);
        assert_int_equal(n, 1000 + 500 * (size_t)(got[0] - 'a'));
        for (size_t i = 0; i < n; i++)
                assert_int_equal(got[i], got[0]);
        free(got);
}

static void slurp_refuses_what_is_too_large_or_no_file(void **state)
{
        const struct place *p = *state;
        char *got = NULL;
        size_t n = 7;

        put(p, "a", "12345");
        assert_int_equal(fs_slurp(p->fs, p->root, "a", 4, &got, &n), -EFBIG);
        assert_null(got);
        assert_int_equal(n, 7);
        assert_int_equal(fs_slurp(p->fs, p->root, "a", 5, &got, &n), 0);
        assert_string_equal(got, "12345");
        free(got);
        assert_int_equal(fs_slurp(p->fs, p->root, "none", 5, &got, &n), -ENOENT);
        assert_int_equal(mkfifoat(p->root, "pipe", 0600), 0);
        assert_int_equal(fs_slurp(p->fs, p->root, "pipe", 5, &got, &n), -EINVAL);
        assert_int_equal(fs_slurp(p->fs, p->root, ".", 5, &got, &n), -EISDIR);
        put(p, "empty", "");
        expect(p, "empty", "");
}

static void pread_all_stops_at_the_end(void **state)
{
        const struct place *p = *state;
        char text[10];

        put(p, "a", "12345");
        int fd = p->fs->open(p->fs, p->root, "a", O_RDONLY, 0);
        assert_int_equal(fs_pread_all(p->fs, fd, text, 10, 2), 3);
        assert_memory_equal(text, "345", 3);
        assert_int_equal(fs_pread_all(p->fs, fd, text, 10, 9), 0);
        p->fs->close(p->fs, fd);
        assert_int_equal(fs_pread_all(p->fs, fd, text, 10, 0), -EBADF);
}

static void open_dir_makes_one_only_when_asked(void **state)
{
        const struct place *p = *state;

        assert_int_equal(fs_open_dir(p->fs, p->root, "d", false), -ENOENT);
        for (int i = 0; i < 2; i++) {
                int fd = fs_open_dir(p->fs, p->root, "d", true);
                assert_true(fd >= 0);
                p->fs->close(p->fs, fd);
        }
        put(p, "file", "");
        assert_int_equal(fs_open_dir(p->fs, p->root, "file", true), -ENOTDIR);
}

static void remove_tree_takes_all_but_what_links_point_to(void **state)
{
        const struct place *p = *state;
        const struct fs *fs = p->fs;
        char name[32];

        put(p, "precious", "stays");
        assert_int_equal(fs->mkdir(fs, p->root, "t", 0700), 0);
        assert_int_equal(fs->mkdir(fs, p->root, "t/u", 0700), 0);
        assert_int_equal(fs->mkdir(fs, p->root, "t/u/v", 0700), 0);
        for (int i = 0; i < 300; i++) {
                snprintf(name, sizeof(name), "t/u/f%d", i);
                put(p, name, "x");
        }
        assert_int_equal(symlinkat("../precious", p->root, "t/link"), 0);
        assert_int_equal(symlinkat("..", p->root, "t/up"), 0);
        assert_int_equal(fs_remove_tree(fs, p->root, "t"), 0);
        assert_int_equal(fs_remove_tree(fs, p->root, "t"), -ENOENT);
        expect(p, "precious", "stays");
}

static int count_name(void *ctx, const char *name, unsigned char d_type)
{
        int *count = ctx;

        (void)d_type;
        assert_string_not_equal(name, ".");
        assert_string_not_equal(name, "..");
        return ++*count == 3 ? 42 : 0;
}

static void listing_can_be_repeated_and_stopped(void **state)
{
        const struct place *p = *state;
        int count = 0;

        put(p, "a", "");
        put(p, "b", "");
        assert_int_equal(p->fs->list(p->fs, p->root, count_name, &count), 0);
        assert_int_equal(count, 2);
        count = 0;
        put(p, "c", "");
        put(p, "d", "");
        assert_int_equal(p->fs->list(p->fs, p->root, count_name, &count), 42);
        assert_int_equal(count, 3);
}

static void a_lock_excludes_another_descriptor(void **state)
{
        const struct place *p = *state;

        int a = p->fs->open(p->fs, p->root, ".", O_RDONLY | O_DIRECTORY, 0);
        assert_int_equal(p->fs->flock(p->fs, a, LOCK_EX), 0);
        assert_int_equal(p->fs->flock(p->fs, p->root, LOCK_EX | LOCK_NB), -EWOULDBLOCK);
        p->fs->close(p->fs, a);
        assert_int_equal(p->fs->flock(p->fs, p->root, LOCK_EX | LOCK_NB), 0);
}

static void the_file_system_names_its_kind(void **state)
{
        const struct place *p = *state;

        assert_true(p->fs->magic(p->fs, p->root) > 0);
        assert_int_equal(p->fs->magic(p->fs, -1), -EBADF);
}

/* From here on this process acts as on an old kernel: no openat2, no flags for rename. */
static int become_old(void)
{
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -1;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* The number of the first expectation that an old kernel breaks, or 0. */
static int old_kernel_fault(const struct place *p)
{
        const struct fs *fs = p->fs;
        struct stat st;
        int line = 0;

        int fd = fs->open(fs, p->root, "dir/sub/f", O_CREAT | O_RDWR, 0600);
        if (fd < 0 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC) || fs_write_all(fs, fd, "x", 1) < 0)
                line = __LINE__;
        else if (fs->stat(fs, p->root, "dir/sub/f", &st) < 0 || st.st_size != 1)
                line = __LINE__;
        else if (fs->open(fs, p->root, "link/passwd", O_RDONLY, 0) >= 0)
                line = __LINE__;
        else if (fs->open(fs, p->root, "dir/../dir", O_RDONLY, 0) != -EXDEV)
                line = __LINE__;
        else if (fs->open(fs, p->root, "/etc/passwd", O_RDONLY, 0) != -EXDEV)
                line = __LINE__;
        else if (fs->open(fs, p->root, "link", O_RDONLY, 0) >= 0)
                line = __LINE__;
        else if (fs->rename_new(fs, p->root, "dir/sub/f", p->root, "taken") != -EEXIST)
                line = __LINE__;
        else if (fs->rename_new(fs, p->root, "dir/sub/f", p->root, "free") != 0)
                line = __LINE__;
        else if (fs->stat(fs, p->root, "dir/sub/f", &st) != -ENOENT)
                line = __LINE__;
        else if (fs->rename_new(fs, p->root, "dir/sub", p->root, "taken") != -EEXIST)
                line = __LINE__;
        else if (fs->rename_new(fs, p->root, "dir/sub", p->root, "moved") != 0)
                line = __LINE__;
        else if (fs->stat(fs, p->root, "moved", &st) < 0 || !S_ISDIR(st.st_mode))
                line = __LINE__;
        return line;
}

static void old_kernels_are_as_safe(void **state)
{
        const struct place *p = *state;
        int status;
        int line = 0;
        int pipe_[2];

        assert_int_equal(symlinkat("/etc", p->root, "link"), 0);
        put(p, "taken", "stays");
        assert_int_equal(p->fs->mkdir(p->fs, p->root, "dir", 0700), 0);
        assert_int_equal(p->fs->mkdir(p->fs, p->root, "dir/sub", 0700), 0);
        assert_int_equal(pipe(pipe_), 0);
        pid_t child = fork();
        if (child == 0) {
                if (become_old() < 0)
                        _exit(77);
                line = old_kernel_fault(p);
                _exit(write(pipe_[1], &line, sizeof(line)) != sizeof(line));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        close(pipe_[1]);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
                close(pipe_[0]);
                skip();
        }
        assert_int_equal(status, 0);
        assert_int_equal(read(pipe_[0], &line, sizeof(line)), sizeof(line));
        close(pipe_[0]);
        if (line != 0)
                fail_msg("expectation at line %d", line);
        expect(p, "taken", "stays");
        expect(p, "free", "x");
}

static void a_fifo_hangs_nobody(void **state)
{
        const struct place *p = *state;
        char *text;
        size_t n;

        assert_int_equal(mkfifoat(p->root, "fifo", 0600), 0);
        alarm(10);
        assert_true(fs_slurp(p->fs, p->root, "fifo", 100, &text, &n) < 0);
        int fd = p->fs->open(p->fs, p->root, "fifo", O_RDWR, 0);
        if (fd >= 0)
                p->fs->close(p->fs, fd);
        alarm(0);
}

static bool stamped(time_t s, long ns, time_t later_s, long later_ns)
{
        struct timespec dir = {s, ns}, later = {later_s, later_ns};
        return fs_stamp_is(fs_stamp_of(dir, later), dir);
}

static void stamps_count_once_the_clock_has_moved_on(void **state)
{
        struct timespec dir = {100, 5}, changed = {100, 6};

        (void)state;
        assert_true(stamped(100, 5, 100, 200000000));
        assert_true(stamped(100, 999999999, 101, 200000000));
        assert_false(stamped(100, 5, 100, 50000000));
        assert_false(stamped(100, 5, 100, 5));
        assert_false(stamped(100, 5, 99, 900000000));
        /* A file system may store whole seconds only. */
        assert_false(stamped(100, 0, 101, 0));
        assert_false(stamped(100, 0, 102, 500000000));
        assert_true(stamped(100, 0, 104, 0));
        assert_false(fs_stamp_is(fs_stamp_of(dir, (struct timespec){200, 0}), changed));
        assert_false(fs_stamp_is((struct fs_stamp){{0}}, (struct timespec){0}));
}

#define IN_PLACE(f) cmocka_unit_test_setup_teardown(f, place_make, place_drop)

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(stamps_count_once_the_clock_has_moved_on),
            IN_PLACE(a_fifo_hangs_nobody),
            IN_PLACE(paths_cannot_leave_their_directory),
            IN_PLACE(links_are_not_followed),
            IN_PLACE(descriptors_do_not_leak_into_children),
            IN_PLACE(a_root_is_made_with_its_parents_only_when_asked),
            IN_PLACE(nested_paths_reach_every_call),
            IN_PLACE(rename_new_never_replaces),
            IN_PLACE(replace_swaps_contents_and_leaves_no_temporary),
            IN_PLACE(writers_that_replace_the_same_file_never_mix),
            IN_PLACE(slurp_refuses_what_is_too_large_or_no_file),
            IN_PLACE(pread_all_stops_at_the_end),
            IN_PLACE(open_dir_makes_one_only_when_asked),
            IN_PLACE(remove_tree_takes_all_but_what_links_point_to),
            IN_PLACE(listing_can_be_repeated_and_stopped),
            IN_PLACE(a_lock_excludes_another_descriptor),
            IN_PLACE(the_file_system_names_its_kind),
            IN_PLACE(old_kernels_are_as_safe),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
