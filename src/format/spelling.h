/*
 * spelling.h - gives words one spelling, whatever escapes a message writes them with.
 *
 * "r\u006fle" is a role and "image\/png" is a type of image: some encoders write every slash with a
 * backslash, and any letter may be an escape. Readers compare the inside of strings, so a message
 * that spells a word (a string of printable ASCII without spaces, quotes and backslashes) with
 * escapes is read from a copy that does not. Texts and the arguments of tools are not words:
 * nothing is compared with them, and they are passed on as they came. For a message without such a
 * word, only its strings with escapes are read, each up to the first character that cannot be in a
 * word. Every value has the same offset in the copy as in the message, because spaces follow a word
 * that became shorter.
 */
#ifndef FORMAT_SPELLING_H
#define FORMAT_SPELLING_H

#include "base/arena.h"
#include "base/json.h"
#include "model/message.h"

/* A message as it is read. */
struct spelling {
        const struct json *j;
        json_ref msg;
        bool plain;       /* it stands as it came; else in `copy` */
        struct str text;  /* the message as it came */
        struct json copy; /* in the arena */
};

/* 0 or STENO_ENOMEM. `s` may not be moved. */
int spelling_of(const struct json *j, json_ref msg, struct arena *arena, struct spelling *s);

/* Lets texts, arguments, results and members that the hub has no field for be those of the message
 * as it came: they are given on verbatim, and results are cut out of it and replaced in it by
 * place. */
void spelling_restore(const struct spelling *s, struct message *m);

#endif
