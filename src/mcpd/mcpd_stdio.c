/*
 * mcpd_stdio.c - the transport over standard input and output: one message a line.
 *
 * One thread reads lines, and a few others execute requests. So a long search does not delay a
 * ping, and a cancellation is read while the search runs. Answers are written under a lock, a line
 * at a time.
 */
#include "mcpd/mcpd.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"

#define THREADS 4
#define WAITING_MAX 256 /* requests that wait for a thread; more get an error */
#define READ_BLOCK (64 * KIB)
#define WRITE_BLOCK 4096 /* a pipe that is ready accepts this much without blocking */
#define LOOK_MS 200      /* time between two checks of `stopped` */

struct task {
        struct task *next;
        struct mcpd_message m;
        struct stdio *all;
        atomic_bool cancelled;
};

struct stdio {
        const struct mcpd_scope *scope;
        int out;
        bool (*stopped)(void);
        pthread_mutex_t write_mutex;
        atomic_bool broken; /* nobody reads our output */
        /* tasks; protected by the mutex */
        pthread_mutex_t mutex;
        pthread_cond_t work;
        pthread_cond_t idle;
        struct task *waiting;
        struct task **waiting_end;
        unsigned waiting_count;
        struct task *running;
        bool closing;
        pthread_t threads[THREADS];
        unsigned thread_count;
        /* used by the reader only */
        char agreed[MCPD_REVISION_MAX]; /* the revision of an initialize; "" before it */
        bool skipping;                  /* skip the rest of a line that is too long */
};

/* ---- writing ---- */

/* Waits until there is room for WRITE_BLOCK. A client that does not read must not keep us from
 * ending. */
static bool wait_for_room(struct stdio *s)
{
        struct pollfd p = {.fd = s->out, .events = POLLOUT};
        while (poll(&p, 1, LOOK_MS) <= 0)
                if (s->stopped())
                        return false;
        return true;
}

static void write_line(struct stdio *s, const char *p, size_t n)
{
        struct buf line;
        buf_init(&line, 0);
        buf_put(&line, p, n);
        buf_putc(&line, '\n');
        pthread_mutex_lock(&s->write_mutex);
        for (size_t at = 0; at < line.n && !line.failed && !atomic_load(&s->broken);) {
                bool room = wait_for_room(s);
                size_t piece = line.n - at < WRITE_BLOCK ? line.n - at : WRITE_BLOCK;
                ssize_t w = room ? write(s->out, line.p + at, piece) : -1;
                if (w > 0)
                        at += (size_t)w;
                else if (!room || (w < 0 && errno != EINTR && errno != EAGAIN))
                        atomic_store(&s->broken, true);
        }
        pthread_mutex_unlock(&s->write_mutex);
        buf_release(&line);
}

static void write_error(struct stdio *s, struct str id, int code, const char *why)
{
        struct buf b;
        buf_init(&b, 64 * KIB);
        mcpd_put_error(&b, id, code, why, (struct str){0});
        if (!b.failed)
                write_line(s, b.p, b.n);
        buf_release(&b);
}

/* ---- tasks ---- */

static void task_free(struct task *t)
{
        if (t)
                mcpd_release(&t->m);
        free(t);
}

static void task_notify(void *ctx, const char *json, size_t n)
{
        struct task *t = ctx;
        if (!atomic_load(&t->cancelled))
                write_line(t->all, json, n);
}

static bool task_is_gone(void *ctx)
{
        struct task *t = ctx;
        return atomic_load(&t->cancelled) || atomic_load(&t->all->broken);
}

static void carry_out(struct stdio *s, struct task *t)
{
        struct mcpd_peer peer = {task_notify, task_is_gone, t};
        struct buf answer;
        buf_init(&answer, 0);
        mcpd_answer(s->scope, &t->m, &peer, &answer);
        if (answer.failed)
                write_error(s, mcpd_id(&t->m), MCPD_INTERNAL, "out of memory");
        else if (answer.n)
                write_line(s, answer.p, answer.n);
        buf_release(&answer);
}

/* Removes a task from a list. */
static void unlink_task(struct task **list, struct task *t)
{
        while (*list != t)
                list = &(*list)->next;
        *list = t->next;
}

static void *run(void *arg)
{
        struct stdio *s = arg;
        pthread_mutex_lock(&s->mutex);
        for (;;) {
                while (!s->waiting && !s->closing)
                        pthread_cond_wait(&s->work, &s->mutex);
                struct task *t = s->waiting;
                if (!t)
                        break;
                s->waiting = t->next;
                if (!s->waiting)
                        s->waiting_end = &s->waiting;
                s->waiting_count--;
                t->next = s->running;
                s->running = t;
                pthread_mutex_unlock(&s->mutex);
                carry_out(s, t);
                pthread_mutex_lock(&s->mutex);
                unlink_task(&s->running, t);
                task_free(t);
                if (!s->running && !s->waiting)
                        pthread_cond_signal(&s->idle);
        }
        pthread_mutex_unlock(&s->mutex);
        return NULL;
}

static struct task *find_in(struct task *list, struct str id)
{
        for (; list; list = list->next)
                if (str_eq(mcpd_id(&list->m), id) && !atomic_load(&list->cancelled))
                        return list;
        return NULL;
}

/* The caller holds the mutex. */
static struct task *find_task(struct stdio *s, struct str id)
{
        struct task *t = find_in(s->running, id);
        return t ? t : find_in(s->waiting, id);
}

static void cancel(struct stdio *s, struct str id)
{
        pthread_mutex_lock(&s->mutex);
        struct task *t = find_task(s, id);
        if (t)
                atomic_store(&t->cancelled, true);
        pthread_mutex_unlock(&s->mutex);
}

static void cancel_all(struct stdio *s)
{
        pthread_mutex_lock(&s->mutex);
        for (struct task *t = s->running; t; t = t->next)
                atomic_store(&t->cancelled, true);
        for (struct task *t = s->waiting; t; t = t->next)
                atomic_store(&t->cancelled, true);
        pthread_mutex_unlock(&s->mutex);
}

/* Queues a request. Returns NULL, or the error for the client if it cannot be queued. */
static const char *queue(struct stdio *s, struct task *t, int *code)
{
        const char *why = NULL;
        pthread_mutex_lock(&s->mutex);
        if (find_task(s, mcpd_id(&t->m))) {
                *code = MCPD_INVALID;
                why = "a request with this id is still running";
        } else if (s->waiting_count >= WAITING_MAX) {
                *code = MCPD_BUSY;
                why = "too many requests at once: wait for answers";
        } else {
                t->next = NULL;
                *s->waiting_end = t;
                s->waiting_end = &t->next;
                s->waiting_count++;
                pthread_cond_signal(&s->work);
        }
        pthread_mutex_unlock(&s->mutex);
        return why;
}

/* ---- reading ---- */

static void take_line(struct stdio *s, struct str line)
{
        struct steno_error err = {0};
        const char *why = NULL;
        int code = MCPD_INTERNAL;
        line = str_trim(line);
        if (line.n == 0)
                return;
        struct task *t = calloc(1, sizeof *t);
        if (!t || mcpd_take(&t->m, line.p, line.n, NULL, s->agreed[0] ? s->agreed : NULL, &err)) {
                task_free(t);
                write_error(s, (struct str){0}, MCPD_INTERNAL, "out of memory");
                return;
        }
        t->all = s;
        if (t->m.kind == MCPD_REQUEST) {
                if (strcmp(t->m.method, "initialize") == 0)
                        memcpy(s->agreed, t->m.revision, sizeof s->agreed);
                why = queue(s, t, &code);
                if (!why)
                        return;
                write_error(s, mcpd_id(&t->m), code, why);
        } else if (t->m.kind == MCPD_REFUSED) {
                carry_out(s, t);
        } else if (mcpd_cancels(&t->m).n) {
                cancel(s, mcpd_cancels(&t->m));
        }
        task_free(t);
}

/* Takes the whole lines of `b`. Its first `seen` bytes have no line feed. */
static void take_lines(struct stdio *s, struct buf *b, size_t seen)
{
        size_t from = 0;
        const char *nl;
        while ((nl = memchr(b->p + (from > seen ? from : seen), '\n',
                    b->n - (from > seen ? from : seen)))) {
                size_t end = (size_t)(nl - b->p);
                if (!s->skipping)
                        take_line(s, str_span(b->p + from, end - from));
                s->skipping = false;
                from = end + 1;
        }
        buf_drop_front(b, from);
        if (b->n > MCPD_MESSAGE_MAX) {
                if (!s->skipping)
                        write_error(s, (struct str){0}, MCPD_INVALID, "the message is too large");
                s->skipping = true;
                buf_clear(b);
        }
}

/* Reads until the end of the input, a signal, or until the client is gone. */
static int read_all(struct stdio *s, int in, struct steno_error *err)
{
        struct buf b;
        int rc = 0;
        buf_init(&b, MCPD_MESSAGE_MAX + 2 * READ_BLOCK);
        while (!s->stopped() && !atomic_load(&s->broken)) {
                struct pollfd p = {.fd = in, .events = POLLIN};
                if (poll(&p, 1, LOOK_MS) <= 0)
                        continue;
                char *room = buf_reserve(&b, READ_BLOCK);
                if (!room) {
                        rc = error_nomem(err);
                        break;
                }
                ssize_t n = read(in, room, READ_BLOCK);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        continue;
                if (n < 0)
                        rc = error_sys(err, -errno, "reading standard input");
                if (n <= 0)
                        break;
                size_t seen = b.n;
                b.n += (size_t)n;
                take_lines(s, &b, seen);
        }
        if (rc == 0 && b.n && !s->skipping)
                take_line(s, buf_str(&b)); /* a last line without a line feed */
        buf_release(&b);
        return rc;
}

/* Waits for the requests that were read. They are cancelled on a signal, or if the client is
 * gone. */
static void finish(struct stdio *s)
{
        pthread_mutex_lock(&s->mutex);
        while (s->running || s->waiting) {
                wait_for(&s->idle, &s->mutex, LOOK_MS);
                bool stop = s->stopped() || atomic_load(&s->broken);
                pthread_mutex_unlock(&s->mutex);
                if (stop)
                        cancel_all(s);
                pthread_mutex_lock(&s->mutex);
        }
        s->closing = true;
        pthread_cond_broadcast(&s->work);
        pthread_mutex_unlock(&s->mutex);
        for (unsigned i = 0; i < s->thread_count; i++)
                pthread_join(s->threads[i], NULL);
}

int mcpd_serve_stdio(
    const struct mcpd_scope *scope, int in, int out, bool (*stopped)(void), struct steno_error *err)
{
        struct stdio s = {.scope = scope, .out = out, .stopped = stopped};
        int rc = 0;
        s.waiting_end = &s.waiting;
        pthread_mutex_init(&s.write_mutex, NULL);
        pthread_mutex_init(&s.mutex, NULL);
        wait_init(&s.work);
        wait_init(&s.idle);
        for (unsigned i = 0; i < THREADS; i++)
                if (pthread_create(&s.threads[s.thread_count], NULL, run, &s) == 0)
                        s.thread_count++;
        if (s.thread_count == 0)
                rc = error_set(err, STENO_EIO, "cannot start a thread");
        else
                rc = read_all(&s, in, err);
        finish(&s);
        if (rc == 0 && atomic_load(&s.broken) && !stopped())
                rc = error_set(err, STENO_EIO, "standard output was closed");
        pthread_cond_destroy(&s.work);
        pthread_cond_destroy(&s.idle);
        pthread_mutex_destroy(&s.mutex);
        pthread_mutex_destroy(&s.write_mutex);
        return rc;
}
