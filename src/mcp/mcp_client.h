/*
 * mcp_client.h - a session with one MCP server: which era it speaks, its tools, a call.
 *
 * The modern era (2026-07-28) is tried first with server/discover; any error (but one that lists it
 * as spoken) or silence
 * means the era of `initialize` (2024-11-05 to 2025-11-25). Calls may be made from any
 * number of threads. A server that died is started again for the next call, a few times.
 */
#ifndef MCP_MCP_CLIENT_H
#define MCP_MCP_CLIENT_H

#include "mcp/mcp_transport.h"

struct mcp_client;

struct mcp_tool {
        char *name;
        char *description;  /* may be NULL */
        char *input_schema; /* JSON object */
        bool read_only;     /* the server says so */
};

/* `server` and what `host` points at must outlive the client. Connects and does the handshake;
 * `stop` may be NULL, start_ms is the time limit for both (0: 30 s). */
int mcp_client_open(const struct mcp_server *server, const struct mcp_host *host, uint64_t start_ms,
    const struct steno_stop *stop, struct mcp_client **out, struct steno_error *err);
void mcp_client_close(struct mcp_client *c);

/* All tools of the server, from every page, in its order; *more: it has more tools than the limit.
 * Freed with mcp_tools_free(). */
int mcp_client_tools(struct mcp_client *c, const struct steno_stop *stop, struct mcp_tool **list,
    size_t *count, bool *more, struct steno_error *err);
void mcp_tools_free(struct mcp_tool *list, size_t count);

struct mcp_call {
        const char *tool;
        struct str args;   /* a JSON object, sent as it is */
        struct str schema; /* of its arguments, as the server gave it; may be empty */
        int64_t deadline;
        const struct steno_stop *stop;
        /* Progress, on the caller's thread; total is 0 when unknown, text may be empty. */
        void (*progress)(void *ctx, double done, double total, struct str text);
        /* Gets the content of an answer that is too large to be held, as text. *result is then an
         * answer without content. May be NULL. */
        steno_sink piece;
        void *ctx;
};

/*
 * Calls a tool. *result is the JSON-RPC answer as it came (freed with free()), parsed in *j: its
 * "result" is a tools/call result; a JSON-RPC error becomes STENO_EPROTO with the server's words.
 */
int mcp_client_call(struct mcp_client *c, const struct mcp_call *call, char **result,
    struct json *j, struct steno_error *err);
/* Puts back the modes of guarded files that the server has changed (exec_modes.h); returns of how
 * many files.
 */
unsigned mcp_client_put_modes_back(struct mcp_client *c);

#endif
