/*
 * acontext_messages.c - reading messages of a session in Acontext's four formats, their metadata
 * and their files.
 *
 * Pages are given oldest first whichever way they are walked, and no message is given twice or
 * left out on the way.
 */
#include "routes/acontext/acontext_wire.h"
#include "routes/acontext/acontext_check.h"
#include "routes/handlers.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "http/http_limits.h"
#include "http/sign.h"

#define MESSAGES_MAX 200

/* ---- reading ---- */

struct reading {
        struct request *r;
        struct steno_view_options view;
        uint64_t limit;
        bool newest_first;
        struct buf items;
        struct json out; /* the items */
        struct json report;
        char *report_text;
        uint64_t tokens;     /* of a view that was counted by itself */
        const char *edit_at; /* likewise; raw JSON, or NULL */
};

static int to_buf(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_put(b, p, n);
        return b->failed;
}

static bool reading_options(struct request *r, struct reading *d)
{
        uint64_t cursor;
        const char *format = request_query(r, "format");
        d->view.format = format && *format ? format : "openai";
        if (!acontext_knows_format(r, d->view.format) || !acontext_cursor(r, &cursor) ||
            !request_number(r, "limit", 0, 0, MESSAGES_MAX, &d->limit))
                return false;
        d->newest_first = request_flag(r, "time_desc", false);
        if (d->newest_first) {
                d->view.before_seq = cursor;
                d->view.last = d->limit;
        } else {
                d->view.after_seq = cursor;
                d->view.limit = d->limit;
        }
        d->view.edit_strategies = request_query(r, "edit_strategies");
        if (d->view.edit_strategies && !*d->view.edit_strategies)
                d->view.edit_strategies = NULL;
        if (d->view.edit_strategies &&
            !json_valid(d->view.edit_strategies, strlen(d->view.edit_strategies), NULL)) {
                request_error(r, 400, "bad_request", "invalid edit_strategies JSON");
                return false;
        }
        d->view.pin = request_query(r, "pin_editing_strategies_at_message");
        if (d->view.pin && !*d->view.pin)
                d->view.pin = NULL;
        d->view.count_tokens = true;
        d->view.all_messages = true;
        d->view.every_message = true;
        return true;
}

static int stop_at_first(void *ctx, const struct history_item *item)
{
        (void)item;
        *(bool *)ctx = true;
        return 1;
}

/* Are there more messages in this direction? */
static int more_behind(struct reading *d, struct history *h, uint64_t first, uint64_t last,
    bool *more, struct steno_error *err)
{
        *more = false;
        if (!d->limit)
                return 0;
        if (d->newest_first)
                return first > 1 ? history_backward(h, first, "acontext", stop_at_first, more, err)
                                 : 0;
        return history_forward(h, last, "acontext", stop_at_first, more, err);
}

/* Signed addresses of the files in the items, by their hash. */
struct urls {
        struct reading *d;
        struct jsonw w;
        const char *session;
};

static void put_urls(struct urls *u, const struct json *j, json_ref m, const char *id)
{
        json_ref parts = json_get(j, m, "parts");
        size_t k = 0;
        struct request *r = u->d->r;
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p), k++) {
                struct asset a;
                struct buf url;
                int64_t expires;
                char at[TIME_TEXT];
                const char *host = request_header(r, "Host");
                if (!acontext_asset(j, p, id, k, &a))
                        continue;
                buf_init(&url, 0);
                buf_puts(&url, "/api/v1/session/");
                for (const char *c = u->session; *c; c++)
                        buf_printf(&url, "%%%02x", (unsigned char)*c);
                buf_puts(&url, "/asset/");
                for (const char *c = id; *c; c++)
                        buf_printf(&url, "%%%02x", (unsigned char)*c);
                buf_printf(&url, "/%zu", k);
                struct str path = arena_dup(&r->arena, buf_str(&url));
                buf_clear(&url);
                buf_printf(&url, "http://%s", host ? host : "127.0.0.1");
                buf_put_str(&url, path);
                sign_put(r->server, path, r->who.project, &url, &expires);
                time_format(expires * 1000, at);
                jsonw_key(&u->w, a.sha256);
                jsonw_object(&u->w);
                jsonw_field_str(&u->w, "url", buf_str(&url));
                jsonw_field_cstr(&u->w, "expire_at", at);
                jsonw_object_end(&u->w);
                buf_release(&url);
        }
}

/* Facts of the messages in the view, by id: when, and their metadata. */
struct facts {
        struct request *r;
        char at[TIME_TEXT];
        const char *meta;
};

static int note_facts(void *ctx, const struct history_item *item)
{
        struct facts *f = ctx;
        snprintf(f->at, sizeof f->at, "%s", item->at);
        f->meta = item->meta ? arena_dup(&f->r->arena, str_of(item->meta)).p : NULL;
        return 0;
}

static void put_items(struct reading *d, struct jsonw *w, struct history *h, struct urls *urls)
{
        json_ref ids = json_get(&d->report, 0, "ids");
        bool raw = strcmp(d->view.format, "acontext") == 0 &&
                   json_count(&d->report, ids) == json_count(&d->out, 0);
        const char *parent = NULL;
        json_ref id = json_child(&d->report, ids);
        jsonw_array(w);
        for (json_ref m = json_child(&d->out, 0); m != JSON_NONE; m = json_next(&d->out, 0, m)) {
                if (!raw) {
                        jsonw_raw(w, json_raw(&d->out, m));
                        continue;
                }
                struct facts f = {.r = d->r};
                char *text = json_dup_string(&d->report, id);
                const char *name = text ? arena_dup(&d->r->arena, str_of(text)).p : "";
                free(text);
                history_find(h, name, "acontext", note_facts, &f, NULL);
                struct acontext_facts facts = {.session = urls->session,
                    .id = name,
                    .parent = parent,
                    .at = f.at,
                    .meta = f.meta};
                acontext_put_message(w, &facts, &d->out, m);
                put_urls(urls, &d->out, m, name);
                parent = name;
                id = json_next(&d->report, ids, id);
        }
        jsonw_array_end(w);
}

static void put_metas(struct reading *d, struct jsonw *w, struct history *h)
{
        json_ref ids = json_get(&d->report, 0, "ids");
        jsonw_array(w);
        for (json_ref id = json_child(&d->report, ids); id != JSON_NONE;
             id = json_next(&d->report, ids, id)) {
                struct facts f = {.r = d->r};
                char *text = json_dup_string(&d->report, id);
                if (text && h->amended)
                        history_find(h, text, "acontext", note_facts, &f, NULL);
                free(text);
                jsonw_raw(w, f.meta ? str_of(f.meta) : STR("{}"));
        }
        jsonw_array_end(w);
}

static int copy_id(void *ctx, const struct steno_record *r)
{
        struct jsonw *w = ctx;
        jsonw_field_cstr(w, "id", steno_record_id(r));
        return 1;
}

/* What the view had to change, with the messages' ids in the place of their seqs. */
static void put_changes(struct reading *d, struct jsonw *w, struct history *h, const char *name)
{
        const struct json *j = &d->report;
        json_ref list = json_get(j, 0, name);
        if (!json_count(j, list))
                return;
        jsonw_key(w, name);
        jsonw_array(w);
        for (json_ref e = json_child(j, list); e != JSON_NONE; e = json_next(j, list, e)) {
                uint64_t seq = 0;
                json_u64(j, json_get(j, e, "seq"), &seq);
                jsonw_object(w);
                if (seq)
                        steno_read(h->conv, seq - 1, 1, copy_id, w, NULL);
                for (json_ref k = json_child(j, e); k != JSON_NONE; k = json_next_key(j, e, k))
                        if (!json_is(j, k, "seq"))
                                jsonw_copy_member(w, j, k);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

static void reply_messages(struct reading *d, struct history *h, const char *session, bool more)
{
        struct request *r = d->r;
        struct jsonw w;
        struct buf url_text;
        uint64_t first = 0, last = 0, tokens = d->tokens;
        buf_init(&url_text, 0);
        struct urls urls = {.d = d, .w = jsonw_to(&url_text), .session = session};
        jsonw_object(&urls.w);
        json_u64(&d->report, json_get(&d->report, 0, "first_seq"), &first);
        json_u64(&d->report, json_get(&d->report, 0, "last_seq"), &last);
        json_u64(&d->report, json_get(&d->report, 0, "tokens"), &tokens);
        json_ref edit_at = json_get(&d->report, 0, "edit_at_message_id");
        acontext_begin(r, &w);
        jsonw_object(&w);
        jsonw_key(&w, "items");
        put_items(d, &w, h, &urls);
        jsonw_field_copy(&w, "ids", &d->report, json_get(&d->report, 0, "ids"));
        jsonw_key(&w, "metas");
        put_metas(d, &w, h);
        if (more)
                acontext_put_cursor(&w, d->newest_first ? first : last);
        jsonw_field_bool(&w, "has_more", more);
        jsonw_field_u64(&w, "this_time_tokens", tokens);
        if (d->edit_at)
                jsonw_field_raw(&w, "edit_at_message_id", str_of(d->edit_at));
        else if (edit_at != JSON_NONE) {
                jsonw_field_copy(&w, "edit_at_message_id", &d->report, edit_at);
        }
        put_changes(d, &w, h, "repairs");
        put_changes(d, &w, h, "losses");
        jsonw_object_end(&urls.w);
        if (request_flag(r, "with_asset_public_url", true) && url_text.n > 2) {
                jsonw_field_raw(&w, "public_urls", buf_str(&url_text));
        }
        if (request_flag(r, "with_events", false)) {
                jsonw_key(&w, "events");
                acontext_put_events(r, h->conv, &w, NULL);
        }
        jsonw_object_end(&w);
        acontext_end(r, &w, 200);
        buf_release(&url_text);
}

static int discard(void *ctx, const void *p, size_t n)
{
        (void)ctx;
        (void)p;
        (void)n;
        return 0;
}

/*
 * A client gets its own messages as it stored them; edits and stubs make a view for a model. The
 * tokens are always those of that view.
 */
static int read_view(
    struct reading *d, struct steno_conv *conv, bool stubs, struct steno_error *err)
{
        d->view.outputs = stubs ? STENO_OUTPUTS_STUB : STENO_OUTPUTS_FULL;
        if (stubs || d->view.edit_strategies)
                return steno_view(conv, &d->view, to_buf, &d->items, &d->report_text, err);
        struct steno_view_options own = d->view, tokens = d->view;
        char *counted = NULL;
        struct json j;
        own.own_bytes = true;
        own.count_tokens = false;
        tokens.no_ids = true;
        int rc = steno_view(conv, &own, to_buf, &d->items, &d->report_text, err);
        if (rc == 0)
                rc = steno_view(conv, &tokens, discard, NULL, &counted, err);
        json_init(&j);
        if (rc == 0)
                rc = json_parse(&j, counted, strlen(counted), NULL, err);
        if (rc == 0) {
                json_u64(&j, json_get(&j, 0, "tokens"), &d->tokens);
                json_ref at = json_get(&j, 0, "edit_at_message_id");
                d->edit_at = at == JSON_NONE ? NULL : arena_dup(&d->r->arena, json_raw(&j, at)).p;
        }
        json_release(&j);
        steno_free(counted);
        return rc;
}

void acontext_messages_get(struct request *r)
{
        struct steno_error err = {0};
        struct history h;
        struct reading d = {.r = r, .view.size = sizeof d.view};
        bool more = false;
        if (!reading_options(r, &d))
                return;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        buf_init(&d.items, 0);
        json_init(&d.out);
        json_init(&d.report);
        int rc = history_open(&h, conv, &err);
        if (rc == 0) {
                uint64_t first = 0, last = 0;
                rc = history_outputs(&h, request_query(r, "outputs"), &err);
                if (rc == 0)
                        rc = read_view(&d, conv, h.stubs, &err);
                if (rc == 0)
                        rc = json_parse(&d.out, d.items.p, d.items.n, NULL, &err);
                if (rc == 0)
                        rc =
                            json_parse(&d.report, d.report_text, strlen(d.report_text), NULL, &err);
                if (rc == 0) {
                        json_u64(&d.report, json_get(&d.report, 0, "first_seq"), &first);
                        json_u64(&d.report, json_get(&d.report, 0, "last_seq"), &last);
                        rc = more_behind(&d, &h, first, last, &more, &err);
                        rc = rc > 0 ? 0 : rc;
                }
                if (rc == 0)
                        reply_messages(&d, &h, steno_conv_id(conv), more);
                history_close(&h);
        }
        if (rc)
                request_failed(r, rc, &err);
        buf_release(&d.items);
        json_release(&d.out);
        json_release(&d.report);
        steno_free(d.report_text);
        steno_conv_close(conv);
}

void acontext_token_counts(struct request *r)
{
        struct steno_error err = {0};
        struct steno_view_options opt = {.size = sizeof opt,
            .format = "acontext",
            .count_tokens = true,
            .all_messages = true,
            .no_ids = true,
            .outputs = STENO_OUTPUTS_FULL};
        struct json j;
        struct jsonw w;
        uint64_t tokens = 0;
        char *report = NULL;
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        int rc = steno_view(conv, &opt, discard, NULL, &report, &err);
        if (rc == 0)
                rc = json_parse(&j, report, strlen(report), NULL, &err);
        if (rc) {
                request_failed(r, rc, &err);
        } else {
                json_u64(&j, json_get(&j, 0, "tokens"), &tokens);
                acontext_begin(r, &w);
                jsonw_object(&w);
                jsonw_field_u64(&w, "total_tokens", tokens);
                jsonw_object_end(&w);
                acontext_end(r, &w, 200);
        }
        json_release(&j);
        steno_free(report);
        steno_conv_close(conv);
}

/* ---- metadata of a message ---- */

void acontext_message_meta(struct request *r)
{
        struct steno_error err = {0};
        struct history h;
        struct json j;
        struct jsonw w;
        struct facts f = {.r = r};
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        json_init(&j);
        if (request_json(r, &j, NULL)) {
                json_ref meta = json_get(&j, 0, "meta");
                struct str raw = json_raw(&j, meta);
                int rc = json_type(&j, meta) != JSON_OBJECT ? STENO_EPROTO
                         : raw.n > 64 * KIB                 ? STENO_ELIMIT
                                            : steno_amend(conv, "meta", r->params[1].p, raw.p,
                                                  raw.n, NULL, NULL, &err);
                if (rc == STENO_EPROTO || rc == STENO_ELIMIT)
                        request_error(
                            r, 400, "bad_request", "meta must be an object of at most 64 KB");
                else if (rc == STENO_ENOTFOUND)
                        request_error(r, 404, "not_found", "message not found");
                else if (rc)
                        request_failed(r, rc, &err);
                else if ((rc = history_open(&h, conv, &err)) == 0) {
                        history_find(&h, r->params[1].p, "acontext", note_facts, &f, &err);
                        acontext_begin(r, &w);
                        jsonw_object(&w);
                        jsonw_field_raw(&w, "meta", f.meta ? str_of(f.meta) : STR("{}"));
                        jsonw_object_end(&w);
                        acontext_end(r, &w, 200);
                        history_close(&h);
                } else {
                        request_failed(r, rc, &err);
                }
        }
        json_release(&j);
        steno_conv_close(conv);
}

/* ---- files ---- */

struct wanted {
        struct request *r;
        size_t k;
        bool found;
};

static int give_file(void *ctx, const struct history_item *item)
{
        struct wanted *a = ctx;
        struct json j;
        struct asset asset;
        json_init(&j);
        if (json_parse(&j, item->json, item->n, NULL, NULL) == 0) {
                json_ref m = json_type(&j, 0) == JSON_ARRAY ? json_at(&j, 0, 0) : 0;
                json_ref p = json_at(&j, json_get(&j, m, "parts"), (uint32_t)a->k);
                if (p != JSON_NONE && acontext_asset(&j, p, item->id, a->k, &asset)) {
                        struct str data =
                            json_inner(&j, json_get(&j, json_get(&j, p, "meta"), "data"));
                        char *to = buf_reserve(&a->r->reply, data.n / 4 * 3 + 3);
                        if (to) {
                                EVP_DecodeBlock((unsigned char *)to, (const unsigned char *)data.p,
                                    (int)data.n);
                                a->r->reply.n = (size_t)asset.size;
                                a->found = true;
                        }
                }
        }
        json_release(&j);
        return 0;
}

static void reply_file(struct request *r, const char *message, size_t k)
{
        struct steno_error err = {0};
        struct history h;
        struct wanted a = {.r = r, .k = k};
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        int rc = history_open(&h, conv, &err);
        if (rc == 0) {
                rc = history_find(&h, message, "acontext", give_file, &a, &err);
                history_close(&h);
        }
        if (rc == 0 && a.found) {
                r->status = 200;
                r->content_type = "application/octet-stream";
                request_header_out(r, "Content-Disposition", "attachment");
        } else {
                request_error(r, 404, "not_found", "no such asset");
        }
        steno_conv_close(conv);
}

void acontext_asset_signed(struct request *r)
{
        reply_file(r, r->params[1].p, strtoul(r->params[2].p, NULL, 10));
}

void acontext_asset_download(struct request *r)
{
        const char *key = request_query(r, "s3_key");
        const char *slash = key ? strrchr(key, '/') : NULL;
        if (!slash) {
                request_error(r, 400, "bad_request", "s3_key is missing");
                return;
        }
        struct str message = arena_dup(&r->arena, str_span(key, (size_t)(slash - key)));
        reply_file(r, message.p, strtoul(slash + 1, NULL, 10));
}
