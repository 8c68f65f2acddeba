/*
 * replay.c - what an append finds that is there already: by id, and by idempotency key.
 */
#include "store/files/append_work.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

/* How a stored record answers a message that comes again. */
enum likeness {
        LIKE_SAME,
        LIKE_OTHER_ID,
        LIKE_OTHER_BYTES,
        LIKE_OTHER_TARGET,
        LIKE_PURGED,
        LIKE_DAMAGED, /* nobody can say */
};

static size_t skip_space(struct str s, size_t i)
{
        while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t' || s.p[i] == '\n' || s.p[i] == '\r'))
                i++;
        return i;
}

/* Two texts of valid JSON: white space between tokens is no part of a message. */
static bool same_tokens(struct str a, struct str b)
{
        size_t i = 0, k = 0;
        bool in_string = false;
        if (str_eq(a, b))
                return true;
        for (;; i++, k++) {
                if (!in_string) {
                        i = skip_space(a, i);
                        k = skip_space(b, k);
                }
                if (i == a.n || k == b.n)
                        return i == a.n && k == b.n;
                if (a.p[i] != b.p[k])
                        return false;
                if (in_string && a.p[i] == '\\') {
                        i++, k++;
                        if (i == a.n || k == b.n || a.p[i] != b.p[k])
                                return false;
                } else if (a.p[i] == '"') {
                        in_string = !in_string;
                }
        }
}

/* Of a message that was kept out of line the sum is compared, and its white space with it. */
static int same_message(const struct record *rec, const struct about *stored,
    const struct backend_entry *e, bool *same, struct steno_error *err)
{
        char hex[SHA256_HEX];
        struct str a = stored->sha, b = e->about.sha;
        *same = a.n ? str_eq(a, b) : same_tokens(rec->m, e->m);
        if ((a.n == 0) == (b.n == 0))
                return 0;
        struct str bare = a.n ? e->m : rec->m;
        if (hash_sha256_hex(bare.p, bare.n, hex))
                return error_nomem(err);
        *same = str_is(a.n ? a : b, hex);
        return 0;
}

static int compare(struct group *g, const struct record *rec, const struct backend_entry *e,
    enum likeness *like, struct steno_error *err)
{
        struct about stored;
        struct buf id;
        bool same = false;
        int rc = about_read(rec->x, &g->arena, &stored, err);
        if (rc)
                return rc;
        buf_init(&id, 0);
        json_unescape(rec->id, &id, NULL);
        if (id.failed)
                rc = error_nomem(err);
        *like = LIKE_SAME;
        if (stored.lost) /* and with it the id that it had */
                *like = LIKE_DAMAGED;
        else if (!e->made_id && !str_eq(buf_str(&id), e->id))
                *like = LIKE_OTHER_ID;
        else if (str_is(stored.kind, "tombstone"))
                *like = LIKE_PURGED;
        else if (!str_eq(rec->fmt, e->fmt) || !str_eq(stored.kind, e->about.kind))
                *like = LIKE_OTHER_BYTES;
        else if (!str_eq(stored.target, e->about.target))
                *like = LIKE_OTHER_TARGET;
        else if (rc == 0)
                rc = same_message(rec, &stored, e, &same, err);
        if (*like == LIKE_SAME && !same)
                *like = LIKE_OTHER_BYTES;
        buf_release(&id);
        return rc;
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
        c->at = at;
        return 1;
}

void replay_candidate_init(struct candidate *c, struct group *g, struct steno_error *err)
{
        *c = (struct candidate){.conv = g->conv, .err = err};
        buf_init(&c->line, 0);
        buf_init(&c->text, 0);
}

void replay_candidate_release(struct candidate *c)
{
        buf_release(&c->line);
        buf_release(&c->text);
}

int replay_candidate_find(struct candidate *c)
{
        uint64_t hash = c->key ? ids_hash_key(c->want) : ids_hash_id(c->want);
        int rc = conv_lookup(c->conv, hash, try_candidate, c, c->err);
        return rc <= 0 ? rc : c->rc ? c->rc : 1;
}

static int add_receipt_id(struct backend_receipt *r, size_t i, struct str escaped)
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

static int refuse_replay(
    struct append_request *q, size_t i, size_t found, bool by_key, enum likeness like)
{
        const struct backend_batch *b = q->batch;
        static const char *const WHY[] = {
            [LIKE_OTHER_BYTES] = "is there already, with other bytes",
            [LIKE_OTHER_TARGET] = "is there already, as an amendment of another message",
            [LIKE_PURGED] = "was used for a message that is purged",
        };
        if (by_key)
                return error_set(&q->err, STENO_ECONFLICT,
                    "the idempotency key \"%.*s\" was used for %s",
                    (int)(b->key.n > 100 ? 100 : b->key.n), b->key.p,
                    like == LIKE_PURGED    ? "a batch that is purged"
                    : like == LIKE_DAMAGED ? "a batch that is damaged"
                                           : "another batch");
        if (like == LIKE_OTHER_ID)
                return conflict(q, found, "is there already, but not with all of this batch");
        if (like == LIKE_DAMAGED)
                return conflict(q, found, "is there already, in a batch that is damaged");
        return conflict(q, i, WHY[like]);
}

/* Where the record is that the first message of the batch would be. */
static int find_first(struct group *g, const struct candidate *found, uint64_t first_seq,
    uint64_t *at, struct steno_error *err)
{
        struct files_conv *c = g->conv;
        *at = found->at;
        if (found->rec.seq == first_seq)
                return 0;
        return log_seek_after(c->store->env->fs, c->log, c->at.end, first_seq - 1, at, err);
}

/*
 * The record of message `i` of this batch was found: are all of them there, and the same? Then the
 * receipt is given again.
 */
static int replay(struct group *g, struct append_request *q, const struct candidate *found,
    size_t message, bool by_key)
{
        struct files_conv *c = g->conv;
        struct backend_batch *b = q->batch;
        struct log_cursor cursor;
        struct log_line line;
        enum likeness like = LIKE_SAME;
        uint64_t first_seq = found->rec.seq - message;
        uint64_t at;
        size_t i = 0;
        int rc = find_first(g, found, first_seq, &at, &q->err);
        if (rc)
                return rc;
        q->receipt.ids = calloc(b->count, sizeof *q->receipt.ids);
        if (!q->receipt.ids)
                return error_nomem(&q->err);
        log_cursor_init(&cursor, c->store->env->fs, c->log, at, c->at.end);
        for (; i < b->count; i++) {
                rc = log_next_seq(&cursor, first_seq + i, &line, &q->err);
                if (rc == 0)
                        like = first_seq + i > c->at.last_seq ? LIKE_OTHER_ID : LIKE_DAMAGED;
                if (rc != 1)
                        break;
                rc = compare(g, &line.rec, &b->entries[i], &like, &q->err);
                if (by_key && like != LIKE_DAMAGED &&
                    (line.rec.batch_count != b->count || line.rec.batch_index != i))
                        like = LIKE_OTHER_ID;
                if (rc || like != LIKE_SAME)
                        break;
                rc = add_receipt_id(&q->receipt, i, line.rec.id);
                if (rc) {
                        error_nomem(&q->err);
                        break;
                }
        }
        log_cursor_release(&cursor);
        if (rc == 0 && like != LIKE_SAME)
                rc = refuse_replay(q, i, message, by_key, like);
        if (rc) {
                backend_receipt_release(&q->receipt, b->count);
                return rc;
        }
        q->receipt.first_seq = first_seq;
        q->receipt.last_seq = first_seq + b->count - 1;
        q->receipt.replayed = true;
        if (b->durability == STENO_FULL)
                g->replay_sync = true;
        return ADMIT_REPLAY;
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
        struct backend_batch *b = q->batch;
        for (size_t i = 1; i < b->count; i++) {
                if (b->entries[i].made_id)
                        continue;
                for (size_t k = 0; k < i; k++)
                        if (str_eq(b->entries[i].id, b->entries[k].id))
                                return conflict(q, i, "stands twice in the batch");
        }
        return 0;
}

int replay_admit_ids(struct group *g, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        struct candidate c;
        bool outside = b->key.n > 0;
        for (size_t i = 0; i < b->count && !outside; i++)
                outside = !b->entries[i].made_id;
        if (!outside)
                return ADMIT_NEW;
        int rc = repeated_inside(q);
        if (rc == 0)
                rc = conv_cover_ids(g->conv, &q->err);
        if (rc)
                return rc;
        replay_candidate_init(&c, g, &q->err);
        if (b->key.n) {
                c.want = b->key;
                c.key = true;
                if (in_group(g, ids_hash_key(b->key)))
                        rc = ADMIT_LATER;
                else if ((rc = replay_candidate_find(&c)) == 1)
                        rc = replay(g, q, &c, 0, true);
                c.key = false;
        }
        for (size_t i = 0; rc == 0 && i < b->count; i++) {
                if (b->entries[i].made_id)
                        continue;
                c.want = b->entries[i].id;
                if (in_group(g, ids_hash_id(c.want)))
                        rc = ADMIT_LATER;
                else if ((rc = replay_candidate_find(&c)) == 1)
                        rc = c.rec.seq > i ? replay(g, q, &c, i, false)
                                           : conflict(q, i, "is there already");
        }
        replay_candidate_release(&c);
        return rc;
}
