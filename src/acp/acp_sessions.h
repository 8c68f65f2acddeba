/*
 * acp_sessions.h - finds the conversation in which a session of an agent is recorded.
 *
 * The file acp/sessions of the store has a line for each session. If the file is lost, a session
 * that is loaded again begins a new conversation.
 */
#ifndef ACP_ACP_SESSIONS_H
#define ACP_ACP_SESSIONS_H

#include <stdbool.h>

#include "base/env.h"
#include "base/limits.h"
#include "steno.h"

struct acp_session_key {
        const char *project;
        const char *agent; /* the name that the agent sends, or the name of its program */
        const char *session;
};

/* Finds the conversation of a session. False: it is not known. */
bool acp_sessions_find(const struct env *env, const char *path, const struct acp_session_key *key,
    char conversation[ID_MAX + 1]);
/* Errors are ignored: after one, a later load of the session begins a new conversation. */
void acp_sessions_add(const struct env *env, const char *path, const struct acp_session_key *key,
    const char *conversation);

#endif
