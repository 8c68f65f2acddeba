/*
 * pairing.h - which result answers which call. The one implementation of the rule, under strict
 * appends, views, folds and checks alike.
 *
 * A block is a run of consecutive messages with calls and the results among them. A result
 * belongs to the latest block, within PAIRING_WINDOW records, in which its id is still
 * unanswered; inside a block to the earliest such call, but a result that its call carries belongs
 * to that one (about.answer_calls). A result that a run wrote names the message with its call
 * (about.of), and belongs to that one or to none. Ids are never matched globally, because providers
 * reuse them (`call_0` every turn). Memory is bounded by the window. A call without an id goes by
 * the name of its tool, and also by its derived id (message.h).
 *
 * Amendments: what is deleted makes no calls and answers none from then on. Its results are
 * orphans, and the call that it answered is open again, unless a second result was waiting. What
 * takes the place of a message stands where that stood: its calls are new ones of the same block,
 * and its answers are given up and found anew, from there. A tombstone is what it was: the records
 * that deleted or replaced it are still there.
 */
#ifndef MODEL_PAIRING_H
#define MODEL_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/about.h"

enum pairing_verdict {
        PAIRING_OK,
        PAIRING_ORPHAN,    /* no such call in the window */
        PAIRING_DUPLICATE, /* the call is there and already answered */
};

struct pairing_match {
        enum pairing_verdict verdict;
        uint64_t call_seq;   /* of the call (OK, DUPLICATE) */
        uint32_t call_index; /* its place among the calls of that message */
        uint64_t block_seq;  /* first seq of its block; ORPHAN: of the latest block, or 0 */
        uint64_t result_seq; /* DUPLICATE: who answered it first */
        bool gone;           /* ORPHAN: there was a call, and its message was deleted or replaced */
};

struct pairing;

struct pairing *pairing_new(void); /* NULL: out of memory */
void pairing_free(struct pairing *p);
void pairing_clear(struct pairing *p);
/* A copy to try a batch on; NULL: out of memory. */
struct pairing *pairing_clone(const struct pairing *p);

/*
 * The next message: registers its calls, then looks up each of its answers. `matches` has room
 * for about->answer_count entries. Messages without calls and answers must be given as well,
 * because they end a block. 0 or STENO_ENOMEM (then nothing changed).
 */
int pairing_add(
    struct pairing *p, uint64_t seq, const struct about *about, struct pairing_match *matches);

/* A result stood here that is not given: calls behind it are of another block. */
void pairing_pass_result(struct pairing *p);

/*
 * The next record of a log, of any kind, as pairing_add; `id` is its own. *place (may be NULL) is
 * the seq of the message whose place it takes, its own seq otherwise, and 0 where that message has
 * left the window: what answers from there is not judged.
 */
int pairing_follow(struct pairing *p, uint64_t seq, struct str id, const struct about *about,
    struct pairing_match *matches, uint64_t *place);

/* Calls still open, oldest first: calls `each` until it returns non-zero. */
int pairing_each_open(const struct pairing *p,
    int (*each)(void *ctx, uint64_t call_seq, uint32_t call_index, struct str id), void *ctx);

#endif
