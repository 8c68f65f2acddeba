/*
 * pg_disk.c - disks in PostgreSQL (store/backend_disks.h): a row for each, and one for each file.
 */
#include "store/postgres/pg.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

#define FILE_COLUMNS "path, mime, octet_length(bytes)::bigint, sha256, meta, created, updated"

static struct pg_store *of(const struct backend_disk *disk)
{
        return (struct pg_store *)disk->store;
}

static void put_now(const struct pg_store *s, char at[TIME_TEXT])
{
        time_format(s->env->now(s->env), at);
}

static int no_disk(struct str id, struct steno_error *err)
{
        return error_set(err, STENO_ENOTFOUND, "no disk \"%.*s\"", (int)id.n, id.p);
}

static int no_file(struct str path, struct steno_error *err)
{
        return error_set(
            err, STENO_ENOTFOUND, "no file \"%.*s\"", (int)(path.n > 150 ? 150 : path.n), path.p);
}

static void key(struct pg_query *q, const struct backend_disk *disk)
{
        pg_text(q, disk->project);
        pg_text(q, disk->id);
}

/* ---- disks ---- */

static void put_disk(const PGresult *r, int row, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_str(&w, "id", pg_get(r, row, 0));
        jsonw_field_str(&w, "createdAt", pg_get(r, row, 1));
        jsonw_field_str(&w, "updatedAt", pg_get(r, row, 2));
        jsonw_object_end(&w);
}

static int disk_get(const struct backend_disk *disk, struct buf *out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT id, created, updated FROM disk WHERE project = $1 AND id = $2");
        key(&q, disk);
        int rc = pg_run(of(disk), &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r)) {
                if (out)
                        put_disk(r, 0, out);
                rc = out ? buf_check(out, err) : 0;
        } else {
                rc = no_disk(disk->id, err);
        }
        libpq.clear(r);
        return rc;
}

static int disk_create(const struct backend_disk *disk, struct buf *out, struct steno_error *err)
{
        struct pg_query q;
        char at[TIME_TEXT];
        put_now(of(disk), at);
        pg_query_init(&q, "INSERT INTO disk VALUES ($1, $2, $3, $3) ON CONFLICT DO NOTHING");
        key(&q, disk);
        pg_cstr(&q, at);
        long n = pg_change(of(disk), &q, err);
        if (n == 0)
                return error_set(err, STENO_ECONFLICT, "there is a disk \"%.*s\" already",
                    (int)disk->id.n, disk->id.p);
        return n < 0 ? (int)n : disk_get(disk, out, err);
}

static int disk_remove(const struct backend_disk *disk, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "WITH files AS (DELETE FROM disk_file WHERE project = $1 AND disk = $2) DELETE FROM"
            " disk WHERE project = $1 AND id = $2 RETURNING 1");
        q.patience_ms = PG_LONG_MS;
        key(&q, disk);
        int rc = pg_run(of(disk), &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r) ? 0 : no_disk(disk->id, err);
        libpq.clear(r);
        return rc;
}

static int disk_each(struct backend_store *store, struct str project, backend_disk_fn each,
    void *ctx, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        struct buf text;
        pg_query_init(&q, "SELECT id, created, updated FROM disk WHERE project = $1");
        pg_text(&q, project);
        int rc = pg_run((struct pg_store *)store, &q, &r, err);
        if (rc)
                return rc;
        buf_init(&text, META_MAX);
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                buf_clear(&text);
                put_disk(r, i, &text);
                rc = buf_check(&text, err);
                if (rc == 0)
                        rc = each(ctx, buf_str(&text));
        }
        buf_release(&text);
        libpq.clear(r);
        return rc;
}

/* ---- files ---- */

static int put_file(const PGresult *r, int row, struct buf *out, struct steno_error *err)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_str(&w, "path", pg_get(r, row, 0));
        jsonw_field_str(&w, "mime", pg_get(r, row, 1));
        jsonw_field_u64(&w, "size", pg_get_u64(r, row, 2));
        jsonw_field_str(&w, "sha256", pg_get(r, row, 3));
        jsonw_field_raw(&w, "meta", pg_get(r, row, 4));
        jsonw_field_str(&w, "createdAt", pg_get(r, row, 5));
        jsonw_field_str(&w, "updatedAt", pg_get(r, row, 6));
        jsonw_object_end(&w);
        return buf_check(out, err);
}

static int disk_file(
    const struct backend_disk *disk, struct str path, struct buf *out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        int rc = disk_get(disk, NULL, err);
        if (rc)
                return rc;
        pg_query_init(&q, "SELECT " FILE_COLUMNS " FROM disk_file WHERE project = $1 AND disk = $2"
                          " AND path = $3");
        key(&q, disk);
        pg_text(&q, path);
        rc = pg_run(of(disk), &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r) ? put_file(r, 0, out, err) : no_file(path, err);
        libpq.clear(r);
        return rc;
}

/* Room for one more, unless it is there. */
static int has_room(const struct backend_disk *disk, struct str path, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT count(*) FROM disk_file WHERE project = $1 AND disk = $2 AND path"
                          " <> $3");
        key(&q, disk);
        pg_text(&q, path);
        int rc = pg_run(of(disk), &q, &r, err);
        if (rc)
                return rc;
        bool full = pg_get_u64(r, 0, 0) >= DISK_FILES_MAX;
        libpq.clear(r);
        return full ? error_set(err, STENO_ELIMIT, "a disk has at most %d files", DISK_FILES_MAX)
                    : 0;
}

/* One statement, with the disk's own time. */
static long write_file(
    const struct backend_disk *disk, const struct backend_disk_file *f, struct steno_error *err)
{
        struct pg_query q;
        char at[TIME_TEXT], sha256[SHA256_HEX];
        if (hash_sha256_hex(f->bytes.n ? f->bytes.p : "", f->bytes.n, sha256))
                return error_nomem(err);
        put_now(of(disk), at);
        pg_query_init(&q,
            f->keep_bytes
                ? "WITH d AS (UPDATE disk SET updated = $4 WHERE project = $1 AND id = $2 RETURNING"
                  " 1) UPDATE disk_file SET meta = coalesce($5, meta), updated = $4 FROM d WHERE"
                  " project = $1 AND disk = $2 AND path = $3"
                : "WITH d AS (UPDATE disk SET updated = $4 WHERE project = $1 AND id = $2 RETURNING"
                  " 1) INSERT INTO disk_file AS f (project, disk, path, mime, meta, sha256, "
                  "created,"
                  " updated, bytes) SELECT $1, $2, $3, $6, coalesce($5, '{}'::bytea), $7, $4, $4,"
                  " $8 FROM d ON CONFLICT (project, disk, path) DO UPDATE SET mime = $6, meta ="
                  " coalesce($5, f.meta), sha256 = $7, updated = $4, bytes = $8");
        key(&q, disk);
        pg_text(&q, f->path);
        pg_cstr(&q, at);
        if (f->meta.p)
                pg_bytes(&q, f->meta);
        else
                pg_null_bytes(&q);
        if (!f->keep_bytes) {
                pg_text(&q, f->mime.n ? f->mime : STR("application/octet-stream"));
                pg_cstr(&q, sha256);
                pg_bytes(&q, f->bytes);
        }
        return pg_change(of(disk), &q, err);
}

static int disk_put(const struct backend_disk *disk, const struct backend_disk_file *f,
    struct buf *out, struct steno_error *err)
{
        if (f->bytes.n > DISK_FILE_MAX)
                return error_set(err, STENO_ELIMIT, "a file of a disk has at most 16 MiB");
        int rc = disk_get(disk, NULL, err);
        if (rc == 0 && !f->keep_bytes)
                rc = has_room(disk, f->path, err);
        if (rc)
                return rc;
        long n = write_file(disk, f, err);
        if (n == 0)
                return f->keep_bytes ? no_file(f->path, err) : no_disk(disk->id, err);
        return n < 0 ? (int)n : disk_file(disk, f->path, out, err);
}

static int disk_read(const struct backend_disk *disk, struct str path, char **bytes, size_t *n,
    struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        int rc = disk_get(disk, NULL, err);
        if (rc)
                return rc;
        pg_query_init(
            &q, "SELECT bytes FROM disk_file WHERE project = $1 AND disk = $2 AND path = $3");
        key(&q, disk);
        pg_text(&q, path);
        rc = pg_run(of(disk), &q, &r, err);
        if (rc)
                return rc;
        struct str found = libpq.ntuples(r) ? pg_get(r, 0, 0) : (struct str){0};
        char *copy = found.p ? malloc(found.n + 1) : NULL;
        if (!found.p)
                rc = no_file(path, err);
        else if (!copy)
                rc = error_nomem(err);
        if (copy) {
                memcpy(copy, found.p, found.n);
                copy[found.n] = '\0';
                *bytes = copy;
                *n = found.n;
        }
        libpq.clear(r);
        return rc;
}

static int disk_unlink(const struct backend_disk *disk, struct str path, struct steno_error *err)
{
        struct pg_query q;
        char at[TIME_TEXT];
        int rc = disk_get(disk, NULL, err);
        if (rc)
                return rc;
        put_now(of(disk), at);
        pg_query_init(&q, "WITH d AS (UPDATE disk SET updated = $4 WHERE project = $1 AND id = $2)"
                          " DELETE FROM disk_file WHERE project = $1 AND disk = $2 AND path = $3");
        key(&q, disk);
        pg_text(&q, path);
        pg_cstr(&q, at);
        long n = pg_change(of(disk), &q, err);
        return n < 0 ? (int)n : n == 0 ? no_file(path, err) : 0;
}

static int disk_each_file(
    const struct backend_disk *disk, backend_disk_fn each, void *ctx, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        struct buf text;
        int rc = disk_get(disk, NULL, err);
        if (rc)
                return rc;
        pg_query_init(&q, "SELECT " FILE_COLUMNS " FROM disk_file WHERE project = $1 AND disk = $2"
                          " ORDER BY path");
        key(&q, disk);
        rc = pg_run(of(disk), &q, &r, err);
        if (rc)
                return rc;
        buf_init(&text, META_MAX);
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                buf_clear(&text);
                rc = put_file(r, i, &text, err);
                if (rc == 0)
                        rc = each(ctx, buf_str(&text));
        }
        buf_release(&text);
        libpq.clear(r);
        return rc;
}

const struct backend_disks pg_disks = {
    .create = disk_create,
    .get = disk_get,
    .remove = disk_remove,
    .each = disk_each,
    .put = disk_put,
    .file = disk_file,
    .read = disk_read,
    .unlink = disk_unlink,
    .each_file = disk_each_file,
};
