/*
 * mcpd.h - Steno as an MCP server: the protocol, without a transport.
 *
 * mcpd_take() parses the text of a client's message; mcpd_answer() executes it and writes the
 * answer. Both transports, mcpd_stdio.c and routes/mcp, only move these texts. No state is kept
 * between two messages.
 *
 *   mcpd.c            messages, eras, errors, the table of methods
 *   mcpd_tools.c      the tools, and a call of one
 *   mcpd_read.c       conversation_read and conversation_list
 *   mcpd_resources.c  artifacts as resources
 *   mcpd_fixtures.c   what the conformance suite asks for, instead of the three above
 *   mcpd_stdio.c      the transport over standard input and output
 *
 *
 * TWO ERAS
 *
 *   modern   revision 2026-07-28. Each request says in params._meta which revision it speaks and
 *            what its client can do; there is no initialize. Over HTTP, headers repeat what the
 *            body says and must agree with it.
 *   legacy   revisions 2024-11-05 to 2025-11-25, which begin with initialize.
 *
 * A request is modern when its version header is 2026-07-28 or later, or when its _meta has the
 * key of the revision. Each request is judged alone, so one server serves both.
 *
 *
 * WHAT A CLIENT REACHES
 *
 *   A client reaches one conversation, which the person who starts the server chooses. Its tools
 *   have no parameter that could name another one, and the answer for a ref of another conversation
 *   is that for a ref that does not exist. Or a client reaches all conversations of one project,
 *   for reading only: then each tool has a parameter `conversation`, and conversation_list lists
 *   them. Every tool only reads. A model's mistake in the arguments of a tool is answered with a
 *   result with isError and a text that the model can act on. A client's mistake is answered with a
 *   JSON-RPC error.
 *
 *
 * RESOURCES
 *
 *   steno:///artifacts/REF                            of the one conversation
 *   steno:///conversations/CONV/artifacts/REF         of a project
 *   ...?offset=BYTE                                   from there on
 *
 * A read gives a page of at most MCPD_PAGE bytes. Where that is not the end, a second entry of the
 * contents says so and has the address of the next page. So an artifact of any size can be read in
 * constant memory.
 */
#ifndef MCPD_MCPD_H
#define MCPD_MCPD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "steno.h"

#define MCPD_MESSAGE_MAX (4 * MIB) /* no call of ours needs more; clients stop at 10 MiB a line */
#define MCPD_ID_MAX 1024           /* bytes of a request's id */
#define MCPD_PAGE (256 * KIB) /* of a resource; with base64 still far below what clients take */

/* JSON-RPC's codes, and MCP's. */
enum mcpd_code {
        MCPD_PARSE = -32700,
        MCPD_INVALID = -32600,
        MCPD_NO_METHOD = -32601,
        MCPD_PARAMS = -32602,
        MCPD_INTERNAL = -32603,
        MCPD_NO_RESOURCE = -32002, /* legacy only */
        MCPD_BUSY = -32000,
        MCPD_HEADERS = -32020,    /* the headers and the body do not agree */
        MCPD_CAPABILITY = -32021, /* the client cannot do what is needed */
        MCPD_VERSION = -32022,    /* a revision that we do not speak */
};

/* What a client reaches. The strings must outlive what uses them. */
struct mcpd_scope {
        struct steno_store *store;
        const char *project;
        const char *conversation; /* NULL: every one of the project, for reading */
        bool fixtures;            /* those of the conformance suite; there is no store then */
};

/* Headers of an HTTP request; a member is NULL where there is none. */
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

/* A message that was taken apart. It owns its text. */
struct mcpd_message {
        enum mcpd_kind kind;
        bool modern;
        char revision[MCPD_REVISION_MAX]; /* that its client speaks */
        char *text;
        struct json j;
        json_ref id;
        json_ref params;
        char method[64]; /* a longer one is none of ours */
        /* of a MCPD_REFUSED one */
        int code;
        char why[200];
        struct buf data; /* JSON of the error's data, or empty */
};

/*
 * Takes a message apart. `headers` NULL: the message came over stdio, and `legacy` is the revision
 * that an earlier initialize agreed on (NULL: there was none). Returns 0, also for a message that
 * is refused, or STENO_ENOMEM. mcpd_release accepts a message that is all zero.
 */
int mcpd_take(struct mcpd_message *m, const char *text, size_t n,
    const struct mcpd_headers *headers, const char *legacy, struct steno_error *err);
void mcpd_release(struct mcpd_message *m);

/* Does the client want progress reports? Over HTTP such a request is answered with a stream. */
bool mcpd_is_long(const struct mcpd_message *m);
/* For notifications/cancelled: the id of the request to cancel, as it is spelled; empty for any
 * other message. */
struct str mcpd_cancels(const struct mcpd_message *m);
/* The id of a request, as it stands in the text. */
struct str mcpd_id(const struct mcpd_message *m);

/* The client, while a request is carried out. Members may be NULL. */
struct mcpd_peer {
        void (*notify)(void *ctx, const char *json, size_t n);
        bool (*is_gone)(void *ctx); /* nobody waits for the answer any more */
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

/* An error for a message that was not read. `id` empty: null. */
void mcpd_put_error(struct buf *out, struct str id, int code, const char *why, struct str data);

/*
 * Serves standard input and output until the input ends or `stopped` says so: one message a line.
 * Requests run in parallel; a cancelled one is not answered. At the end of the input, the requests
 * that were read are still answered. Returns 0, or STENO_EIO when the output was closed.
 */
int mcpd_serve_stdio(const struct mcpd_scope *scope, int in, int out, bool (*stopped)(void),
    struct steno_error *err);

#endif
