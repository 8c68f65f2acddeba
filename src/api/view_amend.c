/* view_amend.c - see view_amend.h */
#include "api/view_amend.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"

/* Bytes of superseding messages that are kept, so that most views read each of them once. */
#define AMENDS_HELD (2 * MIB)

enum amend_kind { AMEND_DELETE, AMEND_SUPERSEDE, AMEND_META, AMEND_META_ON, AMEND_META_OFF };

struct amend_held {
        struct about about; /* with its target */
        struct str fmt;
        struct str m;
};

struct amend_entry {
        uint64_t hash; /* of the target's id */
        uint64_t seq : 56;
        uint64_t kind : 8;
};

struct amend_kept {
        uint64_t seq;
        struct amend_held held;
};

/* ---- the table ---- */

static enum amend_kind kind_of_meta(struct str m)
{
        struct json j;
        enum amend_kind kind = AMEND_META;
        if (!memmem(m.p, m.n, "includeInContext", 16))
                return AMEND_META;
        json_init(&j);
        if (json_parse(&j, m.p, m.n, NULL, NULL) == 0) {
                enum json_type t = json_type(&j, json_get(&j, 0, "includeInContext"));
                kind = t == JSON_FALSE                    ? AMEND_META_OFF
                       : t == JSON_TRUE || t == JSON_NULL ? AMEND_META_ON
                                                          : AMEND_META;
        }
        json_release(&j);
        return kind;
}

static int copy_held(const struct backend_record *r, struct arena *arena, struct amend_held *out)
{
        struct str x = arena_dup(arena, r->rec.x);
        out->fmt = arena_dup(arena, r->rec.fmt);
        out->m = arena_dup(arena, r->rec.m);
        if (!x.p || !out->fmt.p || !out->m.p)
                return STENO_ENOMEM;
        return about_read(x, arena, &out->about, NULL);
}

static int hold(struct amends *a, const struct backend_record *r)
{
        size_t bytes = r->rec.x.n + r->rec.m.n + sizeof *a->kept;
        if (a->held_bytes + bytes > AMENDS_HELD)
                return 0;
        if (!grow_room(a->kept, a->kept_count, a->kept_cap))
                return STENO_ENOMEM;
        struct amend_kept *k = &a->kept[a->kept_count];
        *k = (struct amend_kept){.seq = r->rec.seq};
        int rc = copy_held(r, &a->held, &k->held);
        if (rc == 0)
                a->kept_count++;
        a->held_bytes += bytes;
        return rc == STENO_ENOMEM ? rc : 0;
}

/* What recovery says of a message: {"after":SEQ}. */
static int take_place(struct amends *a, const struct about *about, struct str m)
{
        struct json j;
        uint64_t after = 0;
        json_init(&j);
        bool is = json_parse(&j, m.p, m.n, NULL, NULL) == 0 &&
                  json_u64(&j, json_get(&j, 0, "after"), &after);
        json_release(&j);
        if (!is)
                return 0;
        if (!grow_room(a->places, a->place_count, a->place_cap))
                return STENO_ENOMEM;
        char *id = arena_alloc(&a->held, about->target.n + 1);
        if (!id)
                return STENO_ENOMEM;
        memcpy(id, about->target.p, about->target.n);
        id[about->target.n] = '\0';
        a->places[a->place_count++] = (struct amend_place){str_span(id, about->target.n), after, 0};
        return 0;
}

static int take(void *ctx, const struct backend_record *r)
{
        struct amends *a = ctx;
        struct about about;
        arena_reset(&a->scratch);
        if (!r->damaged && r->rec.seq <= a->after)
                return 1;
        if (r->damaged || about_read(r->rec.x, &a->scratch, &about, NULL) || !about.target.n)
                return a->scratch.failed;
        struct amend_entry e = {.hash = hash_64(about.target.p, about.target.n), .seq = r->rec.seq};
        if (str_is(about.kind, "meta") && about.recovered && take_place(a, &about, r->rec.m))
                return STENO_ENOMEM;
        if (str_is(about.kind, "meta"))
                e.kind = kind_of_meta(r->rec.m);
        else if (str_is(about.kind, "supersede"))
                e.kind = AMEND_SUPERSEDE;
        else if (str_is(about.kind, "delete"))
                e.kind = AMEND_DELETE;
        else
                return 0;
        if (!grow_room(a->list, a->count, a->cap))
                return STENO_ENOMEM;
        a->list[a->count++] = e;
        return hold(a, r);
}

static int compare(const void *a, const void *b)
{
        const struct amend_entry *x = a, *y = b;
        if (x->hash != y->hash)
                return x->hash < y->hash ? -1 : 1;
        return (x->seq < y->seq) - (x->seq > y->seq);
}

int view_amends_read(
    struct amends *a, const struct view_source *source, uint64_t after, struct steno_error *err)
{
        *a = (struct amends){.source = source, .after = after};
        arena_init(&a->held);
        arena_init(&a->scratch);
        int rc = source->amendments(source->ctx, take, a, err);
        if (a->count)
                qsort(a->list, a->count, sizeof *a->list, compare);
        return rc == STENO_ENOMEM ? error_nomem(err) : rc == 1 ? 0 : rc;
}

void view_amends_release(struct amends *a)
{
        free(a->list);
        free(a->kept);
        free(a->places);
        arena_release(&a->held);
        arena_release(&a->scratch);
}

/* ---- looking up ---- */

/* The first entry of a hash; a->count: there is none. */
static size_t first_of(const struct amends *a, uint64_t hash)
{
        size_t lo = 0, hi = a->count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (a->list[mid].hash < hash)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo;
}

static const struct amend_held *kept_of(const struct amends *a, uint64_t seq)
{
        size_t lo = 0, hi = a->kept_count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (a->kept[mid].seq > seq)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < a->kept_count && a->kept[lo].seq == seq ? &a->kept[lo].held : NULL;
}

struct reading {
        struct arena *arena;
        struct amend_held *out;
        bool there;
        int rc;
};

static int take_one(void *ctx, const struct backend_record *r)
{
        struct reading *d = ctx;
        d->there = !r->damaged;
        if (d->there)
                d->rc = copy_held(r, d->arena, d->out);
        return 1;
}

/* The record behind an entry; *is is false where it is about another message, or cannot be read. */
static int read_entry(struct amends *a, const struct amend_entry *e, struct str id,
    struct amend_held *out, bool *is, struct steno_error *err)
{
        struct reading d = {.arena = &a->scratch, .out = out};
        const struct amend_held *kept = kept_of(a, e->seq);
        *is = false;
        if (kept) {
                *out = *kept;
                d.there = true;
        } else {
                int rc = a->source->read(a->source->ctx, e->seq - 1, take_one, &d, err);
                if (rc < 0 || d.rc == STENO_ENOMEM)
                        return rc < 0 ? rc : error_nomem(err);
        }
        *is = d.there && d.rc == 0 && str_eq(out->about.target, id);
        return 0;
}

int view_amends_find(
    struct amends *a, struct str id, const struct amended **out, struct steno_error *err)
{
        *out = NULL;
        if (!a->count)
                return 0;
        uint64_t hash = hash_64(id.p, id.n);
        size_t i = first_of(a, hash);
        if (i == a->count || a->list[i].hash != hash)
                return 0;
        arena_reset(&a->scratch);
        a->found = (struct amended){.in_context = -1};
        for (; i < a->count && a->list[i].hash == hash; i++) {
                const struct amend_entry *e = &a->list[i];
                struct amend_held held = {0};
                bool is;
                /* The newest word counts. */
                bool meta = e->kind >= AMEND_META;
                if (e->kind == AMEND_META || (meta ? a->found.in_context >= 0 : a->found.by > 0))
                        continue;
                int rc = read_entry(a, e, id, &held, &is, err);
                if (rc)
                        return rc;
                if (!is)
                        continue;
                *out = &a->found;
                if (meta) {
                        a->found.in_context = e->kind == AMEND_META_ON;
                        continue;
                }
                a->found.by = e->seq;
                a->found.deleted = e->kind == AMEND_DELETE;
                if (e->kind == AMEND_SUPERSEDE) {
                        a->found.fmt = held.fmt;
                        a->found.m = held.m;
                        a->found.about = held.about;
                        a->found.about.kind = (struct str){0};
                }
        }
        return 0;
}

/* Members of `older` that are not there yet. */
static void merge(struct jsonw *w, const struct json *seen, struct str older)
{
        struct json j;
        json_init(&j);
        if (json_parse(&j, older.p, older.n, NULL, NULL) == 0) {
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k)) {
                        char *key = json_dup_string(&j, k);
                        if (key && json_get(seen, 0, key) == JSON_NONE)
                                jsonw_copy_member(w, &j, k);
                        free(key);
                }
        }
        json_release(&j);
}

int view_amends_meta(struct amends *a, struct str id, struct buf *out, struct steno_error *err)
{
        uint64_t hash = hash_64(id.p, id.n);
        struct buf so_far;
        struct json seen;
        int rc = 0;
        buf_init(&so_far, 0);
        json_init(&seen);
        arena_reset(&a->scratch);
        for (size_t i = first_of(a, hash); rc == 0 && i < a->count && a->list[i].hash == hash;
             i++) {
                struct amend_held held = {0};
                bool is;
                if (a->list[i].kind < AMEND_META)
                        continue;
                rc = read_entry(a, &a->list[i], id, &held, &is, err);
                if (rc || !is)
                        continue;
                if (!so_far.n) {
                        buf_put_str(&so_far, held.m);
                        continue;
                }
                struct buf wider;
                buf_init(&wider, 0);
                rc = json_parse(&seen, so_far.p, so_far.n, NULL, err);
                if (rc == 0) {
                        struct jsonw w = jsonw_to(&wider);
                        jsonw_object(&w);
                        for (json_ref k = json_child(&seen, 0); k != JSON_NONE;
                             k = json_next_key(&seen, 0, k))
                                jsonw_copy_member(&w, &seen, k);
                        merge(&w, &seen, held.m);
                        jsonw_object_end(&w);
                        buf_release(&so_far);
                        so_far = wider;
                } else {
                        buf_release(&wider);
                }
        }
        if (rc == 0)
                buf_put_str(out, buf_str(&so_far));
        rc = rc ? rc : so_far.failed ? error_nomem(err) : buf_check(out, err);
        json_release(&seen);
        buf_release(&so_far);
        return rc;
}
