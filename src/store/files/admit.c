/*
 * admit.c - whether a batch may go in: what its amendments are about, and its pairing.
 */
#include "store/files/append_work.h"

#include "base/error.h"

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

/* It must be a message that can be seen. */
int admit_targets(struct group *g, struct append_request *q)
{
        struct files_conv *c = g->conv;
        struct files_batch *b = q->batch;
        for (size_t i = 0; i < b->count; i++) {
                struct about *about = &b->entries[i].about;
                if (!about->kind.n)
                        continue;
                struct candidate found;
                struct target t = {.id = about->target, .arena = &g->arena};
                struct str named = about->target;
                int rc = conv_cover_ids(c, &q->err);
                if (rc)
                        return rc;
                candidate_init(&found, g, &q->err);
                found.want = about->target;
                rc = candidate_find(&found);
                bool message = rc == 1 && is_message(&t, about, &found.rec);
                bool purged = rc == 1 && str_starts(found.rec.x, "{\"kind\":\"tombstone\"");
                candidate_release(&found);
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
int admit_pairing(struct group *g, struct append_request *q)
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
