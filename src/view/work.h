/*
 * work.h - the history that edits and budgets change. It is repaired and weighed, and its pairs are
 * known.
 *
 * Edits change parts in place and mark messages as dropped; work_finish() takes the dropped ones
 * out. Dropping a message also drops the messages at the other end of its pairs, and so on, so that
 * no pair is ever split (F3). Reasoning and the item that it belongs to are not split either.
 */
#ifndef VIEW_WORK_H
#define VIEW_WORK_H

#include "base/arena.h"
#include "base/json.h"
#include "model/message.h"
#include "view/weigh.h"

struct work {
        struct history *h; /* belongs to the caller and is changed in place; peers are set */
        struct arena *arena;
        struct weigher weigher;
        /* Strategies see only messages up to this seq; UINT64_MAX: all. So the result for these
         * messages does not change when more messages arrive. */
        uint64_t pin;
        /* Returns the ref of the artifact that holds a message's whole output, as text, or absent.
         * NULL: only refs in the parts themselves are used. */
        struct str (*ref_of)(void *ctx, const struct message *m);
        void *ref_ctx;

        uint64_t *weight;     /* for each message: its tokens */
        bool *dropped;        /* for each message */
        bool *tied;           /* for each message: it and the next one stay or go together
                                 (message.h) */
        struct jsonw *report; /* an open array that edits add to; may be NULL */
        struct work_owner *owners;

        /* The history may be the end of a longer one. These members tell whether an edit did
         * everything to the present messages that it would do in the whole history. */
        uint64_t missing; /* number of messages that are not in the list; the caller sets it */
        bool limited;     /* a token limit dropped messages, so it would drop all missing ones */
        bool spared;      /* `auto` left out a step because the present messages are short
                             enough */

        struct work_step *steps; /* used by strategies.c for its report */
        size_t step_count;
        size_t step_cap;
};

/* What one strategy did. */
struct work_step {
        const struct strategy *strategy;
        bool automatic;
        bool drops;
        uint64_t dropped;  /* number of dropped messages */
        uint32_t *changed; /* for each message: number of changed results or calls */
        uint64_t *weight;  /* for each message: its tokens afterwards */
};

/* Set h, arena, pin and ref_of before the call. 0 or STENO_ENOMEM. */
int work_init(struct work *w, struct steno_error *err);
void work_release(struct work *w);

/* Is it a stored message that strategies may see? Messages behind the pin, and messages that a
 * repair made, are not. */
bool work_sees(const struct work *w, size_t i);
/* Returns the tokens of what is left; with a pin, only of what strategies see. */
uint64_t work_total(const struct work *w);
/* Returns the tokens of everything that is left. */
uint64_t work_tokens(const struct work *w);
void work_reweigh(struct work *w, size_t i);

/* Returns the message that holds a part. */
size_t work_owner_of(const struct work *w, const struct part *p);

/* Drops message `i` and the messages that are paired with it. Calls `gone` (may be NULL) for each
 * of them. */
void work_drop(struct work *w, size_t i, void (*gone)(void *ctx, size_t i), void *ctx);

/* Returns the ref of a result as text, or absent. */
struct str work_ref(struct work *w, const struct message *m, const struct part *result);
/* Returns `text`, or "text [full output: ref]" if the result has a ref, as text. */
struct str work_placeholder(
    struct work *w, struct str text, const struct message *m, const struct part *result);

/* Removes the dropped messages. The order of the rest stays. */
void work_finish(struct work *w);

#endif
