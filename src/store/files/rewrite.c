/* rewrite.c - see rewrite.h */
#include "store/files/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/seal.h"

#define NEW_NAME ".messages.jsonl.purge"
#define FLUSH_AT (1 * MIB)
/* A gap of more records than this is a damaged seq, not so many lost records. */
#define LOST_MAX 1000000

struct rewriting {
        struct files_conv *conv;
        const struct purge_plan *plan;   /* NULL: damage is mended */
        const struct rewrite_copy *copy; /* NULL: for this conversation itself */
        int log;
        uint64_t end;
        int fd;          /* the new log, */
        steno_sink sink; /* or who gets it */
        void *sink_ctx;
        struct buf out;
        uint64_t written;     /* before what is in `out` */
        uint64_t batch_start; /* of the batch at work, in the new log */
        uint32_t batch_next;  /* index that would continue it, 0: it is complete */
        uint32_t batch_count;
        bool damaged; /* the walk has met damage that is not dealt with yet: */
        struct log_line damage;
        uint64_t last_kind; /* seq of the last record with a kind */
        uint64_t sealed;    /* records that a seal covers */
        struct merkle tree; /* for leaves; made with the first one */
        char now[TIME_TEXT];
        struct steno_error *err;
};

static int failed(struct rewriting *r, int sys)
{
        return error_sys(r->err, sys, "rewriting messages.jsonl");
}

static int flush(struct rewriting *r, bool all)
{
        if (r->out.failed)
                return buf_check(&r->out, r->err);
        if (!all && r->out.n < FLUSH_AT)
                return 0;
        int rc = 0;
        if (r->sink && r->out.n && r->sink(r->sink_ctx, r->out.p, r->out.n))
                rc = error_set(r->err, STENO_EINTERRUPTED, "stopped by the caller");
        int sys = r->sink ? 0
                          : fs_pwrite_all(r->conv->store->env->fs, r->fd, r->out.p, r->out.n,
                                (off_t)r->written);
        r->written += r->out.n;
        buf_clear(&r->out);
        return sys ? failed(r, sys) : rc;
}

/* ---- records ---- */

/* Puts a record behind what is there, with its place in the new log (W3). */
static int put(struct rewriting *r, struct record rec, struct str id)
{
        uint64_t at = r->written + r->out.n;
        bool goes_on = rec.batch_index > 0 && rec.batch_index == r->batch_next;
        if (!goes_on)
                r->batch_start = at;
        r->batch_next = rec.batch_index + 1 == rec.batch_count ? 0 : rec.batch_index + 1;
        r->batch_count = rec.batch_count;
        rec.group = at - r->batch_start;
        if (str_starts(rec.x, "{\"kind\":"))
                r->last_kind = rec.seq;
        record_write(&r->out, &rec, id);
        return flush(r, false);
}

/*
 * The leaf that a tombstone keeps, in hex; "" for none. A leaf without a salt would confirm a guess
 * of the message, so it is kept only where a seal needs it.
 */
static int leaf_hex(struct rewriting *r, const struct record *rec, char hex[SHA256_HEX])
{
        struct merkle_hash leaf;
        struct buf scratch;
        hex[0] = '\0';
        if (rec->seq > r->sealed && !memmem(rec->x.p, rec->x.n, ",\"salt\":\"", 9))
                return 0;
        if (!r->tree.sha.ctx && merkle_init(&r->tree))
                return STENO_ENOMEM;
        buf_init(&scratch, 0);
        bool made = leaf_of(&r->tree, rec, &scratch, &leaf);
        buf_release(&scratch);
        if (!made)
                return STENO_ENOMEM;
        hash_hex(leaf.b, sizeof leaf.b, hex);
        return 0;
}

/* What stays of a record that goes. */
static int put_tombstone(
    struct rewriting *r, const struct record *rec, struct buf *x, struct arena *arena)
{
        struct about old;
        char leaf[SHA256_HEX];
        bool drop_key = r->copy && r->copy->drop_keys;
        int rc = about_read(rec->x, arena, &old, NULL);
        if (rc == 0)
                rc = leaf_hex(r, rec, leaf);
        if (rc)
                return rc;
        /* Through this record an output is found by its path. */
        struct str *refs = arena_alloc(arena, about_ref_slots(&old) * sizeof *refs);
        size_t count = 0;
        if (!refs)
                return STENO_ENOMEM;
        for (size_t i = 0; i < about_ref_slots(&old); i++)
                if (about_ref_at(&old, i).n)
                        refs[count++] = about_ref_at(&old, i);
        struct about left = {.kind = STR("tombstone"),
            /* A message that replaced another and was replaced itself has its calls in this place
               only. */
            .target = str_is(old.kind, "supersede") ? old.target : (struct str){0},
            .calls = old.calls,
            .call_count = old.call_count,
            .answers = old.answers,
            .answer_count = old.answer_count,
            .run = old.run,
            .ref = count ? refs[0] : (struct str){0},
            .refs = refs + 1,
            .ref_count = count ? count - 1 : 0,
            .key = drop_key ? (struct str){0} : old.key,
            .prev = old.prev,
            .leaf = str_of(leaf)};
        about_write(&left, x);
        return x->failed;
}

static int put_record(struct rewriting *r, const struct record *rec)
{
        struct arena arena;
        struct buf x, id;
        struct record copy = *rec;
        int rc = 0;
        arena_init(&arena);
        buf_init(&x, 0);
        buf_init(&id, 0);
        if (r->plan && purge_plan_has(r->plan, rec->seq)) {
                rc = put_tombstone(r, rec, &x, &arena);
                copy.x = buf_str(&x);
                copy.m = STR("null");
        } else if (r->copy && r->copy->drop_keys && about_without_key(rec->x, &x)) {
                copy.x = buf_str(&x);
                rc = x.failed;
        }
        json_unescape(rec->id, &id, NULL);
        if (rc == 0)
                rc = id.failed;
        rc = rc ? error_set(r->err, rc, "the description of record %llu cannot be read",
                      (unsigned long long)rec->seq)
                : put(r, copy, buf_str(&id));
        buf_release(&x);
        buf_release(&id);
        arena_release(&arena);
        return rc;
}

/* ---- damage ---- */

/* Damaged bytes stay as they are; a check reports them. */
static int copy_damage(struct rewriting *r, uint64_t to)
{
        const struct fs *fs = r->conv->store->env->fs;
        int rc = 0;
        r->batch_next = 0;
        for (uint64_t at = r->damage.at; rc == 0 && at < to;) {
                size_t want = to - at < FLUSH_AT ? (size_t)(to - at) : FLUSH_AT;
                char *room = buf_reserve(&r->out, want);
                if (!room)
                        return buf_check(&r->out, r->err);
                ssize_t got = fs_pread_all(fs, r->log, room, want, (off_t)at);
                if (got <= 0)
                        return failed(r, got < 0 ? (int)got : -EIO);
                r->out.n += (size_t)got;
                at += (uint64_t)got;
                rc = flush(r, false);
        }
        return rc;
}

static int put_lost(struct rewriting *r, uint64_t seq, uint32_t index, uint32_t count)
{
        struct about about = {.kind = STR("tombstone"), .prev = r->last_kind, .lost = true};
        struct merkle_hash sealed;
        struct buf x;
        char id[40], leaf[SHA256_HEX];
        buf_init(&x, 0);
        if (!r->copy && seq <= r->sealed && seal_leaf_at(r->conv, seq, &sealed)) {
                hash_hex(sealed.b, sizeof sealed.b, leaf);
                about.leaf = str_of(leaf);
        }
        about_write(&about, &x);
        if (r->copy) /* the same damage gives the same bytes */
                snprintf(id, sizeof id, "lost_%llu", (unsigned long long)seq);
        else
                id_make(r->conv->store->env, "msg_", id);
        struct record rec = {.seq = seq,
            .at = str_of(r->now),
            .fmt = STR("openai"),
            .batch_index = index,
            .batch_count = count,
            .x = buf_str(&x),
            .m = STR("null")};
        int rc = x.failed ? buf_check(&x, r->err) : put(r, rec, str_of(id));
        buf_release(&x);
        return rc;
}

/*
 * Writes tombstones for lost records. The seqs of a batch are consecutive, so a lost record beside
 * one that is not the first or the last of its batch belongs to that batch.
 */
static int replace_damage(struct rewriting *r, const struct record *next)
{
        uint64_t ahead = next ? next->batch_index : 0;
        int rc = 0;
        for (uint64_t seq = r->damage.first_seq; rc == 0 && seq <= r->damage.last_seq; seq++) {
                uint64_t left = r->damage.last_seq - seq + 1;
                if (r->batch_next)
                        rc = put_lost(r, seq, r->batch_next, r->batch_count);
                else if (left <= ahead)
                        rc = put_lost(r, seq, (uint32_t)(ahead - left), next->batch_count);
                else
                        rc = put_lost(r, seq, 0, 1);
        }
        return rc;
}

/* Deals with damage that the walk has met, which ends at `to`; `next` is the record there. */
static int end_damage(struct rewriting *r, uint64_t to, const struct record *next)
{
        if (!r->damaged)
                return 0;
        r->damaged = false;
        if (r->copy && r->copy->partial)
                return r->damage.first_seq ? replace_damage(r, next) : 0;
        if (r->copy)
                return error_set(r->err, STENO_ECORRUPT,
                    "the log is damaged at byte %llu; steno check says more",
                    (unsigned long long)r->damage.at);
        if (r->plan)
                return copy_damage(r, to);
        int rc = 0;
        if (to > r->damage.at)
                rc = quarantine_log(r->conv, r->damage.at, to, "damage in the log", r->err);
        return rc || !r->damage.first_seq ? rc : replace_damage(r, next);
}

/* ---- the new log ---- */

/* Writes all of it. */
static int write_log(struct rewriting *r)
{
        struct files_conv *c = r->conv;
        const struct fs *fs = c->store->env->fs;
        uint64_t last_seq = r->plan || r->copy ? 0 : c->at.last_seq;
        struct log_cursor cursor;
        struct log_line line;
        int rc;
        log_cursor_init(&cursor, fs, r->log, 0, r->end);
        while ((rc = log_next_upto(&cursor, last_seq, &line, r->err)) == 1) {
                if (line.damaged) {
                        r->damaged = true;
                        r->damage = line;
                        continue;
                }
                rc = end_damage(r, line.at, &line.rec);
                if (rc == 0)
                        rc = put_record(r, &line.rec);
                if (rc)
                        break;
        }
        log_cursor_release(&cursor);
        if (rc == 0)
                rc = end_damage(r, r->end, NULL);
        return rc ? rc : flush(r, true);
}

int rewrite_copy(struct files_conv *conv, const struct rewrite_copy *copy, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        struct rewriting r = {.conv = conv,
            .plan = copy->plan,
            .copy = copy,
            .log = copy->log,
            .end = copy->end,
            .fd = -1,
            .sink = sink,
            .sink_ctx = ctx,
            .err = err};
        time_format(0, r.now);
        buf_init(&r.out, 0);
        int rc = write_log(&r);
        buf_release(&r.out);
        merkle_release(&r.tree);
        return rc;
}

/* Gives the new log its name (W2), and knows it from then on. */
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
                return error_sys(err, sys, "syncing the folder of a new log");
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

static int rewrite(struct rewriting *r)
{
        struct files_conv *c = r->conv;
        const struct env *env = c->store->env;
        const struct fs *fs = env->fs;
        r->fd = fs->open(fs, c->dir, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (r->fd < 0)
                return failed(r, r->fd);
        buf_init(&r->out, 0);
        time_format(env->now(env), r->now);
        r->log = c->log;
        r->end = c->at.end;
        r->sealed = seal_size(c);
        int rc = write_log(r);
        merkle_release(&r->tree);
        int sys = rc ? 0 : fs->fdatasync(fs, r->fd);
        rc = sys ? failed(r, sys) : rc;
        buf_release(&r->out);
        fs->close(fs, r->fd);
        if (rc == 0)
                return take_name(c, r->err);
        fs->unlink(fs, c->dir, NEW_NAME, 0);
        return rc;
}

int rewrite_purged(
    struct files_conv *c, const struct purge_plan *plan, uint64_t *bytes, struct steno_error *err)
{
        struct rewriting r = {.conv = c, .plan = plan, .err = err};
        uint64_t before = c->at.end;
        int rc = rewrite(&r);
        *bytes = rc == 0 && before > r.written ? before - r.written : 0;
        return rc;
}

/* How many places are damaged, and how many records they cost. */
static int count_damage(
    struct files_conv *c, uint64_t *places, uint64_t *lost, struct steno_error *err)
{
        struct log_cursor cursor;
        struct log_line line;
        int rc;
        *places = *lost = 0;
        log_cursor_init(&cursor, c->store->env->fs, c->log, 0, c->at.end);
        while ((rc = log_next_upto(&cursor, c->at.last_seq, &line, err)) == 1) {
                if (!line.damaged)
                        continue;
                ++*places;
                *lost += line.first_seq ? line.last_seq - line.first_seq + 1 : 0;
        }
        log_cursor_release(&cursor);
        return rc;
}

int rewrite_mended(struct files_conv *c, bool *mended, struct steno_error *err)
{
        struct rewriting r = {.conv = c, .err = err};
        uint64_t places, lost;
        *mended = false;
        int rc = count_damage(c, &places, &lost, err);
        if (rc || places == 0 || lost > LOST_MAX)
                return rc;
        rc = recent_note(c, err);
        if (rc == 0)
                rc = rewrite(&r);
        *mended = rc == 0;
        return rc;
}
