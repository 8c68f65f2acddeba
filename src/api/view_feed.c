/*
 * view_feed.c - see view_feed.h.
 *
 * A *run* is messages with calls and the results right behind them. Only a run can be cut by a
 * page's end, and is not: `run` is where the current one began, 0 when none is open.
 */
#include "api/view_feed.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "format/format.h"
#include "model/pairing.h"
#include "api/quick_about.h"
#include "api/view_amend.h"

/* A call whose message is not shown; results that came before `until` were its. */
struct ghost {
        struct str id; /* malloced */
        uint64_t until;
        bool gone; /* the message was deleted or replaced, not only left out of this view */
};

/* What becomes of a result by its call. */
enum fate { FATE_SHOWN, FATE_LEFT_OUT, FATE_LOST };

struct view_feed {
        const struct view_source *source;
        struct feed_options opt;
        feed_fn each;
        void *ctx;
        struct feed_page *page;
        struct steno_error *err;

        struct amends amends;
        struct pairing *pairing;
        struct arena arena; /* for one record */
        struct buf id;
        struct pairing_match *matches;
        size_t match_cap;
        struct ghost *ghosts;
        size_t ghost_count;
        struct quick_about quick;
        struct about about; /* of one that is not quick to read */

        bool placed_found;     /* the records of those that were recovered are known */
        bool placing;          /* they are shown where they belong */
        size_t placed;         /* how many had their turn */
        uint64_t placed_after; /* of the one whose turn it is, 0: none */

        uint64_t count;
        uint64_t run;     /* first seq of the run that is open */
        bool run_results; /* it has results: the next call begins another */
        uint64_t open;    /* calls of the page without a result */
        uint64_t end;     /* last seq of the page once it is full, 0 before */
        bool passed;      /* a result was left out since the last message that was given */
        bool gap;         /* what the next message came behind is not given as it was, */
        bool gap_reasons; /* and was nothing but reasoning */
        uint64_t gap_at;  /* seq of the first of that reasoning */
        bool replaced;    /* the message that is being given took the place of reasoning */
        uint64_t tie;     /* seq of the reasoning that the next message belongs to, 0: none */
};

/* ---- what a record says ---- */

static int read_about(struct view_feed *f, struct str x, const struct about **out)
{
        *out = quick_about_read(&f->quick, x);
        if (*out)
                return 0;
        arena_reset(&f->arena);
        *out = &f->about;
        return about_read(x, &f->arena, &f->about, f->err);
}

static int read_id(struct view_feed *f, struct str escaped, struct str *out)
{
        *out = escaped;
        if (!memchr(escaped.p, '\\', escaped.n))
                return 0;
        buf_clear(&f->id);
        json_unescape(escaped, &f->id, NULL);
        *out = buf_str(&f->id);
        return buf_check(&f->id, f->err);
}

/* Is it nothing but reasoning, which belongs to the message behind it? */
static bool is_reasoning(const struct about *a, struct str fmt, struct str m)
{
        if (a->role.n || a->call_count || a->answer_count)
                return false;
        const struct format *format = format_named(fmt);
        return format && format->reasons && format->reasons(m);
}

/* Messages with other content besides results are kept, even if the results are left out. */
static bool only_results(const struct about *a)
{
        return a->answer_count && !a->call_count && (!a->role.n || str_is(a->role, "tool"));
}

/* ---- calls whose message is gone ---- */

static void clear_ghosts(struct view_feed *f)
{
        while (f->ghost_count)
                free((char *)f->ghosts[--f->ghost_count].id.p);
}

static int add_ghosts(struct view_feed *f, const struct about *a, uint64_t until, bool gone)
{
        for (size_t i = 0; i < a->call_count; i++) {
                struct ghost *list = realloc(f->ghosts, (f->ghost_count + 1) * sizeof *f->ghosts);
                char *id = malloc(a->calls[i].n + 1);
                if (list)
                        f->ghosts = list;
                if (!list || !id) {
                        free(id);
                        return error_nomem(f->err);
                }
                memcpy(id, a->calls[i].p, a->calls[i].n);
                list[f->ghost_count++] = (struct ghost){str_span(id, a->calls[i].n), until, gone};
        }
        return 0;
}

static enum fate lay_ghost(struct view_feed *f, struct str id, uint64_t seq)
{
        for (size_t i = 0; i < f->ghost_count; i++) {
                if (!str_eq(f->ghosts[i].id, id) || seq >= f->ghosts[i].until)
                        continue;
                enum fate fate = f->ghosts[i].gone ? FATE_LOST : FATE_LEFT_OUT;
                free((char *)f->ghosts[i].id.p);
                f->ghosts[i] = f->ghosts[--f->ghost_count];
                return fate;
        }
        return FATE_SHOWN;
}

/* Is it nothing but results of calls that are not shown? A later call with the same id ends
 * this. */
static enum fate lay_ghosts(struct view_feed *f, uint64_t seq, const struct about *about)
{
        size_t laid = 0;
        enum fate fate = FATE_SHOWN;
        if (!f->ghost_count)
                return FATE_SHOWN;
        for (size_t i = 0; i < about->call_count; i++)
                lay_ghost(f, about->calls[i], seq);
        for (size_t i = 0; i < about->answer_count; i++) {
                enum fate one = lay_ghost(f, about->answers[i], seq);
                laid += one != FATE_SHOWN;
                fate = one > fate ? one : fate;
        }
        return laid == about->answer_count && only_results(about) ? fate : FATE_SHOWN;
}

/* ---- paging ---- */

static int match(struct view_feed *f, struct feed_item *item, bool *late)
{
        const struct about *a = item->about;
        if (a->answer_count > f->match_cap) {
                size_t cap = a->answer_count * 2;
                struct pairing_match *to = realloc(f->matches, cap * sizeof *to);
                if (!to)
                        return error_nomem(f->err);
                f->matches = to;
                f->match_cap = cap;
        }
        if (pairing_add(f->pairing, item->seq, a, f->matches))
                return error_nomem(f->err);
        *late = false;
        for (size_t i = 0; i < a->answer_count; i++) {
                const struct pairing_match *m = &f->matches[i];
                if (m->verdict != PAIRING_OK || (f->end && m->call_seq > f->end))
                        continue;
                item->answered++;
                if (!item->oldest || m->call_seq < item->oldest)
                        item->oldest = m->call_seq;
                *late = *late || (m->call_seq != item->seq && (!f->run || m->call_seq < f->run));
        }
        return 0;
}

static void follow_run(struct view_feed *f, const struct feed_item *item, bool late)
{
        const struct about *a = item->about;
        if (a->call_count) {
                if (!f->run || f->run_results)
                        f->run = item->start;
                f->run_results = a->answer_count > 0;
        } else if (a->answer_count && !late && f->run) {
                f->run_results = true;
        } else {
                f->run = 0;
        }
}

static int give_shown(struct view_feed *f, struct feed_item *item)
{
        item->after_result = f->passed;
        item->apart = f->gap || item->replaced || item->placed;
        item->bereft = f->gap_reasons;
        f->passed = false;
        f->gap = item->replaced || item->placed;
        f->gap_reasons = f->replaced;
        f->gap_at = item->seq;
        return f->each(f->ctx, item);
}

/* Behind the end only what answers the page's calls is given. */
static int give_behind(struct view_feed *f, struct feed_item *item)
{
        if (item->answered && !item->about->call_count) {
                f->open -= item->answered < f->open ? item->answered : f->open;
                int rc = give_shown(f, item);
                if (rc)
                        return rc;
        }
        return f->open == 0 || item->seq > f->end + PAIRING_WINDOW;
}

/* A result whose call is gone, or was never there: the view can only tell of it. */
static int give_lost(struct view_feed *f, struct feed_item *item)
{
        f->passed = true;
        if (f->end || (f->opt.before && item->seq >= f->opt.before))
                return 0;
        item->lost = true;
        f->page->last_seq = item->seq;
        return f->each(f->ctx, item);
}

static int give(struct view_feed *f, struct feed_item *item)
{
        bool late = false;
        const struct about *a = item->about;
        int rc = match(f, item, &late);
        if (rc)
                return rc;
        bool ours = a->answer_count && !a->call_count && item->answered && !late;
        /* Messages with calls one behind the other are one block: ids are matched in all of it. */
        ours = ours || (a->call_count && f->run && !f->run_results);
        bool stray = only_results(a) && !item->answered;
        bool reasons = is_reasoning(a, item->fmt, item->m);
        bool tied = f->tie && (reasons || str_is(a->role, "assistant"));
        if (f->end)
                return give_behind(f, item);
        if (stray && !a->orphan && !a->duplicate) { /* of a call that this page does not have */
                f->passed = true;
                return f->opt.after ? 0 : give_lost(f, item);
        }
        item->start = ours ? f->run : tied ? f->tie : f->gap_reasons ? f->gap_at : item->seq;
        item->counts = !stray && !late;
        bool past = f->opt.before && item->seq >= f->opt.before;
        bool full = past || (f->opt.limit && f->count >= f->opt.limit);
        if (full && stray)
                return 0;
        if (full && item->counts && !ours && !tied) {
                f->end = f->page->last_seq;
                f->page->has_more = !past;
                return f->open == 0;
        }
        if (!tied)
                f->tie = reasons ? item->start : 0;
        follow_run(f, item, late);
        f->tie = reasons ? f->tie : 0;
        f->open += a->call_count;
        f->open -= item->answered < f->open ? item->answered : f->open;
        f->count += item->counts;
        f->page->last_seq = item->seq;
        return give_shown(f, item);
}

static int give_damage(struct view_feed *f, const struct backend_record *r)
{
        if (f->end || (f->opt.before && r->first_seq >= f->opt.before) || !r->first_seq)
                return 0;
        struct feed_item item = {.seq = r->first_seq, .damaged = true, .last_seq = r->last_seq};
        f->page->last_seq = r->last_seq;
        return f->each(f->ctx, &item);
}

/* ---- what was recovered late ---- */

static int take_record(void *ctx, const struct backend_record *r);

/* A whole view shows it where it belongs; a page goes by seqs. */
static bool is_whole(const struct feed_options *o)
{
        return !o->after && !o->before && !o->limit && !o->last;
}

static int by_place(const void *a, const void *b)
{
        const struct amend_place *x = a, *y = b;
        if (x->after != y->after)
                return x->after < y->after ? -1 : 1;
        return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Which records those are. One that is not there, or stands before its place, has none. */
static int find_placed(struct view_feed *f, struct steno_error *err)
{
        const struct view_source *source = f->source;
        struct amends *a = &f->amends;
        size_t n = 0;
        for (size_t i = 0; i < a->place_count; i++) {
                struct amend_place p = a->places[i];
                int rc = source->seq_of(source->ctx, p.id.p, &p.seq, err);
                if (rc && rc != STENO_ENOTFOUND)
                        return rc;
                if (rc == 0 && p.seq > p.after)
                        a->places[n++] = p;
        }
        a->place_count = n;
        f->placed_found = true;
        if (n)
                qsort(a->places, n, sizeof *a->places, by_place);
        return 0;
}

static bool is_placed(const struct view_feed *f, uint64_t seq)
{
        for (size_t i = 0; i < f->amends.place_count; i++)
                if (f->amends.places[i].seq == seq)
                        return true;
        return false;
}

static int take_one(void *ctx, const struct backend_record *r)
{
        int rc = take_record(ctx, r);
        return rc ? rc : 1;
}

/* Gives those that stand before `seq`. */
static int give_placed(struct view_feed *f, uint64_t seq)
{
        struct amends *a = &f->amends;
        int rc = 0;
        for (; rc == 0 && f->placed < a->place_count; f->placed++) {
                const struct amend_place *p = &a->places[f->placed];
                if (p->after >= seq)
                        break;
                f->placed_after = p->after ? p->after : 1;
                rc = f->source->read(f->source->ctx, p->seq - 1, take_one, f, f->err);
                f->placed_after = 0;
                rc = rc == 1 ? 0 : rc;
        }
        return rc;
}

/* Is it the turn of what was recovered, before this record? Behind a block, not inside of it. */
static int before_record(struct view_feed *f, const struct backend_record *r)
{
        const struct about *about;
        if (f->placed == f->amends.place_count || f->amends.places[f->placed].after >= r->rec.seq)
                return 0;
        int rc = read_about(f, r->rec.x, &about);
        if (rc || (f->run && only_results(about)))
                return rc;
        return give_placed(f, r->rec.seq);
}

/* ---- records ---- */

/* A message that is not given. Reasoning that stood before it is without it from now on. */
static void leave_gap(
    struct view_feed *f, uint64_t seq, const struct about *about, struct str fmt, struct str m)
{
        f->gap = true;
        f->gap_at = f->gap_reasons ? f->gap_at : seq;
        f->gap_reasons = is_reasoning(about, fmt, m);
        f->tie = 0;
}

static int take_record(void *ctx, const struct backend_record *r)
{
        struct view_feed *f = ctx;
        const struct about *about;
        struct feed_item item = {.seq = r->rec.seq, .fmt = r->rec.fmt, .m = r->rec.m};
        if (r->damaged) {
                f->gap = true;
                return f->placed_after ? 0 : give_damage(f, r);
        }
        int rc = f->placed_after ? 0 : before_record(f, r);
        if (rc)
                return rc;
        if (f->placed_after) {
                item.seq = f->placed_after; /* a view is in the order of seqs */
                item.placed = true;
        } else if (f->placing && is_placed(f, item.seq)) {
                f->page->last_seq = item.seq;
                return 0;
        }
        rc = read_about(f, r->rec.x, &about);
        if (!rc)
                rc = read_id(f, r->rec.id, &item.id);
        if (rc)
                return rc;
        const struct amended *e;
        rc = view_amends_find(&f->amends, item.id, &e, f->err);
        if (rc)
                return rc;
        /* A message that replaces another one is shown in its place, even if the bytes of the
         * original were purged. */
        bool tombstone = str_is(about->kind, "tombstone");
        if (about->kind.n && !(e && e->by && tombstone)) {
                f->gap = f->gap || tombstone;
                return 0;
        }
        item.about = about;
        if (e && e->by && !e->deleted) {
                item.about = &e->about;
                item.fmt = e->fmt;
                item.m = e->m;
                item.replaced = true;
        }
        f->replaced = item.replaced && is_reasoning(about, r->rec.fmt, r->rec.m);
        enum fate fate = lay_ghosts(f, item.seq, item.about);
        if (e && e->by) {
                rc = add_ghosts(f, about, e->by, true);
                if (rc || e->deleted) {
                        leave_gap(f, item.seq, about, r->rec.fmt, r->rec.m);
                        return rc;
                }
        }
        bool off = item.about->off_context;
        if (e && e->in_context >= 0)
                off = !e->in_context;
        if (off && !f->opt.all_messages) {
                item.hidden = item.about->answer_count && !item.about->call_count;
                if (!item.hidden) {
                        leave_gap(f, item.seq, item.about, item.fmt, item.m);
                        return add_ghosts(f, item.about, UINT64_MAX, false);
                }
        }
        if (fate == FATE_SHOWN)
                return give(f, &item);
        return fate == FATE_LOST ? give_lost(f, &item) : 0;
}

static int feed_run(struct view_feed *f, const struct feed_options *opt, feed_fn each, void *ctx,
    struct feed_page *page, struct steno_error *err)
{
        f->opt = *opt;
        f->each = each;
        f->ctx = ctx;
        f->page = page;
        f->err = err;
        f->count = f->run = f->open = f->end = f->tie = 0;
        f->run_results = f->passed = f->gap = f->gap_reasons = false;
        f->placed = is_whole(opt) ? 0 : f->amends.place_count;
        f->placing = is_whole(opt);
        f->placed_after = 0;
        *page = (struct feed_page){.last_seq = opt->after};
        pairing_clear(f->pairing);
        clear_ghosts(f);
        int rc = f->source->read(f->source->ctx, opt->after, take_record, f, err);
        return rc ? rc : give_placed(f, UINT64_MAX);
}

/* ---- the last n ---- */

struct tail {
        uint64_t *starts; /* of the last `cap` messages that count, a ring */
        size_t cap;
        size_t count;
};

static int note_start(void *ctx, const struct feed_item *item)
{
        struct tail *t = ctx;
        if (!item->damaged && item->counts)
                t->starts[t->count++ % t->cap] = item->start;
        return 0;
}

#define TAIL_SLACK 64 /* records read beyond the n: amendments, and the block of the first */

/* Moves `after` to where the last n messages begin. */
static int find_tail(
    struct view_feed *f, struct feed_options *opt, bool *has_more, struct steno_error *err)
{
        uint64_t end;
        struct feed_page page;
        int rc = f->source->last(f->source->ctx, &end, err);
        if (rc)
                return rc;
        if (opt->before && opt->before - 1 < end)
                end = opt->before - 1;
        if (opt->last >= end)
                opt->last = end ? end : 1;
        struct tail t = {.cap = opt->last};
        t.starts = malloc(t.cap * sizeof *t.starts);
        if (!t.starts)
                return error_nomem(err);
        for (uint64_t span = opt->last + TAIL_SLACK; rc == 0; span *= 4) {
                struct feed_options probe = *opt;
                bool all = span >= end || end - span <= opt->after;
                probe.limit = probe.last = 0;
                probe.after = all ? opt->after : end - span;
                t.count = 0;
                rc = feed_run(f, &probe, note_start, &t, &page, err);
                rc = rc > 0 ? 0 : rc;
                if (rc || (t.count < t.cap && !all))
                        continue;
                *has_more = t.count > t.cap || (t.count == t.cap && !all);
                if (t.count >= t.cap) {
                        uint64_t start = t.starts[t.count % t.cap];
                        opt->after = start > opt->after ? start - 1 : opt->after;
                }
                break;
        }
        free(t.starts);
        return rc;
}

int view_feed_open(const struct view_source *source, uint64_t after, struct view_feed **out,
    struct steno_error *err)
{
        struct view_feed *f = calloc(1, sizeof *f);
        if (!f)
                return error_nomem(err);
        f->source = source;
        f->pairing = pairing_new();
        arena_init(&f->arena);
        buf_init(&f->id, 0);
        quick_about_init(&f->quick);
        int rc = view_amends_read(&f->amends, source, after, err);
        if (rc == 0 && !f->pairing)
                rc = error_nomem(err);
        if (rc)
                view_feed_close(f);
        else
                *out = f;
        return rc;
}

void view_feed_close(struct view_feed *f)
{
        if (!f)
                return;
        clear_ghosts(f);
        free(f->ghosts);
        free(f->matches);
        buf_release(&f->id);
        arena_release(&f->arena);
        pairing_free(f->pairing);
        view_amends_release(&f->amends);
        free(f);
}

int view_feed_read(struct view_feed *f, const struct feed_options *opt, feed_fn each, void *ctx,
    struct feed_page *page, struct steno_error *err)
{
        struct feed_options o = *opt;
        bool before_it = false;
        int rc = is_whole(&o) && !f->placed_found ? find_placed(f, err) : 0;
        if (rc == 0 && o.last)
                rc = find_tail(f, &o, &before_it, err);
        if (rc == 0)
                rc = feed_run(f, &o, each, ctx, page, err);
        page->has_more = page->has_more || before_it;
        /* 1 only means that the page was full before the log ended. */
        return rc == 1 ? 0 : rc;
}
