/*
 * presence.h - whether a client is connected: watchers/<project> is locked (shared) by every
 * process with a client that may answer questions about calls of that project. A lock ends with its
 * process, so a dead process leaves nothing behind. The file is empty and stays.
 */
#ifndef STORE_FILES_PRESENCE_H
#define STORE_FILES_PRESENCE_H

#include "store/files/files.h"

struct presence;

/* Holds the lock until presence_release. STENO_ETIMEOUT: another process is just checking, try
 * again. */
int presence_hold(
    struct files_store *store, struct str project, struct presence **out, struct steno_error *err);
void presence_release(struct presence *p);
/* Is a client connected to any process? Two processes that check at the same moment may see each
 * other's lock. */
bool presence_any(struct files_store *store, struct str project);

#endif
