/*
 * acp_relay.h - passes lines from one side to the other.
 *
 * It knows JSON-RPC and the four places where something is changed (acp.h), and nothing of
 * processes. A line is written to the journal before anything of it is sent. Used by one thread.
 */
#ifndef ACP_ACP_RELAY_H
#define ACP_ACP_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "acp/acp_journal.h"
#include "base/str.h"
#include "steno.h"

struct acp_relay;

enum acp_side {
        ACP_TO_CLIENT,
        ACP_TO_AGENT,
};

struct acp_relay_options {
        const struct env *env;
        struct acp_journal *journal;
        const char *path; /* path of the store */
        const char *project;
        const char *agent;   /* the agent's name until the agent sends one */
        const char *program; /* see acp_options */
        const char *url;
        /* Sends bytes to one side. It must not call the relay. */
        void (*send)(void *ctx, enum acp_side to, struct str bytes);
        void *send_ctx;
};

int acp_relay_new(
    const struct acp_relay_options *opt, struct acp_relay **out, struct steno_error *err);
void acp_relay_free(struct acp_relay *r);

/* Takes a line from the other side of `to`, with its line feed if it has one. On an error, the
 * journal failed and nothing was sent. */
int acp_relay_take(struct acp_relay *r, enum acp_side to, struct str line, struct steno_error *err);
/* Takes a piece of a line that is longer than ACP_LINE_MAX. `first`: it is the beginning. */
int acp_relay_pass(
    struct acp_relay *r, enum acp_side to, struct str piece, bool first, struct steno_error *err);

/* Passes on the lines that have waited long enough for an answer of the client. Returns the number
 * of milliseconds until it must be called again; negative: nothing waits. */
int acp_relay_tick(struct acp_relay *r);
/* Call it when the agent has ended its output: asks the client for the outputs of the remaining
 * terminals. acp_relay_tick() tells how long to wait for the answers. */
int acp_relay_agent_over(struct acp_relay *r, struct steno_error *err);

#endif
