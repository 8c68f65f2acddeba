/*
 * words.h - the words of a text, as search sees them.
 *
 * A word is a run of letters, digits and `_` without their case (casefold.h), in one spelling for
 * all that look the same (composed.h). A character of a script that is written without spaces
 * (Chinese, Japanese, Korean) is a word of its own. Runs of more than WORD_MAX bytes, and those
 * that look like base64 or hashes, are not words: nobody searches for them, and they would be most
 * of an index.
 *
 * Indexing and searching both split texts here, so they agree on what a word is. If you change
 * that, older indexes become wrong, so also change VERSION in store/search/search.c and WORDS in
 * store/postgres/pg_search.c. Bytes that are not UTF-8 are treated as letters.
 */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stdbool.h>

#include "base/str.h"

#define WORD_MAX 64

struct words {
        struct str text;
        size_t at; /* of the next byte to look at */
};

struct word {
        size_t from; /* in the text */
        size_t end;
        size_t n; /* of `folded`; 0: a run that is not a word */
        char folded[WORD_MAX];
};

static inline struct words words_of(struct str text)
{
        return (struct words){text, 0};
}
/* The next run; false at the end. */
bool words_next(struct words *w, struct word *out);

/* Is it a byte of ASCII that no word has? Splitting may begin behind any of them. */
static inline bool words_is_gap(char c)
{
        return !(c & 0x80) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
               !(c >= '0' && c <= '9') && c != '_';
}

#endif
