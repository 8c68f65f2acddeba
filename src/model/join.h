/*
 * join.h - joins an assistant message that a client logged in pieces.
 *
 * Some clients write an entry for each block of a response: thinking, then each call, with results
 * between them. All entries name the same response (message.h, piece). Here they become one message
 * in the place of the first piece: thinking stays before its calls, and parallel calls stay
 * parallel. A block that was written again replaces the earlier one.
 */
#ifndef MODEL_JOIN_H
#define MODEL_JOIN_H

#include "base/arena.h"
#include "model/message.h"

/* *out shares with `h` everything that did not change; peers are not set yet. 0 or STENO_ENOMEM. */
int join_pieces(const struct history *h, struct arena *arena, struct history *out);

#endif
