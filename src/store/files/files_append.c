/*
 * files_append.c - group commit: admitting batches, one write, one sync.
 *
 * Callers queue; the first one leads. The leader takes the conversation's lock, admits what is in
 * the queue batch by batch (idempotency, expected seq, pairing), writes the admitted ones at once
 * and syncs once. A batch that is refused costs the others nothing. A failure after admission fails
 * all of them, and the leader forgets its cached state.
 */
#include "store/files/append_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"

/* One write is bounded; what does not fit waits for the next group. */
#define GROUP_BYTES (8 * MIB)
/* An append that has to look for ids in an index that is behind catches up before it tries again.
 * Only its last try reads all that is missing under the lock. */
#define APPEND_TRIES 4
/* The blocks that a new log gets at once. */
#define FIRST_BLOCKS (128 * KIB)

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

/* The time of the last record, which somebody else may have written. A damaged one has none. */
static void learn_time(struct files_conv *c)
{
        const struct fs *fs = c->store->env->fs;
        struct record last;
        struct buf line;
        uint64_t at;
        if (c->timed == c->at.end)
                return;
        c->timed = c->at.end;
        c->last_at[0] = '\0';
        buf_init(&line, LINE_READ_MAX);
        if (log_seek_last(fs, c->log, c->at.end, 1, &at, NULL) == 0 &&
            log_read_at(fs, c->log, c->at.end, at, &line, &last, NULL) == 0)
                snprintf(c->last_at, sizeof c->last_at, "%.*s", (int)last.at.n, last.at.p);
        buf_release(&line);
}

static void group_init(struct group *g, struct files_conv *c)
{
        const struct env *env = c->store->env;
        *g = (struct group){.conv = c,
            .admission = {.ops = &files_append_looks,
                .stored = c->at.last_seq,
                .seq = c->at.last_seq,
                .last_amend = c->ids.last_amend,
                .pairing = &c->pairing}};
        g->noted = g->few;
        g->noted_cap = sizeof g->few / sizeof *g->few;
        buf_init(&g->out, 0);
        buf_init(&g->x, 0);
        arena_init(&g->admission.arena);
        learn_time(c);
        admission_time(env, c->last_at, g->at);
}

static void group_release(struct group *g)
{
        if (g->noted != g->few)
                free(g->noted);
        buf_release(&g->out);
        buf_release(&g->x);
        arena_release(&g->admission.arena);
}

/* Fills `hex` for one record; `wanted` records are still to come. */
static void take_salt(struct group *g, size_t wanted, char hex[2 * ABOUT_SALT + 1])
{
        const struct env *env = g->conv->store->env;
        if (g->salt_count == 0) {
                size_t most = sizeof g->salts / ABOUT_SALT;
                g->salt_count = wanted < most ? wanted : most;
                env->random(env, g->salts, g->salt_count * ABOUT_SALT);
        }
        hash_hex(g->salts + --g->salt_count * ABOUT_SALT, ABOUT_SALT, hex);
}

static int serialise(struct group *g, struct append_request *q)
{
        struct files_conv *c = g->conv;
        struct backend_batch *b = q->batch;
        struct buf *out = &g->out;
        size_t start = out->n;
        size_t noted = g->noted_count;
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < b->count; i++) {
                struct backend_entry *e = &b->entries[i];
                uint64_t at = c->at.end + out->n;
                char salt[2 * ABOUT_SALT + 1];
                take_salt(g, b->count - i, salt);
                struct admission_stamp stamp = {g->at, at - c->ids.mark.size, salt}; /* L3 */
                admission_put(&g->admission, q, i, &stamp, &g->x, out);
                rc = g->x.failed ? g->x.failed : out->failed;
                if (rc == 0)
                        rc = remember(g, ids_hash_id(e->id), at);
                if (rc == 0 && i == 0 && b->key.n)
                        rc = remember(g, ids_hash_key(b->key), at);
        }
        if (rc == 0) {
                struct str at = b->entries[b->count - 1].at;
                snprintf(g->last_at, sizeof g->last_at, "%.*s", at.n ? (int)at.n : TIME_TEXT,
                    at.n ? at.p : g->at);
                return 0;
        }
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
                for (size_t k = 0; k < about_part_slots(about); k++) {
                        struct str name = about_part_at(about, k).name;
                        if (!name.n)
                                continue;
                        snprintf(path, sizeof path, "artifacts/parts/%.*s", (int)name.n, name.p);
                        if (fs->stat(fs, g->conv->dir, path, &st))
                                return error_set(&q->err, STENO_EIO,
                                    "message %zu: a large token was purged meanwhile; send it "
                                    "again",
                                    i + 1);
                }
        }
        return 0;
}

/* Does it name ids or keys that have to be looked up? */
static bool needs_ids(const struct backend_batch *b)
{
        bool needs = b->key.n > 0;
        for (size_t i = 0; i < b->count && !needs; i++)
                needs = !b->entries[i].made_id || b->entries[i].about.kind.n;
        return needs;
}

/* An admission, or negative: refused. CONV_EBEHIND: again, after conv_catch_up_ids. */
static int admit(struct group *g, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        if (!q->patient && needs_ids(b) && conv_ids_are_behind(g->conv))
                return CONV_EBEHIND;
        struct admission *a = &g->admission;
        uint64_t amend = a->amend;
        int rc = admission_admit(a, q);
        if (rc > 0)
                return rc;
        if (rc == 0)
                rc = check_parts(g, q);
        if (rc == 0)
                rc = admission_pair(a, q);
        if (rc == 0)
                rc = serialise(g, q);
        if (rc) {
                a->amend = amend;
                if (rc == STENO_ENOMEM)
                        conv_forget(g->conv);
                return rc;
        }
        q->admitted = true;
        q->receipt.first_seq = a->seq + 1;
        q->receipt.last_seq = a->seq += b->count;
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

/* The write failed: removes what was written of it. */
static int roll_back(struct files_conv *c, int rc, const char *what, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        int code = error_sys(err, rc, "%s", what);
        if (fs->ftruncate(fs, c->log, (off_t)c->at.end) != 0)
                c->poisoned = true;
        conv_forget(c);
        return code;
}

/* After a failed sync it is unknown what the disk holds (S5). Takes the records back, so that a
 * later sync does not seem to cover them, and stops using the handle. */
static int poison(struct files_conv *c, int rc, struct steno_error *err)
{
        int code = roll_back(c, rc, "syncing messages.jsonl", err);
        c->poisoned = true;
        return code;
}

/*
 * If many logs begin at once, their blocks would be scattered over the disk, and every sync would
 * have to write their places as well as their contents. A large file gets consecutive blocks
 * anyway. Unused blocks are released when the handle is closed.
 */
static void reserve_first_blocks(struct files_conv *c, size_t n)
{
        const struct fs *fs = c->store->env->fs;
        if (c->at.end == 0 && n < FIRST_BLOCKS)
                c->spare = fs->reserve(fs, c->log, FIRST_BLOCKS) == 0;
}

static int write_group(struct group *g, struct steno_error *err)
{
        struct files_conv *c = g->conv;
        const struct fs *fs = c->store->env->fs;
        meta_refresh(c);
        int rc = recent_note(c, err);
        if (rc) {
                conv_forget(c); /* the pairing has seen what will not be written */
                return rc;
        }
        reserve_first_blocks(c, g->out.n);
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
        c->at.last_seq = c->highest_seq = g->admission.seq;
        c->timed = c->at.end;
        memcpy(c->last_at, g->last_at, sizeof c->last_at);
        if (ids_covered(&c->ids) == before) {
                bool kept = true;
                c->ids.large_groups = g->noted_count >= IDS_LARGE_GROUP;
                for (size_t i = 0; kept && i < g->noted_count; i++)
                        kept = ids_add(&c->ids, g->noted[i].hash, g->noted[i].at);
                if (kept && ids_cover(&c->ids, before, c->at.end) && g->admission.amend)
                        ids_set_amend(&c->ids, g->admission.amend);
        }
        if ((ids_covered(&c->ids) != c->at.end || ids_unsettled(&c->ids) > c->store->settle_ids) &&
            !__atomic_load_n(&c->tend_ids, __ATOMIC_RELAXED)) {
                __atomic_store_n(&c->tend_ids, true, __ATOMIC_RELAXED);
                syncer_want(c->store);
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
                backend_receipt_release(&q->receipt, q->batch->count);
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
                if (rc == ADMIT_LATER)
                        break;
                q->rc = rc == ADMIT_REPLAY ? 0 : rc;
                /* The cached state is gone: finish the admitted batches before continuing. */
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
        if (g.admission.replayed_full && !g.sync) {
                rc = sync_replayed(c, &err);
                if (rc)
                        fail_replayed(list, &err, rc);
        }
        if (g.out.n) {
                rc = c->poisoned ? rc : write_group(&g, &err);
                if (rc)
                        fail_admitted(list, &err, rc);
                /* Replayed records that should have been synced with it still have to be synced. */
                if (rc && g.admission.replayed_full && !c->poisoned)
                        rc = sync_replayed(c, &err);
                if (c->poisoned)
                        fail_replayed(list, &err, rc);
        }
        for (struct append_request *q = list; q != rest; q = q->next) {
                bool synced = q->admitted ? g.sync : c->ids.mark.seq >= q->receipt.last_seq;
                if (q->rc == 0)
                        q->receipt.durability = synced ? STENO_FULL : STENO_PROCESS;
        }
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

/* One try: waits until somebody, we perhaps, has led a group that this request is in. */
static void queue_and_wait(struct files_conv *c, struct append_request *mine)
{
        pthread_mutex_lock(&c->mutex);
        *c->queue_end = mine;
        c->queue_end = &mine->next;
        while (!mine->done && c->busy)
                pthread_cond_wait(&c->turn, &c->mutex);
        if (!mine->done) {
                struct append_request *list = c->queue;
                c->queue = NULL;
                c->queue_end = &c->queue;
                c->busy = true;
                pthread_mutex_unlock(&c->mutex);
                lead(c, list);
                pthread_mutex_lock(&c->mutex);
                for (struct append_request *q = list, *next; q; q = next) {
                        next = q->next; /* its owner may return, and free it, as soon as `done` is
                                           set */
                        q->done = true;
                }
                c->busy = false;
                pthread_cond_broadcast(&c->turn);
        }
        pthread_mutex_unlock(&c->mutex);
}

int files_append(struct files_conv *c, struct backend_batch *batch, struct backend_receipt *out,
    struct steno_error *err)
{
        struct append_request mine;
        for (int tries = 1;; tries++) {
                mine = (struct append_request){.batch = batch, .patient = tries == APPEND_TRIES};
                queue_and_wait(c, &mine);
                if (mine.rc != CONV_EBEHIND || mine.patient)
                        break;
                conv_catch_up_ids(c, NULL); /* if it fails, the last try says why */
        }
        if (mine.rc == CONV_EBEHIND)
                mine.rc = error_set(&mine.err, STENO_EIO,
                    "ids.idx of conversation \"%.100s\" cannot be updated", c->id);
        if (mine.rc) {
                if (err)
                        *err = mine.err;
                return mine.rc;
        }
        *out = mine.receipt;
        return 0;
}
