/* join.c - see join.h */
#include "model/join.h"

#include <string.h>

#include "steno.h"

static bool has_pieces(const struct history *h)
{
        for (size_t i = 1; i < h->count; i++)
                if (h->list[i].piece)
                        return true;
        return false;
}

/* The message that `m` continues: only results may stand between them. NULL: none. */
static struct message *find_first(struct history *out, const struct message *m)
{
        for (size_t i = out->count; m->piece && i-- > 0;) {
                struct message *before = &out->list[i];
                if (before->piece && before->origin == m->origin && str_eq(before->id, m->id))
                        return before;
                if (before->role != ROLE_TOOL && !before->piece)
                        return NULL;
        }
        return NULL;
}

/* The earlier block that `p` repeats; NULL: `p` is new. */
static struct part *find_same(struct message *m, const struct part *p)
{
        for (size_t i = 0; i < m->count; i++) {
                struct part *q = &m->parts[i];
                if (q->kind != p->kind)
                        continue;
                if (p->kind == PART_CALL && p->id.n && str_eq(p->id, q->id))
                        return q;
                if (p->raw.p && q->raw.p && str_eq(p->raw, q->raw))
                        return q;
        }
        return NULL;
}

static int join(struct message *to, const struct message *m, struct arena *arena)
{
        struct part *parts = arena_alloc(arena, (to->count + m->count + 1) * sizeof *parts);
        if (!parts)
                return STENO_ENOMEM;
        if (to->count)
                memcpy(parts, to->parts, to->count * sizeof *parts);
        to->parts = parts;
        for (size_t i = 0; i < m->count; i++) {
                struct part *same = find_same(to, &m->parts[i]);
                struct part *put = same ? same : &parts[to->count++];
                *put = m->parts[i];
                put->seq = m->seq;
        }
        to->shape = SHAPE_ARRAY;
        message_touch(to);
        return 0;
}

int join_pieces(const struct history *h, struct arena *arena, struct history *out)
{
        if (!has_pieces(h)) {
                *out = *h;
                return 0;
        }
        struct history to = {.list = arena_alloc(arena, (h->count + 1) * sizeof *to.list)};
        if (!to.list)
                return STENO_ENOMEM;
        for (size_t i = 0; i < h->count; i++) {
                struct message *first = find_first(&to, &h->list[i]);
                if (!first)
                        to.list[to.count++] = h->list[i];
                else if (join(first, &h->list[i], arena))
                        return STENO_ENOMEM;
        }
        *out = to;
        return 0;
}
