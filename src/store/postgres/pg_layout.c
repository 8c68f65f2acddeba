/*
 * pg_layout.c - a conversation of PostgreSQL laid out as the files of a bundle, in a scratch store.
 * All of it is of one moment, because it is read in one transaction (pg_snapshot).
 */
#include "store/postgres/pg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
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

static void path_of(const struct artifact_info *info, char path[160])
{
        snprintf(path, 160, "artifacts/%s/%s", info->kind, info->name);
}

/* If the bytes are fewer than announced, the check of the copy finds it. */
static int send_bytes(struct pg_conv *c, const struct artifact_info *info, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        struct backend_reader *reader;
        uint64_t size, at = 0;
        char *block = malloc(MIB);
        int rc = block ? pg_artifact_open(&c->base, info, &reader, &size, err) : error_nomem(err);
        if (rc) {
                free(block);
                return rc;
        }
        while (rc == 0 && at < size) {
                ssize_t got = pg_reader_read(
                    reader, at, block, size - at < MIB ? (size_t)(size - at) : MIB, err);
                if (got <= 0) {
                        rc = (int)got;
                        break;
                }
                rc = sink(ctx, block, (size_t)got);
                at += (uint64_t)got;
        }
        pg_reader_close(reader);
        free(block);
        return rc;
}

static int put_piece(void *ctx, const void *p, size_t n)
{
        return put(ctx, str_span(p, n));
}

static int put_bytes(struct laying *l, const struct artifact_info *info)
{
        char path[160];
        path_of(info, path);
        int rc = begin_file(l, path);
        return rc ? rc : send_bytes(l->c, info, put_piece, l, l->err);
}

/* Do its bytes come later? Only its sum can tell then that somebody has them already. */
static bool is_later(const struct laying *l, const struct artifact_info *info)
{
        return l->kind == PG_LAYOUT_LATER && info->state == ARTIFACT_CLOSED && *info->sha256;
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
                if (l->outputs[i].state != ARTIFACT_DELETED && !is_later(l, &l->outputs[i]))
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
        *part = (struct pg_layout_part){.size = pg_get_u64(r, 0, 3), .uses = pg_get_u64(r, 0, 2)};
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
                pg_query_init(&q, "SELECT name, CASE WHEN $4::bigint = 0 THEN bytes END, uses,"
                                  " octet_length(bytes)::bigint FROM part WHERE project = $1 AND"
                                  " uid = $2 AND name > $3 ORDER BY name LIMIT 1");
                pg_key(&q, l->c);
                pg_cstr(&q, o->part_count ? o->parts[o->part_count - 1].name : "");
                pg_u64(&q, l->kind == PG_LAYOUT_LATER);
                int rc = pg_run(l->c->store, &q, &r, l->err);
                if (rc)
                        return rc;
                int n = libpq.ntuples(r);
                rc = n ? note_part(l, r) : 0;
                if (n && rc == 0 && l->kind != PG_LAYOUT_LATER) {
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

/* ---- bytes that come later ---- */

int pg_layout_folder(struct pg_layout *l, struct pg_conv *c, struct steno_error *err)
{
        const struct fs *fs = &l->scratch->fs;
        char project[PLAIN_NAME_MAX + 1], id[PLAIN_NAME_MAX + 1], path[3 * PLAIN_NAME_MAX];
        if (id_file_name(str_of(c->project), project) || id_file_name(str_of(c->id), id))
                return error_nomem(err);
        int root = fs->open_root(fs, l->scratch->path, false);
        snprintf(path, sizeof path, "projects/%s/conversations/%s", project, id);
        int dir = root < 0 ? root : fs->open(fs, root, path, O_RDONLY | O_DIRECTORY, 0);
        if (root >= 0)
                fs->close(fs, root);
        return dir < 0 ? error_sys(err, dir, "opening the copy of a conversation") : dir;
}

/* A file of this size without bytes. */
static int make_hole(const struct fs *fs, int dir, const char *path, uint64_t size)
{
        int fd = fs->open(fs, dir, path, O_WRONLY | O_CREAT, 0600);
        int sys = fd < 0 ? fd : fs->ftruncate(fs, fd, (off_t)size);
        if (fd >= 0)
                fs->close(fs, fd);
        return sys;
}

static int make_folder(const struct fs *fs, int dir, const char *path)
{
        int sys = fs->mkdir(fs, dir, path, 0700);
        return sys == -EEXIST ? 0 : sys;
}

/* The files whose bytes were left out. */
static int make_empty(struct laying *l)
{
        static const char *const FOLDERS[] = {
            "artifacts", "artifacts/tool", "artifacts/terminal", "artifacts/parts"};
        const struct pg_layout *o = l->out;
        const struct fs *fs = &o->scratch->fs;
        char path[160];
        int dir = pg_layout_folder(l->out, l->c, l->err), sys = 0;
        if (dir < 0)
                return dir;
        for (size_t i = 0; sys == 0 && i < 4 && (o->output_count || o->part_count); i++)
                sys = make_folder(fs, dir, FOLDERS[i]);
        for (size_t i = 0; sys == 0 && i < o->output_count; i++) {
                path_of(&o->outputs[i], path);
                if (is_later(l, &o->outputs[i]))
                        sys = make_hole(fs, dir, path, o->outputs[i].size);
        }
        for (size_t i = 0; sys == 0 && i < o->part_count; i++) {
                snprintf(path, sizeof path, "artifacts/parts/%s", o->parts[i].name);
                sys = make_hole(fs, dir, path, o->parts[i].size);
        }
        fs->close(fs, dir);
        return sys ? error_sys(l->err, sys, "laying out outputs") : 0;
}

struct filling {
        const struct fs *fs;
        int fd;
        off_t at;
        struct steno_error *err;
};

static int fill_piece(void *ctx, const void *p, size_t n)
{
        struct filling *f = ctx;
        int sys = fs_pwrite_all(f->fs, f->fd, p, n, f->at);
        f->at += (off_t)n;
        return sys ? error_sys(f->err, sys, "writing to a temporary folder (TMPDIR)") : 0;
}

static int fill_part(struct pg_layout *l, const char *name, struct filling *f)
{
        struct pg_conv *c = &l->snapshot.conv;
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT bytes FROM part WHERE project = $1 AND uid = $2 AND name = $3");
        pg_key(&q, c);
        pg_cstr(&q, name);
        int rc = pg_run(c->store, &q, &r, f->err);
        if (rc)
                return rc;
        struct str bytes = libpq.ntuples(r) ? pg_get(r, 0, 0) : STR("");
        rc = fill_piece(f, bytes.p, bytes.n);
        libpq.clear(r);
        return rc;
}

static int fill_output(struct pg_layout *l, const char *path, struct filling *f)
{
        char name[160];
        for (size_t i = 0; i < l->output_count; i++) {
                path_of(&l->outputs[i], name);
                if (strcmp(name, path) == 0)
                        return send_bytes(&l->snapshot.conv, &l->outputs[i], fill_piece, f, f->err);
        }
        return 0;
}

int pg_layout_fill(struct pg_layout *l, const char *path, struct steno_error *err)
{
        static const char PARTS[] = "artifacts/parts/";
        const struct fs *fs = &l->scratch->fs;
        struct filling f = {.fs = fs, .fd = -1, .err = err};
        int dir = pg_layout_folder(l, &l->snapshot.conv, err), sys = 0;
        if (dir < 0)
                return dir;
        if (l->filled) /* there is room for one */
                sys = make_hole(fs, dir, l->filled, 0);
        free(l->filled);
        l->filled = strdup(path);
        f.fd = fs->open(fs, dir, path, O_WRONLY | O_TRUNC, 0);
        int rc = sys || f.fd < 0 ? error_sys(err, sys ? sys : f.fd, "laying out %.150s", path)
                 : !l->filled    ? error_nomem(err)
                 : strncmp(path, PARTS, sizeof PARTS - 1) == 0
                     ? fill_part(l, path + sizeof PARTS - 1, &f)
                     : fill_output(l, path, &f);
        if (f.fd >= 0)
                fs->close(fs, f.fd);
        fs->close(fs, dir);
        return rc == STENO_ECORRUPT || rc == STENO_ENOTFOUND ? 0 : rc; /* its sum will tell */
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

/* A purge that came between may have taken bytes out of a bucket: then it is 1. */
static int lay_out(
    struct pg_conv *c, enum pg_layout_kind kind, struct pg_layout *out, struct steno_error *err)
{
        struct laying l = {.out = out, .kind = kind, .err = err};
        struct str project = str_of(c->project), id = str_of(c->id);
        int rc = pg_scratch_open(c->store, &out->scratch, err);
        if (rc == 0)
                rc = pg_seal_lay_out(c->store, out->scratch, err);
        if (rc == 0)
                rc = pg_snapshot_open(c, &out->snapshot, err);
        if (rc == 0)
                rc = files_backend.incoming_open(out->scratch->store, &l.in, err);
        if (rc)
                return rc;
        l.c = &out->snapshot.conv;
        buf_init(&l.text, 0);
        out->generation = pg_generation(&l.c->base);
        rc = pg_last(&l.c->base, &out->last_seq, NULL, err);
        if (rc == 0)
                rc = files_backend.incoming_begin(l.in, 0, err);
        if (rc == 0)
                rc = fill(&l, out->last_seq);
        if (rc == 0)
                rc = files_backend.incoming_install(l.in, 0, project, id, err);
        files_backend.incoming_close(l.in);
        buf_release(&l.text);
        out->outputs = l.outputs;
        out->output_count = l.count;
        if (rc == 0)
                rc = files_backend.conv_open(out->scratch->store, project, id, &out->conv, err);
        if (rc == 0 && kind == PG_LAYOUT_LATER)
                return make_empty(&l);
        pg_snapshot_close(&out->snapshot);
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
        pg_snapshot_close(&l->snapshot);
        pg_scratch_close(l->scratch);
        free(l->parts);
        free(l->outputs);
        free(l->filled);
        *l = (struct pg_layout){0};
}
