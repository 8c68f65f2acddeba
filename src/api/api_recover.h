/*
 * api_recover.h - completes a run that died, when somebody reads, serves or runs its conversation
 * (steno_conv_recover in steno.h says what that means).
 */
#ifndef API_API_RECOVER_H
#define API_API_RECOVER_H

#include <stdint.h>

#include "steno.h"

/*
 * Completes the last run of the conversation if it is dead; anything else costs a look at one small
 * file. When somebody else is doing it at this moment, it waits for them, so that all readers see
 * the same history afterwards.
 */
int api_recover(struct steno_conv *conv, struct steno_error *err);

/*
 * The same before a read. The read must not fail because of it, so a failure is only a warning.
 * Returns NULL: read `conv`. Otherwise the store cannot be written to, and the returned
 * conversation, which is closed with steno_conv_close(), has what completing the run would have
 * stored (api_aside.h).
 */
struct steno_conv *api_recover_to_read(struct steno_conv *conv);

/* The same for conversations of a project (NULL: of all) whose row in the index has an unfinished
 * run, at most `max` of them. How many runs were completed. */
uint32_t api_recover_listed(struct steno_store *store, const char *project, uint32_t max);

#endif
