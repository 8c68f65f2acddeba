/*
 * pg_blob.c - large outputs of a store in PostgreSQL whose bytes are in a bucket (store/blobs).
 *
 * An output is rows while it is written, because an upload cannot be read before it has ended. When
 * it is closed, its bytes go into the bucket and its rows away:
 *
 *   1. a row of `stray` notes the key, with a lease;
 *   2. the bytes are uploaded;
 *   3. one transaction describes the output with its key, removes its rows and the one of `stray`.
 *
 * A transaction that removes an output also puts its key into `stray`. A key there without a live
 * lease is not used any more: pg_blob_collect() removes the object from the bucket and then the key
 * from the table. So a crash at any point leaves no unknown object.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define BLOCK MIB
#define LEASE_MS 900000     /* longer than one part takes on a slow line */
#define RENEW_MS 2000       /* of who writes the output */
#define AHEAD (256 * KIB)   /* read at first, */
#define AHEAD_MAX (8 * MIB) /* and at most, by who reads on */
#define COLLECTED 100

int pg_blob_open(struct pg_store *s, struct steno_error *err)
{
        const char *url = getenv("STENO_BLOBS");
        return url && *url ? blobs_open(s->env, url, &s->blobs, err) : 0;
}

bool pg_blob_is_wanted(const struct pg_store *s, uint64_t size)
{
        return s->blobs && size > PG_BLOB_MIN;
}

/* ---- putting ---- */

struct putting {
        struct pg_conv *conv;
        const char *ref;
        const char *key;
        int64_t renewed; /* monotonic ms */
};

/* 0, or why the key cannot be noted. */
static int note(struct putting *p, const char *upload, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q, "INSERT INTO stray VALUES ($1, $2, $3, $4, clock_timestamp() + $5::bigint"
                          " * interval '1 ms') ON CONFLICT (project, uid, blob) DO UPDATE SET"
                          " upload = $4, lease = clock_timestamp() + $5::bigint * interval '1 ms'");
        q.repeatable = true;
        pg_key(&q, p->conv);
        pg_cstr(&q, p->key);
        pg_cstr(&q, upload);
        pg_u64(&q, LEASE_MS);
        long n = pg_change(p->conv->store, &q, err);
        return n < 0 ? (int)n : 0;
}

/* No later attempt will continue it. */
static void give_up(struct putting *p)
{
        struct pg_query q;
        pg_query_init(&q, "UPDATE stray SET lease = '-infinity' WHERE project = $1 AND uid = $2 AND"
                          " blob = $3");
        q.repeatable = true;
        pg_key(&q, p->conv);
        pg_cstr(&q, p->key);
        pg_change(p->conv->store, &q, NULL);
        pg_blob_collect(p->conv->store, NULL);
}

/* The writer of the output is alive, and so is the upload. */
static int renew(struct putting *p, const char *upload, struct steno_error *err)
{
        struct pg_query q;
        int64_t now = time_monotonic_ms();
        if (now - p->renewed < RENEW_MS)
                return 0;
        p->renewed = now;
        pg_query_init(&q, "UPDATE artifact SET lease = clock_timestamp() + $4::bigint * interval '1"
                          " ms' WHERE project = $1 AND uid = $2 AND ref = $3 AND state = 0");
        q.relaxed = q.repeatable = true;
        pg_key(&q, p->conv);
        pg_cstr(&q, p->ref);
        pg_u64(&q, (uint64_t)p->conv->store->lease_ms);
        long n = pg_change(p->conv->store, &q, err);
        return n < 0 ? (int)n : note(p, upload, err);
}

static int send_all(
    struct putting *p, struct blobs_upload *u, uint64_t size, struct steno_error *err)
{
        char *block = malloc(BLOCK);
        int rc = block ? 0 : error_nomem(err);
        for (uint64_t at = 0; rc == 0 && at < size;) {
                ssize_t got = pg_chunk_read(p->conv, p->ref, at, block, BLOCK, err);
                if (got <= 0)
                        rc = got ? (int)got
                                 : error_set(err, STENO_ECORRUPT,
                                       "the object of %s became shorter while it was read", p->ref);
                else
                        rc = blobs_upload_write(u, block, (size_t)got, err);
                if (rc == 0) {
                        at += (uint64_t)got;
                        rc = renew(p, blobs_upload_id(u), err);
                }
        }
        free(block);
        return rc;
}

int pg_blob_put(struct pg_conv *c, const char *ref, uint64_t size, char key[BLOBS_KEY],
    char etag[BLOBS_ETAG], struct steno_error *err)
{
        struct blobs_upload *u = NULL;
        struct putting p = {.conv = c, .ref = ref, .key = key};
        int rc = blobs_key(c->store->blobs, ref, key, err);
        if (rc == 0)
                rc = note(&p, "", err);
        if (rc)
                return rc;
        rc = blobs_upload_begin(c->store->blobs, key, size, &u, err);
        if (rc == 0 && blobs_upload_id(u)[0])
                rc = note(&p, blobs_upload_id(u), err);
        if (rc == 0)
                rc = send_all(&p, u, size, err);
        if (rc == 0)
                rc = blobs_upload_end(u, etag, err);
        else
                blobs_upload_abort(u);
        if (rc)
                give_up(&p);
        return rc;
}

/* An output that came in as rows. */
static int move_one(struct pg_conv *c, const char *ref, uint64_t size, struct steno_error *err)
{
        char key[BLOBS_KEY], etag[BLOBS_ETAG];
        struct pg_query q;
        int rc = pg_blob_put(c, ref, size, key, etag, err);
        if (rc)
                return rc;
        pg_query_init(&q,
            "WITH up AS (UPDATE artifact SET blob = $4, etag = $5 WHERE project = $1 AND uid = $2"
            " AND ref = $3 AND state = 1 AND (blob IS NULL OR blob = $4) RETURNING 1), a AS (DELETE"
            " FROM chunk WHERE project = $1 AND uid = $2 AND ref = $3 AND EXISTS (SELECT 1 FROM"
            " up)), b AS (UPDATE stray SET lease = '-infinity' WHERE project = $1 AND uid = $2 AND"
            " blob = $4 AND NOT EXISTS (SELECT 1 FROM up)) DELETE FROM stray WHERE project = $1 AND"
            " uid = $2 AND blob = $4 AND EXISTS (SELECT 1 FROM up)");
        q.repeatable = true;
        q.patience_ms = PG_LONG_MS;
        pg_key(&q, c);
        pg_cstr(&q, ref);
        pg_cstr(&q, key);
        pg_cstr(&q, etag);
        long n = pg_change(c->store, &q, err);
        return n < 0 ? (int)n : 0;
}

void pg_blob_move(struct pg_store *s, struct str project, struct str id)
{
        struct backend_conv *conv;
        struct pg_query q;
        PGresult *r;
        if (!s->blobs || pg_conv_open(&s->base, project, id, &conv, NULL))
                return;
        struct pg_conv *c = (struct pg_conv *)conv;
        pg_query_init(&q, "SELECT ref, size FROM artifact WHERE project = $1 AND uid = $2 AND state"
                          " = 1 AND blob IS NULL AND size > $3");
        pg_key(&q, c);
        pg_u64(&q, PG_BLOB_MIN);
        if (pg_run(s, &q, &r, NULL) == 0) {
                for (int i = 0; i < libpq.ntuples(r); i++) {
                        char *ref = pg_get_dup(r, i, 0);
                        int rc = ref ? move_one(c, ref, pg_get_u64(r, i, 1), NULL) : STENO_ENOMEM;
                        free(ref);
                        if (rc)
                                break; /* as rows it is as good */
                }
                libpq.clear(r);
        }
        pg_conv_release(conv);
}

/* ---- reading ---- */

void pg_blob_reader_init(struct pg_blob_reader *r)
{
        pthread_mutex_init(&r->mutex, NULL);
}

void pg_blob_reader_release(struct pg_blob_reader *r)
{
        pthread_mutex_destroy(&r->mutex);
        free(r->ahead);
}

/* The next window: small after a jump, larger for sequential reading. */
static int fill(struct pg_store *s, struct pg_blob_reader *r, uint64_t at, struct steno_error *err)
{
        bool on = r->ahead && at == r->at + r->n;
        size_t want = on && r->room < AHEAD_MAX ? r->room * 2 : on ? r->room : AHEAD;
        if (want > r->room) {
                char *more = realloc(r->ahead, want);
                if (!more)
                        return error_nomem(err);
                r->ahead = more;
                r->room = want;
        }
        r->n = 0;
        ssize_t got = blobs_read(s->blobs, r->key, r->etag, at, r->ahead, want, err);
        if (got < 0)
                return (int)got;
        r->at = at;
        r->n = (size_t)got;
        return 0;
}

static int no_bucket(struct steno_error *err)
{
        return error_set(err, STENO_EUNSUPPORTED,
            "the bytes of this output are in an S3 bucket: set STENO_BLOBS to it");
}

int pg_blob_stream(struct pg_store *s, struct pg_blob_reader *r, uint64_t n, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        return s->blobs ? blobs_stream(s->blobs, r->key, r->etag, n, sink, ctx, err)
                        : no_bucket(err);
}

ssize_t pg_blob_read(struct pg_store *s, struct pg_blob_reader *r, uint64_t at, void *p, size_t n,
    struct steno_error *err)
{
        size_t done = 0;
        int rc = 0;
        if (!s->blobs)
                return no_bucket(err);
        pthread_mutex_lock(&r->mutex);
        while (done < n) {
                uint64_t from = at + done;
                if (!r->n || from < r->at || from >= r->at + r->n)
                        rc = fill(s, r, from, err);
                if (rc || !r->n)
                        break;
                size_t skip = (size_t)(from - r->at), have = r->n - skip;
                size_t take = have < n - done ? have : n - done;
                memcpy((char *)p + done, r->ahead + skip, take);
                done += take;
        }
        pthread_mutex_unlock(&r->mutex);
        return rc ? rc : (ssize_t)done;
}

/* ---- collecting ---- */

static int forget(struct pg_store *s, const PGresult *r, int row, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q,
            "DELETE FROM stray WHERE project = $1 AND uid = $2 AND blob = $3 AND lease"
            " < clock_timestamp()");
        q.repeatable = true;
        pg_text(&q, pg_get(r, row, 0));
        pg_text(&q, pg_get(r, row, 1));
        pg_text(&q, pg_get(r, row, 2));
        long n = pg_change(s, &q, err);
        return n < 0 ? (int)n : 0;
}

int pg_blob_collect(struct pg_store *s, struct steno_error *err)
{
        int rc = 0, found = COLLECTED;
        while (s->blobs && rc == 0 && found == COLLECTED) {
                struct pg_query q;
                PGresult *r;
                pg_query_init(&q, "SELECT project, uid, blob, upload FROM stray WHERE lease <"
                                  " clock_timestamp() LIMIT $1");
                pg_u64(&q, COLLECTED);
                rc = pg_run(s, &q, &r, err);
                if (rc)
                        break;
                found = libpq.ntuples(r);
                for (int i = 0; rc == 0 && i < found; i++) {
                        char *key = pg_get_dup(r, i, 2), *upload = pg_get_dup(r, i, 3);
                        rc = key && upload ? blobs_remove(s->blobs, key, upload, err)
                                           : error_nomem(err);
                        if (rc == 0)
                                rc = forget(s, r, i, err);
                        free(key);
                        free(upload);
                }
                libpq.clear(r);
        }
        return rc;
}
