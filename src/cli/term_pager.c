/*
 * term_pager.c - long answers for a person go through $STENO_PAGER, $PAGER or less. Where there is
 * no such program they are printed as they are.
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

#define WORDS_MAX 16

static const char *pager_command(void)
{
        const char *p = getenv("STENO_PAGER");

        if (p == NULL)
                p = getenv("PAGER");
        if (p == NULL)
                p = "less -FRX";
        return p;
}

/* Splits a command into words, in place. False: it has characters that only a shell understands. */
static bool split_words(char *command, char *argv[WORDS_MAX + 1])
{
        static const char PLAIN[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "-_./+,: ";
        size_t n = 0;

        if (command[strspn(command, PLAIN)] != 0)
                return false;
        for (char *rest, *word = strtok_r(command, " ", &rest); word;
             word = strtok_r(NULL, " ", &rest)) {
                if (n == WORDS_MAX)
                        return false;
                argv[n++] = word;
        }
        argv[n] = NULL;
        return n > 0;
}

/* Starts the command with `in` as its input; 0: it cannot be started, for example because there
 * is no such program. A shell can always be started, and would lose the text if it found no
 * program. So a shell is used only for commands that need one. */
static pid_t spawn_pager(const char *command, int in)
{
        char *shell[] = {"/bin/sh", "-c", (char *)command, NULL};
        char *words[WORDS_MAX + 1];
        char *copy = strdup(command);
        char **argv = copy && split_words(copy, words) ? words : shell;
        posix_spawn_file_actions_t fa;
        posix_spawnattr_t attr;
        sigset_t defaults;
        pid_t pid = 0;

        posix_spawn_file_actions_init(&fa);
        posix_spawn_file_actions_adddup2(&fa, in, STDIN_FILENO);
        posix_spawnattr_init(&attr);
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE);
        sigaddset(&defaults, SIGINT);
        posix_spawnattr_setsigdefault(&attr, &defaults);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
        if (posix_spawnp(&pid, argv[0], &fa, &attr, argv, environ) != 0)
                pid = 0;
        posix_spawnattr_destroy(&attr);
        posix_spawn_file_actions_destroy(&fa);
        free(copy);
        return pid;
}

pid_t term_pager_start(struct out *o)
{
        const char *command = pager_command();
        int ends[2];

        if (!o->tty || command[strspn(command, " ")] == 0 || strcmp(command, "cat") == 0)
                return 0;
        if (pipe2(ends, O_CLOEXEC) != 0)
                return 0;
        /* less shows colours only with -R. The user's own LESS is left alone. */
        setenv("LESS", "FRX", 0);
        pid_t pid = spawn_pager(command, ends[0]);
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
