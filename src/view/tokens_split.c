/*
 * tokens_split.c - a hand-written matcher for the o200k_base pattern.
 *
 * The pattern, one alternative a line, the first that matches wins:
 *
 *   1  [^\r\n\p{L}\p{N}]? [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]* [\p{Ll}\p{Lm}\p{Lo}\p{M}]+ ('s|'t|...)?
 *   2  [^\r\n\p{L}\p{N}]? [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+ [\p{Ll}\p{Lm}\p{Lo}\p{M}]* ('s|'t|...)?
 *   3  \p{N}{1,3}
 *   4  ' '? [^\s\p{L}\p{N}]+ [\r\n/]*
 *   5  \s* [\r\n]+
 *   6  \s+ (?!\S)
 *   7  \s+
 *
 * Every character is in one class of tokens_data.h, and every class begins an alternative, so the
 * pieces cover the text. No backtracking is needed: see word_end() and blank_end() for the reasons.
 * Each character is read a limited number of times. This file knows nothing of ranks.
 */
#include "view/tokens_split.h"

#include "view/tokens_data.h"

struct scan {
        struct tokens_text text;
        bool damaged;
};

/* Returns the class of the character at `at` and its length, which is 0 at the end of the text. */
static inline enum tokens_class class_at(struct scan *s, size_t at, size_t *len)
{
        if (at >= s->text.n) {
                *len = 0;
                return TOKENS_OTHER;
        }
        unsigned char b = s->text.p[at];
        if (b < 0x80) {
                *len = 1;
                return tokens_blocks[0][b];
        }
        uint32_t c;
        *len = tokens_decode((struct tokens_text){s->text.p + at, s->text.n - at}, &c, &s->damaged);
        return tokens_blocks[tokens_block_of[c >> 8]][c & 255];
}

#define BIT(class) (1u << (class))
#define IS(class, set) ((BIT(class) & (set)) != 0)
#define BLANKS (BIT(TOKENS_SPACE) | BIT(TOKENS_NEWLINE))
#define HEADS (BIT(TOKENS_UPPER) | BIT(TOKENS_LETTER) | BIT(TOKENS_MARK))
#define TAILS (BIT(TOKENS_LOWER) | BIT(TOKENS_LETTER) | BIT(TOKENS_MARK))
#define SIGNS (BIT(TOKENS_OTHER) | BIT(TOKENS_MARK))

/* Returns the end of the run of characters of `set` that starts at `at`. */
static size_t run_end(struct scan *s, size_t at, unsigned set)
{
        size_t len;
        while (IS(class_at(s, at, &len), set) && len > 0)
                at += len;
        return at;
}

/* Returns the end of 's, 't, 're, 've, 'm, 'll or 'd in either case, or `at` if there is none. */
static size_t contraction_end(const struct scan *s, size_t at)
{
        const unsigned char *p = s->text.p + at;
        size_t left = s->text.n - at;
        if (left < 2 || p[0] != '\'')
                return at;
        unsigned char a = p[1] | 0x20;
        if (a == 's' || a == 't' || a == 'm' || a == 'd')
                return at + 2;
        unsigned char b = left > 2 ? p[2] | 0x20 : 0;
        if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l'))
                return at + 3;
        return at;
}

/*
 * Matches alternatives 1 and 2 after their optional first character; returns `at` if neither
 * matches.
 *
 * After the run of HEADS there are three cases. If a lower-case letter follows, TAILS continue from
 * there. If none follows, but the run has characters that are in TAILS as well, alternative 1 gives
 * back everything behind the last of them, which becomes its only tail. Otherwise alternative 2
 * matches.
 */
static size_t word_end(struct scan *s, size_t at)
{
        size_t end = at;
        size_t shared_end = at;
        size_t len;
        enum tokens_class class = class_at(s, end, &len);
        for (; len > 0 && IS(class, HEADS); class = class_at(s, end, &len)) {
                end += len;
                if (class != TOKENS_UPPER)
                        shared_end = end;
        }
        if (len > 0 && class == TOKENS_LOWER)
                end = run_end(s, end + len, TAILS);
        else if (shared_end > at)
                end = shared_end;
        return end > at ? contraction_end(s, end) : at;
}

static size_t number_end(struct scan *s, size_t at)
{
        size_t len;
        for (int digits = 0; digits < 3; digits++) {
                if (class_at(s, at, &len) != TOKENS_NUMBER)
                        break;
                at += len;
        }
        return at;
}

/* Matches alternative 4 after its optional space; returns `at` if it does not match. */
static size_t signs_end(struct scan *s, size_t at)
{
        size_t end = run_end(s, at, SIGNS);
        if (end == at)
                return at;
        const unsigned char *p = s->text.p;
        while (end < s->text.n && (p[end] == '\r' || p[end] == '\n' || p[end] == '/'))
                end++;
        return end;
}

/*
 * Matches alternatives 5 to 7 on a run of blanks. Alternative 5 ends after the run's last line end.
 * Alternative 6 takes the whole run at the end of the text; before anything else it takes all but
 * the last blank. Alternative 7 takes the single blank that 6 cannot take.
 */
static size_t blank_end(struct scan *s)
{
        size_t end = 0;
        size_t last_start = 0;
        size_t lines_end = 0;
        size_t len;
        enum tokens_class class = class_at(s, 0, &len);
        for (; len > 0 && IS(class, BLANKS); class = class_at(s, end, &len)) {
                last_start = end;
                end += len;
                if (class == TOKENS_NEWLINE)
                        lines_end = end;
        }
        if (lines_end > 0)
                return lines_end;
        if (end == s->text.n || last_start == 0)
                return end;
        return last_start;
}

static size_t piece_end(struct scan *s)
{
        size_t len;
        enum tokens_class class = class_at(s, 0, &len);
        /* A mark may be the optional first character or part of the word; the end is the same. */
        if (IS(class, HEADS | TAILS))
                return word_end(s, 0);
        if (class == TOKENS_NUMBER)
                return number_end(s, 0);
        if (class != TOKENS_NEWLINE) {
                size_t end = word_end(s, len);
                if (end > len)
                        return end;
        }
        if (class == TOKENS_OTHER)
                return signs_end(s, 0);
        if (s->text.p[0] == ' ') {
                size_t end = signs_end(s, 1);
                if (end > 1)
                        return end;
        }
        return blank_end(s);
}

size_t tokens_split(struct tokens_text text, bool *damaged)
{
        if (text.n == 0)
                return 0;
        struct scan s = {text, false};
        size_t end = piece_end(&s);
        if (s.damaged)
                *damaged = true;
        return end;
}
