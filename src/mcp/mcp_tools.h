/*
 * mcp_tools.h - the tools of MCP servers as tools of the loop.
 */
#ifndef MCP_MCP_TOOLS_H
#define MCP_MCP_TOOLS_H

#include "mcp/mcp_client.h"
#include "tool/tool.h"

struct mcp_tools_options {
        const struct mcp_server *servers;
        size_t count;
        struct mcp_host host;
        uint64_t start_ms;             /* time limit for a server to start; 0: 30 s */
        const struct steno_stop *stop; /* may be NULL */
};

/*
 * Starts all servers at once and adds their tools, in the order of the config. A server that
 * cannot be used is left out; *warnings (may be NULL) gets a line about each. The set ends the
 * servers when it is released, or when the last call that was left behind returns: so the set must
 * own `servers` and what the host points at, or they must outlive all calls.
 */
int mcp_tools_add(struct steno_tools *set, const struct mcp_tools_options *opt,
    struct buf *warnings, struct steno_error *err);

#endif
