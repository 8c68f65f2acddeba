/*
 * budget.h - a history that fits a number of tokens.
 *
 * A budget is spent in a fixed order, and what follows the first thing that does not fit is left
 * out. The order does not depend on the budget, so a larger budget shows all that a smaller one
 * shows (budgets are monotone):
 *
 *   1. System and developer messages. If they need more than half of the budget, the first and the
 *      newest stay, then further ones from the newest on, up to that half.
 *   2. From the newest turn, the user's message, then its calls with their results, beginning at
 *      the end: eight calls with placeholders for their results, then these results, then the next
 *      eight, and so on.
 *   3. Older turns, the newest first: a whole turn with placeholders, then its results.
 *
 * A note stands in the place of what is left out. It says how many messages and which refs that
 * were, so that the range can be read back. Its own room is reserved before 2. No pair is ever
 * split (F3).
 *
 * The history may be only the end of a longer one (struct budget_before). The result is the same as
 * for the whole history; if that cannot be known, the caller is asked for more of it.
 */
#ifndef VIEW_BUDGET_H
#define VIEW_BUDGET_H

#include "view/work.h"

#define BUDGET_NOTE_REFS 8 /* refs that the note names at most; it says how many there are */

/* What is left out already. */
struct budget_left {
        uint64_t count;     /* messages, */
        uint64_t stored;    /* of these, not made by a repair, */
        uint64_t leads;     /* and system or developer messages */
        uint64_t first_seq; /* of the oldest */
        uint64_t last_seq;
        uint64_t refs;                      /* how many outputs have one */
        struct str named[BUDGET_NOTE_REFS]; /* the first of them */
};

/* A history whose middle is missing. */
struct budget_before {
        bool there; /* messages are missing before list[kept] */
        /* The first messages of the list: system and developer messages from before the gap, and
         * the user's words that begin the turn which the gap cuts. */
        size_t kept;
        struct budget_left left; /* what is missing; refs and seqs in order */
        bool guess;              /* `left` is not known yet: say only whether the list is enough */
};

/* Does the user say something, and answer no call? Then a turn begins. */
bool budget_begins_turn(const struct message *m);
bool budget_is_lead(const struct message *m);
/* Adds a message that is left out; the texts of refs go into the arena. */
void budget_leave_out(
    struct budget_left *left, struct work *w, const struct message *m, struct arena *arena);
/* The weight of system messages from which on only the first and the newest stay. */
static inline uint64_t budget_lead_share(uint64_t tokens)
{
        return tokens / 2;
}

/*
 * Trims w's history to `tokens`; more than that is left only when the first and the newest system
 * message and the note alone are more. Adds to w->report. w must not be used again for anything but
 * work_tokens: the history may have grown by the note, which is in it.
 *
 * *more becomes true when messages that are missing would have fitted; nothing was changed then.
 * 0 or STENO_ENOMEM.
 */
int budget_apply(struct work *w, uint64_t tokens, const struct budget_before *before, bool *more,
    struct steno_error *err);

#endif
