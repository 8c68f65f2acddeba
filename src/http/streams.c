/* streams.c - see streams.h */
#include "http/streams.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/connections.h"
#include "http/server_core.h"
#include "http/http.h"
#include "http/http_limits.h"
#include "http/libmhd.h"
#include "http/watchers.h"

#define LOOK_MS 1000 /* between two looks at an idle reader */
#define CROWD 64     /* with so many readers, giving memory back is worth its time */

/* A piece that is larger than a queue. Those who wait for the same one share it. */
struct blob {
        unsigned refs; /* under the streams' blob_mutex */
        size_t n;
        char p[];
};

struct stream {
        struct server *server;
        struct MHD_Connection *connection;
        pthread_mutex_t mutex;
        unsigned refs;
        struct buf queue;  /* bytes that wait for the reader */
        struct blob *blob; /* behind them, or NULL */
        size_t blob_at;    /* taken of it already */
        struct buf later;  /* behind that */
        bool suspended;
        bool ended;  /* nothing more comes */
        bool broken; /* end now, without a clean last chunk */
        bool cut;    /* end like that once what is queued has been sent */
        bool gone;   /* the connection is over */
        int fd;      /* the connection's */
        int64_t last_ms;
        int64_t looked_ms; /* when we last asked whether the reader has hung up */
        int64_t taken_ms;  /* when the reader last took something, or the queue was empty */
        char token_id[40];
        bool guest;    /* its reader has no token of a whole project */
        size_t queued; /* bytes of both queues that are counted */
        char *project; /* whose questions its reader may answer; NULL: nobody's (a visitor) */
        uint64_t token_version;
        void (*on_close)(void *ctx);
        void *ctx;
        struct stream *next, *prev; /* in the server's list */
};

struct streams {
        struct server *server;
        pthread_mutex_t mutex;
        struct stream *first;
        uint64_t count;
        uint64_t most; /* at once, since memory was given back */
        bool closing;
        atomic_ullong queued[2]; /* bytes of all queues: of owners, and of guests */
        pthread_mutex_t blob_mutex;
        struct blob *last; /* the newest that somebody holds */
        struct watchers *watchers;
};

/* ---- blobs ---- */

static struct blob *blob_get(struct streams *all, const void *p, size_t n)
{
        pthread_mutex_lock(&all->blob_mutex);
        struct blob *b = all->last;
        if (b && b->n == n && memcmp(b->p, p, n) == 0) {
                b->refs++;
        } else if ((b = malloc(sizeof *b + n))) {
                b->refs = 1;
                b->n = n;
                memcpy(b->p, p, n);
                all->last = b;
        }
        pthread_mutex_unlock(&all->blob_mutex);
        return b;
}

/* The stream's, if it has one. */
static void blob_drop(struct stream *s)
{
        struct streams *all = s->server->streams;
        struct blob *b = s->blob;
        if (!b)
                return;
        s->blob = NULL;
        pthread_mutex_lock(&all->blob_mutex);
        bool last = --b->refs == 0;
        if (last && all->last == b)
                all->last = NULL;
        pthread_mutex_unlock(&all->blob_mutex);
        if (last)
                free(b);
}

/* ---- references ---- */

void stream_ref(struct stream *s)
{
        __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
}

/* Its queues have changed. Under the mutex, or without any other reference. */
static void recount(struct stream *s)
{
        size_t now = s->queue.n + s->later.n;
        atomic_fetch_add(&s->server->streams->queued[s->guest], now - s->queued);
        s->queued = now;
}

void stream_unref(struct stream *s)
{
        if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
                return;
        blob_drop(s);
        buf_release(&s->queue);
        buf_release(&s->later);
        recount(s);
        pthread_mutex_destroy(&s->mutex);
        free(s->project);
        free(s);
}

/* Makes the daemon ask for data again. Under the stream's mutex. */
static void wake(struct stream *s)
{
        if (!s->suspended || s->gone)
                return;
        s->suspended = false;
        libmhd.resume_connection(s->connection);
}

/* ---- the reader's side, called by the daemon ---- */

/* Takes up to `max` bytes of what waits. Under the mutex. */
static size_t take(struct stream *s, char *p, size_t max)
{
        size_t n = s->queue.n < max ? s->queue.n : max;
        if (n) {
                memcpy(p, s->queue.p, n);
                buf_drop_front(&s->queue, n);
                if (s->queue.n == 0)
                        buf_release(&s->queue); /* an idle reader holds no buffer */
        } else if (s->blob) {
                n = s->blob->n - s->blob_at < max ? s->blob->n - s->blob_at : max;
                memcpy(p, s->blob->p + s->blob_at, n);
                s->blob_at += n;
                if (s->blob_at == s->blob->n) {
                        blob_drop(s);
                        s->queue = s->later;
                        buf_init(&s->later, 0);
                }
        }
        recount(s);
        return n;
}

static ssize_t feed(void *cls, uint64_t pos, char *p, size_t max)
{
        struct stream *s = cls;
        ssize_t n = 0;
        (void)pos;
        pthread_mutex_lock(&s->mutex);
        if (s->broken) {
                n = MHD_CONTENT_READER_END_WITH_ERROR;
        } else if (s->queue.n || s->blob) {
                s->taken_ms = http_now_ms();
                n = (ssize_t)take(s, p, max);
        } else if (s->ended) {
                n = s->cut ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
        } else {
                s->suspended = true;
                libmhd.suspend_connection(s->connection);
        }
        pthread_mutex_unlock(&s->mutex);
        return n;
}

static void leave_list(struct stream *s)
{
        struct streams *all = s->server->streams;
        pthread_mutex_lock(&all->mutex);
        if (s->prev)
                s->prev->next = s->next;
        else
                all->first = s->next;
        if (s->next)
                s->next->prev = s->prev;
        all->count--;
        pthread_mutex_unlock(&all->mutex);
}

/* The connection is over, for whatever reason. */
static void on_gone(void *cls)
{
        struct stream *s = cls;
        leave_list(s);
        pthread_mutex_lock(&s->mutex);
        s->gone = true;
        s->ended = true;
        void (*on_close)(void *) = s->on_close;
        s->on_close = NULL;
        pthread_mutex_unlock(&s->mutex);
        if (on_close)
                on_close(s->ctx);
        stream_unref(s);
}

struct MHD_Response *stream_response(struct stream *s)
{
        struct MHD_Response *r = libmhd.create_response_from_callback(
            MHD_SIZE_UNKNOWN, SERVER_STREAM_BLOCK, feed, s, on_gone);
        if (!r)
                on_gone(s);
        return r;
}

void stream_abandon(struct stream *s)
{
        on_gone(s);
}

struct stream *stream_events(struct request *r, void (*on_close)(void *ctx), void *ctx)
{
        struct streams *all = r->server->streams;
        struct stream *s = calloc(1, sizeof *s);
        if (!s) {
                request_error(r, 503, "busy", "out of memory");
                return NULL;
        }
        s->server = r->server;
        s->connection = r->connection;
        s->fd = connections_fd(r->connection);
        s->refs = 2;
        s->on_close = on_close;
        s->ctx = ctx;
        s->last_ms = http_now_ms();
        memcpy(s->token_id, r->who.token_id, sizeof s->token_id);
        s->token_version = r->who.version;
        s->guest = r->guest;
        s->project = r->who.session[0] || r->who.lent ? NULL : strdup(r->who.project);
        pthread_mutex_init(&s->mutex, NULL);
        buf_init(&s->queue, 0);
        buf_init(&s->later, 0);
        pthread_mutex_lock(&all->mutex);
        s->next = all->first;
        if (s->next)
                s->next->prev = s;
        all->first = s;
        all->count++;
        s->ended = s->cut = all->closing;
        pthread_mutex_unlock(&all->mutex);
        r->stream = s;
        r->status = 200;
        r->content_type = "text/event-stream";
        request_header_out(r, "Cache-Control", "no-cache");
        request_header_out(r, "X-Accel-Buffering", "no");
        return s;
}

/* ---- the writer's side ---- */

/* Do all readers of its kind together hold so much that each may hold only a little? */
static bool is_crowded(const struct stream *s)
{
        uint64_t most = s->guest ? SERVER_VISITOR_STREAMS_MAX : SERVER_STREAMS_MAX;
        return atomic_load(&s->server->streams->queued[s->guest]) > most;
}

/* Under the mutex. A reader that cannot keep up is cut off: it resumes from its last event. A piece
 * may be larger than the queue, for it would never get through otherwise. */
static bool put(struct stream *s, const void *p, size_t n)
{
        struct buf *queue = s->blob ? &s->later : &s->queue;
        if (s->ended || s->broken)
                return false;
        size_t own = is_crowded(s) ? SERVER_STREAM_LITTLE : SERVER_STREAM_QUEUE;
        bool large = n > own && !s->blob;
        if (!large && queue->n >= SERVER_STREAM_QUEUE / 2 && queue->n + n > SERVER_STREAM_QUEUE) {
                s->broken = true;
                buf_release(&s->queue);
                recount(s);
                atomic_fetch_add(&s->server->metrics.streams_cut, 1);
                wake(s);
                return false;
        }
        if (s->queue.n == 0 && !s->blob)
                s->taken_ms = http_now_ms();
        if (large) {
                s->blob = blob_get(s->server->streams, p, n);
                s->blob_at = 0;
                return s->blob != NULL;
        }
        buf_put(queue, p, n);
        recount(s);
        return !queue->failed;
}

bool stream_has_room(struct stream *s)
{
        size_t most = is_crowded(s) ? SERVER_STREAM_LITTLE : SERVER_STREAM_QUEUE / 2;
        pthread_mutex_lock(&s->mutex);
        bool room = s->queue.n < most && !s->blob;
        pthread_mutex_unlock(&s->mutex);
        return room;
}

int64_t stream_stalled(struct stream *s)
{
        pthread_mutex_lock(&s->mutex);
        int64_t ms = s->queue.n || s->blob ? http_now_ms() - s->taken_ms : 0;
        pthread_mutex_unlock(&s->mutex);
        return ms;
}

bool stream_write(struct stream *s, const void *p, size_t n)
{
        pthread_mutex_lock(&s->mutex);
        bool ok = put(s, p, n);
        s->last_ms = http_now_ms();
        wake(s);
        pthread_mutex_unlock(&s->mutex);
        return ok;
}

bool stream_event(struct stream *s, const char *id, const char *event, const char *data, size_t n)
{
        struct buf b;
        buf_init(&b, 0);
        if (id)
                buf_printf(&b, "id: %s\n", id);
        if (event)
                buf_printf(&b, "event: %s\n", event);
        buf_puts(&b, "data: ");
        buf_put(&b, data, n);
        buf_puts(&b, "\n\n");
        bool ok = !b.failed && stream_write(s, b.p, b.n);
        buf_release(&b);
        return ok;
}

void stream_end(struct stream *s)
{
        pthread_mutex_lock(&s->mutex);
        s->ended = true;
        wake(s);
        pthread_mutex_unlock(&s->mutex);
}

void stream_break(struct stream *s)
{
        pthread_mutex_lock(&s->mutex);
        s->broken = true;
        wake(s);
        pthread_mutex_unlock(&s->mutex);
}

bool stream_is_open(struct stream *s)
{
        pthread_mutex_lock(&s->mutex);
        bool open = !s->ended && !s->broken;
        pthread_mutex_unlock(&s->mutex);
        return open;
}

bool stream_may_answer(const struct stream *s)
{
        return s->project != NULL;
}

/* ---- all of them ---- */

struct streams *streams_new(struct server *server)
{
        struct streams *all = calloc(1, sizeof *all);
        if (all) {
                all->server = server;
                pthread_mutex_init(&all->mutex, NULL);
                pthread_mutex_init(&all->blob_mutex, NULL);
                all->watchers = watchers_new(server->store);
        }
        return all;
}

/* Looked up only when the tokens have changed: there may be many of both. */
static bool is_revoked(struct stream *s, uint64_t version)
{
        if (!s->token_id[0] || s->token_version == version)
                return false;
        s->token_version = version;
        return !identities_valid(s->server->identities, s->token_id);
}

/* The library does not look at a suspended connection. One that was hung up gets a keep-alive at
 * once, which shows whether its reader has only finished sending. Under the stream's mutex. */
static bool is_hung_up(struct stream *s, int64_t now)
{
        char c;
        if (!s->suspended || s->fd < 0 || now - s->looked_ms < LOOK_MS)
                return false;
        s->looked_ms = now;
        ssize_t n = recv(s->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
        return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Most of a crowd of readers has left. Under the mutex. */
static bool crowd_has_left(struct streams *all)
{
        if (all->count > all->most)
                all->most = all->count;
        if (all->most < CROWD || all->count > all->most / 4)
                return false;
        all->most = all->count;
        return true;
}

/* Connections of a crowd that comes and goes leave the C library with memory that it keeps. */
static void give_memory_back(void)
{
#ifdef __GLIBC__
        malloc_trim(0);
#endif
}

void streams_tick(struct streams *all)
{
        static const char ALIVE[] = ": alive\n\n";
        static const char REVOKED[] = "event: error\ndata: {\"code\":\"revoked\"}\n\n";
        int64_t now = http_now_ms();
        struct identities *ids = all->server->identities;
        uint64_t version = ids ? identities_version(ids) : 0;
        pthread_mutex_lock(&all->mutex);
        for (struct stream *s = all->first; s; s = s->next) {
                pthread_mutex_lock(&s->mutex);
                if (is_revoked(s, version)) {
                        put(s, REVOKED, sizeof REVOKED - 1);
                        s->ended = s->cut = true;
                        wake(s);
                } else if (now - s->last_ms >= SERVER_KEEPALIVE_MS || is_hung_up(s, now)) {
                        put(s, ALIVE, sizeof ALIVE - 1);
                        s->last_ms = now;
                        wake(s);
                }
                if (s->project && !s->ended && !s->broken && all->watchers)
                        watchers_note(all->watchers, s->project);
                pthread_mutex_unlock(&s->mutex);
        }
        bool left = crowd_has_left(all);
        pthread_mutex_unlock(&all->mutex);
        if (left)
                give_memory_back();
        if (all->watchers)
                watchers_settle(all->watchers);
}

void streams_drain(struct streams *all)
{
        static const char BYE[] = ": the server is stopping; resume from your last event\n\n";
        pthread_mutex_lock(&all->mutex);
        all->closing = true;
        for (struct stream *s = all->first; s; s = s->next) {
                pthread_mutex_lock(&s->mutex);
                /* Not a clean end: the run may go on, and the reader has to come back. */
                if (!s->ended)
                        s->cut = put(s, BYE, sizeof BYE - 1);
                s->ended = true;
                wake(s);
                pthread_mutex_unlock(&s->mutex);
        }
        pthread_mutex_unlock(&all->mutex);
}

uint64_t streams_queued(struct streams *all)
{
        return atomic_load(&all->queued[false]) + atomic_load(&all->queued[true]);
}

uint64_t streams_count(struct streams *all)
{
        pthread_mutex_lock(&all->mutex);
        uint64_t n = all->count;
        pthread_mutex_unlock(&all->mutex);
        return n;
}

void streams_free(struct streams *all)
{
        if (!all)
                return;
        pthread_mutex_destroy(&all->mutex);
        pthread_mutex_destroy(&all->blob_mutex);
        watchers_free(all->watchers);
        free(all);
}

/* ---- bytes of a file ---- */

struct file_answer {
        uint64_t size;
        stream_read_fn read;
        void (*release)(void *ctx);
        void *ctx;
};

static ssize_t feed_file(void *cls, uint64_t pos, char *p, size_t max)
{
        struct file_answer *f = cls;
        ssize_t n = f->read(f->ctx, pos, p, max);
        return n > 0    ? n
               : n == 0 ? MHD_CONTENT_READER_END_OF_STREAM
                        : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_file(void *cls)
{
        struct file_answer *f = cls;
        f->release(f->ctx);
        free(f);
}

struct MHD_Response *stream_file_response(struct file_answer *f)
{
        return libmhd.create_response_from_callback(
            f->size, SERVER_RAW_BLOCK, feed_file, f, free_file);
}

void stream_file_abandon(struct file_answer *f)
{
        free_file(f);
}

void stream_file(struct request *r, int status, const char *content_type, uint64_t size,
    stream_read_fn read, void (*release)(void *ctx), void *ctx)
{
        struct file_answer *f = malloc(sizeof *f);
        if (!f) {
                release(ctx);
                request_error(r, 503, "busy", "out of memory");
                return;
        }
        *f = (struct file_answer){size, read, release, ctx};
        r->file = f;
        r->status = status;
        r->content_type = content_type;
}
