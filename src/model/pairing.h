/*
 * pairing.h - decides which result answers which call. Strict appends, views, folds and checks all
 * use this implementation of the rule.
 *
 * A block is a run of consecutive messages with calls and the results among them. A result belongs
 * to the latest block, within PAIRING_WINDOW records, that has an unanswered call of its id, and to
 * the earliest of these calls. There are two exceptions: a result that its call carries belongs to
 * this call (about.answer_calls); a result that a run wrote names the message with its call
 * (about.of) and belongs to a call of that message or to none. Ids are never matched globally,
 * because providers reuse them (`call_0` every turn). Memory is bounded by the window. A call
 * without an id is found by the name of its tool, and also by its derived id (message.h).
 *
 * Amendments: a deleted message makes no calls and answers none from then on. The results of its
 * calls become orphans, and the calls that it answered are open again, unless a second result was
 * waiting. A message that supersedes another one takes its place: its calls are new calls of the
 * same block, and the calls that it answers are determined again from that place. A tombstone
 * counts as the record that it replaced, because the records that deleted or superseded it are
 * still there.
 */
#ifndef MODEL_PAIRING_H
#define MODEL_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "model/about.h"

enum pairing_verdict {
        PAIRING_OK,
        PAIRING_ORPHAN,    /* the window has no such call */
        PAIRING_DUPLICATE, /* the call has a result already */
};

struct pairing_match {
        enum pairing_verdict verdict;
        uint64_t call_seq;   /* seq of the message with the call (OK, DUPLICATE) */
        uint32_t call_index; /* its place among the calls of that message */
        uint64_t block_seq;  /* first seq of its block; ORPHAN: of the latest block, or 0 */
        uint64_t result_seq; /* DUPLICATE: seq of the first result */
        bool gone;           /* ORPHAN: there was such a call, but its message was deleted or
                                replaced */
};

struct pairing;

struct pairing *pairing_new(void); /* NULL: out of memory */
void pairing_free(struct pairing *p);
void pairing_clear(struct pairing *p);
/* Returns a copy on which a batch can be tried; NULL: out of memory. */
struct pairing *pairing_clone(const struct pairing *p);

/*
 * Adds the next message: registers its calls, then looks up the call of each of its answers.
 * `matches` has room for about->answer_count entries. Messages without calls and answers must be
 * added as well, because they end a block. 0 or STENO_ENOMEM (then nothing changed).
 */
int pairing_add(
    struct pairing *p, uint64_t seq, const struct about *about, struct pairing_match *matches);

/* Says that a result at this place is left out of the pairing: the calls after it belong to another
 * block. */
void pairing_pass_result(struct pairing *p);

/*
 * Adds the next record of a log, of any kind, as pairing_add does; `id` is the record's own id.
 * *place (may be NULL) is the seq of the message that the record amends, or else its own seq. It is
 * 0 if the amended message has left the window; then the answers are not checked.
 */
int pairing_follow(struct pairing *p, uint64_t seq, struct str id, const struct about *about,
    struct pairing_match *matches, uint64_t *place);

/* Calls `each` for every call that is still open, oldest first, until it returns non-zero. */
int pairing_each_open(const struct pairing *p,
    int (*each)(void *ctx, uint64_t call_seq, uint32_t call_index, struct str id), void *ctx);

#endif
