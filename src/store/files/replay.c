/*
 * replay.c - what an append finds that is there already: by id, and by idempotency key.
 */
#include "store/files/append_work.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

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

void candidate_init(struct candidate *c, struct group *g, struct steno_error *err)
{
        *c = (struct candidate){.conv = g->conv, .err = err};
        buf_init(&c->line, 0);
        buf_init(&c->text, 0);
}

void candidate_release(struct candidate *c)
{
        buf_release(&c->line);
        buf_release(&c->text);
}

int candidate_find(struct candidate *c)
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

int admit_ids(struct group *g, struct append_request *q)
{
        struct files_batch *b = q->batch;
        struct candidate c;
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
        candidate_init(&c, g, &q->err);
        if (b->key.n) {
                c.want = b->key;
                c.key = true;
                rc = in_group(g, ids_hash_key(b->key)) ? 2 : candidate_find(&c);
                if (rc == 1)
                        rc = replay(g, q, c.rec.seq, 0, true);
                c.key = false;
        }
        for (size_t i = 0; rc == 0 && i < b->count; i++) {
                if (b->entries[i].made_id)
                        continue;
                c.want = b->entries[i].id;
                rc = in_group(g, ids_hash_id(c.want)) ? 2 : candidate_find(&c);
                if (rc == 1)
                        rc = c.rec.seq > i ? replay(g, q, c.rec.seq - i, i, false)
                                           : conflict(q, i, "is there already");
        }
        candidate_release(&c);
        return rc;
}
