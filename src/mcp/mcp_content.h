/*
 * mcp_content.h - what a tools/call result says, as text.
 *
 * Text parts are given as they are, one after the other. Any other part becomes a line that
 * describes it, followed by its data as a data: URI. So nothing of a result is lost, and a large
 * one becomes a file like any other output. Structured content follows, unless a text part has the
 * same.
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
