/*
 * errands.h - a few threads for what takes time and must not hold the relay: context tools.
 */
#ifndef GATEWAY_ERRANDS_H
#define GATEWAY_ERRANDS_H

#include <stdbool.h>

#include "steno.h"

struct errands;

int errands_new(unsigned threads, struct errands **out, struct steno_error *err);
/* Runs what is left first. */
void errands_free(struct errands *e);
/* Has `run(ctx)` done by one of the threads, in the order of the calls. False: no memory. */
bool errands_put(struct errands *e, void (*run)(void *ctx), void *ctx);

#endif
