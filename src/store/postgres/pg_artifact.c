/*
 * pg_artifact.c - outputs and parts in PostgreSQL: a row that describes one, and rows with its
 * bytes.
 */
#include "store/postgres/pg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define CHUNK (1024 * 1024)
#define NAME_TRIES 10000

static struct pg_conv *of(const struct backend_conv *conv)
{
        return (struct pg_conv *)conv;
}

struct pg_artifact {
        struct backend_artifact base;
        struct pg_conv *conv;
        struct artifact_info info;
        char stem[BACKEND_ARTIFACT_NAME];
        struct sha256 sha;
        bool hashing;
        bool broken;
        bool unlimited;
        struct buf index;
};

/* ---- writing ---- */

static int insert(struct pg_artifact *a, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q,
            "INSERT INTO artifact (project, uid, ref, kind, base, name, mime, state, utf8, size,"
            " lines, sha256, created, hint, deleted_at, deleted_by, lease) VALUES ($1, $2, $3, $4,"
            " $5, $6, '', 0, false, 0, 0, '', $7, $8, 0, '', clock_timestamp() + $9::bigint *"
            " interval '1 ms') ON CONFLICT DO NOTHING");
        pg_key(&q, a->conv);
        pg_cstr(&q, a->info.id);
        pg_cstr(&q, a->info.kind);
        pg_cstr(&q, a->stem);
        pg_cstr(&q, a->info.name);
        pg_u64(&q, (uint64_t)a->info.created);
        pg_cstr(&q, a->info.hint);
        pg_u64(&q, (uint64_t)a->conv->store->lease_ms);
        long n = pg_change(a->conv->store, &q, err);
        return n < 0 ? (int)n : n == PG_UNIQUE ? 0 : (int)n;
}

int pg_artifact_begin(struct backend_conv *conv, const char *kind, struct str want, struct str hint,
    struct backend_artifact **out, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        const struct env *env = c->store->env;
        struct pg_artifact *a = calloc(1, sizeof *a);
        if (!a)
                return error_nomem(err);
        a->base.ops = &postgres_backend;
        a->conv = c;
        buf_init(&a->index, 0);
        a->info.created = env->now(env);
        id_make(env, "ctx_", a->info.id);
        snprintf(a->info.kind, sizeof a->info.kind, "%s", kind);
        snprintf(a->info.hint, sizeof a->info.hint, "%.*s", (int)hint.n, hint.n ? hint.p : "");
        a->hashing = hash_sha256_init(&a->sha) == 0;
        int rc = a->hashing ? 0 : error_nomem(err);
        for (int n = 0; rc == 0 && n < NAME_TRIES; n++) {
                if (backend_artifact_name(want, n, a->stem))
                        rc = error_nomem(err);
                snprintf(a->info.name, sizeof a->info.name, "%s%s", a->stem,
                    strcmp(kind, "terminal") == 0 ? ".log" : ".txt");
                if (rc == 0)
                        rc = insert(a, err);
        }
        if (rc != 1) {
                pg_artifact_free(&a->base);
                return rc ? rc : error_set(err, STENO_ECONFLICT, "no name is free for an output");
        }
        *out = &a->base;
        return 0;
}

const char *pg_artifact_id(const struct backend_artifact *a)
{
        return ((const struct pg_artifact *)a)->info.id;
}

/* The row says how much there is; both happen or neither, and it keeps the writer's lease. A
 * failover may have lost pieces that were not waited for. Then the row has another size, and
 * nothing is added behind the gap. How many were written, 1 or 0, or negative. */
static long insert_chunk(struct pg_artifact *a, struct str bytes, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q,
            "WITH up AS (UPDATE artifact SET size = $4::bigint + octet_length($5::bytea), lease ="
            " clock_timestamp() + $6::bigint * interval '1 ms' WHERE project = $1 AND uid = $2 AND"
            " ref = $3 AND state = 0 AND size = $4::bigint RETURNING 1) INSERT INTO chunk SELECT"
            " $1, $2, $3, $4, $5 FROM up");
        q.relaxed = true; /* closing it waits for the disk */
        pg_key(&q, a->conv);
        pg_cstr(&q, a->info.id);
        pg_u64(&q, a->info.size);
        pg_bytes(&q, bytes);
        pg_u64(&q, (uint64_t)a->conv->store->lease_ms);
        return pg_change(a->conv->store, &q, err);
}

static int put_chunk(struct pg_artifact *a, struct str bytes, struct steno_error *err)
{
        struct artifact_info now;
        long n = insert_chunk(a, bytes, err);
        bool doubted = n == STENO_EINDOUBT;
        if (doubted)
                n = insert_chunk(a, bytes, err);
        if (n < 0)
                return (int)n;
        if (n == 1)
                return 0;
        int rc = pg_artifact_find(&a->conv->base, str_of(a->info.id), &now, err);
        if (rc == 0 && doubted && now.size == a->info.size + bytes.n)
                return 0; /* the first try had succeeded */
        return rc ? rc
                  : error_set(err, STENO_EIO,
                        "%s lost a piece in a failover of the database, or was removed",
                        a->info.id);
}

int pg_artifact_write(
    struct backend_artifact *artifact, const void *p, size_t n, struct steno_error *err)
{
        struct pg_artifact *a = (struct pg_artifact *)artifact;
        const char *at = p;
        int rc = a->broken ? error_set(err, STENO_EIO, "%s is broken", a->info.id) : 0;
        if (rc == 0 && !a->unlimited)
                rc = pg_quota_take_output(a->conv, a->info.size, n, err);
        if (rc == STENO_EQUOTA)
                return rc; /* what was written before is whole */
        while (rc == 0 && n) {
                size_t piece = n < CHUNK ? n : CHUNK;
                rc = put_chunk(a, str_span(at, piece), err);
                if (rc == 0) {
                        hash_sha256_update(&a->sha, at, piece);
                        a->info.size += piece;
                }
                at += piece;
                n -= piece;
        }
        a->broken = a->broken || rc;
        return rc;
}

void pg_artifact_lift_quota(struct backend_artifact *a)
{
        ((struct pg_artifact *)a)->unlimited = true;
}

void pg_artifact_index(struct backend_artifact *a, struct str bytes)
{
        buf_put_str(&((struct pg_artifact *)a)->index, bytes);
}

#define CLOSE                                                                                      \
        "UPDATE artifact SET state = 1, size = $4, lines = $5, utf8 = $6::bigint <> 0, mime = $7," \
        " name = $8, hint = $9, sha256 = $10, line_index = $11, lease = NULL"
#define CLOSED " WHERE project = $1 AND uid = $2 AND ref = $3 AND size = $4"

int pg_artifact_close(struct backend_artifact *artifact, const struct artifact_end *end,
    struct artifact_info *info, struct steno_error *err)
{
        struct pg_artifact *a = (struct pg_artifact *)artifact;
        struct artifact_info *i = &a->info;
        unsigned char sum[SHA256_SIZE];
        char key[BLOBS_KEY], etag[BLOBS_ETAG];
        struct pg_query q;
        if (a->broken)
                return error_set(err, STENO_EIO, "%s is broken", i->id);
        hash_sha256_finish(&a->sha, sum);
        a->hashing = false;
        hash_hex(sum, sizeof sum, i->sha256);
        buf_put_str(&a->index, end->line_index);
        i->state = ARTIFACT_CLOSED;
        i->lines = end->lines;
        i->utf8 = end->utf8;
        snprintf(i->mime, sizeof i->mime, "%s", end->mime);
        snprintf(i->name, sizeof i->name, "%s%s", a->stem, end->suffix);
        if (end->hint.n)
                snprintf(i->hint, sizeof i->hint, "%.*s", (int)end->hint.n, end->hint.p);
        bool blob = pg_blob_is_wanted(a->conv->store, i->size);
        int rc = blob ? pg_blob_put(a->conv, i->id, i->size, key, etag, err) : 0;
        if (rc)
                return rc;
        pg_query_init(&q,
            blob ? "WITH a AS (DELETE FROM chunk WHERE project = $1 AND uid = $2 AND ref = $3), b"
                   " AS (DELETE FROM stray WHERE project = $1 AND uid = $2 AND blob = $12) " CLOSE
                   ", blob = $12, etag = $13" CLOSED
                 : CLOSE CLOSED);
        q.repeatable = true;
        pg_key(&q, a->conv);
        pg_cstr(&q, i->id);
        pg_u64(&q, i->size);
        pg_u64(&q, i->lines);
        pg_u64(&q, i->utf8);
        pg_cstr(&q, i->mime);
        pg_cstr(&q, i->name);
        pg_cstr(&q, i->hint);
        pg_cstr(&q, i->sha256);
        pg_bytes(&q, a->index.failed ? STR("") : buf_str(&a->index));
        if (blob) {
                q.patience_ms = PG_READ_MS;
                pg_cstr(&q, key);
                pg_cstr(&q, etag);
        }
        long n = pg_change(a->conv->store, &q, err);
        a->broken = n != 1;
        if (n == 0)
                return error_set(err, STENO_ENOTFOUND, "%s was removed", i->id);
        if (n > 0 && info)
                *info = *i;
        return n < 0 ? (int)n : 0;
}

void pg_artifact_free(struct backend_artifact *artifact)
{
        struct pg_artifact *a = (struct pg_artifact *)artifact;
        if (a->hashing)
                hash_sha256_release(&a->sha);
        buf_release(&a->index);
        free(a);
}

void pg_artifact_undo(struct backend_conv *conv, const char *id)
{
        struct pg_query q;
        pg_query_init(&q, "WITH gone AS (DELETE FROM artifact WHERE project = $1 AND uid = $2 AND"
                          " ref = $3 RETURNING blob), lost AS (INSERT INTO stray SELECT $1, $2,"
                          " blob, '', '-infinity' FROM gone WHERE blob IS NOT NULL) DELETE FROM"
                          " chunk WHERE project = $1 AND uid = $2 AND ref = $3");
        q.patience_ms = PG_LONG_MS;
        pg_key(&q, of(conv));
        pg_cstr(&q, id);
        pg_change(of(conv)->store, &q, NULL);
        pg_blob_collect(of(conv)->store, NULL);
}

/* ---- finding ---- */

#define COLUMNS                                                                                    \
        "ref, kind, name, mime, state, utf8, size, lines, sha256, created, hint, deleted_at,"      \
        " deleted_by, lease > clock_timestamp()"

static void copy(char *to, size_t room, struct str from)
{
        size_t n = from.n < room ? from.n : room - 1;
        if (n)
                memcpy(to, from.p, n);
        to[n] = '\0';
}

static void take_row(const PGresult *r, int row, struct artifact_info *out)
{
        *out = (struct artifact_info){.state = (enum artifact_state)pg_get_u64(r, row, 4),
            .utf8 = pg_get_bool(r, row, 5),
            .size = pg_get_u64(r, row, 6),
            .lines = pg_get_u64(r, row, 7),
            .created = (int64_t)pg_get_u64(r, row, 9),
            .deleted_at = (int64_t)pg_get_u64(r, row, 11)};
        copy(out->id, sizeof out->id, pg_get(r, row, 0));
        copy(out->kind, sizeof out->kind, pg_get(r, row, 1));
        copy(out->name, sizeof out->name, pg_get(r, row, 2));
        copy(out->mime, sizeof out->mime, pg_get(r, row, 3));
        copy(out->sha256, sizeof out->sha256, pg_get(r, row, 8));
        copy(out->hint, sizeof out->hint, pg_get(r, row, 10));
        copy(out->deleted_by, sizeof out->deleted_by, pg_get(r, row, 12));
        out->live = out->state == ARTIFACT_OPEN && pg_get_bool(r, row, 13);
}

int pg_artifact_find(
    struct backend_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(
            &q, "SELECT " COLUMNS " FROM artifact WHERE project = $1 AND uid = $2 AND ref = $3");
        pg_key(&q, of(conv));
        pg_text(&q, id);
        int rc = pg_run(of(conv)->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r))
                take_row(r, 0, out);
        else
                rc = error_set(err, STENO_ENOTFOUND, "no context file \"%.*s\"",
                    (int)(id.n > 100 ? 100 : id.n), id.p);
        libpq.clear(r);
        return rc;
}

int pg_artifact_each(struct backend_conv *conv,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "SELECT " COLUMNS " FROM artifact WHERE project = $1 AND uid = $2 ORDER BY ref DESC");
        pg_key(&q, of(conv));
        int rc = pg_run(of(conv)->store, &q, &r, err);
        if (rc)
                return rc;
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                struct artifact_info info;
                take_row(r, i, &info);
                rc = each(ctx, &info);
        }
        libpq.clear(r);
        return rc;
}

int pg_artifact_lines(struct backend_conv *conv, const struct artifact_info *info, char **p,
    size_t *n, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        *p = NULL;
        *n = 0;
        pg_query_init(
            &q, "SELECT line_index FROM artifact WHERE project = $1 AND uid = $2 AND ref = $3");
        pg_key(&q, of(conv));
        pg_cstr(&q, info->id);
        int rc = pg_run(of(conv)->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r) && pg_get(r, 0, 0).n) {
                struct str index = pg_get(r, 0, 0);
                *p = malloc(index.n);
                if (*p) {
                        memcpy(*p, index.p, index.n);
                        *n = index.n;
                } else {
                        rc = error_nomem(err);
                }
        }
        libpq.clear(r);
        return rc;
}

/* A description is not lost without its bytes here. */
int pg_artifact_relist(struct backend_conv *conv, const struct artifact_info *said, struct str call,
    bool *done, struct steno_error *err)
{
        (void)conv, (void)said, (void)call, (void)err;
        *done = false;
        return 0;
}

/* ---- reading ---- */

struct pg_reader {
        struct backend_reader base;
        struct pg_conv *conv;
        char id[40];
        struct pg_blob_reader blob;
};

/* Where the bytes are now: an output that is closed may go from rows into the bucket. */
static int find_blob(struct pg_reader *r, struct steno_error *err)
{
        struct pg_query q;
        PGresult *rows;
        pg_query_init(&q, "SELECT blob, etag FROM artifact WHERE project = $1 AND uid = $2 AND ref"
                          " = $3 AND blob IS NOT NULL");
        pg_key(&q, r->conv);
        pg_cstr(&q, r->id);
        int rc = pg_run(r->conv->store, &q, &rows, err);
        if (rc)
                return rc;
        if (libpq.ntuples(rows)) {
                copy(r->blob.key, sizeof r->blob.key, pg_get(rows, 0, 0));
                copy(r->blob.etag, sizeof r->blob.etag, pg_get(rows, 0, 1));
        }
        libpq.clear(rows);
        return 0;
}

int pg_artifact_open(struct backend_conv *conv, const struct artifact_info *info,
    struct backend_reader **out, uint64_t *size, struct steno_error *err)
{
        struct artifact_info now;
        int rc = pg_artifact_find(conv, str_of(info->id), &now, err);
        struct pg_reader *r = rc ? NULL : calloc(1, sizeof *r);
        if (!r)
                return rc ? rc : error_nomem(err);
        r->base.ops = &postgres_backend;
        r->conv = of(conv);
        memcpy(r->id, now.id, sizeof r->id);
        pg_blob_reader_init(&r->blob);
        rc = now.size > PG_BLOB_MIN ? find_blob(r, err) : 0;
        if (rc) {
                pg_reader_close(&r->base);
                return rc;
        }
        *size = now.size;
        *out = &r->base;
        return 0;
}

/* One statement brings the pieces that the range touches, cut to it. */
ssize_t pg_chunk_read(
    struct pg_conv *c, const char *ref, uint64_t at, char *p, size_t n, struct steno_error *err)
{
        struct pg_query q;
        PGresult *rows;
        size_t done = 0;
        pg_query_init(&q,
            "SELECT substring(bytes FROM greatest($4::bigint - at, 0)::int + 1 FOR"
            " least($5::bigint - greatest($4::bigint, at), octet_length(bytes))::int) FROM chunk"
            " WHERE project = $1 AND uid = $2 AND ref = $3 AND at < $5 AND at > $4::bigint -"
            " $6::bigint AND at + octet_length(bytes) > $4 ORDER BY at");
        pg_key(&q, c);
        pg_cstr(&q, ref);
        pg_u64(&q, at);
        pg_u64(&q, at + n);
        pg_u64(&q, CHUNK + 1);
        int rc = pg_run(c->store, &q, &rows, err);
        if (rc)
                return rc;
        for (int i = 0; i < libpq.ntuples(rows) && done < n; i++) {
                struct str piece = pg_get(rows, i, 0);
                size_t take = piece.n < n - done ? piece.n : n - done;
                memcpy(p + done, piece.p, take);
                done += take;
        }
        libpq.clear(rows);
        return (ssize_t)done;
}

ssize_t pg_reader_read(
    struct backend_reader *reader, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        struct pg_reader *r = (struct pg_reader *)reader;
        size_t done = 0;
        while (done < n && !r->blob.key[0]) {
                size_t piece = n - done < 4 * CHUNK ? n - done : 4 * CHUNK;
                ssize_t got =
                    pg_chunk_read(r->conv, r->id, at + done, (char *)p + done, piece, err);
                if (got < 0)
                        return got;
                done += (size_t)got;
                if ((size_t)got == piece)
                        continue;
                /* The end; or it was closed since, and its rows are gone. */
                int rc = find_blob(r, err);
                if (rc)
                        return rc;
                if (!r->blob.key[0])
                        return (ssize_t)done;
        }
        if (done == n)
                return (ssize_t)done;
        ssize_t got =
            pg_blob_read(r->conv->store, &r->blob, at + done, (char *)p + done, n - done, err);
        return got < 0 ? got : (ssize_t)done + got;
}

/* Hashes what it hands on. */
struct hashing {
        struct sha256 sha;
        steno_sink sink;
        void *ctx;
};

static int hash_on(void *ctx, const void *p, size_t n)
{
        struct hashing *h = ctx;
        hash_sha256_update(&h->sha, p, n);
        return h->sink ? h->sink(h->ctx, p, n) : 0;
}

static int read_whole(struct backend_reader *r, const struct artifact_info *info, struct hashing *h,
    struct steno_error *err)
{
        char *block = malloc(CHUNK);
        int rc = block ? 0 : error_nomem(err);
        for (uint64_t at = 0; rc == 0 && at < info->size;) {
                ssize_t got = pg_reader_read(r, at, block, CHUNK, err);
                if (got <= 0)
                        rc = got < 0 ? (int)got
                                     : error_set(err, STENO_ECORRUPT,
                                           "the bytes of %s became fewer while they were read",
                                           info->id);
                else if (hash_on(h, block, (size_t)got))
                        rc = error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
                at += got > 0 ? (uint64_t)got : 0;
        }
        free(block);
        return rc;
}

int pg_reader_whole(struct backend_reader *reader, const struct artifact_info *info,
    steno_sink sink, void *ctx, struct steno_error *err)
{
        struct pg_reader *r = (struct pg_reader *)reader;
        unsigned char sum[SHA256_SIZE];
        char hex[SHA256_HEX];
        struct hashing h = {.sink = sink, .ctx = ctx};
        if (hash_sha256_init(&h.sha))
                return error_nomem(err);
        int rc = r->blob.key[0]
                     ? pg_blob_stream(r->conv->store, &r->blob, info->size, hash_on, &h, err)
                     : read_whole(reader, info, &h, err);
        hash_sha256_finish(&h.sha, sum);
        hash_hex(sum, sizeof sum, hex);
        if (rc == 0 && info->sha256[0] && strcmp(hex, info->sha256) != 0)
                rc =
                    error_set(err, STENO_ECORRUPT, "%s has other bytes than were stored", info->id);
        return rc;
}

void pg_reader_close(struct backend_reader *reader)
{
        struct pg_reader *r = (struct pg_reader *)reader;
        pg_blob_reader_release(&r->blob);
        free(r);
}

int pg_artifact_verify(
    struct backend_conv *conv, const struct artifact_info *info, struct steno_error *err)
{
        struct backend_reader *r;
        uint64_t size;
        int rc = pg_artifact_open(conv, info, &r, &size, err);
        if (rc)
                return rc;
        rc = pg_reader_whole(r, info, NULL, NULL, err);
        pg_reader_close(r);
        return rc;
}

/* ---- parts ---- */

int pg_part_put(
    struct backend_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err)
{
        struct pg_query q;
        if (hash_sha256_hex(token.p, token.n, name))
                return error_nomem(err);
        int rc = pg_quota_take(of(conv), token.n, err);
        if (rc)
                return rc;
        pg_query_init(&q, "INSERT INTO part VALUES ($1, $2, $3, $4) ON CONFLICT (project, uid,"
                          " name) DO UPDATE SET uses = part.uses + 1");
        pg_key(&q, of(conv));
        pg_cstr(&q, name);
        pg_bytes(&q, token);
        long n = pg_change(of(conv)->store, &q, err);
        return n < 0 ? (int)n : 0;
}

/* Is it there as it was stored? The server makes the sum: nothing has to be fetched for it. */
static int check_part(
    const struct pg_conv *c, struct str name, uint64_t size, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "SELECT octet_length(bytes)::bigint, encode(sha256(bytes), 'hex') FROM part WHERE"
            " project = $1 AND uid = $2 AND name = $3");
        pg_key(&q, c);
        pg_text(&q, name);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        if (!libpq.ntuples(r) || pg_get_u64(r, 0, 0) != size)
                rc = error_set(err, STENO_ECORRUPT, "part %.16s... is not there", name.p);
        else if (!str_eq(name, pg_get(r, 0, 1)))
                rc = error_set(
                    err, STENO_ECORRUPT, "part %.16s... has other bytes than were stored", name.p);
        libpq.clear(r);
        return rc;
}

/* The bytes at `at`, at most a chunk of them; *n: how many. */
static int send_piece(const struct pg_conv *c, struct str name, uint64_t at, steno_sink sink,
    void *ctx, uint64_t *n, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT substring(bytes FROM $4::bigint::int FOR $5::bigint::int) FROM"
                          " part WHERE project = $1 AND uid = $2 AND name = $3");
        pg_key(&q, c);
        pg_text(&q, name);
        pg_u64(&q, at + 1);
        pg_u64(&q, CHUNK);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        struct str bytes = libpq.ntuples(r) ? pg_get(r, 0, 0) : (struct str){0};
        *n = bytes.n;
        if (!bytes.n)
                rc = error_set(err, STENO_ECORRUPT, "part %.16s... is not there", name.p);
        else if (sink(ctx, bytes.p, bytes.n))
                rc = error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
        libpq.clear(r);
        return rc;
}

int pg_part_get(struct backend_conv *conv, struct str name, uint64_t size, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        int rc = check_part(of(conv), name, size, err);
        uint64_t n = 0;
        for (uint64_t at = 0; rc == 0 && sink && at < size; at += n)
                rc = send_piece(of(conv), name, at, sink, ctx, &n, err);
        return rc;
}
