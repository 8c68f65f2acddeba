/*
 * admit.c - whether a batch may go in: what its amendments are about, and its pairing.
 */
#include "store/files/append_work.h"

#include <stdio.h>

#include "base/error.h"
#include "base/json.h"

/* ---- amendments ---- */

/*
 * A message that took another's place is known by its own id too, but amended through the one that
 * was there first: so all that happened to a place is found under one name.
 */
int admit_names(struct group *g, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        for (size_t i = 0; i < b->count; i++) {
                struct backend_entry *e = &b->entries[i];
                struct candidate found;
                struct about about;
                if (!e->about.kind.n)
                        continue;
                replay_candidate_init(&found, g, &q->err);
                found.want = e->named;
                e->about.target = e->named;
                int rc = replay_candidate_find(&found);
                if (rc == 1) {
                        rc = about_read(found.rec.x, &g->arena, &about, &q->err);
                        if (rc == 0 && str_is(about.kind, "supersede"))
                                e->about.target = about.target;
                }
                replay_candidate_release(&found);
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

/* Is a message of this id in its place, or what came there behind it? */
static int look_for_target(
    struct group *g, const struct backend_entry *e, bool *there, struct steno_error *err)
{
        struct candidate found;
        struct target t = {.id = e->about.target, .arena = &g->arena};
        replay_candidate_init(&found, g, err);
        found.want = t.id;
        int rc = replay_candidate_find(&found);
        bool message = rc == 1 && !str_starts(found.rec.x, "{\"kind\":");
        bool purged = rc == 1 && str_starts(found.rec.x, "{\"kind\":\"tombstone\"");
        replay_candidate_release(&found);
        *there = false;
        if (rc < 0 || !(message || purged))
                return rc < 0 ? rc : 0;
        buf_init(&t.by, 0);
        rc = files_read_amendments(g->conv, follow_target, &t, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        bool by_first = str_eq(e->named, t.id);
        bool by_last = t.replaced && str_eq(e->named, buf_str(&t.by));
        *there = !t.deleted && (message || t.replaced) && (by_first || by_last);
        buf_release(&t.by);
        return rc < 0 ? rc : 0;
}

int admit_targets(struct group *g, struct append_request *q)
{
        struct backend_batch *b = q->batch;
        bool others = g->amend;
        for (size_t i = 0; i < b->count; i++) {
                struct backend_entry *e = &b->entries[i];
                bool there;
                if (!e->about.kind.n)
                        continue;
                if (others)
                        return ADMIT_LATER; /* what those do is not in the log yet */
                int rc = look_for_target(g, e, &there, &q->err);
                if (rc)
                        return rc;
                if (!there)
                        return error_set(&q->err, STENO_ENOTFOUND, "no message \"%.*s\" to %s",
                            (int)(e->named.n > 100 ? 100 : e->named.n), e->named.p,
                            str_is(e->about.kind, "delete") ? "delete"
                            : str_is(e->about.kind, "meta") ? "give metadata to"
                                                            : "replace");
                e->about.prev = g->amend ? g->amend : g->conv->ids.last_amend;
                g->amend = g->seq + 1 + i;
        }
        return 0;
}

/* ---- the expected seq ---- */

/* More than one dead run leaves. */
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

bool admit_expected(struct group *g, uint64_t seq)
{
        uint64_t count = 0;
        return seq < g->seq && g->seq == g->conv->at.last_seq &&
               files_read(g->conv, seq, stop_at_other, &count, NULL) == 0;
}

/* ---- pairing ---- */

/* A batch that is refused never gets the seqs that its messages would have had. */
static const char *place_of(const struct group *g, uint64_t seq, char *to, size_t n)
{
        if (seq > g->seq)
                snprintf(to, n, "message %llu of this batch", (unsigned long long)(seq - g->seq));
        else
                snprintf(to, n, "seq %llu", (unsigned long long)seq);
        return to;
}

static int refuse_result(struct group *g, struct append_request *q, size_t i, struct str call,
    const struct pairing_match *m)
{
        char place[64];
        int n = (int)(call.n > 80 ? 80 : call.n);
        if (m->verdict == PAIRING_DUPLICATE)
                return error_set(&q->err, STENO_EPROTO,
                    "message %zu: tool_call_id \"%.*s\" was already answered at %s", i + 1, n,
                    call.p, place_of(g, m->result_seq, place, sizeof place));
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
            call.p, place_of(g, m->block_seq, place, sizeof place));
}

static int pair_batch(struct group *g, struct append_request *q, struct pairing *p)
{
        struct backend_batch *b = q->batch;
        for (size_t i = 0; i < b->count; i++) {
                struct backend_entry *e = &b->entries[i];
                struct about *about = &e->about;
                struct pairing_match *m =
                    arena_alloc(&g->arena, (about->answer_count + 1) * sizeof *m);
                if (!m || pairing_follow(p, g->seq + 1 + i, e->id, about, m, NULL))
                        return error_nomem(&q->err);
                about->orphan = about->duplicate = false;
                for (size_t k = 0; k < about->answer_count; k++) {
                        /* What a run's journal says is true, however late it comes. */
                        bool late = about->of && about->of + PAIRING_WINDOW < g->seq + 1 + i;
                        if (m[k].verdict == PAIRING_OK || late)
                                continue;
                        if (!b->record)
                                return refuse_result(g, q, i, about->answers[k], &m[k]);
                        if (m[k].verdict == PAIRING_ORPHAN)
                                about->orphan = true;
                        else
                                about->duplicate = true;
                }
        }
        return 0;
}

/* A batch is tried on a copy, so that a refused one leaves no trace. */
int admit_pairing(struct group *g, struct append_request *q)
{
        struct files_conv *c = g->conv;
        struct backend_batch *b = q->batch;
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
