/*
 * pg_load.c - rows made of the files of a bundle: a conversation that comes in, and what a purge
 * left of one. All of it is one transaction.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/event.h"
#include "store/backend_lines.h"

#define ROWS_MAX 500 /* of one statement */
#define ROWS_BYTES (4 * MIB)

struct loading {
        struct pg_tx tx;
        const char *project;
        const char *uid;
        bool again; /* the rows are there, and only what differs is written */
        struct backend_bundle *from;
        struct backend_conv *copy;
        struct steno_error *err;
        struct buf line; /* of a file that comes in pieces */
        int (*take_line)(struct loading *l, struct str line);
        /* rows that wait */
        struct buf bytes;
        struct row {
                uint64_t seq;
                size_t at[4]; /* where id, key, text and line end in `bytes` */
                bool amends;
                bool has_key;
        } * rows;
        size_t count;
        /* of the records */
        uint64_t last_seq;
        uint64_t last_amend;
        char updated[TIME_TEXT];
        /* of the file at work */
        char name[PLAIN_NAME_MAX + 1]; /* a run, */
        char ref[40];                  /* or an output, */
        uint64_t at;                   /* so much of which was written */
        bool begun;
        bool finished;
};

static void key(struct pg_query *q, const struct loading *l)
{
        pg_cstr(q, l->project);
        pg_cstr(q, l->uid);
}

/* ---- rows ---- */

static struct str span(const struct loading *l, size_t row, int part)
{
        size_t before = part ? l->rows[row].at[part - 1] : row ? l->rows[row - 1].at[3] : 0;
        return str_span(l->bytes.p + before, l->rows[row].at[part] - before);
}

static const char INSERT_RECORDS[] =
    "INSERT INTO record (project, uid, seq, id, key, amends, line) SELECT $1, $2, v.* FROM"
    " (VALUES ";
static const char UPDATE_RECORDS[] =
    "UPDATE record r SET id = v.id, key = v.key, amends = v.amends, line = v.line FROM (VALUES ";
static const char INSERT_EVENTS[] =
    "INSERT INTO event (project, uid, name, seq, at, type, data) SELECT $1, $2, $3, v.* FROM"
    " (VALUES ";
static const char UPDATE_EVENTS[] = "UPDATE event e SET data = v.data FROM (VALUES ";

static const char *ending(const struct loading *l, bool events)
{
        if (events)
                return l->again ? ") AS v (seq, at, type, data) WHERE e.project = $1 AND e.uid ="
                                  " $2 AND e.name = $3 AND e.seq = v.seq AND e.data <> v.data"
                                : ") AS v";
        return l->again ? ") AS v (seq, id, key, amends, line) WHERE r.project = $1 AND r.uid = $2"
                          " AND r.seq = v.seq AND r.line <> v.line"
                        : ") AS v";
}

static void put_placeholders(struct buf *sql, size_t count, bool events, size_t from)
{
        for (size_t i = 0; i < count; i++) {
                size_t n = from + (events ? 4 : 5) * i;
                buf_puts(sql, i ? ", " : "");
                if (events)
                        buf_printf(sql, "($%zu::bigint, $%zu::text, $%zu::text, $%zu::bytea)", n,
                            n + 1, n + 2, n + 3);
                else
                        buf_printf(sql,
                            "($%zu::bigint, $%zu::text, $%zu::text, $%zu::bigint <> 0,"
                            " $%zu::bytea)",
                            n, n + 1, n + 2, n + 3, n + 4);
        }
}

static void put_row(struct pg_query *q, const struct loading *l, size_t i, bool events)
{
        pg_u64(q, l->rows[i].seq);
        pg_text(q, span(l, i, 0));
        if (events) {
                pg_text(q, span(l, i, 1));
        } else {
                if (l->rows[i].has_key)
                        pg_text(q, span(l, i, 1));
                else
                        pg_null(q);
                pg_u64(q, l->rows[i].amends);
        }
        pg_bytes(q, span(l, i, 3));
}

/* Writes what waits. */
static int flush(struct loading *l, bool events)
{
        struct buf sql;
        struct pg_query q;
        if (!l->count)
                return 0;
        buf_init(&sql, 0);
        buf_puts(&sql, events ? (l->again ? UPDATE_EVENTS : INSERT_EVENTS)
                              : (l->again ? UPDATE_RECORDS : INSERT_RECORDS));
        put_placeholders(&sql, l->count, events, events ? 4 : 3);
        buf_puts(&sql, ending(l, events));
        const char *text = buf_cstr(&sql);
        pg_query_init(&q, text);
        long n = text && !l->bytes.failed && pg_query_room(&q, (int)(3 + 5 * l->count))
                     ? 0
                     : error_nomem(l->err);
        if (n == 0) {
                key(&q, l);
                if (events)
                        pg_cstr(&q, l->name);
                for (size_t i = 0; i < l->count; i++)
                        put_row(&q, l, i, events);
                n = pg_tx_change(&l->tx, &q, l->err);
        }
        pg_query_release(&q);
        buf_release(&sql);
        l->count = 0;
        buf_clear(&l->bytes);
        if (n == PG_UNIQUE)
                return error_set(l->err, STENO_EPROTO, "two records have the same id or seq");
        return n < 0 ? (int)n : 0;
}

static void end_part(struct loading *l, int part)
{
        l->rows[l->count].at[part] = l->bytes.n;
}

static int end_row(struct loading *l, bool events)
{
        l->count++;
        return l->count == ROWS_MAX || l->bytes.n >= ROWS_BYTES ? flush(l, events) : 0;
}

/* ---- records ---- */

static int take_record(struct loading *l, struct str line)
{
        struct record rec;
        struct str id_key;
        struct row *row = &l->rows[l->count];
        if (!record_read(line, &rec) || rec.seq != l->last_seq + 1)
                return error_set(l->err, STENO_ECORRUPT, "record %llu cannot be read",
                    (unsigned long long)l->last_seq + 1);
        *row = (struct row){.seq = rec.seq, .has_key = about_key(rec.x, &id_key)};
        json_unescape(rec.id, &l->bytes, NULL);
        end_part(l, 0);
        if (row->has_key)
                json_unescape(id_key, &l->bytes, NULL);
        end_part(l, 1);
        end_part(l, 2);
        row->amends =
            str_starts(rec.x, "{\"kind\":") && !str_starts(rec.x, "{\"kind\":\"tombstone\"");
        buf_put_str(&l->bytes, line);
        buf_putc(&l->bytes, '\n');
        end_part(l, 3);
        l->last_seq = rec.seq;
        l->last_amend = row->amends ? rec.seq : l->last_amend;
        snprintf(l->updated, sizeof l->updated, "%.*s", (int)rec.at.n, rec.at.p);
        return end_row(l, false);
}

/* ---- journals ---- */

static int begin_run(struct loading *l, const struct run_event *e)
{
        struct pg_query q;
        l->begun = true;
        pg_query_init(
            &q, "INSERT INTO run (project, uid, name, at, head) VALUES ($1, $2, $3, $4, $5)");
        key(&q, l);
        pg_cstr(&q, l->name);
        pg_text(&q, e->at);
        pg_bytes(&q, e->data);
        long n = pg_tx_change(&l->tx, &q, l->err);
        return n < 0 ? (int)n : 0;
}

static int add_event(struct loading *l, const struct run_event *e)
{
        l->rows[l->count] = (struct row){.seq = e->seq};
        buf_put_str(&l->bytes, e->at);
        end_part(l, 0);
        buf_put_str(&l->bytes, e->type);
        end_part(l, 1);
        end_part(l, 2);
        buf_put_str(&l->bytes, e->data);
        end_part(l, 3);
        l->at = e->seq;
        l->finished = l->finished || event_is(e->type, STENO_EVENT_RUN_FINISHED);
        return end_row(l, true);
}

static int take_event(struct loading *l, struct str line)
{
        struct run_event e;
        if (!backend_event_read(line, &e))
                return 0; /* a journal is read around what is damaged */
        return l->begun ? add_event(l, &e) : begin_run(l, &e);
}

static int end_run(struct loading *l)
{
        struct pg_query q;
        int rc = flush(l, true);
        if (rc)
                return rc;
        pg_query_init(&q, "UPDATE run SET seq = $4, finished = $5::bigint <> 0 WHERE project = $1"
                          " AND uid = $2 AND name = $3");
        key(&q, l);
        pg_cstr(&q, l->name);
        pg_u64(&q, l->at);
        pg_u64(&q, l->finished);
        long n = pg_tx_change(&l->tx, &q, l->err);
        return n < 0 ? (int)n : 0;
}

/* ---- outputs and parts ---- */

/* Two that are gone may have had one name. */
static void put_base(struct pg_query *q, const struct artifact_info *info)
{
        const char *dot = strrchr(info->name, '.');
        size_t n = dot ? (size_t)(dot - info->name) : strlen(info->name);
        pg_text(q, info->state == ARTIFACT_DELETED ? str_of(info->id) : str_span(info->name, n));
}

static int insert_output(struct loading *l, const struct artifact_info *info)
{
        struct pg_query q;
        pg_query_init(&q,
            "INSERT INTO artifact (project, uid, ref, kind, base, name, mime, state, utf8, size,"
            " lines, sha256, created, hint, deleted_at, deleted_by) VALUES ($1, $2, $3, $4, $5, $6,"
            " $7, $8, $9::bigint <> 0, $10, $11, $12, $13, $14, $15, $16)");
        key(&q, l);
        pg_cstr(&q, info->id);
        pg_cstr(&q, info->kind);
        put_base(&q, info);
        pg_cstr(&q, info->name);
        pg_cstr(&q, info->mime);
        pg_u64(&q, info->state);
        pg_u64(&q, info->utf8);
        pg_u64(&q, info->size);
        pg_u64(&q, info->lines);
        pg_cstr(&q, info->sha256);
        pg_u64(&q, (uint64_t)info->created);
        pg_cstr(&q, info->hint);
        pg_u64(&q, (uint64_t)info->deleted_at);
        pg_cstr(&q, info->deleted_by);
        long n = pg_tx_change(&l->tx, &q, l->err);
        if (n == PG_UNIQUE)
                return error_set(l->err, STENO_EPROTO, "two outputs have the same name");
        return n < 0 ? (int)n : 0;
}

static int take_listed(struct loading *l, struct str line)
{
        struct artifact_info info;
        struct json j;
        json_init(&j);
        int rc = backend_manifest_read(&j, line, &info);
        json_release(&j);
        return rc < 0 ? error_nomem(l->err) : rc == 0 ? 0 : insert_output(l, &info);
}

/* Whose file is it? */
static int find_output(struct loading *l, const char *path)
{
        struct pg_query q;
        PGresult *r;
        const char *slash = strchr(path, '/');
        pg_query_init(&q, "SELECT ref FROM artifact WHERE project = $1 AND uid = $2 AND kind = $3"
                          " AND name = $4 AND state < 2");
        key(&q, l);
        pg_text(&q, str_span(path, (size_t)(slash - path)));
        pg_cstr(&q, slash + 1);
        int rc = pg_tx_run(&l->tx, &q, &r, l->err);
        if (rc)
                return rc;
        struct str ref = libpq.ntuples(r) ? pg_get(r, 0, 0) : (struct str){0};
        snprintf(l->ref, sizeof l->ref, "%.*s", (int)ref.n, ref.n ? ref.p : "");
        libpq.clear(r);
        return ref.n ? 0 : error_set(l->err, STENO_EPROTO, "%.100s belongs to no output", path);
}

static int put_chunk(struct loading *l, struct str bytes)
{
        struct pg_query q;
        pg_query_init(&q, "INSERT INTO chunk VALUES ($1, $2, $3, $4, $5)");
        key(&q, l);
        pg_cstr(&q, l->ref);
        pg_u64(&q, l->at);
        pg_bytes(&q, bytes);
        long n = pg_tx_change(&l->tx, &q, l->err);
        l->at += bytes.n;
        return n < 0 ? (int)n : 0;
}

/* ---- files ---- */

static int to_text(void *ctx, const void *p, size_t n)
{
        struct loading *l = ctx;
        buf_put(&l->line, p, n);
        return l->line.failed;
}

static int to_lines(void *ctx, const void *p, size_t n)
{
        struct loading *l = ctx;
        const char *at = p, *end = at + n;
        int rc = 0;
        while (rc == 0 && at < end) {
                const char *lf = memchr(at, '\n', (size_t)(end - at));
                buf_put(&l->line, at, (size_t)((lf ? lf : end) - at));
                if (lf) {
                        rc = l->line.failed ? error_nomem(l->err)
                                            : l->take_line(l, buf_str(&l->line));
                        buf_clear(&l->line);
                }
                at = lf ? lf + 1 : end;
        }
        return rc;
}

static int to_chunks(void *ctx, const void *p, size_t n)
{
        struct loading *l = ctx;
        const char *at = p;
        int rc = 0;
        while (rc == 0 && n) {
                size_t take = MIB - l->line.n < n ? MIB - l->line.n : n;
                buf_put(&l->line, at, take);
                at += take;
                n -= take;
                if (l->line.failed)
                        rc = error_nomem(l->err);
                else if (l->line.n == MIB) {
                        rc = put_chunk(l, buf_str(&l->line));
                        buf_clear(&l->line);
                }
        }
        return rc;
}

/* Sends a file to a sink, whose own error counts. */
static int send(struct loading *l, size_t i, steno_sink sink)
{
        struct steno_error why = {0};
        buf_clear(&l->line);
        l->err->code = 0;
        int rc = backend_bundle_send(l->from, i, sink, l, &why);
        if (rc && l->err->code)
                return l->err->code;
        if (rc)
                *l->err = why;
        return rc;
}

static int load_lines(struct loading *l, size_t i, int (*take)(struct loading *l, struct str line))
{
        l->take_line = take;
        l->begun = l->finished = false;
        l->at = 0;
        return send(l, i, to_lines);
}

static int load_run(struct loading *l, size_t i, const char *file)
{
        snprintf(l->name, sizeof l->name, "%.*s", (int)(strlen(file) - strlen(".jsonl")), file);
        int rc = load_lines(l, i, take_event);
        return rc ? rc : end_run(l);
}

static int load_output(struct loading *l, size_t i, const char *path)
{
        int rc = find_output(l, path);
        l->at = 0;
        if (rc == 0)
                rc = send(l, i, to_chunks);
        return rc || !l->line.n ? rc : put_chunk(l, buf_str(&l->line));
}

static int load_part(struct loading *l, size_t i, const char *name)
{
        struct pg_query q;
        int rc = send(l, i, to_text);
        if (rc)
                return rc;
        pg_query_init(&q, "INSERT INTO part VALUES ($1, $2, $3, $4)");
        key(&q, l);
        pg_cstr(&q, name);
        pg_bytes(&q, buf_str(&l->line));
        long n = pg_tx_change(&l->tx, &q, l->err);
        return n < 0 ? (int)n : 0;
}

/* It is sealed anew next time: this store's log has no entry of it. */
static int load_seal(struct loading *l, size_t i, const char *name)
{
        struct pg_query q;
        int rc = send(l, i, to_text);
        if (rc)
                return rc;
        pg_query_init(&q,
            strcmp(name, "leaves") == 0
                ? "INSERT INTO seal VALUES ($1, $2, '', $3, NULL, 0, 0) ON CONFLICT (project, uid)"
                  " DO UPDATE SET leaves = $3"
                : "INSERT INTO seal VALUES ($1, $2, $3, '', NULL, 0, 0) ON CONFLICT (project, uid)"
                  " DO UPDATE SET notes = $3");
        key(&q, l);
        pg_bytes(&q, buf_str(&l->line));
        long n = pg_tx_change(&l->tx, &q, l->err);
        return n < 0 ? (int)n : 0;
}

static const char *behind(const char *name, const char *prefix)
{
        size_t n = strlen(prefix);
        return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static int load_file(struct loading *l, size_t i, const char *name)
{
        const char *rest;
        if (strcmp(name, "messages.jsonl") == 0) {
                int rc = load_lines(l, i, take_record);
                return rc ? rc : flush(l, false);
        }
        if ((rest = behind(name, "runs/")))
                return load_run(l, i, rest);
        if (strcmp(name, "artifacts/manifest.jsonl") == 0)
                return load_lines(l, i, take_listed);
        if ((rest = behind(name, "artifacts/parts/")))
                return load_part(l, i, rest);
        if ((rest = behind(name, "artifacts/")))
                return load_output(l, i, rest);
        if ((rest = behind(name, "seal/")))
                return load_seal(l, i, rest);
        return 0;
}

static int load_files(struct loading *l)
{
        const struct bundle_view *v = backend_bundle_view(l->from);
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < v->count; i++)
                rc = load_file(l, i, v->entries[i].name);
        return rc;
}

static int loading_init(struct loading *l)
{
        buf_init(&l->bytes, 0);
        buf_init(&l->line, 0);
        l->rows = calloc(ROWS_MAX, sizeof *l->rows);
        return l->rows ? 0 : error_nomem(l->err);
}

static void loading_release(struct loading *l)
{
        buf_release(&l->bytes);
        buf_release(&l->line);
        free(l->rows);
}

/* ---- a conversation that comes in ---- */

static int read_meta(struct loading *l, struct buf *out)
{
        const struct bundle_view *v = backend_bundle_view(l->from);
        int rc = error_set(l->err, STENO_EPROTO, "a conversation has no meta.json");
        for (size_t i = 0; i < v->count; i++)
                if (strcmp(v->entries[i].name, "meta.json") == 0)
                        rc = send(l, i, to_text);
        buf_put_str(out, buf_str(&l->line));
        return rc ? rc : buf_check(out, l->err);
}

static int insert_conv(struct loading *l, struct str id, struct str meta)
{
        struct pg_query q;
        struct pg_facts facts;
        int rc = pg_facts_read(meta, &facts, l->err);
        pg_query_init(&q,
            "WITH made AS (INSERT INTO conv (project, uid, id, meta, title, created) VALUES ($1,"
            " $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING project, uid) INSERT INTO tail"
            " (project, uid) SELECT project, uid FROM made");
        key(&q, l);
        pg_text(&q, id);
        pg_bytes(&q, meta);
        long n = rc;
        if (rc == 0) {
                pg_cstr(&q, facts.title);
                pg_cstr(&q, facts.created);
                n = pg_tx_change(&l->tx, &q, l->err);
        }
        pg_facts_release(&facts);
        if (n == 0 || n == PG_UNIQUE)
                return error_set(l->err, STENO_ECONFLICT, "conversation \"%.*s\" exists already",
                    (int)(id.n > 100 ? 100 : id.n), id.p);
        return n < 0 ? (int)n : 0;
}

static int set_tail(struct loading *l)
{
        struct pg_query q;
        pg_query_init(&q,
            "UPDATE tail SET last_seq = $3, bytes = (SELECT coalesce(sum(octet_length(line)), 0)"
            " FROM record r WHERE r.project = $1 AND r.uid = $2), last_amend = $4, updated = $5"
            " WHERE project = $1 AND uid = $2");
        key(&q, l);
        pg_u64(&q, l->last_seq);
        pg_u64(&q, l->last_amend);
        pg_cstr(&q, l->updated);
        long n = pg_tx_change(&l->tx, &q, l->err);
        return n < 0 ? (int)n : 0;
}

int pg_load(struct pg_store *s, struct backend_bundle *from, struct str project, struct str id,
    struct steno_error *err)
{
        struct steno_error why = {0};
        char uid[48], *name = strndup(project.p, project.n);
        struct loading l = {.project = name, .uid = uid, .from = from, .err = err ? err : &why};
        struct buf meta;
        if (!name)
                return error_nomem(err);
        id_make(s->env, "", uid);
        buf_init(&meta, META_MAX);
        int rc = loading_init(&l);
        if (rc == 0)
                rc = read_meta(&l, &meta);
        if (rc == 0)
                rc = pg_tx_begin(s, &l.tx, l.err);
        if (rc == 0) {
                rc = insert_conv(&l, id, buf_str(&meta));
                if (rc == 0)
                        rc = load_files(&l);
                if (rc == 0)
                        rc = set_tail(&l);
                rc = pg_tx_end(&l.tx, rc, l.err);
        }
        if (rc == 0)
                pg_blob_move(s, project, id);
        loading_release(&l);
        buf_release(&meta);
        free(name);
        return rc;
}

/* ---- a conversation that was purged ---- */

/* Locks the tail and checks that it is unchanged. 1: another process has written meanwhile. */
static int lock_tail(struct loading *l, const struct pg_layout *seen)
{
        struct pg_query q;
        pg_query_init(&q, "UPDATE tail SET generation = generation + 1 WHERE project = $1 AND uid ="
                          " $2 AND last_seq = $3 AND generation = $4 AND NOT removed");
        key(&q, l);
        pg_u64(&q, seen->last_seq);
        pg_u64(&q, seen->generation);
        long n = pg_tx_change(&l->tx, &q, l->err);
        return n < 0 ? (int)n : n == 0;
}

static int drop_output(void *ctx, const struct artifact_info *info)
{
        struct loading *l = ctx;
        struct pg_query q;
        if (info->state != ARTIFACT_DELETED)
                return 0;
        pg_query_init(&q,
            "WITH lost AS (INSERT INTO stray SELECT project, uid, blob, '', '-infinity' FROM"
            " artifact WHERE project = $1 AND uid = $2 AND ref = $3 AND state < 2 AND blob IS NOT"
            " NULL), gone AS (UPDATE artifact SET state = 2, base = ref, deleted_at = $4, "
            "deleted_by"
            " = $5, line_index = NULL, blob = NULL, etag = NULL WHERE project = $1 AND uid = $2 AND"
            " ref = $3 AND state < 2)"
            " DELETE FROM chunk WHERE project = $1 AND uid = $2 AND ref = $3");
        key(&q, l);
        pg_cstr(&q, info->id);
        pg_u64(&q, (uint64_t)info->deleted_at);
        pg_cstr(&q, info->deleted_by);
        long n = pg_tx_change(&l->tx, &q, l->err);
        return n < 0 ? (int)n : 0;
}

/* Parts that the copy had and has not any more. One that came or was used since belongs to an
 * append that is not there yet, and stays. */
static int drop_parts(struct loading *l, const struct pg_layout *seen)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < seen->part_count; i++) {
                const struct pg_layout_part *part = &seen->parts[i];
                struct pg_query q;
                if (files_backend.part_get(seen->conv, str_of(part->name), part->size, NULL, NULL,
                        NULL) != STENO_ECORRUPT)
                        continue;
                pg_query_init(&q, "DELETE FROM part WHERE project = $1 AND uid = $2 AND name = $3"
                                  " AND uses = $4");
                key(&q, l);
                pg_cstr(&q, part->name);
                pg_u64(&q, part->uses);
                long n = pg_tx_change(&l->tx, &q, l->err);
                rc = n < 0 ? (int)n : 0;
        }
        return rc;
}

static int take_again(void *ctx, const struct backend_record *r)
{
        struct loading *l = ctx;
        if (r->damaged) /* it stays, whatever it held */
                return 0;
        l->last_seq = r->rec.seq - 1;
        return take_record(l, r->rec.line);
}

static int take_event_again(void *ctx, const struct run_event *e)
{
        return add_event(ctx, e);
}

static int blank_run(void *ctx, const char *name)
{
        struct loading *l = ctx;
        snprintf(l->name, sizeof l->name, "%s", name);
        int rc = files_backend.run_read(l->copy, name, 0, take_event_again, l, l->err);
        return rc ? rc : flush(l, true);
}

static int bring_up(struct loading *l, struct pg_conv *c, struct pg_layout *seen)
{
        int rc = lock_tail(l, seen);
        if (rc == 0)
                rc = files_backend.read(seen->conv, 0, take_again, l, l->err);
        if (rc == 0)
                rc = flush(l, false);
        if (rc == 0)
                rc = files_backend.run_each(seen->conv, blank_run, l, l->err);
        if (rc == 0)
                rc = files_backend.artifact_each(seen->conv, drop_output, l, l->err);
        if (rc == 0)
                rc = drop_parts(l, seen);
        l->last_seq = seen->last_seq;
        if (rc == 0)
                rc = set_tail(l);
        return rc ? rc : pg_seal_keep(&l->tx, c, seen, false, l->err);
}

int pg_load_purged(struct pg_conv *c, struct pg_layout *seen, struct steno_error *err)
{
        struct steno_error why = {0};
        struct loading l = {.project = c->project,
            .uid = c->uid,
            .again = true,
            .copy = seen->conv,
            .err = err ? err : &why};
        int rc = loading_init(&l);
        if (rc == 0)
                rc = pg_tx_begin(c->store, &l.tx, l.err);
        if (rc == 0)
                rc = pg_tx_end(&l.tx, bring_up(&l, c, seen), l.err);
        loading_release(&l);
        return rc ? rc : pg_blob_collect(c->store, err);
}
