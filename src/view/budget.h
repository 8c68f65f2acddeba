/*
 * budget.h - trims a history to a number of tokens.
 *
 * A budget is spent in a fixed order. At the first part that does not fit, the rest is left out.
 * The order does not depend on the budget, so a larger budget shows everything that a smaller one
 * shows (budgets are monotone):
 *
 *   1. System and developer messages. If they need more than half of the budget, the first and the
 *      newest one stay, then older ones as long as they fit in that half.
 *   2. From the newest turn, the user's message, then its calls with their results, beginning at
 *      the end: eight calls with placeholders for their results, then these results, then the next
 *      eight, and so on.
 *   3. Older turns, the newest first: a whole turn with placeholders, then its results.
 *
 * A note replaces the messages that are left out. It gives their number and their refs, so that
 * they can be read later. Room for the note is reserved before step 2. No pair is ever split (F3).
 *
 * The history may be only the end of a longer one (struct budget_before). The result is the same as
 * for the whole history. If the present messages are not enough for that, the caller is asked for
 * more of them.
 */
#ifndef VIEW_BUDGET_H
#define VIEW_BUDGET_H

#include "view/work.h"

#define BUDGET_NOTE_REFS 8 /* the note names at most this many refs */

/* Messages that were left out before. */
struct budget_left {
        uint64_t count;     /* number of messages, */
        uint64_t stored;    /* of messages that are stored, not made by a repair, */
        uint64_t leads;     /* and of system or developer messages */
        uint64_t first_seq; /* seq of the oldest */
        uint64_t last_seq;
        uint64_t refs;                      /* number of outputs with a ref */
        struct str named[BUDGET_NOTE_REFS]; /* the first refs */
};

/* A history whose middle is missing. */
struct budget_before {
        bool there; /* messages are missing before list[kept] */
        /* Number of messages at the beginning of the list that come from before the gap: system and
         * developer messages, and the user's message of the turn that the gap cuts. */
        size_t kept;
        struct budget_left left; /* the missing messages; refs and seqs in order */
        bool guess;              /* `left` is not known yet: only say whether the list is
                                    enough */
};

/* Is it a user's message with content that answers no call? Such a message begins a turn. */
bool budget_begins_turn(const struct message *m);
bool budget_is_lead(const struct message *m);
/* Adds a message that is left out; the texts of its refs are stored in the arena. */
void budget_leave_out(
    struct budget_left *left, struct work *w, const struct message *m, struct arena *arena);
/* The share of the budget for system messages. If they need more, only the first and the newest are
 * sure to stay. */
static inline uint64_t budget_lead_share(uint64_t tokens)
{
        return tokens / 2;
}

/*
 * Trims w's history to `tokens`. The result is larger only if the first and the newest system
 * message and the note alone are larger. Adds to w->report. After that, only work_tokens may be
 * called with w, because the history may now contain the note.
 *
 * *more becomes true if missing messages would have fitted; then nothing was changed. 0 or
 * STENO_ENOMEM.
 */
int budget_apply(struct work *w, uint64_t tokens, const struct budget_before *before, bool *more,
    struct steno_error *err);

#endif
