/*
 * legacy_carrier.h - tool calls as text: `<function_call>{...,"response":"..."}</function_call>`.
 *
 * For models without native calls the call and its response stand in the assistant's text. Every
 * `<` inside the JSON is written \u003c, so nothing that a tool printed can close the tag.
 */
#ifndef OUTPUT_LEGACY_CARRIER_H
#define OUTPUT_LEGACY_CARRIER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/*
 * Appends `<function_call>` + the call + `</function_call>`. `call` is a JSON object, with or
 * without its response; it is not changed except for `<`, which only strings can contain. False,
 * and nothing appended, when it is not an object.
 */
bool legacy_put_call(struct buf *out, struct str call);

/*
 * The first call in `text` at or behind *at. On success *call is the JSON object between the
 * tags (borrowed from text), *at the offset behind the closing tag, *start the offset of the
 * opening one. False when there is no further well-formed call: an opening tag whose JSON does not
 * parse, or that is never closed, is skipped.
 */
bool legacy_next(struct str text, size_t *at, size_t *start, struct str *call);

#endif
