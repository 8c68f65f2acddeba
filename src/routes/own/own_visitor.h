/*
 * own_visitor.h - what a visitor of the public chatbot may send, and how much.
 */
#ifndef ROUTES_OWN_OWN_VISITOR_H
#define ROUTES_OWN_OWN_VISITOR_H

#include <stdbool.h>

#include "base/json.h"
#include "http/request.h"

/*
 * The text of the body's "message": a string, or a message object whose content is a string or a
 * list of text parts. Only the text is taken: a role, calls, ids, dates and all other members are
 * ignored. NULL when there is no text or too much of it; the answer (400, 413) has then been given.
 */
const char *own_visitor_text(struct request *r, const struct json *j);
/* Is there room for another turn in the visitor's conversation? Answers 413 or an error if not. */
bool own_visitor_has_room(struct request *r, const char *conversation);

#endif
