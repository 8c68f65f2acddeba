/*
 * accum.h - a JSON object that grows from fragments.
 *
 * Members keep their raw bytes and the order in which they first came. String fragments are joined
 * inside their quotes, with their escapes unchanged, so the halves of a surrogate pair may come in
 * two fragments. Arrays are extended; a text extends an array by a part of its own. Objects are
 * joined member by member, except for their id, type and index. Any other value is replaced by the
 * last one. A null never replaces a value.
 */
#ifndef PROVIDER_ACCUM_H
#define PROVIDER_ACCUM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "provider/reply.h"

enum accum_kind {
        ACCUM_RAW,    /* a whole value */
        ACCUM_TEXT,   /* the inside of a string */
        ACCUM_LIST,   /* the inside of an array */
        ACCUM_OBJECT, /* an object that comes in fragments: `object` has its members */
};

struct accum_member {
        struct buf key; /* the inside of the key's quotes, raw */
        enum accum_kind kind;
        struct buf value;
        size_t told;    /* how many bytes of `value` accum_tell() has passed on */
        bool text_part; /* the last part of the list is text that came as a string and may
                           grow */
        struct accum *object;
};

struct accum {
        struct accum_member *list;
        size_t count;
        size_t cap;
        int failed;        /* sticky: STENO_ENOMEM or STENO_ELIMIT */
        unsigned replaced; /* number of values that were replaced by a value of another type */
};

void accum_init(struct accum *a);
void accum_release(struct accum *a);

/* Is this the last member of `obj` with the key `key`, as it is written? If a key occurs twice,
 * most readers use the last one, so values inside one object must not be joined with each other. */
bool accum_is_last(const struct json *j, json_ref obj, json_ref key);

/* Returns the member with this plain key, or NULL. */
struct accum_member *accum_find(const struct accum *a, struct str key);
/* Joins `value` of `j` to the member with the raw key `key`. Returns the member, or NULL if memory
 * is out. */
struct accum_member *accum_join(
    struct accum *a, struct str key, const struct json *j, json_ref value);
/* Does the same, but replaces an earlier value. */
struct accum_member *accum_set(
    struct accum *a, struct str key, const struct json *j, json_ref value);
/* Sets a string member from decoded text. */
struct accum_member *accum_set_text(struct accum *a, struct str key, struct str text);

/* Passes on the text, decoded, by which a string has grown since the last call. Does nothing for
 * other members and for NULL. Returns the hook's result, or STENO_ENOMEM. */
int accum_tell(struct accum_member *m, const struct reply_hooks *hooks, enum reply_piece kind);
/* Returns a string member, decoded and NUL-terminated; "" if it is not a string or contains a NUL.
 * NULL: out of memory. */
char *accum_dup(const struct accum *a, const char *key);

/* Writes only the value. */
void accum_put_value(const struct accum_member *m, struct buf *out);
/* Writes `"key":value`. */
void accum_put_member(const struct accum_member *m, struct buf *out);
/* Writes all members, separated by commas; with `comma`, also a comma before the first one. */
void accum_put_members(const struct accum *a, struct buf *out, bool comma);

#endif
