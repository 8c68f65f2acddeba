/*
 * hidden.c - how many records of a conversation show no message (work.h).
 *
 * An amendment is a record and no message, and a message that was deleted is not shown. What a
 * purge left in the place of an amendment is still one; in the place of a message it is known by
 * the amendment that names it, which is younger and comes first.
 */
#include "store/index/index_work.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "model/about.h"

struct target {
        struct str id;
        bool decided; /* by the youngest amendment that deletes or replaces it */
};

struct counting {
        uint64_t known; /* seq of the amendment that was the last one */
        uint64_t newest;
        bool same;
        uint64_t records;
        struct arena arena;
        struct buf id;
        struct target *list; /* an open table */
        size_t size;         /* a power of two, or 0 */
        size_t count;
};

static struct target *slot(struct target *list, size_t size, struct str id)
{
        size_t at = hash_64(id.p, id.n) & (size - 1);
        while (list[at].id.p && !str_eq(list[at].id, id))
                at = (at + 1) & (size - 1);
        return &list[at];
}

static bool grow(struct counting *c)
{
        size_t size = c->size ? c->size * 2 : 32;
        struct target *list = calloc(size, sizeof *list);
        if (!list)
                return false;
        for (size_t i = 0; i < c->size; i++)
                if (c->list[i].id.p)
                        *slot(list, size, c->list[i].id) = c->list[i];
        free(c->list);
        c->list = list;
        c->size = size;
        return true;
}

static struct target *target_of(struct counting *c, struct str id)
{
        if (c->count * 2 >= c->size && !grow(c))
                return NULL;
        struct target *t = slot(c->list, c->size, id);
        if (!t->id.p) {
                t->id = id;
                c->count++;
        }
        return t;
}

/* Is it what a purge left of a message, not of an amendment? */
static bool was_message(struct counting *c, const struct record *rec, const struct about *about)
{
        buf_clear(&c->id);
        json_unescape(rec->id, &c->id, NULL);
        return str_is(about->kind, "tombstone") && c->size &&
               slot(c->list, c->size, buf_str(&c->id))->id.p;
}

static int count_one(void *ctx, const struct backend_record *r)
{
        struct counting *c = ctx;
        struct about about;
        if (c->newest == 0) {
                c->newest = r->rec.seq;
                c->same = c->newest == c->known;
        }
        if (c->same)
                return 1;
        struct str x = arena_dup(&c->arena, r->rec.x);
        if (!x.p || about_read(x, &c->arena, &about, NULL) == STENO_ENOMEM)
                return STENO_ENOMEM;
        if (!was_message(c, &r->rec, &about))
                c->records++;
        if (!about.target.n)
                return 0;
        struct target *t = target_of(c, about.target);
        if (!t)
                return STENO_ENOMEM;
        bool deletes = str_is(about.kind, "delete");
        c->records += deletes && !t->decided;
        t->decided = t->decided || deletes || str_is(about.kind, "supersede");
        return 0;
}

int hidden_count(struct files_conv *conv, struct hidden *h, struct steno_error *err)
{
        struct counting c = {.known = h->amended};
        arena_init(&c.arena);
        buf_init(&c.id, 0);
        int rc = files_read_amendments(conv, count_one, &c, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        else if (rc >= 0 && !c.same)
                *h = (struct hidden){c.newest, c.records};
        free(c.list);
        buf_release(&c.id);
        arena_release(&c.arena);
        return rc < 0 ? rc : 0;
}
