/*
 * conversations.c - /v1/conversations: OpenAI's Conversations, for its own clients.
 *
 * Items are stored normalised (items.h) in the format `responses`, as they come, paired or not.
 * Conversations that were written through another API are given as items as well.
 *
 * An item carries the id that its client gave it. Clients use ids again, so the id of its record
 * may be another; first_id, last_id and `after` are ids of records. Reading or deleting an item by
 * an id that was used more than once means the newest.
 */
#include "routes/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "http/server_core.h"
#include "http/http_limits.h"
#include "routes/openai/conversations.h"
#include "routes/openai/items.h"

#define ITEMS_DEFAULT 20
#define ITEMS_MAX 100
#define METADATA_MAX 16
#define METADATA_KEY_MAX 64
#define METADATA_VALUE_MAX 512

/* ---- conversations ---- */

void conversations_reply(struct request *r, struct steno_conv *conv)
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

/* Items and metadata are looked at below, where the errors are as OpenAI words them. */
static const struct body_rule AN_OBJECT[] = {{0}};

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
                request_error_in(r, "metadata", 400, "invalid_metadata", "%s", why);
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
                        char param[40];
                        snprintf(param, sizeof param, "items[%zu]", *count);
                        request_error_in(r, param, 400, "invalid_item", "%s: %s", param, why);
                        r->param = NULL;
                        return false;
                }
                ++*count;
        }
        buf_putc(out, ']');
        if (out->failed)
                request_error(r, 500, "out of memory", "out of memory");
        return !out->failed;
}

/*
 * OpenAI's clients send a request again when its answer did not arrive, without an idempotency key.
 * So a batch is stored with a key of our own: what its body was, and something that no other batch
 * has. A request that says it is a retry, and has the body of the last batch, is that batch.
 */
#define BODY_KEY_HASH 32
#define BODY_KEY_MAX 100

static void body_hash(const struct request *r, char out[BODY_KEY_HASH + 8])
{
        char hex[SHA256_HEX];
        out[0] = '\0';
        if (hash_sha256_hex(r->body.p, r->body.n, hex) == 0)
                snprintf(out, BODY_KEY_HASH + 8, "body:%.32s:", hex);
}

static bool is_retry(struct request *r)
{
        const char *count = request_header(r, "X-Stainless-Retry-Count");
        return count && strtoul(count, NULL, 10) > 0;
}

struct last_batch {
        char key[BODY_KEY_MAX];
        uint64_t seq;
};

static int note_key(void *ctx, const struct steno_record *record)
{
        struct last_batch *l = ctx;
        const char *key = steno_record_key(record);
        if (strncmp(key, "body:", 5) != 0)
                return 0;
        snprintf(l->key, sizeof l->key, "%s", key);
        l->seq = steno_record_seq(record);
        return 0;
}

/* The first seq of the batch that this request made before; 0: none. */
static uint64_t find_first_try(struct request *r, struct steno_conv *conv)
{
        struct last_batch l = {0};
        char hash[BODY_KEY_HASH + 8];
        uint64_t last;
        if (!is_retry(r) || steno_conv_last_seq(conv, &last, NULL))
                return 0;
        body_hash(r, hash);
        uint64_t after = last > CONVERSATIONS_RECENT ? last - CONVERSATIONS_RECENT : 0;
        if (!hash[0] || steno_read(conv, after, 0, note_key, &l, NULL) < 0)
                return 0;
        return strncmp(l.key, hash, strlen(hash)) == 0 ? l.seq : 0;
}

/* *receipt may be NULL. */
static bool append_items(struct request *r, struct steno_conv *conv, const struct buf *items,
    struct steno_receipt **receipt)
{
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_KEEP_OUTPUTS,
            .format = "responses",
            .idempotency_key = request_header(r, "Idempotency-Key")};
        char key[BODY_KEY_MAX];
        if (!opt.idempotency_key || !*opt.idempotency_key) {
                char hash[BODY_KEY_HASH + 8], made[40];
                body_hash(r, hash);
                id_make(env_real(), "", made);
                snprintf(key, sizeof key, "%s%s", hash, made);
                opt.idempotency_key = key;
                opt.flags |= STENO_ANEW;
        }
        int rc = steno_append(conv, items->p, items->n, &opt, receipt, &err);
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
                request_error_in(r, "items", 400, "invalid_items", "items must be an array");
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
        if (!request_json(r, &j, AN_OBJECT) || !take_metadata(r, &j, &metadata))
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
        else if (count == 0 || append_items(r, conv, &items, NULL))
                conversations_reply(r, conv);
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
                conversations_reply(r, conv);
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
        if (request_json(r, &j, AN_OBJECT) && take_metadata(r, &j, &metadata)) {
                buf_puts(&patch, "{\"metadata\":");
                buf_put_str(&patch, metadata);
                buf_putc(&patch, '}');
                const char *text = buf_cstr(&patch);
                int rc = text ? steno_conv_set_meta(conv, text, &err) : STENO_ENOMEM;
                if (rc)
                        request_failed(r, rc, &err);
                else
                        conversations_reply(r, conv);
        }
        buf_release(&patch);
        json_release(&j);
        steno_conv_close(conv);
}

void conversations_delete(struct request *r)
{
        if (!request_conv_remove(r, r->params[0].p))
                return;
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_field_str(&w, "id", r->params[0]);
        jsonw_field_cstr(&w, "object", "conversation.deleted");
        jsonw_field_bool(&w, "deleted", true);
        jsonw_object_end(&w);
        request_reply_json(r, 200);
}

/* ---- lists ---- */

struct page {
        struct buf items;
        char first[ITEMS_ID]; /* Steno's ids */
        char last[ITEMS_ID];
        size_t count;
        size_t limit;
        bool more;
        bool newest_first;
        bool skipping; /* up to the item that `after` named */
        uint64_t skip_seq;
        size_t skip_k;
};

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
                items_of_message(message, k, &p->items);
                if (p->items.failed)
                        return STENO_ENOMEM;
                items_id(message, k, p->last);
                if (p->count++ == 0)
                        memcpy(p->first, p->last, sizeof p->first);
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

/* ---- where a page begins ---- */

static int note_seq_of_record(void *ctx, const struct steno_record *r)
{
        *(uint64_t *)ctx = steno_record_seq(r);
        return 0;
}

/* The place of `after`: the id of a record, or else one that a client gave. A deleted item still
 * has its place. */
static int find_place(struct steno_conv *conv, const char *after, struct page *p)
{
        struct steno_error err = {0};
        char message[300];
        struct conversations_wanted w;
        p->skip_k = 0;
        if (steno_read_id(conv, after, note_seq_of_record, &p->skip_seq, &err) == 0)
                return 0;
        items_split_id(after, message, &p->skip_k);
        if (steno_read_id(conv, message, note_seq_of_record, &p->skip_seq, &err) == 0)
                return 0;
        int rc = conversations_find(conv, NULL, after, &w, &err);
        p->skip_seq = w.seq;
        p->skip_k = w.k;
        return rc;
}

static bool page_options(struct request *r, struct steno_conv *conv, struct page *p)
{
        uint64_t limit;
        const char *order = request_query(r, "order");
        const char *after = request_query(r, "after");
        if (!request_number(r, "limit", ITEMS_DEFAULT, 1, ITEMS_MAX, &limit))
                return false;
        if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0) {
                request_error_in(r, "order", 400, "invalid_order", "order must be asc or desc");
                return false;
        }
        p->limit = (size_t)limit;
        p->newest_first = !order || strcmp(order, "desc") == 0;
        if (!after || !*after)
                return true;
        if (find_place(conv, after, p)) {
                request_error_in(r, "after", 404, "not_found", "no item \"%.100s\"", after);
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

/* What a batch stored: from its receipt, or the same again from the log. */
static void reply_stored(
    struct request *r, const struct buf *items, const struct steno_receipt *receipt)
{
        size_t count = steno_receipt_count(receipt);
        struct page p = {.count = count};
        buf_init(&p.items, 0);
        buf_put(&p.items, items->p + 1, items->n - 2);
        if (count) {
                snprintf(p.first, sizeof p.first, "%s", steno_receipt_id(receipt, 0));
                snprintf(p.last, sizeof p.last, "%s", steno_receipt_id(receipt, count - 1));
        }
        reply_page(r, &p);
        buf_release(&p.items);
}

static void reply_again(struct request *r, struct steno_conv *conv, uint64_t seq, size_t count)
{
        struct steno_error err = {0};
        struct history h;
        struct page p = {.limit = count};
        buf_init(&p.items, 0);
        int rc = history_open(&h, conv, &err);
        if (rc == 0) {
                rc = history_forward(&h, seq - 1, "responses", add_message, &p, &err);
                history_close(&h);
        }
        p.more = false;
        if (rc < 0)
                request_failed(r, rc, &err);
        else
                reply_page(r, &p);
        buf_release(&p.items);
}

static void create_items(struct request *r, struct steno_conv *conv, const struct json *j)
{
        struct steno_receipt *receipt = NULL;
        struct buf items;
        size_t count = 0;
        json_ref list = json_get(j, 0, "items");
        if (!is_list(r, j, list)) {
                if (!r->status)
                        request_error_in(
                            r, "items", 400, "invalid_items", "items must be an array");
                return;
        }
        buf_init(&items, 0);
        if (normalise_items(r, j, list, &items, &count)) {
                uint64_t before = count ? find_first_try(r, conv) : 0;
                if (before)
                        reply_again(r, conv, before, count);
                else if (count == 0)
                        reply_page(r, &(struct page){0});
                else if (append_items(r, conv, &items, &receipt))
                        reply_stored(r, &items, receipt);
        }
        steno_receipt_free(receipt);
        buf_release(&items);
}

void conversations_items_create(struct request *r)
{
        struct json j;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        if (request_json(r, &j, AN_OBJECT))
                create_items(r, conv, &j);
        json_release(&j);
        steno_conv_close(conv);
}
