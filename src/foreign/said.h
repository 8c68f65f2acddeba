/*
 * said.h - messages of content blocks like Anthropic's, with the variations that other tools have:
 * several spellings of tool_use and tool_result, and results that are strings, lists of texts, or
 * objects.
 */
#ifndef FOREIGN_SAID_H
#define FOREIGN_SAID_H

#include "foreign/made.h"

struct said_message {
        json_ref message; /* has `role` and `content` */
        struct str id;    /* "": none */
        struct str at;
        /* Returns the text of a call's arguments if the tool keeps it elsewhere; "": the arguments
         * are in the call. May be NULL. */
        struct str (*arguments)(struct foreign *t, json_ref message, struct str call);
};

/* Hands out the texts and calls of a message as one message, and each of its results as one. */
int said_put(struct foreign *t, const struct said_message *m);

/* Writes the text of a result's content, whatever its shape. Sets *failed if an element says that
 * the call failed. */
void said_output(const struct json *j, json_ref content, struct buf *out, bool *failed);

#endif
