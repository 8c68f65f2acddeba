/* append_ids.c - see append_ids.h */
#include "api/append_ids.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "format/format.h"
#include "model/pairing.h"
#include "model/token.h"

/* A call of the window, by its place. */
struct named {
        uint64_t seq;
        uint32_t index;
        uint64_t block; /* first seq of its block */
        struct str id;
        struct str name;
        bool taken; /* by a result of the message that is being looked at */
};

struct append_ids {
        struct pairing *pairing;
        struct arena arena;   /* of ids and names */
        struct arena scratch; /* of one message */
        struct named *list;   /* oldest first */
        size_t count;
        size_t cap;
        uint64_t next; /* seq of the next message */
        uint64_t block;
        bool answered; /* the block has a result: the next call begins another */
        struct steno_error *err;
};

static int add_call(
    struct append_ids *a, uint64_t seq, uint32_t index, struct str id, struct str name)
{
        if (!grow_room(a->list, a->count, a->cap))
                return STENO_ENOMEM;
        a->list[a->count++] = (struct named){.seq = seq,
            .index = index,
            .block = a->block,
            .id = arena_dup(&a->arena, id),
            .name = arena_dup(&a->arena, name)};
        return a->arena.failed;
}

/* The calls of a message by name; blocks begin and end as in pairing.h. */
static int note_calls(struct append_ids *a, uint64_t seq, const struct about *about,
    const struct format *format, const struct json *j, json_ref msg)
{
        struct message m = {0};
        uint32_t n = 0;
        int rc = 0;
        if (!about->call_count && !about->answer_count)
                a->block = 0;
        if (about->call_count && (!a->block || a->answered)) {
                a->block = seq;
                a->answered = false;
        }
        if (about->call_count && format)
                rc = format_read_message(format, j, msg, 1, &a->scratch, &m, NULL);
        if (rc == STENO_ENOMEM)
                return rc;
        for (size_t i = 0; rc == 0 && i < m.count && n < about->call_count; i++) {
                if (m.parts[i].kind != PART_CALL)
                        continue;
                struct str name = token_decode(m.parts[i].name, &a->scratch, NULL);
                if (add_call(a, seq, n, about->calls[n], name))
                        return STENO_ENOMEM;
                n++;
        }
        a->answered = a->answered || about->answer_count > 0;
        return 0;
}

static int pair(struct append_ids *a, uint64_t seq, struct str id, const struct about *about)
{
        struct pairing_match *m = arena_alloc(&a->scratch, (about->answer_count + 1) * sizeof *m);
        return m ? pairing_follow(a->pairing, seq, id, about, m, NULL) : STENO_ENOMEM;
}

static int take_record(void *ctx, const struct backend_record *r)
{
        struct append_ids *a = ctx;
        struct about about;
        struct json j;
        if (r->damaged)
                return 0;
        arena_reset(&a->scratch);
        a->next = r->rec.seq + 1;
        int rc = about_read(r->rec.x, &a->scratch, &about, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? rc : 0;
        json_init(&j);
        if (about.call_count && json_parse(&j, r->rec.m.p, r->rec.m.n, NULL, NULL))
                about.call_count = 0;
        rc = pair(a, r->rec.seq, r->rec.id, &about);
        if (rc == 0 && !about.kind.n)
                rc = note_calls(a, r->rec.seq, &about, format_named(r->rec.fmt), &j, 0);
        json_release(&j);
        return rc;
}

struct append_ids *append_ids_new(struct steno_conv *conv, struct steno_error *err)
{
        struct append_ids *a = calloc(1, sizeof *a);
        if (!a) {
                error_nomem(err);
                return NULL;
        }
        arena_init(&a->arena);
        arena_init(&a->scratch);
        a->next = 1;
        a->pairing = pairing_new();
        int rc = a->pairing ? backend_read_last(conv->backend, PAIRING_WINDOW, take_record, a, err)
                            : STENO_ENOMEM;
        uint64_t last = 0;
        if (rc == 0)
                rc = backend_last(conv->backend, &last, NULL, err);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        if (rc) {
                append_ids_free(a);
                return NULL;
        }
        if (last + 1 > a->next)
                a->next = last + 1; /* the end of the log is damaged */
        return a;
}

void append_ids_free(struct append_ids *a)
{
        if (!a)
                return;
        pairing_free(a->pairing);
        free(a->list);
        arena_release(&a->arena);
        arena_release(&a->scratch);
        free(a);
}

uint64_t append_ids_next(const struct append_ids *a)
{
        return a->next;
}

/* ---- giving ---- */

struct search {
        const struct append_ids *a;
        struct str name; /* of the tool; empty: any */
        struct str id;   /* of the call; empty: any */
        struct named *found;
};

/* Open calls come oldest first: of each block the first counts, and of the blocks the last. */
static int look_at_open(void *ctx, uint64_t call_seq, uint32_t call_index, struct str id)
{
        struct search *s = ctx;
        (void)id;
        for (size_t i = 0; i < s->a->count; i++) {
                struct named *c = &s->a->list[i];
                if (c->seq != call_seq || c->index != call_index || c->taken ||
                    (s->name.n && !str_eq(c->name, s->name)) || (s->id.n && !str_eq(c->id, s->id)))
                        continue;
                if (!s->found || s->found->block != c->block)
                        s->found = c;
        }
        return 0;
}

/* Takes the open call that a result answers, by its id or the name of its tool. */
static struct named *take_call(const struct append_ids *a, struct str id, struct str name)
{
        struct search s = {.a = a, .id = id, .name = id.n ? (struct str){0} : name};
        pairing_each_open(a->pairing, look_at_open, &s);
        if (s.found)
                s.found->taken = true;
        return s.found;
}

/* Where no call of that name is open, it is the last one that was: a second result for it. */
static struct str find_call(const struct append_ids *a, struct str name)
{
        const struct named *found = take_call(a, (struct str){0}, name);
        for (size_t i = a->count; !found && name.n && i-- > 0;)
                if (str_eq(a->list[i].name, name))
                        found = &a->list[i];
        return found ? found->id : (struct str){0};
}

static int make_id(const struct steno_conv *conv, struct arena *arena, struct str *out)
{
        char made[40];
        id_make(conv->store->env, "call_", made);
        *out = arena_dup(arena, str_of(made));
        return out->p ? 0 : STENO_ENOMEM;
}

int append_ids_give(struct steno_conv *conv, struct append_ids *a, const struct carry_message *msg,
    struct arena *arena, struct about *about, struct steno_error *err)
{
        struct message m = {0};
        size_t calls = 0, answers = 0;
        const struct part *call = NULL; /* the last one that got an id here */
        struct str given = {0};
        int rc = format_read_message(msg->format, msg->j, msg->at, 1, arena, &m, err);
        for (size_t i = 0; a && i < a->count; i++)
                a->list[i].taken = false;
        for (size_t i = 0; rc == 0 && i < m.count; i++) {
                const struct part *p = &m.parts[i];
                if (p->kind == PART_CALL && calls < about->call_count) {
                        call = p->id.n ? NULL : p;
                        if (call)
                                rc = make_id(conv, arena, &given);
                        if (call && rc == 0)
                                about->calls[calls] = given;
                        calls++;
                } else if (p->kind == PART_RESULT && answers < about->answer_count) {
                        struct str name = token_decode(p->name, arena, NULL);
                        struct str id = {0};
                        if (p->id.n && a)
                                take_call(a, token_decode(p->id, arena, NULL), name);
                        else if (!p->id.n)
                                id = call ? given : a ? find_call(a, name) : id;
                        if (id.n)
                                about->answers[answers] = arena_dup(arena, id);
                        answers++;
                }
        }
        return rc              ? (rc == STENO_ENOMEM ? error_nomem(err) : rc)
               : arena->failed ? error_nomem(err)
                               : 0;
}

int append_ids_follow(struct append_ids *a, const struct carry_message *msg,
    const struct about *about, struct steno_error *err)
{
        arena_reset(&a->scratch);
        int rc = pair(a, a->next, msg->id, about);
        if (rc == 0)
                rc = note_calls(a, a->next, about, msg->format, msg->j, msg->at);
        a->next++;
        return rc ? error_nomem(err) : 0;
}
