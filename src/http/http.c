/*
 * http.c - libmicrohttpd underneath: from bytes to a request that was checked, and from an answer
 * to bytes.
 *
 * The daemon's threads only move bytes. When a request is whole its connection is suspended and a
 * worker runs the handler; http_finish resumes it. So a handler that waits for the disk holds up
 * nobody, and many appends share a sync.
 *
 *   H1  A request is checked once, before a byte of its body is taken: see access.h.
 *   H2  A connection that has not sent its headers in time is cut off.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "http/access.h"
#include "http/access_log.h"
#include "http/answer.h"
#include "http/connections.h"
#include "http/http.h"
#include "http/http_limits.h"
#include "http/libmhd.h"
#include "http/listen.h"
#include "http/passing.h"
#include "http/server_core.h"
#include "http/spool.h"
#include "http/unread.h"

int64_t http_now_us(void)
{
        return time_monotonic_us();
}

int64_t http_now_ms(void)
{
        return http_now_us() / 1000;
}

/* ---- the life of a request ---- */

/* "/~TOKEN/openai/v1/...": the token is taken out, so that no log and no endpoint sees it. */
static void take_path_token(struct request *r)
{
        if (!str_starts(r->path, "/~"))
                return;
        const char *slash = memchr(r->path.p + 2, '/', r->path.n - 2);
        size_t n = slash ? (size_t)(slash - r->path.p) : r->path.n;
        r->path_token = str_span(r->path.p + 2, n - 2);
        r->path = str_span(r->path.p + n, r->path.n - n);
}

/* Called with the raw request line's target, before anything else. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
        struct server *s = cls;
        struct request *r = calloc(1, sizeof *r);
        if (!r)
                return NULL;
        r->server = s;
        r->store = s->store;
        r->connection = connection;
        r->started_us = http_now_us();
        arena_init(&r->arena);
        buf_init(&r->body, SERVER_BODY_MAX);
        buf_init(&r->reply, 0);
        id_make(env_real(), "req_", r->id);
        r->target = uri;
        r->target_end = uri + strlen(uri);
        const char *q = strchr(uri, '?');
        size_t n = q ? (size_t)(q - uri) : strlen(uri);
        r->path = arena_dup(&r->arena, str_span(uri, n));
        take_path_token(r);
        if (q) {
                r->query = arena_dup(&r->arena, str_of(q + 1));
                /* The library would make a record of each parameter, which nobody reads. When they
                 * do not fit into its memory it answers and parses on, and then says nothing at
                 * all. */
                ((char *)uri)[n + 1] = '\0';
        }
        if ((size_t)(r->target_end - uri) > SERVER_URI_MAX)
                r->refused = true;
        atomic_fetch_add(&s->under_way, 1);
        connections_begun(connection, r);
        return r;
}

static bool changes_nothing(const struct request *r)
{
        return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
}

static void hold_reply(struct request *r)
{
        if (r->stream || r->passing || r->file)
                return;      /* they hold what they send themselves */
        buf_trim(&r->reply); /* it may be held for long, and is counted as what it holds */
        r->held.fd = connections_fd(r->connection);
        r->held.guest = r->guest;
        r->held.lasting = !changes_nothing(r);
        if (unread_hold(r->server->unread, &r->held, r->who.token_id, r->reply.cap))
                return;
        buf_release(&r->reply);
        r->header_count = 0; /* they were about that answer */
        request_header_out(r, "Retry-After", "1");
        request_error(r, 503, "busy", "too many answers are waiting to be read");
}

void http_request_free(struct request *r)
{
        if (!r)
                return;
        atomic_fetch_sub(&r->server->body_bytes[r->guest], r->body_counted);
        unread_let_go(r->server->unread, &r->held);
        atomic_fetch_sub(&r->server->under_way, 1);
        if (r->skipping)
                atomic_fetch_sub(&r->server->skipping, 1);
        if (r->stream && !r->answered)
                stream_abandon(r->stream);
        if (r->passing && !r->answered)
                passing_forget(r->passing);
        if (r->file)
                stream_file_abandon(r->file);
        if (r->shrunk) {
                free((char *)r->path.p);
                free((char *)r->method);
        }
        arena_release(&r->arena);
        spool_release(r);
        buf_release(&r->body);
        buf_release(&r->reply);
        free(r);
}

/* The library has no room for the head of an answer on this thread, and closes its connection now.
 */
static _Thread_local bool unsent;

static void answer_unsent(struct request *r)
{
        unsent = false;
        if (!r->status || r->stream || r->passing || r->file)
                answer_no_room(r);
        answer_bare(r);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **req_cls,
    enum MHD_RequestTerminationCode why)
{
        struct request *r = *req_cls;
        (void)cls;
        if (!r)
                return;
        /* With an error, where it was not ours, the library has given an answer of its own. */
        if (unsent)
                answer_unsent(r);
        else if (r->late && !r->done && why != MHD_REQUEST_TERMINATED_WITH_ERROR)
                answer_bare(r);
        connections_answered(connection);
        if (r->status)
                access_log_request(r);
        *req_cls = NULL;
        /* From here on, the connection's next request must not be cut off because of this
         * answer. */
        unread_let_go(r->server->unread, &r->held);
        /* To give back a hundred megabytes takes the kernel milliseconds, in which this thread
         * would serve nobody. */
        r->over = r->reply.cap > SERVER_HEAVY_BYTES;
        if (!r->over || !workers_run(r->server->workers, r))
                http_request_free(r);
}

bool http_is_chunked(const struct request *r)
{
        return request_header(r, "Transfer-Encoding") != NULL;
}

/* ---- the callback ---- */

/* A handler that answers later does not occupy a thread meanwhile, and must not wait behind
 * handlers that do.
 */
static struct workers *lane(struct server *s, const struct request *r)
{
        unsigned flags = r->route->flags;
        bool heavy = r->body.n > SERVER_HEAVY_BYTES && !(flags & ROUTE_LATER);
        return flags & ROUTE_TURN     ? s->turns
               : flags & ROUTE_URGENT ? s->urgent
               : heavy                ? s->heavy
                                      : s->workers;
}

/* A worker writes what is in memory; the bytes at hand come again after that. */
static enum MHD_Result write_body(struct request *r)
{
        r->spooling = true;
        libmhd.suspend_connection(r->connection);
        if (!workers_run(r->server->workers, r)) {
                r->spool_failed = -EBUSY;
                http_spool(r);
        }
        return MHD_YES;
}

void http_spool(struct request *r)
{
        struct MHD_Connection *connection = r->connection;
        spool_write(r);
        r->spooling = false;
        libmhd.resume_connection(connection);
}

static enum MHD_Result refuse_spooled(struct request *r)
{
        if (r->spool_failed == -EBUSY)
                return answer_refuse_later(r, 503, "busy", "too many requests at once");
        return answer_refuse_later(r, 507, "full", "there is no room on the disk for this body");
}

/* The memory of bodies is the owners' and, apart from it, the guests'. These have no token that
 * could be told from another: so many of them may keep one another from large bodies, but not from
 * small ones. */
static bool has_room_for(const struct request *r, size_t size)
{
        uint64_t held = atomic_load(&r->server->body_bytes[r->guest]);
        if (!r->guest)
                return held + size <= SERVER_BODIES_MAX;
        return held + size <= SERVER_VISITOR_BODIES_MAX || r->body.n + size <= SERVER_KEPT_BODY;
}

static enum MHD_Result take_body(struct request *r, const char *data, size_t *n)
{
        struct server *s = r->server;
        size_t size = *n;
        *n = 0;
        if (r->late)
                return answer_skip_body(r, size);
        if (r->refused)
                return MHD_YES;
        if (r->spool_failed)
                return refuse_spooled(r);
        if (spool_size(r) + size > r->route->body_max)
                return answer_refuse_later(r, 413, "too_large", "the body is too large");
        if (!has_room_for(r, size))
                return answer_refuse_later(r, 503, "busy", "too much is being sent at once");
        if ((r->route->flags & ROUTE_SPOOL) && !spool_has_room(r, size)) {
                *n = size;
                return write_body(r);
        }
        buf_put(&r->body, data, size);
        if (r->body.failed)
                return answer_refuse_later(r, 503, "busy", "out of memory");
        atomic_fetch_add(&s->body_bytes[r->guest], size);
        atomic_fetch_add(&s->metrics.bytes_in, size);
        r->body_counted += size;
        return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *data, size_t *data_size, void **req_cls)
{
        struct server *s = cls;
        struct request *r = *req_cls;
        (void)url;
        if (!r)
                return MHD_NO;
        if (!r->checked) {
                connections_settled(connection);
                return access_check(r, method, version);
        }
        if (*data_size) {
                if (http_is_chunked(r))
                        connections_owes_chunk(connection);
                return take_body(r, data, data_size);
        }
        if (r->late && !r->done) {
                r->done = true;
                return connections_claim(s->connections, connection) ? answer_queue(r) : MHD_NO;
        }
        if (r->refused)
                return MHD_YES;
        if (r->done)
                return answer_queue(r);
        if (r->handed_over)
                return MHD_YES;
        connections_settled(connection);
        if (access_revoked(r))
                return answer_refuse(r, 401, "unauthorized", "the token was revoked");
        if (http_is_chunked(r) && !http_check_room(r))
                return answer_refuse_for_room(r);
        r->handed_over = true;
        libmhd.suspend_connection(connection);
        if (!workers_run(lane(s, r), r)) {
                request_error(r, 503, "busy", "too many requests at once");
                http_finish(r);
        }
        return MHD_YES;
}

void http_finish(struct request *r)
{
        struct MHD_Connection *connection = r->connection;
        hold_reply(r);
        r->done = true;
        libmhd.resume_connection(connection);
}

/* ---- connections ---- */

/* The library gave up a request for lack of memory, and told nobody: neither its client nor us. */
static void end_unheard(struct request *r)
{
        answer_no_room(r);
        answer_bare(r);
        access_log_request(r);
        http_request_free(r);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
    enum MHD_ConnectionNotificationCode what)
{
        struct server *s = cls;
        struct request *r =
            what == MHD_CONNECTION_NOTIFY_CLOSED ? connections_request(connection) : NULL;
        if (r)
                end_unheard(r);
        connections_notify(s->connections, connection, socket_context, what);
}

/* The target stays as it came: routes are matched on the raw path. */
static size_t keep_raw(void *cls, struct MHD_Connection *connection, char *text)
{
        (void)cls;
        (void)connection;
        return strlen(text);
}

/* The line in front of a chunk is too long: see on_words. */
static void refuse_chunk(struct server *s)
{
        struct request *r = connections_unparsed(s->connections);
        if (!r)
                return;
        if (!r->late)
                request_error(r, 400, "bad_chunk", "the line in front of a chunk is too long");
        answer_bare(r);
        r->refused = r->done = true;
        shutdown(connections_fd(r->connection), SHUT_WR);
}

/*
 * What the library says is not shown, but two of its failures are seen here alone. Before version
 * 0.9.76 it answers 500 when the line in front of a chunk does not fit into its memory: our answer
 * is sent before that, and its own finds nobody. And where the head of an answer does not fit, it
 * closes the connection: on_completed comes right after these words.
 */
static void on_words(void *cls, const char *fmt, va_list ap)
{
        if (str_starts(str_of(fmt), "Error processing request (HTTP response code is %u")) {
                if (va_arg(ap, unsigned) == 500)
                        refuse_chunk(cls);
        } else if (strcmp(fmt, "%s\n") == 0) {
                unsent = strstr(va_arg(ap, const char *), "failed to create") != NULL;
        }
}

/* ---- start and end ---- */

int http_start(struct server *s, const struct sockaddr *address, struct steno_error *err)
{
        unsigned flags =
            MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
        if (address->sa_family == AF_INET6)
                flags |= MHD_USE_IPv6;
        int rc = libmhd_load(err);
        if (rc)
                return rc;
        int fd = listen_on(address);
        if (fd < 0)
                return listen_failed(s->host, s->port, fd, err);
        s->port = listen_port(fd);
        s->daemon = libmhd.start_daemon(flags, 0, NULL, NULL, on_request, s,
            MHD_OPTION_EXTERNAL_LOGGER, on_words, s, MHD_OPTION_LISTEN_SOCKET, fd,
            MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_UNESCAPE_CALLBACK, keep_raw, NULL,
            MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
            on_connection, s, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)SERVER_POOL_THREADS,
            MHD_OPTION_CONNECTION_LIMIT, connections_most(s->connections),
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER_CONNECTION_MEMORY,
            MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)1024, MHD_OPTION_CONNECTION_TIMEOUT,
            (unsigned)SERVER_IDLE_SECONDS, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
        if (!s->daemon) {
                close(fd);
                return error_set(
                    err, STENO_EIO, "cannot start libmicrohttpd on %s:%d", s->host, s->port);
        }
        return 0;
}

void http_quiesce(struct server *s)
{
        MHD_socket fd = libmhd.quiesce_daemon(s->daemon);
        if (fd != MHD_INVALID_SOCKET)
                shutdown(fd, SHUT_RDWR);
}

void http_stop(struct server *s)
{
        if (s->daemon)
                libmhd.stop_daemon(s->daemon);
        s->daemon = NULL;
}
