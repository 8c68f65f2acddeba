/* arrange.c - see arrange.h */
#include "format/arrange.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/kinds.h"
#include "format/rules.h"
#include "format/turns.h"
#include "format/writing.h"
#include "model/token.h"

struct arrange {
        struct writer *w;
        struct arena *arena;
        uint32_t flags;
        const struct rules *rules; /* NULL: the target format is not a provider's */
        struct message *out;
        size_t count;
        size_t cap;  /* while `out` is the input list itself: the messages that were read */
        size_t read; /* number of messages in the input list */
        /* media that are written after the results behind their message */
        struct part *media;
        size_t media_count;
        size_t media_cap;
        uint64_t media_seq;
        struct writer_seen items; /* ids of items, which must be unique in a request */
};

static void *wider(
    struct arrange *a, void *list, size_t count, size_t *cap, size_t size, size_t least)
{
        if (count < *cap)
                return list;
        size_t n = *cap ? *cap * 2 : 16;
        n = n > least ? n : least;
        void *to = arena_alloc(a->arena, n * size);
        if (!to)
                return NULL;
        if (count)
                memcpy(to, list, count * size);
        *cap = n;
        return to;
}

static struct message *put(struct arrange *a, const struct message *m)
{
        /* If one message is split, most messages are. A list that grows is copied, so room for
         * twice as many is made at once. */
        struct message *to = wider(a, a->out, a->count, &a->cap, sizeof *to, a->read * 2);
        if (!to)
                return NULL;
        a->out = to;
        a->out[a->count] = *m;
        return &a->out[a->count++];
}

/* ---- copies of parts, before they are changed ---- */

static void follow(struct part *p)
{
        if (p->peer)
                p->peer->peer = p;
}

static bool own_parts(struct arrange *a, struct message *m, size_t room)
{
        return writing_own_parts(a->w, m, room);
}

/* ---- contents that are not text ---- */

static const struct extra *odd_content(const struct message *m)
{
        const struct extra *found = NULL;
        for (const struct extra *x = m->shape == SHAPE_ABSENT ? m->extras : NULL; x; x = x->next)
                if (!x->inner && str_is(x->key, "\"content\""))
                        found = x; /* if a key occurs twice, the last one counts */
        return found;
}

/* Returns the list of extras without one of them. The extras behind it are shared. */
static struct extra *without(struct arrange *a, const struct extra *list, const struct extra *one)
{
        struct extra *first = NULL, **end = &first;
        for (; list != one; list = list->next) {
                *end = arena_alloc(a->arena, sizeof **end);
                if (!*end)
                        return NULL;
                **end = *list;
                end = &(*end)->next;
        }
        *end = one->next;
        return first;
}

/* If the content is a number or an object, writes its JSON as a text in front of the calls. */
static int say_content(struct arrange *a, struct message *m)
{
        const struct extra *x = odd_content(m);
        size_t at = 0;
        if (!x || (m->origin == a->w->format && !a->w->valid))
                return 0;
        if (!own_parts(a, m, 1))
                return STENO_ENOMEM;
        while (at < m->count && m->parts[at].kind == PART_THINKING)
                at++;
        for (size_t i = m->count++; i > at; i--) {
                m->parts[i] = m->parts[i - 1];
                follow(&m->parts[i]);
        }
        m->parts[at] = (struct part){.kind = PART_TEXT, .text = token_make(x->value, a->arena)};
        m->extras = without(a, m->extras, x);
        m->shape = SHAPE_STRING;
        writing_lose(a->w, m, "content", "no text, written as its JSON");
        return a->arena->failed;
}

/* ---- media ---- */

static bool is_media(const struct part *p)
{
        return p->kind == PART_IMAGE || p->kind == PART_AUDIO || p->kind == PART_FILE;
}

static bool has_media(const struct part *parts, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (is_media(&parts[i]))
                        return true;
        return false;
}

static int keep_media(struct arrange *a, const struct message *m, const struct part *p)
{
        struct part *to = wider(a, a->media, a->media_count, &a->media_cap, sizeof *to, 0);
        if (!to)
                return STENO_ENOMEM;
        a->media = to;
        a->media[a->media_count] = *p;
        writing_lose_extras(a->w, m, "image", p->extras);
        a->media[a->media_count++].extras = NULL;
        a->media_seq = m->seq;
        writing_lose(a->w, m, "image", "moved into a user message after it");
        return 0;
}

/* Moves the media out of a list of parts. Returns the number of parts that are left. */
static size_t sift(struct arrange *a, const struct message *m, struct part *parts, size_t n)
{
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
                if (is_media(&parts[i])) {
                        keep_media(a, m, &parts[i]);
                        continue;
                }
                parts[kept] = parts[i];
                follow(&parts[kept++]);
        }
        return kept;
}

static int flush_media(struct arrange *a)
{
        if (!a->media_count)
                return 0;
        struct message m = {.role = ROLE_USER, .seq = a->media_seq, .shape = SHAPE_ARRAY};
        m.count = a->media_count;
        m.parts = arena_alloc(a->arena, m.count * sizeof *m.parts);
        if (!m.parts)
                return STENO_ENOMEM;
        memcpy(m.parts, a->media, m.count * sizeof *m.parts);
        a->media_count = 0;
        return put(a, &m) ? 0 : STENO_ENOMEM;
}

static int move_media(struct arrange *a, struct message *m)
{
        if (m->origin == a->w->format && !a->w->valid)
                return 0;
        if ((a->flags & FORMAT_USER_MEDIA) && m->role != ROLE_USER &&
            has_media(m->parts, m->count)) {
                if (!own_parts(a, m, 0))
                        return STENO_ENOMEM;
                m->count = sift(a, m, m->parts, m->count);
        }
        if (!(a->flags & FORMAT_TEXT_RESULTS))
                return 0;
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                if (p->kind != PART_RESULT || !has_media(p->children, p->child_count))
                        continue;
                if (m->raw.p && !own_parts(a, m, 0))
                        return STENO_ENOMEM;
                p = &m->parts[i];
                struct part *children = arena_alloc(a->arena, p->child_count * sizeof *children);
                if (!children)
                        return STENO_ENOMEM;
                memcpy(children, p->children, p->child_count * sizeof *children);
                p->children = children;
                p->child_count = sift(a, m, children, p->child_count);
        }
        return 0;
}

/* Is the reply empty, because its images are in a user message now? Providers refuse an empty
 * assistant message. */
static bool is_emptied(const struct arrange *a, const struct message *m)
{
        if (!a->w->valid || !(a->flags & FORMAT_PROVIDER) || m->role != ROLE_ASSISTANT)
                return false;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                bool silent = p->kind == PART_THINKING || p->kind == PART_REDACTED ||
                              (p->kind == PART_TEXT && turns_is_blank(p->text));
                if (!silent)
                        return false;
        }
        return true;
}

static void lose_emptied(struct arrange *a, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind != PART_TEXT)
                        writing_lose_part(a->w, m, &m->parts[i]);
        writing_lose_extras(a->w, m, "", m->extras);
}

/* ---- ids ---- */

static bool seen_before(struct arrange *a, struct str id)
{
        return writing_seen(a->w, id);
}

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
}

/* Makes an id that the provider accepts and that no call before this one has. It depends on nothing
 * behind the call, so that it stays the same while the history grows. */
static struct str plain_id(struct arrange *a, struct str id, uint64_t seq, size_t n)
{
        char tail[48];
        size_t max = a->rules && a->rules->id_max && a->rules->id_max < 64 ? a->rules->id_max : 64;
        char *to = arena_alloc(a->arena, max + 64);
        if (!to)
                return (struct str){0};
        int end = snprintf(tail, sizeof tail, "_%llu_%zu", (unsigned long long)seq, n);
        for (unsigned more = 2;; more++) {
                size_t len = id.n + (size_t)end > max ? max - (size_t)end : id.n;
                for (size_t i = 0; i < len; i++)
                        to[i] = is_plain(id.p[i]) ? id.p[i] : '_';
                memcpy(to + len, tail, (size_t)end);
                len += (size_t)end;
                if (!seen_before(a, str_span(to, len)))
                        return str_span(to, len);
                end = snprintf(tail, sizeof tail, "_%llu_%zu_%u", (unsigned long long)seq, n, more);
        }
}

/* Is the id of a call unusable for the provider? Ids must be unique in the request, or at least in
 * a turn of calls. A call that the provider ran has the id of its item, so this is checked as
 * well. */
static bool is_taken(struct arrange *a, const struct part *call, struct str id)
{
        if (!a->w->valid || !(a->flags & FORMAT_PROVIDER) || !id.n)
                return false;
        if ((a->flags & FORMAT_ITEMS) && call->provider_run &&
            writing_seen_in(a->w, &a->items, token_decode(id, a->arena, NULL)))
                return true;
        bool legal = !a->rules || rules_is_id(a->rules, token_decode(id, a->arena, NULL));
        return seen_before(a, id) || !legal;
}

static void tell_renamed(const struct arrange *a, const struct message *m, struct str id)
{
        struct repair_note note = {REPAIR_RENAMED, m->seq, id, repair_class_text(REPAIR_RENAMED)};
        if (a->w->on_repair)
                a->w->on_repair(a->w->repair_ctx, &note);
}

static bool lacks_name(const struct arrange *a, const struct part *call)
{
        return a->w->valid && (a->flags & FORMAT_PROVIDER) && !call->name.n;
}

/* The calls of the turns before are answered. A provider that checks ids only within a turn accepts
 * their ids again. */
static void end_turn(struct arrange *a)
{
        struct writer_seen *s = &a->w->seen;
        if ((a->flags & FORMAT_UNIQUE_IDS) || !s->count)
                return;
        memset(s->list, 0, s->cap * sizeof *s->list);
        s->count = 0;
}

/* Does a call or result get an id that is not in its message? It is needed if the provider pairs by
 * id. */
static bool lacks_id(const struct arrange *a, const struct part *p)
{
        return p->given_id && a->w->valid && !(a->flags & FORMAT_NAMELESS);
}

/* Reports that a kind of call that the target does not have is written as a function call. */
static void tell_kind(const struct arrange *a, const struct message *m, const struct part *p)
{
        const struct format *f = a->w->format;
        bool copied = m->origin == f && !a->w->valid;
        struct message at = *m;
        if (p->seq)
                at.seq = p->seq;
        if (p->call != CALL_FUNCTION && !(f->kinds & FORMAT_KIND(p->call)) && !copied)
                writing_lose(a->w, &at, kinds_name(p->call), "written as a function call");
}

static int name_calls(struct arrange *a, struct message *m)
{
        size_t n = 0;
        uint64_t seq = 0;
        bool touched = false, own = m->origin == a->w->format;
        if (m->role != ROLE_ASSISTANT)
                end_turn(a);
        for (size_t i = 0; i < m->count; i++) {
                if (m->parts[i].kind != PART_CALL)
                        continue;
                /* In a message that was joined from several records, calls are counted within each
                 * record. */
                uint64_t of = m->parts[i].seq ? m->parts[i].seq : m->seq;
                n = of == seq ? n + 1 : 0;
                seq = of;
                tell_kind(a, m, &m->parts[i]);
                struct str id = m->parts[i].id;
                struct str better = id;
                if (!id.n && !(a->flags & FORMAT_NAMELESS) && (a->w->valid || !own))
                        better = message_derived_id(seq, n, a->arena);
                if (is_taken(a, &m->parts[i], better)) {
                        tell_renamed(a, m, better);
                        better = plain_id(a, better, seq, n);
                }
                bool nameless = lacks_name(a, &m->parts[i]);
                if (better.p == id.p && !nameless && !lacks_id(a, &m->parts[i]))
                        continue;
                if (!touched && !own_parts(a, m, 0))
                        return STENO_ENOMEM;
                touched = true;
                m->parts[i].id = better;
                if (!nameless)
                        continue;
                m->parts[i].name = STR("unknown");
                writing_lose(a->w, m, "name", "absent, written as unknown");
        }
        return 0;
}

/* Is it a different id, not only a different spelling of the same one? */
static bool is_other(const struct arrange *a, struct str own, struct str of_call)
{
        if (!of_call.n || (own.p && str_eq(own, of_call)))
                return false;
        if (!own.p)
                return true;
        return !str_eq(token_decode(own, a->arena, NULL), token_decode(of_call, a->arena, NULL));
}

/* In a format that identifies results by the tool's name, does the result have another name than
 * its call? */
static bool has_other_name(const struct arrange *a, const struct part *p)
{
        return a->w->valid && (a->flags & FORMAT_PROVIDER) && (a->flags & FORMAT_NAMELESS) &&
               p->name.p && is_other(a, p->name, p->peer->name);
}

/* In a format whose calls need no id, does the result have an id though its call has none? */
static bool has_lonely_id(const struct arrange *a, const struct part *p)
{
        return a->w->valid && (a->flags & FORMAT_PROVIDER) && (a->flags & FORMAT_NAMELESS) &&
               p->id.p && !p->given_id && (!p->peer->id.n || p->peer->by_name);
}

/* Gives each result the id of its call, which may have changed. */
static int name_results(struct arrange *a, struct message *m)
{
        bool touched = false;
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                if (p->kind != PART_RESULT || !p->peer)
                        continue;
                bool id = is_other(a, p->id, p->peer->id) || lacks_id(a, p) || has_lonely_id(a, p);
                bool name = has_other_name(a, p);
                if (!id && !name)
                        continue;
                if (!touched && !own_parts(a, m, 0))
                        return STENO_ENOMEM;
                touched = true;
                p = &m->parts[i];
                if (id)
                        p->id = p->peer->id;
                if (name) {
                        p->name = p->peer->name;
                        writing_lose(a->w, m, "name", "written as the name of its call");
                }
        }
        return 0;
}

/* ---- joining and splitting ---- */

/* Do the calls of `m` belong to the same turn as the texts and calls before them? */
static bool joins(const struct message *group, const struct message *m)
{
        return m->item && m->role == ROLE_ASSISTANT && group->role == ROLE_ASSISTANT &&
               message_has(m, PART_CALL);
}

/* Items that only their own format knows (reasoning, searches) are not turns in other formats. */
static bool is_foreign(const struct message *m)
{
        return m->item && m->count && message_count(m, PART_OPAQUE) == m->count &&
               m->shape == SHAPE_ANY;
}

static int drop_foreign(struct arrange *a, const struct history *h, struct history *out)
{
        size_t kept = 0;
        while (kept < h->count && !is_foreign(&h->list[kept]))
                kept++;
        *out = *h;
        if (kept == h->count)
                return 0;
        struct message *list = arena_alloc(a->arena, (h->count + 1) * sizeof *list);
        if (!list)
                return STENO_ENOMEM;
        *out = (struct history){.list = list};
        for (size_t i = 0; i < h->count; i++) {
                if (is_foreign(&h->list[i]))
                        writing_opaque(a->w, &h->list[i], &h->list[i].parts[0]);
                else
                        list[out->count++] = h->list[i];
        }
        return 0;
}

/* Joins the items [i, ...) of one turn to one message. Returns the number of items. */
static size_t join(struct arrange *a, const struct history *h, size_t i, struct message *m)
{
        size_t n = 1, more = 0;
        while (i + n < h->count && m->item && joins(m, &h->list[i + n]))
                more += h->list[i + n++].count;
        if (n > 1 && !own_parts(a, m, more)) /* one copy: a turn may have many items */
                return 0;
        for (size_t j = 1; j < n; j++) {
                const struct message *next = &h->list[i + j];
                for (size_t k = 0; k < next->count; k++) {
                        m->parts[m->count] = next->parts[k];
                        m->parts[m->count].seq = next->seq;
                        follow(&m->parts[m->count++]);
                }
                writing_lose_members(a->w, next, NULL);
                writing_lose_extras(a->w, next, "", next->extras);
                m->shape = SHAPE_ANY;
        }
        return n;
}

static bool embeds(const struct arrange *a, const struct message *m)
{
        if (m->role != ROLE_ASSISTANT || (a->flags & FORMAT_EMBEDS))
                return false;
        if (m->origin == a->w->format && (!a->w->valid || (a->flags & FORMAT_ITEMS)))
                return false;
        return message_has(m, PART_RESULT);
}

/* A text that the assistant says behind a result becomes an item behind that result. Returns where
 * this text begins in the message. */
static size_t end_of_step(const struct arrange *a, const struct message *m)
{
        bool answered = false;
        for (size_t i = 0; (a->flags & FORMAT_ITEMS) && !a->w->valid && i < m->count; i++) {
                bool result = m->parts[i].kind == PART_RESULT;
                if (answered && !result && m->parts[i].kind != PART_CALL)
                        return i;
                answered |= result;
        }
        return m->count;
}

/* Moves the results of an assistant's message to messages of their own behind it. */
static int split_step(struct arrange *a, struct message *m)
{
        struct message head = *m;
        struct message tail = {.role = ROLE_TOOL, .seq = m->seq, .origin = m->origin};
        head.parts = arena_alloc(a->arena, (m->count + 1) * sizeof *head.parts);
        if (!head.parts)
                return STENO_ENOMEM;
        head.count = 0;
        message_touch(&head);
        tail.parts = head.parts + (m->count - message_count(m, PART_RESULT));
        for (size_t i = 0; i < m->count; i++) {
                bool result = m->parts[i].kind == PART_RESULT;
                struct part *to = result ? &tail.parts[tail.count++] : &head.parts[head.count++];
                *to = m->parts[i];
                follow(to);
        }
        *m = head;
        if (name_calls(a, m) || move_media(a, m) || !put(a, m))
                return STENO_ENOMEM;
        end_turn(a);
        bool bad = name_results(a, &tail) || move_media(a, &tail) || !put(a, &tail);
        return bad ? STENO_ENOMEM : 0;
}

static int split(struct arrange *a, struct message *m)
{
        int rc = 0;
        while (rc == 0 && m->count) {
                struct message rest = *m;
                size_t end = end_of_step(a, m);
                rest.parts += end;
                rest.count -= end;
                rest.extras = NULL;
                m->count = end;
                rc = split_step(a, m);
                message_touch(&rest);
                *m = rest;
                if (rc == 0 && m->count && !message_has(m, PART_RESULT)) {
                        bool bad = !own_parts(a, m, 0) || name_calls(a, m) || move_media(a, m) ||
                                   !put(a, m);
                        return bad ? STENO_ENOMEM : 0;
                }
        }
        return rc;
}

/* ---- more calls than one message may have ---- */

/* Writes the parts [from, to) of a message as a message of its own. The first piece keeps the other
 * members of the message. */
static struct message *put_piece(
    struct arrange *a, const struct message *m, size_t from, size_t to, bool first)
{
        struct message piece = *m;
        piece.parts = m->parts + from;
        piece.count = to - from;
        if (!own_parts(a, &piece, 0))
                return NULL;
        if (!first) {
                piece.extras = NULL;
                piece.id = piece.name = piece.created_at = (struct str){0};
                piece.shape = SHAPE_ANY;
        }
        return put(a, &piece);
}

static bool is_of(const struct part *result, const struct message *piece)
{
        return result->peer >= piece->parts && result->peer < piece->parts + piece->count;
}

/* Writes the results in `m` that answer the calls in `piece`. */
static int put_answers(struct arrange *a, const struct message *m, struct message piece)
{
        struct message some = *m;
        size_t n = 0;
        for (size_t i = 0; i < m->count; i++)
                n += is_of(&m->parts[i], &piece);
        if (!n)
                return 0;
        if (n == m->count)
                return put(a, m) ? 0 : STENO_ENOMEM;
        some.parts = arena_alloc(a->arena, n * sizeof *some.parts);
        if (!some.parts)
                return STENO_ENOMEM;
        message_touch(&some);
        some.count = 0;
        for (size_t i = 0; i < m->count; i++) {
                if (!is_of(&m->parts[i], &piece))
                        continue;
                some.parts[some.count] = m->parts[i];
                follow(&some.parts[some.count++]);
        }
        return put(a, &some) ? 0 : STENO_ENOMEM;
}

/* Returns the end of the piece that begins with part `i`: it has the maximum number of calls. */
static size_t piece_end(const struct arrange *a, const struct message *m, size_t i)
{
        size_t calls = 0;
        for (; i < m->count; i++)
                if (m->parts[i].kind == PART_CALL && ++calls > a->rules->calls_max)
                        break;
        return i;
}

/* Writes message `i` of `h` in pieces, each with its results behind it. Returns the end of the
 * results. */
static size_t put_pieces(struct arrange *a, const struct history *h, size_t i)
{
        const struct message *m = &h->list[i];
        size_t end = i + 1;
        while (end < h->count && h->list[end].role == ROLE_TOOL)
                end++;
        for (size_t from = 0, to; from < m->count; from = to) {
                to = piece_end(a, m, from);
                const struct message *put = put_piece(a, m, from, to, from == 0);
                if (!put)
                        return 0;
                struct message piece = *put; /* the list may be moved */
                for (size_t k = i + 1; k < end; k++)
                        if (put_answers(a, &h->list[k], piece))
                                return 0;
        }
        writing_lose(a->w, m, "tool_calls", "split: more calls than one message may have");
        return end;
}

static int split_calls(struct arrange *a, struct history *h)
{
        struct history whole = *h;
        size_t most = a->rules ? a->rules->calls_max : 0, i = 0;
        while (most && i < h->count && message_count(&h->list[i], PART_CALL) <= most)
                i++;
        if (!most || !a->w->valid || i == h->count)
                return 0;
        a->out = NULL;
        a->count = a->cap = 0;
        for (i = 0; i < whole.count;) {
                if (message_count(&whole.list[i], PART_CALL) <= most) {
                        if (!put(a, &whole.list[i++]))
                                return STENO_ENOMEM;
                        continue;
                }
                i = put_pieces(a, &whole, i);
                if (!i)
                        return STENO_ENOMEM;
        }
        *h = (struct history){a->out, a->count};
        return 0;
}

int arrange_history(struct writer *w, const struct history *h, bool own, struct history *out)
{
        struct arrange a = {.w = w,
            .arena = w->arena,
            .flags = w->format->flags,
            .rules = rules_find(w->format->name),
            .read = h->count};
        struct history turns;
        if (!(a.flags & FORMAT_ITEMS)) {
                if (drop_foreign(&a, h, &turns))
                        return STENO_ENOMEM;
                h = &turns;
        }
        if (own) {
                a.out = h->list;
        } else {
                a.cap = h->count + 1; /* enough if nothing is split */
                a.out = arena_alloc(a.arena, a.cap * sizeof *a.out);
                if (!a.out)
                        return STENO_ENOMEM;
        }
        for (size_t i = 0; i < h->count;) {
                struct message m = h->list[i];
                message_ahead(h, i);
                if (m.respelled && w->valid && (a.flags & FORMAT_PROVIDER))
                        message_touch(&m);
                if (say_content(&a, &m))
                        return STENO_ENOMEM;
                size_t n = a.flags & FORMAT_ITEMS ? 1 : join(&a, h, i, &m);
                i += n;
                if (a.out == h->list)
                        a.cap = i;
                if (!n || (m.role != ROLE_TOOL && flush_media(&a)))
                        return STENO_ENOMEM;
                if (embeds(&a, &m)) {
                        if (split(&a, &m))
                                return STENO_ENOMEM;
                        continue;
                }
                /* Calls come first: a result that its call carries gets the new id of that call. */
                bool moved = a.media_count;
                if (name_calls(&a, &m) || name_results(&a, &m) || move_media(&a, &m))
                        return STENO_ENOMEM;
                moved = !moved && a.media_count;
                if (moved && is_emptied(&a, &m))
                        lose_emptied(&a, &m);
                else if (!put(&a, &m))
                        return STENO_ENOMEM;
        }
        if (flush_media(&a))
                return STENO_ENOMEM;
        end_turn(&a);
        *out = (struct history){a.out, a.count};
        return split_calls(&a, out) || w->arena->failed;
}
