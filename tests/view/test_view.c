/* test_view.c - steno_view through the public API: outputs, damage, the window, stopping. */
#include <fcntl.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/limits.h"
#include "support/scratch.h"
#include "steno.h"

#define ASK(id)                                                                                    \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id                   \
        "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"

struct place {
        struct scratch dir;
        struct steno_store *store;
        struct steno_conv *conv;
};

static void place_open(struct place *p)
{
        struct steno_error err = {0};
        scratch_make(&p->dir);
        if (steno_open(p->dir.path, NULL, &p->store, &err) ||
            steno_conv_create(p->store, NULL, "c", NULL, &p->conv, &err))
                fail_msg("%s", err.msg);
}

static void place_close(struct place *p)
{
        steno_conv_close(p->conv);
        steno_close(p->store);
        scratch_remove(&p->dir);
}

static void append(struct place *p, const char *json, uint32_t flags)
{
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt, .flags = flags};
        if (steno_append(p->conv, json, strlen(json), &opt, NULL, &err))
                fail_msg("%s", err.msg);
}

static int to_buf(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

/* The view; *report may be NULL. Freed with free(). */
static char *view(struct place *p, const struct steno_view_options *opt, char **report)
{
        struct steno_error err = {0};
        struct buf out;
        buf_init(&out, 0);
        if (steno_view(p->conv, opt, to_buf, &out, report, &err))
                fail_msg("%s", err.msg);
        return buf_take(&out, NULL);
}

static size_t count(const char *text, const char *what)
{
        size_t n = 0;
        for (; (text = strstr(text, what)); text++)
                n++;
        return n;
}

/* A tool message whose output is n bytes. */
static char *large_result(size_t n, char fill)
{
        char *json = malloc(n + 80);
        size_t at =
            (size_t)sprintf(json, "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"");
        memset(json + at, fill, n);
        memcpy(json + at + n, "\"}", 3);
        return json;
}

static void large_outputs_are_stubs_or_whole_as_asked(void **state)
{
        (void)state;
        struct place p;
        struct steno_view_options opt = {.size = sizeof opt};
        char *whole = large_result(60000, 'q');
        place_open(&p);
        append(&p, USER("x"), 0);
        append(&p, ASK("a"), 0);
        append(&p, whole, 0);

        char *stub = view(&p, &opt, NULL);
        assert_true(strlen(stub) < 30000);
        assert_non_null(strstr(stub, "[INCOMPLETE"));
        assert_null(strstr(stub, "\"ref\""));
        opt.outputs = STENO_OUTPUTS_FULL;
        char *full = view(&p, &opt, NULL);
        char *expected = malloc(61000);
        sprintf(expected, "[%s,%s,%s]", USER("x"), ASK("a"), whole);
        assert_string_equal(full, expected);

        /* The placeholder of a result that has a ref names it. */
        opt.outputs = STENO_OUTPUTS_STUB;
        opt.edit_strategies = "[{\"type\":\"remove_tool_result\",\"params\":{"
                              "\"keep_recent_n_tool_results\":0}}]";
        char *edited = view(&p, &opt, NULL);
        assert_non_null(strstr(edited, "\"content\":\"Done [full output: ctx_"));
        free(edited);
        free(expected);
        free(full);
        free(stub);
        free(whole);
        place_close(&p);
}

static void what_was_stored_in_full_is_a_stub_for_a_model_and_comes_back_in_full(void **state)
{
        (void)state;
        struct place p;
        struct steno_view_options opt = {.size = sizeof opt};
        char *whole = large_result(60000, 'k');
        place_open(&p);
        append(&p, ASK("a"), 0);
        append(&p, whole, STENO_KEEP_OUTPUTS);
        char *given = view(&p, &opt, NULL);
        assert_true(strlen(given) < 20000);
        free(given);
        opt.outputs = STENO_OUTPUTS_FULL;
        given = view(&p, &opt, NULL);
        assert_non_null(strstr(given, whole));
        free(given);
        opt.format = "anthropic";
        given = view(&p, &opt, NULL);
        assert_true(strlen(given) > 60000);
        free(given);
        free(whole);
        place_close(&p);
}

static void a_large_token_is_put_back_while_streaming(void **state)
{
        (void)state;
        struct place p;
        size_t n = 3 * MIB;
        char *m = malloc(n + 80);
        size_t at = (size_t)sprintf(m, "{\"role\":\"user\",\"content\":\"");
        memset(m + at, 'z', n);
        memcpy(m + at + n, "\"}", 3);
        place_open(&p);
        append(&p, m, 0);
        append(&p, USER("next"), 0);
        char *given = view(&p, NULL, NULL);
        assert_int_equal(strlen(given), strlen(m) + strlen(USER("next")) + 3);
        assert_memory_equal(given + 1, m, strlen(m));
        free(given);
        free(m);
        place_close(&p);
}

static int open_log(struct place *p)
{
        char path[600];
        snprintf(
            path, sizeof path, "%s/projects/default/conversations/c/messages.jsonl", p->dir.path);
        return open(path, O_RDWR);
}

static void damage_is_left_out_and_named(void **state)
{
        (void)state;
        struct place p;
        char line[4096], *report = NULL;
        struct steno_view_options opt = {.size = sizeof opt};
        place_open(&p);
        append(&p, USER("one"), 0);
        append(&p, USER("twotwo"), 0);
        append(&p, USER("three"), 0);
        int fd = open_log(&p);
        ssize_t n = pread(fd, line, sizeof line - 1, 0);
        assert_true(n > 0);
        line[n] = '\0';
        char *at = strstr(line, "twotwo");
        assert_non_null(at);
        assert_int_equal(pwrite(fd, "X", 1, at - line), 1);
        close(fd);

        char *given = view(&p, &opt, &report);
        assert_string_equal(given, "[" USER("one") "," USER("three") "]");
        assert_non_null(strstr(report, "\"damaged\":[2]"));
        steno_free(report);
        free(given);
        opt.format = "chat";
        given = view(&p, &opt, NULL);
        assert_int_equal(count(given, "CORRUPT_RECORD"), 1);
        free(given);
        place_close(&p);
}

/* Spoils every `step`th record that has the word "spoil" in it, from the first on. */
static void spoil(struct place *p, size_t step)
{
        int fd = open_log(p);
        size_t size = (size_t)lseek(fd, 0, SEEK_END), n = 0;
        char *text = malloc(size + 1);
        assert_int_equal(pread(fd, text, size, 0), size);
        text[size] = '\0';
        for (char *at = text; (at = strstr(at, "spoil")); at++)
                if (n++ % step == 0)
                        assert_int_equal(pwrite(fd, "X", 1, at - text), 1);
        free(text);
        close(fd);
}

static void append_many(struct place *p, size_t count)
{
        struct buf batch;
        buf_init(&batch, 0);
        for (size_t i = 0; i < count; i++)
                buf_printf(&batch, "%s%s", i ? "," : "[", USER("spoil"));
        buf_puts(&batch, "]");
        append(p, buf_cstr(&batch), 0);
        buf_release(&batch);
}

static void neighbours_in_damage_are_one_range(void **state)
{
        (void)state;
        struct place p;
        char *report = NULL;
        struct steno_view_options opt = {.size = sizeof opt};
        place_open(&p);
        append(&p, USER("one"), 0);
        append_many(&p, 700);
        append(&p, USER("end"), 0);
        append(&p, USER("spoil"), 0);
        append(&p, USER("end"), 0);
        spoil(&p, 1);
        char *given = view(&p, &opt, &report);
        assert_string_equal(given, "[" USER("one") "," USER("end") "," USER("end") "]");
        assert_non_null(
            strstr(report, "\"damaged\":[{\"from\":2,\"to\":701},703],\"damaged_count\":701,"));
        steno_free(report);
        free(given);
        place_close(&p);
}

static void a_report_names_so_many_ranges_and_counts_the_rest(void **state)
{
        (void)state;
        struct place p;
        char *report = NULL;
        struct steno_view_options opt = {.size = sizeof opt};
        place_open(&p);
        for (int i = 0; i < 3; i++)
                append_many(&p, 1000);
        append(&p, USER("end"), 0);
        spoil(&p, 2);
        free(view(&p, &opt, &report));
        assert_non_null(strstr(report, "\"damaged_count\":1500,"));
        assert_non_null(strstr(report, ",1997,1999],"));
        steno_free(report);
        place_close(&p);
}

/* There are as many seqs between the two as the jump says, and they cost nothing. */
static void a_jump_of_seqs_is_one_range(void **state)
{
        (void)state;
        struct place p;
        char line[1024], *report = NULL;
        struct steno_view_options opt = {.size = sizeof opt};
        place_open(&p);
        append(&p, USER("one"), 0);
        int n = snprintf(line, sizeof line,
            "{\"v\":1,\"seq\":5000000000,\"id\":\"far\",\"at\":\"2026-11-15T04:20:00.000Z\","
            "\"fmt\":\"openai\",\"batch\":[0,1],\"x\":{\"role\":\"user\"},\"m\":%s",
            USER("far"));
        n += snprintf(line + n, sizeof line - (size_t)n, ",\"crc\":\"%08x\"}\n",
            hash_crc32c(0, line, (size_t)n));
        int fd = open_log(&p);
        assert_true(lseek(fd, 0, SEEK_END) > 0);
        assert_int_equal(write(fd, line, (size_t)n), n);
        close(fd);
        char *given = view(&p, &opt, &report);
        assert_non_null(strstr(given, USER("one")));
        if (strstr(given, USER("far")))
                assert_non_null(strstr(report,
                    "\"damaged\":[{\"from\":2,\"to\":4999999999}],\"damaged_count\":4999999998,"));
        free(given);
        steno_free(report);
        opt.format = "chat";
        free(view(&p, &opt, NULL));
        place_close(&p);
}

/* Whatever id its own message has, and in every format that shows ids. */
static void what_replaces_a_message_is_shown_under_its_id(void **state)
{
        (void)state;
        static const char *const formats[] = {"chat", "toolmessage2", "acontext", "legacy"};
        enum { FORMATS = sizeof formats / sizeof *formats };
        static const char *const others[] = {
            "{\"id\":\"a1b\",\"role\":\"assistant\",\"content\":\"y\"}",
            "{\"role\":\"assistant\",\"content\":\"y\"}"};
        struct place p;
        place_open(&p);
        append(&p, "{\"id\":\"a1\",\"role\":\"assistant\",\"content\":\"x\"}", 0);
        for (size_t i = 0; i < 2 * FORMATS; i++) {
                const char *other = others[i / FORMATS];
                struct steno_view_options opt = {
                    .size = sizeof opt, .format = formats[i % FORMATS]};
                if (i % FORMATS == 0)
                        assert_int_equal(steno_amend(p.conv, "supersede", "a1", other,
                                             strlen(other), NULL, NULL, NULL),
                            0);
                char *report = NULL, *given = view(&p, &opt, &report);
                assert_non_null(strstr(given, "\"id\":\"a1\""));
                assert_non_null(strstr(given, "\"y\""));
                assert_null(strstr(given, "a1b"));
                assert_non_null(strstr(report, "\"ids\":[\"a1\"]"));
                steno_free(report);
                free(given);
        }
        place_close(&p);
}

/* A call, `between` messages, its result; then an end. */
static char *late_by(size_t between, char **report)
{
        struct place p;
        struct buf batch;
        place_open(&p);
        append(&p, ASK("a"), 0);
        for (size_t done = 0; done < between;) {
                size_t n = between - done < 500 ? between - done : 500;
                buf_init(&batch, 0);
                buf_putc(&batch, '[');
                for (size_t i = 0; i < n; i++)
                        buf_puts(&batch, i ? "," USER("u") : USER("u"));
                buf_putc(&batch, ']');
                append(&p, buf_cstr(&batch), 0);
                buf_release(&batch);
                done += n;
        }
        append(&p, "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"late\"}", STENO_RECORD);
        append(&p, USER("end"), 0);
        char *given = view(&p, NULL, report);
        place_close(&p);
        return given;
}

static void a_late_result_is_found_within_the_window(void **state)
{
        (void)state;
        char *report = NULL;
        char *given = late_by(PAIRING_WINDOW - 1, &report);
        static const char begins[] =
            "[" ASK("a") ","
                         "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"late\"},";
        assert_memory_equal(given, begins, sizeof begins - 1);
        assert_int_equal(count(given, "\"role\":\"user\""), PAIRING_WINDOW);
        assert_non_null(strstr(report, "\"moved\""));
        steno_free(report);
        free(given);

        given = late_by(PAIRING_WINDOW, &report);
        assert_null(strstr(given, "late"));
        assert_int_equal(count(given, "\"role\":\"tool\""), 1);
        assert_int_equal(count(given, "\"role\":\"user\""), PAIRING_WINDOW + 1);
        assert_non_null(strstr(report, "\"unrecorded\""));
        assert_non_null(strstr(report, "\"orphan\""));
        steno_free(report);
        free(given);
}

static int watch_memory(void *ctx, const void *p, size_t n)
{
        size_t *most = ctx;
        (void)p;
        (void)n;
        if (mallinfo2().uordblks > *most)
                *most = mallinfo2().uordblks;
        return 0;
}

static void an_open_call_does_not_hold_back_the_whole_history(void **state)
{
        (void)state;
        enum { MESSAGES = 20000, SIZE = 1000 };
        struct place p;
        struct buf batch;
        char text[SIZE + 1];
        memset(text, 't', SIZE);
        text[SIZE] = '\0';
        place_open(&p);
        append(&p, ASK("a"), 0);
        buf_init(&batch, 0);
        for (int done = 0; done < MESSAGES; done += 1000) {
                buf_clear(&batch);
                for (int i = 0; i < 1000; i++)
                        buf_printf(&batch, "%c{\"role\":\"user\",\"content\":\"%s\"}",
                            i ? ',' : '[', text);
                buf_putc(&batch, ']');
                append(&p, buf_cstr(&batch), 0);
        }
        buf_release(&batch);
        size_t before = mallinfo2().uordblks, most = 0;
        struct steno_error err = {0};
        assert_int_equal(steno_view(p.conv, NULL, watch_memory, &most, NULL, &err), 0);
        /* Memory holds a window of messages and what writing them takes, not twenty of them. */
        assert_true(most < before + 10 * MIB);
        place_close(&p);
}

static int stop(void *ctx, const void *p, size_t n)
{
        (void)p;
        (void)n;
        ++*(int *)ctx;
        return 1;
}

static void a_reader_that_stops_ends_the_view(void **state)
{
        (void)state;
        static const char *const formats[] = {"openai", "gemini"};
        struct place p;
        place_open(&p);
        append(&p, USER("x"), 0);
        for (size_t i = 0; i < 2; i++) {
                struct steno_error err = {0};
                struct steno_view_options opt = {.size = sizeof opt, .format = formats[i]};
                char *report = NULL;
                int calls = 0;
                assert_int_equal(
                    steno_view(p.conv, &opt, stop, &calls, &report, &err), STENO_EINTERRUPTED);
                assert_int_equal(calls, 1);
                assert_null(report);
        }
        place_close(&p);
}

static void options_of_an_older_caller_are_understood(void **state)
{
        (void)state;
        struct place p;
        struct steno_view_options opt = {.size = offsetof(struct steno_view_options, budget),
            .format = "openai",
            .budget = 1,
            .limit = 1};
        place_open(&p);
        append(&p, "[" USER("a rather long text for a budget of one") "," USER("two") "]", 0);
        char *given = view(&p, &opt, NULL);
        assert_int_equal(count(given, "\"role\":\"user\""), 2);
        free(given);
        place_close(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(large_outputs_are_stubs_or_whole_as_asked),
            cmocka_unit_test(what_was_stored_in_full_is_a_stub_for_a_model_and_comes_back_in_full),
            cmocka_unit_test(a_large_token_is_put_back_while_streaming),
            cmocka_unit_test(damage_is_left_out_and_named),
            cmocka_unit_test(neighbours_in_damage_are_one_range),
            cmocka_unit_test(a_report_names_so_many_ranges_and_counts_the_rest),
            cmocka_unit_test(a_jump_of_seqs_is_one_range),
            cmocka_unit_test(what_replaces_a_message_is_shown_under_its_id),
            cmocka_unit_test(a_late_result_is_found_within_the_window),
            cmocka_unit_test(an_open_call_does_not_hold_back_the_whole_history),
            cmocka_unit_test(a_reader_that_stops_ends_the_view),
            cmocka_unit_test(options_of_an_older_caller_are_understood),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
