/*
 * sieve.h - finds the lines of a block that can match at all, with Hyperscan. For grep.
 *
 * A sieve is made from a pattern that pattern.h has understood. It finds every line with a match,
 * and some lines without one: the engine (grep_engine.h) decides about each of them. It is a filter
 * for speed only, so it refuses everything that it does not do well:
 *   - the pattern is rewritten (sieve_expression.c) without anything that PCRE2 and Hyperscan could
 *     read differently, and so that it matches the same or more
 *   - patterns that would make a large automaton, or that match nothing at all, have no sieve
 *   - characters: Hyperscan needs valid UTF-8. So it gets a copy in which invalid bytes, which
 *     match nothing, are line feeds, and so is a CR at the end of a line
 * Without Hyperscan, no pattern has a sieve (sieve_none.c).
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
        bool utf8;  /* the pattern consists of characters */
        bool chars; /* the text also consists of characters; else of bytes or ASCII */
        bool fold;  /* case does not matter */
};

/* Loads the library if needed and compiles the pattern. NULL: this pattern, or this machine, has no
 * sieve. */
struct sieve *sieve_new(struct str pattern, const struct sieve_mode *mode);
void sieve_free(struct sieve *s); /* accepts NULL */

#define SIEVE_LINES 4096 /* the most places that one call can return */

/*
 * Fills s->at with places in the lines of p[0, n), whole lines, that can match: ascending, one or
 * more for each such line. Returns their number, or -1 if it failed, or if there are so many that
 * searching every line is faster.
 */
int sieve_lines(struct sieve *s, const char *p, size_t n, const uint32_t **at);
/* Can p[0, n), a line or a part of a line, have a match? */
bool sieve_has(struct sieve *s, const char *p, size_t n);

/* ---- between the halves of the implementation ---- */

/* Writes a pattern that pattern.h has understood in Hyperscan's syntax. Returns false if the
 * pattern has no sieve: it may match an empty text, or needs too large an automaton. */
bool sieve_expression(struct str pattern, const struct sieve_mode *mode, struct buf *out);

#endif
