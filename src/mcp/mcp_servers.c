/*
 * mcp_servers.c - the "mcpServers" object, in the shape the ecosystem uses.
 */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "mcp/mcp_servers.h"

#include "base/env.h"
#include "base/error.h"
#include "base/json_keys.h"
#include "base/limits.h"

#define SERVERS_MAX 200

static const char *const known[] = {"type", "command", "args", "env", "cwd", "url", "headers",
    "timeout", "disabled", "description", "public", NULL};

static void server_release(struct mcp_server *s)
{
        free(s->name);
        free(s->command);
        json_keys_free_list(s->args);
        json_keys_free_list(s->env);
        free(s->directory);
        free(s->url);
        json_keys_free_list(s->headers);
        json_keys_free_list(s->public_tools);
        memset(s, 0, sizeof(*s));
}

void mcp_servers_release(struct mcp_servers *s)
{
        for (size_t i = 0; i < s->count; i++)
                server_release(&s->list[i]);
        free(s->list);
        *s = (struct mcp_servers){0};
}

/* ---- ${NAME} ---- */

static int expand_one(
    struct buf *b, struct str inside, const char *const *env, struct steno_error *err)
{
        char name[128];
        const char *dash = memmem(inside.p, inside.n, ":-", 2);
        size_t n = dash ? (size_t)(dash - inside.p) : inside.n;

        if (n == 0 || n >= sizeof(name))
                return error_set(err, STENO_EINVAL, "${%.*s} names no variable",
                    (int)(inside.n < 60 ? inside.n : 60), inside.p);
        memcpy(name, inside.p, n);
        name[n] = '\0';
        const char *value = env_get(env, name);
        if (value && (*value || !dash))
                buf_puts(b, value);
        else if (dash)
                buf_put(b, dash + 2, inside.n - n - 2);
        else
                return error_set(err, STENO_EINVAL, "the variable %s is not set", name);
        return 0;
}

/* Replaces *text by its expansion. */
static int expand(char **text, const char *const *env, struct steno_error *err)
{
        struct buf b;
        int rc = 0;

        if (!env || !*text || !strstr(*text, "${"))
                return 0;
        buf_init(&b, CONFIG_FILE_MAX);
        for (const char *p = *text; *p && rc == 0;) {
                const char *end = p[0] == '$' && p[1] == '{' ? strchr(p, '}') : NULL;
                if (end) {
                        rc = expand_one(&b, str_span(p + 2, (size_t)(end - p - 2)), env, err);
                        p = end + 1;
                } else {
                        buf_putc(&b, *p++);
                }
        }
        char *done = rc == 0 ? buf_take(&b, NULL) : NULL;
        buf_release(&b);
        if (rc < 0)
                return rc;
        if (!done)
                return error_nomem(err);
        free(*text);
        *text = done;
        return 0;
}

static int expand_list(char **list, const char *const *env, struct steno_error *err)
{
        for (size_t i = 0; list && list[i]; i++) {
                int rc = expand(&list[i], env, err);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int expand_server(struct mcp_server *s, const char *const *env, struct steno_error *err)
{
        int rc = expand(&s->command, env, err);

        if (rc == 0)
                rc = expand(&s->url, env, err);
        if (rc == 0)
                rc = expand(&s->directory, env, err);
        if (rc == 0)
                rc = expand_list(s->args, env, err);
        if (rc == 0)
                rc = expand_list(s->env, env, err);
        if (rc == 0)
                rc = expand_list(s->headers, env, err);
        return rc;
}

/* ---- reading ---- */

/* An object of strings as a list "name<between>value". */
static int read_pairs(const struct json *j, json_ref obj, const char *key, const char *between,
    const char *where, char ***out, struct steno_error *err)
{
        json_ref r = json_get(j, obj, key);
        size_t n = 0;

        if (r == JSON_NONE)
                return 0;
        bool fine = json_type(j, r) == JSON_OBJECT && !json_keys_repeats(j, r);
        char **list = calloc((size_t)json_count(j, r) + 1, sizeof(*list));
        if (!list)
                return error_nomem(err);
        for (json_ref k = fine ? json_child(j, r) : JSON_NONE; k != JSON_NONE && fine;
             k = json_next_key(j, r, k)) {
                struct buf b;
                buf_init(&b, CONFIG_FILE_MAX);
                fine = json_string(j, k, &b, NULL) && b.n && !memchr(b.p, '=', b.n) &&
                       !memchr(b.p, ':', b.n);
                buf_puts(&b, between);
                fine = fine && json_string(j, json_value(j, k), &b, NULL) &&
                       !memchr(b.p, '\0', b.n) && !memchr(b.p, '\n', b.n);
                list[n] = buf_take(&b, NULL);
                fine = fine && list[n];
                n += list[n] != NULL;
        }
        if (!fine) {
                json_keys_free_list(list);
                return error_set(err, STENO_EINVAL,
                    "%s: \"%s\" must be an object of names and strings", where, key);
        }
        *out = list;
        return 0;
}

static int check_kind(
    const struct mcp_server *s, const char *type, const char *where, struct steno_error *err)
{
        if (!s->command == !s->url)
                return error_set(
                    err, STENO_EINVAL, "%s: needs either \"command\" or \"url\"", where);
        if (!type)
                return 0;
        static const char *const stdio[] = {"stdio", "local", NULL};
        static const char *const http[] = {"http", "streamable-http", "streamableHttp", NULL};
        const char *const *fit = s->command ? stdio : http;
        for (size_t i = 0; fit[i]; i++)
                if (strcmp(type, fit[i]) == 0)
                        return 0;
        if (strcmp(type, "sse") == 0)
                return error_set(err, STENO_EINVAL,
                    "%s: the old SSE transport is not supported; use \"http\"", where);
        return error_set(
            err, STENO_EINVAL, "%s: \"type\" is %.40s, which does not match the rest", where, type);
}

/* "public": true for all tools of a server, or the names of those that visitors may use. */
static int read_public(struct mcp_server *s, const struct json *j, json_ref obj, const char *where,
    struct steno_error *err)
{
        json_ref r = json_get(j, obj, "public");
        enum json_type type = json_type(j, r);

        if (r == JSON_NONE || type == JSON_FALSE)
                return 0;
        if (type == JSON_TRUE) {
                s->all_public = true;
                return 0;
        }
        if (type != JSON_ARRAY)
                return error_set(err, STENO_EINVAL,
                    "%s: \"public\" must be true, false or a list of tool names", where);
        return json_keys_strings(j, obj, "public", where, &s->public_tools, err);
}

bool mcp_server_opens(const struct mcp_server *s, const char *tool)
{
        for (size_t i = 0; s->public_tools && s->public_tools[i]; i++)
                if (strcmp(s->public_tools[i], tool) == 0)
                        return true;
        return s->all_public;
}

static int read_server(struct mcp_server *s, const struct json *j, json_ref obj,
    const char *const *env, const char *where, struct steno_error *err)
{
        char *type = NULL;
        int rc = json_keys_check(j, obj, known, where, err);

        if (rc == 0)
                rc = json_keys_string(j, obj, "type", where, &type, err);
        if (rc == 0)
                rc = json_keys_string(j, obj, "command", where, &s->command, err);
        if (rc == 0)
                rc = json_keys_string(j, obj, "cwd", where, &s->directory, err);
        if (rc == 0)
                rc = json_keys_string(j, obj, "url", where, &s->url, err);
        if (rc == 0)
                rc = json_keys_strings(j, obj, "args", where, &s->args, err);
        if (rc == 0)
                rc = read_pairs(j, obj, "env", "=", where, &s->env, err);
        if (rc == 0)
                rc = read_pairs(j, obj, "headers", ": ", where, &s->headers, err);
        if (rc == 0)
                rc = json_keys_number(
                    j, obj, "timeout", where, 24 * 3600 * 1000, &s->timeout_ms, err);
        if (rc == 0)
                rc = read_public(s, j, obj, where, err);
        s->disabled = json_bool(j, json_get(j, obj, "disabled"), false);
        if (rc == 0)
                rc = check_kind(s, type, where, err);
        if (rc == 0 && !s->disabled && expand_server(s, env, err) < 0)
                rc = error_prefix(err, STENO_EINVAL, "%s", where);
        free(type);
        return rc;
}

static int add_server(struct mcp_servers *s, struct mcp_server *server, struct steno_error *err)
{
        for (size_t i = 0; i < s->count; i++)
                if (strcmp(s->list[i].name, server->name) == 0) {
                        server_release(&s->list[i]);
                        s->list[i] = *server;
                        return 0;
                }
        struct mcp_server *list = realloc(s->list, (s->count + 1) * sizeof(*list));
        if (!list)
                return error_nomem(err);
        s->list = list;
        s->list[s->count++] = *server;
        return 0;
}

int mcp_servers_read(struct mcp_servers *s, const struct json *j, json_ref obj,
    const char *const *env, const char *where, struct steno_error *err)
{
        int rc = 0;

        if (json_type(j, obj) != JSON_OBJECT || json_count(j, obj) > SERVERS_MAX ||
            json_keys_repeats(j, obj))
                return error_set(err, STENO_EINVAL,
                    "%s: must be an object of at most %d servers, each once", where, SERVERS_MAX);
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k)) {
                struct mcp_server server = {0};
                char place[160];
                server.name = json_dup_string(j, k);
                if (!server.name)
                        return error_nomem(err);
                snprintf(place, sizeof(place), "%.90s.%.60s", where, server.name);
                rc = read_server(&server, j, json_value(j, k), env, place, err);
                if (rc == 0)
                        rc = add_server(s, &server, err);
                if (rc < 0) {
                        server_release(&server);
                        return rc;
                }
        }
        return 0;
}

int mcp_servers_take(struct mcp_servers *s, struct mcp_servers *from, struct steno_error *err)
{
        for (size_t i = 0; i < from->count; i++) {
                int rc = add_server(s, &from->list[i], err);
                if (rc < 0)
                        return rc;
                memset(&from->list[i], 0, sizeof(from->list[i]));
        }
        return 0;
}
