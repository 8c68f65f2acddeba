/*
 * grep_search.h - the state of one search. For grep.c and grep_line.c.
 */
#ifndef OUTPUT_GREP_SEARCH_H
#define OUTPUT_GREP_SEARCH_H

#include "output/grep_engine.h"
#include "output/grep_show.h"
#include "output/pattern.h"
#include "output/sieve.h"

/* Starting points of one light call of the engine. */
#define GREP_WINDOW ((size_t)16 * 1024)

/* How a block is searched, see grep.c; and what that took so far. */
enum grep_way { GREP_WAY_LITERALS, GREP_WAY_SIEVE, GREP_WAY_LINES, GREP_WAYS };

struct grep_pace {
        unsigned left;            /* blocks until the others are tried again */
        uint64_t cost[GREP_WAYS]; /* ns for each KiB, of the last block; 0: not known yet */
};

struct grep_search {
        struct grep_text text;
        const char *p; /* the block at hand, whole lines: the window's first n bytes */
        size_t n;
        const struct grep_options *opt;
        const struct grep_engine *engine;
        struct grep_code *code[2];   /* bytes, characters; compiled when first needed */
        struct pattern_info info[2]; /* text that is ASCII, text that may not be */
        struct finder finder[2];
        bool has_finder[2];
        bool learned[2]; /* the finder saw the first block */
        /* literals that tell where in a line a match may begin */
        struct finder starts[2];
        bool has_starts[2];
        bool dense;
        int wide; /* index of the above for the block at hand */
        size_t candidates;
        struct sieve *sieve[2];   /* bytes, characters; made when first needed */
        bool no_sieve[2];         /* there is none for this pattern */
        struct grep_pace pace[2]; /* for text that is ASCII, and other */
        /* time */
        int64_t began;  /* time_thread_us() */
        int64_t looked; /* time_monotonic_us() when the clock was last asked */
        size_t unchecked;
        uint32_t deadline_ms;
        /* what was found */
        struct grep_result *out;
        size_t cap;
        uint32_t max_results;
        uint32_t context;
        size_t bytes;
        bool full;        /* no more are collected */
        bool only_counts; /* the first of two passes, for a search backward */
        uint64_t within;  /* matches so far on the side of from_line that is wanted */
        uint64_t before;  /* matches before from_line, in a search forward */
        uint64_t skip;    /* so many of them come before those that are collected */
        uint64_t counted; /* line feeds before this offset are in `line` */
        uint64_t line;
        uint64_t part; /* of the last line in out->spread */
        struct steno_error *err;
};

/* After `work` bytes of engine time, at an offset of the text. 0, or STENO_ELIMIT when the pattern
 * took too long. */
int grep_check_time(struct grep_search *s, uint64_t at, size_t work);
/* Decides s->wide: can text[0, n) hold characters beyond ASCII? */
void grep_look(struct grep_search *s, const char *text, size_t n);
/* Adds a matching line. */
int grep_collect(struct grep_search *s, const struct grep_hit *hit);

/* The sieve for text as wide as s->wide says; NULL where it has none or is not worth its making. */
struct sieve *grep_sieve(struct grep_search *s);
/* Does the engine see characters, in text as wide as s->wide says? */
bool grep_sees_chars(const struct grep_search *s);

/* ---- one line (grep_line.c) ---- */

/* The engine's code for text as wide as s->wide says. */
int grep_line_code(struct grep_search *s, struct grep_code **code);
/* Is there a match in the line [from, to) of the block? 1: [*start, *end) of the block; 0: no. */
int grep_line_match(struct grep_search *s, size_t from, size_t to, size_t *start, size_t *end);
/* Searches the line that begins at the offset `from` and is too long for the window; *next is where
 * the line behind it begins. The window may be anywhere in it afterwards. */
int grep_line_giant(struct grep_search *s, uint64_t from, uint64_t *next);

#endif
