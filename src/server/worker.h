/*
 * worker.h - a fixed number of threads that run handlers, and a bounded queue before them.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <stdbool.h>

#include "server/request.h"

struct workers;

struct workers *workers_new(unsigned count);
/* False: the queue is full. */
bool workers_run(struct workers *w, struct request *r);
/* Waits for what is queued, then ends the threads. */
void workers_free(struct workers *w);

#endif
