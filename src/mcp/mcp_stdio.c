/*
 * mcp_stdio.c - an MCP server as a child process: its beginning, the thread that reads what it
 * prints, and its end; see mcp_stdio.h.
 */
#include "mcp/mcp_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/wait.h"
#include "exec/exec_modes.h"
#include "mcp/mcp_stream.h"

#define STDERR_TAIL 1024 /* what is kept for the message about its death */
#define READ_BYTES (64 * KIB)

/* ---- reading: the thread ---- */

static void keep_stderr(struct mcp_stdio *s, const char *p, size_t n)
{
        pthread_mutex_lock(&s->lock);
        if (n > STDERR_TAIL) {
                p += n - STDERR_TAIL;
                n = STDERR_TAIL;
        }
        buf_put(&s->stderr_tail, p, n);
        if (s->stderr_tail.n > STDERR_TAIL)
                buf_drop_front(&s->stderr_tail, s->stderr_tail.n - STDERR_TAIL);
        pthread_mutex_unlock(&s->lock);
}

/* Reads once; true when there may be more. Closes the descriptor at its end. */
static bool drain(struct mcp_stdio *s, int *fd, char *room,
    void (*take)(struct mcp_stdio *, const char *, size_t))
{
        ssize_t n = *fd >= 0 ? read(*fd, room, READ_BYTES) : -1;

        if (*fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
                return false;
        if (n <= 0) {
                close(*fd);
                *fd = -1;
                return false;
        }
        take(s, room, (size_t)n);
        return true;
}

static void mark_dead(struct mcp_stdio *s)
{
        pthread_mutex_lock(&s->lock);
        s->dead = true;
        s->status = s->process.status;
        pthread_cond_broadcast(&s->change);
        pthread_mutex_unlock(&s->lock);
}

static bool is_closing(struct mcp_stdio *s)
{
        pthread_mutex_lock(&s->lock);
        bool closing = s->closing;
        pthread_mutex_unlock(&s->lock);
        /* Without its stdout it can answer nothing. */
        return closing || s->out < 0;
}

static void *reader(void *arg)
{
        struct mcp_stdio *s = arg;
        char *room = malloc(READ_BYTES);
        int64_t closed_at = 0;
        bool terminated = false;

        while (room && !s->process.exited && !s->process.gone) {
                bool closing = is_closing(s);
                struct pollfd fds[] = {{s->out, POLLIN, 0}, {s->err, POLLIN, 0},
                    {s->process.control, POLLIN, 0}, {closing ? -1 : s->wake, POLLIN, 0}};
                poll(fds, 4, closing ? MCP_STDIO_TICK_MS : -1);
                if (fds[0].revents)
                        drain(s, &s->out, room, mcp_stdio_take);
                if (fds[1].revents)
                        drain(s, &s->err, room, keep_stderr);
                if (fds[2].revents)
                        exec_notice(&s->process);
                if (closing && !closed_at)
                        closed_at = time_monotonic_ms();
                /* One that has not said a word has nothing to bring to an end. */
                int64_t patience = s->spoke ? MCP_STDIO_CLOSE_MS : 0;
                if (closed_at && !terminated && time_monotonic_ms() - closed_at >= patience) {
                        exec_terminate(&s->process);
                        terminated = true;
                }
        }
        while (room && drain(s, &s->err, room, keep_stderr))
                continue;
        while (room && drain(s, &s->out, room, mcp_stdio_take))
                continue;
        exec_finish(&s->process);
        mark_dead(s);
        free(room);
        return NULL;
}

/* ---- life ---- */

static void stdio_settle(struct mcp_transport *t, const char *version, bool modern)
{
        (void)t, (void)version, (void)modern;
}

static void stdio_close(struct mcp_transport *t)
{
        struct mcp_stdio *s = (struct mcp_stdio *)t;
        uint64_t one = 1;

        pthread_mutex_lock(&s->write_lock);
        if (s->in >= 0)
                close(s->in);
        s->in = -1;
        pthread_mutex_unlock(&s->write_lock);
        if (s->threaded) {
                pthread_mutex_lock(&s->lock);
                s->closing = true;
                pthread_mutex_unlock(&s->lock);
                ssize_t ignored = write(s->wake, &one, sizeof(one));
                (void)ignored;
                pthread_join(s->thread, NULL);
        } else {
                exec_finish(&s->process);
        }
        exec_modes_restore(s->base.modes);
        exec_modes_free(s->base.modes);
        int *fds[] = {&s->out, &s->err, &s->wake};
        for (size_t i = 0; i < 3; i++)
                if (*fds[i] >= 0)
                        close(*fds[i]);
        if (s->large)
                mcp_stream_release(s->large);
        free(s->large);
        if (s->spool >= 0)
                close(s->spool);
        buf_release(&s->line);
        buf_release(&s->stderr_tail);
        pthread_cond_destroy(&s->change);
        pthread_mutex_destroy(&s->lock);
        pthread_mutex_destroy(&s->write_lock);
        free(s->name);
        free(s);
}

static const struct mcp_transport_ops stdio_ops = {
    mcp_stdio_exchange, mcp_stdio_notify, stdio_settle, stdio_close};

static struct mcp_stdio *stdio_new(const char *name)
{
        struct mcp_stdio *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->base.ops = &stdio_ops;
        s->in = s->out = s->err = s->wake = s->spool = -1;
        s->process.control = -1;
        s->name = strdup(name);
        buf_init(&s->line, MCP_LINE_MAX);
        buf_init(&s->stderr_tail, 4 * STDERR_TAIL);
        pthread_mutex_init(&s->write_lock, NULL);
        pthread_mutex_init(&s->lock, NULL);
        wait_init(&s->change);
        if (s->name)
                return s;
        stdio_close(&s->base);
        return NULL;
}

/* Three pipes; ours are the far ends and do not block. */
static int open_pipes(struct mcp_stdio *s, int theirs[3])
{
        int p[2];

        for (int i = 0; i < 3; i++) {
                if (pipe2(p, O_CLOEXEC) < 0)
                        return -errno;
                int ours = i == 0 ? p[1] : p[0];
                theirs[i] = i == 0 ? p[0] : p[1];
                *(i == 0 ? &s->in : i == 1 ? &s->out : &s->err) = ours;
                fcntl(ours, F_SETFL, O_NONBLOCK);
        }
        s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return s->wake < 0 ? -errno : 0;
}

/* Signals are for the host's own threads. */
static bool start_reader(struct mcp_stdio *s)
{
        sigset_t all, before;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        s->threaded = pthread_create(&s->thread, NULL, reader, s) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return s->threaded;
}

static void forget_modes(struct mcp_stdio *s)
{
        exec_modes_free(s->base.modes);
        s->base.modes = NULL;
}

static int start(struct mcp_stdio *s, const struct mcp_server *server, const struct mcp_host *host,
    const int theirs[3], struct steno_error *err)
{
        size_t n = 0;
        char **env = NULL;

        while (server->args && server->args[n])
                n++;
        const char **argv = calloc(n + 2, sizeof(*argv));
        if (!argv)
                return error_nomem(err);
        argv[0] = server->command;
        for (size_t i = 0; i < n; i++)
                argv[i + 1] = server->args[i];
        int rc =
            exec_env(host->env, host->environment, (const char *const *)server->env, &env, err);
        if (rc == 0) {
                struct exec_spec spec = {.argv = argv,
                    .directory = server->directory,
                    .env = (const char *const *)env,
                    .hidden = host->hidden,
                    .in = theirs[0],
                    .out = theirs[1],
                    .err = theirs[2]};
                rc = exec_modes_note(host->hidden, &s->base.modes, err);
                if (rc == 0)
                        rc = exec_spawn(&spec, &s->process, err);
                if (rc < 0 || s->process.shield == EXEC_SHIELD_NAMESPACE)
                        forget_modes(s);
        }
        if (rc < 0)
                error_prefix(err, rc, "MCP server %.40s", s->name);
        exec_env_free(env);
        free(argv);
        return rc;
}

int mcp_stdio_open(const struct mcp_server *server, const struct mcp_host *host,
    struct mcp_transport **out, struct steno_error *err)
{
        struct mcp_stdio *s = stdio_new(server->name);
        int theirs[3] = {-1, -1, -1};

        if (!s)
                return error_nomem(err);
        int rc = open_pipes(s, theirs);
        rc = rc < 0 ? error_sys(err, rc, "cannot make pipes") : start(s, server, host, theirs, err);
        for (int i = 0; i < 3; i++)
                if (theirs[i] >= 0)
                        close(theirs[i]);
        if (rc == 0 && !start_reader(s))
                rc = error_set(err, STENO_EIO, "cannot start a thread");
        if (rc < 0) {
                stdio_close(&s->base);
                return rc;
        }
        *out = &s->base;
        return 0;
}
