/*
 * pg_layout.c - a conversation of PostgreSQL laid out as the files of a bundle, in a scratch store.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "store/backend_lines.h"

#define TRIES 5 /* a purge may come between */

struct laying {
        struct pg_conv *c;
        struct pg_layout *out;
        enum pg_layout_kind kind;
        struct backend_incoming *in;
        struct buf text;
        struct artifact_info *outputs; /* newest first */
        size_t count;
        size_t cap;
        struct steno_error *err;
};

static int begin_file(struct laying *l, const char *name)
{
        return files_backend.incoming_file(l->in, name, l->err);
}

static int put(struct laying *l, struct str bytes)
{
        return bytes.n ? files_backend.incoming_write(l->in, bytes.p, bytes.n, l->err) : 0;
}

static int put_file(struct laying *l, const char *name, struct str bytes)
{
        int rc = begin_file(l, name);
        return rc ? rc : put(l, bytes);
}

/* ---- records and metadata ---- */

static int put_line(void *ctx, uint64_t seq, struct str line)
{
        struct laying *l = ctx;
        (void)seq;
        int rc = put(l, line);
        return rc || (line.n && line.p[line.n - 1] == '\n') ? rc : put(l, STR("\n"));
}

static int put_records(struct laying *l, uint64_t last)
{
        int rc = begin_file(l, "messages.jsonl");
        return rc ? rc : pg_each_line(l->c, 0, last, put_line, l, l->err);
}

static int put_meta(struct laying *l)
{
        char *text;
        size_t n;
        int rc = pg_conv_meta(&l->c->base, &text, &n, l->err);
        if (rc)
                return rc;
        rc = put_file(l, "meta.json", str_span(text, n));
        free(text);
        return rc;
}

/* ---- journals ---- */

static int put_event(void *ctx, const struct run_event *e)
{
        struct laying *l = ctx;
        buf_clear(&l->text);
        backend_event_put(&l->text, e);
        int rc = buf_check(&l->text, l->err);
        return rc ? rc : put(l, buf_str(&l->text));
}

static int put_run(void *ctx, const char *name)
{
        struct laying *l = ctx;
        struct run_state s;
        char file[PLAIN_NAME_MAX + 16];
        int rc = pg_run_look(&l->c->base, name, &s, l->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        snprintf(file, sizeof file, "runs/%s.jsonl", name);
        struct run_event head = {.at = str_of(s.at), .type = STR("run"), .data = str_of(s.head)};
        rc = begin_file(l, file);
        if (rc == 0)
                rc = put_event(l, &head);
        backend_run_state_release(&s);
        return rc ? rc : pg_run_read(&l->c->base, name, 0, put_event, l, l->err);
}

/* ---- outputs and parts ---- */

static int put_bytes(struct laying *l, const struct artifact_info *info)
{
        struct backend_reader *reader;
        uint64_t size, at = 0;
        char file[160], *block = malloc(MIB);
        int rc = block ? pg_artifact_open(&l->c->base, info, &reader, &size, l->err)
                       : error_nomem(l->err);
        if (rc) {
                free(block);
                return rc;
        }
        snprintf(file, sizeof file, "artifacts/%s/%s", info->kind, info->name);
        rc = begin_file(l, file);
        while (rc == 0 && at < size) {
                ssize_t got = pg_reader_read(
                    reader, at, block, size - at < MIB ? (size_t)(size - at) : MIB, l->err);
                if (got <= 0) { /* shorter than it says: whoever looks at the copy finds out */
                        rc = (int)got;
                        break;
                }
                rc = put(l, str_span(block, (size_t)got));
                at += (uint64_t)got;
        }
        pg_reader_close(reader);
        free(block);
        return rc;
}

static int note_output(void *ctx, const struct artifact_info *info)
{
        struct laying *l = ctx;
        if (!grow_room(l->outputs, l->count, l->cap))
                return error_nomem(l->err);
        l->outputs[l->count++] = *info;
        return 0;
}

static int put_outputs(struct laying *l)
{
        struct buf manifest;
        int rc = pg_artifact_each(&l->c->base, note_output, l, l->err);
        buf_init(&manifest, 0);
        for (size_t i = l->count; rc == 0 && i-- > 0;) {
                if (l->outputs[i].state != ARTIFACT_DELETED)
                        rc = put_bytes(l, &l->outputs[i]);
                backend_manifest_put(&manifest, &l->outputs[i]);
                buf_putc(&manifest, '\n');
        }
        if (rc == 0)
                rc = buf_check(&manifest, l->err);
        if (rc == 0 && manifest.n)
                rc = put_file(l, "artifacts/manifest.jsonl", buf_str(&manifest));
        buf_release(&manifest);
        return rc;
}

static int note_part(struct laying *l, const PGresult *r)
{
        struct pg_layout *o = l->out;
        struct pg_layout_part *list = realloc(o->parts, (o->part_count + 1) * sizeof *list);
        if (!list)
                return error_nomem(l->err);
        o->parts = list;
        struct pg_layout_part *part = &list[o->part_count++];
        *part = (struct pg_layout_part){.size = pg_get(r, 0, 1).n, .uses = pg_get_u64(r, 0, 2)};
        struct str name = pg_get(r, 0, 0);
        snprintf(part->name, sizeof part->name, "%.*s", (int)name.n, name.p);
        return 0;
}

/* One at a time: each may be large. */
static int put_parts(struct laying *l)
{
        char file[PART_NAME + 20];
        for (;;) {
                struct pg_layout *o = l->out;
                struct pg_query q;
                PGresult *r;
                pg_query_init(&q, "SELECT name, bytes, uses FROM part WHERE project = $1 AND uid ="
                                  " $2 AND name > $3 ORDER BY name LIMIT 1");
                pg_key(&q, l->c);
                pg_cstr(&q, o->part_count ? o->parts[o->part_count - 1].name : "");
                int rc = pg_run(l->c->store, &q, &r, l->err);
                if (rc)
                        return rc;
                int n = libpq.ntuples(r);
                rc = n ? note_part(l, r) : 0;
                if (n && rc == 0) {
                        snprintf(file, sizeof file, "artifacts/parts/%s",
                            o->parts[o->part_count - 1].name);
                        rc = put_file(l, file, pg_get(r, 0, 1));
                }
                libpq.clear(r);
                if (rc || n == 0)
                        return rc;
        }
}

/* ---- seals ---- */

static int put_seal(struct laying *l)
{
        static const char *const FILES[] = {"seal/checkpoints", "seal/leaves", "seal/purged"};
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT notes, leaves, purged FROM seal WHERE project = $1 AND uid = $2");
        pg_key(&q, l->c);
        int rc = pg_run(l->c->store, &q, &r, l->err);
        if (rc)
                return rc;
        for (int i = 0; rc == 0 && libpq.ntuples(r) && i < 3; i++)
                if (!libpq.getisnull(r, 0, i))
                        rc = put_file(l, FILES[i], pg_get(r, 0, i));
        libpq.clear(r);
        return rc;
}

/* ---- all of it ---- */

static int fill(struct laying *l, uint64_t last)
{
        int rc = put_records(l, last);
        if (rc == 0)
                rc = put_meta(l);
        if (rc == 0)
                rc = put_seal(l);
        if (rc || l->kind == PG_LAYOUT_SEAL)
                return rc;
        rc = pg_run_each(&l->c->base, put_run, l, l->err);
        if (rc == 0)
                rc = put_outputs(l);
        if (rc == 0)
                rc = put_parts(l);
        return rc;
}

/* 1: a purge came between. */
static int lay_out(
    struct pg_conv *c, enum pg_layout_kind kind, struct pg_layout *out, struct steno_error *err)
{
        struct laying l = {.c = c, .out = out, .kind = kind, .err = err};
        struct str project = str_of(c->project), id = str_of(c->id);
        int rc = pg_scratch_open(c->store, &out->scratch, err);
        if (rc == 0)
                rc = pg_seal_lay_out(c->store, out->scratch, err);
        if (rc == 0)
                rc = files_backend.incoming_open(out->scratch->store, &l.in, err);
        if (rc)
                return rc;
        buf_init(&l.text, 0);
        out->generation = pg_generation(&c->base);
        rc = pg_last(&c->base, &out->last_seq, NULL, err);
        if (rc == 0)
                rc = files_backend.incoming_begin(l.in, 0, err);
        if (rc == 0)
                rc = fill(&l, out->last_seq);
        if (rc == 0)
                rc = files_backend.incoming_install(l.in, 0, project, id, err);
        files_backend.incoming_close(l.in);
        buf_release(&l.text);
        free(l.outputs);
        if (rc == 0)
                rc = files_backend.conv_open(out->scratch->store, project, id, &out->conv, err);
        return rc ? rc : pg_generation(&c->base) != out->generation;
}

int pg_layout_open(
    struct pg_conv *c, enum pg_layout_kind kind, struct pg_layout *out, struct steno_error *err)
{
        int rc = 1;
        for (int i = 0; rc == 1 && i < TRIES; i++) {
                *out = (struct pg_layout){0};
                rc = lay_out(c, kind, out, err);
                if (rc)
                        pg_layout_close(out);
        }
        return rc == 1 ? error_set(err, STENO_ECONFLICT,
                             "conversation \"%.100s\" is purged again and again; try later", c->id)
                       : rc;
}

void pg_layout_close(struct pg_layout *l)
{
        if (l->conv)
                files_backend.conv_release(l->conv);
        pg_scratch_close(l->scratch);
        free(l->parts);
        *l = (struct pg_layout){0};
}
