/*
 * mcp_stdio_lines.c - what becomes of the lines that an MCP server prints: each message goes to the
 * exchange that waits for it. All of this runs on the reader's thread.
 */
#include "mcp/mcp_stdio.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/named_file.h"
#include "mcp/mcp_stream.h"

#define INBOX_MAX 10000 /* notifications that may wait for one exchange */

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

/* ---- bytes ---- */

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

void mcp_stdio_take(struct mcp_stdio *s, const char *p, size_t n)
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
