/*
 * mcpd.h - the MCP protocol of Steno's server, without a transport.
 *
 * mcpd_take() parses the text of a client's message; mcpd_answer() executes it and writes the
 * answer. Both transports, mcpd_stdio.c and routes/mcp, only carry these texts. No state is kept
 * between two messages.
 *
 *   mcpd.c            messages, eras, errors, the table of methods
 *   mcpd_tools.c      the tools, and a call of one
 *   mcpd_read.c       conversation_read and conversation_list
 *   mcpd_resources.c  artifacts as resources
 *   mcpd_fixtures.c   fixtures of the conformance suite, instead of the three above
 *   mcpd_stdio.c      the transport over standard input and output
 *
 * TWO ERAS
 *
 *   modern   revision 2026-07-28. Each request names its revision and the client's capabilities in
 *            params._meta; there is no initialize. Over HTTP, headers repeat members of the body
 *            and must agree with it.
 *   legacy   revisions 2024-11-05 to 2025-11-25, which begin with initialize.
 *
 * A request is modern if its version header is 2026-07-28 or later, or if its _meta has the key of
 * the revision. Each request is checked on its own, so one server serves both eras.
 *
 * WHAT A CLIENT REACHES
 *
 *   A client can read one conversation, which the person who starts the server chooses. Its tools
 *   have no parameter that could name another one. For a ref of another conversation, the answer is
 *   the same as for a ref that does not exist. Or a client can read all conversations of one
 *   project: then each tool has a parameter `conversation`, and conversation_list lists them. All
 *   tools only read. If a model makes a mistake in the arguments of a tool, the answer is a result
 *   with isError and a text that helps the model. If a client makes a mistake, the answer is a
 *   JSON-RPC error.
 *
 * RESOURCES
 *
 *   steno:///artifacts/REF                            of the one conversation
 *   steno:///conversations/CONV/artifacts/REF         of a project
 *   ...?offset=BYTE                                   from there on
 *
 * A read returns a page of at most MCPD_PAGE bytes. If this is not the last page, a second entry of
 * the contents says so and has the address of the next page. So an artifact of any size can be read
 * in constant memory.
 */
#ifndef MCPD_MCPD_H
#define MCPD_MCPD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "steno.h"

#define MCPD_MESSAGE_MAX (4 * MIB) /* our calls need less; clients limit a line to 10 MiB */
#define MCPD_ID_MAX 1024           /* bytes of a request's id */
#define MCPD_PAGE (256 * KIB)      /* of a resource; in base64 still far below clients' limits */

/* The error codes of JSON-RPC and of MCP. */
enum mcpd_code {
        MCPD_PARSE = -32700,
        MCPD_INVALID = -32600,
        MCPD_NO_METHOD = -32601,
        MCPD_PARAMS = -32602,
        MCPD_INTERNAL = -32603,
        MCPD_NO_RESOURCE = -32002, /* legacy only */
        MCPD_BUSY = -32000,
        MCPD_HEADERS = -32020,    /* the headers and the body do not agree */
        MCPD_CAPABILITY = -32021, /* the client lacks a capability that is needed */
        MCPD_VERSION = -32022,    /* the server does not support this revision */
};

/* What a client can read. The strings must live as long as they are used. */
struct mcpd_scope {
        struct steno_store *store;
        const char *project;
        const char *conversation; /* NULL: all conversations of the project */
        bool fixtures;            /* serve the fixtures of the conformance suite; there is no
                                     store then */
};

/* Headers of an HTTP request; a member is NULL if the header is absent. */
struct mcpd_headers {
        const char *version; /* MCP-Protocol-Version */
        const char *method;  /* Mcp-Method */
        const char *name;    /* Mcp-Name */
};

enum mcpd_kind {
        MCPD_REQUEST,
        MCPD_NOTIFICATION,
        MCPD_RESPONSE, /* an answer of the client; it is dropped, because the server never sends
                          requests */
        MCPD_REFUSED,  /* not a valid request; mcpd_answer says why */
};

#define MCPD_REVISION_MAX 24

/* A parsed message. It owns its text. */
struct mcpd_message {
        enum mcpd_kind kind;
        bool modern;
        char revision[MCPD_REVISION_MAX]; /* the revision of its client */
        char *text;
        struct json j;
        json_ref id;
        json_ref params;
        char method[64]; /* no method of ours has a longer name */
        /* for MCPD_REFUSED */
        int code;
        char why[200];
        struct buf data; /* JSON of the error's data, or empty */
};

/*
 * Parses a message. `headers` NULL: the message came over stdio, and `legacy` is the revision that
 * an earlier initialize agreed on (NULL: there was none). Returns 0, also for a message that is
 * refused, or STENO_ENOMEM. mcpd_release accepts a message that is all zero.
 */
int mcpd_take(struct mcpd_message *m, const char *text, size_t n,
    const struct mcpd_headers *headers, const char *legacy, struct steno_error *err);
void mcpd_release(struct mcpd_message *m);

/* Does the client want progress reports? Over HTTP such a request is answered with a stream. */
bool mcpd_is_long(const struct mcpd_message *m);
/* For notifications/cancelled: returns the id of the request to cancel, as it is written; empty for
 * any other message. */
struct str mcpd_cancels(const struct mcpd_message *m);
/* Returns the id of a request, as it is written. */
struct str mcpd_id(const struct mcpd_message *m);

/* Functions of the client while a request is executed. Members may be NULL. */
struct mcpd_peer {
        void (*notify)(void *ctx, const char *json, size_t n);
        bool (*is_gone)(void *ctx); /* the client does not wait for the answer any more */
        void *ctx;
};

/*
 * Executes a message and appends the answer, one JSON message without line feeds, to `out`; nothing
 * if no answer is due. Returns the HTTP status for it: 200, 202, 400 or 404. MCPD_CANCELLED: the
 * client is gone, and `out` has nothing.
 */
#define MCPD_CANCELLED 0
int mcpd_answer(const struct mcpd_scope *scope, const struct mcpd_message *m,
    const struct mcpd_peer *peer, struct buf *out);

/* Writes an error for a message that was not read. If `id` is empty, null is written. */
void mcpd_put_error(struct buf *out, struct str id, int code, const char *why, struct str data);

/*
 * Serves standard input and output, one message a line, until the input ends or `stopped` returns
 * true. Requests run in parallel; a cancelled one is not answered. At the end of the input, the
 * requests that were read are still answered. Returns 0, or STENO_EIO if the output was closed.
 */
int mcpd_serve_stdio(const struct mcpd_scope *scope, int in, int out, bool (*stopped)(void),
    struct steno_error *err);

#endif
