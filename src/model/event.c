/*
 * event.c - looking up events in the table of steno_events.h.
 */
#include "model/event.h"

#include <string.h>

static const struct {
        const char *name;
        bool shown;
} events[] = {
#define EVENT_ROW(id, name, shown, members, meaning) {name, shown},
    STENO_EVENTS(EVENT_ROW)
#undef EVENT_ROW
};

const char *event_name(enum steno_event type)
{
        return events[type].name;
}

bool event_is(struct str name, enum steno_event type)
{
        return str_is(name, event_name(type));
}

enum steno_event event_find(const char *name)
{
        int i = 0;
        while (i < STENO_EVENT_COUNT && strcmp(events[i].name, name) != 0)
                i++;
        return (enum steno_event)i;
}

bool event_is_shown(const char *name)
{
        enum steno_event type = event_find(name);
        return type == STENO_EVENT_COUNT || events[type].shown;
}
