/*
 * own_context.c - context files over HTTP: the operations of the library, raw bytes, and a tail
 * that follows.
 */
#include "routes/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "http/server_core.h"
#include "http/http_limits.h"
#include "http/tails.h"

/* Query parameters as the arguments of an operation. */
struct argument {
        const char *query;
        const char *name;
        enum { NUMBER, TEXT, FLAG } type;
};

static void put_arguments(
    struct request *r, const char *ref, const struct argument *args, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        if (ref) {
                jsonw_field_cstr(&w, "ref", ref);
        }
        for (; args->query; args++) {
                const char *v = request_query(r, args->query);
                if (!v || !*v)
                        continue;
                jsonw_key(&w, args->name);
                if (args->type == FLAG)
                        jsonw_bool(&w, strcmp(v, "true") == 0 || strcmp(v, "1") == 0);
                else
                        jsonw_cstr(&w, v); /* numbers in strings are understood */
        }
        jsonw_object_end(&w);
}

static void run_operation(
    struct request *r, const char *op, const char *ref, const struct argument *args)
{
        struct steno_error err = {0};
        struct buf b;
        char *json = NULL;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        buf_init(&b, 1 * MIB);
        put_arguments(r, ref, args, &b);
        int rc = b.failed ? STENO_ENOMEM : steno_context(conv, op, b.p, b.n, &json, &err);
        if (rc == STENO_EUNSUPPORTED) {
                request_error(r, 422, "not_json", "%s", err.msg);
        } else if (rc == STENO_ELIMIT) {
                request_error(r, 422, "pattern_too_costly", "%s", err.msg);
        } else {
                request_reply_made(r, rc, json, &err);
        }
        buf_release(&b);
        steno_conv_close(conv);
}

void own_context_list(struct request *r)
{
        static const struct argument ARGS[] = {
            {"kind", "kind", TEXT}, {"limit", "limit", NUMBER}, {NULL, NULL, TEXT}};
        run_operation(r, "list", NULL, ARGS);
}

void own_context_read(struct request *r)
{
        static const struct argument ARGS[] = {{"offset", "offset", NUMBER},
            {"limit", "limit", NUMBER}, {"line", "line", NUMBER}, {"count", "count", NUMBER},
            {"encoding", "encoding", TEXT}, {NULL, NULL, TEXT}};
        run_operation(r, "read", r->params[1].p, ARGS);
}

void own_context_grep(struct request *r)
{
        static const struct argument ARGS[] = {{"pattern", "pattern", TEXT},
            {"max_results", "max_results", NUMBER}, {"context_lines", "context_lines", NUMBER},
            {"case_sensitive", "case_sensitive", FLAG}, {"from_line", "from_line", NUMBER},
            {"direction", "direction", TEXT}, {"spread", "spread", NUMBER}, {NULL, NULL, TEXT}};
        run_operation(r, "grep", r->params[1].p, ARGS);
}

void own_context_json(struct request *r)
{
        static const struct argument ARGS[] = {{"at", "at", NUMBER}, {"from", "from", NUMBER},
            {"limit", "limit", NUMBER}, {"cursor", "cursor", TEXT}, {NULL, NULL, TEXT}};
        run_operation(r, "json", r->params[1].p, ARGS);
}

/* ---- a tail that follows ---- */

/* Where a follower begins: behind the last event it saw, else at the last lines. */
static bool first_offset(
    struct request *r, struct steno_conv *conv, const char *ref, uint64_t *offset)
{
        const char *last = request_header(r, "Last-Event-ID");
        struct steno_error err = {0};
        struct buf args;
        struct json j;
        char *json = NULL;
        uint64_t lines;
        if (last) {
                *offset = strtoull(last, NULL, 10);
                return true;
        }
        if (!request_number(r, "lines", 200, 1, 2000, &lines))
                return false;
        buf_init(&args, 4 * KIB);
        json_init(&j);
        buf_puts(&args, "{\"ref\":");
        json_put_string(&args, str_of(ref));
        buf_printf(&args, ",\"lines\":%llu}", (unsigned long long)lines);
        int rc = steno_context(conv, "tail", args.p, args.n, &json, &err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, &err);
        if (rc == 0)
                json_u64(&j, json_get(&j, 0, "offset"), offset);
        else
                request_failed(r, rc, &err);
        json_release(&j);
        steno_free(json);
        buf_release(&args);
        return rc == 0;
}

static void follow_tail(struct request *r)
{
        struct steno_error err = {0};
        uint64_t offset = 0;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        char *ref = conv ? strdup(r->params[1].p) : NULL;
        struct stream *s =
            ref && first_offset(r, conv, ref, &offset) ? stream_events(r, NULL, NULL) : NULL;
        if (!s) {
                free(ref);
                steno_conv_close(conv);
                return;
        }
        stream_ref(s);
        if (tails_add(r->server->tails, conv, ref, offset, s, &err))
                stream_break(s);
        stream_unref(s);
}

void own_context_tail(struct request *r)
{
        static const struct argument ARGS[] = {{"lines", "lines", NUMBER}, {NULL, NULL, TEXT}};
        if (request_flag(r, "follow", false))
                follow_tail(r);
        else
                run_operation(r, "tail", r->params[1].p, ARGS);
}

/* ---- raw bytes ---- */

struct raw {
        struct steno_conv *conv;
        char *ref;
        uint64_t from; /* the first byte that is wanted */
};

struct filling {
        char *p;
        size_t n;
        size_t max;
};

static int fill(void *ctx, const void *p, size_t n)
{
        struct filling *f = ctx;
        size_t take = n < f->max - f->n ? n : f->max - f->n;
        memcpy(f->p + f->n, p, take);
        f->n += take;
        return f->n == f->max && take < n;
}

static ssize_t read_raw(void *ctx, uint64_t offset, char *p, size_t n)
{
        struct raw *raw = ctx;
        struct filling f = {.p = p, .max = n};
        int rc = steno_context_raw(raw->conv, raw->ref, raw->from + offset, n, fill, &f, NULL);
        return rc && rc != STENO_EINTERRUPTED ? -1 : (ssize_t)f.n;
}

static void release_raw(void *ctx)
{
        struct raw *raw = ctx;
        steno_conv_close(raw->conv);
        free(raw->ref);
        free(raw);
}

/* The size as it is now, from read's answer. */
static int raw_size(
    struct steno_conv *conv, const char *ref, uint64_t *size, struct steno_error *err)
{
        struct buf args;
        struct json j;
        char *json = NULL;
        buf_init(&args, 4 * KIB);
        json_init(&j);
        buf_puts(&args, "{\"limit\":1,\"ref\":");
        json_put_string(&args, str_of(ref));
        buf_putc(&args, '}');
        int rc = steno_context(conv, "read", args.p, args.n, &json, err);
        if (rc == 0)
                rc = json_parse(&j, json, strlen(json), NULL, err);
        if (rc == 0)
                json_u64(&j, json_get(&j, 0, "total_bytes"), size);
        if (rc == 0 && json_bool(&j, json_get(&j, 0, "damaged"), false))
                rc = error_set(
                    err, STENO_ECORRUPT, "%.60s is damaged; read gives what is left", ref);
        json_release(&j);
        steno_free(json);
        buf_release(&args);
        return rc;
}

/* "Range: bytes=A-" and "bytes=A-B": *from and *to, behind the last byte. False: there is none, or
 * one of another form, which may be ignored. */
static bool read_range(const char *range, uint64_t size, uint64_t *from, uint64_t *to)
{
        char *end = NULL;
        if (!range || strncmp(range, "bytes=", 6) != 0 || range[6] < '0' || range[6] > '9')
                return false;
        *from = strtoull(range + 6, &end, 10);
        *to = size;
        if (*end++ != '-')
                return false;
        if (*end >= '0' && *end <= '9') {
                uint64_t last = strtoull(end, &end, 10);
                if (last < *from)
                        return false;
                if (last < size)
                        *to = last + 1;
        }
        return *end == '\0';
}

/* The part that is asked for: for downloads that were cut off, and for readers of a piece. False:
 * there is nothing at *from, and a 416 was answered. */
static bool raw_range(struct request *r, uint64_t size, uint64_t *from, uint64_t *to, bool *partial)
{
        char of[80];
        uint64_t n, end;
        *from = 0;
        *to = size;
        *partial = read_range(request_header(r, "Range"), size, &n, &end);
        if (!*partial)
                return true;
        if (n >= size) {
                snprintf(of, sizeof of, "bytes */%llu", (unsigned long long)size);
                request_header_out(r, "Content-Range", of);
                request_error(
                    r, 416, "bad_range", "the output has %llu bytes", (unsigned long long)size);
                return false;
        }
        *from = n;
        *to = end;
        snprintf(of, sizeof of, "bytes %llu-%llu/%llu", (unsigned long long)n,
            (unsigned long long)end - 1, (unsigned long long)size);
        request_header_out(r, "Content-Range", of);
        return true;
}

void own_context_raw(struct request *r)
{
        struct steno_error err = {0};
        uint64_t size = 0, from, to;
        bool partial;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = raw_size(conv, r->params[1].p, &size, &err);
        struct raw *raw = rc ? NULL : calloc(1, sizeof *raw);
        if (raw)
                raw->ref = strdup(r->params[1].p);
        if (rc || !raw || !raw->ref) {
                if (rc)
                        request_failed(r, rc, &err);
                else
                        request_error(r, 503, "busy", "out of memory");
                free(raw);
                steno_conv_close(conv);
                return;
        }
        raw->conv = conv;
        if (!raw_range(r, size, &from, &to, &partial)) {
                release_raw(raw);
                return;
        }
        raw->from = from;
        request_header_out(r, "Accept-Ranges", "bytes");
        /* Never rendered: what a tool printed is text, and is handed over as a file. */
        request_header_out(r, "Content-Disposition", "attachment");
        request_header_out(r, "Content-Security-Policy", "default-src 'none'; sandbox");
        stream_file(r, partial ? 206 : 200, "text/plain; charset=utf-8", to - from, read_raw,
            release_raw, raw);
}
