/*
 * budget.h - a history that fits a number of tokens.
 *
 * System and developer messages come first, then the newest turns whole. A turn that does not fit
 * whole is tried with placeholders for its tool results; of the newest turn, if even that is too
 * large, what the user said and the last calls with their results. Whatever is older than the
 * first turn that does not fit is left out, and a note in its place says how many messages and
 * which refs that were, so that the range can be read back. No pair is ever split (F3).
 */
#ifndef VIEW_BUDGET_H
#define VIEW_BUDGET_H

#include "view/work.h"

#define BUDGET_NOTE_REFS 8 /* refs that the note names; it says how many more there are */

/*
 * Trims w's history to `tokens`; more than that is left only when system messages and the note
 * alone are more. Adds to w->report. w must not be used again for anything but work_tokens: the
 * history may have grown by the note, which is in it. 0 or STENO_ENOMEM.
 */
int budget_apply(struct work *w, uint64_t tokens, struct steno_error *err);

#endif
