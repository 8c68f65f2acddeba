/*
 * blobs.c - see blobs.h: the URL, one signed request, and reading.
 */
#include "store/blobs/blobs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/wait.h"
#include "store/blobs/blobs_core.h"

#define TRIES 4
#define PAUSE_MS 200
#define CONNECT_MS 5000L
#define STALL 20 /* seconds */
#define ANSWER_MAX (64 * KIB)

/* ---- the URL ---- */

/* Names that need no encoding, so that what is signed is what is sent. */
static bool is_plain(struct str s, bool slashes)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
                          (slashes && c == '/');
                if (!ok)
                        return false;
        }
        return true;
}

/* The first that is set to something, or NULL. */
static const char *first_of(const char *a, const char *b)
{
        return a && *a ? a : b && *b ? b : NULL;
}

/* What the URL says. */
struct target {
        struct str bucket, prefix, endpoint, region;
        bool virtual;
};

static int refuse_url(struct steno_error *err, const char *why)
{
        return error_set(err, STENO_EINVAL,
            "STENO_BLOBS: %s (s3://BUCKET/PREFIX?endpoint=URL&region=NAME&style=path)", why);
}

static int read_parameter(struct target *t, struct str pair, struct steno_error *err)
{
        const char *equals = pair.n ? memchr(pair.p, '=', pair.n) : NULL;
        if (!equals)
                return refuse_url(err, "a parameter without a value");
        struct str name = str_span(pair.p, (size_t)(equals - pair.p));
        struct str value = str_span(equals + 1, pair.n - name.n - 1);
        if (str_is(name, "endpoint"))
                t->endpoint = value;
        else if (str_is(name, "region"))
                t->region = value;
        else if (str_is(name, "style") && (str_is(value, "path") || str_is(value, "virtual")))
                t->virtual = str_is(value, "virtual");
        else
                return refuse_url(err, "an unknown parameter");
        return 0;
}

static int read_target(const char *url, struct target *t, struct steno_error *err)
{
        const char *endpoint = first_of(getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"));
        const char *region = first_of(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"));
        *t = (struct target){.endpoint = str_of(endpoint ? endpoint : ""),
            .region = str_of(region ? region : "us-east-1")};
        if (strncmp(url, "s3://", 5) != 0)
                return refuse_url(err, "it does not begin with s3://");
        const char *at = url + 5, *query = strchr(at, '?');
        size_t path = query ? (size_t)(query - at) : strlen(at);
        size_t bucket = strcspn(at, "/?");
        t->bucket = str_span(at, bucket);
        t->prefix = bucket < path ? str_span(at + bucket + 1, path - bucket - 1) : STR("");
        while (t->prefix.n && t->prefix.p[t->prefix.n - 1] == '/')
                t->prefix.n--;
        int rc = 0;
        for (at = query; rc == 0 && at;) {
                size_t n = strcspn(++at, "&");
                rc = n ? read_parameter(t, str_span(at, n), err) : 0;
                at = at[n] ? at + n : NULL;
        }
        if (rc)
                return rc;
        if (!t->bucket.n || !is_plain(t->bucket, false) || !is_plain(t->prefix, true) ||
            t->prefix.n > 128 || (t->prefix.n && t->prefix.p[0] == '/'))
                return refuse_url(
                    err, "a bucket and a prefix have letters, digits, -, _ and . in their names");
        if (!t->region.n || !is_plain(t->region, false))
                return refuse_url(err, "no such region");
        bool http = str_starts(t->endpoint, "http://") || str_starts(t->endpoint, "https://");
        return t->endpoint.n && !http ? refuse_url(err, "an endpoint is an http or https URL") : 0;
}

static char *make_host(const struct target *t)
{
        char *out = NULL;
        struct str e = t->endpoint;
        while (e.n && e.p[e.n - 1] == '/')
                e.n--;
        int n;
        if (!e.n && !t->virtual)
                n = asprintf(&out, "https://s3.%.*s.amazonaws.com/%.*s/", (int)t->region.n,
                    t->region.p, (int)t->bucket.n, t->bucket.p);
        else if (!e.n)
                n = asprintf(&out, "https://%.*s.s3.%.*s.amazonaws.com/", (int)t->bucket.n,
                    t->bucket.p, (int)t->region.n, t->region.p);
        else if (!t->virtual)
                n = asprintf(&out, "%.*s/%.*s/", (int)e.n, e.p, (int)t->bucket.n, t->bucket.p);
        else {
                size_t scheme = str_starts(e, "https://") ? 8 : 7;
                n = asprintf(&out, "%.*s%.*s.%.*s/", (int)scheme, e.p, (int)t->bucket.n,
                    t->bucket.p, (int)(e.n - scheme), e.p + scheme);
        }
        return n < 0 ? NULL : out;
}

static int read_keys(struct blobs *b, struct steno_error *err)
{
        const char *id = first_of(getenv("AWS_ACCESS_KEY_ID"), NULL);
        const char *secret = first_of(getenv("AWS_SECRET_ACCESS_KEY"), NULL);
        const char *token = first_of(getenv("AWS_SESSION_TOKEN"), NULL);
        if (!id || !secret)
                return error_set(err, STENO_EDENIED,
                    "STENO_BLOBS names a bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
        if (asprintf(&b->keys, "%s:%s", id, secret) < 0)
                b->keys = NULL;
        b->token = token ? strdup(token) : NULL;
        return b->keys && (!token || b->token) ? 0 : error_nomem(err);
}

/* Tests set it, so that nobody waits for long. */
static int stall_of_tests(void)
{
        const char *text = getenv("STENO_S3_STALL_S");
        long s = text ? strtol(text, NULL, 10) : 0;
        return s >= 1 && s <= 600 ? (int)s : STALL;
}

int blobs_open(const struct env *env, const char *url, struct blobs **out, struct steno_error *err)
{
        struct target t;
        int rc = read_target(url, &t, err);
        if (rc == 0)
                rc = libcurl_need(err);
        struct blobs *b = rc ? NULL : calloc(1, sizeof *b);
        if (!b)
                return rc ? rc : error_nomem(err);
        b->env = env;
        b->stall_s = stall_of_tests();
        pthread_mutex_init(&b->mutex, NULL);
        b->host = make_host(&t);
        if (asprintf(&b->prefix, "%.*s%s", (int)t.prefix.n, t.prefix.p, t.prefix.n ? "/" : "") < 0)
                b->prefix = NULL;
        if (asprintf(&b->signing, "aws:amz:%.*s:s3", (int)t.region.n, t.region.p) < 0)
                b->signing = NULL;
        rc = b->host && b->prefix && b->signing ? read_keys(b, err) : error_nomem(err);
        if (rc)
                blobs_close(b);
        else
                *out = b;
        return rc;
}

void blobs_close(struct blobs *b)
{
        if (!b)
                return;
        while (b->idle_count)
                libcurl.easy_cleanup(b->idle[--b->idle_count]);
        pthread_mutex_destroy(&b->mutex);
        free(b->host);
        free(b->prefix);
        free(b->signing);
        free(b->keys);
        free(b->token);
        free(b);
}

/* ---- a request ---- */

static CURL *take_handle(struct blobs *b)
{
        pthread_mutex_lock(&b->mutex);
        CURL *h = b->idle_count ? b->idle[--b->idle_count] : NULL;
        pthread_mutex_unlock(&b->mutex);
        return h ? h : libcurl.easy_init();
}

static void give_handle(struct blobs *b, CURL *h)
{
        libcurl.easy_reset(h); /* its connections stay */
        pthread_mutex_lock(&b->mutex);
        bool kept = b->idle_count < BLOBS_IDLE;
        if (kept)
                b->idle[b->idle_count++] = h;
        pthread_mutex_unlock(&b->mutex);
        if (!kept)
                libcurl.easy_cleanup(h);
}

/* One try of a request. */
struct trial {
        struct blobs_request *q;
        CURL *h;
        size_t sent;
        int64_t date; /* the server's, in seconds; 0: it said none */
        int64_t from; /* where its range begins; -1: it said none */
};

static const char *without_weak(const char *etag)
{
        return strncmp(etag, "W/", 2) == 0 ? etag + 2 : etag;
}

/* A server, or what stands before it, may ignore If-Match and ranges. NULL: what comes now is what
 * was asked for. */
static const char *what_is_wrong(const struct trial *t, long status, size_t n, int *code)
{
        const struct blobs_request *q = t->q;
        *code = STENO_EIO;
        if (q->match && q->etag[0] && strcmp(without_weak(q->etag), without_weak(q->match)) != 0) {
                *code = STENO_ENOTFOUND;
                return "another object is there now";
        }
        if (status == 200 || n > q->room - q->got)
                return "the server sent more than the range that was asked for";
        if (q->got == q->asked && t->from >= 0 && (uint64_t)t->from != q->at + q->asked)
                return "the server sent another range than the one that was asked for";
        return NULL;
}

static size_t take_bytes(char *p, size_t one, size_t n, void *ctx)
{
        struct trial *t = ctx;
        struct blobs_request *q = t->q;
        long status = 0;
        (void)one;
        libcurl.easy_getinfo(t->h, CURLINFO_RESPONSE_CODE, &status);
        if (q->room && (status == 206 || status == 200)) {
                q->wrong = what_is_wrong(t, status, n, &q->wrong_code);
                if (q->wrong)
                        return 0;
                if (q->sink)
                        q->stopped = q->sink(q->ctx, p, n);
                else
                        memcpy(q->to + q->got, p, n);
                if (q->stopped)
                        return 0;
                q->got += n;
        } else {
                /* The beginning of an error page says enough. */
                size_t room = q->answer.max - q->answer.n;
                buf_put(&q->answer, p, n < room ? n : room);
        }
        return n;
}

static size_t send_bytes(char *p, size_t one, size_t n, void *ctx)
{
        struct trial *t = ctx;
        size_t left = t->q->body.n - t->sent;
        n = one * n < left ? one * n : left;
        if (n)
                memcpy(p, t->q->body.p + t->sent, n);
        t->sent += n;
        return n;
}

static int rewind_bytes(void *ctx, curl_off_t at, int from)
{
        struct trial *t = ctx;
        if (from != SEEK_SET || at < 0 || (uint64_t)at > t->q->body.n)
                return CURL_SEEKFUNC_CANTSEEK;
        t->sent = (size_t)at;
        return CURL_SEEKFUNC_OK;
}

static struct str trim(struct str s)
{
        while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
                s = str_span(s.p + 1, s.n - 1);
        while (s.n && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == '\n' || s.p[s.n - 1] == ' '))
                s.n--;
        return s;
}

static size_t take_header(char *p, size_t one, size_t n, void *ctx)
{
        struct trial *t = ctx;
        struct str line = str_span(p, one * n);
        char text[64];
        if (line.n > 5 && strncasecmp(p, "etag:", 5) == 0) {
                struct str v = trim(str_span(p + 5, line.n - 5));
                snprintf(t->q->etag, sizeof t->q->etag, "%.*s", (int)v.n, v.p);
        } else if (line.n > 14 && strncasecmp(p, "content-range:", 14) == 0) {
                struct str v = trim(str_span(p + 14, line.n - 14));
                snprintf(text, sizeof text, "%.*s", (int)v.n, v.p);
                if (strncasecmp(text, "bytes ", 6) == 0 && text[6] >= '0' && text[6] <= '9')
                        t->from = strtoll(text + 6, NULL, 10);
        } else if (line.n > 5 && strncasecmp(p, "date:", 5) == 0) {
                struct str v = trim(str_span(p + 5, line.n - 5));
                snprintf(text, sizeof text, "%.*s", (int)v.n, v.p);
                t->date = libcurl.getdate(text, NULL);
        }
        return one * n;
}

static bool add_header(struct curl_slist **list, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool add_header(struct curl_slist **list, const char *fmt, ...)
{
        char line[4200];
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(line, sizeof line, fmt, ap);
        va_end(ap);
        struct curl_slist *more =
            n > 0 && (size_t)n < sizeof line ? libcurl.slist_append(*list, line) : NULL;
        *list = more ? more : *list;
        return more;
}

/* libcurl signs every one of these, also one that would only take a header of its own away. */
static struct curl_slist *make_headers(struct blobs *b, const struct blobs_request *q)
{
        struct curl_slist *list = NULL;
        char hash[SHA256_HEX], now[TIME_TEXT], date[20];
        int64_t at = b->env->now(b->env) + 1000 * __atomic_load_n(&b->ahead, __ATOMIC_RELAXED);
        bool ok = hash_sha256_hex(q->body.n ? q->body.p : "", q->body.n, hash) == 0;
        time_format(at, now); /* 2026-11-15T04:20:00.000Z becomes 20261115T042000Z */
        snprintf(date, sizeof date, "%.4s%.2s%.2sT%.2s%.2s%.2sZ", now, now + 5, now + 8, now + 11,
            now + 14, now + 17);
        ok = ok && add_header(&list, "X-Amz-Date:%s", date) &&
             add_header(&list, "x-amz-content-sha256:%s", hash);
        if (ok && b->token)
                ok = add_header(&list, "x-amz-security-token:%s", b->token);
        if (ok && q->match)
                ok = add_header(&list, "If-Match: %s", q->match);
        if (!ok)
                libcurl.slist_free_all(list);
        return ok ? list : NULL;
}

static void set_method(struct trial *t)
{
        CURL *h = t->h;
        struct blobs_request *q = t->q;
        if (strcmp(q->method, "HEAD") == 0) {
                libcurl.easy_setopt(h, CURLOPT_NOBODY, 1L);
        } else if (strcmp(q->method, "PUT") == 0 || strcmp(q->method, "POST") == 0) {
                libcurl.easy_setopt(h, CURLOPT_UPLOAD, 1L);
                libcurl.easy_setopt(h, CURLOPT_CUSTOMREQUEST, q->method);
                libcurl.easy_setopt(h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body.n);
                libcurl.easy_setopt(h, CURLOPT_READFUNCTION, send_bytes);
                libcurl.easy_setopt(h, CURLOPT_READDATA, t);
                libcurl.easy_setopt(h, CURLOPT_SEEKFUNCTION, rewind_bytes);
                libcurl.easy_setopt(h, CURLOPT_SEEKDATA, t);
        } else if (strcmp(q->method, "GET") != 0) {
                libcurl.easy_setopt(h, CURLOPT_CUSTOMREQUEST, q->method);
        }
}

static void set_rest(struct blobs *b, struct trial *t, const char *url, struct curl_slist *headers)
{
        CURL *h = t->h;
        struct blobs_request *q = t->q;
        char range[64];
        libcurl.easy_setopt(h, CURLOPT_URL, url);
        libcurl.easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
        libcurl.easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
        libcurl.easy_setopt(h, CURLOPT_AWS_SIGV4, b->signing);
        libcurl.easy_setopt(h, CURLOPT_USERPWD, b->keys);
        libcurl.easy_setopt(h, CURLOPT_HTTPHEADER, headers);
        libcurl.easy_setopt(h, CURLOPT_WRITEFUNCTION, take_bytes);
        libcurl.easy_setopt(h, CURLOPT_WRITEDATA, t);
        libcurl.easy_setopt(h, CURLOPT_HEADERFUNCTION, take_header);
        libcurl.easy_setopt(h, CURLOPT_HEADERDATA, t);
        libcurl.easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
        libcurl.easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
        libcurl.easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)b->stall_s);
        libcurl.easy_setopt(h, CURLOPT_UPLOAD_BUFFERSIZE, 512L * KIB);
        libcurl.easy_setopt(h, CURLOPT_BUFFERSIZE, 256L * KIB);
        libcurl_trust(h);
        set_method(t);
        if (q->room) {
                snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, q->at + q->got,
                    q->at + q->room - 1);
                libcurl.easy_setopt(h, CURLOPT_RANGE, range);
        }
}

/* What curl says of the transfer; the status is in the request. */
static CURLcode send_once(struct blobs *b, struct blobs_request *q, int64_t *date)
{
        struct trial t = {.q = q, .h = take_handle(b), .from = -1};
        struct curl_slist *headers = t.h ? make_headers(b, q) : NULL;
        char *url = NULL;
        CURLcode code = CURLE_OUT_OF_MEMORY;
        if (headers && asprintf(&url, "%s%s%s%s", b->host, q->key, q->query ? "?" : "",
                           q->query ? q->query : "") < 0)
                url = NULL;
        buf_clear(&q->answer);
        q->asked = q->got = q->sink ? q->got : 0;
        q->wrong = NULL;
        q->status = 0;
        q->etag[0] = '\0';
        if (url) {
                curl_off_t size = -1;
                set_rest(b, &t, url, headers);
                code = libcurl.easy_perform(t.h);
                libcurl.easy_getinfo(t.h, CURLINFO_RESPONSE_CODE, &q->status);
                libcurl.easy_getinfo(t.h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
                q->size = size > 0 ? (uint64_t)size : 0;
        }
        *date = t.date;
        if (t.h)
                give_handle(b, t.h);
        libcurl.slist_free_all(headers);
        free(url);
        return code;
}

struct str blobs_element(struct str xml, const char *name)
{
        char open[40];
        int n = snprintf(open, sizeof open, "<%s>", name);
        const char *at = xml.n ? memmem(xml.p, xml.n, open, (size_t)n) : NULL;
        if (!at)
                return (struct str){0};
        at += n;
        const char *end = memchr(at, '<', (size_t)(xml.p + xml.n - at));
        return end ? str_span(at, (size_t)(end - at)) : (struct str){0};
}

static int refuse(struct blobs_request *q, CURLcode code, const char *what, struct steno_error *err)
{
        struct str xml = buf_str(&q->answer);
        struct str name = blobs_element(xml, "Code"), words = blobs_element(xml, "Message");
        if (q->wrong)
                return error_set(err, q->wrong_code, "S3 %s: %s", what, q->wrong);
        if (q->status < 300 && code == CURLE_OPERATION_TIMEDOUT)
                return error_set(err, STENO_ETIMEOUT, "S3 %s: the server does not answer", what);
        if (q->status < 300)
                return error_set(err, STENO_EIO, "S3 %s: %s", what, libcurl_why(code));
        bool full = q->status == 507 || str_is(name, "QuotaExceeded");
        int rc = full                                   ? STENO_EFULL
                 : q->status == 403 || q->status == 401 ? STENO_EDENIED
                 : q->status == 404 || q->status == 412 ? STENO_ENOTFOUND
                                                        : STENO_EIO;
        if (full)
                return error_set(err, rc, "S3 %s: the server has no room (%ld%s%.*s)", what,
                    q->status, name.n ? " " : "", (int)(name.n > 60 ? 60 : name.n),
                    name.n ? name.p : "");
        return error_set(err, rc, "S3 %s: the server answered %ld%s%.*s%s%.*s", what, q->status,
            name.n ? " " : "", (int)(name.n > 60 ? 60 : name.n), name.n ? name.p : "",
            words.n ? ": " : "", (int)(words.n > 100 ? 100 : words.n), words.n ? words.p : "");
}

static bool may_help(const struct blobs_request *q, CURLcode code)
{
        if (code != CURLE_OK)
                return code == CURLE_COULDNT_CONNECT || code == CURLE_GOT_NOTHING ||
                       code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
                       code == CURLE_PARTIAL_FILE;
        return (q->status >= 500 && q->status != 507) || q->status == 429 || q->status == 408;
}

int blobs_ask(struct blobs *b, struct blobs_request *q, const char *what, struct steno_error *err)
{
        CURLcode code = CURLE_OK;
        bool skewed = false;
        for (int tries = 0; tries < TRIES; tries++) {
                int64_t date;
                code = send_once(b, q, &date);
                if (code == CURLE_OUT_OF_MEMORY || q->answer.failed)
                        return error_nomem(err);
                if (code == CURLE_OK && q->status >= 200 && q->status < 300)
                        return 0;
                struct str name = blobs_element(buf_str(&q->answer), "Code");
                if (q->status == 403 && !skewed && date > 0 &&
                    str_is(name, "RequestTimeTooSkewed")) {
                        skewed = true; /* its clock counts */
                        __atomic_store_n(
                            &b->ahead, date - b->env->now(b->env) / 1000, __ATOMIC_RELAXED);
                        continue;
                }
                if (!may_help(q, code))
                        break;
                if (tries + 1 < TRIES)
                        wait_sleep(PAUSE_MS << tries);
        }
        return refuse(q, code, what, err);
}

/* ---- the calls ---- */

static void release(struct blobs_request *q)
{
        buf_release(&q->answer);
}

int blobs_key(struct blobs *b, const char *name, char out[BLOBS_KEY], struct steno_error *err)
{
        unsigned char nonce[8];
        char hex[2 * sizeof nonce + 1], sum[SHA256_HEX];
        b->env->random(b->env, nonce, sizeof nonce);
        hash_hex(nonce, sizeof nonce, hex);
        if (hash_sha256_hex(name, strlen(name), sum))
                return error_nomem(err);
        int n = snprintf(out, BLOBS_KEY, "%s%.2s/%s.%s", b->prefix, sum, name, hex);
        return n < BLOBS_KEY && is_plain(str_of(out), true)
                   ? 0
                   : error_set(err, STENO_EINVAL, "\"%.60s\" cannot be a name in a bucket", name);
}

ssize_t blobs_read(struct blobs *b, const char *key, const char *etag, uint64_t at, void *p,
    size_t n, struct steno_error *err)
{
        struct blobs_request q = {.method = "GET",
            .key = key,
            .match = etag && *etag ? etag : NULL,
            .at = at,
            .to = p,
            .room = n};
        if (n == 0)
                return 0;
        buf_init(&q.answer, ANSWER_MAX);
        int rc = blobs_ask(b, &q, "read", err);
        bool behind = q.status == 416; /* nothing is there */
        release(&q);
        return rc == 0 ? (ssize_t)q.got : behind ? 0 : rc;
}

int blobs_stream(struct blobs *b, const char *key, const char *etag, uint64_t n, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        struct blobs_request q = {.method = "GET",
            .key = key,
            .match = etag && *etag ? etag : NULL,
            .sink = sink,
            .ctx = ctx,
            .room = n};
        uint64_t before = 0;
        if (n == 0)
                return 0;
        buf_init(&q.answer, ANSWER_MAX);
        int rc = blobs_ask(b, &q, "read", err);
        while (rc == 0 && q.got < n && q.got > before) { /* a server may give less at a time */
                before = q.got;
                rc = blobs_ask(b, &q, "read", err);
        }
        release(&q);
        if (q.stopped)
                return error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
        if (rc == 0 && q.got < n)
                return error_set(err, STENO_ECORRUPT, "S3 read: the object is shorter than it was");
        return rc;
}

int blobs_remove(struct blobs *b, const char *key, const char *upload, struct steno_error *err)
{
        char query[BLOBS_UPLOAD + 16];
        struct blobs_request q = {.method = "DELETE", .key = key};
        int rc = 0;
        buf_init(&q.answer, ANSWER_MAX);
        if (upload && *upload) {
                snprintf(query, sizeof query, "uploadId=%s", upload);
                q.query = query;
                rc = blobs_ask(b, &q, "abort", err);
                q.query = NULL;
                rc = rc == STENO_ENOTFOUND ? 0 : rc;
        }
        if (rc == 0)
                rc = blobs_ask(b, &q, "delete", err);
        release(&q);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}
