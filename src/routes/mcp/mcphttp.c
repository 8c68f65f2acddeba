/*
 * mcphttp.c - POST /mcp?conversation=ID: MCP over HTTP (mcpd/mcpd.h), without sessions.
 *
 * A request whose client wants to hear of its progress is answered with a stream of events, the
 * last of which is the answer; everything else with one JSON message. A modern client that closes
 * its stream cancels the request, a legacy one does not.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/limits.h"
#include "http/server_core.h"
#include "mcpd/mcpd.h"
#include "routes/handlers.h"

/* A request that goes on after struct request is gone. */
struct exchange {
        struct mcpd_message m;
        struct steno_store *store;
        char *project;
        char *conversation;
        bool fixtures;
        struct stream *stream; /* NULL: one JSON message */
};

static void release(struct exchange *x)
{
        mcpd_release(&x->m);
        free(x->project);
        free(x->conversation);
        stream_unref(x->stream);
}

/* Does the Accept header (absent: everything) take this type? */
static bool accepts(const struct request *r, const char *type)
{
        const char *accept = request_header(r, "Accept");
        size_t n = strcspn(type, "/");
        char any[32] = {0};
        if (!accept || strcasestr(accept, type) || strstr(accept, "*/*"))
                return true;
        memcpy(any, type, n);
        memcpy(any + n, "/*", 2);
        return strcasestr(accept, any) != NULL;
}

static void send_event(void *ctx, const char *json, size_t n)
{
        struct exchange *x = ctx;
        stream_event(x->stream, NULL, "message", json, n);
}

static bool is_gone(void *ctx)
{
        struct exchange *x = ctx;
        return x->m.modern && !stream_is_open(x->stream);
}

/* The head of the answer goes out at once; `r` must not be used after that. */
static void answer_stream(struct request *r, struct exchange *x)
{
        struct mcpd_scope scope = {x->store, x->project, x->conversation, x->fixtures};
        struct mcpd_peer peer = {send_event, is_gone, x};
        struct buf answer;
        x->stream = stream_events(r, NULL, NULL);
        http_finish(r);
        if (!x->stream)
                return; /* it has answered */
        buf_init(&answer, 0);
        mcpd_answer(&scope, &x->m, &peer, &answer);
        if (answer.n && !answer.failed) {
                stream_event(x->stream, NULL, "message", answer.p, answer.n);
                stream_end(x->stream);
        } else {
                stream_break(x->stream);
        }
        buf_release(&answer);
}

static void answer_json(struct request *r, struct exchange *x)
{
        struct mcpd_scope scope = {x->store, x->project, x->conversation, x->fixtures};
        int status = mcpd_answer(&scope, &x->m, NULL, &r->reply);
        if (r->reply.failed)
                request_error(r, 503, "busy", "out of memory");
        else
                r->status = status;
        if (r->reply.n)
                r->content_type = "application/json";
        http_finish(r);
}

/* The conversation is there; else the answer is in `r`. */
static bool choose(struct request *r, struct exchange *x)
{
        const char *id = request_query(r, "conversation");
        if (!id || !*id) {
                request_error(r, 400, "bad_request",
                    "which conversation? the address must have ?conversation=ID");
                return false;
        }
        struct steno_conv *conv = request_conv(r, id);
        if (!conv)
                return false;
        steno_conv_close(conv);
        x->store = r->store;
        x->project = strdup(r->who.project);
        x->conversation = strdup(id);
        if (!x->project || !x->conversation)
                request_error(r, 503, "busy", "out of memory");
        return x->project && x->conversation;
}

/* The message was taken apart; else the answer is in `r`. */
static bool begin(struct request *r, struct exchange *x)
{
        struct mcpd_headers headers = {.version = request_header(r, "MCP-Protocol-Version"),
            .method = request_header(r, "Mcp-Method"),
            .name = request_header(r, "Mcp-Name")};
        struct steno_error err = {0};
        if (!accepts(r, "application/json") && !accepts(r, "text/event-stream")) {
                request_error(r, 406, "not_acceptable",
                    "Accept must have application/json and text/event-stream");
                return false;
        }
        x->fixtures = r->server->fixtures;
        if (!x->fixtures && !choose(r, x))
                return false;
        if (mcpd_take(&x->m, r->body.p ? r->body.p : "", r->body.n, &headers, NULL, &err)) {
                request_error(r, 503, "busy", "out of memory");
                return false;
        }
        return true;
}

void mcphttp_post(struct request *r)
{
        struct exchange x = {0};
        if (!begin(r, &x))
                http_finish(r);
        else if (mcpd_is_long(&x.m) && accepts(r, "text/event-stream"))
                answer_stream(r, &x);
        else
                answer_json(r, &x);
        release(&x);
}
