/*
 * presence.h - who is connected: watchers/<project>, locked (shared) by every process that has
 * somebody who may answer questions about calls of that project. A lock goes with its process, so
 * nothing is left behind by one that died. The file is empty and stays.
 */
#ifndef STORE_FILES_PRESENCE_H
#define STORE_FILES_PRESENCE_H

#include "store/files/files.h"

struct presence;

/* Says so until presence_release. STENO_ETIMEOUT: somebody looks at this moment, try again. */
int presence_hold(
    struct files_store *store, struct str project, struct presence **out, struct steno_error *err);
void presence_release(struct presence *p);
/* Is anybody, in whatever process? Two who look at the same moment may see each other. */
bool presence_any(struct files_store *store, struct str project);

#endif
