/* mcpd.c - see mcpd.h */
#include "mcpd/mcpd_call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/env.h"
#include "base/error.h"
#include "base/limits.h"

#define MODERN "2026-07-28"
#define SUPPORTED "[\"" MODERN "\"]"
#define KEY_VERSION "io.modelcontextprotocol/protocolVersion"
#define KEY_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define KEY_SERVER "io.modelcontextprotocol/serverInfo"
#define ASSUMED "2025-03-26" /* the revision of a legacy HTTP request without a version header */
#define NAME_MAX_BYTES (4 * KIB)
#define PROGRESS_MS 100 /* time between two notifications */

static const char *const LEGACY[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
#define LEGACY_COUNT (sizeof LEGACY / sizeof *LEGACY)

static const char INSTRUCTIONS[] =
    "Steno keeps the verbatim record of a conversation. Large tool outputs are stored as "
    "artifacts; "
    "a stub in the conversation names the ref (ctx_...). Read them with context_read, context_tail "
    "and context_grep instead of running a tool again; conversation_read shows earlier messages.";

/* ---- parsing a message ---- */

static void refuse(struct mcpd_message *m, int code, const char *why)
{
        m->kind = MCPD_REFUSED;
        m->code = code;
        snprintf(m->why, sizeof m->why, "%s", why);
}

static bool is_legacy(struct str revision)
{
        for (size_t i = 0; i < LEGACY_COUNT; i++)
                if (str_is(revision, LEGACY[i]))
                        return true;
        return false;
}

static void set_revision(struct mcpd_message *m, struct str revision)
{
        size_t n = revision.n < MCPD_REVISION_MAX - 1 ? revision.n : MCPD_REVISION_MAX - 1;
        memcpy(m->revision, revision.p, n);
        m->revision[n] = '\0';
}

/* Does the header have this value? It may be written as =?base64?...?=. */
static bool header_is(const char *header, struct str want)
{
        static const char BEGIN[] = "=?base64?";
        struct str h = str_trim(str_of(header)); /* blanks around a value do not count */
        if (!str_starts(h, BEGIN) || h.n < sizeof BEGIN + 1 || memcmp(h.p + h.n - 2, "?=", 2) != 0)
                return str_eq(h, want);
        struct str code = str_span(h.p + sizeof BEGIN - 1, h.n - sizeof BEGIN - 1);
        char *plain = malloc(want.n + 1);
        bool same = plain && base64_take(code, plain, want.n) && memcmp(plain, want.p, want.n) == 0;
        free(plain);
        return same;
}

/* Returns the member that the header Mcp-Name repeats, or NULL. */
static const char *named_by(const char *method)
{
        if (strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0)
                return "name";
        return strcmp(method, "resources/read") == 0 ? "uri" : NULL;
}

static bool name_agrees(const struct mcpd_message *m, const char *header)
{
        const char *key = named_by(m->method);
        struct buf name;
        if (!key)
                return true;
        buf_init(&name, NAME_MAX_BYTES);
        bool given = json_string(&m->j, json_get(&m->j, m->params, key), &name, NULL);
        /* If the body has no name, the method itself reports what is missing. */
        bool same = !given || (header && !name.failed && header_is(header, buf_str(&name)));
        buf_release(&name);
        return same;
}

static void check_headers(struct mcpd_message *m, const struct mcpd_headers *h)
{
        if (!h->version || strcmp(h->version, m->revision) != 0)
                refuse(
                    m, MCPD_HEADERS, "the header MCP-Protocol-Version does not agree with _meta");
        else if (!h->method || !header_is(h->method, str_of(m->method)))
                refuse(m, MCPD_HEADERS, "the header Mcp-Method does not agree with the body");
        else if (!name_agrees(m, h->name))
                refuse(m, MCPD_HEADERS, "the header Mcp-Name does not agree with the body");
}

static void check_modern(
    struct mcpd_message *m, const struct mcpd_headers *h, json_ref meta, json_ref version)
{
        if (json_type(&m->j, version) != JSON_STRING) {
                refuse(m, MCPD_PARAMS, "params._meta must have " KEY_VERSION);
                return;
        }
        set_revision(m, json_inner(&m->j, version));
        if (h)
                check_headers(m, h);
        if (m->kind == MCPD_REFUSED)
                return;
        if (!json_is(&m->j, version, MODERN)) {
                refuse(m, MCPD_VERSION, "this revision of the protocol is not supported");
                buf_puts(&m->data, "{\"supported\":" SUPPORTED ",\"requested\":");
                buf_put_str(&m->data, json_raw(&m->j, version));
                buf_putc(&m->data, '}');
        } else if (json_type(&m->j, json_get(&m->j, meta, KEY_CAPABILITIES)) != JSON_OBJECT) {
                refuse(m, MCPD_PARAMS, "params._meta must have " KEY_CAPABILITIES);
        }
}

/* Sets the revision of a legacy request. An initialize names its own. */
static void check_legacy(struct mcpd_message *m, const struct mcpd_headers *h, const char *agreed)
{
        json_ref wanted = json_get(&m->j, m->params, "protocolVersion");
        if (strcmp(m->method, "initialize") == 0) {
                struct str v = json_inner(&m->j, wanted);
                set_revision(m, is_legacy(v) ? v : str_of(LEGACY[0]));
        } else if (h && h->version && !is_legacy(str_of(h->version))) {
                refuse(m, MCPD_INVALID, "the header MCP-Protocol-Version names no known revision");
        } else if (h) {
                set_revision(m, str_of(h->version ? h->version : ASSUMED));
        } else {
                set_revision(m, str_of(agreed ? agreed : LEGACY[0]));
        }
}

/* Decides which era a message belongs to, and checks it by the rules of this era. */
static void check_era(struct mcpd_message *m, const struct mcpd_headers *h, const char *agreed)
{
        json_ref meta = json_get(&m->j, m->params, "_meta");
        json_ref version = json_get(&m->j, meta, KEY_VERSION);
        bool header = h && h->version && strcmp(h->version, MODERN) == 0;
        m->modern = header || version != JSON_NONE || strcmp(m->method, "server/discover") == 0;
        if (m->modern && m->kind == MCPD_REQUEST)
                check_modern(m, h, meta, version);
        else if (!m->modern)
                check_legacy(m, h, agreed);
}

static bool is_id(const struct mcpd_message *m)
{
        enum json_type t = json_type(&m->j, m->id);
        return (t == JSON_STRING || t == JSON_NUMBER) && json_raw(&m->j, m->id).n <= MCPD_ID_MAX;
}

static void take_parts(struct mcpd_message *m)
{
        const struct json *j = &m->j;
        json_ref method = json_get(j, 0, "method");
        struct str name = json_inner(j, method);
        m->params = json_get(j, 0, "params");
        json_ref id = json_get(j, 0, "id");
        m->id = id;
        if (json_type(j, 0) == JSON_ARRAY) {
                refuse(m, MCPD_INVALID, "batches are not accepted: send one message at a time");
        } else if (json_type(j, 0) != JSON_OBJECT ||
                   !json_is(j, json_get(j, 0, "jsonrpc"), "2.0")) {
                refuse(m, MCPD_INVALID, "this is not a JSON-RPC 2.0 message");
        } else if (method == JSON_NONE && (json_get(j, 0, "result") != JSON_NONE ||
                                              json_get(j, 0, "error") != JSON_NONE)) {
                m->kind = MCPD_RESPONSE;
        } else if (json_type(j, method) != JSON_STRING) {
                refuse(m, MCPD_INVALID, "the message has no method");
        } else if (id != JSON_NONE && !is_id(m)) {
                m->id = JSON_NONE;
                refuse(m, MCPD_INVALID, "an id is a string or a number of at most 1024 bytes");
        } else if (m->params != JSON_NONE && json_type(j, m->params) != JSON_OBJECT) {
                refuse(m, MCPD_PARAMS, "params must be an object");
        } else {
                m->kind = id == JSON_NONE ? MCPD_NOTIFICATION : MCPD_REQUEST;
                snprintf(m->method, sizeof m->method, "%.*s",
                    name.n < sizeof m->method ? (int)name.n : 0, name.p);
        }
        if (m->kind == MCPD_REFUSED && m->id != JSON_NONE && !is_id(m))
                m->id = JSON_NONE;
}

int mcpd_take(struct mcpd_message *m, const char *text, size_t n,
    const struct mcpd_headers *headers, const char *legacy, struct steno_error *err)
{
        struct steno_error why = {0};
        memset(m, 0, sizeof *m);
        m->id = m->params = JSON_NONE;
        json_init(&m->j);
        buf_init(&m->data, 64 * KIB);
        m->text = malloc(n + 1);
        if (!m->text)
                return error_nomem(err);
        memcpy(m->text, text, n);
        m->text[n] = '\0';
        if (n > MCPD_MESSAGE_MAX) {
                refuse(m, MCPD_INVALID, "the message is too large");
                return 0;
        }
        int rc = json_parse_named(&m->j, m->text, n, "the message", &why);
        if (rc == STENO_ENOMEM)
                return error_nomem(err);
        if (rc) {
                snprintf(m->why, sizeof m->why, "%.190s", why.msg);
                m->kind = MCPD_REFUSED;
                m->code = MCPD_PARSE;
                return 0;
        }
        take_parts(m);
        if (m->kind == MCPD_REQUEST || m->kind == MCPD_NOTIFICATION)
                check_era(m, headers, legacy);
        return 0;
}

void mcpd_release(struct mcpd_message *m)
{
        json_release(&m->j);
        buf_release(&m->data);
        free(m->text);
        m->text = NULL;
}

struct str mcpd_id(const struct mcpd_message *m)
{
        return m->id == JSON_NONE ? (struct str){0} : json_raw(&m->j, m->id);
}

struct str mcpd_cancels(const struct mcpd_message *m)
{
        if (m->kind != MCPD_NOTIFICATION || strcmp(m->method, "notifications/cancelled") != 0)
                return (struct str){0};
        json_ref id = json_get(&m->j, m->params, "requestId");
        return id == JSON_NONE ? (struct str){0} : json_raw(&m->j, id);
}

static json_ref progress_token(const struct mcpd_message *m)
{
        json_ref token = json_get(&m->j, json_get(&m->j, m->params, "_meta"), "progressToken");
        enum json_type t = json_type(&m->j, token);
        return t == JSON_STRING || t == JSON_NUMBER ? token : JSON_NONE;
}

bool mcpd_is_long(const struct mcpd_message *m)
{
        return m->kind == MCPD_REQUEST && strcmp(m->method, "tools/call") == 0 &&
               progress_token(m) != JSON_NONE;
}

/* ---- answers ---- */

void mcpd_put_error(struct buf *out, struct str id, int code, const char *why, struct str data)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_raw(&w, "id", id.n ? id : STR("null"));
        jsonw_key(&w, "error");
        jsonw_object(&w);
        jsonw_field_i64(&w, "code", code);
        jsonw_field_cstr(&w, "message", why);
        if (data.n)
                jsonw_field_raw(&w, "data", data);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
}

void mcpd_fail(struct mcpd_call *c, int code, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(c->why, sizeof c->why, fmt, ap);
        va_end(ap);
        c->code = code;
}

void mcpd_fail_with(struct mcpd_call *c, int rc, const struct steno_error *err)
{
        if (rc == STENO_EINTERRUPTED)
                c->cancelled = true;
        mcpd_fail(c, MCPD_INTERNAL, "%s", err->msg[0] ? err->msg : steno_code_name(rc));
}

bool mcpd_has_links(const struct mcpd_call *c)
{
        return strcmp(c->m->revision, "2025-06-18") >= 0;
}

const char *mcpd_param(const struct mcpd_call *c, const char *name, struct buf *out)
{
        buf_clear(out);
        if (!json_string(&c->m->j, json_get(&c->m->j, c->m->params, name), out, NULL))
                return NULL;
        return buf_cstr(out);
}

static bool is_gone(const struct mcpd_call *c)
{
        return c->peer && c->peer->is_gone && c->peer->is_gone(c->peer->ctx);
}

int mcpd_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
        struct mcpd_call *c = ctx;
        struct buf b;
        (void)what;
        if (is_gone(c)) {
                c->cancelled = true;
                return 1;
        }
        if (c->token == JSON_NONE || !c->peer || !c->peer->notify || done <= c->told)
                return 0;
        int64_t now = time_monotonic_ms();
        if (c->told && done < total && now - c->told_at < PROGRESS_MS)
                return 0;
        c->told = done;
        c->told_at = now;
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_cstr(&w, "method", "notifications/progress");
        jsonw_key(&w, "params");
        jsonw_object(&w);
        jsonw_field_copy(&w, "progressToken", &c->m->j, c->token);
        jsonw_field_u64(&w, "progress", done);
        if (total)
                jsonw_field_u64(&w, "total", total);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        if (!b.failed)
                c->peer->notify(c->peer->ctx, b.p, b.n);
        buf_release(&b);
        return 0;
}

/* ---- methods ---- */

static void put_server(struct jsonw *w, const char *key)
{
        jsonw_key(w, key);
        jsonw_object(w);
        jsonw_field_cstr(w, "name", "steno");
        jsonw_field_cstr(w, "title", "Steno");
        jsonw_field_cstr(w, "version", steno_version());
        jsonw_object_end(w);
}

static void put_capabilities(struct jsonw *w, const struct mcpd_scope *scope)
{
        jsonw_field_raw(w, "capabilities",
            scope->fixtures ? STR("{\"tools\":{},\"resources\":{},\"prompts\":{}}")
                            : STR("{\"tools\":{},\"resources\":{}}"));
        jsonw_field_cstr(w, "instructions", INSTRUCTIONS);
}

static void initialize(struct mcpd_call *c)
{
        if (json_type(&c->m->j, json_get(&c->m->j, c->m->params, "protocolVersion")) !=
            JSON_STRING) {
                mcpd_fail(c, MCPD_PARAMS, "initialize needs protocolVersion");
                return;
        }
        jsonw_field_cstr(&c->w, "protocolVersion", c->m->revision);
        put_server(&c->w, "serverInfo");
        put_capabilities(&c->w, c->scope);
}

static void discover(struct mcpd_call *c)
{
        jsonw_field_raw(&c->w, "supportedVersions", STR(SUPPORTED));
        put_capabilities(&c->w, c->scope);
}

/* A name that is too long was not kept, so it cannot be shown. */
static void fail_no_method(struct mcpd_call *c)
{
        if (c->m->method[0])
                mcpd_fail(c, MCPD_NO_METHOD, "there is no method %s", c->m->method);
        else
                mcpd_fail(c, MCPD_NO_METHOD, "there is no method of this name");
}

/* Only for the conformance suite, whose test of caching calls it. */
static void list_prompts(struct mcpd_call *c)
{
        if (c->scope->fixtures) {
                jsonw_field_raw(&c->w, "prompts", STR("[]"));
                return;
        }
        c->status = c->m->modern ? 404 : 200;
        fail_no_method(c);
}

static void ping(struct mcpd_call *c)
{
        (void)c;
}

enum eras { OLD = 1, NEW = 2, BOTH = 3 };

static const struct method {
        const char *name;
        enum eras eras;
        void (*run)(struct mcpd_call *c);
        int64_t ttl_ms; /* how long a modern client may cache the result; -1: not at all */
} METHODS[] = {
    {"initialize", OLD, initialize, -1},
    {"ping", OLD, ping, -1},
    {"server/discover", NEW, discover, 60000},
    {"tools/list", BOTH, mcpd_tools_list, 60000},
    {"tools/call", BOTH, mcpd_tools_call, -1},
    {"prompts/list", BOTH, list_prompts, 60000},
    {"resources/list", BOTH, mcpd_resources_list, 0},
    {"resources/templates/list", BOTH, mcpd_resources_templates, 60000},
    {"resources/read", BOTH, mcpd_resources_read, 0},
};

static const struct method *find_method(const struct mcpd_message *m)
{
        for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
                if (strcmp(METHODS[i].name, m->method) == 0 &&
                    METHODS[i].eras & (m->modern ? NEW : OLD))
                        return &METHODS[i];
        return NULL;
}

/* Writes the members that every modern result has. */
static void put_modern(struct jsonw *w, const struct method *method)
{
        jsonw_field_cstr(w, "resultType", "complete");
        if (method->ttl_ms >= 0) {
                jsonw_field_i64(w, "ttlMs", method->ttl_ms);
                jsonw_field_cstr(w, "cacheScope", "private");
        }
        jsonw_key(w, "_meta");
        jsonw_object(w);
        put_server(w, KEY_SERVER);
        jsonw_object_end(w);
}

static int finish(struct mcpd_call *c, struct buf *result, struct buf *out)
{
        struct str id = mcpd_id(c->m);
        if (c->cancelled || is_gone(c))
                return MCPD_CANCELLED;
        if (!c->code && result->failed)
                mcpd_fail(c, MCPD_INTERNAL, "the answer does not fit into memory");
        if (c->code) {
                mcpd_put_error(out, id, c->code, c->why, buf_str(&c->data));
                return c->status;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_raw(&w, "id", id);
        jsonw_field_raw(&w, "result", buf_str(result));
        jsonw_object_end(&w);
        return 200;
}

static int run_method(const struct mcpd_scope *scope, const struct mcpd_message *m,
    const struct mcpd_peer *peer, struct buf *out)
{
        const struct method *method = find_method(m);
        struct buf result;
        buf_init(&result, 64 * MIB);
        struct mcpd_call c = {.scope = scope,
            .m = m,
            .peer = peer,
            .w = jsonw_to(&result),
            .status = 200,
            .token = progress_token(m)};
        buf_init(&c.data, 64 * KIB);
        jsonw_object(&c.w);
        if (method) {
                method->run(&c);
                if (m->modern)
                        put_modern(&c.w, method);
        } else {
                c.status = m->modern ? 404 : 200;
                fail_no_method(&c);
        }
        jsonw_object_end(&c.w);
        int status = finish(&c, &result, out);
        buf_release(&c.data);
        buf_release(&result);
        return status;
}

int mcpd_answer(const struct mcpd_scope *scope, const struct mcpd_message *m,
    const struct mcpd_peer *peer, struct buf *out)
{
        switch (m->kind) {
        case MCPD_REQUEST:
                return run_method(scope, m, peer, out);
        case MCPD_REFUSED:
                mcpd_put_error(out, mcpd_id(m), m->code, m->why, buf_str(&m->data));
                return 400;
        default:
                return 202;
        }
}
