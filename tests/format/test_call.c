/* Every reader finds the same call and result, whatever format they came in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"
#include "model/pairing.h"
#include "model/token.h"

static struct arena arena;
static struct json tape;

static struct message read_as(const char *format, const char *text)
{
        struct message m = {0};
        struct steno_error err = {0};
        if (json_parse(&tape, text, strlen(text), NULL, &err) ||
            format_read_message(format_find(format), &tape, 0, 7, &arena, &m, &err))
                fail_msg("%s: %s: %s", format, text, err.msg);
        return m;
}

static const struct part *nth_of(const struct message *m, enum part_kind kind, size_t n)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == kind && n-- == 0)
                        return &m->parts[i];
        return NULL;
}

/* ---- the raw output ---- */

static const struct {
        const char *format;
        const char *message; /* %s: the output's place */
        bool object;         /* an object must stand there */
} PLACES[] = {
    {"openai", "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":%s}", false},
    {"openai",
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c\",\"name\":\"f\","
        "\"arguments\":\"{}\",\"result\":%s,\"steps\":[1],\"invokedAt\":5}]}",
        false},
    {"openai",
        "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"},\"error\":%s}]}",
        false},
    {"responses", "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":%s}", false},
    {"anthropic",
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\","
        "\"content\":%s}]}",
        false},
    {"gemini",
        "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"f\",\"response\":%s}}]}",
        true},
    {"gemini",
        "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"f\","
        "\"response\":{\"output\":%s}}}]}",
        false},
    {"acontext",
        "{\"role\":\"user\",\"parts\":[{\"type\":\"tool-result\",\"text\":%s,"
        "\"meta\":{\"tool_call_id\":\"c\"}}]}",
        false},
    {"toolmessage2",
        "{\"role\":\"tool\",\"content\":[{\"type\":\"tool-result\",\"toolCallId\":\"c\","
        "\"toolName\":\"f\",\"input\":{},\"result\":{\"llmContent\":%s,\"isError\":false}}]}",
        false},
    {"toolmessage2",
        "{\"role\":\"tool\",\"content\":[{\"type\":\"tool-result\",\"toolCallId\":\"c\","
        "\"toolName\":\"f\",\"input\":{},\"result\":%s}]}",
        false},
    {"toolmessage",
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"id\":\"c\",\"name\":\"f\","
        "\"input\":{},\"result\":{\"llmContent\":%s}}]}",
        false},
    {"chat",
        "{\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[{\"id\":\"c\",\"name\":\"f\","
        "\"arguments\":\"{}\",\"state\":\"complete\",\"result\":%s}]}",
        false},
};

static void every_reader_says_where_the_output_of_a_result_stands(void **state)
{
        (void)state;
        static const char *const outputs[] = {"\"one\\u0020\\/ two\"", "\"\"",
            "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\",\"x\":1}]",
            "{\"a\":1.50}", "{\"output\":\"t\"}"};
        for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
                for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
                        bool object = outputs[k][0] == '{', string = outputs[k][0] == '"';
                        bool inner = strstr(PLACES[i].message, "{\"output\":%s}") != NULL;
                        if ((PLACES[i].object && (!object || k == 4)) ||
                            ((inner || strcmp(PLACES[i].format, "acontext") == 0) && !string))
                                continue;
                        char text[600];
                        snprintf(text, sizeof text, PLACES[i].message, outputs[k]);
                        arena_reset(&arena);
                        struct message m = read_as(PLACES[i].format, text);
                        const struct part *p = nth_of(&m, PART_RESULT, 0);
                        assert_non_null(p);
                        if (!p->output_raw.p || !str_is(p->output_raw, outputs[k]))
                                fail_msg("%s: %s: \"%.*s\"", PLACES[i].format, text,
                                    (int)p->output_raw.n, p->output_raw.p ? p->output_raw.p : "");
                        assert_true(
                            p->output_raw.p >= text && p->output_raw.p < text + strlen(text));
                        assert_int_equal(p->output_object, PLACES[i].object);
                }
        }
}

static void a_result_that_was_replaced_has_no_raw_output(void **state)
{
        (void)state;
        struct message m =
            read_as("openai", "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"x\"}");
        message_set_output(&m, &m.parts[0], STR("y"));
        assert_null(m.parts[0].output_raw.p);
}

static void the_server_and_the_exit_code_of_a_result_are_known(void **state)
{
        (void)state;
        struct message m = read_as("openai",
            "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"x\",\"serverName\":\"build\","
            "\"exitCode\":2}");
        assert_true(str_is(m.parts[0].server, "build"));
        assert_true(str_is(m.parts[0].exit_code, "2"));
}

/* ---- ids ---- */

static struct str write_all(const char *format, struct message *list, size_t count, bool valid)
{
        static char kept[4096];
        struct history h = {list, count}, out;
        struct repair_options opt = {.synthesize = valid};
        struct buf b;
        struct steno_error err = {0};
        buf_init(&b, 0);
        struct writer w = {.out = &b, .arena = &arena, .valid = valid};
        assert_int_equal(repair_history(&h, &opt, &arena, &out), 0);
        assert_int_equal(format_write_history(format_find(format), &w, &out, &err), 0);
        snprintf(kept, sizeof kept, "%.*s", (int)b.n, b.p);
        buf_release(&b);
        return str_of(kept);
}

static bool holds(struct str text, const char *what)
{
        return memmem(text.p, text.n, what, strlen(what));
}

/* Gemini 3 refuses calls of the current turn that have no signature. */
static void calls_without_a_signature_are_marked_for_gemini_3_in_the_current_turn(void **state)
{
        (void)state;
        static const char *const texts[] = {"{\"role\":\"user\",\"content\":\"go\"}",
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":"
            "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":\"b\","
            "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
            "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}",
            "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"x\"}"};
        static const struct {
                const char *via;
                size_t count, marks; /* messages, the first of them twice for an earlier turn */
        } cases[] = {{"https://g gemini-3-pro", 4, 1}, {"https://g models/gemini-3-flash", 4, 1},
            {"https://g gemini-2.5-pro", 4, 0}, {"https://g gemini-3-pro", 5, 0}, {NULL, 4, 0}};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct message list[5];
                struct buf b;
                struct steno_error err = {0};
                size_t marks = 0;
                arena_reset(&arena);
                for (size_t k = 0; k < cases[i].count; k++) {
                        list[k] = read_as("openai", texts[k % 4]);
                        list[k].seq = k + 1;
                }
                struct history h = {list, cases[i].count};
                buf_init(&b, 0);
                struct writer w = {
                    .out = &b, .arena = &arena, .valid = true, .via = str_of(cases[i].via)};
                assert_int_equal(repair_link(&h, &arena), 0);
                assert_int_equal(format_write_history(&format_gemini, &w, &h, &err), 0);
                for (const char *at = buf_cstr(&b);
                     (at = strstr(at, "\"skip_thought_signature_validator\"")); at++)
                        marks++;
                if (marks != cases[i].marks)
                        fail_msg("%zu: %s", i, buf_cstr(&b));
                buf_release(&b);
        }
}

/* Thinking is signed or encrypted for the endpoint that made it; any other endpoint would refuse
 * it. */
static void thinking_of_either_kind_goes_back_only_to_the_endpoint_that_made_it(void **state)
{
        (void)state;
        static const char *const texts[] = {"{\"role\":\"user\",\"content\":\"go\"}",
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\","
            "\"signature\":\"c2ln\"},{\"type\":\"redacted_thinking\",\"data\":\"ZW5j\"},"
            "{\"type\":\"text\",\"text\":\"said\"}]}"};
        static const struct {
                const char *made, *reader;
                bool kept;
        } cases[] = {{"https://a m", "https://a m", true}, {"https://a m", "https://a n", true},
            {"https://a m", "https://b m", false}, {"https://a m", NULL, true},
            {NULL, "https://b m", true}};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct message list[2];
                struct buf b;
                struct steno_error err = {0};
                arena_reset(&arena);
                for (size_t k = 0; k < 2; k++) {
                        list[k] = read_as("anthropic", texts[k]);
                        list[k].seq = k + 1;
                }
                list[1].via = str_of(cases[i].made);
                struct history h = {list, 2};
                buf_init(&b, 0);
                struct writer w = {
                    .out = &b, .arena = &arena, .valid = true, .via = str_of(cases[i].reader)};
                assert_int_equal(repair_link(&h, &arena), 0);
                assert_int_equal(format_write_history(&format_anthropic, &w, &h, &err), 0);
                struct str out = buf_str(&b);
                if (holds(out, "\"hm\"") != cases[i].kept ||
                    holds(out, "\"ZW5j\"") != cases[i].kept || !holds(out, "\"said\""))
                        fail_msg("%zu: %s", i, buf_cstr(&b));
                buf_release(&b);
        }
}

static void each_block_is_written_once_whether_valid_or_not(void **state)
{
        (void)state;
        static const char *const formats[] = {"openai", "responses", "anthropic", "gemini",
            "acontext", "toolmessage2", "toolmessage", "chat", "uimessage", "modelmessage",
            "langchain"};
        for (size_t i = 0; i < 2 * (sizeof formats / sizeof *formats); i++) {
                arena_reset(&arena);
                struct message m = read_as("openai",
                    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"first\"},{"
                    "\"type\":\"text\",\"text\":\"second\"}]}");
                struct str text = write_all(formats[i / 2], &m, 1, i % 2);
                const char *at = strstr(text.p, "first");
                if (!at || strstr(at + 1, "first") || !strstr(at, "second"))
                        fail_msg("%s: %s", formats[i / 2], text.p);
        }
}

/* A call and its result, both without an id, as they came. */
static const char CALL[] = "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"type\":"
                           "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}";
static const char RESULT[] = "{\"role\":\"tool\",\"toolName\":\"f\",\"content\":\"done\"}";

static void ids_that_were_given_are_those_of_every_view(void **state)
{
        (void)state;
        static const char *const formats[] = {"openai", "responses", "anthropic", "gemini",
            "acontext", "toolmessage2", "toolmessage", "chat"};
        struct str id = STR("call_given");
        struct message_ids calls = {.calls = &id, .call_count = 1};
        struct message_ids answers = {.answers = &id, .answer_count = 1};
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
                arena_reset(&arena);
                struct message list[2] = {read_as("openai", CALL), read_as("openai", RESULT)};
                list[0].seq = 4;
                list[1].seq = 9;
                assert_int_equal(message_give_ids(&list[0], &calls, &arena), 0);
                assert_int_equal(message_give_ids(&list[1], &answers, &arena), 0);
                struct str out = write_all(formats[i], list, 2, true);
                if (!holds(out, "\"call_given\"") || !holds(out, "done"))
                        fail_msg("%s: %.*s", formats[i], (int)out.n, out.p);
                assert_false(holds(out, "No result was recorded"));
        }
}

static void a_message_that_was_given_an_id_comes_back_as_it_came(void **state)
{
        (void)state;
        struct str id = STR("call_given");
        struct message_ids calls = {.calls = &id, .call_count = 1};
        struct message m = read_as("openai", CALL);
        assert_int_equal(message_give_ids(&m, &calls, &arena), 0);
        struct str out = write_all("openai", &m, 1, false);
        assert_true(holds(out, CALL));
        assert_false(holds(out, "call_given"));
}

static void a_call_that_has_an_id_keeps_it(void **state)
{
        (void)state;
        struct str ids[2] = {STR("one"), STR("two")};
        struct message_ids given = {.calls = ids, .call_count = 2};
        struct message m = read_as("openai",
            "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"own\",\"type\":\"function\","
            "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"type\":\"function\","
            "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"type\":\"function\","
            "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}");
        assert_int_equal(message_give_ids(&m, &given, &arena), 0);
        assert_true(str_is(nth_of(&m, PART_CALL, 0)->id, "own"));
        assert_true(str_is(nth_of(&m, PART_CALL, 1)->id, "two"));
        assert_false(nth_of(&m, PART_CALL, 2)->id.n > 0);
}

static void an_id_that_nobody_gave_is_made_of_the_seq_of_its_record(void **state)
{
        (void)state;
        static const char *const formats[] = {"openai", "responses", "anthropic", "chat"};
        static const char ITEM[] =
            "{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}";
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
                arena_reset(&arena);
                /* Two items of one turn: each call is counted in its own record. */
                struct message list[2] = {read_as("responses", ITEM), read_as("responses", ITEM)};
                list[0].seq = 11;
                list[1].seq = 12;
                struct str out = write_all(formats[i], list, 2, true);
                if (!holds(out, "\"call_made_11_0\"") || !holds(out, "\"call_made_12_0\""))
                        fail_msg("%s: %.*s", formats[i], (int)out.n, out.p);
        }
}

static void a_result_under_a_derived_id_answers_its_call(void **state)
{
        (void)state;
        struct message list[2] = {read_as("openai", CALL),
            read_as("openai",
                "{\"role\":\"tool\",\"tool_call_id\":\"call_made_4_0\",\"content\":\"done\"}")};
        list[0].seq = 4;
        list[1].seq = 9;
        struct str out = write_all("openai", list, 2, true);
        assert_true(holds(out, "done"));
        assert_false(holds(out, "No result was recorded"));
}

static int setup(void **state)
{
        (void)state;
        arena_init(&arena);
        json_init(&tape);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        json_release(&tape);
        arena_release(&arena);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                every_reader_says_where_the_output_of_a_result_stands, setup, teardown),
            cmocka_unit_test_setup_teardown(
                a_result_that_was_replaced_has_no_raw_output, setup, teardown),
            cmocka_unit_test_setup_teardown(
                the_server_and_the_exit_code_of_a_result_are_known, setup, teardown),
            cmocka_unit_test_setup_teardown(
                ids_that_were_given_are_those_of_every_view, setup, teardown),
            cmocka_unit_test_setup_teardown(
                a_message_that_was_given_an_id_comes_back_as_it_came, setup, teardown),
            cmocka_unit_test_setup_teardown(a_call_that_has_an_id_keeps_it, setup, teardown),
            cmocka_unit_test_setup_teardown(
                each_block_is_written_once_whether_valid_or_not, setup, teardown),
            cmocka_unit_test_setup_teardown(
                calls_without_a_signature_are_marked_for_gemini_3_in_the_current_turn, setup,
                teardown),
            cmocka_unit_test_setup_teardown(
                thinking_of_either_kind_goes_back_only_to_the_endpoint_that_made_it, setup,
                teardown),
            cmocka_unit_test_setup_teardown(
                an_id_that_nobody_gave_is_made_of_the_seq_of_its_record, setup, teardown),
            cmocka_unit_test_setup_teardown(
                a_result_under_a_derived_id_answers_its_call, setup, teardown),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
