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
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"
#include "exec/exec_aliases.h"
#include "exec/exec_filter.h"
#include "exec/exec_mounts.h"

#define NR_LANDLOCK_CREATE 444
#define NR_LANDLOCK_ADD 445
#define NR_LANDLOCK_RESTRICT 446
#define LANDLOCK_ABI_QUERY 1u
#define LANDLOCK_RULE_BENEATH 1

/* EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_*, MAKE_*: the first version of the ABI. */
#define ACCESS_V1 ((UINT64_C(1) << 13) - 1)
#define ACCESS_REFER (UINT64_C(1) << 13)                                     /* version 2 */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14)                                  /* version 3 */
#define ACCESS_READ (UINT64_C(1) << 0 | UINT64_C(1) << 2 | UINT64_C(1) << 3) /* and EXECUTE */
/* What a rule on something that is not a directory may name. */
#define ACCESS_OF_FILE (UINT64_C(7) | ACCESS_TRUNCATE)

#define SCOPE_SIGNAL (UINT64_C(1) << 1) /* version 6 */

/* The kernel takes a shorter one from programs that know less. */
struct ruleset_attr {
        uint64_t handled_access_fs;
        uint64_t handled_access_net;
        uint64_t scoped;
};

struct beneath_attr {
        uint64_t allowed_access;
        int32_t parent_fd;
} __attribute__((packed));

/* ---- Landlock rules, in the parent ---- */

static long landlock_version(void)
{
        return syscall(NR_LANDLOCK_CREATE, NULL, (size_t)0, LANDLOCK_ABI_QUERY);
}

/* IOCTL_DEV and later rights stay unhandled: what is not handled is allowed. */
static uint64_t handled_access(long version)
{
        if (version < 1)
                return 0;
        uint64_t access = ACCESS_V1;
        if (version >= 2)
                access |= ACCESS_REFER;
        if (version >= 3)
                access |= ACCESS_TRUNCATE;
        return access;
}

static int ruleset_new(uint64_t access, bool scoped)
{
        struct ruleset_attr attr = {access, 0, SCOPE_SIGNAL};
        size_t size = scoped ? sizeof(attr) : sizeof(attr.handled_access_fs);

        if (access == 0)
                return -1;
        return (int)syscall(NR_LANDLOCK_CREATE, &attr, size, 0u);
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
                        allow_at(ruleset,
                            strcmp(child, "/sys") == 0 ? access & ACCESS_READ : access, dirfd(dir),
                            entry->d_name);
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

/* A directory inside of another one is hidden with it. */
static int hide(void *ctx, const char *path)
{
        struct exec_shield_plan *plan = ctx;
        size_t kept = 0;

        for (size_t i = 0; i < plan->count; i++)
                if (relate(plan->hidden[i], path) != APART)
                        return 0;
        for (size_t i = 0; i < plan->count; i++)
                if (relate(path, plan->hidden[i]) != ABOVE && kept++ != i)
                        memcpy(plan->hidden[kept - 1], plan->hidden[i], sizeof(plan->hidden[i]));
        plan->count = kept;
        if (plan->count == EXEC_HIDDEN_MAX || strcmp(path, "/") == 0)
                return STENO_EINVAL;
        memcpy(plan->hidden[plan->count++], path, strlen(path) + 1);
        return 0;
}

static int resolve_hidden(
    struct exec_shield_plan *plan, const char *const *hidden, struct steno_error *err)
{
        for (size_t i = 0; hidden && hidden[i]; i++) {
                char *real = realpath(hidden[i], NULL);
                if (!real && (errno == ENOENT || errno == ENOTDIR))
                        continue;
                if (!real)
                        return error_sys(err, errno, "%s", hidden[i]);
                int rc = hide(plan, real);
                if (rc == 0)
                        rc = exec_aliases(real, hide, plan);
                free(real);
                if (rc == STENO_ENOMEM)
                        return error_nomem(err);
                if (rc)
                        return error_set(err, rc, "%s cannot be hidden", hidden[i]);
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

/* Which ways to try, best first. A user namespace shows root's files as nobody's, which ssh and
 * others mind: without privileges it is taken first only where Landlock would break ordinary work
 * or could not hold off signals and what else reaches other processes. */
static void choose_ways(struct exec_shield_plan *plan, const char *directory)
{
        bool user_first = !plan->scoped || !plan->filtered ||
                          works_above(plan, directory ? directory : ".") ||
                          works_above(plan, "/tmp");

        if (geteuid() == 0)
                plan->ways[plan->way_count++] = EXEC_WAY_ROOT;
        if (user_first)
                plan->ways[plan->way_count++] = EXEC_WAY_USER;
        plan->ways[plan->way_count++] = EXEC_WAY_LANDLOCK;
        if (!user_first)
                plan->ways[plan->way_count++] = EXEC_WAY_USER;
        plan->ways[plan->way_count++] = EXEC_WAY_BARE;
}

/* Before 6.14 pid_max is one for the whole machine and must not be touched. */
static bool has_own_pid_max(void)
{
        struct utsname name;
        unsigned major = 0, minor = 0;

        return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
               (major > 6 || (major == 6 && minor >= 14));
}

int exec_shield_plan(struct exec_shield_plan *plan, const char *const *hidden,
    const char *directory, struct steno_error *err)
{
        long version = landlock_version();
        uint64_t access = handled_access(version);
        int rc;

        memset(plan, 0, sizeof(*plan));
        plan->strict = plan->loose = -1;
        plan->scoped = version >= 6;
        plan->filtered = exec_filter_possible();
        plan->own_pid_max = has_own_pid_max();
        rc = resolve_hidden(plan, hidden, err);
        if (rc < 0)
                return rc;
        choose_ways(plan, directory);
        snprintf(plan->user_map, sizeof(plan->user_map), "%u %u 1\n", (unsigned)geteuid(),
            (unsigned)geteuid());
        snprintf(plan->group_map, sizeof(plan->group_map), "%u %u 1\n", (unsigned)getegid(),
            (unsigned)getegid());

        plan->loose = ruleset_new(access, plan->scoped);
        if (plan->loose >= 0)
                allow_at(plan->loose, access, AT_FDCWD, "/");
        plan->strict = ruleset_new(access, plan->scoped);
        /* Where nothing is hidden, the root folder can be listed like every other. */
        if (plan->strict >= 0 && plan->count == 0)
                allow_at(plan->strict, access & ACCESS_READ, AT_FDCWD, "/");
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

unsigned long exec_shield_clone_flags(enum exec_way way)
{
        return way == EXEC_WAY_ROOT   ? CLONE_NEWPID
               : way == EXEC_WAY_USER ? CLONE_NEWUSER | CLONE_NEWPID
                                      : 0;
}

bool exec_shield_has_pids(enum exec_way way)
{
        return way == EXEC_WAY_ROOT || way == EXEC_WAY_USER;
}

/* ---- in the supervisor and the child: system calls only ---- */

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

bool exec_shield_enter(const struct exec_shield_plan *plan, enum exec_way way)
{
        /* The files of a process that is not dumpable belong to root, these too. */
        return way != EXEC_WAY_USER || (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 &&
                                           write_file("/proc/self/setgroups", "deny") &&
                                           write_file("/proc/self/uid_map", plan->user_map) &&
                                           write_file("/proc/self/gid_map", plan->group_map));
}

/* Capabilities that root keeps: for files, users and its own processes, as in a usual container.
 * The others could undo the mounts, reach processes and disks around them, open files by their
 * number instead of their name, read or redirect what a browser says to Steno's port (NET_RAW,
 * NET_ADMIN), lift the limits of a command (SYS_RESOURCE), or take all the time of the processors
 * (SYS_NICE).
 */
static const int kept[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL,
    CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_AUDIT_WRITE,
    CAP_SETFCAP};

static bool is_kept(int capability)
{
        for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
                if (kept[i] == capability)
                        return true;
        return false;
}

/* The bounding set counts: root gets the rest back at each exec. */
static bool drop_capabilities(void)
{
        struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
        struct __user_cap_data_struct data[2];

        if (syscall(SYS_capget, &head, data) < 0)
                return false;
        for (int i = 0; i < 64; i++) {
                uint32_t bit = UINT32_C(1) << (i % 32);
                struct __user_cap_data_struct *d = &data[i / 32];
                if (is_kept(i))
                        continue;
                /* EINVAL: a number that this kernel does not know. */
                if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0 && errno != EINVAL)
                        return false;
                d->effective &= ~bit;
                d->permitted &= ~bit;
                d->inheritable &= ~bit;
        }
        return syscall(SYS_capset, &head, data) == 0 &&
               (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 || errno == EINVAL);
}

/* In a user namespace its own processes are counted, elsewhere all of the user's would be. */
static void limit_user_processes(void)
{
        struct rlimit limit = {EXEC_PROCESSES_MAX, EXEC_PROCESSES_MAX};

        setrlimit(RLIMIT_NPROC, &limit);
}

static int apply_namespace(const struct exec_shield_plan *plan, enum exec_way way, unsigned *gaps)
{
        bool root = way == EXEC_WAY_ROOT;

        if (!exec_mounts_enter(plan, root))
                return -1;
        if (root && !drop_capabilities())
                return -1;
        if (!root)
                limit_user_processes();
        if (root && !plan->own_pid_max)
                *gaps |= EXEC_GAP_PROCESSES;
        /* Nothing may change the mounts: Landlock refuses that, and otherwise the filter has to. */
        if (!enforce(plan->loose))
                *gaps |= EXEC_GAP_FILES;
        return EXEC_SHIELD_NAMESPACE;
}

static int apply_way(const struct exec_shield_plan *plan, enum exec_way way, unsigned *gaps)
{
        *gaps = 0;
        if (exec_shield_has_pids(way))
                return apply_namespace(plan, way, gaps);
        *gaps = EXEC_GAP_PROCESSES;
        if (way == EXEC_WAY_LANDLOCK) {
                if (!enforce(plan->strict))
                        return -1;
                if (geteuid() == 0 && !drop_capabilities())
                        return -1;
                *gaps |= plan->scoped ? 0 : EXEC_GAP_SIGNALS;
                *gaps |= geteuid() == 0 ? EXEC_GAP_MACHINE : 0;
                return EXEC_SHIELD_LANDLOCK;
        }
        *gaps |= EXEC_GAP_SIGNALS | EXEC_GAP_FILES;
        *gaps |= geteuid() == 0 ? EXEC_GAP_MACHINE : 0;
        return EXEC_SHIELD_NONE;
}

int exec_shield_apply(const struct exec_shield_plan *plan, enum exec_way way, unsigned *gaps)
{
        int shield = apply_way(plan, way, gaps);
        bool filtered = shield >= 0 && exec_filter_apply();

        if (filtered && shield == EXEC_SHIELD_NAMESPACE)
                *gaps &= ~(unsigned)EXEC_GAP_FILES;
        /* In a PID namespace a child finds no process but its supervisor, which is all that the
         * namespace lives by. */
        if (shield >= 0 && !filtered && !exec_shield_has_pids(way))
                *gaps |= EXEC_GAP_LIMITS;
        return shield;
}
