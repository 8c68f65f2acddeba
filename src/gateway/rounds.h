/*
 * rounds.h - a turn in which the gateway answers the model's context tools itself.
 *
 * The client asks once. The model is asked as often as it calls context tools and nothing else;
 * each such round is noted beside the exchange before the next is sent, so that the recorder finds
 * what the model was really told. The client sees one answer (veil.h), and its next request gets
 * the hidden calls back at their place (splice.h, seams.h).
 *
 * A turn whose tools are not offered has a prompt with stubs, and its answer is passed on as it is.
 */
#ifndef GATEWAY_ROUNDS_H
#define GATEWAY_ROUNDS_H

#include "gateway/exchange.h"
#include "gateway/splice.h"

struct rounds;

int rounds_new(const struct splice_options *opt, struct str request, struct rounds **out,
    struct steno_error *err);
void rounds_free(struct rounds *r);

/* What is sent to the endpoint in this round. Lives until the next one. */
struct str rounds_body(const struct rounds *r);
/* Are the context tools offered? Else nothing below is called. */
bool rounds_offered(const struct rounds *r);
/* Of the turn: this is not its first request. */
bool rounds_again(const struct rounds *r);

/* Did rounds_work() fail because the model went on calling tools that were no longer offered, and
 * said nothing? */
bool rounds_is_unanswered(const struct rounds *r);

/* The answer of a round; `out` gets what the client may have by now. */
void rounds_begin(struct rounds *r, bool stream);
int rounds_feed(struct rounds *r, const char *p, size_t n, struct buf *out);
int rounds_end(struct rounds *r, struct buf *out);
/* Is there something to be done before the client may have the end? */
bool rounds_is_busy(const struct rounds *r);

/*
 * Does it: runs the tools and notes the round. *again: the next round is to be sent. Else `out`
 * gets the end of the answer, or all of one that is not a stream. Takes as long as the tools do.
 */
int rounds_work(
    struct rounds *r, struct exchange *x, bool *again, struct buf *out, struct steno_error *err);

#endif
