/*
 * doubles.h - members that stand twice in one object.
 *
 * JSON allows it, and readers differ in which one they take, so an answer that has such a member
 * says different things to different clients.
 */
#ifndef GATEWAY_DOUBLES_H
#define GATEWAY_DOUBLES_H

#include "base/json.h"

/* The first such member anywhere in the document; its name lives as long as the text, and
 * name->p is NULL where there is none. 0 or STENO_ENOMEM. */
int doubles_find(const struct json *j, struct str *name);

#endif
