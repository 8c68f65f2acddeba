/*
 * acp.h - records an ACP agent. It runs between any ACP client (an editor) and any agent.
 *
 *   client  <-- stdin, stdout -->  acp_run  <-- pipes -->  agent
 *
 * ACP is JSON-RPC, one message a line, in both directions. Everything that one side sends goes to
 * the other byte for byte and in order, also lines that are not ACP or not JSON. There are four
 * exceptions; in each of them, only the value named here changes:
 *
 *   session/new, load,    Steno's MCP server is added to `mcpServers`, so that the agent can read
 *   resume, fork          its own record back
 *   terminal/create       `outputByteLimit` is raised, so that the client keeps more than the agent
 *                         asked for
 *   terminal/output       the answer is cut again to the size that the agent asked for
 *   terminal/release      waits until the whole output was fetched, with a terminal/output of our
 *                         own; the agent does not see the answer
 *
 *   acp.c           the two processes and their lines
 *   acp_relay.c     passes a line on: which of the four it is, and what it becomes
 *   acp_journal.c   the file to which each line is written before it is passed on
 *   acp_sessions.c  finds the conversation in which a session of an agent is recorded
 *   acp_scribe.c    reads the journal and records its lines, on a thread of its own
 *   acp_record.c    a session as records, with acp_calls.c, acp_terminal.c, acp_result.c and
 *                   acp_replay.c (acp_record.h)
 *
 * WHAT A KILL COSTS
 *
 *   A line is in the journal (written, not synced) before it is passed on. The scribe reads the
 *   journal and appends to conversations; each append has a key made of the journal's name and a
 *   number, so that reading a journal again from its beginning stores nothing twice. A journal is
 *   removed when all its lines are recorded. If a recorder was killed, the next acp_run or
 *   acp_recover on the store records its journal.
 *
 * WHAT IS RECORDED
 *
 *   A session is a conversation. A prompt is a user message. Chunks of text and thoughts are joined
 *   to one message. A tool call is a call, and its end is the result. Everything else (permissions
 *   and their answers, plans, modes, files that were read or written, unknown requests) is kept
 *   completely, in a message with partType "acp", which no model is shown.
 */
#ifndef ACP_ACP_H
#define ACP_ACP_H

#include <stdbool.h>
#include <stdint.h>

#include "steno.h"

struct acp_options {
        struct steno_store *store;
        const char *path; /* path of the store's folder, for the journal */
        const char *project;
        const char
            *program;    /* the absolute path of steno, for the MCP server; NULL: none is added */
        const char *url; /* the URL of the store, for the MCP server */
        char **argv;     /* the command of the agent, NULL-terminated */
        int in, out;     /* descriptors of the client */
        bool (*stopped)(void); /* asked regularly; returns true when it should end */
        /* Receives a warning for the user; may be called on any thread. */
        void (*warn)(void *ctx, const char *text);
        void *warn_ctx;
};

struct acp_result {
        int status;        /* exit status of the agent, as waitpid returns it */
        uint64_t sessions; /* number of sessions that were recorded */
        bool unrecorded;   /* something could not be stored and is only in the journal */
};

/*
 * Runs the agent until it ends. When the client closes its end, the agent's standard input is
 * closed and the agent gets time to exit. STENO_ENOTFOUND, STENO_EDENIED: the agent cannot be
 * started. STENO_EFULL, STENO_EIO: a line could not be written to the journal, and nothing more was
 * passed on.
 */
int acp_run(const struct acp_options *opt, struct acp_result *out, struct steno_error *err);

/* Records what killed recorders left in the store. *count (may be NULL) becomes the number of
 * journals. */
int acp_recover(
    struct steno_store *store, const char *path, uint64_t *count, struct steno_error *err);

#endif
