/*
 * pledges.h - replies that a list of messages left to a stream.
 *
 * A page is given its list without the reply of a run that goes on, because the stream will bring
 * it. When the run ends before the page asks for the stream, the stream has to bring the reply all
 * the same, and only to this page: one with a whole list would show it twice. They are kept in
 * memory for a minute, and when there are very many the oldest are forgotten.
 */
#ifndef HTTP_PLEDGES_H
#define HTTP_PLEDGES_H

#include <stdbool.h>

struct pledges;

/* NULL: no memory. */
struct pledges *pledges_new(void);
void pledges_free(struct pledges *all);
/* A list without the reply of this run goes to the holder of the token. */
void pledges_make(struct pledges *all, const char *token_id, const char *run);
/* Was there one that is not redeemed? */
bool pledges_redeem(struct pledges *all, const char *token_id, const char *run);

#endif
