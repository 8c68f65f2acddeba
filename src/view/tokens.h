/*
 * tokens.h - how many tokens a text is to a model.
 *
 * Counts are those of the o200k_base vocabulary, equal to what js-tiktoken gives for the same
 * text with special tokens read as plain text. The vocabulary is taken at build time from an
 * installed js-tiktoken (tools/tokens-data); a build without it estimates, and everything that
 * shows a count must then say so: ask tokens_exact().
 *
 * Bytes that are not UTF-8 count as the U+FFFD that a decoder would put in their place: one for
 * each maximal part of a broken sequence, as the TextDecoder of browsers does.
 *
 * All calls are pure: no allocation, no state, up to 45 KB of stack; any number of threads.
 * Time grows linearly with the text, also for one run of letters that is megabytes long.
 */
#ifndef VIEW_TOKENS_H
#define VIEW_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

/* The number of tokens of text[0,n): exact, or tokens_estimate() when !tokens_exact(). */
size_t tokens_count(const char *text, size_t n);

/* Whether this build has the vocabulary. Constant for the life of the program. */
bool tokens_exact(void);

/* A guess from the shape of the text alone: over a mixed history within a fifth of the truth, for
 * one short or odd text off by up to half. At least 1 for any text that is not empty. */
size_t tokens_estimate(const char *text, size_t n);

#endif
