/*
 * http.c - libmicrohttpd underneath: from bytes to a request that was checked, and from an answer
 * to bytes.
 *
 * The daemon's threads only move bytes. When a request is whole its connection is suspended and a
 * worker runs the handler; http_finish resumes it. So a handler that waits for the disk holds up
 * nobody, and many appends share a sync.
 *
 *   H1  Identity, host, origin and lengths are checked once, before routing to a handler and
 *       before a byte of the body is taken. Whether the token still counts is asked again at the
 *       end of the body.
 *   H2  A connection that has not sent its headers in time is cut off.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/port_owner.h"
#include "gateway/gateway.h"
#include "http/buckets.h"
#include "http/connections.h"
#include "http/server_core.h"
#include "http/http.h"
#include "http/http_limits.h"
#include "http/passing.h"
#include "http/sign.h"
#include "http/spool.h"
#include "http/libmhd.h"

int64_t http_now_us(void)
{
        return time_monotonic_us();
}

int64_t http_now_ms(void)
{
        return http_now_us() / 1000;
}

static const char TOO_MANY_FIELDS[] =
    "the headers, cookies and trailers are too many or too long together";

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

/* Has it no token of a whole project? Its answers never take the memory of the owners'. */
static bool is_guest(const struct request *r)
{
        return !r->who.known || r->who.session[0];
}

static atomic_ullong *share_of(struct unread *all, const struct request *r)
{
        const char *id = r->who.token_id;
        return &all->shares[hash_64(id, strlen(id)) % SERVER_REPLY_SHARES];
}

static void let_go_of_reply(struct request *r)
{
        struct unread *all = &r->server->unread[is_guest(r)];
        if (!r->reply_counted)
                return;
        atomic_fetch_sub(&all->all, r->reply_counted);
        atomic_fetch_sub(share_of(all, r), r->reply_counted);
        r->reply_counted = 0;
}

static bool fits(uint64_t held, uint64_t size, uint64_t most)
{
        return held == 0 || held + size <= most;
}

/* An answer is in memory until its client has read it, which may be as late as the client likes.
 * Only one that changed nothing can be asked for again. */
static void hold_reply(struct request *r)
{
        struct unread *all = &r->server->unread[is_guest(r)];
        uint64_t most = is_guest(r) ? SERVER_VISITOR_REPLIES_MAX : SERVER_REPLIES_MAX;
        uint64_t size = r->reply.cap;
        if (r->stream || r->passing || r->file)
                return; /* they hold what they send themselves */
        r->reply_counted = size;
        bool all_fit = fits(atomic_fetch_add(&all->all, size), size, most);
        bool own_fit =
            fits(atomic_fetch_add(share_of(all, r), size), size, most / SERVER_REPLY_SHARE);
        if ((all_fit && own_fit) || size <= SERVER_KEPT_REPLY || strcmp(r->method, "GET") != 0)
                return;
        let_go_of_reply(r);
        buf_release(&r->reply);
        r->header_count = 0; /* they were about that answer */
        request_header_out(r, "Retry-After", "1");
        request_error(r, 503, "busy", "too many answers are waiting to be read");
}

void http_request_free(struct request *r)
{
        if (!r)
                return;
        atomic_fetch_sub(&r->server->body_bytes, r->body_counted);
        let_go_of_reply(r);
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

static int hex_digit(char c)
{
        static const char digits[] = "0123456789abcdef";
        const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
        return at ? (int)(at - digits) : -1;
}

/* The first character, escaped or not, and how many bytes it takes; 0: none is left. An escape may
 * be escaped itself, as often as somebody likes. */
static size_t first_character(struct str s, char *c)
{
        size_t n = 1;
        if (s.n == 0)
                return 0;
        *c = s.p[0];
        if (*c != '%')
                return 1;
        while (n + 2 < s.n && s.p[n] == '2' && s.p[n + 1] == '5')
                n += 2;
        int high = n < s.n ? hex_digit(s.p[n]) : -1, low = n + 1 < s.n ? hex_digit(s.p[n + 1]) : -1;
        if (high < 0 || low < 0)
                return 1;
        *c = (char)(high << 4 | low);
        return n + 2;
}

static bool begins_like(struct str s, const char *head)
{
        for (char c; *head; head++) {
                size_t n = first_character(s, &c);
                if (!n || c != *head)
                        return false;
                s = str_span(s.p + n, s.n - n);
        }
        return true;
}

/* A token in the path may stand where we do not look for it: what begins like one is not told. */
static void put_logged_path(struct jsonw *w, struct str path)
{
        struct buf b;
        buf_init(&b, 0);
        for (size_t i = 0; i < path.n; i++) {
                struct str rest = str_span(path.p + i, path.n - i);
                bool token = begins_like(rest, "~") || begins_like(rest, TOKEN_PREFIX);
                buf_putc(&b, token ? '~' : path.p[i]);
                while (token && i + 1 < path.n && path.p[i + 1] != '/')
                        i++;
        }
        jsonw_str(w, buf_str(&b));
        buf_release(&b);
}

static void log_request(struct request *r)
{
        struct server *s = r->server;
        struct buf b;
        char at[TIME_TEXT];
        if (!s->log)
                return;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        time_format(env_real()->now(env_real()), at);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "at", at);
        jsonw_field_cstr(&w, "request", r->id);
        jsonw_field_cstr(&w, "method", r->method ? r->method : "?");
        jsonw_key(&w, "path"); /* without the query: it may hold a signature */
        put_logged_path(&w, r->path);
        jsonw_field_u64(&w, "status", (uint64_t)r->status);
        jsonw_field_cstr(&w, "token", r->who.known ? r->who.token_id : NULL);
        jsonw_field_u64(&w, "ms", (uint64_t)(http_now_us() - r->started_us) / 1000);
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        if (!b.failed)
                fwrite(b.p, 1, b.n, s->log);
        buf_release(&b);
}

static struct str reply_of(const struct request *r)
{
        return r->still.p ? r->still : buf_str(&r->reply);
}

/* An answer that the library does not give, because it comes before the end of a body. */
static void put_bare(const struct request *r, struct buf *out)
{
        struct str reply = reply_of(r);
        buf_printf(out,
            "HTTP/1.1 %d Refused\r\nConnection: close\r\nX-Request-Id: %s\r\n"
            "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n",
            r->status, r->id, r->content_type, reply.n);
        buf_put_str(out, reply);
}

/* The client did not finish a body that was being read past. One write is tried: without it the
 * whole answer would be lost. */
static void answer_bare(struct request *r)
{
        struct buf b;
        int fd = connections_fd(r->connection);
        if (!connections_claim(r->server->connections, r->connection))
                return;
        buf_init(&b, 0);
        put_bare(r, &b);
        if (!b.failed && fd >= 0)
                (void)!send(fd, b.p, b.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        buf_release(&b);
}

/* The library has no room for the head of an answer on this thread, and closes its connection now.
 */
static _Thread_local bool unsent;

static void answer_unsent(struct request *r)
{
        unsent = false;
        if (!r->status || r->stream || r->passing || r->file)
                request_error(r, 431, "bad_headers", "%s", TOO_MANY_FIELDS);
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
                log_request(r);
        *req_cls = NULL;
        /* To give back a hundred megabytes takes the kernel milliseconds, in which this thread
         * would serve nobody. */
        r->over = r->reply.cap > SERVER_HEAVY_BYTES;
        if (!r->over || !workers_run(r->server->workers, r))
                http_request_free(r);
}

/* ---- answering ---- */

static void add_headers(struct request *r, struct MHD_Response *response)
{
        libmhd.add_response_header(response, "X-Request-Id", r->id);
        libmhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
        libmhd.add_response_header(response, "Referrer-Policy", "no-referrer");
        libmhd.add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
        if (r->content_type)
                libmhd.add_response_header(response, "Content-Type", r->content_type);
        for (unsigned i = 0; i < r->header_count; i++)
                if (r->headers[i][1])
                        libmhd.add_response_header(response, r->headers[i][0], r->headers[i][1]);
}

/* A stream may stay open for hours. Of its request only what the access log needs is kept. */
static void shrink(struct request *r)
{
        char *path = strndup(r->path.p, r->path.n), *method = strdup(r->method);
        if (!path || !method) {
                free(path);
                free(method);
                return;
        }
        arena_release(&r->arena);
        arena_init(&r->arena);
        r->path = str_of(path);
        r->method = method;
        r->query = (struct str){0};
        r->shrunk = true;
        buf_release(&r->body);
        buf_release(&r->reply);
}

static enum MHD_Result answer(struct request *r)
{
        struct MHD_Response *response;
        if (r->status == 0)
                request_error(r, 500, "internal", "the handler gave no answer");
        if (r->stream) {
                response = stream_response(r->stream);
                r->answered = true;
        } else if (r->passing) {
                response = passing_response(r->passing);
                r->answered = true;
        } else if (r->file) {
                response = stream_file_response(r->file);
                r->file = NULL;
        } else {
                /* It stays the request's, which outlives the response; see on_completed. */
                struct str reply = reply_of(r);
                response = libmhd.create_response_from_buffer(
                    reply.n, (char *)reply.p, MHD_RESPMEM_PERSISTENT);
        }
        if (!response)
                return MHD_NO;
        if (!r->passing)
                add_headers(r, response);
        if (!r->stream && !r->passing && !r->counted)
                libmhd.add_response_header(response, "Cache-Control", "no-store");
        if (r->refused)
                libmhd.add_response_header(response, "Connection", "close");
        /* The library writes the end of the chunks where a HEAD has an answer of unknown length,
         * and a client takes that for the next answer. Without chunks the end is that of the
         * connection. */
        if ((r->stream || r->passing) && strcmp(r->method, "HEAD") == 0)
                libmhd.set_response_options(
                    response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
        unsigned class = (unsigned)r->status / 100;
        atomic_fetch_add(&r->server->metrics.requests[class < 6 ? class : 5], 1);
        enum MHD_Result ok = libmhd.queue_response(r->connection, (unsigned)r->status, response);
        libmhd.destroy_response(response);
        if ((r->stream || r->passing) && ok == MHD_YES)
                shrink(r);
        return ok;
}

static enum MHD_Result refuse(struct request *r, int status, const char *code, const char *why)
{
        r->refused = true;
        atomic_fetch_add(&r->server->metrics.refused, 1);
        request_error(r, status, code, "%s", why);
        return answer(r);
}

/* ---- checking (H1) ---- */

/* Where a client of the gateway has its key, our token stands. */
static struct str gateway_key(struct request *r)
{
        const char *key = request_header(r, "x-api-key");
        if (!key)
                key = request_header(r, "x-goog-api-key");
        if (!key)
                key = request_query(r, "key");
        return str_of(key);
}

static struct str bearer(struct request *r)
{
        struct str rest;
        if (r->path_token.n)
                return r->path_token;
        if (gateway_upstream(r->path, &rest) && !request_header(r, "Authorization"))
                return gateway_key(r);
        const char *a = request_header(r, "Authorization");
        if (!a || strncasecmp(a, "Bearer ", 7) != 0)
                return (struct str){0};
        a += 7;
        while (*a == ' ')
                a++;
        return str_of(a);
}

/* What who has no token, or a wrong one, is to do about it. */
static const char *token_words(struct request *r)
{
        if (r->path_token.n && !r->route)
                return "behind /~TOKEN comes the name of an endpoint: /~TOKEN/openai/v1, "
                       "/~TOKEN/anthropic or /~TOKEN/gemini";
        if (r->path_token.n)
                return "the token in the address is not known; steno serve prints one that is, "
                       "behind #token=";
        if (bearer(r).n)
                return "this token is not known; steno serve and steno token new print one that "
                       "is";
        if (r->route && r->route->scope == SCOPE_GATEWAY)
                return "a token is needed: /~TOKEN before the path, or Authorization: Bearer ...";
        return "a token is needed: Authorization: Bearer ...";
}

/* May this identity use this route? 0, or the status. */
static int check_scope(struct request *r, const char **why)
{
        switch (r->route->scope) {
        case SCOPE_OPEN:
                return 0;
        case SCOPE_SIGNED:
                if (r->who.known || sign_check(r))
                        return 0;
                break;
        case SCOPE_VISITOR:
                if (r->who.known || r->server->public_project)
                        return 0;
                break;
        case SCOPE_SESSION:
                if (r->who.known)
                        return 0;
                break;
        case SCOPE_PATH:
                if (r->server->fixtures)
                        return 0;
                /* fall through */
        case SCOPE_GATEWAY:
        case SCOPE_PROJECT:
                if (r->who.known && !r->who.session[0])
                        return 0;
                if (r->who.known) {
                        *why = "no such route";
                        return 404;
                }
                break;
        }
        *why = token_words(r);
        return 401;
}

static int64_t skip_deadline(const struct request *r)
{
        return r->started_us / 1000 + SERVER_SKIP_SECONDS * 1000;
}

/* Answers in the middle of a body, and ends the connection. */
static enum MHD_Result cut_short(struct request *r)
{
        r->done = true;
        answer_bare(r);
        return MHD_NO;
}

/* Refuses a request whose body is on its way. A client that sends its body at once would have the
 * connection reset under it before it read an early answer, so the rest is read past first. */
static enum MHD_Result refuse_later(
    struct request *r, int status, const char *code, const char *why)
{
        r->refused = r->late = true;
        atomic_fetch_add(&r->server->metrics.refused, 1);
        request_error(r, status, code, "%s", why);
        buf_release(&r->body);
        if (atomic_fetch_add(&r->server->skipping, 1) >= SERVER_SKIPPING_MAX) {
                atomic_fetch_sub(&r->server->skipping, 1);
                return cut_short(r);
        }
        struct buf b;
        buf_init(&b, 0);
        put_bare(r, &b);
        r->skipping = true;
        connections_skip(r->server->connections, r->connection, skip_deadline(r),
            b.failed ? STR("") : buf_str(&b));
        buf_release(&b);
        return MHD_YES;
}

static enum MHD_Result skip_body(struct request *r, size_t size)
{
        r->body_skipped += size;
        if (r->body_skipped > SERVER_SKIP_MAX)
                return cut_short(r);
        connections_skip(r->server->connections, r->connection, skip_deadline(r), STR(""));
        return MHD_YES;
}

/* Is a body on its way that a client would rather finish than read an answer? */
static bool has_body(struct request *r)
{
        const char *length = request_header(r, "Content-Length");
        if (request_header(r, "Expect"))
                return false;
        if (!length)
                return request_header(r, "Transfer-Encoding") != NULL;
        unsigned long long n = strtoull(length, NULL, 10);
        return n > 0 && n <= SERVER_SKIP_MAX;
}

/* Refuses a request whose headers are sound. */
static enum MHD_Result turn_away(struct request *r, int status, const char *code, const char *why)
{
        return (has_body(r) ? refuse_later : refuse)(r, status, code, why);
}

/* A token that was lent is good for the gateway alone, and one in the path for the routes that
 * clients without headers use. */
static bool token_fits(const struct request *r)
{
        bool gateway = r->route && r->route->scope == SCOPE_GATEWAY;
        bool path = gateway || (r->route && r->route->scope == SCOPE_PATH);
        return (!r->who.lent || gateway) && (!r->path_token.n || path);
}

static enum MHD_Result refuse_for_room(struct request *r)
{
        return refuse(r, 431, "bad_headers", TOO_MANY_FIELDS);
}

static bool is_chunked(const struct request *r)
{
        return request_header(r, "Transfer-Encoding") != NULL;
}

static enum MHD_Result check(struct request *r, const char *method, const char *version)
{
        struct server *s = r->server;
        const char *why = NULL;
        char allowed[ROUTE_ALLOW];
        r->checked = true;
        r->method = arena_dup(&r->arena, str_of(method)).p;
        if (r->refused)
                return refuse(r, 414, "uri_too_long", "the address is too long");
        int status = http_check_line(r, method, version, &why);
        if (status)
                return refuse(r, status, "bad_request", why);
        status = http_check_headers(s, r, method, &why);
        if (status)
                return refuse(r, status, "bad_headers", why);
        if (!http_check_room(r))
                return refuse_for_room(r);
        if (is_chunked(r))
                connections_owes_chunk(r->connection);
        status = http_check_origin(s, r, &why);
        if (status)
                return turn_away(r, status, "forbidden", why);
        if (!s->fixtures)
                identities_check(s->identities, bearer(r), &r->who);
        r->route = route_find(method, r->path, &r->arena, r->params, allowed);
        if (s->fixtures && r->route && r->route->scope != SCOPE_PATH)
                r->route = NULL;
        if (!token_fits(r)) {
                r->who = (struct identity){0};
                r->route = NULL;
        }
        if (r->route)
                r->errors = r->route->errors;
        else if (str_starts(r->path, "/v1/"))
                r->errors = ERRORS_OPENAI;
        else if (str_starts(r->path, "/api/v1/"))
                r->errors = ERRORS_ACONTEXT;
        /* Without a token nobody learns which routes there are. */
        if (!r->route && !r->who.known &&
            !(str_starts(r->path, "/") && !str_starts(r->path, "/api") &&
                !str_starts(r->path, "/v1")))
                return turn_away(r, 401, "unauthorized", token_words(r));
        if (!r->route && allowed[0]) {
                request_header_out(r, "Allow", allowed);
                return turn_away(r, 405, "method_not_allowed", "this method is not allowed here");
        }
        if (!r->route)
                return turn_away(
                    r, 404, "not_found", r->path_token.n ? token_words(r) : "no such route");
        status = check_scope(r, &why);
        if (status)
                return turn_away(r, status, status == 404 ? "not_found" : "unauthorized", why);
        if (r->who.session[0] && r->route->scope != SCOPE_VISITOR &&
            r->route->scope != SCOPE_OPEN &&
            !buckets_take(s->visitor_reads, r->who.token_id, SERVER_PUBLIC_READS_PER_MINUTE)) {
                request_header_out(r, "Retry-After", "60");
                return turn_away(r, 429, "rate_limit", "too many requests; wait a minute");
        }
        status = http_check_body(r, &why);
        if (status == 413)
                return turn_away(r, status, "too_large", why);
        if (status)
                return turn_away(r, status, "unsupported_media_type", why);
        if (atomic_load(&s->stopping))
                return turn_away(r, 503, "stopping", "the server is stopping");
        connections_owes_body(r->connection,
            r->who.known ? INT64_MAX : http_now_ms() + SERVER_VISITOR_BODY_SECONDS * 1000);
        return MHD_YES;
}

/* ---- the callback ---- */

/* A handler that answers later does not work meanwhile, and is not to be held up by those that do.
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
                return refuse_later(r, 503, "busy", "too many requests at once");
        return refuse_later(r, 507, "full", "there is no room on the disk for this body");
}

static enum MHD_Result take_body(struct request *r, const char *data, size_t *n)
{
        struct server *s = r->server;
        size_t size = *n;
        *n = 0;
        if (r->late)
                return skip_body(r, size);
        if (r->refused)
                return MHD_YES;
        if (r->spool_failed)
                return refuse_spooled(r);
        if (spool_size(r) + size > r->route->body_max)
                return refuse_later(r, 413, "too_large", "the body is too large");
        if (atomic_load(&s->body_bytes) + size > SERVER_BODIES_MAX)
                return refuse_later(r, 503, "busy", "too much is being sent at once");
        if ((r->route->flags & ROUTE_SPOOL) && !spool_has_room(r, size)) {
                *n = size;
                return write_body(r);
        }
        buf_put(&r->body, data, size);
        if (r->body.failed)
                return refuse_later(r, 503, "busy", "out of memory");
        atomic_fetch_add(&s->body_bytes, size);
        atomic_fetch_add(&s->metrics.bytes_in, size);
        r->body_counted += size;
        return MHD_YES;
}

/* A body may take long, and its sender's token may have been revoked meanwhile. */
static bool is_revoked(const struct request *r)
{
        struct identities *ids = r->server->identities;
        return r->who.known && !r->who.lent && identities_version(ids) != r->who.version &&
               !identities_valid(ids, r->who.token_id);
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
                return check(r, method, version);
        }
        if (*data_size) {
                if (is_chunked(r))
                        connections_owes_chunk(connection);
                return take_body(r, data, data_size);
        }
        if (r->late && !r->done) {
                r->done = true;
                return connections_claim(s->connections, connection) ? answer(r) : MHD_NO;
        }
        if (r->refused)
                return MHD_YES;
        if (r->done)
                return answer(r);
        if (r->handed_over)
                return MHD_YES;
        connections_settled(connection);
        if (is_revoked(r))
                return refuse(r, 401, "unauthorized", "the token was revoked");
        if (is_chunked(r) && !http_check_room(r))
                return refuse_for_room(r);
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
        request_error(r, 431, "bad_headers", "%s", TOO_MANY_FIELDS);
        answer_bare(r);
        log_request(r);
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

/* ---- listening ---- */

/* A port belongs to one server. SO_REUSEADDR lets a new one have it as soon as the old one is
 * gone, and never beside it. */
static int listen_on(const struct sockaddr *address)
{
        static const int ON = 1;
        bool v6 = address->sa_family == AF_INET6;
        socklen_t n = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
        int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &ON, sizeof ON) != 0 ||
            (v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &ON, sizeof ON) != 0) ||
            bind(fd, address, n) != 0 || listen(fd, SERVER_BACKLOG) != 0) {
                int sys = errno;
                close(fd);
                return -sys;
        }
        return fd;
}

static int port_of(int fd)
{
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
        } a = {.any.sa_family = AF_UNSPEC};
        socklen_t n = sizeof a;
        if (getsockname(fd, &a.any, &n) != 0)
                return 0;
        return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}

static int cannot_listen(const struct server *s, int sys, struct steno_error *err)
{
        char who[64];
        if (sys != -EADDRINUSE)
                return error_sys(err, sys, "listening on %s:%d", s->host, s->port);
        if (port_owner(s->port, who))
                return error_set(err, STENO_ECONFLICT,
                    "%s:%d is in use by %s: stop it, or take another port with --listen %s:PORT",
                    s->host, s->port, who, s->host);
        return error_set(err, STENO_ECONFLICT,
            "%s:%d is in use by a program of another user: take another port with --listen "
            "%s:PORT",
            s->host, s->port, s->host);
}

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
                return cannot_listen(s, fd, err);
        s->port = port_of(fd);
        s->daemon = libmhd.start_daemon(flags, 0, NULL, NULL, on_request, s,
            MHD_OPTION_EXTERNAL_LOGGER, on_words, s, MHD_OPTION_LISTEN_SOCKET, fd,
            MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_UNESCAPE_CALLBACK, keep_raw, NULL,
            MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
            on_connection, s, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)SERVER_POOL_THREADS,
            MHD_OPTION_CONNECTION_LIMIT, (unsigned)SERVER_CONNECTIONS_MAX,
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
