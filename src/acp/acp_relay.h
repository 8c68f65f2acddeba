/*
 * acp_relay.h - a line on its way from one side to the other.
 *
 * Knows JSON-RPC, the four places where something is changed (acp.h), and nothing of processes. A
 * line is in the journal before anything of it is sent. Used by one thread.
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
        const char *path; /* of the store */
        const char *project;
        const char *agent;   /* its name until it gives itself one */
        const char *program; /* as in acp_options */
        const char *url;
        /* Takes bytes for one side. It must not call the relay. */
        void (*send)(void *ctx, enum acp_side to, struct str bytes);
        void *send_ctx;
};

int acp_relay_new(
    const struct acp_relay_options *opt, struct acp_relay **out, struct steno_error *err);
void acp_relay_free(struct acp_relay *r);

/* A line that came from the other side of `to`, with its line feed where it has one. A failure is
 * the journal's, and nothing was sent. */
int acp_relay_take(struct acp_relay *r, enum acp_side to, struct str line, struct steno_error *err);
/* A piece of a line that is longer than ACP_LINE_MAX; `first` is its beginning. */
int acp_relay_pass(
    struct acp_relay *r, enum acp_side to, struct str piece, bool first, struct steno_error *err);

/* Passes on the lines that have waited long enough for an answer of the client. Returns in how many
 * milliseconds it must be called again; negative: nothing waits. */
int acp_relay_tick(struct acp_relay *r);
/* To be called when the agent has ended its output: asks the client for the outputs of the
 * remaining terminals. acp_relay_tick() tells how long to wait for the answers. */
int acp_relay_agent_over(struct acp_relay *r, struct steno_error *err);

#endif
