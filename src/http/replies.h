/*
 * replies.h - answers that were given under an Idempotency-Key, to be given again.
 *
 * In memory, for POSTs of known identities, the last SERVER_IDEMPOTENCY_MAX of them. What must hold
 * across a restart as well follows from the key by itself: ids of new conversations and runs are
 * made from it (request_keyed), and the log knows the keys of its batches.
 */
#ifndef HTTP_REPLIES_H
#define HTTP_REPLIES_H

#include "http/request.h"

struct replies;

struct replies *replies_new(void);
void replies_free(struct replies *all);

/* Answers as the first time, or with a conflict when the body is another one. False: not known. */
bool replies_give(struct replies *all, struct request *r);
/* Keeps the answer of a request that stored something. */
void replies_keep(struct replies *all, const struct request *r);

#endif
