/*
 * mcp_content.h - what a tools/call result says, as text.
 *
 * Text parts are given as they are, one after the other. What is not text gets a line that says
 * what it is, and its data as a data: URI behind it, so that nothing of a result is lost and a
 * large one is kept out of the way like any other output. Structured content follows where no text
 * part says the same.
 */
#ifndef MCP_MCP_CONTENT_H
#define MCP_MCP_CONTENT_H

#include <stdbool.h>

#include "base/json.h"

/*
 * Writes result's content through `sink` (its first non-zero return ends it and is returned).
 * *is_error is the result's isError. STENO_EPROTO: not a result of tools/call.
 */
int mcp_content_write(const struct json *j, json_ref result, steno_sink sink, void *ctx,
    bool *is_error, struct steno_error *err);

/* One part of a content array, as text. */
void mcp_content_put_part(struct buf *b, const struct json *j, json_ref part);

#endif
