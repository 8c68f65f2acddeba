/* test_describe.c - what each format's describe says about a message, or what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"

/* The about object for a message, or "!" and the error. */
static const char *about_of(const char *format, const char *json)
{
        static struct buf b;
        struct json j;
        struct arena arena;
        struct about a = {0};
        struct steno_error err = {0};
        json_init(&j);
        arena_init(&arena);
        if (!b.max)
                buf_init(&b, 0);
        buf_clear(&b);
        assert_int_equal(json_parse(&j, json, strlen(json), NULL, &err), 0);
        if (format_describe(format_find(format), &j, 0, &arena, &a, &err))
                buf_printf(&b, "!%s", err.msg);
        else
                about_write(&a, &b);
        if (a.lacks)
                buf_printf(&b, " lacks %s", a.lacks);
        if (a.id.n)
                buf_printf(&b, " id %.*s", (int)a.id.n, a.id.p);
        json_release(&j);
        arena_release(&arena);
        return buf_cstr(&b);
}

#define SAYS(format, json, about) assert_string_equal(about_of(format, json), about)

static void openai_messages_are_described(void **state)
{
        (void)state;
        SAYS("openai", "{\"role\":\"user\",\"content\":\"hi\"}", "{\"role\":\"user\"}");
        SAYS("openai", "{\"role\":\"developer\"}", "{\"role\":\"developer\"}");
        SAYS("openai", "{\"role\":\"us\\u0065r\"}", "{\"role\":\"user\"}");
        SAYS("openai", "{\"role\":\"user\",\"role\":\"system\"}", "{\"role\":\"system\"}");
        SAYS("openai",
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":"
            "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}},{\"id\":\"b\","
            "\"type\":"
            "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}",
            "{\"role\":\"assistant\",\"calls\":[\"a\",\"b\"]}");
        SAYS("openai", "{\"role\":\"assistant\",\"tool_calls\":null}", "{\"role\":\"assistant\"}");
        SAYS("openai", "{\"role\":\"tool\",\"tool_call_id\":\"a\",\"content\":\"x\"}",
            "{\"role\":\"tool\",\"answers\":[\"a\"]}");
}

static void openai_fields_of_our_own_are_noted(void **state)
{
        (void)state;
        SAYS("openai",
            "{\"id\":\"m1\",\"role\":\"tool\",\"tool_call_id\":\"a\",\"isError\":true,\"mode\":"
            "\"agent\",\"runId\":\"r1\",\"ref\":\"ctx_1\"}",
            "{\"role\":\"tool\",\"answers\":[\"a\"],\"mode\":\"agent\",\"run\":\"r1\","
            "\"ref\":\"ctx_1\",\"own\":true,\"error\":true} id m1");
        SAYS("openai", "{\"role\":\"assistant\",\"partType\":\"error\"}",
            "{\"role\":\"assistant\",\"own\":true,\"error\":true}");
        SAYS("openai", "{\"role\":\"user\",\"includeInContext\":false}",
            "{\"role\":\"user\",\"own\":true,\"off\":true}");
        SAYS("openai", "{\"role\":\"user\",\"createdAt\":\"x\"}",
            "{\"role\":\"user\",\"own\":true}");
        SAYS("openai", "{\"role\":\"user\",\"reasoning_content\":\"x\"}", "{\"role\":\"user\"}");
}

static void openai_entries_with_their_result_are_complete(void **state)
{
        (void)state;
        SAYS("openai",
            "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\",\"name\":\"f\",\"arguments\":{},"
            "\"result\":\"x\"},{\"id\":\"b\",\"name\":\"f\",\"error\":\"no\"},{\"id\":\"c\","
            "\"name\":"
            "\"f\",\"result\":null}]}",
            "{\"role\":\"assistant\",\"calls\":[\"a\",\"b\",\"c\"],\"answers\":[\"a\",\"b\"],"
            "\"own\":true}");
}

static void openai_mistakes_are_named(void **state)
{
        (void)state;
        SAYS("openai", "[]", "!a message is not an object");
        SAYS("openai", "{}", "!no role");
        SAYS("openai", "{\"role\":1}", "!role is not a string");
        SAYS("openai", "{\"role\":\"robot\"}",
            "!role \"robot\" is not one of system, developer, user, assistant, tool, function");
        SAYS("openai", "{\"role\":\"function\"}",
            "{\"role\":\"tool\",\"answers\":[\"\"]} lacks the name of a function message");
        SAYS("openai", "{\"role\":\"function\",\"name\":7}",
            "!the name of a function message is not a string");
        SAYS("openai", "{\"role\":\"tool\"}",
            "{\"role\":\"tool\",\"answers\":[\"\"]} lacks tool_call_id");
        SAYS("openai", "{\"role\":\"tool\",\"tool_call_id\":null,\"toolName\":\"f\"}",
            "{\"role\":\"tool\",\"answers\":[\"f\"],\"own\":true} lacks tool_call_id");
        SAYS("openai",
            "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}},{\"id\":\"a\","
            "\"function\":{}}]}",
            "{\"role\":\"assistant\",\"calls\":[\"f\",\"a\"]} lacks the id of a tool_calls entry");
        SAYS("openai", "{\"role\":\"tool\",\"tool_call_id\":\"\",\"toolName\":\"f\"}",
            "{\"role\":\"tool\",\"answers\":[\"f\"],\"own\":true} lacks tool_call_id");
        SAYS("openai",
            "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"\",\"function\":{\"name\":\"f\"}}]}",
            "{\"role\":\"assistant\",\"calls\":[\"f\"]} lacks the id of a tool_calls entry");
        SAYS("gemini",
            "{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"id\":\"\",\"name\":\"f\"}}]}",
            "{\"role\":\"assistant\",\"calls\":[\"f\"]}");
        SAYS("openai", "{\"role\":\"tool\",\"tool_call_id\":7}", "!tool_call_id is not a string");
        SAYS("openai", "{\"role\":\"assistant\",\"tool_calls\":{}}", "!tool_calls is not an array");
        SAYS("openai", "{\"role\":\"assistant\",\"tool_calls\":[1]}",
            "!a tool_calls entry is not an object");
        SAYS("openai", "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":1}]}",
            "!the id of a tool_calls entry is not a string");
        SAYS("openai", "{\"role\":\"user\",\"id\":5}", "!id is not a string");
        SAYS("openai", "{\"role\":\"user\",\"id\":\"\"}", "!id has 0 bytes, not 1 to 256");
        SAYS("openai", "{\"role\":\"user\",\"id\":\"a\\nb\"}", "!id contains a control character");
}

static void every_format_names_its_calls_and_answers(void **state)
{
        (void)state;
        SAYS("responses", "{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\"}",
            "{\"role\":\"assistant\",\"calls\":[\"a\"]}");
        SAYS("responses", "{\"type\":\"function_call_output\",\"call_id\":\"a\",\"output\":\"\"}",
            "{\"role\":\"tool\",\"answers\":[\"a\"]}");
        SAYS("openai",
            "{\"role\":\"assistant\",\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}}",
            "{\"role\":\"assistant\",\"calls\":[\"f\"]}");
        SAYS("openai", "{\"role\":\"function\",\"name\":\"f\",\"content\":\"x\"}",
            "{\"role\":\"tool\",\"answers\":[\"f\"]}");
        SAYS("responses", "{\"type\":\"shell_call\",\"call_id\":\"s\",\"action\":{}}",
            "{\"role\":\"assistant\",\"calls\":[\"s\"]}");
        SAYS("responses", "{\"type\":\"shell_call_output\",\"call_id\":\"s\",\"output\":[]}",
            "{\"role\":\"tool\",\"answers\":[\"s\"]}");
        SAYS("responses", "{\"type\":\"local_shell_call_output\",\"id\":\"l\",\"output\":\"\"}",
            "{\"role\":\"tool\",\"answers\":[\"l\"]} id l");
        SAYS("responses", "{\"type\":\"web_search_call\",\"id\":\"ws\"}",
            "{\"role\":\"assistant\",\"calls\":[\"ws\"],\"answers\":[\"ws\"]} id ws");
        SAYS("responses", "{\"role\":\"user\",\"content\":\"\"}", "{\"role\":\"user\"}");
        SAYS("responses", "{\"type\":\"function_call\"}",
            "{\"role\":\"assistant\",\"calls\":[\"\"]} lacks call_id");
        SAYS("anthropic",
            "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\","
            "\"is_error\":true}]}",
            "{\"role\":\"tool\",\"answers\":[\"a\"],\"error\":true}");
        SAYS("anthropic",
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\"}]}",
            "{\"role\":\"assistant\",\"calls\":[\"a\"]}");
        SAYS("anthropic", "{\"role\":\"tool\"}",
            "!role \"tool\" is not one of user, assistant, system");
        SAYS("gemini",
            "{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\"}},{\"functionCall\":"
            "{\"id\":\"i\",\"name\":\"f\"}}]}",
            "{\"role\":\"assistant\",\"calls\":[\"f\",\"i\"]}");
        SAYS("gemini", "{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"f\"}}]}",
            "{\"role\":\"tool\",\"answers\":[\"f\"]}");
        SAYS("gemini", "{\"role\":\"user\"}", "!parts is not an array");
        SAYS("acontext",
            "{\"role\":\"user\",\"parts\":[{\"type\":\"tool-result\",\"meta\":{\"tool_call_id\":"
            "\"a\"}}]}",
            "{\"role\":\"tool\",\"answers\":[\"a\"]}");
        SAYS("acontext", "{\"role\":\"user\",\"parts\":[],\"meta\":{\"original_role\":\"system\"}}",
            "{\"role\":\"system\"}");
        SAYS("toolmessage2",
            "{\"role\":\"tool\",\"content\":[{\"type\":\"tool-result\",\"toolCallId\":\"a\"},{"
            "\"type\":\"tool-result\",\"toolCallId\":\"b\",\"result\":{\"isError\":true}}]}",
            "{\"role\":\"tool\",\"answers\":[\"a\",\"b\"],\"error\":true}");
        SAYS("toolmessage",
            "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"id\":\"a\"}]}",
            "{\"role\":\"tool\",\"answers\":[\"a\"]}");
        SAYS("chat",
            "{\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[{\"id\":\"a\",\"result\":1},{"
            "\"id\":\"b\"}]}",
            "{\"role\":\"assistant\",\"calls\":[\"a\",\"b\"],\"answers\":[\"a\"]}");
        SAYS("legacy",
            "{\"role\":\"assistant\",\"content\":\"x<function_call>{\\\"name\\\":\\\"f\\\","
            "\\\"response\\\":1}</function_call><function_call>{broken</function_call>\"}",
            "{\"role\":\"assistant\",\"calls\":[\"f\"],\"answers\":[\"f\"]}");
}

/* A run stores its model's reply in the provider's format, with Steno's members in addition. */
static void every_format_says_which_run_wrote_a_message(void **state)
{
        static const char *const formats[] = {"openai", "anthropic", "gemini", "responses",
            "acontext", "chat", "toolmessage", "toolmessage2", "legacy", "uimessage",
            "modelmessage"};
        (void)state;
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
                const char *said = about_of(formats[i],
                    "{\"role\":\"assistant\",\"type\":\"message\",\"content\":[],\"parts\":[],"
                    "\"mode\":\"run\",\"runId\":\"run_1\"}");
                if (said[0] == '!') /* Gemini has another role */
                        said = about_of(formats[i],
                            "{\"role\":\"model\",\"content\":\"\",\"parts\":[],"
                            "\"mode\":\"run\",\"runId\":\"run_1\"}");
                if (!strstr(said, "\"run\":\"run_1\"") || !strstr(said, "\"mode\":\"run\""))
                        fail_msg("%s: %s", formats[i], said);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(openai_messages_are_described),
            cmocka_unit_test(openai_fields_of_our_own_are_noted),
            cmocka_unit_test(openai_entries_with_their_result_are_complete),
            cmocka_unit_test(openai_mistakes_are_named),
            cmocka_unit_test(every_format_names_its_calls_and_answers),
            cmocka_unit_test(every_format_says_which_run_wrote_a_message),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
