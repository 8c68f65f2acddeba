/*
 * grep_search.h - the state of one search. For grep.c and grep_line.c.
 */
#ifndef OUTPUT_GREP_SEARCH_H
#define OUTPUT_GREP_SEARCH_H

#include "output/grep_engine.h"
#include "output/grep_show.h"
#include "output/pattern.h"
#include "output/sieve.h"

/* The maximum number of starting points of one light call of the engine. */
#define GREP_WINDOW ((size_t)16 * 1024)

/* The ways to search a block, see grep.c; and the time that each took so far. */
enum grep_way { GREP_WAY_LITERALS, GREP_WAY_SIEVE, GREP_WAY_LINES, GREP_WAYS };

struct grep_pace {
        unsigned left;            /* blocks until other ways are tried again */
        uint64_t cost[GREP_WAYS]; /* time of the last block in ns for each KiB; 0: not known
                                     yet */
};

struct grep_search {
        struct grep_text text;
        const char *p; /* the current block, whole lines: the first n bytes of the window */
        size_t n;
        const struct grep_options *opt;
        const struct grep_engine *engine;
        struct grep_code *code[2];   /* for bytes and for characters; compiled when first
                                        needed */
        struct pattern_info info[2]; /* for text that is ASCII, and for text that may not be */
        struct finder finder[2];
        bool has_finder[2];
        bool learned[2]; /* finder_learn was called with the first block */
        /* literals that show where in a line a match may begin */
        struct finder starts[2];
        bool has_starts[2];
        bool dense;
        int wide; /* index into the arrays above for the current block */
        size_t candidates;
        struct sieve *sieve[2];   /* for bytes and for characters; made when first needed */
        bool no_sieve[2];         /* this pattern has no sieve */
        struct grep_pace pace[2]; /* for text that is ASCII, and for other text */
        /* time */
        int64_t began;  /* time_thread_us() */
        int64_t looked; /* time_monotonic_us() when the clock was last checked */
        size_t unchecked;
        uint32_t deadline_ms;
        /* the results */
        struct grep_result *out;
        size_t cap;
        uint32_t max_results;
        uint32_t context;
        size_t bytes;
        bool full;        /* no more matches are collected */
        bool only_counts; /* the first of two passes, for a search backward */
        uint64_t within;  /* number of matches so far on the requested side of from_line */
        uint64_t before;  /* number of matches before from_line, in a search forward */
        uint64_t skip;    /* number of matches before those that are collected */
        uint64_t counted; /* `line` is the number of the line at this offset */
        uint64_t line;
        uint64_t part; /* the part of the last line in out->spread */
        struct steno_error *err;
};

/* Checks the time after the engine searched `work` bytes, at an offset of the text. 0, or
 * STENO_ELIMIT if the pattern took too long. */
int grep_check_time(struct grep_search *s, uint64_t at, size_t work);
/* Sets s->wide: may text[0, n) contain characters beyond ASCII? */
void grep_look(struct grep_search *s, const char *text, size_t n);
/* Adds a matching line. */
int grep_collect(struct grep_search *s, const struct grep_hit *hit);

/* Returns the sieve for text of the kind s->wide; NULL: there is none, or it is not worth
 * making. */
struct sieve *grep_sieve(struct grep_search *s);
/* Does the engine match characters, in text of the kind s->wide? */
bool grep_sees_chars(const struct grep_search *s);

/* ---- one line (grep_line.c) ---- */

/* Gets the engine's code for text of the kind s->wide. */
int grep_line_code(struct grep_search *s, struct grep_code **code);
/* Is there a match in the line [from, to) of the block? 1: it is [*start, *end) of the block; 0:
 * no. */
int grep_line_match(struct grep_search *s, size_t from, size_t to, size_t *start, size_t *end);
/* Searches the line that begins at offset `from` and is too long for the window. *next is where the
 * next line begins. Afterwards, the window may be anywhere in the line. */
int grep_line_giant(struct grep_search *s, uint64_t from, uint64_t *next);

#endif
