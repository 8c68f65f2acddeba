/*
 * workers.h - a fixed number of threads that run handlers, and a bounded queue before them.
 */
#ifndef HTTP_WORKERS_H
#define HTTP_WORKERS_H

#include <stdbool.h>

#include "http/request.h"

struct workers;

struct workers *workers_new(unsigned count);
/* False: the queue is full. */
bool workers_run(struct workers *w, struct request *r);
/* Waits for what is queued, then ends the threads. */
void workers_free(struct workers *w);

#endif
