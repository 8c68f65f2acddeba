/* message.c - see message.h */
#include "model/message.h"

#include <stdio.h>
#include <string.h>

#include "model/token.h"
#include "steno.h"

void message_set_output(struct message *m, struct part *result, struct str string)
{
        result->raw = (struct str){0};
        result->output_kind = OUTPUT_TEXT;
        result->output = string;
        result->output_raw = (struct str){0};
        result->children = NULL;
        result->child_count = 0;
        message_touch(m);
}

void message_set_arguments(struct message *m, struct part *call, struct str raw)
{
        call->raw = (struct str){0};
        call->arguments = raw;
        call->arguments_text = false;
        message_touch(m);
}

void message_drop_parts(struct message *m, const bool *gone)
{
        size_t kept = 0;
        for (size_t i = 0; i < m->count; i++)
                if (gone[i] && m->parts[i].peer)
                        m->parts[i].peer->peer = NULL;
        for (size_t i = 0; i < m->count; i++) {
                if (gone[i])
                        continue;
                struct part *p = &m->parts[kept++];
                *p = m->parts[i];
                if (p->peer) /* it may be a part of this message, and move later */
                        p->peer->peer = p;
        }
        m->count = kept;
        message_touch(m);
}

bool message_is_tied(const struct history *h, size_t i)
{
        if (i + 1 >= h->count || !h->list[i].reasoning || h->list[i + 1].apart)
                return false;
        return h->list[i + 1].role == ROLE_ASSISTANT && h->list[i + 1].origin == h->list[i].origin;
}

size_t message_count(const struct message *m, enum part_kind kind)
{
        size_t n = 0;
        for (size_t i = 0; i < m->count; i++)
                n += m->parts[i].kind == kind;
        return n;
}

bool message_has(const struct message *m, enum part_kind kind)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == kind)
                        return true;
        return false;
}

static bool give(
    struct part *p, const struct str *list, size_t count, size_t i, struct arena *arena)
{
        if (p->id.n || i >= count || !list[i].n)
                return true;
        p->id = token_make(list[i], arena);
        p->given_id = true;
        return p->id.p != NULL;
}

int message_give_ids(struct message *m, const struct message_ids *ids, struct arena *arena)
{
        size_t calls = 0, answers = 0;
        bool right = true;
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                if (p->kind == PART_CALL)
                        right &= give(p, ids->calls, ids->call_count, calls++, arena);
                else if (p->kind == PART_RESULT)
                        right &= give(p, ids->answers, ids->answer_count, answers++, arena);
        }
        return right ? 0 : STENO_ENOMEM;
}

static const char DERIVED[] = "call_made_";

struct str message_derived_id(uint64_t seq, size_t place, struct arena *arena)
{
        char *to = arena_alloc(arena, 64);
        if (!to)
                return (struct str){0};
        int n = snprintf(to, 64, "%s%llu_%zu", DERIVED, (unsigned long long)seq, place);
        return str_span(to, (size_t)n);
}

static bool take_number(struct str *s, uint64_t *v)
{
        size_t i = 0;
        for (*v = 0; i < s->n && i < 19 && s->p[i] >= '0' && s->p[i] <= '9'; i++)
                *v = *v * 10 + (uint64_t)(s->p[i] - '0');
        *s = str_span(s->p + i, s->n - i);
        return i > 0;
}

bool message_is_derived_id(struct str id, uint64_t *seq, uint32_t *place)
{
        uint64_t n;
        if (!str_starts(id, DERIVED))
                return false;
        struct str rest = str_span(id.p + sizeof DERIVED - 1, id.n - (sizeof DERIVED - 1));
        if (!take_number(&rest, seq) || !rest.n || rest.p[0] != '_')
                return false;
        rest = str_span(rest.p + 1, rest.n - 1);
        if (!take_number(&rest, &n) || rest.n || n > UINT32_MAX)
                return false;
        *place = (uint32_t)n;
        return true;
}

struct message *message_new(struct arena *arena, enum role role, size_t count)
{
        struct message *m = arena_zalloc(arena, sizeof *m);
        if (!m)
                return NULL;
        m->role = role;
        m->parts = arena_zalloc(arena, count * sizeof *m->parts);
        return m->parts ? m : NULL;
}
