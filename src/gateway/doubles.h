/*
 * doubles.h - members that occur twice in one object.
 *
 * JSON allows them, and readers differ in which one they use. So different clients read such an
 * answer differently.
 */
#ifndef GATEWAY_DOUBLES_H
#define GATEWAY_DOUBLES_H

#include "base/json.h"

/* The first such member anywhere in the document; its name lives as long as the text, and
 * name->p is NULL where there is none. 0 or STENO_ENOMEM. */
int doubles_find(const struct json *j, struct str *name);

#endif
