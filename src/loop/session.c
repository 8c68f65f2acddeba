/*
 * session.c - configuration, tools and rules put together (session.h).
 */
#include "loop/session.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"
#include "exec/exec.h"
#include "exec/exec_tool.h"
#include "mcp/mcp_tools.h"

#define LOOK_FOR_STOP_MS 50

static int override(struct config *c, const char *key, const char *value, struct steno_error *err)
{
        return value ? config_override(c, key, value, err) : 0;
}

static int read_config(
    struct session *s, const struct session_options *opt, struct steno_error *err)
{
        struct config_sources from = {opt->env, s->directory, opt->provider};
        int rc = config_load(&s->config, &from, err);
        if (rc)
                return rc;
        rc = override(&s->config, "baseUrl", opt->base_url, err);
        if (rc == 0)
                rc = override(&s->config, "model", opt->model, err);
        if (rc == 0)
                rc = override(&s->config, "system", opt->system, err);
        if (rc == 0)
                rc = override(&s->config, "toolCalls", opt->tool_calls, err);
        const char *calls = s->config.tool_calls;
        if (rc == 0 && calls && strcmp(calls, "text") != 0 && strcmp(calls, "native") != 0)
                rc = error_set(
                    err, STENO_EINVAL, "toolCalls is \"native\" or \"text\", not \"%.40s\"", calls);
        if (opt->strict)
                s->config.strict = CONFIG_ON;
        if (s->config.warnings)
                buf_puts(&s->warnings, s->config.warnings);
        s->permission.rules = s->config.rules;
        permission_rules_init(&s->config.rules);
        return rc;
}

/* Warns once, before the first command, about everything from which this machine cannot keep
 * commands away. */
static void warn_of_gaps(struct session *s)
{
        static const struct {
                unsigned gap;
                const char *words;
        } rows[] = {
            {EXEC_GAP_FILES, "the store and the configuration, which only file modes protect"},
            {EXEC_GAP_SIGNALS, "signals to other processes of the same user, steno included"},
            {EXEC_GAP_LIMITS, "limits and priorities of these processes"},
            {EXEC_GAP_MACHINE, "the devices of this machine and the settings of its kernel"},
        };
        static const char *const argv[] = {"true", NULL};
        static const char *const env[] = {NULL};
        struct exec_spec spec = {
            .argv = argv, .env = env, .directory = s->directory, .hidden = s->hidden};
        struct exec_options opt = {.stop_fd = -1};
        struct exec_result r;
        bool told = false;

        if (exec_run(&spec, &opt, &r, NULL) < 0)
                return;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                if (!(r.gaps & rows[i].gap))
                        continue;
                buf_printf(&s->warnings, "%s%s", told ? "; " : "commands are not kept away from  ",
                    rows[i].words);
                told = true;
        }
        if (told)
                buf_puts(&s->warnings, " (nothing on this machine can do it)\n");
}

static int add_commands(
    struct session *s, const struct session_options *opt, struct steno_error *err)
{
        const struct config *c = &s->config;
        const char *const *names = (const char *const *)c->environment;
        struct exec_tool_options commands = {
            .directory = s->directory,
            .env = opt->env,
            .environment = names,
            .hidden = s->hidden,
            .timeout_ms = c->limits.command_seconds * 1000,
            .memory_bytes = c->limits.command_memory_mb * MIB,
            .cpu_seconds = c->limits.command_cpu_seconds,
            .visitors = permission_rules_open(&s->permission.rules),
        };
        exec_conceal();
        warn_of_gaps(s);
        return exec_tool_add(&s->tools, &commands, err);
}

static void release_servers(void *servers)
{
        mcp_servers_release(servers);
        free(servers);
}

/* A call that was left behind reads its server's settings after the session was closed. */
static int hand_over_servers(struct session *s, struct mcp_servers **out, struct steno_error *err)
{
        struct mcp_servers *servers = malloc(sizeof(*servers));
        if (!servers)
                return error_nomem(err);
        *servers = s->config.servers;
        s->config.servers = (struct mcp_servers){0};
        int rc = toolset_own(&s->tools, servers, release_servers, err);
        if (rc == 0)
                *out = servers;
        return rc;
}

static int add_servers(struct session *s, struct buf *warnings, struct steno_error *err)
{
        const char *const *names = (const char *const *)s->config.environment;
        struct mcp_servers *servers = NULL;
        int rc = s->config.servers.count ? hand_over_servers(s, &servers, err) : 0;
        if (rc || !servers)
                return rc;
        exec_conceal();
        struct mcp_tools_options opt = {
            .servers = servers->list,
            .count = servers->count,
            .host = {s->opened_with.env, toolset_strings(&s->tools, names),
                toolset_strings(&s->tools, s->hidden)},
            .stop = s->stop,
        };
        if (!opt.host.environment || !opt.host.hidden)
                return error_nomem(err);
        return mcp_tools_add(&s->tools, &opt, warnings, err);
}

static char *guarded_config(struct session *s, const struct session_options *opt)
{
        char *path = config_home_make(opt->env);
        char *link = path ? config_home_link(opt->env) : NULL;

        if (link)
                buf_printf(&s->warnings,
                    "%s is a symbolic link, which commands can replace: the configuration behind "
                    "it is not protected from them\n",
                    link);
        free(link);
        return path;
}

static int pick_visitor_tools(struct session *s, struct steno_error *err)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < s->tools.count; i++)
                if (s->tools.list[i].flags & TOOL_VISITORS)
                        rc = toolset_add(&s->visitor_tools, &s->tools.list[i], err);
        return rc;
}

/* The tools that stand behind those of servers. */
static int add_rest(struct session *s, struct steno_error *err)
{
        int rc = steno_tools_add_context(&s->tools, err);
        return rc ? rc : pick_visitor_tools(s, err);
}

/* ---- servers that are started meanwhile ---- */

static void tell_lines(const struct session_options *opt, char *z)
{
        while (z && *z) {
                size_t n = strcspn(z, "\n");
                bool more = z[n] == '\n';
                z[n] = '\0';
                if (n)
                        opt->warn(opt->warn_ctx, z);
                z += n + more;
        }
}

static void *start_servers(void *arg)
{
        struct session *s = arg;
        struct steno_error err = {0};
        struct buf warnings;
        buf_init(&warnings, 1 * MIB);
        int rc = add_servers(s, &warnings, &err);
        if (rc)
                buf_printf(&warnings, "MCP servers: %s\n", err.msg);
        rc = add_rest(s, &err);
        if (rc)
                buf_printf(&warnings, "the context tools are missing: %s\n", err.msg);
        bool ended = steno_stop_requested(s->stop);
        if (!ended && s->opened_with.warn) {
                char *text = buf_take(&warnings, NULL);
                tell_lines(&s->opened_with, text);
                free(text);
        }
        pthread_mutex_lock(&s->mutex);
        if (!ended && !s->opened_with.warn)
                buf_put_str(&s->late_warnings, buf_str(&warnings));
        s->ready = true;
        pthread_cond_broadcast(&s->change);
        pthread_mutex_unlock(&s->mutex);
        buf_release(&warnings);
        return NULL;
}

/* If a server does not answer within its whole time limit, only turns may wait for it, because they
 * must know all tools. */
static int start_meanwhile(struct session *s, struct steno_error *err)
{
        sigset_t all, before;
        int rc = steno_stop_new(&s->stop, err);
        if (rc)
                return rc;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        s->ready = false;
        s->starts = pthread_create(&s->starter, NULL, start_servers, s) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return s->starts ? 0 : error_nomem(err);
}

bool session_is_ready(struct session *s)
{
        pthread_mutex_lock(&s->mutex);
        bool ready = s->ready;
        pthread_mutex_unlock(&s->mutex);
        return ready;
}

/* False when the turn was stopped before. */
static bool await_servers(struct session *s, const struct steno_stop *stop)
{
        pthread_mutex_lock(&s->mutex);
        while (!s->ready && !steno_stop_requested(stop))
                wait_for(&s->change, &s->mutex, LOOK_FOR_STOP_MS);
        bool ready = s->ready;
        pthread_mutex_unlock(&s->mutex);
        return ready;
}

int session_open(struct session *s, const struct session_options *opt, struct steno_error *err)
{
        *s = (struct session){.opened_with = *opt, .ready = true};
        pthread_mutex_init(&s->mutex, NULL);
        wait_init(&s->change);
        toolset_init(&s->tools);
        toolset_init(&s->visitor_tools);
        buf_init(&s->warnings, 1 * MIB);
        buf_init(&s->late_warnings, 1 * MIB);
        s->directory = opt->directory ? strdup(opt->directory) : NULL;
        s->store_path = opt->store_path ? realpath(opt->store_path, NULL) : NULL;
        s->config_path = opt->no_tools ? NULL : guarded_config(s, opt);
        s->hidden[0] = s->store_path ? s->store_path : s->config_path;
        s->hidden[1] = s->store_path ? s->config_path : NULL;
        int rc = opt->directory && !s->directory ? error_nomem(err) : read_config(s, opt, err);
        if (rc == 0 && !opt->no_tools)
                rc = add_commands(s, opt, err);
        if (rc == 0 && !opt->no_tools && s->config.servers.count)
                rc = start_meanwhile(s, err);
        else if (rc == 0)
                rc = add_rest(s, err);
        if (rc)
                session_close(s);
        return rc;
}

static void fill(const char **to, const char *from)
{
        if (!*to)
                *to = from;
}

static uint32_t milliseconds(uint64_t seconds)
{
        return seconds > UINT32_MAX / 1000 ? UINT32_MAX : (uint32_t)(seconds * 1000);
}

/* All but the tools. */
static void fill_rest(struct session *s, struct steno_loop_options *opt)
{
        const struct config *c = &s->config;
        fill(&opt->provider, c->provider);
        fill(&opt->base_url, c->base_url);
        fill(&opt->api_key, c->api_key);
        fill(&opt->model, c->model);
        fill(&opt->system, c->system);
        fill(&opt->params_json, c->params);
        if (c->tool_calls && strcmp(c->tool_calls, "text") == 0)
                opt->flags |= STENO_LOOP_TEXT_CALLS;
        if (c->strict == CONFIG_ON)
                opt->flags |= STENO_LOOP_STRICT;
        if (!opt->permit) {
                opt->permit = permission_decide;
                opt->permit_ctx = &s->permission;
        }
        if (c->seal == CONFIG_ON)
                opt->flags |= STENO_LOOP_SEAL;
        if (!opt->max_turns)
                opt->max_turns = (uint32_t)c->limits.turns;
        if (!opt->max_ms)
                opt->max_ms = milliseconds(c->limits.seconds);
        if (!opt->max_tokens)
                opt->max_tokens = c->limits.tokens;
        if (!opt->tool_ms)
                opt->tool_ms = milliseconds(c->limits.tool_seconds);
}

void session_fill(struct session *s, struct steno_loop_options *opt)
{
        if (!opt->tools && await_servers(s, opt->stop))
                opt->tools = &s->tools;
        fill_rest(s, opt);
}

void session_fill_visitor(struct session *s, struct steno_loop_options *opt)
{
        opt->tools = await_servers(s, opt->stop) ? &s->visitor_tools : NULL;
        opt->permit = permission_decide_visitor;
        opt->permit_ctx = &s->permission;
        opt->ask = NULL;
        fill_rest(s, opt);
}

void session_stop_starting(struct session *s)
{
        if (s->stop)
                steno_stop_request(s->stop);
}

void session_close(struct session *s)
{
        session_stop_starting(s);
        if (s->starts)
                pthread_join(s->starter, NULL);
        steno_stop_free(s->stop);
        pthread_mutex_destroy(&s->mutex);
        pthread_cond_destroy(&s->change);
        toolset_release(&s->visitor_tools);
        toolset_release(&s->tools);
        permission_release(&s->permission);
        config_release(&s->config);
        buf_release(&s->warnings);
        buf_release(&s->late_warnings);
        free(s->directory);
        free(s->store_path);
        free(s->config_path);
        *s = (struct session){0};
}
