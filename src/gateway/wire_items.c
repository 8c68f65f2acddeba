/*
 * wire_items.c - answers of OpenAI's Responses, which are lists of items (wire_core.h). A stream
 * sends each item whole when it is done, so the items are collected.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "gateway/wire_core.h"

struct item {
        int64_t index;
        size_t order;
        struct buf raw;
};

struct items {
        struct item *list;
        size_t count, cap;
};

static int add_item(struct items *all, int64_t index, struct str raw)
{
        if (!grow_room(all->list, all->count, all->cap))
                return STENO_ENOMEM;
        struct item *i = &all->list[all->count];
        *i = (struct item){.index = index, .order = all->count};
        all->count++;
        buf_init(&i->raw, MESSAGE_MAX);
        buf_put_str(&i->raw, raw);
        return i->raw.failed;
}

static int by_index(const void *a, const void *b)
{
        const struct item *x = a, *y = b;
        if (x->index != y->index)
                return x->index < y->index ? -1 : 1;
        return x->order < y->order ? -1 : x->order > y->order;
}

static void take_response(const struct json *j, json_ref response, struct wire_answer *out)
{
        wire_take_string(j, response, "id", &out->id);
        wire_take_string(j, response, "model", &out->model);
        wire_take_usage(j, json_get(j, response, "usage"), out);
        json_ref status = json_get(j, response, "status");
        if (json_is(j, status, "completed") || json_is(j, status, "incomplete"))
                out->complete = true;
        wire_take_word(j, status, out->finish, sizeof out->finish);
        json_ref details = json_get(j, response, "incomplete_details");
        wire_take_word(j, json_get(j, details, "reason"), out->finish, sizeof out->finish);
        wire_take_problem(j, json_get(j, response, "error"), out);
}

/* The items of a response, each of which must be an object to be one. */
static int take_output(struct items *all, const struct json *j, json_ref output)
{
        int rc = 0;
        for (json_ref i = json_child(j, output); i != JSON_NONE && rc == 0;
             i = json_next(j, output, i))
                rc = add_item(all, 0, json_raw(j, i));
        return rc;
}

/* The last event has all items once more. Where they were not told one by one it is what there is;
 * else it is only compared. */
static int take_end(struct wire_walk *w, const struct json *j, json_ref response)
{
        struct items *all = w->own;
        json_ref output = json_get(j, response, "output");
        w->out->ended = w->out->complete;
        if (!w->out->complete || json_count(j, output) == all->count)
                return 0;
        if (all->count == 0)
                return take_output(all, j, output);
        if (json_count(j, output))
                wire_note_odd(w->out, "the stream has %zu items, and its last event has %u",
                    all->count, json_count(j, output));
        return 0;
}

static int note_item(struct wire_walk *w, const struct json *j)
{
        struct items *all = w->own;
        json_ref type = json_get(j, 0, "type"), response = json_get(j, 0, "response");
        int rc = 0;
        if (json_is(j, json_get(j, 0, "object"), "response")) { /* a whole body */
                take_response(j, 0, w->out);
                rc = take_output(all, j, json_get(j, 0, "output"));
        } else if (json_is(j, type, "response.output_item.done")) {
                int64_t index = INT64_MAX;
                json_i64(j, json_get(j, 0, "output_index"), &index);
                json_ref item = json_get(j, 0, "item");
                buf_clear(&w->out->text); /* the item has it */
                if (json_type(j, item) == JSON_OBJECT)
                        rc = add_item(all, index, json_raw(j, item));
                else
                        wire_note_odd(w->out, "an item of the stream is not an object");
        } else if (json_is(j, type, "response.output_text.delta")) {
                json_string(j, json_get(j, 0, "delta"), &w->out->text, NULL);
        } else if (json_is(j, type, "error")) {
                json_string(j, json_get(j, 0, "message"), &w->out->problem, NULL);
                wire_take_problem(j, json_get(j, 0, "error"), w->out);
        } else if (json_type(j, response) == JSON_OBJECT) {
                take_response(j, response, w->out);
                rc = take_end(w, j, response);
        } else {
                wire_take_problem(j, json_get(j, 0, "error"), w->out);
        }
        return rc;
}

int wire_read_items(struct str body, bool stream, struct wire_answer *out)
{
        struct items all = {0};
        struct wire_walk w = {.each = note_item, .out = out, .own = &all};
        int rc = wire_walk_answer(&w, body, stream);
        if (all.count)
                qsort(all.list, all.count, sizeof *all.list, by_index);
        for (size_t i = 0; i < all.count; i++) {
                buf_putc(&out->messages, i ? ',' : '[');
                buf_put_str(&out->messages, buf_str(&all.list[i].raw));
                buf_release(&all.list[i].raw);
        }
        if (all.count)
                buf_putc(&out->messages, ']');
        out->count = all.count;
        if (!stream && !out->complete && out->problem.n == 0 && out->odd.n == 0)
                buf_puts(&out->problem, "the endpoint's answer is not a completed response");
        free(all.list);
        return rc ? rc : out->messages.failed;
}
