/*
 * mcp_client.c - requests, the handshake of two eras, tools/list and tools/call.
 *
 * `lock` guards the transport pointer and the era; exchanges hold a count of users instead, so
 * that a dead transport is replaced only when nobody is inside of it.
 */
#include "mcp/mcp_client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/wait.h"
#include "exec/exec_modes.h"
#include "tool/tool.h"

#define MODERN "2026-07-28"
#define PROBE_MS 5000  /* silence for so long means the older era */
#define START_MS 30000 /* a package runner may download first */
#define LIST_MS 30000  /* for all pages together: every turn waits for them */
#define PAGES_MAX 200
#define TOOLS_MAX 2000
#define TOOLS_BYTES_MAX (16 * MIB) /* of names, descriptions and schemas */
#define RESTARTS_MAX 3
#define UNSUPPORTED_VERSION (-32022)

/* Newest first; the first is what we ask for. */
static const char *const legacy[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", NULL};

struct mcp_client {
        const struct mcp_server *server;
        struct mcp_host host;
        uint64_t start_ms;
        atomic_ullong next_id;
        pthread_mutex_t lock;
        pthread_cond_t free; /* signalled when users becomes 0 */
        struct mcp_transport *transport;
        unsigned users;
        bool broken; /* the transport has to be replaced */
        unsigned restarts;
        bool modern;
};

/* ---- requests ---- */

static void put_meta(struct jsonw *w, bool modern, uint64_t token)
{
        jsonw_key(w, "_meta");
        jsonw_object(w);
        if (token) {
                jsonw_field_u64(w, "progressToken", token);
        }
        if (modern) {
                jsonw_field_cstr(w, "io.modelcontextprotocol/protocolVersion", MODERN);
                jsonw_field_raw(w, "io.modelcontextprotocol/clientInfo",
                    STR("{\"name\":\"steno\",\"version\":\"" STENO_VERSION "\"}"));
                jsonw_field_raw(w, "io.modelcontextprotocol/clientCapabilities", STR("{}"));
        }
        jsonw_object_end(w);
}

/* `members` are the parameters without braces, may be empty. */
static void put_request(
    struct buf *b, uint64_t id, const char *method, struct str members, bool modern, bool progress)
{
        struct jsonw w = jsonw_to(b);

        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_u64(&w, "id", id);
        jsonw_field_cstr(&w, "method", method);
        jsonw_key(&w, "params");
        jsonw_object(&w);
        if (members.n)
                jsonw_raw(&w, members);
        if (modern || progress)
                put_meta(&w, modern, progress ? id : 0);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        /* Arguments come as the model wrote them, which may be on several lines. */
        if (!b->failed)
                json_single_line(b->p, b->n);
}

static bool lists_modern(const struct json *j, json_ref versions)
{
        for (json_ref v = json_child(j, versions); v != JSON_NONE; v = json_next(j, versions, v))
                if (json_is(j, v, MODERN))
                        return true;
        return false;
}

/* The error of an answer as words; 0 when it is none. *modern: it says that the revision was wrong
 * and lists the one that we speak. */
static int read_error(const struct json *j, bool *modern, struct steno_error *err)
{
        json_ref e = json_get(j, 0, "error");
        struct buf words;
        int64_t code = 0;

        if (e == JSON_NONE)
                return 0;
        json_i64(j, json_get(j, e, "code"), &code);
        *modern = code == UNSUPPORTED_VERSION &&
                  lists_modern(j, json_get(j, json_get(j, e, "data"), "supported"));
        buf_init(&words, 64 * KIB);
        json_string(j, json_get(j, e, "message"), &words, NULL);
        const char *z = buf_cstr(&words);
        error_set(err, STENO_EPROTO, "%.180s (%lld)", z && *z ? z : "error", (long long)code);
        buf_release(&words);
        return STENO_EPROTO;
}

struct request {
        const char *method;
        struct str members;
        const char *name;
        struct str schema, args;
        int64_t deadline;
        const struct steno_stop *stop;
        void (*notice)(void *ctx, const struct json *j);
        void *ctx;
        steno_sink piece;
        void *piece_ctx;
        bool modern_offered; /* out: refused, but 2026-07-28 is among what it speaks */
};

/* 0 with *text and *j filled, which the caller frees and releases. */
static int ask(struct mcp_client *c, struct mcp_transport *t, struct request *r, char **text,
    struct json *j, struct steno_error *err)
{
        struct mcp_exchange x = {.id = atomic_fetch_add(&c->next_id, 1),
            .method = r->method,
            .name = r->name,
            .schema = r->schema,
            .args = r->args,
            .deadline = r->deadline,
            .stop = r->stop,
            .notice = r->notice,
            .ctx = r->ctx,
            .piece = r->piece,
            .piece_ctx = r->piece_ctx};
        struct buf b;

        buf_init(&b, MESSAGE_MAX);
        put_request(&b, x.id, r->method, r->members, c->modern, r->notice != NULL);
        int rc = buf_check(&b, err);
        if (rc == 0) {
                x.body = buf_str(&b);
                rc = t->ops->exchange(t, &x, err);
        }
        buf_release(&b);
        if (rc < 0)
                return rc;
        json_init(j);
        rc = json_parse(j, x.answer, x.answer_n, NULL, err);
        if (rc == 0)
                rc = read_error(j, &r->modern_offered, err);
        if (rc < 0) {
                json_release(j);
                free(x.answer);
                return rc;
        }
        *text = x.answer;
        return 0;
}

/* ---- the handshake ---- */

static void settle(struct mcp_client *c, struct mcp_transport *t, const char *version, bool modern)
{
        c->modern = modern;
        t->ops->settle(t, version, modern);
}

static int64_t earlier(int64_t a, int64_t b)
{
        return a < b ? a : b;
}

/* 0: modern. STENO_EUNSUPPORTED: the older era; `silent` says whether only because there was no
 * answer in time. Else: the server cannot be used. */
static int discover(struct mcp_client *c, struct mcp_transport *t, int64_t deadline,
    const struct steno_stop *stop, bool *silent, struct steno_error *err)
{
        struct request r = {.method = "server/discover", .deadline = deadline, .stop = stop};
        struct json j;
        char *text;

        settle(c, t, MODERN, true);
        int rc = ask(c, t, &r, &text, &j, err);
        *silent = rc == STENO_ETIMEOUT;
        if (rc == 0) {
                json_ref result = json_get(&j, 0, "result");
                bool ours = lists_modern(&j, json_get(&j, result, "supportedVersions"));
                json_release(&j);
                free(text);
                return ours ? 0 : STENO_EUNSUPPORTED;
        }
        if (rc == STENO_EINTERRUPTED || rc == STENO_EIO || rc == STENO_EDENIED ||
            rc == STENO_ENOMEM)
                return rc;
        return r.modern_offered ? 0 : STENO_EUNSUPPORTED;
}

static int accept_version(
    struct mcp_client *c, struct mcp_transport *t, const struct json *j, struct steno_error *err)
{
        json_ref v = json_get(j, json_get(j, 0, "result"), "protocolVersion");

        for (size_t i = 0; legacy[i]; i++)
                if (json_is(j, v, legacy[i])) {
                        settle(c, t, legacy[i], false);
                        return 0;
                }
        struct str raw = json_inner(j, v);
        return error_set(err, STENO_EPROTO, "MCP server %.40s speaks revision \"%.*s\"",
            c->server->name, (int)(raw.n < 40 ? raw.n : 40), raw.p);
}

static int initialize(struct mcp_client *c, struct mcp_transport *t, int64_t deadline,
    const struct steno_stop *stop, struct steno_error *err)
{
        struct request r = {.method = "initialize",
            .members = STR("\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"
                           "\"clientInfo\":{\"name\":\"steno\",\"version\":\"" STENO_VERSION "\"}"),
            .deadline = deadline,
            .stop = stop};
        struct json j;
        char *text;

        settle(c, t, "", false);
        int rc = ask(c, t, &r, &text, &j, err);
        if (rc < 0)
                return rc;
        rc = accept_version(c, t, &j, err);
        json_release(&j);
        free(text);
        if (rc == 0)
                rc = t->ops->notify(
                    t, STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"), err);
        return rc;
}

static int open_transport(struct mcp_client *c, struct mcp_transport **t, struct steno_error *err)
{
        if (c->server->url)
                return mcp_http_open(c->server, t, err);
        return mcp_stdio_open(c->server, &c->host, t, err);
}

static int connect_server(struct mcp_client *c, const struct steno_stop *stop,
    struct mcp_transport **out, struct steno_error *err)
{
        int64_t deadline = time_monotonic_ms() + (int64_t)c->start_ms;
        int64_t probe = earlier(deadline, time_monotonic_ms() + PROBE_MS);
        struct mcp_transport *t = NULL;
        bool silent;
        int rc = open_transport(c, &t, err);

        if (rc < 0)
                return rc;
        rc = discover(c, t, probe, stop, &silent, err);
        /* Some old servers exit when they get a method that they do not know. */
        if (rc == STENO_EIO && c->server->command) {
                t->ops->close(t);
                t = NULL;
                rc = open_transport(c, &t, err);
                if (rc == 0)
                        rc = STENO_EUNSUPPORTED;
        } else if (rc == STENO_EIO) {
                /* An HTTP error for an unknown request says nothing about the rest. */
                rc = STENO_EUNSUPPORTED;
        }
        if (rc == STENO_EUNSUPPORTED)
                rc = initialize(c, t, deadline, stop, err);
        /* The server was slow and not old: a server of the modern era refuses the older
         * handshake. */
        if (rc == STENO_EPROTO && silent && discover(c, t, deadline, stop, &silent, NULL) == 0)
                rc = 0;
        if (rc == 0)
                *out = t;
        else if (t)
                t->ops->close(t);
        return rc;
}

/* ---- life ---- */

int mcp_client_open(const struct mcp_server *server, const struct mcp_host *host, uint64_t start_ms,
    const struct steno_stop *stop, struct mcp_client **out, struct steno_error *err)
{
        struct mcp_client *c = calloc(1, sizeof(*c));

        if (!c)
                return error_nomem(err);
        c->server = server;
        c->host = *host;
        c->start_ms = start_ms ? start_ms : START_MS;
        atomic_init(&c->next_id, 1);
        pthread_mutex_init(&c->lock, NULL);
        wait_init(&c->free);
        int rc = connect_server(c, stop, &c->transport, err);
        if (rc < 0) {
                mcp_client_close(c);
                return rc;
        }
        *out = c;
        return 0;
}

void mcp_client_close(struct mcp_client *c)
{
        if (!c)
                return;
        if (c->transport)
                c->transport->ops->close(c->transport);
        pthread_cond_destroy(&c->free);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

/* ---- sharing the transport ---- */

/* Replaces a transport that broke; the lock is held. */
static int restart(struct mcp_client *c, const struct steno_stop *stop, struct steno_error *err)
{
        while (c->users > 0)
                pthread_cond_wait(&c->free, &c->lock);
        if (!c->broken)
                return 0;
        if (c->restarts >= RESTARTS_MAX)
                return error_set(err, STENO_EIO,
                    "MCP server %.40s died %u times and is not started again", c->server->name,
                    c->restarts + 1);
        c->restarts++;
        if (c->transport)
                c->transport->ops->close(c->transport);
        c->transport = NULL;
        int rc = connect_server(c, stop, &c->transport, err);
        c->broken = rc < 0;
        return rc;
}

static int enter(struct mcp_client *c, const struct steno_stop *stop, struct mcp_transport **t,
    struct steno_error *err)
{
        pthread_mutex_lock(&c->lock);
        int rc = c->broken ? restart(c, stop, err) : 0;
        if (rc == 0) {
                c->users++;
                *t = c->transport;
        }
        pthread_mutex_unlock(&c->lock);
        return rc;
}

/* After STENO_EIO, or when the session is gone, this transport cannot be used any more. */
static void leave(struct mcp_client *c, int rc)
{
        pthread_mutex_lock(&c->lock);
        if (rc == STENO_EIO || rc == STENO_ENOTFOUND)
                c->broken = true;
        if (--c->users == 0)
                pthread_cond_broadcast(&c->free);
        pthread_mutex_unlock(&c->lock);
}

static int request(
    struct mcp_client *c, struct request *r, char **text, struct json *j, struct steno_error *err)
{
        struct mcp_transport *t = NULL;
        int rc = enter(c, r->stop, &t, err);

        if (rc < 0)
                return rc;
        rc = ask(c, t, r, text, j, err);
        leave(c, rc);
        if (rc != STENO_ENOTFOUND)
                return rc;
        /* The server refused the request because its session had ended. It did nothing, so the
         * request may be sent again.
         */
        rc = enter(c, r->stop, &t, err);
        if (rc < 0)
                return rc;
        rc = ask(c, t, r, text, j, err);
        leave(c, rc);
        return rc;
}

unsigned mcp_client_put_modes_back(struct mcp_client *c)
{
        pthread_mutex_lock(&c->lock);
        unsigned changed = c->transport ? exec_modes_restore(c->transport->modes) : 0;
        pthread_mutex_unlock(&c->lock);
        return changed;
}

/* ---- tools/list ---- */

void mcp_tools_free(struct mcp_tool *list, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                free(list[i].name);
                free(list[i].description);
                free(list[i].input_schema);
        }
        free(list);
}

struct listing {
        struct mcp_tool *list;
        size_t count;
        size_t bytes;
        bool more; /* than are taken */
        int64_t deadline;
};

static int add_tool(struct listing *l, const struct json *j, json_ref tool, struct steno_error *err)
{
        json_ref name = json_get(j, tool, "name");
        json_ref description = json_get(j, tool, "description");
        json_ref schema = json_get(j, tool, "inputSchema");
        json_ref hints = json_get(j, tool, "annotations");

        /* A tool without a name cannot be called; the others still can. */
        if (json_type(j, name) != JSON_STRING)
                return 0;
        /* A server that sends the same page again does not get more tools by that. */
        for (size_t i = 0; i < l->count; i++)
                if (json_is(j, name, l->list[i].name))
                        return 0;
        if (l->count == TOOLS_MAX) {
                l->more = true;
                return 0;
        }
        struct mcp_tool *list = realloc(l->list, (l->count + 1) * sizeof(*list));
        if (!list)
                return error_nomem(err);
        l->list = list;
        struct mcp_tool *t = &list[l->count++];
        *t = (struct mcp_tool){0};
        struct str raw = json_type(j, schema) == JSON_OBJECT ? json_raw(j, schema)
                                                             : STR("{\"type\":\"object\"}");
        t->name = json_dup_string(j, name);
        t->input_schema = strndup(raw.p, raw.n);
        t->read_only = json_bool(j, json_get(j, hints, "readOnlyHint"), false);
        if (json_type(j, description) == JSON_STRING) {
                t->description = json_dup_string(j, description);
                if (!t->description)
                        return error_nomem(err);
        }
        if (!t->name || !t->input_schema)
                return error_nomem(err);
        l->bytes += strlen(t->name) + raw.n + (t->description ? strlen(t->description) : 0);
        if (l->bytes > TOOLS_BYTES_MAX)
                return error_set(err, STENO_ELIMIT, "its tools are described in more than %llu MB",
                    (unsigned long long)(TOOLS_BYTES_MAX / MIB));
        return 0;
}

/* One page; *cursor becomes `"cursor":"..."` for the next, empty at the end. */
static int list_page(struct mcp_client *c, struct listing *l, struct buf *cursor,
    const struct steno_stop *stop, struct steno_error *err)
{
        struct request r = {.method = "tools/list",
            .members = buf_str(cursor),
            .deadline = l->deadline,
            .stop = stop};
        struct json j;
        char *text;
        int rc = request(c, &r, &text, &j, err);

        if (rc < 0)
                return rc;
        json_ref result = json_get(&j, 0, "result");
        json_ref tools = json_get(&j, result, "tools");
        json_ref next = json_get(&j, result, "nextCursor");
        for (json_ref e = json_child(&j, tools); e != JSON_NONE && rc == 0;
             e = json_next(&j, tools, e))
                rc = add_tool(l, &j, e, err);
        buf_clear(cursor);
        if (json_type(&j, next) == JSON_STRING) {
                buf_puts(cursor, "\"cursor\":");
                buf_put_str(cursor, json_raw(&j, next));
        }
        json_release(&j);
        free(text);
        return rc == 0 ? buf_check(cursor, err) : rc;
}

int mcp_client_tools(struct mcp_client *c, const struct steno_stop *stop, struct mcp_tool **list,
    size_t *count, bool *more, struct steno_error *err)
{
        struct listing l = {.deadline = time_monotonic_ms() + LIST_MS};
        struct buf cursor;
        int rc, pages = 0;

        buf_init(&cursor, 64 * KIB);
        do
                rc = list_page(c, &l, &cursor, stop, err);
        while (rc == 0 && cursor.n && l.count < TOOLS_MAX && ++pages < PAGES_MAX);
        *more = l.more || cursor.n;
        buf_release(&cursor);
        if (rc < 0) {
                mcp_tools_free(l.list, l.count);
                return error_prefix(err, rc, "tools/list");
        }
        *list = l.list;
        *count = l.count;
        return 0;
}

/* ---- tools/call ---- */

static void on_notice(void *ctx, const struct json *j)
{
        const struct mcp_call *call = ctx;
        json_ref p = json_get(j, 0, "params");
        double done = 0, total = 0;
        struct buf text;

        if (!json_is(j, json_get(j, 0, "method"), "notifications/progress") || !call->progress)
                return;
        json_double(j, json_get(j, p, "progress"), &done);
        json_double(j, json_get(j, p, "total"), &total);
        buf_init(&text, 64 * KIB);
        json_string(j, json_get(j, p, "message"), &text, NULL);
        call->progress(call->ctx, done, total, buf_str(&text));
        buf_release(&text);
}

int mcp_client_call(struct mcp_client *c, const struct mcp_call *call, char **result,
    struct json *j, struct steno_error *err)
{
        struct buf members;
        struct jsonw w = jsonw_to(&members);

        buf_init(&members, MESSAGE_MAX);
        jsonw_field_cstr(&w, "name", call->tool);
        jsonw_field_raw(&w, "arguments", call->args.n ? call->args : STR("{}"));
        int rc = buf_check(&members, err);
        struct request r = {.method = "tools/call",
            .members = buf_str(&members),
            .name = call->tool,
            .schema = call->schema,
            .args = call->args.n ? call->args : STR("{}"),
            .deadline = call->deadline,
            .stop = call->stop,
            .notice = on_notice,
            .ctx = (void *)call,
            .piece = call->piece,
            .piece_ctx = call->ctx};
        if (rc == 0)
                rc = request(c, &r, result, j, err);
        buf_release(&members);
        return rc;
}
