/*
 * pattern.h - what can be said about a pattern without running it.
 *
 * A conservative reading of PCRE2's syntax, for speed only: literals of which every match contains
 * at least one, and whether a match could ever see a line feed. If it does not understand
 * something, the answer is "nothing is known", never a wrong one. The engine has checked before
 * that the pattern is valid.
 */
#ifndef OUTPUT_PATTERN_H
#define OUTPUT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "output/finder.h"

#define PATTERN_LITERALS 32
#define PATTERN_LITERAL 32 /* bytes */

struct pattern_set {
        unsigned count;
        struct {
                unsigned char size;
                char text[PATTERN_LITERAL];
        } item[PATTERN_LITERALS];
};

/* So many bytes, at least and at most. */
struct pattern_span {
        unsigned least;
        unsigned most;
};

struct pattern_info {
        bool understood; /* all of it; without that nothing below is set */
        /* Every match contains one of these (ASCII letters in lower case when folding). */
        bool has_literals;
        struct pattern_set literals;
        /* The pattern is nothing but these literals: finding one is a match. */
        bool exact;
        /* And one of these, so many bytes behind where it begins. */
        bool has_starts;
        struct pattern_set starts;
        struct pattern_span lead;
        bool starts_are_literals; /* `starts` is `literals` */
        /* Nothing in it can consume or look at a line feed, so searching many lines at once finds
         * what searching each alone would. */
        bool line_bound;
        bool ascii; /* means the same to text that is ASCII, whether bytes or characters */
};

/*
 * `utf8`: the pattern is characters. `fold`: case does not matter. `wide_fold`: the text may hold
 * the characters beyond ASCII that fold to `k` and `s` (U+212A, U+017F), so these two letters
 * cannot be literals.
 */
void pattern_read(
    struct str pattern, bool utf8, bool fold, bool wide_fold, struct pattern_info *out);

/* Gives all characters that equal a letter of Latin-1 or of the Cyrillic alphabet when case is
 * ignored, including the letter itself. Returns how many; 0: not known. */
#define PATTERN_CASES 4
size_t pattern_cases(uint32_t cp, uint32_t cases[PATTERN_CASES]);

/* Looks for literals; false when there are none. */
bool pattern_finder(const struct pattern_set *literals, bool fold, struct finder *f);

#endif
