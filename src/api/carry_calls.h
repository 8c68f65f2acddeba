/*
 * carry_calls.h - calls that stand as text in an assistant's message (output/legacy_carrier.h),
 * with large responses: each becomes an artifact, and a stub takes its place inside of the tag.
 *
 * The call keeps its other members and gets a `ref` like a tool message's; `"value":true` in it
 * says that the response was a JSON value and not a string. A message may have several; the refs
 * of all of them stand in its about.
 */
#ifndef API_CARRY_CALLS_H
#define API_CARRY_CALLS_H

#include "api/carry_outs.h"

/* Takes them out: their texts become swaps, about gets the refs. When it fails nothing is left
 * behind. */
int carry_calls_in(struct steno_conv *conv, const struct carry_message *msg,
    const struct carry_options *opt, struct carried *to, struct carry_swaps *swaps,
    struct steno_error *err);

/* Hands out every response that could have been taken out, until `each` fails. */
int carry_calls_texts(const struct json *j, json_ref msg, int (*each)(void *ctx, struct str text),
    void *ctx, struct steno_error *err);

/* The message with the responses in their places again. */
int carry_calls_out(
    struct steno_conv *conv, struct str m, struct buf *out, struct steno_error *err);

#endif
