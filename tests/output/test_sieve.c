/* With Hyperscan every answer has the same bytes as with PCRE2 alone. */
#include "output/play.h"

#include "output/grep_play.h"
#include "output/pattern.h"
#include "output/sieve.h"

/* ---- chance ---- */

static void random_pattern(struct seed *s, struct buf *b, int depth)
{
        static const char *const atoms[] = {"a", "b", "k", "s", "K", "ab", "skid", "error", ".",
            "[ab]", "[^a]", "[^\xC3\xA9]", "\\s", "\\d", "\\w", "\\W", "\\D", "\\S", "\\h", "\\H",
            "\\v", "\\V", "\\N", "\\b", "\\B", "^", "$", "\xC3\xA9", "\xC3\x9F", "[a-k]", "\\.",
            "(?=a)", "(?!b)", "(?<=a)", "(?<!k)", "\\x61", "[\\s,]", "[^\\s]", "[^\\W]", "[\\W]",
            "foo", "Bar", "[kK]", "\\t", "1", "(?:ab|kb)", "[[:alpha:]]", "[^[:upper:]]",
            "[[:punct:]]", "[[:lower:]1]", "(a)\\1", "(?>a+)", "(?<n>b)", "[\xC3\xA0-\xC3\xBF]",
            "[\xD0\xB0-\xD1\x8F]", "\xD0\x96", "\xD1\x88", "\xCE\xA3", "\xE4\xB8\xAD", "[]a]",
            "[^]a]", "[a-]", "\\-", " ", "\\r", "[!-~]", "[K-\xE2\x84\xAA]", "x"};
        static const char *const marks[] = {
            "*", "+", "?", "{2}", "{1,3}", "*?", "++", "{0,2}", "??", "{3,}", "{0}", "{1,40}"};
        uint64_t n = 1 + seed_below(s, 4);
        for (uint64_t i = 0; i < n; i++) {
                if (depth < 2 && seed_below(s, 5) == 0) {
                        buf_puts(b, seed_below(s, 2) ? "(" : "(?:");
                        random_pattern(s, b, depth + 1);
                        buf_putc(b, ')');
                } else {
                        buf_puts(b, atoms[seed_below(s, ITEMS(atoms))]);
                }
                if (seed_below(s, 4) == 0)
                        buf_puts(b, marks[seed_below(s, ITEMS(marks))]);
        }
        if (depth < 2 && seed_below(s, 4) == 0) {
                buf_putc(b, '|');
                random_pattern(s, b, depth + 1);
        }
}

static const char *const parts[] = {"a", "b", "k", "S", "ab", "skid", "ERROR", " ", "\n", "\n",
    "\n\n", "1", "foo", "bar", ".", "x", "q", "\t", "\r\n", "aaaa", ",", "A", "K", "\r", "\v", "\f",
    "!", "-", "]", "\x1C", "42", "\r\r\n", "kb", "_", "\xC3\xA9", "\xC3\x89", "\xE2\x84\xAA",
    "\xC5\xBF", "\xC3\x9F", "\xE1\xBA\x9E", "\xD0\x96", "\xD0\xB6", "\xD1\x88", "\xCE\xA3",
    "\xCF\x82", "\xCF\x83", "\xE4\xB8\xAD", "\xC2\xA0", "\xC2\x85", "\xE2\x80\xA8", "\xE3\x80\x80",
    "\xD9\xA3", "\xF0\x9E\xA5\x90", "\xF0\x9F\x98\x80", "\xE1\xB2\x80", "\xD0\x92", "\xFF",
    "\xE2\x82", "\xC3", "\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\x80"};
#define ASCII_PARTS 34
#define UTF8_PARTS 56

/* Texts of ASCII, of UTF-8, and with bytes that are neither; some have very long lines. */
static void random_text(struct seed *s, struct buf *b)
{
        static const size_t kinds[] = {ASCII_PARTS, UTF8_PARTS, ITEMS(parts)};
        size_t kind = kinds[seed_below(s, 3)];
        size_t n = (size_t)seed_below(s, seed_below(s, 10) ? 3000 : 30000);
        while (b->n < n)
                buf_puts(b, parts[seed_below(s, kind)]);
        if (seed_below(s, 20) == 0) {
                const char *piece = parts[seed_below(s, kind)];
                size_t stop = b->n + 70000 + (size_t)seed_below(s, 300000);
                while (*piece != '\n' && b->n < stop)
                        buf_puts(b, piece);
                for (int i = 0; i < 40; i++)
                        buf_puts(b, parts[seed_below(s, kind)]);
        }
}

/* ---- both ways ---- */

struct both {
        struct buf want;
        struct buf got;
        int answered;
        int matched;
};

static int answer(struct str text, const struct grep_options *o, size_t block,
    enum grep_engines engines, struct buf *out)
{
        struct grep_options with = *o;
        struct grep_result r;
        struct steno_error err = {0};
        with.engines = engines;
        /* Not play_grep(), which chooses the engines itself where GREP_FASTEST is asked for. */
        struct grep_source source = {{play_read, (void *)(uintptr_t)text.p, text.n}, block, NULL};
        int rc = grep_run(&source, &with, &r, &err);
        buf_clear(out);
        if (rc == 0)
                play_describe(&r, out);
        else
                buf_puts(out, err.msg);
        grep_release(&r);
        return rc;
}

static void same(struct both *b, struct str text, const struct grep_options *o, size_t block,
    enum grep_engines engines)
{
        int want = answer(text, o, block, GREP_ONLY_PCRE2, &b->want);
        int got = answer(text, o, block, engines, &b->got);
        /* A pattern may be too costly on lines that Hyperscan rules out. */
        if (want == STENO_ELIMIT)
                return;
        if (want != got || !str_eq(buf_str(&b->want), buf_str(&b->got)))
                fail_msg("pattern %.*s utf8 %d case %d, %zu bytes in blocks of %zu: %d "
                         "%.1500s\nnot %d %.1500s",
                    (int)o->pattern.n, o->pattern.p, o->utf8, o->case_sensitive, text.n, block, got,
                    buf_cstr(&b->got), want, buf_cstr(&b->want));
        b->answered += want == 0;
        b->matched += want == 0 && b->want.p[0] != '0';
}

static void both_init(struct both *b)
{
        memset(b, 0, sizeof *b);
        buf_init(&b->want, 0);
        buf_init(&b->got, 0);
}

static void both_release(struct both *b)
{
        buf_release(&b->want);
        buf_release(&b->got);
}

static bool has_hyperscan(void)
{
        struct sieve_mode mode = {0};
        struct sieve *s = sieve_new(STR("ab"), &mode);
        sieve_free(s);
        return s != NULL;
}

static bool has_sieve(struct str pattern, bool utf8, bool fold)
{
        struct sieve_mode mode = {utf8, utf8, fold};
        struct pattern_info info;
        pattern_read(pattern, utf8, fold, fold, &info);
        struct sieve *s = info.understood ? sieve_new(pattern, &mode) : NULL;
        sieve_free(s);
        return s != NULL;
}

static void random_patterns_find_the_same_with_both_engines(void **state)
{
        struct seed s = seed_start();
        struct both b;
        struct buf text, pattern;
        int sieved = 0;
        (void)state;
        if (!has_hyperscan())
                skip();
        both_init(&b);
        buf_init(&text, 0);
        buf_init(&pattern, 0);
        int rounds = seed_rounds(8000);
        for (int i = 0; i < rounds; i++) {
                buf_clear(&text);
                buf_clear(&pattern);
                random_pattern(&s, &pattern, 0);
                random_text(&s, &text);
                struct grep_options o = {.pattern = buf_str(&pattern),
                    .utf8 = seed_below(&s, 4) > 0,
                    .case_sensitive = seed_below(&s, 2),
                    .max_results = 1 + (uint32_t)seed_below(&s, 400),
                    .context_lines = (uint32_t)seed_below(&s, 3),
                    .from_line = seed_below(&s, 4) ? 0 : seed_below(&s, 40),
                    .backward = seed_below(&s, 8) == 0};
                size_t block = seed_below(&s, 2) ? 0 : (size_t)seed_below(&s, 2000);
                same(&b, buf_str(&text), &o, block, GREP_WITH_SIEVE);
                sieved += i % 8 == 0 && has_sieve(o.pattern, o.utf8, !o.case_sensitive);
        }
        assert_true(b.matched > rounds / 4);
        assert_true(sieved * 8 > rounds / 4); /* otherwise nothing was compared */
        buf_release(&pattern);
        buf_release(&text);
        both_release(&b);
}

/* ---- characters ---- */

/* Each character on a line of its own, from 1 to beyond the last one that has a name. */
static void every_character(struct buf *b)
{
        for (uint32_t c = 1; c < 0x20100; c++) {
                if (c == '\n' || (c >= 0xD800 && c < 0xE000) || (c >= 0x3500 && c < 0x9E00))
                        continue;
                text_encode(b, c);
                buf_putc(b, '\n');
        }
}

static void classes_hold_the_same_characters_with_both_engines(void **state)
{
        static const char *const classes[] = {".", "\\w", "\\W", "\\d", "\\D", "\\s", "\\S", "\\h",
            "\\H", "\\v", "\\V", "\\N", "[[:alpha:]]", "[[:digit:]]", "[[:alnum:]]", "[[:upper:]]",
            "[[:lower:]]", "[[:xdigit:]]", "[[:punct:]]", "[[:word:]]", "[^\\w]", "[^\\W]", "[^k]",
            "[a-z]", "[^a-z\xC3\xA0]", "[\xC3\xA0-\xC9\x8F]", "[^\\s\\d]", "\\W\\b", "\\b\\w"};
        struct both b;
        struct buf text;
        (void)state;
        if (!has_hyperscan())
                skip();
        both_init(&b);
        buf_init(&text, 0);
        every_character(&text);
        struct seed s = seed_start();
        size_t every = (size_t)seed_every(4);
        for (size_t i = seed_below(&s, every); i < 2 * ITEMS(classes); i += every) {
                struct grep_options o = {.pattern = str_of(classes[i / 2]),
                    .utf8 = true,
                    .case_sensitive = i % 2,
                    .max_results = 1000};
                assert_true(has_sieve(o.pattern, true, !o.case_sensitive));
                same(&b, buf_str(&text), &o, 0, GREP_WITH_SIEVE);
        }
        buf_release(&text);
        both_release(&b);
}

/* Characters that have a case, and some that do not. */
static uint32_t random_character(struct seed *s)
{
        static const uint32_t ranges[][2] = {{'a', 'z'}, {0xC0, 0x17F}, {0x370, 0x52F},
            {0x531, 0x586}, {0x1C80, 0x1C88}, {0x1E00, 0x1FFC}, {0x10A0, 0x10FF}, {0x2100, 0x214E},
            {0xA640, 0xA7FF}, {0x10400, 0x1044F}, {0x4E00, 0x4E20}, {0x180, 0x24F},
            {0xAB53, 0xABBF}, {0x1E900, 0x1E943}, {0xB5, 0xB5}, {0x345, 0x345}};
        const uint32_t *r = ranges[seed_below(s, ITEMS(ranges))];
        return r[0] + (uint32_t)seed_below(s, r[1] - r[0] + 1);
}

static void letters_have_the_same_other_cases_with_both_engines(void **state)
{
        struct seed s = seed_start();
        struct both b;
        struct buf text, pattern;
        (void)state;
        if (!has_hyperscan())
                skip();
        both_init(&b);
        buf_init(&text, 0);
        buf_init(&pattern, 0);
        every_character(&text);
        int rounds = seed_rounds(1600);
        /* All of Latin-1 and of the Cyrillic alphabet, whose other cases the sieve knows. */
        for (int i = 0; i < rounds + 0x40 + 0x60; i++) {
                uint32_t c = i < 0x40 ? 0xC0 + (uint32_t)i : 0x400 + (uint32_t)i - 0x40;
                if (i >= 0x40 + 0x60)
                        c = random_character(&s);
                else if (i % 16 != (int)seed_below(&s, 16) && rounds < 1600)
                        continue;
                struct grep_options o = {.utf8 = true, .max_results = 1000};
                buf_clear(&pattern);
                text_encode(&pattern, c);
                o.pattern = buf_str(&pattern);
                same(&b, buf_str(&text), &o, 0, GREP_WITH_SIEVE);
        }
        assert_true(b.matched > rounds / 2);
        buf_release(&pattern);
        buf_release(&text);
        both_release(&b);
}

/* ---- places ---- */

static void matches_at_the_edges_of_blocks_are_found_with_both_engines(void **state)
{
        static const char *const patterns[] = {"[n]eedle$", "^[n]e+dle", "n[^x]{4}e",
            "\\bn\\w+e\\b", "[Nn]eed(?:le|ful)", "needle\\s?\\d", "[e]{2}dle[ ]?7$"};
        struct both b;
        struct buf text;
        (void)state;
        if (!has_hyperscan())
                skip();
        both_init(&b);
        buf_init(&text, 0);
        for (size_t at = 0; at < 80; at++) {
                buf_clear(&text);
                for (size_t i = 0; i < at; i++)
                        buf_putc(&text, i % 13 == 12 ? '\n' : 'x');
                buf_puts(&text, at % 3 ? " needle 7\r\nneedle\r\n" : "\xC3\xA9 needle 7\nneedle");
                for (size_t i = 0; i < ITEMS(patterns); i += 1 + at % 2) {
                        struct grep_options o = {.pattern = str_of(patterns[i]), .utf8 = true};
                        same(&b, buf_str(&text), &o, 1 + at % 32, GREP_WITH_SIEVE);
                }
        }
        assert_true(b.matched > 200);
        buf_release(&text);
        both_release(&b);
}

/* The patterns of bench/bench_output.c, and others that readers of logs type, on pieces of logs in
 * random order, so that near matches occur everywhere. */
static void patterns_of_readers_of_logs_find_the_same_with_both_engines(void **state)
{
        static const char *const patterns[] = {"T0[3-5]:\\d{2}:\\d{2}\\.\\d{3}Z",
            "0x[0-9a-f]{8,16}", "^\\s+at \\S+\\(\\w+\\.java:\\d+\\)",
            "[\\w./-]+\\.(?:c|h|py|ts):\\d+(?::\\d+)?", "\\btimeout\\b", "https?://[^\\s\"<>]+",
            "\"[^\"]*refused[^\"]*\"", "\"status\":\\s*5\\d\\d", "\\[(?:WARN|ERROR|FATAL)\\]",
            "retry.*upstream", "(\\w+) \\1", "\\s*timeout$", "(?<!\\s)0x\\d", "(?<=\\s)0x\\S*",
            "https?://\\S+$", "\"status\":[^5]", "retry(?!.*upstream)", "\\d?timeout\\s",
            "[^:]:443\"", "\\.java:\\d+\\)$"};
        static const char *const pieces[] = {"2026-03-01T04:10:00.123Z ", "T05:00", "[ERROR] ",
            "[WARN]", "[INFO] ", "ERROR", "    at a.b.C.run(C.java:12)", "C.java:7)",
            "0xdeadbeef01", "0x12", "src/net/part_1.c:10:2", "a.h:", "timeout", "timeouts ",
            " timeout", "Timeout", "https://example.com/a?b=1", "http:", "http://x",
            "\"connection refused by ::1:443\"", "refused", "\"", "{\"status\": 503",
            "\"status\":500,", "\"status\":\n", "\"status\":", "5", "retry ", "upstream",
            "pool pool", " ", "\n", "\n", "\r\n", "\r", "\t", ":", "7", "\xC3\xA9", "\xE2\x84\xAA",
            "\xFF"};
        struct seed rnd = seed_start();
        struct both b;
        struct buf text;
        (void)state;
        if (!has_hyperscan())
                skip();
        both_init(&b);
        buf_init(&text, 0);
        for (int round = 0; round < seed_rounds(400); round++) {
                size_t kinds = ITEMS(pieces) - (round % 2 ? 3 : 0);
                size_t n = (size_t)seed_below(&rnd, 2000);
                buf_clear(&text);
                while (text.n < n)
                        buf_puts(&text, pieces[seed_below(&rnd, kinds)]);
                for (size_t i = 0; i < ITEMS(patterns); i++) {
                        struct grep_options o = {.pattern = str_of(patterns[i]),
                            .utf8 = round % 5 != 0,
                            .case_sensitive = round % 3 != 0};
                        same(&b, buf_str(&text), &o, round % 7 ? 0 : 64, GREP_WITH_SIEVE);
                }
        }
        assert_true(b.matched > seed_rounds(400));
        buf_release(&text);
        both_release(&b);
}

/* As in the program: large enough for the timing to choose how to search. */
static void large_texts_are_answered_alike_whichever_way_is_fastest(void **state)
{
        static const char *const patterns[] = {"[0-9a-f]{7}", "^l\\S+ 1\\d+7 ", "o[ft] (?:the|a)",
            "\\b\\w{9}\\b", "[^ ]+\\d$", "a{2}b", "(?:line|row) \\d+9 .*e", ".", "\xC3\xA9\\w",
            "^$", "[0-9a-f]{24}", "\\b\\d{1,3}\\.\\d{1,3}\\.\\d"};
        struct both b;
        struct buf text;
        (void)state;
        if (!has_hyperscan())
                skip();
        both_init(&b);
        buf_init(&text, 0);
        for (unsigned i = 0; text.n < 16u << 20; i++)
                buf_printf(&text, "line %u of the output, %x%s%s%s\n", i, i * 2654435761u,
                    i % 50000 ? "" : " caf\xC3\xA9s \xFF",
                    i % 3000 ? "" : " 0123456789abcdef01234567 10.1.2.3", i % 100000 ? "" : "\r");
        for (size_t i = 0; i < ITEMS(patterns); i++) {
                struct grep_options o = {.pattern = str_of(patterns[i]),
                    .utf8 = true,
                    .case_sensitive = i % 2,
                    .max_results = 20,
                    .backward = i == 3};
                same(&b, buf_str(&text), &o, 0, GREP_FASTEST);
        }
        assert_int_equal(b.answered, ITEMS(patterns));
        buf_release(&text);
        both_release(&b);
}

/* ---- what has no sieve ---- */

static void patterns_that_would_make_a_large_automaton_have_no_sieve(void **state)
{
        static const char *const without[] = {"(?:[ab]{1,50}){1,50}", "\\w{1000}", "a*", "(?:a|b?)",
            "((a{100}){100}){100}", "\\bx?", "^$", "\\Aa", "a\\z", "(?i)a", "\\Qa\\E", "a\\Kb"};
        static const char *const with[] = {"ab", "[0-9a-f]{24}", "\\w+@\\w+\\.com",
            "^\\s*at .*\\)$", "(?<=x)yz", "(\\w)\\1", "\xC3\xA9+"};
        (void)state;
        if (!has_hyperscan())
                skip();
        for (size_t i = 0; i < ITEMS(without); i++) {
                if (has_sieve(str_of(without[i]), true, true))
                        fail_msg("%s has a sieve", without[i]);
        }
        for (size_t i = 0; i < ITEMS(with); i++) {
                if (!has_sieve(str_of(with[i]), true, true))
                        fail_msg("%s has none", with[i]);
        }
}

/* The sieve alone: it names lines that do not match, and the engine must reject them. */
static void the_engine_decides_about_lines_that_the_sieve_names(void **state)
{
        struct str text = STR("abc\nxaby\nab\n");
        struct grep_options o = {
            .pattern = STR("(?<=x)[a]b(?=y)"), .utf8 = true, .case_sensitive = true};
        struct sieve_mode mode = {true, false, false};
        const uint32_t *at = NULL;
        struct both b;
        (void)state;
        if (!has_hyperscan())
                skip();
        struct sieve *s = sieve_new(o.pattern, &mode);
        assert_non_null(s);
        assert_int_equal(sieve_lines(s, text.p, text.n, &at), 3);
        sieve_free(s);
        both_init(&b);
        assert_int_equal(answer(text, &o, 0, GREP_WITH_SIEVE, &b.got), 0);
        assert_true(str_starts(buf_str(&b.got), "1 0 0 0\n2 5+2 "));
        both_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(random_patterns_find_the_same_with_both_engines),
            cmocka_unit_test(classes_hold_the_same_characters_with_both_engines),
            cmocka_unit_test(letters_have_the_same_other_cases_with_both_engines),
            cmocka_unit_test(matches_at_the_edges_of_blocks_are_found_with_both_engines),
            cmocka_unit_test(patterns_of_readers_of_logs_find_the_same_with_both_engines),
            cmocka_unit_test(large_texts_are_answered_alike_whichever_way_is_fastest),
            cmocka_unit_test(patterns_that_would_make_a_large_automaton_have_no_sieve),
            cmocka_unit_test(the_engine_decides_about_lines_that_the_sieve_names),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
