/*
 * reading.h - what the formats' readers have in common: sorting an object's members into known
 * ones and extras, growing a message's parts, taking media apart. Used inside format/ only.
 */
#ifndef FORMAT_READING_H
#define FORMAT_READING_H

#include "base/arena.h"
#include "base/json.h"
#include "model/message.h"

struct reading {
        const struct json *j;
        struct arena *arena;
        struct message *m;
        size_t cap;        /* of m->parts */
        size_t expected;   /* how many parts there will be, where that is known before the first;
                              0: one. Parts are large, and most messages have one. */
        struct part spare; /* written to when memory is out */
};

/*
 * Walks an object: found[i] becomes the value of keys[i] (a NULL-terminated list), JSON_NONE
 * where it is not there. Every other member, and one that stands twice before its last, goes to
 * *extras in order.
 */
void reading_members(struct reading *r, json_ref obj, const char *const *keys, json_ref *found,
    struct extra **extras, bool inner);

/* The inside of a string node; absent for anything else. */
struct str reading_string(struct reading *r, json_ref v);
/* The raw value; absent for JSON_NONE. */
struct str reading_raw(struct reading *r, json_ref v);

/* Marks the extra of that key and value as saying nothing: other formats leave it out without a
 * report ("annotations":[], "status":"completed"). */
void reading_idle(struct extra *extras, const char *key, const char *value);

/* Keeps a member that turned out not to be what it should: as an extra. */
void reading_keep(
    struct reading *r, struct extra **extras, const char *key, json_ref v, bool inner);

/* A string; anything else is kept, and the string is absent. */
struct str reading_string_or_keep(
    struct reading *r, struct extra **extras, const char *key, json_ref v);

/* A cleared part at the end of the message; a scratch one when memory is out. */
struct part *reading_part(struct reading *r, enum part_kind kind, json_ref raw);
struct part *reading_opaque(struct reading *r, json_ref raw);
/* A text part of a string node. */
struct part *reading_text(struct reading *r, json_ref string);
/* A part of an object that has a type and, under `key`, its text. NULL: the text is not a string.
 */
struct part *reading_text_of(
    struct reading *r, json_ref object, const char *key, enum part_kind kind);

/* "data:image/png;base64,AAAA" into mime and data; anything else is a url. */
void reading_url(struct media *media, struct str url);

/* A list of blocks, read by `block` into children of a part instead of the message. */
void reading_children(struct reading *r, struct part *of, json_ref list,
    void (*block)(struct reading *r, json_ref v));

/* Arguments as a JSON value; {"__raw_arguments":"..."} is the string inside (writing.h). */
void reading_input(struct reading *r, struct part *call, json_ref v);

/*
 * How a result ended, by a member of its name with the value true ("denied", "interrupted", "cut").
 * That member is taken from the list: a writer with a place for it writes the ending.
 */
enum call_ending reading_ending(struct extra **extras);

/*
 * An entry {id,name,arguments,state?,result?,error?,steps,invokedAt,duration,ref}: adds a call
 * and, when it is complete, a result behind it. With `derived`, a state that follows from the
 * rest is not kept.
 */
void reading_entry(struct reading *r, json_ref entry, bool derived);

#endif
