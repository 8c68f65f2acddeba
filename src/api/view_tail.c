/*
 * view_tail.c - see view_tail.h.
 *
 * How much of the end is enough is found by trying (guess): the last 256 records, 512 and so on,
 * until the limit leaves out some of them. A guess begins a few records early, so that a result
 * finds its call and a segment its beginning. The view itself is then made in one pass from the
 * beginning of the page (final): segments before `from` are counted, the others held. If the
 * messages that it finds there would change the answer, the view is made again with more records.
 */
#include "api/view_tail.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "api/view_segments.h"
#include "view/strategies.h"

#define FIRST_SPAN 256
#define WARM_UP (2 * PAIRING_WINDOW)

/* A system message from before the end. */
struct lead {
        struct arena arena;
        struct segments_item held;
        uint64_t weight;
};

struct tail {
        struct view_hub *hub;
        struct view_hub count;   /* repairs the segments that are counted */
        struct view_report mute; /* of guesses */
        struct view_segments segments;
        struct view_feed *feed;
        struct buf *last_id;

        uint64_t from; /* segments that begin here or later are held */
        bool final;
        bool told; /* something is said of what is before the end, so that all of it is read */
        bool leads_wanted;
        bool begun; /* the first segment of the end has come */

        struct arena arena; /* for refs */
        struct budget_before before;
        struct lead **leads; /* the first, and the newest */
        size_t lead_count;
        size_t lead_cap;
        uint64_t lead_weight;
        struct lead words; /* begin the newest turn */
        bool has_words;
};

/* ---- messages that are kept from before the end ---- */

static void free_lead(struct lead *l)
{
        arena_release(&l->arena);
        free(l);
}

/* Of those that the budget cannot have room for, one is left out. */
static void drop_leads(struct tail *t)
{
        uint64_t share = budget_lead_share(t->hub->budget);
        while (t->lead_count > 2 && t->lead_weight > share) {
                struct lead *old = t->leads[1];
                struct budget_left *left = &t->before.left;
                uint64_t seq = old->held.item.seq;
                if (!left->count++ || seq < left->first_seq)
                        left->first_seq = seq;
                left->last_seq = seq > left->last_seq ? seq : left->last_seq;
                left->stored++;
                left->leads++;
                t->lead_weight -= old->weight;
                free_lead(old);
                t->lead_count--;
                memmove(t->leads + 1, t->leads + 2, (t->lead_count - 1) * sizeof *t->leads);
        }
}

static int add_lead(struct tail *t, const struct feed_item *item, uint64_t weight)
{
        if (!grow_room(t->leads, t->lead_count, t->lead_cap))
                return STENO_ENOMEM;
        struct lead *l = calloc(1, sizeof *l);
        if (!l)
                return STENO_ENOMEM;
        arena_init(&l->arena);
        l->weight = weight;
        t->leads[t->lead_count++] = l;
        t->lead_weight += weight;
        if (!view_segments_copy(&l->held, item, &l->arena))
                return STENO_ENOMEM;
        drop_leads(t);
        return 0;
}

/* The words that began the turn before are only counted now. */
static void forget_words(struct tail *t)
{
        struct budget_left *left = &t->before.left;
        uint64_t seq = t->words.held.item.seq;
        if (!t->has_words)
                return;
        if (!left->count++ || seq < left->first_seq)
                left->first_seq = seq;
        left->last_seq = seq > left->last_seq ? seq : left->last_seq;
        left->stored++;
        t->has_words = false;
}

static int keep_words(struct tail *t, const struct feed_item *item)
{
        forget_words(t);
        arena_reset(&t->words.arena);
        t->has_words = true;
        return view_segments_copy(&t->words.held, item, &t->words.arena) ? 0 : STENO_ENOMEM;
}

static void forget_all(struct tail *t)
{
        while (t->lead_count)
                free_lead(t->leads[--t->lead_count]);
        t->lead_weight = 0;
        t->has_words = false;
        t->before = (struct budget_before){0};
        arena_reset(&t->arena);
        view_hub_forget(t->hub);
}

/* ---- counting ---- */

static void count_plain(struct tail *t, uint64_t seq)
{
        struct budget_left *left = &t->before.left;
        if (!left->count++)
                left->first_seq = seq;
        left->last_seq = seq > left->last_seq ? seq : left->last_seq;
        left->stored++;
}

/* Does a record have an id of Steno's, so that its message came without one? */
static bool has_made_id(const struct feed_item *item)
{
        return !item->about->own_id.n && item->id.n == 30 && str_starts(item->id, "msg_") &&
               id_time(item->id) > 0;
}

/* Pieces of one message name it by their ids, and are joined over results that stand between them
 * (model/join.h). */
static bool is_piece(const struct feed_item *item)
{
        return !item->damaged && str_is(item->fmt, "anthropic") &&
               str_is(item->about->role, "assistant") && !has_made_id(item);
}

/* Does it stay as it is, and name no output? Its record says so. */
static bool is_plain(const struct tail *t, const struct feed_item *item)
{
        const struct about *a = item->about;
        if (item->damaged || item->hidden || a->orphan || a->duplicate || a->part_count)
                return false;
        if (a->answer_count && (a->ref.n || a->ref_count || a->out_count ||
                                   (a->own_fields && memmem(item->m.p, item->m.n, "ref", 3))))
                return false;
        if (str_is(a->role, "system") || str_is(a->role, "developer"))
                return false;
        return a->role.n && !is_piece(item) && format_named(item->fmt) &&
               view_hub_lack(t->hub, a) == VIEW_LACKS_NOTHING;
}

/* A message alone, or one with calls and one for each result right behind it: repair leaves them
 * where they are. */
static bool is_all_plain(const struct tail *t, const struct segments_item *list, size_t n)
{
        if (!is_plain(t, &list[0].item) || list[0].about.answer_count ||
            n != list[0].about.call_count + 1)
                return false;
        for (size_t i = 1; i < n; i++)
                if (!is_plain(t, &list[i].item) || list[i].about.call_count ||
                    list[i].about.answer_count != 1 || list[i].item.answered != 1 ||
                    !str_is(list[i].about.role, "tool"))
                        return false;
        return true;
}

static const struct feed_item *item_at(const struct segments_item *list, size_t n, uint64_t seq)
{
        size_t lo = 0, hi = n;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (list[mid].item.seq < seq)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return lo < n && list[lo].item.seq == seq ? &list[lo].item : NULL;
}

static int count_one(
    struct tail *t, struct work *w, const struct message *m, const struct feed_item *item)
{
        if (t->leads_wanted && item && m->origin && budget_is_lead(m))
                return add_lead(t, item, weigh_message(&w->weigher, m, NULL, NULL));
        if (t->leads_wanted && item && m->origin && budget_begins_turn(m))
                return keep_words(t, item);
        budget_leave_out(&t->before.left, w, m, &t->arena);
        return 0;
}

static int count_repaired(struct tail *t, const struct segments_item *list, size_t n)
{
        struct history h;
        int rc = 0;
        for (size_t i = 0; i < n && !rc; i++)
                rc = view_hub_add(&t->count, &list[i].item);
        if (!rc)
                rc = view_hub_repair(&t->count, &h);
        if (rc)
                return rc;
        struct work w = view_hub_work(&t->count, &h);
        weigher_init(&w.weigher);
        for (size_t i = 0; i < h.count && !rc; i++)
                rc = count_one(t, &w, &h.list[i], item_at(list, n, h.list[i].seq));
        if (rc == 0)
                rc = weigher_check(&w.weigher, NULL);
        work_release(&w);
        view_hub_forget(&t->count);
        return rc ? error_nomem(t->hub->err) : 0;
}

/* A plain message that stands alone. */
static int count_alone(struct tail *t, const struct feed_item *item)
{
        if (t->leads_wanted && str_is(item->about->role, "user"))
                return keep_words(t, item);
        count_plain(t, item->seq);
        return 0;
}

static int count_segment(struct tail *t, const struct segments_item *list, size_t n)
{
        if (!is_all_plain(t, list, n))
                return count_repaired(t, list, n);
        if (n == 1)
                return count_alone(t, &list[0].item) ? error_nomem(t->hub->err) : 0;
        for (size_t i = 0; i < n; i++)
                count_plain(t, list[i].item.seq);
        return 0;
}

/* Most messages stand alone and are only counted: those are not copied. */
static bool is_counted_at_once(const struct tail *t, const struct feed_item *item)
{
        return t->final && !t->begun && !t->segments.count && item->seq < t->from &&
               !item->damaged && !item->about->call_count && !item->about->answer_count &&
               is_plain(t, item);
}

/* ---- the end ---- */

/* What was kept comes first, in the order of the log. */
static int add_kept(struct tail *t)
{
        int rc = 0;
        bool words = t->has_words;
        uint64_t at = t->words.held.item.seq;
        for (size_t i = 0; i <= t->lead_count && !rc; i++) {
                if (words && (i == t->lead_count || t->leads[i]->held.item.seq > at)) {
                        rc = view_hub_add(t->hub, &t->words.held.item);
                        words = false;
                }
                if (!rc && i < t->lead_count)
                        rc = view_hub_add(t->hub, &t->leads[i]->held.item);
        }
        t->before.kept = t->hub->h.count;
        return rc;
}

static int take_segment(void *ctx, const struct segments_item *list, size_t n)
{
        struct tail *t = ctx;
        int rc = 0;
        if (!t->begun && list[0].item.seq < t->from) {
                t->before.there = true;
                return t->final ? count_segment(t, list, n) : 0;
        }
        if (!t->begun)
                rc = add_kept(t);
        t->begun = true;
        for (size_t i = 0; i < n && !rc; i++)
                rc = view_hub_add(t->hub, &list[i].item);
        return rc;
}

static bool may_join(const struct feed_item *item)
{
        return !item->damaged && (item->about->answer_count || is_piece(item));
}

static bool goes_on(void *ctx, const struct feed_item *before, const struct feed_item *item)
{
        (void)ctx;
        return may_join(before) && may_join(item);
}

static int take_item(void *ctx, const struct feed_item *item)
{
        struct tail *t = ctx;
        if (item->lost) {
                t->count.left_out = !t->begun;
                int rc = t->final ? view_hub_tell_lost(&t->count, item) : 0;
                t->count.left_out = true;
                view_hub_forget(&t->count);
                return rc;
        }
        if (t->final && !item->damaged) {
                buf_clear(t->last_id);
                buf_put_str(t->last_id, item->id);
        }
        if (t->final)
                view_report_seq(t->hub->report, item->seq);
        int rc = view_segments_advance(&t->segments, item);
        if (!rc && is_counted_at_once(t, item)) {
                t->before.there = true;
                return count_alone(t, item) ? error_nomem(t->hub->err) : 0;
        }
        return rc ? rc : view_segments_hold(&t->segments, item);
}

/* Reads what is behind `after`, and makes the view if it is final. */
static int attempt(struct tail *t, const struct feed_options *opt, uint64_t after,
    struct feed_page *page, bool *more, struct str *json)
{
        struct feed_options o = *opt;
        struct view_report *report = t->hub->report;
        o.after = after;
        t->begun = false;
        forget_all(t);
        view_report_restart(report);
        if (!t->final)
                t->hub->report = &t->mute;
        view_segments_init(&t->segments);
        int rc = 0;
        if (!t->feed)
                rc = view_feed_open(
                    t->hub->source, t->told ? opt->after : after, &t->feed, t->hub->err);
        if (!rc)
                rc = view_feed_read(t->feed, &o, take_item, t, page, t->hub->err);
        if (!rc)
                rc = view_segments_end(&t->segments);
        if (!rc && !t->begun)
                rc = add_kept(t);
        view_segments_release(&t->segments);
        if (!t->told) {
                view_feed_close(t->feed);
                t->feed = NULL;
        }
        t->before.guess = !t->final;
        if (!rc)
                rc = view_hub_write_end(t->hub, &t->before, more, json);
        t->hub->report = report;
        return rc;
}

static void tail_close(struct tail *t)
{
        view_feed_close(t->feed);
        forget_all(t);
        free(t->leads);
        arena_release(&t->words.arena);
        arena_release(&t->arena);
        view_report_release(&t->mute);
        view_hub_release(&t->count);
}

int view_tail_write(struct view_hub *hub, const struct feed_options *opt, struct feed_page *page,
    struct buf *last_id, struct str *json)
{
        struct tail t = {.hub = hub, .count = *hub, .last_id = last_id};
        uint64_t end;
        bool more = true;
        view_hub_init(&t.count);
        view_report_init(&t.mute, false);
        arena_init(&t.arena);
        arena_init(&t.words.arena);
        t.segments = (struct view_segments){
            .ctx = &t, .leave = take_segment, .goes_on = goes_on, .always = true, .err = hub->err};
        t.leads_wanted = hub->budget && !view_hub_has(hub, STRATEGY_TOKEN_LIMIT);
        t.count.left_out = true;
        t.told = hub->report->wanted || t.leads_wanted;
        int rc = hub->source->last(hub->source->ctx, &end, hub->err);
        if (opt->before && opt->before <= end)
                end = opt->before - 1;
        for (uint64_t span = FIRST_SPAN; !rc && more; span *= 2) {
                bool all = span + WARM_UP >= end || end - span - WARM_UP <= opt->after;
                t.from = all ? 0 : end - span;
                t.final = all || !t.told;
                rc = attempt(&t, opt, all ? opt->after : t.from - WARM_UP, page, &more, json);
                if (rc || more || t.final)
                        continue;
                t.final = true;
                rc = attempt(&t, opt, opt->after, page, &more, json);
        }
        tail_close(&t);
        return rc;
}

bool view_tail_is_for(const struct view_hub *hub, const struct feed_options *opt)
{
        if (opt->limit || opt->last || view_hub_has(hub, STRATEGY_MIDDLE_OUT))
                return false;
        return hub->budget || view_hub_has(hub, STRATEGY_TOKEN_LIMIT);
}
