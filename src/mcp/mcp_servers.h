/*
 * mcp_servers.h - the "mcpServers" object of a configuration, in the form that MCP clients commonly
 * use: the servers, and how each is started or reached.
 */
#ifndef MCP_MCP_SERVERS_H
#define MCP_MCP_SERVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "steno.h"

struct mcp_server {
        char *name;
        char *command;       /* stdio; NULL for HTTP */
        char **args;         /* NULL-terminated, may be NULL */
        char **env;          /* NAME=VALUE */
        char *directory;     /* may be NULL */
        char *url;           /* streamable HTTP */
        char **headers;      /* "Name: value" */
        uint64_t timeout_ms; /* of a call; 0: the loop's */
        bool disabled;
        bool all_public;     /* "public": true: visitors may use all of its tools */
        char **public_tools; /* or only these, by the names they have at the server; may be NULL */
};

/* Zero is an empty list. */
struct mcp_servers {
        struct mcp_server *list;
        size_t count;
};

/* Adds the servers of a mcpServers object. ${NAME} and ${NAME:-default} are replaced from `env`, a
 * list of NAME=VALUE that ends with NULL. STENO_EINVAL: the message says where (`where` and key).
 */
int mcp_servers_read(struct mcp_servers *s, const struct json *j, json_ref obj,
    const char *const *env, const char *where, struct steno_error *err);
/* May a visitor of a public server use this tool? `tool` is its name at the MCP server. */
bool mcp_server_opens(const struct mcp_server *s, const char *tool);
void mcp_servers_release(struct mcp_servers *s);
/* Moves all servers of `from` into `s`; each replaces a server of the same name. */
int mcp_servers_take(struct mcp_servers *s, struct mcp_servers *from, struct steno_error *err);

#endif
