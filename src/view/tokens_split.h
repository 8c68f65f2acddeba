/*
 * tokens_split.h - cuts a text into the pieces within which o200k_base merges bytes.
 */
#ifndef VIEW_TOKENS_SPLIT_H
#define VIEW_TOKENS_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tokens_text {
        const unsigned char *p;
        size_t n;
};

/* Bytes of the first piece of text; at least 1 unless the text is empty. *damaged becomes true
 * when the piece may hold bytes that are not UTF-8; it is never set to false. */
size_t tokens_split(struct tokens_text text, bool *damaged);

/* Bytes of the first character, of which there must be one. A broken sequence is one character,
 * U+FFFD, up to the byte that breaks it. *damaged as above. */
size_t tokens_decode(struct tokens_text text, uint32_t *c, bool *damaged);

#endif
