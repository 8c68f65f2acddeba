/*
 * conversations.c - /v1/conversations: OpenAI's Conversations, for its own clients.
 *
 * Items are stored normalised (openai_items.h) in the format `responses`, as they come, paired or
 * not. Conversations that were written through another API are given as items as well.
 */
#include "routes/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "http/server_core.h"
#include "routes/history.h"
#include "http/http_limits.h"
#include "routes/openai/items.h"

#define ITEMS_DEFAULT 20
#define ITEMS_MAX 100
#define METADATA_MAX 16
#define METADATA_KEY_MAX 64
#define METADATA_VALUE_MAX 512

/* ---- conversations ---- */

static void reply_conversation(struct request *r, struct steno_conv *conv)
{
        struct steno_error err = {0};
        struct json j;
        char *meta = NULL;
        int64_t created = 0;
        json_init(&j);
        int rc = steno_conv_meta(conv, &meta, &err);
        if (rc == 0)
                rc = json_parse(&j, meta, strlen(meta), NULL, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                struct str at = json_inner(&j, json_get(&j, 0, "createdAt"));
                json_ref metadata = json_get(&j, 0, "metadata");
                struct jsonw w = jsonw_to(&r->reply);
                time_parse(at.p, at.n, &created);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "id", steno_conv_id(conv));
                jsonw_field_cstr(&w, "object", "conversation");
                jsonw_field_i64(&w, "created_at", created / 1000);
                jsonw_field_raw(
                    &w, "metadata", metadata == JSON_NONE ? STR("{}") : json_raw(&j, metadata));
                jsonw_object_end(&w);
                request_reply_json(r, 200);
        }
        json_release(&j);
        steno_free(meta);
}

/* The metadata of a body, checked; false when it was refused. */
static bool take_metadata(struct request *r, const struct json *j, struct str *out)
{
        json_ref m = json_get(j, 0, "metadata");
        *out = STR("{}");
        if (m == JSON_NONE || json_type(j, m) == JSON_NULL)
                return true;
        const char *why = json_type(j, m) != JSON_OBJECT    ? "metadata must be an object"
                          : json_count(j, m) > METADATA_MAX ? "metadata has more than 16 pairs"
                                                            : NULL;
        for (json_ref k = json_child(j, m); !why && k != JSON_NONE; k = json_next_key(j, m, k)) {
                json_ref v = json_value(j, k);
                if (json_inner(j, k).n > METADATA_KEY_MAX)
                        why = "a metadata key has more than 64 characters";
                else if (json_type(j, v) != JSON_STRING)
                        why = "metadata values must be strings";
                else if (json_inner(j, v).n > METADATA_VALUE_MAX)
                        why = "a metadata value has more than 512 characters";
        }
        if (why) {
                request_error(r, 400, "invalid_metadata", "%s", why);
                return false;
        }
        *out = json_raw(j, m);
        return true;
}

/* ---- appending items ---- */

/* The items of a body, normalised, as one JSON array. */
static bool normalise_items(
    struct request *r, const struct json *j, json_ref items, struct buf *out, size_t *count)
{
        const char *key = request_header(r, "Idempotency-Key");
        buf_putc(out, '[');
        *count = 0;
        for (json_ref e = json_child(j, items); e != JSON_NONE; e = json_next(j, items, e)) {
                const char *why = "";
                if (*count)
                        buf_putc(out, ',');
                if (!items_normalise(j, e, str_of(key), *count, out, &why)) {
                        request_error(r, 400, "invalid_item", "items[%zu]: %s", *count, why);
                        return false;
                }
                ++*count;
        }
        buf_putc(out, ']');
        if (out->failed)
                request_error(r, 503, "busy", "out of memory");
        return !out->failed;
}

static bool append_items(struct request *r, struct steno_conv *conv, const struct buf *items)
{
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_KEEP_OUTPUTS,
            .format = "responses",
            .idempotency_key = request_header(r, "Idempotency-Key")};
        int rc = steno_append(conv, items->p, items->n, &opt, NULL, &err);
        if (rc)
                request_failed(r, rc, &err);
        else
                atomic_fetch_add(&r->server->metrics.appends, 1);
        return rc == 0;
}

static bool is_list(struct request *r, const struct json *j, json_ref items)
{
        enum json_type t = json_type(j, items);
        if (t == JSON_ARRAY)
                return true;
        if (t != JSON_NOTHING && t != JSON_NULL)
                request_error(r, 400, "invalid_items", "items must be an array");
        return false;
}

void conversations_create(struct request *r)
{
        struct steno_error err = {0};
        struct steno_conv *conv = NULL;
        struct json j;
        struct str metadata;
        struct buf meta, items;
        size_t count = 0;
        json_init(&j);
        buf_init(&meta, 0);
        buf_init(&items, 0);
        if (!request_json(r, &j) || !take_metadata(r, &j, &metadata))
                goto out;
        json_ref list = json_get(&j, 0, "items");
        if (is_list(r, &j, list) && !normalise_items(r, &j, list, &items, &count))
                goto out;
        if (r->status)
                goto out;
        buf_puts(&meta, "{\"metadata\":");
        buf_put_str(&meta, metadata);
        buf_putc(&meta, '}');
        const char *text = buf_cstr(&meta);
        int rc = text ? request_conv_create(r, NULL, text, &conv, NULL, &err) : STENO_ENOMEM;
        if (rc)
                request_failed(r, rc, &err);
        else if (count == 0 || append_items(r, conv, &items))
                reply_conversation(r, conv);
out:
        steno_conv_close(conv);
        buf_release(&meta);
        buf_release(&items);
        json_release(&j);
}

void conversations_get(struct request *r)
{
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (conv)
                reply_conversation(r, conv);
        steno_conv_close(conv);
}

void conversations_update(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        struct str metadata;
        struct buf patch;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        buf_init(&patch, 0);
        if (request_json(r, &j) && take_metadata(r, &j, &metadata)) {
                buf_puts(&patch, "{\"metadata\":");
                buf_put_str(&patch, metadata);
                buf_putc(&patch, '}');
                const char *text = buf_cstr(&patch);
                int rc = text ? steno_conv_set_meta(conv, text, &err) : STENO_ENOMEM;
                if (rc)
                        request_failed(r, rc, &err);
                else
                        reply_conversation(r, conv);
        }
        buf_release(&patch);
        json_release(&j);
        steno_conv_close(conv);
}

void conversations_delete(struct request *r)
{
        struct steno_error err = {0};
        int rc = steno_remove(r->store, r->who.project, r->params[0].p, NULL, &err);
        if (rc == STENO_ENOTFOUND || rc == STENO_EINVAL) {
                request_error(r, 404, "not_found", "no such conversation");
        } else if (rc) {
                request_failed(r, rc, &err);
        } else {
                struct jsonw w = jsonw_to(&r->reply);
                jsonw_object(&w);
                jsonw_field_str(&w, "id", r->params[0]);
                jsonw_field_cstr(&w, "object", "conversation.deleted");
                jsonw_field_bool(&w, "deleted", true);
                jsonw_object_end(&w);
                request_reply_json(r, 200);
        }
}

/* ---- lists ---- */

struct page {
        struct buf items;
        char first[330];
        char last[330];
        size_t count;
        size_t limit;
        bool more;
        bool newest_first;
        bool skipping; /* up to the item that `after` named */
        uint64_t skip_seq;
        size_t skip_k;
};

static void id_of(const struct buf *item, size_t from, char out[330])
{
        struct json j;
        json_init(&j);
        out[0] = '\0';
        if (json_parse(&j, item->p + from, item->n - from, NULL, NULL) == 0) {
                char *id = json_dup_string(&j, json_get(&j, 0, "id"));
                snprintf(out, 330, "%s", id ? id : "");
                free(id);
        }
        json_release(&j);
}

static int add_message(void *ctx, const struct history_item *message)
{
        struct page *p = ctx;
        size_t n = items_count(message);
        for (size_t i = 0; i < n; i++) {
                size_t k = p->newest_first ? n - 1 - i : i;
                if (p->skipping && message->seq == p->skip_seq &&
                    (p->newest_first ? k >= p->skip_k : k <= p->skip_k))
                        continue;
                if (p->count == p->limit) {
                        p->more = true;
                        return 1;
                }
                if (p->count)
                        buf_putc(&p->items, ',');
                size_t from = p->items.n;
                items_of_message(message, k, &p->items);
                if (p->items.failed)
                        return STENO_ENOMEM;
                id_of(&p->items, from, p->count == 0 ? p->first : p->last);
                if (p->count++ == 0)
                        memcpy(p->last, p->first, sizeof p->last);
        }
        return 0;
}

static void reply_page(struct request *r, const struct page *p)
{
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "object", "list");
        jsonw_key(&w, "data");
        jsonw_array(&w);
        if (p->items.n)
                jsonw_raw(&w, buf_str(&p->items));
        jsonw_array_end(&w);
        jsonw_field_cstr(&w, "first_id", p->count ? p->first : NULL);
        jsonw_field_cstr(&w, "last_id", p->count ? p->last : NULL);
        jsonw_field_bool(&w, "has_more", p->more);
        jsonw_object_end(&w);
        request_reply_json(r, 200);
}

static int note_seq_of_record(void *ctx, const struct steno_record *r)
{
        *(uint64_t *)ctx = steno_record_seq(r);
        return 0;
}

static bool page_options(struct request *r, struct steno_conv *conv, struct page *p)
{
        struct steno_error err = {0};
        char message[300];
        uint64_t limit;
        const char *order = request_query(r, "order");
        const char *after = request_query(r, "after");
        if (!request_number(r, "limit", ITEMS_DEFAULT, 1, ITEMS_MAX, &limit))
                return false;
        if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0) {
                request_error(r, 400, "invalid_order", "order must be asc or desc");
                return false;
        }
        p->limit = (size_t)limit;
        p->newest_first = !order || strcmp(order, "desc") == 0;
        if (!after || !*after)
                return true;
        /* A deleted item still has its place. */
        items_split_id(after, message, &p->skip_k);
        if (steno_read_id(conv, message, note_seq_of_record, &p->skip_seq, &err) < 0) {
                request_error(r, 404, "not_found", "no item \"%.100s\"", after);
                return false;
        }
        p->skipping = true;
        return true;
}

void conversations_items_list(struct request *r)
{
        struct steno_error err = {0};
        struct history h;
        struct page p = {0};
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        buf_init(&p.items, 0);
        if (page_options(r, conv, &p)) {
                int rc = history_open(&h, conv, &err);
                if (rc == 0) {
                        rc = history_outputs(&h, request_query(r, "outputs"), &err);
                        if (rc == 0 && p.newest_first)
                                rc = history_backward(&h, p.skipping ? p.skip_seq + 1 : 0,
                                    "responses", add_message, &p, &err);
                        else if (rc == 0)
                                rc = history_forward(&h, p.skipping ? p.skip_seq - 1 : 0,
                                    "responses", add_message, &p, &err);
                        history_close(&h);
                }
                if (rc < 0)
                        request_failed(r, rc, &err);
                else
                        reply_page(r, &p);
        }
        buf_release(&p.items);
        steno_conv_close(conv);
}

void conversations_items_create(struct request *r)
{
        struct json j;
        struct buf items;
        size_t count = 0;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        buf_init(&items, 0);
        if (request_json(r, &j)) {
                json_ref list = json_get(&j, 0, "items");
                if (!is_list(r, &j, list)) {
                        if (!r->status)
                                request_error(r, 400, "invalid_items", "items must be an array");
                } else if (normalise_items(r, &j, list, &items, &count) &&
                           (count == 0 || append_items(r, conv, &items))) {
                        struct page p = {.count = count};
                        struct json stored;
                        json_init(&stored);
                        buf_init(&p.items, 0);
                        buf_put(&p.items, items.p + 1, items.n - 2);
                        if (json_parse(&stored, items.p, items.n, NULL, NULL) == 0 && count) {
                                char *first = json_dup_string(
                                    &stored, json_get(&stored, json_at(&stored, 0, 0), "id"));
                                char *last = json_dup_string(
                                    &stored, json_get(&stored,
                                                 json_at(&stored, 0, (uint32_t)count - 1), "id"));
                                snprintf(p.first, sizeof p.first, "%s", first ? first : "");
                                snprintf(p.last, sizeof p.last, "%s", last ? last : "");
                                free(first);
                                free(last);
                        }
                        reply_page(r, &p);
                        json_release(&stored);
                        buf_release(&p.items);
                }
        }
        buf_release(&items);
        json_release(&j);
        steno_conv_close(conv);
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
        struct one o = {.r = r};
        char message[300];
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        items_split_id(r->params[1].p, message, &o.k);
        int rc = history_open(&h, conv, &err);
        if (rc == 0) {
                rc = history_outputs(&h, request_query(r, "outputs"), &err);
                if (rc == 0)
                        rc = history_find(&h, message, "responses", give_item, &o, &err);
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

static int note_several(void *ctx, const struct history_item *message)
{
        *(bool *)ctx = items_count(message) > 1;
        return 0;
}

/* Is this item one of several of a message that another API wrote? Then it cannot go alone. */
static bool is_one_of_several(struct steno_conv *conv, const char *message)
{
        struct history h;
        bool several = false;
        if (history_open(&h, conv, NULL))
                return false;
        history_find(&h, message, "responses", note_several, &several, NULL);
        history_close(&h);
        return several;
}

void conversations_item_delete(struct request *r)
{
        struct steno_error err = {0};
        char message[300];
        size_t k;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        items_split_id(r->params[1].p, message, &k);
        if (strcmp(message, r->params[1].p) != 0 && is_one_of_several(conv, message)) {
                request_header_out(r, "x-should-retry", "false");
                request_error(r, 409, "part_of_message",
                    "this item is a part of the message %.100s; delete that", message);
                steno_conv_close(conv);
                return;
        }
        int rc = steno_amend(conv, "delete", message, NULL, 0, NULL, NULL, &err);
        if (rc == STENO_ENOTFOUND)
                request_error(r, 404, "not_found", "no such item");
        else if (rc)
                request_failed(r, rc, &err);
        else
                reply_conversation(r, conv);
        steno_conv_close(conv);
}
