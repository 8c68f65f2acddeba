/* errors.c - see errors.h */
#include "output/errors.h"

#include <strings.h>

#include "output/finder.h"

/* ---- checks of a line ---- */

static bool is_word(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_';
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
        return c >= 'A' && c <= 'Z';
}

static struct str trim(struct str s)
{
        while (s.n && (s.p[0] == ' ' || s.p[0] == '\t')) {
                s.p++;
                s.n--;
        }
        while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
                s.n--;
        return s;
}

static bool has(struct str s, const char *z)
{
        return s.n && memmem(s.p, s.n, z, strlen(z)) != NULL;
}

static bool ends(struct str s, const char *z)
{
        size_t n = strlen(z);
        return s.n >= n && memcmp(s.p + s.n - n, z, n) == 0;
}

static bool starts_fold(struct str s, const char *z)
{
        size_t n = strlen(z);
        return s.n >= n && strncasecmp(s.p, z, n) == 0;
}

/* Returns the next place of a word in either case, at or behind `from`; s.n if there is none. */
static size_t find_fold(struct str s, const char *z, size_t from)
{
        size_t n = strlen(z);
        for (size_t i = from; i + n <= s.n; i++) {
                if ((s.p[i] | 0x20) == z[0] && strncasecmp(s.p + i, z, n) == 0)
                        return i;
        }
        return s.n;
}

static bool has_fold(struct str s, const char *z)
{
        return find_fold(s, z, 0) < s.n;
}

struct form {
        const char *text;
        int score;
};

static int starts_with_form(struct str s, const struct form *forms)
{
        for (; forms->text; forms++) {
                if (str_starts(s, forms->text))
                        return forms->score;
        }
        return 0;
}

static int has_form(struct str s, const struct form *forms)
{
        for (; forms->text; forms++) {
                if (has(s, forms->text))
                        return forms->score;
        }
        return 0;
}

/* ---- forms with a fixed text ---- */

static const struct form at_start[] = {
    {"error: ", ERRORS_CAUSE},
    {"error[E", ERRORS_CAUSE},
    {"Error: ", ERRORS_CAUSE},
    {"ERROR: ", ERRORS_CAUSE},
    {"FATAL: ", ERRORS_CAUSE},
    {"fatal: ", ERRORS_CAUSE},
    {"fatal error: ", ERRORS_CAUSE},
    {"Fatal error: ", ERRORS_CAUSE},
    {"FATAL ERROR: ", ERRORS_CAUSE},
    {"panic: ", ERRORS_CAUSE},
    {"Uncaught ", ERRORS_CAUSE},
    {"Unhandled", ERRORS_CAUSE},
    {"Exception in thread ", ERRORS_CAUSE},
    {"Caused by: ", ERRORS_CAUSE},
    {"Traceback (most recent call last)", ERRORS_FAILED},
    {"Segmentation fault", ERRORS_CAUSE},
    {"Aborted", ERRORS_CAUSE},
    {"Killed", ERRORS_CAUSE},
    {"Bus error", ERRORS_CAUSE},
    {"Assertion failed", ERRORS_CAUSE},
    {"SUMMARY: ", ERRORS_SUMMARY},
    {"FAILED ", ERRORS_FAILED},
    {"FAILED: ", ERRORS_FRAME},
    {"FAIL: ", ERRORS_FAILED},
    {"FAIL\t", ERRORS_SUMMARY},
    {"FAIL ", ERRORS_FAILED},
    {"ERROR ", ERRORS_FAILED},
    {"--- FAIL: ", ERRORS_FAILED},
    {"not ok ", ERRORS_FAILED},
    {"[  FAILED  ]", ERRORS_FAILED},
    {"[  ERROR   ]", ERRORS_CAUSE},
    {"[ERROR]", ERRORS_FRAME},
    {"npm ERR!", ERRORS_FRAME},
    {"npm error", ERRORS_FRAME},
    {"ninja: build stopped", ERRORS_FRAME},
    {"collect2: error", ERRORS_FRAME},
    {"BUILD FAILED", ERRORS_SUMMARY},
    {"BUILD FAILURE", ERRORS_SUMMARY},
    {"test result: FAILED", ERRORS_SUMMARY},
    {"The following tests FAILED", ERRORS_SUMMARY},
    {"\xE2\x97\x8F ", ERRORS_FAILED}, /* jest: a bullet */
    {"\xE2\x9C\x95 ", ERRORS_FAILED}, /* jest, vitest: crosses */
    {"\xE2\x9C\x97 ", ERRORS_FAILED},
    {"\xE2\x9C\x98 ", ERRORS_FAILED},
    {"\xC3\x97 ", ERRORS_FAILED},
    {NULL, 0},
};

static const struct form anywhere[] = {
    {": fatal error: ", ERRORS_CAUSE},
    {": error: ", ERRORS_CAUSE},
    {": error[", ERRORS_CAUSE},
    {": error TS", ERRORS_CAUSE},
    {": internal compiler error: ", ERRORS_CAUSE},
    {": undefined reference to ", ERRORS_CAUSE},
    {"Undefined symbols for ", ERRORS_CAUSE},
    {": multiple definition of ", ERRORS_CAUSE},
    {"Sanitizer: ", ERRORS_CAUSE},
    {": runtime error: ", ERRORS_CAUSE},
    {"' panicked at ", ERRORS_CAUSE},
    {" (core dumped)", ERRORS_CAUSE},
    {": command not found", ERRORS_CAUSE},
    {": syntax error", ERRORS_CAUSE},
    {": No such file or directory", ERRORS_CAUSE},
    {": Permission denied", ERRORS_CAUSE},
    {": No space left on device", ERRORS_CAUSE},
    {"Assertion `", ERRORS_CAUSE},
    {"Cannot find module", ERRORS_CAUSE},
    {" ... FAILED", ERRORS_FAILED},
    {"***Failed", ERRORS_FAILED},
    {"***Exception", ERRORS_FAILED},
    {"***Timeout", ERRORS_FAILED},
    {"<<< FAILURE!", ERRORS_FAILED},
    {"<<< ERROR!", ERRORS_FAILED},
    {NULL, 0},
};

/* ---- forms without a fixed text ---- */

/* Is it path:line[:column]: with the extension of a source file? Go and many linters report so. */
static bool is_located(struct str s)
{
        static const char *const endings[] = {".go:", ".rs:", ".py:", ".cc:", ".cpp:", ".java:",
            ".kt:", ".ts:", ".js:", ".rb:", ".swift:", ".sh:", NULL};
        for (const char *const *e = endings; *e; e++) {
                const char *at = memmem(s.p, s.n, *e, strlen(*e));
                if (!at)
                        continue;
                const char *p = at + strlen(*e);
                const char *end = s.p + s.n;
                if (p >= end || !is_digit(*p) || memchr(s.p, ' ', (size_t)(at - s.p)))
                        continue;
                while (p < end && (is_digit(*p) || *p == ':'))
                        p++;
                return p < end && p[-1] == ':' && *p == ' ';
        }
        return false;
}

/* Is it like "ValueError: ..." or "java.io.IOException: ..."? That is a dotted name with such an
 * ending, then a colon or the end of the line. */
static bool is_exception(struct str s)
{
        size_t i = 0;
        while (i < s.n && (is_word(s.p[i]) || s.p[i] == '.' || s.p[i] == '$'))
                i++;
        struct str name = {s.p, i};
        if (i == 0 || (i < s.n && s.p[i] != ':'))
                return false;
        if (i + 1 < s.n && s.p[i] == ':' && s.p[i + 1] != ' ')
                return false;
        const char *dot = memrchr(name.p, '.', name.n);
        char first = dot ? dot[1] : name.p[0];
        if (!is_upper(first))
                return false;
        return (ends(name, "Error") || ends(name, "Exception") || str_is(name, "SystemExit") ||
                   str_is(name, "KeyboardInterrupt")) &&
               (i < s.n || i > 9);
}

/* Returns the number directly before the word at `at`, or behind it and a colon or equals sign: "3
 * failed", "3 tests failed", "failures: 0". -1 if there is none. */
static long count_beside(struct str s, size_t at, size_t word)
{
        size_t i = at;
        while (i > 0 && (s.p[i - 1] == ' ' || s.p[i - 1] == '('))
                i--;
        if (i >= 5 && memcmp(s.p + i - 5, "tests", 5) == 0)
                i -= i > 5 && s.p[i - 6] == ' ' ? 6 : 0;
        size_t end = i;
        while (i > 0 && is_digit(s.p[i - 1]))
                i--;
        if (i < end && end - i < 9) {
                long v = 0;
                for (; i < end; i++)
                        v = v * 10 + (s.p[i] - '0');
                return v;
        }
        i = at + word;
        while (i < s.n && is_word(s.p[i]))
                i++;
        if (i >= s.n || (s.p[i] != ':' && s.p[i] != '='))
                return -1;
        for (i++; i < s.n && s.p[i] == ' ';)
                i++;
        if (i >= s.n || !is_digit(s.p[i]))
                return -1;
        long v = 0;
        for (int digits = 0; i < s.n && is_digit(s.p[i]) && digits < 9; i++, digits++)
                v = v * 10 + (s.p[i] - '0');
        return v;
}

/* Does the line report success? Then its other words do not matter. */
static bool is_success(struct str s)
{
        static const char *const starts[] = {"ok ", "PASS", "[       OK ]", "[ RUN      ]",
            "[  PASSED  ]", "\xE2\x9C\x93", "\xE2\x9C\x94", "\xE2\x88\x9A", "--- PASS", "=== RUN",
            "test result: ok", NULL};
        static const char *const tails[] = {
            " ok", " OK", " PASSED", " passed", " Passed", "... ok", " PASS", " skipped", NULL};
        for (const char *const *z = starts; *z; z++) {
                if (str_starts(s, *z))
                        return true;
        }
        for (const char *const *z = tails; *z; z++) {
                if (ends(s, *z))
                        return true;
        }
        return has(s, " PASSED ") || has(s, "   Passed ");
}

static const char *const words[] = {
    "error", "exception", "traceback", "panic", "fatal", "fail", "abort", NULL};

static bool is_negated(struct str s, size_t at)
{
        static const char *const before[] = {"no ", "not ", "without ", "without any ", "any ",
            "non-", "ignore ", "ignoring ", "-W", "-Wno-", "-w", "on-", "if ", NULL};
        for (const char *const *z = before; *z; z++) {
                size_t n = strlen(*z);
                if (at >= n && strncasecmp(s.p + at - n, *z, n) == 0)
                        return true;
        }
        return false;
}

/* Is the word part of a name: a path, an identifier, a file? */
static bool is_name_part(struct str s, size_t at, size_t n)
{
        char before = at > 0 ? s.p[at - 1] : ' ';
        size_t end = at + n;
        while (end < s.n && ((s.p[end] | 0x20) >= 'a' && (s.p[end] | 0x20) <= 'z'))
                end++;
        char after = end < s.n ? s.p[end] : ' ';
        char then = end + 1 < s.n ? s.p[end + 1] : ' ';
        if (before == '_' || before == '/' || before == '.' || before == '-' || before == '$')
                return true;
        if (after == '_' || after == '/' || after == '-' || after == '(')
                return true;
        if (after == '.' && is_word(then))
                return true;
        return is_word(before) && !(is_upper(s.p[at]) && !is_upper(before));
}

/* Scores a line in no known form by its words: a number of failures, "error:", or a mention. */
static int score_words(struct str s)
{
        int best = 0;
        for (const char *const *w = words; *w; w++) {
                size_t n = strlen(*w);
                for (size_t at = find_fold(s, *w, 0); at < s.n; at = find_fold(s, *w, at + n)) {
                        long beside = count_beside(s, at, n);
                        int score = ERRORS_MENTION;
                        if (beside == 0 || is_negated(s, at) || is_name_part(s, at, n))
                                continue;
                        if (beside > 0)
                                score = ERRORS_SUMMARY;
                        else if (at + n < s.n && s.p[at + n] == ':')
                                score = ERRORS_LIKELY + 10;
                        else if (is_upper(s.p[at]) && at == 0)
                                score = ERRORS_LIKELY;
                        if (score > best)
                                best = score;
                }
        }
        return best;
}

/* Is it like "make: *** [Makefile:3: all] Error 1" or "make[2]: *** ..."? */
static bool is_make(struct str s)
{
        return (str_starts(s, "make") || str_starts(s, "gmake")) && has(s, ": *** ");
}

/* pytest marks failed lines with an E in the first column. */
static bool is_pytest(struct str s)
{
        return str_starts(s, "E   ") &&
               (has_fold(s, "assert") || has_fold(s, "error") || has_fold(s, "exception"));
}

/* Every form and word above contains one of these, in upper or lower case. */
static const struct str needles[] = {{"error", 5}, {"exception", 9}, {"traceback", 9}, {"panic", 5},
    {"fatal", 5}, {"fail", 4}, {"abort", 5}, {"err!", 4}, {"uncaught", 8}, {"unhandled", 9},
    {"caused by", 9}, {"segmentation", 12}, {"killed", 6}, {"assert", 6}, {"summary:", 8},
    {"not ok", 6}, {"*** ", 4}, {"ninja: ", 7}, {"undefined", 9}, {"multiple def", 12},
    {"sanitizer", 9}, {"core dumped", 11}, {"not found", 9}, {"no such", 7}, {"denied", 6},
    {"no space", 8}, {"cannot find", 11}, {"***timeout", 10}, {"keyboardint", 11},
    {"systemexit", 10}, {"\xE2\x97\x8F", 3}, {"\xE2\x9C\x95", 3}, {"\xE2\x9C\x97", 3},
    {"\xE2\x9C\x98", 3}, {"\xC3\x97 ", 3}, {".go:", 4}, {".rs:", 4}, {".py:", 4}, {".java:", 6},
    {".kt:", 4}, {".ts:", 4}, {".js:", 4}, {".rb:", 4}, {".cpp:", 5}, {".cc:", 4}, {".swift:", 7},
    {".sh:", 4}, {"syntax err", 10}};

void errors_filter(struct finder *f)
{
        finder_init(f, needles, sizeof(needles) / sizeof(needles[0]), true);
}

int errors_score(struct str raw)
{
        struct str s = trim(raw);
        if (s.n == 0 || is_success(s))
                return ERRORS_NONE;
        int score = starts_with_form(s, at_start);
        if (score == ERRORS_NONE)
                score = has_form(s, anywhere);
        if (score == ERRORS_NONE && is_make(s))
                score = ERRORS_FRAME;
        if (score == ERRORS_NONE && (is_exception(s) || is_pytest(s)))
                score = ERRORS_CAUSE;
        int counted = score_words(s);
        /* In "ERROR: 0 errors" the count contradicts the form, so this is not a failure. */
        if (score > ERRORS_NONE && score < ERRORS_CAUSE && counted == 0 &&
            (has_fold(s, " 0 error") || has_fold(s, " 0 fail")))
                return ERRORS_NONE;
        if (score == ERRORS_NONE && counted < ERRORS_SUMMARY && is_located(s) &&
            !has_fold(s, "warning"))
                score = ERRORS_CAUSE - 10;
        if (score == ERRORS_NONE && has_fold(s, "warning"))
                return counted >= ERRORS_SUMMARY ? counted : ERRORS_NONE;
        return score > counted ? score : counted;
}

bool errors_continues(struct str raw)
{
        static const char *const starts[] = {"at ", "File \"", "in ", "from ", "goroutine ",
            "note: ", "help: ", "-->", "= note", "= help", "^", "~", "| ", "|", "#", "...",
            "stack backtrace", "thread '", "required ", "left: ", "right: ", "expected", "Expected",
            "Received", "got", "actual", "+ ", "- ", "E ", ">", "created by", NULL};
        struct str s = trim(raw);
        if (s.n == 0)
                return false;
        for (const char *const *z = starts; *z; z++) {
                if (starts_fold(s, *z))
                        return true;
        }
        /* A line of source quoted by gcc (" 12 | x") or Rust, or any indented line. */
        return raw.p[0] == '\t' || (raw.n > 2 && raw.p[0] == ' ' && raw.p[1] == ' ');
}
