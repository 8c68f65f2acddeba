/*
 * gateway.c - see gateway.h
 */
#include "gateway/gateway.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"
#include "gateway/exchange.h"
#include "gateway/recorder.h"
#include "gateway/wire.h"
#include "net/relay.h"

#define CONNECT_MS 15000
#define GONE_MS 60000 /* an answer that nobody reads any more is read on for so long */
#define HEADERS_MAX 128
#define GONE_BYTES (64 * MIB)        /* or for so much */
#define ANSWER_HEADERS_MAX (8 * KIB) /* what a connection's memory holds beside the request */

/* ---- upstreams ---- */

struct upstream {
        const char *name;
        const char *prefix;     /* of the paths here */
        const char *url;        /* what the prefix stands for, unless configured */
        const char *key_header; /* what stands before the key */
};

static const struct upstream upstreams[] = {
    {"openai", "/openai/v1", "https://api.openai.com/v1", "Authorization: Bearer "},
    {"anthropic", "/anthropic", "https://api.anthropic.com", "x-api-key: "},
    {"gemini", "/gemini", "https://generativelanguage.googleapis.com", "x-goog-api-key: "},
};

#define UPSTREAMS (sizeof upstreams / sizeof *upstreams)

struct gateway {
        struct exchanges *exchanges;
        struct recorder *recorder;
        struct relay *relay;
        char *urls[UPSTREAMS];
        char *keys[UPSTREAMS]; /* NULL: none is configured */
        bool cancel_when_gone;
        pthread_mutex_t mutex;
        pthread_cond_t quiet;
        bool stopped;
        struct gateway_turn *first;
        unsigned turns; /* that are not given to the recorder yet */
};

const char *gateway_upstream(struct str path, struct str *rest)
{
        for (size_t i = 0; i < UPSTREAMS; i++) {
                size_t n = strlen(upstreams[i].prefix);
                if (path.n > n && str_starts(path, upstreams[i].prefix) && path.p[n] == '/') {
                        *rest = str_span(path.p + n, path.n - n);
                        return upstreams[i].name;
                }
        }
        return NULL;
}

static size_t upstream_index(const char *name)
{
        size_t i = 0;
        while (i < UPSTREAMS && strcmp(upstreams[i].name, name) != 0)
                i++;
        return i;
}

/* ---- the configuration ---- */

static int set_key(
    struct gateway *g, size_t i, const char *key, const char *const *env, struct steno_error *err)
{
        const char *value = key;
        if (strncmp(key, "env:", 4) == 0) {
                value = env_get(env, key + 4);
                if (!value)
                        return error_set(err, STENO_EINVAL,
                            "upstreams.%s.key: the variable %.60s is not set", upstreams[i].name,
                            key + 4);
        }
        if (strpbrk(value, "\r\n"))
                return error_set(
                    err, STENO_EINVAL, "upstreams.%s.key has a line end", upstreams[i].name);
        g->keys[i] = strdup(value);
        return g->keys[i] ? 0 : error_nomem(err);
}

static int set_url(struct gateway *g, size_t i, const char *url, struct steno_error *err)
{
        if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
                return error_set(err, STENO_EINVAL,
                    "upstreams.%s.url \"%.100s\" does not begin with http:// or https://",
                    upstreams[i].name, url);
        size_t n = strlen(url);
        while (n && url[n - 1] == '/')
                n--;
        free(g->urls[i]);
        g->urls[i] = strndup(url, n);
        return g->urls[i] ? 0 : error_nomem(err);
}

static int configure_one(struct gateway *g, const struct json *j, json_ref key,
    const char *const *env, struct steno_error *err)
{
        char *name = json_dup_string(j, key);
        json_ref value = json_value(j, key);
        char *url = json_dup_string(j, json_get(j, value, "url"));
        char *secret = json_dup_string(j, json_get(j, value, "key"));
        size_t i = name ? upstream_index(name) : UPSTREAMS;
        int rc = 0;
        if (i == UPSTREAMS)
                rc = error_set(err, STENO_EINVAL,
                    "upstreams: \"%.40s\" is none of openai, anthropic and gemini",
                    name ? name : "");
        if (rc == 0 && url)
                rc = set_url(g, i, url, err);
        if (rc == 0 && secret)
                rc = set_key(g, i, secret, env, err);
        free(name);
        free(url);
        free(secret);
        return rc;
}

static int configure(struct gateway *g, const struct gateway_options *opt, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = 0;
        for (size_t i = 0; i < UPSTREAMS && rc == 0; i++)
                rc = set_url(g, i, upstreams[i].url, err);
        if (rc == 0 && opt->upstreams) {
                rc = json_parse(&j, opt->upstreams, strlen(opt->upstreams), NULL, err);
                for (json_ref k = rc ? JSON_NONE : json_child(&j, 0); k != JSON_NONE && rc == 0;
                     k = json_next_key(&j, 0, k))
                        rc = configure_one(g, &j, k, opt->env, err);
        }
        json_release(&j);
        return rc;
}

int gateway_new(const struct gateway_options *opt, struct gateway **out, struct steno_error *err)
{
        struct gateway *g = calloc(1, sizeof *g);
        if (!g)
                return error_nomem(err);
        pthread_mutex_init(&g->mutex, NULL);
        wait_init(&g->quiet);
        g->cancel_when_gone = opt->cancel_when_gone;
        int rc = configure(g, opt, err);
        if (rc == 0)
                rc = exchanges_open(env_real(), opt->path, &g->exchanges, err);
        if (rc == 0)
                rc = recorder_new(opt->store, g->exchanges, opt->path, &g->recorder, err);
        if (rc == 0)
                rc = recorder_recover(g->recorder, err);
        if (rc) {
                gateway_free(g, NULL, NULL);
                return rc;
        }
        *out = g;
        return 0;
}

void gateway_stop(struct gateway *g)
{
        if (!g)
                return;
        pthread_mutex_lock(&g->mutex);
        struct relay *relay = g->relay;
        g->stopped = true;
        pthread_mutex_unlock(&g->mutex);
        relay_free(relay); /* with readers that still look at it: they find no job there */
        g->relay = NULL;
}

void gateway_free(struct gateway *g, uint64_t *recorded, uint64_t *failed)
{
        if (!g)
                return;
        gateway_stop(g);
        pthread_mutex_lock(&g->mutex);
        while (g->turns)
                pthread_cond_wait(&g->quiet, &g->mutex);
        pthread_mutex_unlock(&g->mutex);
        recorder_free(g->recorder, recorded, failed);
        exchanges_close(g->exchanges);
        for (size_t i = 0; i < UPSTREAMS; i++) {
                free(g->urls[i]);
                free(g->keys[i]);
        }
        pthread_mutex_destroy(&g->mutex);
        pthread_cond_destroy(&g->quiet);
        free(g);
}

/* ---- a turn ---- */

struct gateway_turn {
        struct gateway *gateway;
        struct gateway_calls calls;
        void *ctx;
        char *body; /* of the request, while it is sent */
        struct exchange *x;
        struct relay_job *job; /* under the mutex; NULL: over */
        pthread_mutex_t mutex;
        unsigned refs; /* the call's and the reader's */
        bool told;     /* ready() was called */
        bool ended;
        bool waiting; /* the reader, for more */
        bool left;    /* the reader */
        bool gone;    /* its connection was seen to be closed */
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

/* "Name: value" without white space around both. */
static bool split_header(struct str line, struct str *name, struct str *value)
{
        const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
        if (!colon)
                return false;
        *name = str_trim(str_span(line.p, (size_t)(colon - line.p)));
        *value = str_trim(str_span(colon + 1, line.n - (size_t)(colon + 1 - line.p)));
        return name->n > 0;
}

static bool name_is(struct str name, const char *z)
{
        return name.n == strlen(z) && strncasecmp(name.p, z, name.n) == 0;
}

static bool name_in(struct str name, const char *const *list)
{
        for (; *list; list++)
                if (name_is(name, *list))
                        return true;
        return false;
}

/* Of one connection, not of the message (RFC 9110, 7.6.1). */
static const char *const HOP_BY_HOP[] = {"connection", "keep-alive", "proxy-authenticate",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    NULL};

static bool has_word(struct str s, const char *z)
{
        size_t n = strlen(z);
        for (size_t i = 0; i + n <= s.n; i++)
                if (strncasecmp(s.p + i, z, n) == 0)
                        return true;
        return false;
}

/* Is the name one of those that a Connection header lists, with commas between? */
static bool is_listed(struct str connection, struct str name)
{
        while (connection.n) {
                const char *comma = memchr(connection.p, ',', connection.n);
                size_t n = comma ? (size_t)(comma - connection.p) : connection.n;
                struct str one = str_trim(str_span(connection.p, n));
                if (one.n == name.n && strncasecmp(one.p, name.p, name.n) == 0)
                        return true;
                size_t skip = n + (comma ? 1 : 0);
                connection = str_span(connection.p + skip, connection.n - skip);
        }
        return false;
}

static void each_line(struct str block, void (*each)(void *ctx, struct str line), void *ctx)
{
        while (block.n) {
                const char *end = memchr(block.p, '\n', block.n);
                size_t n = end ? (size_t)(end - block.p) + 1 : block.n;
                each(ctx, str_span(block.p, n));
                block = str_span(block.p + n, block.n - n);
        }
}

struct seen {
        bool stream, encoded, chunked;
        bool wrong; /* lengths that two readers could understand differently */
        int64_t length;
};

static void look_at_length(struct seen *s, struct str value)
{
        int64_t length = 0;
        for (size_t i = 0; i < value.n && i < 18; i++) {
                s->wrong = s->wrong || value.p[i] < '0' || value.p[i] > '9';
                length = 10 * length + (value.p[i] - '0');
        }
        s->wrong =
            s->wrong || value.n == 0 || value.n > 18 || (s->length >= 0 && s->length != length);
        s->length = length;
}

static void look_at_header(void *ctx, struct str line)
{
        struct seen *s = ctx;
        struct str name, value;
        if (!split_header(line, &name, &value))
                return;
        if (name_is(name, "content-type"))
                s->stream = has_word(value, "event-stream");
        else if (name_is(name, "content-encoding"))
                s->encoded = value.n && !name_is(value, "identity");
        else if (name_is(name, "content-length"))
                look_at_length(s, value);
        else if (name_is(name, "transfer-encoding"))
                s->chunked = true;
}

static void put_now(struct jsonw *w, const char *key)
{
        char at[TIME_TEXT];
        time_format(env_real()->now(env_real()), at);
        jsonw_field_cstr(w, key, at);
}

static int on_head(void *ctx, int status, struct str headers)
{
        struct gateway_turn *t = ctx;
        struct seen seen = {.length = -1};
        struct buf head;
        each_line(headers, look_at_header, &seen);
        if (seen.wrong || (seen.chunked && seen.length >= 0))
                return STENO_EPROTO;
        if (headers.n > ANSWER_HEADERS_MAX)
                return STENO_ELIMIT;
        buf_init(&head, 4 * KIB);
        struct jsonw w = jsonw_to(&head);
        jsonw_object(&w);
        jsonw_field_i64(&w, "status", status);
        put_now(&w, "at");
        jsonw_field_bool(&w, "stream", seen.stream);
        jsonw_field_bool(&w, "encoded", seen.encoded);
        jsonw_object_end(&w);
        int rc = head.failed ? head.failed : exchange_answer(t->x, buf_str(&head));
        buf_release(&head);
        if (rc)
                return rc;
        pthread_mutex_lock(&t->mutex);
        buf_put_str(&t->headers, headers);
        t->status = status;
        t->length = seen.length;
        t->told = true;
        rc = t->headers.failed;
        pthread_mutex_unlock(&t->mutex);
        t->calls.ready(t->ctx);
        return rc;
}

static int on_data(void *ctx, const char *p, size_t n)
{
        struct gateway_turn *t = ctx;
        pthread_mutex_lock(&t->mutex);
        t->unread = t->left || t->gone ? t->unread + n : 0;
        bool enough = t->unread > GONE_BYTES;
        pthread_mutex_unlock(&t->mutex);
        int rc = enough ? STENO_EINTERRUPTED : exchange_put(t->x, p, n);
        if (rc == 0)
                wake(t);
        return rc;
}

static void on_end(void *ctx, int rc, const char *why)
{
        struct gateway_turn *t = ctx;
        pthread_mutex_lock(&t->mutex);
        t->job = NULL;
        t->ended = true;
        t->fate.cut = rc != 0;
        if (rc)
                snprintf(t->fate.why, sizeof t->fate.why, "%.100s", why);
        bool told = t->told;
        t->told = true;
        pthread_mutex_unlock(&t->mutex);
        if (!told)
                t->calls.ready(t->ctx);
        else
                wake(t);
        unref(t);
}

/* ---- the request ---- */

struct header_list {
        char *list[HEADERS_MAX + 8];
        size_t count;
        bool failed;
};

static void add_header(struct header_list *h, const char *a, struct str b)
{
        char *z = NULL;
        if (h->count >= HEADERS_MAX + 6 || asprintf(&z, "%s%.*s", a, (int)b.n, b.n ? b.p : "") < 0)
                h->failed = true;
        else
                h->list[h->count++] = z;
}

static struct str header_of(const struct gateway_request *r, const char *wanted)
{
        for (size_t i = 0; r->headers[i]; i++) {
                struct str name, value;
                if (split_header(str_of(r->headers[i]), &name, &value) && name_is(name, wanted))
                        return value;
        }
        return (struct str){0};
}

static void list_headers(
    struct gateway *g, size_t up, const struct gateway_request *r, struct header_list *h)
{
        static const char *const ours[] = {
            "host", "content-length", "accept-encoding", "expect", "x-steno-conversation", NULL};
        static const char *const keys[] = {"authorization", "x-api-key", "x-goog-api-key", NULL};
        struct str connection = header_of(r, "connection");
        bool accept = false, type = false;
        for (size_t i = 0; r->headers[i] && h->count < HEADERS_MAX; i++) {
                struct str name, value, line = str_of(r->headers[i]);
                if (!split_header(line, &name, &value) || name_in(name, HOP_BY_HOP) ||
                    is_listed(connection, name) || name_in(name, ours) ||
                    (!r->own_credentials && name_in(name, keys)))
                        continue;
                accept = accept || name_is(name, "accept");
                type = type || name_is(name, "content-type");
                /* libcurl takes "Name:" for "leave it out", and "Name;" for an empty one. */
                char *z = NULL;
                if (value.n)
                        add_header(h, "", line);
                else if (asprintf(&z, "%.*s;", (int)name.n, name.p) >= 0)
                        add_header(h, z, (struct str){0});
                free(z);
        }
        add_header(h, "Accept-Encoding: identity", (struct str){0});
        add_header(h, "Expect:", (struct str){0});
        if (!accept)
                add_header(h, "Accept:", (struct str){0});
        if (!type)
                add_header(h, "Content-Type:", (struct str){0});
        if (!r->own_credentials)
                add_header(h, upstreams[up].key_header, str_of(g->keys[up]));
        h->list[h->count] = NULL;
}

/* Is it the member "key" of a query, however it is spelled? */
static bool is_key(struct str one)
{
        char name[4] = "";
        size_t n = 0, i = 0;
        while (i < one.n && one.p[i] != '=') {
                char c = one.p[i++];
                if (c == '%' && i + 1 < one.n) {
                        char hex[3] = {one.p[i], one.p[i + 1], '\0'};
                        c = (char)strtol(hex, NULL, 16);
                        i += 2;
                }
                if (n >= sizeof name - 1)
                        return false;
                name[n++] = c;
        }
        return n == 3 && memcmp(name, "key", 3) == 0;
}

/* The query without the key that named our token. */
static void put_query(struct buf *url, const struct gateway_request *r)
{
        struct str q = r->query;
        bool first = true;
        while (q.n) {
                const char *amp = memchr(q.p, '&', q.n);
                size_t n = amp ? (size_t)(amp - q.p) : q.n;
                struct str one = str_span(q.p, n);
                if (r->own_credentials || !is_key(one)) {
                        buf_putc(url, first ? '?' : '&');
                        buf_put_str(url, one);
                        first = false;
                }
                size_t skip = n + (amp ? 1 : 0);
                q = str_span(q.p + skip, q.n - skip);
        }
}

/* What the client calls its session. Requests that are no turns of it have one beside it. */
static void put_group(struct jsonw *w, const struct gateway_request *r)
{
        static const char *const names[] = {
            "thread-id", "x-session-id", "session-id", "session_id", "conversation_id"};
        struct str group = {0}, meta = header_of(r, "x-codex-turn-metadata");
        struct json j;
        struct buf text;
        for (size_t i = 0; i < sizeof names / sizeof *names && group.n == 0; i++)
                group = header_of(r, names[i]);
        if (group.n == 0)
                return;
        json_init(&j);
        buf_init(&text, 4 * KIB);
        if (meta.n && json_parse(&j, meta.p, meta.n, NULL, NULL) == 0) {
                json_ref kind = json_get(&j, 0, "request_kind");
                if (json_type(&j, kind) == JSON_STRING && !json_is(&j, kind, "turn"))
                        buf_puts(&text, "side/");
        }
        buf_put_str(&text, group);
        jsonw_field_str(w, "group", buf_str(&text));
        struct str parent = header_of(r, "x-codex-parent-thread-id");
        if (parent.n == 0)
                parent = header_of(r, "x-parent-session-id");
        if (parent.n)
                jsonw_field_str(w, "parent", parent);
        buf_release(&text);
        json_release(&j);
}

static void put_head(
    struct buf *out, const struct gateway_request *r, struct str path, const struct wire *wire)
{
        struct buf owner;
        struct jsonw w = jsonw_to(out);
        buf_init(&owner, 4 * KIB);
        buf_printf(
            &owner, "%s/%s/%s/%s", r->project, r->token_id, r->upstream, wire ? wire->name : "");
        jsonw_object(&w);
        put_now(&w, "at");
        jsonw_field_cstr(&w, "project", r->project);
        jsonw_field_str(&w, "owner", buf_str(&owner));
        jsonw_field_cstr(&w, "upstream", r->upstream);
        if (wire)
                jsonw_field_cstr(&w, "wire", wire->name);
        jsonw_field_cstr(&w, "method", r->method);
        jsonw_field_str(&w, "path", path);
        struct str named = header_of(r, "x-steno-conversation");
        if (named.n)
                jsonw_field_str(&w, "conversation", named);
        put_group(&w, r);
        jsonw_object_end(&w);
        buf_release(&owner);
}

static struct gateway_turn *new_turn(struct gateway *g, const struct gateway_calls *calls,
    void *ctx, struct str body, const char *token_id)
{
        struct gateway_turn *t = calloc(1, sizeof *t);
        if (!t)
                return NULL;
        t->body = malloc(body.n + 1);
        if (!t->body) {
                free(t);
                return NULL;
        }
        memcpy(t->body, body.n ? body.p : "", body.n);
        t->gateway = g;
        t->calls = *calls;
        t->ctx = ctx;
        t->refs = 2;
        t->length = -1;
        pthread_mutex_init(&t->mutex, NULL);
        buf_init(&t->headers, 512 * KIB);
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

/* Made for the first request, because it loads libcurl. */
static int need_relay(struct gateway *g, struct steno_error *err)
{
        pthread_mutex_lock(&g->mutex);
        int rc = g->stopped ? error_set(err, STENO_EINTERRUPTED, "the server is stopping")
                 : g->relay ? 0
                            : relay_new(&g->relay, err);
        pthread_mutex_unlock(&g->mutex);
        return rc;
}

static int send_it(struct gateway_turn *t, size_t up, const struct gateway_request *r,
    struct str path, struct steno_error *err)
{
        static const struct relay_calls calls = {on_head, on_data, on_end};
        struct gateway *g = t->gateway;
        struct header_list headers = {.count = 0};
        struct buf url;
        buf_init(&url, 64 * KIB);
        buf_puts(&url, g->urls[up]);
        buf_put_str(&url, path);
        put_query(&url, r);
        list_headers(g, up, r, &headers);
        struct relay_request what = {.method = r->method,
            .url = buf_cstr(&url),
            .headers = (const char *const *)headers.list,
            .body = str_span(t->body, r->body.n),
            .connect_ms = CONNECT_MS};
        int rc = what.url && !headers.failed ? need_relay(g, err) : error_nomem(err);
        pthread_mutex_lock(&t->mutex);
        if (rc == 0)
                rc = relay_start(g->relay, &what, &calls, t, &t->job, err);
        pthread_mutex_unlock(&t->mutex);
        for (size_t i = 0; i < headers.count; i++)
                free(headers.list[i]);
        buf_release(&url);
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

static int check_request(
    const struct gateway *g, const struct gateway_request *r, struct steno_error *err)
{
        size_t up = upstream_index(r->upstream);
        struct str named = header_of(r, "x-steno-conversation");
        if (named.n && !id_is_legal(named, ID_MAX))
                return error_set(err, STENO_EINVAL,
                    "x-steno-conversation is 1 to %d bytes of UTF-8 without control characters",
                    ID_MAX);
        if (!r->own_credentials && !g->keys[up])
                return error_set(err, STENO_EINVAL,
                    "no key is configured for %s: set \"upstreams\", or put the token into the "
                    "path (/~TOKEN%s/...) so that your own key is passed on",
                    r->upstream, upstreams[up].prefix);
        return 0;
}

int gateway_start(struct gateway *g, const struct gateway_request *r,
    const struct gateway_calls *calls, void *ctx, struct gateway_turn **out,
    struct steno_error *err)
{
        int rc = check_request(g, r, err);
        if (rc)
                return rc;
        const struct wire *wire = wire_of(r->upstream, r->method, r->rest);
        struct buf head;
        buf_init(&head, 64 * KIB);
        put_head(&head, r, r->rest, wire);
        struct gateway_turn *t = new_turn(g, calls, ctx, r->body, r->token_id);
        rc = t ? buf_check(&head, err) : error_nomem(err);
        if (rc == 0)
                rc = exchange_create(g->exchanges, buf_str(&head), r->body, &t->x, err);
        buf_release(&head);
        if (rc == 0)
                *out = t;
        else if (t)
                gateway_drop(t);
        return rc;
}

int gateway_send(struct gateway_turn *t, const struct gateway_request *r, struct steno_error *err)
{
        struct str path = r->rest;
        /* Some clients have /v1 in their base URL and some have not. */
        char with_version[256];
        if (strcmp(r->upstream, "anthropic") == 0 && str_starts(path, "/messages") &&
            path.n < sizeof with_version - 8) {
                int n = snprintf(with_version, sizeof with_version, "/v1%.*s", (int)path.n, path.p);
                path = str_span(with_version, (size_t)n);
        }
        return send_it(t, upstream_index(r->upstream), r, path, err);
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
        if (split_header(line, &name, &value) && name_is(name, "connection"))
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
        if (!split_header(line, &name, &value) || name_in(name, HOP_BY_HOP) ||
            is_listed(to->connection, name) || name_is(name, "content-length"))
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
        each_line(buf_str(&t->headers), find_connection, &to.connection);
        each_line(buf_str(&t->headers), tell_header, &to);
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
                relay_limit(t->gateway->relay, t->job, t->gateway->cancel_when_gone ? 0 : GONE_MS);
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
                relay_limit(t->gateway->relay, t->job, t->gateway->cancel_when_gone ? 0 : GONE_MS);
        pthread_mutex_unlock(&t->mutex);
        unref(t);
}
