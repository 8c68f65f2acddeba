/*
 * config.c - the layers of a configuration, read strictly and laid over each other.
 *
 * A steno.json that nobody has trusted is only looked at for the names of its keys, so that the
 * warning can say what was ignored. Nothing of it becomes part of a configuration.
 */
#include "loop/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/json_keys.h"
#include "base/limits.h"
#include "loop/trust.h"
#include "provider/provider.h"

/* Settings that are one value: a text, or a JSON object that is kept as it is. */
static const struct setting {
        const char *key;
        size_t at;      /* where the config has it, a char * */
        bool is_object; /* kept as JSON */
        bool flag;      /* config_override() may set it */
} settings[] = {
    {"provider", offsetof(struct config, provider), false, true},
    {"baseUrl", offsetof(struct config, base_url), false, true},
    {"apiKey", offsetof(struct config, api_key), false, true},
    {"model", offsetof(struct config, model), false, true},
    {"system", offsetof(struct config, system), false, true},
    {"toolCalls", offsetof(struct config, tool_calls), false, true},
    {"params", offsetof(struct config, params), true, false},
    {"upstreams", offsetof(struct config, upstreams), true, false},
    {"prices", offsetof(struct config, prices), true, false},
    {"responses", offsetof(struct config, responses), true, false},
    {"otlp", offsetof(struct config, otlp), true, false},
};

/* Settings that have a reader of their own. "$schema" is for editors. */
static const char *const lists[] = {
    "mcpServers", "permissions", "environment", "limits", "strict", "seal", "$schema"};

static const struct limit {
        const char *key;
        size_t at; /* in struct config_limits, a uint64_t */
        uint64_t max;
        uint64_t start; /* when no layer sets it */
} limits[] = {
    {"turns", offsetof(struct config_limits, turns), 1000000, 50},
    {"seconds", offsetof(struct config_limits, seconds), 365 * 86400, 0},
    {"tokens", offsetof(struct config_limits, tokens), UINT64_MAX / 2, 0},
    {"toolSeconds", offsetof(struct config_limits, tool_seconds), 86400, 600},
    {"commandSeconds", offsetof(struct config_limits, command_seconds), 86400, 600},
    {"commandMemoryMb", offsetof(struct config_limits, command_memory_mb), 1 << 24, 4096},
    {"commandCpuSeconds", offsetof(struct config_limits, command_cpu_seconds), 365 * 86400, 0},
    {"approvalSeconds", offsetof(struct config_limits, approval_seconds), 365 * 86400, 30},
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static char **setting_in(struct config *c, const struct setting *s)
{
        return (char **)((char *)c + s->at);
}

static uint64_t *limit_in(struct config_limits *l, const struct limit *row)
{
        return (uint64_t *)((char *)l + row->at);
}

int config_home(const char *const *env, char **path, struct steno_error *err)
{
        const char *xdg = env_get(env, "XDG_CONFIG_HOME");
        const char *home = env_get(env, "HOME");
        int n = -1;

        /* The XDG rules: a relative path is to be ignored. */
        if (xdg && xdg[0] == '/')
                n = asprintf(path, "%s/steno", xdg);
        else if (home && home[0] == '/')
                n = asprintf(path, "%s/.config/steno", home);
        else
                return error_set(
                    err, STENO_ENOTFOUND, "neither XDG_CONFIG_HOME nor HOME names a directory");
        return n < 0 ? error_nomem(err) : 0;
}

char *config_home_make(const char *const *env)
{
        char *home = NULL;

        if (config_home(env, &home, NULL))
                return NULL;
        for (char *p = home + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                mkdir(home, 0700);
                *p = '/';
        }
        mkdir(home, 0700);
        char *path = realpath(home, NULL);
        free(home);
        return path;
}

char *config_home_link(const char *const *env)
{
        char *home = NULL;
        struct stat st;

        if (config_home(env, &home, NULL))
                return NULL;
        for (char *p = home + 1; *p; p++) {
                if (*p != '/')
                        continue;
                *p = '\0';
                if (lstat(home, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid == geteuid())
                        return home;
                *p = '/';
        }
        free(home);
        return NULL;
}

static int read_all(int fd, const char *path, char **text, size_t *n, struct steno_error *err)
{
        char *p = malloc(CONFIG_FILE_MAX + 1);
        size_t have = 0;

        if (!p)
                return error_nomem(err);
        while (have <= CONFIG_FILE_MAX) {
                ssize_t got = read(fd, p + have, CONFIG_FILE_MAX + 1 - have);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0) {
                        int sys = errno;
                        free(p);
                        return error_sys(err, sys, "%.160s", path);
                }
                if (got == 0)
                        break;
                have += (size_t)got;
        }
        if (have > CONFIG_FILE_MAX) {
                free(p);
                return error_set(err, STENO_ELIMIT, "%.160s: larger than 1 MiB", path);
        }
        p[have] = '\0';
        *text = p;
        *n = have;
        return 0;
}

int config_slurp(const char *path, char **text, size_t *n, struct steno_error *err)
{
        struct stat st;
        /* A pipe or a device of that name must not block us. */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return error_set(err, STENO_ENOTFOUND, "%.160s: no such file", path);
        if (fd < 0)
                return error_sys(err, errno, "%.160s", path);
        int rc;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                rc = error_set(err, STENO_EINVAL, "%.160s: not a file", path);
        else
                rc = read_all(fd, path, text, n, err);
        close(fd);
        return rc;
}

/* ---- one file ---- */

static int read_limits(struct config_limits *l, const struct json *j, json_ref obj,
    const char *where, struct steno_error *err)
{
        const char *known[COUNT(limits) + 1] = {0};
        for (size_t i = 0; i < COUNT(limits); i++)
                known[i] = limits[i].key;
        int rc = json_keys_check(j, obj, known, where, err);
        for (size_t i = 0; rc == 0 && i < COUNT(limits); i++)
                rc = json_keys_number(
                    j, obj, limits[i].key, where, limits[i].max, limit_in(l, &limits[i]), err);
        return rc;
}

static int read_object(
    const struct json *j, const char *key, const char *where, char **out, struct steno_error *err)
{
        json_ref r = json_get(j, 0, key);

        if (r == JSON_NONE)
                return 0;
        if (json_type(j, r) != JSON_OBJECT)
                return error_set(err, STENO_EINVAL, "%s: \"%s\" must be an object", where, key);
        struct str raw = json_raw(j, r);
        *out = strndup(raw.p, raw.n);
        return *out ? 0 : error_nomem(err);
}

static int read_switch(const struct json *j, const char *key, const char *where,
    enum config_switch *out, struct steno_error *err)
{
        json_ref r = json_get(j, 0, key);
        enum json_type type = json_type(j, r);

        if (r == JSON_NONE)
                return 0;
        if (type != JSON_TRUE && type != JSON_FALSE)
                return error_set(
                    err, STENO_EINVAL, "%.120s: \"%s\" must be true or false", where, key);
        *out = type == JSON_TRUE ? CONFIG_ON : CONFIG_OFF;
        return 0;
}

#define KEYS_MAX (COUNT(settings) + COUNT(lists) + 1)

static void list_keys(const char *known[KEYS_MAX])
{
        size_t n = 0;
        for (size_t i = 0; i < COUNT(settings); i++)
                known[n++] = settings[i].key;
        for (size_t i = 0; i < COUNT(lists); i++)
                known[n++] = lists[i];
        known[n] = NULL;
}

static int check_keys(const struct json *j, const char *path, struct steno_error *err)
{
        const char *known[KEYS_MAX] = {0};
        list_keys(known);
        return json_keys_check(j, 0, known, path, err);
}

/* The loop's own members of a request are not a parameter: a "messages" there would replace the
 * conversation. */
static int check_params(const struct config *c, const char *path, struct steno_error *err)
{
        const char *taken = c->params ? provider_params_taken(str_of(c->params)) : NULL;
        return taken ? error_set(
                           err, STENO_EINVAL, "%.120s: \"params\" cannot set \"%s\"", path, taken)
                     : 0;
}

/* {"model": {"input": 0.25, "output": 2, "cached": 0.025}, ...}: dollars for a million tokens. */
static int check_prices(const struct json *j, const char *path, struct steno_error *err)
{
        static const char *const KINDS[] = {"input", "output", "cached", NULL};
        json_ref prices = json_get(j, 0, "prices");
        char where[160];
        int rc = 0;
        for (json_ref k = json_child(j, prices); rc == 0 && k != JSON_NONE;
             k = json_next_key(j, prices, k)) {
                json_ref model = json_value(j, k);
                double n;
                snprintf(where, sizeof where, "%.120s: prices", path);
                if (json_type(j, model) != JSON_OBJECT)
                        return error_set(err, STENO_EINVAL, "%s: each model has an object", where);
                rc = json_keys_check(j, model, KINDS, where, err);
                for (size_t i = 0; rc == 0 && KINDS[i]; i++) {
                        json_ref v = json_get(j, model, KINDS[i]);
                        if (v != JSON_NONE && (!json_double(j, v, &n) || n < 0))
                                rc = error_set(err, STENO_EINVAL,
                                    "%s: \"%s\" must be a number of dollars", where, KINDS[i]);
                }
        }
        return rc;
}

/* `env` NULL: do not expand variables. */
static int read_document(struct config *c, const struct json *j, const char *const *env,
    const char *path, struct steno_error *err)
{
        char where[160];
        json_ref r;
        int rc = check_keys(j, path, err);

        for (size_t i = 0; rc == 0 && i < COUNT(settings); i++) {
                char **out = setting_in(c, &settings[i]);
                rc = settings[i].is_object
                         ? read_object(j, settings[i].key, path, out, err)
                         : json_keys_string(j, 0, settings[i].key, path, out, err);
        }
        if (rc == 0)
                rc = check_params(c, path, err);
        if (rc == 0)
                rc = check_prices(j, path, err);
        if (rc == 0)
                rc = read_switch(j, "strict", path, &c->strict, err);
        if (rc == 0)
                rc = json_keys_strings(j, 0, "environment", path, &c->environment, err);
        if (rc == 0)
                rc = read_switch(j, "seal", path, &c->seal, err);
        snprintf(where, sizeof(where), "%.120s: limits", path);
        if (rc == 0 && (r = json_get(j, 0, "limits")) != JSON_NONE)
                rc = read_limits(&c->limits, j, r, where, err);
        snprintf(where, sizeof(where), "%.120s: permissions", path);
        if (rc == 0 && (r = json_get(j, 0, "permissions")) != JSON_NONE)
                rc = permission_rules_read(&c->rules, j, r, where, err);
        snprintf(where, sizeof(where), "%.120s: mcpServers", path);
        if (rc == 0 && (r = json_get(j, 0, "mcpServers")) != JSON_NONE)
                rc = mcp_servers_read(&c->servers, j, r, env, where, err);
        return rc;
}

static int read_text(struct config *c, struct str text, const char *const *env, const char *path,
    struct steno_error *err)
{
        struct json j;

        json_init(&j);
        int rc = json_parse(&j, text.p, text.n, NULL, err);
        if (rc < 0)
                rc = error_prefix(err, STENO_EINVAL, "%.100s", path);
        if (rc == 0)
                rc = read_document(c, &j, env, path, err);
        json_release(&j);
        return rc;
}

/* ---- laying layers over each other ---- */

static void replace(char **into, char **from)
{
        if (!*from)
                return;
        free(*into);
        *into = *from;
        *from = NULL;
}

static int add_names(struct config *c, struct config *from, struct steno_error *err)
{
        size_t have = 0, more = 0;

        while (c->environment && c->environment[have])
                have++;
        while (from->environment && from->environment[more])
                more++;
        if (more == 0)
                return 0;
        char **list = realloc(c->environment, (have + more + 1) * sizeof(*list));
        if (!list)
                return error_nomem(err);
        memcpy(list + have, from->environment, (more + 1) * sizeof(*list));
        c->environment = list;
        free(from->environment);
        from->environment = NULL;
        return 0;
}

/* The stronger layer's rules first: the first match wins. */
static int put_rules_first(struct config *c, struct config *from, struct steno_error *err)
{
        size_t n = from->rules.count, m = c->rules.count;

        if (n == 0)
                return 0;
        struct permission_rule *list = realloc(from->rules.list, (n + m) * sizeof(*list));
        if (!list)
                return error_nomem(err);
        if (m)
                memcpy(list + n, c->rules.list, m * sizeof(*list));
        free(c->rules.list);
        c->rules.list = list;
        c->rules.count = n + m;
        permission_rules_init(&from->rules);
        return 0;
}

static int lay_over(struct config *c, struct config *from, struct steno_error *err)
{
        for (size_t i = 0; i < COUNT(settings); i++)
                replace(setting_in(c, &settings[i]), setting_in(from, &settings[i]));
        for (size_t i = 0; i < COUNT(limits); i++) {
                uint64_t value = *limit_in(&from->limits, &limits[i]);
                if (value != UINT64_MAX)
                        *limit_in(&c->limits, &limits[i]) = value;
        }
        if (from->strict)
                c->strict = from->strict;
        if (from->seal != CONFIG_UNSET)
                c->seal = from->seal;
        int rc = add_names(c, from, err);
        if (rc == 0)
                rc = put_rules_first(c, from, err);
        if (rc == 0)
                rc = mcp_servers_take(&c->servers, &from->servers, err);
        return rc;
}

/* A layer that sets nothing. */
static void layer_init(struct config *c)
{
        memset(c, 0, sizeof(*c));
        memset(&c->limits, 0xFF, sizeof(c->limits));
}

static int add_file(struct config *c, const char *path, struct str text, const char *const *env,
    struct steno_error *err)
{
        struct config layer;

        layer_init(&layer);
        int rc = read_text(&layer, text, env, path, err);
        if (rc == 0)
                rc = lay_over(c, &layer, err);
        config_release(&layer);
        return rc;
}

/* ---- a file that is not trusted ---- */

/* Only known keys are named, because others are untrusted text. */
static void name_keys(const struct json *j, struct buf *names)
{
        const char *known[KEYS_MAX] = {0};
        size_t named = 0;

        list_keys(known);
        for (size_t i = 0; known[i]; i++) {
                if (json_get(j, 0, known[i]) == JSON_NONE)
                        continue;
                buf_printf(names, "%s%s", names->n ? ", " : "", known[i]);
                named++;
        }
        if (json_type(j, 0) == JSON_OBJECT && json_count(j, 0) > named)
                buf_printf(names, "%sunknown keys", names->n ? " and " : "");
}

/* What the user should do about a file that is ignored. */
static const char *trust_advice(const char *path)
{
        return trust_is_link(path)
                   ? "it is a symbolic link, which cannot be trusted: put a copy of "
                     "the file in its place, look at it, then run `steno trust`"
                   : "look at it, then run `steno trust`";
}

static int ignore_file(const char *path, struct str text, char **warnings, struct steno_error *err)
{
        struct json j;
        struct buf names;

        json_init(&j);
        buf_init(&names, 4096);
        int rc = json_parse(&j, text.p, text.n, NULL, err);
        if (rc == 0)
                name_keys(&j, &names);
        if (rc < 0 && rc != STENO_ENOMEM) {
                buf_puts(&names, "the whole text, which is not JSON");
                rc = 0;
        }
        const char *list = buf_cstr(&names);
        if (rc == 0 && names.n &&
            (!list || asprintf(warnings, "%s is not trusted, so these are ignored: %s; %s", path,
                          list, trust_advice(path)) < 0))
                rc = error_nomem(err);
        buf_release(&names);
        json_release(&j);
        return rc;
}

static int add_project(
    struct config *c, const struct config_sources *from, const char *home, struct steno_error *err)
{
        struct steno_error ignored = {0};
        char *path = NULL, *text = NULL;
        size_t n;

        if (asprintf(&path, "%s/steno.json", from->directory) < 0)
                return error_nomem(err);
        /* Read once: what is hashed is what is parsed. */
        int rc = config_slurp(path, &text, &n, &ignored);
        if (rc && rc != STENO_ENOTFOUND && rc != STENO_ENOMEM) {
                /* In its present state it cannot have been trusted, so it is ignored like any
                 * untrusted file. */
                rc = asprintf(&c->warnings, "%s; it is ignored", ignored.msg) < 0 ? error_nomem(err)
                                                                                  : STENO_ENOTFOUND;
        } else if (rc == STENO_ENOMEM) {
                error_nomem(err);
        }
        if (rc == 0) {
                struct str whole = str_span(text, n);
                rc = home && trust_holds(home, path, whole, &ignored)
                         ? add_file(c, path, whole, from->env, err)
                         : ignore_file(path, whole, &c->warnings, err);
        }
        free(text);
        free(path);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

/* ---- all of it ---- */

static int add_user(
    struct config *c, const struct config_sources *from, const char *home, struct steno_error *err)
{
        char *path = NULL, *text = NULL;
        size_t n;

        if (asprintf(&path, "%s/config.json", home) < 0)
                return error_nomem(err);
        int rc = config_slurp(path, &text, &n, err);
        if (rc == 0)
                rc = add_file(c, path, str_span(text, n), from->env, err);
        free(text);
        free(path);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

static int take_variable(struct config *c, const char *const *env, const char *name,
    const char *key, struct steno_error *err)
{
        const char *value = name ? env_get(env, name) : NULL;
        return value && *value ? config_override(c, key, value, err) : 0;
}

/* The provider comes first: its row says where its URL and its key are. */
static int add_environment(
    struct config *c, const struct config_sources *from, struct steno_error *err)
{
        const struct provider *p = NULL;
        int rc = take_variable(c, from->env, "STENO_PROVIDER", "provider", err);
        if (rc == 0 && from->provider)
                rc = config_override(c, "provider", from->provider, err);
        if (rc == 0)
                rc = provider_find(c->provider, &p, err);
        if (rc == 0)
                rc = take_variable(c, from->env, p->url_variable, "baseUrl", err);
        if (rc == 0)
                rc = take_variable(c, from->env, p->key_variable, "apiKey", err);
        if (rc == 0)
                rc = take_variable(c, from->env, "STENO_MODEL", "model", err);
        return rc;
}

int config_load(struct config *c, const struct config_sources *from, struct steno_error *err)
{
        struct config loaded = {0};
        char *home = NULL;
        int rc = config_home(from->env, &home, err);

        for (size_t i = 0; i < COUNT(limits); i++)
                *limit_in(&loaded.limits, &limits[i]) = limits[i].start;
        if (rc == STENO_ENOTFOUND)
                rc = 0;
        if (rc == 0 && home)
                rc = add_user(&loaded, from, home, err);
        if (rc == 0 && from->directory)
                rc = add_project(&loaded, from, home, err);
        if (rc == 0)
                rc = add_environment(&loaded, from, err);
        if (rc == 0)
                *c = loaded;
        else
                config_release(&loaded);
        free(home);
        return rc;
}

int config_override(struct config *c, const char *key, const char *value, struct steno_error *err)
{
        for (size_t i = 0; i < COUNT(settings); i++) {
                if (!settings[i].flag || strcmp(key, settings[i].key) != 0)
                        continue;
                char *copy = strdup(value);
                if (!copy)
                        return error_nomem(err);
                free(*setting_in(c, &settings[i]));
                *setting_in(c, &settings[i]) = copy;
                return 0;
        }
        return error_set(err, STENO_EINVAL, "%.60s cannot be set by a flag", key);
}

void config_release(struct config *c)
{
        for (size_t i = 0; i < COUNT(settings); i++)
                free(*setting_in(c, &settings[i]));
        mcp_servers_release(&c->servers);
        permission_rules_release(&c->rules);
        json_keys_free_list(c->environment);
        free(c->warnings);
        memset(c, 0, sizeof(*c));
}
