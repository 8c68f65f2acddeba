/* Where a text may be cut (F13), and lines made fit for a frame. */
#include "output/play.h"

#include "output/clean.h"
#include "output/cut.h"

/* A text that may be cut only at its ends. */
static void is_one_piece(const char *piece)
{
        struct buf b;
        buf_init(&b, 0);
        buf_puts(&b, "ab");
        buf_puts(&b, piece);
        buf_puts(&b, "cd");
        size_t n = strlen(piece);
        for (size_t k = 1; k < n; k++) {
                if (cut_before(b.p, b.n, 2 + k) != 2 || cut_after(b.p, b.n, 2 + k) != 2 + n)
                        fail_msg("cut inside %s at %zu: %zu, %zu", piece, k,
                            cut_before(b.p, b.n, 2 + k), cut_after(b.p, b.n, 2 + k));
        }
        assert_int_equal(cut_before(b.p, b.n, 2), 2);
        assert_int_equal(cut_after(b.p, b.n, 2 + n), 2 + n);
        buf_release(&b);
}

static void a_cut_never_splits_a_visible_character(void **state)
{
        (void)state;
        is_one_piece("\xC3\xA9");
        is_one_piece("\xF0\x9F\x98\x80");
        is_one_piece("e\xCC\x81");
        is_one_piece("\xE2\x9D\xA4\xEF\xB8\x8F");
        is_one_piece("\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7");
        is_one_piece("\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD");
        is_one_piece("\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA");
        is_one_piece("\\n");
        is_one_piece("\\u00e9");
        is_one_piece("\\ud83d\\ude00");
        is_one_piece("\x1B[1;31m");
        is_one_piece("\x1B]8;;http://x\x07");
}

static void separate_characters_may_be_split(void **state)
{
        (void)state;
        const char *flags = "\xF0\x9F\x87\xA9\xF0\x9F\x87\xAA\xF0\x9F\x87\xAB\xF0\x9F\x87\xB7";
        assert_int_equal(cut_before(flags, 16, 8), 8);
        assert_int_equal(cut_before("\\\\n", 3, 2), 2);
        assert_int_equal(cut_before("\\ud83d\\u0041", 12, 6), 6);
        assert_int_equal(cut_before("abc", 3, 9), 3);
        assert_int_equal(cut_after("abc", 3, 0), 0);
}

static void a_chain_without_end_is_cut_after_all(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "e");
        for (int i = 0; i < 5000; i++)
                buf_puts(&b, "\xCC\x81");
        size_t k = cut_before(b.p, b.n, 5000);
        assert_true(k > 4000 && k <= 5000);
        k = cut_after(b.p, b.n, 5000);
        assert_true(k >= 5000 && k < 6000);
        buf_release(&b);
}

/* An e with very many accents, each of two bytes. */
static void put_chain(struct buf *b, int accents)
{
        buf_clear(b);
        buf_puts(b, "ab e");
        for (int i = 0; i < accents; i++)
                buf_puts(b, "\xCC\x81");
        buf_puts(b, " cd");
}

static void a_chain_is_kept_whole_up_to_256_bytes_and_no_further(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        put_chain(&b, 120);
        assert_int_equal(cut_before(b.p, b.n, 4 + 238), 3);
        assert_int_equal(cut_after(b.p, b.n, 4 + 2), 4 + 240);
        put_chain(&b, 1000);
        assert_int_equal(cut_before(b.p, b.n, 4 + 1200), 4 + 1200);
        assert_int_equal(cut_after(b.p, b.n, 4 + 200), 4 + 200);
        buf_release(&b);
}

static void cleans_to(const char *raw, const char *expected)
{
        struct buf b;
        buf_init(&b, 0);
        clean_put(&b, str_of(raw));
        assert_string_equal(buf_cstr(&b), expected);
        buf_release(&b);
}

static void a_clean_line_is_one_line_of_plain_text(void **state)
{
        (void)state;
        cleans_to("plain\tline", "plain\tline");
        cleans_to("\x1B[1;31mred\x1B[0m", "red");
        cleans_to("windows\r", "windows");
        cleans_to("10%\r20%\rdone", "done");
        cleans_to("a\x01z\x7F", "a\\u0001z\\u007f");
        cleans_to("a\xE2\x80\xA8z", "a\\u2028z");
        cleans_to("a\xE2\x80\xAEz", "a\\u202ez");
        cleans_to("a\xFFz\xC3", "a\\xFFz\\xC3");
        cleans_to("", "");
}

static void lines_of_the_frame_are_recognised_in_disguise(void **state)
{
        static const char *const framed[] = {"--- head (lines 1-40) ---", "--- tail (line 1) ---",
            "---errors", "  --- outline ---", "\\--- head", "\\\\--- head", "[INCOMPLETE: x]",
            "[incomplete", "More: x", "  more: y", "tool: z", "[Full output: x]",
            "\xE2\x80\x8B--- head", "\xE2\x80\x94\xE2\x80\x94 tail", "\xEF\xBB\xBFMore: x",
            "\xC2\xA0--- errors", "-- end", "\\ More: x"};
        static const char *const free_lines[] = {"--- a/src/main.c", "+++ b/src/main.c", "moreover",
            "tools: x", "-- comment", "heading", "- head", "a --- head (lines 1-2) ---", ""};
        (void)state;
        for (size_t i = 0; i < ITEMS(framed); i++) {
                if (!clean_looks_framed(str_of(framed[i])))
                        fail_msg("not recognised: %s", framed[i]);
        }
        for (size_t i = 0; i < ITEMS(free_lines); i++) {
                if (clean_looks_framed(str_of(free_lines[i])))
                        fail_msg("taken for the frame: %s", free_lines[i]);
        }
}

static void names_from_outside_are_quoted_unless_plain(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        clean_put_name(&b, STR("run_tests-2.x"), 96);
        clean_put_name(&b, STR("a   exit: 0\n"), 96);
        clean_put_name(&b, STR("abcdefgh"), 4);
        assert_string_equal(buf_cstr(&b), "run_tests-2.x\"a   exit: 0\\\\u000a\"abcd...");
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_cut_never_splits_a_visible_character),
            cmocka_unit_test(separate_characters_may_be_split),
            cmocka_unit_test(a_chain_without_end_is_cut_after_all),
            cmocka_unit_test(a_chain_is_kept_whole_up_to_256_bytes_and_no_further),
            cmocka_unit_test(a_clean_line_is_one_line_of_plain_text),
            cmocka_unit_test(lines_of_the_frame_are_recognised_in_disguise),
            cmocka_unit_test(names_from_outside_are_quoted_unless_plain),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
