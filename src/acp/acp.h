/*
 * acp.h - records an ACP agent: stands between any ACP client (an editor) and any agent.
 *
 *   client  <-- stdin, stdout -->  acp_run  <-- pipes -->  agent
 *
 * ACP is JSON-RPC, one message a line, in both directions. Everything that one side sends goes to
 * the other byte for byte and in order, also lines that are not ACP or not JSON. There are four
 * exceptions, and in each of them only the value named here changes:
 *
 *   session/new, load,    Steno's MCP server is added to `mcpServers`, so that the agent can read
 *   resume, fork          its own record back
 *   terminal/create       `outputByteLimit` is raised, so that the client keeps what the agent did
 *                         not want
 *   terminal/output       the answer is cut again to what the agent had asked for
 *   terminal/release      waits until the whole output was fetched, with a terminal/output of our
 *                         own, whose answer the agent does not see
 *
 *   acp.c           the two processes, lines, and the order of things
 *   acp_relay.c     a line on its way: which of the four it is, and what it becomes
 *   acp_journal.c   the file in which each line is before it is passed on
 *   acp_sessions.c  which conversation a session of an agent is recorded in
 *   acp_scribe.c    reads the journal and routes what it says, on a thread of its own
 *   acp_record.c    a session as records, with acp_calls.c, acp_terminal.c, acp_result.c and
 *                   acp_replay.c (acp_record.h)
 *
 *
 * WHAT A KILL COSTS
 *
 *   A line is in the journal (written, not synced) before it is passed on. The scribe reads the
 *   journal and appends to conversations; each append has a key made of the journal's name and a
 *   number, so that reading a journal again from its beginning stores nothing twice. A journal is
 *   removed when all of it is recorded. The next acp_run or acp_recover on the store records a
 *   journal that a killed recorder has left.
 *
 *
 * WHAT IS RECORDED
 *
 *   A session is a conversation. A prompt is a user message; chunks of text and thoughts are joined
 *   to the message that they are pieces of; a tool call is a call, and its end is the result.
 *   Everything else (permissions and their answers, plans, modes, files that were read or written,
 *   unknown requests) is kept completely, in a message that no model is shown, with partType "acp".
 */
#ifndef ACP_ACP_H
#define ACP_ACP_H

#include <stdbool.h>
#include <stdint.h>

#include "steno.h"

struct acp_options {
        struct steno_store *store;
        const char *path; /* of the store's folder, for the journal */
        const char *project;
        const char
            *program;    /* the absolute path of steno, for the MCP server; NULL: none is added */
        const char *url; /* the URL of the store, for the MCP server */
        char **argv;     /* the agent, NULL-terminated */
        int in, out;     /* of the client */
        bool (*stopped)(void); /* asked now and then: is it to end? */
        /* Receives a sentence for a person; called on any thread. */
        void (*warn)(void *ctx, const char *text);
        void *warn_ctx;
};

struct acp_result {
        int status;        /* of the agent, as waitpid tells it */
        uint64_t sessions; /* that were recorded */
        bool unrecorded;   /* something could not be stored and stays in the journal */
};

/*
 * Runs the agent until it ends. When the client closes its end, the agent's standard input is
 * closed and the agent gets time to exit. STENO_ENOTFOUND, STENO_EDENIED: the agent cannot be
 * started. STENO_EFULL, STENO_EIO: a line could not be written to the journal, and nothing more was
 * passed on.
 */
int acp_run(const struct acp_options *opt, struct acp_result *out, struct steno_error *err);

/* Records what killed recorders left in the store. *count (may be NULL): how many journals. */
int acp_recover(
    struct steno_store *store, const char *path, uint64_t *count, struct steno_error *err);

#endif
