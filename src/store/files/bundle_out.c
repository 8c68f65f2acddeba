/* bundle_out.c - a conversation on its way out (bundle.h) */
#include "store/files/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "store/files/artifact.h"
#include "store/files/conv.h"
#include "store/files/manifest.h"
#include "store/files/rewrite.h"
#include "store/files/run.h"
#include "store/files/run_read.h"

struct preparing {
        struct bundle_conv *b;
        const struct bundle_options *opt;
        const struct fs *fs;
        struct purge_plan plan; /* what the log refers to */
        struct steno_error *err;
};

/* ---- files ---- */

static struct bundle_entry *add(struct bundle_conv *b, const char *name)
{
        if (!grow_room(b->entries, b->count, b->cap))
                return NULL;
        struct bundle_entry *e = &b->entries[b->count];
        *e = (struct bundle_entry){.name = arena_dup(&b->arena, str_of(name)).p};
        b->count += e->name != NULL;
        return e->name ? e : NULL;
}

struct summing {
        struct sha256 sha;
        uint64_t size;
        steno_sink sink; /* may be NULL */
        void *ctx;
};

static int sum_piece(void *ctx, const void *p, size_t n)
{
        struct summing *s = ctx;
        hash_sha256_update(&s->sha, p, n);
        s->size += n;
        return s->sink ? s->sink(s->ctx, p, n) : 0;
}

static void sum_hex(struct summing *s, char hex[SHA256_HEX])
{
        unsigned char sum[SHA256_SIZE];
        hash_sha256_finish(&s->sha, sum);
        hash_hex(sum, sizeof sum, hex);
}

static int send_log(struct bundle_conv *b, struct summing *s, bool partial, struct steno_error *err)
{
        struct rewrite_copy copy = {
            .log = b->log, .end = b->end, .plan = &b->lost, .partial = partial};
        return rewrite_copy(b->conv, &copy, sum_piece, s, err);
}

/* Opens an output by its ref, or another file by its path; a descriptor or a negative code. */
static int open_entry(struct bundle_conv *b, const struct bundle_entry *e, struct steno_error *err)
{
        const struct fs *fs = b->conv->store->env->fs;
        struct artifact_info info;
        uint64_t size;
        int fd = -1;
        if (!e->ref.n) {
                fd = fs->open(fs, b->conv->dir, e->path, O_RDONLY, 0);
                return fd < 0 ? error_sys(err, fd, "opening %s", e->path) : fd;
        }
        int rc = artifact_find(b->conv, e->ref, &info, err);
        if (rc == 0 && info.state == ARTIFACT_DELETED)
                rc = error_set(err, STENO_ECONFLICT,
                    "output %.*s was purged while it was exported; export again", (int)e->ref.n,
                    e->ref.p);
        if (rc == 0)
                rc = artifact_open(b->conv, &info, &fd, &size, err);
        return rc ? rc : fd;
}

static int send_file(
    struct bundle_conv *b, const struct bundle_entry *e, struct summing *s, struct steno_error *err)
{
        const struct fs *fs = b->conv->store->env->fs;
        int fd = open_entry(b, e, err);
        if (fd < 0)
                return fd;
        int rc = fs_copy_out(fs, fd, 0, e->size, sum_piece, s, NULL);
        fs->close(fs, fd);
        return rc == 1  ? error_set(err, STENO_EINTERRUPTED, "stopped by the caller")
               : rc < 0 ? error_sys(err, rc, "reading %s", e->name)
                        : 0;
}

int bundle_send(struct bundle_conv *b, const struct bundle_entry *e, steno_sink sink, void *ctx,
    struct steno_error *err)
{
        struct summing s = {.sink = sink, .ctx = ctx};
        char hex[SHA256_HEX];
        int rc = hash_sha256_init(&s.sha) ? error_nomem(err) : 0;
        if (rc)
                return rc;
        if (e->text.p || (!e->path && !e->ref.n && e->size == 0))
                rc = sum_piece(&s, e->text.p ? e->text.p : "", e->text.n)
                         ? error_set(err, STENO_EINTERRUPTED, "stopped by the caller")
                         : 0;
        else if (e->path || e->ref.n)
                rc = send_file(b, e, &s, err);
        else
                rc = send_log(b, &s, true, err);
        sum_hex(&s, hex);
        if (rc == 0 && (s.size != e->size || strcmp(hex, e->sha256) != 0))
                rc = error_set(err, STENO_ECORRUPT,
                    "%s has other bytes than it was stored with; steno check says more", e->name);
        return rc;
}

/* Hashes an entry whose sum nobody knows. */
static int measure(struct preparing *p, struct bundle_entry *e)
{
        struct summing s = {0};
        if (hash_sha256_init(&s.sha))
                return error_nomem(p->err);
        int rc = send_file(p->b, e, &s, p->err);
        sum_hex(&s, e->sha256);
        if (rc == 0 && s.size != e->size)
                rc = error_set(
                    p->err, STENO_ECONFLICT, "%s became shorter while it was exported", e->name);
        return rc;
}

int bundle_add_text(
    struct bundle_conv *b, const char *name, struct str text, struct steno_error *err)
{
        struct bundle_entry *e = add(b, name);
        if (!e || hash_sha256_hex(text.n ? text.p : "", text.n, e->sha256))
                return error_nomem(err);
        e->text = text;
        e->size = text.n;
        b->bytes += text.n;
        return 0;
}

/* ---- the log and what it refers to ---- */

static int open_log(struct preparing *p)
{
        struct bundle_conv *b = p->b;
        struct log_end end = {0};
        struct ids ids;
        b->log = p->fs->open(p->fs, b->conv->dir, "messages.jsonl", O_RDONLY, 0);
        if (b->log < 0)
                return b->log == -ENOENT ? conv_lacks_log(b->conv, 0, p->err)
                                         : error_sys(p->err, b->log, "opening messages.jsonl");
        int rc = conv_find_end(b->conv, b->log, NULL, &ids, &end, p->err);
        if (rc)
                return rc;
        rc = conv_refuse_changed(b->conv, b->log, &ids, &end, p->err);
        ids_close(&ids);
        b->end = end.end;
        b->last_seq = end.last_seq;
        return rc ? rc : purge_plan_look(p->fs, b->log, b->end, &p->plan, p->err);
}

/* Its size and sum; records whose parts are missing are known by now. */
static int add_log(struct preparing *p)
{
        struct summing s = {0};
        struct bundle_entry *e = add(p->b, "messages.jsonl");
        if (!e || hash_sha256_init(&s.sha))
                return error_nomem(p->err);
        int rc = p->b->log >= 0 ? send_log(p->b, &s, p->opt->partial, p->err) : 0;
        sum_hex(&s, e->sha256);
        e->size = s.size;
        p->b->bytes += s.size;
        return rc;
}

static int part_of(struct preparing *p, struct str name, struct bundle_entry *e, char path[128])
{
        struct stat st;
        snprintf(path, 128, "artifacts/parts/%.*s", (int)(name.n < 65 ? name.n : 65), name.p);
        if (!id_is_plain(name) || p->fs->stat(p->fs, p->b->conv->dir, path, &st) ||
            !S_ISREG(st.st_mode))
                return STENO_ENOTFOUND;
        *e = (struct bundle_entry){.name = path, .path = path, .size = (uint64_t)st.st_size};
        return 0;
}

/* Does the part exist with its bytes? Only a partial export can continue without it. */
static int look_at_part(struct preparing *p, struct str name, bool *there)
{
        char path[128];
        struct bundle_entry e;
        *there = part_of(p, name, &e, path) == 0;
        if (!*there || !p->opt->partial)
                return 0;
        int rc = measure(p, &e);
        *there = rc == 0 && str_is(name, e.sha256);
        return rc == STENO_ENOMEM ? rc : 0;
}

struct lost_parts {
        struct preparing *p;
        const struct purge_names *names;
};

static int note_lost(struct lost_parts *l, const struct record *rec)
{
        struct purge_plan *lost = &l->p->b->lost;
        struct arena arena;
        struct about about;
        bool gone = false;
        arena_init(&arena);
        int rc = about_read(rec->x, &arena, &about, NULL);
        for (size_t i = 0; rc == 0 && !gone && i < about_part_slots(&about); i++)
                gone = purge_names_have(l->names, about_part_at(&about, i).name);
        arena_release(&arena);
        if (!gone)
                return rc == STENO_ENOMEM ? rc : 0;
        l->p->b->tombstones++;
        return purge_plan_add(lost, rec->seq);
}

/* Records that have parts which are lost become tombstones. */
static int drop_records(struct preparing *p, const struct purge_names *names)
{
        struct lost_parts l = {p, names};
        struct log_cursor cursor;
        struct log_line line;
        int rc;
        log_cursor_init(&cursor, p->fs, p->b->log, 0, p->b->end);
        while ((rc = log_next(&cursor, &line, p->err)) == 1) {
                rc = line.damaged ? 0 : note_lost(&l, &line.rec);
                if (rc)
                        break;
        }
        log_cursor_release(&cursor);
        return rc == STENO_ENOMEM ? error_nomem(p->err) : rc;
}

static int add_parts(struct preparing *p, const struct purge_names *names)
{
        struct purge_names lost = {0};
        char path[128];
        struct bundle_entry found;
        int rc = 0;
        lost.list = calloc(names->count + 1, sizeof *lost.list);
        if (!lost.list)
                return error_nomem(p->err);
        for (size_t i = 0; rc == 0 && i < names->count; i++) {
                bool there;
                rc = look_at_part(p, names->list[i], &there);
                if (rc == 0 && !there && !p->opt->partial)
                        rc = error_set(p->err, STENO_ECORRUPT,
                            "part %.16s... of a message is missing", names->list[i].p);
                else if (rc == 0 && !there)
                        lost.list[lost.count++] = names->list[i];
                if (rc || !there || part_of(p, names->list[i], &found, path))
                        continue;
                struct bundle_entry *e = add(p->b, path);
                if (e) {
                        e->path = e->name;
                        e->size = found.size;
                        snprintf(e->sha256, sizeof e->sha256, "%.*s", (int)names->list[i].n,
                            names->list[i].p);
                        p->b->bytes += e->size;
                }
                rc = e ? 0 : error_nomem(p->err);
        }
        if (rc == 0 && lost.count)
                rc = drop_records(p, &lost);
        free(lost.list);
        return rc;
}

/* ---- outputs ---- */

static void leave_out(struct preparing *p, struct artifact_info *info, const char *by)
{
        info->state = ARTIFACT_DELETED;
        info->deleted_at = info->created; /* the same store gives the same bytes */
        snprintf(info->deleted_by, sizeof info->deleted_by, "%s", by);
        p->b->tombstones++;
}

/* 0: `e` is its file; STENO_ECORRUPT: it has lost its bytes. */
static int look_at_output(struct preparing *p, struct artifact_info *info, struct bundle_entry *e)
{
        uint64_t size = 0;
        int fd = -1;
        int rc = artifact_open(p->b->conv, info, &fd, &size, p->err);
        if (rc)
                return rc;
        p->fs->close(p->fs, fd);
        if (info->state == ARTIFACT_CLOSED && size != info->size)
                return error_set(p->err, STENO_ECORRUPT,
                    "output %s has %llu bytes; %llu were stored", info->id,
                    (unsigned long long)size, (unsigned long long)info->size);
        e->size = size;
        if (info->state == ARTIFACT_CLOSED && !p->opt->partial) {
                snprintf(e->sha256, sizeof e->sha256, "%s", info->sha256);
                return 0;
        }
        rc = measure(p, e);
        if (rc == 0 && info->state == ARTIFACT_CLOSED && strcmp(e->sha256, info->sha256) != 0)
                rc = error_set(
                    p->err, STENO_ECORRUPT, "output %s has other bytes than were stored", info->id);
        return rc;
}

static int add_output(struct preparing *p, struct artifact_info *info)
{
        char name[160];
        struct bundle_entry *e, found = {0};
        if (info->state == ARTIFACT_DELETED)
                return 0;
        if (p->opt->max_artifact && info->size > p->opt->max_artifact) {
                leave_out(p, info, "export");
                return 0;
        }
        snprintf(name, sizeof name, "artifacts/%s/%s", info->kind, info->name);
        found.name = name;
        found.ref = str_of(info->id);
        int rc = look_at_output(p, info, &found);
        if (rc == STENO_ECORRUPT && p->opt->partial) {
                leave_out(p, info, "lost before the export");
                return 0;
        }
        if (rc)
                return rc;
        e = add(p->b, name);
        if (!e)
                return error_nomem(p->err);
        found.name = e->name;
        found.ref = arena_dup(&p->b->arena, str_of(info->id));
        *e = found;
        p->b->bytes += e->size;
        return found.ref.p ? 0 : error_nomem(p->err);
}

/* A ref that the manifest does not know. */
static int miss_ref(struct preparing *p, struct str ref)
{
        struct artifact_info info = {.kind = "tool", .name = "lost"};
        if (!p->opt->partial)
                return error_set(p->err, STENO_ECORRUPT,
                    "ref %.*s has no bytes; export with --partial leaves it out",
                    (int)(ref.n > 60 ? 60 : ref.n), ref.p);
        snprintf(info.id, sizeof info.id, "%.*s", (int)ref.n, ref.p);
        leave_out(p, &info, "lost before the export");
        backend_manifest_put(&p->b->manifest, &info);
        buf_putc(&p->b->manifest, '\n');
        return 0;
}

static int by_id(const void *a, const void *b)
{
        const struct artifact_info *x = a, *y = b;
        return strcmp(x->id, y->id);
}

static int find_missing(
    struct preparing *p, const struct purge_names *refs, struct artifact_info *list, size_t count)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < refs->count; i++) {
                struct artifact_info key = {0};
                snprintf(key.id, sizeof key.id, "%.*s", (int)refs->list[i].n, refs->list[i].p);
                if (!count || !bsearch(&key, list, count, sizeof key, by_id))
                        rc = miss_ref(p, refs->list[i]);
        }
        return rc;
}

static int read_manifest(struct preparing *p, struct artifact_info **list, size_t *count)
{
        int dir = p->fs->open(p->fs, p->b->conv->dir, "artifacts", O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return dir == -ENOENT ? 0 : error_sys(p->err, dir, "opening artifacts");
        int rc = manifest_read(p->fs, dir, list, count, p->err);
        p->fs->close(p->fs, dir);
        return rc;
}

static bool is_kind(const struct artifact_info *info)
{
        return strcmp(info->kind, "tool") == 0 || strcmp(info->kind, "terminal") == 0;
}

static int add_outputs(struct preparing *p)
{
        struct artifact_info *list = NULL;
        size_t count = 0;
        int rc = read_manifest(p, &list, &count);
        for (size_t i = 0; rc == 0 && i < count; i++) {
                if (!is_kind(&list[i]))
                        continue;
                rc = add_output(p, &list[i]);
                backend_manifest_put(&p->b->manifest, &list[i]);
                buf_putc(&p->b->manifest, '\n');
        }
        if (count)
                qsort(list, count, sizeof *list, by_id);
        if (rc == 0)
                rc = find_missing(p, &p->plan.refs, list, count);
        if (rc == 0)
                rc = find_missing(p, &p->plan.kept_refs, list, count);
        free(list);
        if (rc == 0)
                rc = buf_check(&p->b->manifest, p->err);
        return rc || !p->b->manifest.n ? rc
                                       : bundle_add_text(p->b, "artifacts/manifest.jsonl",
                                             buf_str(&p->b->manifest), p->err);
}

/* ---- journals, seals ---- */

static int add_file(struct preparing *p, const char *name, uint64_t size)
{
        struct bundle_entry *e = add(p->b, name);
        if (!e)
                return error_nomem(p->err);
        e->path = e->name;
        e->size = size;
        p->b->bytes += size;
        return measure(p, e);
}

/* Up to its last whole line, because its writer may be alive. */
static int add_run(void *ctx, const char *run)
{
        struct preparing *p = ctx;
        char name[128];
        struct stat st;
        struct buf line;
        struct run_event e;
        uint64_t end = 0;
        snprintf(name, sizeof name, "runs/%s.jsonl", run);
        int fd = p->fs->open(p->fs, p->b->conv->dir, name, O_RDONLY, 0);
        int rc = fd < 0 ? fd : p->fs->fstat(p->fs, fd, &st);
        if (rc) {
                if (fd >= 0)
                        p->fs->close(p->fs, fd);
                return error_sys(p->err, rc, "opening %s", name);
        }
        buf_init(&line, 0);
        rc = run_last_line(p->fs, fd, (uint64_t)st.st_size, &line, &e, &end, p->err);
        buf_release(&line);
        p->fs->close(p->fs, fd);
        return rc < 0 ? rc : add_file(p, name, end);
}

static int add_seal(struct preparing *p, const char *name)
{
        struct stat st;
        if (p->opt->partial || p->opt->max_artifact ||
            p->fs->stat(p->fs, p->b->conv->dir, name, &st) || !S_ISREG(st.st_mode))
                return 0;
        return add_file(p, name, (uint64_t)st.st_size);
}

/* ---- all of it ---- */

static int add_meta(struct preparing *p)
{
        char *text = NULL;
        size_t n = 0;
        int rc = files_conv_meta(p->b->conv, &text, &n, p->err);
        if (rc)
                return rc;
        buf_put(&p->b->meta, text, n);
        free(text);
        rc = buf_check(&p->b->meta, p->err);
        return rc ? rc : bundle_add_text(p->b, "meta.json", buf_str(&p->b->meta), p->err);
}

static int by_name(const void *a, const void *b)
{
        return backend_bundle_compare(
            ((const struct bundle_entry *)a)->name, ((const struct bundle_entry *)b)->name);
}

static int prepare(struct preparing *p)
{
        int rc = open_log(p);
        if (rc == 0)
                rc = add_parts(p, &p->plan.parts);
        if (rc == 0)
                rc = add_parts(p, &p->plan.kept_parts);
        if (rc == 0)
                rc = add_log(p);
        if (rc == 0)
                rc = add_meta(p);
        if (rc == 0)
                rc = add_outputs(p);
        if (rc == 0)
                rc = run_each(p->b->conv, add_run, p, p->err);
        if (rc == 0)
                rc = add_seal(p, "seal/checkpoints");
        if (rc == 0)
                rc = add_seal(p, "seal/leaves");
        if (rc == 0 && p->b->count > BUNDLE_FILES_MAX)
                rc = error_set(p->err, STENO_ELIMIT,
                    "a conversation of more than %d files does not fit into a bundle",
                    BUNDLE_FILES_MAX);
        if (rc == 0)
                qsort(p->b->entries, p->b->count, sizeof *p->b->entries, by_name);
        return rc;
}

int bundle_prepare(struct files_conv *conv, const struct bundle_options *opt,
    struct bundle_conv *out, struct steno_error *err)
{
        struct steno_error why = {0};
        *out = (struct bundle_conv){.conv = conv, .log = -1};
        arena_init(&out->arena);
        buf_init(&out->meta, META_MAX);
        buf_init(&out->manifest, 0);
        struct preparing p = {
            .b = out, .opt = opt, .fs = conv->store->env->fs, .err = err ? err : &why};
        int rc = prepare(&p);
        purge_plan_release(&p.plan);
        if (rc)
                bundle_release(out);
        return rc;
}

void bundle_release(struct bundle_conv *b)
{
        if (!b->conv)
                return;
        if (b->log >= 0)
                b->conv->store->env->fs->close(b->conv->store->env->fs, b->log);
        free(b->entries);
        free(b->lost.seqs);
        buf_release(&b->meta);
        buf_release(&b->manifest);
        arena_release(&b->arena);
        *b = (struct bundle_conv){.log = -1};
}
