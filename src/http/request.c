/* request.c - see request.h */
#include "http/request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/percent.h"
#include "http/server_core.h"
#include "http/libmhd.h"

/* ---- the query ---- */

static const char *decode(struct arena *arena, struct str s)
{
        struct str out;
        return percent_decode(arena, s, true, &out) ? out.p : NULL;
}

const char *request_query(struct request *r, const char *name)
{
        struct str q = r->query;
        while (q.n) {
                const char *amp = memchr(q.p, '&', q.n);
                struct str item = {q.p, amp ? (size_t)(amp - q.p) : q.n};
                const char *eq = memchr(item.p, '=', item.n);
                struct str key = {item.p, eq ? (size_t)(eq - item.p) : item.n};
                const char *plain = decode(&r->arena, key);
                if (plain && strcmp(plain, name) == 0)
                        return eq ? decode(&r->arena,
                                        str_span(eq + 1, (size_t)(item.p + item.n - eq - 1)))
                                  : "";
                q = amp ? str_span(amp + 1, (size_t)(q.p + q.n - amp - 1)) : (struct str){0};
        }
        return NULL;
}

const char *request_header(const struct request *r, const char *name)
{
        return libmhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

bool request_number(struct request *r, const char *name, uint64_t fallback, uint64_t min,
    uint64_t max, uint64_t *out)
{
        const char *text = request_query(r, name);
        if (!text || !*text) {
                *out = fallback;
                return true;
        }
        char *end;
        long long v = strtoll(text, &end, 10);
        if (*end) {
                request_error_in(r, name, 400, "bad_request", "%s must be a whole number", name);
                return false;
        }
        *out = v < 0 || (uint64_t)v < min ? min : (uint64_t)v > max ? max : (uint64_t)v;
        return true;
}

bool request_flag(struct request *r, const char *name, bool fallback)
{
        const char *text = request_query(r, name);
        if (!text || !*text)
                return fallback;
        return strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

/* ---- the body ---- */

bool request_json(struct request *r, struct json *j)
{
        struct steno_error err = {0};
        if (r->body.n == 0)
                buf_puts(&r->body, "{}");
        int rc = json_parse(j, r->body.p, r->body.n, NULL, &err);
        if (rc == 0)
                return true;
        request_error(
            r, rc == STENO_ENOMEM ? 500 : 400, "bad_json", "the body is not JSON: %s", err.msg);
        return false;
}

const char *request_member(struct request *r, const struct json *j, json_ref obj, const char *key)
{
        struct buf b;
        json_ref v = json_get(j, obj, key);
        if (json_type(j, v) != JSON_STRING)
                return NULL;
        buf_init(&b, 0);
        json_string(j, v, &b, NULL);
        struct str copy = arena_dup(&r->arena, buf_str(&b));
        buf_release(&b);
        return copy.p;
}

/* ---- the answer ---- */

void request_header_out(struct request *r, const char *name, const char *value)
{
        if (r->header_count < sizeof r->headers / sizeof *r->headers) {
                r->headers[r->header_count][0] = name;
                r->headers[r->header_count++][1] = arena_dup(&r->arena, str_of(value)).p;
        }
}

void request_reply_json(struct request *r, int status)
{
        r->status = status;
        r->content_type = "application/json";
}

static const char *openai_type(int status)
{
        switch (status) {
        case 401:
                return "authentication_error";
        case 403:
                return "permission_error";
        case 429:
                return "rate_limit_error";
        default:
                return status >= 500 ? "server_error" : "invalid_request_error";
        }
}

static const char *anthropic_type(int status)
{
        switch (status) {
        case 401:
                return "authentication_error";
        case 403:
                return "permission_error";
        case 404:
                return "not_found_error";
        case 413:
                return "request_too_large";
        case 429:
                return "rate_limit_error";
        default:
                return status >= 500 ? "api_error" : "invalid_request_error";
        }
}

static const char *gemini_status(int status)
{
        switch (status) {
        case 401:
                return "UNAUTHENTICATED";
        case 403:
                return "PERMISSION_DENIED";
        case 404:
                return "NOT_FOUND";
        case 429:
                return "RESOURCE_EXHAUSTED";
        default:
                return status >= 500 ? "UNAVAILABLE" : "INVALID_ARGUMENT";
        }
}

/* JSON-RPC's: the request is wrong, or something failed here. */
static void put_rpc_error(struct jsonw *w, int status, struct str message)
{
        jsonw_field_cstr(w, "jsonrpc", "2.0");
        jsonw_field_null(w, "id");
        jsonw_key(w, "error");
        jsonw_object(w);
        jsonw_field_i64(w, "code", status >= 500 ? -32603 : -32600);
        jsonw_field_str(w, "message", message);
        jsonw_object_end(w);
}

static void put_error(struct request *r, int status, const char *code, struct str message)
{
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        if (r->errors == ERRORS_MCP) {
                put_rpc_error(&w, status, message);
                jsonw_object_end(&w);
                return;
        }
        if (r->errors == ERRORS_ACONTEXT) {
                jsonw_field_u64(&w, "code", (uint64_t)status);
                jsonw_field_str(&w, "msg", message);
                jsonw_field_cstr(&w, "error", code);
        } else if (r->errors == ERRORS_ANTHROPIC) {
                jsonw_field_cstr(&w, "type", "error");
                jsonw_key(&w, "error");
                jsonw_object(&w);
                jsonw_field_cstr(&w, "type", anthropic_type(status));
                jsonw_field_str(&w, "message", message);
                jsonw_object_end(&w);
        } else if (r->errors == ERRORS_GEMINI) {
                jsonw_key(&w, "error");
                jsonw_object(&w);
                jsonw_field_u64(&w, "code", (uint64_t)status);
                jsonw_field_str(&w, "message", message);
                jsonw_field_cstr(&w, "status", gemini_status(status));
                jsonw_object_end(&w);
        } else {
                jsonw_key(&w, "error");
                jsonw_object(&w);
                jsonw_field_str(&w, "message", message);
                if (r->errors == ERRORS_OPENAI) {
                        jsonw_field_cstr(&w, "type", openai_type(status));
                        jsonw_field_cstr(&w, "param", r->param);
                }
                jsonw_field_cstr(&w, "code", code);
                jsonw_object_end(&w);
        }
        jsonw_field_cstr(&w, "request_id", r->id);
        jsonw_object_end(&w);
}

static void answer_error(
    struct request *r, int status, const char *code, const char *fmt, va_list ap)
{
        char message[400];
        vsnprintf(message, sizeof message, fmt, ap);
        buf_clear(&r->reply);
        /* A conflict stays one. OpenAI's clients would send the request again. */
        if (status == 409)
                request_header_out(r, "x-should-retry", "false");
        put_error(r, status, code, str_of(message));
        request_reply_json(r, status);
}

void request_error(struct request *r, int status, const char *code, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        answer_error(r, status, code, fmt, ap);
        va_end(ap);
}

void request_error_in(
    struct request *r, const char *param, int status, const char *code, const char *fmt, ...)
{
        va_list ap;
        r->param = param;
        va_start(ap, fmt);
        answer_error(r, status, code, fmt, ap);
        va_end(ap);
}

void request_failed(struct request *r, int rc, const struct steno_error *err)
{
        static const struct {
                int rc;
                int status;
                const char *code;
        } MAP[] = {
            {STENO_EINVAL, 400, "bad_request"},
            {STENO_EPROTO, 400, "bad_message"},
            {STENO_ECONFLICT, 409, "conflict"},
            {STENO_ENOTFOUND, 404, "not_found"},
            {STENO_ELIMIT, 413, "too_large"},
            {STENO_EDENIED, 403, "denied"},
            {STENO_EFULL, 507, "store_full"},
            {STENO_EQUOTA, 507, "quota"},
            {STENO_EUNSUPPORTED, 501, "unsupported"},
            {STENO_ETIMEOUT, 504, "timeout"},
        };
        /* The system is short of something. The client may try again later. */
        if (err->sys == EMFILE || err->sys == ENFILE || err->sys == EAGAIN || err->sys == ENOMEM ||
            rc == STENO_ENOMEM) {
                request_header_out(r, "Retry-After", "1");
                request_error(r, 503, "busy", "%s", err->msg);
                return;
        }
        /* A system error of the server is not the caller's fault: 500, not 403. */
        bool ours = rc == STENO_EDENIED && err->sys;
        for (size_t i = 0; i < sizeof MAP / sizeof *MAP && !ours; i++) {
                if (MAP[i].rc == rc) {
                        request_error(r, MAP[i].status, MAP[i].code, "%s", err->msg);
                        return;
                }
        }
        request_error(r, 500, steno_code_name(rc), "%s", err->msg);
}

/* ---- conversations ---- */

bool request_keyed(const struct request *r, struct str purpose, char hex[SHA256_HEX])
{
        const char *key = request_header(r, "Idempotency-Key");
        struct buf b;
        if (!key || !*key)
                return false;
        buf_init(&b, 0);
        buf_printf(&b, "%s\n%s\n", r->who.project, r->who.session);
        buf_put_str(&b, purpose);
        buf_printf(&b, "\n%s", key);
        bool ok = !b.failed && hash_sha256_hex(b.p, b.n, hex) == 0;
        buf_release(&b);
        return ok;
}

int request_conv_create(struct request *r, const char *id, const char *meta,
    struct steno_conv **out, bool *again, struct steno_error *err)
{
        char hex[SHA256_HEX], made[64];
        bool keyed = !id && request_keyed(r, STR("conversation"), hex);
        if (keyed)
                snprintf(made, sizeof made, "conv_%.26s", hex);
        int rc = steno_conv_create(r->store, r->who.project, keyed ? made : id, meta, out, err);
        bool there = rc == STENO_ECONFLICT && keyed;
        if (there)
                rc = steno_conv_open(r->store, r->who.project, made, out, err);
        if (again)
                *again = there;
        return rc;
}

struct steno_conv *request_conv(struct request *r, const char *id)
{
        struct steno_error err = {0};
        struct steno_conv *conv;
        /* A visitor's token reaches its own conversation; everything else does not exist. */
        bool reach = !r->who.session[0] || strcmp(r->who.session, id) == 0;
        int rc =
            reach ? steno_conv_open(r->store, r->who.project, id, &conv, &err) : STENO_ENOTFOUND;
        if (rc == 0)
                return conv;
        if (rc == STENO_ENOTFOUND || rc == STENO_EINVAL)
                request_error(r, 404, "not_found",
                    r->errors == ERRORS_ACONTEXT ? "session not found" : "no such conversation");
        else
                request_failed(r, rc, &err);
        return NULL;
}
