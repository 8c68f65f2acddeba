/*
 * term_pager.c - long answers for a person go through $STENO_PAGER, $PAGER or less.
 */
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <signal.h>
#include <fcntl.h>

#include "cli/interrupt.h"
#include "cli/term.h"

extern char **environ;

static const char *pager_command(void)
{
        const char *p = getenv("STENO_PAGER");

        if (p == NULL)
                p = getenv("PAGER");
        if (p == NULL)
                p = "less -FRX";
        return p;
}

pid_t term_pager_start(struct out *o)
{
        const char *command = pager_command();
        char *argv[] = {"sh", "-c", (char *)command, NULL};
        posix_spawn_file_actions_t fa;
        posix_spawnattr_t attr;
        sigset_t defaults;
        int ends[2];
        pid_t pid = 0;

        if (!o->tty || command[0] == 0 || strcmp(command, "cat") == 0)
                return 0;
        if (pipe2(ends, O_CLOEXEC) != 0)
                return 0;
        /* less shows colours only when told; a setting of the user's own goes first. */
        setenv("LESS", "FRX", 0);
        posix_spawn_file_actions_init(&fa);
        posix_spawn_file_actions_adddup2(&fa, ends[0], STDIN_FILENO);
        posix_spawnattr_init(&attr);
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE);
        sigaddset(&defaults, SIGINT);
        posix_spawnattr_setsigdefault(&attr, &defaults);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
        if (posix_spawn(&pid, "/bin/sh", &fa, &attr, argv, environ) != 0)
                pid = 0;
        posix_spawnattr_destroy(&attr);
        posix_spawn_file_actions_destroy(&fa);
        close(ends[0]);
        if (pid == 0) {
                close(ends[1]);
                return 0;
        }
        interrupt_ignore();
        o->fd = ends[1];
        return pid;
}

void term_pager_end(struct out *o, pid_t pid)
{
        int status;

        out_flush(o);
        if (pid == 0)
                return;
        close(o->fd);
        o->fd = STDOUT_FILENO;
        /* Leaving the pager early is not a failure. */
        if (o->sys == EPIPE)
                o->sys = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
}
