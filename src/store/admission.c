/*
 * admission.c - see admission.h: amendments, the expected seq, pairing, and the lines that come of
 * it.
 */
#include "store/admission.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

/* What a record usually has besides its message and its about object. */
#define HEADER_ROOM 320

/* ---- amendments ---- */

/*
 * A message that replaces another one also has an id of its own, but amendments name the id of the
 * first message in that place. So everything that happened to a place is found under one id.
 */
static int name_targets(struct admission *a, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        for (size_t i = 0; i < b->count; i++) {
                struct backend_entry *e = &b->entries[i];
                struct record found;
                struct about about;
                struct buf line;
                if (!e->about.kind.n)
                        continue;
                buf_init(&line, 0);
                e->about.target = e->named;
                int rc = a->ops->find(a, e->named, false, &line, &found, &q->err);
                if (rc == 1) {
                        rc = about_read(found.x, &a->arena, &about, &q->err);
                        if (rc == 0 && str_is(about.kind, "supersede"))
                                e->about.target = about.target;
                }
                buf_release(&line);
                if (rc)
                        return rc;
        }
        return 0;
}

struct target {
        struct str id;
        bool deleted;
        struct buf by; /* the id of the newest record that took its place */
        bool replaced;
        struct arena *arena;
};

/* They come newest first. */
static int follow_target(void *ctx, const struct backend_record *r)
{
        struct target *t = ctx;
        struct about about;
        if (r->damaged || about_read(r->rec.x, t->arena, &about, NULL) ||
            !str_eq(about.target, t->id))
                return t->arena->failed;
        t->deleted = str_is(about.kind, "delete");
        if (!t->replaced && str_is(about.kind, "supersede")) {
                t->replaced = true;
                json_unescape(r->rec.id, &t->by, NULL);
        }
        return t->by.failed ? t->by.failed : t->deleted;
}

/* Does a message with this id exist, or one that has replaced it? */
static int look_for_target(
    struct admission *a, const struct backend_entry *e, bool *there, struct steno_error *err)
{
        struct record found;
        struct buf line;
        struct target t = {.id = e->about.target, .arena = &a->arena};
        buf_init(&line, 0);
        int rc = a->ops->find(a, t.id, false, &line, &found, err);
        bool message = rc == 1 && !str_starts(found.x, "{\"kind\":");
        bool purged = rc == 1 && str_starts(found.x, "{\"kind\":\"tombstone\"");
        buf_release(&line);
        *there = false;
        if (rc < 0 || !(message || purged))
                return rc < 0 ? rc : 0;
        buf_init(&t.by, 0);
        rc = a->ops->read_amendments(a, follow_target, &t, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        bool by_first = str_eq(e->named, t.id);
        bool by_last = t.replaced && str_eq(e->named, buf_str(&t.by));
        *there = !t.deleted && (message || t.replaced) && (by_first || by_last);
        buf_release(&t.by);
        return rc < 0 ? rc : 0;
}

/* ADMIT_LATER when another amendment goes first. */
static int look_for_targets(struct admission *a, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        bool others = a->amend;
        for (size_t i = 0; i < b->count; i++) {
                struct backend_entry *e = &b->entries[i];
                bool there;
                if (!e->about.kind.n)
                        continue;
                if (others)
                        return ADMIT_LATER; /* what those do is not in the log yet */
                int rc = look_for_target(a, e, &there, &q->err);
                if (rc)
                        return rc;
                if (!there)
                        return error_set(&q->err, STENO_ENOTFOUND, "no message \"%.*s\" to %s",
                            (int)(e->named.n > 100 ? 100 : e->named.n), e->named.p,
                            str_is(e->about.kind, "delete") ? "delete"
                            : str_is(e->about.kind, "meta") ? "give metadata to"
                                                            : "replace");
                e->about.prev = a->amend ? a->amend : a->last_amend;
                a->amend = a->seq + 1 + i;
        }
        return 0;
}

/* ---- the expected seq ---- */

/* One dead run leaves fewer records than this. */
#define RECOVERED_MAX 4096

static int stop_at_other(void *ctx, const struct backend_record *r)
{
        uint64_t *count = ctx;
        struct arena arena;
        struct about about;
        arena_init(&arena);
        bool recovered = !r->damaged && ++*count <= RECOVERED_MAX &&
                         about_read(r->rec.x, &arena, &about, NULL) == 0 && about.recovered;
        arena_release(&arena);
        return !recovered;
}

/* Are all records behind `seq` from the recovery of a dead run? Then a writer that had seen
 * everything before has seen all that other writers wrote. */
static bool saw_all(struct admission *a, uint64_t seq)
{
        uint64_t count = 0;
        return seq < a->seq && a->seq == a->stored &&
               a->ops->read(a, seq, stop_at_other, &count, NULL) == 0;
}

/* ---- pairing ---- */

/* A batch that is refused never gets the seqs that its messages would have had. */
static const char *place_of(const struct admission *a, uint64_t seq, char *to, size_t n)
{
        if (seq > a->seq)
                snprintf(to, n, "message %llu of this batch", (unsigned long long)(seq - a->seq));
        else
                snprintf(to, n, "seq %llu", (unsigned long long)seq);
        return to;
}

static int refuse_result(struct admission *a, struct append_request *q, size_t i, struct str call,
    const struct pairing_match *m)
{
        char place[64];
        int n = (int)(call.n > 80 ? 80 : call.n);
        if (m->verdict == PAIRING_DUPLICATE)
                return error_set(&q->err, STENO_EPROTO,
                    "message %zu: tool_call_id \"%.*s\" was already answered at %s", i + 1, n,
                    call.p, place_of(a, m->result_seq, place, sizeof place));
        if (m->gone)
                return error_set(&q->err, STENO_EPROTO,
                    "message %zu: tool_call_id \"%.*s\" answers a call that was deleted or "
                    "replaced",
                    i + 1, n, call.p);
        if (m->block_seq == 0)
                return error_set(&q->err, STENO_EPROTO,
                    "message %zu: tool_call_id \"%.*s\" answers no call", i + 1, n, call.p);
        return error_set(&q->err, STENO_EPROTO,
            "message %zu: tool_call_id \"%.*s\" answers no call of the block at %s", i + 1, n,
            call.p, place_of(a, m->block_seq, place, sizeof place));
}

static int pair_batch(struct admission *a, struct append_request *q, struct pairing *p)
{
        struct backend_batch *b = q->batch;
        for (size_t i = 0; i < b->count; i++) {
                struct backend_entry *e = &b->entries[i];
                struct about *about = &e->about;
                struct pairing_match *m =
                    arena_alloc(&a->arena, (about->answer_count + 1) * sizeof *m);
                if (!m || pairing_follow(p, a->seq + 1 + i, e->id, about, m, NULL))
                        return error_nomem(&q->err);
                about->orphan = about->duplicate = false;
                for (size_t k = 0; k < about->answer_count; k++) {
                        /* The pairing in a run's journal is right, however late the result
                         * comes. */
                        bool late = about->of && about->of + PAIRING_WINDOW < a->seq + 1 + i;
                        if (m[k].verdict == PAIRING_OK || late)
                                continue;
                        if (!b->record)
                                return refuse_result(a, q, i, about->answers[k], &m[k]);
                        if (m[k].verdict == PAIRING_ORPHAN)
                                about->orphan = true;
                        else
                                about->duplicate = true;
                }
        }
        return 0;
}

/* A batch is tried on a copy, so that a refused one leaves no trace. */
int admission_pair(struct admission *a, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        bool answers = false;
        for (size_t i = 0; i < b->count; i++)
                answers = answers || b->entries[i].about.answer_count > 0;
        if (!answers && !*a->pairing)
                return 0; /* loaded when the first result comes */
        int rc = a->ops->load_pairing(a, &q->err);
        if (rc)
                return rc;
        if (!answers)
                return pair_batch(a, q, *a->pairing);
        struct pairing *trial = pairing_clone(*a->pairing);
        if (!trial)
                return error_nomem(&q->err);
        rc = pair_batch(a, q, trial);
        if (rc) {
                pairing_free(trial);
                return rc;
        }
        pairing_free(*a->pairing);
        *a->pairing = trial;
        return 0;
}

/* ---- all of it ---- */

int admission_admit(struct admission *a, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        int rc = name_targets(a, q);
        if (rc == 0)
                rc = admission_replay(a, q);
        if (rc)
                return rc;
        if (b->expect && b->expected_seq != a->seq && !saw_all(a, b->expected_seq))
                return error_set(&q->err, STENO_ECONFLICT, "expected seq %llu, the last is %llu",
                    (unsigned long long)b->expected_seq, (unsigned long long)a->seq);
        return look_for_targets(a, q);
}

void admission_time(const struct env *env, const char *last, char out[TIME_TEXT])
{
        int64_t now = env->now(env), before;
        bool ahead = time_parse(last, strlen(last), &before) && before > now &&
                     before - now <= TIME_AHEAD_MS;
        time_format(ahead ? before : now, out);
}

void admission_put(const struct admission *a, struct append_request *q, size_t i,
    const struct admission_stamp *stamp, struct buf *x, struct buf *out)
{
        struct backend_batch *b = q->batch;
        struct backend_entry *e = &b->entries[i];
        e->about.key = i == 0 ? b->key : (struct str){0};
        e->about.length = e->about.kind.n ? 0 : e->m.n;
        e->about.salt = str_of(stamp->salt);
        buf_clear(x);
        about_write(&e->about, x);
        e->about.salt = (struct str){0};
        buf_reserve(out, e->m.n + x->n + HEADER_ROOM);
        struct record r = {.seq = a->seq + 1 + i,
            .at = e->at.n ? e->at : str_of(stamp->now),
            .fmt = e->fmt,
            .batch_index = b->each ? 0 : (uint32_t)i,
            .batch_count = b->each ? 1 : (uint32_t)b->count,
            .group = stamp->group,
            .x = buf_str(x),
            .m = e->m};
        record_write(out, &r, e->id);
}
