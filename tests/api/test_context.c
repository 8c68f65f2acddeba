/* Context files: what a model may request of them, what that costs, and what can be read of an
 * output while it grows. */
#include "api/rig.h"

#include "base/text.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- a model's calls ---- */

struct answer {
        char *text;
        bool is_error;
};

static struct answer call(struct rig *r, const char *name, const char *args)
{
        struct answer a = {NULL, false};
        OK(steno_context_call(r->conv, name, args, strlen(args), &a.text, &a.is_error, &err));
        assert_non_null(a.text);
        return a;
}

/* The call is answered with an error that contains all these words. */
static void assert_told(struct rig *r, const char *name, const char *args, const char *words)
{
        struct answer a = call(r, name, args);
        if (!a.is_error || !strstr(a.text, words))
                fail_msg("%s(%s) %s: %s", name, args, a.is_error ? "says" : "is answered", a.text);
        steno_free(a.text);
}

static void make_lines(struct buf *b, int from, int to)
{
        for (int i = from; i <= to; i++)
                buf_printf(b, "line %d of the output\n", i);
}

static void wrong_arguments_get_explanations(void **state)
{
        struct rig *r = *state;
        struct streamed got;
        struct buf in;
        char args[300];
        buf_init(&in, 0);
        make_lines(&in, 1, 2000);
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, in.p, in.n, NULL, &got);
        assert_told(r, "context_read", "", "ref must be given");
        assert_told(r, "context_read", "{}", "ref must be given");
        assert_told(r, "context_read", "{\"ref\":7}", "ref must be given, as a string");
        assert_told(r, "context_read", "{\"ref\":\"ctx_nope\"}", "context_list shows the refs");
        assert_told(r, "context_read", "{\"ref\":\"../../etc/passwd\"}", "no ref");
        assert_told(r, "context_read", "not json", "the arguments are not JSON");
        assert_told(r, "context_read", "[1]", "must be an object");
        assert_told(
            r, "context_tail", "{\"reff\":\"x\"}", "has no parameter \"reff\"; it has: ref, lines");
        snprintf(args, sizeof args, "{\"ref\":\"%s\",\"lines\":\"many\"}", got.ref);
        assert_told(r, "context_tail", args, "lines must be a whole number");
        snprintf(args, sizeof args, "{\"ref\":\"%s\"}", got.ref);
        assert_told(r, "context_grep", args, "pattern must be given");
        snprintf(args, sizeof args, "{\"ref\":\"%s\",\"pattern\":\"a(b\"}", got.ref);
        assert_told(r, "context_grep", args, "3");
        streamed_release(&got);
        buf_release(&in);
}

static void numbers_out_of_range_are_clamped_and_reported(void **state)
{
        struct rig *r = *state;
        struct streamed got;
        struct buf in, notes;
        buf_init(&in, 0);
        buf_init(&notes, 0);
        make_lines(&in, 1, 2000);
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, in.p, in.n, NULL, &got);
        static const struct {
                const char *op, *args, *notes;
        } TRIES[] = {
            {"read", "\"limit\":99999999", "limit was 99999999 and was taken as 12288"},
            {"read", "\"limit\":-3", "limit was -3 and was taken as 1"},
            {"read", "\"offset\":1e30", "offset was beyond the end"},
            {"read", "\"offset\":\"12\",\"limit\":\"7\"", NULL},
            {"read", "\"line\":0", "line was 0 and was taken as 1"},
            {"tail", "\"lines\":0", "lines was 0 and was taken as 1"},
            {"tail", "\"lines\":2001", "lines was 2001 and was taken as 2000"},
            {"grep", "\"pattern\":\"line\",\"max_results\":-1", "max_results was -1"},
            {"tail", "\"lines\":null", NULL},
        };
        for (size_t i = 0; i < sizeof TRIES / sizeof *TRIES; i++) {
                char *json =
                    rig_context(r, TRIES[i].op, "{\"ref\":\"%s\",%s}", got.ref, TRIES[i].args);
                bool said = rig_text(json, "notes", &notes);
                assert_int_equal(said, TRIES[i].notes != NULL);
                if (said && !strstr(buf_cstr(&notes), TRIES[i].notes))
                        fail_msg("%s: %s", TRIES[i].args, buf_cstr(&notes));
                steno_free(json);
        }
        streamed_release(&got);
        buf_release(&in);
        buf_release(&notes);
}

static void names_are_taken_plain_and_dotted(void **state)
{
        struct rig *r = *state;
        static const char *const OPS[] = {"list", "read", "tail", "grep"};
        for (int i = 0; i < 4; i++) {
                char plain[40], dotted[40];
                snprintf(plain, sizeof plain, "context_%s", OPS[i]);
                snprintf(dotted, sizeof dotted, "context.%s", OPS[i]);
                assert_true(steno_is_context_tool(plain) && steno_is_context_tool(dotted));
                struct answer a = call(r, plain, "{}"), b = call(r, dotted, "{}");
                assert_string_equal(a.text, b.text);
                steno_free(a.text);
                steno_free(b.text);
        }
        assert_false(steno_is_context_tool("context_"));
        assert_false(steno_is_context_tool("context_read2"));
        assert_false(steno_is_context_tool("xcontext_read"));
}

static void nothing_of_another_conversation_is_reached(void **state)
{
        struct rig *r = *state;
        struct streamed got;
        struct steno_conv *other;
        struct steno_error mine = {0}, foreign = {0};
        char text[20000], *json = NULL, args[100];
        memset(text, 'x', sizeof text);
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, text, sizeof text, NULL, &got);
        OK(steno_conv_create(r->store, NULL, "other", NULL, &other, &err));
        snprintf(args, sizeof args, "{\"ref\":\"%s\"}", got.ref);
        assert_int_equal(
            steno_context(other, "read", args, strlen(args), &json, &foreign), STENO_ENOTFOUND);
        memset(args + 8, 'Z', 10);
        assert_int_equal(
            steno_context(r->conv, "read", args, strlen(args), &json, &mine), STENO_ENOTFOUND);
        /* The same words except for the ref. */
        char *a = strstr(mine.msg, "\" in this"), *b = strstr(foreign.msg, "\" in this");
        assert_true(a && b);
        assert_string_equal(a, b);
        steno_conv_close(other);
        streamed_release(&got);
}

static void lines_are_found_by_number(void **state)
{
        struct rig *r = *state;
        struct streamed got;
        struct buf in, page;
        buf_init(&in, 0);
        buf_init(&page, 0);
        make_lines(&in, 1, 50000);
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, in.p, in.n, NULL, &got);
        for (int i = 1; i <= 50000; i += 4999) {
                char *json =
                    rig_context(r, "read", "{\"ref\":\"%s\",\"line\":%d,\"count\":3}", got.ref, i);
                struct buf want;
                buf_init(&want, 0);
                make_lines(&want, i, i + 2 < 50000 ? i + 2 : 50000);
                buf_clear(&page);
                rig_page(json, &page);
                assert_same(buf_str(&want), buf_str(&page));
                buf_release(&want);
                steno_free(json);
        }
        char *json = rig_context(r, "tail", "{\"ref\":\"%s\",\"lines\":5}", got.ref);
        assert_int_equal(rig_number(json, "first_line"), 49996);
        assert_int_equal(rig_number(json, "total_lines"), 50000);
        steno_free(json);
        json = rig_context(r, "grep", "{\"ref\":\"%s\",\"pattern\":\"line 49999 \"}", got.ref);
        assert_non_null(strstr(json, "\"line\":49999,"));
        steno_free(json);
        streamed_release(&got);
        buf_release(&in);
        buf_release(&page);
}

/* ---- what it costs ---- */

static uint64_t bytes_read, reads;

static ssize_t counting_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        ssize_t got = fs_real()->pread(self, fd, p, n, at);
        reads++;
        bytes_read += got > 0 ? (uint64_t)got : 0;
        return got;
}

/* Makes an artifact of this size: zeros but for its last lines. */
static void stretch(struct rig *r, const char *call_id, uint64_t size)
{
        char path[400];
        struct buf tail;
        buf_init(&tail, 0);
        make_lines(&tail, 1, 300);
        snprintf(path, sizeof path, "%s/projects/default/conversations/c/artifacts/tool/%s.txt",
            r->scratch.path, call_id);
        int fd = open(path, O_WRONLY);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        assert_int_equal(pwrite(fd, tail.p, tail.n, (off_t)(size - tail.n)), tail.n);
        close(fd);
        buf_release(&tail);
}

static void the_end_of_10_gb_costs_what_that_of_1_mb_does(void **state)
{
        struct rig *r = *state;
        static struct fs counting;
        uint64_t cost[2], calls[2];
        static const uint64_t SIZES[] = {UINT64_C(1) << 20, UINT64_C(10) << 30};
        char text[20000];
        memset(text, 'x', sizeof text);
        counting = *play_fs();
        counting.pread = counting_pread;
        for (int i = 0; i < 2; i++) {
                struct streamed got;
                const char *id = rig_call(r);
                struct steno_output_options opt = rig_options(id);
                rig_stream(r, &opt, text, sizeof text, NULL, &got);
                stretch(r, id, SIZES[i]);
                rig_close(r);
                r->env.fs = &counting;
                rig_open(r);
                bytes_read = reads = 0;
                char *json = rig_context(r, "tail", "{\"ref\":\"%s\"}", got.ref);
                cost[i] = bytes_read;
                calls[i] = reads;
                assert_int_equal(rig_number(json, "total_bytes"), SIZES[i]);
                struct buf page, want;
                buf_init(&page, 0);
                buf_init(&want, 0);
                make_lines(&want, 101, 300);
                rig_page(json, &page);
                assert_same(buf_str(&want), buf_str(&page));
                buf_release(&page);
                buf_release(&want);
                steno_free(json);
                /* A page in the middle as well. */
                bytes_read = 0;
                json = rig_context(r, "read", "{\"ref\":\"%s\",\"offset\":%llu}", got.ref,
                    (unsigned long long)SIZES[i] / 2);
                assert_true(bytes_read < 100000);
                steno_free(json);
                streamed_release(&got);
        }
        printf("# tail read %llu bytes in %llu calls of 1 MB, %llu in %llu of 10 GB\n",
            (unsigned long long)cost[0], (unsigned long long)calls[0], (unsigned long long)cost[1],
            (unsigned long long)calls[1]);
        assert_true(cost[1] < 1000000);
        /* The manifest has one more artifact then; otherwise they are the same. */
        assert_true(cost[1] < cost[0] + 2000);
        assert_int_equal(calls[0], calls[1]);
}

/* ---- while it grows ---- */

static void an_output_is_read_while_it_grows(void **state)
{
        struct rig *r = *state;
        struct steno_output *o;
        struct steno_store *elsewhere;
        struct steno_conv *mine = r->conv, *theirs;
        struct steno_error why = {0};
        struct buf in, page;
        char *json = NULL;
        buf_init(&in, 0);
        buf_init(&page, 0);
        make_lines(&in, 1, 2000);
        struct steno_output_options opt = rig_options(rig_call(r));
        OK(steno_output_begin(r->conv, &opt, &o, &err));
        OK(steno_output_write(o, "a little", 8, &err));
        assert_null(steno_output_ref(o));
        OK(steno_output_write(o, in.p, in.n, &err));
        const char *ref = steno_output_ref(o);
        assert_non_null(ref);
        OK(api_store_open_in(&r->env, r->scratch.path, NULL, &elsewhere, &err));
        OK(steno_conv_open(elsewhere, NULL, "c", &theirs, &err));
        r->conv = theirs;
        json = rig_context(r, "tail", "{\"ref\":\"%s\",\"lines\":1}", ref);
        assert_true(rig_flag(json, "unfinished"));
        assert_true(rig_page(json, &page));
        assert_string_equal(buf_cstr(&page), "line 2000 of the output\n");
        assert_int_equal(rig_number(json, "total_lines"), UINT64_MAX); /* null: not counted */
        steno_free(json);
        /* A character whose last bytes have not arrived yet. */
        OK(steno_output_write(o, "end \xF0\x9F\x98", 7, &err));
        json = rig_context(r, "tail", "{\"ref\":\"%s\",\"lines\":1}", ref);
        buf_clear(&page);
        assert_true(rig_page(json, &page));
        assert_string_equal(buf_cstr(&page), "end ");
        steno_free(json);
        json = rig_context(r, "read", "{\"ref\":\"%s\",\"offset\":%zu}", ref, 8 + in.n);
        buf_clear(&page);
        assert_true(rig_page(json, &page));
        assert_string_equal(buf_cstr(&page), "end ");
        assert_false(rig_flag(json, "done"));
        steno_free(json);
        json = rig_context(r, "grep", "{\"ref\":\"%s\",\"pattern\":\"line 1999 |end\"}", ref);
        assert_int_equal(rig_number(json, "total_matches"), 2);
        steno_free(json);
        OK(steno_output_write(o, "\x80", 1, &err));
        r->conv = mine;
        OK(steno_output_finish(o, NULL, &json, &err));
        steno_free(json);
        r->conv = theirs;
        json = rig_context(r, "read", "{\"ref\":\"%s\",\"offset\":%zu}", ref, 8 + in.n);
        buf_clear(&page);
        assert_true(rig_page(json, &page));
        assert_string_equal(buf_cstr(&page), "end \xF0\x9F\x98\x80");
        assert_true(rig_flag(json, "done"));
        assert_false(rig_flag(json, "unfinished"));
        steno_free(json);
        r->conv = mine;
        assert_int_equal(steno_output_write(o, "x", 1, &why), STENO_EINVAL);
        steno_output_free(o);
        steno_conv_close(theirs);
        steno_close(elsewhere);
        rig_check(r);
        buf_release(&in);
        buf_release(&page);
}

static void an_abandoned_output_stays_and_says_so(void **state)
{
        struct rig *r = *state;
        struct steno_output *o;
        struct seed s = seed_start();
        struct buf in, out;
        char ref[64], *json;
        int pages;
        buf_init(&in, 0);
        buf_init(&out, 0);
        make_lines(&in, 1, 2000);
        buf_put(&in, "\xFF\xFE\0\xE2\x82", 5); /* no text, and cut off */
        struct steno_output_options opt = rig_options(rig_call(r));
        OK(steno_output_begin(r->conv, &opt, &o, &err));
        OK(steno_output_write(o, in.p, in.n, &err));
        snprintf(ref, sizeof ref, "%s", steno_output_ref(o));
        steno_output_free(o);
        rig_read_all(r, ref, &s, &out, &pages);
        assert_same(buf_str(&in), buf_str(&out));
        json = rig_context(r, "tail", "{\"ref\":\"%s\"}", ref);
        assert_true(rig_flag(json, "unfinished"));
        steno_free(json);
        json = rig_context(r, "grep", "{\"ref\":\"%s\",\"pattern\":\"line 7 .*out\"}", ref);
        assert_int_equal(rig_number(json, "total_matches"), 1);
        steno_free(json);
        json = rig_context(r, "list", "{}");
        assert_non_null(strstr(json, ref));
        steno_free(json);
        rig_check(r);
        buf_release(&in);
        buf_release(&out);
}

/* An output that is large enough to be a file: this line, many times. */
static void stream_lines(struct rig *r, const char *line, struct streamed *got)
{
        struct buf in;
        buf_init(&in, 0);
        for (int i = 0; i < 9000; i++)
                buf_printf(&in, "%s\n", line);
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, in.p, in.n, NULL, got);
        assert_int_not_equal(got->ref[0], 0);
        buf_release(&in);
}

static void patterns_see_bytes_in_a_binary_output_and_characters_in_text(void **state)
{
        static const struct {
                const char *line;
                uint64_t matches;
        } CASES[] = {
            {"caf\xE9 x", 9000},     /* Latin-1: the dot is the byte */
            {"caf\xC3\xA9 x", 9000}, /* UTF-8: the dot is the character */
            {"caf\xC3\xA9 x\xFF", 0},
        };
        struct rig *r = *state;
        for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
                struct streamed got;
                stream_lines(r, CASES[i].line, &got);
                char *json =
                    rig_context(r, "grep", "{\"ref\":\"%s\",\"pattern\":\"^caf. \"}", got.ref);
                assert_int_equal(rig_number(json, "total_matches"), CASES[i].matches);
                steno_free(json);
                streamed_release(&got);
        }
}

/* ---- what an answer may hold ---- */

/* All text of an answer of grep that a model gets, before JSON escapes it. */
static size_t text_of(const struct json *j)
{
        struct buf b;
        size_t sum = 0;
        json_ref matches = json_get(j, 0, "matches");
        buf_init(&b, 0);
        for (json_ref m = json_child(j, matches); m != JSON_NONE; m = json_next(j, matches, m)) {
                static const char *const AROUND[] = {"before", "after"};
                buf_clear(&b);
                json_string(j, json_get(j, m, "content"), &b, NULL);
                sum += b.n;
                for (int k = 0; k < 2; k++) {
                        json_ref list = json_get(j, m, AROUND[k]);
                        for (json_ref l = json_child(j, list); l != JSON_NONE;
                             l = json_next(j, list, l)) {
                                buf_clear(&b);
                                json_string(j, l, &b, NULL);
                                sum += b.n;
                        }
                }
        }
        buf_release(&b);
        return sum;
}

static const char *const SHAPES[] = {"line %d\n", "%d caf\xE9 line\n",
    "%d line \xC3\xA9\xC3\xA9\xC3\xA9 \xF0\x9F\x99\x82\n", "line %d \xFF\xFE\n"};

/* Lines of one shape, `width` times as long. */
static void stream_shape(struct rig *r, size_t shape, int count, int width, struct streamed *got)
{
        struct buf in;
        buf_init(&in, 0);
        for (int i = 1; i <= count; i++) {
                for (int k = 1; k < width; k++)
                        buf_puts(&in, shape == 1 ? "\xE9t\xE9 " : "word ");
                buf_printf(&in, SHAPES[shape], i);
        }
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, in.p, in.n, NULL, got);
        buf_release(&in);
}

static void an_answer_of_grep_is_small_and_leads_to_all_matches(void **state)
{
        static const int WIDTHS[] = {1, 40, 900};
        struct rig *r = *state;
        for (size_t i = 0; i < 4 * 3 * 2 * 2; i++) {
                int count = i / 4 % 3 ? 25 : 700, context = i % 2 ? 20 : 0, seen = 0;
                bool back = i / 2 % 2;
                struct streamed got;
                stream_shape(r, i / 12 % 4, count, WIDTHS[i / 4 % 3], &got);
                long long from = back ? count : 1;
                for (bool more = true; more;) {
                        struct json j;
                        char *json = rig_context(r, "grep",
                            "{\"ref\":\"%s\",\"pattern\":\"line\",\"max_results\":1000,"
                            "\"context_lines\":%d,\"from_line\":%lld,\"direction\":\"%s\"}",
                            got.ref, context, from, back ? "backward" : "forward");
                        rig_parse(&j, json);
                        json_ref list = json_get(&j, 0, "matches");
                        assert_in_range(text_of(&j), 1, 12288);
                        assert_in_range(strlen(json), 1, 40000);
                        assert_int_equal(rig_number(json, "total_matches"), count);
                        json_ref first = json_child(&j, list);
                        uint64_t line = 0;
                        json_u64(&j, json_get(&j, first, "line"), &line);
                        seen += (int)json_count(&j, list);
                        assert_int_equal(line, back ? count - seen + 1 : (int)from);
                        more = rig_flag(json, "truncated");
                        if (more)
                                from = (long long)rig_number(json, "next_line");
                        json_release(&j);
                        steno_free(json);
                }
                assert_int_equal(seen, count);
                streamed_release(&got);
        }
}

static void stray_bytes_are_shown_as_escapes(void **state)
{
        struct rig *r = *state;
        static const char *const OPS[] = {"read", "tail"};
        for (size_t shape = 0; shape < 4; shape++) {
                struct streamed got;
                stream_shape(r, shape, 3000, 3, &got);
                for (int k = 0; k < 2; k++) {
                        char *json = rig_context(r, OPS[k], "{\"ref\":\"%s\"}", got.ref);
                        struct json j;
                        struct buf b;
                        rig_parse(&j, json);
                        buf_init(&b, 0);
                        json_string(&j, json_get(&j, 0, "content"), &b, NULL);
                        assert_in_range(b.n, 1, 12288);
                        assert_true(text_is_utf8(b.p, b.n));
                        bool bad = shape % 2;
                        assert_int_equal(json_is(&j, json_get(&j, 0, "encoding"), "escaped"), bad);
                        assert_int_equal(memmem(b.p, b.n, "\\x", 2) != NULL, bad);
                        buf_release(&b);
                        json_release(&j);
                        steno_free(json);
                }
                streamed_release(&got);
        }
}

/* Latin-1 cannot be in a message, but a short text need not be cut because of that. */
static void a_short_text_that_is_not_utf8_is_shown_whole(void **state)
{
        struct rig *r = *state;
        static const char TEXT[] = "caf\xE9 au lait\nd\xE9j\xE0 vu\n";
        struct streamed got;
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, TEXT, sizeof TEXT - 1, NULL, &got);
        assert_non_null(strstr(buf_cstr(&got.content), "caf\\xE9 au lait\nd\\xE9j\\xE0 vu\n"));
        assert_non_null(strstr(buf_cstr(&got.content), got.ref));
        assert_null(strstr(buf_cstr(&got.content), "INCOMPLETE"));
        streamed_release(&got);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
        const struct CMUnitTest tests[] = {
            TEST(wrong_arguments_get_explanations),
            TEST(numbers_out_of_range_are_clamped_and_reported),
            TEST(names_are_taken_plain_and_dotted),
            TEST(nothing_of_another_conversation_is_reached),
            TEST(lines_are_found_by_number),
            TEST(patterns_see_bytes_in_a_binary_output_and_characters_in_text),
            TEST(an_answer_of_grep_is_small_and_leads_to_all_matches),
            TEST(stray_bytes_are_shown_as_escapes),
            TEST(a_short_text_that_is_not_utf8_is_shown_whole),
            TEST(the_end_of_10_gb_costs_what_that_of_1_mb_does),
            TEST(an_output_is_read_while_it_grows),
            TEST(an_abandoned_output_stays_and_says_so),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
