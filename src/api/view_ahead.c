/* view_ahead.c - see view_ahead.h */
#include "api/view_ahead.h"

#include <string.h>

#include "api/view_stream.h"
#include "format/format.h"

static bool has_room(const struct view_ahead *a, struct str m)
{
        return m.n < sizeof a->out->held - a->out->used;
}

static struct str keep_text(struct view_ahead *a, struct str s)
{
        char *to = a->text + a->text_used;
        memcpy(to, s.p, s.n);
        a->text_used += s.n;
        return str_span(to, s.n);
}

/* What may be needed again goes beside the bytes. False: there is no room for it. */
static bool keep(
    struct view_ahead *a, const struct feed_item *item, const struct str *ids, size_t n)
{
        size_t need = item->id.n;
        for (size_t i = 0; i < n; i++)
                need += ids[i].n;
        if (need > sizeof a->text - a->text_used)
                return false;
        struct view_ahead_item *to = &a->list[a->count++];
        to->item = *item;
        to->item.id = keep_text(a, item->id);
        to->ids = &a->ids[a->id_count];
        to->count = n;
        for (size_t i = 0; i < n; i++)
                a->ids[a->id_count++] = keep_text(a, ids[i]);
        return true;
}

/* There is room. */
static void put(struct view_ahead *a, const struct feed_item *item)
{
        struct view_out *o = a->out;
        if (o->comma)
                o->held[o->used++] = ',';
        o->comma = true;
        a->list[a->count - 1].item.m = str_span(o->held + o->used, item->m.n);
        memcpy(o->held + o->used, item->m.p, item->m.n);
        o->used += item->m.n;
}

/* Says nothing that would have to be kept as well. */
static bool is_brief(const struct feed_item *item, const char *role)
{
        const struct about *about = item->about;
        return about->brief && about->plain == FORMAT_READY_RULE && str_is(about->role, role);
}

int view_ahead_begin(struct view_ahead *a, const struct feed_item *item)
{
        const struct about *about = item->about;
        size_t usual = (about->call_count + 1) * (item->m.n + 1); /* results of the same length */
        if (!is_brief(item, "assistant") || about->answer_count ||
            about->call_count > AHEAD_CALLS || usual > sizeof a->out->held / 2)
                return 0;
        if (usual > sizeof a->out->held - a->out->used) {
                int rc = view_out_flush(a->out);
                if (rc)
                        return rc;
        }
        a->text_used = a->id_count = 0;
        a->start = a->out->used;
        a->comma = a->out->comma;
        if (!keep(a, item, about->calls, about->call_count))
                return 0;
        a->open = about->call_count;
        put(a, item);
        return 1;
}

/* Pairing (model/pairing.h) has found the call, which it does only while that is open. */
bool view_ahead_answer(struct view_ahead *a, const struct feed_item *item)
{
        const struct about *about = item->about;
        if (item->oldest != a->list[0].item.seq || about->answer_count != 1 || about->call_count ||
            !is_brief(item, "tool") || !has_room(a, item->m) || !keep(a, item, about->answers, 1))
                return false;
        a->open--;
        put(a, item);
        return true;
}

int view_ahead_take_back(struct view_ahead *a, struct str fmt, struct view_segments *held)
{
        int rc = 0;
        for (size_t i = 0; i < a->count && !rc; i++) {
                struct view_ahead_item *one = &a->list[i];
                struct about about = {.brief = true, .plain = FORMAT_READY_RULE};
                about.role = i ? STR("tool") : STR("assistant");
                *(i ? &about.answers : &about.calls) = one->ids;
                *(i ? &about.answer_count : &about.call_count) = one->count;
                one->item.fmt = fmt;
                one->item.about = &about;
                rc = view_segments_hold(held, &one->item);
        }
        a->out->used = a->start;
        a->out->comma = a->comma;
        a->count = a->open = 0;
        return rc;
}
