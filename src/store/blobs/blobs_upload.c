/*
 * blobs_upload.c - bytes on their way into a bucket: in one request when they fit into a part, else
 * as parts that the server puts together at the end. Parts are sent by threads of their own, so
 * that the next one is read and hashed while the server stores the one before.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/blobs/blobs.h"
#include "store/blobs/blobs_core.h"

#define PART (8 * MIB)
#define PARTS_MAX 10000
#define FLIGHTS 2 /* parts that are sent at a time */
#define ANSWER_MAX (64 * KIB)

/* A part on its way, or the whole. */
struct flight {
        const struct blobs_upload *upload;
        int number; /* 0: none is on its way */
        bool threaded;
        pthread_t thread;
        struct buf bytes;
        char etag[BLOBS_ETAG];
        int rc;
        struct steno_error err;
};

struct blobs_upload {
        struct blobs *b;
        char key[BLOBS_KEY];
        char id[BLOBS_UPLOAD]; /* "": no parts were sent yet */
        size_t part;           /* how large one is */
        struct buf bytes;      /* the next one */
        struct flight flights[FLIGHTS];
        struct buf list; /* what completes it */
        uint64_t size;
        int count;
        bool failed;
};

/* Identifiers of uploads go into queries as they came: S3 has none that would need encoding. */
static bool is_plain(struct str id)
{
        for (size_t i = 0; i < id.n; i++) {
                char c = id.p[i];
                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        strchr("-._~", c)))
                        return false;
        }
        return id.n > 0;
}

static int begin_parts(struct blobs_upload *u, struct steno_error *err)
{
        struct blobs_request q = {.method = "POST", .key = u->key, .query = "uploads="};
        buf_init(&q.answer, ANSWER_MAX);
        int rc = blobs_ask(u->b, &q, "upload", err);
        struct str id = blobs_element(buf_str(&q.answer), "UploadId");
        if (rc == 0 && (!is_plain(id) || id.n >= sizeof u->id))
                rc = error_set(err, STENO_EIO, "S3 upload: the server gave no usable upload id");
        if (rc == 0) {
                memcpy(u->id, id.p, id.n);
                u->id[id.n] = '\0';
        }
        buf_release(&q.answer);
        return rc;
}

int blobs_upload_begin(struct blobs *b, const char *key, uint64_t size, struct blobs_upload **out,
    struct steno_error *err)
{
        struct blobs_upload *u = calloc(1, sizeof *u);
        if (!u)
                return error_nomem(err);
        u->b = b;
        u->part = PART;
        while ((uint64_t)u->part * PARTS_MAX < size)
                u->part *= 2;
        snprintf(u->key, sizeof u->key, "%s", key);
        buf_init(&u->bytes, 0);
        for (int i = 0; i < FLIGHTS; i++)
                buf_init(&u->flights[i].bytes, 0);
        buf_init(&u->list, 0);
        int rc = size > u->part ? begin_parts(u, err) : 0;
        if (rc)
                blobs_upload_abort(u);
        else
                *out = u;
        return rc;
}

const char *blobs_upload_id(const struct blobs_upload *u)
{
        return u->id;
}

static void *fly(void *arg)
{
        struct flight *f = arg;
        const struct blobs_upload *u = f->upload;
        char query[BLOBS_UPLOAD + 40];
        struct blobs_request q = {.method = "PUT", .key = u->key, .body = buf_str(&f->bytes)};
        snprintf(query, sizeof query, "partNumber=%d&uploadId=%s", f->number, u->id);
        q.query = u->id[0] ? query : NULL;
        buf_init(&q.answer, ANSWER_MAX);
        f->rc = blobs_ask(u->b, &q, "upload", &f->err);
        if (f->rc == 0 && u->id[0] && !q.etag[0])
                f->rc = error_set(&f->err, STENO_EIO, "S3 upload: the server gave a part no ETag");
        memcpy(f->etag, q.etag, sizeof f->etag);
        buf_release(&q.answer);
        return NULL;
}

static int land(struct blobs_upload *u, struct flight *f, struct steno_error *err)
{
        if (f->number == 0)
                return 0;
        if (f->threaded)
                pthread_join(f->thread, NULL);
        if (f->rc && err)
                *err = f->err;
        if (f->rc == 0) {
                u->size += f->bytes.n;
                buf_printf(&u->list, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>",
                    f->number, f->etag);
        }
        f->number = 0;
        buf_clear(&f->bytes);
        return f->rc;
}

/* In their order. The first failure is the one that is reported. */
static int land_all(struct blobs_upload *u, struct steno_error *err)
{
        int rc = 0;
        for (int i = 0; i < FLIGHTS; i++) {
                int one = land(u, &u->flights[(u->count + i) % FLIGHTS], rc ? NULL : err);
                rc = rc ? rc : one;
        }
        return rc;
}

/* Signals are for the threads of whoever uses the library. */
static bool start(struct flight *f)
{
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        bool started = pthread_create(&f->thread, NULL, fly, f) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return started;
}

static int send_part(struct blobs_upload *u, struct steno_error *err)
{
        struct flight *f = &u->flights[u->count % FLIGHTS];
        int rc = land(u, f, err);
        if (rc)
                return rc;
        struct buf empty = f->bytes;
        *f = (struct flight){.upload = u, .number = ++u->count, .bytes = u->bytes};
        u->bytes = empty;
        f->threaded = u->id[0] && start(f);
        if (!f->threaded)
                fly(f);
        return 0;
}

int blobs_upload_write(struct blobs_upload *u, const void *p, size_t n, struct steno_error *err)
{
        const char *at = p;
        int rc = u->failed ? error_set(err, STENO_EIO, "the upload is broken") : 0;
        while (rc == 0 && n) {
                size_t room = u->part - u->bytes.n, take = n < room ? n : room;
                buf_put(&u->bytes, at, take);
                at += take;
                n -= take;
                rc = u->bytes.failed ? error_nomem(err) : 0;
                if (rc == 0 && u->bytes.n == u->part && !u->id[0])
                        rc = begin_parts(u, err); /* more than was announced may come */
                if (rc == 0 && u->bytes.n == u->part)
                        rc = send_part(u, err);
        }
        u->failed = u->failed || rc;
        return rc;
}

static int complete(struct blobs_upload *u, struct steno_error *err)
{
        char query[BLOBS_UPLOAD + 16];
        struct buf body;
        struct blobs_request q = {.method = "POST", .key = u->key, .query = query};
        snprintf(query, sizeof query, "uploadId=%s", u->id);
        buf_init(&body, 0);
        buf_puts(&body, "<CompleteMultipartUpload>");
        buf_put_str(&body, buf_str(&u->list));
        buf_puts(&body, "</CompleteMultipartUpload>");
        q.body = buf_str(&body);
        buf_init(&q.answer, ANSWER_MAX);
        int rc =
            body.failed || u->list.failed ? error_nomem(err) : blobs_ask(u->b, &q, "upload", err);
        /* A server that fails while it puts the parts together has said 200 by then. */
        struct str code = blobs_element(buf_str(&q.answer), "Code");
        if (rc == 0 && code.n)
                rc = error_set(
                    err, STENO_EIO, "S3 upload: %.*s", (int)(code.n > 80 ? 80 : code.n), code.p);
        /* Its answer may have been lost, and the parts are put together once: look() decides. */
        if (rc == STENO_ENOTFOUND)
                rc = 0;
        buf_release(&q.answer);
        buf_release(&body);
        return rc;
}

/* Is it there, and as long as it should be? */
static int look(struct blobs_upload *u, char etag[BLOBS_ETAG], struct steno_error *err)
{
        struct blobs_request q = {.method = "HEAD", .key = u->key};
        buf_init(&q.answer, ANSWER_MAX);
        int rc = blobs_ask(u->b, &q, "upload", err);
        if (rc == 0 && (q.size != u->size || !q.etag[0]))
                rc = error_set(err, STENO_EIO,
                    "S3 upload: the server has %llu bytes where %llu were sent",
                    (unsigned long long)q.size, (unsigned long long)u->size);
        if (rc == 0)
                snprintf(etag, BLOBS_ETAG, "%s", q.etag);
        buf_release(&q.answer);
        return rc;
}

static void release(struct blobs_upload *u)
{
        buf_release(&u->bytes);
        for (int i = 0; i < FLIGHTS; i++)
                buf_release(&u->flights[i].bytes);
        buf_release(&u->list);
        free(u);
}

int blobs_upload_end(struct blobs_upload *u, char etag[BLOBS_ETAG], struct steno_error *err)
{
        int rc = u->failed ? error_set(err, STENO_EIO, "the upload is broken") : 0;
        if (rc == 0 && (u->bytes.n || u->count == 0))
                rc = send_part(u, err);
        if (rc == 0)
                rc = land_all(u, err);
        if (rc == 0 && u->id[0])
                rc = complete(u, err);
        if (rc == 0)
                rc = look(u, etag, err);
        if (rc)
                blobs_upload_abort(u);
        else
                release(u);
        return rc;
}

void blobs_upload_abort(struct blobs_upload *u)
{
        if (!u)
                return;
        land_all(u, NULL);
        if (u->id[0] || u->count)
                blobs_remove(u->b, u->key, u->id, NULL);
        release(u);
}
