/* budget.c - see budget.h */
#include "view/budget.h"

#include <string.h>

#include "base/error.h"
#include "model/token.h"

enum fate {
        LEAVE_OUT,
        KEEP,
        SHRINK, /* results as placeholders */
};

struct budget {
        struct work *w;
        uint64_t tokens;
        uint64_t *small; /* tokens with placeholders for results, by message */
        enum fate *fate; /* by message */
        uint64_t used;
};

static bool is_lead(const struct message *m)
{
        return m->role == ROLE_SYSTEM || m->role == ROLE_DEVELOPER;
}

/* The user says something, and answers no call: a turn begins. */
static bool begins_turn(const struct message *m)
{
        return m->role == ROLE_USER && !message_has(m, PART_RESULT);
}

static struct str shrunk(void *ctx, const struct message *m, const struct part *result)
{
        return work_placeholder(ctx, STR("Done"), m, result);
}

static uint64_t small_of(const struct budget *b, size_t i)
{
        return b->small[i] < b->w->weight[i] ? b->small[i] : b->w->weight[i];
}

static uint64_t weight_of(const struct budget *b, size_t i, enum fate fate)
{
        return fate == SHRINK ? small_of(b, i) : b->w->weight[i];
}

/* Keeps [from, to) as `fate` says if it fits. */
static bool try_range(struct budget *b, size_t from, size_t to, enum fate fate)
{
        uint64_t cost = 0;
        for (size_t i = from; i < to; i++)
                if (b->fate[i] == LEAVE_OUT)
                        cost += weight_of(b, i, fate);
        if (b->used + cost > b->tokens)
                return false;
        b->used += cost;
        for (size_t i = from; i < to; i++)
                if (b->fate[i] == LEAVE_OUT)
                        b->fate[i] = fate;
        return true;
}

/* The first message of what must stay together with the one before `end`. In a repaired history
 * results stand right behind their calls. */
static size_t unit_start(const struct work *w, size_t from, size_t end)
{
        size_t start = end - 1;
        for (size_t i = end; i-- > start;) {
                const struct message *m = &w->h->list[i];
                for (size_t k = 0; k < m->count; k++) {
                        if (!m->parts[k].peer)
                                continue;
                        size_t at = work_owner_of(w, m->parts[k].peer);
                        if (at < start)
                                start = at;
                }
        }
        return start > from ? start : from;
}

/* What fits of a turn that does not fit: the user's words, then units from the end. */
static void keep_tail(struct budget *b, size_t from, size_t to)
{
        size_t first = from;
        if (begins_turn(&b->w->h->list[from]) && try_range(b, from, from + 1, KEEP))
                first = from + 1;
        for (size_t end = to; end > first;) {
                size_t start = unit_start(b->w, first, end);
                if (!try_range(b, start, end, KEEP) && !try_range(b, start, end, SHRINK))
                        return;
                end = start;
        }
}

static void choose(struct budget *b, uint64_t reserve)
{
        const struct history *h = b->w->h;
        b->used = reserve;
        for (size_t i = 0; i < h->count; i++) {
                b->fate[i] = is_lead(&h->list[i]) ? KEEP : LEAVE_OUT;
                b->used += is_lead(&h->list[i]) ? b->w->weight[i] : 0;
        }
        for (size_t end = h->count; end > 0;) {
                size_t start = end - 1;
                while (start > 0 && !begins_turn(&h->list[start]))
                        start--;
                if (!try_range(b, start, end, KEEP) && !try_range(b, start, end, SHRINK)) {
                        if (end == h->count)
                                keep_tail(b, start, end);
                        return;
                }
                end = start;
        }
}

/* ---- the note ---- */

struct trimmed {
        size_t count;
        size_t stored; /* of these, not made by a repair */
        size_t at;     /* where the first one stood */
        uint64_t first_seq;
        uint64_t last_seq;
        size_t refs;
};

static void put_refs(struct budget *b, struct buf *out, const struct message *m, struct trimmed *t)
{
        for (size_t k = 0; k < m->count; k++) {
                if (m->parts[k].kind != PART_RESULT)
                        continue;
                struct str ref = work_ref(b->w, m, &m->parts[k]);
                if (!ref.n)
                        continue;
                if (t->refs < BUDGET_NOTE_REFS) {
                        buf_puts(out, t->refs ? ", " : "");
                        buf_put_str(out, ref);
                }
                t->refs++;
        }
}

static struct str note_text(struct budget *b, struct trimmed *t)
{
        struct buf refs, out;
        buf_init(&refs, 0);
        buf_init(&out, 0);
        *t = (struct trimmed){0};
        for (size_t i = 0; i < b->w->h->count; i++) {
                const struct message *m = &b->w->h->list[i];
                if (b->fate[i] != LEAVE_OUT)
                        continue;
                if (!t->count++) {
                        t->at = i;
                        t->first_seq = m->seq;
                }
                t->stored += m->origin != NULL;
                if (m->seq < t->first_seq)
                        t->first_seq = m->seq;
                if (m->seq > t->last_seq)
                        t->last_seq = m->seq;
                put_refs(b, &refs, m, t);
        }
        buf_printf(&out,
            "[%zu earlier message%s (seq %llu to %llu) left out of this view to fit its budget; "
            "nothing is lost.",
            t->stored, t->stored == 1 ? "" : "s", (unsigned long long)t->first_seq,
            (unsigned long long)t->last_seq);
        if (t->refs) {
                buf_puts(&out, " Full outputs among them: ");
                buf_put_str(&out, buf_str(&refs));
                if (t->refs > BUDGET_NOTE_REFS)
                        buf_printf(&out, " and %zu more", t->refs - BUDGET_NOTE_REFS);
                buf_putc(&out, '.');
        }
        buf_putc(&out, ']');
        struct str text = out.failed ? (struct str){0} : arena_dup(b->w->arena, buf_str(&out));
        if (out.failed || refs.failed)
                b->w->arena->failed = STENO_ENOMEM;
        buf_release(&refs);
        buf_release(&out);
        return text;
}

static struct message *make_note(struct budget *b, struct trimmed *t)
{
        struct str text = note_text(b, t);
        struct message *m = text.p ? message_new(b->w->arena, ROLE_USER, 1) : NULL;
        if (!m)
                return NULL;
        m->seq = t->first_seq;
        m->count = 1;
        m->parts[0].kind = PART_TEXT;
        m->parts[0].text = token_make(text, b->w->arena);
        return m;
}

/* What the note costs depends on what is left out, which depends on what the note costs. */
static struct message *settle(struct budget *b, struct trimmed *t, uint64_t *cost)
{
        uint64_t reserve = 0;
        struct message *note = NULL;
        for (int round = 0; round < 6; round++) {
                choose(b, reserve);
                note = make_note(b, t);
                if (!note)
                        return NULL;
                *cost = weigh_message(&b->w->weigher, note, NULL, NULL);
                if (t->count == 0 || *cost <= reserve)
                        break;
                reserve = *cost + (uint64_t)round * 8;
        }
        return note;
}

/* ---- applying ---- */

static size_t shrink_results(struct budget *b)
{
        size_t changed = 0;
        for (size_t i = 0; i < b->w->h->count; i++) {
                struct message *m = &b->w->h->list[i];
                if (b->fate[i] != SHRINK || b->small[i] >= b->w->weight[i])
                        continue;
                for (size_t k = 0; k < m->count; k++) {
                        if (m->parts[k].kind != PART_RESULT)
                                continue;
                        struct str text = work_placeholder(b->w, STR("Done"), m, &m->parts[k]);
                        message_set_output(m, &m->parts[k], token_make(text, b->w->arena));
                        changed++;
                }
                b->w->weight[i] = b->small[i];
        }
        return changed;
}

static bool rebuild(
    struct budget *b, const struct trimmed *t, const struct message *note, uint64_t cost)
{
        struct work *w = b->w;
        struct message *list = arena_alloc(w->arena, (w->h->count + 1) * sizeof *list);
        uint64_t *weight = arena_alloc(w->arena, (w->h->count + 1) * sizeof *weight);
        size_t n = 0;
        if (!list || !weight)
                return false;
        for (size_t i = 0; i < w->h->count; i++) {
                if (t->count && i == t->at) {
                        list[n] = *note;
                        weight[n++] = cost;
                }
                if (b->fate[i] == LEAVE_OUT)
                        continue;
                list[n] = w->h->list[i];
                weight[n++] = w->weight[i];
        }
        bool *dropped = arena_zalloc(w->arena, n + 1);
        if (!dropped)
                return false;
        w->h->list = list;
        w->h->count = n;
        w->weight = weight;
        w->dropped = dropped;
        return true;
}

static void report(struct budget *b, const struct trimmed *t, size_t shrunken)
{
        struct jsonw *out = b->w->report;
        if (!out)
                return;
        jsonw_object(out);
        jsonw_field_cstr(out, "type", "budget");
        jsonw_field_u64(out, "budget", b->tokens);
        jsonw_field_u64(out, "results", shrunken);
        jsonw_field_u64(out, "dropped", t->stored);
        if (t->count) {
                jsonw_field_u64(out, "first_seq", t->first_seq);
                jsonw_field_u64(out, "last_seq", t->last_seq);
        }
        jsonw_field_u64(out, "tokens", work_tokens(b->w));
        jsonw_object_end(out);
}

int budget_apply(struct work *w, uint64_t tokens, struct steno_error *err)
{
        size_t n = w->h->count;
        struct trimmed t;
        uint64_t cost = 0;
        if (work_tokens(w) <= tokens)
                return 0;
        struct budget b = {.w = w, .tokens = tokens};
        b.small = arena_alloc(w->arena, (n + 1) * sizeof *b.small);
        b.fate = arena_alloc(w->arena, (n + 1) * sizeof *b.fate);
        if (!b.small || !b.fate)
                return error_nomem(err);
        for (size_t i = 0; i < n; i++)
                b.small[i] = message_has(&w->h->list[i], PART_RESULT)
                                 ? weigh_message(&w->weigher, &w->h->list[i], shrunk, w)
                                 : w->weight[i];
        struct message *note = settle(&b, &t, &cost);
        if (!note)
                return error_nomem(err);
        size_t shrunken = shrink_results(&b);
        if (!rebuild(&b, &t, note, cost) || w->arena->failed)
                return error_nomem(err);
        report(&b, &t, shrunken);
        return weigher_check(&w->weigher, err);
}
