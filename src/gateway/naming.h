/*
 * naming.h - what the body of a request says about its session.
 *
 * Headers are read when the request arrives (gateway.c). The functions here need the whole body,
 * and run outside of the relay's thread.
 */
#ifndef GATEWAY_NAMING_H
#define GATEWAY_NAMING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

/* The session that metadata.user_id holds, as Claude Code names it there. Puts nothing if there is
 * none: other values name a person, and all sessions of that person share them. */
void naming_put_session(const struct json *request, struct buf *out);

/* Does the input ask for a compaction? Such a request is not part of the conversation. `list` has
 * the items of the input. */
bool naming_is_side(const struct json *list);

/* The id of the answer that this request continues: previous_response_id or
 * thread.previous_message_id. Empty: none. */
struct str naming_previous(const struct json *request);

/* The endpoint's own conversation: a string, or an object with an id. Empty: none. */
struct str naming_conversation(const struct json *request);

#endif
