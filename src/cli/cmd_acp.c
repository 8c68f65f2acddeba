/*
 * cmd_acp.c - steno acp: records an ACP agent, as a proxy between it and its client.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acp/acp.h"
#include "base/error.h"
#include "base/file_url.h"
#include "base/state_folder.h"
#include "cli/command.h"
#include "cli/interrupt.h"

struct acp_opts {
        bool no_mcp;
        bool recover;
};

static void warn(void *ctx, const char *text)
{
        cli_warn(ctx, text);
}

/* What killed recorders left, without an agent. */
static int recover(struct cli *c, const char *path)
{
        struct steno_error err = {0};
        uint64_t count = 0;
        if (acp_recover(c->store, path, &count, &err))
                return cli_fail(c, &err);
        cli_say(c, "%llu %s completed", (unsigned long long)count,
            count == 1 ? "recording was" : "recordings were");
        return EXIT_DONE;
}

static void warn_unrecorded(struct cli *c, const char *path)
{
        struct buf text;
        buf_init(&text, 0);
        buf_printf(&text,
            "a part of the session could not be recorded; all messages of it are in %s/acp", path);
        cli_warn(c, buf_cstr(&text));
        buf_release(&text);
}

static int run_agent(struct cli *c, const struct acp_opts *o, char **argv, const char *path)
{
        struct steno_error err = {0};
        struct acp_result result = {0};
        const char *url = cli_store_url(c);
        bool has_folder = file_url_is(url) || !strstr(url, "://");
        char *program = o->no_mcp ? NULL : realpath("/proc/self/exe", NULL);
        struct acp_options opt = {.store = c->store,
            .path = path,
            .project = c->project ? c->project : "default",
            .program = program,
            .url = has_folder ? path : url,
            .argv = argv,
            .in = STDIN_FILENO,
            .out = STDOUT_FILENO,
            .stopped = interrupt_pending,
            .warn = warn,
            .warn_ctx = c};
        interrupt_patience(1000);
        int rc = acp_run(&opt, &result, &err);
        free(program);
        if (result.unrecorded)
                warn_unrecorded(c, path);
        if (rc == STENO_ENOTFOUND || rc == STENO_EDENIED)
                return cli_refuse(c, rc == STENO_EDENIED ? 126 : 127, "%s", err.msg);
        if (rc)
                return cli_fail(c, &err);
        if (interrupt_is_term())
                interrupt_obeyed(); /* clients end an agent that way */
        return WIFSIGNALED(result.status) ? 128 + WTERMSIG(result.status)
                                          : WEXITSTATUS(result.status);
}

static int run_acp(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct acp_opts *o = opts;
        if (argc == 0 && !o->recover)
                return cli_usage(c, "no agent given; for example: steno acp -- gemini --acp");
        if (argc && o->recover)
                return cli_usage(c, "--recover runs no agent");
        argv[argc] = NULL;
        int rc = cli_open_store(c, o->recover ? CLI_MUST_EXIST : CLI_CREATE);
        if (rc)
                return rc;
        struct steno_error err = {0};
        char *folder = NULL, *path = NULL;
        rc = state_folder(cli_store_url(c), &folder, &err);
        if (rc == 0 && !(path = realpath(folder, NULL)))
                rc = error_set(&err, STENO_EIO, "%.150s cannot be found", folder);
        if (rc)
                rc = cli_fail(c, &err);
        else
                rc = o->recover ? recover(c, path) : run_agent(c, o, argv, path);
        free(folder);
        free(path);
        return rc;
}

static const struct opt acp_table[] = {
    {"no-mcp", 0, OPT_FLAG, NULL, offsetof(struct acp_opts, no_mcp),
        "do not give the agent Steno's MCP server"},
    {"recover", 0, OPT_FLAG, NULL, offsetof(struct acp_opts, recover),
        "finish the recordings of recorders that were killed, and end"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_acp = {
    .name = "acp",
    .group = GROUP_RECORD,
    .usage = "[--no-mcp] -- AGENT ARGV... | --recover",
    .summary = "records an ACP agent, as a proxy between it and its editor",
    .detail =
        "Speaks the Agent Client Protocol on standard input and output, and passes on every\n"
        "message of the editor and the agent unchanged. Each session becomes a conversation, with\n"
        "the whole output of every terminal. The agent gets Steno's MCP server, so that it can\n"
        "read its own record. In the editor's settings, replace the agent's command by this one.\n"
        "The exit code is the agent's.",
    .example = "steno acp -- gemini --acp\n"
               "steno ls",
    .opts = acp_table,
    .opts_size = sizeof(struct acp_opts),
    .max_args = -1,
    .run = run_acp,
};
