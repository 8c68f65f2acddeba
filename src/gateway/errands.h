/*
 * errands.h - a few threads for slow work that must not block the relay: context tools.
 */
#ifndef GATEWAY_ERRANDS_H
#define GATEWAY_ERRANDS_H

#include <stdbool.h>

#include "steno.h"

struct errands;

int errands_new(unsigned threads, struct errands **out, struct steno_error *err);
/* Runs what is left first. */
void errands_free(struct errands *e);
/* Lets one of the threads call `run(ctx)`. Jobs start in the order of these calls. False: no
 * memory. */
bool errands_put(struct errands *e, void (*run)(void *ctx), void *ctx);

#endif
