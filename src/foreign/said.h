/*
 * said.h - messages of content blocks in the manner of Anthropic's, with the variations that
 * tools have made of it: tool_use and tool_result under several spellings, results that are
 * strings, lists of texts, or objects.
 */
#ifndef FOREIGN_SAID_H
#define FOREIGN_SAID_H

#include "foreign/made.h"

struct said_message {
        json_ref message; /* has `role` and `content` */
        struct str id;    /* "": none */
        struct str at;
        /* The text of a call's arguments that are kept elsewhere; may be NULL. "": as they stand */
        struct str (*arguments)(struct foreign *t, json_ref message, struct str call);
};

/* Hands out what it says and calls as one message, and each result as one. */
int said_put(struct foreign *t, const struct said_message *m);

/* The text of a result's content, whatever it is; *failed is set where an element says so. */
void said_output(const struct json *j, json_ref content, struct buf *out, bool *failed);

#endif
