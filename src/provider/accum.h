/*
 * accum.h - a JSON object that grows from fragments, token by token as they came.
 *
 * Members keep the order in which they were first seen and their raw bytes: string fragments are
 * joined inside their quotes, escapes untouched (so the halves of a surrogate pair that came in two
 * fragments meet again); arrays are extended, also by text, which becomes a part of its own;
 * objects are joined member by member, but for their id, type and index. Anything else is replaced
 * by what came last. A null never replaces a value.
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
        ACCUM_OBJECT, /* an object that came in fragments: `object` has its members */
};

struct accum_member {
        struct buf key; /* inside of the key's quotes, raw */
        enum accum_kind kind;
        struct buf value;
        size_t told;    /* bytes of `value` that accum_tell() passed on */
        bool text_part; /* the list's last part is text that came as a string and may continue */
        struct accum *object;
};

struct accum {
        struct accum_member *list;
        size_t count;
        size_t cap;
        int failed;        /* sticky: STENO_ENOMEM or STENO_ELIMIT */
        unsigned replaced; /* values that were replaced by a value of another type */
};

void accum_init(struct accum *a);
void accum_release(struct accum *a);

/* Is this the last member of `obj` with the key `key`, as it is spelled? Where a key occurs twice,
 * most readers use the last one, so values inside one object must not be joined with each other. */
bool accum_is_last(const struct json *j, json_ref obj, json_ref key);

/* The member with this plain key, or NULL. */
struct accum_member *accum_find(const struct accum *a, struct str key);
/* Joins `value` of `j` to the member with the raw key `key`. Returns the member, NULL when memory
 * is out. */
struct accum_member *accum_join(
    struct accum *a, struct str key, const struct json *j, json_ref value);
/* The same, but replaces an earlier value. */
struct accum_member *accum_set(
    struct accum *a, struct str key, const struct json *j, json_ref value);
/* A string member, from decoded text. */
struct accum_member *accum_set_text(struct accum *a, struct str key, struct str text);

/* Passes on, decoded, the text by which a string has grown since the last call; nothing for other
 * members and for NULL. Returns what the hook returned, or STENO_ENOMEM. */
int accum_tell(struct accum_member *m, const struct reply_hooks *hooks, enum reply_piece kind);
/* A string member, decoded and NUL-terminated; "" where it is none or holds a NUL. NULL: no memory.
 */
char *accum_dup(const struct accum *a, const char *key);

/* The value alone. */
void accum_put_value(const struct accum_member *m, struct buf *out);
/* `"key":value` */
void accum_put_member(const struct accum_member *m, struct buf *out);
/* All members, with commas between them; a comma before the first one with `comma`. */
void accum_put_members(const struct accum *a, struct buf *out, bool comma);

#endif
