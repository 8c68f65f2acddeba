/*
 * gen.h - random histories in every format, made by hand and not by the writers under test.
 *
 * Parallel calls, reused ids, several results in one message, results in another order, images,
 * thinking with signatures, developer and system roles, names, empty and null contents, arguments
 * that are no JSON, unknown members and types, odd spellings of numbers and strings. `damage`
 * adds what goes wrong: lost, late, doubled and foreign results, empty turns, a missing beginning.
 */
#ifndef TESTS_FORMAT_GEN_H
#define TESTS_FORMAT_GEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct gen {
        uint64_t state;
        struct buf *out;
        const char *format;
        bool damage;
        bool known; /* no parts of unknown types, which a checker cannot accept */
        bool tame;  /* no unknown members or types, no odd spellings: for sizes and speed */
        /* its own */
        bool comma;
        bool inner_comma;
        unsigned turn;
};

/* From STENO_TEST_SEED, or a new one; it is printed. */
uint64_t gen_seed(void);
/* How many of 100,000 rounds to run (support/seed.h), over `share`. */
unsigned gen_count(unsigned share);

uint64_t gen_next(struct gen *g);
/* 0 ... n-1 */
unsigned gen_below(struct gen *g, unsigned n);

/* Can histories of this format be made? */
bool gen_knows(const char *format);
/* Appends a JSON array of messages. */
void gen_history(struct gen *g);

#endif
