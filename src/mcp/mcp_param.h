/*
 * mcp_param.h - parameters of a tool that a request over HTTP repeats in headers.
 *
 * Since 2026-07-28 a property of a tool's schema may have "x-mcp-header": a name. Its value then
 * also stands in the header Mcp-Param-NAME, where proxies can see it.
 */
#ifndef MCP_MCP_PARAM_H
#define MCP_MCP_PARAM_H

#include <stdbool.h>

#include "base/str.h"

#define MCP_PARAM_NAME 128

/* Are the names of a schema's headers legal? A tool whose are not must not be offered. */
bool mcp_param_legal(struct str schema);
/* Each parameter that is to be repeated and has a value in `args`. Both are JSON objects. */
void mcp_param_each(struct str schema, struct str args,
    void (*each)(void *ctx, const char *header, const char *value), void *ctx);

#endif
