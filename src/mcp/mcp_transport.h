/*
 * mcp_transport.h - how JSON-RPC messages reach an MCP server and come back. Two of them: a child
 * process (mcp_stdio.h) and streamable HTTP (mcp_http.c).
 *
 * Any number of threads may have exchanges going at once. A transport knows ids and which messages
 * are answers. mcp_client knows what methods mean.
 */
#ifndef MCP_MCP_TRANSPORT_H
#define MCP_MCP_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/limits.h"
#include "mcp/mcp_servers.h"
#include "steno_loop.h"

#define MCP_LINE_MAX (10 * MIB) /* what client libraries agree on; of all but calls of tools */
#define MCP_STREAM_FROM                                                                            \
        (1 * MIB) /* a longer answer to a call of a tool is not held, but given out */
#define MCP_BODY_MAX (64 * MIB)

struct mcp_transport;

/* One request and its answer. */
struct mcp_exchange {
        uint64_t id;
        const char *method;
        const char *name;        /* of the tool, for a header; may be NULL */
        struct str schema, args; /* of the tool, and of its call (mcp_param.h); may be empty */
        struct str body;         /* the whole message, one line */
        int64_t deadline;        /* time_monotonic_ms(); 0: none */
        const struct steno_stop *stop; /* may be NULL */
        /* Told of notifications that belong to this request, on the caller's thread. May be NULL.
         */
        void (*notice)(void *ctx, const struct json *j);
        void *ctx;
        /* Takes the content of an answer that is too large to be held (mcp_stream.h), while it
         * comes; any thread, one at a time, and not after the return. NULL: such answers are
         * refused. Its first non-zero return ends the exchange. */
        steno_sink piece;
        void *piece_ctx;
        /* out: the answering message; freed with free(). Without the content that `piece` got. */
        char *answer;
        size_t answer_n;
};

struct mcp_transport_ops {
        /*
         * Sends and waits. STENO_EINTERRUPTED, STENO_ETIMEOUT: the server was told that the request
         * is cancelled. STENO_EIO: the server cannot be reached, or died. STENO_EPROTO: its answer
         * is not valid. STENO_ELIMIT: its answer is too large.
         */
        int (*exchange)(struct mcp_transport *t, struct mcp_exchange *x, struct steno_error *err);
        int (*notify)(struct mcp_transport *t, struct str body, struct steno_error *err);
        /* From now on this revision is spoken. */
        void (*settle)(struct mcp_transport *t, const char *version, bool modern);
        void (*close)(struct mcp_transport *t);
};

struct mcp_transport {
        const struct mcp_transport_ops *ops;
        struct exec_modes *modes; /* that its server could change, as they were; NULL: none */
};

struct mcp_host {
        const char *const *env;         /* the process's own; a server sees an excerpt of it */
        const char *const *environment; /* names that it may see beside the usual ones */
        const char *const *hidden;      /* directories that it must not reach */
};

int mcp_stdio_open(const struct mcp_server *server, const struct mcp_host *host,
    struct mcp_transport **out, struct steno_error *err);

int mcp_http_open(
    const struct mcp_server *server, struct mcp_transport **out, struct steno_error *err);

/* ---- messages; mcp_message.c ---- */

enum mcp_kind {
        MCP_NONSENSE, /* not JSON-RPC 2.0 */
        MCP_ANSWER,   /* result or error, with our id */
        MCP_REQUEST,  /* the server asks something of us */
        MCP_NOTIFICATION,
};

/* *id is the answer's id (ours are numbers), or the progress token of a notification; 0: none. */
enum mcp_kind mcp_message_kind(const struct json *j, uint64_t *id);
/* The reply to a server's request, one line without its line feed: pings are answered, everything
 * else is politely refused. */
void mcp_message_reply(struct buf *b, const struct json *j);
/* notifications/cancelled for a request of ours. */
void mcp_message_cancel(struct buf *b, uint64_t id, const char *reason);

#endif
