/*
 * veil_items.c - Responses under the veil (veil.h).
 */
#include <stdio.h>

#include "gateway/owncalls.h"
#include "gateway/veil_core.h"

static bool is_hidden(const struct json *j, json_ref item)
{
        return json_is(j, json_get(j, item, "type"), "function_call") &&
               owncalls_is_name(j, json_get(j, item, "name"));
}

static void note_item(struct veil *v, const struct json *j, json_ref item, bool hidden)
{
        v->hidden += hidden;
        v->any_hidden = v->any_hidden || hidden;
        v->calls += !hidden && owncalls_is_call_item(j, item);
}

/* The response object for the app: what it saw, and nothing else. */
static void put_response(struct veil *v, const struct json *j, json_ref response, struct buf *out)
{
        struct buf output, usage;
        struct veil_swap swaps[VEIL_FIRST + 2];
        buf_init(&output, 0);
        buf_init(&usage, 0);
        buf_putc(&output, '[');
        buf_put_str(&output, buf_str(&v->seen));
        buf_putc(&output, ']');
        size_t n = veil_first(v, swaps);
        swaps[n++] = (struct veil_swap){"output", buf_str(&output)};
        if (v->usage.n)
                swaps[n++] = (struct veil_swap){"usage", veil_usage(v, &usage)};
        veil_put_object(out, j, response, swaps, n);
        buf_release(&usage);
        buf_release(&output);
}

/* ---- events ---- */

/* With the numbers that the app counts. */
static void emit(struct veil *v, struct str name, struct str data, const struct veil_slot *slot,
    struct str response)
{
        const struct json *j = &v->j;
        char sequence[24], index[24];
        struct veil_swap swaps[3];
        size_t n = 0;
        if (veil_goes_on(v))
                return;
        int64_t came = -1;
        json_i64(j, json_get(j, 0, "sequence_number"), &came);
        int64_t now = v->sequence++;
        if (came >= 0 && came != now) {
                int k = snprintf(sequence, sizeof sequence, "%lld", (long long)now);
                swaps[n++] = (struct veil_swap){"sequence_number", str_span(sequence, (size_t)k)};
        }
        if (slot && slot->to != slot->index) {
                int k = snprintf(index, sizeof index, "%lld", (long long)slot->to);
                swaps[n++] = (struct veil_swap){"output_index", str_span(index, (size_t)k)};
        }
        if (response.n)
                swaps[n++] = (struct veil_swap){"response", response};
        if (n == 0) {
                veil_emit(v, name, data);
                return;
        }
        struct buf out;
        buf_init(&out, 0);
        veil_put_object(&out, j, 0, swaps, n);
        veil_emit(v, name, buf_str(&out));
        buf_release(&out);
}

static void take_item(struct veil *v, struct str name, struct str data, int64_t index)
{
        const struct json *j = &v->j;
        json_ref type = json_get(j, 0, "type"), item = json_get(j, 0, "item");
        bool fresh;
        struct veil_slot *s = veil_slot(v, index, &fresh);
        if (!s)
                return;
        if (fresh) {
                s->hidden = is_hidden(j, item);
                note_item(v, j, item, s->hidden);
                if (!s->hidden)
                        s->to = v->next++;
        }
        if (s->hidden)
                return;
        if (json_is(j, type, "response.output_item.done"))
                veil_see(v, json_raw(j, item));
        emit(v, name, data, s, (struct str){0});
}

static bool is_type(const struct json *j, const char *const *types)
{
        for (; *types; types++)
                if (json_is(j, json_get(j, 0, "type"), *types))
                        return true;
        return false;
}

static void items_event(struct veil *v, struct str name, struct str data, bool is_json)
{
        static const char *const starts[] = {
            "response.created", "response.in_progress", "response.queued", NULL};
        static const char *const ends[] = {
            "response.completed", "response.incomplete", "response.failed", NULL};
        const struct json *j = &v->j;
        json_ref response = is_json ? json_get(j, 0, "response") : JSON_NONE;
        int64_t index;
        if (!is_json) {
                veil_emit(v, name, data);
        } else if (json_i64(j, json_get(j, 0, "output_index"), &index)) {
                take_item(v, name, data, index);
        } else if (is_type(j, starts)) {
                veil_keep_first(v, j, response);
                if (v->rounds == 1)
                        emit(v, name, data, NULL, (struct str){0});
        } else if (is_type(j, ends)) {
                struct buf out;
                buf_init(&out, 0);
                veil_keep_usage(v, j, json_get(j, response, "usage"));
                veil_ended(v, json_is(j, json_get(j, 0, "type"), "response.completed"));
                if (v->any_hidden)
                        put_response(v, j, response, &out);
                emit(v, name, data, NULL, buf_str(&out));
                buf_release(&out);
        } else {
                emit(v, name, data, NULL, (struct str){0});
        }
}

/* ---- a whole answer ---- */

static void look_at_body(struct veil *v)
{
        const struct json *j = &v->j;
        json_ref output = json_get(j, 0, "output"), status = json_get(j, 0, "status");
        veil_keep_first(v, j, 0);
        veil_keep_usage(v, j, json_get(j, 0, "usage"));
        for (json_ref i = json_child(j, output); i != JSON_NONE; i = json_next(j, output, i)) {
                bool own = is_hidden(j, i);
                note_item(v, j, i, own);
                if (!own)
                        veil_see(v, json_raw(j, i));
        }
        if (json_type(j, status) == JSON_STRING)
                veil_ended(v, json_is(j, status, "completed"));
}

static void put_body(struct veil *v, struct buf *out)
{
        put_response(v, &v->j, 0, out);
}

const struct veil_spelling veil_items = {
    "responses", {"id", "created_at", "model"}, items_event, look_at_body, put_body};
