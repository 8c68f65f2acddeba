/*
 * spelling.h - gives words one spelling, whatever escapes a message writes them with.
 *
 * "r\u006fle" is a role and "image\/png" is a type of image: some encoders write every slash with a
 * backslash, and any letter may be written as an escape. A word is a string of printable ASCII
 * without spaces, quotes and backslashes. Readers compare the inside of strings with words, so a
 * message that writes a word with escapes is read from a copy without them. Texts and the arguments
 * of tools are not compared with words, so they stay unchanged. If a message has no such word, only
 * its strings with escapes are scanned, each up to the first character that cannot be in a word.
 * Every value has the same offset in the copy as in the message, because a word that became shorter
 * is padded with spaces.
 */
#ifndef FORMAT_SPELLING_H
#define FORMAT_SPELLING_H

#include "base/arena.h"
#include "base/json.h"
#include "model/message.h"

/* A message in the form in which it is read. */
struct spelling {
        const struct json *j;
        json_ref msg;
        bool plain;       /* it is read unchanged; otherwise from `copy` */
        struct str text;  /* the original message */
        struct json copy; /* in the arena */
};

/* Prepares a message for reading. 0 or STENO_ENOMEM. `s` must not be moved afterwards. */
int spelling_of(const struct json *j, json_ref msg, struct arena *arena, struct spelling *s);

/* Sets texts, arguments, results and members without a field in the hub back to the original bytes:
 * they are passed on verbatim, and results are cut out of the original message and replaced there
 * by their offsets. */
void spelling_restore(const struct spelling *s, struct message *m);

#endif
