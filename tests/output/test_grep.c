/* grep finds what the engine finds line by line, and shows it correctly. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "output/play.h"

#include <pcre2.h>

#include "base/error.h"
#include "output/grep_play.h"
#include "base/text.h"
#include "output/grep_engine.h"
#include "output/pattern.h"

/* ---- compared with a simple search ---- */

/* Numbers of matching lines, each tried alone, and of the first in each part of the text; false for
 * a bad pattern. Compiled, because the
 * interpreter takes a bad byte in UTF-8 for the end of the subject (\z matches before it). */
static bool naive(
    struct str text, const struct grep_options *o, struct buf *out, struct buf *spread)
{
        int code;
        PCRE2_SIZE at;
        uint32_t options = PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C;
        if (o->utf8)
                options |= PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF;
        if (!o->case_sensitive)
                options |= PCRE2_CASELESS;
        pcre2_code *re =
            pcre2_compile((PCRE2_SPTR)o->pattern.p, o->pattern.n, options, &code, &at, NULL);
        if (!re)
                return false;
        /* PCRE2's two engines differ about an empty match after a byte that is not UTF-8, so this
         * uses the same engine as grep. */
        uint32_t references = 0;
        pcre2_pattern_info(re, PCRE2_INFO_BACKREFMAX, &references);
        if (references == 0)
                pcre2_jit_compile(re, PCRE2_JIT_COMPLETE);
        pcre2_match_data *data = pcre2_match_data_create(1, NULL);
        uint64_t number = 1, part = UINT64_MAX;
        spread->n = 0;
        for (size_t from = 0; from < text.n; number++) {
                const char *nl = memchr(text.p + from, '\n', text.n - from);
                size_t to = nl ? (size_t)(nl - text.p) : text.n;
                size_t n = to - from;
                n -= n && text.p[to - 1] == '\r';
                if (pcre2_match(re, (PCRE2_SPTR)text.p + from, n, 0, 0, data, NULL) >= 0) {
                        buf_printf(out, "%llu ", (unsigned long long)number);
                        if (o->spread && from * o->spread / text.n != part)
                                buf_printf(spread, "%llu ", (unsigned long long)number);
                        part = o->spread ? from * o->spread / text.n : 0;
                }
                from = to + 1;
        }
        pcre2_match_data_free(data);
        pcre2_code_free(re);
        return true;
}

static void random_pattern(struct seed *s, struct buf *b, int depth)
{
        static const char *const atoms[] = {"a", "b", "k", "S", "ab", "skid", "error", ".", "[ab]",
            "[^a]", "\\s", "\\d", "\\w", "\\W", "\\b", "^", "$", "\xC3\xA9", "[a-k]", "\\.", "x?",
            "(?=a)", "(?!b)", "(?<=a)", "\\x61", "[\\s,]", "\\S", "foo", "Bar", "[kK]", "\\t", "1",
            "(?:ab|kb)", "\\A", "\\z", "[[:alpha:]]", "(?i)q", "\\Qa.\\E", "{", "(a)\\1", "\\r",
            "\\12", "[\\rb]", "\r"};
        static const char *const marks[] = {
            "*", "+", "?", "{2}", "{1,3}", "*?", "++", "{0,2}", "??"};
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
        if (seed_below(s, 4) == 0) {
                buf_putc(b, '|');
                if (depth < 3)
                        random_pattern(s, b, depth + 1);
        }
}

static void random_subject(struct seed *s, struct buf *b, bool ascii)
{
        static const char *const parts[] = {"a", "b", "k", "S", "ab", "skid", "ERROR", " ", "\n",
            "\n", "\n\n", "1", "foo", "bar", ".", "x", "q", "\t", "\r\n", "aaaa", ",", "A", "K",
            "\xC3\xA9", "\xC3\x89", "\xE2\x84\xAA", "\xC5\xBF", "\xFF", "\xE2\x82"};
        size_t n = (size_t)seed_below(s, seed_below(s, 20) ? 400 : 40000);
        while (b->n < n)
                buf_puts(b, parts[seed_below(s, ascii ? 23 : ITEMS(parts))]);
}

static void lines_of(const struct grep_result *r, struct buf *out)
{
        for (size_t i = 0; i < r->count; i++)
                buf_printf(out, "%llu ", (unsigned long long)r->matches[i].line);
}

static void it_finds_what_the_engine_finds_line_by_line(void **state)
{
        struct seed s = seed_start();
        struct buf text, pattern, want, wide, got;
        int matched = 0;
        int costly = 0;
        (void)state;
        buf_init(&text, 0);
        buf_init(&pattern, 0);
        buf_init(&want, 0);
        buf_init(&wide, 0);
        buf_init(&got, 0);
        /* Compiling a pattern with Hyperscan takes a millisecond. */
        int rounds = seed_rounds(PLAY_ENGINES == GREP_WITH_SIEVE ? 4000 : 40000);
        for (int i = 0; i < rounds; i++) {
                struct grep_result r;
                buf_clear(&text);
                buf_clear(&pattern);
                buf_clear(&want);
                buf_clear(&got);
                random_pattern(&s, &pattern, 0);
                random_subject(&s, &text, seed_below(&s, 2));
                struct grep_options o = {.pattern = buf_str(&pattern),
                    .utf8 = seed_below(&s, 2),
                    .case_sensitive = seed_below(&s, 2),
                    .max_results = 1000,
                    .spread = (uint32_t)seed_below(&s, 20)};
                bool few = o.spread % 2;
                if (few) {
                        o.max_results = 1;
                        o.backward = o.spread % 3 == 0;
                        o.from_line = o.backward ? 5 : 0;
                }
                bool legal = naive(buf_str(&text), &o, &want, &wide);
                int rc =
                    play_grep_blocks(buf_str(&text), (size_t)seed_below(&s, 500), &o, &r, NULL);
                /* Random patterns can be catastrophic too. */
                costly += rc == STENO_ELIMIT;
                if (rc == STENO_ELIMIT)
                        continue;
                if (rc != (legal ? 0 : STENO_EPROTO))
                        fail_msg("%s: %d", buf_cstr(&pattern), rc);
                if (rc < 0)
                        continue;
                lines_of(&r, &got);
                if (!few && r.count < 1000 && strcmp(buf_cstr(&want), buf_cstr(&got)) != 0)
                        fail_msg("pattern %s utf8 %d case %d of %zu bytes: lines %s, not %s",
                            buf_cstr(&pattern), o.utf8, o.case_sensitive, text.n, got.p, want.p);
                buf_clear(&got);
                for (size_t k = 0; k < r.spread_count; k++)
                        buf_printf(&got, "%llu ", (unsigned long long)r.spread[k]);
                if (strcmp(buf_cstr(&wide), buf_cstr(&got)) != 0)
                        fail_msg("pattern %s in %u parts of %zu bytes: first lines %s, not %s",
                            buf_cstr(&pattern), o.spread, text.n, got.p, wide.p);
                matched += r.count > 0;
                grep_release(&r);
        }
        assert_true(matched > rounds / 4);
        assert_true(costly <= 1 + rounds / 1000);
        buf_release(&got);
        buf_release(&wide);
        buf_release(&want);
        buf_release(&pattern);
        buf_release(&text);
}

/* ---- windows ---- */

/* 0 stands for 256 KiB. */
static const size_t blocks[] = {1, 2, 7, 64, 1000, 4096, 65536, 0};

static void same_in_all_blocks(struct str text, const struct grep_options *o)
{
        struct buf want, got;
        struct grep_result r;
        buf_init(&want, 0);
        buf_init(&got, 0);
        assert_int_equal(play_grep(text.p, text.n, o, &r, NULL), 0);
        play_describe(&r, &want);
        grep_release(&r);
        for (size_t i = 0; i < ITEMS(blocks); i++) {
                assert_int_equal(play_grep_blocks(text, blocks[i], o, &r, NULL), 0);
                play_describe(&r, &got);
                grep_release(&r);
                if (!str_eq(buf_str(&got), buf_str(&want)))
                        fail_msg("pattern %.*s in %zu bytes, blocks of %zu:\n%.2000s\nnot\n%.2000s",
                            (int)o->pattern.n, o->pattern.p, text.n, blocks[i], buf_cstr(&got),
                            buf_cstr(&want));
        }
        buf_release(&got);
        buf_release(&want);
}

static void answers_do_not_depend_on_the_size_of_the_blocks(void **state)
{
        struct seed s = seed_start();
        static const char *const patterns[] = {"skid", "a", "k|foo", "^.*S", "[a-c]{3}$", "\\d\\b",
            "x?1$", "(?i)ERROR", "^$", "\xC3\xA9.", "ab(?=k)", "\\A.\\z", "absent literal"};
        struct buf text;
        (void)state;
        buf_init(&text, 0);
        int rounds = seed_rounds(2000);
        for (int i = 0; i < rounds; i++) {
                struct grep_options o = {
                    .pattern = str_of(patterns[seed_below(&s, ITEMS(patterns))]),
                    .utf8 = seed_below(&s, 2),
                    .case_sensitive = seed_below(&s, 2),
                    .max_results = 1 + (uint32_t)seed_below(&s, 60),
                    .context_lines = (uint32_t)seed_below(&s, 22),
                    .max_bytes = seed_below(&s, 3) ? 0 : (size_t)seed_below(&s, 4000)};
                buf_clear(&text);
                random_subject(&s, &text, seed_below(&s, 2));
                same_in_all_blocks(buf_str(&text), &o);
        }
        buf_release(&text);
}

static void fill(struct buf *b, const char *what, size_t n)
{
        for (size_t end = b->n + n; b->n < end;)
                buf_puts(b, what);
}

/* Lines longer than any window, with a match at every place where it could be missed. */
static void lines_longer_than_the_window_are_searched_whole(void **state)
{
        static const size_t places[] = {0, 1, 70000, 196000, 260000, 262139, 262144, 330000, 524288,
            983040, 1048575, 1048576, 1114112, 1500000, 2999990};
        static const char *const patterns[] = {"NEEDLE", "N[E]+DLE", "(?<=ab )NEEDLE|^NEEDLE",
            "NEED.{0,40000}(?:ab|\xC3\xA9)", "E(?=DLE)"};
        static const char *const fillers[] = {"ab ", "\xC3\xA9"};
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (size_t f = 0; f < ITEMS(fillers); f++) {
                for (size_t i = 0; i < ITEMS(places); i++) {
                        buf_clear(&b);
                        buf_puts(&b, "before\n");
                        fill(&b, fillers[f], places[i]);
                        size_t at = b.n;
                        buf_puts(&b, "NEEDLE");
                        fill(&b, fillers[f], 3000000 - places[i]);
                        buf_puts(&b, i % 2 ? "\r\nafter NEEDLE\n" : "\nafter NEEDLE\n");
                        struct grep_options o = {.pattern = str_of(patterns[i % ITEMS(patterns)]),
                            .utf8 = true,
                            .case_sensitive = true,
                            .context_lines = 1};
                        if (f && i % ITEMS(patterns) == 2)
                                o.pattern = STR("NEE[D]LE");
                        for (size_t k = 4; k < ITEMS(blocks); k++) {
                                struct grep_result r;
                                assert_int_equal(
                                    play_grep_blocks(buf_str(&b), blocks[k], &o, &r, NULL), 0);
                                if (r.count < 1)
                                        fail_msg("%.*s at %zu in blocks of %zu: %llu",
                                            (int)o.pattern.n, o.pattern.p, places[i], blocks[k],
                                            (unsigned long long)r.total_matches);
                                assert_int_equal(r.matches[0].line, 2);
                                assert_in_range(r.matches[0].match_offset, at, at + 2);
                                assert_true(str_is(r.matches[0].before[0].text, "before"));
                                assert_true(str_is(r.matches[0].after[0].text, "after NEEDLE"));
                                assert_int_equal(r.matches[0].content.cut_before, places[i] > 4000);
                                assert_int_equal(
                                    r.matches[0].content.cut_after, places[i] < 2990000);
                                if (r.count > 1)
                                        assert_int_equal(r.matches[1].line, 3);
                                grep_release(&r);
                        }
                }
        }
        buf_release(&b);
}

static void the_ends_of_a_line_longer_than_the_window_are_its_own(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "START");
        fill(&b, "filler ", 3000000);
        buf_puts(&b, "STOP");
        static const char *const found[] = {
            "^START", "STOP$", "\\bSTOP\\z", "\\ASTART", "(?i)stop\\z", "\\AS.+", "STOP(?!.)"};
        static const char *const absent[] = {"^filler", "filler$", "r\\z", "\\Af", "ler \\z", " $",
            "filler STOP.", "[a-z]\\z", "fil[a-z ]{100,200}\\z"};
        for (size_t i = 0; i < ITEMS(found) + ITEMS(absent); i++) {
                bool match = i < ITEMS(found);
                struct grep_options o = {
                    .pattern = str_of(match ? found[i] : absent[i - ITEMS(found)]),
                    .utf8 = true,
                    .case_sensitive = true,
                    .deadline_ms = 600000};
                for (size_t k = 4; k < ITEMS(blocks); k++) {
                        struct grep_result r;
                        assert_int_equal(play_grep_blocks(buf_str(&b), blocks[k], &o, &r, NULL), 0);
                        if (r.total_matches != match)
                                fail_msg("%.*s in blocks of %zu: %llu", (int)o.pattern.n,
                                    o.pattern.p, blocks[k], (unsigned long long)r.total_matches);
                        grep_release(&r);
                }
        }
        buf_release(&b);
}

/* However the pattern spells a line feed, also where many lines are searched at once. */
static void no_match_goes_over_the_end_of_a_line(void **state)
{
        static const char *const feeds[] = {"\\n", "\\12", "\\012", "\\x0a", "\\x{a}", "\\o{12}",
            "\\cJ", "\\R", "[\\n]", "[\\12]", "\\s", "\\D", "[^b]", "(?s:.)", "\n", "[\t-\r]"};
        struct str text = STR("a\nb\na\nb\n");
        (void)state;
        for (size_t i = 0; i < 2 * ITEMS(feeds); i++) {
                char pattern[32];
                snprintf(pattern, sizeof pattern, "\\w%s\\w", feeds[i / 2]);
                struct grep_options o = {.pattern = str_of(pattern), .utf8 = i % 2};
                struct grep_result r;
                assert_int_equal(play_grep(text.p, text.n, &o, &r, NULL), 0);
                if (r.total_matches)
                        fail_msg("%s matches", pattern);
                grep_release(&r);
        }
}

struct counting {
        struct str text;
        int reads;
};

static int counted_read(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        struct counting *c = ctx;
        c->reads++;
        return play_read((void *)(uintptr_t)c->text.p, at, p, n, err);
}

static void short_lines_between_two_that_are_longer_than_the_window_are_read_at_once(void **state)
{
        struct grep_options o = {.pattern = STR("x"), .engines = PLAY_ENGINES};
        struct grep_result r;
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        fill(&b, "giant", 300000);
        for (int i = 0; i < 1000; i++)
                buf_puts(&b, "\nx");
        buf_putc(&b, '\n');
        fill(&b, "giant", 900000);
        struct counting c = {.text = buf_str(&b)};
        struct grep_source source = {{counted_read, &c, b.n}, 4096, NULL};
        assert_int_equal(grep_run(&source, &o, &r, NULL), 0);
        assert_int_equal(r.total_matches, 1000);
        assert_in_range(c.reads, 1, 400);
        grep_release(&r);
        buf_release(&b);
}

/* ---- numbers of lines ---- */

static void index_of(struct str text, struct buf *out)
{
        struct lines_writer w;
        buf_clear(out);
        lines_writer_init(&w, out);
        lines_writer_feed(&w, text.p, text.n);
        lines_writer_finish(&w);
}

static void numbered_lines(struct seed *s, struct buf *b)
{
        static const char *const words[] = {"skid", "error", "a", "k", "foo 12", "\xC3\xA9", "-"};
        size_t most = 1 + (size_t)seed_below(s, 40);
        buf_clear(b);
        for (int i = 0; i < 5000; i++) {
                buf_puts(b, "- -");
                for (size_t k = 1 + (size_t)seed_below(s, most); k > 0; k--)
                        buf_puts(b, words[seed_below(s, ITEMS(words))]);
                if (seed_below(s, 1000) == 0)
                        buf_puts(b, " needle");
                if (seed_below(s, 3000) == 0)
                        fill(b, "long", 70000);
                buf_putc(b, '\n');
        }
        if (seed_below(s, 2))
                buf_puts(b, "skid");
}

/* Also with an index that is cut off, and with one of a text that has one more line at its
 * beginning. */
static void answers_are_the_same_with_an_index_of_the_lines(void **state)
{
        struct seed s = seed_start();
        static const char *const patterns[] = {
            "skid", "a", "12foo", "needle", "^- -k.*needle$", "a+k"};
        struct buf text, other, index, want, got;
        (void)state;
        buf_init(&text, 0), buf_init(&other, 0), buf_init(&index, 0);
        buf_init(&want, 0), buf_init(&got, 0);
        for (int i = 0; i < seed_rounds(600); i++) {
                struct grep_options o = {
                    .pattern = str_of(patterns[seed_below(&s, ITEMS(patterns))]),
                    .engines = PLAY_ENGINES,
                    .utf8 = true,
                    .max_results = 1 + (uint32_t)seed_below(&s, 60),
                    .context_lines = (uint32_t)seed_below(&s, 4),
                    .from_line = seed_below(&s, 2) ? seed_below(&s, 6000) : 0,
                    .backward = seed_below(&s, 2)};
                numbered_lines(&s, &text);
                buf_clear(&other);
                buf_puts(&other, "x\n");
                buf_put(&other, text.p, text.n - 2);
                bool strange = seed_below(&s, 3) == 0;
                index_of(buf_str(strange ? &other : &text), &index);
                if (seed_below(&s, 3) == 0)
                        index.n = 16 + 8 * (size_t)seed_below(&s, 4);
                struct grep_result r;
                struct lines_index x;
                struct grep_source source = {
                    {play_read, text.p, text.n}, (size_t)seed_below(&s, 2) * 4096, NULL};
                assert_int_equal(grep_run(&source, &o, &r, NULL), 0);
                play_describe(&r, &want);
                grep_release(&r);
                assert_true(lines_index_open(&x, index.p, index.n, text.n));
                source.index = &x;
                assert_int_equal(grep_run(&source, &o, &r, NULL), 0);
                play_describe(&r, &got);
                grep_release(&r);
                if (!str_eq(buf_str(&got), buf_str(&want)))
                        fail_msg("%s, from %llu, backward %d, strange %d:\n%.2000s\nnot\n%.2000s",
                            o.pattern.p, (unsigned long long)o.from_line, o.backward, strange,
                            buf_cstr(&got), buf_cstr(&want));
        }
        buf_release(&text), buf_release(&other), buf_release(&index);
        buf_release(&want), buf_release(&got);
}

/* Anybody may have written the file of an index. */
static void an_index_that_contradicts_the_count_is_not_used(void **state)
{
        struct grep_options o = {
            .pattern = STR("x"), .engines = PLAY_ENGINES, .max_results = 1, .spread = 4};
        static const uint64_t LINES = 400000;
        struct buf text, index;
        struct lines_index x;
        struct grep_result r;
        (void)state;
        buf_init(&text, 0), buf_init(&index, 0);
        for (uint64_t i = 0; i < LINES; i++)
                buf_puts(&text, "x\n");
        index_of(buf_str(&text), &index);
        /* The first entry is where the fifth of eight parts begins. */
        for (int i = 0; i < 8; i++)
                index.p[16 + i] = (char)((LINES + LINES / 4) >> (8 * i));
        index.n = 24;
        assert_true(lines_index_open(&x, index.p, index.n, text.n));
        struct grep_source source = {{play_read, text.p, text.n}, 0, &x};
        assert_int_equal(grep_run(&source, &o, &r, NULL), 0);
        assert_int_equal(r.spread_count, 4);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(r.spread[i], i * LINES / 4 + 1);
        grep_release(&r);
        buf_release(&text), buf_release(&index);
}

/* ---- a text that cannot be read ---- */

struct bad_disk {
        struct str text;
        int left; /* reads that succeed */
};

static int read_badly(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        struct bad_disk *d = ctx;
        if (d->left-- <= 0)
                return error_set(err, STENO_EIO, "the disk is bad");
        return play_read((void *)(uintptr_t)d->text.p, at, p, n, err);
}

static void a_read_that_fails_is_an_error_and_no_match(void **state)
{
        struct buf b;
        int reads = 0;
        (void)state;
        buf_init(&b, 0);
        fill(&b, "line with a NEEDLE\nand one without\n", 5000);
        fill(&b, "long ", 600000);
        fill(&b, "NEEDLE\n", 1000);
        struct grep_options o = {.pattern = STR("NEEDLE"), .utf8 = true, .context_lines = 3};
        for (int rc = -1; rc != 0; reads++) {
                struct grep_result r;
                struct steno_error err = {0};
                struct bad_disk d = {buf_str(&b), reads};
                struct grep_source source = {{read_badly, &d, b.n}, 1000, NULL};
                rc = grep_run(&source, &o, &r, &err);
                if (rc < 0) {
                        assert_int_equal(rc, STENO_EIO);
                        assert_string_equal(err.msg, "the disk is bad");
                        assert_int_equal(r.total_matches, 0);
                        assert_null(r.matches);
                }
                grep_release(&r);
        }
        assert_true(reads > 10);
        buf_release(&b);
}

/* ---- what is known about a pattern ---- */

static void reads_as(const char *pattern, const char *literals, bool exact, bool line_bound)
{
        struct pattern_info info;
        struct buf b;
        buf_init(&b, 0);
        pattern_read(str_of(pattern), true, false, false, &info);
        for (unsigned i = 0; info.has_literals && i < info.literals.count; i++)
                buf_printf(&b, "%s%.*s", i ? "," : "", info.literals.item[i].size,
                    info.literals.item[i].text);
        if (strcmp(b.n ? buf_cstr(&b) : "", literals) != 0 || info.exact != exact ||
            info.line_bound != line_bound)
                fail_msg("%s: %s exact %d line_bound %d", pattern, buf_cstr(&b), info.exact,
                    info.line_bound);
        buf_release(&b);
}

static void literals_are_read_out_of_patterns(void **state)
{
        (void)state;
        reads_as("hello", "hello", true, true);
        reads_as("foo|bar|baz", "foo,bar,baz", true, true);
        reads_as("(?:con|dis)connected", "conconnected,disconnected", true, true);
        reads_as("https?://", "https://,http://", true, true);
        reads_as("took [0-9]+ms$", "took ", false, true);
        reads_as("\\bword\\b", "word", false, true);
        reads_as("a*", "", false, true);
        reads_as("x{3}", "xxx", true, true);
        reads_as("[ab]{2,}c", "aa,ab,ba,bb", false, true);
        reads_as("a{0}", "", false, true);
        reads_as("x+yz", "yz", false, true);
        reads_as("[^\"]*needle", "needle", false, false);
        reads_as("(?i)x", "", false, false);
        reads_as("foo|b*", "", false, true);
        reads_as("foo|", "", false, true);
        reads_as("\\d{1,3}\\.\\d{1,3}", ".", false, true);
}

static uint32_t character_at(struct str text, size_t start)
{
        uint32_t cp = 0;
        assert_true(text_decode(text.p + start, text.n - start, &cp) > 0);
        return cp;
}

/* PCRE2 decides which characters those are. */
static void the_cases_of_a_letter_are_known(void **state)
{
        const struct grep_engine *engine = grep_pcre2();
        struct buf all;
        int known = 0;
        (void)state;
        buf_init(&all, 0);
        for (uint32_t cp = 0x80; cp < 0x20000; cp++) {
                if (cp < 0x3000 || (cp >= 0xA640 && cp < 0xAC00) || cp >= 0xFB00)
                        text_encode(&all, cp);
        }
        for (uint32_t cp = 0x80; cp < 0x500; cp++) {
                uint32_t cases[PATTERN_CASES];
                char pattern[4];
                size_t count = pattern_cases(cp, cases);
                struct grep_mode mode = {true, false};
                struct grep_code *code = NULL;
                struct grep_subject sub = {.p = all.p, .n = all.n, .stop = all.n + 1};
                size_t start = 0, found = 0;
                if (count == 0)
                        continue;
                struct str letter = {pattern, text_encode_to(cp, pattern)};
                assert_int_equal(engine->compile(letter, &mode, &code, NULL), 0);
                for (; engine->next(code, &sub, &start, &sub.from, NULL) == 1; found++) {
                        size_t i = 0;
                        while (i < count && cases[i] != character_at(buf_str(&all), start))
                                i++;
                        if (i == count)
                                fail_msg("U+%04X also folds to U+%04X", cp,
                                    character_at(buf_str(&all), start));
                }
                assert_int_equal(found, count);
                engine->free(code);
                known++;
        }
        assert_int_equal(known, 60 + 96);
        buf_release(&all);
}

/* ---- what is shown ---- */

static struct grep_result run(struct str text, const char *pattern, uint32_t max, uint32_t context)
{
        struct grep_result r;
        struct steno_error err = {0};
        struct grep_options o = {
            .pattern = str_of(pattern), .utf8 = true, .max_results = max, .context_lines = context};
        if (play_grep(text.p, text.n, &o, &r, &err) < 0)
                fail_msg("%s: %s", pattern, err.msg);
        return r;
}

/* The first line of a text does not decide about the others. */
static void classes_mean_the_same_beside_text_that_is_not_ascii(void **state)
{
        static const char *const patterns[] = {
            "[[:upper:]]", "[[:lower:]]", "[^[:upper:]]", "[^[:lower:]]", "[[:alpha:]]", "\\w"};
        (void)state;
        for (size_t i = 0; i < ITEMS(patterns); i++) {
                struct grep_result plain = run(STR("one\nTWO\n3\n"), patterns[i], 50, 0);
                struct grep_result mixed =
                    run(STR("one\nTWO\n3\n\xE2\x82\xAC\xFF\n"), patterns[i], 50, 0);
                for (size_t k = 0; k < plain.count; k++)
                        assert_int_equal(plain.matches[k].line, mixed.matches[k].line);
                for (size_t k = plain.count; k < mixed.count; k++)
                        assert_int_equal(mixed.matches[k].line, 4);
                grep_release(&mixed);
                grep_release(&plain);
        }
}

static void matches_carry_line_offset_content_and_context(void **state)
{
        struct str text = STR("one\ntwo\nthree\nfour\r\nfive");
        struct grep_result r = run(text, "F", 50, 2);
        (void)state;
        assert_int_equal(r.total_matches, 2);
        assert_false(r.truncated);
        assert_int_equal(r.matches[0].line, 4);
        assert_int_equal(r.matches[0].content.byte_offset, 14);
        assert_true(str_is(r.matches[0].content.text, "four"));
        assert_int_equal(r.matches[0].before_count, 2);
        assert_true(str_is(r.matches[0].before[0].text, "two"));
        assert_true(str_is(r.matches[0].before[1].text, "three"));
        assert_int_equal(r.matches[0].after_count, 1);
        assert_true(str_is(r.matches[0].after[0].text, "five"));
        assert_int_equal(r.matches[1].line, 5);
        assert_int_equal(r.matches[1].before_count, 2);
        assert_int_equal(r.matches[1].after_count, 0);
        grep_release(&r);
}

static void all_are_counted_and_the_first_collected(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (int i = 1; i <= 100000; i++)
                buf_printf(&b, "line %d %s\n", i, i % 10 ? "odd" : "ten");
        struct grep_result r = run(buf_str(&b), "ten$", 0, 0);
        assert_int_equal(r.count, 50);
        assert_int_equal(r.total_matches, 10000);
        assert_true(r.truncated);
        assert_int_equal(r.matches[49].line, 500);
        grep_release(&r);
        r = run(buf_str(&b), "[0-9] t", 3, 0);
        assert_int_equal(r.count, 3);
        assert_int_equal(r.total_matches, 10000);
        assert_int_equal(r.matches[2].line, 30);
        grep_release(&r);
        buf_release(&b);
}

static void case_matters_only_when_asked(void **state)
{
        struct str text = STR("Error\nERROR\nerror\n");
        struct grep_options o = {.pattern = STR("error"), .case_sensitive = true};
        struct grep_result r = run(text, "error", 50, 0);
        (void)state;
        assert_int_equal(r.total_matches, 3);
        grep_release(&r);
        assert_int_equal(play_grep(text.p, text.n, &o, &r, NULL), 0);
        assert_int_equal(r.total_matches, 1);
        assert_int_equal(r.matches[0].line, 3);
        grep_release(&r);
        r = run(STR("\xC3\x89T\xC3\x89\n"), "\xC3\xA9t\xC3\xA9", 50, 0);
        assert_int_equal(r.total_matches, 1);
        grep_release(&r);
}

static void patterns_see_characters_or_bytes(void **state)
{
        struct grep_options o = {.pattern = STR("^.$"), .utf8 = true};
        struct grep_result r;
        (void)state;
        assert_int_equal(play_grep("\xC3\xA9\n", 3, &o, &r, NULL), 0);
        assert_int_equal(r.total_matches, 1);
        grep_release(&r);
        o.utf8 = false;
        assert_int_equal(play_grep("\xC3\xA9\n", 3, &o, &r, NULL), 0);
        assert_int_equal(r.total_matches, 0);
        grep_release(&r);
        o.pattern = STR("\\xff");
        assert_int_equal(play_grep("a\xFF\n", 3, &o, &r, NULL), 0);
        assert_int_equal(r.total_matches, 1);
        grep_release(&r);
}

static void a_long_line_is_shown_around_its_match(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "first\n");
        for (int i = 0; i < 200000; i++)
                buf_puts(&b, "\xC3\xA9");
        size_t at = b.n;
        buf_puts(&b, "NEEDLE");
        for (int i = 0; i < 200000; i++)
                buf_puts(&b, "\xE2\x82\xAC");
        buf_puts(&b, "\nlast\n");
        static const char *const patterns[] = {"NEEDLE", "N[E]+DLE", "[N]E\\w+LE", "(?=N)NEEDLE"};
        for (size_t i = 0; i < ITEMS(patterns); i++) {
                struct grep_result r = run(buf_str(&b), patterns[i], 50, 1);
                assert_int_equal(r.total_matches, 1);
                const struct grep_line *c = &r.matches[0].content;
                assert_int_equal(r.matches[0].match_offset, at);
                assert_int_equal(r.matches[0].line, 2);
                assert_int_equal(text_count(c->text.p, c->text.n), 2000);
                assert_true(text_is_utf8(c->text.p, c->text.n));
                assert_true(c->cut_before && c->cut_after);
                assert_memory_equal(c->text.p, b.p + c->byte_offset, c->text.n);
                assert_non_null(memmem(c->text.p, c->text.n, "NEEDLE", 6));
                assert_true(str_is(r.matches[0].before[0].text, "first"));
                assert_true(str_is(r.matches[0].after[0].text, "last"));
                grep_release(&r);
        }
        buf_release(&b);
}

static void windows_reach_the_ends_of_a_long_line(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "START");
        while (b.n < 300000)
                buf_puts(&b, "filler ");
        buf_puts(&b, "STOP");
        static const char *const patterns[] = {"^START", "STOP$", "\\bSTOP\\z", "\\ASTART",
            "(?i)stop\\z", "^START[A-Z]?f.*STOP$|STOP", "\\AS.+"};
        for (size_t i = 0; i < ITEMS(patterns); i++) {
                struct grep_result r = run(buf_str(&b), patterns[i], 50, 0);
                if (r.total_matches != 1)
                        fail_msg("%s", patterns[i]);
                assert_int_equal(
                    text_count(r.matches[0].content.text.p, r.matches[0].content.text.n), 2000);
                grep_release(&r);
        }
        struct grep_result r = run(buf_str(&b), "^filler|filler$|r\\z|\\Af|ler \\z", 50, 0);
        assert_int_equal(r.total_matches, 0);
        grep_release(&r);
        buf_release(&b);
}

static void content_is_bounded_when_asked(void **state)
{
        struct buf b;
        struct grep_result r;
        struct grep_options o = {.pattern = STR("x"), .max_results = 1000, .max_bytes = 500};
        (void)state;
        buf_init(&b, 0);
        for (int i = 0; i < 100; i++)
                buf_puts(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
        assert_int_equal(play_grep(b.p, b.n, &o, &r, NULL), 0);
        assert_int_equal(r.count, 5); /* each of these has a frame, too */
        assert_int_equal(r.total_matches, 100);
        assert_true(r.truncated);
        grep_release(&r);
        o.max_bytes = 10;
        assert_int_equal(play_grep(b.p, b.n, &o, &r, NULL), 0);
        assert_int_equal(r.count, 1);
        grep_release(&r);
        buf_release(&b);
}

static void empty_texts_and_empty_patterns_are_no_trouble(void **state)
{
        struct grep_result r = run(STR(""), "x", 50, 0);
        (void)state;
        assert_int_equal(r.total_matches, 0);
        grep_release(&r);
        r = run(STR("a\n\nb"), "", 50, 0);
        assert_int_equal(r.total_matches, 3);
        grep_release(&r);
        r = run(STR("a\n\nb\n"), "^$", 50, 0);
        assert_int_equal(r.total_matches, 1);
        assert_int_equal(r.matches[0].line, 2);
        grep_release(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(it_finds_what_the_engine_finds_line_by_line),
            cmocka_unit_test(answers_do_not_depend_on_the_size_of_the_blocks),
            cmocka_unit_test(answers_are_the_same_with_an_index_of_the_lines),
            cmocka_unit_test(an_index_that_contradicts_the_count_is_not_used),
            cmocka_unit_test(lines_longer_than_the_window_are_searched_whole),
            cmocka_unit_test(the_ends_of_a_line_longer_than_the_window_are_its_own),
            cmocka_unit_test(no_match_goes_over_the_end_of_a_line),
            cmocka_unit_test(
                short_lines_between_two_that_are_longer_than_the_window_are_read_at_once),
            cmocka_unit_test(a_read_that_fails_is_an_error_and_no_match),
            cmocka_unit_test(literals_are_read_out_of_patterns),
            cmocka_unit_test(the_cases_of_a_letter_are_known),
            cmocka_unit_test(classes_mean_the_same_beside_text_that_is_not_ascii),
            cmocka_unit_test(matches_carry_line_offset_content_and_context),
            cmocka_unit_test(all_are_counted_and_the_first_collected),
            cmocka_unit_test(case_matters_only_when_asked),
            cmocka_unit_test(patterns_see_characters_or_bytes),
            cmocka_unit_test(a_long_line_is_shown_around_its_match),
            cmocka_unit_test(windows_reach_the_ends_of_a_long_line),
            cmocka_unit_test(content_is_bounded_when_asked),
            cmocka_unit_test(empty_texts_and_empty_patterns_are_no_trouble),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
