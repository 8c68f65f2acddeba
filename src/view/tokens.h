/*
 * tokens.h - counts the tokens of a text, as a model does.
 *
 * The vocabulary is o200k_base, and counts are the same as js-tiktoken's for the same text, with
 * special tokens read as plain text. The build takes the vocabulary from an installed js-tiktoken
 * (tools/tokens-data). A build without it estimates; then everything that shows a count must say
 * so: call tokens_exact().
 *
 * Bytes that are not UTF-8 count as the U+FFFD by which a decoder would replace them: one for each
 * maximal part of a broken sequence, as the TextDecoder of browsers does.
 *
 * All functions are pure: they allocate nothing, have no state, use up to 45 KB of stack, and can
 * be called by any number of threads. Time grows linearly with the text, even if it is one run of
 * letters of several megabytes.
 */
#ifndef VIEW_TOKENS_H
#define VIEW_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the number of tokens of text[0,n). It is exact, or tokens_estimate() if
 * !tokens_exact(). */
size_t tokens_count(const char *text, size_t n);

/* Does this build have the vocabulary? The answer never changes while the program runs. */
bool tokens_exact(void);

/* Returns an estimate from the shape of the text alone. For a mixed history it differs by at most a
 * fifth from the exact count; for a single short or unusual text it may be wrong by up to half. It
 * is at least 1 for any text that is not empty. */
size_t tokens_estimate(const char *text, size_t n);

#endif
