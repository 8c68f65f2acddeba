/*
 * exec.c - starting a supervised child, and running a command through one pipe.
 *
 * Owns the preparation before the fork (everything that allocates) and the loop that moves the
 * output. Must not know what the output means.
 */
#include "exec/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "exec/exec_super.h"

#define PIPE_BYTES (1 * MIB) /* what an unprivileged process may ask for */
#define READ_BYTES (256 * KIB)
#define POLL_MS 50      /* how long a stop may go unnoticed */
#define LINGER_MS 300   /* for the output of processes that the command left behind */
#define OVERDUE_MS 3000 /* beyond what a supervisor takes at most */

/* ---- before the fork ---- */

static const char *env_value(const char *const *env, const char *name)
{
        size_t n = strlen(name);

        for (size_t i = 0; env && env[i]; i++)
                if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
                        return env[i] + n + 1;
        return NULL;
}

/* The paths that execvp would try, found with the child's PATH and not with ours. */
static char **candidates(struct arena *a, const char *program, const char *const *env)
{
        const char *path = env_value(env, "PATH");
        size_t n = 2;

        if (!path || !*path)
                path = "/usr/local/bin:/usr/bin:/bin";
        for (const char *p = path; *p; p++)
                n += *p == ':';
        char **list = arena_zalloc(a, (n + 1) * sizeof(*list));
        if (!list)
                return NULL;
        if (strchr(program, '/')) {
                list[0] = (char *)arena_dup(a, str_of(program)).p;
                return list[0] ? list : NULL;
        }
        size_t i = 0;
        for (const char *p = path; p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
                size_t dir = strcspn(p, ":");
                size_t name = strlen(program);
                char *full = arena_alloc(a, dir + name + 3);
                if (!full)
                        return NULL;
                /* An empty entry means the current directory. */
                memcpy(full, p, dir);
                if (dir == 0)
                        full[dir++] = '.';
                full[dir] = '/';
                memcpy(full + dir + 1, program, name + 1);
                list[i++] = full;
        }
        return list;
}

static char *absolute(struct arena *a, const char *directory)
{
        if (directory && directory[0] == '/')
                return (char *)arena_dup(a, str_of(directory)).p;
        char *here = getcwd(NULL, 0);
        if (!here)
                return NULL;
        size_t n = strlen(here), m = directory ? strlen(directory) : 0;
        char *full = arena_alloc(a, n + m + 2);
        if (full) {
                memcpy(full, here, n);
                full[n] = '/';
                memcpy(full + n + 1, directory ? directory : "", m + 1);
        }
        free(here);
        return full;
}

static int describe(const struct exec_word *w, const struct exec_spec *spec, const char *program,
    struct steno_error *err)
{
        int code = w->b == ENOENT || w->b == ENOTDIR ? STENO_ENOTFOUND
                   : w->b == EACCES || w->b == EPERM ? STENO_EDENIED
                                                     : STENO_EIO;

        if (w->a == EXEC_STAGE_DIRECTORY && w->b == EXDEV)
                error_set(err, code = STENO_EDENIED,
                    "cannot run \"%.80s\": %.100s leads out of the working directory", program,
                    spec->inside);
        else if (w->a == EXEC_STAGE_DIRECTORY)
                error_set(err, code, "cannot run \"%.80s\" in %.100s: %s", program,
                    spec->inside      ? spec->inside
                    : spec->directory ? spec->directory
                                      : "the working directory",
                    strerror(w->b));
        else if (w->a != EXEC_STAGE_EXEC)
                return error_sys(err, w->b, "cannot run \"%.100s\"", program);
        else if (w->b == ENOENT && !strchr(program, '/'))
                error_set(err, code, "cannot run \"%.100s\": no such program in PATH", program);
        else
                error_set(err, code, "cannot run \"%.100s\": %s", program, strerror(w->b));
        if (err)
                err->sys = w->b;
        return code;
}

/* One word of the supervisor; waits for it. False when the supervisor is gone. */
static bool hear(int control, int flags, struct exec_word *w)
{
        ssize_t n;

        do
                n = recv(control, w, sizeof(*w), flags);
        while (n < 0 && errno == EINTR);
        if (n == 0)
                errno = EPIPE;
        return n == sizeof(*w);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define WITH_TSAN
#endif

#ifdef WITH_TSAN
static int supervise(void *launch)
{
        exec_supervise(launch);
}

/* TSan looks at every call of the copy, and hangs there when another thread held one of its locks
 * at the fork. It knows of clone() of the C library, and of no other way into namespaces. */
static pid_t fork_into(unsigned long flags, const struct exec_launch *launch)
{
        char *stack = malloc(256 * KIB); /* the copy has a copy of it */
        if (!stack)
                return -1;
        pid_t pid = clone(supervise, stack + 256 * KIB, (int)flags | SIGCHLD, (void *)launch);
        int failure = errno;
        free(stack);
        errno = failure;
        return pid;
}
#else
/* The C library has no fork into namespaces; the copy makes system calls only. */
static pid_t fork_into(unsigned long flags, const struct exec_launch *launch)
{
        pid_t pid =
            flags ? (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL) : _Fork();
        if (pid == 0)
                exec_supervise(launch);
        return pid;
}
#endif

static int fork_supervisor(const struct exec_launch *launch, struct exec_process *p)
{
        sigset_t all, before;

        /* A handler of the host must not run in the copy. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        p->supervisor = fork_into(exec_shield_clone_flags(launch->way), launch);
        int failure = p->supervisor < 0 ? errno : 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return failure;
}

/* One attempt, by l->way. *again: this way is not possible here, another may be. */
static int launch(struct exec_launch *l, const struct exec_spec *spec, struct exec_process *p,
    bool *again, struct steno_error *err)
{
        struct exec_word w = {.kind = -1};
        int pair[2];

        *again = false;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_sys(err, errno, "cannot run \"%.100s\"", l->argv[0]);
        l->control = pair[1];
        int failure = fork_supervisor(l, p);
        close(pair[1]);
        if (failure) {
                close(pair[0]);
                *again = exec_shield_clone_flags(l->way) != 0;
                return error_sys(err, failure, "cannot fork");
        }
        if (hear(pair[0], 0, &w) && w.kind == EXEC_STARTED) {
                p->shield = (enum exec_shield)w.a;
                p->gaps = (unsigned)w.b;
                p->control = pair[0];
                return 0;
        }
        close(pair[0]);
        while (waitpid(p->supervisor, NULL, 0) < 0 && errno == EINTR)
                continue;
        *again = w.kind == EXEC_FAILED && w.a == EXEC_STAGE_SHIELD;
        if (w.kind != EXEC_FAILED)
                return error_set(err, STENO_EIO, "the supervising process died");
        return describe(&w, spec, l->argv[0], err);
}

/* Tries the plan's ways until one is possible. */
static int launch_somehow(struct exec_launch *l, const struct exec_spec *spec,
    struct exec_process *p, struct steno_error *err)
{
        bool again = true;
        int rc = 0;

        for (size_t i = 0; again && i < l->plan->way_count; i++) {
                l->way = l->plan->ways[i];
                rc = launch(l, spec, p, &again, err);
        }
        return rc;
}

/* Replaces a stream that the caller has not given. A root folder without devices has no /dev/null:
 * an empty file of the memory can be read in its place, which is what most want. */
static int open_null(const struct exec_spec *spec, const char *program, struct steno_error *err)
{
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        int failure = errno;

        if (null < 0 && spec->out >= 0 && spec->err >= 0)
                null = memfd_create("null", MFD_CLOEXEC);
        if (null < 0)
                error_sys(err, failure, "cannot run \"%.100s\" without /dev/null", program);
        return null;
}

int exec_spawn(const struct exec_spec *spec, struct exec_process *p, struct steno_error *err)
{
        const char *const shell[] = {"/bin/sh", "-c", spec->shell, NULL};
        const char *const *argv = spec->shell ? shell : spec->argv;
        struct exec_shield_plan plan;
        struct arena a;
        int rc;

        memset(p, 0, sizeof(*p));
        p->control = -1;
        int null = open_null(spec, argv[0], err);
        if (null < 0)
                return STENO_EIO;
        arena_init(&a);
        rc = exec_shield_plan(&plan, spec->hidden, spec->directory, err);
        if (rc < 0)
                goto out;
        struct exec_launch l = {
            .programs = candidates(&a, argv[0], spec->env),
            .argv = (char *const *)argv,
            .env = (char *const *)spec->env,
            .directory = absolute(&a, spec->directory),
            .inside = spec->inside,
            .plan = &plan,
            .memory_bytes = spec->memory_bytes,
            .cpu_seconds = spec->cpu_seconds,
            .in = spec->in >= 0 ? spec->in : null,
            .out = spec->out >= 0 ? spec->out : null,
            .err = spec->err >= 0 ? spec->err : null,
        };
        if (!l.programs || !l.directory)
                rc = a.failed ? error_nomem(err) : error_sys(err, errno, "the working directory");
        else
                rc = launch_somehow(&l, spec, p, err);
out:
        close(null);
        exec_shield_release(&plan);
        arena_release(&a);
        return rc;
}

/* ---- a running process ---- */

static void note(struct exec_process *p, const struct exec_word *w)
{
        if (w->kind == EXEC_EXITED) {
                p->exited = true;
                p->status = w->a;
        } else if (w->kind == EXEC_GONE) {
                p->gone = true;
                p->leftover = (unsigned)w->a;
        }
}

static void count_as_killed(struct exec_process *p)
{
        p->gone = true;
        if (!p->exited) {
                p->exited = true;
                p->status = SIGKILL;
        }
}

void exec_notice(struct exec_process *p)
{
        struct exec_word w;

        while (!p->gone && hear(p->control, MSG_DONTWAIT, &w))
                note(p, &w);
        if (p->gone || errno == EAGAIN)
                return;
        /* The supervisor was killed; its child went with it. */
        count_as_killed(p);
}

static void order(struct exec_process *p, char c)
{
        if (p->control < 0 || p->gone)
                return;
        if (!p->until)
                p->until = time_monotonic_ms() + EXEC_GRACE_MS + EXEC_DEFIANT_MS + OVERDUE_MS;
        while (send(p->control, &c, 1, MSG_NOSIGNAL) < 0 && errno == EINTR)
                continue;
}

void exec_terminate(struct exec_process *p)
{
        order(p, EXEC_ORDER_TERMINATE);
}

bool exec_is_overdue(const struct exec_process *p)
{
        return p->until && time_monotonic_ms() >= p->until;
}

void exec_finish(struct exec_process *p)
{
        if (p->control < 0)
                return;
        order(p, EXEC_ORDER_KILL);
        while (!p->gone && !exec_is_overdue(p)) {
                struct pollfd fd = {p->control, POLLIN, 0};
                poll(&fd, 1, POLL_MS);
                exec_notice(p);
        }
        /* Its child goes with it, and in a PID namespace all the others. */
        if (!p->gone) {
                kill(p->supervisor, SIGKILL);
                count_as_killed(p);
        }
        close(p->control);
        p->control = -1;
        while (waitpid(p->supervisor, NULL, 0) < 0 && errno == EINTR)
                continue;
}

void exec_conceal(void)
{
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* ---- a command ---- */

struct run {
        const struct exec_options *opt;
        struct exec_result *result;
        struct exec_process process;
        int out; /* our end of the pipe; -1 after its end */
        char *buffer;
        int64_t started;
        int64_t exited; /* when we learned of it */
        int sink_failed;
};

static void end_output(struct run *r)
{
        close(r->out);
        r->out = -1;
}

/* How many of `n` more bytes are kept. The first one beyond the limit ends the command. */
static size_t within_limit(struct run *r, size_t n)
{
        uint64_t max = r->opt->output_max;
        if (max == 0 || r->result->bytes + n <= max)
                return n;
        if (!r->result->overflowed)
                exec_terminate(&r->process);
        r->result->overflowed = true;
        return (size_t)(max - r->result->bytes);
}

/* Reads once; false when nothing is there now. */
static bool move_output(struct run *r)
{
        ssize_t n = read(r->out, r->buffer, READ_BYTES);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                end_output(r);
                return false;
        }
        size_t take = within_limit(r, (size_t)n);
        r->result->bytes += take;
        if (r->opt->sink && !r->sink_failed && take) {
                r->sink_failed = r->opt->sink(r->opt->sink_ctx, r->buffer, take);
                if (r->sink_failed)
                        exec_terminate(&r->process);
        }
        return true;
}

static void check_limits(struct run *r, bool stop_ready)
{
        const struct exec_options *o = r->opt;
        struct exec_result *res = r->result;

        if (res->stopped || res->timed_out || r->process.exited)
                return;
        if (stop_ready || (o->stopped && o->stopped(o->stopped_ctx)))
                res->stopped = true;
        else if (o->timeout_ms && time_monotonic_ms() - r->started >= (int64_t)o->timeout_ms)
                res->timed_out = true;
        else
                return;
        exec_terminate(&r->process);
}

static int next_wait(const struct run *r)
{
        int64_t wait = POLL_MS;

        if (r->opt->timeout_ms) {
                int64_t left = r->started + (int64_t)r->opt->timeout_ms - time_monotonic_ms();
                if (left < wait)
                        wait = left < 1 ? 1 : left;
        }
        return (int)wait;
}

/* One turn of waiting; false when there is nothing left to wait for. */
static bool turn(struct run *r)
{
        struct exec_process *p = &r->process;
        struct pollfd fds[] = {{r->out, POLLIN, 0}, {p->gone ? -1 : p->control, POLLIN, 0},
            {r->opt->stop_fd, POLLIN, 0}};

        if (r->result->stopped)
                fds[2].fd = -1;
        poll(fds, 3, next_wait(r));
        if (fds[1].revents)
                exec_notice(p);
        if (p->exited && !r->exited)
                r->exited = time_monotonic_ms();
        check_limits(r, fds[2].revents != 0);

        bool moved = r->out >= 0 && fds[0].revents && move_output(r);
        if (!p->exited)
                return !exec_is_overdue(p);
        if (r->out < 0)
                return false;
        /* A process that the command left behind still holds the pipe. We read what it writes for a
         * short while, counted from the command's exit, so that a process that writes for ever
         * cannot hold us up. */
        return p->gone ? moved : time_monotonic_ms() - r->exited < LINGER_MS;
}

static void conclude(struct run *r)
{
        struct exec_result *res = r->result;
        int status = r->process.status;

        res->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        res->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        res->leftover = r->process.leftover;
        res->shield = r->process.shield;
        res->gaps = r->process.gaps;
        res->duration_ms = (uint64_t)((r->exited ? r->exited : time_monotonic_ms()) - r->started);
}

int exec_run(const struct exec_spec *spec, const struct exec_options *opt,
    struct exec_result *result, struct steno_error *err)
{
        struct run r = {.opt = opt, .result = result, .out = -1, .started = time_monotonic_ms()};
        struct exec_spec with = *spec;
        int fds[2];
        int rc;

        memset(result, 0, sizeof(*result));
        r.process.control = -1;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return error_sys(err, errno, "cannot make a pipe");
        r.out = fds[0];
        r.buffer = malloc(READ_BYTES);
        if (!r.buffer) {
                close(fds[1]);
                rc = error_nomem(err);
                goto out;
        }
        fcntl(fds[0], F_SETPIPE_SZ, (int)PIPE_BYTES);
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        with.in = -1;
        with.out = with.err = fds[1];
        rc = exec_spawn(&with, &r.process, err);
        close(fds[1]);
        if (rc < 0)
                goto out;
        while (turn(&r))
                continue;
        exec_finish(&r.process);
        /* What the last processes wrote before they were ended is still in the pipe. */
        while (r.out >= 0 && move_output(&r))
                continue;
        conclude(&r);
        if (r.sink_failed)
                rc = error_set(err, STENO_EINTERRUPTED, "the output was refused");
out:
        if (r.out >= 0)
                end_output(&r);
        free(r.buffer);
        return rc;
}
