/*
 * grep.h - searching an artifact for a pattern, a line at a time.
 *
 * A match lies within one line (lines end with LF; a CR before it belongs to the line's end).
 * Patterns are PCRE2's; they see characters where the artifact is UTF-8, bytes where it is not. `^`
 * and `$` are the line's ends. PCRE2 decides what matches. In a large text Hyperscan, where it is
 * installed, chooses the lines that PCRE2 looks at (sieve.h), which changes no answer, with one
 * exception: a pattern that is too costly on lines without a match may get an answer instead of a
 * refusal.
 *
 * No pattern can make it hang: matching has limits. If these limits or CONTEXT_GREP_DEADLINE_MS are
 * exceeded without real progress, the answer is STENO_ELIMIT "pattern too costly: ...". In a large
 * file, a pattern that makes progress (GREP_RATE_FLOOR) may take longer than the deadline.
 *
 * The text may be a file of any size. It is read front to back in windows of at most a few MiB,
 * and what is shown is copied. Lines of any length are searched; in a line longer than
 * GREP_LONG_SUBJECT a match is found as long as it spans less than that.
 */
#ifndef OUTPUT_GREP_H
#define OUTPUT_GREP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "output/lines.h"
#include "steno.h"

#define GREP_PATTERN_MAX 8192         /* bytes of a pattern */
#define GREP_LONG_SUBJECT (64 * 1024) /* a longer line is searched in windows */
#define GREP_RATE_FLOOR (32u << 20)   /* bytes a second that count as progress */
#define GREP_SPREAD_MAX 256           /* parts of a text in which the first match is told */

/* Which libraries search. The answers are the same. This is for tests and for debugging.
 */
enum grep_engines {
        GREP_FASTEST,    /* Hyperscan chooses lines where the text is large */
        GREP_ONLY_PCRE2, /* it never does */
        GREP_WITH_SIEVE, /* it does whatever the size, where it is here and knows the pattern */
};

struct grep_options {
        struct str pattern;
        enum grep_engines engines;
        bool utf8; /* the text is (meant to be) UTF-8; bad bytes in it match nothing */
        bool case_sensitive;
        uint32_t max_results;   /* collected; 0: CONTEXT_GREP_RESULTS_DEFAULT */
        uint32_t context_lines; /* before and after each, at most CONTEXT_GREP_CONTEXT_MAX */
        uint32_t deadline_ms;   /* 0: CONTEXT_GREP_DEADLINE_MS */
        size_t max_bytes;       /* of all content together as it is shown, bytes that are not UTF-8
                                   as \xNN, and what an answer needs around it; 0: no bound. One
                                   match alone loses lines around it until it fits */
        uint64_t from_line;     /* only matches from this line on, or up to it; 0: all */
        bool backward;          /* the last ones up to from_line, instead of the first from it on */
        uint32_t spread;        /* the text as so many parts of equal size: the line of the first
                                   match in each is told, at most GREP_SPREAD_MAX; 0: none is */
        steno_progress progress; /* told of the bytes that were searched, after each block; non-zero
                                    ends it with STENO_EINTERRUPTED. May be NULL */
        void *progress_ctx;
};

/* A line, or a window of one. `text` is a copy that lives as long as the result. */
struct grep_line {
        struct str text;
        uint64_t byte_offset; /* of text's first byte in the searched text */
        bool cut_before;      /* the line begins before `text` */
        bool cut_after;       /* and goes on behind it */
};

struct grep_match {
        uint64_t line;         /* 1-based */
        uint64_t match_offset; /* of the match itself, and its length, in the searched text */
        uint64_t match_size;
        struct grep_line content; /* at most CONTEXT_LONG_LINE characters around the match */
        struct grep_line *before; /* context, in the file's order */
        uint32_t before_count;
        struct grep_line *after;
        uint32_t after_count;
        size_t bytes; /* what it takes of max_bytes */
};

struct grep_result {
        struct grep_match *matches;
        size_t count;
        uint64_t total_matches;           /* matching lines of the whole text */
        uint64_t matches_before;          /* matching lines before the first of `matches` */
        bool truncated;                   /* there are more in the direction of the search */
        uint64_t next_line;               /* from_line for those; 0: there are none */
        bool narrowed;                    /* lines around a match were left out */
        uint64_t spread[GREP_SPREAD_MAX]; /* lines, in order */
        size_t spread_count;
        struct grep_line *context; /* storage of before and after */
        struct arena shown;        /* and of the texts */
};

/* Where the text comes from. */
struct grep_source {
        struct lines_file file; /* failures of its `read` are passed on */
        size_t block;           /* bytes to read at once; 0: as many as are fastest */
        /* What is known of its lines, which saves counting them; NULL: nothing. */
        const struct lines_index *index;
};

/*
 * Searches a text. 0, STENO_EPROTO (a bad pattern: the message has the position and the reason),
 * STENO_ELIMIT (too costly, or too long a pattern), STENO_ENOMEM, or what `read` answered. On
 * success `out` is released with grep_release; on failure it is empty.
 */
int grep_run(const struct grep_source *source, const struct grep_options *opt,
    struct grep_result *out, struct steno_error *err);
void grep_release(struct grep_result *r);

#endif
