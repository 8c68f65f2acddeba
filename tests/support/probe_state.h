/*
 * probe_state.h - what probe.c and what make_probe.py writes share; private to the two.
 */
#ifndef SUPPORT_PROBE_STATE_H
#define SUPPORT_PROBE_STATE_H

#include "store/backend.h"

extern const struct steno_backend *probe_below;

void probe_enter(size_t slot);
void probe_leave(void);
bool probe_fails(struct steno_error *err);

#endif
