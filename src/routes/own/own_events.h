/*
 * own_events.h - the events of a run as they are in its journal.
 */
#ifndef ROUTES_OWN_OWN_EVENTS_H
#define ROUTES_OWN_OWN_EVENTS_H

#include "http/projection.h"

extern const struct projection own_events_projection;

#endif
