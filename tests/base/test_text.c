/* Text: UTF-8 is checked exactly at every position of a block, and escape sequences do not reach a
 * terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/seed.h"
#include "base/text.h"

/* Decodes by the definition: a code point in range, in its shortest form. */
static size_t slow_sequence(const unsigned char *p, size_t n)
{
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (n == 0)
                return 0;
        if (p[0] < 0x80)
                return 1;
        size_t len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : p[0] >= 0xC0 ? 2 : 0;
        if (len == 0 || len > n || p[0] >= 0xF8)
                return 0;
        uint32_t cp = p[0] & (0xFFu >> (len + 1));
        for (size_t i = 1; i < len; i++) {
                if ((p[i] & 0xC0) != 0x80)
                        return 0;
                cp = cp << 6 | (p[i] & 0x3Fu);
        }
        if (cp < least[len] || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
                return 0;
        return len;
}

static size_t slow_prefix(const char *p, size_t n)
{
        size_t i = 0;
        while (i < n) {
                size_t k = slow_sequence((const unsigned char *)p + i, n - i);
                if (k == 0)
                        break;
                i += k;
        }
        return i;
}

/* Each pair of bytes, followed by the bytes that may complete it, at each place around a block. */
static void every_sequence_is_judged_as_defined(void **state)
{
        (void)state;
        static const unsigned char thirds[] = {'a', 0x7F, 0x80, 0xBF, 0xC2, 0xFF};
        char text[48];
        for (unsigned a = 0x70; a < 256; a++) {
                for (unsigned b = 0; b < 256; b++) {
                        for (size_t c = 0; c < sizeof thirds; c++) {
                                size_t at = 26 + (a + b + c) % 10;
                                memset(text, 'x', sizeof text);
                                text[at] = (char)a;
                                text[at + 1] = (char)b;
                                text[at + 2] = (char)thirds[c];
                                text[at + 3] = (char)(b & 1 ? 0x80 : 'y');
                                assert_int_equal(text_utf8_prefix(text, sizeof text),
                                    slow_prefix(text, sizeof text));
                        }
                }
        }
}

static void faults_are_found_at_every_alignment(void **state)
{
        (void)state;
        static const char *const pieces[] = {"\x80", "\xbf\xbf", "\xc0\x80", "\xc1\xbf",
            "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
            "\xed\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8\x88\x80\x80\x80", "\xfe",
            "\xff", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xe2", "\xf0\x9f", "\xc3\xa9\xa9",
            "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xee\x80\x80",
            "\xf4\x8f\xbf\xbf"};
        static const char *const fillers[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
                for (size_t f = 0; f < 4; f++) {
                        for (size_t at = 0; at < 140; at++) {
                                char buffer[400];
                                size_t n = 0;
                                size_t flen = strlen(fillers[f]);
                                while (n + flen <= at) {
                                        memcpy(buffer + n, fillers[f], flen);
                                        n += flen;
                                }
                                while (n < at)
                                        buffer[n++] = '.';
                                size_t len = strlen(pieces[i]);
                                memcpy(buffer + n, pieces[i], len);
                                n += len;
                                for (size_t tail = 0; tail <= 70; tail += 7) {
                                        char *text = malloc(n + tail);
                                        assert_non_null(text);
                                        memcpy(text, buffer, n);
                                        memset(text + n, 't', tail);
                                        assert_int_equal(text_utf8_prefix(text, n + tail),
                                            slow_prefix(text, n + tail));
                                        free(text);
                                }
                        }
                }
        }
}

static void random_text(struct seed *s, char *text, size_t n)
{
        static const char *const parts[] = {"a", "bc", "\xc3\xa9", "\xe2\x82\xac",
            "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "a long run of ascii that fills blocks on its own",
            "\xff", "\x80", "\xe2"};
        size_t i = 0;
        while (i < n) {
                uint64_t k = seed_below(s, seed_below(s, 9) ? 7 : 10);
                size_t len = strlen(parts[k]);
                if (len > n - i)
                        len = n - i;
                memcpy(text + i, parts[k], len);
                i += len;
        }
}

static void a_stream_is_judged_like_its_whole(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int i = 0; i < seed_rounds(400000); i++) {
                char text[200];
                size_t n = seed_below(&s, sizeof text);
                random_text(&s, text, n);
                struct text_utf8 u = {0};
                for (size_t at = 0; at < n;) {
                        size_t k = seed_below(&s, seed_below(&s, 3) ? 4 : 60);
                        if (k > n - at)
                                k = n - at;
                        text_utf8_feed(&u, text + at, k);
                        at += k;
                }
                assert_int_equal(text_utf8_finish(&u), slow_prefix(text, n) == n);
                assert_int_equal(text_is_utf8(text, n), slow_prefix(text, n) == n);
        }
}

static void counts_and_boundaries_follow_characters(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int i = 0; i < seed_rounds(100000); i++) {
                char text[120];
                bool start[121] = {false};
                size_t n = seed_below(&s, sizeof text);
                random_text(&s, text, n);
                size_t count = 0;
                for (size_t at = 0; at < n; count++) {
                        uint32_t cp;
                        size_t k = slow_sequence((const unsigned char *)text + at, n - at);
                        start[at] = true;
                        assert_int_equal(text_decode(text + at, n - at, &cp), k ? k : 1);
                        assert_int_equal(text_bytes_of(text, n, count), at);
                        at += k ? k : 1;
                }
                start[n] = true;
                assert_int_equal(text_count(text, n), count);
                assert_int_equal(text_bytes_of(text, n, count), n);
                assert_int_equal(text_bytes_of(text, n, count + 5), n);
                for (size_t at = 0; at <= n; at++) {
                        size_t low = at;
                        size_t top = at;
                        while (!start[low])
                                low--;
                        while (!start[top])
                                top++;
                        assert_int_equal(text_floor(text, n, at), low);
                        assert_int_equal(text_ceil(text, n, at), top);
                }
                assert_int_equal(text_floor(text, n, n + 9), n);
                assert_int_equal(text_ceil(text, n, n + 9), n);
        }
}

static void every_character_survives_a_round_trip(void **state)
{
        (void)state;
        for (uint32_t cp = 0; cp < 0x110200; cp++) {
                char out[4];
                uint32_t back;
                size_t n = text_encode_to(cp, out);
                bool odd = cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF);
                assert_int_equal(text_decode(out, n, &back), n);
                assert_int_equal(back, odd ? 0xFFFD : cp);
        }
        uint32_t cp;
        assert_int_equal(text_decode("", 0, &cp), 0);
}

/* ---- terminals ---- */

struct shown {
        const char *in;
        const char *out;
};

static void check_table(const struct shown *t, size_t n, int mode)
{
        struct buf b;
        buf_init(&b, 0);
        for (size_t i = 0; i < n; i++) {
                size_t len = strlen(t[i].in);
                char *text = malloc(len + 1);
                assert_non_null(text);
                memcpy(text, t[i].in, len);
                char *exact = realloc(text, len ? len : 1);
                assert_non_null(exact);
                buf_clear(&b);
                if (mode == 2)
                        text_strip_ansi(&b, str_span(exact, len));
                else
                        text_for_terminal(&b, str_span(exact, len), mode == 1);
                assert_string_equal(buf_cstr(&b), t[i].out);
                free(exact);
        }
        buf_release(&b);
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void only_colours_reach_a_terminal(void **state)
{
        (void)state;
        static const struct shown t[] = {
            {"plain\ttext\n", "plain\ttext\n"},
            {"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"},
            {"\x1b[31mred\x1b[m", "\x1b[31mred\x1b[m"},
            {"\x1b[1;38;5;8mx\x1b[0m", "\x1b[1;38;5;8mx\x1b[0m"},
            {"\x1b[38;2;8;8;8mx\x1b[0m", "\x1b[38;2;8;8;8mx\x1b[0m"},
            {"\x1b[38:2:8:8:8mx\x1b[0m", "\x1b[38:2:8:8:8mx\x1b[0m"},
            {"\x1b[31mred", "\x1b[31mred\x1b[0m"},
            {"\x1b[8mhidden", "^[[8mhidden"},
            {"\x1b[1;8mhidden", "^[[1;8mhidden"},
            {"\x1b[38:5:1;5;8mhidden", "^[[38:5:1;5;8mhidden"},
            {"\x1b[38;5;1;8mhidden", "^[[38;5;1;8mhidden"},
            {"\x1b[08mhidden", "^[[08mhidden"},
            {"\x1b[?25l", "^[[?25l"},
            {"\x1b[>4;2m", "^[[>4;2m"},
            {"\x1b[2J\x1b[H", "^[[2J^[[H"},
            {"\x1b[6n", "^[[6n"},
            {"\x1b[31", "^[[31"},
            {"\x1b[", "^[["},
            {"\x1b", "^["},
            {"\x1b]52;c;aGk=\x07", "^[]52;c;aGk=^G"},
            {"\x1b]0;title\x1b\\", "^[]0;title^[\\"},
            {"\x1bP1$r\x1b\\", "^[P1$r^[\\"},
            {"\x1b_Gx\x1b\\", "^[_Gx^[\\"},
            {"\x1b"
             "c",
                "^[c"},
            {"a\rb", "a^Mb"},
            {"a\r\nb", "a\r\nb"},
            {"a\r\r\nb", "a^M\r\nb"},
            {"a\r", "a^M"},
            {"\x08\x7f\x07\x0c\x0b", "^H^?^G^L^K"},
            {"\xc2\x9b"
             "31m",
                "<U+009B>31m"},
            {"\xc2\x85\xc2\x80\xc2\x9f\xc2\xa0", "<U+0085><U+0080><U+009F>\xc2\xa0"},
            {"\x9b"
             "31m",
                "\xef\xbf\xbd"
                "31m"},
            {"caf\xe9", "caf\xef\xbf\xbd"},
            {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
            {"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae",
                "<U+202A><U+202B><U+202C><U+202D><U+202E>"},
            {"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9",
                "<U+2066><U+2067><U+2068><U+2069>"},
            {"\xe2\x80\xa9\xe2\x81\xaa\xe2\x80\xaf", "<U+2029><U+206A>\xe2\x80\xaf"},
            {"\xf3\xa0\x81\x81\xc2\xad", "<U+E0041><U+00AD>"},
            /* a joiner and a selector in a picture */
            {"\xe2\x80\x8d\xef\xb8\x8f", "\xe2\x80\x8d\xef\xb8\x8f"},
        };
        check_table(t, COUNT(t), 1);
        static const struct shown plain[] = {
            {"\x1b[31mred\x1b[0m", "^[[31mred^[[0m"},
            {"", ""},
        };
        check_table(plain, COUNT(plain), 0);
}

static void sequences_are_stripped_whole(void **state)
{
        (void)state;
        static const struct shown t[] = {
            {"plain", "plain"},
            {"", ""},
            {"\x1b[31mred\x1b[0m.", "red."},
            {"a\x1b[?25lb\x1b[2 qc\x1b[>4;2md", "abcd"},
            {"a\x1b]52;c;aGk=\x07"
             "b",
                "ab"},
            {"a\x1b]0;t\xc3\xa9\x1b\\b", "ab"},
            {"a\x1b]0;t\xc2\x9c"
             "b",
                "ab"},
            {"a\x1bPq#0\x1b\\b\x1b_G\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e", "abcde"},
            {"a\x1b(Bb\x1b#8c\x1b"
             "cd\x1b=e\x1b%Gf",
                "abcdef"},
            {"a\xc2\x9b"
             "31mb\xc2\x9d"
             "0;t\x07"
             "c\xc2\x90q\xc2\x9c"
             "d\xc2\x85"
             "e",
                "abcde"},
            {"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"},
            {"a\x1b", "a"},
            {"a\x1b[", "a"},
            {"a\x1b[31", "a"},
            {"a\x1b[31;", "a"},
            {"a\x1b]0;title", "a"},
            {"a\x1b]0;title\x1b", "a"},
            {"a\x1bP", "a"},
            {"a\x1b(", "a"},
            {"a\xc2\x9b", "a"},
            {"a\x1b]open\nnext line stays", "a\nnext line stays"},
            {"a\x1b]open\x1b[31mb", "ab"},
            {"a\x1b]open\x18"
             "b",
                "ab"},
            {"a\x1b\x1b[31mb", "ab"},
            {"a\x1b\nb", "a\nb"},
            {"a\x1b\xc3\xa9", "a\xc3\xa9"},
            {"a\x1b[3\nb", "a\nb"},
            {"\xc2\xa0\xc2", "\xc2\xa0\xc2"},
            {"\xc2\x1b[m\x9b\x1b[m\x9b"
             "31m",
                "\xc2"
                "31m"},
        };
        check_table(t, COUNT(t), 2);
}

/* Whatever the input, the output is UTF-8 and has no control characters except LF, TAB, CR LF and
 * SGR. */
static void nothing_else_gets_through(void **state)
{
        (void)state;
        static const char *const parts[] = {"\x1b", "[", "]", "3", ";", "m", "8", "P", "\\", "\x07",
            "\r", "\n", "a", "\xc2\x9b", "\xe2\x80\xae", "\xff", "\xc2", "38:5:", "\x7f", "?",
            "\xc2\x9d", "_"};
        struct seed s = seed_start();
        struct buf in;
        struct buf out;
        buf_init(&in, 0);
        buf_init(&out, 0);
        for (int i = 0; i < seed_rounds(400000); i++) {
                buf_clear(&in);
                buf_clear(&out);
                for (uint64_t k = seed_below(&s, 20); k > 0; k--)
                        buf_puts(&in, parts[seed_below(&s, COUNT(parts))]);
                text_for_terminal(&out, buf_str(&in), true);
                assert_true(text_is_utf8(out.p, out.n));
                for (size_t k = 0; k < out.n; k++) {
                        unsigned char c = (unsigned char)out.p[k];
                        if (c == 0x1B) {
                                assert_true(k + 2 < out.n && out.p[k + 1] == '[');
                                k += 2;
                                while (k < out.n && strchr("0123456789:;", out.p[k]))
                                        k++;
                                assert_true(k < out.n && out.p[k] == 'm');
                                continue;
                        }
                        if (c == '\r')
                                assert_true(k + 1 < out.n && out.p[k + 1] == '\n');
                        assert_true(c >= 0x20 || c == '\n' || c == '\t' || c == '\r');
                        assert_true(c != 0x7F);
                        if (c == 0xC2)
                                assert_true((unsigned char)out.p[k + 1] >= 0xA0);
                        if (c == 0xE2)
                                assert_memory_not_equal(out.p + k, "\xe2\x80\xae", 3);
                }
                buf_clear(&out);
                text_strip_ansi(&out, buf_str(&in));
                assert_true(out.n <= in.n);
                assert_true(out.n == 0 || memchr(out.p, 0x1B, out.n) == NULL);
        }
        buf_release(&in);
        buf_release(&out);
}

/* ---- numbers for people ---- */

static void sizes_and_groups_read_well(void **state)
{
        (void)state;
        static const struct {
                uint64_t n;
                const char *size;
                const char *grouped;
        } t[] = {
            {0, "0 B", "0"},
            {999, "999 B", "999"},
            {1000, "1.0 KB", "1,000"},
            {4096, "4.1 KB", "4,096"},
            {4150, "4.2 KB", "4,150"},
            {999949, "999.9 KB", "999,949"},
            {999950, "1.0 MB", "999,950"},
            {1843220, "1.8 MB", "1,843,220"},
            {1000000000, "1.0 GB", "1,000,000,000"},
            {UINT64_MAX, "18.4 EB", "18,446,744,073,709,551,615"},
        };
        struct buf b;
        buf_init(&b, 0);
        for (size_t i = 0; i < COUNT(t); i++) {
                buf_clear(&b);
                text_put_size(&b, t[i].n);
                assert_string_equal(buf_cstr(&b), t[i].size);
                buf_clear(&b);
                text_put_grouped(&b, t[i].n);
                assert_string_equal(buf_cstr(&b), t[i].grouped);
        }
        buf_release(&b);
}

static void characters_of_long_texts_are_counted(void **state)
{
        struct seed s = seed_start();
        static char text[20000];
        (void)state;
        for (int i = 0; i < seed_rounds(1000); i++) {
                size_t n = seed_below(&s, sizeof text);
                size_t count = 0;
                int all = (int)seed_below(&s, 3); /* only continuation bytes, none, or both */
                for (size_t k = 0; k < n; k++) {
                        text[k] = (char)(all == 0   ? 0x80 + seed_below(&s, 64)
                                         : all == 1 ? seed_below(&s, 128)
                                                    : seed_next(&s));
                        count += ((unsigned char)text[k] & 0xC0) != 0x80;
                }
                assert_int_equal(text_count_leads(text, n), count);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_sequence_is_judged_as_defined),
            cmocka_unit_test(characters_of_long_texts_are_counted),
            cmocka_unit_test(faults_are_found_at_every_alignment),
            cmocka_unit_test(a_stream_is_judged_like_its_whole),
            cmocka_unit_test(counts_and_boundaries_follow_characters),
            cmocka_unit_test(every_character_survives_a_round_trip),
            cmocka_unit_test(only_colours_reach_a_terminal),
            cmocka_unit_test(sequences_are_stripped_whole),
            cmocka_unit_test(nothing_else_gets_through),
            cmocka_unit_test(sizes_and_groups_read_well),
        };
        return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
