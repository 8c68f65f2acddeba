/* Scanning: the wide and the narrow loops give the same results as reading byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/seed.h"
#include "base/scan.h"

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static enum scan_stop slow_body(const char **pp, const char *end, bool *escaped)
{
        const char *p = *pp;
        for (; p < end; p++) {
                *pp = p;
                if (*p == '"')
                        return SCAN_QUOTE;
                if ((unsigned char)*p < 0x20)
                        return SCAN_CONTROL;
                if (*p != '\\')
                        continue;
                *escaped = true;
                if (++p == end)
                        return SCAN_END;
                if (!*p || !strchr("\"\\/bfnrtu", *p))
                        return SCAN_ESCAPE;
                if (*p != 'u')
                        continue;
                for (int i = 0; i < 4; i++) {
                        if (++p == end)
                                return SCAN_END;
                        if (!is_hex(*p))
                                return SCAN_ESCAPE;
                }
        }
        *pp = end;
        return SCAN_END;
}

static void check_body(const char *text, size_t n)
{
        const char *want = text;
        const char *a = text;
        const char *b = text;
        bool flags[3] = {false, false, false};
        enum scan_stop stop = slow_body(&want, text + n, &flags[0]);
        assert_int_equal(scan_string_body(&a, text + n, &flags[1]), stop);
        assert_int_equal(scan_string_body_baseline(&b, text + n, &flags[2]), stop);
        assert_ptr_equal(a, want);
        assert_ptr_equal(b, want);
        assert_int_equal(flags[1], flags[0]);
        assert_int_equal(flags[2], flags[0]);
}

static const char *slow_unicode(const char *p, const char *end)
{
        while (p < end && !(p[0] == '\\' && end - p > 1 && p[1] == 'u'))
                p++;
        return p;
}

/* `text` has exactly n bytes, so that a sanitizer sees a read or a write outside of it. */
static void check_copies(const char *text, size_t n)
{
        const char *end = text + n, *slash = n ? memchr(text, '\\', n) : NULL;
        const char *unicode = slow_unicode(text, end);
        assert_ptr_equal(scan_unicode_escape(text, end), unicode);
        assert_ptr_equal(scan_unicode_escape_baseline(text, end), unicode);
        char *room = malloc(n + 1), *at = room;
        assert_non_null(room);
        room[n] = '#';
        slash = slash ? slash : end;
        assert_ptr_equal(scan_copy_plain(text, end, &at), slash);
        assert_int_equal(at - room, slash - text);
        assert_memory_equal(room, text, (size_t)(slash - text));
        assert_int_equal(room[n], '#');
        if (n >= SCAN_STEP) {
                size_t k = scan_copy_step(text, room);
                assert_ptr_equal(text + k, scan_string(text, text + SCAN_STEP));
                assert_memory_equal(room, text, k);
        }
        free(room);
}

static void every_byte_stops_where_it_should(void **state)
{
        (void)state;
        for (size_t n = 1; n <= 80; n++) {
                char *text = malloc(n);
                assert_non_null(text);
                for (size_t at = 0; at < n; at++) {
                        for (int c = 0; c < 256; c++) {
                                memset(text, c & 1 ? 'a' : '\x80', n);
                                text[at] = (char)c;
                                check_body(text, n);
                        }
                }
                free(text);
        }
}

static void random_strings_are_walked_alike(void **state)
{
        (void)state;
        static const char *const parts[] = {"\\n", "\\\"", "\\\\", "\\u00e9", "\\ud83d\\ude00", "a",
            "bcdef", "a run of plain text that is longer than one block", "\xc3\xa9", "\"", "\x1f",
            "\\x", "\\u12g4", "\\u123"};
        struct seed s = seed_start();
        for (int i = 0; i < seed_rounds(1000000); i++) {
                char text[160];
                size_t n = 0;
                size_t want = seed_below(&s, sizeof text);
                while (n < want) {
                        uint64_t k = seed_below(&s, seed_below(&s, 12) ? 9 : 14);
                        size_t len = strlen(parts[k]);
                        len = len < want - n ? len : want - n;
                        memcpy(text + n, parts[k], len);
                        n += len;
                }
                char *exact = malloc(n ? n : 1);
                assert_non_null(exact);
                memcpy(exact, text, n);
                check_body(exact, n);
                check_copies(exact, n);
                assert_int_equal(scan_utf8(exact, n), scan_utf8_baseline(exact, n));
                free(exact);
        }
}

static void random_bytes_have_one_valid_prefix(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int i = 0; i < seed_rounds(1000000); i++) {
                char text[200];
                size_t n = seed_below(&s, sizeof text);
                /* Few different values, so that sequences form by chance. */
                for (size_t k = 0; k < n; k++)
                        text[k] = "\xe2\x82\xac\xc3\xa9\xf0\x9f\x98\x80\xed\xa0"
                                  "aaaaaa"[seed_below(&s, seed_below(&s, 5) ? 4 : 17)];
                for (size_t k = seed_below(&s, n + 1); k + 3 <= n; k += 3)
                        memcpy(text + k, "\xe2\x82\xac", 3);
                assert_int_equal(scan_utf8(text, n), scan_utf8_baseline(text, n));
        }
}

static void one_byte_beyond_ascii_is_seen_wherever_it_is(void **state)
{
        (void)state;
        char *text = malloc(400);
        assert_non_null(text);
        for (size_t n = 0; n <= 400; n++) {
                char *p = text + 400 - n; /* up to the end of the text */
                memset(text, 0x80, 400 - n);
                memset(p, 0x7F, n);
                assert_true(scan_ascii(p, n) && scan_ascii_baseline(p, n));
                for (size_t at = 0; at < n; at++) {
                        p[at] = (char)0x80;
                        assert_false(scan_ascii(p, n) || scan_ascii_baseline(p, n));
                        p[at] = 0;
                }
        }
        free(text);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_byte_stops_where_it_should),
            cmocka_unit_test(random_strings_are_walked_alike),
            cmocka_unit_test(one_byte_beyond_ascii_is_seen_wherever_it_is),
            cmocka_unit_test(random_bytes_have_one_valid_prefix),
        };
        return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
