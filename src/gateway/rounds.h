/*
 * rounds.h - a turn in which the gateway answers the model's context tools itself.
 *
 * The client sends one request. The gateway asks the model again as long as it calls only context
 * tools. Each such round is noted beside the exchange before the next one is sent, so that the
 * recorder knows what the model really got. The client sees one answer (veil.h). Its next request
 * gets the hidden calls back at their places (splice.h, seams.h). If the tools are not offered in a
 * turn, only its prompt gets stubs, and the answer is passed on unchanged.
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
/* Are the context tools offered? Otherwise the functions below are not called. */
bool rounds_offered(const struct rounds *r);
/* Of the turn: this is not its first request. */
bool rounds_again(const struct rounds *r);

/* Did rounds_work() fail because the model kept calling tools that were no longer offered, and
 * wrote no text? */
bool rounds_is_unanswered(const struct rounds *r);

/* Takes bytes of a round's answer; `out` gets what the client may have by now. */
void rounds_begin(struct rounds *r, bool stream);
int rounds_feed(struct rounds *r, const char *p, size_t n, struct buf *out);
int rounds_end(struct rounds *r, struct buf *out);
/* Is there work to do before the client may have the end of the answer? */
bool rounds_is_busy(const struct rounds *r);

/*
 * Does this work: runs the tools and notes the round. *again: the next round has to be sent.
 * Otherwise `out` gets the end of the answer (the whole answer if it is not a stream). Takes as
 * long as the tools do.
 */
int rounds_work(
    struct rounds *r, struct exchange *x, bool *again, struct buf *out, struct steno_error *err);

#endif
