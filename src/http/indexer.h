/*
 * indexer.h - the thread of a server that keeps the index of words up to date and, once after the
 * start, reads the digests of the newest conversations, so that the first list with a filter by
 * tool need not. It has the lowest priority: requests go first.
 */
#ifndef HTTP_INDEXER_H
#define HTTP_INDEXER_H

#include "steno.h"

struct digests;
struct indexer;

/* NULL: out of memory, or there is no thread to be had. */
struct indexer *indexer_start(struct steno_store *store, struct digests *digests);
void indexer_stop(struct indexer *x); /* accepts NULL */

#endif
