/*
 * acontext_storing.c - storing messages of a session in Acontext's four formats.
 *
 * A message is stored as it came, in the format it came in. Files that come beside it become
 * base64 in their part's meta, so that they are in every format and as durable as the message.
 */
#include "routes/acontext/acontext_wire.h"
#include "routes/acontext/acontext_check.h"
#include "routes/handlers.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/form.h"
#include "http/http_limits.h"

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

static int note_meta(void *ctx, const struct history_item *item)
{
        *(bool *)ctx = item->meta != NULL;
        return 1;
}

/* The metadata is a record of its own. When the request is repeated, it may not be there yet. */
static int store_meta(struct steno_conv *conv, const struct steno_receipt *receipt,
    const char *meta, struct steno_error *err)
{
        const char *id = steno_receipt_id(receipt, 0);
        struct history h;
        bool there = false;
        if (steno_receipt_replayed(receipt)) {
                int rc = history_open(&h, conv, err);
                if (rc)
                        return rc;
                rc = history_find(&h, id, "acontext", note_meta, &there, err);
                history_close(&h);
                if (rc < 0)
                        return rc;
        }
        return there ? 0 : steno_amend(conv, "meta", id, meta, strlen(meta), NULL, NULL, err);
}

static void store(struct request *r, struct steno_conv *conv, const char *format, struct str blob,
    const char *meta)
{
        struct steno_error err = {0};
        struct steno_receipt *receipt = NULL;
        struct history h;
        char id[37], parent[300] = "";
        acontext_new_id(r, "message", id);
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_KEEP_OUTPUTS,
            .format = format,
            .idempotency_key = request_header(r, "Idempotency-Key"),
            .message_id = id};
        int rc = steno_append(conv, blob.p, blob.n, &opt, &receipt, &err);
        if (rc == 0)
                atomic_fetch_add(&r->server->metrics.appends, 1);
        if (rc == 0 && meta)
                rc = store_meta(conv, receipt, meta, &err);
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
        if (!acontext_knows_format(r, format))
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
