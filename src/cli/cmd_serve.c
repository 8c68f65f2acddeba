/*
 * cmd_serve.c - steno serve: the server with its page, until Ctrl-C or SIGTERM.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wait.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "loop/session.h"
#include "http/server.h"
#include "loop/sealkey.h"

struct serve_opts {
        const char *listen;
        struct opt_list hosts;
        bool allow_remote;
        const char *public_project;
        const char *log;
        const char *provider;
        const char *base_url;
        const char *model;
        const char *script;
        bool no_tools;
        const char *tools_as;
        bool strict;
};

static int announce(struct cli *c, const struct server *s)
{
        if (c->json) {
                out_printf(&c->out, "{\"address\":\"%s\",\"port\":%d}\n", server_address(s),
                    server_port(s));
        } else {
                out_printf(&c->out, "%s\n", server_address(s));
        }
        return out_flush(&c->out);
}

/* The store as people may see it: the password of a URL is left out. */
static void show_store(struct cli *c, const char *url)
{
        const char *user = strstr(url, "://");
        const char *at = user ? strchr(user + 3, '@') : NULL;
        const char *colon = at ? memchr(user + 3, ':', (size_t)(at - user) - 3) : NULL;
        if (colon)
                cli_say(c, "serving %.*s:...%s; open the address above; Ctrl-C stops the server",
                    (int)(colon - url), url, at);
        else
                cli_say(c, "serving %s; open the address above; Ctrl-C stops the server", url);
}

static int serve_until_signal(struct cli *c, const struct server_options *opt)
{
        struct steno_error err = {0};
        struct server *s;
        if (server_start(opt, &s, &err))
                return cli_fail(c, &err);
        show_store(c, opt->store);
        int rc = announce(c, s);
        while (!interrupt_pending() && rc == 0)
                wait_sleep(100);
        server_stop(s);
        if (interrupt_is_term())
                interrupt_obeyed(); /* stopping a service is not a failure of it */
        return rc;
}

static int read_script(struct cli *c, const char *path, char **text)
{
        struct steno_error err = {0};
        size_t n;
        *text = NULL;
        return path && config_slurp(path, text, &n, &err) ? cli_fail(c, &err) : 0;
}

static void say_warning(void *ctx, const char *line)
{
        cli_say(ctx, "steno: warning: %s", line);
}

static int run_serve(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct serve_opts *o = opts;
        struct steno_error err = {0};
        struct session session;
        const char *hosts[OPT_LIST_MAX + 1] = {0};
        (void)argc, (void)argv;
        const char *url = cli_store_url(c);
        if (!url)
                return cli_refuse(c, EXIT_IO, "out of memory");
        for (size_t i = 0; i < o->hosts.n; i++)
                hosts[i] = o->hosts.v[i];
        char *script = NULL, *key = NULL;
        int rc = sealkey_load((const char *const *)environ, &key, &err);
        if (rc != 0 && rc != STENO_ENOTFOUND)
                return cli_fail(c, &err);
        rc = cli_open_store(c, CLI_CREATE); /* made before the session hides its path */
        if (rc == 0)
                rc = read_script(c, o->script, &script);
        if (rc != 0) {
                sealkey_free(key);
                return rc;
        }
        struct session_options so = {.env = (const char *const *)environ,
            .directory = ".",
            .store_path = cli_store_folder(c),
            .no_tools = o->no_tools,
            .tool_calls = o->tools_as,
            .strict = o->strict,
            .provider = o->script ? "script" : o->provider,
            .base_url = o->base_url,
            .model = o->model,
            .warn = say_warning,
            .warn_ctx = c};
        if (session_open(&session, &so, &err)) {
                sealkey_free(key);
                free(script);
                return cli_fail(c, &err);
        }
        if (session.warnings.n)
                cli_say(c, "%.*s", (int)session.warnings.n, session.warnings.p);
        struct server_options opt = {.store = url,
            .listen = o->listen ? o->listen : "127.0.0.1:7717",
            .hosts = hosts,
            .allow_remote = o->allow_remote,
            .public_project = o->public_project,
            .log_path = o->log     ? o->log
                        : c->quiet ? ""
                                   : NULL,
            .script = script,
            .seal_key = key,
            .session = &session,
            .upstreams = session.config.upstreams,
            .responses = session.config.responses,
            .otlp = session.config.otlp,
            .env = (const char *const *)environ};
        rc = serve_until_signal(c, &opt);
        session_close(&session);
        sealkey_free(key);
        free(script);
        return rc;
}

static const struct opt serve_table[] = {
    {"listen", 0, OPT_TEXT, "ADDR:PORT", offsetof(struct serve_opts, listen),
        "the address to listen on, 127.0.0.1:7717 by default; port 0 takes a free port"},
    {"host", 0, OPT_LIST, "NAME", offsetof(struct serve_opts, hosts),
        "accept this name in the header Host, too; can be repeated"},
    {"allow-remote", 0, OPT_FLAG, NULL, offsetof(struct serve_opts, allow_remote),
        "allow an address that is not loopback"},
    {"public", 0, OPT_TEXT, "PROJECT", offsetof(struct serve_opts, public_project),
        "let visitors without a token chat in this project"},
    {"log", 0, OPT_TEXT, "FILE", offsetof(struct serve_opts, log),
        "access log, one line of JSON for each request; standard error by default"},
    {"provider", 0, OPT_TEXT, "NAME", offsetof(struct serve_opts, provider),
        "the API of the endpoint: openai, responses, anthropic, script ($STENO_PROVIDER)"},
    {"base-url", 0, OPT_TEXT, "URL", offsetof(struct serve_opts, base_url),
        "the model's endpoint; $OPENAI_BASE_URL by default"},
    {"model", 0, OPT_TEXT, "NAME", offsetof(struct serve_opts, model), "the model to ask"},
    {"script", 0, OPT_TEXT, "FILE", offsetof(struct serve_opts, script),
        "a scripted model instead of a real one"},
    {"no-tools", 0, OPT_FLAG, NULL, offsetof(struct serve_opts, no_tools),
        "give the model neither commands nor MCP servers"},
    {"tools-as", 0, OPT_TEXT, "native|text", offsetof(struct serve_opts, tools_as),
        "text is for models without function calling"},
    {"strict", 0, OPT_FLAG, NULL, offsetof(struct serve_opts, strict),
        "send only members that the provider's own types have"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_serve = {
    .name = "serve",
    .group = GROUP_SERVE,
    .usage = "",
    .summary = "serves the store and its page, and prints the address to open",
    .detail =
        "The printed address has a token in its fragment; every request needs one (steno token).\n"
        "On SIGTERM the server completes the requests that it has accepted, and ends.",
    .example = "steno serve\n"
               "steno serve --listen 127.0.0.1:0 --json",
    .opts = serve_table,
    .opts_size = sizeof(struct serve_opts),
    .run = run_serve,
};
