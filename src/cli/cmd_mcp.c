/*
 * cmd_mcp.c - steno mcp: the MCP server on standard input and output.
 */
#include <unistd.h>

#include "base/wait.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "http/server.h"
#include "mcpd/mcpd.h"

struct mcp_opts {
        const char *conversation;
        bool read_only;
        bool create;
        bool conformance;
        const char *listen;
};

/* The fixtures over HTTP, until a signal. */
static int serve_fixtures(struct cli *c, const char *listen)
{
        struct steno_error err = {0};
        struct server *s;
        struct server_options o = {
            .listen = listen ? listen : "127.0.0.1:0", .log_path = "", .fixtures = true};
        if (server_start(&o, &s, &err))
                return cli_fail(c, &err);
        out_printf(&c->out, "%s\n", server_address(s));
        int rc = out_flush(&c->out);
        while (!interrupt_pending() && rc == 0)
                wait_sleep(100);
        server_stop(s);
        if (interrupt_is_term())
                interrupt_obeyed();
        return rc;
}

static int run_mcp(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct mcp_opts *o = opts;
        struct steno_error err = {0};
        (void)argc, (void)argv;
        if (o->conformance)
                return o->conversation || o->read_only
                           ? cli_usage(c, "--conformance uses no store, so it takes neither "
                                          "--conversation nor --read-only")
                           : serve_fixtures(c, o->listen);
        if (o->listen)
                return cli_usage(
                    c, "--listen needs --conformance; for MCP over HTTP use steno serve");
        if (!o->conversation && !o->read_only)
                return cli_usage(c, "no conversation given: use --conversation ID, or --project P "
                                    "--read-only for all of a project");
        if (o->conversation && o->read_only)
                return cli_usage(c, "--read-only is for a whole project, --conversation for one "
                                    "conversation: use one of them");
        if (o->create && !o->conversation)
                return cli_usage(c, "--create needs --conversation");
        int rc = o->create         ? cli_make_conv(c, o->conversation)
                 : o->conversation ? cli_open_conv(c, o->conversation)
                                   : cli_open_store(c, CLI_MUST_EXIST);
        if (rc)
                return rc;
        struct mcpd_scope scope = {
            .store = c->store, .project = c->project, .conversation = o->conversation};
        if (mcpd_serve_stdio(&scope, STDIN_FILENO, STDOUT_FILENO, interrupt_pending, &err))
                return cli_fail(c, &err);
        if (interrupt_is_term())
                interrupt_obeyed(); /* clients end a server that way */
        return EXIT_DONE;
}

static const struct opt mcp_table[] = {
    {"conversation", 0, OPT_TEXT, "CONV", offsetof(struct mcp_opts, conversation),
        "the conversation that the client reads"},
    {"create", 0, OPT_FLAG, NULL, offsetof(struct mcp_opts, create),
        "make the conversation if it does not exist"},
    {"read-only", 0, OPT_FLAG, NULL, offsetof(struct mcp_opts, read_only),
        "every conversation of the project (--project)"},
    {"conformance", 0, OPT_FLAG, NULL, offsetof(struct mcp_opts, conformance),
        "serve the fixtures of MCP's conformance suite over HTTP, without a store and a token"},
    {"listen", 0, OPT_TEXT, "ADDR:PORT", offsetof(struct mcp_opts, listen),
        "with --conformance: the address to listen on; a free port by default"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_mcp = {
    .name = "mcp",
    .group = GROUP_SERVE,
    .usage = "--conversation CONV [--create] | --read-only",
    .summary = "runs an MCP server on standard input and output",
    .detail =
        "Gives an MCP client the context_* tools, conversation_read, and the stored outputs as\n"
        "resources. The client can read only the conversation that is named here, or with\n"
        "--read-only those of one project. No tool writes anything. steno serve offers the same\n"
        "at POST /mcp?conversation=CONV.",
    .example = "steno mcp --conversation demo\n"
               "steno --project work mcp --read-only",
    .opts = mcp_table,
    .opts_size = sizeof(struct mcp_opts),
    .run = run_mcp,
};
