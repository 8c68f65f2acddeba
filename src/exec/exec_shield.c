/*
 * exec_shield.c - Landlock rules and mount namespaces, by raw system calls.
 *
 * Defines the numbers of the Landlock ABI itself, so that it builds with old kernel headers. Must
 * not know what is executed, nor why a directory is hidden.
 */
#include "exec/exec_shield.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"

#define NR_LANDLOCK_CREATE 444
#define NR_LANDLOCK_ADD 445
#define NR_LANDLOCK_RESTRICT 446
#define LANDLOCK_ABI_QUERY 1u
#define LANDLOCK_RULE_BENEATH 1

/* EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_*, MAKE_*: the first version of the ABI. */
#define ACCESS_V1 ((UINT64_C(1) << 13) - 1)
#define ACCESS_REFER (UINT64_C(1) << 13)    /* version 2 */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14) /* version 3 */
/* What a rule on something that is no directory may name. */
#define ACCESS_OF_FILE (UINT64_C(7) | ACCESS_TRUNCATE)

struct ruleset_attr {
        uint64_t handled_access_fs;
};

struct beneath_attr {
        uint64_t allowed_access;
        int32_t parent_fd;
} __attribute__((packed));

/* ---- Landlock rules, in the parent ---- */

/* IOCTL_DEV and later rights stay unhandled: what is not handled is allowed. */
static uint64_t handled_access(void)
{
        long abi = syscall(NR_LANDLOCK_CREATE, NULL, (size_t)0, LANDLOCK_ABI_QUERY);

        if (abi < 1)
                return 0;
        uint64_t access = ACCESS_V1;
        if (abi >= 2)
                access |= ACCESS_REFER;
        if (abi >= 3)
                access |= ACCESS_TRUNCATE;
        return access;
}

static int ruleset_new(uint64_t access)
{
        struct ruleset_attr attr = {access};

        if (access == 0)
                return -1;
        return (int)syscall(NR_LANDLOCK_CREATE, &attr, sizeof(attr), 0u);
}

/* Symbolic links need no rule: access is judged where they lead. A name that vanished meanwhile
 * is no loss either. */
static void allow_at(int ruleset, uint64_t access, int dir, const char *name)
{
        struct stat st;
        int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return;
        if (fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode)) {
                struct beneath_attr attr = {
                    S_ISDIR(st.st_mode) ? access : access & ACCESS_OF_FILE, fd};
                syscall(NR_LANDLOCK_ADD, ruleset, LANDLOCK_RULE_BENEATH, &attr, 0u);
        }
        close(fd);
}

enum relation { APART, ABOVE, SAME };

/* How `path` stands to a hidden directory: elsewhere, on the way to it, or it. */
static enum relation relate(const char *path, const char *hidden)
{
        size_t n = strcmp(path, "/") == 0 ? 0 : strlen(path);

        if (strncmp(path, hidden, n) != 0)
                return APART;
        if (hidden[n] == '\0')
                return SAME;
        return hidden[n] == '/' ? ABOVE : APART;
}

static enum relation relate_all(const struct exec_shield_plan *plan, const char *path)
{
        enum relation worst = APART;

        for (size_t i = 0; i < plan->count; i++) {
                enum relation r = relate(path, plan->hidden[i]);
                if (r > worst)
                        worst = r;
        }
        return worst;
}

/* Depth is that of the hidden paths, so the recursion is short. */
static int allow_beside(
    const struct exec_shield_plan *plan, int ruleset, uint64_t access, const char *path)
{
        DIR *dir = opendir(path);
        if (!dir)
                return errno == EACCES ? 0 : -errno;
        char *child = malloc(PATH_MAX);
        int rc = child ? 0 : -ENOMEM;
        struct dirent *entry;

        while (rc == 0 && (entry = readdir(dir))) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                int n = snprintf(
                    child, PATH_MAX, "%s/%s", strcmp(path, "/") == 0 ? "" : path, entry->d_name);
                if (n < 0 || n >= PATH_MAX)
                        continue;
                switch (relate_all(plan, child)) {
                case APART:
                        allow_at(ruleset, access, dirfd(dir), entry->d_name);
                        break;
                case ABOVE:
                        rc = allow_beside(plan, ruleset, access, child);
                        break;
                case SAME:
                        break;
                }
        }
        free(child);
        closedir(dir);
        return rc;
}

/* ---- the plan ---- */

static int resolve_hidden(
    struct exec_shield_plan *plan, const char *const *hidden, struct steno_error *err)
{
        for (size_t i = 0; hidden && hidden[i]; i++) {
                char *real = realpath(hidden[i], NULL);
                if (!real && (errno == ENOENT || errno == ENOTDIR))
                        continue;
                if (!real)
                        return error_sys(err, errno, "%s", hidden[i]);
                if (plan->count == EXEC_HIDDEN_MAX || strcmp(real, "/") == 0) {
                        free(real);
                        return error_set(err, STENO_EINVAL, "%s cannot be hidden", hidden[i]);
                }
                memcpy(plan->hidden[plan->count++], real, strlen(real) + 1);
                free(real);
        }
        return 0;
}

/* Where the child's own work would suffer from what Landlock takes away. */
static bool works_above(const struct exec_shield_plan *plan, const char *directory)
{
        char *real = realpath(directory, NULL);
        bool above = real && relate_all(plan, real) == ABOVE;

        free(real);
        return above;
}

int exec_shield_plan(struct exec_shield_plan *plan, const char *const *hidden,
    const char *directory, struct steno_error *err)
{
        uint64_t access = handled_access();
        int rc;

        memset(plan, 0, sizeof(*plan));
        plan->strict = plan->loose = -1;
        rc = resolve_hidden(plan, hidden, err);
        if (rc < 0)
                return rc;
        /* A user namespace shows root's files as nobody's, which ssh and others mind: without
         * privileges it is taken only where Landlock would break ordinary work. */
        plan->namespace_first = geteuid() == 0 || works_above(plan, directory ? directory : ".") ||
                                works_above(plan, "/tmp");
        snprintf(plan->user_map, sizeof(plan->user_map), "%u %u 1\n", (unsigned)geteuid(),
            (unsigned)geteuid());
        snprintf(plan->group_map, sizeof(plan->group_map), "%u %u 1\n", (unsigned)getegid(),
            (unsigned)getegid());

        plan->loose = ruleset_new(access);
        if (plan->loose >= 0)
                allow_at(plan->loose, access, AT_FDCWD, "/");
        if (plan->count == 0)
                return 0;
        plan->strict = ruleset_new(access);
        rc = plan->strict >= 0 ? allow_beside(plan, plan->strict, access, "/") : 0;
        if (rc < 0) {
                exec_shield_release(plan);
                return error_sys(err, rc, "cannot list the directories around the store");
        }
        return 0;
}

void exec_shield_release(struct exec_shield_plan *plan)
{
        if (plan->strict >= 0)
                close(plan->strict);
        if (plan->loose >= 0)
                close(plan->loose);
        plan->strict = plan->loose = -1;
}

/* ---- in the child: system calls only ---- */

static bool enforce(int ruleset)
{
        return ruleset >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               syscall(NR_LANDLOCK_RESTRICT, ruleset, 0u) == 0;
}

static bool write_file(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        size_t n = strlen(text);
        bool ok = fd >= 0 && write(fd, text, n) == (ssize_t)n;

        if (fd >= 0)
                close(fd);
        return ok;
}

enum entered { ENTERED, REFUSED, BROKEN };

static enum entered enter_namespace(const struct exec_shield_plan *plan)
{
        if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0) {
                if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                        return REFUSED;
                if (!write_file("/proc/self/setgroups", "deny") ||
                    !write_file("/proc/self/uid_map", plan->user_map) ||
                    !write_file("/proc/self/gid_map", plan->group_map))
                        return BROKEN;
        }
        if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                return BROKEN;
        for (size_t i = 0; i < plan->count; i++)
                if (mount("none", plan->hidden[i], "tmpfs",
                        MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=000,size=4k") < 0)
                        return BROKEN;
        return ENTERED;
}

int exec_shield_apply(const struct exec_shield_plan *plan, bool namespaces)
{
        if (plan->count == 0)
                return enforce(plan->loose) ? EXEC_SHIELD_LANDLOCK : EXEC_SHIELD_NONE;
        if (!namespaces || !plan->namespace_first)
                if (enforce(plan->strict))
                        return EXEC_SHIELD_LANDLOCK;
        if (!namespaces)
                return EXEC_SHIELD_NONE;

        switch (enter_namespace(plan)) {
        case ENTERED:
                /* Without this a child that kept its privileges could unmount. */
                enforce(plan->loose);
                return EXEC_SHIELD_NAMESPACE;
        case BROKEN:
                return -1;
        default:
                return enforce(plan->strict) ? EXEC_SHIELD_LANDLOCK : EXEC_SHIELD_NONE;
        }
}
