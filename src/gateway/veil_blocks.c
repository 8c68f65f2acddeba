/*
 * veil_blocks.c - Anthropic's Messages under the veil (veil.h).
 */
#include <stdio.h>

#include "gateway/owncalls.h"
#include "gateway/veil_core.h"

static bool is_hidden(const struct json *j, json_ref block)
{
        return json_is(j, json_get(j, block, "type"), "tool_use") &&
               owncalls_is_name(j, json_get(j, block, "name"));
}

/* Does a block wait for the app? */
static bool is_call(const struct json *j, json_ref block)
{
        return json_is(j, json_get(j, block, "type"), "tool_use");
}

static void note_block(struct veil *v, const struct json *j, json_ref block, bool hidden)
{
        v->hidden += hidden;
        v->any_hidden = v->any_hidden || hidden;
        v->calls += !hidden && is_call(j, block);
}

/* ---- events ---- */

/* Usage comes in two pieces, of which the second corrects the first. */
static void join_usage(struct veil *v, const struct json *j, json_ref usage)
{
        struct json old;
        struct buf joined;
        if (json_type(j, usage) != JSON_OBJECT)
                return;
        json_init(&old);
        buf_init(&joined, 0);
        if (v->usage.n && json_parse(&old, v->usage.p, v->usage.n, NULL, NULL) == 0) {
                struct jsonw w = jsonw_to(&joined);
                jsonw_object(&w);
                for (json_ref k = json_child(&old, 0); k != JSON_NONE;
                     k = json_next_key(&old, 0, k)) {
                        char key[80];
                        struct str name = json_inner(&old, k);
                        snprintf(key, sizeof key, "%.*s", (int)(name.n < 79 ? name.n : 79), name.p);
                        enum json_type t = json_type(j, json_get(j, usage, key));
                        if (t == JSON_NOTHING || t == JSON_NULL)
                                jsonw_copy_member(&w, &old, k);
                }
                for (json_ref k = json_child(j, usage); k != JSON_NONE;
                     k = json_next_key(j, usage, k))
                        if (json_type(j, json_value(j, k)) != JSON_NULL)
                                jsonw_copy_member(&w, j, k);
                jsonw_object_end(&w);
                buf_clear(&v->usage);
                buf_put_str(&v->usage, buf_str(&joined));
        } else {
                veil_keep_usage(v, j, usage);
        }
        buf_release(&joined);
        json_release(&old);
}

static void emit_at(struct veil *v, struct str name, struct str data, const struct veil_slot *s)
{
        char number[24];
        struct buf out;
        if (s->to == s->index) {
                veil_emit(v, name, data);
                return;
        }
        int n = snprintf(number, sizeof number, "%lld", (long long)s->to);
        struct veil_swap swap = {"index", str_span(number, (size_t)n)};
        buf_init(&out, 0);
        veil_put_object(&out, &v->j, 0, &swap, 1);
        veil_emit(v, name, buf_str(&out));
        buf_release(&out);
}

static void take_block(struct veil *v, struct str name, struct str data)
{
        const struct json *j = &v->j;
        int64_t index = 0;
        bool fresh;
        json_i64(j, json_get(j, 0, "index"), &index);
        struct veil_slot *s = veil_slot(v, index, &fresh);
        if (!s)
                return;
        if (fresh) {
                json_ref block = json_get(j, 0, "content_block");
                s->hidden = is_hidden(j, block);
                note_block(v, j, block, s->hidden);
                if (!s->hidden)
                        s->to = v->next++;
        }
        if (!s->hidden)
                emit_at(v, name, data, s);
}

static void take_end(struct veil *v, struct str name, struct str data)
{
        const struct json *j = &v->j;
        json_ref delta = json_get(j, 0, "delta"), reason = json_get(j, delta, "stop_reason");
        struct buf out, usage, inner;
        struct veil_swap swaps[2];
        size_t n = 0;
        buf_init(&out, 0);
        buf_init(&usage, 0);
        buf_init(&inner, 0);
        join_usage(v, j, json_get(j, 0, "usage"));
        bool normal = json_is(j, reason, "tool_use") || json_is(j, reason, "end_turn");
        veil_ended(v, normal);
        if (v->rounds > 1)
                swaps[n++] = (struct veil_swap){"usage", veil_usage(v, &usage)};
        if (v->hidden && !v->calls && normal) {
                struct veil_swap end = {"stop_reason", STR("\"end_turn\"")};
                veil_put_object(&inner, j, delta, &end, 1);
                swaps[n++] = (struct veil_swap){"delta", buf_str(&inner)};
        }
        veil_put_object(&out, j, 0, swaps, n);
        veil_emit(v, name, n ? buf_str(&out) : data);
        buf_release(&inner);
        buf_release(&usage);
        buf_release(&out);
}

static void blocks_event(struct veil *v, struct str name, struct str data, bool is_json)
{
        const struct json *j = &v->j;
        json_ref type = is_json ? json_get(j, 0, "type") : JSON_NONE;
        if (json_is(j, type, "message_start")) {
                json_ref message = json_get(j, 0, "message");
                veil_keep_first(v, j, message);
                join_usage(v, j, json_get(j, message, "usage"));
                if (v->rounds == 1)
                        veil_emit(v, name, data);
        } else if (json_is(j, type, "content_block_start") ||
                   json_is(j, type, "content_block_delta") ||
                   json_is(j, type, "content_block_stop")) {
                take_block(v, name, data);
        } else if (json_is(j, type, "message_delta")) {
                take_end(v, name, data);
        } else {
                veil_emit(v, name, data);
        }
}

/* ---- a whole answer ---- */

static void look_at_body(struct veil *v)
{
        const struct json *j = &v->j;
        json_ref content = json_get(j, 0, "content"), reason = json_get(j, 0, "stop_reason");
        veil_keep_first(v, j, 0);
        veil_keep_usage(v, j, json_get(j, 0, "usage"));
        for (json_ref b = json_child(j, content); b != JSON_NONE; b = json_next(j, content, b)) {
                bool own = is_hidden(j, b);
                note_block(v, j, b, own);
                if (!own)
                        veil_see(v, json_raw(j, b));
        }
        if (json_type(j, reason) == JSON_STRING)
                veil_ended(v, json_is(j, reason, "tool_use") || json_is(j, reason, "end_turn"));
}

static void put_body(struct veil *v, struct buf *out)
{
        struct buf content, usage;
        struct veil_swap swaps[VEIL_FIRST + 3];
        buf_init(&content, 0);
        buf_init(&usage, 0);
        buf_putc(&content, '[');
        buf_put_str(&content, buf_str(&v->seen));
        buf_putc(&content, ']');
        size_t n = veil_first(v, swaps);
        swaps[n++] = (struct veil_swap){"content", buf_str(&content)};
        if (v->usage.n)
                swaps[n++] = (struct veil_swap){"usage", veil_usage(v, &usage)};
        if (v->hidden && !v->calls && v->whole)
                swaps[n++] = (struct veil_swap){"stop_reason", STR("\"end_turn\"")};
        veil_put_object(out, &v->j, 0, swaps, n);
        buf_release(&usage);
        buf_release(&content);
}

const struct veil_spelling veil_blocks = {
    "anthropic", {"id", "model", NULL}, blocks_event, look_at_body, put_body};
