/*
 * test_quick.c - views read what nearly all records say about their messages without a parser. If a
 * new member of every record ended that, views would be four times slower, and no other test would
 * fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/quick_about.h"
#include "base/arena.h"
#include "base/str.h"
#include "steno.h"
#include "support/scratch.h"

static const char *const MESSAGES[] = {
    "{\"role\":\"user\",\"content\":\"q\"}",
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":\"function\","
    "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":\"b\",\"type\":\"function\","
    "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
    "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"r\"}",
    "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"r\"}",
    "{\"role\":\"assistant\",\"content\":\"done\"}",
    "{\"role\":\"system\",\"content\":\"be kind\"}",
};
#define COUNT (sizeof MESSAGES / sizeof *MESSAGES)

static void write_log(const char *path)
{
        struct steno_store *store;
        struct steno_conv *conv;
        assert_int_equal(steno_open(path, NULL, &store, NULL), 0);
        assert_int_equal(steno_conv_create(store, NULL, "c", NULL, &conv, NULL), 0);
        for (size_t i = 0; i < COUNT; i++)
                assert_int_equal(
                    steno_append(conv, MESSAGES[i], strlen(MESSAGES[i]), NULL, NULL, NULL), 0);
        steno_conv_close(conv);
        steno_close(store);
}

/* The record's x, as it stands in its line. */
static struct str about_in(const char *line)
{
        const char *from = strstr(line, ",\"x\":"), *to = strstr(line, ",\"m\":");
        assert_true(from && to && to > from);
        from += strlen(",\"x\":");
        return str_span(from, (size_t)(to - from));
}

static void assert_same(const struct about *got, const struct about *want)
{
        assert_true(str_eq(got->role, want->role));
        assert_int_equal(got->plain, want->plain);
        assert_int_equal(got->own_fields, want->own_fields);
        assert_int_equal(got->call_count, want->call_count);
        assert_int_equal(got->answer_count, want->answer_count);
        for (size_t i = 0; i < want->call_count; i++)
                assert_true(str_eq(got->calls[i], want->calls[i]));
        for (size_t i = 0; i < want->answer_count; i++)
                assert_true(str_eq(got->answers[i], want->answers[i]));
}

static void the_usual_records_are_read_without_a_parser(void **state)
{
        (void)state;
        struct scratch scratch;
        struct quick_about quick;
        char path[400], line[4096];
        size_t count = 0;
        assert_int_equal(scratch_make(&scratch), 0);
        write_log(scratch.path);
        snprintf(
            path, sizeof path, "%s/projects/default/conversations/c/messages.jsonl", scratch.path);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        quick_about_init(&quick);
        while (fgets(line, sizeof line, f)) {
                struct str x = about_in(line);
                struct arena arena;
                struct about want;
                arena_init(&arena);
                assert_int_equal(about_read(x, &arena, &want, NULL), 0);
                for (int again = 0; again < 2; again++) {
                        const struct about *got = quick_about_read(&quick, x);
                        assert_non_null(got);
                        assert_same(got, &want);
                }
                arena_release(&arena);
                count++;
        }
        fclose(f);
        assert_int_equal(count, COUNT);
        assert_int_equal(scratch_remove(&scratch), 0);
}

static void an_end_that_is_not_usual_is_left_to_the_parser(void **state)
{
        (void)state;
        static const char *const ENDS[] = {"", "}}", ",\"salt\":\"short\"}", ",\"other\":1}",
            ",\"salt\":\"0123456789abcdef\\u0030123456789ab\"}",
            ",\"leaf\":\"x\",\"salt\":\"0123456789abcdef0123456789abcdef\"}"};
        struct quick_about quick;
        quick_about_init(&quick);
        for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
                char x[200];
                snprintf(x, sizeof x, "{\"len\":9,\"plain\":3,\"role\":\"user\"%s", ENDS[i]);
                if (quick_about_read(&quick, str_of(x)))
                        fail_msg("%s was read", x);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_usual_records_are_read_without_a_parser),
            cmocka_unit_test(an_end_that_is_not_usual_is_left_to_the_parser),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
