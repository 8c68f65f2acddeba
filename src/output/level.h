/*
 * level.h - reads one level of a JSON text of any size: the children of one value, and where each
 * is.
 *
 * The text streams by once, in pieces of any size. Of a child, only its key and its beginning are
 * kept. Everything that is read is checked strictly (base/json_stream.h). Keys and values keep
 * their spelling, and a key that occurs twice is reported twice.
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
        LEVEL_NOTHING, /* the value has not begun yet */
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
        struct str key;      /* for objects: raw, with its quotes; only the beginning of a long
                                key */
        uint64_t key_offset; /* where the key begins, */
        uint64_t key_bytes;  /* and its length, including quotes */
        uint64_t offset;     /* where the value begins, */
        uint64_t bytes;      /* and its length */
        struct str head;     /* its first bytes, raw */
        enum level_type type;
};

/* Called for each child. Non-zero: no more children are needed, and the walk stops behind the comma
 * that follows. */
typedef int (*level_fn)(void *ctx, const struct level_child *child);

enum level_state {
        LEVEL_MORE,    /* more bytes are needed */
        LEVEL_DONE,    /* the value has ended */
        LEVEL_STOPPED, /* `each` returned non-zero; the walk can continue at `pos` */
        LEVEL_BAD,     /* the text is not JSON; `pos` is behind the invalid byte */
};

struct level {
        struct json_stream json;
        level_fn each;
        void *ctx;
        enum level_state state;
        enum level_type type; /* the type of the value */
        uint64_t pos;         /* offset of the next byte that is fed */
        uint64_t start, end;  /* where the value begins, and the end of what was read of it */
        bool colon;           /* behind the key of the current child */
        bool begun;           /* inside the value of the current child */
        bool stop;
        struct level_child child;
        struct buf key, head;
        size_t head_max;
};

/* Begins a walk of the value at byte `at` of the text, or behind blanks there. `head_max` bytes of
 * each child are kept. */
void level_init(struct level *l, uint64_t at, size_t head_max, level_fn each, void *ctx);
/* Continues where an earlier walk stopped, in an object or an array, with child `index`. */
void level_resume(struct level *l, uint64_t at, enum level_type type, uint64_t index);
/* Feeds the bytes at `pos`. Returns LEVEL_MORE, or how the walk ended; bytes behind the end are not
 * read. */
enum level_state level_feed(struct level *l, const char *p, size_t n);
/* Tells that the text has ended. A number at its end is now complete; any other value must have
 * ended before. */
enum level_state level_finish(struct level *l);
/* Did memory run out? */
bool level_failed(const struct level *l);
void level_release(struct level *l);

#endif
