/* view_stream.c - see view_stream.h */
#include "api/view_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "model/via.h"

struct held {
        struct feed_item item; /* copies, in the arena */
        struct about about;
        uint64_t open; /* calls of it that have no result yet */
};

void view_stream_init(struct view_stream *s)
{
        arena_init(&s->arena[0]);
        arena_init(&s->arena[1]);
        s->live = 0;
        s->list = NULL;
        s->count = s->cap = 0;
        s->open = 0;
}

void view_stream_release(struct view_stream *s)
{
        free(s->list);
        arena_release(&s->arena[0]);
        arena_release(&s->arena[1]);
}

/* ---- copying ---- */

static bool has_twins(const struct about *a)
{
        for (size_t i = 1; i < a->call_count; i++)
                for (size_t k = 0; k < i; k++)
                        if (str_eq(a->calls[i], a->calls[k]))
                                return true;
        return false;
}

/* Nothing of Steno's in it, nothing about it, and a shape that the provider takes. */
static bool is_ready(const struct view_stream *s, const struct feed_item *item)
{
        const struct about *a = item->about;
        return s->copy && !item->damaged && !item->hidden && !a->own_fields && !a->error &&
               !a->orphan && !a->duplicate && str_is(item->fmt, s->hub->format->name) &&
               a->call_count <= 64 && !has_twins(a) && !via_is_foreign(a->via, s->hub->via) &&
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

/* ---- segments ---- */

static void copy_text(struct arena *arena, struct str *s)
{
        *s = s->n ? arena_dup(arena, *s) : (struct str){0};
}

static void copy_list(struct arena *arena, struct str **list, size_t count)
{
        struct str *to = count ? arena_alloc(arena, count * sizeof *to) : NULL;
        for (size_t i = 0; to && i < count; i++)
                to[i] = arena_dup(arena, (*list)[i]);
        *list = to;
}

static void copy_parts(struct arena *arena, struct about *a)
{
        struct about_part *to =
            a->part_count ? arena_alloc(arena, a->part_count * sizeof *to) : NULL;
        for (size_t i = 0; to && i < a->part_count; i++) {
                to[i] = a->parts[i];
                to[i].name = arena_dup(arena, to[i].name);
        }
        a->parts = to;
}

static void copy_outs(struct arena *arena, struct about *a)
{
        struct about_out *to = a->out_count ? arena_alloc(arena, a->out_count * sizeof *to) : NULL;
        for (size_t i = 0; to && i < a->out_count; i++) {
                to[i] = a->outs[i];
                struct str *const texts[] = {
                    &to[i].ref, &to[i].ref_sha, &to[i].mime, &to[i].hint, &to[i].call, &to[i].part};
                for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
                        copy_text(arena, texts[k]);
        }
        a->outs = to;
}

/* All of it: what was read is gone with the next record. */
static void copy_about(struct arena *arena, struct about *a)
{
        struct str *const texts[] = {&a->kind, &a->target, &a->role, &a->id, &a->mode, &a->run,
            &a->ref, &a->ref_sha, &a->own_id, &a->source, &a->via, &a->key, &a->sha, &a->leaf,
            &a->salt};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                copy_text(arena, texts[i]);
        copy_list(arena, &a->calls, a->call_count);
        copy_list(arena, &a->answers, a->answer_count);
        copy_list(arena, &a->refs, a->ref_count);
        copy_list(arena, &a->ref_shas, a->ref_shas ? a->ref_count : 0);
        copy_parts(arena, a);
        copy_outs(arena, a);
}

static bool copy_held(struct arena *arena, struct held *h)
{
        copy_text(arena, &h->item.id);
        copy_text(arena, &h->item.fmt);
        copy_text(arena, &h->item.m);
        if (!h->item.damaged)
                copy_about(arena, &h->about);
        return !arena->failed;
}

static int hold(struct view_stream *s, const struct feed_item *item)
{
        if (s->count == s->cap) {
                size_t cap = s->cap ? s->cap * 2 : 32;
                struct held *to = realloc(s->list, cap * sizeof *to);
                if (!to)
                        return error_nomem(s->hub->err);
                s->list = to;
                s->cap = cap;
        }
        struct held *h = &s->list[s->count];
        *h = (struct held){.item = *item};
        if (!item->damaged) {
                h->about = *item->about;
                h->open = item->about->call_count;
        }
        if (!copy_held(&s->arena[s->live], h))
                return error_nomem(s->hub->err);
        s->count++;
        return 0;
}

/* A message with calls and right behind it one message for each result. */
static bool is_in_order(const struct view_stream *s, size_t n)
{
        if (!s->list[0].about.call_count)
                return n == 1 && !s->list[0].about.answer_count;
        for (size_t i = 1; i < n; i++) {
                const struct held *h = &s->list[i];
                if (h->item.damaged || h->about.call_count || h->about.answer_count != 1 ||
                    h->item.answered != 1)
                        return false;
        }
        return n == s->list[0].about.call_count + 1;
}

static int release_through_hub(struct view_stream *s, size_t n)
{
        struct str json;
        for (size_t i = 0; i < n; i++) {
                int rc = view_hub_add(s->hub, &s->list[i].item);
                if (rc)
                        return rc;
        }
        int rc = view_hub_write(s->hub, &json);
        return rc ? rc : view_out_elements(s->out, json);
}

/* Writes the first n that are held, and keeps the rest. */
static int release(struct view_stream *s, size_t n)
{
        bool ready = n > 0;
        int rc = 0;
        for (size_t i = 0; i < s->count; i++)
                s->list[i].item.about = &s->list[i].about;
        for (size_t i = 0; ready && i < n; i++)
                ready = is_ready(s, &s->list[i].item);
        if (ready && is_in_order(s, n)) {
                for (size_t i = 0; !rc && i < n; i++)
                        rc = copy(s, &s->list[i].item);
        } else if (n) {
                rc = release_through_hub(s, n);
        }
        if (rc)
                return rc;
        struct arena *to = &s->arena[!s->live];
        s->count -= n;
        memmove(s->list, s->list + n, s->count * sizeof *s->list);
        for (size_t i = 0; i < s->count; i++)
                if (!copy_held(to, &s->list[i]))
                        return error_nomem(s->hub->err);
        arena_reset(&s->arena[s->live]);
        s->live = !s->live;
        return 0;
}

/* The oldest open calls can no longer be answered: what stands before the first that can leaves,
 * unless a pair would be split. */
static int release_expired(struct view_stream *s, uint64_t seq)
{
        size_t first = s->count;
        bool expired = false;
        if (!s->count || s->list[0].item.seq + PAIRING_WINDOW >= seq)
                return 0;
        for (size_t i = s->count; i-- > 0;) {
                struct held *h = &s->list[i];
                if (!h->open)
                        continue;
                if (h->item.seq + PAIRING_WINDOW < seq) {
                        s->open -= h->open;
                        h->open = 0;
                        expired = true;
                } else {
                        first = i;
                }
        }
        if (!expired)
                return 0;
        for (size_t i = s->count; i-- > first && first > 0;)
                while (first > 0 && s->list[i].item.oldest &&
                       s->list[i].item.oldest < s->list[first].item.seq)
                        first--;
        return release(s, first);
}

static void answer(struct view_stream *s, const struct feed_item *item)
{
        size_t left = item->answered;
        for (size_t i = 0; i < s->count && left; i++) {
                struct held *h = &s->list[i];
                if (h->item.seq < item->oldest || !h->open)
                        continue;
                for (size_t k = 0; k < item->about->answer_count && left && h->open; k++) {
                        for (size_t c = 0; c < h->about.call_count; c++) {
                                if (!str_eq(h->about.calls[c], item->about->answers[k]))
                                        continue;
                                h->open--;
                                s->open--;
                                left--;
                                break;
                        }
                }
        }
}

static int take_held(struct view_stream *s, const struct feed_item *item)
{
        int rc = hold(s, item);
        if (rc || item->damaged)
                return rc;
        s->open += item->about->call_count;
        if (item->answered)
                answer(s, item);
        return 0;
}

/* A turn of items may be joined by the writer, so it leaves as a whole. */
static bool goes_on(const struct view_stream *s, const struct feed_item *item)
{
        if (s->open)
                return true;
        if (item->damaged || str_is(item->fmt, s->hub->format->name))
                return false;
        return !str_is(item->about->role, "user") || item->about->answer_count;
}

int view_stream_take(void *ctx, const struct feed_item *item)
{
        struct view_stream *s = ctx;
        int rc = 0;
        view_report_seq(s->hub->report, item->seq);
        if (s->count)
                rc = release_expired(s, item->seq);
        if (!rc && s->count && !goes_on(s, item))
                rc = release(s, s->count);
        if (rc)
                return rc;
        if (!s->count && !item->damaged && !item->about->call_count && !item->about->answer_count &&
            is_ready(s, item))
                return copy(s, item);
        rc = take_held(s, item);
        bool plain = !item->damaged && str_is(item->fmt, s->hub->format->name);
        if (!rc && !s->open && plain)
                rc = release(s, s->count);
        return rc;
}

int view_stream_end(struct view_stream *s)
{
        return s->count ? release(s, s->count) : 0;
}
