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
        size_t cap;        /* the capacity of m->parts */
        size_t expected;   /* the number of parts, if it is known before the first part; 0: one.
                              Parts are large, and most messages have one. */
        struct part spare; /* used if memory is out */
};

/*
 * Walks an object: found[i] becomes the value of keys[i] (a NULL-terminated list), or JSON_NONE if
 * it is absent. All other members are appended to *extras in order. If a key occurs twice, the last
 * one counts, and the earlier one becomes an extra.
 */
void reading_members(struct reading *r, json_ref obj, const char *const *keys, json_ref *found,
    struct extra **extras, bool inner);

/* Returns the inside of a string node; absent for anything else. */
struct str reading_string(struct reading *r, json_ref v);
/* Returns the raw value; absent for JSON_NONE. */
struct str reading_raw(struct reading *r, json_ref v);

/* Marks the extra with this key and value as having no meaning: other formats leave it out without
 * a report ("annotations":[], "status":"completed"). */
void reading_idle(struct extra *extras, const char *key, const char *value);

/* Keeps a member of an unexpected type as an extra. */
void reading_keep(
    struct reading *r, struct extra **extras, const char *key, json_ref v, bool inner);

/* Returns a string. Anything else is kept as an extra, and the result is absent. */
struct str reading_string_or_keep(
    struct reading *r, struct extra **extras, const char *key, json_ref v);

/* Adds an empty part to the message and returns it. If memory is out, returns a spare part. */
struct part *reading_part(struct reading *r, enum part_kind kind, json_ref raw);
struct part *reading_opaque(struct reading *r, json_ref raw);
/* Adds a text part from a string node. */
struct part *reading_text(struct reading *r, json_ref string);
/* Adds a part from an object that has a type and, under `key`, a text. NULL: the text is not a
 * string. */
struct part *reading_text_of(
    struct reading *r, json_ref object, const char *key, enum part_kind kind);

/* Splits "data:image/png;base64,AAAA" into mime and data; anything else becomes url. */
void reading_url(struct media *media, struct str url);

/* Reads a list of blocks with `block` into the children of a part instead of the message. */
void reading_children(struct reading *r, struct part *of, json_ref list,
    void (*block)(struct reading *r, json_ref v));

/* Reads arguments as a JSON value. {"__raw_arguments":"..."} stands for the string in it
 * (writing.h). */
void reading_input(struct reading *r, struct part *call, json_ref v);

/*
 * Returns how a result ended, by a member with the name of an ending and the value true ("denied",
 * "interrupted", "cut"). This member is removed from the list; a writer that has a place for the
 * ending writes it.
 */
enum call_ending reading_ending(struct extra **extras);

/*
 * Reads an entry {id,name,arguments,state?,result?,error?,steps,invokedAt,duration,ref}: adds a
 * call and, if the entry is complete, a result behind it. With `derived`, a state that follows from
 * the other members is not kept.
 */
void reading_entry(struct reading *r, json_ref entry, bool derived);

#endif
