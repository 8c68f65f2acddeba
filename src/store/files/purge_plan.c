/* purge_plan.c - see purge_plan.h */
#include "store/files/purge_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"

struct amendment {
        uint64_t seq;
        struct str target;
        enum { DELETES, SUPERSEDES, CHANGES } what;
};

struct planning {
        const struct fs *fs;
        int log;
        uint64_t end;
        struct purge_plan *plan;
        struct amendment *list;
        size_t count;
        size_t cap;
        struct purge_names deleted;  /* targets */
        struct purge_names replaced; /* targets */
        struct arena scratch;        /* of one record */
};

/* ---- sets of names ---- */

static int names_add(struct purge_names *n, struct arena *arena, struct str s)
{
        if (!grow_room(n->list, n->count, n->cap))
                return STENO_ENOMEM;
        struct str name = arena_dup(arena, s);
        if (!name.p)
                return STENO_ENOMEM;
        n->list[n->count++] = name;
        return 0;
}

static int compare(const void *a, const void *b)
{
        const struct str *x = a, *y = b;
        size_t n = x->n < y->n ? x->n : y->n;
        int order = n ? memcmp(x->p, y->p, n) : 0; /* an empty name has no bytes */
        return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* Sorted, each once. */
static void names_sort(struct purge_names *n)
{
        size_t out = 0;
        if (n->count)
                qsort(n->list, n->count, sizeof *n->list, compare);
        for (size_t i = 0; i < n->count; i++)
                if (i == 0 || !str_eq(n->list[i], n->list[out - 1]))
                        n->list[out++] = n->list[i];
        n->count = out;
}

bool purge_names_have(const struct purge_names *n, struct str s)
{
        return n->count && bsearch(&s, n->list, n->count, sizeof *n->list, compare);
}

/* Takes out what is also in `other`. */
static void names_subtract(struct purge_names *n, const struct purge_names *other)
{
        size_t out = 0;
        for (size_t i = 0; i < n->count; i++)
                if (!purge_names_have(other, n->list[i]))
                        n->list[out++] = n->list[i];
        n->count = out;
}

/* ---- the log, twice ---- */

static int walk(struct planning *p,
    int (*each)(struct planning *p, const struct record *rec, const struct about *about),
    struct steno_error *err)
{
        struct log_cursor cursor;
        struct log_line line;
        struct about about;
        uint64_t damage_at = UINT64_MAX;
        int rc;
        p->plan->damaged = 0;
        log_cursor_init(&cursor, p->fs, p->log, 0, p->end);
        while ((rc = log_next(&cursor, &line, err)) == 1) {
                if (line.damaged) {
                        damage_at = line.at;
                        continue;
                }
                p->plan->damaged += damage_at < line.at; /* else records are missing, not bytes */
                damage_at = UINT64_MAX;
                arena_reset(&p->scratch);
                rc = about_read(line.rec.x, &p->scratch, &about, err);
                if (rc == 0)
                        rc = each(p, &line.rec, &about);
                if (rc == STENO_ECORRUPT)
                        continue; /* what cannot be understood stays as it is */
                if (rc)
                        break;
        }
        p->plan->damaged += damage_at < p->end;
        log_cursor_release(&cursor);
        return rc == STENO_ENOMEM ? error_nomem(err) : rc;
}

static int note_amendment(struct planning *p, const struct record *rec, const struct about *about)
{
        struct arena *arena = &p->plan->arena;
        struct amendment a = {.seq = rec->seq};
        if (str_is(about->kind, "tombstone"))
                return about->run.n ? names_add(&p->plan->runs, arena, about->run) : 0;
        if (str_is(about->kind, "delete"))
                a.what = DELETES;
        else if (str_is(about->kind, "supersede"))
                a.what = SUPERSEDES;
        else if (str_is(about->kind, "meta"))
                a.what = CHANGES;
        else
                return 0;
        if (!grow_room(p->list, p->count, p->cap))
                return STENO_ENOMEM;
        a.target = arena_dup(arena, about->target);
        p->list[p->count++] = a;
        if (a.what == CHANGES)
                return a.target.p ? 0 : STENO_ENOMEM;
        return names_add(a.what == DELETES ? &p->deleted : &p->replaced, arena, about->target);
}

/* Of several that replace one message only the last is seen. */
static bool is_last_replacement(const struct planning *p, uint64_t seq, struct str target)
{
        for (size_t i = p->count; i-- > 0 && p->list[i].seq > seq;)
                if (p->list[i].what == SUPERSEDES && str_eq(p->list[i].target, target))
                        return false;
        return true;
}

static int goes(struct planning *p, const struct record *rec, const struct about *about, bool *yes)
{
        struct buf id;
        *yes = false;
        if (str_is(about->kind, "tombstone") || str_is(about->kind, "delete"))
                return 0;
        if (about->kind.n) {
                *yes = purge_names_have(&p->deleted, about->target) ||
                       (str_is(about->kind, "supersede") &&
                           !is_last_replacement(p, rec->seq, about->target));
                return 0;
        }
        buf_init(&id, 0);
        json_unescape(rec->id, &id, NULL);
        int rc = id.failed;
        *yes = purge_names_have(&p->deleted, buf_str(&id)) ||
               purge_names_have(&p->replaced, buf_str(&id));
        buf_release(&id);
        return rc;
}

int purge_plan_add(struct purge_plan *plan, uint64_t seq)
{
        if (!grow_room(plan->seqs, plan->count, plan->cap))
                return STENO_ENOMEM;
        plan->seqs[plan->count++] = seq;
        return 0;
}

static int sort_out(struct planning *p, const struct record *rec, const struct about *about)
{
        struct purge_plan *plan = p->plan;
        bool gone;
        int rc = goes(p, rec, about, &gone);
        if (rc == 0 && gone)
                rc = purge_plan_add(plan, rec->seq);
        if (rc == 0 && gone && about->run.n)
                rc = names_add(&plan->runs, &plan->arena, about->run);
        if (str_is(about->kind, "tombstone"))
                return rc; /* its refs are only names: the bytes went with the message */
        for (size_t i = 0; rc == 0 && i < about_ref_slots(about); i++) {
                struct str ref = about_ref_at(about, i);
                if (ref.n)
                        rc = names_add(gone ? &plan->refs : &plan->kept_refs, &plan->arena, ref);
        }
        for (size_t i = 0; rc == 0 && i < about_part_slots(about); i++) {
                struct str name = about_part_at(about, i).name;
                if (name.n)
                        rc = names_add(gone ? &plan->parts : &plan->kept_parts, &plan->arena, name);
        }
        return rc;
}

static int make(const struct fs *fs, int log, uint64_t end, bool all, struct purge_plan *plan,
    struct steno_error *err)
{
        struct planning p = {.fs = fs, .log = log, .end = end, .plan = plan};
        *plan = (struct purge_plan){0};
        arena_init(&plan->arena);
        arena_init(&p.scratch);
        int rc = walk(&p, note_amendment, err);
        names_sort(&p.deleted);
        names_sort(&p.replaced);
        if (rc == 0 && (all || p.deleted.count || p.replaced.count))
                rc = walk(&p, sort_out, err);
        names_sort(&plan->refs);
        names_sort(&plan->parts);
        names_sort(&plan->runs);
        names_sort(&plan->kept_refs);
        names_sort(&plan->kept_parts);
        names_subtract(&plan->refs, &plan->kept_refs);
        names_subtract(&plan->parts, &plan->kept_parts);
        free(p.list);
        free(p.deleted.list);
        free(p.replaced.list);
        arena_release(&p.scratch);
        if (rc)
                purge_plan_release(plan);
        return rc;
}

int purge_plan_make(struct files_conv *conv, struct purge_plan *plan, struct steno_error *err)
{
        return make(conv->store->env->fs, conv->log, conv->at.end, false, plan, err);
}

int purge_plan_look(
    const struct fs *fs, int log, uint64_t end, struct purge_plan *plan, struct steno_error *err)
{
        return make(fs, log, end, true, plan, err);
}

void purge_plan_release(struct purge_plan *plan)
{
        free(plan->seqs);
        free(plan->refs.list);
        free(plan->parts.list);
        free(plan->runs.list);
        free(plan->kept_refs.list);
        free(plan->kept_parts.list);
        arena_release(&plan->arena);
        *plan = (struct purge_plan){0};
}

bool purge_plan_has(const struct purge_plan *plan, uint64_t seq)
{
        size_t lo = 0, hi = plan->count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (plan->seqs[mid] < seq)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < plan->count && plan->seqs[lo] == seq;
}
