/*
 * provider_http.c - sends POSTs to a model's endpoint, with retries (provider_http.h).
 */
#include "provider/provider_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/limits.h"
#include "base/named_file.h"
#include "base/limits.h"
#include "net/sse.h"
#include "net/transfer.h"

#define BACKOFF_FIRST_MS 500
#define BACKOFF_MAX_MS 8000
#define RETRY_AFTER_MAX_MS 60000 /* if an endpoint asks for more, its error is reported */
#define LINGER_MS 2000           /* time for usage and the end mark behind a complete reply */
#define ERROR_BODY_MAX (256 * KIB)
#define HEADERS_MAX 12

struct http_client {
        struct provider_client base;
        const struct provider *provider;
        const struct provider_wire *wire;
        struct provider_options opt; /* without its strings, which are copied below */
        struct transfer_pool *pool;
        char *url;
        char *auth; /* a header, or NULL */
};

enum body_kind {
        BODY_UNKNOWN,
        BODY_STREAM,
        BODY_WHOLE,
};

#define WHOLE_IN_MEMORY (1 * MIB) /* of an answer; the rest goes to a file */
#define WHOLE_MOST ((uint64_t)1024 * MIB)
#define MESSAGE_ROOM (64 * KIB) /* for the members of a stored message beside the reply */

/* One POST and its answer. */
struct attempt {
        struct provider_reader *reader;
        struct sse sse;
        struct buf body;
        enum body_kind kind;
        const struct provider_hooks *hooks;
        /* The whole answer, for a reply that is too large for a message. */
        struct buf first;
        int whole; /* descriptor of a file without a name, -1: not needed yet */
        uint64_t kept;
        bool lost;      /* the whole answer cannot be kept */
        bool too_large; /* the reader accepts no more */
};

/* ---- the answer ---- */

static int on_event(void *ctx, struct str name, struct str data)
{
        struct attempt *a = ctx;
        return a->reader->ops->event(a->reader, name, data);
}

static enum body_kind kind_of(const char *type, struct str start)
{
        size_t i = 0;
        while (i < start.n && (start.p[i] == ' ' || start.p[i] == '\n' || start.p[i] == '\r' ||
                                  start.p[i] == '\t'))
                i++;
        if (i == start.n)
                return BODY_UNKNOWN;
        char c = start.p[i];
        if (c == '{' || c == '[' || c == '<')
                return BODY_WHOLE;
        if (strstr(type, "event-stream") || c == 'd' || c == ':')
                return BODY_STREAM;
        return BODY_WHOLE;
}

static int feed(struct attempt *a, struct transfer *t, struct str bytes)
{
        int rc = sse_feed(&a->sse, bytes.p, bytes.n);
        if (a->reader->finished && t->idle_ms > LINGER_MS)
                t->idle_ms = LINGER_MS;
        return rc;
}

/* ---- an answer that is too large for a message ---- */

/* Keeps the answer: the beginning in memory, the rest in a file. If this fails, only the file is
 * lost. */
static void keep_whole(struct attempt *a, const char *p, size_t n)
{
        if (a->whole < 0 && !a->lost && a->first.n + n > WHOLE_IN_MEMORY) {
                a->whole = named_file_temp();
                a->lost =
                    a->whole < 0 || fs_write_all(fs_real(), a->whole, a->first.p, a->first.n) != 0;
                buf_release(&a->first);
        }
        if (a->lost || a->kept + n > WHOLE_MOST)
                return;
        a->kept += n;
        if (a->whole < 0)
                buf_put(&a->first, p, n);
        else
                a->lost = fs_write_all(fs_real(), a->whole, p, n) != 0;
}

/* Makes the reply an error that reports the size; the answer is in a file. */
static void give_whole(struct attempt *a, struct reply *out)
{
        reply_clear(out);
        if (a->whole < 0 && !a->lost) {
                a->whole = named_file_temp();
                a->lost =
                    a->whole < 0 || fs_write_all(fs_real(), a->whole, a->first.p, a->first.n) != 0;
        }
        reply_fault_set(&out->fault, "LLM_TOO_LARGE", false,
            "the reply is larger than a message may be (%d MiB, %d calls)",
            (int)(MESSAGE_MAX / MIB), CALLS_MAX);
        out->has_whole = a->whole >= 0 && !a->lost;
        if (out->has_whole) {
                out->whole = a->whole;
                a->whole = -1;
        }
}

static int take_data(struct attempt *a, struct transfer *t, const char *p, size_t n);

static int on_data(void *ctx, struct transfer *t, const char *p, size_t n)
{
        struct attempt *a = ctx;
        if (t->status / 100 == 2)
                keep_whole(a, p, n);
        if (a->too_large)
                return a->lost || a->kept + n > WHOLE_MOST ? STENO_ELIMIT : 0;
        int rc = take_data(a, t, p, n);
        a->too_large = rc == STENO_ELIMIT;
        return a->too_large ? 0 : rc;
}

static int take_data(struct attempt *a, struct transfer *t, const char *p, size_t n)
{
        if (t->status / 100 != 2) {
                if (a->body.n + n < ERROR_BODY_MAX)
                        buf_put(&a->body, p, n);
                return a->body.failed;
        }
        if (a->kind == BODY_STREAM)
                return feed(a, t, str_span(p, n));
        buf_put(&a->body, p, n);
        if (a->body.failed)
                return a->body.failed;
        if (a->kind == BODY_UNKNOWN)
                a->kind = kind_of(t->type, buf_str(&a->body));
        if (a->kind != BODY_STREAM)
                return 0;
        int rc = feed(a, t, buf_str(&a->body));
        buf_clear(&a->body);
        return rc;
}

static int on_tick(void *ctx)
{
        struct attempt *a = ctx;
        return a->hooks->tick ? a->hooks->tick(a->hooks->ctx) : -1;
}

static bool on_done(void *ctx)
{
        struct attempt *a = ctx;
        return a->reader->done || a->reader->fault.code;
}

static int take_body(struct attempt *a)
{
        struct str body = buf_str(&a->body);
        size_t i = 0;
        while (i < body.n && strchr(" \t\r\n", body.p[i]) && body.p[i])
                i++;
        if (i < body.n && body.p[i] == '{')
                return a->reader->ops->body(a->reader, body);
        char words[121];
        size_t n = body.n - i < 120 ? body.n - i : 120;
        memcpy(words, n ? body.p + i : "", n);
        words[n] = '\0';
        for (size_t k = 0; k < n; k++)
                if ((unsigned char)words[k] < 0x20)
                        words[k] = ' ';
        reply_fault_set(&a->reader->fault, "LLM_BAD_REPLY", false,
            body.n ? "the endpoint's answer is not a reply of a model: %s"
                   : "the endpoint's answer was empty%s",
            words);
        return 0;
}

/* Writes the URL without user and password, which may be before the host. */
static void put_place(const char *url, char out[120])
{
        const char *host = strstr(url, "://");
        host = host ? host + 3 : url;
        size_t n = strcspn(host, "/?#");
        const char *at = memrchr(host, '@', n);
        snprintf(out, 120, "%.*s%.100s", (int)(host - url), url, at ? at + 1 : host);
}

/* Sets the reply's fault from the way in which the transfer ended. */
static int settle(struct attempt *a, const struct transfer *t, int rc)
{
        struct reply_fault *fault = &a->reader->fault;
        if (a->too_large && (rc == 0 || rc == STENO_EIO || rc == STENO_ELIMIT))
                return 0;
        if (rc != 0 && rc != STENO_EIO)
                return rc;
        if (rc == 0 && t->status / 100 != 2) {
                reply_fault_http(fault, t->status, buf_str(&a->body));
                return 0;
        }
        if (rc == 0 && a->kind == BODY_STREAM)
                return sse_finish(&a->sse);
        if (rc == 0)
                return take_body(a);
        bool complete = a->reader->finished || a->reader->done;
        if (!complete && !fault->code) {
                char place[120];
                put_place(t->url, place);
                reply_fault_set(fault, t->timed_out ? "LLM_TIMEOUT" : "LLM_NETWORK", true,
                    t->timed_out ? "the model call to %s timed out: %s"
                                 : "the connection to %s failed: %s",
                    place, t->why);
        }
        return 0;
}

/* Adds advice to an error that the user can correct. */
static void advise(const struct http_client *c, struct reply_fault *fault)
{
        const char *variable = c->provider->key_variable;
        if (!fault->code || strcmp(fault->code, "LLM_AUTH") != 0 || !variable)
                return;
        struct reply_fault told = *fault;
        reply_fault_set(fault, told.code, told.retryable,
            c->auth ? "%.280s; check the key in %s" : "%.280s; no key was sent: set %s",
            told.message, variable);
}

/* ---- attempts ---- */

struct outcome {
        bool again;
        int wait_ms;
};

static int backoff_ms(unsigned attempt)
{
        int ms = BACKOFF_FIRST_MS;
        while (attempt-- > 0 && ms < BACKOFF_MAX_MS)
                ms *= 2;
        uint32_t r;
        const struct env *env = env_real();
        env->random(env, &r, sizeof(r));
        return ms - (int)(r % (uint32_t)(ms / 4)); /* so that clients do not retry together */
}

/* Is it an error inside an answer with status 200 that would be retried if it were the status? */
static bool told_in_stream(const struct transfer *t, const struct reply_fault *fault)
{
        return t->status / 100 == 2 && !t->timed_out &&
               (strcmp(fault->code, "LLM_RATE_LIMIT") == 0 ||
                   strcmp(fault->code, "LLM_SERVER") == 0 ||
                   strcmp(fault->code, "LLM_TIMEOUT") == 0);
}

static struct outcome judge(const struct http_client *c, const struct attempt *a,
    const struct transfer *t, const struct reply_fault *fault, unsigned attempt)
{
        struct outcome no = {false, 0};
        if (!fault->code || a->reader->any || attempt >= c->opt.retries)
                return no;
        bool dropped = strcmp(fault->code, "LLM_NETWORK") == 0;
        bool told =
            t->status == 408 || t->status == 429 || t->status >= 500 || told_in_stream(t, fault);
        if (!dropped && !told)
                return no;
        if (t->retry_after_ms > RETRY_AFTER_MAX_MS)
                return no;
        int wait = t->retry_after_ms >= 0 && told ? (int)t->retry_after_ms : backoff_ms(attempt);
        return (struct outcome){true, wait};
}

/* The data that all attempts of one call share. */
struct call {
        struct http_client *client;
        const struct provider_request *request;
        const struct provider_hooks *hooks;
        struct str body;
        const char *headers[HEADERS_MAX];
};

static void list_headers(struct call *k)
{
        const char *const common[] = {"Content-Type: application/json", "Expect:",
            k->request->stream ? "Accept: text/event-stream" : "Accept: application/json",
            "User-Agent: steno/" STENO_VERSION};
        size_t n = 0;
        for (size_t i = 0; i < sizeof common / sizeof *common; i++)
                k->headers[n++] = common[i];
        const char *const *more = k->client->wire->headers;
        while (more && *more && n < HEADERS_MAX - 2)
                k->headers[n++] = *more++;
        k->headers[n++] = k->client->auth;
        k->headers[n] = NULL;
}

static int try_once(const struct call *k, unsigned attempt, struct reply *out, struct outcome *next,
    struct steno_error *err)
{
        struct http_client *c = k->client;
        struct attempt a = {.kind = BODY_UNKNOWN, .hooks = k->hooks, .whole = -1};
        a.reader = c->wire->reader_new(&k->hooks->reply);
        if (!a.reader)
                return error_nomem(err);
        sse_init(&a.sse, MESSAGE_MAX, on_event, &a);
        buf_init(&a.body, MESSAGE_MAX);
        buf_init(&a.first, 2 * WHOLE_IN_MEMORY);
        struct transfer t = {
            .pool = c->pool,
            .url = c->url,
            .headers = k->headers,
            .body = k->body,
            .connect_ms = c->opt.connect_ms,
            .idle_ms = c->opt.idle_ms,
            .deadline = k->request->deadline,
            .stop = k->request->stop,
            .data = on_data,
            .tick = on_tick,
            .done = on_done,
            .ctx = &a,
        };
        int rc = settle(&a, &t, transfer_run(&t, err));
        struct steno_error *why = rc ? NULL : err; /* the first failure is reported */
        int made = a.reader->ops->finish(a.reader, out, why);
        bool large = a.too_large || rc == STENO_ELIMIT || made == STENO_ELIMIT ||
                     (made == 0 && out->message.n > MESSAGE_MAX - MESSAGE_ROOM);
        if (large && (rc == 0 || rc == STENO_ELIMIT)) {
                give_whole(&a, out);
                rc = made = 0;
        }
        advise(c, &out->fault);
        *next = judge(c, &a, &t, &out->fault, attempt);
        a.reader->ops->free(a.reader);
        sse_release(&a.sse);
        buf_release(&a.body);
        buf_release(&a.first);
        if (a.whole >= 0)
                close(a.whole);
        return rc ? rc : made;
}

static int make_attempts(const struct call *k, struct reply *out, struct steno_error *err)
{
        const struct provider_request *r = k->request;
        const struct provider_hooks *hooks = k->hooks;
        for (unsigned attempt = 0;; attempt++) {
                struct outcome next = {false, 0};
                reply_clear(out);
                int rc = try_once(k, attempt, out, &next, err);
                if (rc || !next.again)
                        return rc;
                if (hooks->retry)
                        hooks->retry(hooks->ctx, &out->fault, attempt + 1, next.wait_ms);
                rc = transfer_wait(r->stop, r->deadline, next.wait_ms, hooks->tick, hooks->ctx);
                if (rc)
                        return error_set(err, rc, "%s", steno_code_name(rc));
        }
}

static int http_complete(struct provider_client *self, const struct provider_request *r,
    const struct provider_hooks *hooks, struct reply *out, struct steno_error *err)
{
        struct http_client *c = (struct http_client *)self;
        struct buf body;
        buf_init(&body, 0);
        int rc = provider_put_request(r, c->wire->put_body, &body, err);
        if (rc == 0)
                rc = buf_check(&body, err);
        if (rc == 0) {
                struct call k = {.client = c, .request = r, .hooks = hooks, .body = buf_str(&body)};
                list_headers(&k);
                rc = make_attempts(&k, out, err);
        }
        buf_release(&body);
        return rc;
}

/* ---- opening and closing ---- */

static void http_close(struct provider_client *self)
{
        struct http_client *c = (struct http_client *)self;
        transfer_pool_free(c->pool);
        free(c->url);
        free(c->auth);
        free(c);
}

static char *make_url(const char *base, const char *path)
{
        size_t n = strlen(base);
        while (n && base[n - 1] == '/')
                n--;
        char *url = NULL;
        return asprintf(&url, "%.*s%s", (int)n, base, path) < 0 ? NULL : url;
}

static int check_options(const char *base, const char *key, struct steno_error *err)
{
        if (!str_starts(str_of(base), "http://") && !str_starts(str_of(base), "https://"))
                return error_set(err, STENO_EINVAL,
                    "base URL \"%.100s\" does not begin with http:// or https://", base);
        if (key && strpbrk(key, "\r\n"))
                return error_set(err, STENO_EINVAL, "the API key contains a line end");
        return 0;
}

int provider_http_open(const struct provider *provider, const struct provider_options *opt,
    struct provider_client **out, struct steno_error *err)
{
        const struct provider_wire *wire = provider->wire;
        const char *base = opt->base_url ? opt->base_url : provider->base_url;
        bool keyed = opt->api_key && opt->api_key[0];
        int rc = check_options(base, opt->api_key, err);
        if (rc)
                return rc;
        struct http_client *c = calloc(1, sizeof(*c));
        if (!c)
                return error_nomem(err);
        *c = (struct http_client){
            .base = {http_complete, http_close}, .provider = provider, .wire = wire, .opt = *opt};
        c->opt.base_url = c->opt.api_key = c->opt.script_json = NULL;
        struct steno_error why = {0};
        c->pool = transfer_pool_new(&why);
        if (!c->pool) {
                http_close(&c->base);
                return error_set(err, why.code, "%s", why.msg);
        }
        c->url = make_url(base, wire->path);
        if (keyed && asprintf(&c->auth, "%s%s", wire->key_header, opt->api_key) < 0)
                c->auth = NULL;
        if (!c->url || (keyed && !c->auth)) {
                http_close(&c->base);
                return error_nomem(err);
        }
        *out = &c->base;
        return 0;
}
