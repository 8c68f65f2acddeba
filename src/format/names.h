/*
 * names.h - names of tools that a provider takes, for tools whose own names it would refuse.
 *
 * Every character that the provider does not take becomes _. Where that makes the name of another
 * tool, or the name is too long, it is cut and a hash of the own name is appended. The same name
 * always gets the same answer from one table, so calls and results agree. Used inside format/ only.
 */
#ifndef FORMAT_NAMES_H
#define FORMAT_NAMES_H

#include "base/arena.h"
#include "format/rules.h"

struct names_slot {
        struct str name; /* as it is written; absent: the slot is free */
        struct str of;   /* the tool's own name */
};

struct names {
        const struct rules *rules;
        struct arena *arena;
        struct names_slot *slots;
        size_t count, cap;
};

/* Takes a name that the provider accepts: no other tool is written under it. Take all of them
 * before the first names_map(). */
void names_take(struct names *n, struct str name);
/* The name under which a tool is written (text, in the arena or the same). Absent: out of memory.
 */
struct str names_map(struct names *n, struct str name);

#endif
