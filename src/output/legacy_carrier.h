/*
 * legacy_carrier.h - writes and reads tool calls as text:
 * `<function_call>{...,"response":"..."}</function_call>`.
 *
 * For models without native calls, the call and its response are in the assistant's text. Every `<`
 * inside the JSON is written \u003c, so nothing that a tool printed can close the tag.
 */
#ifndef OUTPUT_LEGACY_CARRIER_H
#define OUTPUT_LEGACY_CARRIER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/*
 * Appends `<function_call>`, the call and `</function_call>`. `call` is a JSON object, with or
 * without its response. It is not changed except for `<`, which can only be in strings. Returns
 * false and appends nothing if it is not an object.
 */
bool legacy_put_call(struct buf *out, struct str call);

/*
 * Finds the first call in `text` at or behind *at. On success *call is the JSON object between the
 * tags (borrowed from text), *at the offset behind the closing tag, *start the offset of the
 * opening tag. Returns false if there are no more well-formed calls: an opening tag that is never
 * closed, or whose JSON does not parse, is skipped.
 */
bool legacy_next(struct str text, size_t *at, size_t *start, struct str *call);

#endif
