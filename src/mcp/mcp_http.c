/*
 * mcp_http.c - an MCP server behind streamable HTTP: each message is a POST, answered by JSON or by
 * a stream of events.
 *
 * Every exchange has a connection of its own for as long as it lasts; idle ones are kept for the
 * next. Owns the session id and the headers. A stream of the older era that ends before its answer
 * is resumed where it stopped, if the server has numbered its events.
 */
#include "mcp/mcp_param.h"
#include "mcp/mcp_transport.h"
#include "mcp/mcp_stream.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/libcurl.h"
#include "net/sse.h"
#include "tool/tool.h"

#define TICK_MS 50
#define CONNECT_MS 10000
#define IDLE_MAX 8
#define SESSION_MAX 1024
#define EVENT_ID_MAX 512
#define RETRY_MS 1000 /* before a stream is taken up again, unless the server says */
#define RETRY_MOST_MS 30000
#define RESUMES_MAX 100
#define REPLY_MS 2000 /* for an answer to a request of the server */

struct http {
        struct mcp_transport base;
        char *name;
        char *url;
        struct curl_slist *headers; /* the config's */
        pthread_mutex_t lock;
        char session[SESSION_MAX]; /* empty: none */
        char version[32];          /* empty: not settled */
        bool modern;
        CURLM *idle[IDLE_MAX]; /* each with its open connections */
        size_t idle_count;
};

/* One POST. */
struct post {
        struct http *http;
        struct mcp_exchange *x; /* NULL: a notification */
        CURL *curl;
        struct buf body;
        struct sse sse;
        struct mcp_stream *large; /* an answer that is not held, or NULL */
        bool gave;                /* of which something went out: it cannot be asked for again */
        bool in_session;          /* when it was sent */
        bool streams;             /* the answer is a stream of events */
        bool done;                /* the answer is there */
        bool deaf;                /* it does not take answers to its own requests */
        int failed;
        char last_event[EVENT_ID_MAX]; /* empty: events have no ids */
        int64_t retry_ms;
        char session[SESSION_MAX];
        char error[CURL_ERROR_SIZE];
        struct steno_error why; /* of an answer that was not held */
};

static int run(struct http *h, struct mcp_exchange *x, struct str body, int64_t deadline,
    const struct steno_stop *stop, struct steno_error *err);

/* ---- headers ---- */

static struct curl_slist *add(struct curl_slist *list, const char *name, const char *value)
{
        char *line = NULL;

        if (asprintf(&line, "%s: %s", name, value) < 0)
                return list;
        struct curl_slist *longer = libcurl.slist_append(list, line);
        free(line);
        return longer ? longer : list;
}

static void put_base64(struct buf *b, struct str s)
{
        static const char digits[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

        for (size_t i = 0; i < s.n; i += 3) {
                unsigned char t[3] = {0};
                size_t k = s.n - i < 3 ? s.n - i : 3;
                memcpy(t, s.p + i, k);
                buf_putc(b, digits[t[0] >> 2]);
                buf_putc(b, digits[(t[0] & 3) << 4 | t[1] >> 4]);
                buf_putc(b, k > 1 ? digits[(t[1] & 15) << 2 | t[2] >> 6] : '=');
                buf_putc(b, k > 2 ? digits[t[2] & 63] : '=');
        }
}

/* A value from outside may hold characters that a header cannot. */
static struct curl_slist *add_value(struct curl_slist *list, const char *header, const char *name)
{
        bool plain = *name && *name != ' ';
        struct buf b;

        for (const char *p = name; *p; p++)
                plain = plain && *p >= 0x20 && *p < 0x7F;
        plain = plain && strncmp(name, "=?base64?", 9) != 0 && name[strlen(name) - 1] != ' ';
        buf_init(&b, 64 * KIB);
        if (plain) {
                buf_puts(&b, name);
        } else {
                buf_puts(&b, "=?base64?");
                put_base64(&b, str_of(name));
                buf_puts(&b, "?=");
        }
        if (buf_cstr(&b))
                list = add(list, header, buf_cstr(&b));
        buf_release(&b);
        return list;
}

static void add_param(void *ctx, const char *header, const char *value)
{
        struct curl_slist **list = ctx;
        *list = add_value(*list, header, value);
}

static struct curl_slist *make_headers(struct http *h, const struct mcp_exchange *x)
{
        struct curl_slist *list = NULL;

        list = add(list, "Content-Type", "application/json");
        list = add(list, "Accept", "application/json, text/event-stream");
        list = add(list, "Expect", "");
        for (struct curl_slist *e = h->headers; e; e = e->next) {
                struct curl_slist *longer = libcurl.slist_append(list, e->data);
                list = longer ? longer : list;
        }
        pthread_mutex_lock(&h->lock);
        if (h->version[0])
                list = add(list, "MCP-Protocol-Version", h->version);
        if (h->session[0])
                list = add(list, "MCP-Session-Id", h->session);
        bool modern = h->modern;
        pthread_mutex_unlock(&h->lock);
        if (modern && x && x->method)
                list = add(list, "Mcp-Method", x->method);
        if (modern && x && x->name)
                list = add_value(list, "Mcp-Name", x->name);
        if (modern && x && x->schema.n && x->args.n)
                mcp_param_each(x->schema, x->args, add_param, &list);
        return list;
}

/* ---- what comes back ---- */

static void keep_answer(struct post *p, struct str text)
{
        p->x->answer = malloc(text.n + 1);
        if (!p->x->answer) {
                p->failed = STENO_ENOMEM;
                return;
        }
        memcpy(p->x->answer, text.p, text.n);
        p->x->answer[text.n] = '\0';
        p->x->answer_n = text.n;
        p->done = true;
}

/* A server that did not accept one answer in time gets no more answers during this call, because
 * they would delay its own answer. */
static void reply(struct post *p, const struct json *j)
{
        int64_t now = time_monotonic_ms(), until = now + REPLY_MS;
        struct buf b;

        if (p->deaf || (p->x->deadline && p->x->deadline <= now))
                return;
        if (p->x->deadline && p->x->deadline < until)
                until = p->x->deadline;
        buf_init(&b, 64 * KIB);
        mcp_message_reply(&b, j);
        p->deaf = !b.failed && run(p->http, NULL, buf_str(&b), until, p->x->stop, NULL) != 0;
        buf_release(&b);
}

/* One message of the answer. An error without an id is about the one request there was. */
static void take_message(struct post *p, struct str text)
{
        struct json j;
        uint64_t id = 0;

        json_init(&j);
        enum mcp_kind kind = MCP_NONSENSE;
        if (json_parse(&j, text.p, text.n, NULL, NULL) == 0)
                kind = mcp_message_kind(&j, &id);
        bool nameless = kind == MCP_ANSWER && json_get(&j, 0, "error") != JSON_NONE &&
                        (json_get(&j, 0, "id") == JSON_NONE ||
                            json_type(&j, json_get(&j, 0, "id")) == JSON_NULL);
        if (kind == MCP_ANSWER && (id == p->x->id || nameless))
                keep_answer(p, text);
        else if (kind == MCP_NOTIFICATION && p->x->notice && id == p->x->id)
                p->x->notice(p->x->ctx, &j);
        else if (kind == MCP_REQUEST)
                reply(p, &j);
        json_release(&j);
}

/* ---- answers that are not held ---- */

static void end_large(struct post *p);

static int feed_large(struct post *p, const char *text, size_t n)
{
        if (!p->large) {
                p->large = malloc(sizeof *p->large);
                if (!p->large)
                        return STENO_ENOMEM;
                mcp_stream_init(p->large, p->x->piece, p->x->piece_ctx);
        }
        if (mcp_stream_feed(p->large, text, n) && !p->large->has_method)
                end_large(p);
        return p->failed;
}

/* A message that was not an answer, such as a very long notification, is passed over. */
static void end_large(struct post *p)
{
        struct buf answer;
        buf_init(&answer, MCP_LINE_MAX);
        p->gave = p->gave || p->large->given;
        if (p->large->has_method) {
                /* nobody waits for it */
        } else if (mcp_stream_finish(p->large, p->x->id, &answer, &p->why) == 0) {
                keep_answer(p, buf_str(&answer));
        } else {
                p->failed = p->why.code;
        }
        buf_release(&answer);
        mcp_stream_release(p->large);
        free(p->large);
        p->large = NULL;
}

static int on_spill(void *ctx, const char *text, size_t n)
{
        struct post *p = ctx;
        if (p->done)
                return 0;
        if (text)
                return feed_large(p, text, n);
        end_large(p);
        return p->failed;
}

static int on_event(void *ctx, struct str name, struct str data)
{
        struct post *p = ctx;

        (void)name;
        if (!p->done && data.n)
                take_message(p, data);
        return 0;
}

/* What comes back in headers of ours: ASCII from `lowest` on. MCP has '!' for sessions; the id of
 * an event may hold spaces. */
static bool is_ascii_from(char lowest, const char *p, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (p[i] < lowest || p[i] > '~')
                        return false;
        return true;
}

/* Where to go on, and when. */
static void on_field(void *ctx, struct str field, struct str value)
{
        struct post *p = ctx;

        if (str_is(field, "id") && value.n < EVENT_ID_MAX && is_ascii_from(' ', value.p, value.n)) {
                memcpy(p->last_event, value.p, value.n);
                p->last_event[value.n] = '\0';
        } else if (str_is(field, "retry") && value.n && value.n < 9) {
                int64_t ms = 0;
                for (size_t i = 0; i < value.n; i++) {
                        if (value.p[i] < '0' || value.p[i] > '9')
                                return;
                        ms = ms * 10 + (value.p[i] - '0');
                }
                p->retry_ms = ms < RETRY_MOST_MS ? ms : RETRY_MOST_MS;
        }
}

static size_t on_header(char *text, size_t size, size_t n, void *ctx)
{
        static const char session[] = "mcp-session-id:";
        struct post *p = ctx;
        size_t length = size * n;
        size_t skip = sizeof(session) - 1;

        if (length > skip && strncasecmp(text, session, skip) == 0) {
                const char *v = text + skip;
                size_t m = length - skip;
                while (m && (*v == ' ' || *v == '\t'))
                        v++, m--;
                while (m && (v[m - 1] == '\r' || v[m - 1] == '\n' || v[m - 1] == ' '))
                        m--;
                if (m < SESSION_MAX && is_ascii_from('!', v, m)) {
                        memcpy(p->session, v, m);
                        p->session[m] = '\0';
                }
        }
        return length;
}

static size_t on_data(char *text, size_t size, size_t n, void *ctx)
{
        struct post *p = ctx;
        size_t length = size * n;
        char *type = NULL;

        if (p->done || !p->x)
                return length;
        libcurl.easy_getinfo(p->curl, CURLINFO_CONTENT_TYPE, &type);
        p->streams = type && strncasecmp(type, "text/event-stream", 17) == 0;
        if (p->streams) {
                int rc = sse_feed(&p->sse, text, length);
                if (rc < 0)
                        p->failed = rc;
        } else {
                bool large = p->large || (p->x->piece && p->body.n + length > MCP_STREAM_FROM);
                if (large && p->body.n) {
                        p->failed = feed_large(p, p->body.p, p->body.n);
                        buf_release(&p->body);
                }
                if (!large)
                        buf_put(&p->body, text, length);
                else if (!p->failed)
                        p->failed = feed_large(p, text, length);
                p->failed = p->failed ? p->failed : p->body.failed;
        }
        return p->failed ? 0 : length;
}

/* ---- one POST ---- */

static CURLM *borrow(struct http *h)
{
        CURLM *m = NULL;

        pthread_mutex_lock(&h->lock);
        if (h->idle_count)
                m = h->idle[--h->idle_count];
        pthread_mutex_unlock(&h->lock);
        return m ? m : libcurl.multi_init();
}

static void give_back(struct http *h, CURLM *m)
{
        pthread_mutex_lock(&h->lock);
        bool keep = m && h->idle_count < IDLE_MAX;
        if (keep)
                h->idle[h->idle_count++] = m;
        pthread_mutex_unlock(&h->lock);
        if (m && !keep)
                libcurl.multi_cleanup(m);
}

static void prepare(struct post *p, struct str body, struct curl_slist *headers)
{
        CURL *c = p->curl;

        libcurl.easy_setopt(c, CURLOPT_URL, p->http->url);
        libcurl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
        libcurl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
        libcurl.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
        libcurl.easy_setopt(c, CURLOPT_HTTPHEADER, headers);
        if (body.p) {
                libcurl.easy_setopt(c, CURLOPT_POST, 1L);
                libcurl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
                libcurl.easy_setopt(c, CURLOPT_POSTFIELDS, body.p);
        }
        libcurl.easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
        libcurl.easy_setopt(c, CURLOPT_HEADERDATA, p);
        libcurl.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
        libcurl.easy_setopt(c, CURLOPT_WRITEDATA, p);
        libcurl.easy_setopt(c, CURLOPT_ERRORBUFFER, p->error);
}

/* Waits until the answer is there, the transfer is over, or the time limit has passed. */
static int drive(struct post *p, CURLM *multi, int64_t deadline, const struct steno_stop *stop,
    CURLcode *code, struct steno_error *err)
{
        int running = 1, left;

        *code = CURLE_OK;
        for (;;) {
                if (libcurl.multi_perform(multi, &running) != CURLM_OK)
                        return error_set(err, STENO_EIO, "libcurl failed");
                if (p->done || running == 0)
                        break;
                if (steno_stop_requested(stop))
                        return error_set(err, STENO_EINTERRUPTED, "stopped");
                if (deadline && time_monotonic_ms() >= deadline)
                        return error_set(err, STENO_ETIMEOUT, "no answer in time");
                libcurl.multi_poll(multi, NULL, 0, TICK_MS, NULL);
        }
        for (CURLMsg *m; (m = libcurl.multi_info_read(multi, &left));)
                if (m->msg == CURLMSG_DONE)
                        *code = m->data.result;
        return 0;
}

static int judge_status(struct post *p, long status, struct steno_error *err)
{
        const char *name = p->http->name;

        if (status == 401 || status == 403)
                return error_set(
                    err, STENO_EDENIED, "MCP server %.40s refuses access (HTTP %ld)", name, status);
        if (status == 404 && p->in_session)
                return error_set(err, STENO_ENOTFOUND, "MCP server %.40s ended the session", name);
        if (status < 200 || status > 299)
                return error_set(err, STENO_EIO, "MCP server %.40s answers HTTP %ld", name, status);
        if (p->x && p->streams)
                return error_set(
                    err, STENO_EIO, "MCP server %.40s: the stream ended before the answer", name);
        if (p->x)
                return error_set(
                    err, STENO_EPROTO, "MCP server %.40s does not answer with JSON-RPC", name);
        return 0;
}

static int conclude(struct post *p, CURLcode code, struct steno_error *err)
{
        long status = 0;

        if (p->failed == STENO_ENOMEM)
                return error_nomem(err);
        if (p->failed && p->why.code)
                return error_set(
                    err, p->why.code, "MCP server %.40s: %.150s", p->http->name, p->why.msg);
        if (p->failed)
                return error_set(
                    err, STENO_ELIMIT, "MCP server %.40s: the answer is too long", p->http->name);
        libcurl.easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
        if (p->x && p->streams && !p->done)
                sse_finish(&p->sse);
        else if (p->x && !p->done && p->large)
                end_large(p);
        else if (p->x && !p->done && p->body.n)
                take_message(p, buf_str(&p->body));
        if (p->failed)
                return error_set(err, p->failed, "MCP server %.40s: %.150s", p->http->name,
                    p->why.code ? p->why.msg : "the answer is too long");
        if (p->done && !(status == 404 && p->in_session))
                return 0;
        if (code != CURLE_OK)
                return error_set(err, STENO_EIO, "MCP server %.40s: %.120s", p->http->name,
                    p->error[0] ? p->error : libcurl_why(code));
        return judge_status(p, status, err);
}

static bool has_session(struct http *h)
{
        pthread_mutex_lock(&h->lock);
        bool has = h->session[0] != '\0';
        pthread_mutex_unlock(&h->lock);
        return has;
}

static void keep_session(struct post *p)
{
        if (!p->session[0])
                return;
        pthread_mutex_lock(&p->http->lock);
        memcpy(p->http->session, p->session, sizeof(p->session));
        pthread_mutex_unlock(&p->http->lock);
}

/* What bounds an exchange. */
struct patience {
        int64_t deadline;
        const struct steno_stop *stop;
};

/* One request from its start to its end; without a body, a GET that goes on after last_event. */
static int transfer_once(
    struct post *p, CURLM *multi, struct str body, struct patience until, struct steno_error *err)
{
        struct curl_slist *headers = make_headers(p->http, p->x);
        CURLcode code;
        int rc;

        if (!body.p)
                headers = add(headers, "Last-Event-ID", p->last_event);
        p->curl = libcurl_new();
        p->streams = false;
        p->error[0] = '\0';
        buf_init(&p->body, MCP_BODY_MAX);
        sse_init(&p->sse, MCP_BODY_MAX, on_event, p);
        p->sse.other = on_field;
        if (p->x && p->x->piece) {
                p->sse.spill = on_spill;
                p->sse.spill_from = MCP_STREAM_FROM;
        }
        if (!p->curl || !headers) {
                rc = error_nomem(err);
                goto out;
        }
        prepare(p, body, headers);
        libcurl.multi_add_handle(multi, p->curl);
        rc = drive(p, multi, until.deadline, until.stop, &code, err);
        if (rc == 0)
                rc = conclude(p, code, err);
        libcurl.multi_remove_handle(multi, p->curl);
out:
        libcurl.easy_cleanup(p->curl);
        libcurl.slist_free_all(headers);
        sse_release(&p->sse);
        buf_release(&p->body);
        if (p->large) {
                p->gave = p->gave || p->large->given;
                mcp_stream_release(p->large);
        }
        free(p->large);
        p->large = NULL;
        return rc;
}

static int pause_for(int64_t ms, struct patience until, struct steno_error *err)
{
        int64_t end = time_monotonic_ms() + ms;

        while (time_monotonic_ms() < end) {
                struct pollfd fd = {steno_stop_fd(until.stop), POLLIN, 0};
                if (steno_stop_requested(until.stop))
                        return error_set(err, STENO_EINTERRUPTED, "stopped");
                if (until.deadline && time_monotonic_ms() >= until.deadline)
                        return error_set(err, STENO_ETIMEOUT, "no answer in time");
                int64_t left = end - time_monotonic_ms();
                poll(&fd, 1, left < TICK_MS ? (int)left : TICK_MS);
        }
        return 0;
}

static bool can_resume(struct post *p, int rc)
{
        pthread_mutex_lock(&p->http->lock);
        bool legacy = !p->http->modern;
        pthread_mutex_unlock(&p->http->lock);
        return rc == STENO_EIO && p->x && p->streams && legacy && p->last_event[0] && !p->gave;
}

static int run(struct http *h, struct mcp_exchange *x, struct str body, int64_t deadline,
    const struct steno_stop *stop, struct steno_error *err)
{
        struct post p = {.http = h, .x = x, .retry_ms = RETRY_MS, .in_session = has_session(h)};
        struct patience until = {deadline, stop};
        CURLM *multi = borrow(h);

        if (!multi)
                return error_nomem(err);
        int rc = transfer_once(&p, multi, body, until, err);
        for (int i = 0; i < RESUMES_MAX && can_resume(&p, rc); i++) {
                rc = pause_for(p.retry_ms, until, err);
                if (rc == 0)
                        rc = transfer_once(&p, multi, (struct str){NULL, 0}, until, err);
        }
        if (rc == 0)
                keep_session(&p);
        else if (x) {
                free(x->answer);
                x->answer = NULL;
        }
        give_back(h, multi);
        return rc;
}

/* ---- the transport ---- */

static int http_exchange(struct mcp_transport *t, struct mcp_exchange *x, struct steno_error *err)
{
        struct http *h = (struct http *)t;
        int rc = run(h, x, x->body, x->deadline, x->stop, err);

        pthread_mutex_lock(&h->lock);
        /* In the modern era closing the stream has already told the server. */
        bool legacy = !h->modern && h->version[0];
        pthread_mutex_unlock(&h->lock);
        if ((rc == STENO_EINTERRUPTED || rc == STENO_ETIMEOUT) && legacy) {
                struct buf b;
                buf_init(&b, 4 * KIB);
                mcp_message_cancel(&b, x->id, rc == STENO_ETIMEOUT ? "timed out" : "stopped");
                run(h, NULL, buf_str(&b), time_monotonic_ms() + TICK_MS, NULL, NULL);
                buf_release(&b);
        }
        return rc;
}

static int http_notify(struct mcp_transport *t, struct str body, struct steno_error *err)
{
        return run((struct http *)t, NULL, body, time_monotonic_ms() + CONNECT_MS, NULL, err);
}

static void http_settle(struct mcp_transport *t, const char *version, bool modern)
{
        struct http *h = (struct http *)t;

        pthread_mutex_lock(&h->lock);
        snprintf(h->version, sizeof(h->version), "%s", version);
        h->modern = modern;
        if (!version[0])
                h->session[0] = '\0';
        pthread_mutex_unlock(&h->lock);
}

/* A server that opened a session is told when it ends. */
static void end_session(struct http *h)
{
        struct curl_slist *headers = make_headers(h, NULL);
        CURL *c = libcurl_new();

        if (c && headers) {
                libcurl.easy_setopt(c, CURLOPT_URL, h->url);
                libcurl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
                libcurl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
                libcurl.easy_setopt(c, CURLOPT_CUSTOMREQUEST, "DELETE");
                libcurl.easy_setopt(c, CURLOPT_HTTPHEADER, headers);
                libcurl.easy_setopt(c, CURLOPT_NOBODY, 1L);
                libcurl.easy_setopt(c, CURLOPT_TIMEOUT_MS, 1000L);
                libcurl.easy_perform(c);
        }
        libcurl.easy_cleanup(c);
        libcurl.slist_free_all(headers);
}

static void http_close(struct mcp_transport *t)
{
        struct http *h = (struct http *)t;

        if (h->session[0])
                end_session(h);
        for (size_t i = 0; i < h->idle_count; i++)
                libcurl.multi_cleanup(h->idle[i]);
        libcurl.slist_free_all(h->headers);
        pthread_mutex_destroy(&h->lock);
        free(h->name);
        free(h->url);
        free(h);
}

static const struct mcp_transport_ops http_ops = {
    http_exchange, http_notify, http_settle, http_close};

int mcp_http_open(
    const struct mcp_server *server, struct mcp_transport **out, struct steno_error *err)
{
        int rc = libcurl_need(err);
        struct http *h = rc ? NULL : calloc(1, sizeof(*h));

        if (rc)
                return rc;
        if (!h)
                return error_nomem(err);
        h->base.ops = &http_ops;
        pthread_mutex_init(&h->lock, NULL);
        for (size_t i = 0; server->headers && server->headers[i]; i++) {
                struct curl_slist *longer = libcurl.slist_append(h->headers, server->headers[i]);
                h->headers = longer ? longer : h->headers;
        }
        h->name = strdup(server->name);
        h->url = strdup(server->url);
        if (!h->name || !h->url) {
                http_close(&h->base);
                return error_nomem(err);
        }
        *out = &h->base;
        return 0;
}
