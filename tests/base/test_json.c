/* JSON: what is accepted, what is refused and where, and what can be read from a tape. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/limits.h"
#include "json_cases.h"
#include "json_random.h"

/* A copy that ends where its allocation ends, so that a sanitizer sees a read beyond it. */
static char *exact(const char *p, size_t n)
{
        char *copy = malloc(n ? n : 1);
        assert_non_null(copy);
        if (n)
                memcpy(copy, p, n);
        return copy;
}

/* Checks that all three ways of walking agree on `text`, and returns what they say. */
static bool agree(const char *p, size_t n)
{
        char *text = exact(p, n);
        struct json j;
        struct json_fault a;
        struct json_fault b;
        struct json_fault c;
        struct steno_error err;
        size_t start;
        json_init(&j);
        int rc = json_parse(&j, text, n, &a, &err);
        bool valid = json_valid(text, n, &b);
        assert_int_equal(valid, rc == 0);
        ptrdiff_t end = json_scan_value(text, n, true, &start, &c);
        if (valid) {
                assert_null(a.what);
                assert_null(b.what);
                assert_true(end > 0);
                assert_ptr_equal(json_raw(&j, 0).p, text + start);
                assert_int_equal(json_raw(&j, 0).n, (size_t)end - start);
        } else {
                char want[240];
                assert_non_null(a.what);
                assert_true(a.offset <= n);
                assert_int_equal(a.offset, b.offset);
                assert_string_equal(a.what, b.what);
                snprintf(want, sizeof want, "byte %zu: %s", a.offset, a.what);
                assert_string_equal(err.msg, want);
                assert_int_equal(j.count, 0);
                assert_int_equal(json_type(&j, 0), JSON_NOTHING);
        }
        if (end < 0)
                assert_false(valid);
        json_release(&j);
        free(text);
        return valid;
}

static void accepts_and_refuses_the_table(void **state)
{
        (void)state;
        assert_true(JSON_CASE_COUNT >= 200);
        for (size_t i = 0; i < JSON_CASE_COUNT; i++) {
                const struct json_case *c = &json_cases[i];
                if (agree(c->text, c->n) != c->valid)
                        fail_msg("%s", c->name);
        }
}

/* The same cases inside of an array, at each position relative to a SIMD block. */
static void position_in_a_block_changes_nothing(void **state)
{
        (void)state;
        struct buf b;
        buf_init(&b, 0);
        for (size_t i = 0; i < JSON_CASE_COUNT; i++) {
                const struct json_case *c = &json_cases[i];
                /* These become right or wrong only with the text around them. */
                bool wrapped_differs = memchr(c->text, ',', c->n) || memchr(c->text, ']', c->n) ||
                                       c->n == strspn(c->text, " \n");
                if (!c->valid && wrapped_differs)
                        continue;
                for (size_t pad = 0; pad < 70; pad++) {
                        buf_clear(&b);
                        buf_puts(&b, "[\"");
                        for (size_t k = 0; k < pad; k++)
                                buf_putc(&b, 'p');
                        buf_puts(&b, "\",");
                        buf_put(&b, c->text, c->n);
                        buf_puts(&b, ",\"tail tail tail tail tail tail tail tail\"]");
                        if (json_valid(b.p, b.n, NULL) != c->valid)
                                fail_msg("%s behind %zu bytes", c->name, pad);
                }
        }
        buf_release(&b);
}

static void says_where_a_text_goes_wrong(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                const char *msg;
        } cases[] = {
            {"", "byte 0: expected a value"},
            {"  ", "byte 2: expected a value"},
            {"{\"a\":1, \"bcde\": }", "byte 16: expected a value"},
            {"[1,2,]", "byte 5: expected a value"},
            {"{\"a\" 1}", "byte 5: expected a colon"},
            {"{\"a\":1,}", "byte 7: expected a key in quotes"},
            {"[1 2]", "byte 3: expected a comma or ]"},
            {"{\"a\":1 2}", "byte 7: expected a comma or }"},
            {"[1]]", "byte 3: bytes after the value"},
            {"[-x]", "byte 2: expected a digit"},
            {"[01]", "byte 2: a number with a leading zero"},
            {"\"ab\\q\"", "byte 3: an escape that does not exist"},
            {"\"ab\\u12x4\"", "byte 3: an escape that does not exist"},
            {"\"ab\n\"", "byte 3: a control character inside a string"},
            {"\"ab", "byte 3: the text ends inside a string"},
            {"[1", "byte 2: the text ends inside a value"},
            {"[\"\xff\", x]", "byte 2: not UTF-8"},
            {"[\"a\" x \xff]", "byte 5: expected a comma or ]"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct json j;
                struct steno_error err;
                json_init(&j);
                assert_int_equal(
                    json_parse(&j, cases[i].text, strlen(cases[i].text), NULL, &err), STENO_EPROTO);
                assert_string_equal(err.msg, cases[i].msg);
                json_release(&j);
        }
}

static void every_prefix_of_a_document_is_refused(void **state)
{
        (void)state;
        static const char *const documents[] = {
            "{\"id\":\"m\",\"n\":[1,-2.5e+10,true,false,null],\"t\":\"a\\n\\u00e9\xe2\x82\xac\"}",
            "[[[[{\"a\":{\"b\":[\"\\ud83d\\ude00\"]}}]]]]",
            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\\\\\\"\xf0\x9f\x98\x80\"",
            "false",
        };
        for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
                size_t n = strlen(documents[i]);
                assert_true(agree(documents[i], n));
                for (size_t k = 0; k < n; k++)
                        assert_false(agree(documents[i], k));
        }
}

/* Fills `text` with `times` times `unit`. */
static size_t repeat(char *text, const char *unit, size_t times)
{
        size_t len = strlen(unit);
        for (size_t i = 0; i < times; i++)
                memcpy(text + i * len, unit, len);
        return len * times;
}

static void *walk_deep_texts(void *unused)
{
        (void)unused;
        static const char *const units[] = {"[", "{\"\":", "[{\"a\":"};
        /* The outermost array is not counted. */
        static const size_t faults[] = {513, 4 * 512, 6 * 256 + 1};
        static char text[60001];
        struct json j;
        struct json_fault f;
        struct steno_error err;
        size_t start;
        json_init(&j);
        for (size_t i = 0; i < 3; i++) {
                size_t n = repeat(text, units[i], 10000);
                assert_int_equal(json_parse(&j, text, n, &f, &err), STENO_ELIMIT);
                assert_int_equal(f.offset, faults[i]);
                assert_non_null(strstr(err.msg, "512"));
                assert_false(json_valid(text, n, &f));
                assert_int_equal(f.offset, faults[i]);
                assert_int_equal(json_scan_value(text, n, false, &start, &f), -1);
        }
        for (size_t depth = 511; depth <= 514; depth++) {
                repeat(text, "[", depth);
                repeat(text + depth, "]", depth);
                int rc = json_parse(&j, text, 2 * depth, NULL, NULL);
                assert_int_equal(rc, depth > 513 ? STENO_ELIMIT : 0);
                assert_int_equal(j.count, depth > 513 ? 0 : depth);
                assert_int_equal(json_valid(text, 2 * depth, NULL), depth <= 513);
                size_t n = repeat(text, "{\"\":", depth);
                text[n++] = '0';
                n += repeat(text + n, "}", depth);
                assert_int_equal(json_valid(text, n, NULL), depth <= 512);
        }
        json_release(&j);
        return NULL;
}

/* 10,000 stack frames of any size do not fit into the stack of this thread. */
static void depth_is_limited_without_stack(void **state)
{
        (void)state;
        pthread_t t;
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        assert_int_equal(pthread_attr_setstacksize(&attr, 128 * 1024), 0);
        assert_int_equal(pthread_create(&t, &attr, walk_deep_texts, NULL), 0);
        pthread_join(t, NULL);
        pthread_attr_destroy(&attr);
}

static void size_is_limited_before_a_byte_is_read(void **state)
{
        (void)state;
        struct json j;
        struct json_fault f;
        json_init(&j);
        assert_int_equal(json_parse(&j, "1", JSON_SIZE_MAX + 1, &f, NULL), STENO_ELIMIT);
        assert_int_equal(f.offset, 0);
        assert_false(json_valid("1", JSON_SIZE_MAX + 1, &f));
        assert_null(j.nodes);
        json_release(&j);
}

static void mutations_are_judged_alike_by_all_walks(void **state)
{
        (void)state;
        struct seed s = seed_start();
        struct buf b;
        buf_init(&b, 0);
        int valid = 0;
        for (int i = 0; i < seed_rounds(400000); i++) {
                random_document(&s, &b, 4);
                assert_true(agree(b.p, b.n));
                for (uint64_t k = 1 + seed_below(&s, 3); k > 0 && b.n > 0; k--) {
                        size_t at = seed_below(&s, b.n);
                        if (seed_below(&s, 2))
                                b.p[at] = (char)seed_next(&s);
                        else if (seed_below(&s, 2))
                                b.p[at] = "\"\\,:[]{}0-.eu \n"[seed_below(&s, 15)];
                        else
                                memmove(b.p + at, b.p + at + 1, --b.n - at);
                }
                valid += agree(b.p, b.n);
        }
        assert_true(valid > 0);
        buf_release(&b);
}

/* ---- streams ---- */

/* Feeds a stream byte by byte; each value must appear with the first byte that completes it. */
static void values_come_whole_wherever_a_stream_is_split(void **state)
{
        (void)state;
        static const char stream[] =
            " {\"a\":[1,2]}\n[true]\"x\\\"y\xe2\x82\xac\" 12 -3.5e2 null\t{}7";
        static const char *const values[] = {
            "{\"a\":[1,2]}", "[true]", "\"x\\\"y\xe2\x82\xac\"", "12", "-3.5e2", "null", "{}", "7"};
        size_t n = sizeof stream - 1;
        for (size_t split = 0; split <= n; split++) {
                size_t at = 0;
                size_t seen = 0;
                size_t have = split;
                for (;;) {
                        char *text = exact(stream + at, have - at);
                        size_t start;
                        struct json_fault f;
                        ptrdiff_t end = json_scan_value(text, have - at, have == n, &start, &f);
                        assert_true(end >= 0);
                        assert_null(f.what);
                        if (end > 0) {
                                size_t len = (size_t)end - start;
                                assert_int_equal(len, strlen(values[seen]));
                                assert_memory_equal(text + start, values[seen], len);
                                seen++;
                                at += (size_t)end;
                        }
                        free(text);
                        if (end == 0 && have == n)
                                break;
                        if (end == 0)
                                have++;
                }
                assert_int_equal(seen, sizeof values / sizeof *values);
        }
}

static void incomplete_values_wait_and_broken_ones_do_not(void **state)
{
        (void)state;
        static const char *const waiting[] = {"-", "1", "1.", "1e", "1e+", "0", "t", "tru", "nul",
            "\"", "\"\\", "\"\\u", "\"\\u12", "\"\xe2", "\"\xe2\x82", "\"\xf0\x90",
            "\"\xf4\x8f\xbf", "\"\xed\x9f", "\"\xe0\xa0", "[", "[1", "[1,", "{", "{\"a\"",
            "{\"a\":", "{\"a\":1", "12"};
        static const char *const broken[] = {"x", "-x", "1.x", "1ex", "trx", "nux", "\"\\x",
            "\"\\u1x", "\"\xff", "\"\xe2\x28", "\"\xf4\x90", "\"\xed\xa0", "\"\xe0\x80", "\"\xc0",
            "\"\x80", "[,", "{1", "[1}", "{\"a\" 1", "01", "\"\n", "]", "\"\xe2\x82\""};
        size_t start;
        struct json_fault f;
        for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++) {
                size_t n = strlen(waiting[i]);
                if (json_scan_value(waiting[i], n, false, &start, &f) != 0 || f.what)
                        fail_msg("text %zu should wait", i);
                ptrdiff_t end = json_scan_value(waiting[i], n, true, &start, &f);
                bool whole = strspn(waiting[i], "0123456789") == n;
                assert_int_equal(end, whole ? (ptrdiff_t)n : -1);
        }
        for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
                size_t n = strlen(broken[i]);
                if (json_scan_value(broken[i], n, false, &start, &f) != -1 || !f.what)
                        fail_msg("text %zu should be refused", i);
        }
        assert_int_equal(json_scan_value(" \n ", 3, true, &start, &f), 0);
        assert_int_equal(start, 3);
        assert_int_equal(json_scan_value(NULL, 0, true, &start, &f), 0);
        assert_int_equal(start, 0);
}

/* ---- reading ---- */

static void parse(struct json *j, const char *text)
{
        struct steno_error err = {0};
        json_init(j);
        if (json_parse(j, text, strlen(text), NULL, &err) != 0)
                fail_msg("%s", err.msg);
}

static void a_tape_answers_without_checks_between(void **state)
{
        (void)state;
        struct json j;
        parse(&j, "{\"a\":[10,{\"b\":\"x\"},[]],\"\\u0061\":{\"c\":null},\"d\":true,\"e\":{}}");
        assert_int_equal(json_type(&j, 0), JSON_OBJECT);
        assert_int_equal(json_count(&j, 0), 4);
        json_ref last = json_get(&j, 0, "a");
        assert_int_equal(json_type(&j, last), JSON_OBJECT);
        assert_int_equal(json_type(&j, json_get(&j, last, "c")), JSON_NULL);
        assert_int_equal(json_get(&j, json_get(&j, json_get(&j, 0, "no"), "no"), "x"), JSON_NONE);
        json_ref first = json_value(&j, json_child(&j, 0));
        assert_int_equal(json_count(&j, first), 3);
        assert_true(str_is(json_raw(&j, json_at(&j, first, 0)), "10"));
        assert_true(json_is(&j, json_get(&j, json_at(&j, first, 1), "b"), "x"));
        assert_int_equal(json_child(&j, json_at(&j, first, 2)), JSON_NONE);
        assert_int_equal(json_at(&j, first, 3), JSON_NONE);
        assert_int_equal(json_at(&j, 0, 0), JSON_NONE);
        assert_true(json_bool(&j, json_get(&j, 0, "d"), false));
        assert_true(json_bool(&j, JSON_NONE, true));
        assert_int_equal(json_child(&j, json_get(&j, 0, "e")), JSON_NONE);
        assert_int_equal(json_count(&j, JSON_NONE), 0);
        assert_int_equal(json_raw(&j, JSON_NONE).n, 0);
        assert_int_equal(json_value(&j, JSON_NONE), JSON_NONE);
        int members = 0;
        for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k)) {
                assert_int_equal(json_type(&j, k), JSON_STRING);
                assert_int_not_equal(json_type(&j, json_value(&j, k)), JSON_NOTHING);
                members++;
        }
        assert_int_equal(members, 4);
        json_release(&j);
}

static void strings_are_decoded_on_demand(void **state)
{
        (void)state;
        struct json j;
        struct buf b;
        bool lossy = false;
        buf_init(&b, 0);
        parse(&j, "[\"\\\"\\\\\\/"
                  "\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\",\"\\ud800x\\udc00\","
                  "\"a\\u0000b\",\"plain\",7,\"\\ud800\\ud83d\\ude00\"]");
        assert_true(json_string(&j, json_at(&j, 0, 0), &b, &lossy));
        assert_false(lossy);
        assert_true(str_is(buf_str(&b), "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
        assert_true(json_is(&j, json_at(&j, 0, 0), buf_cstr(&b)));
        assert_false(json_is(&j, json_at(&j, 0, 0), "\"\\/"));
        buf_clear(&b);
        assert_true(json_string(&j, json_at(&j, 0, 1), &b, &lossy));
        assert_true(lossy);
        assert_true(str_is(buf_str(&b), "\xef\xbf\xbdx\xef\xbf\xbd"));
        assert_false(json_is(&j, json_at(&j, 0, 1), buf_cstr(&b)));
        assert_true(json_is_str(&j, json_at(&j, 0, 2), STR("a\0b")));
        assert_false(json_is(&j, json_at(&j, 0, 2), "a"));
        assert_true(json_is_escaped(&j, json_at(&j, 0, 2)));
        assert_false(json_is_escaped(&j, json_at(&j, 0, 3)));
        assert_true(str_is(json_inner(&j, json_at(&j, 0, 3)), "plain"));
        assert_false(json_string(&j, json_at(&j, 0, 4), &b, NULL));
        assert_null(json_dup_string(&j, json_at(&j, 0, 4)));
        char *z = json_dup_string(&j, json_at(&j, 0, 3));
        assert_string_equal(z, "plain");
        free(z);
        buf_clear(&b);
        json_string(&j, json_at(&j, 0, 5), &b, NULL);
        assert_true(str_is(buf_str(&b), "\xef\xbf\xbd\xf0\x9f\x98\x80"));
        static const char *const cut[] = {"\\", "\\u", "\\u12", "\\u123", "\\ud83d\\u1"};
        for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
                char *text = exact(cut[i], strlen(cut[i]));
                json_unescape(str_span(text, strlen(cut[i])), &b, NULL);
                free(text);
        }
        buf_release(&b);
        json_release(&j);
}

static void numbers_keep_to_their_range(void **state)
{
        (void)state;
        struct json j;
        parse(&j,
            "[0,-0,9223372036854775807,9223372036854775808,-9223372036854775808,"
            "-9223372036854775809,18446744073709551615,18446744073709551616,1.0,1e2,\"1\","
            "-1.25e2,1e999,0.1,0.1000000000000000000000000000000000000000000000000000000000"
            "0000000000000000000000000000000000000000000000000000000000000000000000000000000]");
        int64_t i;
        uint64_t u;
        double d;
        assert_true(json_i64(&j, json_at(&j, 0, 0), &i) && i == 0);
        assert_true(json_i64(&j, json_at(&j, 0, 1), &i) && i == 0);
        assert_true(json_i64(&j, json_at(&j, 0, 2), &i) && i == INT64_MAX);
        assert_false(json_i64(&j, json_at(&j, 0, 3), &i));
        assert_true(json_i64(&j, json_at(&j, 0, 4), &i) && i == INT64_MIN);
        assert_false(json_i64(&j, json_at(&j, 0, 5), &i));
        assert_true(json_u64(&j, json_at(&j, 0, 6), &u) && u == UINT64_MAX);
        assert_false(json_u64(&j, json_at(&j, 0, 7), &u));
        assert_false(json_u64(&j, json_at(&j, 0, 4), &u));
        assert_false(json_i64(&j, json_at(&j, 0, 8), &i));
        assert_false(json_u64(&j, json_at(&j, 0, 9), &u));
        assert_false(json_u64(&j, json_at(&j, 0, 10), &u));
        assert_false(json_double(&j, json_at(&j, 0, 10), &d));
        assert_true(json_double(&j, json_at(&j, 0, 11), &d) && d == -125.0);
        assert_false(json_double(&j, json_at(&j, 0, 12), &d));
        assert_true(json_double(&j, json_at(&j, 0, 13), &d) && d == 0.1);
        assert_true(json_double(&j, json_at(&j, 0, 14), &d) && d == 0.1);
        assert_false(json_double(&j, JSON_NONE, &d));
        json_release(&j);
}

/* The spans of children are in order inside the span of their parent, and each is a value
 * itself. */
static void check_span(const struct json *j, json_ref r)
{
        struct str s = json_raw(j, r);
        assert_true(json_valid(s.p, s.n, NULL));
        const char *at = s.p;
        uint32_t n = 0;
        for (json_ref c = json_child(j, r); c != JSON_NONE; c = json_next(j, r, c)) {
                struct str inner = json_raw(j, c);
                assert_true(inner.p > at && inner.p + inner.n < s.p + s.n);
                at = inner.p + inner.n - 1;
                check_span(j, c);
                n++;
        }
        assert_int_equal(json_type(j, r) == JSON_OBJECT ? n / 2 : n, json_count(j, r));
}

static void spans_nest_in_random_documents(void **state)
{
        (void)state;
        struct seed s = seed_start();
        struct json j;
        struct buf b;
        buf_init(&b, 0);
        json_init(&j);
        for (int i = 0; i < seed_rounds(60000); i++) {
                random_document(&s, &b, 5);
                assert_int_equal(json_parse(&j, b.p, b.n, NULL, NULL), 0);
                check_span(&j, 0);
        }
        json_release(&j);
        buf_release(&b);
}

/* ---- writing ---- */

static void a_writer_puts_every_comma_itself(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_str(&w, "s", STR("a\"b\n"));
        jsonw_field_cstr(&w, "z", "text");
        jsonw_field_cstr(&w, "none", NULL);
        jsonw_field_u64(&w, "u", UINT64_MAX);
        jsonw_field_i64(&w, "i", INT64_MIN);
        jsonw_field_i64(&w, "p", 7);
        jsonw_field_bool(&w, "t", true);
        jsonw_field_bool(&w, "f", false);
        jsonw_field_null(&w, "n");
        jsonw_field_raw(&w, "r", STR("[1.0e5]"));
        jsonw_key(&w, "list");
        jsonw_array(&w);
        jsonw_array_end(&w);
        jsonw_key_str(&w, STR("\"key\""));
        jsonw_object(&w);
        jsonw_field_u64(&w, "inner", 0);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        assert_string_equal(buf_cstr(&b),
            "{\"s\":\"a\\\"b\\n\",\"z\":\"text\",\"none\":null,\"u\":18446744073709551615,"
            "\"i\":-9223372036854775808,\"p\":7,\"t\":true,\"f\":false,\"n\":null,"
            "\"r\":[1.0e5],\"list\":[],\"\\\"key\\\"\":{\"inner\":0}}");
        buf_release(&b);
}

static void members_are_copied_byte_for_byte(void **state)
{
        static const char TEXT[] =
            "{ \"a\" : 1.50 , \"\\u0062\":[ 1, 2 ],\"a\":{\"x\" :null},\"d\":\"\\/\"}";
        struct buf b;
        struct json j;
        (void)state;
        buf_init(&b, 0);
        parse(&j, TEXT);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_bool(&w, "first", true);
        for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                jsonw_copy_member(&w, &j, k);
        jsonw_field_copy(&w, "again", &j, json_get(&j, 0, "b"));
        jsonw_field_null(&w, "last");
        jsonw_object_end(&w);
        assert_string_equal(buf_cstr(&b),
            "{\"first\":true,\"a\":1.50,\"\\u0062\":[ 1, 2 ],\"a\":{\"x\" :null},\"d\":\"\\/\","
            "\"again\":[ 1, 2 ],\"last\":null}");
        json_release(&j);
        buf_release(&b);
}

static void a_value_can_be_written_by_someone_else(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_array(&w);
        buf_puts(jsonw_value(&w), "{\"made\":1}");
        buf_puts(jsonw_value(&w), "2");
        jsonw_u64(&w, 3);
        jsonw_array_end(&w);
        assert_string_equal(buf_cstr(&b), "[{\"made\":1},2,3]");
        buf_clear(&b);
        w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "k");
        buf_puts(jsonw_value(&w), "true");
        jsonw_field_u64(&w, "n", 1);
        jsonw_object_end(&w);
        assert_string_equal(buf_cstr(&b), "{\"k\":true,\"n\":1}");
        buf_release(&b);
}

static void a_writer_goes_on_behind_what_is_there(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        buf_puts(&b, "{\"a\":1");
        struct jsonw w = jsonw_behind(&b);
        jsonw_field_u64(&w, "b", 2);
        jsonw_object_end(&w);
        assert_string_equal(buf_cstr(&b), "{\"a\":1,\"b\":2}");
        buf_release(&b);
}

/* Does for one byte at a time what the fast code does for many. */
static void put_slowly(struct buf *b, const char *p, size_t n)
{
        static const char plain[] = "\"\\\b\f\n\r\t", brief[] = "\"\\bfnrt";
        for (size_t i = 0; i < n; i++) {
                const char *at = memchr(plain, p[i], sizeof plain - 1);
                if (at)
                        buf_printf(b, "\\%c", brief[at - plain]);
                else if ((unsigned char)p[i] < 0x20)
                        buf_printf(b, "\\u%04x", p[i]);
                else
                        buf_putc(b, p[i]);
        }
}

static void escapes_are_the_same_wherever_a_buffer_ends(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int i = 0; i < seed_rounds(200000); i++) {
                char text[120];
                size_t n = seed_below(&s, sizeof text);
                uint64_t rare = 1 + seed_below(&s, 30);
                for (size_t k = 0; k < n; k++)
                        text[k] = (char)(seed_below(&s, rare) ? 'a' + seed_below(&s, 26)
                                                              : seed_below(&s, 0x80));
                struct buf quick, slow, back;
                buf_init(&quick, 0);
                buf_init(&slow, 0);
                buf_init(&back, 0);
                buf_reserve(&quick, 1 + seed_below(&s, 200));
                json_put_escaped(&quick, str_span(text, n));
                put_slowly(&slow, text, n);
                assert_true(str_eq(buf_str(&quick), buf_str(&slow)));
                json_unescape(buf_str(&quick), &back, NULL);
                assert_true(str_eq(buf_str(&back), str_span(text, n)));
                buf_release(&quick);
                buf_release(&slow);
                buf_release(&back);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(accepts_and_refuses_the_table),
            cmocka_unit_test(position_in_a_block_changes_nothing),
            cmocka_unit_test(says_where_a_text_goes_wrong),
            cmocka_unit_test(every_prefix_of_a_document_is_refused),
            cmocka_unit_test(depth_is_limited_without_stack),
            cmocka_unit_test(size_is_limited_before_a_byte_is_read),
            cmocka_unit_test(mutations_are_judged_alike_by_all_walks),
            cmocka_unit_test(values_come_whole_wherever_a_stream_is_split),
            cmocka_unit_test(incomplete_values_wait_and_broken_ones_do_not),
            cmocka_unit_test(a_tape_answers_without_checks_between),
            cmocka_unit_test(strings_are_decoded_on_demand),
            cmocka_unit_test(numbers_keep_to_their_range),
            cmocka_unit_test(escapes_are_the_same_wherever_a_buffer_ends),
            cmocka_unit_test(spans_nest_in_random_documents),
            cmocka_unit_test(a_writer_puts_every_comma_itself),
            cmocka_unit_test(members_are_copied_byte_for_byte),
            cmocka_unit_test(a_value_can_be_written_by_someone_else),
            cmocka_unit_test(a_writer_goes_on_behind_what_is_there),
        };
        return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
