/*
 * exec_super.c - starts the child, gathers its orphans, and ends them all when told.
 *
 * Invariants:
 *   1. Between fork and exec, and in the supervisor for ever, only async-signal-safe calls.
 *   2. The supervisor holds no descriptor of ours but the control socket, so that no lock or
 *      pipe of ours lives longer because of it.
 *   3. It ends only when it has no descendants left, or when they are still there 10 s after
 *      SIGKILL.
 *   4. What it needs to find and end descendants was opened before the child ran. If /proc cannot
 *      be read, there may still be descendants: the process group and the children that the kernel
 *      lists are signalled all the same.
 */
#include "exec/exec_super.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "exec/exec.h"

#define SWEEP_MS 10

/* ---- descriptors ---- */

static void close_span(unsigned first, unsigned last)
{
        if (first > last || syscall(SYS_close_range, first, last, 0u) == 0)
                return;
        /* Kernels before 5.9. */
        struct rlimit limit;
        unsigned end = 65536;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < end)
                end = (unsigned)limit.rlim_cur;
        for (unsigned fd = first; fd <= last && fd < end; fd++)
                close((int)fd);
}

/* Descriptors 0 to 2 are kept open, so that no file of ours gets one of these numbers and is
 * written to by code that prints to stdout or stderr. */
static void fill_standard(void)
{
        int fd;

        while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd < 3)
                continue;
        if (fd >= 0)
                close(fd);
}

static void close_all_but(int *keep, size_t n)
{
        unsigned from = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t k = i + 1; k < n; k++)
                        if (keep[k] < keep[i]) {
                                int t = keep[i];
                                keep[i] = keep[k];
                                keep[k] = t;
                        }
        for (size_t i = 0; i < n; i++) {
                if (keep[i] < 0 || (unsigned)keep[i] < from)
                        continue;
                if ((unsigned)keep[i] > from)
                        close_span(from, (unsigned)keep[i] - 1);
                from = (unsigned)keep[i] + 1;
        }
        close_span(from, ~0u);
}

/* ---- the child ---- */

struct report {
        int32_t shield;
        uint32_t gaps;
        int32_t stage; /* EXEC_STAGE_NONE: all went well so far */
        int32_t sys;
};

/* As the kernel has it: the C library keeps signals 32 and 33 to itself and would leave them
 * ignored, as a parent that was started with posix_spawn hands them down. */
struct kernel_sigaction {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
};

static void reset_signals(void)
{
        struct kernel_sigaction plain = {.handler = SIG_DFL};
        sigset_t none;

        for (int s = 1; s < NSIG; s++)
                syscall(SYS_rt_sigaction, s, &plain, NULL, sizeof plain.mask);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool place_descriptors(const struct exec_launch *l, int *report)
{
        int in = fcntl(l->in, F_DUPFD_CLOEXEC, 10);
        int out = fcntl(l->out, F_DUPFD_CLOEXEC, 10);
        int err = fcntl(l->err, F_DUPFD_CLOEXEC, 10);
        int high = fcntl(*report, F_DUPFD_CLOEXEC, 10);

        if (in < 0 || out < 0 || err < 0 || high < 0)
                return false;
        *report = high;
        if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
                return false;
        int keep[] = {0, 1, 2, high};
        close_all_but(keep, 4);
        return true;
}

/* A lower limit that Steno itself was started with is kept, because it must not be raised. */
static bool limit(int what, rlim_t soft, rlim_t hard)
{
        struct rlimit r;

        if (getrlimit(what, &r) < 0)
                return false;
        if (hard < r.rlim_max)
                r.rlim_max = hard;
        r.rlim_cur = soft < r.rlim_max ? soft : r.rlim_max;
        return setrlimit(what, &r) == 0;
}

static bool limit_resources(const struct exec_launch *l)
{
        /* The data segment counts what is really writable; limiting address space would break
         * every program that reserves more than it uses. */
        if (l->memory_bytes && !limit(RLIMIT_DATA, l->memory_bytes, l->memory_bytes))
                return false;
        if (l->cpu_seconds && !limit(RLIMIT_CPU, l->cpu_seconds, l->cpu_seconds + 1))
                return false;
        return limit(RLIMIT_CORE, 0, 0);
}

/* Which errno to report: "exists but is not executable" is more useful than "does not exist". */
static int try_programs(const struct exec_launch *l)
{
        int best = ENOENT;

        for (size_t i = 0; l->programs[i]; i++) {
                execve(l->programs[i], l->argv, l->env);
                int failure = errno;
                /* A directory of PATH that may not be searched says nothing about the program. */
                if (failure == EACCES && access(l->programs[i], F_OK) < 0)
                        continue;
                if (failure != ENOENT && failure != ENOTDIR && best != EACCES)
                        best = failure;
        }
        return best;
}

_Noreturn static void give_up(int fd, struct report r, int32_t stage)
{
        r.stage = stage;
        r.sys = errno;
        ssize_t ignored = write(fd, &r, sizeof(r));
        (void)ignored;
        _exit(127);
}

/* openat2 and its structure are younger than some C libraries. */
struct how {
        uint64_t flags, mode, resolve;
};

#define NR_OPENAT2 437
#define BENEATH 0x08u
#define NO_MAGIC_LINKS 0x02u

/* After the shield, so that a directory that is hidden now is not entered from before. */
static bool enter_directory(const struct exec_launch *l)
{
        struct how how = {
            .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = BENEATH | NO_MAGIC_LINKS};

        if (chdir(l->directory) < 0)
                return false;
        if (!l->inside)
                return true;
        int fd = (int)syscall(NR_OPENAT2, AT_FDCWD, l->inside, &how, sizeof(how));
        return fd >= 0 && fchdir(fd) == 0;
}

_Noreturn static void become_child(const struct exec_launch *l, int fd)
{
        struct report r = {0};
        unsigned gaps = 0;

        setsid();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        r.shield = exec_shield_apply(l->plan, l->way, &gaps);
        r.gaps = gaps;
        if (r.shield < 0)
                give_up(fd, r, EXEC_STAGE_SHIELD);
        if (!place_descriptors(l, &fd) || !limit_resources(l))
                give_up(fd, r, EXEC_STAGE_SETUP);
        if (!enter_directory(l))
                give_up(fd, r, EXEC_STAGE_DIRECTORY);
        if (write(fd, &r, sizeof(r)) != sizeof(r))
                _exit(127);
        reset_signals();
        errno = try_programs(l);
        give_up(fd, r, EXEC_STAGE_EXEC);
}

/* The child's pid, or -1 with *r filled. *r holds the last word of the child. */
static pid_t start_child(const struct exec_launch *l, struct report *r)
{
        int fds[2];
        struct report got;

        *r = (struct report){.stage = EXEC_STAGE_FORK};
        if (pipe2(fds, O_CLOEXEC) < 0) {
                r->sys = errno;
                return -1;
        }
        pid_t pid = _Fork();
        if (pid == 0)
                become_child(l, fds[1]);
        int failure = errno;
        close(fds[1]);
        if (pid < 0) {
                close(fds[0]);
                r->sys = failure;
                return -1;
        }
        for (;;) {
                ssize_t n = read(fds[0], &got, sizeof(got));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n != sizeof(got))
                        break;
                *r = got;
        }
        close(fds[0]);
        if (r->stage == EXEC_STAGE_NONE)
                return pid;
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        return -1;
}

/* ---- descendants ---- */

struct family {
        int proc;     /* /proc */
        int children; /* the kernel's list of our own children; -1 where it keeps none */
        struct {
                pid_t pid;
                pid_t parent;
                bool ours;
        } * list;
        size_t count;
        size_t cap;
        bool partly; /* some could not be looked at (4) */
};

/* False: it is gone, or could not be looked at, which `partly` says. */
static bool read_parent(int proc, const char *name, pid_t *parent, bool *partly)
{
        char path[32];
        char text[512];
        size_t n = strlen(name);

        if (n > 20)
                return false;
        memcpy(path, name, n);
        memcpy(path + n, "/stat", 6);
        int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
                *partly = *partly || (errno != ENOENT && errno != ESRCH);
                return false;
        }
        ssize_t got = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (got <= 0)
                return false;
        text[got] = '\0';
        /* "pid (name) S ppid": the name may hold anything, so count from its last bracket. */
        const char *p = strrchr(text, ')');
        if (!p || strlen(p) < 5)
                return false;
        pid_t v = 0;
        for (p += 4; *p >= '0' && *p <= '9'; p++)
                v = v * 10 + (*p - '0');
        *parent = v;
        return true;
}

static void family_add(struct family *f, const char *name)
{
        pid_t pid = 0;

        for (const char *p = name; *p; p++) {
                if (*p < '0' || *p > '9')
                        return;
                pid = pid * 10 + (*p - '0');
        }
        if (f->count == f->cap) {
                f->partly = true;
                return;
        }
        pid_t parent;
        if (!read_parent(f->proc, name, &parent, &f->partly))
                return;
        f->list[f->count].pid = pid;
        f->list[f->count].parent = parent;
        f->list[f->count++].ours = false;
}

static void family_read(struct family *f)
{
        char entries[8192];

        f->count = 0;
        f->partly = f->proc < 0 || lseek(f->proc, 0, SEEK_SET) < 0;
        while (!f->partly) {
                long n = syscall(SYS_getdents64, f->proc, entries, sizeof(entries));
                f->partly = n < 0;
                if (n <= 0)
                        break;
                for (long at = 0; at < n;) {
                        const char *e = entries + at;
                        unsigned short length;
                        memcpy(&length, e + offsetof(struct dirent64, d_reclen), sizeof(length));
                        family_add(f, e + offsetof(struct dirent64, d_name));
                        at += length;
                }
        }
}

/* Orphans become our children, so that ending these again and again ends all. Reading the list
 * takes no new descriptor. */
static unsigned signal_children(const struct family *f, int signal)
{
        char text[4096];
        unsigned found = 0;
        pid_t pid = 0;
        ssize_t n = f->children >= 0 ? pread(f->children, text, sizeof(text), 0) : 0;

        for (ssize_t i = 0; i < n; i++) {
                if (text[i] >= '0' && text[i] <= '9') {
                        pid = pid * 10 + (text[i] - '0');
                        continue;
                }
                if (pid > 0 && kill(pid, signal) == 0)
                        found++;
                pid = 0;
        }
        return found;
}

static bool is_ours(const struct family *f, pid_t pid)
{
        for (size_t i = 0; i < f->count; i++)
                if (f->list[i].ours && f->list[i].pid == pid)
                        return true;
        return false;
}

/* Signals every descendant; how many there were. */
static unsigned signal_all(struct family *f, pid_t child, int signal)
{
        pid_t self = getpid();
        unsigned found = 0;
        bool grew = true;

        if (child > 0)
                kill(-child, signal);
        family_read(f);
        if (f->partly)
                found = signal_children(f, signal);
        while (grew) {
                grew = false;
                for (size_t i = 0; i < f->count; i++) {
                        pid_t parent = f->list[i].parent;
                        if (f->list[i].ours || !(parent == self || is_ours(f, parent)))
                                continue;
                        f->list[i].ours = grew = true;
                        found++;
                        kill(f->list[i].pid, signal);
                        if (signal == SIGTERM)
                                kill(f->list[i].pid, SIGCONT);
                }
        }
        return found;
}

/* ---- the watch ---- */

enum phase { RUNNING, TERMINATING, KILLING };

struct watch {
        int control;
        int signals;
        pid_t child;
        bool child_gone;
        bool has_pids; /* we are the first process of a PID namespace */
        unsigned leftover;
        enum phase phase;
        int64_t since; /* when the phase began */
        struct family family;
};

static void say(int control, int32_t kind, int32_t a, int32_t b)
{
        struct exec_word w = {kind, a, b};

        while (send(control, &w, sizeof(w), MSG_NOSIGNAL) < 0 && errno == EINTR)
                continue;
}

/* Signals every descendant; how many there were, as far as /proc tells. */
static unsigned signal_tree(struct watch *w, int signal)
{
        if (!w->has_pids)
                return signal_all(&w->family, w->child_gone ? 0 : w->child, signal);
        /* From the first process of a namespace this reaches all the others, however they fork. */
        kill(-1, signal);
        if (signal == SIGTERM)
                kill(-1, SIGCONT);
        return 0;
}

/* False when no descendant is left. */
static bool reap(struct watch *w)
{
        for (;;) {
                int status;
                pid_t pid = waitpid(-1, &status, WNOHANG);
                if (pid < 0 && errno == EINTR)
                        continue;
                if (pid < 0)
                        return false;
                if (pid == 0)
                        return true;
                if (pid == w->child) {
                        w->child_gone = true;
                        say(w->control, EXEC_EXITED, status, 0);
                } else if (w->has_pids && w->child_gone && w->phase == KILLING) {
                        w->leftover++;
                }
        }
}

static void enter_phase(struct watch *w, enum phase phase)
{
        if (phase <= w->phase)
                return;
        w->phase = phase;
        w->since = time_monotonic_ms();
        unsigned found = signal_tree(w, phase == KILLING ? SIGKILL : SIGTERM);
        if (w->child_gone && phase == KILLING && !w->has_pids)
                w->leftover = found;
}

static void take_orders(struct watch *w)
{
        char order[8];
        ssize_t n = recv(w->control, order, sizeof(order), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0 && order[0] == EXEC_ORDER_TERMINATE)
                enter_phase(w, TERMINATING);
        else
                enter_phase(w, KILLING);
}

static void advance(struct watch *w)
{
        if (w->phase == TERMINATING && time_monotonic_ms() - w->since >= EXEC_GRACE_MS)
                enter_phase(w, KILLING);
        else if (w->phase == KILLING)
                signal_tree(w, SIGKILL);
}

static void watch_tree(struct watch *w)
{
        for (;;) {
                struct pollfd fds[] = {{w->control, POLLIN, 0}, {w->signals, POLLIN, 0}};
                struct signalfd_siginfo info;
                int wait = w->phase == RUNNING ? -1 : w->phase == KILLING ? SWEEP_MS : 50;

                /* It fails where a limit of descriptors was taken from us (4): then all is looked
                 * at, now and then. */
                if (poll(fds, 2, wait) < 0 && errno != EINTR) {
                        poll(NULL, 0, SWEEP_MS);
                        fds[0].revents = fds[1].revents = POLLIN;
                }
                if (fds[1].revents)
                        while (read(w->signals, &info, sizeof(info)) > 0)
                                continue;
                if (fds[0].revents)
                        take_orders(w);
                if (!reap(w))
                        break;
                advance(w);
                if (w->phase == KILLING && time_monotonic_ms() - w->since > EXEC_DEFIANT_MS)
                        break;
        }
        say(w->control, EXEC_GONE, (int32_t)w->leftover, 0);
}

/* (4) */
static void family_open(struct family *f)
{
        f->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        f->children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
}

static bool watch_init(struct watch *w, int control)
{
        sigset_t set;
        size_t cap = 65536;
        void *memory = mmap(NULL, cap * sizeof(*w->family.list), PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        memset(w, 0, sizeof(*w));
        if (memory == MAP_FAILED)
                return false;
        w->family.list = memory;
        w->family.cap = cap;
        family_open(&w->family);
        w->control = control;
        sigfillset(&set);
        sigprocmask(SIG_SETMASK, &set, NULL);
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(SIGCHLD, &plain, NULL);
        w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return w->signals >= 0;
}

_Noreturn void exec_supervise(const struct exec_launch *l)
{
        struct watch w;
        struct report r = {.stage = EXEC_STAGE_FORK, .sys = ENOMEM};
        int first[] = {l->control, l->in, l->out, l->err, l->plan->strict, l->plan->loose};

        setsid();
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        /* Not by prctl(): a sanitizer's takes a lock for it that another thread of ours may have
         * held when this process was made, and that nobody gives back here. */
        syscall(SYS_prctl, PR_SET_NAME, "steno-exec", 0L, 0L, 0L);
        close_all_but(first, sizeof(first) / sizeof(*first));
        fill_standard();
        if (!exec_shield_enter(l->plan, l->way)) {
                r = (struct report){.stage = EXEC_STAGE_SHIELD, .sys = errno};
                goto failed;
        }
        if (!watch_init(&w, l->control))
                goto failed;
        w.has_pids = exec_shield_has_pids(l->way);
        /* Our copy of the environment is not for the child; without Landlock this hides it. Not
         * earlier: a user namespace's maps belong to root while we are not dumpable. */
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        w.child = start_child(l, &r);
        if (w.child < 0)
                goto failed;
        int second[] = {w.control, w.signals, w.family.proc, w.family.children};
        close_all_but(second, sizeof(second) / sizeof(*second));
        fill_standard();
        say(w.control, EXEC_STARTED, r.shield, (int32_t)r.gaps);
        watch_tree(&w);
        _exit(0);
failed:
        say(l->control, EXEC_FAILED, r.stage, r.sys);
        _exit(1);
}
