/*
 * pledges.h - remembers replies that were left out of a list of messages because a stream will
 * bring them.
 *
 * A page gets its list without the reply of a live run. If the run ends before the page asks for
 * the stream, the stream must still bring the reply, but only to this page: a page with the
 * complete list would show the reply twice. Pledges are kept in memory for a minute; when there are
 * very many, the oldest are forgotten.
 */
#ifndef HTTP_PLEDGES_H
#define HTTP_PLEDGES_H

#include <stdbool.h>

struct pledges;

/* NULL: no memory. */
struct pledges *pledges_new(void);
void pledges_free(struct pledges *all);
/* Notes that the holder of the token gets a list without the reply of this run. */
void pledges_make(struct pledges *all, const char *token_id, const char *run);
/* Was there one that is not redeemed? */
bool pledges_redeem(struct pledges *all, const char *token_id, const char *run);

#endif
