/*
 * workers.h - threads that run handlers. They are made when they are needed, and leave when there
 * has been nothing to do for a while.
 *
 * A server has four of these lanes, so that what is short never waits behind what is long: requests
 * that ask and store, those of them that have a large body, turns, and the few that must be
 * answered under any load (route.h). Large bodies get half of the processors: more of them at once
 * would only take memory, and time from everybody else.
 */
#ifndef HTTP_WORKERS_H
#define HTTP_WORKERS_H

#include <stdbool.h>

#include "http/request.h"

struct workers;

/* At most `threads`, and `queue` requests that wait while all of them are busy. */
struct workers *workers_new(unsigned threads, unsigned queue);
/* Its threads give way to all others: what they do takes long anyway. Before the first request. */
void workers_give_way(struct workers *w);
/* The calling thread gives way, for as long as it lives. */
void workers_step_back(void);
/* False: there is no room. */
bool workers_run(struct workers *w, struct request *r);
/* Waits for what is queued, and ends the threads. workers_run is false from then on. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w);

#endif
