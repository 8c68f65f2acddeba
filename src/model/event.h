/*
 * event.h - converts events between the table in steno_events.h and the names in a run's journal.
 */
#ifndef MODEL_EVENT_H
#define MODEL_EVENT_H

#include <stdbool.h>

#include "base/str.h"
#include "steno_events.h"

const char *event_name(enum steno_event type);
/* Is this the name of that event? */
bool event_is(struct str name, enum steno_event type);
/* Returns STENO_EVENT_COUNT if the table has no event of this name. */
enum steno_event event_find(const char *name);
/* Is the event for readers of a run? Events that are not in the table are for readers, because a
 * program may write its own events with steno_run_event(). */
bool event_is_shown(const char *name);

#endif
