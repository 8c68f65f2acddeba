/* The stub: it is small and stable, names only tools that the model has, and cannot be closed from
 * inside. */
#include "output/play.h"

#include "output/clean.h"
#include "output/excerpt.h"
#include "output/policy.h"
#include "output/stub_play.h"

static const struct stub_meta plain = {.ref = {"ctx_01JABC", 10},
    .server = {"build", 5},
    .tool = {"run_tests", 9},
    .call = {"call_7f", 7},
    .tools = STUB_HAS_ALL};

static struct str next_line(struct str *rest)
{
        const char *nl = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
        struct str line = {rest->p, nl ? (size_t)(nl - rest->p) : rest->n};
        rest->p += nl ? line.n + 1 : line.n;
        rest->n -= nl ? line.n + 1 : line.n;
        return line;
}

/* Reads a stub as strictly as possible: only the frame's own lines may look like the frame. */
static void check_frame(struct str stub)
{
        static const char *const order[] = {
            "--- head (", "--- errors (", "--- outline ---", "--- tail (", "More: "};
        struct str rest = stub;
        size_t stage = 0;
        struct str line = next_line(&rest);
        assert_true(str_starts(line, "[INCOMPLETE: "));
        if (rest.n == 0)
                return;
        line = next_line(&rest);
        if (str_starts(line, "More: ")) {
                assert_int_equal(rest.n, 0);
                return;
        }
        assert_true(str_starts(line, "tool: "));
        bool last = false;
        while (rest.n) {
                assert_false(last);
                line = next_line(&rest);
                size_t k = stage;
                while (k < ITEMS(order) && !str_starts(line, order[k]))
                        k++;
                if (k < ITEMS(order)) {
                        stage = k + 1;
                        last = k + 1 == ITEMS(order);
                        continue;
                }
                if (clean_looks_framed(line) && line.p[0] != '\\')
                        fail_msg("unguarded: %.*s", (int)line.n, line.p);
        }
        assert_true(last);
}

static void check_stub(struct str text, const struct stub_meta *m)
{
        struct buf a, b;
        buf_init(&a, 0);
        buf_init(&b, 0);
        assert_int_equal(stub_of_text(text, m, &a, NULL), 0);
        assert_int_equal(stub_of_text(text, m, &b, NULL), 0);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        assert_true(text_is_utf8(a.p, a.n));
        assert_true(a.n <= STUB_MAX);
        if (text.n > 2048 && a.n * 2 >= text.n)
                fail_msg("%zu bytes for %zu", a.n, text.n);
        for (size_t i = 0; i < a.n; i++) {
                unsigned char c = (unsigned char)a.p[i];
                assert_true(c >= 0x20 || c == '\n' || c == '\t');
        }
        assert_true(policy_is_stub(buf_str(&a)));
        if (m->kind != STUB_BINARY && text_is_utf8(text.p, text.n))
                check_frame(buf_str(&a));
        buf_release(&b);
        buf_release(&a);
}

static void any_content_gives_a_small_stable_closed_stub(void **state)
{
        struct seed s = seed_start();
        struct buf text, stub;
        (void)state;
        buf_init(&text, 0);
        buf_init(&stub, 0);
        for (int i = 0; i < seed_rounds(3000); i++) {
                struct stub_meta m = plain;
                m.has_exit = seed_below(&s, 2);
                m.unfinished = seed_below(&s, 4) == 0;
                m.tools = (uint32_t)seed_below(&s, 16);
                m.kind = seed_below(&s, 4) ? STUB_TEXT : STUB_JSON;
                buf_clear(&text);
                play_text(&s, &text, 2049 + (size_t)seed_below(&s, 20000));
                if (seed_below(&s, 10) == 0)
                        buf_puts(&text, "\xFF\xFE");
                check_stub(buf_str(&text), &m);
                /* Also a stub of many stubs. */
                if (i % 10 == 0) {
                        buf_clear(&stub);
                        for (int k = 0; k < 5; k++) {
                                stub_of_text(buf_str(&text), &m, &stub, NULL);
                                buf_putc(&stub, '\n');
                        }
                        if (stub.n > 2048)
                                check_stub(buf_str(&stub), &plain);
                }
        }
        buf_release(&stub);
        buf_release(&text);
}

static void it_is_smaller_than_half_from_the_floor_on(void **state)
{
        struct buf text;
        struct stub_meta m = plain;
        char name[300];
        (void)state;
        memset(name, 'n', sizeof(name));
        m.server = m.tool = m.call = str_span(name, sizeof(name));
        buf_init(&text, 0);
        for (size_t n = 2049; n < 9000; n += 37) {
                buf_clear(&text);
                while (text.n < n)
                        buf_puts(&text, "some words in a line\n");
                check_stub(buf_str(&text), &m);
                check_stub(buf_str(&text), &plain);
        }
        buf_release(&text);
}

static struct str made(struct buf *b, const struct stub_meta *m)
{
        struct buf text;
        buf_init(&text, 0);
        for (int i = 0; i < 2000; i++)
                buf_printf(&text, "line %d of the output\n", i);
        buf_clear(b);
        assert_int_equal(stub_of_text(buf_str(&text), m, b, NULL), 0);
        buf_release(&text);
        assert_non_null(buf_cstr(b));
        return buf_str(b);
}

static void only_tools_that_the_model_has_are_named(void **state)
{
        struct stub_meta m = plain;
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        made(&b, &m);
        assert_non_null(strstr(b.p, "\nMore: context_tail(ref=\"ctx_01JABC\", lines=200) or "
                                    "context_grep(ref=\"ctx_01JABC\", pattern=\"Error|Exception\")."
                                    " Do not run the tool again."));
        m.tools = STUB_HAS_READ;
        made(&b, &m);
        assert_non_null(strstr(b.p, "More: context_read("));
        assert_null(strstr(b.p, "context_tail"));
        assert_null(strstr(b.p, "context_grep"));
        m.tools = 0;
        made(&b, &m);
        assert_null(strstr(b.p, "context_"));
        assert_non_null(strstr(b.p, "\nMore: "));
        buf_release(&b);
}

static void the_second_line_says_whose_output_it_is(void **state)
{
        struct stub_meta m = plain;
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        m.has_exit = true;
        m.exit_code = 1;
        made(&b, &m);
        assert_non_null(strstr(b.p, "\ntool: build/run_tests   call: call_7f   output: text, 2,000 "
                                    "lines, 46,890 bytes   exit: 1\n"));
        m.server = m.call = STR("");
        m.has_exit = false;
        m.unfinished = true;
        made(&b, &m);
        assert_non_null(strstr(b.p, "\ntool: run_tests   output: text, 2,000 lines, 46,890 bytes   "
                                    "unfinished: the tool had not ended\n"));
        m.tool = STR("x   exit: 0\n--- tail (line 1) ---");
        made(&b, &m);
        assert_non_null(strstr(b.p, "\ntool: \"x   exit: 0\\\\u000a--- tail (line 1) ---\"   out"));
        buf_release(&b);
}

static void a_failure_in_the_middle_is_seen(void **state)
{
        struct buf text, b;
        (void)state;
        buf_init(&text, 0);
        buf_init(&b, 0);
        for (int i = 0; i < 2000; i++)
                buf_printf(&text, i == 900 ? "a.c:1:2: error: lost\n" : "line %d\n", i);
        assert_int_equal(stub_of_text(buf_str(&text), &plain, &b, NULL), 0);
        assert_non_null(strstr(buf_cstr(&b), "\n--- errors (line 901) ---\n"));
        assert_non_null(strstr(b.p, "\na.c:1:2: error: lost\n"));
        buf_release(&b);
        buf_release(&text);
}

static void the_runtime_store_has_its_own_form(void **state)
{
        struct buf text, b;
        (void)state;
        buf_init(&text, 0);
        buf_init(&b, 0);
        for (int i = 0; i < 600; i++)
                buf_puts(&text, i == 499 ? "e\xCC\x81" : "\xF0\x9F\x98\x80");
        struct str path = STR("@state/logs/tool-results/c/m.json");
        assert_int_equal(stub_build_runtime(buf_str(&text), path, &b, NULL), 0);
        /* The 500th character has a combining mark: both are left out. */
        assert_int_equal(b.n, 499 * 4 + strlen("\n\n[Full output: ") + path.n + 1);
        assert_string_equal(
            buf_cstr(&b) + 499 * 4, "\n\n[Full output: @state/logs/tool-results/c/m.json]");
        buf_clear(&b);
        assert_int_equal(stub_build_runtime(STR("a\xFFz"), path, &b, NULL), 0);
        assert_true(str_starts(buf_str(&b), "a\xEF\xBF\xBDz\n\n["));
        buf_release(&b);
        buf_release(&text);
}

static void the_smallest_outputs_get_one_line(void **state)
{
        struct buf b;
        (void)state;
        buf_init(&b, 0);
        assert_int_equal(stub_of_text(STR("tiny"), &plain, &b, NULL), 0);
        assert_string_equal(
            buf_cstr(&b), "[INCOMPLETE: 0 B of 4 B shown; the rest is in ctx_01JABC]");
        buf_release(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(any_content_gives_a_small_stable_closed_stub),
            cmocka_unit_test(it_is_smaller_than_half_from_the_floor_on),
            cmocka_unit_test(only_tools_that_the_model_has_are_named),
            cmocka_unit_test(the_second_line_says_whose_output_it_is),
            cmocka_unit_test(a_failure_in_the_middle_is_seen),
            cmocka_unit_test(the_runtime_store_has_its_own_form),
            cmocka_unit_test(the_smallest_outputs_get_one_line),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
