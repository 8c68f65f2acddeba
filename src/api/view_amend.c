/* view_amend.c - see view_amend.h */
#include "api/view_amend.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

static struct amended *slot(const struct amends *a, struct str id)
{
        size_t at = hash_64(id.p, id.n) & (a->size - 1);
        while (a->list[at].target.p && !str_eq(a->list[at].target, id))
                at = (at + 1) & (a->size - 1);
        return &a->list[at];
}

static bool grow(struct amends *a)
{
        struct amends wider = {.size = a->size ? a->size * 2 : 32};
        wider.list = calloc(wider.size, sizeof *wider.list);
        if (!wider.list)
                return false;
        for (size_t i = 0; i < a->size; i++)
                if (a->list[i].target.p)
                        *slot(&wider, a->list[i].target) = a->list[i];
        free(a->list);
        a->list = wider.list;
        a->size = wider.size;
        return true;
}

static struct amended *put(struct amends *a, struct str target)
{
        if (a->count * 2 >= a->size && !grow(a))
                return NULL;
        struct amended *e = slot(a, target);
        if (e->target.p)
                return e;
        *e = (struct amended){.target = target, .in_context = -1};
        a->count++;
        return e;
}

static int include_in_context(struct str m)
{
        struct json j;
        int said = -1;
        json_init(&j);
        if (json_parse(&j, m.p, m.n, NULL, NULL) == 0) {
                enum json_type t = json_type(&j, json_get(&j, 0, "includeInContext"));
                said = t == JSON_FALSE ? 0 : t == JSON_TRUE || t == JSON_NULL ? 1 : -1;
        }
        json_release(&j);
        return said;
}

/* They come newest first, and the newest word counts. */
static int take(void *ctx, const struct files_record *r)
{
        struct amends *a = ctx;
        struct about about;
        struct str x = arena_dup(&a->arena, r->rec.x);
        if (r->damaged || !x.p || about_read(x, &a->arena, &about, NULL) || !about.target.n)
                return a->arena.failed;
        struct amended *e = put(a, about.target);
        if (!e)
                return STENO_ENOMEM;
        if (str_is(about.kind, "meta")) {
                if (e->in_context < 0)
                        e->in_context = include_in_context(r->rec.m);
                return 0;
        }
        if (e->by)
                return 0;
        if (str_is(about.kind, "delete")) {
                e->deleted = true;
                e->by = r->rec.seq;
        } else if (str_is(about.kind, "supersede")) {
                e->by = r->rec.seq;
                e->fmt = arena_dup(&a->arena, r->rec.fmt);
                e->m = arena_dup(&a->arena, r->rec.m);
                e->about = about;
                e->about.kind = (struct str){0};
        }
        return a->arena.failed;
}

int view_amends_read(struct amends *a, const struct view_source *source, struct steno_error *err)
{
        *a = (struct amends){0};
        arena_init(&a->arena);
        int rc = source->amendments(source->ctx, take, a, err);
        return rc == STENO_ENOMEM ? error_nomem(err) : rc;
}

void view_amends_release(struct amends *a)
{
        free(a->list);
        arena_release(&a->arena);
}

const struct amended *view_amends_find(const struct amends *a, struct str id)
{
        if (!a->count)
                return NULL;
        const struct amended *e = slot(a, id);
        return e->target.p ? e : NULL;
}
