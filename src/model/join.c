/* join.c - see join.h */
#include "model/join.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "steno.h"

static bool has_pieces(const struct history *h)
{
        for (size_t i = 1; i < h->count; i++)
                if (h->list[i].piece)
                        return true;
        return false;
}

/* ---- what was joined so far ---- */

/* An open hash table: where a message or a part is, found by the hash of its name. Different names
 * may have the same hash, so the caller must compare what it finds. */
struct place {
        uint64_t hash; /* 0: free */
        uint32_t message, part;
};

struct joining {
        struct arena *arena;
        struct history to;
        size_t *caps;   /* capacity of each message's parts; 0: shared with the source */
        size_t barrier; /* messages before this place do not take more pieces */
        struct place *places;
        size_t count, cap;
};

static uint64_t name_hash(uint64_t kind, uint64_t of, struct str name)
{
        return (hash_64(name.p, name.n) ^ (kind + 1) * 0x9E3779B97F4A7C15ull ^
                   (of + 1) * 0xC2B2AE3D27D4EB4Full) |
               1;
}

static struct place *place_of(const struct joining *j, uint64_t hash)
{
        for (size_t k = hash >> 1;; k++) {
                struct place *p = &j->places[k & (j->cap - 1)];
                if (!p->hash || p->hash == hash)
                        return p;
        }
}

static int remember(struct joining *j, uint64_t hash, size_t message, size_t part)
{
        if (j->count * 2 >= j->cap) {
                struct joining larger = *j;
                larger.cap = j->cap ? j->cap * 2 : 64;
                larger.places = arena_zalloc(j->arena, larger.cap * sizeof *larger.places);
                if (!larger.places)
                        return STENO_ENOMEM;
                for (size_t i = 0; i < j->cap; i++)
                        if (j->places[i].hash)
                                *place_of(&larger, j->places[i].hash) = j->places[i];
                *j = larger;
        }
        struct place *p = place_of(j, hash);
        j->count += !p->hash;
        *p = (struct place){hash, (uint32_t)message, (uint32_t)part};
        return 0;
}

static const struct place *recall(const struct joining *j, uint64_t hash)
{
        const struct place *p = j->cap ? place_of(j, hash) : NULL;
        return p && p->hash ? p : NULL;
}

/* ---- messages ---- */

#define OF_MESSAGE 1000 /* a value that no enum part_kind has */

static uint64_t message_hash(const struct message *m)
{
        return name_hash(OF_MESSAGE, (uintptr_t)m->origin, m->id);
}

/* Returns the message that `m` continues, or NULL. Only results may be between the two. */
static struct message *find_first(const struct joining *j, const struct message *m)
{
        const struct place *p = m->piece ? recall(j, message_hash(m)) : NULL;
        if (!p || p->message < j->barrier)
                return NULL;
        struct message *first = &j->to.list[p->message];
        return first->origin == m->origin && str_eq(first->id, m->id) ? first : NULL;
}

static int put_message(struct joining *j, const struct message *m)
{
        size_t at = j->to.count++;
        j->to.list[at] = *m;
        if (m->piece)
                return remember(j, message_hash(m), at, 0);
        if (m->role != ROLE_TOOL)
                j->barrier = at;
        return 0;
}

/* ---- the parts of messages ---- */

static uint64_t id_hash(const struct part *p, size_t message)
{
        return name_hash(2 * (uint64_t)p->kind, message, p->id);
}

static uint64_t raw_hash(const struct part *p, size_t message)
{
        return name_hash(2 * (uint64_t)p->kind + 1, message, p->raw);
}

/* The earlier block that `p` repeats; NULL: `p` is new. */
static struct part *find_same(const struct joining *j, size_t message, const struct part *p)
{
        struct part *parts = j->to.list[message].parts, *same = NULL;
        const struct place *at;
        if (p->kind == PART_CALL && p->id.n && (at = recall(j, id_hash(p, message))) &&
            parts[at->part].kind == p->kind && str_eq(parts[at->part].id, p->id))
                same = &parts[at->part];
        if (p->raw.p && (at = recall(j, raw_hash(p, message))) && parts[at->part].kind == p->kind &&
            str_eq(parts[at->part].raw, p->raw) && (!same || &parts[at->part] < same))
                same = &parts[at->part];
        return same;
}

static int remember_part(struct joining *j, size_t message, size_t part)
{
        const struct part *p = &j->to.list[message].parts[part];
        if (p->kind == PART_CALL && p->id.n && remember(j, id_hash(p, message), message, part))
                return STENO_ENOMEM;
        return p->raw.p ? remember(j, raw_hash(p, message), message, part) : 0;
}

/* Makes room for `more` parts behind those of a message. The capacity doubles, because a message
 * may come in any number of pieces. */
static int make_room(struct joining *j, size_t message, size_t more)
{
        struct message *to = &j->to.list[message];
        size_t *cap = &j->caps[message], want = to->count + more;
        bool first = *cap == 0;
        if (want <= *cap)
                return 0;
        struct part *parts = arena_alloc(j->arena, 2 * want * sizeof *parts);
        if (!parts)
                return STENO_ENOMEM;
        if (to->count)
                memcpy(parts, to->parts, to->count * sizeof *parts);
        to->parts = parts;
        *cap = 2 * want;
        for (size_t i = 0; first && i < to->count; i++)
                if (remember_part(j, message, i))
                        return STENO_ENOMEM;
        return 0;
}

static int join(struct joining *j, size_t message, const struct message *m)
{
        if (make_room(j, message, m->count + 1))
                return STENO_ENOMEM;
        struct message *to = &j->to.list[message];
        for (size_t i = 0; i < m->count; i++) {
                struct part *same = find_same(j, message, &m->parts[i]);
                struct part *put = same ? same : &to->parts[to->count++];
                *put = m->parts[i];
                put->seq = m->seq;
                if (remember_part(j, message, (size_t)(put - to->parts)))
                        return STENO_ENOMEM;
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
        struct joining j = {
            .arena = arena,
            .to.list = arena_alloc(arena, (h->count + 1) * sizeof *h->list),
            .caps = arena_zalloc(arena, (h->count + 1) * sizeof *j.caps),
        };
        if (!j.to.list || !j.caps)
                return STENO_ENOMEM;
        for (size_t i = 0; i < h->count; i++) {
                const struct message *first = find_first(&j, &h->list[i]);
                if (first ? join(&j, (size_t)(first - j.to.list), &h->list[i])
                          : put_message(&j, &h->list[i]))
                        return STENO_ENOMEM;
        }
        *out = j.to;
        return 0;
}
