/*
 * append.c - group commit: admitting batches, one write, one sync.
 *
 * Callers queue; the first one leads. The leader takes the conversation's lock, admits what is in
 * the queue batch by batch (idempotency, expected seq, pairing), writes the admitted ones at once
 * and syncs once. A batch that is refused costs the others nothing. Whatever fails after
 * admission fails for all, and what the leader thought it knew is forgotten.
 */
#include "store/files/conv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

/* One write is bounded; what does not fit waits for the next group. */
#define GROUP_BYTES (8 * MIB)
/* What a record usually has besides its message and its about object. */
#define HEADER_ROOM 320
/* Whoever has written this much is likely to write more: a quarter of the log, within bounds. */
#define RESERVE_FROM (8 * KIB)
#define RESERVE_MIN (64 * KIB)
#define RESERVE_MAX MIB

struct append_request {
        struct append_request *next;
        struct files_batch *batch;
        struct files_receipt receipt;
        struct steno_error err;
        int rc;
        bool done;
        bool admitted; /* its records are in the group's write */
};

/* An id or a key, and where its record will be. */
struct noted {
        uint64_t hash;
        uint64_t at;
};

struct group {
        struct files_conv *conv;
        uint64_t seq;        /* last seq, the admitted batches included */
        uint64_t amend;      /* seq of the last amendment, likewise */
        struct noted *noted; /* ids and keys of the admitted batches */
        size_t noted_count;
        size_t noted_cap;
        struct noted few[4]; /* where `noted` begins */
        struct buf out;      /* the records of the admitted batches */
        struct buf x;        /* scratch */
        bool sync;           /* someone asked for full durability */
        bool replay_sync;
        char at[TIME_TEXT];
        struct arena arena;
};

void files_receipt_release(struct files_receipt *r, size_t count)
{
        if (!r->ids)
                return;
        for (size_t i = 0; i < count; i++)
                free(r->ids[i]);
        free(r->ids);
        r->ids = NULL;
}

/* ---- idempotency ---- */

/* Is the stored record what this entry would store? */
static int same_message(const struct record *rec, const struct files_entry *e, bool *same,
    struct arena *arena, struct steno_error *err)
{
        struct about stored;
        char hex[SHA256_HEX];
        int rc = about_read(rec->x, arena, &stored, err);
        if (rc)
                return rc;
        *same = false;
        if (!str_eq(rec->fmt, e->fmt) || !str_eq(stored.kind, e->about.kind))
                return 0;
        struct str a = stored.sha, b = e->about.sha;
        if (a.n == 0 && b.n == 0) {
                *same = str_eq(rec->m, e->m);
                return 0;
        }
        /* One of them was kept out of line: compare what came, not how it is carried. */
        struct str bare = a.n ? e->m : rec->m;
        if (a.n && b.n) {
                *same = str_eq(a, b);
                return 0;
        }
        if (sha256_hex(bare.p, bare.n, hex))
                return error_nomem(err);
        *same = str_is(a.n ? a : b, hex);
        return 0;
}

struct candidate {
        struct files_conv *conv;
        struct str want;
        bool key; /* `want` is an idempotency key, not an id */
        struct buf line;
        struct buf text;
        struct record rec;
        int rc;
        struct steno_error *err;
};

static int try_candidate(void *ctx, uint64_t at)
{
        struct candidate *c = ctx;
        struct record rec;
        const struct fs *fs = c->conv->store->env->fs;
        int rc = log_read_at(fs, c->conv->log, c->conv->at.end, at, &c->line, &rec, c->err);
        if (rc == STENO_ECORRUPT)
                return 0;
        if (rc) {
                c->rc = rc;
                return 1;
        }
        struct str found = rec.id;
        if (c->key && !about_key(rec.x, &found))
                return 0;
        buf_clear(&c->text);
        json_unescape(found, &c->text, NULL);
        if (c->text.failed) {
                c->rc = error_nomem(c->err);
                return 1;
        }
        if (!str_eq(buf_str(&c->text), c->want))
                return 0;
        c->rec = rec;
        return 1;
}

/* 1: c->rec is the record; 0: there is none. */
static int find(struct candidate *c)
{
        uint64_t hash = c->key ? ids_hash_key(c->want) : ids_hash_id(c->want);
        int rc = conv_lookup(c->conv, hash, try_candidate, c, c->err);
        return rc <= 0 ? rc : c->rc ? c->rc : 1;
}

static int add_receipt_id(struct files_receipt *r, size_t i, struct str escaped)
{
        struct buf b;
        buf_init(&b, 0);
        json_unescape(escaped, &b, NULL);
        r->ids[i] = buf_take(&b, NULL);
        buf_release(&b);
        return r->ids[i] ? 0 : STENO_ENOMEM;
}

static int conflict(struct append_request *q, size_t i, const char *why)
{
        return error_set(&q->err, STENO_ECONFLICT, "message %zu: id \"%.*s\" %s", i + 1,
            (int)(q->batch->entries[i].id.n > 100 ? 100 : q->batch->entries[i].id.n),
            q->batch->entries[i].id.p, why);
}

/*
 * The batch whose first record is at the start of `first` is there already: is all of this one
 * the same? Then its receipt is given again. `found` is the message whose id led here.
 */
static int replay(
    struct group *g, struct append_request *q, uint64_t first_seq, size_t found, bool by_key)
{
        struct files_conv *c = g->conv;
        const struct fs *fs = c->store->env->fs;
        struct files_batch *b = q->batch;
        struct log_cursor cursor;
        struct log_line line;
        uint64_t at;
        size_t i = 0;
        bool same_id = true;
        int rc = log_seek_after(fs, c->log, c->at.end, first_seq - 1, &at, &q->err);
        if (rc)
                return rc;
        q->receipt.ids = calloc(b->count, sizeof *q->receipt.ids);
        if (!q->receipt.ids)
                return error_nomem(&q->err);
        log_cursor_init(&cursor, fs, c->log, at, c->at.end);
        for (; i < b->count; i++) {
                struct buf id;
                bool same = false;
                same_id = false;
                rc = log_next(&cursor, &line, &q->err);
                if (rc <= 0 || line.damaged)
                        break;
                rc = same_message(&line.rec, &b->entries[i], &same, &g->arena, &q->err);
                if (rc)
                        break;
                buf_init(&id, 0);
                json_unescape(line.rec.id, &id, NULL);
                if (id.failed)
                        rc = error_nomem(&q->err);
                same_id = b->entries[i].made_id || str_eq(buf_str(&id), b->entries[i].id);
                same = same && same_id;
                buf_release(&id);
                if (rc || !same ||
                    (by_key && (line.rec.batch_count != b->count || line.rec.batch_index != i)))
                        break;
                rc = add_receipt_id(&q->receipt, i, line.rec.id);
                if (rc) {
                        error_nomem(&q->err);
                        break;
                }
                q->receipt.last_seq = line.rec.seq;
        }
        log_cursor_release(&cursor);
        if (rc < 0 || i < b->count) {
                files_receipt_release(&q->receipt, b->count);
                if (rc < 0)
                        return rc;
                return by_key ? error_set(&q->err, STENO_ECONFLICT,
                                    "the idempotency key \"%.*s\" was used for another batch",
                                    (int)(b->key.n > 100 ? 100 : b->key.n), b->key.p)
                       : !same_id
                           ? conflict(q, found, "is there already, but not with all of this batch")
                           : conflict(q, i, "is there already, with other bytes");
        }
        q->receipt.first_seq = first_seq;
        q->receipt.replayed = true;
        if (b->durability == STENO_FULL)
                g->replay_sync = true;
        return 1;
}

static bool in_group(const struct group *g, uint64_t hash)
{
        for (size_t i = 0; i < g->noted_count; i++)
                if (g->noted[i].hash == hash)
                        return true;
        return false;
}

static int repeated_inside(struct append_request *q)
{
        struct files_batch *b = q->batch;
        for (size_t i = 1; i < b->count; i++) {
                if (b->entries[i].made_id)
                        continue;
                for (size_t k = 0; k < i; k++)
                        if (str_eq(b->entries[i].id, b->entries[k].id))
                                return conflict(q, i, "stands twice in the batch");
        }
        return 0;
}

/*
 * 0: new; 1: a replay, the receipt is filled; 2: meets a batch of this very group, so it has to
 * wait for the next one; negative: refused.
 */
static int check_ids(struct group *g, struct append_request *q)
{
        struct files_batch *b = q->batch;
        struct candidate c = {.conv = g->conv, .err = &q->err};
        bool outside = b->key.n > 0;
        for (size_t i = 0; i < b->count && !outside; i++)
                outside = !b->entries[i].made_id;
        if (!outside)
                return 0;
        int rc = repeated_inside(q);
        if (rc == 0)
                rc = conv_cover_ids(g->conv, &q->err);
        if (rc)
                return rc;
        buf_init(&c.line, 0);
        buf_init(&c.text, 0);
        if (b->key.n) {
                c.want = b->key;
                c.key = true;
                rc = in_group(g, ids_hash_key(b->key)) ? 2 : find(&c);
                if (rc == 1)
                        rc = replay(g, q, c.rec.seq, 0, true);
                c.key = false;
        }
        for (size_t i = 0; rc == 0 && i < b->count; i++) {
                if (b->entries[i].made_id)
                        continue;
                c.want = b->entries[i].id;
                rc = in_group(g, ids_hash_id(c.want)) ? 2 : find(&c);
                if (rc == 1)
                        rc = c.rec.seq > i ? replay(g, q, c.rec.seq - i, i, false)
                                           : conflict(q, i, "is there already");
        }
        buf_release(&c.line);
        buf_release(&c.text);
        return rc;
}

/* ---- pairing ---- */

static int refuse_result(
    struct append_request *q, size_t i, struct str call, const struct pairing_match *m)
{
        int n = (int)(call.n > 80 ? 80 : call.n);
        if (m->verdict == PAIRING_DUPLICATE)
                return error_set(&q->err, STENO_EPROTO,
                    "message %zu: tool_call_id \"%.*s\" was already answered at seq %llu", i + 1, n,
                    call.p, (unsigned long long)m->result_seq);
        if (m->block_seq == 0)
                return error_set(&q->err, STENO_EPROTO,
                    "message %zu: tool_call_id \"%.*s\" answers no call", i + 1, n, call.p);
        return error_set(&q->err, STENO_EPROTO,
            "message %zu: tool_call_id \"%.*s\" answers no call of the block at seq %llu", i + 1, n,
            call.p, (unsigned long long)m->block_seq);
}

static int pair_batch(struct group *g, struct append_request *q, struct pairing *p)
{
        struct files_batch *b = q->batch;
        for (size_t i = 0; i < b->count; i++) {
                struct about *about = &b->entries[i].about;
                if (about->kind.n && !str_is(about->kind, "supersede"))
                        continue;
                struct pairing_match *m =
                    arena_alloc(&g->arena, (about->answer_count + 1) * sizeof *m);
                if (!m || pairing_add(p, g->seq + 1 + i, about, m))
                        return error_nomem(&q->err);
                about->orphan = about->duplicate = false;
                for (size_t k = 0; k < about->answer_count; k++) {
                        if (m[k].verdict == PAIRING_OK)
                                continue;
                        if (!b->record)
                                return refuse_result(q, i, about->answers[k], &m[k]);
                        if (m[k].verdict == PAIRING_ORPHAN)
                                about->orphan = true;
                        else
                                about->duplicate = true;
                }
        }
        return 0;
}

/* A batch is tried on a copy, so that a refused one leaves no trace. */
static int check_pairing(struct group *g, struct append_request *q)
{
        struct files_conv *c = g->conv;
        struct files_batch *b = q->batch;
        bool answers = false;
        for (size_t i = 0; i < b->count; i++)
                answers = answers || b->entries[i].about.answer_count > 0;
        if (!answers && !c->pairing)
                return 0; /* loaded when the first result comes */
        int rc = conv_load_pairing(c, &q->err);
        if (rc)
                return rc;
        if (!answers)
                return pair_batch(g, q, c->pairing);
        struct pairing *trial = pairing_clone(c->pairing);
        if (!trial)
                return error_nomem(&q->err);
        rc = pair_batch(g, q, trial);
        if (rc) {
                pairing_free(trial);
                return rc;
        }
        pairing_free(c->pairing);
        c->pairing = trial;
        return 0;
}

/* ---- amendments ---- */

struct target {
        struct str id;
        bool deleted;
        uint64_t by;  /* the newest record that took its place */
        uint64_t via; /* the one that named it, when it was named by that */
        struct arena *arena;
};

static int check_deleted(void *ctx, const struct files_record *r)
{
        struct target *t = ctx;
        struct about about;
        if (r->damaged || about_read(r->rec.x, t->arena, &about, NULL))
                return 0;
        if (!str_eq(about.target, t->id))
                return 0;
        t->deleted = str_is(about.kind, "delete");
        if (!t->by && str_is(about.kind, "supersede"))
                t->by = r->rec.seq;
        return t->deleted;
}

/* A message that took another's place is known by its own id too, but amended through that. */
static bool is_message(struct target *t, struct about *about, const struct record *rec)
{
        struct about found;
        if (!str_starts(rec->x, "{\"kind\":"))
                return true;
        if (about_read(rec->x, t->arena, &found, NULL) || !str_is(found.kind, "supersede"))
                return false;
        t->id = about->target = arena_dup(t->arena, found.target);
        t->via = rec->seq;
        return t->id.p;
}

/* The target of an amendment must be a message that can be seen. */
static int check_targets(struct group *g, struct append_request *q)
{
        struct files_conv *c = g->conv;
        struct files_batch *b = q->batch;
        for (size_t i = 0; i < b->count; i++) {
                struct about *about = &b->entries[i].about;
                if (!about->kind.n)
                        continue;
                struct candidate found = {.conv = c, .want = about->target, .err = &q->err};
                struct target t = {.id = about->target, .arena = &g->arena};
                struct str named = about->target;
                int rc = conv_cover_ids(c, &q->err);
                if (rc)
                        return rc;
                buf_init(&found.line, 0);
                buf_init(&found.text, 0);
                rc = find(&found);
                bool message = rc == 1 && is_message(&t, about, &found.rec);
                bool purged = rc == 1 && str_starts(found.rec.x, "{\"kind\":\"tombstone\"");
                buf_release(&found.line);
                buf_release(&found.text);
                if (rc < 0)
                        return rc;
                if (message || purged) {
                        rc = files_read_amendments(c, check_deleted, &t, &q->err);
                        if (rc < 0)
                                return rc;
                }
                if (t.deleted || (t.via && t.by != t.via) || !(message || t.by))
                        return error_set(&q->err, STENO_ENOTFOUND, "no message \"%.*s\" to %.*s",
                            (int)(named.n > 100 ? 100 : named.n), named.p, (int)about->kind.n,
                            about->kind.p);
                about->prev = g->amend ? g->amend : c->ids.last_amend;
                g->amend = g->seq + 1 + i;
        }
        return 0;
}

/* ---- the group ---- */

static int remember(struct group *g, uint64_t hash, uint64_t at)
{
        if (g->noted_count == g->noted_cap) {
                bool few = g->noted == g->few;
                struct noted *to = realloc(few ? NULL : g->noted, g->noted_cap * 4 * sizeof *to);
                if (!to)
                        return STENO_ENOMEM;
                if (few)
                        memcpy(to, g->few, sizeof g->few);
                g->noted = to;
                g->noted_cap *= 4;
        }
        g->noted[g->noted_count++] = (struct noted){hash, at};
        return 0;
}

static void group_init(struct group *g, struct files_conv *c)
{
        const struct env *env = c->store->env;
        *g = (struct group){.conv = c, .seq = c->at.last_seq};
        g->noted = g->few;
        g->noted_cap = sizeof g->few / sizeof *g->few;
        buf_init(&g->out, 0);
        buf_init(&g->x, 0);
        arena_init(&g->arena);
        time_format(env->now(env), g->at);
}

static void group_release(struct group *g)
{
        if (g->noted != g->few)
                free(g->noted);
        buf_release(&g->out);
        buf_release(&g->x);
        arena_release(&g->arena);
}

static int serialise(struct group *g, struct append_request *q)
{
        struct files_conv *c = g->conv;
        struct files_batch *b = q->batch;
        struct buf *out = &g->out;
        size_t start = out->n;
        size_t noted = g->noted_count;
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < b->count; i++) {
                struct files_entry *e = &b->entries[i];
                uint64_t at = c->at.end + out->n;
                e->about.key = i == 0 ? b->key : (struct str){0};
                e->about.length = e->about.kind.n ? 0 : e->m.n;
                buf_clear(&g->x);
                about_write(&e->about, &g->x);
                buf_reserve(out, e->m.n + g->x.n + HEADER_ROOM);
                struct record r = {.seq = g->seq + 1 + i,
                    .at = str_of(g->at),
                    .fmt = e->fmt,
                    .batch_index = (uint32_t)i,
                    .batch_count = (uint32_t)b->count,
                    .group = at - c->ids.mark.size, /* L3 */
                    .x = buf_str(&g->x),
                    .m = e->m};
                record_write(out, &r, e->id);
                rc = g->x.failed ? g->x.failed : out->failed;
                if (rc == 0)
                        rc = remember(g, ids_hash_id(e->id), at);
                if (rc == 0 && i == 0 && b->key.n)
                        rc = remember(g, ids_hash_key(b->key), at);
        }
        if (rc == 0)
                return 0;
        out->n = start;
        out->failed = 0;
        g->noted_count = noted;
        return error_nomem(&q->err);
}

/* Parts were stored before the lock was taken, and a purge may have dropped one that a deleted
 * message had as well. */
static int check_parts(struct group *g, struct append_request *q)
{
        const struct fs *fs = g->conv->store->env->fs;
        struct stat st;
        char path[128];
        for (size_t i = 0; i < q->batch->count; i++) {
                const struct about *about = &q->batch->entries[i].about;
                for (size_t k = 0; k < about->part_count; k++) {
                        snprintf(path, sizeof path, "artifacts/parts/%.*s",
                            (int)about->parts[k].name.n, about->parts[k].name.p);
                        if (fs->stat(fs, g->conv->dir, path, &st))
                                return error_set(&q->err, STENO_EIO,
                                    "message %zu: a large token was purged meanwhile; send it "
                                    "again",
                                    i + 1);
                }
        }
        return 0;
}

/* 0 admitted or answered, 2 wait for the next group, negative refused. */
static int admit(struct group *g, struct append_request *q)
{
        struct files_batch *b = q->batch;
        int rc = check_ids(g, q);
        if (rc == 1) {
                q->receipt.durability = b->durability;
                return 0;
        }
        if (rc)
                return rc;
        if (b->expect && b->expected_seq != g->seq)
                return error_set(&q->err, STENO_ECONFLICT, "expected seq %llu, the last is %llu",
                    (unsigned long long)b->expected_seq, (unsigned long long)g->seq);
        uint64_t amend = g->amend;
        rc = check_targets(g, q);
        if (rc == 0)
                rc = check_parts(g, q);
        if (rc == 0)
                rc = check_pairing(g, q);
        if (rc == 0)
                rc = serialise(g, q);
        if (rc) {
                g->amend = amend;
                if (rc == STENO_ENOMEM)
                        conv_forget(g->conv);
                return rc;
        }
        q->admitted = true;
        q->receipt.first_seq = g->seq + 1;
        q->receipt.last_seq = g->seq += b->count;
        if (b->durability == STENO_FULL)
                g->sync = true;
        return 0;
}

static void fail_admitted(struct append_request *list, const struct steno_error *err, int rc)
{
        for (struct append_request *q = list; q; q = q->next) {
                if (!q->admitted)
                        continue;
                q->admitted = false;
                q->rc = rc;
                q->err = *err;
        }
}

/* The write did not come through: take back what there is of it. */
static int roll_back(struct files_conv *c, int rc, const char *what, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        int code = error_sys(err, rc, "%s", what);
        if (fs->ftruncate(fs, c->log, (off_t)c->at.end) != 0)
                c->poisoned = true;
        conv_forget(c);
        return code;
}

/* After a failed sync nobody knows what the disk holds (S5): take the records back so that no
 * later sync can be mistaken for theirs, and stop using the handle. */
static int poison(struct files_conv *c, int rc, struct steno_error *err)
{
        int code = roll_back(c, rc, "syncing messages.jsonl", err);
        c->poisoned = true;
        return code;
}

/*
 * A log that grows gets its blocks some at a time: finding them for every append costs more than
 * the write, and those of many logs that grow at once would lie scattered. What is not used goes
 * back when the conversation is closed.
 */
static void reserve_blocks(struct files_conv *c, size_t n)
{
        const struct fs *fs = c->store->env->fs;
        uint64_t need = c->at.end + n;
        c->written += n;
        if (need <= c->reserved || c->written < RESERVE_FROM)
                return;
        uint64_t ahead = need / 4 < RESERVE_MIN   ? RESERVE_MIN
                         : need / 4 > RESERVE_MAX ? RESERVE_MAX
                                                  : need / 4;
        c->reserved = need + ahead;
        fs->reserve(fs, c->log, (off_t)c->at.end, (off_t)(n + ahead));
}

static int write_group(struct group *g, struct steno_error *err)
{
        struct files_conv *c = g->conv;
        const struct fs *fs = c->store->env->fs;
        int rc = recent_note(c, err);
        if (rc) {
                conv_forget(c); /* the pairing has seen what will not be written */
                return rc;
        }
        reserve_blocks(c, g->out.n);
        rc = fs_pwrite_all(fs, c->log, g->out.p, g->out.n, (off_t)c->at.end);
        if (rc)
                return roll_back(c, rc, "writing messages.jsonl", err);
        if (g->sync) {
                rc = fs->fdatasync(fs, c->log);
                if (rc)
                        return poison(c, rc, err);
        }
        uint64_t before = c->at.end;
        c->at.end += g->out.n;
        c->at.size = c->at.end;
        c->at.last_seq = g->seq;
        if (ids_covered(&c->ids) == before) {
                bool kept = true;
                for (size_t i = 0; kept && i < g->noted_count; i++)
                        kept = ids_add(&c->ids, g->noted[i].hash, g->noted[i].at);
                if (kept && ids_cover(&c->ids, before, c->at.end) && g->amend)
                        ids_set_amend(&c->ids, g->amend);
        }
        if (g->sync) {
                ids_set_mark(&c->ids, (struct log_mark){c->at.end, c->at.last_seq});
        } else if (!__atomic_load_n(&c->dirty, __ATOMIC_RELAXED)) {
                __atomic_store_n(&c->dirty, true, __ATOMIC_RELAXED);
                syncer_want(c->store);
        }
        return 0;
}

/* A replay is acknowledged as durable only after a sync, because its first writer may have died
 * before its own. */
static int sync_replayed(struct files_conv *c, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        if (c->ids.mark.size == c->at.end)
                return 0;
        int rc = fs->fdatasync(fs, c->log);
        if (rc)
                return poison(c, rc, err);
        ids_set_mark(&c->ids, (struct log_mark){c->at.end, c->at.last_seq});
        return 0;
}

static void fail_replayed(struct append_request *list, const struct steno_error *err, int rc)
{
        for (struct append_request *q = list; q; q = q->next) {
                if (q->rc || !q->receipt.replayed)
                        continue;
                files_receipt_release(&q->receipt, q->batch->count);
                q->rc = rc;
                q->err = *err;
        }
}

/* Admits from `list` as much as goes into one write; returns what has to wait. */
static struct append_request *admit_all(struct group *g, struct append_request *list)
{
        struct append_request *q = list;
        for (; q && g->out.n < GROUP_BYTES; q = q->next) {
                int rc = admit(g, q);
                if (rc == 2)
                        break;
                q->rc = rc;
                /* What was known is gone: finish what was admitted before going on. */
                if (!g->conv->known)
                        return q->next;
        }
        return q;
}

/* One group: returns the requests that are left for the next. Under flock. */
static struct append_request *commit(struct files_conv *c, struct append_request *list)
{
        struct group g;
        struct steno_error err = {0};
        struct append_request *rest = NULL;
        int rc = conv_refresh(c, &err);
        if (rc) {
                for (struct append_request *q = list; q; q = q->next) {
                        q->rc = rc;
                        q->err = err;
                }
                return NULL;
        }
        group_init(&g, c);
        rest = admit_all(&g, list);
        if (g.replay_sync && !g.sync) {
                rc = sync_replayed(c, &err);
                if (rc)
                        fail_replayed(list, &err, rc);
        }
        if (g.out.n) {
                rc = c->poisoned ? rc : write_group(&g, &err);
                if (rc) {
                        fail_admitted(list, &err, rc);
                        if (c->poisoned)
                                fail_replayed(list, &err, rc);
                }
        }
        for (struct append_request *q = list; q != rest; q = q->next)
                if (q->rc == 0 && q->admitted)
                        q->receipt.durability = g.sync ? STENO_FULL : STENO_PROCESS;
        group_release(&g);
        return rest;
}

static void lead(struct files_conv *c, struct append_request *list)
{
        struct steno_error err = {0};
        int rc = 0;
        if (c->poisoned)
                rc = error_set(&err, STENO_EPOISONED,
                    "a sync failed earlier on conversation \"%.100s\"; open it again", c->id);
        if (rc == 0)
                rc = conv_flock(c, &err);
        for (struct append_request *q = list; rc && q; q = q->next) {
                q->rc = rc;
                q->err = err;
        }
        if (rc)
                return;
        while (list && !c->poisoned)
                list = commit(c, list);
        conv_funlock(c);
        for (; list; list = list->next)
                list->rc = error_set(&list->err, STENO_EPOISONED,
                    "a sync failed on conversation \"%.100s\"; open it again", c->id);
}

int files_append(struct files_conv *c, struct files_batch *batch, struct files_receipt *out,
    struct steno_error *err)
{
        struct append_request mine = {.batch = batch};
        pthread_mutex_lock(&c->mutex);
        *c->queue_end = &mine;
        c->queue_end = &mine.next;
        while (!mine.done && c->busy)
                pthread_cond_wait(&c->turn, &c->mutex);
        if (!mine.done) {
                struct append_request *list = c->queue;
                c->queue = NULL;
                c->queue_end = &c->queue;
                c->busy = true;
                pthread_mutex_unlock(&c->mutex);
                lead(c, list);
                pthread_mutex_lock(&c->mutex);
                for (struct append_request *q = list, *next; q; q = next) {
                        next = q->next; /* its owner may leave as soon as it is done */
                        q->done = true;
                }
                c->busy = false;
                pthread_cond_broadcast(&c->turn);
        }
        pthread_mutex_unlock(&c->mutex);
        if (mine.rc) {
                if (err)
                        *err = mine.err;
                return mine.rc;
        }
        *out = mine.receipt;
        return 0;
}
