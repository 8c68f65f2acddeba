/*
 * passing.c - see passing.h
 *
 * No thread waits: the connection is suspended until the endpoint's headers are there, and again
 * whenever its client has all that has come.
 */
#include "http/passing.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "gateway/gateway.h"
#include "http/http_limits.h"
#include "http/libmhd.h"
#include "http/server_core.h"

struct passing {
        struct request *r; /* until the answer begins */
        struct server *server;
        struct passing *next, *prev; /* in the server's list */
        struct MHD_Connection *connection;
        struct gateway_turn *turn;
};

/* ---- the answer ---- */

static void on_later(void *ctx)
{
        struct passing *p = ctx;
        libmhd.suspend_connection(p->connection);
}

static void on_more(void *ctx)
{
        struct passing *p = ctx;
        libmhd.resume_connection(p->connection);
}

static void fail(struct request *r, const char *code, const char *why)
{
        bool reached = strcmp(code, "upstream_unreachable") != 0;
        if (strcmp(code, "no_answer") == 0) /* each try asks the model nine times */
                request_header_out(r, "x-should-retry", "false");
        request_error(r, 502, code, "%s%s", reached ? "" : "the upstream did not answer: ", why);
}

static void on_ready(void *ctx)
{
        struct passing *p = ctx;
        struct request *r = p->r;
        r->status = gateway_status(p->turn);
        if (r->status == 0)
                fail(r, gateway_code(p->turn), gateway_why(p->turn));
        else
                r->passing = p;
        if (!r->passing)
                passing_forget(p);
        http_finish(r);
}

static ssize_t feed(void *cls, uint64_t pos, char *to, size_t max)
{
        struct passing *p = cls;
        ssize_t n = gateway_read(p->turn, pos, to, max);
        if (n == GATEWAY_LATER)
                return 0;
        if (n == GATEWAY_CUT)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        return n == GATEWAY_END ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void enter_list(struct passing *p)
{
        pthread_mutex_lock(&p->server->passing_mutex);
        p->next = p->server->passing;
        if (p->next)
                p->next->prev = p;
        p->server->passing = p;
        pthread_mutex_unlock(&p->server->passing_mutex);
}

static void leave_list(struct passing *p)
{
        pthread_mutex_lock(&p->server->passing_mutex);
        if (p->prev)
                p->prev->next = p->next;
        else
                p->server->passing = p->next;
        if (p->next)
                p->next->prev = p->prev;
        pthread_mutex_unlock(&p->server->passing_mutex);
}

void passing_forget(struct passing *p)
{
        leave_list(p);
        gateway_leave(p->turn);
        free(p);
}

static void on_gone(void *cls)
{
        passing_forget(cls);
}

struct header_sink {
        struct MHD_Response *response;
        bool data; /* it says that it is nothing that a browser would show or run */
};

static void put_header(void *ctx, const char *name, const char *value)
{
        static const char *const types[] = {"application/json", "text/event-stream"};
        struct header_sink *sink = ctx;
        libmhd.add_response_header(sink->response, name, value);
        if (strcasecmp(name, "content-type") == 0)
                for (size_t i = 0; i < sizeof types / sizeof *types; i++)
                        if (strncasecmp(value, types[i], strlen(types[i])) == 0)
                                sink->data = true;
}

/* A page from the endpoint would have our own origin, like the page that knows the token, so a
 * browser must not run it. */
static void put_headers(struct passing *p, struct MHD_Response *response)
{
        struct header_sink sink = {.response = response};
        gateway_headers(p->turn, put_header, &sink);
        if (sink.data)
                return;
        libmhd.add_response_header(response, "Content-Security-Policy", "sandbox");
        libmhd.add_response_header(response, "X-Content-Type-Options", "nosniff");
}

struct MHD_Response *passing_response(struct passing *p)
{
        int status = gateway_status(p->turn);
        int64_t length = gateway_length(p->turn);
        if (length < 0 && (status == 204 || status == 304))
                length = 0;
        struct MHD_Response *response = libmhd.create_response_from_callback(
            length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)length, SERVER_RAW_BLOCK, feed, p, on_gone);
        if (response)
                put_headers(p, response);
        else
                on_gone(p);
        return response;
}

/* ---- the request ---- */

struct headers {
        struct request *r;
        const char *list[SERVER_HEADERS_MAX + 1];
        size_t count;
};

static enum MHD_Result list_header(
    void *cls, enum MHD_ValueKind kind, const char *key, const char *value)
{
        struct headers *h = cls;
        (void)kind;
        size_t n = strlen(key) + strlen(value ? value : "") + 3;
        char *line = arena_alloc(&h->r->arena, n);
        if (!line || h->count == SERVER_HEADERS_MAX)
                return MHD_NO;
        snprintf(line, n, "%s: %s", key, value ? value : "");
        h->list[h->count++] = line;
        return MHD_YES;
}

static bool is_token(void *ctx, struct str text)
{
        struct identity who;
        identities_check(ctx, text, &who);
        return who.known;
}

static void refuse(struct request *r, int rc, const struct steno_error *err)
{
        if (rc == STENO_EUNSUPPORTED) {
                request_error(r, 400, "no_upstream_key", "%s", err->msg);
                return;
        }
        if (rc == STENO_EINVAL) {
                request_error(r, 400, "bad_headers", "%s", err->msg);
                return;
        }
        if (rc == STENO_EPROTO) {
                request_error(r, 400, "token_in_path", "%s", err->msg);
                return;
        }
        if (rc == STENO_EINTERRUPTED) {
                request_error(r, 503, "stopping", "%s", err->msg);
                return;
        }
        /* Sent again, it would fail again: the client must not try. */
        request_header_out(r, "x-should-retry", "false");
        request_error(r, 507, "record_failed", "%s", err->msg);
}

void passing_start(struct request *r, const char *upstream, struct str rest)
{
        static const struct gateway_calls calls = {on_ready, on_later, on_more};
        struct steno_error err = {0};
        struct headers h = {.r = r};
        struct passing *p = calloc(1, sizeof *p);
        if (!p) {
                request_error(r, 503, "busy", "out of memory");
                http_finish(r);
                return;
        }
        p->r = r;
        p->server = r->server;
        p->connection = r->connection;
        libmhd.get_connection_values(r->connection, MHD_HEADER_KIND, list_header, &h);
        struct gateway_request what = {.upstream = upstream,
            .rest = rest,
            .query = r->query,
            .method = r->method,
            .headers = h.list,
            .body = buf_str(&r->body),
            .project = r->who.project,
            .token_id = r->who.token_id,
            .own_credentials = r->path_token.n > 0,
            .is_token = is_token,
            .is_token_ctx = r->server->identities};
        int rc = gateway_start(r->server->gateway, &what, &calls, p, &p->turn, &err);
        if (rc == 0) {
                enter_list(p);
                rc = gateway_send(p->turn, &what, &err);
                if (rc == 0)
                        return; /* it may be over already */
                leave_list(p);
                gateway_drop(p->turn);
        }
        free(p);
        refuse(r, rc, &err);
        http_finish(r);
}

/* ---- clients that hang up ---- */

static bool hung_up(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
            libmhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct pollfd p = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};
        return p.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}

void passing_tick(struct server *s)
{
        pthread_mutex_lock(&s->passing_mutex);
        for (struct passing *p = s->passing; p; p = p->next)
                if (hung_up(p->connection))
                        gateway_gone(p->turn);
        pthread_mutex_unlock(&s->passing_mutex);
}
