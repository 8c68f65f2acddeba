/*
 * polish.h - the last touches that make a repaired history acceptable to one provider: what is
 * about ids and names, and so cannot be seen by a writer that looks at one message.
 */
#ifndef VIEW_POLISH_H
#define VIEW_POLISH_H

#include "base/arena.h"
#include "model/message.h"

/*
 * A call that carries its own result becomes a call and, in a message behind it, a result. Then
 * the next call of the same id is one of another turn. 0 or STENO_ENOMEM.
 */
int polish_split(struct history *h, struct arena *arena);

/*
 * Two calls of one id in one turn cannot be told apart: each but the first gets an id of its own,
 * and its result with it. `renamed` is told the old id. 0 or STENO_ENOMEM.
 */
int polish_twins(struct history *h, struct arena *arena,
    void (*renamed)(void *ctx, uint64_t seq, struct str id), void *ctx);

/*
 * The same for a provider that wants ids to be unique in the request and of [A-Za-z0-9_-]. What
 * was made for an earlier call never changes because of a later one.
 */
int polish_unique(struct history *h, struct arena *arena,
    void (*renamed)(void *ctx, uint64_t seq, struct str id), void *ctx);

/* A result says the name of the tool that was called, whatever it said before. */
void polish_names(struct history *h);

/* An array without a part is no content: none is. */
void polish_empty(struct history *h);

#endif
