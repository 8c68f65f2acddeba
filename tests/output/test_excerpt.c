/* What is collected from a stream: it does not depend on where the stream is cut, and its figures
 * are exact. */
#include "output/play.h"

#include "output/excerpt.h"
#include "output/lines.h"

/* Everything that an excerpt shows, as one text. */
static void show(const struct excerpt *e, size_t room, struct buf *out)
{
        struct excerpt_figures f;
        struct snippet head, tail;
        struct error_snippet errors;
        excerpt_snippet_init(&head);
        excerpt_snippet_init(&tail);
        excerpt_error_snippet_init(&errors);
        excerpt_figures(e, &f);
        excerpt_head(e, room, &head);
        excerpt_tail(e, room, &head, &tail);
        excerpt_errors(e, room, &head, &tail, &errors);
        assert_true(head.text.n <= room && tail.text.n <= room && errors.text.n <= room);
        buf_printf(out, "%llu %llu %llu %d %d|%llu-%llu %llu-%llu|", (unsigned long long)f.bytes,
            (unsigned long long)f.chars, (unsigned long long)f.lines, f.utf8, f.binary,
            (unsigned long long)head.first_line, (unsigned long long)head.last_line,
            (unsigned long long)tail.first_line, (unsigned long long)tail.last_line);
        buf_put_str(out, buf_str(&head.text));
        buf_putc(out, '|');
        buf_put_str(out, buf_str(&errors.text));
        for (size_t i = 0; i < errors.count; i++)
                buf_printf(out, " %llu", (unsigned long long)errors.lines[i]);
        buf_putc(out, '|');
        buf_put_str(out, buf_str(&tail.text));
        /* Also the errors that are shown where there is neither a head nor a tail. */
        excerpt_errors(e, room, NULL, NULL, &errors);
        buf_put_str(out, buf_str(&errors.text));
        assert_true(text_is_utf8(out->p, out->n));
        excerpt_error_snippet_release(&errors);
        excerpt_snippet_release(&tail);
        excerpt_snippet_release(&head);
}

static void collect(struct seed *s, struct str text, size_t room, struct buf *out)
{
        struct excerpt *e = excerpt_new(NULL);
        buf_clear(out);
        for (size_t at = 0; at < text.n;) {
                size_t most = s && seed_below(s, 3) ? 40 : 200000;
                size_t step = s ? 1 + (size_t)seed_below(s, most) : text.n;
                if (step > text.n - at)
                        step = text.n - at;
                excerpt_feed(e, text.p + at, step);
                at += step;
        }
        excerpt_finish(e);
        show(e, room, out);
        excerpt_free(e);
}

static void the_result_does_not_depend_on_the_cuts(void **state)
{
        struct seed s = seed_start();
        struct buf text, whole, pieces;
        (void)state;
        buf_init(&text, 0);
        buf_init(&whole, 0);
        buf_init(&pieces, 0);
        for (int i = 0; i < seed_rounds(3000); i++) {
                size_t room = 64 + (size_t)seed_below(&s, 2500);
                buf_clear(&text);
                play_text(&s, &text, (size_t)seed_below(&s, seed_below(&s, 8) ? 5000 : 300000));
                if (seed_below(&s, 8) == 0)
                        buf_putc(&text, '\xFF');
                collect(NULL, buf_str(&text), room, &whole);
                collect(&s, buf_str(&text), room, &pieces);
                assert_int_equal(whole.n, pieces.n);
                assert_memory_equal(whole.p, pieces.p, whole.n);
        }
        buf_release(&pieces);
        buf_release(&whole);
        buf_release(&text);
}

static void figures_are_those_of_the_whole_text(void **state)
{
        struct seed s = seed_start();
        struct buf text;
        (void)state;
        buf_init(&text, 0);
        for (int i = 0; i < seed_rounds(1000); i++) {
                struct excerpt *e = excerpt_new(NULL);
                struct excerpt_figures f;
                buf_clear(&text);
                play_text(&s, &text, (size_t)seed_below(&s, 100000));
                excerpt_feed(e, text.p, text.n);
                excerpt_finish(e);
                excerpt_figures(e, &f);
                uint64_t lines = lines_count(text.p, text.n);
                lines += text.n && text.p[text.n - 1] != '\n';
                assert_int_equal(f.bytes, text.n);
                assert_int_equal(f.chars, f.utf8 ? text_count(text.p, text.n) : text.n);
                assert_int_equal(f.lines, lines);
                assert_int_equal(f.utf8, text_is_utf8(text.p, text.n));
                excerpt_free(e);
        }
        buf_release(&text);
}

static void numbered(struct buf *b, int from, int to)
{
        for (int i = from; i <= to; i++)
                buf_printf(b, "line %d\n", i);
}

static void head_and_tail_are_forty_lines_each(void **state)
{
        struct buf text, want;
        struct snippet head, tail;
        struct excerpt *e = excerpt_new(NULL);
        (void)state;
        buf_init(&text, 0);
        buf_init(&want, 0);
        excerpt_snippet_init(&head);
        excerpt_snippet_init(&tail);
        numbered(&text, 1, 50000);
        excerpt_feed(e, text.p, text.n);
        excerpt_finish(e);
        excerpt_head(e, 2048, &head);
        excerpt_tail(e, 2048, &head, &tail);
        numbered(&want, 1, 40);
        assert_string_equal(buf_cstr(&head.text), buf_cstr(&want));
        assert_int_equal(head.last_line, 40);
        buf_clear(&want);
        numbered(&want, 49961, 50000);
        assert_string_equal(buf_cstr(&tail.text), buf_cstr(&want));
        assert_int_equal(tail.first_line, 49961);
        assert_int_equal(tail.last_line, 50000);
        excerpt_snippet_release(&tail);
        excerpt_snippet_release(&head);
        excerpt_free(e);
        buf_release(&want);
        buf_release(&text);
}

static void head_and_tail_never_show_the_same_line(void **state)
{
        struct buf text;
        (void)state;
        buf_init(&text, 0);
        for (int n = 1; n < 120; n++) {
                struct excerpt *e = excerpt_new(NULL);
                struct snippet head, tail;
                excerpt_snippet_init(&head);
                excerpt_snippet_init(&tail);
                buf_clear(&text);
                numbered(&text, 1, n);
                excerpt_feed(e, text.p, text.n);
                excerpt_finish(e);
                excerpt_head(e, 2048, &head);
                excerpt_tail(e, 2048, &head, &tail);
                assert_int_equal(head.last_line, n < 40 ? n : 40);
                if (n <= 40)
                        assert_int_equal(tail.text.n, 0);
                else
                        assert_int_equal(tail.first_line, n <= 80 ? 41 : n - 39);
                excerpt_snippet_release(&tail);
                excerpt_snippet_release(&head);
                excerpt_free(e);
        }
        buf_release(&text);
}

static void a_line_of_ten_megabytes_is_clamped_at_both_ends(void **state)
{
        struct excerpt *e = excerpt_new(NULL);
        struct snippet head, tail;
        char block[10000];
        (void)state;
        excerpt_snippet_init(&head);
        excerpt_snippet_init(&tail);
        memset(block, 'm', sizeof(block));
        excerpt_feed(e, "BEGIN", 5);
        for (int i = 0; i < 1000; i++)
                excerpt_feed(e, block, sizeof(block));
        excerpt_feed(e, "END", 3);
        excerpt_finish(e);
        excerpt_head(e, 2048, &head);
        excerpt_tail(e, 2048, &head, &tail);
        assert_true(str_starts(buf_str(&head.text), "BEGINmmm"));
        assert_non_null(strstr(buf_cstr(&head.text), "a line of 10,000,008 bytes]\n"));
        assert_non_null(strstr(buf_cstr(&tail.text), "mmmEND\n"));
        assert_non_null(strstr(buf_cstr(&tail.text), "line of 10,000,008 bytes]"));
        excerpt_snippet_release(&tail);
        excerpt_snippet_release(&head);
        excerpt_free(e);
}

static void the_error_in_the_middle_is_found_with_its_number(void **state)
{
        struct buf text;
        struct error_snippet s;
        struct excerpt *e = excerpt_new(NULL);
        (void)state;
        buf_init(&text, 0);
        excerpt_error_snippet_init(&s);
        numbered(&text, 1, 19999);
        buf_puts(&text, "src/a.c:7:3: error: 'x' undeclared\n    7 |   x = 1;\n      |   ^\n");
        numbered(&text, 20003, 40000);
        excerpt_feed(e, text.p, text.n);
        excerpt_finish(e);
        excerpt_errors(e, 1024, NULL, NULL, &s);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.lines[0], 20000);
        assert_string_equal(buf_cstr(&s.text), "line 19999\nsrc/a.c:7:3: error: 'x' undeclared\n"
                                               "    7 |   x = 1;\n      |   ^\n");
        excerpt_error_snippet_release(&s);
        excerpt_free(e);
        buf_release(&text);
}

static void first_and_last_failures_are_kept_of_thousands(void **state)
{
        struct buf text;
        struct error_snippet s;
        struct excerpt *e = excerpt_new(NULL);
        (void)state;
        buf_init(&text, 0);
        excerpt_error_snippet_init(&s);
        for (int i = 1; i <= 20000; i++) {
                /* Letters, because failures that differ only in numbers count as the same. */
                buf_printf(&text, "not ok %d - %c%c%c%c\n", i, 'a' + i % 26, 'a' + i / 26 % 26,
                    'a' + i / 676 % 26, 'a' + i / 17576);
        }
        excerpt_feed(e, text.p, text.n);
        excerpt_finish(e);
        excerpt_errors(e, 1024, NULL, NULL, &s);
        assert_int_equal(s.lines[0], 1);
        assert_int_equal(s.lines[s.count - 1], 20000);
        excerpt_error_snippet_release(&s);
        excerpt_free(e);
        buf_release(&text);
}

static void the_same_failure_is_shown_once(void **state)
{
        struct error_snippet s;
        struct excerpt *e = excerpt_new(NULL);
        (void)state;
        excerpt_error_snippet_init(&s);
        for (int i = 0; i < 100; i++) {
                char line[64];
                int n = snprintf(line, sizeof(line), "worker %d: error: out of luck\nfine\n", i);
                excerpt_feed(e, line, (size_t)n);
        }
        excerpt_finish(e);
        excerpt_errors(e, 1024, NULL, NULL, &s);
        assert_int_equal(s.count, 1);
        assert_int_equal(s.lines[0], 1);
        excerpt_error_snippet_release(&s);
        excerpt_free(e);
}

static void a_log_with_a_bad_byte_is_text_and_noise_is_binary(void **state)
{
        struct excerpt *e = excerpt_new(NULL);
        struct excerpt_figures f;
        (void)state;
        for (int i = 0; i < 100; i++)
                excerpt_feed(e, "caf\xE9 noir, one of many lines\n", 29);
        excerpt_finish(e);
        excerpt_figures(e, &f);
        assert_false(f.utf8);
        assert_false(f.binary);
        excerpt_free(e);
        e = excerpt_new(NULL);
        for (int i = 0; i < 100; i++)
                excerpt_feed(e, "\x89PNG\x00\xFF\x00\x01", 8);
        excerpt_finish(e);
        excerpt_figures(e, &f);
        assert_true(f.binary);
        excerpt_free(e);
}

static void nothing_at_all_is_an_excerpt_too(void **state)
{
        struct buf out;
        (void)state;
        buf_init(&out, 0);
        collect(NULL, STR(""), 2048, &out);
        assert_string_equal(buf_cstr(&out), "0 0 0 1 0|0-0 0-0|||");
        collect(NULL, STR("\n"), 2048, &out);
        assert_string_equal(buf_cstr(&out), "1 1 1 1 0|1-1 0-0|\n||");
        buf_release(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_result_does_not_depend_on_the_cuts),
            cmocka_unit_test(figures_are_those_of_the_whole_text),
            cmocka_unit_test(head_and_tail_are_forty_lines_each),
            cmocka_unit_test(head_and_tail_never_show_the_same_line),
            cmocka_unit_test(a_line_of_ten_megabytes_is_clamped_at_both_ends),
            cmocka_unit_test(the_error_in_the_middle_is_found_with_its_number),
            cmocka_unit_test(first_and_last_failures_are_kept_of_thousands),
            cmocka_unit_test(the_same_failure_is_shown_once),
            cmocka_unit_test(a_log_with_a_bad_byte_is_text_and_noise_is_binary),
            cmocka_unit_test(nothing_at_all_is_an_excerpt_too),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
