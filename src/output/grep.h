/*
 * grep.h - searches an artifact for a pattern, line by line.
 *
 * A match lies within one line (lines end with LF; a CR before it belongs to the line's end).
 * Patterns are PCRE2's. They match characters if the artifact is UTF-8, otherwise bytes. `^` and
 * `$` are the ends of a line. PCRE2 decides what matches. In a large text, Hyperscan (if it is
 * installed) chooses the lines that PCRE2 searches (sieve.h). This changes no answer, with one
 * exception: a pattern that is too costly on lines without a match may get an answer instead of a
 * refusal.
 *
 * No pattern can make the search hang, because matching has limits. If these limits or
 * CONTEXT_GREP_DEADLINE_MS are exceeded without real progress, the answer is STENO_ELIMIT "pattern
 * too costly: ...". In a large file, a pattern that makes progress (GREP_RATE_FLOOR) may take
 * longer than the deadline.
 *
 * The text may be a file of any size. It is read from front to back in windows of at most a few
 * MiB, and the lines that are shown are copied. Lines of any length are searched; in a line longer
 * than GREP_LONG_SUBJECT a match is found as long as it spans less than that.
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
#define GREP_SPREAD_MAX 256           /* parts of a text, whose first matches are reported */

/* Which libraries search. The answers are the same. This option is for tests and debugging. */
enum grep_engines {
        GREP_FASTEST,    /* Hyperscan chooses lines if the text is large */
        GREP_ONLY_PCRE2, /* Hyperscan is not used */
        GREP_WITH_SIEVE, /* Hyperscan chooses lines for texts of any size, if it is installed and
                            knows the pattern */
};

struct grep_options {
        struct str pattern;
        enum grep_engines engines;
        bool utf8; /* the text is expected to be UTF-8; invalid bytes in it match nothing */
        bool case_sensitive;
        uint32_t max_results;    /* matches to collect; 0: CONTEXT_GREP_RESULTS_DEFAULT */
        uint32_t context_lines;  /* lines before and after each match, at most
                                    CONTEXT_GREP_CONTEXT_MAX */
        uint32_t deadline_ms;    /* 0: CONTEXT_GREP_DEADLINE_MS */
        size_t max_bytes;        /* limit for all content as it is shown (bytes that are not UTF-8
                                    as \xNN) and what an answer adds around it; 0: no limit. A
                                    single match that is too large loses lines around it */
        uint64_t from_line;      /* only matches from this line on, or up to it if `backward`; 0:
                                    all */
        bool backward;           /* the last matches up to from_line, instead of the first from it
                                    on */
        uint32_t spread;         /* divides the text into this many parts of equal size and
                                    reports the line of the first match in each; at most
                                    GREP_SPREAD_MAX; 0: no report */
        steno_progress progress; /* called after each block with the number of bytes that were
                                    searched; non-zero ends the search with STENO_EINTERRUPTED.
                                    May be NULL */
        void *progress_ctx;
};

/* A line, or a window of a line. `text` is a copy that lives as long as the result. */
struct grep_line {
        struct str text;
        uint64_t byte_offset; /* of `text` in the searched text */
        bool cut_before;      /* the line begins before `text` */
        bool cut_after;       /* the line continues behind `text` */
};

struct grep_match {
        uint64_t line;         /* 1-based */
        uint64_t match_offset; /* offset and length of the match itself in the searched text */
        uint64_t match_size;
        struct grep_line content; /* at most CONTEXT_LONG_LINE characters around the match */
        struct grep_line *before; /* context, in the order of the text */
        uint32_t before_count;
        struct grep_line *after;
        uint32_t after_count;
        size_t bytes; /* how much of max_bytes it uses */
};

struct grep_result {
        struct grep_match *matches;
        size_t count;
        uint64_t total_matches;           /* matching lines of the whole text */
        uint64_t matches_before;          /* matching lines before the first of `matches` */
        bool truncated;                   /* there are more in the direction of the search */
        uint64_t next_line;               /* from_line for these matches; 0: there are none */
        bool narrowed;                    /* some lines around a match were left out */
        uint64_t spread[GREP_SPREAD_MAX]; /* line numbers, in order */
        size_t spread_count;
        struct grep_line *context; /* memory for before and after */
        struct arena shown;        /* memory for the texts */
};

/* The text to search. */
struct grep_source {
        struct lines_file file; /* errors of its `read` are returned */
        size_t block;           /* bytes to read at once; 0: the fastest size */
        /* An index of its lines, which saves counting them. May be NULL. */
        const struct lines_index *index;
};

/*
 * Searches a text. 0, STENO_EPROTO (a bad pattern: the message has the position and the reason),
 * STENO_ELIMIT (too costly, or the pattern is too long), STENO_ENOMEM, or the error of `read`. On
 * success, release `out` with grep_release; on failure it is empty.
 */
int grep_run(const struct grep_source *source, const struct grep_options *opt,
    struct grep_result *out, struct steno_error *err);
void grep_release(struct grep_result *r);

#endif
