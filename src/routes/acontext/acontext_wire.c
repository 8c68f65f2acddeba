/* acontext_wire.c - see acontext_wire.h */
#include "routes/acontext/acontext_wire.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "routes/handlers.h"

void acontext_begin(struct request *r, struct jsonw *w)
{
        *w = jsonw_to(&r->reply);
        jsonw_object(w);
        jsonw_field_u64(w, "code", 0);
        jsonw_key(w, "data");
}

void acontext_end(struct request *r, struct jsonw *w, int status)
{
        jsonw_field_cstr(w, "msg", "");
        jsonw_object_end(w);
        request_reply_json(r, status);
}

static void spell_uuid(unsigned char b[16], char out[37])
{
        char hex[33];
        b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
        hash_hex(b, 16, hex);
        snprintf(out, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16, hex + 20);
}

void acontext_uuid(char out[37])
{
        unsigned char b[16];
        env_real()->random(env_real(), b, sizeof b);
        spell_uuid(b, out);
}

bool acontext_new_id(struct request *r, const char *purpose, char out[37])
{
        char hex[SHA256_HEX];
        unsigned char b[16];
        if (!request_keyed(r, str_of(purpose), hex)) {
                acontext_uuid(out);
                return false;
        }
        for (int i = 0; i < 16; i++) {
                char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
                b[i] = (unsigned char)strtoul(two, NULL, 16);
        }
        spell_uuid(b, out);
        return true;
}

void acontext_put_cursor(struct jsonw *w, uint64_t n)
{
        char text[40];
        snprintf(text, sizeof text, "c%llx", (unsigned long long)(n ^ UINT64_C(0x5353)));
        jsonw_field_cstr(w, "next_cursor", text);
}

bool acontext_cursor(struct request *r, uint64_t *n)
{
        const char *text = request_query(r, "cursor");
        char *end;
        *n = 0;
        if (!text || !*text)
                return true;
        *n = strtoull(text + 1, &end, 16) ^ UINT64_C(0x5353);
        if (text[0] == 'c' && end > text + 1 && !*end)
                return true;
        request_error(r, 400, "bad_cursor", "invalid cursor");
        return false;
}

void acontext_page_begin(struct request *r, struct jsonw *w)
{
        acontext_begin(r, w);
        jsonw_object(w);
        jsonw_key(w, "items");
        jsonw_array(w);
}

void acontext_page_end(struct request *r, struct jsonw *w, uint64_t next, uint64_t count)
{
        jsonw_array_end(w);
        if (next < count)
                acontext_put_cursor(w, next);
        jsonw_field_bool(w, "has_more", next < count);
        jsonw_object_end(w);
        acontext_end(r, w, 200);
}

/* ---- assets ---- */

/* Bytes of base64 text, and their hash. */
static bool hash_base64(struct str text, uint64_t *size, char sha256[65])
{
        unsigned char *bytes = malloc(text.n / 4 * 3 + 3);
        int n = -1;
        if (bytes && text.n % 4 == 0 && text.n < INT32_MAX)
                n = EVP_DecodeBlock(bytes, (const unsigned char *)text.p, (int)text.n);
        if (n >= 0) {
                for (size_t i = 0; i < 2 && n > 0 && i < text.n && text.p[text.n - 1 - i] == '=';
                     i++)
                        n--;
                *size = (uint64_t)n;
                if (hash_sha256_hex(bytes, (size_t)n, sha256))
                        n = -1;
        }
        free(bytes);
        return n >= 0;
}

bool acontext_asset(const struct json *j, json_ref p, const char *id, size_t k, struct asset *out)
{
        json_ref meta = json_get(j, p, "meta");
        json_ref data = json_get(j, meta, "data");
        json_ref type = json_get(j, p, "type");
        if (json_type(j, data) != JSON_STRING || json_is_escaped(j, data) ||
            json_is(j, type, "redacted_thinking") || json_is(j, type, "data"))
                return false;
        struct str mime = json_inner(j, json_get(j, meta, "media_type"));
        snprintf(out->mime, sizeof out->mime, "%.*s", mime.n ? (int)mime.n : 24,
            mime.n ? mime.p : "application/octet-stream");
        snprintf(out->key, sizeof out->key, "%s/%zu", id, k);
        return hash_base64(json_inner(j, data), &out->size, out->sha256);
}

static void put_asset(struct jsonw *w, const struct asset *a)
{
        jsonw_key(w, "asset");
        jsonw_object(w);
        jsonw_field_cstr(w, "bucket", "steno");
        jsonw_field_cstr(w, "s3_key", a->key);
        jsonw_field_cstr(w, "etag", a->sha256);
        jsonw_field_cstr(w, "sha256", a->sha256);
        jsonw_field_cstr(w, "mime", a->mime);
        jsonw_field_u64(w, "size_b", a->size);
        jsonw_object_end(w);
}

/* ---- messages ---- */

static void put_part(struct jsonw *w, const struct json *j, json_ref p, const char *id, size_t k)
{
        struct asset a;
        bool asset = acontext_asset(j, p, id, k, &a);
        jsonw_object(w);
        for (json_ref m = json_child(j, p); m != JSON_NONE; m = json_next_key(j, p, m)) {
                if (json_is(j, m, "asset"))
                        continue;
                jsonw_copy_member(w, j, m);
        }
        if (asset)
                put_asset(w, &a);
        jsonw_object_end(w);
}

void acontext_put_message(
    struct jsonw *w, const struct acontext_facts *facts, const struct json *j, json_ref m)
{
        json_ref parts = json_get(j, m, "parts");
        json_ref role = json_get(j, m, "role");
        size_t k = 0;
        jsonw_object(w);
        jsonw_field_cstr(w, "id", facts->id);
        jsonw_field_cstr(w, "session_id", facts->session);
        jsonw_field_cstr(w, "parent_id", facts->parent);
        jsonw_field_raw(w, "role", role == JSON_NONE ? STR("\"user\"") : json_raw(j, role));
        jsonw_field_raw(w, "meta", facts->meta ? str_of(facts->meta) : STR("{}"));
        jsonw_key(w, "parts");
        jsonw_array(w);
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p))
                put_part(w, j, p, facts->id, k++);
        jsonw_array_end(w);
        jsonw_field_null(w, "task_id");
        jsonw_field_cstr(w, "session_task_process_status", "disable_tracking");
        jsonw_field_cstr(w, "created_at", facts->at);
        jsonw_field_cstr(w, "updated_at", facts->at);
        jsonw_object_end(w);
}

void acontext_ping(struct request *r)
{
        buf_puts(&r->reply, "{\"code\":0,\"msg\":\"pong\"}");
        request_reply_json(r, 200);
}

/* ---- formats ---- */

static const char *const FORMATS[] = {"acontext", "openai", "anthropic", "gemini"};

bool acontext_knows_format(struct request *r, const char *format)
{
        for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
                if (strcmp(format, FORMATS[i]) == 0)
                        return true;
        request_error(
            r, 400, "bad_request", "format must be acontext, openai, anthropic or gemini");
        return false;
}
