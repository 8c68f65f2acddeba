/*
 * probe.h - a kind of store that watches another one: it counts the calls of every slot of struct
 * steno_backend, and lets the n-th fail.
 *
 *      probe_watch(&files_backend);
 *      api_store_open_on(&probe_backend, env, path, NULL, &store, err);
 *      probe_fail_at(17); work(); probe_fail_at(0);
 *
 * tests/support/make_probe.py writes it from store/backend.h, so that it has every slot. Counting
 * is thread-safe; failing is for tests with one thread.
 */
#ifndef SUPPORT_PROBE_H
#define SUPPORT_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "store/backend.h"

extern const struct steno_backend probe_backend;
extern const char *const probe_names[]; /* of the slots, in their order */
extern const size_t probe_count;

/* Calls go to this kind from now on, and are counted from zero. */
void probe_watch(const struct steno_backend *below);
/* How often a slot was called. */
unsigned long probe_calls(size_t slot);
/* The n-th call from now on that can fail fails with STENO_EIO; 0: none. */
void probe_fail_at(unsigned long n);
/* How many calls could have failed since then. */
unsigned long probe_could_fail(void);
/* Did a call fail? And the name of its slot. */
const char *probe_failed(void);
/* Is this thread inside of a call? */
bool probe_is_inside(void);

#endif
