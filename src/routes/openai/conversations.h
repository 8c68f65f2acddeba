/*
 * conversations.h - what the routes of /v1/conversations share.
 */
#ifndef ROUTES_OPENAI_CONVERSATIONS_H
#define ROUTES_OPENAI_CONVERSATIONS_H

#include "routes/history.h"

struct request;

/* Records of the end, where clients look for what they sent a moment ago; a batch has no more. */
#define CONVERSATIONS_RECENT 1000

/* ---- conversations.c ---- */

/* Answers with a conversation, without its items. */
void conversations_reply(struct request *r, struct steno_conv *conv);

/* ---- conversations_item.c ---- */

/* The newest message that an id means. */
struct conversations_wanted {
        const struct history *history;
        const char *id;    /* as the client says it */
        char message[300]; /* the id without a place in the message */
        char found[300];   /* the id of the record; "": none */
        uint64_t seq;
        size_t place; /* that the id names in the message */
        bool whole;   /* the id is that of the message */
        size_t k;
};

/* Finds it; `h` NULL: also one that was deleted. STENO_ENOTFOUND: no message has this id. */
int conversations_find(struct steno_conv *conv, const struct history *h, const char *id,
    struct conversations_wanted *w, struct steno_error *err);

#endif
