/*
 * mcp_stdio_exchange.c - one request to an MCP server that is a child process, and its answer; and
 * notifications, which have none. All of this runs on the thread of whoever asks.
 */
#include "mcp/mcp_stdio.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/wait.h"

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
int mcp_stdio_send(struct mcp_stdio *s, struct str body, int64_t deadline,
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
                        poll(&fd, 1, MCP_STDIO_TICK_MS);
        }
        if (rc < 0 && done > 0 && s->in >= 0) {
                close(s->in);
                s->in = -1;
        }
        pthread_mutex_unlock(&s->write_lock);
        return rc;
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

static void free_letters(struct mcp_letter *l)
{
        while (l) {
                struct mcp_letter *next = l->next;
                free(l->text);
                free(l);
                l = next;
        }
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
                wait_for(&s->change, &s->lock, MCP_STDIO_TICK_MS);
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

int mcp_stdio_exchange(struct mcp_transport *t, struct mcp_exchange *x, struct steno_error *err)
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
                        last.deadline = time_monotonic_ms() + MCP_STDIO_CLOSE_MS;
                int waited = await_answer(s, &w, &last, err);
                x->answer = last.answer;
                x->answer_n = last.answer_n;
                rc = sent || waited == STENO_EIO ? waited : rc;
        }
        if (sent && (rc == STENO_EINTERRUPTED || rc == STENO_ETIMEOUT)) {
                struct buf b;
                buf_init(&b, 4 * KIB);
                mcp_message_cancel(&b, x->id, rc == STENO_ETIMEOUT ? "timed out" : "stopped");
                mcp_stdio_send(s, buf_str(&b), time_monotonic_ms() + MCP_STDIO_TICK_MS, NULL, NULL);
                buf_release(&b);
        }
        delist(s, &w, rc == 0 || !sent || w.why.code);
        return rc;
}

int mcp_stdio_notify(struct mcp_transport *t, struct str body, struct steno_error *err)
{
        return mcp_stdio_send((struct mcp_stdio *)t, body, time_monotonic_ms() + 5000, NULL, err);
}
