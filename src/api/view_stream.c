/* view_stream.c - see view_stream.h */
#include "api/view_stream.h"

#include <string.h>

#include "base/error.h"
#include "model/via.h"

/* ---- the sink ---- */

static int send(struct view_out *o, const char *p, size_t n)
{
        if (n && o->sink(o->ctx, p, n))
                return error_set(o->err, STENO_EINTERRUPTED, "the reader stopped the view");
        return 0;
}

int view_out_flush(struct view_out *o)
{
        size_t n = o->used;
        o->used = 0;
        return send(o, o->held, n);
}

int view_out_put(struct view_out *o, struct str s)
{
        if (s.n > sizeof o->held - o->used) {
                int rc = view_out_flush(o);
                if (rc || s.n > sizeof o->held / 2)
                        return rc ? rc : send(o, s.p, s.n);
        }
        memcpy(o->held + o->used, s.p, s.n);
        o->used += s.n;
        return 0;
}

int view_out_next(struct view_out *o)
{
        if (o->comma)
                return view_out_put(o, STR(","));
        o->comma = true;
        return 0;
}

int view_out_elements(struct view_out *o, struct str array)
{
        if (array.n <= 2)
                return 0;
        int rc = view_out_next(o);
        return rc ? rc : view_out_put(o, str_span(array.p + 1, array.n - 2));
}

int view_out_sink(void *ctx, const void *p, size_t n)
{
        return view_out_put(ctx, str_span(p, n));
}

/* ---- the short way ---- */

static bool has_twins(const struct about *a)
{
        for (size_t i = 1; i < a->call_count; i++)
                for (size_t k = 0; k < i; k++)
                        if (str_eq(a->calls[i], a->calls[k]))
                                return true;
        return false;
}

/* The message has no members of Steno, nothing has to be said about it, and the provider accepts
 * its shape. */
static bool is_ready(const struct view_stream *s, const struct feed_item *item)
{
        const struct about *a = item->about;
        return s->copy && !item->damaged && !item->hidden && !a->own_fields && !a->error &&
               !a->orphan && !a->duplicate && str_eq(item->fmt, s->name) && a->call_count <= 64 &&
               !has_twins(a) && !via_is_foreign(a->via, s->hub->via) &&
               (a->plain == FORMAT_READY_RULE || s->hub->format->ready(item->m)) &&
               view_hub_lack(s->hub, a) == VIEW_LACKS_NOTHING;
}

static int copy(struct view_stream *s, const struct feed_item *item)
{
        struct view_hub *v = s->hub;
        const struct about *a = item->about;
        struct carry_out c = {.m = item->m, .about = a, .full = v->outputs == STENO_OUTPUTS_FULL};
        int rc = view_out_next(s->out);
        view_report_id(v->report, item->id);
        if (rc)
                return rc;
        if (carry_is_plain(a, c.full))
                return view_out_put(s->out, item->m);
        rc = v->source->carry(v->source->ctx, &c, view_out_sink, s->out, v->err);
        return rc > 0 ? STENO_EINTERRUPTED : rc;
}

/* A message with calls and right behind it one message for each result. */
static bool is_in_order(const struct segments_item *list, size_t n)
{
        if (!list[0].about.call_count)
                return n == 1 && !list[0].about.answer_count;
        for (size_t i = 1; i < n; i++) {
                const struct segments_item *h = &list[i];
                if (h->item.damaged || h->about.call_count || h->about.answer_count != 1 ||
                    h->item.answered != 1)
                        return false;
        }
        return n == list[0].about.call_count + 1;
}

static int write_segment(void *ctx, const struct segments_item *list, size_t n)
{
        struct view_stream *s = ctx;
        bool ready = is_in_order(list, n);
        int rc = 0;
        for (size_t i = 0; ready && i < n; i++)
                ready = is_ready(s, &list[i].item);
        for (size_t i = 0; !rc && i < n; i++)
                rc = ready ? copy(s, &list[i].item) : view_hub_add(s->hub, &list[i].item);
        if (rc || ready)
                return rc;
        struct str json;
        rc = view_hub_write(s->hub, &json);
        return rc ? rc : view_out_elements(s->out, json);
}

/* A turn of items may be joined by the writer, so it leaves as a whole. */
static bool goes_on(void *ctx, const struct feed_item *before, const struct feed_item *item)
{
        const struct view_stream *s = ctx;
        (void)before;
        if (item->damaged || str_eq(item->fmt, s->name))
                return false;
        return !str_is(item->about->role, "user") || item->about->answer_count;
}

void view_stream_init(struct view_stream *s)
{
        s->held = (struct view_segments){
            .ctx = s, .leave = write_segment, .goes_on = goes_on, .err = s->hub->err};
        view_segments_init(&s->held);
        s->ahead.out = s->out;
        s->ahead.count = s->ahead.open = 0;
}

void view_stream_release(struct view_stream *s)
{
        view_segments_release(&s->held);
}

/* ---- what is ahead ---- */

/* The last result is there, and nothing has to be taken back any more. */
static void commit(struct view_stream *s)
{
        for (size_t i = 0; i < s->ahead.count; i++)
                view_report_id(s->hub->report, s->ahead.list[i].item.id);
        s->ahead.count = 0;
}

/* 1: the item was put behind what is ahead; 0: that is held now, or a negative code. */
static int follow(struct view_stream *s, const struct feed_item *item)
{
        bool ready = !item->damaged && is_ready(s, item);
        if (!ready || !view_ahead_answer(&s->ahead, item))
                return view_ahead_take_back(&s->ahead, s->name, &s->held);
        if (!s->ahead.open)
                commit(s);
        return 1;
}

int view_stream_take(void *ctx, const struct feed_item *item)
{
        struct view_stream *s = ctx;
        if (!s->name.n)
                s->name = str_of(s->hub->format->name);
        view_report_seq(s->hub->report, item->seq);
        int rc = s->ahead.count ? follow(s, item) : 0;
        if (rc)
                return rc > 0 ? 0 : rc;
        rc = view_segments_advance(&s->held, item);
        if (rc)
                return rc;
        bool ready = !s->held.count && !item->damaged && is_ready(s, item);
        if (ready && !item->about->call_count && !item->about->answer_count)
                return copy(s, item);
        if (ready && item->about->call_count)
                rc = view_ahead_begin(&s->ahead, item);
        if (rc)
                return rc > 0 ? 0 : rc;
        rc = view_segments_hold(&s->held, item);
        bool plain = !item->damaged && str_eq(item->fmt, s->name);
        if (!rc && !s->held.open && plain)
                rc = view_segments_end(&s->held);
        return rc;
}

int view_stream_end(struct view_stream *s)
{
        int rc = s->ahead.count ? view_ahead_take_back(&s->ahead, s->name, &s->held) : 0;
        return rc ? rc : view_segments_end(&s->held);
}
