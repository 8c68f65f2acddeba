/*
 * mcp_name.h - the names under which servers' tools are offered to a model.
 *
 * Servers may use letters, digits, and . _ - up to 128; OpenAI-compatible endpoints reject a dot
 * and more than 64. A tool T of server S is offered as mcp__S__T, every other character becoming _;
 * where that is too long or taken, it is cut and a hash of the raw names is appended. Names are
 * never parsed: the code that makes one remembers what it stands for.
 */
#ifndef MCP_MCP_NAME_H
#define MCP_MCP_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define MCP_NAME_MAX 64

/*
 * The first free name for (server, tool). `taken` says whether a name is in use. The same names in
 * the same order always give the same result. False when even the hashed one is taken: the same
 * tool twice.
 */
bool mcp_name_offer(const char *server, const char *tool,
    bool (*taken)(void *ctx, const char *name), void *ctx, char out[MCP_NAME_MAX + 1]);

#endif
