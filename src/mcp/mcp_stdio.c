/*
 * mcp_stdio.c - an MCP server as a child process: one JSON message a line.
 *
 * A thread of its own reads what the server prints and hands each message to the exchange that
 * waits for it; it also drains stderr, notices death, and sees the process to its end. It owns the
 * process and our ends of its output pipes. `lock` guards the list of waiting exchanges and what
 * they were handed; `write_lock` guards stdin, so that lines are never interleaved.
 */
#include "mcp/mcp_transport.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fs.h"
#include "base/named_file.h"
#include "base/wait.h"
#include "exec/exec.h"
#include "exec/exec_modes.h"
#include "mcp/mcp_stream.h"
#include "tool/tool.h"

#define TICK_MS 50
#define CLOSE_MS 2000    /* for a server to end by itself after its stdin was closed */
#define STDERR_TAIL 1024 /* what is kept for the message about its death */
#define INBOX_MAX 10000  /* notifications that may wait for one exchange */
#define READ_BYTES (64 * KIB)

struct mcp_letter {
        struct mcp_letter *next;
        char *text;
        size_t n;
        bool is_answer;
};

/* An exchange that waits; lives on its caller's stack. */
struct mcp_waiter {
        struct mcp_waiter *next;
        const struct mcp_exchange *x;
        uint64_t id;
        struct mcp_letter *first;
        struct mcp_letter **last;
        size_t letters;
        int failed; /* STENO_ELIMIT: its answer may have been in a line that was too long */
        struct steno_error why; /* with a code: why an answer that was not held failed */
};

struct mcp_stdio {
        struct mcp_transport base;
        char *name;
        struct exec_process process;
        pthread_t thread;
        bool threaded;
        int in, out, err, wake;

        pthread_mutex_t write_lock;
        pthread_mutex_t lock;
        pthread_cond_t change;
        struct mcp_waiter *waiters;
        bool dead;
        bool closing;
        int status;
        struct buf stderr_tail;

        struct buf line; /* the reader's */
        bool spoke;      /* it has written something; the reader's */
        bool skipping;   /* inside of a line that is too long */

        /* A line that is not held: either its content goes to a waiter as it comes, or, where
         * nobody can tell yet whose it is, it waits in a file. The reader's, too. */
        struct mcp_stream *large;
        uint64_t large_id;
        int spool;     /* descriptor, -1: none */
        bool judged;   /* it was decided what becomes of the line at hand */
        bool deserted; /* somebody left without an answer, which may still come; by `lock` */
};

/* ---- writing ---- */

/* A pipe has no MSG_NOSIGNAL: SIGPIPE is held back, and taken if it was ours. */
static ssize_t write_quietly(int fd, const char *p, size_t n)
{
        sigset_t pipe_only, before, pending;
        struct timespec none = {0};

        sigemptyset(&pipe_only);
        sigaddset(&pipe_only, SIGPIPE);
        sigpending(&pending);
        pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
        ssize_t got = write(fd, p, n);
        int failure = errno;
        if (got < 0 && failure == EPIPE && !sigismember(&pending, SIGPIPE))
                while (sigtimedwait(&pipe_only, NULL, &none) < 0 && errno == EINTR)
                        continue;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = failure;
        return got;
}

static int out_of_time(int64_t deadline, const struct steno_stop *stop, struct steno_error *err)
{
        if (steno_stop_requested(stop))
                return error_set(err, STENO_EINTERRUPTED, "stopped");
        if (deadline && time_monotonic_ms() >= deadline)
                return error_set(err, STENO_ETIMEOUT, "no answer in time");
        return 0;
}

/* A line that was written only in part cannot be taken back. The server can no longer be used then,
 * and is ended. */
static int mcp_stdio_send(struct mcp_stdio *s, struct str body, int64_t deadline,
    const struct steno_stop *stop, struct steno_error *err)
{
        size_t done = 0;
        int rc = 0;

        pthread_mutex_lock(&s->write_lock);
        while (done <= body.n && rc == 0) {
                const char *p = done < body.n ? body.p + done : "\n";
                ssize_t got =
                    s->in < 0 ? -1 : write_quietly(s->in, p, done < body.n ? body.n - done : 1);
                if (got > 0) {
                        done += (size_t)got;
                        continue;
                }
                if (s->in < 0 || (errno != EAGAIN && errno != EINTR)) {
                        rc = error_set(err, STENO_EIO, "it takes no more requests");
                        break;
                }
                struct pollfd fd = {s->in, POLLOUT, 0};
                rc = out_of_time(deadline, stop, err);
                if (rc == 0)
                        poll(&fd, 1, TICK_MS);
        }
        if (rc < 0 && done > 0 && s->in >= 0) {
                close(s->in);
                s->in = -1;
        }
        pthread_mutex_unlock(&s->write_lock);
        return rc;
}

/* ---- reading: the thread ---- */

static void free_letters(struct mcp_letter *l)
{
        while (l) {
                struct mcp_letter *next = l->next;
                free(l->text);
                free(l);
                l = next;
        }
}

static void hand_over(struct mcp_stdio *s, uint64_t id, bool is_answer, struct str text)
{
        pthread_mutex_lock(&s->lock);
        struct mcp_waiter *w = s->waiters;
        while (w && w->id != id)
                w = w->next;
        struct mcp_letter *l = NULL;
        if (w && (is_answer || w->letters < INBOX_MAX))
                l = malloc(sizeof(*l));
        char *copy = l ? malloc(text.n + 1) : NULL;
        if (copy) {
                memcpy(copy, text.p, text.n);
                copy[text.n] = '\0';
                *l = (struct mcp_letter){NULL, copy, text.n, is_answer};
                *w->last = l;
                w->last = &l->next;
                w->letters++;
                pthread_cond_broadcast(&s->change);
        } else {
                free(l);
                if (w && is_answer)
                        w->failed = STENO_ENOMEM;
        }
        pthread_mutex_unlock(&s->lock);
}

/* A server that asks on and on and does not read gets no more answers: while we wait for room, it
 * may wait for us to read. What fits into a pipe in one piece is written whole or not at all. */
static void answer_request(struct mcp_stdio *s, const struct json *j)
{
        struct buf b;

        buf_init(&b, 64 * KIB);
        mcp_message_reply(&b, j);
        if (!b.failed)
                mcp_stdio_send(
                    s, buf_str(&b), time_monotonic_ms() + (b.n < PIPE_BUF ? 0 : 1000), NULL, NULL);
        buf_release(&b);
}

static struct mcp_waiter *waiter_of(struct mcp_stdio *s, uint64_t id)
{
        struct mcp_waiter *w = s->waiters;
        while (w && w->id != id)
                w = w->next;
        return w;
}

/* A line that is not JSON may still be an answer: one that is nested too deep, or broken. Whoever
 * waits for it is told, and does not wait until the end of its time. */
static void refuse_answer(struct mcp_stdio *s, struct str line)
{
        struct mcp_stream look;
        mcp_stream_init(&look, NULL, NULL);
        mcp_stream_feed(&look, line.p, line.n);
        pthread_mutex_lock(&s->lock);
        bool answer = !look.has_method && look.has_id && (look.has_result || look.has_error);
        struct mcp_waiter *w = answer ? waiter_of(s, look.id) : NULL;
        if (w)
                error_set(&w->why, STENO_EPROTO,
                    "its answer is not JSON, or is nested deeper than %d levels", JSON_DEPTH_MAX);
        pthread_cond_broadcast(&s->change);
        pthread_mutex_unlock(&s->lock);
        mcp_stream_release(&look);
}

/* Other lines that are not messages are passed over: servers print greetings. */
static void take_line(struct mcp_stdio *s, struct str line)
{
        struct json j;
        uint64_t id;

        while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
                line.n--;
        if (line.n == 0)
                return;
        json_init(&j);
        enum mcp_kind kind = MCP_NONSENSE;
        if (json_parse(&j, line.p, line.n, NULL, NULL) == 0)
                kind = mcp_message_kind(&j, &id);
        else
                refuse_answer(s, line);
        if (kind == MCP_ANSWER || (kind == MCP_NOTIFICATION && id))
                hand_over(s, id, kind == MCP_ANSWER, line);
        else if (kind == MCP_REQUEST)
                answer_request(s, &j);
        json_release(&j);
}

/* Whose answer it was cannot be known without reading it. */
static void drop_long_line(struct mcp_stdio *s)
{
        pthread_mutex_lock(&s->lock);
        for (struct mcp_waiter *w = s->waiters; w; w = w->next)
                w->failed = STENO_ELIMIT;
        pthread_cond_broadcast(&s->change);
        pthread_mutex_unlock(&s->lock);
        s->skipping = true;
        buf_clear(&s->line);
}

/* ---- lines that are not held ---- */

/* On the reader's thread. Whoever left gets nothing more. */
static int to_waiter(void *ctx, const void *p, size_t n)
{
        struct mcp_stdio *s = ctx;
        pthread_mutex_lock(&s->lock);
        struct mcp_waiter *w = waiter_of(s, s->large_id);
        int rc = w ? w->x->piece(w->x->piece_ctx, p, n) : 0;
        pthread_mutex_unlock(&s->lock);
        return rc;
}

static bool begin_large(struct mcp_stdio *s, uint64_t id)
{
        s->large = malloc(sizeof *s->large);
        if (!s->large)
                return false;
        s->large_id = id;
        mcp_stream_init(s->large, to_waiter, s);
        return true;
}

static void end_large(struct mcp_stdio *s)
{
        struct steno_error why = {0};
        struct buf answer;
        buf_init(&answer, MCP_LINE_MAX);
        int rc = mcp_stream_finish(s->large, s->large_id, &answer, &why);
        if (rc == 0) {
                hand_over(s, s->large_id, true, buf_str(&answer));
        } else {
                pthread_mutex_lock(&s->lock);
                struct mcp_waiter *w = waiter_of(s, s->large_id);
                if (w)
                        w->why = why;
                pthread_cond_broadcast(&s->change);
                pthread_mutex_unlock(&s->lock);
        }
        buf_release(&answer);
        mcp_stream_release(s->large);
        free(s->large);
        s->large = NULL;
}

static bool write_spool(struct mcp_stdio *s, const char *p, size_t n)
{
        return fs_write_all(fs_real(), s->spool, p, n) == 0;
}

static int to_stream(void *ctx, const void *p, size_t n)
{
        return mcp_stream_feed(ctx, p, n) != 0;
}

/* Reads the spooled line from its beginning, to learn whose it is or to give it out. */
static void replay_spool(struct mcp_stdio *s, struct mcp_stream *to)
{
        fs_copy_out(fs_real(), s->spool, 0, UINT64_MAX, to_stream, to, NULL);
}

static void end_spool(struct mcp_stdio *s)
{
        struct mcp_stream look;
        mcp_stream_init(&look, NULL, NULL);
        replay_spool(s, &look);
        if (look.has_id && !look.has_method && begin_large(s, look.id)) {
                replay_spool(s, s->large);
                end_large(s);
        }
        mcp_stream_release(&look);
        close(s->spool);
        s->spool = -1;
}

/* The line has become long: what is to become of it? Answers to calls of tools are not held. */
static void judge_line(struct mcp_stdio *s)
{
        struct mcp_stream look;
        mcp_stream_init(&look, NULL, NULL);
        mcp_stream_feed(&look, s->line.p, s->line.n);
        bool answer = !look.has_method && (look.has_result || look.has_error);
        pthread_mutex_lock(&s->lock);
        bool alone = s->waiters && !s->waiters->next && !s->deserted;
        struct mcp_waiter *w = look.has_id ? waiter_of(s, look.id) : alone ? s->waiters : NULL;
        uint64_t id = w ? w->id : 0;
        bool streams = w && w->x->piece;
        pthread_mutex_unlock(&s->lock);
        s->judged = true;
        if (answer && streams && begin_large(s, id)) {
                mcp_stream_feed(s->large, s->line.p, s->line.n);
                buf_clear(&s->line);
        } else if (answer && !look.has_id && !w) {
                s->spool = named_file_temp();
                if (s->spool >= 0 && !write_spool(s, s->line.p, s->line.n)) {
                        close(s->spool);
                        s->spool = -1;
                }
                if (s->spool >= 0)
                        buf_clear(&s->line);
        } else if (answer && !w) {
                s->skipping = true; /* nobody waits for it */
                buf_clear(&s->line);
        }
        mcp_stream_release(&look);
}

static void take_part(struct mcp_stdio *s, const char *p, size_t n)
{
        if (s->large) {
                mcp_stream_feed(s->large, p, n); /* what is wrong is told at its end */
        } else if (s->spool >= 0) {
                if (!write_spool(s, p, n)) {
                        close(s->spool);
                        s->spool = -1;
                        drop_long_line(s);
                }
        } else if (!s->skipping) {
                buf_put(&s->line, p, n);
                if (s->line.failed)
                        drop_long_line(s);
                else if (s->line.n > MCP_STREAM_FROM && !s->judged)
                        judge_line(s);
        }
}

static void mcp_stdio_take(struct mcp_stdio *s, const char *p, size_t n)
{
        s->spoke = true;
        while (n) {
                const char *end = memchr(p, '\n', n);
                size_t part = end ? (size_t)(end - p) : n;
                take_part(s, p, part);
                if (!end)
                        return;
                if (s->large)
                        end_large(s);
                else if (s->spool >= 0)
                        end_spool(s);
                else if (!s->skipping)
                        take_line(s, buf_str(&s->line));
                s->skipping = s->judged = false;
                buf_clear(&s->line);
                p = end + 1;
                n -= part + 1;
        }
}

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
                poll(fds, 4, closing ? TICK_MS : -1);
                if (fds[0].revents)
                        drain(s, &s->out, room, mcp_stdio_take);
                if (fds[1].revents)
                        drain(s, &s->err, room, keep_stderr);
                if (fds[2].revents)
                        exec_notice(&s->process);
                if (closing && !closed_at)
                        closed_at = time_monotonic_ms();
                /* One that has not said a word has nothing to bring to an end. */
                int64_t patience = s->spoke ? CLOSE_MS : 0;
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

/* ---- exchanges ---- */

static int describe_death(struct mcp_stdio *s, struct steno_error *err)
{
        struct buf *tail = &s->stderr_tail;
        struct str last = buf_str(tail);

        while (last.n && (last.p[last.n - 1] == '\n' || last.p[last.n - 1] == '\r'))
                last.n--;
        for (size_t i = last.n; i > 0; i--)
                if (last.p[i - 1] == '\n') {
                        last = str_span(last.p + i, last.n - i);
                        break;
                }
        int shown = last.n > 100 ? 100 : (int)last.n;
        const char *how = WIFSIGNALED(s->status) ? "was ended by signal" : "exited with";
        int number = WIFSIGNALED(s->status) ? WTERMSIG(s->status) : WEXITSTATUS(s->status);
        if (shown)
                return error_set(err, STENO_EIO, "MCP server %.40s %s %d: %.*s", s->name, how,
                    number, shown, last.p);
        return error_set(err, STENO_EIO, "MCP server %.40s %s %d", s->name, how, number);
}

static void enlist(struct mcp_stdio *s, struct mcp_waiter *w, const struct mcp_exchange *x)
{
        *w = (struct mcp_waiter){.id = x->id, .x = x};
        w->last = &w->first;
        pthread_mutex_lock(&s->lock);
        w->next = s->waiters;
        s->waiters = w;
        pthread_mutex_unlock(&s->lock);
}

static void delist(struct mcp_stdio *s, struct mcp_waiter *w, bool answered)
{
        pthread_mutex_lock(&s->lock);
        s->deserted = s->deserted || !answered;
        struct mcp_waiter **at = &s->waiters;
        while (*at != w)
                at = &(*at)->next;
        *at = w->next;
        pthread_mutex_unlock(&s->lock);
        free_letters(w->first);
}

/* The next message for this exchange, or NULL with *rc set when none will come. */
static struct mcp_letter *next_letter(struct mcp_stdio *s, struct mcp_waiter *w,
    const struct mcp_exchange *x, int *rc, struct steno_error *err)
{
        struct mcp_letter *l = NULL;

        pthread_mutex_lock(&s->lock);
        while (!(l = w->first)) {
                if (w->failed == STENO_ELIMIT)
                        *rc = error_set(err, STENO_ELIMIT,
                            "MCP server %.40s: an answer longer than 10 MiB was dropped", s->name);
                else if (w->why.code)
                        *rc = error_set(
                            err, w->why.code, "MCP server %.40s: %.150s", s->name, w->why.msg);
                else if (w->failed)
                        *rc = error_nomem(err);
                else if (s->dead)
                        *rc = describe_death(s, err);
                else
                        *rc = out_of_time(x->deadline, x->stop, err);
                if (*rc < 0)
                        break;
                wait_for(&s->change, &s->lock, TICK_MS);
        }
        if (l) {
                w->first = l->next;
                if (!w->first)
                        w->last = &w->first;
                w->letters--;
                l->next = NULL;
        }
        pthread_mutex_unlock(&s->lock);
        return l;
}

static void tell(const struct mcp_exchange *x, const struct mcp_letter *l)
{
        struct json j;

        if (!x->notice)
                return;
        json_init(&j);
        if (json_parse(&j, l->text, l->n, NULL, NULL) == 0)
                x->notice(x->ctx, &j);
        json_release(&j);
}

static int await_answer(
    struct mcp_stdio *s, struct mcp_waiter *w, struct mcp_exchange *x, struct steno_error *err)
{
        struct mcp_letter *l;
        int rc = 0;

        while ((l = next_letter(s, w, x, &rc, err))) {
                if (l->is_answer) {
                        x->answer = l->text;
                        x->answer_n = l->n;
                        free(l);
                        return 0;
                }
                tell(x, l);
                free_letters(l);
        }
        return rc;
}

static int mcp_stdio_exchange(
    struct mcp_transport *t, struct mcp_exchange *x, struct steno_error *err)
{
        struct mcp_stdio *s = (struct mcp_stdio *)t;
        struct mcp_waiter w;

        enlist(s, &w, x);
        int rc = mcp_stdio_send(s, x->body, x->deadline, x->stop, err);
        bool sent = rc == 0;
        /* Also when nothing could be sent: the reason why it died says more than the failed write.
         */
        if (sent || rc == STENO_EIO) {
                struct mcp_exchange last = *x;
                if (!sent)
                        last.deadline = time_monotonic_ms() + CLOSE_MS;
                int waited = await_answer(s, &w, &last, err);
                x->answer = last.answer;
                x->answer_n = last.answer_n;
                rc = sent || waited == STENO_EIO ? waited : rc;
        }
        if (sent && (rc == STENO_EINTERRUPTED || rc == STENO_ETIMEOUT)) {
                struct buf b;
                buf_init(&b, 4 * KIB);
                mcp_message_cancel(&b, x->id, rc == STENO_ETIMEOUT ? "timed out" : "stopped");
                mcp_stdio_send(s, buf_str(&b), time_monotonic_ms() + TICK_MS, NULL, NULL);
                buf_release(&b);
        }
        delist(s, &w, rc == 0 || !sent || w.why.code);
        return rc;
}

static int mcp_stdio_notify(struct mcp_transport *t, struct str body, struct steno_error *err)
{
        return mcp_stdio_send((struct mcp_stdio *)t, body, time_monotonic_ms() + 5000, NULL, err);
}

static void stdio_settle(struct mcp_transport *t, const char *version, bool modern)
{
        (void)t, (void)version, (void)modern;
}

/* ---- life ---- */

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
