/*
 * sieve.h - which lines of a block can match at all, by Hyperscan. For grep.
 *
 * A sieve is made from a pattern that pattern.h has understood. It finds every line with a match,
 * and some lines without one: the engine (grep_engine.h) decides about each of them. It is a filter
 * for speed only, so it refuses whatever it does not do well:
 *   - the pattern is rewritten (sieve_expression.c) without anything that PCRE2 and Hyperscan could
 *     read differently, and so that it matches the same or more
 *   - patterns that would make a large automaton, or that match nothing at all, have no sieve
 *   - characters: Hyperscan reads UTF-8 only where it was checked. Bad bytes, which match nothing,
 *     are line feeds in the copy that it sees, and so is a CR at the end of a line
 * Where there is no Hyperscan, no pattern has a sieve (sieve_none.c).
 */
#ifndef OUTPUT_SIEVE_H
#define OUTPUT_SIEVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct sieve;

struct sieve_mode {
        bool utf8;  /* the pattern is characters */
        bool chars; /* and so is the text; else bytes, or ASCII */
        bool fold;  /* case does not matter */
};

/* Loads what is needed and compiles. NULL: this pattern, or this machine, has none. */
struct sieve *sieve_new(struct str pattern, const struct sieve_mode *mode);
void sieve_free(struct sieve *s); /* accepts NULL */

#define SIEVE_LINES 4096 /* that one call can name */

/*
 * Fills s->at with a place in each line of p[0, n), whole lines, that can match: ascending, one or
 * more for a line. Returns how many there are, or -1 if there are so many that looking at every
 * line is faster, or if it failed.
 */
int sieve_lines(struct sieve *s, const char *p, size_t n, const uint32_t **at);
/* Can p[0, n), a line or a part of one, have a match? */
bool sieve_has(struct sieve *s, const char *p, size_t n);

/* ---- between the halves of the implementation ---- */

/* Writes a pattern that pattern.h has understood for Hyperscan. False when there is no sieve for
 * it: it may match without a single character, or makes too large an automaton. */
bool sieve_expression(struct str pattern, const struct sieve_mode *mode, struct buf *out);

#endif
