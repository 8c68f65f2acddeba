/*
 * veil.c - see veil.h
 */
#include "gateway/veil.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/limits.h"
#include "gateway/veil_core.h"

#define RAW_MAX (64 * MIB) /* a round that is larger cannot go on */

static const struct veil_spelling *const spellings[] = {
    &veil_chat, &veil_items, &veil_blocks, &veil_parts};

static int on_event(void *ctx, struct str name, struct str data)
{
        struct veil *v = ctx;
        bool is_json = json_parse(&v->j, data.p, data.n, NULL, NULL) == 0 &&
                       json_type(&v->j, 0) == JSON_OBJECT;
        v->spelling->event(v, name, data, is_json);
        return v->failed;
}

struct veil *veil_new(const struct wire *wire)
{
        struct veil *v = calloc(1, sizeof *v);
        if (!v)
                return NULL;
        v->wire = wire;
        for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
                if (strcmp(spellings[i]->wire, wire->name) == 0)
                        v->spelling = spellings[i];
        json_init(&v->j);
        sse_init(&v->sse, MESSAGE_MAX, on_event, v);
        buf_init(&v->held, 0);
        buf_init(&v->raw, RAW_MAX);
        buf_init(&v->usage, 0);
        buf_init(&v->usage_before, 0);
        buf_init(&v->seen, 0);
        buf_init(&v->words, 0);
        for (size_t i = 0; i < VEIL_FIRST; i++)
                buf_init(&v->first[i], 0);
        return v;
}

static void drop_slots(struct veil *v)
{
        for (size_t i = 0; i < v->slot_count; i++) {
                struct veil_slot *s = &v->slots[i];
                buf_release(&s->held);
                buf_release(&s->id);
                buf_release(&s->name);
                buf_release(&s->arguments);
        }
        v->slot_count = 0;
}

void veil_free(struct veil *v)
{
        if (!v)
                return;
        drop_slots(v);
        free(v->slots);
        sse_release(&v->sse);
        json_release(&v->j);
        buf_release(&v->held);
        buf_release(&v->raw);
        buf_release(&v->usage);
        buf_release(&v->usage_before);
        buf_release(&v->seen);
        buf_release(&v->words);
        for (size_t i = 0; i < VEIL_FIRST; i++)
                buf_release(&v->first[i]);
        free(v);
}

/* ---- usage ---- */

static void put_sum(
    struct buf *out, const struct json *a, json_ref x, const struct json *b, json_ref y);

static void put_sum_object(
    struct buf *out, const struct json *a, json_ref x, const struct json *b, json_ref y)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(a, x); k != JSON_NONE; k = json_next_key(a, x, k)) {
                char key[80];
                struct str name = json_inner(a, k);
                if (name.n >= sizeof key)
                        continue;
                snprintf(key, sizeof key, "%.*s", (int)name.n, name.p);
                jsonw_key(&w, key);
                put_sum(jsonw_value(&w), a, json_value(a, k), b, json_get(b, y, key));
        }
        for (json_ref k = json_child(b, y); k != JSON_NONE; k = json_next_key(b, y, k)) {
                bool both = false;
                for (json_ref o = json_child(a, x); o != JSON_NONE; o = json_next_key(a, x, o))
                        both = both || str_eq(json_inner(a, o), json_inner(b, k));
                if (!both)
                        jsonw_copy_member(&w, b, k);
        }
        jsonw_object_end(&w);
}

static void put_sum(
    struct buf *out, const struct json *a, json_ref x, const struct json *b, json_ref y)
{
        int64_t p, q;
        double d, e;
        enum json_type s = json_type(a, x), t = json_type(b, y);
        if (s == JSON_OBJECT && t == JSON_OBJECT)
                put_sum_object(out, a, x, b, y);
        else if (s == JSON_NUMBER && json_i64(a, x, &p) && json_i64(b, y, &q))
                buf_printf(out, "%lld", (long long)(p + q));
        else if (s == JSON_NUMBER && json_double(a, x, &d) && json_double(b, y, &e))
                buf_printf(out, "%.17g", d + e);
        else if (t == JSON_NOTHING || t == JSON_NULL)
                buf_put_str(out, json_raw(a, x));
        else
                buf_put_str(out, json_raw(b, y));
}

struct str veil_usage(struct veil *v, struct buf *out)
{
        struct json a, b;
        buf_clear(out);
        json_init(&a);
        json_init(&b);
        if (v->usage_before.n && v->usage.n &&
            json_parse(&a, v->usage_before.p, v->usage_before.n, NULL, NULL) == 0 &&
            json_parse(&b, v->usage.p, v->usage.n, NULL, NULL) == 0)
                put_sum(out, &a, 0, &b, 0);
        else
                buf_put_str(out, buf_str(v->usage.n ? &v->usage : &v->usage_before));
        json_release(&a);
        json_release(&b);
        return buf_str(out);
}

void veil_keep_usage(struct veil *v, const struct json *j, json_ref usage)
{
        if (json_type(j, usage) != JSON_OBJECT)
                return;
        buf_clear(&v->usage);
        buf_put_str(&v->usage, json_raw(j, usage));
}

/* ---- rounds ---- */

void veil_begin(struct veil *v, bool stream, bool last)
{
        struct buf sum;
        buf_init(&sum, 0);
        if (v->rounds) {
                veil_usage(v, &sum);
                buf_clear(&v->usage_before);
                buf_put_str(&v->usage_before, buf_str(&sum));
        }
        buf_release(&sum);
        buf_clear(&v->usage);
        buf_clear(&v->raw);
        buf_clear(&v->held);
        drop_slots(v);
        v->rounds++;
        v->stream = stream;
        v->last = last;
        v->hidden = v->calls = 0;
        v->ended = v->whole = false;
}

int veil_feed(struct veil *v, const char *p, size_t n, struct buf *out)
{
        buf_put(&v->raw, p, n);
        v->out = out;
        int rc = v->stream ? sse_feed(&v->sse, p, n) : v->raw.failed;
        return rc ? rc : out->failed ? out->failed : v->failed;
}

int veil_end(struct veil *v, struct buf *out)
{
        v->out = out;
        int rc = v->stream ? sse_finish(&v->sse) : 0;
        if (!v->stream && json_parse(&v->j, v->raw.p, v->raw.n, NULL, NULL) == 0)
                v->spelling->look(v);
        return rc ? rc : out->failed ? out->failed : v->failed;
}

bool veil_hides(const struct veil *v)
{
        return v->any_hidden;
}

static bool calls_ours_alone(const struct veil *v)
{
        return v->ended && v->whole && v->hidden && !v->calls;
}

bool veil_goes_on(const struct veil *v)
{
        return calls_ours_alone(v) && !v->last && !v->raw.failed;
}

bool veil_is_called_in_vain(const struct veil *v)
{
        return calls_ours_alone(v) && v->last;
}

bool veil_is_whole(const struct veil *v)
{
        return v->ended;
}

struct str veil_raw(const struct veil *v)
{
        return buf_str(&v->raw);
}

int veil_rest(struct veil *v, struct buf *out)
{
        if (v->stream)
                buf_put_str(out, buf_str(&v->held));
        else if (!v->any_hidden || json_parse(&v->j, v->raw.p, v->raw.n, NULL, NULL) != 0)
                buf_put_str(out, buf_str(&v->raw));
        else
                v->spelling->put(v, out);
        return out->failed ? out->failed : v->held.failed ? v->held.failed : v->failed;
}

/* ---- what the spellings share ---- */

void veil_put_object(struct buf *out, const struct json *j, json_ref obj,
    const struct veil_swap *swaps, size_t count)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k)) {
                const struct veil_swap *swap = NULL;
                for (size_t i = 0; i < count && !swap; i++)
                        if (json_is(j, k, swaps[i].key))
                                swap = &swaps[i];
                if (!swap)
                        jsonw_copy_member(&w, j, k);
                else if (swap->with.n)
                        jsonw_field_raw(&w, swap->key, swap->with);
        }
        jsonw_object_end(&w);
}

static void put_event(struct buf *out, struct str name, struct str data)
{
        if (name.n && !str_is(name, "message")) {
                buf_puts(out, "event: ");
                buf_put_str(out, name);
                buf_putc(out, '\n');
        }
        while (true) {
                const char *end = data.n ? memchr(data.p, '\n', data.n) : NULL;
                size_t n = end ? (size_t)(end - data.p) : data.n;
                buf_puts(out, "data: ");
                buf_put_str(out, str_span(data.p, n));
                buf_putc(out, '\n');
                if (!end)
                        break;
                data = str_span(end + 1, data.n - n - 1);
        }
        buf_putc(out, '\n');
}

void veil_emit(struct veil *v, struct str name, struct str data)
{
        if (veil_goes_on(v))
                return; /* the next round has the end */
        put_event(v->ended && v->any_hidden ? &v->held : v->out, name, data);
}

struct veil_slot *veil_slot(struct veil *v, int64_t index, bool *fresh)
{
        *fresh = false;
        for (size_t i = v->slot_count; i > 0; i--)
                if (v->slots[i - 1].index == index)
                        return &v->slots[i - 1];
        if (!grow_room(v->slots, v->slot_count, v->slot_cap)) {
                v->failed = STENO_ENOMEM;
                return NULL;
        }
        struct veil_slot *s = &v->slots[v->slot_count++];
        *s = (struct veil_slot){.index = index, .to = -1};
        buf_init(&s->held, MESSAGE_MAX);
        buf_init(&s->id, MESSAGE_MAX);
        buf_init(&s->name, MESSAGE_MAX);
        buf_init(&s->arguments, MESSAGE_MAX);
        *fresh = true;
        return s;
}

void veil_ended(struct veil *v, bool normal)
{
        v->ended = true;
        v->whole = normal;
}

void veil_keep_first(struct veil *v, const struct json *j, json_ref obj)
{
        for (size_t i = 0; i < VEIL_FIRST; i++) {
                const char *name = v->spelling->first[i];
                json_ref r = name ? json_get(j, obj, name) : JSON_NONE;
                if (v->first[i].n == 0 && json_type(j, r) != JSON_NOTHING)
                        buf_put_str(&v->first[i], json_raw(j, r));
        }
}

size_t veil_first(struct veil *v, struct veil_swap to[VEIL_FIRST])
{
        size_t n = 0;
        for (size_t i = 0; i < VEIL_FIRST && v->rounds > 1; i++)
                if (v->first[i].n)
                        to[n++] = (struct veil_swap){v->spelling->first[i], buf_str(&v->first[i])};
        return n;
}

void veil_see(struct veil *v, struct str raw)
{
        if (v->seen.n)
                buf_putc(&v->seen, ',');
        buf_put_str(&v->seen, raw);
        if (v->seen.failed)
                v->failed = v->seen.failed;
}
