/*
 * workers.h - threads that run handlers.
 *
 * Threads are started when they are needed, and end after a while without work. A server has four
 * such lanes, so that short requests never wait behind long ones: requests that ask and store,
 * those of them that have a large body, turns, and the few that must be answered under any load
 * (route.h). Requests with large bodies get half of the processors: more of them at once would only
 * use memory and slow down everybody else.
 */
#ifndef HTTP_WORKERS_H
#define HTTP_WORKERS_H

#include <stdbool.h>

#include "http/request.h"

struct workers;

/* At most `threads`, and `queue` requests that wait while all of them are busy. */
struct workers *workers_new(unsigned threads, unsigned queue);
/* Gives its threads a low priority, because their work takes long anyway. To be called before the
 * first request. */
void workers_give_way(struct workers *w);
/* Gives the calling thread a low priority for as long as it lives. */
void workers_step_back(void);
/* False: there is no room. */
bool workers_run(struct workers *w, struct request *r);
/* Waits for what is queued, and ends the threads. workers_run is false from then on. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w);

#endif
