/*
 * turns.h - messages of providers that want turns: user and model alternate, the user begins, no
 * turn is empty. Blocks are put one by one and join the open turn where the role is the same.
 * Shared by anthropic and gemini; used inside format/ only.
 */
#ifndef FORMAT_TURNS_H
#define FORMAT_TURNS_H

#include "format/format.h"

struct turns {
        struct writer *w;
        const char *content; /* "content" or "parts" */
        const char *user;    /* the role that begins */
        const char *role;    /* of the turn that was written last, open or not; NULL: none */
        bool open;
        /* Writes one block that says `text`, with turns_block before it. */
        void (*say)(struct turns *t, const char *text);
};

/* Opens a turn of that role, unless one is open; call it before each block. `m` is whom a
 * joined or inserted turn is reported for. */
void turns_block(struct turns *t, const char *role, const struct message *m);
/* Ends the open turn. */
void turns_close(struct turns *t);
/* A whole message as it stands. */
void turns_copy(struct turns *t, const char *role, const struct message *m);

/* A text of nothing but white space, which providers refuse. */
bool turns_is_blank(struct str string);
/* Bytes of a string without the white space at its end. */
size_t turns_trimmed(struct str string);

#endif
