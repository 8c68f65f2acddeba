/* message.c - see message.h */
#include "model/message.h"

#include <string.h>

void message_set_output(struct message *m, struct part *result, struct str string)
{
        result->raw = (struct str){0};
        result->output_kind = OUTPUT_TEXT;
        result->output = string;
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

void message_drop_part(struct message *m, size_t i)
{
        if (m->parts[i].peer)
                m->parts[i].peer->peer = NULL;
        memmove(m->parts + i, m->parts + i + 1, (m->count - i - 1) * sizeof *m->parts);
        m->count--;
        for (size_t k = i; k < m->count; k++)
                if (m->parts[k].peer)
                        m->parts[k].peer->peer = &m->parts[k];
        message_touch(m);
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
        return message_count(m, kind) > 0;
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
