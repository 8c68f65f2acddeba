/*
 * watchers.h - tells the store in which projects somebody is connected here who may answer a run's
 * questions (steno_watch_begin). Whoever holds a run, at whichever server, waits for them.
 *
 * Only the ticker uses it: it notes the project of each open stream, then settles.
 */
#ifndef HTTP_WATCHERS_H
#define HTTP_WATCHERS_H

#include "steno.h"

struct watchers;

struct watchers *watchers_new(struct steno_store *store);
/* Somebody of this project is connected. Errors are ignored: the next tick tries again. */
void watchers_note(struct watchers *w, const char *project);
/* Says so of the projects that were noted since the last call, and of no others. */
void watchers_settle(struct watchers *w);
void watchers_free(struct watchers *w);

#endif
