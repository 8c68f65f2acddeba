/* test_literal.c - conversions with their exact text, and how formats are detected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "format/format.h"
#include "steno.h"

static int sink(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

/* The conversion, or "!" and the error. In the arguments ' stands for ". */
static const char *converted(const char *from, const char *to, const char *quoted)
{
        static struct buf in, out;
        struct steno_error err = {0};
        if (!in.max) {
                buf_init(&in, 0);
                buf_init(&out, 0);
        }
        buf_clear(&in);
        buf_clear(&out);
        for (; *quoted; quoted++)
                buf_putc(&in, *quoted == '\'' ? '"' : *quoted);
        if (steno_convert(from, to, in.p, in.n, sink, &out, NULL, &err)) {
                buf_clear(&out);
                buf_printf(&out, "!%s", err.msg);
        }
        for (size_t i = 0; i < out.n; i++)
                if (out.p[i] == '"')
                        out.p[i] = '\'';
        return buf_cstr(&out);
}

#define GIVES(from, to, in, out) assert_string_equal(converted(from, to, in), out)

#define OPENAI_TWO                                                                                 \
        "[{'role':'user','content':'q'},{'role':'assistant','content':null,'tool_calls':["         \
        "{'id':'a','type':'function','function':{'name':'f','arguments':'{}'}},"                   \
        "{'id':'b','type':'function','function':{'name':'g','arguments':'{\\'x\\': 1}'}}]},"       \
        "{'role':'tool','tool_call_id':'b','content':'B'},"                                        \
        "{'role':'tool','tool_call_id':'a','content':'A'}]"

static void results_of_one_turn_join_behind_their_calls_for_anthropic(void **state)
{
        (void)state;
        GIVES("openai", "anthropic", OPENAI_TWO,
            "[{'role':'user','content':[{'type':'text','text':'q'}]},{'role':'assistant','content':"
            "["
            "{'type':'tool_use','id':'a','name':'f','input':{}},{'type':'tool_use','id':'b','name':"
            "'g','input':{'x': 1}}]},{'role':'user','content':[{'type':'tool_result','tool_use_id':"
            "'b','content':'B'},{'type':'tool_result','tool_use_id':'a','content':'A'}]}]");
}

static void several_results_in_one_message_survive(void **state)
{
        (void)state;
        static const char two[] =
            "[{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'f','input':{}},"
            "{'type':'tool_use','id':'b','name':'f','input':{}}]},{'role':'tool','content':[{'type'"
            ":"
            "'tool-result','toolCallId':'b','toolName':'f','input':{},'result':{'llmContent':'B'}},"
            "{'type':'tool-result','toolCallId':'a','toolName':'f','input':{},'result':"
            "{'llmContent':'A'}}]}]";
        GIVES("toolmessage2", "openai", two,
            "[{'role':'assistant','content':null,'tool_calls':[{'id':'a','type':'function',"
            "'function':{'name':'f','arguments':'{}'}},{'id':'b','type':'function','function':"
            "{'name':'f','arguments':'{}'}}]},{'role':'tool','tool_call_id':'b','content':'B'},"
            "{'role':'tool','tool_call_id':'a','content':'A'}]");
        GIVES("toolmessage2", "toolmessage", two,
            "[{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'f','input':{}},"
            "{'type':'tool_use','id':'b','name':'f','input':{}}]},{'role':'user','content':[{'type'"
            ":"
            "'tool_result','id':'b','name':'f','input':{},'result':{'llmContent':'B'}},{'type':"
            "'tool_result','id':'a','name':'f','input':{},'result':{'llmContent':'A'}}]}]");
}

static void entries_with_their_result_expand_for_a_model(void **state)
{
        (void)state;
        GIVES("openai", "anthropic",
            "[{'role':'user','content':'q'},{'role':'assistant','content':'','tool_calls':[{'id':"
            "'a','name':'f','arguments':{'x':1},'result':'R','steps':[]}]}]",
            "[{'role':'user','content':[{'type':'text','text':'q'}]},{'role':'assistant','content':"
            "["
            "{'type':'tool_use','id':'a','name':'f','input':{'x':1}}]},{'role':'user','content':["
            "{'type':'tool_result','tool_use_id':'a','content':'R'}]}]");
}

static void calls_without_ids_pair_in_their_order(void **state)
{
        (void)state;
        static const char gemini[] =
            "[{'role':'user','parts':[{'text':'q'}]},{'role':'model','parts':[{'functionCall':"
            "{'name':'f','args':{'n':1}}},{'functionCall':{'name':'f','args':{'n':2}}}]},{'role':"
            "'user','parts':[{'functionResponse':{'name':'f','response':{'output':'one'}}},"
            "{'functionResponse':{'name':'f','response':{'output':'two'}}}]}]";
        static const char openai[] =
            "[{'role':'user','content':'q'},{'role':'assistant','content':null,'tool_calls':[{'id':"
            "'call_made_2_0','type':'function','function':{'name':'f','arguments':'{\\'n\\':1}'}},"
            "{'id':'call_made_2_1','type':'function','function':{'name':'f','arguments':"
            "'{\\'n\\':2}'}}]},{'role':'tool','tool_call_id':'call_made_2_0','content':'one'},"
            "{'role':'tool','tool_call_id':'call_made_2_1','content':'two'}]";
        GIVES("gemini", "openai", gemini, openai);
        GIVES("openai", "gemini", openai, gemini);
}

static void items_of_a_turn_join_and_come_apart(void **state)
{
        (void)state;
        GIVES("responses", "openai",
            "[{'role':'user','content':'q'},{'type':'reasoning','id':'rs_1','summary':[]},{'type':"
            "'message','role':'assistant','content':[{'type':'output_text','text':'t',"
            "'annotations':[]}]},{'type':'function_call','call_id':'a','name':'f','arguments':'{}'}"
            ","
            "{'type':'function_call','call_id':'b','name':'f','arguments':'{}'},{'type':"
            "'function_call_output','call_id':'a','output':'A'},{'type':'function_call_output',"
            "'call_id':'b','output':'B'}]",
            "[{'role':'user','content':'q'},{'role':'assistant','content':'t','tool_calls':[{'id':"
            "'a','type':'function','function':{'name':'f','arguments':'{}'}},{'id':'b','type':"
            "'function','function':{'name':'f','arguments':'{}'}}]},{'role':'tool','tool_call_id':"
            "'a','content':'A'},{'role':'tool','tool_call_id':'b','content':'B'}]");
}

static void no_text_closes_a_legacy_tag(void **state)
{
        (void)state;
        GIVES("openai", "legacy",
            "[{'role':'assistant','content':'t','tool_calls':[{'id':'a','type':'function',"
            "'function':{'name':'f','arguments':'{}'}}]},{'role':'tool','tool_call_id':'a',"
            "'content':'</function_call><b>'}]",
            "[{'role':'assistant','content':'t<function_call>{\\'id\\':\\'a\\',\\'name\\':\\'f\\',"
            "\\'arguments\\':\\'{}\\',\\'response\\':\\'\\\\u003c/function_call>\\\\u003cb>\\'}"
            "</function_call>'}]");
        GIVES("legacy", "openai",
            "[{'role':'assistant','content':'x \\u003cfunction_call>{\\'name\\':\\'f\\',"
            "\\'arguments\\':{\\'k\\':1},\\'response\\':\\'R\\'}\\u003c/function_call> y'}]",
            "[{'role':'assistant','content':[{'type':'text','text':'x '},{'type':'text','text':"
            "' y'}],'tool_calls':[{'id':'call_made_1_0','type':'function','function':{'name':'f',"
            "'arguments':'{\\'k\\':1}'}}]},{'role':'tool','tool_call_id':'call_made_1_0','content':"
            "'R'}]");
}

static void reused_ids_become_unique_where_they_must(void **state)
{
        (void)state;
        GIVES("openai", "anthropic",
            "[{'role':'user','content':'q'},{'role':'assistant','tool_calls':[{'id':'call_0','type'"
            ":"
            "'function','function':{'name':'f','arguments':'{}'}}]},{'role':'tool','tool_call_id':"
            "'call_0','content':'1'},{'role':'assistant','tool_calls':[{'id':'call_0','type':"
            "'function','function':{'name':'f','arguments':'{}'}}]},{'role':'tool','tool_call_id':"
            "'call_0','content':'2'}]",
            "[{'role':'user','content':[{'type':'text','text':'q'}]},{'role':'assistant','content':"
            "["
            "{'type':'tool_use','id':'call_0','name':'f','input':{}}]},{'role':'user','content':["
            "{'type':'tool_result','tool_use_id':'call_0','content':'1'}]},{'role':'assistant',"
            "'content':[{'type':'tool_use','id':'call_0_4_0','name':'f','input':{}}]},{'role':'"
            "user',"
            "'content':[{'type':'tool_result','tool_use_id':'call_0_4_0','content':'2'}]}]");
}

#define CALL(id) "{'id':'" id "','type':'function','function':{'name':'f','arguments':'{}'}}"
#define TOOL(id) "{'role':'tool','tool_call_id':'" id "','content':'" id "'}"
#define USE(id) "{'type':'tool_use','id':'" id "','name':'f','input':{}}"
#define GAVE(id, text) "{'type':'tool_result','tool_use_id':'" id "','content':'" text "'}"
/* Two calls and their results, in openai's form and in anthropic's, where they have other ids. */
#define OPENAI_TURN(a, b)                                                                          \
        "{'role':'assistant','tool_calls':[" CALL(a) "," CALL(b) "]}," TOOL(a) "," TOOL(b)
#define ANTHROPIC_TURN(a, b, id_a, id_b)                                                           \
        "{'role':'assistant','content':[" USE(id_a) "," USE(                                       \
            id_b) "]},{'role':'user','content':[" GAVE(id_a, a) "," GAVE(id_b, b) "]}"

static void a_made_id_is_none_that_is_there(void **state)
{
        (void)state;
        static const char in[] = "[{'role':'user','content':'q'}," OPENAI_TURN(
            "a", "a_5_0") "," OPENAI_TURN("a", "a_5_0_2") "]";
        static const char out[] =
            "[{'role':'user','content':[{'type':'text','text':'q'}]}," ANTHROPIC_TURN("a", "a_5_0",
                "a", "a_5_0") "," ANTHROPIC_TURN("a", "a_5_0_2", "a_5_0_2", "a_5_0_2_5_1") "]";
        GIVES("openai", "anthropic", in, out);
}

static void images_survive_in_results(void **state)
{
        (void)state;
        GIVES("anthropic", "openai",
            "[{'role':'assistant','content':[{'type':'tool_use','id':'a','name':'shot','input':{}}]"
            "},"
            "{'role':'user','content':[{'type':'tool_result','tool_use_id':'a','content':[{'type':"
            "'image','source':{'type':'base64','media_type':'image/png','data':'AAAA'}}]}]}]",
            "[{'role':'assistant','content':null,'tool_calls':[{'id':'a','type':'function',"
            "'function':{'name':'shot','arguments':'{}'}}]},{'role':'tool','tool_call_id':'a',"
            "'content':''},{'role':'user','content':[{'type':'image_url','image_url':{'url':"
            "'data:image/png;base64,AAAA'}}]}]");
}

static void an_error_of_a_tool_stays_an_error(void **state)
{
        (void)state;
        static const char *const ANTHROPIC =
            "[{'role':'user','content':[{'type':'text','text':'q'}]},{'role':'assistant','content':"
            "["
            "{'type':'tool_use','id':'a','name':'f','input':{}}]},{'role':'user','content':["
            "{'type':'tool_result','tool_use_id':'a','content':'no','is_error':true}]}]";
        static const char *const GEMINI =
            "[{'role':'user','parts':[{'text':'q'}]},{'role':'model','parts':[{'functionCall':"
            "{'id':'a','name':'f','args':{}}}]},{'role':'user','parts':[{'functionResponse':"
            "{'id':'a','name':'f','response':{'error':'no'}}}]}]";
        GIVES("anthropic", "gemini", ANTHROPIC, GEMINI);
        GIVES("gemini", "anthropic", GEMINI, ANTHROPIC);
}

static void a_picture_stays_a_picture_with_its_name(void **state)
{
        (void)state;
        static const char *const GEMINI =
            "[{'role':'user','parts':[{'inlineData':{'mimeType':'image/png','data':'aGk=',"
            "'displayName':'n'}}]}]";
        static const char *const ANTHROPIC =
            "[{'role':'user','content':[{'type':'image','source':{'type':'base64','media_type':"
            "'image/png','data':'aGk='},'title':'n'}]}]";
        GIVES("gemini", "anthropic", GEMINI, ANTHROPIC);
        GIVES("anthropic", "gemini", ANTHROPIC, GEMINI);
}

static void mistakes_name_the_message(void **state)
{
        (void)state;
        GIVES("openai", "chat", "[{'role':'user','content':'q'},{'role':'robot'}]",
            "!message 2: role 'robot' is not one of system, developer, user, assistant, tool, "
            "function");
        GIVES("openai", "chat", "[{'role':'tool','tool_call_id':'z','content':''}]",
            "!message 1: result 'z' has no call");
        GIVES("openai", "klingon", "[]",
            "!no format 'klingon': use one of openai, responses, anthropic, gemini, acontext, "
            "toolmessage2, toolmessage, chat, legacy, uimessage, modelmessage, langchain");
        GIVES("openai", "chat", "7", "!a history is an array of messages");
        GIVES(NULL, "openai", "[{'a':1}]",
            "!the messages are in no known format (openai, responses, anthropic, gemini, "
            "acontext, toolmessage2, toolmessage, chat, legacy, uimessage, modelmessage, "
            "langchain)");
}

static void formats_are_told_apart(void **state)
{
        (void)state;
        static const struct {
                const char *format;
                const char *json;
        } cases[] = {
            {"openai", "[{\"role\":\"user\",\"content\":\"x\"}]"},
            {"openai", "[]"},
            {"openai", "[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"tool\",\"tool_call_id\":"
                       "\"a\"}]"},
            {"responses", "[{\"role\":\"user\",\"content\":\"x\"},{\"type\":\"function_call\"}]"},
            {"anthropic",
                "[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":[{"
                "\"type\":\"tool_use\",\"id\":\"a\"}]},{\"role\":\"user\",\"content\":[{\"type\":"
                "\"tool_result\",\"tool_use_id\":\"a\"}]}]"},
            {"gemini", "[{\"role\":\"user\",\"parts\":[{\"text\":\"x\"}]}]"},
            {"acontext", "[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"x\"}]}]"},
            {"toolmessage2",
                "[{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\"}]},{"
                "\"role\":\"tool\",\"content\":[{\"type\":\"tool-result\"}]}]"},
            {"toolmessage",
                "[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"id\":\"a\"}]}]"},
            {"chat", "[{\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[]}]"},
            {"legacy", "[{\"role\":\"assistant\",\"content\":\"<function_call>{}\"}]"},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct json j;
                struct steno_error err;
                json_init(&j);
                assert_int_equal(
                    json_parse(&j, cases[i].json, strlen(cases[i].json), NULL, &err), 0);
                const struct format *f = format_detect(&j, 0);
                assert_non_null(f);
                assert_string_equal(f->name, cases[i].format);
                json_release(&j);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(results_of_one_turn_join_behind_their_calls_for_anthropic),
            cmocka_unit_test(several_results_in_one_message_survive),
            cmocka_unit_test(entries_with_their_result_expand_for_a_model),
            cmocka_unit_test(calls_without_ids_pair_in_their_order),
            cmocka_unit_test(items_of_a_turn_join_and_come_apart),
            cmocka_unit_test(no_text_closes_a_legacy_tag),
            cmocka_unit_test(reused_ids_become_unique_where_they_must),
            cmocka_unit_test(a_made_id_is_none_that_is_there),
            cmocka_unit_test(images_survive_in_results),
            cmocka_unit_test(an_error_of_a_tool_stays_an_error),
            cmocka_unit_test(a_picture_stays_a_picture_with_its_name),
            cmocka_unit_test(mistakes_name_the_message),
            cmocka_unit_test(formats_are_told_apart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
