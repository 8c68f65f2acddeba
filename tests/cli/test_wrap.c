/*
 * test_wrap.c - text from outside on a terminal: never wider than it, never obeyed by it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <string.h>

#include "base/text.h"
#include "cli/term.h"
#include "cli/wrap.h"
#include "support/seed.h"

/* Nothing is written before OUT_CHUNK, so a small answer can be looked at in the buffer. */
static void begin(struct out *o, bool colours)
{
        out_init(o, -1);
        o->tty = true;
        o->colours = colours;
}

static void every_row_fits_whatever_the_text(void **state)
{
        static const char *const bits[] = {"word ", "\xe6\xbc\xa2\xe5\xad\x97", "\t", "\n", "x",
            "\033[31m", "\033]0;t\007", "\xff", "e\xcc\x81", "\xe2\x80\xae", "\r\n", " ",
            "averylongwordwithoutanyspace"};
        struct seed s = seed_start();
        (void)state;

        for (int round = 0; round < seed_rounds(4000); round++) {
                struct out o;
                struct buf text, plain;
                begin(&o, seed_below(&s, 2) != 0);
                buf_init(&text, 0);
                buf_init(&plain, 0);
                for (size_t i = seed_below(&s, 120); i > 0; i--)
                        buf_puts(&text, bits[seed_below(&s, sizeof(bits) / sizeof(bits[0]))]);
                struct wrap w = {.o = &o,
                    .width = 20 + (unsigned)seed_below(&s, 60),
                    .prefix = "  | ",
                    .words = seed_below(&s, 2) != 0,
                    .colours = true,
                    .max_rows = seed_below(&s, 6)};
                wrap_put(&w, buf_str(&text));
                text_strip_ansi(&plain, buf_str(&o.b));
                size_t rows = 0;
                for (size_t at = 0; at < plain.n; rows++) {
                        const char *lf = memchr(plain.p + at, '\n', plain.n - at);
                        assert_non_null(lf);
                        size_t n = (size_t)(lf - plain.p) - at;
                        assert_true(term_columns(str_span(plain.p + at, n)) <= w.width);
                        assert_memory_equal(plain.p + at, "  |", 3);
                        assert_null(memchr(plain.p + at, '\033', n));
                        at += n + 1;
                }
                assert_true(w.max_rows == 0 || rows <= w.max_rows);
                buf_release(&plain);
                buf_release(&text);
                out_release(&o);
        }
}

static void what_was_left_out_is_counted(void **state)
{
        struct out o;
        struct wrap w = {.o = &o, .width = 40, .max_rows = 2};
        (void)state;

        begin(&o, false);
        struct wrap_left left = wrap_put(&w, STR("one\ntwo\nthree\nfour\n"));
        assert_int_equal(left.lines, 2);
        left = wrap_put(&w, STR("one\ntwo\n"));
        assert_int_equal(left.bytes, 0);
        assert_int_equal(left.lines, 0);
        out_release(&o);
}

static void words_stay_whole_where_they_fit(void **state)
{
        struct out o;
        struct wrap w = {.o = &o, .width = 12, .words = true};
        (void)state;

        begin(&o, false);
        wrap_put(&w, STR("alpha beta gamma delta"));
        assert_true(str_is(buf_str(&o.b), "alpha beta\ngamma delta\n"));
        out_release(&o);
}

static void a_stream_cut_inside_a_character_is_shown_as_if_whole(void **state)
{
        static const char text[] = "a \xe6\xbc\xa2 \033]0;t\007 \xf0\x9f\x98\x80 \xc2\x9b end";
        (void)state;

        for (size_t cut = 0; cut < sizeof(text); cut++) {
                struct out whole, pieces;
                begin(&whole, false);
                begin(&pieces, false);
                out_text_piece(&whole, STR(text));
                out_text_end(&whole);
                out_text_piece(&pieces, str_span(text, cut < sizeof(text) - 1 ? cut : 0));
                size_t from = cut < sizeof(text) - 1 ? cut : 0;
                out_text_piece(&pieces, str_span(text + from, sizeof(text) - 1 - from));
                out_text_end(&pieces);
                assert_int_equal(whole.b.n, pieces.b.n);
                assert_memory_equal(whole.b.p, pieces.b.p, whole.b.n);
                out_release(&pieces);
                out_release(&whole);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_row_fits_whatever_the_text),
            cmocka_unit_test(what_was_left_out_is_counted),
            cmocka_unit_test(words_stay_whole_where_they_fit),
            cmocka_unit_test(a_stream_cut_inside_a_character_is_shown_as_if_whole),
        };
        setlocale(LC_CTYPE, "C.UTF-8");
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
