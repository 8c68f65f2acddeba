/* request.c - see request.h */
#include "http/request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/percent.h"
#include "http/http_limits.h"
#include "http/server_core.h"
#include "http/libmhd.h"

/* ---- the query ---- */

static const char *decode(struct arena *arena, struct str s)
{
        struct str out;
        return percent_decode(arena, s, true, &out) ? out.p : NULL;
}

/* Takes the next name and value off a query, both as they stand there. */
static bool next_parameter(struct str *q, struct str *name, struct str *value)
{
        if (!q->n)
                return false;
        const char *amp = memchr(q->p, '&', q->n);
        struct str item = {q->p, amp ? (size_t)(amp - q->p) : q->n};
        const char *eq = memchr(item.p, '=', item.n);
        *name = str_span(item.p, eq ? (size_t)(eq - item.p) : item.n);
        *value = eq ? str_span(eq + 1, (size_t)(item.p + item.n - eq - 1)) : STR("");
        *q = amp ? str_span(amp + 1, (size_t)(q->p + q->n - amp - 1)) : (struct str){0};
        return true;
}

const char *request_query(struct request *r, const char *name)
{
        struct str q = r->query, key, value;
        while (next_parameter(&q, &key, &value)) {
                const char *plain = decode(&r->arena, key);
                if (plain && strcmp(plain, name) == 0)
                        return decode(&r->arena, value);
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
        if (text[strspn(text, "0123456789")]) {
                request_error_in(r, name, 400, "bad_request", "%s must be a whole number", name);
                return false;
        }
        uint64_t v = strtoull(text, NULL, 10); /* a number beyond 64 bits is the largest */
        *out = v < min ? min : v > max ? max : v;
        return true;
}

/* The flags of all routes. A name means the same wherever it stands. */
static const char *const FLAGS[] = {"case_sensitive", "facts", "figures", "follow", "new_ids",
    "not_connected", "partial", "record", "stream", "strict", "time_desc", "tokens", "verify",
    "with_asset_public_url", "with_content", "with_events", "with_public_url"};

static bool is_true(const char *text)
{
        return strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

static bool is_flag_value(const char *text)
{
        return !*text || is_true(text) || strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool flag_keeps(struct request *r, const char *name, const char *value)
{
        for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++) {
                if (strcmp(name, FLAGS[i]) == 0 && !is_flag_value(value)) {
                        request_error_in(
                            r, FLAGS[i], 400, "bad_request", "%s must be true or false", FLAGS[i]);
                        return false;
                }
        }
        return true;
}

bool request_query_keeps(struct request *r)
{
        struct str q = r->query, name, value;
        while (next_parameter(&q, &name, &value)) {
                const char *key = decode(&r->arena, name);
                const char *text = key ? decode(&r->arena, value) : NULL;
                if (!text) {
                        request_error(r, 400, "bad_request",
                            "the query has an escape that stands for no character");
                        return false;
                }
                if (!flag_keeps(r, key, text))
                        return false;
        }
        return true;
}

bool request_flag(struct request *r, const char *name, bool fallback)
{
        const char *text = request_query(r, name);
        return text && *text ? is_true(text) : fallback;
}

bool request_choice(struct request *r, const char *name, const char *const *words, unsigned *out)
{
        const char *text = request_query(r, name);
        struct buf list;
        *out = 0;
        if (!text || !*text)
                return true;
        for (unsigned i = 0; words[i]; i++) {
                if (strcmp(text, words[i]) == 0) {
                        *out = i;
                        return true;
                }
        }
        buf_init(&list, 0);
        for (unsigned i = 0; words[i]; i++)
                if (*words[i]) /* an empty one stands for "not said" */
                        buf_printf(&list, "%s%s",
                            !list.n        ? ""
                            : words[i + 1] ? ", "
                                           : " or ",
                            words[i]);
        buf_putc(&list, 0);
        request_error_in(r, name, 400, "bad_request", "%s must be %s", name,
            list.failed ? "something else" : list.p);
        buf_release(&list);
        return false;
}

/* ---- the body ---- */

bool request_is_name(const struct json *j, json_ref v)
{
        struct buf b;
        bool lossy = false;
        buf_init(&b, 0);
        json_string(j, v, &b, &lossy);
        bool ok = !lossy && !b.failed && !(b.n && memchr(b.p, 0, b.n));
        buf_release(&b);
        return ok;
}

static bool is_of_kind(const struct json *j, json_ref v, unsigned kinds)
{
        uint64_t seq;
        switch (json_type(j, v)) {
        case JSON_NOTHING:
                return true;
        case JSON_NULL:
                return !(kinds & BODY_OURS);
        case JSON_FALSE:
        case JSON_TRUE:
                return kinds & BODY_BOOL;
        case JSON_NUMBER:
                return (kinds & BODY_SEQ) && json_u64(j, v, &seq) && seq > 0;
        case JSON_STRING:
                return (kinds & BODY_TEXT) || ((kinds & BODY_NAME) && request_is_name(j, v));
        case JSON_ARRAY:
                return kinds & BODY_LIST;
        case JSON_OBJECT:
                return kinds & BODY_OBJECT;
        }
        return false;
}

/* "a string", "a string or a whole number from 1 on" */
static const char *kinds_in_words(struct request *r, unsigned kinds)
{
        static const struct {
                unsigned kinds;
                const char *words;
        } WORDS[] = {
            {BODY_NAME, "a string without NUL characters and lone surrogates"},
            {BODY_TEXT, "a string"},
            {BODY_BOOL, "true or false"},
            {BODY_SEQ, "a whole number, 1 or more"},
            {BODY_OBJECT, "an object"},
            {BODY_LIST, "an array"},
        };
        struct buf b;
        buf_init(&b, 0);
        for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
                if (kinds & WORDS[i].kinds)
                        buf_printf(&b, "%s%s", b.n ? " or " : "", WORDS[i].words);
        struct str words = arena_dup(&r->arena, buf_str(&b));
        buf_release(&b);
        return words.p ? words.p : "something else";
}

bool request_keeps(struct request *r, const struct json *j, const struct body_rule *rules)
{
        if (json_type(j, 0) != JSON_OBJECT) {
                request_error(r, 400, "bad_request", "the body must be a JSON object");
                return false;
        }
        for (; rules->name; rules++) {
                if (is_of_kind(j, json_get(j, 0, rules->name), rules->kinds))
                        continue;
                if (rules->kinds & BODY_OURS)
                        request_error_in(r, rules->name, 400, "bad_request",
                            "%s is written by Steno and cannot be set", rules->name);
                else
                        request_error_in(r, rules->name, 400, "bad_request", "%s must be %s",
                            rules->name, kinds_in_words(r, rules->kinds));
                return false;
        }
        return true;
}

bool request_parse(struct request *r, struct json *j, struct str text, const char *name)
{
        struct steno_error err = {0};
        int rc = json_parse_named(j, text.p, text.n, name, &err);
        if (rc)
                request_error(r, rc == STENO_ENOMEM ? 500 : 400, "bad_json", "%s", err.msg);
        return rc == 0;
}

bool request_json(struct request *r, struct json *j, const struct body_rule *rules)
{
        if (r->body.n == 0)
                buf_puts(&r->body, "{}");
        return request_parse(r, j, buf_str(&r->body), "the body") &&
               (!rules || request_keeps(r, j, rules));
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
        r->still = (struct str){0};
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
            {STENO_EINDOUBT, 503, "in_doubt"},
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

void request_reply_made(struct request *r, int rc, char *json, const struct steno_error *err)
{
        if (rc) {
                request_failed(r, rc, err);
                return;
        }
        buf_puts(&r->reply, json);
        steno_free(json);
        request_reply_json(r, 200);
}

bool request_charge(struct request *r, size_t size)
{
        unsigned long long held = atomic_fetch_add(&r->server->body_bytes[r->guest], size);
        r->body_counted += size;
        if (held + size <= SERVER_BODIES_MAX)
                return true;
        request_header_out(r, "Retry-After", "1");
        request_error(r, 503, "busy", "too much is being sent at once");
        return false;
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
        /* One key on two routes is two requests. */
        bool keyed = !id && request_keyed(r, str_of(r->route->pattern), hex);
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

/* Answers for a conversation that could not be had. */
static void refuse_conv(struct request *r, int rc, const struct steno_error *err)
{
        if (rc == STENO_ENOTFOUND || rc == STENO_EINVAL)
                request_error(r, 404, "not_found",
                    r->errors == ERRORS_ACONTEXT ? "session not found" : "no such conversation");
        else
                request_failed(r, rc, err);
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
        refuse_conv(r, rc, &err);
        return NULL;
}

bool request_conv_remove(struct request *r, const char *id)
{
        struct steno_error err = {0};
        int rc = steno_remove(r->store, r->who.project, id, NULL, &err);
        if (rc)
                refuse_conv(r, rc, &err);
        return rc == 0;
}
