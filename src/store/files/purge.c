/* purge.c - see purge.h */
#include "store/files/purge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/artifact.h"
#include "store/files/conv.h"
#include "store/files/purge_plan.h"
#include "store/files/run.h"

#define NEW_NAME ".messages.jsonl.purge"
#define FLUSH_AT (1 * MIB)

struct rewriting {
        struct files_conv *conv;
        const struct purge_plan *plan;
        int fd;
        struct buf out;
        uint64_t written;     /* before what is in `out` */
        uint64_t batch_start; /* of the batch at work, in the new log */
        uint32_t batch_next;  /* index that would continue it */
        bool damage;          /* bytes from damage_at on wait to be copied */
        uint64_t damage_at;
};

/* ---- the new log ---- */

static int flush(struct rewriting *r, bool all)
{
        if (!all && r->out.n < FLUSH_AT)
                return 0;
        int rc =
            fs_pwrite_all(r->conv->store->env->fs, r->fd, r->out.p, r->out.n, (off_t)r->written);
        r->written += r->out.n;
        buf_clear(&r->out);
        return rc;
}

/* Damaged bytes stay as they are: what they were is for check to say. */
static int copy_damage(struct rewriting *r, uint64_t to)
{
        const struct fs *fs = r->conv->store->env->fs;
        int rc = 0;
        while (rc == 0 && r->damage && r->damage_at < to) {
                size_t want = to - r->damage_at < FLUSH_AT ? (size_t)(to - r->damage_at) : FLUSH_AT;
                char *room = buf_reserve(&r->out, want);
                if (!room)
                        return -ENOMEM;
                ssize_t got = fs_pread_all(fs, r->conv->log, room, want, (off_t)r->damage_at);
                if (got <= 0)
                        return got < 0 ? (int)got : -EIO;
                r->out.n += (size_t)got;
                r->damage_at += (uint64_t)got;
                rc = flush(r, false);
        }
        r->damage = false;
        return rc;
}

/* What stays of a record that goes. */
static int put_tombstone(const struct record *rec, struct buf *x, struct arena *arena)
{
        struct about old;
        int rc = about_read(rec->x, arena, &old, NULL);
        if (rc)
                return -EIO;
        struct about left = {.kind = STR("tombstone"),
            .calls = old.calls,
            .call_count = old.call_count,
            .answers = old.answers,
            .answer_count = old.answer_count,
            .run = old.run,
            .ref = old.ref, /* by its path an output is found through this record */
            .key = old.key,
            .prev = old.prev};
        about_write(&left, x);
        return x->failed ? -ENOMEM : 0;
}

static int put_record(struct rewriting *r, const struct record *rec)
{
        struct arena arena;
        struct buf x, id;
        int rc = 0;
        arena_init(&arena);
        buf_init(&x, 0);
        buf_init(&id, 0);
        uint64_t at = r->written + r->out.n;
        bool goes_on = rec->batch_index > 0 && rec->batch_index == r->batch_next;
        if (!goes_on)
                r->batch_start = at;
        r->batch_next = rec->batch_index + 1;
        struct record copy = *rec;
        copy.group = at - r->batch_start; /* P4 */
        if (purge_plan_has(r->plan, rec->seq)) {
                rc = put_tombstone(rec, &x, &arena);
                copy.x = buf_str(&x);
                copy.m = STR("null");
        }
        json_unescape(rec->id, &id, NULL);
        if (rc == 0 && id.failed)
                rc = -ENOMEM;
        if (rc == 0)
                record_write(&r->out, &copy, buf_str(&id));
        if (rc == 0 && r->out.failed)
                rc = -ENOMEM;
        buf_release(&x);
        buf_release(&id);
        arena_release(&arena);
        return rc ? rc : flush(r, false);
}

/* Writes all of it into r->fd, synced. */
static int write_log(struct rewriting *r, struct steno_error *err)
{
        struct files_conv *c = r->conv;
        const struct fs *fs = c->store->env->fs;
        struct log_cursor cursor;
        struct log_line line;
        int sys = 0, rc;
        log_cursor_init(&cursor, fs, c->log, 0, c->at.end);
        while ((rc = log_next(&cursor, &line, err)) == 1) {
                if (line.damaged) {
                        r->damage = true;
                        r->damage_at = line.at;
                        r->batch_next = 0;
                        continue;
                }
                sys = copy_damage(r, line.at);
                if (sys == 0)
                        sys = put_record(r, &line.rec);
                if (sys)
                        break;
        }
        log_cursor_release(&cursor);
        if (rc < 0)
                return rc;
        if (sys == 0)
                sys = copy_damage(r, c->at.end);
        if (sys == 0)
                sys = flush(r, true);
        if (sys == 0)
                sys = fs->fdatasync(fs, r->fd);
        return sys ? error_sys(err, sys, "writing the purged log") : 0;
}

/* Gives the new log its name (P2), and knows it from then on. */
static int take_name(struct files_conv *c, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        uint64_t last_seq = c->at.last_seq;
        ids_reset(&c->ids, false);
        conv_forget(c);
        int sys = fs->fsync(fs, c->dir);
        if (sys == 0)
                sys = fs->rename(fs, c->dir, NEW_NAME, c->dir, "messages.jsonl");
        if (sys)
                return error_sys(err, sys, "replacing messages.jsonl");
        sys = fs->fsync(fs, c->dir);
        if (sys) {
                c->poisoned = true; /* S5 */
                return error_sys(err, sys, "syncing the folder of a purged log");
        }
        struct stat st;
        sys = fs->stat(fs, c->dir, "messages.jsonl", &st);
        if (sys)
                return error_sys(err, sys, "looking at messages.jsonl");
        /* The mark first: it says that all of this is synced, damage at its end included. */
        c->ids.log = st.st_ino;
        ids_set_mark(&c->ids, (struct log_mark){(uint64_t)st.st_size, last_seq});
        ids_flush(&c->ids);
        int rc = conv_refresh(c, err);
        return rc ? rc : conv_cover_ids(c, err);
}

static int rewrite_log(struct files_conv *c, const struct purge_plan *plan,
    struct purge_result *out, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct rewriting r = {.conv = c, .plan = plan};
        uint64_t before = c->at.end;
        r.fd = fs->open(fs, c->dir, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (r.fd < 0)
                return error_sys(err, r.fd, "making the purged log");
        buf_init(&r.out, 0);
        int rc = write_log(&r, err);
        buf_release(&r.out);
        fs->close(fs, r.fd);
        if (rc == 0)
                rc = take_name(c, err);
        else
                fs->unlink(fs, c->dir, NEW_NAME, 0);
        if (rc)
                return rc;
        out->messages = plan->count;
        out->bytes += before > r.written ? before - r.written : 0;
        return 0;
}

/* ---- what they refer to ---- */

static int drop_artifacts(struct files_conv *c, const struct purge_plan *plan,
    struct purge_result *out, struct steno_error *err)
{
        for (size_t i = 0; i < plan->refs.count; i++) {
                struct artifact_info info;
                int rc = artifact_find(c, plan->refs.list[i], &info, err);
                if (rc == STENO_ENOTFOUND)
                        continue;
                bool there = rc == 0 && info.state != ARTIFACT_DELETED;
                if (there)
                        rc = artifact_delete(c, info.id, "purge", err);
                if (rc)
                        return rc;
                out->bytes += there ? info.size : 0;
        }
        return 0;
}

static int drop_parts(struct files_conv *c, const struct purge_plan *plan, struct purge_result *out,
    struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        char name[PART_NAME];
        if (!plan->parts.count)
                return 0;
        int dir = fs->open(fs, c->dir, "artifacts/parts", O_RDONLY | O_DIRECTORY, 0);
        int rc = dir == -ENOENT ? 0 : dir < 0 ? dir : 0;
        for (size_t i = 0; dir >= 0 && rc == 0 && i < plan->parts.count; i++) {
                struct str part = plan->parts.list[i];
                snprintf(name, sizeof name, "%.*s", (int)part.n, part.p);
                if (!id_is_plain(part) || fs->stat(fs, dir, name, &st))
                        continue;
                rc = fs->unlink(fs, dir, name, 0);
                out->bytes += rc == 0 ? (uint64_t)st.st_size : 0;
        }
        if (dir >= 0 && rc == 0)
                rc = fs->fsync(fs, dir);
        if (dir >= 0)
                fs->close(fs, dir);
        return rc ? error_sys(err, rc, "removing parts of purged messages") : 0;
}

static int blank_runs(struct files_conv *c, const struct purge_plan *plan, struct purge_result *out,
    struct steno_error *err)
{
        char name[PLAIN_NAME_MAX + 1];
        for (size_t i = 0; i < plan->runs.count; i++) {
                if (id_file_name(plan->runs.list[i], name))
                        return error_nomem(err);
                int rc = run_blank(c, name, &out->bytes, err);
                if (rc < 0 && rc != STENO_ENOTFOUND)
                        return rc;
        }
        return 0;
}

int purge_conv(struct files_conv *c, struct purge_result *out, struct steno_error *err)
{
        struct purge_plan plan = {0};
        struct purge_result result = {0};
        int rc = files_conv_lock(c, err);
        if (rc)
                return rc;
        rc = conv_refresh(c, err);
        if (rc == 0)
                rc = purge_plan_make(c, &plan, err);
        if (rc == 0)
                rc = blank_runs(c, &plan, &result, err);
        if (rc == 0 && plan.count) {
                rc = recent_note(c, err);
                if (rc == 0)
                        rc = drop_artifacts(c, &plan, &result, err);
                if (rc == 0)
                        rc = drop_parts(c, &plan, &result, err);
                if (rc == 0)
                        rc = rewrite_log(c, &plan, &result, err);
        }
        purge_plan_release(&plan);
        files_conv_unlock(c);
        if (rc == 0)
                *out = result;
        return rc;
}
