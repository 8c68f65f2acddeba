/*
 * gateway_turn.c - one request on its way to an endpoint, and its answer on the way back.
 *
 * Two sides hold a turn: the relay's thread, which receives the answer, and the reader, which
 * passes it to the client. When both have released the turn, the recorder gets the exchange. Where
 * the gateway answers context tools itself (rounds.h), the first side alternates between the
 * relay's thread and the threads of errands.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "gateway/gateway_core.h"
#include "gateway/gateway_request.h"
#include "gateway/headers.h"
#include "gateway/sending.h"
#include "gateway/wire.h"

#define CONNECT_MS 15000
#define GONE_MS                                                                                    \
        60000                 /* For how long the rest of an answer is read when its client has    \
                                 left, */
#define GONE_BYTES (64 * MIB) /* or for so many bytes. */
#define ANSWER_HEADERS_MAX (8 * KIB) /* what a connection's memory holds beside the request */

struct gateway_turn {
        struct gateway *gateway;
        const struct wire *wire; /* NULL: it is passed on and not understood */
        struct sending sending;
        bool cancel_when_gone;
        struct gateway_calls calls;
        void *ctx;
        char *body; /* of the request, while it is sent; NULL: rounds have it */
        size_t body_size;
        struct rounds *rounds; /* NULL: the request is sent as it came */
        bool veiled;           /* the client may see another answer than came (rounds.h) */
        bool stream;           /* the answer is one */
        bool revoked;
        bool unrecorded;   /* a piece of the answer could not be written */
        char problem[100]; /* the error of a later round; "": not known */
        struct buf tail;   /* behind what is in the file: the end of an answer that failed */
        struct exchange *x;
        struct relay_job *job; /* under the mutex; NULL: over */
        pthread_mutex_t mutex;
        unsigned refs; /* the call's and the reader's */
        bool told;     /* ready() was called */
        bool ended;
        bool waiting; /* the reader, for more */
        bool left;    /* the reader */
        bool gone;    /* its connection is known to be closed */
        uint64_t unread;
        char token_id[40];
        struct gateway_turn *next, *prev; /* under the gateway's mutex */
        struct buf headers;
        int status;
        int64_t length;
        uint64_t delivered;
        struct recorder_fate fate;
};

static void unref(struct gateway_turn *t)
{
        pthread_mutex_lock(&t->mutex);
        bool last = --t->refs == 0;
        pthread_mutex_unlock(&t->mutex);
        if (!last)
                return;
        struct gateway *g = t->gateway;
        pthread_mutex_lock(&g->mutex);
        if (t->prev)
                t->prev->next = t->next;
        else
                g->first = t->next;
        if (t->next)
                t->next->prev = t->prev;
        pthread_mutex_unlock(&g->mutex);
        if (t->x) {
                t->fate.gone = t->status && t->delivered < exchange_size(t->x);
                t->fate.delivered = t->delivered;
                recorder_take(g->recorder, t->x, &t->fate);
        }
        buf_release(&t->headers);
        buf_release(&t->tail);
        rounds_free(t->rounds);
        sending_release(&t->sending);
        free(t->body);
        pthread_mutex_destroy(&t->mutex);
        free(t);
        pthread_mutex_lock(&g->mutex);
        if (--g->turns == 0)
                pthread_cond_broadcast(&g->quiet);
        pthread_mutex_unlock(&g->mutex);
}

static void wake(struct gateway_turn *t)
{
        pthread_mutex_lock(&t->mutex);
        if (t->waiting && !t->left)
                t->calls.more(t->ctx);
        t->waiting = false;
        pthread_mutex_unlock(&t->mutex);
}

/* ---- the answer, on the relay's thread ---- */

/* Passes status and headers to the client, and `body` if it has arrived already. */
static int tell_head(struct gateway_turn *t, int status, struct str headers,
    const struct headers_body *seen, struct str body)
{
        struct buf head;
        buf_init(&head, 4 * KIB);
        struct jsonw w = jsonw_to(&head);
        jsonw_object(&w);
        jsonw_field_i64(&w, "status", status);
        gateway_put_now(&w, "at");
        jsonw_field_bool(&w, "stream", seen->stream);
        jsonw_field_bool(&w, "encoded", seen->encoded);
        if (seen->length >= 0)
                jsonw_field_i64(&w, "length", seen->length);
        jsonw_object_end(&w);
        int rc = head.failed ? head.failed : exchange_answer(t->x, buf_str(&head));
        buf_release(&head);
        if (rc == 0 && body.n)
                rc = exchange_put(t->x, body.p, body.n);
        if (rc)
                return rc;
        pthread_mutex_lock(&t->mutex);
        buf_clear(&t->headers);
        buf_put_str(&t->headers, headers);
        t->status = status;
        t->length = seen->length;
        t->stream = seen->stream;
        t->told = true;
        rc = t->headers.failed;
        pthread_mutex_unlock(&t->mutex);
        t->calls.ready(t->ctx);
        return rc;
}

/* The answer of a round. A failure, or an answer that cannot be read, is passed to the client
 * unchanged, unless the client has already begun to read another answer. */
static int veil_head(
    struct gateway_turn *t, int status, struct str headers, struct headers_body *seen)
{
        bool fits = status / 100 == 2 && !seen->encoded;
        if (t->told && (!fits || !seen->stream)) {
                snprintf(t->problem, sizeof t->problem,
                    "the endpoint answered %d while a context tool was used", status);
                return STENO_EPROTO;
        }
        if (!fits) {
                t->veiled = false;
                return tell_head(t, status, headers, seen, (struct str){0});
        }
        rounds_begin(t->rounds, seen->stream);
        seen->length = -1;
        if (seen->stream)
                return t->told ? 0 : tell_head(t, status, headers, seen, (struct str){0});
        pthread_mutex_lock(&t->mutex); /* told when all of it is there */
        buf_clear(&t->headers);
        buf_put_str(&t->headers, headers);
        t->status = status;
        pthread_mutex_unlock(&t->mutex);
        return t->headers.failed;
}

static int on_head(void *ctx, int status, struct str headers)
{
        struct gateway_turn *t = ctx;
        struct headers_body seen = headers_body_of(headers);
        if (seen.wrong)
                return STENO_EPROTO;
        if (headers.n > ANSWER_HEADERS_MAX)
                return STENO_ELIMIT;
        return t->veiled ? veil_head(t, status, headers, &seen)
                         : tell_head(t, status, headers, &seen, (struct str){0});
}

static int put_piece(struct gateway_turn *t, struct str piece)
{
        int rc = piece.n ? exchange_put(t->x, piece.p, piece.n) : 0;
        t->unrecorded = rc != 0;
        if (rc == 0)
                wake(t);
        return rc;
}

static int on_data(void *ctx, const char *p, size_t n)
{
        struct gateway_turn *t = ctx;
        pthread_mutex_lock(&t->mutex);
        t->unread = t->left || t->gone ? t->unread + n : 0;
        bool enough = t->unread > GONE_BYTES;
        pthread_mutex_unlock(&t->mutex);
        if (enough)
                return STENO_EINTERRUPTED;
        if (!t->veiled)
                return put_piece(t, str_span(p, n));
        struct buf out;
        buf_init(&out, 0);
        int rc = rounds_feed(t->rounds, p, n, &out);
        if (rc == 0)
                rc = put_piece(t, buf_str(&out));
        buf_release(&out);
        return rc;
}

const char *gateway_code(const struct gateway_turn *t)
{
        if (!t->veiled || !rounds_again(t->rounds))
                return "upstream_unreachable";
        return rounds_is_unanswered(t->rounds) ? "no_answer" : "upstream_failed";
}

/* Why it ended, for people. Where no answer began, they need the address of the endpoint: it is
 * given without names, keys and the path. */
static void put_why(struct gateway_turn *t, const char *why)
{
        struct recorder_fate *fate = &t->fate;
        const char *url = t->sending.url;
        const char *host = url ? strstr(url, "://") : NULL;
        if (t->problem[0] || t->told || !host) {
                snprintf(fate->why, sizeof fate->why, "%.100s", t->problem[0] ? t->problem : why);
                return;
        }
        size_t scheme = (size_t)(host - url) + 3;
        size_t n = strcspn(url + scheme, "/?#");
        const char *at = memrchr(url + scheme, '@', n);
        size_t skip = at ? (size_t)(at - url) + 1 - scheme : 0;
        snprintf(fate->why, sizeof fate->why, "%.100s (%.*s%.*s)", why, (int)scheme, url,
            (int)(n - skip), url + scheme + skip);
}

/* The turn is over. */
static void finish(struct gateway_turn *t, int rc, const char *why)
{
        pthread_mutex_lock(&t->mutex);
        t->job = NULL;
        t->ended = true;
        t->fate.cut = rc != 0;
        if (rc)
                put_why(t, why);
        t->fate.known = t->problem[0] != 0;
        /* A client that has got a part of a stream gets the reason for the break as an error event
         * of its API. The file is not changed. */
        if (t->unrecorded && t->stream && t->wire)
                wire_put_error(
                    t->wire, "record_failed", "the answer could not be recorded", &t->tail);
        else if (rc && t->told && t->stream && t->veiled && rounds_again(t->rounds))
                wire_put_error(t->wire, gateway_code(t), t->fate.why, &t->tail);
        bool told = t->told;
        if (!told)
                t->status = 0;
        t->told = true;
        pthread_mutex_unlock(&t->mutex);
        if (!told)
                t->calls.ready(t->ctx);
        else
                wake(t);
        unref(t);
}

/* ---- rounds ---- */

static int start_job(struct gateway_turn *t, struct steno_error *err);

/* An answer that is not a stream, whole. */
static int tell_whole(struct gateway_turn *t, struct str body)
{
        struct headers_body seen = {.length = (int64_t)body.n};
        struct buf headers;
        buf_init(&headers, 0);
        buf_put_str(&headers, buf_str(&t->headers));
        int rc = headers.failed;
        if (rc == 0)
                rc = tell_head(t, t->status, buf_str(&headers), &seen, body);
        buf_release(&headers);
        return rc;
}

static bool may_go_on(struct gateway_turn *t)
{
        pthread_mutex_lock(&t->mutex);
        bool may = !t->left && !t->gone && !t->revoked;
        pthread_mutex_unlock(&t->mutex);
        return may;
}

/* On a thread of errands.h: the work between two rounds, or before the end. */
static void do_round(void *ctx)
{
        struct gateway_turn *t = ctx;
        struct steno_error err = {0};
        struct buf out;
        bool again = false;
        buf_init(&out, 0);
        int rc = rounds_work(t->rounds, t->x, &again, &out, &err);
        if (rc == 0 && again)
                rc = may_go_on(t) ? start_job(t, &err)
                                  : error_set(&err, STENO_EINTERRUPTED, "the client left");
        else if (rc == 0)
                rc = t->told ? put_piece(t, buf_str(&out)) : tell_whole(t, buf_str(&out));
        buf_release(&out);
        if (rc)
                snprintf(t->problem, sizeof t->problem, "%.99s",
                    err.msg[0] ? err.msg : steno_code_name(rc));
        if (rc || !again)
                finish(t, rc, "");
}

static bool send_errand(struct gateway_turn *t)
{
        struct gateway *g = t->gateway;
        pthread_mutex_lock(&g->mutex);
        bool sent = !g->stopped && g->errands && errands_put(g->errands, do_round, t);
        pthread_mutex_unlock(&g->mutex);
        return sent;
}

static void on_end(void *ctx, int rc, const char *why)
{
        struct gateway_turn *t = ctx;
        struct buf out;
        if (!t->veiled || rc) {
                finish(t, rc, why);
                return;
        }
        pthread_mutex_lock(&t->mutex);
        t->job = NULL;
        pthread_mutex_unlock(&t->mutex);
        buf_init(&out, 0);
        rc = rounds_end(t->rounds, &out);
        if (rc == 0)
                rc = put_piece(t, buf_str(&out));
        buf_release(&out);
        if (rc || !rounds_is_busy(t->rounds))
                finish(t, rc, steno_code_name(rc));
        else if (!send_errand(t))
                finish(t, STENO_EINTERRUPTED, "the server is stopping");
}

static struct gateway_turn *new_turn(
    struct gateway *g, const struct gateway_calls *calls, void *ctx, const char *token_id)
{
        struct gateway_turn *t = calloc(1, sizeof *t);
        if (!t)
                return NULL;
        t->gateway = g;
        t->calls = *calls;
        t->ctx = ctx;
        t->refs = 2;
        t->length = -1;
        pthread_mutex_init(&t->mutex, NULL);
        buf_init(&t->headers, 512 * KIB);
        buf_init(&t->tail, 64 * KIB);
        snprintf(t->token_id, sizeof t->token_id, "%s", token_id);
        pthread_mutex_lock(&g->mutex);
        t->next = g->first;
        if (t->next)
                t->next->prev = t;
        g->first = t;
        g->turns++;
        pthread_mutex_unlock(&g->mutex);
        return t;
}

/* Made for the first request, because it loads libcurl. Under the gateway's mutex. */
static int need_relay(struct gateway *g, struct steno_error *err)
{
        return g->stopped ? error_set(err, STENO_EINTERRUPTED, "the server is stopping")
               : g->relay ? 0
                          : relay_new(&g->relay, err);
}

/* Sends what the turn has to send now. */
static int start_job(struct gateway_turn *t, struct steno_error *err)
{
        static const struct relay_calls calls = {on_head, on_data, on_end};
        struct gateway *g = t->gateway;
        struct relay_request what = {.method = t->sending.method,
            .url = t->sending.url,
            .headers = (const char *const *)t->sending.headers,
            .body = t->rounds ? rounds_body(t->rounds) : str_span(t->body, t->body_size),
            .connect_ms = CONNECT_MS};
        /* The relay ends with the gateway, and gets no job afterwards. */
        pthread_mutex_lock(&g->mutex);
        int rc = need_relay(g, err);
        pthread_mutex_lock(&t->mutex);
        if (rc == 0)
                rc = relay_start(g->relay, &what, &calls, t, &t->job, err);
        /* A client that left between two rounds could not limit this job, because it did not exist
         * yet. */
        if (rc == 0 && (t->left || t->gone || t->revoked))
                relay_limit(g->relay, t->job, t->cancel_when_gone || t->revoked ? 0 : GONE_MS);
        pthread_mutex_unlock(&t->mutex);
        pthread_mutex_unlock(&g->mutex);
        return rc;
}

void gateway_drop(struct gateway_turn *t)
{
        if (t->x)
                exchange_remove(t->x);
        t->x = NULL;
        t->refs = 1;
        unref(t);
}

/* The request with stubs in it, where the upstream has them. */
static int make_rounds(struct gateway_turn *t, const struct upstream *up,
    const struct gateway_request *r, struct steno_error *err)
{
        struct buf owner;
        struct splice_options opt = {
            .wire = t->wire, .seams = t->gateway->seams, .tools = up->tools};
        buf_init(&owner, 4 * KIB);
        gateway_request_put_owner(&owner, r, t->wire);
        opt.owner = buf_cstr(&owner);
        steno_inline_limits(t->gateway->store, &opt.max_chars, &opt.max_bytes);
        int rc = opt.owner ? seams_pin(opt.seams, opt.owner, gateway_request_group(r),
                                 &opt.max_chars, &opt.max_bytes, err)
                           : error_nomem(err);
        if (rc == 0)
                rc = rounds_new(&opt, r->body, &t->rounds, err);
        t->veiled = rc == 0 && rounds_offered(t->rounds);
        buf_release(&owner);
        return rc;
}

/* What goes out is kept until it is sent. */
static int take_body(struct gateway_turn *t, const struct upstream *up,
    const struct gateway_request *r, struct steno_error *err)
{
        t->cancel_when_gone = up->cancel_when_gone;
        if (t->wire && up->stubs)
                return make_rounds(t, up, r, err);
        t->body = malloc(r->body.n + 1);
        if (!t->body)
                return error_nomem(err);
        memcpy(t->body, r->body.n ? r->body.p : "", r->body.n);
        t->body_size = r->body.n;
        return 0;
}

int gateway_start(struct gateway *g, const struct gateway_request *r,
    const struct gateway_calls *calls, void *ctx, struct gateway_turn **out,
    struct steno_error *err)
{
        const struct upstream *up = upstreams_find(&g->upstreams, r->upstream);
        int rc = gateway_request_check(r, up, err);
        if (rc)
                return rc;
        const struct wire *wire = wire_of(r->upstream, r->method, r->rest);
        struct buf head;
        buf_init(&head, 64 * KIB);
        gateway_request_put_head(&head, r, wire);
        struct gateway_turn *t = new_turn(g, calls, ctx, r->token_id);
        rc = t ? buf_check(&head, err) : error_nomem(err);
        if (rc == 0) {
                t->wire = wire;
                rc = take_body(t, up, r, err);
        }
        if (rc == 0)
                rc = exchange_create(
                    g->exchanges, buf_str(&head), r->body, up->best_effort, &t->x, err);
        buf_release(&head);
        if (rc == 0)
                *out = t;
        else if (t)
                gateway_drop(t);
        return rc;
}

int gateway_send(struct gateway_turn *t, const struct gateway_request *r, struct steno_error *err)
{
        const struct upstream *up = upstreams_find(&t->gateway->upstreams, r->upstream);
        int rc = sending_make(&t->sending, up, r, err);
        return rc ? rc : start_job(t, err);
}

/* ---- the reader's side ---- */

int gateway_status(const struct gateway_turn *t)
{
        return t->status;
}

const char *gateway_why(const struct gateway_turn *t)
{
        return t->fate.why;
}

int64_t gateway_length(const struct gateway_turn *t)
{
        return t->length;
}

static void find_connection(void *ctx, struct str line)
{
        struct str name, value, *out = ctx;
        if (headers_split(line, &name, &value) && headers_name_is(name, "connection"))
                *out = value;
}

struct telling {
        struct str connection;
        void (*each)(void *ctx, const char *name, const char *value);
        void *ctx;
};

static void tell_header(void *ctx, struct str line)
{
        struct telling *to = ctx;
        struct str name, value;
        if (!headers_split(line, &name, &value) || headers_is_hop(name, to->connection) ||
            headers_name_is(name, "content-length"))
                return;
        char *n = strndup(name.p, name.n), *v = strndup(value.n ? value.p : "", value.n);
        if (n && v)
                to->each(to->ctx, n, v);
        free(n);
        free(v);
}

void gateway_headers(const struct gateway_turn *t,
    void (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
        struct telling to = {.each = each, .ctx = ctx};
        headers_each(buf_str(&t->headers), find_connection, &to.connection);
        headers_each(buf_str(&t->headers), tell_header, &to);
}

/* Under the mutex. */
static ssize_t read_tail(const struct gateway_turn *t, size_t at, void *p, size_t n)
{
        if (n > t->tail.n - at)
                n = t->tail.n - at;
        memcpy(p, t->tail.p + at, n);
        return (ssize_t)n;
}

ssize_t gateway_read(struct gateway_turn *t, uint64_t at, void *p, size_t n)
{
        pthread_mutex_lock(&t->mutex);
        bool ended = t->ended;
        ssize_t got = exchange_read(t->x, at, p, n);
        if (got > 0)
                t->delivered = at + (uint64_t)got;
        else if (got < 0)
                got = GATEWAY_CUT;
        else if (ended && at < exchange_size(t->x) + t->tail.n)
                got = read_tail(t, (size_t)(at - exchange_size(t->x)), p, n);
        else if (ended)
                got = t->fate.cut ? GATEWAY_CUT : GATEWAY_END;
        else {
                t->waiting = true;
                t->calls.later(t->ctx);
                got = GATEWAY_LATER;
        }
        pthread_mutex_unlock(&t->mutex);
        return got;
}

void gateway_gone(struct gateway_turn *t)
{
        pthread_mutex_lock(&t->mutex);
        if (t->job && !t->gone)
                relay_limit(t->gateway->relay, t->job, t->cancel_when_gone ? 0 : GONE_MS);
        t->gone = true;
        pthread_mutex_unlock(&t->mutex);
}

void gateway_revoke(struct gateway *g, bool (*valid)(void *ctx, const char *token_id), void *ctx)
{
        pthread_mutex_lock(&g->mutex);
        for (struct gateway_turn *t = g->first; t; t = t->next) {
                if (valid(ctx, t->token_id))
                        continue;
                pthread_mutex_lock(&t->mutex);
                t->revoked = true;
                if (t->job)
                        relay_limit(g->relay, t->job, 0);
                pthread_mutex_unlock(&t->mutex);
        }
        pthread_mutex_unlock(&g->mutex);
}

void gateway_leave(struct gateway_turn *t)
{
        pthread_mutex_lock(&t->mutex);
        t->left = true;
        if (t->job)
                relay_limit(t->gateway->relay, t->job, t->cancel_when_gone ? 0 : GONE_MS);
        pthread_mutex_unlock(&t->mutex);
        unref(t);
}
