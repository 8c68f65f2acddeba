/*
 * toldcalls.h - the list of a run's calls, for its events.
 *
 * They are the calls of the view `chat`, so that a page shows the same before and after a reload:
 * state, result or error, steps, times, ref, display.
 */
#ifndef LOOP_TOLDCALLS_H
#define LOOP_TOLDCALLS_H

#include "base/buf.h"
#include "steno.h"

/* Writes the array of all calls in the messages `ids` (texts that end with a zero byte each),
 * which stand behind `after` in the log. When `out` has failed the list is incomplete. */
int toldcalls_put(struct steno_conv *conv, uint64_t after, const struct buf *ids, struct buf *out,
    struct steno_error *err);

#endif
