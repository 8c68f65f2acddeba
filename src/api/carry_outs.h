/*
 * carry_outs.h - the results in a message, whatever its format, and how large ones leave it.
 *
 * A result is what a format's reader says is one (model/message.h): a tool message, a block, an
 * item, a call that carries its own result. Its *text* is what a file of it holds: the decoded
 * bytes of a string; the JSON of any other value; of an array of blocks their texts, with a line
 * between them that says which block begins. The text decides whether it is large.
 *
 * In the message a stub takes its place. Where the output was an array that is little more than its
 * texts, the array stays: the stub stands in its first text and the others are emptied, so that
 * images and members that nobody knows stay where they were. x.outs (model/about.h) says how
 * everything comes back.
 */
#ifndef API_CARRY_OUTS_H
#define API_CARRY_OUTS_H

#include "api/carry.h"
#include "model/message.h"

/* A string or an array that leaves the message, and what stands there instead. */
struct carry_swap {
        struct str span; /* in the text of the message */
        struct str with;
        struct about_out out; /* all but `at` and `len` */
        bool silent;          /* about gets no entry: carry_calls_out knows what to do */
};

struct carry_swaps {
        struct carry_swap *list;
        size_t count;
        size_t cap;
};

/* Appends to the list, in the arena. False: out of memory. */
bool carry_swaps_add(struct carry_swaps *s, struct arena *arena, const struct carry_swap *swap);
/* `raw` with all of it swapped, appended to `out`; the outs are added to about's. */
int carry_swaps_apply(struct carry_swaps *s, struct str raw, struct arena *arena,
    struct about *about, struct buf *out, struct steno_error *err);

/* The text of a result of the message `raw`. False: it has none that could leave the message. */
bool carry_outs_text(const struct part *result, struct str raw, struct buf *out);

/* Calls `each` with the text of every result, until that is non-zero, which is returned. */
typedef int (*carry_text_fn)(void *ctx, const struct part *result, size_t index, struct str text);
int carry_outs_each(
    const struct carry_message *msg, carry_text_fn each, void *ctx, struct steno_error *err);

/* Finds what has to leave the message, makes its artifacts, and lists the swaps. 0 or a code; the
 * artifacts are named in about by then, so that they can be taken back. */
int carry_outs_take(struct steno_conv *conv, const struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct carry_swaps *swaps,
    struct steno_error *err);

#endif
