/*
 * acp_sessions.h - which conversation a session of an agent is recorded in.
 *
 * A line for each session in acp/sessions of the store. Where the file is gone, a session that is
 * loaded again begins a conversation of its own.
 */
#ifndef ACP_ACP_SESSIONS_H
#define ACP_ACP_SESSIONS_H

#include <stdbool.h>

#include "base/env.h"
#include "base/limits.h"
#include "steno.h"

struct acp_session_key {
        const char *project;
        const char *agent; /* the name that it gives itself, or that of its program */
        const char *session;
};

/* False: it is not known. */
bool acp_sessions_find(const struct env *env, const char *path, const struct acp_session_key *key,
    char conversation[ID_MAX + 1]);
/* Best effort: a failure costs only the link to what comes later. */
void acp_sessions_add(const struct env *env, const char *path, const struct acp_session_key *key,
    const char *conversation);

#endif
