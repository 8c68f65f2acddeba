/*
 * level.h - one level of a JSON text of any size: the children of one value, with the bytes where
 * each stands.
 *
 * The text streams by once, in pieces of any size; nothing of a child is kept but its key and its
 * beginning. Everything that was read is checked strictly (base/json_stream.h). Nothing is lost:
 * keys and values keep their spelling, and a key that occurs twice is reported twice.
 */
#ifndef OUTPUT_LEVEL_H
#define OUTPUT_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json_stream.h"
#include "base/str.h"

enum level_type {
        LEVEL_NOTHING, /* the value has not begun */
        LEVEL_OBJECT,
        LEVEL_ARRAY,
        LEVEL_STRING,
        LEVEL_NUMBER,
        LEVEL_BOOLEAN,
        LEVEL_NULL,
};
/* "object", "array", "string", "number", "boolean", "null". */
const char *level_type_name(enum level_type type);

struct level_child {
        uint64_t index;
        struct str key;      /* of an object: raw, with its quotes; its beginning when it is long */
        uint64_t key_offset; /* where the key begins, */
        uint64_t key_bytes;  /* and how long it is, quotes and all */
        uint64_t offset;     /* where the value begins, */
        uint64_t bytes;      /* and how long it is */
        struct str head;     /* its first bytes, raw */
        enum level_type type;
};

/* Non-zero: no more children are wanted; the walk stops behind the comma that follows. */
typedef int (*level_fn)(void *ctx, const struct level_child *child);

enum level_state {
        LEVEL_MORE,    /* the next bytes are wanted */
        LEVEL_DONE,    /* the value has ended */
        LEVEL_STOPPED, /* `each` wanted no more; it goes on at `pos` */
        LEVEL_BAD,     /* this is not JSON; `pos` is behind the byte that shows it */
};

struct level {
        struct json_stream json;
        level_fn each;
        void *ctx;
        enum level_state state;
        enum level_type type; /* of the value */
        uint64_t pos;         /* of the next byte that is fed */
        uint64_t start, end;  /* of the value: where it begins, and behind what was seen of it */
        bool colon;           /* behind the key of the present child */
        bool begun;           /* inside its value */
        bool stop;
        struct level_child child;
        struct buf key, head;
        size_t head_max;
};

/* The value that begins at byte `at` of the text, or behind blanks there. `head_max` bytes of each
 * child are kept. */
void level_init(struct level *l, uint64_t at, size_t head_max, level_fn each, void *ctx);
/* Goes on at a place where an earlier walk stopped, in an object or an array, with child `index`.
 */
void level_resume(struct level *l, uint64_t at, enum level_type type, uint64_t index);
/* The bytes at `pos`. LEVEL_MORE, or how it ended; what stands behind is not looked at. */
enum level_state level_feed(struct level *l, const char *p, size_t n);
/* The text has ended: a number at its end is whole now, everything else would have ended before. */
enum level_state level_finish(struct level *l);
/* Did memory run out? */
bool level_failed(const struct level *l);
void level_release(struct level *l);

#endif
