/* No pattern makes grep hang: each is answered, or refused, within two seconds. Most of the work is
 * PCRE2's, so this is built without Hyperscan; test_output_grep_cost_sieve is the same with it. */
#include "output/play.h"

#ifndef PLAY_ENGINES
#define PLAY_ENGINES GREP_ONLY_PCRE2
#endif

#include <sys/resource.h>
#include <time.h>

#include "base/limits.h"
#include "output/grep_play.h"

static double now_s(void)
{
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Texts on which backtracking goes wrong in the most ways. */
static void many_of(struct buf *b, const char *piece, size_t line, size_t total)
{
        buf_clear(b);
        while (b->n < total) {
                for (size_t n = 0; n < line; n += strlen(piece))
                        buf_puts(b, piece);
                buf_puts(b, "!\n");
        }
}

struct costly {
        const char *pattern;
        bool must_fail; /* cannot be answered in time on lines of `a` */
};

static const struct costly table[] = {
    {"(a+)+$", true},
    {"(a*)*$", false},
    {"(a|aa)+$", true},
    {"(a|a?)+$", true},
    {"(.*a){20}$", true},
    {"(a+)+b\\1", false},
    {"(?=(a+))a*b\\1", false},
    {"^(([a-z])+.)+[A-Z]([a-z])+$", false},
    {"(x+x+)+y", false},
    {"(([a]{1,50}){1,50}){1,50}$", true},
    {"(a{0,100}){0,100}c", false},
    {"((a{1,30}){1,30}){1,30}c", false},
    {"a.*a.*a.*a.*a.*b", false},
    {"(?:a?){40}a{40}$", false},
    {"([a-zA-Z]+)*[0-9]$", false},
    {"(\\w+\\s?)*x$", false},
    {"^(a?){64}a{64}$", false},
    {"(?<=(a{0,200}))b", false},
    {"(a+)(a+)(a+)(a+)\\4\\3\\2\\1$", false},
    {"(?R)?a+$", false},
    {"((?1)?a)+b", false},
    {"(a(?:a(?:a(?:a+)+)+)+)+$", true},
    {"\\X*\\X*\\X*z", false},
    {"(?i)[ab]*+c", false},
    {"[ab]*+\\z", false},
    {"(?>a*)(?>a*)c", false},
    {"(?:(?:(?:(?:a{0,9}){0,9}){0,9}){0,9})z", false},
};

static void check_text(struct str text, const char *what)
{
        for (size_t i = 0; i < ITEMS(table); i++) {
                for (int utf8 = 0; utf8 < 2; utf8++) {
                        struct grep_result r;
                        struct steno_error err = {0};
                        struct grep_options o = {.pattern = str_of(table[i].pattern), .utf8 = utf8};
                        double began = now_s();
                        int rc = play_grep(text.p, text.n, &o, &r, &err);
                        double took = now_s() - began;
                        if (took > 60.0) /* without a limit it would be hours */
                                fail_msg("%s on %s: %.2f s", table[i].pattern, what, took);
                        if (rc == STENO_ELIMIT)
                                assert_true(str_starts(str_of(err.msg), "pattern too costly: "));
                        else if (rc < 0 && rc != STENO_EPROTO)
                                fail_msg("%s: %d %s", table[i].pattern, rc, err.msg);
                        else if (rc == 0)
                                grep_release(&r);
                }
        }
}

static void catastrophic_patterns_are_answered_in_time(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        many_of(&b, "a", 64, 1 << 16);
        check_text(buf_str(&b), "short lines");
        many_of(&b, "a", 5000, 1 << 16);
        check_text(buf_str(&b), "lines of 5,000");
        buf_release(&b);
}

static bool is_short(void)
{
        return !getenv("STENO_TEST_LONG");
}

/* The short run tries every n-th pair of a pattern and a length, so that each pattern and each
 * length occurs. With Hyperscan, PCRE2 sees the same lines, but fewer of them. */
static size_t step(void)
{
        if (!is_short())
                return 1;
        return PLAY_ENGINES == GREP_ONLY_PCRE2 ? 3 : 7;
}

/* One step of these patterns compares thousands of bytes. */
static void back_references_are_answered_in_time(void **state)
{
        static const char *const PATTERNS[] = {"(a*)\\1c", "(.*)*x\\1", "(.*)\\1\\1c",
            "(a*)(a*)\\2\\1c", "(\\w+)\\s+\\1", "((a*)\\2)*c"};
        static const size_t LINES[] = {4000, 16000, 60000, 300000};
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (size_t i = 0; i < ITEMS(PATTERNS) * ITEMS(LINES); i += step()) {
                struct grep_options o = {
                    .pattern = str_of(PATTERNS[i / ITEMS(LINES)]), .utf8 = i % 2};
                struct grep_result r;
                struct steno_error err = {0};
                many_of(&b, "a", LINES[i % ITEMS(LINES)], 1);
                buf_puts(&b, "xb c\n");
                double began = now_s();
                int rc = play_grep(b.p, b.n, &o, &r, &err);
                double took = now_s() - began;
                if (took > 60.0) /* without a limit it would be hours */
                        fail_msg("%s: %.2f s", o.pattern.p, took);
                if (rc == 0)
                        grep_release(&r);
                else
                        assert_true(str_starts(str_of(err.msg), "pattern too costly: "));
        }
        buf_release(&b);
}

static void catastrophic_patterns_on_very_long_lines_too(void **state)
{
        struct buf b;
        (void)state;
        size_t long_line = is_short() ? 50000 : 500000;
        buf_init(&b, 0);
        many_of(&b, "a", long_line, long_line);
        check_text(buf_str(&b), "one long line");
        many_of(&b, "ab \xC3\xA9", long_line / 5, is_short() ? 1 << 17 : 1 << 20);
        check_text(buf_str(&b), "mixed lines, a fifth as long");
        buf_release(&b);
}

static void a_costly_pattern_is_called_so(void **state)
{
        struct buf b;
        struct grep_result r;
        struct steno_error err = {0};
        /* Hyperscan answers some of these: it finds that no line can match. */
        struct grep_options o = {
            .pattern = STR("(a+)+$"), .utf8 = true, .engines = GREP_ONLY_PCRE2};
        (void)state;
        buf_init(&b, 0);
        many_of(&b, "a", 64, 4096);
        for (size_t i = 0; i < ITEMS(table); i++) {
                o.pattern = str_of(table[i].pattern);
                if (table[i].must_fail)
                        assert_int_equal(play_grep(b.p, b.n, &o, &r, &err), STENO_ELIMIT);
        }
        assert_int_equal(r.count, 0);
        assert_null(r.matches);
        buf_release(&b);
}

/* The part of the error that is about the pattern alone. */
static int check(const struct grep_options *o, struct steno_error *err)
{
        struct grep_result r;
        int rc = play_grep("", 0, o, &r, err);
        grep_release(&r);
        return rc;
}

static void the_error_of_a_bad_pattern_says_where_and_why(void **state)
{
        static const struct {
                const char *pattern;
                const char *begin;
                const char *word;
        } bad[] = {
            {"a(b", "bad pattern at byte 3: ", "parenthesis"},
            {"[z-a]", "bad pattern at byte 3: ", "range"},
            {"a**b(", "bad pattern at byte 2: ", "quantifier"},
            {"*", "bad pattern at byte 0: ", "quantifier"},
            {"(*CRLF)a", "bad pattern at byte 0: ", "not allowed"},
            {"\\C", "bad pattern at byte 2: ", "\\C"},
        };
        struct steno_error err = {0};
        struct grep_result r;
        (void)state;
        for (size_t i = 0; i < ITEMS(bad); i++) {
                struct grep_options o = {.pattern = str_of(bad[i].pattern), .utf8 = true};
                assert_int_equal(play_grep("", 0, &o, &r, &err), STENO_EPROTO);
                if (!str_starts(str_of(err.msg), bad[i].begin) || !strstr(err.msg, bad[i].word))
                        fail_msg("%s: %s", bad[i].pattern, err.msg);
                assert_int_equal(check(&o, &err), STENO_EPROTO);
        }
        struct grep_options good = {.pattern = STR("a|b")};
        assert_int_equal(check(&good, &err), 0);
}

static void patterns_without_limits_are_refused(void **state)
{
        struct buf b;
        struct steno_error err = {0};
        (void)state;
        buf_init(&b, 0);
        for (int i = 0; i < GREP_PATTERN_MAX + 1; i++)
                buf_putc(&b, 'a');
        struct grep_options o = {.pattern = buf_str(&b)};
        assert_int_equal(check(&o, &err), STENO_ELIMIT);
        o.pattern = STR("((((a{500}){500}){500}){500})");
        double began = now_s();
        assert_int_equal(check(&o, &err), STENO_ELIMIT);
        assert_true(now_s() - began < 2.0);
        buf_clear(&b);
        for (int i = 0; i < 1000; i++)
                buf_putc(&b, '(');
        for (int i = 0; i < 1000; i++)
                buf_putc(&b, ')');
        o.pattern = buf_str(&b);
        assert_int_equal(check(&o, &err), STENO_ELIMIT);
        buf_release(&b);
}

static void a_line_of_100_megabytes_needs_no_memory_of_its_own(void **state)
{
        size_t n = 100 * MIB;
        char *p = malloc(n);
        struct rusage before, after;
        (void)state;
        assert_non_null(p);
        for (size_t i = 0; i < n; i++)
                p[i] = "abcdefgh ijklmnop"[i % 17];
        memcpy(p + n - 5000, "needle 10.20.30.40", 18);
        static const char *const patterns[] = {
            "needle", "\\d+\\.\\d+\\.\\d+\\.\\d+", "n[e]{2}dle \\S"};
        getrusage(RUSAGE_SELF, &before);
        for (size_t i = 0; i < ITEMS(patterns); i++) {
                struct grep_result r;
                struct grep_options o = {.pattern = str_of(patterns[i]), .utf8 = true};
                assert_int_equal(play_grep(p, n, &o, &r, NULL), 0);
                assert_int_equal(r.total_matches, 1);
                assert_int_equal(r.matches[0].content.text.n, CONTEXT_LONG_LINE);
                grep_release(&r);
        }
        getrusage(RUSAGE_SELF, &after);
        assert_true(after.ru_maxrss - before.ru_maxrss < 8 * 1024);
        free(p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(catastrophic_patterns_are_answered_in_time),
            cmocka_unit_test(back_references_are_answered_in_time),
            cmocka_unit_test(catastrophic_patterns_on_very_long_lines_too),
            cmocka_unit_test(a_costly_pattern_is_called_so),
            cmocka_unit_test(the_error_of_a_bad_pattern_says_where_and_why),
            cmocka_unit_test(patterns_without_limits_are_refused),
            cmocka_unit_test(a_line_of_100_megabytes_needs_no_memory_of_its_own),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
