/*
 * naming.h - what the body of a request says about the session that it belongs to.
 *
 * Headers are read when the request comes (gateway.c); this is the rest, which needs the body and
 * is read beside the relay.
 */
#ifndef GATEWAY_NAMING_H
#define GATEWAY_NAMING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

/* The session that metadata.user_id holds, as Claude Code names it there. Nothing is put where it
 * holds none: other values name a person, and all sessions of a person share them. */
void naming_put_session(const struct json *request, struct buf *out);

/* A request beside the talk: its input asks for a compaction. `list` is the input's items. */
bool naming_is_side(const struct json *list);

/* The answer that this request goes on behind, by its id: previous_response_id or
 * thread.previous_message_id. Empty: none. */
struct str naming_previous(const struct json *request);

/* The endpoint's own conversation: a string, or an object with an id. Empty: none. */
struct str naming_conversation(const struct json *request);

#endif
