/* fold.c - see fold.h */
#include "model/fold.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "model/pairing.h"
#include "model/repair.h"

struct fold {
        struct history h;
        size_t cap;
        struct pairing *pairing;
        struct arena scratch; /* memory for one push */
};

struct fold *fold_new(void)
{
        struct fold *f = calloc(1, sizeof *f);
        if (!f)
                return NULL;
        arena_init(&f->scratch);
        f->pairing = pairing_new();
        if (f->pairing)
                return f;
        free(f);
        return NULL;
}

void fold_free(struct fold *f)
{
        if (!f)
                return;
        pairing_free(f->pairing);
        arena_release(&f->scratch);
        free(f->h.list);
        free(f);
}

const struct history *fold_history(const struct fold *f)
{
        return &f->h;
}

static bool reserve(struct fold *f)
{
        return grow_room(f->h.list, f->h.count, f->cap);
}

static bool collect_ids(struct fold *f, const struct message *m, struct about *about)
{
        struct str *ids = arena_alloc(&f->scratch, (m->count + 1) * sizeof *ids);
        uint32_t *calls = arena_alloc(&f->scratch, (m->count + 1) * sizeof *calls);
        if (!ids || !calls)
                return false;
        repair_describe(m, ids, calls, &f->scratch, about);
        return !f->scratch.failed;
}

static int refuse(
    const struct about *about, size_t i, const struct pairing_match *match, struct steno_error *err)
{
        struct str id = about->answers[i];
        int n = (int)(id.n > 100 ? 100 : id.n);
        if (match->verdict == PAIRING_ORPHAN)
                return error_set(err, STENO_EPROTO, "result \"%.*s\" has no call", n, id.p);
        return error_set(err, STENO_EPROTO,
            "result \"%.*s\": the call was answered by message %llu", n, id.p,
            (unsigned long long)match->result_seq);
}

static struct part *nth(const struct message *m, enum part_kind kind, size_t n)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == kind && n-- == 0)
                        return &m->parts[i];
        return NULL;
}

static void marry(
    struct fold *f, const struct message *m, size_t answer, const struct pairing_match *match)
{
        struct part *result = nth(m, PART_RESULT, answer);
        struct part *call = nth(&f->h.list[match->call_seq - 1], PART_CALL, match->call_index);
        result->seq = m->seq;
        call->seq = call->seq ? call->seq : match->call_seq;
        result->peer = call;
        call->peer = result;
}

int fold_push(struct fold *f, const struct message *m, struct steno_error *err)
{
        arena_reset(&f->scratch);
        struct about about = {0};
        if (!reserve(f) || !collect_ids(f, m, &about))
                return error_nomem(err);
        struct pairing_match *matches =
            arena_alloc(&f->scratch, (about.answer_count + 1) * sizeof *matches);
        /* The answers are tried on a copy of the pairing, so that a refused message changes
         * nothing. */
        struct pairing *next = about.answer_count ? pairing_clone(f->pairing) : f->pairing;
        uint64_t seq = f->h.count + 1;
        int rc = 0;
        if (!matches || !next || pairing_add(next, seq, &about, matches))
                rc = error_nomem(err);
        for (size_t i = 0; i < about.answer_count && !rc; i++)
                if (matches[i].verdict != PAIRING_OK)
                        rc = refuse(&about, i, &matches[i], err);
        if (rc) {
                if (next != f->pairing)
                        pairing_free(next);
                return rc;
        }
        if (next != f->pairing) {
                pairing_free(f->pairing);
                f->pairing = next;
        }
        struct message *kept = &f->h.list[f->h.count++];
        *kept = *m;
        kept->seq = seq;
        for (size_t i = 0; i < about.answer_count; i++)
                marry(f, kept, i, &matches[i]);
        return 0;
}

int fold_all(struct history *h, struct steno_error *err)
{
        struct fold *f = fold_new();
        if (!f)
                return error_nomem(err);
        int rc = 0;
        for (size_t i = 0; i < h->count && !rc; i++) {
                for (size_t k = 0; k < h->list[i].count; k++)
                        h->list[i].parts[k].peer = NULL;
                rc = fold_push(f, &h->list[i], err);
                if (rc)
                        error_prefix(err, rc, "message %zu", i + 1);
        }
        fold_free(f);
        return rc;
}
