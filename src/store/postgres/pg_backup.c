/*
 * pg_backup.c - a backup of a store in PostgreSQL: the folder or file that one of files would have.
 *
 * The work is done by the backup of that kind. What it takes as it is (documents, the log of seals,
 * disks) is laid out in a scratch store first; conversations are laid out when it asks for them,
 * each of one moment. Everything that was acknowledged before the backup began is committed then,
 * and so it is in every transaction that begins later.
 *
 * A row that is changed gets another xmin, which nobody can set: the stamp of a conversation is a
 * hash of those of its rows, but for records and events, which are only ever added (the row of the
 * tail changes with the first, and each run has a last one of the others) unless a purge makes them
 * anew, which is a change of the tail. A standby that takes over without the last transactions
 * gives their numbers out again: so the stamp has also what such rows hold when they differ, as
 * times, sizes, sums and the id of the last record. Rows that somebody changes by hand are not
 * noticed.
 */
#include "store/postgres/pg.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

#define DOCUMENT_MAX (64 * MIB)

struct source {
        struct pg_store *store;
        struct backend_conv *conv; /* that is laid out */
        struct pg_layout layout;
};

/* ---- what it takes as it is ---- */

static int lay_out_documents(struct pg_store *s, struct pg_scratch *x, struct steno_error *err)
{
        static const char *const NAMES[] = {
            "store.json", "projects.json", "tokens.json", "accepted.jsonl"};
        int root = x->fs.open_root(&x->fs, x->path, false), rc = 0, sys = root < 0 ? root : 0;
        for (size_t i = 0; rc == 0 && sys == 0 && i < sizeof NAMES / sizeof *NAMES; i++) {
                char *text = NULL;
                size_t n = 0;
                rc = pg_document_read(&s->base, NAMES[i], DOCUMENT_MAX, &text, &n, NULL, err);
                if (rc == 0)
                        sys = fs_replace(&x->fs, root, NAMES[i], text, n);
                rc = rc == STENO_ENOTFOUND ? 0 : rc;
                free(text);
        }
        if (root >= 0)
                x->fs.close(&x->fs, root);
        return sys ? error_sys(err, sys, "laying out documents of the store") : rc;
}

struct disks {
        struct backend_disk from;
        struct backend_disk to;
        struct steno_error *err;
};

static int lay_out_file(void *ctx, struct str info)
{
        struct disks *d = ctx;
        struct json j;
        struct buf made;
        size_t n = 0;
        char *bytes = NULL, *path = NULL, *mime = NULL;
        json_init(&j);
        buf_init(&made, META_MAX);
        int rc = json_parse(&j, info.p, info.n, NULL, d->err);
        if (rc == 0) {
                path = json_dup_string(&j, json_get(&j, 0, "path"));
                mime = json_dup_string(&j, json_get(&j, 0, "mime"));
                rc = path && mime ? pg_disks.read(&d->from, str_of(path), &bytes, &n, d->err)
                                  : error_nomem(d->err);
        }
        if (rc == 0) {
                struct backend_disk_file file = {.path = str_of(path),
                    .mime = str_of(mime),
                    .meta = json_raw(&j, json_get(&j, 0, "meta")),
                    .bytes = str_span(bytes, n)};
                rc = files_backend.disks->put(&d->to, &file, &made, d->err);
        }
        json_release(&j);
        buf_release(&made);
        free(bytes);
        free(path);
        free(mime);
        return rc == STENO_ENOTFOUND ? 0 : rc; /* removed meanwhile */
}

static int lay_out_disk(struct disks *d)
{
        struct buf made;
        buf_init(&made, META_MAX);
        int rc = files_backend.disks->create(&d->to, &made, d->err);
        buf_release(&made);
        if (rc == 0)
                rc = pg_disks.each_file(&d->from, lay_out_file, d, d->err);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

static int lay_out_disks(struct pg_store *s, struct backend_store *to, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT project, id FROM disk");
        int rc = pg_run(s, &q, &r, err);
        if (rc)
                return rc;
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                struct disks d = {.err = err};
                d.from = (struct backend_disk){&s->base, pg_get(r, i, 0), pg_get(r, i, 1)};
                d.to = (struct backend_disk){to, d.from.project, d.from.id};
                rc = lay_out_disk(&d);
        }
        libpq.clear(r);
        return rc;
}

/* What a backup takes from here may be shared with it, and so it is synced. */
static int lay_out_store(struct pg_store *s, struct pg_scratch **out, struct steno_error *err)
{
        struct pg_scratch *x;
        int rc = pg_scratch_open(s, &x, err);
        if (rc)
                return rc;
        x->fs = fs_real_table;
        rc = lay_out_documents(s, x, err);
        if (rc == 0)
                rc = pg_seal_lay_out(s, x, err);
        if (rc == 0)
                rc = lay_out_disks(s, x->store, err);
        if (rc)
                pg_scratch_close(x);
        else
                *out = x;
        return rc;
}

/* ---- conversations ---- */

static int walk(void *ctx, backend_conv_fn each, void *each_ctx, struct steno_error *err)
{
        return pg_each_conv(&((struct source *)ctx)->store->base, NULL, each, each_ctx, err);
}

static int trash(void *ctx, struct trash_list *out, struct steno_error *err)
{
        return pg_trash_list(&((struct source *)ctx)->store->base, false, out, err);
}

static int find(struct source *s, struct str project, struct str id,
    const struct trash_item *trashed, struct backend_conv **out, struct steno_error *err)
{
        return trashed ? pg_trash_open(&s->store->base, trashed, out, err)
                       : pg_conv_open(&s->store->base, project, id, out, err);
}

#define OURS " WHERE project = $1 AND uid = $2"
#define ROWS(table, key, content)                                                                  \
        "(SELECT string_agg(concat_ws(':', " key ", xmin::text, " content "), ',' ORDER BY " key   \
        ") FROM " table OURS ")"

#define LAST_RECORD "(SELECT id FROM record" OURS " ORDER BY seq DESC LIMIT 1)"
#define LAST_EVENT                                                                                 \
        "(SELECT concat_ws(':', e.seq, e.at) FROM event e WHERE e.project = $1 AND e.uid = $2"     \
        " AND e.name = run.name ORDER BY e.seq DESC LIMIT 1)"

#define CONV ROWS("conv", "uid", "md5(meta), title, deleted_at")
#define TAILS ROWS("tail", "uid", "last_seq, bytes, last_amend, updated, generation")
#define SEALS ROWS("seal", "uid", "md5(notes), last_seq, generation")
#define PARTS ROWS("part", "name", "uses")
#define OUTPUTS ROWS("artifact", "ref", "state, size, sha256, deleted_at")
#define RUNS ROWS("run", "name", "at, seq, epoch, " LAST_EVENT)

static int take_stamp(struct pg_conv *c, char out[SHA256_HEX], struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT concat_ws('/', $2::text, " CONV ", " TAILS ", " SEALS ", " PARTS
                          ", " OUTPUTS ", " RUNS ", " LAST_RECORD ")");
        pg_key(&q, c);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        struct str rows = pg_get(r, 0, 0);
        rc = hash_sha256_hex(rows.p, rows.n, out) ? error_nomem(err) : 0;
        libpq.clear(r);
        return rc;
}

static int stamp(void *ctx, struct str project, struct str id, const struct trash_item *trashed,
    char out[SHA256_HEX], struct steno_error *err)
{
        struct backend_conv *conv;
        int rc = find(ctx, project, id, trashed, &conv, err);
        if (rc)
                return rc;
        rc = take_stamp((struct pg_conv *)conv, out, err);
        pg_conv_release(conv);
        return rc;
}

static void close_copy(void *ctx)
{
        struct source *s = ctx;
        pg_layout_close(&s->layout);
        if (s->conv)
                pg_conv_release(s->conv);
        s->conv = NULL;
}

static int open_copy(void *ctx, struct str project, struct str id, const struct trash_item *trashed,
    struct backup_copy *out, struct steno_error *err)
{
        struct source *s = ctx;
        int rc = find(s, project, id, trashed, &s->conv, err);
        if (rc == 0)
                rc = pg_layout_open((struct pg_conv *)s->conv, PG_LAYOUT_LATER, &s->layout, err);
        if (rc == 0)
                rc = take_stamp(&s->layout.snapshot.conv, out->stamp, err);
        if (rc) {
                close_copy(s);
                return rc;
        }
        struct pg_conv *c = (struct pg_conv *)s->conv;
        out->conv = s->layout.conv;
        out->log = hash_64(c->uid, strlen(c->uid)) + s->layout.generation;
        return 0;
}

static int fill(void *ctx, const char *path, struct steno_error *err)
{
        return pg_layout_fill(&((struct source *)ctx)->layout, path, err);
}

static bool has_lost(void *ctx)
{
        struct source *s = ctx;
        pg_snapshot_close(&s->layout.snapshot); /* which may have the only connection */
        return pg_generation(s->conv) != s->layout.generation;
}

/* ---- all of it ---- */

/* `path` is of a backup in a folder, or of the folder where one in a file is put together. */
static int back_up(struct backend_store *store, const char *path, bool stream, steno_sink sink,
    void *ctx, const struct backend_backup *asked, char **report, struct steno_error *err)
{
        struct source s = {.store = (struct pg_store *)store};
        const struct backup_source from = {
            walk, trash, stamp, open_copy, fill, has_lost, close_copy, &s};
        struct backend_backup ours = *asked;
        struct pg_scratch *x;
        int rc = lay_out_store(s.store, &x, err);
        if (rc)
                return rc;
        ours.from = &from;
        rc = stream ? files_backend.backup_stream(x->store, path, sink, ctx, &ours, report, err)
                    : files_backend.backup(x->store, path, &ours, report, err);
        pg_scratch_close(x);
        return rc;
}

int pg_backup(struct backend_store *store, const char *path, const struct backend_backup *asked,
    char **report, struct steno_error *err)
{
        return back_up(store, path, false, NULL, NULL, asked, report, err);
}

int pg_backup_stream(struct backend_store *store, const char *scratch, steno_sink sink, void *ctx,
    const struct backend_backup *asked, char **report, struct steno_error *err)
{
        return back_up(store, scratch, true, sink, ctx, asked, report, err);
}
