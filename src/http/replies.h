/*
 * replies.h - answers to requests with an Idempotency-Key, kept in memory for repeated requests:
 * the last SERVER_IDEMPOTENCY_MAX answers to POSTs of known identities.
 *
 * Idempotency across a restart needs no memory: ids of new conversations and runs are made from the
 * key (request_keyed), and the log has the keys of its batches.
 */
#ifndef HTTP_REPLIES_H
#define HTTP_REPLIES_H

#include "http/request.h"

struct replies;

struct replies *replies_new(void);
void replies_free(struct replies *all);

/* Repeats the first answer, or answers with a conflict when the body differs. Waits for it where a
 * request with that key is being answered, and will not last. False: the key is not known; then
 * replies_keep must follow. */
bool replies_give(struct replies *all, struct request *r);
/* Keeps the answer of a request that stored something. All other answers are not kept. */
void replies_keep(struct replies *all, const struct request *r);

#endif
