/*
 * answer.c - see answer.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/answer.h"
#include "http/connections.h"
#include "http/http.h"
#include "http/libmhd.h"
#include "http/passing.h"
#include "http/server_core.h"

static const char TOO_MANY_FIELDS[] =
    "the headers, cookies and trailers are too many or too long together";

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

void answer_bare(struct request *r)
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

enum MHD_Result answer_queue(struct request *r)
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

enum MHD_Result answer_refuse(struct request *r, int status, const char *code, const char *why)
{
        r->refused = true;
        atomic_fetch_add(&r->server->metrics.refused, 1);
        request_error(r, status, code, "%s", why);
        return answer_queue(r);
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

enum MHD_Result answer_refuse_later(
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

enum MHD_Result answer_skip_body(struct request *r, size_t size)
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

enum MHD_Result answer_turn_away(struct request *r, int status, const char *code, const char *why)
{
        return (has_body(r) ? answer_refuse_later : answer_refuse)(r, status, code, why);
}

void answer_no_room(struct request *r)
{
        request_error(r, 431, "bad_headers", "%s", TOO_MANY_FIELDS);
}

enum MHD_Result answer_refuse_for_room(struct request *r)
{
        return answer_refuse(r, 431, "bad_headers", TOO_MANY_FIELDS);
}
