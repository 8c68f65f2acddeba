/*
 * files_append_find.c - how an append looks at the log that it writes to (store/admission.h): by
 * ids.idx, under the lock.
 */
#include "store/files/append_work.h"

#include "base/error.h"
#include "base/json.h"

static struct files_conv *conv_of(struct admission *a)
{
        return ((struct group *)a)->conv;
}

/* Looks for the record with an id, or with an idempotency key. */
struct candidate {
        struct files_conv *conv;
        struct str want;
        bool key;
        struct buf *line;
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
        int rc = log_read_at(fs, c->conv->log, c->conv->at.end, at, c->line, &rec, c->err);
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

static uint64_t hash_of(struct str want, bool key)
{
        return key ? ids_hash_key(want) : ids_hash_id(want);
}

static int find(struct admission *a, struct str want, bool key, struct buf *line,
    struct record *rec, struct steno_error *err)
{
        struct candidate c = {
            .conv = conv_of(a), .want = want, .key = key, .line = line, .err = err};
        int rc = conv_cover_ids(c.conv, err);
        if (rc)
                return rc;
        a->last_amend = c.conv->ids.last_amend; /* known from here on */
        buf_init(&c.text, 0);
        rc = conv_lookup(c.conv, hash_of(want, key), try_candidate, &c, err);
        buf_release(&c.text);
        if (rc == 1 && c.rc == 0)
                *rec = c.rec;
        return rc <= 0 ? rc : c.rc ? c.rc : 1;
}

static bool is_admitted(struct admission *a, struct str want, bool key)
{
        const struct group *g = (const struct group *)a;
        uint64_t hash = hash_of(want, key);
        for (size_t i = 0; i < g->noted_count; i++)
                if (g->noted[i].hash == hash)
                        return true;
        return false;
}

static int read_log(
    struct admission *a, uint64_t after, backend_record_fn each, void *ctx, struct steno_error *err)
{
        struct files_conv *c = conv_of(a);
        const struct fs *fs = c->store->env->fs;
        struct log_cursor cursor;
        struct log_line line;
        uint64_t at;
        int rc = log_seek_after(fs, c->log, c->at.end, after, &at, err);
        if (rc)
                return rc;
        log_cursor_init(&cursor, fs, c->log, at, c->at.end);
        cursor.seq = after;
        cursor.seq_known = true;
        while ((rc = log_next_upto(&cursor, c->at.last_seq, &line, err)) == 1) {
                struct backend_record r = {.rec = line.rec,
                    .damaged = line.damaged || about_is_lost(line.rec.x),
                    .first_seq = line.first_seq,
                    .last_seq = line.last_seq};
                rc = each(ctx, &r);
                if (rc)
                        break;
        }
        log_cursor_release(&cursor);
        return rc;
}

static int read_amendments(
    struct admission *a, backend_record_fn each, void *ctx, struct steno_error *err)
{
        return files_read_amendments(conv_of(a), each, ctx, err);
}

static int load_pairing(struct admission *a, struct steno_error *err)
{
        return conv_load_pairing(conv_of(a), err);
}

const struct admission_ops files_append_looks = {
    .find = find,
    .is_admitted = is_admitted,
    .read = read_log,
    .read_amendments = read_amendments,
    .load_pairing = load_pairing,
};
