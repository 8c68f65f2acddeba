/*
 * mcp_driver.c - an MCP client for suites that bring their own server: mcp_driver TOOL ARGS URL
 * lists the server's tools with their schemas, calls one, and prints its answer. TOOL "-" calls
 * none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/fake_call.h"
#include "mcp/mcp_tools.h"

extern char **environ;

int main(int argc, char **argv)
{
        struct mcp_server server = {.name = "s"};
        struct mcp_tools_options opt = {.servers = &server, .count = 1};
        struct steno_error err = {0};
        struct steno_tools set;
        struct buf warnings;
        struct fake_call f;
        char name[128];

        if (argc < 4)
                return 2;
        server.url = argv[argc - 1];
        opt.host.env = (const char *const *)environ;
        toolset_init(&set);
        buf_init(&warnings, MIB);
        int rc = mcp_tools_add(&set, &opt, &warnings, &err);
        if (rc == 0 && warnings.n) {
                fprintf(stderr, "%s", buf_cstr(&warnings));
                rc = -1;
        }
        for (size_t i = 0; i < set.count; i++)
                printf(
                    "%s %.*s\n", set.list[i].name, (int)set.list[i].schema.n, set.list[i].schema.p);
        fake_init(&f);
        snprintf(name, sizeof(name), "mcp__s__%s", argv[1]);
        if (rc == 0 && strcmp(argv[1], "-") != 0) {
                rc = fake_run(&f, &set, name, argv[2]);
                printf("%d %s\n%s\n", rc, f.err.msg, fake_text(&f));
        }
        fake_release(&f);
        buf_release(&warnings);
        toolset_release(&set);
        return rc == 0 ? 0 : 1;
}
