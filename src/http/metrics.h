/*
 * metrics.h - counters of the running server, as Prometheus text.
 */
#ifndef HTTP_METRICS_H
#define HTTP_METRICS_H

#include <stdatomic.h>

#include "base/buf.h"

struct metrics {
        atomic_ullong requests[6]; /* by status / 100 */
        atomic_ullong bytes_in;
        atomic_ullong appends;
        atomic_ullong runs;
        atomic_ullong streams_cut; /* readers that were too slow */
        atomic_ullong refused;     /* before routing: hosts, origins, tokens, lengths */
        atomic_ullong micros;      /* spent in handlers */
};

struct server;
void metrics_put(struct server *s, struct buf *out);

#endif
