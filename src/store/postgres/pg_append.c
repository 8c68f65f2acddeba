/*
 * pg_append.c - appending to a conversation of PostgreSQL: admitted here, against the tail that is
 * known, and written by one statement that says which tail that was (G2).
 */
#include "store/postgres/pg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/admission.h"

#define TRIES 50

static struct pg_conv *of(const struct backend_conv *conv)
{
        return (struct pg_conv *)conv;
}

/* ---- how admission looks at the records ---- */

struct look {
        struct admission admission; /* first: whoever gets it has the rest */
        struct pg_conv *conv;
        struct pg_tx *tx; /* that has locked the tail, or NULL */
};

static struct pg_conv *conv_of(struct admission *a)
{
        return ((struct look *)a)->conv;
}

static int find(struct admission *a, struct str want, bool key, struct buf *line,
    struct record *rec, struct steno_error *err)
{
        struct pg_conv *c = conv_of(a);
        struct pg_query q;
        PGresult *r;
        pg_query_init(
            &q, key ? "SELECT line FROM record WHERE project = $1 AND uid = $2 AND key = $3"
                    : "SELECT line FROM record WHERE project = $1 AND uid = $2 AND id = $3");
        q.prepared = key ? PG_FIND_KEY : PG_FIND_ID;
        pg_key(&q, c);
        pg_text(&q, want);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        int n = libpq.ntuples(r);
        buf_clear(line);
        if (n)
                buf_put_str(line, pg_get(r, 0, 0));
        libpq.clear(r);
        if (n == 0 || line->failed)
                return n ? error_nomem(err) : 0;
        struct str text = buf_str(line);
        if (text.n && text.p[text.n - 1] == '\n')
                text.n--;
        return record_read(text, rec) ? 1 : 0;
}

static bool is_admitted(struct admission *a, struct str want, bool key)
{
        (void)a, (void)want, (void)key;
        return false; /* a statement has one batch */
}

static int read_records(
    struct admission *a, uint64_t after, backend_record_fn each, void *ctx, struct steno_error *err)
{
        return pg_read(&conv_of(a)->base, after, each, ctx, err);
}

static int read_amendments(
    struct admission *a, backend_record_fn each, void *ctx, struct steno_error *err)
{
        return pg_read_amendments(&conv_of(a)->base, each, ctx, err);
}

struct following {
        struct pairing *pairing;
        struct arena arena;
        struct buf id;
        int rc;
};

static int follow(void *ctx, const struct backend_record *r)
{
        struct following *f = ctx;
        struct about about;
        if (r->damaged)
                return 0;
        arena_reset(&f->arena);
        buf_clear(&f->id);
        json_unescape(r->rec.id, &f->id, NULL);
        if (about_read(r->rec.x, &f->arena, &about, NULL))
                return 0;
        struct pairing_match *m = arena_alloc(&f->arena, (about.answer_count + 1) * sizeof *m);
        f->rc = m ? pairing_follow(f->pairing, r->rec.seq, buf_str(&f->id), &about, m, NULL)
                  : STENO_ENOMEM;
        return f->rc != 0;
}

static int load_pairing(struct admission *a, struct steno_error *err)
{
        struct pg_conv *c = conv_of(a);
        if (c->pairing)
                return 0;
        struct following f = {.pairing = pairing_new()};
        if (!f.pairing)
                return error_nomem(err);
        arena_init(&f.arena);
        buf_init(&f.id, 0);
        int rc = pg_read_last(&c->base, PAIRING_WINDOW, follow, &f, err);
        arena_release(&f.arena);
        buf_release(&f.id);
        if (rc < 0 || f.rc) {
                pairing_free(f.pairing);
                return f.rc ? error_nomem(err) : rc;
        }
        c->pairing = f.pairing;
        return 0;
}

static const struct admission_ops LOOKS = {
    .find = find,
    .is_admitted = is_admitted,
    .read = read_records,
    .read_amendments = read_amendments,
    .load_pairing = load_pairing,
};

/* ---- the tail ---- */

static void forget(struct pg_conv *c)
{
        c->known = false;
        if (c->pairing)
                pairing_free(c->pairing);
        c->pairing = NULL;
}

static int learn(struct pg_conv *c, struct steno_error *err)
{
        if (c->known)
                return 0;
        forget(c);
        int rc = pg_learn(c, err);
        c->known = rc == 0;
        return rc;
}

/* ---- writing ---- */

struct lines {
        struct buf out;
        size_t *ends;       /* of each, with its line feed */
        char at[TIME_TEXT]; /* of the last one */
};

static int make_lines(struct look *l, struct append_request *q, struct lines *to)
{
        const struct env *env = l->conv->store->env;
        struct backend_batch *b = q->batch;
        struct buf x;
        char now[TIME_TEXT], salt[2 * ABOUT_SALT + 1];
        unsigned char random[ABOUT_SALT];
        buf_init(&to->out, 0);
        buf_init(&x, 0);
        to->ends = calloc(b->count, sizeof *to->ends);
        admission_time(env, l->conv->last_at, now);
        for (size_t i = 0; to->ends && i < b->count; i++) {
                env->random(env, random, sizeof random);
                hash_hex(random, sizeof random, salt);
                struct admission_stamp stamp = {now, to->out.n, salt};
                admission_put(&l->admission, q, i, &stamp, &x, &to->out);
                to->ends[i] = to->out.n;
        }
        const struct str *at = &b->entries[b->count - 1].at;
        snprintf(
            to->at, sizeof to->at, "%.*s", at->n ? (int)at->n : TIME_TEXT, at->n ? at->p : now);
        bool failed = !to->ends || to->out.failed || x.failed;
        buf_release(&x);
        return failed ? error_nomem(&q->err) : 0;
}

static void lines_release(struct lines *lines)
{
        buf_release(&lines->out);
        free(lines->ends);
}

/* Who takes a run over has to wait for the lock on its claim's key, or this finds another epoch;
 * renewals of the lease do not wait for it. */
static void put_statement(struct buf *sql, const struct backend_batch *b)
{
        if (b->claim)
                buf_printf(sql,
                    "WITH ours AS (SELECT 1 FROM claim WHERE project = $1 AND uid = $2 AND epoch ="
                    " $%zu::bigint AND open FOR KEY SHARE), ",
                    8 + 5 * b->count);
        else
                buf_puts(sql, "WITH ");
        buf_puts(sql,
            "up AS (UPDATE tail SET last_seq = $3::bigint + $4::bigint, bytes = bytes + $5::bigint,"
            " last_amend = $6::bigint, updated = $7 WHERE project = $1 AND uid = $2 AND last_seq ="
            " $3::bigint AND NOT removed");
        if (b->claim)
                buf_puts(sql, " AND EXISTS (SELECT 1 FROM ours)");
        buf_puts(sql, " RETURNING 1) INSERT INTO record (project, uid, seq, id, key, amends, line)"
                      " SELECT $1, $2, v.* FROM up, (VALUES ");
        for (size_t i = 0; i < b->count; i++) {
                size_t at = 8 + 5 * i;
                buf_printf(sql,
                    "%s($%zu::bigint, $%zu::text, $%zu::text, $%zu::bigint <> 0, $%zu::bytea)",
                    i ? ", " : "", at, at + 1, at + 2, at + 3, at + 4);
        }
        buf_puts(sql, ") AS v");
}

/* 1: written; 0: somebody else was quicker; or negative. */
static int write_lines(struct look *l, struct append_request *q, const struct lines *lines)
{
        struct pg_conv *c = l->conv;
        struct backend_batch *b = q->batch;
        struct pg_query s;
        struct buf sql;
        buf_init(&sql, 0);
        put_statement(&sql, b);
        const char *text = buf_cstr(&sql);
        pg_query_init(&s, text);
        long n = text && pg_query_room(&s, (int)(8 + 5 * b->count)) ? 0 : error_nomem(&q->err);
        if (n == 0) {
                s.relaxed = b->durability == STENO_PROCESS;
                s.prepared = b->count > 1 ? PG_UNPREPARED
                             : b->claim   ? PG_APPEND_RUN
                                          : PG_APPEND_ONE;
                pg_key(&s, c);
                pg_u64(&s, l->admission.stored);
                pg_u64(&s, b->count);
                pg_u64(&s, lines->out.n);
                pg_u64(&s, l->admission.amend ? l->admission.amend : c->last_amend);
                pg_cstr(&s, lines->at);
                for (size_t i = 0; i < b->count; i++) {
                        size_t begin = i ? lines->ends[i - 1] : 0;
                        pg_u64(&s, l->admission.seq + 1 + i);
                        pg_text(&s, b->entries[i].id);
                        if (i == 0 && b->key.n)
                                pg_text(&s, b->key);
                        else
                                pg_null(&s);
                        pg_u64(&s, b->entries[i].about.kind.n > 0);
                        pg_bytes(&s, str_span(lines->out.p + begin, lines->ends[i] - begin));
                }
                if (b->claim)
                        pg_u64(&s, pg_run_claim_epoch(b->claim));
                if (s.relaxed)
                        __atomic_store_n(&c->store->unsynced, true, __ATOMIC_RELEASE);
                n = l->tx ? pg_tx_change(l->tx, &s, &q->err) : pg_change(c->store, &s, &q->err);
        }
        pg_query_release(&s);
        buf_release(&sql);
        if (n == PG_UNIQUE) /* its own retry, or another writer's id: the next look finds out */
                return 0;
        if (l->tx && n == STENO_EIO && q->err.sys == EAGAIN)
                return 0;
        if (n == 0 && b->claim) { /* somebody else was quicker, or has the run */
                int rc = pg_run_claim_ask(b->claim, &q->err);
                if (rc)
                        return rc;
        }
        return n < 0 ? (int)n : n == (long)b->count;
}

/* What was found to be there may not have reached its standby yet (G3). */
static int confirm_replay(struct look *l, struct append_request *q)
{
        struct pg_conv *c = l->conv;
        struct pg_query s;
        if (q->batch->durability != STENO_FULL)
                return 0;
        pg_query_init(&s, "UPDATE tail SET touched = touched + 1 WHERE project = $1 AND uid = $2");
        pg_key(&s, c);
        long n = l->tx ? pg_tx_change(l->tx, &s, &q->err) : pg_change(c->store, &s, &q->err);
        if (n < 0)
                backend_receipt_release(&q->receipt, q->batch->count);
        return n < 0 ? (int)n : 0;
}

/* One admission and one statement. 1: done; 0: again. */
static int try_once(struct pg_conv *c, struct append_request *q, struct pg_tx *tx)
{
        struct look l = {.conv = c, .tx = tx};
        struct lines lines = {0};
        int rc = learn(c, &q->err);
        if (rc)
                return rc;
        l.admission = (struct admission){.ops = &LOOKS,
            .stored = c->last_seq,
            .seq = c->last_seq,
            .last_amend = c->last_amend,
            .pairing = &c->pairing};
        arena_init(&l.admission.arena);
        rc = admission_admit(&l.admission, q);
        if (rc == ADMIT_REPLAY) {
                rc = confirm_replay(&l, q);
                q->receipt.durability = q->batch->durability;
                arena_release(&l.admission.arena);
                return rc ? rc : 1;
        }
        if (rc == 0)
                rc = admission_pair(&l.admission, q);
        if (rc == 0)
                rc = make_lines(&l, q, &lines);
        if (rc == 0)
                rc = write_lines(&l, q, &lines);
        lines_release(&lines);
        if (rc == 1) {
                q->receipt.first_seq = c->last_seq + 1;
                c->last_seq += q->batch->count;
                q->receipt.last_seq = c->last_seq;
                q->receipt.durability = q->batch->durability;
                memcpy(c->last_at, lines.at, sizeof c->last_at);
                if (l.admission.amend)
                        c->last_amend = l.admission.amend;
        } else if (rc == 0 || rc != STENO_EPROTO) {
                forget(c); /* the pairing may have seen what was not written */
        }
        arena_release(&l.admission.arena);
        return rc;
}

/* ---- others who append to the same conversation ---- */

/* After so many lost races, an append takes the lock of the row, so that no other writer can get
 * ahead of it. */
#define MISSES 3

/* Waits for all who have the tail's lock. One of a process at a time: what it reads meanwhile needs
 * a second connection of the pool. */
static int lock_tail(struct pg_conv *c, struct pg_tx *tx, struct steno_error *err)
{
        struct pg_query q;
        pthread_mutex_lock(&c->store->locking);
        int rc = pg_tx_begin(c->store, tx, err);
        if (rc == 0) {
                pg_query_init(&q, "SELECT 1 FROM tail WHERE project = $1 AND uid = $2 FOR UPDATE");
                q.patience_ms = c->store->commit_ms;
                pg_key(&q, c);
                rc = pg_tx_run(tx, &q, NULL, err);
                if (rc)
                        pg_tx_end(tx, rc, NULL);
        }
        if (rc)
                pthread_mutex_unlock(&c->store->locking);
        return rc;
}

static int try_locked(struct pg_conv *c, struct append_request *q)
{
        struct pg_tx tx;
        int rc = lock_tail(c, &tx, &q->err);
        if (rc)
                return rc;
        forget(c);
        rc = try_once(c, q, &tx);
        int ended = pg_tx_end(&tx, rc == 1 ? 0 : STENO_ECONFLICT, &q->err);
        pthread_mutex_unlock(&c->store->locking);
        if (rc != 1 || ended == 0)
                return rc;
        backend_receipt_release(&q->receipt, q->batch->count);
        forget(c);
        return ended;
}

static bool is_refusal(int rc)
{
        return rc == STENO_EPROTO || rc == STENO_ECONFLICT || rc == STENO_ENOTFOUND ||
               rc == STENO_EINVAL;
}

/* The connection broke during the commit. What was written then is found by its ids, those that we
 * made included. */
static void look_for_all(struct backend_batch *b)
{
        for (size_t i = 0; i < b->count; i++)
                b->entries[i].made_id = false;
}

int pg_append(struct backend_conv *conv, struct backend_batch *batch, struct backend_receipt *out,
    struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct append_request q = {.batch = batch};
        bool doubted = false;
        int rc = 0;
        pthread_mutex_lock(&c->mutex);
        bool fresh = c->known;
        int64_t until = time_monotonic_ms() + c->store->commit_ms;
        for (int tries = 0; rc == 0 && tries < TRIES; tries++) {
                rc = tries > MISSES && c->store->pool_size > 1 ? try_locked(c, &q)
                                                               : try_once(c, &q, NULL);
                if (rc == STENO_EINDOUBT && q.err.sys == ECONNRESET &&
                    time_monotonic_ms() < until) {
                        look_for_all(batch);
                        doubted = true;
                        rc = 0;
                        q = (struct append_request){.batch = batch};
                        continue;
                }
                /* What was refused against a tail that is out of date is looked at once more. */
                if (rc < 0 && fresh && is_refusal(rc)) {
                        forget(c);
                        fresh = false;
                        rc = 0;
                        q = (struct append_request){.batch = batch};
                }
        }
        pthread_mutex_unlock(&c->mutex);
        if (rc == 1) {
                if (doubted) /* it was this very append */
                        q.receipt.replayed = false;
                if (!q.receipt.replayed)
                        pg_signal_say(c);
                *out = q.receipt;
                return 0;
        }
        if (rc == 0)
                rc = error_set(&q.err, STENO_ECONFLICT,
                    "other writers append to this conversation all the time; try again");
        if (err)
                *err = q.err;
        return rc;
}
