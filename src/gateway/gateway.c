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
#include "gateway/errands.h"
#include "gateway/exchange.h"
#include "gateway/recorder.h"
#include "gateway/rounds.h"
#include "gateway/wire.h"
#include "net/relay.h"

#define CONNECT_MS 15000
#define GONE_MS 60000 /* an answer that nobody reads any more is read on for so long */
#define HEADERS_MAX 128
#define GONE_BYTES (64 * MIB) /* or for so much */
#define ERRAND_THREADS 4
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

/* What a person configured of an upstream. */
struct upstream_settings {
        char *url;
        char *key;  /* NULL: none is configured */
        bool stubs; /* large results reach the model as stubs */
        bool tools; /* and it has the context tools */
        bool cancel_when_gone;
};

/* A request that may come again. */
struct asked {
        char key[GATEWAY_ASKED + 1];
        char id[GATEWAY_ASKED];
        int64_t at;
};

#define ASKED_COUNT 256
#define ASKED_MS (10 * 60 * 1000)

struct gateway {
        struct steno_store *store;
        struct exchanges *exchanges;
        struct recorder *recorder;
        struct relay *relay;
        struct upstream_settings up[UPSTREAMS];
        size_t responses;    /* which of them serves /v1/responses */
        struct seams *seams; /* NULL: no upstream has stubs */
        struct errands *errands;
        pthread_mutex_t mutex;
        pthread_cond_t quiet;
        bool stopped;
        struct asked asked[ASKED_COUNT]; /* a ring, under the mutex */
        size_t asked_next;
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
        g->up[i].key = strdup(value);
        return g->up[i].key ? 0 : error_nomem(err);
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
        free(g->up[i].url);
        g->up[i].url = strndup(url, n);
        return g->up[i].url ? 0 : error_nomem(err);
}

static int set_switch(const struct json *j, json_ref obj, const char *name, const char *key,
    bool *out, struct steno_error *err)
{
        json_ref r = json_get(j, obj, key);
        if (r == JSON_NONE)
                return 0;
        if (json_type(j, r) != JSON_TRUE && json_type(j, r) != JSON_FALSE)
                return error_set(
                    err, STENO_EINVAL, "upstreams.%.40s.%s must be true or false", name, key);
        *out = json_type(j, r) == JSON_TRUE;
        return 0;
}

static int set_when_gone(
    const struct json *j, json_ref obj, const char *name, bool *cancel, struct steno_error *err)
{
        json_ref r = json_get(j, obj, "whenGone");
        if (r != JSON_NONE && !json_is(j, r, "finish") && !json_is(j, r, "cancel"))
                return error_set(err, STENO_EINVAL,
                    "upstreams.%.40s.whenGone is \"finish\" or \"cancel\"", name);
        *cancel = json_is(j, r, "cancel");
        return 0;
}

static int set_switches(
    struct gateway *g, size_t i, const struct json *j, json_ref obj, struct steno_error *err)
{
        struct upstream_settings *up = &g->up[i];
        int rc = set_switch(j, obj, upstreams[i].name, "stubs", &up->stubs, err);
        if (rc == 0)
                rc = set_switch(j, obj, upstreams[i].name, "contextTools", &up->tools, err);
        if (rc == 0)
                rc = set_when_gone(j, obj, upstreams[i].name, &up->cancel_when_gone, err);
        up->stubs = up->stubs || up->tools; /* tools without stubs would have nothing to read */
        return rc;
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
        if (rc == 0)
                rc = set_switches(g, i, j, value, err);
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

/* Which upstream serves /v1/responses. */
static int configure_responses(
    struct gateway *g, const struct gateway_options *opt, struct steno_error *err)
{
        struct json j;
        if (!opt->responses)
                return 0;
        json_init(&j);
        int rc = json_parse(&j, opt->responses, strlen(opt->responses), NULL, err);
        char *name = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "upstream"));
        json_ref wire = rc ? JSON_NONE : json_get(&j, 0, "wire");
        if (rc == 0 && name)
                g->responses = upstream_index(name);
        if (rc == 0 && g->responses == UPSTREAMS)
                rc = error_set(
                    err, STENO_EINVAL, "responses.upstream: \"%.40s\" is no upstream", name);
        if (rc == 0 && wire != JSON_NONE && !json_is(&j, wire, "responses"))
                rc = error_set(err, STENO_EINVAL, "responses.wire: only \"responses\" is known");
        free(name);
        json_release(&j);
        return rc;
}

/* What the upstreams with stubs need. */
static int prepare_stubs(
    struct gateway *g, const struct gateway_options *opt, struct steno_error *err)
{
        bool stubs = false, tools = false;
        for (size_t i = 0; i < UPSTREAMS; i++) {
                stubs = stubs || g->up[i].stubs;
                tools = tools || g->up[i].tools;
        }
        int rc = stubs ? seams_open(opt->path, &g->seams, err) : 0;
        return rc == 0 && tools ? errands_new(ERRAND_THREADS, &g->errands, err) : rc;
}

int gateway_new(const struct gateway_options *opt, struct gateway **out, struct steno_error *err)
{
        struct gateway *g = calloc(1, sizeof *g);
        if (!g)
                return error_nomem(err);
        pthread_mutex_init(&g->mutex, NULL);
        wait_init(&g->quiet);
        g->store = opt->store;
        int rc = configure(g, opt, err);
        if (rc == 0)
                rc = configure_responses(g, opt, err);
        if (rc == 0)
                rc = exchanges_open(env_real(), opt->path, &g->exchanges, err);
        if (rc == 0)
                rc = prepare_stubs(g, opt, err);
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

const char *gateway_responses(const struct gateway *g)
{
        return upstreams[g->responses].name;
}

int gateway_endpoint(
    struct gateway *g, const char *upstream, struct gateway_endpoint *out, struct steno_error *err)
{
        size_t i = upstream_index(upstream);
        if (i == UPSTREAMS || !g->up[i].key)
                return error_set(err, STENO_EINVAL,
                    "no key is configured for %.40s: set \"upstreams\" in the server's "
                    "configuration",
                    upstream);
        *out = (struct gateway_endpoint){g->up[i].url, upstreams[i].key_header, g->up[i].key};
        return 0;
}

void gateway_remember(struct gateway *g, const char *key, const char *id)
{
        pthread_mutex_lock(&g->mutex);
        struct asked *a = &g->asked[g->asked_next++ % ASKED_COUNT];
        snprintf(a->key, sizeof a->key, "%s", key);
        snprintf(a->id, sizeof a->id, "%s", id);
        a->at = time_monotonic_ms();
        pthread_mutex_unlock(&g->mutex);
}

bool gateway_recall(struct gateway *g, const char *key, char id[GATEWAY_ASKED])
{
        bool found = false;
        pthread_mutex_lock(&g->mutex);
        int64_t now = time_monotonic_ms();
        for (size_t i = 1; i <= ASKED_COUNT && !found; i++) {
                const struct asked *a = &g->asked[(g->asked_next + ASKED_COUNT - i) % ASKED_COUNT];
                found = a->id[0] && now - a->at < ASKED_MS && strcmp(a->key, key) == 0;
                if (found)
                        snprintf(id, GATEWAY_ASKED, "%s", a->id);
        }
        pthread_mutex_unlock(&g->mutex);
        return found;
}

void gateway_stop(struct gateway *g)
{
        if (!g)
                return;
        pthread_mutex_lock(&g->mutex);
        struct relay *relay = g->relay;
        g->stopped = true;
        pthread_mutex_unlock(&g->mutex);
        errands_free(g->errands); /* they may start jobs of the relay */
        g->errands = NULL;
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
        seams_close(g->seams);
        for (size_t i = 0; i < UPSTREAMS; i++) {
                free(g->up[i].url);
                free(g->up[i].key);
        }
        pthread_mutex_destroy(&g->mutex);
        pthread_cond_destroy(&g->quiet);
        free(g);
}

/* ---- a turn ---- */

/* What is needed to send a request, and to send the next one of the same turn. */
struct sending {
        char method[24];
        char *url;
        char *headers[HEADERS_MAX + 8];
        size_t count;
        bool failed;
};

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
        char problem[100]; /* what a later round failed with; "": nothing that is known */
        struct buf tail;   /* behind what is in the file: the end of an answer that failed */
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

static void free_sending(struct sending *s)
{
        for (size_t i = 0; i < s->count; i++)
                free(s->headers[i]);
        free(s->url);
}

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
        free_sending(&t->sending);
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

/* Status and headers go to the client, and `body` where it is there already. */
static int tell_head(struct gateway_turn *t, int status, struct str headers,
    const struct seen *seen, struct str body)
{
        struct buf head;
        buf_init(&head, 4 * KIB);
        struct jsonw w = jsonw_to(&head);
        jsonw_object(&w);
        jsonw_field_i64(&w, "status", status);
        put_now(&w, "at");
        jsonw_field_bool(&w, "stream", seen->stream);
        jsonw_field_bool(&w, "encoded", seen->encoded);
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

/* The answer of a round. What is a failure or cannot be read is the client's as it is, unless it
 * has begun to read another answer. */
static int veil_head(struct gateway_turn *t, int status, struct str headers, struct seen *seen)
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
        struct seen seen = {.length = -1};
        each_line(headers, look_at_header, &seen);
        if (seen.wrong || (seen.chunked && seen.length >= 0))
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

/* The turn is over. */
static void finish(struct gateway_turn *t, int rc, const char *why)
{
        pthread_mutex_lock(&t->mutex);
        t->job = NULL;
        t->ended = true;
        t->fate.cut = rc != 0;
        if (rc)
                snprintf(
                    t->fate.why, sizeof t->fate.why, "%.100s", t->problem[0] ? t->problem : why);
        /* A client that has a part of a stream is told why there is no more, in a way that its
         * API has; what the file holds stays as it is. */
        if (t->unrecorded && t->stream && t->wire)
                wire_put_error(
                    t->wire, "record_failed", "the answer could not be recorded", &t->tail);
        else if (rc && t->told && t->stream && t->veiled && rounds_again(t->rounds))
                wire_put_error(t->wire, "upstream_failed", t->fate.why, &t->tail);
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

/* An answer that is no stream, whole. */
static int tell_whole(struct gateway_turn *t, struct str body)
{
        struct seen seen = {.length = (int64_t)body.n};
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

/* On a thread of the errands: what stands between two rounds, or before the end. */
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
        if (rc || !again)
                finish(t, rc, err.msg[0] ? err.msg : steno_code_name(rc));
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

/* ---- the request ---- */

static void add_header(struct sending *h, const char *a, struct str b)
{
        char *z = NULL;
        if (h->count >= HEADERS_MAX + 6 || asprintf(&z, "%s%.*s", a, (int)b.n, b.n ? b.p : "") < 0)
                h->failed = true;
        else
                h->headers[h->count++] = z;
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
    struct gateway *g, size_t up, const struct gateway_request *r, struct sending *h)
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
                add_header(h, upstreams[up].key_header, str_of(g->up[up].key));
        h->headers[h->count] = NULL;
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

/* What the client calls its session. */
static struct str group_of(const struct gateway_request *r)
{
        static const char *const names[] = {
            "thread-id", "x-session-id", "session-id", "session_id", "conversation_id"};
        struct str group = {0};
        for (size_t i = 0; i < sizeof names / sizeof *names && group.n == 0; i++)
                group = header_of(r, names[i]);
        return group;
}

/* Requests that are no turns of a session have one beside it. */
static void put_group(struct jsonw *w, const struct gateway_request *r)
{
        struct str group = group_of(r), meta = header_of(r, "x-codex-turn-metadata");
        struct json j;
        struct buf text;
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

/* Whose requests are compared with each other. */
static void put_owner(struct buf *out, const struct gateway_request *r, const struct wire *wire)
{
        buf_printf(
            out, "%s/%s/%s/%s", r->project, r->token_id, r->upstream, wire ? wire->name : "");
}

static void put_head(
    struct buf *out, const struct gateway_request *r, struct str path, const struct wire *wire)
{
        struct buf owner;
        struct jsonw w = jsonw_to(out);
        buf_init(&owner, 4 * KIB);
        put_owner(&owner, r, wire);
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
        int rc = need_relay(g, err);
        pthread_mutex_lock(&t->mutex);
        if (rc == 0)
                rc = relay_start(g->relay, &what, &calls, t, &t->job, err);
        /* Whoever left between two rounds could not limit a job that was not there. */
        if (rc == 0 && (t->left || t->gone || t->revoked))
                relay_limit(g->relay, t->job, t->cancel_when_gone || t->revoked ? 0 : GONE_MS);
        pthread_mutex_unlock(&t->mutex);
        return rc;
}

static int send_it(struct gateway_turn *t, size_t up, const struct gateway_request *r,
    struct str path, struct steno_error *err)
{
        struct buf url;
        buf_init(&url, 64 * KIB);
        buf_puts(&url, t->gateway->up[up].url);
        buf_put_str(&url, path);
        put_query(&url, r);
        list_headers(t->gateway, up, r, &t->sending);
        snprintf(t->sending.method, sizeof t->sending.method, "%s", r->method);
        t->sending.url = buf_take(&url, NULL);
        buf_release(&url);
        if (!t->sending.url || t->sending.failed)
                return error_nomem(err);
        return start_job(t, err);
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
        if (!r->own_credentials && !g->up[up].key)
                return error_set(err, STENO_EINVAL,
                    "no key is configured for %s: set \"upstreams\", or put the token into the "
                    "path (/~TOKEN%s/...) so that your own key is passed on",
                    r->upstream, upstreams[up].prefix);
        return 0;
}

/* The request with stubs in it, where the upstream has them. */
static int make_rounds(struct gateway_turn *t, const struct upstream_settings *up,
    const struct gateway_request *r, struct steno_error *err)
{
        struct buf owner;
        struct splice_options opt = {
            .wire = t->wire, .seams = t->gateway->seams, .tools = up->tools};
        buf_init(&owner, 4 * KIB);
        put_owner(&owner, r, t->wire);
        opt.owner = buf_cstr(&owner);
        steno_inline_limits(t->gateway->store, &opt.max_chars, &opt.max_bytes);
        int rc = opt.owner ? seams_pin(opt.seams, opt.owner, group_of(r), &opt.max_chars,
                                 &opt.max_bytes, err)
                           : error_nomem(err);
        if (rc == 0)
                rc = rounds_new(&opt, r->body, &t->rounds, err);
        t->veiled = rc == 0 && rounds_offered(t->rounds);
        buf_release(&owner);
        return rc;
}

/* What goes out is kept until it is sent. */
static int take_body(
    struct gateway_turn *t, const struct gateway_request *r, struct steno_error *err)
{
        const struct upstream_settings *up = &t->gateway->up[upstream_index(r->upstream)];
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
        int rc = check_request(g, r, err);
        if (rc)
                return rc;
        const struct wire *wire = wire_of(r->upstream, r->method, r->rest);
        struct buf head;
        buf_init(&head, 64 * KIB);
        put_head(&head, r, r->rest, wire);
        struct gateway_turn *t = new_turn(g, calls, ctx, r->token_id);
        rc = t ? buf_check(&head, err) : error_nomem(err);
        if (rc == 0) {
                t->wire = wire;
                rc = take_body(t, r, err);
        }
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
