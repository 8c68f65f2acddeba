/*
 * admission_replay.c - finds messages of an append that are stored already: by id, and by
 * idempotency key.
 */
#include "store/admission.h"

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

/* Two texts of valid JSON: white space between tokens is not a part of a message. */
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

static int compare(struct admission *a, const struct record *rec, const struct backend_entry *e,
    enum likeness *like, struct steno_error *err)
{
        struct about stored;
        struct buf id;
        bool same = false;
        int rc = about_read(rec->x, &a->arena, &stored, err);
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

/* Compares the records that this batch would have with its messages, one by one. */
struct comparison {
        struct admission *a;
        struct append_request *q;
        uint64_t first_seq;
        size_t at; /* the next message */
        bool by_key;
        enum likeness like;
        int rc;
};

static int compare_next(void *ctx, const struct backend_record *r)
{
        struct comparison *c = ctx;
        struct append_request *q = c->q;
        struct backend_batch *b = q->batch;
        uint64_t want = c->first_seq + c->at;
        /* Damage before the batch does not matter; a tombstone of a repair has its record's seq. */
        if (r->damaged && (r->rec.seq ? r->rec.seq : r->last_seq) < want)
                return 0;
        if (r->damaged || r->rec.seq != want) {
                c->like = LIKE_DAMAGED;
                return 1;
        }
        c->rc = compare(c->a, &r->rec, &b->entries[c->at], &c->like, &q->err);
        if (c->by_key && c->like != LIKE_DAMAGED &&
            (r->rec.batch_count != b->count || r->rec.batch_index != c->at))
                c->like = LIKE_OTHER_ID;
        if (c->rc || c->like != LIKE_SAME)
                return 1;
        if (add_receipt_id(&q->receipt, c->at, r->rec.id)) {
                c->rc = error_nomem(&q->err);
                return 1;
        }
        return ++c->at == b->count;
}

/*
 * The record of message `message` of this batch was found, with this seq: are all of them there,
 * and the same? Then the receipt is given again.
 */
static int replay(
    struct admission *a, struct append_request *q, uint64_t seq, size_t message, bool by_key)
{
        struct backend_batch *b = q->batch;
        struct comparison c = {.a = a, .q = q, .first_seq = seq - message, .by_key = by_key};
        q->receipt.ids = calloc(b->count, sizeof *q->receipt.ids);
        if (!q->receipt.ids)
                return error_nomem(&q->err);
        int rc = a->ops->read(a, c.first_seq - 1, compare_next, &c, &q->err);
        rc = rc < 0 ? rc : c.rc;
        if (rc == 0 && c.like == LIKE_SAME && c.at < b->count)
                c.like = c.first_seq + c.at > a->stored ? LIKE_OTHER_ID : LIKE_DAMAGED;
        if (rc == 0 && c.like != LIKE_SAME)
                rc = refuse_replay(q, c.at, message, by_key, c.like);
        if (rc) {
                backend_receipt_release(&q->receipt, b->count);
                return rc;
        }
        q->receipt.first_seq = c.first_seq;
        q->receipt.last_seq = c.first_seq + b->count - 1;
        q->receipt.replayed = true;
        a->replayed_full = a->replayed_full || b->durability == STENO_FULL;
        return ADMIT_REPLAY;
}

static int repeated_inside(struct append_request *q)
{
        struct backend_batch *b = q->batch;
        for (size_t i = 1; i < b->count; i++) {
                if (b->entries[i].made_id)
                        continue;
                for (size_t k = 0; k < i; k++)
                        if (str_eq(b->entries[i].id, b->entries[k].id))
                                return conflict(q, i, "occurs twice in the batch");
        }
        return 0;
}

/* By its key, or (key false) by the id of message `i`. */
static int look_for(
    struct admission *a, struct append_request *q, bool key, size_t i, struct buf *line)
{
        struct record rec;
        struct str want = key ? q->batch->key : q->batch->entries[i].id;
        if (a->ops->is_admitted(a, want, key))
                return ADMIT_LATER;
        int rc = a->ops->find(a, want, key, line, &rec, &q->err);
        if (rc != 1)
                return rc;
        return rec.seq > i ? replay(a, q, rec.seq, i, key) : conflict(q, i, "is there already");
}

int admission_replay(struct admission *a, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        struct buf line;
        bool outside = b->key.n > 0;
        for (size_t i = 0; i < b->count && !outside; i++)
                outside = !b->entries[i].made_id;
        if (!outside)
                return ADMIT_NEW;
        int rc = repeated_inside(q);
        if (rc)
                return rc;
        buf_init(&line, 0);
        if (b->key.n)
                rc = look_for(a, q, true, 0, &line);
        for (size_t i = 0; rc == 0 && i < b->count; i++)
                if (!b->entries[i].made_id)
                        rc = look_for(a, q, false, i, &line);
        buf_release(&line);
        return rc;
}
