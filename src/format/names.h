/*
 * names.h - finds names that a provider accepts, for tools whose own names it would refuse.
 *
 * Every character that the provider does not accept becomes _. If the result is too long or the
 * name of another tool, it is cut, and a hash of the tool's own name is appended. A table always
 * gives the same answer for the same name, so calls and results agree. Used inside format/ only.
 */
#ifndef FORMAT_NAMES_H
#define FORMAT_NAMES_H

#include "base/arena.h"
#include "format/rules.h"

struct names_slot {
        struct str name; /* the name that is written; absent: the slot is free */
        struct str of;   /* the tool's own name */
};

struct names {
        const struct rules *rules;
        struct arena *arena;
        struct names_slot *slots;
        size_t count, cap;
};

/* Reserves a name that the provider accepts, so that no other tool gets it. Reserve all such names
 * before the first names_map(). */
void names_take(struct names *n, struct str name);
/* Returns the name under which a tool is written. It is text, in the arena or `name` itself.
 * Absent: out of memory. */
struct str names_map(struct names *n, struct str name);

#endif
