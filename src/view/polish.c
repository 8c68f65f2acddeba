/* polish.c - see polish.h */
#include "view/polish.h"

#include <stdio.h>
#include <string.h>

#include "model/token.h"
#include "steno.h"
#include "view/check.h"

/* ---- results that stand with their call ---- */

static bool carries_results(const struct message *m)
{
        return m->role == ROLE_ASSISTANT && message_has(m, PART_RESULT);
}

/* The parts of `from` that are results, or all others; peers follow. */
static bool take_parts(
    const struct message *from, bool results, struct message *to, struct arena *arena)
{
        to->parts = arena_alloc(arena, (from->count + 1) * sizeof *to->parts);
        to->count = 0;
        for (size_t i = 0; to->parts && i < from->count; i++) {
                if ((from->parts[i].kind == PART_RESULT) != results)
                        continue;
                struct part *p = &to->parts[to->count++];
                *p = from->parts[i];
                if (p->peer)
                        p->peer->peer = p;
        }
        message_touch(to);
        return to->parts;
}

int polish_split(struct history *h, struct arena *arena)
{
        size_t more = 0, n = 0;
        for (size_t i = 0; i < h->count; i++)
                more += carries_results(&h->list[i]);
        if (!more)
                return 0;
        struct message *list = arena_alloc(arena, (h->count + more) * sizeof *list);
        if (!list)
                return STENO_ENOMEM;
        for (size_t i = 0; i < h->count; i++) {
                const struct message *m = &h->list[i];
                list[n++] = *m;
                if (!carries_results(m))
                        continue;
                list[n] = (struct message){.origin = m->origin, .seq = m->seq, .role = ROLE_TOOL};
                if (!take_parts(m, false, &list[n - 1], arena) ||
                    !take_parts(m, true, &list[n], arena))
                        return STENO_ENOMEM;
                n++;
        }
        *h = (struct history){list, n};
        return 0;
}

/* ---- twins ---- */

static bool is_taken(const struct history *h, size_t from, const struct part *upto, struct str id)
{
        for (size_t i = from; i < h->count; i++) {
                const struct message *m = &h->list[i];
                for (size_t k = 0; k < m->count; k++) {
                        if (&m->parts[k] == upto)
                                return false;
                        if (m->parts[k].kind == PART_CALL && str_eq(m->parts[k].id, id))
                                return true;
                }
        }
        return false;
}

static size_t message_of(const struct history *h, size_t from, const struct part *p)
{
        for (size_t i = from; i < h->count; i++)
                if (p >= h->list[i].parts && p < h->list[i].parts + h->list[i].count)
                        return i;
        return h->count;
}

/* `id` and the first number from 2 that is free. */
static struct str another_id(
    const struct history *h, size_t from, size_t at, struct str id, struct arena *arena)
{
        char *made = arena_alloc(arena, id.n + 24);
        for (unsigned n = 2; made; n++) {
                if (id.n)
                        memcpy(made, id.p, id.n);
                size_t len = id.n + (size_t)snprintf(made + id.n, 24, "_%u", n);
                struct str s = str_span(made, len);
                const struct message *last = &h->list[at];
                if (!is_taken(h, from, last->parts + last->count, s))
                        return s;
        }
        return (struct str){0};
}

static void rename_call(struct history *h, size_t i, struct part *call, struct str id)
{
        size_t at = call->peer ? message_of(h, i, call->peer) : h->count;
        call->id = id;
        message_touch(&h->list[i]);
        if (at == h->count)
                return;
        call->peer->id = id;
        message_touch(&h->list[at]);
}

int polish_twins(struct history *h, struct arena *arena,
    void (*renamed)(void *ctx, uint64_t seq, struct str id), void *ctx)
{
        size_t turn = 0; /* where the calls begin that may be joined to one message */
        for (size_t i = 0; i < h->count; i++) {
                struct message *m = &h->list[i];
                if (!(i > 0 && m->item && h->list[i - 1].item && m->role == ROLE_ASSISTANT))
                        turn = i;
                for (size_t k = 0; k < m->count; k++) {
                        struct part *p = &m->parts[k];
                        if (p->kind != PART_CALL || !p->id.p || !is_taken(h, turn, p, p->id))
                                continue;
                        struct str id = another_id(h, turn, i, p->id, arena);
                        if (!id.p)
                                return STENO_ENOMEM;
                        if (renamed)
                                renamed(ctx, m->seq, p->id);
                        rename_call(h, i, p, id);
                }
        }
        return 0;
}

/* ---- unique in a request ---- */

static bool is_plain(struct str id)
{
        static const char legal[] =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
        for (size_t i = 0; i < id.n; i++)
                if (!id.p[i] || !strchr(legal, id.p[i]))
                        return false;
        return id.n > 0;
}

/* Every character that may not be there becomes one that may, and a number makes it another. */
static struct str plain_id(struct check *c, struct check_ids *seen, struct str id)
{
        char *made = arena_alloc(c->arena, id.n + 24);
        for (size_t n = seen->count; made; n++) {
                for (size_t i = 0; i < id.n; i++)
                        made[i] = is_plain(str_span(id.p + i, 1)) ? id.p[i] : '_';
                struct str s = str_span(made, id.n + (size_t)snprintf(made + id.n, 24, "_%zu", n));
                bool fresh;
                if (!check_ids_put(c, seen, s, &fresh))
                        break;
                if (fresh)
                        return s;
        }
        return (struct str){0};
}

int polish_unique(struct history *h, struct arena *arena,
    void (*renamed)(void *ctx, uint64_t seq, struct str id), void *ctx)
{
        struct check c = {.arena = arena};
        struct check_ids seen = {0};
        for (size_t i = 0; i < h->count; i++) {
                for (size_t k = 0; k < h->list[i].count; k++) {
                        struct part *p = &h->list[i].parts[k];
                        bool fresh = false;
                        if (p->kind != PART_CALL || !p->id.p)
                                continue;
                        if (is_plain(p->id) && !check_ids_put(&c, &seen, p->id, &fresh))
                                return STENO_ENOMEM;
                        if (fresh)
                                continue;
                        struct str id = plain_id(&c, &seen, p->id);
                        if (!id.p)
                                return STENO_ENOMEM;
                        if (renamed)
                                renamed(ctx, h->list[i].seq, p->id);
                        rename_call(h, i, p, id);
                }
        }
        return 0;
}

/* ---- names ---- */

void polish_names(struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                struct message *m = &h->list[i];
                for (size_t k = 0; k < m->count; k++) {
                        struct part *p = &m->parts[k];
                        if (p->kind != PART_RESULT || !p->peer || !p->name.p || !p->peer->name.p ||
                            str_eq(p->name, p->peer->name))
                                continue;
                        p->name = p->peer->name;
                        message_touch(m);
                }
        }
}

/* ---- empty contents ---- */

void polish_empty(struct history *h)
{
        for (size_t i = 0; i < h->count; i++) {
                struct message *m = &h->list[i];
                bool speaks = false;
                for (size_t k = 0; k < m->count; k++)
                        speaks = speaks || (m->parts[k].kind != PART_CALL &&
                                               m->parts[k].kind != PART_RESULT &&
                                               m->parts[k].kind != PART_THINKING);
                if (m->shape != SHAPE_ARRAY || speaks)
                        continue;
                m->shape = SHAPE_ANY;
                message_touch(m);
        }
}
