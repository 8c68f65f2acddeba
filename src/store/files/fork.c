/* fork.c - see fork.h */
#include "store/files/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/artifact.h"
#include "store/files/conv.h"
#include "store/files/incoming.h"
#include "store/files/manifest.h"
#include "store/files/purge_plan.h"
#include "store/files/rewrite.h"

#define PATH_ROOM 160
#define LOST_MAX 1000 /* runs of lost records that a fork lists */

struct forking {
        struct files_conv *from;
        const struct fork_request *request;
        const struct fs *fs;
        uint64_t seq; /* of the last record */
        uint64_t end; /* behind it in the log */
        int64_t at;   /* when it was written, in ms */
        struct purge_plan plan;
        struct artifact_info *artifacts;
        size_t artifact_count;
        int dir; /* of the new one */
        struct steno_error *err;
};

/* ---- where it is cut ---- */

static int find_record(struct forking *f, uint64_t seq, struct log_line *line, struct log_cursor *c)
{
        uint64_t at;
        int rc = log_seek_after(f->fs, f->from->log, f->from->at.end, seq - 1, &at, f->err);
        if (rc)
                return rc;
        log_cursor_init(c, f->fs, f->from->log, at, f->from->at.end);
        rc = log_next_seq(c, seq, line, f->err);
        if (rc == 0)
                rc = error_set(
                    f->err, STENO_ECORRUPT, "record %llu cannot be read", (unsigned long long)seq);
        if (rc < 0)
                log_cursor_release(c);
        return rc < 0 ? rc : 0;
}

static int find_cut(struct forking *f)
{
        struct files_conv *c = f->from;
        struct log_cursor cursor;
        struct log_line line;
        f->seq = f->request->to_end ? c->at.last_seq : f->request->seq;
        if (f->seq > c->at.last_seq)
                return error_set(f->err, STENO_ENOTFOUND,
                    "there is no record %llu: the last one is %llu", (unsigned long long)f->seq,
                    (unsigned long long)c->at.last_seq);
        if (f->seq == 0)
                return 0;
        int rc = find_record(f, f->seq, &line, &cursor);
        if (rc)
                return rc;
        uint64_t first = f->seq - line.rec.batch_index;
        uint64_t last = first + line.rec.batch_count - 1;
        time_parse(line.rec.at.p, line.rec.at.n, &f->at);
        log_cursor_release(&cursor);
        if (last != f->seq && !f->request->whole_batch)
                return error_set(f->err, STENO_ECONFLICT,
                    "record %llu is inside the batch of records %llu to %llu: fork at %llu or "
                    "%llu, or take the whole batch",
                    (unsigned long long)f->seq, (unsigned long long)first, (unsigned long long)last,
                    (unsigned long long)first - 1, (unsigned long long)last);
        f->seq = last;
        return log_seek_after(f->fs, c->log, c->at.end, last, &f->end, f->err);
}

/* ---- the log ---- */

struct log_file {
        const struct fs *fs;
        int fd;
        int sys;
};

static int write_piece(void *ctx, const void *p, size_t n)
{
        struct log_file *l = ctx;
        l->sys = fs_write_all(l->fs, l->fd, p, n);
        return l->sys;
}

static int copy_log(struct forking *f)
{
        struct rewrite_copy copy = {
            .log = f->from->log, .end = f->end, .plan = &f->plan, .drop_keys = true};
        struct log_file to = {.fs = f->fs};
        to.fd = f->fs->open(f->fs, f->dir, "messages.jsonl", O_RDWR | O_CREAT | O_EXCL, 0600);
        if (to.fd < 0)
                return error_sys(f->err, to.fd, "making the log of a fork");
        int rc = rewrite_copy(f->from, &copy, write_piece, &to, f->err);
        if (rc == 0)
                to.sys = f->fs->fdatasync(f->fs, to.fd);
        f->fs->close(f->fs, to.fd);
        return to.sys ? error_sys(f->err, to.sys, "writing the log of a fork") : rc;
}

/* ---- outputs and parts ---- */

/* A folder below artifacts/ of the fork, made where it is missing. */
static int open_folder(struct forking *f, const char *folder)
{
        int artifacts = fs_open_dir(f->fs, f->dir, "artifacts", true);
        int to = artifacts < 0 ? artifacts : fs_open_dir(f->fs, artifacts, folder, true);
        if (artifacts >= 0)
                f->fs->close(f->fs, artifacts);
        return to;
}

static int share(struct forking *f, const char *folder, const char *name)
{
        char path[PATH_ROOM];
        snprintf(path, sizeof path, "artifacts/%s/%s", folder, name);
        int to = open_folder(f, folder);
        int rc = to < 0 ? to : fs_share(f->fs, f->from->dir, path, to, name);
        if (to >= 0)
                f->fs->close(f->fs, to);
        return rc;
}

static int share_parts(struct forking *f)
{
        const struct purge_names *parts = &f->plan.kept_parts;
        char path[sizeof "artifacts/parts/" + PART_NAME], name[PART_NAME];
        struct stat st;
        for (size_t i = 0; i < parts->count; i++) {
                snprintf(name, sizeof name, "%.*s", (int)parts->list[i].n, parts->list[i].p);
                snprintf(path, sizeof path, "artifacts/parts/%s", name);
                int rc = id_is_plain(parts->list[i]) ? f->fs->stat(f->fs, f->from->dir, path, &st)
                                                     : -ENOENT;
                if (rc == -ENOENT)
                        continue; /* it is lost, and check reports that for both conversations */
                if (rc == 0)
                        rc = share(f, "parts", name);
                if (rc)
                        return error_sys(f->err, rc, "sharing a part of a message");
        }
        return 0;
}

/* An unfinished output: what had arrived, closed. */
static int copy_unfinished(struct forking *f, struct artifact_info *info)
{
        int from = -1, fd = -1;
        int rc = artifact_open(f->from, info, &from, &info->size, f->err);
        if (rc)
                return rc;
        int to = open_folder(f, info->kind);
        int sys = to < 0 ? to : fs_copy_new(f->fs, from, info->size, to, info->name);
        if (sys == 0)
                sys = fd = f->fs->open(f->fs, to, info->name, O_RDONLY, 0);
        info->sha256[0] = '\0';
        rc = sys < 0 ? error_sys(f->err, sys, "copying unfinished output %s", info->id)
                     : relist_measure(f->fs, fd, info, f->err);
        info->state = ARTIFACT_CLOSED;
        snprintf(info->mime, sizeof info->mime, "%s",
            info->utf8 ? "text/plain" : "application/octet-stream");
        if (fd >= 0)
                f->fs->close(f->fs, fd);
        if (to >= 0)
                f->fs->close(f->fs, to);
        f->fs->close(f->fs, from);
        return rc;
}

static void mark_gone(struct forking *f, struct artifact_info *info, const char *by)
{
        const struct env *env = f->from->store->env;
        info->state = ARTIFACT_DELETED;
        info->deleted_at = env->now(env);
        snprintf(info->deleted_by, sizeof info->deleted_by, "%s", by);
}

/* Is it part of the fork? An artifact that no record names is, unless it is younger than the cut.
 */
static bool is_wanted(const struct forking *f, const struct artifact_info *info)
{
        struct str id = str_of(info->id);
        /* The manifest is a file like others, and may say anything. */
        if (strcmp(info->kind, "tool") != 0 && strcmp(info->kind, "terminal") != 0)
                return false;
        return purge_names_have(&f->plan.kept_refs, id) || purge_names_have(&f->plan.refs, id) ||
               f->request->to_end || info->created <= f->at;
}

/* Brings an artifact over; `info` becomes what the fork's manifest says of it. */
static int take_artifact(struct forking *f, struct artifact_info *info)
{
        if (info->state == ARTIFACT_DELETED)
                return 0;
        if (purge_names_have(&f->plan.refs, str_of(info->id))) {
                mark_gone(f, info, "fork");
                return 0;
        }
        int rc = 0;
        if (info->state == ARTIFACT_OPEN) {
                rc = copy_unfinished(f, info);
                if (rc != STENO_ECORRUPT)
                        return rc;
        } else {
                int sys = share(f, info->kind, info->name);
                if (sys && sys != -ENOENT)
                        return error_sys(f->err, sys, "sharing output %s", info->id);
                rc = sys;
        }
        if (rc)
                mark_gone(f, info, "lost before the fork");
        return 0;
}

static int copy_artifacts(struct forking *f)
{
        struct buf lines;
        int rc = 0, sys = 0;
        buf_init(&lines, 0);
        for (size_t i = 0; rc == 0 && i < f->artifact_count; i++) {
                struct artifact_info *info = &f->artifacts[i];
                if (!is_wanted(f, info))
                        continue;
                rc = take_artifact(f, info);
                backend_manifest_put(&lines, info);
                buf_putc(&lines, '\n');
        }
        if (rc == 0)
                rc = buf_check(&lines, f->err);
        if (rc == 0 && lines.n) {
                int dir = fs_open_dir(f->fs, f->dir, "artifacts", true);
                sys = dir < 0 ? dir : fs_replace(f->fs, dir, MANIFEST_NAME, lines.p, lines.n);
                if (dir >= 0)
                        f->fs->close(f->fs, dir);
        }
        buf_release(&lines);
        return sys ? error_sys(f->err, sys, "writing the manifest of a fork") : rc;
}

static int read_artifacts(struct forking *f)
{
        int dir = f->fs->open(f->fs, f->from->dir, "artifacts", O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return dir == -ENOENT ? 0 : error_sys(f->err, dir, "opening artifacts");
        int rc = manifest_read(f->fs, dir, &f->artifacts, &f->artifact_count, f->err);
        f->fs->close(f->fs, dir);
        return rc;
}

/* ---- meta.json ---- */

/* Members that are about the origin alone. */
static bool stays(const struct json *j, json_ref key)
{
        static const char *const NAMES[] = {
            "id", "project", "createdAt", "uid", "origin", "import"};
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (json_is(j, key, NAMES[i]))
                        return true;
        return false;
}

/*
 * Which of the records were lost by now, as pairs of the first and the last: a check of the fork
 * tells what came along from what it loses itself. Those behind the first thousand are not listed,
 * and count as losses of the fork.
 */
static int put_lost(struct forking *f, struct jsonw *w)
{
        struct log_cursor cursor;
        struct log_line line;
        uint64_t from = 0, upto = 0, count = 0;
        int rc;
        jsonw_key(w, "lost");
        jsonw_array(w);
        log_cursor_init(&cursor, f->fs, f->from->log, 0, f->end);
        do {
                rc = log_next(&cursor, &line, f->err);
                bool lost = rc == 1 && !line.damaged && about_is_lost(line.rec.x);
                if (from && (!lost || line.rec.seq != upto + 1)) {
                        jsonw_array(w);
                        jsonw_u64(w, from);
                        jsonw_u64(w, upto);
                        jsonw_array_end(w);
                        count++;
                        from = 0;
                }
                if (lost) {
                        from = from ? from : line.rec.seq;
                        upto = line.rec.seq;
                }
        } while (rc == 1 && count < LOST_MAX);
        log_cursor_release(&cursor);
        jsonw_array_end(w);
        return rc < 0 ? rc : 0;
}

static int put_meta(struct forking *f, const struct json *old, const char *uid, struct buf *out)
{
        const struct env *env = f->from->store->env;
        char at[TIME_TEXT], own[META_UID];
        struct jsonw w = jsonw_to(out);
        time_format(env->now(env), at);
        id_make(env, "", own);
        jsonw_object(&w);
        jsonw_field_str(&w, "id", f->request->id);
        jsonw_field_str(&w, "project", f->request->project);
        jsonw_field_cstr(&w, "createdAt", at);
        jsonw_field_cstr(&w, "uid", own);
        jsonw_key(&w, "origin");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "project", f->from->project_id);
        jsonw_field_cstr(&w, "conversation", f->from->id);
        jsonw_field_cstr(&w, "uid", uid);
        jsonw_field_u64(&w, "seq", f->seq);
        int rc = put_lost(f, &w);
        jsonw_object_end(&w);
        for (json_ref k = json_child(old, 0); k != JSON_NONE; k = json_next_key(old, 0, k))
                if (!stays(old, k))
                        jsonw_copy_member(&w, old, k);
        jsonw_object_end(&w);
        buf_putc(out, '\n');
        return rc;
}

static int write_meta(struct forking *f)
{
        char uid[META_UID], *text = NULL;
        size_t n = 0;
        struct json j;
        struct buf out;
        int rc = meta_uid(f->from, uid, f->err);
        if (rc == 0)
                rc = files_conv_meta(f->from, &text, &n, f->err);
        if (rc)
                return rc;
        json_init(&j);
        buf_init(&out, META_MAX);
        rc = json_parse(&j, text, n, NULL, f->err);
        if (rc == STENO_EPROTO)
                rc = error_prefix(f->err, STENO_ECORRUPT, "meta.json");
        if (rc == 0)
                rc = put_meta(f, &j, uid, &out);
        if (rc == 0)
                rc = buf_check(&out, f->err);
        int sys = rc ? 0 : fs_replace(f->fs, f->dir, "meta.json", out.p, out.n);
        json_release(&j);
        buf_release(&out);
        free(text);
        return sys ? error_sys(f->err, sys, "writing meta.json") : rc;
}

/* ---- all of it ---- */

/* The origin is locked. */
static int fill(struct forking *f, struct incoming *in)
{
        int rc = conv_refresh(f->from, f->err);
        if (rc == 0)
                rc = find_cut(f);
        if (rc == 0)
                rc = purge_plan_look(f->fs, f->from->log, f->end, &f->plan, f->err);
        if (rc == 0)
                rc = read_artifacts(f);
        if (rc)
                return rc;
        f->dir = incoming_add(in, 0, f->err);
        rc = f->dir < 0 ? f->dir : copy_log(f);
        if (rc == 0)
                rc = share_parts(f);
        if (rc == 0)
                rc = copy_artifacts(f);
        if (rc == 0)
                rc = write_meta(f);
        if (f->dir >= 0)
                f->fs->close(f->fs, f->dir);
        return rc;
}

int fork_conv(struct files_conv *origin, const struct fork_request *q, struct files_conv **out,
    uint64_t *seq, struct steno_error *err)
{
        struct files_store *s = origin->store;
        struct steno_error why = {0};
        struct forking f = {
            .from = origin, .request = q, .fs = s->env->fs, .dir = -1, .err = err ? err : &why};
        struct incoming in;
        int rc = incoming_open(s, &in, f.err);
        if (rc)
                return rc;
        rc = files_conv_lock(origin, f.err);
        if (rc == 0) {
                rc = fill(&f, &in);
                files_conv_unlock(origin);
        }
        if (rc == 0)
                rc = incoming_install(&in, 0, q->project, q->id, f.err);
        incoming_close(&in);
        purge_plan_release(&f.plan);
        free(f.artifacts);
        if (rc == 0)
                rc = files_conv_open(s, q->project, q->id, out, f.err);
        if (rc == 0 && seq)
                *seq = f.seq;
        return rc;
}
