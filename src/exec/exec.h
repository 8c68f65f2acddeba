/*
 * exec.h - child processes that see only what they are given and leave nothing behind.
 *
 * A child has its own session and process group, the environment that was listed for it, three
 * descriptors and no more, limits, and a shield (exec_shield.h). Between it and us stands a
 * supervisor, a forked process without an image of its own: orphans of the child, however they
 * detached themselves, become the supervisor's children, so that all of them can be found and
 * ended. When we die, the supervisor notices this and ends them, too.
 *
 * Knows nothing of tools, stores or JSON.
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/exec_shield.h"
#include "steno.h"

/* From SIGTERM to SIGKILL; below the two seconds after which the loop leaves a call behind. */
#define EXEC_GRACE_MS 1500
/* How long after SIGKILL a supervisor waits for processes that do not end. */
#define EXEC_DEFIANT_MS 10000

struct exec_spec {
        const char *const *argv; /* NULL-terminated; NULL when `shell` is set */
        const char *shell;       /* one opaque string for /bin/sh -c */
        const char *directory;   /* NULL: the caller's */
        const char *inside; /* a path below `directory`, where it runs; STENO_EDENIED when it leads
                               out of it, also by links. NULL: `directory` itself */
        const char *const *env;    /* NULL-terminated NAME=VALUE, the whole environment */
        const char *const *hidden; /* NULL-terminated directories it must not reach, or NULL */
        uint64_t memory_bytes;     /* of each process; 0: no limit */
        uint64_t cpu_seconds;      /* of each process; 0: no limit */
        int in, out, err;          /* become 0, 1 and 2; -1: /dev/null. Stay the caller's. */
};

struct exec_process {
        pid_t supervisor;
        int control; /* readable when there is something for exec_notice() */
        enum exec_shield shield;
        unsigned gaps; /* enum exec_gap */
        bool exited;
        int status;        /* as of waitpid, once exited */
        bool gone;         /* no process of its tree is left */
        unsigned leftover; /* processes that were still there after it had exited, and were ended */
        int64_t until;     /* the time by which the supervisor must have ended after an order; 0: no
                              order yet */
};

/*
 * Starts it. STENO_ENOTFOUND: no such program or directory; STENO_EDENIED: not executable.
 * `p` must be given to exec_finish().
 */
int exec_spawn(const struct exec_spec *spec, struct exec_process *p, struct steno_error *err);
/* Reads the messages of the supervisor; never waits. */
void exec_notice(struct exec_process *p);
/* Sends SIGTERM to the whole tree; processes that are left after EXEC_GRACE_MS get SIGKILL. Does
 * not wait. */
void exec_terminate(struct exec_process *p);
/* Should the supervisor have ended by now? Then it was tampered with, and is not waited for. */
bool exec_is_overdue(const struct exec_process *p);
/* Ends the rest of the tree at once, waits for that, and frees what `p` holds. The wait always
 * ends: a supervisor that takes too long is ended, too. */
void exec_finish(struct exec_process *p);

/*
 * For programs that run commands. From now on, the files of the calling process in /proc belong to
 * root. So no command of the same user can use them to change how the kernel treats the process, or
 * to read its memory where Landlock is absent. The process leaves no core dump, and only root can
 * debug it.
 */
void exec_conceal(void);

/* ---- a command from start to end ---- */

struct exec_options {
        uint64_t timeout_ms; /* 0: none */
        /* Gets stdout and stderr, interleaved, as they come. Non-zero ends the command, and
         * exec_run answers STENO_EINTERRUPTED. May be NULL. */
        steno_sink sink;
        void *sink_ctx;
        uint64_t output_max; /* bytes; a command that prints more is ended; 0: no limit */
        int stop_fd;         /* readable: stop; -1: none */
        /* Asked at least every 50 ms; true: stop. May be NULL. */
        bool (*stopped)(void *ctx);
        void *stopped_ctx;
};

struct exec_result {
        int exit_code; /* -1 when a signal ended it */
        int signal;    /* 0 when it exited */
        bool timed_out;
        bool stopped;
        bool overflowed; /* ended because it had printed output_max bytes, which the sink has */
        enum exec_shield shield;
        unsigned gaps; /* enum exec_gap */
        unsigned leftover;
        uint64_t duration_ms;
        uint64_t bytes; /* of output */
};

/*
 * Runs it with stdin at /dev/null; spec's descriptors are ignored. 0 whenever it ran, however it
 * ended.
 */
int exec_run(const struct exec_spec *spec, const struct exec_options *opt,
    struct exec_result *result, struct steno_error *err);

/* ---- environment ---- */

/*
 * The variables of `from` (NULL-terminated NAME=VALUE) that a child may see: PATH, HOME, LANG,
 * LC_*, TERM, TZ, TMPDIR, USER, LOGNAME, SHELL and the names in `allowed`; then the NAME=VALUE
 * entries of `extra`, which win. Both lists are NULL-terminated and may be NULL. Freed with
 * exec_env_free().
 */
int exec_env(const char *const *from, const char *const *allowed, const char *const *extra,
    char ***out, struct steno_error *err);
void exec_env_free(char **env);

#endif
