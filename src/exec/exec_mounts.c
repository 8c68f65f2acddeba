/*
 * exec_mounts.c - see exec_mounts.h
 *
 * Invariants:
 *   1. Folders above a guarded directory are bound onto themselves from the top down, before the
 *      directory is covered: a later bind would show what lies below the cover again.
 *   2. What is bound into the private /dev was opened in this mount namespace, because the kernel
 * takes no other source, and after the covers were mounted: a store may lie in /dev/shm.
 */
#include "exec/exec_mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_MOUNT_SETATTR 442
#define ATTR_RDONLY 1u
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define TERMINALS "/dev/pts"
#define QUIET (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* ---- guarded directories (1) ---- */

/* Is `path`, whose length is `n`, on the way to an earlier directory of the plan? Then it is bound
 * already. */
static bool is_bound(const struct exec_shield_plan *plan, size_t before, const char *path, size_t n)
{
        for (size_t i = 0; i < before; i++)
                if (strncmp(plan->hidden[i], path, n) == 0 && plan->hidden[i][n] == '/')
                        return true;
        return false;
}

static bool bind_above(const struct exec_shield_plan *plan, size_t which)
{
        const char *path = plan->hidden[which];
        char part[PATH_MAX];

        for (size_t n = 1; path[n]; n++) {
                if (path[n] != '/' || is_bound(plan, which, path, n))
                        continue;
                memcpy(part, path, n);
                part[n] = '\0';
                if (mount(part, part, NULL, MS_BIND | MS_REC, NULL) < 0)
                        return false;
        }
        return true;
}

static bool guard(const struct exec_shield_plan *plan)
{
        for (size_t i = 0; i < plan->count; i++)
                if (!bind_above(plan, i))
                        return false;
        for (size_t i = 0; i < plan->count; i++)
                if (mount("none", plan->hidden[i], "tmpfs", MS_RDONLY | QUIET, "mode=000,size=4k") <
                    0)
                        return false;
        return true;
}

/* ---- /proc, /sys and /dev ---- */

/* Makes a tree read-only; one that is not there is no loss. */
static bool lock_tree(const char *path)
{
        struct {
                uint64_t set, clear, propagation, userns;
        } attr = {ATTR_RDONLY, 0, 0, 0};

        if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
                return errno == ENOENT || errno == ENOTDIR;
        if (syscall(NR_MOUNT_SETATTR, AT_FDCWD, path, AT_RECURSIVE, &attr, sizeof(attr)) == 0)
                return true;
        return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET, NULL) == 0;
}

/* Does an entry of /proc belong to the machine, and not to a process? Links lead to processes. */
static bool is_of_machine(int proc, const struct dirent64 *e)
{
        struct stat st;

        if ((e->d_name[0] >= '0' && e->d_name[0] <= '9') || e->d_name[0] == '.')
                return false;
        return fstatat(proc, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && (st.st_mode & 0222)));
}

static bool lock_entries(int proc, const char *entries, long n)
{
        char path[sizeof("/proc/") + NAME_MAX] = "/proc/";
        struct dirent64 e;

        for (long at = 0; at < n; at += e.d_reclen) {
                size_t head = offsetof(struct dirent64, d_name);
                memcpy(&e, entries + at, head);
                memcpy(e.d_name, entries + at + head, e.d_reclen - head);
                if (!is_of_machine(proc, &e))
                        continue;
                memcpy(path + sizeof("/proc/") - 1, e.d_name, strlen(e.d_name) + 1);
                if (!lock_tree(path))
                        return false;
        }
        return true;
}

/* Everything there that is not a process's: settings that name a program which the kernel then runs
 * outside, registers of devices, interrupts, file systems. */
static bool lock_proc(void)
{
        char entries[4096];
        int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        long n = proc < 0 ? -1 : 1;
        bool ok = true;

        while (ok && n > 0) {
                n = syscall(SYS_getdents64, proc, entries, sizeof(entries));
                ok = n >= 0 && lock_entries(proc, entries, n);
        }
        if (proc >= 0)
                close(proc);
        return ok && proc >= 0;
}

static bool lock_kernel(void)
{
        return lock_proc() && lock_tree("/sys");
}

static void limit_processes(const struct exec_shield_plan *plan)
{
        static const char text[] = TEXT(EXEC_PROCESSES_MAX) "\n";
        int fd = plan->own_pid_max ? open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC) : -1;
        ssize_t ignored = fd >= 0 ? write(fd, text, sizeof(text) - 1) : 0;

        (void)ignored;
        if (fd >= 0)
                close(fd);
}

static const struct device {
        const char *path;
        bool is_directory;
} devices[] = {
    {"/dev/null", false},
    {"/dev/zero", false},
    {"/dev/full", false},
    {"/dev/random", false},
    {"/dev/urandom", false},
    {"/dev/tty", false},
    {TERMINALS, true},
    {"/dev/shm", true},
};

#define DEVICES (sizeof(devices) / sizeof(*devices))

static void fd_path(int fd, char out[32])
{
        static const char head[] = "/proc/self/fd/";
        char digits[12];
        size_t n = 0;

        do
                digits[n++] = (char)('0' + fd % 10);
        while ((fd /= 10) > 0);
        memcpy(out, head, sizeof(head) - 1);
        for (size_t i = 0; i < n; i++)
                out[sizeof(head) - 1 + i] = digits[n - 1 - i];
        out[sizeof(head) - 1 + n] = '\0';
}

/* Terminals of the command's own. In the shared folder it could write to the one on which Steno
 * asks for permission, over the question. */
static bool mount_terminals(void)
{
        return mount("devpts", TERMINALS, "devpts", MS_NOSUID | MS_NOEXEC,
                   "newinstance,ptmxmode=0666,mode=0620") == 0;
}

static bool bring(const struct device *d, int fd)
{
        char source[32];

        if (d->is_directory) {
                if (mkdir(d->path, 0755) < 0)
                        return false;
                if (strcmp(d->path, TERMINALS) == 0 && mount_terminals())
                        return true;
        } else {
                int made = open(d->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
                if (made < 0)
                        return false;
                close(made);
        }
        fd_path(fd, source);
        /* With the covers of guarded directories that lie in it. */
        return mount(source, d->path, NULL, MS_BIND | MS_REC, NULL) == 0;
}

static bool fill_dev(const int fds[DEVICES])
{
        for (size_t i = 0; i < DEVICES; i++)
                if (fds[i] >= 0 && !bring(&devices[i], fds[i]))
                        return false;
        return symlink("/proc/self/fd", "/dev/fd") == 0 &&
               symlink("/proc/self/fd/0", "/dev/stdin") == 0 &&
               symlink("/proc/self/fd/1", "/dev/stdout") == 0 &&
               symlink("/proc/self/fd/2", "/dev/stderr") == 0 &&
               symlink("pts/ptmx", "/dev/ptmx") == 0 &&
               mount(NULL, "/dev", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | QUIET, NULL) == 0;
}

static bool make_dev(void)
{
        int fds[DEVICES];

        for (size_t i = 0; i < DEVICES; i++) /* (2) */
                fds[i] = open(devices[i].path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        bool ok = mount("none", "/dev", "tmpfs", QUIET, "mode=755,size=64k") == 0 && fill_dev(fds);
        for (size_t i = 0; i < DEVICES; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
        return ok;
}

/* ---- all of it ---- */

bool exec_mounts_enter(const struct exec_shield_plan *plan, bool root)
{
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
            !guard(plan))
                return false;
        /* In a user namespace inside a container /proc may not be mounted anew. The old one shows
         * the processes outside, whose memory only Landlock keeps from being read: docs/security.md
         * names this. */
        bool proc = mount("proc", "/proc", "proc", QUIET, NULL) == 0;
        if (!root) {
                (void)mount_terminals(); /* docs/security.md: not promised */
                /* A user may have control groups of their own, and can end or freeze what is in
                 * them. Where /sys has no such group there is nothing to lock. */
                (void)lock_tree("/sys");
                return true;
        }
        if (!proc)
                return false;
        limit_processes(plan);
        return lock_kernel() && make_dev();
}
