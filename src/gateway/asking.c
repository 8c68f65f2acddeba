/*
 * asking.c - see asking.h
 */
#include "gateway/asking.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "net/transfer.h"

#define CONNECT_MS 15000
#define IDLE_MS 600000 /* as long as clients wait */

struct reading {
        struct asking *a;
        struct sse sse;
};

static int on_data(void *ctx, struct transfer *t, const char *p, size_t n)
{
        struct reading *r = ctx;
        r->a->status = t->status;
        r->a->stream = t->status / 100 == 2 && strstr(t->type, "event-stream") != NULL;
        if (r->a->stream)
                return sse_feed(&r->sse, p, n);
        buf_put(&r->a->answer, p, n);
        return r->a->answer.failed;
}

static int send_it(struct asking *a, const char *url, const char *auth, struct steno_error *err)
{
        const char *headers[] = {"Content-Type: application/json", "Accept-Encoding: identity",
            "Expect:", auth ? auth : a->header, auth ? a->header : NULL, NULL};
        struct reading r = {.a = a};
        struct transfer_pool *pool = transfer_pool_new(err);
        if (!pool)
                return STENO_ENOMEM;
        sse_init(&r.sse, MESSAGE_MAX, a->event, a->ctx);
        struct transfer t = {.pool = pool,
            .url = url,
            .headers = headers,
            .body = a->body,
            .connect_ms = CONNECT_MS,
            .idle_ms = IDLE_MS,
            .stop = a->stop,
            .data = on_data,
            .ctx = &r};
        int rc = transfer_run(&t, err);
        a->status = t.status;
        if (rc == 0 && a->stream)
                rc = sse_finish(&r.sse);
        if (rc == STENO_EIO)
                error_set(err, STENO_EIO, "the upstream did not answer: %.120s", t.why);
        sse_release(&r.sse);
        transfer_pool_free(pool);
        return rc;
}

int asking_run(struct gateway *g, struct asking *a, struct steno_error *err)
{
        struct buf url, auth;
        struct gateway_endpoint to;
        int rc = gateway_endpoint(g, a->upstream, &to, err);
        if (rc)
                return rc;
        buf_init(&url, 64 * KIB);
        buf_init(&auth, 64 * KIB);
        buf_printf(&url, "%s%s", to.url, a->path);
        buf_printf(&auth, "%s%s", to.key_header, to.key ? to.key : "");
        const char *where = buf_cstr(&url), *who = buf_cstr(&auth);
        rc = where && who ? send_it(a, where, to.key ? who : NULL, err) : error_nomem(err);
        buf_release(&url);
        buf_release(&auth);
        return rc;
}
