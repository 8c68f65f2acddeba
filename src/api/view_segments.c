/* view_segments.c - see view_segments.h */
#include "api/view_segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

void view_segments_init(struct view_segments *s)
{
        arena_init(&s->arena[0]);
        arena_init(&s->arena[1]);
        s->live = 0;
        s->all = s->list = NULL;
        s->count = s->cap = s->gone = 0;
        s->open = 0;
}

void view_segments_release(struct view_segments *s)
{
        free(s->all);
        arena_release(&s->arena[0]);
        arena_release(&s->arena[1]);
}

/* ---- copying ---- */

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
        if (a->brief) {
                copy_text(arena, &a->role);
                copy_list(arena, &a->calls, a->call_count);
                copy_list(arena, &a->answers, a->answer_count);
                return;
        }
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

static bool copy_held(struct arena *arena, struct segments_item *h)
{
        copy_text(arena, &h->item.id);
        copy_text(arena, &h->item.fmt);
        copy_text(arena, &h->item.m);
        if (!h->item.damaged)
                copy_about(arena, &h->about);
        return !arena->failed;
}

bool view_segments_copy(struct segments_item *to, const struct feed_item *item, struct arena *arena)
{
        to->item = *item;
        to->about = item->damaged ? (struct about){0} : *item->about;
        to->open = to->about.call_count;
        bool copied = copy_held(arena, to);
        to->item.about = &to->about;
        return copied;
}

/* ---- holding ---- */

static int hold(struct view_segments *s, const struct feed_item *item)
{
        if (s->gone + s->count == s->cap) {
                size_t cap = s->cap ? s->cap * 2 : 32;
                struct segments_item *to = realloc(s->all, cap * sizeof *to);
                if (!to)
                        return error_nomem(s->err);
                s->all = to;
                s->list = to + s->gone;
                s->cap = cap;
        }
        if (!view_segments_copy(&s->list[s->count], item, &s->arena[s->live]))
                return error_nomem(s->err);
        s->count++;
        return 0;
}

/* The list moves when it grows. */
static void point_to_abouts(struct view_segments *s)
{
        for (size_t i = 0; i < s->count; i++)
                s->list[i].item.about = &s->list[i].about;
}

/* Lets the first n leave, and keeps the rest. Their memory is given back only when no more stay
 * than have left: a history with many open calls lets go of a few at a time, and would otherwise
 * copy a whole window for each. */
static int release(struct view_segments *s, size_t n)
{
        point_to_abouts(s);
        int rc = n ? s->leave(s->ctx, s->list, n) : 0;
        if (rc)
                return rc;
        s->gone += n;
        s->count -= n;
        s->list = s->all + s->gone;
        if (s->gone < s->count)
                return 0;
        struct arena *to = &s->arena[!s->live];
        memmove(s->all, s->list, s->count * sizeof *s->list);
        s->list = s->all;
        s->gone = 0;
        for (size_t i = 0; i < s->count; i++)
                if (!copy_held(to, &s->list[i]))
                        return error_nomem(s->err);
        arena_reset(&s->arena[s->live]);
        s->live = !s->live;
        return 0;
}

/* Where the list can be cut at `first` or before, so that no pair is split and nothing that is to
 * be joined. */
static size_t whole_before(struct view_segments *s, size_t first)
{
        size_t was;
        point_to_abouts(s);
        do {
                was = first;
                for (size_t i = s->count; i-- > first && first > 0;)
                        while (first > 0 && s->list[i].item.oldest &&
                               s->list[i].item.oldest < s->list[first].item.seq)
                                first--;
                while (s->always && first > 0 && first < s->count &&
                       s->goes_on(s->ctx, &s->list[first - 1].item, &s->list[first].item))
                        first--;
        } while (first < was);
        return first;
}

/* The oldest open calls can no longer be answered: what stands before the first that can leaves,
 * unless a pair would be split. */
static int release_expired(struct view_segments *s, uint64_t seq)
{
        size_t first = s->count;
        bool expired = false;
        if (!s->count || s->list[0].item.seq + PAIRING_WINDOW >= seq)
                return 0;
        for (size_t i = s->count; i-- > 0;) {
                struct segments_item *h = &s->list[i];
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
        return release(s, whole_before(s, first));
}

static void answer(struct view_segments *s, const struct feed_item *item)
{
        size_t left = item->answered;
        for (size_t i = 0; i < s->count && left; i++) {
                struct segments_item *h = &s->list[i];
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

int view_segments_hold(struct view_segments *s, const struct feed_item *item)
{
        int rc = hold(s, item);
        if (rc || item->damaged)
                return rc;
        s->open += item->about->call_count;
        if (item->answered)
                answer(s, item);
        return 0;
}

int view_segments_advance(struct view_segments *s, const struct feed_item *item)
{
        int rc = s->count ? release_expired(s, item->seq) : 0;
        if (rc || !s->count || s->open)
                return rc;
        struct segments_item *last = &s->list[s->count - 1];
        last->item.about = &last->about;
        if (s->goes_on(s->ctx, &last->item, item))
                return 0;
        return release(s, s->count);
}

int view_segments_end(struct view_segments *s)
{
        return s->count ? release(s, s->count) : 0;
}
