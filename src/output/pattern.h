/*
 * pattern.h - finds properties of a pattern without running it.
 *
 * It reads PCRE2's syntax conservatively, for speed only. It finds literals of which every match
 * contains at least one, and whether a match could ever contain a line feed. If it does not
 * understand something, the answer is "nothing is known", never a wrong one. The engine has checked
 * before that the pattern is valid.
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

/* A minimum and a maximum number of bytes. */
struct pattern_span {
        unsigned least;
        unsigned most;
};

struct pattern_info {
        bool understood; /* the whole pattern was understood; otherwise nothing below is set */
        /* Every match contains one of these (ASCII letters in lower case if case is folded). */
        bool has_literals;
        struct pattern_set literals;
        /* The pattern consists of these literals only: finding one is a match. */
        bool exact;
        /* Every match also contains one of these, at a distance of `lead` from its beginning. */
        bool has_starts;
        struct pattern_set starts;
        struct pattern_span lead;
        bool starts_are_literals; /* `starts` is `literals` */
        /* No part of the pattern can match or look at a line feed, so searching many lines at once
         * finds the same as searching each line alone. */
        bool line_bound;
        bool ascii; /* in ASCII text, matching bytes and matching characters give the same
                       result */
};

/*
 * `utf8`: the pattern consists of characters. `fold`: case does not matter. `wide_fold`: the text
 * may contain the characters beyond ASCII that fold to `k` and `s` (U+212A, U+017F), so these two
 * letters cannot be literals.
 */
void pattern_read(
    struct str pattern, bool utf8, bool fold, bool wide_fold, struct pattern_info *out);

/* Gives all characters that equal a letter of Latin-1 or of the Cyrillic alphabet when case is
 * ignored, including the letter itself. Returns how many; 0: not known. */
#define PATTERN_CASES 4
size_t pattern_cases(uint32_t cp, uint32_t cases[PATTERN_CASES]);

/* Prepares a finder for the literals; false if there are none. */
bool pattern_finder(const struct pattern_set *literals, bool fold, struct finder *f);

#endif
