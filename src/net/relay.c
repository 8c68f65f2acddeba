/*
 * relay.c - see relay.h
 */
#include "net/relay.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/libcurl.h"

#define HEADERS_MAX (256 * KIB)
#define POLL_MS 1000
#define CONNECTIONS_KEPT 256L
/* Servers close idle connections, Node's after five seconds. One that is about to be closed must
 * not get a request, because a request with a body is not sent twice. Whole seconds are counted, so
 * that one of 2.9 s is still used: two seconds are left for a machine that is slow. */
#define IDLE_SECONDS 2L

struct relay_job {
        struct relay *relay;
        struct relay_job *next; /* in the list of new ones, then in that of all */
        struct relay_calls calls;
        void *ctx;
        CURL *easy;
        struct curl_slist *headers;
        struct buf head; /* of the answer, while it comes */
        struct str body; /* what is left to send */
        int status;
        bool told;     /* head() was called */
        int failed;    /* what a callback returned */
        int64_t limit; /* when to end it; 0: never. Under the relay's mutex. */
};

struct relay {
        CURLM *multi;
        pthread_t thread;
        pthread_mutex_t mutex;
        struct relay_job *fresh; /* not yet with the thread */
        struct relay_job *all;   /* the thread's own */
        bool closing;
};

/* ---- an answer ---- */

static void job_free(struct relay_job *j)
{
        libcurl.easy_cleanup(j->easy);
        libcurl.slist_free_all(j->headers);
        buf_release(&j->head);
        free(j);
}

static int tell_head(struct relay_job *j)
{
        if (j->told)
                return 0;
        j->told = true;
        return j->calls.head(j->ctx, j->status, buf_str(&j->head));
}

static size_t on_header(char *p, size_t size, size_t count, void *ctx)
{
        struct relay_job *j = ctx;
        struct str line = str_span(p, size * count);
        if (j->told)
                return line.n; /* trailers */
        if (str_starts(line, "HTTP/")) {
                const char *space = memchr(line.p, ' ', line.n);
                j->status = space ? (int)strtol(space, NULL, 10) : 0;
                buf_clear(&j->head);
        }
        bool last = str_trim(line).n == 0;
        if (!last)
                buf_put_str(&j->head, line);
        if (last && j->status == 101)
                j->failed = STENO_EPROTO; /* nobody asked for another protocol */
        if (last && j->status >= 200)
                j->failed = tell_head(j);
        if (j->head.failed)
                j->failed = j->head.failed;
        return j->failed ? 0 : line.n;
}

static size_t on_data(char *p, size_t size, size_t count, void *ctx)
{
        struct relay_job *j = ctx;
        size_t n = size * count;
        j->failed = tell_head(j);
        if (j->failed == 0)
                j->failed = j->calls.data(j->ctx, p, n);
        return j->failed ? 0 : n;
}

static void end_job(struct relay_job *j, int rc, const char *why)
{
        libcurl.multi_remove_handle(j->relay->multi, j->easy);
        j->calls.end(j->ctx, rc, why);
        job_free(j);
}

/* ---- the thread ---- */

static void unlink_job(struct relay *r, struct relay_job *gone)
{
        for (struct relay_job **at = &r->all; *at; at = &(*at)->next)
                if (*at == gone) {
                        *at = gone->next;
                        return;
                }
}

static void take_fresh(struct relay *r)
{
        pthread_mutex_lock(&r->mutex);
        struct relay_job *j = r->fresh;
        r->fresh = NULL;
        pthread_mutex_unlock(&r->mutex);
        while (j) {
                struct relay_job *next = j->next;
                j->next = r->all;
                r->all = j;
                if (libcurl.multi_add_handle(r->multi, j->easy) != CURLM_OK) {
                        unlink_job(r, j);
                        end_job(j, STENO_ENOMEM, "out of memory");
                }
                j = next;
        }
}

static void reap_done(struct relay *r)
{
        CURLMsg *m;
        int left;
        while ((m = libcurl.multi_info_read(r->multi, &left))) {
                if (m->msg != CURLMSG_DONE)
                        continue;
                struct relay_job *j = NULL;
                CURLcode code = m->data.result;
                libcurl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &j);
                if (code == CURLE_OK && !j->told)
                        j->failed = tell_head(j);
                unlink_job(r, j);
                const char *why = code == CURLE_SEND_FAIL_REWIND
                                      ? "it closed the connection before it answered"
                                      : libcurl_why(code);
                if (j->failed)
                        end_job(j, j->failed,
                            j->failed == STENO_ELIMIT   ? "its headers are too large"
                            : j->failed == STENO_EPROTO ? "its answer is not valid HTTP"
                                                        : steno_code_name(j->failed));
                else
                        end_job(j, code == CURLE_OK ? 0 : STENO_EIO, why);
        }
}

static struct relay_job *find_late(struct relay *r, int64_t now)
{
        pthread_mutex_lock(&r->mutex);
        struct relay_job *j = r->all;
        while (j && (!j->limit || j->limit > now))
                j = j->next;
        pthread_mutex_unlock(&r->mutex);
        return j;
}

static void reap_late(struct relay *r)
{
        struct relay_job *j;
        while ((j = find_late(r, time_monotonic_ms()))) {
                unlink_job(r, j);
                end_job(j, STENO_ETIMEOUT, "nobody waits for the answer any more");
        }
}

static bool is_closing(struct relay *r)
{
        pthread_mutex_lock(&r->mutex);
        bool closing = r->closing;
        pthread_mutex_unlock(&r->mutex);
        return closing;
}

static void *drive(void *arg)
{
        struct relay *r = arg;
        while (!is_closing(r)) {
                int running;
                take_fresh(r);
                libcurl.multi_perform(r->multi, &running);
                reap_done(r);
                reap_late(r);
                libcurl.multi_poll(r->multi, NULL, 0, POLL_MS, NULL);
        }
        take_fresh(r);
        while (r->all) {
                struct relay_job *j = r->all;
                r->all = j->next;
                end_job(j, STENO_EINTERRUPTED, "the server is stopping");
        }
        return NULL;
}

/* ---- starting ---- */

int relay_new(struct relay **out, struct steno_error *err)
{
        int rc = libcurl_need(err);
        if (rc)
                return rc;
        struct relay *r = calloc(1, sizeof *r);
        if (!r)
                return error_nomem(err);
        pthread_mutex_init(&r->mutex, NULL);
        r->multi = libcurl.multi_init();
        if (r->multi)
                libcurl.multi_setopt(r->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_KEPT);
        if (!r->multi || pthread_create(&r->thread, NULL, drive, r) != 0) {
                if (r->multi)
                        libcurl.multi_cleanup(r->multi);
                pthread_mutex_destroy(&r->mutex);
                free(r);
                return error_nomem(err);
        }
        *out = r;
        return 0;
}

void relay_free(struct relay *r)
{
        if (!r)
                return;
        pthread_mutex_lock(&r->mutex);
        r->closing = true;
        pthread_mutex_unlock(&r->mutex);
        libcurl.multi_wakeup(r->multi);
        pthread_join(r->thread, NULL);
        libcurl.multi_cleanup(r->multi);
        pthread_mutex_destroy(&r->mutex);
        free(r);
}

/* There is no way back in a body. On a kept connection that dies libcurl would send a request with
 * a body once more, and nobody would know that the endpoint may have had it twice. */
static size_t read_body(char *p, size_t size, size_t count, void *ctx)
{
        struct relay_job *j = ctx;
        size_t n = size * count < j->body.n ? size * count : j->body.n;
        memcpy(p, j->body.p, n);
        j->body = str_span(j->body.p + n, j->body.n - n);
        return n;
}

static void set_method(struct relay_job *j, const char *method, struct str body)
{
        CURL *e = j->easy;
        j->body = body;
        if (strcmp(method, "HEAD") == 0) {
                libcurl.easy_setopt(e, CURLOPT_NOBODY, 1L);
        } else if (strcmp(method, "POST") == 0 || body.n) {
                libcurl.easy_setopt(e, CURLOPT_POST, 1L);
                libcurl.easy_setopt(e, CURLOPT_READFUNCTION, read_body);
                libcurl.easy_setopt(e, CURLOPT_READDATA, j);
                libcurl.easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
        }
        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 &&
            strcmp(method, "POST") != 0)
                libcurl.easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
        else if (strcmp(method, "GET") == 0 && body.n)
                libcurl.easy_setopt(e, CURLOPT_CUSTOMREQUEST, "GET");
}

static bool set_up(struct relay_job *j, const struct relay_request *what)
{
        j->easy = libcurl_new();
        if (!j->easy)
                return false;
        for (size_t i = 0; what->headers[i]; i++) {
                struct curl_slist *more = libcurl.slist_append(j->headers, what->headers[i]);
                if (!more)
                        return false;
                j->headers = more;
        }
        CURL *e = j->easy;
        libcurl.easy_setopt(e, CURLOPT_URL, what->url);
        libcurl.easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
        libcurl.easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
        set_method(j, what->method, what->body);
        libcurl.easy_setopt(e, CURLOPT_HTTPHEADER, j->headers);
        libcurl.easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)what->connect_ms);
        libcurl.easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
        libcurl.easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
        libcurl.easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
        libcurl.easy_setopt(e, CURLOPT_MAXAGE_CONN, IDLE_SECONDS);
        libcurl.easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
        libcurl.easy_setopt(e, CURLOPT_WRITEDATA, j);
        libcurl.easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
        libcurl.easy_setopt(e, CURLOPT_HEADERDATA, j);
        libcurl.easy_setopt(e, CURLOPT_PRIVATE, j);
        return true;
}

int relay_start(struct relay *r, const struct relay_request *what, const struct relay_calls *calls,
    void *ctx, struct relay_job **out, struct steno_error *err)
{
        struct relay_job *j = calloc(1, sizeof *j);
        if (!j)
                return error_nomem(err);
        j->relay = r;
        j->calls = *calls;
        j->ctx = ctx;
        buf_init(&j->head, HEADERS_MAX);
        if (!set_up(j, what)) {
                job_free(j);
                return error_nomem(err);
        }
        if (out)
                *out = j;
        pthread_mutex_lock(&r->mutex);
        j->next = r->fresh;
        r->fresh = j;
        pthread_mutex_unlock(&r->mutex);
        libcurl.multi_wakeup(r->multi);
        return 0;
}

void relay_limit(struct relay *r, struct relay_job *job, uint32_t ms)
{
        pthread_mutex_lock(&r->mutex);
        job->limit = time_monotonic_ms() + ms;
        pthread_mutex_unlock(&r->mutex);
        if (ms == 0)
                libcurl.multi_wakeup(r->multi);
}
