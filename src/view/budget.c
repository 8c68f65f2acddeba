/* budget.c - see budget.h */
#include "view/budget.h"

#include <string.h>

#include "base/error.h"
#include "model/token.h"
#include "view/strategies.h"

/* The number of calls of the newest turn that are shown with placeholders before their results are
 * shown. */
#define GROUP 8

enum fate {
        LEAVE_OUT,
        KEEP,
        SHRINK, /* results become placeholders */
};

struct budget {
        struct work *w;
        const struct budget_before *before;
        uint64_t tokens;
        uint64_t *small; /* for each message: tokens with placeholders for its results */
        enum fate *fate; /* for each message */
        bool *settled;   /* for each message: it is a lead, which is decided before turns */
        uint64_t left;   /* tokens that turns may still use */
        uint64_t reserve;
};

bool budget_is_lead(const struct message *m)
{
        return m->role == ROLE_SYSTEM || m->role == ROLE_DEVELOPER;
}

bool budget_begins_turn(const struct message *m)
{
        return m->role == ROLE_USER && !message_has(m, PART_RESULT);
}

/* ---- what is left out ---- */

void budget_leave_out(
    struct budget_left *left, struct work *w, const struct message *m, struct arena *arena)
{
        if (!left->count++ || m->seq < left->first_seq)
                left->first_seq = m->seq;
        if (m->seq > left->last_seq)
                left->last_seq = m->seq;
        left->stored += m->origin != NULL;
        left->leads += budget_is_lead(m);
        for (size_t k = 0; k < m->count; k++) {
                if (m->parts[k].kind != PART_RESULT)
                        continue;
                struct str ref = work_ref(w, m, &m->parts[k]);
                if (!ref.n)
                        continue;
                if (left->refs < BUDGET_NOTE_REFS)
                        left->named[left->refs] = arena_dup(arena, ref);
                left->refs++;
        }
}

static struct str note_text(const struct budget *b, const struct budget_left *left, size_t named)
{
        struct buf out;
        buf_init(&out, 0);
        buf_printf(&out,
            "[%llu earlier message%s (seq %llu to %llu) left out of this view to fit its budget; "
            "nothing is lost.",
            (unsigned long long)left->stored, left->stored == 1 ? "" : "s",
            (unsigned long long)left->first_seq, (unsigned long long)left->last_seq);
        if (left->refs && !named)
                buf_printf(&out, " Full outputs among them: %llu.", (unsigned long long)left->refs);
        for (size_t i = 0; i < named; i++) {
                buf_puts(&out, i ? ", " : " Full outputs among them: ");
                buf_put_str(&out, left->named[i]);
        }
        if (named && left->refs > named)
                buf_printf(&out, " and %llu more", (unsigned long long)(left->refs - named));
        buf_puts(&out, named ? ".]" : "]");
        struct str text = out.failed ? (struct str){0} : arena_dup(b->w->arena, buf_str(&out));
        if (out.failed)
                b->w->arena->failed = STENO_ENOMEM;
        buf_release(&out);
        return text;
}

static struct message *make_note(
    const struct budget *b, const struct budget_left *left, size_t named, uint64_t *cost)
{
        struct str text = note_text(b, left, named);
        struct message *m = text.p ? message_new(b->w->arena, ROLE_USER, 1) : NULL;
        if (!m)
                return NULL;
        m->seq = left->first_seq;
        m->count = 1;
        m->parts[0].kind = PART_TEXT;
        m->parts[0].text = token_make(text, b->w->arena);
        *cost = weigh_message(&b->w->weigher, m, NULL, NULL);
        return m;
}

/* Makes the note with as many refs as the reserve has room for. */
static struct message *fit_note(
    const struct budget *b, const struct budget_left *left, uint64_t *cost)
{
        size_t named = left->refs < BUDGET_NOTE_REFS ? (size_t)left->refs : BUDGET_NOTE_REFS;
        struct message *note = make_note(b, left, named, cost);
        while (note && named && *cost > b->reserve)
                note = make_note(b, left, --named, cost);
        return note;
}

#define NOTE_SLACK 4 /* other numbers may split the same words into a few more tokens */

/*
 * Reserves room for the note. The reserve may grow with the budget, but slower than the room for
 * turns, and must not depend on what is left out. So it is the smaller of two: the longest note
 * that this history can need, or a quarter of the budget. But it always has room for a note without
 * refs.
 */
static int reserve_note(struct budget *b)
{
        struct budget_left most = b->before->left;
        uint64_t longest, shortest;
        for (size_t i = b->before->kept; i < b->w->h->count; i++)
                budget_leave_out(&most, b->w, &b->w->h->list[i], b->w->arena);
        most.first_seq = most.stored = most.last_seq;
        size_t named = most.refs < BUDGET_NOTE_REFS ? (size_t)most.refs : BUDGET_NOTE_REFS;
        if (!make_note(b, &most, named, &longest) || !make_note(b, &most, 0, &shortest))
                return STENO_ENOMEM;
        b->reserve = b->tokens / 4 > shortest ? b->tokens / 4 : shortest;
        b->reserve = b->reserve < longest ? b->reserve : longest;
        b->reserve = (b->reserve > shortest ? b->reserve : shortest) + NOTE_SLACK;
        return 0;
}

/* ---- system messages ---- */

/* Decides which system messages are shown. Returns the tokens that are left for turns. */
static uint64_t keep_leads(struct budget *b)
{
        const struct history *h = b->w->h;
        uint64_t share = budget_lead_share(b->tokens), used = 0;
        size_t first = h->count, kept = 0, all = 0;
        for (size_t i = 0; i < h->count; i++) {
                b->settled[i] = budget_is_lead(&h->list[i]);
                all += b->settled[i];
                if (b->settled[i] && first == h->count)
                        first = i;
        }
        if (!all)
                return b->tokens;
        b->fate[first] = KEEP;
        used = b->w->weight[first];
        kept = 1;
        for (size_t i = h->count; i-- > first + 1;) {
                if (!b->settled[i])
                        continue;
                if (kept > 1 && used + b->w->weight[i] > share)
                        break;
                b->fate[i] = KEEP;
                used += b->w->weight[i];
                kept++;
        }
        uint64_t rest = b->tokens > used ? b->tokens - used : 0;
        /* If all of them are shown, turns get the rest. As long as some are missing, turns get no
         * more than half, so that they lose nothing when a larger budget shows more system
         * messages. */
        bool whole = kept == all && !b->before->left.leads && used <= share;
        return whole || rest < share ? rest : share;
}

/* ---- turns ---- */

static struct str shrunk(void *ctx, const struct message *m, const struct part *result)
{
        return work_placeholder(ctx, STR("Done"), m, result);
}

/* Returns the tokens of [from, to) with placeholders. *more (may be NULL) becomes the tokens that
 * the full results add. */
static uint64_t weigh_range(const struct budget *b, size_t from, size_t to, uint64_t *more)
{
        uint64_t small = 0, full = 0;
        for (size_t i = from; i < to; i++) {
                if (b->settled[i])
                        continue;
                small += b->small[i];
                full += b->w->weight[i];
        }
        if (more)
                *more = full - small;
        return small;
}

static bool spend(struct budget *b, uint64_t cost)
{
        if (cost > b->left)
                return false;
        b->left -= cost;
        return true;
}

static void set_range(struct budget *b, size_t from, size_t to, enum fate fate)
{
        for (size_t i = from; i < to; i++)
                if (!b->settled[i])
                        b->fate[i] = fate;
}

static bool show_small(struct budget *b, size_t from, size_t to)
{
        if (!spend(b, weigh_range(b, from, to, NULL)))
                return false;
        set_range(b, from, to, SHRINK);
        return true;
}

static bool show_full(struct budget *b, size_t from, size_t to)
{
        uint64_t more;
        weigh_range(b, from, to, &more);
        if (!spend(b, more))
                return false;
        set_range(b, from, to, KEEP);
        return true;
}

/* Returns the first message that must stay together with the message before `end`. In a repaired
 * history, results are right behind their calls. */
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
                if (i == start && i > from && w->tied[i - 1])
                        start = i - 1; /* the reasoning that belongs to message i */
        }
        return start > from ? start : from;
}

/* Shows the units of [from, to), the newest first. False: a unit did not fit. */
static bool show_units(struct budget *b, size_t from, size_t to)
{
        size_t at[GROUP + 1];
        while (to > from) {
                size_t n = 0;
                at[0] = to;
                while (n < GROUP && at[n] > from) {
                        at[n + 1] = unit_start(b->w, from, at[n]);
                        if (!show_small(b, at[n + 1], at[n]))
                                return false;
                        n++;
                }
                for (size_t i = 0; i < n; i++)
                        if (!show_full(b, at[i + 1], at[i]))
                                return false;
                to = at[n];
        }
        return true;
}

/* Returns where the turn that ends before `end` begins. *cut: it begins in the missing messages. */
static size_t turn_start(const struct budget *b, size_t end, bool *cut)
{
        const struct history *h = b->w->h;
        size_t low = b->before->kept, start = end;
        *cut = false;
        while (start > low)
                if (budget_begins_turn(&h->list[--start]))
                        return start;
        *cut = b->before->there;
        return start;
}

/* Returns the user's message that begins a cut turn; h->count: it is not known. */
static size_t cut_words(const struct budget *b)
{
        for (size_t i = b->before->kept; i-- > 0;)
                if (budget_begins_turn(&b->w->h->list[i]))
                        return i;
        return b->w->h->count;
}

/* Chooses what turns show. True: everything that is present fits. */
static bool choose(struct budget *b)
{
        const struct history *h = b->w->h;
        bool cut;
        size_t low = b->before->kept, end = h->count;
        if (end == low)
                return true;
        size_t start = turn_start(b, end, &cut);
        size_t words = !cut && budget_begins_turn(&h->list[start]) ? start : h->count;
        size_t from = words == start ? start + 1 : start;
        if (cut)
                words = cut_words(b);
        if (words < h->count && !show_small(b, words, words + 1))
                return false;
        if (!show_units(b, from, end))
                return false;
        for (end = start; end > low && !cut; end = start) {
                start = turn_start(b, end, &cut);
                if (!show_small(b, start, end))
                        return false;
                if (!cut && !show_full(b, start, end))
                        return false;
        }
        return true;
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

/* Adds up what is left out now and what was left out before. */
static struct budget_left all_left_out(struct budget *b)
{
        struct budget_left left = b->before->left;
        for (size_t i = 0; i < b->w->h->count; i++)
                if (b->fate[i] == LEAVE_OUT) {
                        budget_leave_out(&left, b->w, &b->w->h->list[i], b->w->arena);
                        b->w->dropped[i] = true;
                }
        return left;
}

/* The note takes the place of the first message that is left out. */
static bool rebuild(
    struct budget *b, const struct budget_left *left, const struct message *note, uint64_t cost)
{
        struct work *w = b->w;
        struct message *list = arena_alloc(w->arena, (w->h->count + 1) * sizeof *list);
        uint64_t *weight = arena_alloc(w->arena, (w->h->count + 1) * sizeof *weight);
        size_t n = 0;
        bool noted = !left->count;
        if (!list || !weight)
                return false;
        for (size_t i = 0; i <= w->h->count; i++) {
                if (!noted && (i == w->h->count || w->h->list[i].seq >= left->first_seq)) {
                        list[n] = *note;
                        weight[n++] = cost;
                        noted = true;
                }
                if (i == w->h->count || b->fate[i] == LEAVE_OUT)
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

static void report(struct budget *b, const struct budget_left *left, size_t shrunken)
{
        struct jsonw *out = b->w->report;
        if (!out)
                return;
        jsonw_object(out);
        jsonw_field_cstr(out, "type", "budget");
        jsonw_field_u64(out, "budget", b->tokens);
        jsonw_field_u64(out, "results", shrunken);
        jsonw_field_u64(out, "dropped", left->stored);
        if (left->leads)
                jsonw_field_u64(out, "system_dropped", left->leads);
        if (left->count) {
                jsonw_field_u64(out, "first_seq", left->first_seq);
                jsonw_field_u64(out, "last_seq", left->last_seq);
        }
        jsonw_field_u64(out, "tokens", work_tokens(b->w));
        jsonw_object_end(out);
}

static int weigh_small(struct budget *b)
{
        struct work *w = b->w;
        size_t n = w->h->count;
        b->small = arena_alloc(w->arena, (n + 1) * sizeof *b->small);
        b->fate = arena_zalloc(w->arena, (n + 1) * sizeof *b->fate);
        b->settled = arena_zalloc(w->arena, (n + 1) * sizeof *b->settled);
        if (!b->small || !b->fate || !b->settled)
                return STENO_ENOMEM;
        for (size_t i = 0; i < n; i++) {
                b->small[i] = w->weight[i];
                if (!message_has(&w->h->list[i], PART_RESULT))
                        continue;
                uint64_t small = weigh_message(&w->weigher, &w->h->list[i], shrunk, w);
                b->small[i] = small < w->weight[i] ? small : w->weight[i];
        }
        return 0;
}

int budget_apply(struct work *w, uint64_t tokens, const struct budget_before *before, bool *more,
    struct steno_error *err)
{
        static const struct budget_before nothing;
        struct budget b = {.w = w, .tokens = tokens, .before = before ? before : &nothing};
        uint64_t cost = 0;
        *more = false;
        if (!b.before->there && work_tokens(w) <= tokens)
                return 0;
        if (weigh_small(&b))
                return error_nomem(err);
        if (b.before->guess) {
                b.left = tokens;
                *more = choose(&b);
                return weigher_check(&w->weigher, err);
        }
        if (reserve_note(&b))
                return error_nomem(err);
        b.left = keep_leads(&b);
        b.left = b.left > b.reserve ? b.left - b.reserve : 0;
        *more = choose(&b) && b.before->there;
        if (*more)
                return 0;
        struct budget_left left = all_left_out(&b);
        strategies_report(w);
        struct message *note = fit_note(&b, &left, &cost);
        if (!note)
                return error_nomem(err);
        size_t shrunken = shrink_results(&b);
        if (!rebuild(&b, &left, note, cost) || w->arena->failed)
                return error_nomem(err);
        report(&b, &left, shrunken);
        return weigher_check(&w->weigher, err);
}
