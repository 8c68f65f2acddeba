/*
 * work.h - the history that edits and budgets change: it is repaired and weighed, and its pairs are
 * known.
 *
 * Edits change parts in place and mark messages as dropped; work_finish() takes the dropped ones
 * out. Dropping one message drops every message that holds the other end of one of its pairs, and
 * so on, so that no pair is ever split (F3), and neither is reasoning from what it belongs to.
 */
#ifndef VIEW_WORK_H
#define VIEW_WORK_H

#include "base/arena.h"
#include "base/json.h"
#include "model/message.h"
#include "view/weigh.h"

struct work {
        struct history *h; /* peers are set; the caller's, changed in place */
        struct arena *arena;
        struct weigher weigher;
        /* Strategies see only messages up to this seq; UINT64_MAX: all. So the result for these
         * messages does not change when more messages arrive. */
        uint64_t pin;
        /* The ref of the artifact that holds a message's whole output, as text, or absent. NULL:
         * only what the parts themselves say. */
        struct str (*ref_of)(void *ctx, const struct message *m);
        void *ref_ctx;

        uint64_t *weight;     /* tokens, by message */
        bool *dropped;        /* by message */
        bool *tied;           /* by message: it and the next one stay or go together (message.h) */
        struct jsonw *report; /* an open array that edits add to; may be NULL */
        struct work_owner *owners;

        /* The history may be the end of a longer one. These members tell whether an edit did
         * everything to the present messages that it would do in the whole history. */
        uint64_t missing; /* how many messages are not there; the caller's */
        bool limited;     /* a token limit dropped messages, so that it drops all missing ones */
        bool spared;      /* `auto` left out a step because what is there is short enough */

        struct work_step *steps; /* of strategies.c, for its report */
        size_t step_count;
        size_t step_cap;
};

/* What one strategy did, by message. */
struct work_step {
        const struct strategy *strategy;
        bool automatic;
        bool drops;
        uint64_t dropped;  /* messages */
        uint32_t *changed; /* results or calls */
        uint64_t *weight;  /* afterwards */
};

/* Set h, arena, pin and ref_of before. 0 or STENO_ENOMEM. */
int work_init(struct work *w, struct steno_error *err);
void work_release(struct work *w);

/* A stored message that strategies may see: not behind the pin, and not made by a repair. */
bool work_sees(const struct work *w, size_t i);
/* Tokens of what is left; with a pin, of what strategies see. */
uint64_t work_total(const struct work *w);
/* Tokens of everything that is left. */
uint64_t work_tokens(const struct work *w);
void work_reweigh(struct work *w, size_t i);

/* The message that holds a part. */
size_t work_owner_of(const struct work *w, const struct part *p);

/* Drops message `i` and what is paired with it; tells `gone` (may be NULL) each of them. */
void work_drop(struct work *w, size_t i, void (*gone)(void *ctx, size_t i), void *ctx);

/* The ref of a result, as text, or absent. */
struct str work_ref(struct work *w, const struct message *m, const struct part *result);
/* `text`, and where the result has a ref, "text [full output: ref]"; as text. */
struct str work_placeholder(
    struct work *w, struct str text, const struct message *m, const struct part *result);

/* Takes out what was dropped. The order of the rest stays. */
void work_finish(struct work *w);

#endif
