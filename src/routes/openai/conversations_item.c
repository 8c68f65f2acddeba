/*
 * conversations_item.c - one item of a conversation: finding it by any of its ids, giving it, and
 * deleting it, which leaves the rest of its message.
 */
#include "routes/openai/conversations.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "http/request.h"
#include "routes/handlers.h"
#include "routes/openai/items.h"

static int look_at_id(void *ctx, const struct steno_record *r)
{
        struct conversations_wanted *w = ctx;
        const char *id = steno_record_id(r);
        bool whole = strcmp(id, w->id) == 0 || strcmp(steno_record_own_id(r), w->id) == 0;
        bool part = !whole && strcmp(id, w->message) == 0;
        const char *kind = steno_record_kind(r);
        if (!(whole || part) || (w->history && history_is_deleted(w->history, id)) ||
            (strcmp(kind, "message") != 0 && strcmp(kind, "tombstone") != 0))
                return 0;
        snprintf(w->found, sizeof w->found, "%s", id);
        w->seq = steno_record_seq(r);
        w->whole = whole;
        w->k = whole ? 0 : w->place;
        return 0;
}

/* Finds it; `h` NULL: also one that was deleted. An id may have been used again at any time, so the
 * log is read; its end first, because that is where clients look. */
int conversations_find(struct steno_conv *conv, const struct history *h, const char *id,
    struct conversations_wanted *w, struct steno_error *err)
{
        uint64_t last;
        *w = (struct conversations_wanted){.history = h, .id = id};
        items_split_id(id, w->message, &w->place);
        int rc = steno_conv_last_seq(conv, &last, err);
        uint64_t after = last > CONVERSATIONS_RECENT ? last - CONVERSATIONS_RECENT : 0;
        if (rc == 0)
                rc = steno_read(conv, after, 0, look_at_id, w, err);
        if (rc == 0 && !w->found[0] && after)
                rc = steno_read(conv, 0, after, look_at_id, w, err);
        if (rc < 0)
                return rc;
        return w->found[0] ? 0 : STENO_ENOTFOUND;
}

/* ---- one item ---- */

struct one {
        struct request *r;
        size_t k;
        bool found;
};

static int give_item(void *ctx, const struct history_item *message)
{
        struct one *o = ctx;
        o->found = items_of_message(message, o->k, &o->r->reply);
        return 0;
}

void conversations_item_get(struct request *r)
{
        struct steno_error err = {0};
        struct history h;
        struct conversations_wanted w;
        struct one o = {.r = r};
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = history_open(&h, conv, &err);
        if (rc == 0) {
                rc = history_outputs(&h, request_query(r, "outputs"), &err);
                if (rc == 0)
                        rc = conversations_find(conv, &h, r->params[1].p, &w, &err);
                o.k = w.k;
                if (rc == 0)
                        rc = history_find(&h, w.found, "responses", give_item, &o, &err);
                history_close(&h);
        }
        if (rc == STENO_ENOTFOUND || (rc == 0 && !o.found))
                request_error(r, 404, "not_found", "no such item");
        else if (rc)
                request_failed(r, rc, &err);
        else
                request_reply_json(r, 200);
        steno_conv_close(conv);
}

/* A message of which one item goes. */
struct parting {
        size_t k;
        struct buf items; /* the others */
        struct buf format;
        size_t count;
};

static int take_apart(void *ctx, const struct history_item *message)
{
        struct parting *p = ctx;
        p->count = items_count(message);
        buf_puts(&p->format, message->format);
        return p->count > 1 && !items_without(message, p->k, &p->items) ? STENO_ENOTFOUND : 0;
}

static int to_buf(void *ctx, const void *bytes, size_t n)
{
        buf_put(ctx, bytes, n);
        return ((struct buf *)ctx)->failed;
}

/*
 * The one message that the rest was converted to; JSON_NONE: it is several. A converted history
 * begins with the user and answers every call, so messages that nobody stored may stand around it.
 */
static json_ref one_message(const struct json *j)
{
        json_ref caller = JSON_NONE;
        size_t callers = 0;
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m)) {
                json_ref role = json_get(j, m, "role");
                if (!json_is(j, role, "assistant") && !json_is(j, role, "model"))
                        continue;
                caller = m;
                callers++;
        }
        if (callers == 0 && json_count(j, 0) == 1)
                return json_child(j, 0);
        return callers == 1 ? caller : JSON_NONE;
}

/* The rest of a message that another API wrote, as one message of its format. False: it is none. */
static bool rest_of(struct parting *p, struct buf *out)
{
        struct json j;
        struct buf list;
        const char *format = buf_cstr(&p->format);
        json_init(&j);
        buf_init(&list, 0);
        bool ok = format &&
                  steno_convert("responses", format, p->items.p, p->items.n, to_buf, &list, NULL,
                      NULL) == 0 &&
                  json_parse(&j, list.p, list.n, NULL, NULL) == 0 && one_message(&j) != JSON_NONE;
        if (ok)
                buf_put_str(out, json_raw(&j, one_message(&j)));
        json_release(&j);
        buf_release(&list);
        return ok && !out->failed;
}

static int note_newest(void *ctx, const struct history_item *message)
{
        *(uint64_t *)ctx = message->seq;
        return 1;
}

/* Has the rest of a message results? A message of another format may not hold one alone, or not
 * without the call, so it is stored as the items that it is. */
static bool has_results(const struct buf *items)
{
        struct json j;
        bool any = false;
        json_init(&j);
        if (json_parse(&j, items->p, items->n, NULL, NULL) == 0)
                for (json_ref i = json_child(&j, 0); i != JSON_NONE; i = json_next(&j, 0, i))
                        any |= json_get(&j, i, "output") != JSON_NONE;
        json_release(&j);
        return any;
}

/* The rest of the last message, stored as items behind it, and the message goes: in one batch, so
 * that whoever is cut off has either. */
static int replace_by_items(
    struct steno_conv *conv, const char *message, const struct buf *items, struct steno_error *err)
{
        struct steno_append_options opt = {.size = sizeof opt,
            .format = "responses",
            .flags = STENO_RECORD | STENO_KEEP_OUTPUTS | STENO_ANEW,
            .deletes = message};
        struct json j;
        struct buf list;
        const char *why = "";
        size_t n = 0;
        json_init(&j);
        buf_init(&list, 0);
        buf_putc(&list, '[');
        int rc = json_parse(&j, items->p, items->n, NULL, err);
        for (json_ref i = rc ? JSON_NONE : json_child(&j, 0); !rc && i != JSON_NONE;
             i = json_next(&j, 0, i)) {
                if (n++)
                        buf_putc(&list, ',');
                if (!items_normalise(&j, i, (struct str){0}, n, &list, &why))
                        rc = error_set(err, STENO_EPROTO, "%s", why);
        }
        buf_putc(&list, ']');
        if (rc == 0)
                rc = buf_check(&list, err);
        if (rc == 0)
                rc = n ? steno_append(conv, list.p, list.n, &opt, NULL, err)
                       : steno_amend(conv, "delete", message, NULL, 0, NULL, NULL, err);
        json_release(&j);
        buf_release(&list);
        return rc;
}

/*
 * Deletes a message, or, of a message that is several items, the item alone. That can be
 * done only where nothing follows: what takes the place of a message has new calls, which the
 * results of the old ones do not answer.
 */
static int delete_item(struct steno_conv *conv, struct history *h,
    const struct conversations_wanted *w, struct steno_error *err)
{
        struct parting p = {.k = w->k};
        uint64_t newest = 0;
        struct buf rest;
        buf_init(&p.items, 0);
        buf_init(&p.format, 0);
        buf_init(&rest, 0);
        int rc = history_find(h, w->found, "responses", take_apart, &p, err);
        if (rc == 0)
                rc = history_backward(h, 0, "responses", note_newest, &newest, err);
        rc = rc > 0 ? 0 : rc;
        if (rc == 0 && (w->whole || p.count <= 1)) {
                rc = steno_amend(conv, "delete", w->found, NULL, 0, NULL, NULL, err);
        } else if (rc == 0 && newest == w->seq && !has_results(&p.items) && rest_of(&p, &rest)) {
                struct steno_append_options opt = {.size = sizeof opt,
                    .format = buf_cstr(&p.format),
                    .flags = STENO_RECORD | STENO_KEEP_OUTPUTS};
                rc = steno_amend(conv, "supersede", w->found, rest.p, rest.n, &opt, NULL, err);
        } else if (rc == 0 && newest == w->seq) {
                rc = replace_by_items(conv, w->found, &p.items, err);
        } else if (rc == 0) {
                rc = error_set(err, STENO_ECONFLICT,
                    "this item is a part of the message %.100s; delete that", w->found);
        }
        buf_release(&p.items);
        buf_release(&p.format);
        buf_release(&rest);
        return rc;
}

void conversations_item_delete(struct request *r)
{
        struct steno_error err = {0};
        struct history h;
        struct conversations_wanted w;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = history_open(&h, conv, &err);
        if (rc == 0) {
                rc = conversations_find(conv, &h, r->params[1].p, &w, &err);
                if (rc == 0)
                        rc = delete_item(conv, &h, &w, &err);
                history_close(&h);
        }
        if (rc == STENO_ENOTFOUND)
                request_error(r, 404, "not_found", "no such item");
        else if (rc == STENO_ECONFLICT)
                request_error(r, 409, "part_of_message", "%s", err.msg);
        else if (rc)
                request_failed(r, rc, &err);
        else
                conversations_reply(r, conv);
        steno_conv_close(conv);
}
