/*
 * transfer.c - the loop around libcurl's multi interface (transfer.h).
 */
#include "net/transfer.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/error.h"
#include "base/libcurl.h"
#include "base/env.h"

/* How long to wait for the end of an answer that is already complete. A connection can be reused
 * only when the answer was read to its end, and most endpoints send that end at once. */
#define LEAVE_MS 40

struct transfer_pool {
        CURLM *multi;
};

struct transfer_pool *transfer_pool_new(struct steno_error *err)
{
        if (libcurl_need(err))
                return NULL;
        struct transfer_pool *pool = calloc(1, sizeof(*pool));
        if (pool)
                pool->multi = libcurl.multi_init();
        if (pool && pool->multi)
                return pool;
        free(pool);
        error_nomem(err);
        return NULL;
}

void transfer_pool_free(struct transfer_pool *pool)
{
        if (!pool)
                return;
        libcurl.multi_cleanup(pool->multi);
        free(pool);
}

struct state {
        struct transfer *t;
        int64_t last_byte;
        int failed; /* what a callback returned */
};

static size_t on_data(char *p, size_t size, size_t count, void *ctx)
{
        struct state *s = ctx;
        size_t n = size * count;
        s->last_byte = time_monotonic_ms();
        s->failed = s->t->data(s->t->ctx, s->t, p, n);
        return s->failed ? 0 : n;
}

static struct str header_value(struct str line, const char *name)
{
        size_t n = strlen(name);
        if (line.n <= n || strncasecmp(line.p, name, n) != 0 || line.p[n] != ':')
                return (struct str){NULL, 0};
        const char *p = line.p + n + 1;
        const char *end = line.p + line.n;
        while (p < end && (*p == ' ' || *p == '\t'))
                p++;
        while (end > p && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
                end--;
        return str_span(p, (size_t)(end - p));
}

static void read_retry_after(struct transfer *t, struct str value, double unit_ms)
{
        char z[64];
        if (value.n == 0 || value.n >= sizeof(z))
                return;
        memcpy(z, value.p, value.n);
        z[value.n] = '\0';
        char *end;
        double number = strtod(z, &end);
        if (end != z && *end == '\0' && number >= 0 && number < 1e9) {
                t->retry_after_ms = (long)(number * unit_ms);
                return;
        }
        time_t at = libcurl.getdate(z, NULL);
        time_t now = (time_t)(env_real()->now(env_real()) / 1000);
        if (at != (time_t)-1)
                t->retry_after_ms = at > now ? (long)(at - now) * 1000 : 0;
}

static size_t on_header(char *p, size_t size, size_t count, void *ctx)
{
        struct state *s = ctx;
        struct transfer *t = s->t;
        struct str line = str_span(p, size * count);
        s->last_byte = time_monotonic_ms();
        if (str_starts(line, "HTTP/")) {
                const char *space = memchr(line.p, ' ', line.n);
                t->status = space ? strtol(space, NULL, 10) : 0;
                t->type[0] = '\0';
                t->retry_after_ms = -1;
                return line.n;
        }
        struct str v = header_value(line, "content-type");
        if (v.p)
                snprintf(t->type, sizeof(t->type), "%.*s", (int)(v.n < 79 ? v.n : 79), v.p);
        v = header_value(line, "retry-after");
        if (v.p)
                read_retry_after(t, v, 1000);
        v = header_value(line, "retry-after-ms");
        if (v.p)
                read_retry_after(t, v, 1);
        return line.n;
}

static CURL *make_easy(struct state *s, struct curl_slist *headers)
{
        const struct transfer *t = s->t;
        CURL *e = libcurl_new();
        if (!e)
                return NULL;
        libcurl.easy_setopt(e, CURLOPT_URL, t->url);
        libcurl.easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
        libcurl.easy_setopt(e, CURLOPT_POST, 1L);
        libcurl.easy_setopt(e, CURLOPT_POSTFIELDS, t->body.p);
        libcurl.easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body.n);
        libcurl.easy_setopt(e, CURLOPT_HTTPHEADER, headers);
        libcurl.easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)t->connect_ms);
        libcurl.easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
        libcurl.easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
        libcurl.easy_setopt(e, CURLOPT_WRITEFUNCTION, on_data);
        libcurl.easy_setopt(e, CURLOPT_WRITEDATA, s);
        libcurl.easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
        libcurl.easy_setopt(e, CURLOPT_HEADERDATA, s);
        libcurl.easy_setopt(e, CURLOPT_PRIVATE, s);
        return e;
}

/* How long to wait for the next thing, given what it must not miss. */
static int patience(int64_t now, int64_t until, int tick_ms)
{
        int64_t ms = 1000;
        if (until && until - now < ms)
                ms = until - now;
        if (tick_ms >= 0 && tick_ms < ms)
                ms = tick_ms;
        return ms < 0 ? 0 : (int)ms;
}

static int network_failure(struct transfer *t, CURLcode code)
{
        t->timed_out = code == CURLE_OPERATION_TIMEDOUT;
        snprintf(t->why, sizeof(t->why), "%s", libcurl_why(code));
        return STENO_EIO;
}

static int finished(struct state *s, CURLM *multi, bool *is)
{
        int left;
        CURLMsg *m;
        *is = false;
        while ((m = libcurl.multi_info_read(multi, &left))) {
                if (m->msg != CURLMSG_DONE)
                        continue;
                *is = true;
                if (s->failed)
                        return s->failed;
                if (m->data.result != CURLE_OK)
                        return network_failure(s->t, m->data.result);
        }
        return 0;
}

/* 0 while there is time left and no stop was requested. */
static int check_time(struct state *s, int64_t now)
{
        struct transfer *t = s->t;
        if (steno_stop_requested(t->stop))
                return STENO_EINTERRUPTED;
        if (t->deadline && now >= t->deadline)
                return STENO_ETIMEOUT;
        if (t->idle_ms && now - s->last_byte >= t->idle_ms) {
                t->timed_out = true;
                snprintf(t->why, sizeof(t->why), "nothing came for %.1f s", t->idle_ms / 1000.0);
                return STENO_EIO;
        }
        return 0;
}

static int drive(struct state *s, CURLM *multi)
{
        struct transfer *t = s->t;
        int64_t leave_at = 0;
        struct curl_waitfd stop = {.fd = steno_stop_fd(t->stop), .events = CURL_WAIT_POLLIN};
        for (;;) {
                int running;
                if (libcurl.multi_perform(multi, &running) != CURLM_OK)
                        return STENO_ENOMEM;
                bool over;
                int rc = finished(s, multi, &over);
                if (over)
                        return rc;
                int64_t now = time_monotonic_ms();
                if (!leave_at && t->done && t->done(t->ctx))
                        leave_at = now + LEAVE_MS;
                if (leave_at && now >= leave_at)
                        return 0;
                rc = leave_at ? 0 : check_time(s, now);
                if (rc)
                        return rc;
                int tick_ms = t->tick ? t->tick(t->ctx) : -1;
                int64_t until = leave_at ? leave_at : t->deadline;
                if (!leave_at && t->idle_ms && (!until || s->last_byte + t->idle_ms < until))
                        until = s->last_byte + t->idle_ms;
                libcurl.multi_poll(
                    multi, &stop, stop.fd >= 0 && !leave_at, patience(now, until, tick_ms), NULL);
        }
}

int transfer_run(struct transfer *t, struct steno_error *err)
{
        t->status = 0;
        t->type[0] = '\0';
        t->retry_after_ms = -1;
        t->timed_out = false;
        t->why[0] = '\0';
        struct state s = {t, time_monotonic_ms(), 0};
        struct curl_slist *headers = NULL;
        CURL *easy = NULL;
        CURLM *multi = t->pool->multi;
        int rc = STENO_ENOMEM;
        for (size_t i = 0; t->headers[i]; i++) {
                struct curl_slist *more = libcurl.slist_append(headers, t->headers[i]);
                if (!more)
                        goto out;
                headers = more;
        }
        easy = make_easy(&s, headers);
        if (!easy || libcurl.multi_add_handle(multi, easy) != CURLM_OK)
                goto out;
        rc = drive(&s, multi);
        libcurl.multi_remove_handle(multi, easy);
out:
        libcurl.easy_cleanup(easy);
        libcurl.slist_free_all(headers);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        else if (rc)
                error_set(err, rc, "%s", t->why[0] ? t->why : steno_code_name(rc));
        return rc;
}

int transfer_wait(
    const struct steno_stop *stop, int64_t deadline, int64_t ms, int (*tick)(void *ctx), void *ctx)
{
        int64_t end = time_monotonic_ms() + ms;
        for (;;) {
                int64_t now = time_monotonic_ms();
                if (steno_stop_requested(stop))
                        return STENO_EINTERRUPTED;
                if (deadline && now >= deadline)
                        return STENO_ETIMEOUT;
                if (now >= end)
                        return 0;
                int64_t until = deadline && deadline < end ? deadline : end;
                struct pollfd p = {.fd = steno_stop_fd(stop), .events = POLLIN};
                poll(&p, 1, patience(now, until, tick ? tick(ctx) : -1));
        }
}
