/*
 * acontext_messages.c - storing and reading messages of a session in Acontext's four formats.
 *
 * A message is stored as it came, in the format it came in. Files that come beside it become
 * base64 in their part's meta, so that they are in every format and as durable as the message.
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
#include "http/form.h"
#include "http/sign.h"

#define MESSAGES_MAX 200

static const char *const FORMATS[] = {"acontext", "openai", "anthropic", "gemini"};

static bool known_format(struct request *r, const char *format)
{
        for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
                if (strcmp(format, FORMATS[i]) == 0)
                        return true;
        request_error(
            r, 400, "bad_request", "format must be acontext, openai, anthropic or gemini");
        return false;
}

/* ---- storing ---- */

static void put_base64(struct buf *out, struct str bytes)
{
        char *to = buf_reserve(out, (bytes.n + 2) / 3 * 4 + 1);
        if (to)
                out->n += (size_t)EVP_EncodeBlock(
                    (unsigned char *)to, (const unsigned char *)bytes.p, (int)bytes.n);
}

/* A part with a file: the file's bytes go into its meta. */
static bool put_part_with_file(
    struct request *r, struct jsonw *w, const struct json *j, json_ref p, const struct form *files)
{
        const char *field = request_member(r, j, p, "file_field");
        const struct form_part *file = field && files ? form_find(files, field) : NULL;
        json_ref meta = json_get(j, p, "meta");
        if (field && !file) {
                request_error(r, 400, "bad_request", "there is no file \"%.100s\"", field);
                return false;
        }
        jsonw_object(w);
        for (json_ref k = json_child(j, p); k != JSON_NONE; k = json_next_key(j, p, k)) {
                json_ref v = json_value(j, k);
                if (json_is(j, k, "file_field") || json_type(j, v) == JSON_NULL ||
                    (file && (json_is(j, k, "meta") || json_is(j, k, "filename"))))
                        continue;
                jsonw_copy_member(w, j, k);
        }
        if (file) {
                jsonw_field_str(w, "filename", file->filename);
                jsonw_key(w, "meta");
                jsonw_object(w);
                for (json_ref k = json_child(j, meta); k != JSON_NONE;
                     k = json_next_key(j, meta, k)) {
                        if (json_is(j, k, "media_type") || json_is(j, k, "data"))
                                continue;
                        jsonw_copy_member(w, j, k);
                }
                jsonw_field_str(
                    w, "media_type", file->type.n ? file->type : STR("application/octet-stream"));
                jsonw_field_raw(w, "data", STR("\""));
                put_base64(w->b, file->body);
                buf_putc(w->b, '"');
                jsonw_object_end(w);
        }
        jsonw_object_end(w);
        return true;
}

/* Acontext's own rules for its own parts. */
static const char *part_fault(const struct json *j, json_ref p)
{
        json_ref type = json_get(j, p, "type");
        json_ref meta = json_get(j, p, "meta");
        bool text = json_is(j, type, "text") || json_is(j, type, "thinking");
        if (json_type(j, type) != JSON_STRING)
                return "a part needs a type";
        if (text && json_inner(j, json_get(j, p, "text")).n == 0)
                return "a text part needs a text";
        if (json_is(j, type, "tool-call") &&
            (json_type(j, json_get(j, meta, "name")) != JSON_STRING ||
                json_get(j, meta, "arguments") == JSON_NONE))
                return "a tool-call needs meta.name and meta.arguments";
        if (json_is(j, type, "tool-result") &&
            json_type(j, json_get(j, meta, "tool_call_id")) != JSON_STRING)
                return "a tool-result needs meta.tool_call_id";
        if (json_is(j, type, "data") && json_get(j, meta, "data_type") == JSON_NONE)
                return "a data part needs meta.data_type";
        return NULL;
}

/* The blob of format acontext as it is stored: nulls left out, files put in. */
static bool put_blob(struct request *r, const struct json *j, json_ref blob,
    const struct form *files, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        json_ref parts = json_get(j, blob, "parts");
        if (json_type(j, parts) != JSON_ARRAY) {
                request_error(r, 400, "bad_request", "parts must be an array");
                return false;
        }
        jsonw_object(&w);
        for (json_ref k = json_child(j, blob); k != JSON_NONE; k = json_next_key(j, blob, k)) {
                json_ref v = json_value(j, k);
                if (json_is(j, k, "parts") || json_type(j, v) == JSON_NULL)
                        continue;
                jsonw_copy_member(&w, j, k);
        }
        jsonw_key(&w, "parts");
        jsonw_array(&w);
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                const char *fault = part_fault(j, p);
                if (fault) {
                        request_error(r, 400, "bad_request", "%s", fault);
                        return false;
                }
                if (!put_part_with_file(r, &w, j, p, files))
                        return false;
        }
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        return true;
}

struct stored {
        struct request *r;
        const char *session;
        const char *parent;
        const char *meta;
};

static int reply_stored(void *ctx, const struct history_item *item)
{
        struct stored *s = ctx;
        struct json j;
        struct jsonw w;
        json_init(&j);
        if (json_parse(&j, item->json, item->n, NULL, NULL) == 0) {
                acontext_begin(s->r, &w);
                struct acontext_facts facts = {.session = s->session,
                    .id = item->id,
                    .parent = s->parent,
                    .at = item->at,
                    .meta = s->meta ? s->meta : item->meta};
                acontext_put_message(
                    &w, &facts, &j, json_type(&j, 0) == JSON_ARRAY ? json_at(&j, 0, 0) : 0);
                acontext_end(s->r, &w, 201);
        }
        json_release(&j);
        return 0;
}

static int note_parent(void *ctx, const struct history_item *item)
{
        char *out = ctx;
        snprintf(out, 300, "%s", item->id);
        return 1;
}

static void store(struct request *r, struct steno_conv *conv, const char *format, struct str blob,
    const char *meta)
{
        struct steno_error err = {0};
        struct steno_receipt *receipt = NULL;
        struct history h;
        char id[37], parent[300] = "";
        acontext_uuid(id);
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_KEEP_OUTPUTS,
            .format = format,
            .idempotency_key = request_header(r, "Idempotency-Key"),
            .message_id = id};
        int rc = steno_append(conv, blob.p, blob.n, &opt, &receipt, &err);
        if (rc == 0)
                atomic_fetch_add(&r->server->metrics.appends, 1);
        if (rc == 0 && meta && !steno_receipt_replayed(receipt))
                rc = steno_amend(conv, "meta", steno_receipt_id(receipt, 0), meta, strlen(meta),
                    NULL, NULL, &err);
        if (rc == 0)
                rc = history_open(&h, conv, &err);
        if (rc) {
                request_failed(r, rc, &err);
                steno_receipt_free(receipt);
                return;
        }
        rc = history_backward(
            &h, steno_receipt_first_seq(receipt), "acontext", note_parent, parent, &err);
        struct stored s = {.r = r,
            .session = steno_conv_id(conv),
            .parent = parent[0] ? parent : NULL,
            .meta = meta};
        if (rc >= 0)
                rc = history_find(
                    &h, steno_receipt_id(receipt, 0), "acontext", reply_stored, &s, &err);
        if (rc < 0)
                request_failed(r, rc, &err);
        else if (!r->status)
                request_error(r, 500, "internal", "the message cannot be shown");
        history_close(&h);
        steno_receipt_free(receipt);
}

/* The request's JSON: its body, or the part "payload" of a form. False: it was answered. */
static bool read_payload(struct request *r, struct form *form, struct json *j)
{
        static const struct body_rule RULES[] = {{"format", BODY_NAME}, {"meta", BODY_OBJECT}, {0}};
        if (!form)
                return request_json(r, j, RULES);
        const struct form_part *payload = form_read(form, r) ? form_find(form, "payload") : NULL;
        if (payload)
                return request_parse(r, j, payload->body, "payload") && request_keeps(r, j, RULES);
        request_error(r, 400, "bad_request", "payload is missing");
        return false;
}

static void store_payload(
    struct request *r, struct steno_conv *conv, const struct json *j, const struct form *files)
{
        const char *format = request_member(r, j, 0, "format");
        format = format ? format : "openai";
        json_ref b = json_get(j, 0, "blob");
        json_ref meta = json_get(j, 0, "meta");
        if (!known_format(r, format))
                return;
        const char *why = acontext_check(j, b, format);
        if (why) {
                request_error(r, 400, "bad_request", "%s", why);
                return;
        }
        const char *user_meta =
            json_type(j, meta) == JSON_OBJECT ? arena_dup(&r->arena, json_raw(j, meta)).p : NULL;
        if (strcmp(format, "acontext") != 0) {
                store(r, conv, format, json_raw(j, b), user_meta);
                return;
        }
        struct buf blob;
        buf_init(&blob, 0);
        if (put_blob(r, j, b, files, &blob))
                store(r, conv, format, buf_str(&blob), user_meta);
        buf_release(&blob);
}

void acontext_message_store(struct request *r)
{
        struct steno_conv *conv = request_conv(r, r->params[0].p);
        if (!conv)
                return;
        struct json j;
        json_init(&j);
        struct form *form = form_is(r) ? calloc(1, sizeof *form) : NULL;
        if (form_is(r) && !form)
                request_error(r, 503, "busy", "out of memory");
        else if (read_payload(r, form, &j))
                store_payload(r, conv, &j, form);
        if (form)
                form_release(form);
        free(form);
        json_release(&j);
        steno_conv_close(conv);
}

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
        if (!known_format(r, d->view.format) || !acontext_cursor(r, &cursor) ||
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

/* Is there anything further on in this direction? */
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
