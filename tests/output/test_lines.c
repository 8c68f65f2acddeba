/* Lines from the end and by number, compared with a simple search. */
#include "output/play.h"

#include "base/error.h"
#include "output/lines.h"

struct file {
        struct str text;
        uint64_t read; /* bytes that were asked for */
        int fail;
};

static int read_file(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        struct file *f = ctx;
        assert_true(at + n <= f->text.n);
        if (f->fail)
                return error_set(err, f->fail, "no");
        memcpy(p, f->text.p + at, n);
        f->read += n;
        return 0;
}

static void random_lines(struct seed *s, struct buf *b, size_t n)
{
        uint64_t feeds = 1 + seed_below(s, 100);
        buf_clear(b);
        while (b->n < n) {
                if (seed_below(s, 100) < feeds)
                        buf_putc(b, '\n');
                else
                        buf_puts(b, seed_below(s, 2) ? "x" : "\xE2\x82\xAC");
        }
}

static size_t line_start(struct str t, uint64_t line, bool *found)
{
        size_t at = 0;
        for (uint64_t k = 1; k < line && at < t.n; k++) {
                const char *nl = memchr(t.p + at, '\n', t.n - at);
                at = nl ? (size_t)(nl - t.p) + 1 : t.n;
        }
        *found = at < t.n;
        return *found ? at : t.n;
}

static uint64_t naive_count(struct str t)
{
        uint64_t n = 0;
        for (size_t i = 0; i < t.n; i++)
                n += t.p[i] == '\n';
        return n;
}

static uint64_t line_total(struct str t)
{
        return naive_count(t) + (t.n && t.p[t.n - 1] != '\n');
}

static void the_tail_is_the_last_lines(void **state)
{
        struct seed s = seed_start();
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (int i = 0; i < seed_rounds(4000); i++) {
                struct lines_span span;
                random_lines(&s, &b, (size_t)seed_below(&s, i % 50 ? 3000 : 400000));
                struct file f = {.text = buf_str(&b)};
                uint64_t want = 1 + seed_below(&s, 60);
                uint64_t total = line_total(f.text);
                bool found;
                assert_int_equal(lines_count(b.p, b.n), naive_count(f.text));
                assert_int_equal(lines_tail(&(struct lines_file){read_file, &f, b.n}, want,
                                     UINT64_MAX, &span, NULL),
                    0);
                assert_int_equal(span.lines, want < total ? want : total);
                assert_int_equal(
                    span.offset, line_start(f.text, total > want ? total - want + 1 : 1, &found));
                assert_int_equal(span.offset + span.size, b.n);
                assert_false(span.cut);
        }
        buf_release(&b);
}

static void the_tail_keeps_to_its_bytes_and_to_characters(void **state)
{
        struct seed s = seed_start();
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        for (int i = 0; i < seed_rounds(4000); i++) {
                struct lines_span span;
                random_lines(&s, &b, 1 + (size_t)seed_below(&s, 3000));
                struct file f = {.text = buf_str(&b)};
                uint64_t most = 1 + seed_below(&s, 500);
                assert_int_equal(lines_tail(&(struct lines_file){read_file, &f, b.n}, 1000000, most,
                                     &span, NULL),
                    0);
                assert_true(span.size <= most);
                assert_true(text_is_utf8(b.p + span.offset, span.size));
                struct str rest = {b.p + span.offset, span.size};
                assert_int_equal(span.lines, line_total(rest));
                if (!span.cut)
                        assert_true(span.offset == 0 || b.p[span.offset - 1] == '\n');
                else
                        assert_true(span.lines <= 1 && span.size + 3 >= most);
        }
        buf_release(&b);
}

static void the_tail_does_not_read_the_rest(void **state)
{
        struct buf b;
        struct lines_span span;
        (void)state;
        buf_init(&b, 0);
        while (b.n < 10000000)
                buf_puts(&b, "a line of the log\n");
        struct file f = {.text = buf_str(&b)};
        assert_int_equal(
            lines_tail(&(struct lines_file){read_file, &f, b.n}, 200, 12288, &span, NULL), 0);
        assert_int_equal(span.lines, 200);
        assert_true(f.read < 200000);
        f.fail = STENO_EIO;
        assert_int_equal(
            lines_tail(&(struct lines_file){read_file, &f, b.n}, 200, 12288, &span, NULL),
            STENO_EIO);
        buf_release(&b);
}

static void index_of(struct seed *s, struct str text, bool finish, struct buf *index)
{
        struct lines_writer w;
        buf_clear(index);
        lines_writer_init(&w, index);
        for (size_t at = 0; at < text.n;) {
                size_t step = 1 + (size_t)seed_below(s, 30000);
                step = step < text.n - at ? step : text.n - at;
                lines_writer_feed(&w, text.p + at, step);
                at += step;
        }
        if (finish)
                lines_writer_finish(&w);
}

static void the_index_finds_any_line(void **state)
{
        struct seed s = seed_start();
        struct buf b, index;
        (void)state;
        buf_init(&b, 0);
        buf_init(&index, 0);
        for (int i = 0; i < seed_rounds(400); i++) {
                struct lines_index x;
                bool finish = seed_below(&s, 2);
                random_lines(&s, &b, (size_t)seed_below(&s, 300000));
                struct file f = {.text = buf_str(&b)};
                uint64_t total = line_total(f.text);
                index_of(&s, f.text, finish, &index);
                assert_true(lines_index_open(&x, index.p, index.n, b.n));
                assert_int_equal(x.has_totals, finish);
                if (finish)
                        assert_int_equal(x.total_lines, total);
                for (int k = 0; k < 20; k++) {
                        uint64_t line = 1 + seed_below(&s, total + 3);
                        uint64_t at = 0;
                        bool found = false, want = false;
                        size_t expected = line_start(f.text, line, &want);
                        bool with = seed_below(&s, 4);
                        f.read = 0;
                        assert_int_equal(lines_seek(&(struct lines_file){read_file, &f, b.n},
                                             with ? &x : NULL, line, &at, &found, NULL),
                            0);
                        assert_int_equal(found, want);
                        assert_int_equal(at, expected);
                }
        }
        buf_release(&index);
        buf_release(&b);
}

static void a_damaged_index_is_refused_and_a_cut_one_still_serves(void **state)
{
        struct seed s = {1};
        struct buf b, index;
        struct lines_index x;
        (void)state;
        buf_init(&b, 0);
        buf_init(&index, 0);
        while (b.n < 200000)
                buf_puts(&b, "1234567\n");
        index_of(&s, buf_str(&b), true, &index);
        assert_true(lines_index_open(&x, index.p, index.n, b.n));
        size_t count = x.count;
        assert_int_equal(count, 24);
        assert_true(lines_index_open(&x, index.p, index.n - 30, b.n));
        assert_false(x.has_totals);
        assert_true(lines_index_open(&x, index.p, index.n, b.n + 1));
        assert_false(x.has_totals);
        assert_false(lines_index_open(&x, index.p, index.n, b.n / 2));
        assert_false(lines_index_open(&x, index.p, 10, b.n));
        uint64_t at = 0;
        bool found = false;
        struct file f = {.text = buf_str(&b)};
        index.p[40] ^= 0x7F;
        assert_true(lines_index_open(&x, index.p, index.n, b.n));
        assert_int_equal(
            lines_seek(&(struct lines_file){read_file, &f, b.n}, &x, 4097, &at, &found, NULL), 0);
        assert_int_equal(at, 4096 * 8);
        index.p[42] ^= 0x7F;
        assert_false(lines_index_open(&x, index.p, index.n, b.n));
        buf_release(&index);
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_tail_is_the_last_lines),
            cmocka_unit_test(the_tail_keeps_to_its_bytes_and_to_characters),
            cmocka_unit_test(the_tail_does_not_read_the_rest),
            cmocka_unit_test(the_index_finds_any_line),
            cmocka_unit_test(a_damaged_index_is_refused_and_a_cut_one_still_serves),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
