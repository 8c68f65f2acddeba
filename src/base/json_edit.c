/*
 * json_edit.c - changing a document by splicing, so that what is not touched stays as it was.
 *
 * Edits are collected in any order and put in the order of the text when they are applied.
 * Insertions (of length 0) at one place keep the order in which they were added.
 */
#include "base/json.h"

#include <stdlib.h>

void json_edits_init(struct json_edits *e)
{
        *e = (struct json_edits){0};
}

void json_edits_release(struct json_edits *e)
{
        if (!e)
                return;
        free(e->list);
        json_edits_init(e);
}

void json_edit_span(struct json_edits *e, size_t off, size_t len, struct str with)
{
        if (e->failed)
                return;
        if (e->count == e->cap) {
                size_t cap = e->cap ? e->cap * 2 : 16;
                struct json_edit *list = realloc(e->list, cap * sizeof *list);
                if (!list) {
                        e->failed = STENO_ENOMEM;
                        return;
                }
                e->list = list;
                e->cap = cap;
        }
        e->list[e->count++] = (struct json_edit){off, len, with};
}

static size_t start_of(const struct json *j, json_ref r)
{
        return j->nodes[r].off;
}

static size_t end_of(const struct json *j, json_ref r)
{
        return (size_t)j->nodes[r].off + j->nodes[r].len;
}

void json_edit_replace(struct json_edits *e, const struct json *j, json_ref r, struct str with)
{
        if (r < j->count)
                json_edit_span(e, start_of(j, r), j->nodes[r].len, with);
}

static bool is_listed(const struct json *j, json_ref key, const char *const *keys)
{
        for (size_t i = 0; keys[i]; i++) {
                if (json_is(j, key, keys[i]))
                        return true;
        }
        return false;
}

/*
 * A run of removed members goes with the comma behind it when a kept one follows, else with the
 * comma before it.
 */
void json_edit_remove_members(
    struct json_edits *e, const struct json *j, json_ref obj, const char *const *keys)
{
        if (json_type(j, obj) != JSON_OBJECT)
                return;
        json_ref run = JSON_NONE;
        json_ref last = JSON_NONE;
        json_ref kept = JSON_NONE;
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k)) {
                last = json_value(j, k);
                if (is_listed(j, k, keys)) {
                        if (run == JSON_NONE)
                                run = k;
                        continue;
                }
                if (run != JSON_NONE)
                        json_edit_span(
                            e, start_of(j, run), start_of(j, k) - start_of(j, run), STR(""));
                run = JSON_NONE;
                kept = last;
        }
        if (run == JSON_NONE)
                return;
        size_t from = kept == JSON_NONE ? start_of(j, run) : end_of(j, kept);
        json_edit_span(e, from, end_of(j, last) - from, STR(""));
}

static bool inserts_at(const struct json_edits *e, size_t off)
{
        for (size_t i = e->count; i-- > 0;) {
                if (e->list[i].off == off && e->list[i].len == 0)
                        return true;
        }
        return false;
}

void json_edit_add_member(
    struct json_edits *e, const struct json *j, json_ref obj, struct str member)
{
        if (json_type(j, obj) != JSON_OBJECT)
                return;
        json_ref last = JSON_NONE;
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k))
                last = json_value(j, k);
        size_t off = last == JSON_NONE ? start_of(j, obj) + 1 : end_of(j, last);
        if (last != JSON_NONE || inserts_at(e, off))
                json_edit_span(e, off, 0, STR(","));
        json_edit_span(e, off, 0, member);
}

static bool is_before(const struct json_edit *a, const struct json_edit *b)
{
        return a->off < b->off;
}

static bool is_sorted(const struct json_edits *e)
{
        for (size_t i = 1; i < e->count; i++) {
                if (is_before(&e->list[i], &e->list[i - 1]))
                        return false;
        }
        return true;
}

static void merge(
    struct json_edit *to, const struct json_edit *from, size_t a, size_t mid, size_t b)
{
        size_t i = a;
        size_t k = mid;
        for (size_t at = a; at < b; at++) {
                bool right = i == mid || (k < b && is_before(&from[k], &from[i]));
                to[at] = from[right ? k++ : i++];
        }
}

/* qsort is not stable. Edits nearly always come in order, and then nothing is allocated. */
static int sort(struct json_edits *e)
{
        if (is_sorted(e))
                return 0;
        struct json_edit *from = e->list;
        struct json_edit *to = malloc(e->cap * sizeof *to);
        if (!to)
                return STENO_ENOMEM;
        for (size_t width = 1; width < e->count; width *= 2) {
                for (size_t a = 0; a < e->count; a += 2 * width) {
                        size_t mid = a + width < e->count ? a + width : e->count;
                        size_t b = mid + width < e->count ? mid + width : e->count;
                        merge(to, from, a, mid, b);
                }
                struct json_edit *t = from;
                from = to;
                to = t;
        }
        e->list = from;
        free(to);
        return 0;
}

int json_edits_apply(struct json_edits *e, const struct json *j, json_ref r, struct buf *out)
{
        if (e->failed)
                return e->failed;
        if (r >= j->count)
                return STENO_EINVAL;
        int rc = sort(e);
        if (rc)
                return e->failed = rc;
        size_t at = start_of(j, r);
        size_t end = end_of(j, r);
        for (size_t i = 0; i < e->count; i++) {
                const struct json_edit *x = &e->list[i];
                if (x->off + x->len <= start_of(j, r) || x->off >= end)
                        continue;
                if (x->off < at || x->len > end - x->off)
                        return e->failed = STENO_EINVAL;
                buf_put(out, j->text + at, x->off - at);
                buf_put_str(out, x->with);
                at = x->off + x->len;
        }
        buf_put(out, j->text + at, end - at);
        return out->failed;
}
