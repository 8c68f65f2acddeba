/*
 * pieces.h - a stored message of any format as pieces that a person can be shown.
 *
 * Lenient on purpose: a transcript shows whatever was recorded, also what no format would accept.
 * Nothing is judged or repaired here; that is what views are for.
 */
#ifndef CLI_PIECES_H
#define CLI_PIECES_H

#include <stdbool.h>

#include "base/json.h"

enum piece_kind {
        PIECE_TEXT,
        PIECE_THINKING,
        PIECE_CALL,
        PIECE_RESULT,
        PIECE_MEDIA, /* an image, a file, a part that is not known here; `name` says which */
        PIECE_ERROR, /* a failed model call; `name` is its code */
};

struct piece {
        enum piece_kind kind;
        struct str name;   /* decoded; of a tool, medium or error */
        struct str server; /* of a result */
        struct str id;     /* of a call or result */
        struct str body;   /* decoded text, arguments, or raw JSON */
        double duration;   /* ms, negative when unknown */
        bool failed;
        const char *ended; /* of a result: what ended the call in the tool's place, or NULL */
};

typedef void (*piece_fn)(void *ctx, const struct piece *p);

/* Every piece of the message that `j` holds, in order. 0 or STENO_ENOMEM. */
int pieces_each(const struct json *j, piece_fn each, void *ctx);

#endif
