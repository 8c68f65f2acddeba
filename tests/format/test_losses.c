/*
 * test_losses.c - what a writer changes or leaves out it reports, each thing by itself.
 *
 * Random histories (test_roundtrip.c) reach the rare ones too seldom, or not at all. A row is the
 * smallest history that makes a writer say something, and all that is said of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "format/format.h"
#include "format/report.h"
#include "model/repair.h"
#include "steno.h"

static const char NO_PLACE[] = "the format has no place for it";
static const char VIEW[] = "view:";

struct row {
        const char *from;   /* and `in`: NULL for those of the row above */
        const char *in;     /* with ' for " */
        const char *to;     /* or "view:": as a view writes it, also of its own format */
        const char *report; /* "!seq class" of repairs, "seq field: why" of losses; without a why
                               there is no place for it */
};

static const struct row ROWS[] = {
    {"acontext", "[{'role':'assistant','parts':[{'type':'tool-call','meta':{'type':'f'}}]}]",
        "anthropic",
        "!1 unrecorded; 1 name: absent, written as unknown; 1 message: a turn of the user was put "
        "before it; 1 tool_calls.function: the format has no place for members of the inner "
        "object"},
    {"anthropic", "[{'role':'user','content':null}]", "acontext",
        "1 content: no text, written as its JSON"},
    {"anthropic", "[{'role':'user','content':'h'},{'role':'user','content':'t'}]", "gemini",
        "2 message: joined with the one before it"},
    {NULL, NULL, "view:anthropic", "2 message: joined with the one before it"},
    {"anthropic", "[{'role':'assistant','content':[{'type':'redacted_thinking','data':'Z'}]}]",
        "toolmessage", "1 redacted_thinking"},
    {"anthropic",
        "[{'role':'assistant','content':[{'type':'text','text':'a'},{},{'type':'text','text':'b'}]}"
        "]",
        "responses",
        "1 part: a part of a type that the format does not have; 1 message: split into several "
        "items"},
    {"anthropic",
        "[{'role':'assistant','content':[{'type':'thinking','thinking':'a'},{'type':'thinking','"
        "thinking':'b'}]}]",
        "chat", "1 thinking: several, joined"},
    {"anthropic",
        "[{'role':'assistant','content':[{'type':'tool_use','id':'k'}]},{'role':'user','content':[{"
        "'type':'tool_result','tool_use_id':'k','content':[{'type':'thinking','thinking':'t'}]}]}]",
        "chat", "2 thinking"},
    {"anthropic",
        "[{'role':'assistant','content':[{'type':'tool_use','id':'k'}]},{'role':'user','content':[{"
        "'type':'tool_result','tool_use_id':'k','content':[{'type':'text','text':'b','x':null}]}]}"
        "]",
        "acontext", "2 content.x"},
    {NULL, NULL, "gemini",
        "1 name: absent, written as unknown; 1 message: a turn of the user was put before it; 2 "
        "content.x"},
    {NULL, NULL, "openai", "1 name: absent, written as unknown; 2 content.x"},
    {"anthropic",
        "[{'role':'assistant','content':[{'type':'tool_use','id':'k'}]},{'role':'user','content':[{"
        "'type':'tool_result','tool_use_id':'k','content':[{'type':'thinking','thinking':'t'},{'"
        "type':'text','text':'a'}]}]}]",
        "openai", "1 name: absent, written as unknown; 2 thinking"},
    {"anthropic",
        "[{'role':'assistant','content':[{'type':'tool_use','id':'k'}]},{'role':'user','content':[{"
        "'type':'tool_result','tool_use_id':'k','content':[{'type':'image','source':{'type':'"
        "base64','media_type':'i','data':'i'},'x':{}}]}]}]",
        "acontext", "2 image.x; 2 image: moved into a user message after it"},
    {"anthropic",
        "[{'role':'user','content':'u'},{'role':'assistant','content':[{'type':'tool_use','id':'k',"
        "'name':'f','input':{}},{'type':'tool_use','id':'l','name':'f','input':{}}]},{'role':'user'"
        ",'id':'m','x':1,'content':[{'type':'tool_result','tool_use_id':'k','content':'r'},{'type':"
        "'tool_result','tool_use_id':'l','content':'r'}]}]",
        "openai", "3 id; 3 x"},
    {"chat", "[{'role':'assistant','content':'a'},{'role':'assistant','content':'b'}]", "responses",
        "2 message: may come back joined with the one before"},
    {"chat", "[{'role':'assistant','toolCalls':[{'x':'x'}]}]", "responses",
        "!1 unrecorded; 1 name: absent, written as unknown; 1 tool_calls.x"},
    {"chat", "[{'role':'assistant','toolCalls':[{'id':'k:'}]}]", "anthropic",
        "!1 unrecorded; !1 renamed; 1 name: absent, written as unknown; 1 message: a turn of the "
        "user was put before it"},
    {"chat", "[{'role':'assistant','toolCalls':[{'error':''}]}]", "openai",
        "1 name: absent, written as unknown; 1 is_error"},
    {NULL, NULL, "responses", "1 name: absent, written as unknown; 1 is_error"},
    {"chat", "[{'role':'assistant','toolCalls':[{'steps':[]}]}]", "acontext", "1 steps"},
    {NULL, NULL, "anthropic",
        "!1 unrecorded; 1 name: absent, written as unknown; 1 message: a turn of the user was put "
        "before it; 1 steps"},
    {NULL, NULL, "gemini",
        "!1 unrecorded; 1 name: absent, written as unknown; 1 message: a turn of the user was put "
        "before it; 1 steps"},
    {NULL, NULL, "legacy", "1 steps"},
    {NULL, NULL, "openai", "!1 unrecorded; 1 name: absent, written as unknown; 1 steps"},
    {NULL, NULL, "responses", "!1 unrecorded; 1 name: absent, written as unknown; 1 steps"},
    {NULL, NULL, "toolmessage", "1 steps"},
    {"chat", "[{'role':'assistant','toolCalls':[{'arguments':''}]}]", "toolmessage",
        "1 arguments: empty, written as {}"},
    {"chat", "[{'role':'assistant','toolCalls':[{'arguments':{}}]}]", "acontext",
        "1 arguments: an object, written as text"},
    {"chat", "[{'role':'assistant','toolCalls':[{'state':'interrupted','result':'r'}]}]",
        "anthropic",
        "1 name: absent, written as unknown; 1 message: a turn of the user was put before it; 1 "
        "state"},
    {NULL, NULL, "gemini",
        "1 name: absent, written as unknown; 1 message: a turn of the user was put before it; 1 "
        "state"},
    {NULL, NULL, "legacy", "1 state"},
    {NULL, NULL, "openai", "1 name: absent, written as unknown; 1 state"},
    {NULL, NULL, "responses", "1 name: absent, written as unknown; 1 state"},
    {NULL, NULL, "toolmessage", "1 state"},
    {"gemini", "[{'parts':[{}]}]", "anthropic",
        "1 part: a part of a type that the format does not have"},
    {NULL, NULL, "chat", "1 part: a part of a type that the format does not have"},
    {"gemini", "[{'id':'m','parts':[]}]", "openai", "1 id"},
    {"gemini", "[{'parts':[{'text':''},{'text':''}]}]", "chat", "1 content: several texts, joined"},
    {"gemini", "[{'parts':[{'text':'\\u0000','x':'A'}]}]", "anthropic",
        "1 content: blank text, which the format refuses; 1 content.x"},
    {NULL, NULL, "chat", "1 content.x"},
    {NULL, NULL, "legacy", "1 content.x"},
    {NULL, NULL, "toolmessage", "1 content.x"},
    {NULL, NULL, "view:gemini", "1 content: blank text, which the format refuses; 1 content.x"},
    {"gemini", "[{'role':'model','parts':[{'text':'a '}]}]", "anthropic",
        "1 content: white space at the end, which the format refuses; 1 message: a turn of "
        "the user was put before it"},
    {"gemini", "[{'role':'model','parts':[{'text':'s','x':1.0}]}]", "legacy", "1 content.x"},
    {"gemini", "[{'parts':[{'fileData':{'mimeType':'i','fileUri':'https://x/g'}}]}]", "anthropic",
        "1 mimeType"},
    {NULL, NULL, "responses", "1 mimeType"},
    {"gemini", "[{'parts':[{'fileData':{'mimeType':'image/png','fileUri':'g'}}]}]", "legacy",
        "1 mimeType"},
    {"gemini", "[{'parts':[{'text':'h','thought':true,'thoughtSignature':'c'}]}]", "chat",
        "1 signature"},
    {NULL, NULL, "toolmessage", "1 signature"},
    {"gemini", "[{'parts':[{'inlineData':{'mimeType':'i','data':'i'}},{'text':'<'}]}]", "chat",
        "1 content: in another order"},
    {"gemini", "[{'parts':[{'inlineData':{'mimeType':'audio/wav','data':'a','displayName':'n'}}]}]",
        "legacy", "1 filename"},
    {"gemini",
        "[{'parts':[{'functionCall':{'id':'k'}}]},{'parts':[{'functionResponse':{'id':'k'},'x':{}}]"
        "}]",
        "chat", "2 result.x; 2 content: absent, written as an empty text"},
    {NULL, NULL, "legacy", "2 result.x; 2 content: absent, written as an empty text"},
    {NULL, NULL, "openai",
        "1 role: written as the assistant, because it calls tools; 1 name: absent, written as "
        "unknown; 2 result.x"},
    {NULL, NULL, "responses",
        "1 role: written as the assistant, because it calls tools; 1 name: absent, written as "
        "unknown; 2 result.x"},
    {"gemini",
        "[{'parts':[{'functionCall':{'id':'k'}}]},{'parts':[{'functionResponse':{'id':'k','name':'"
        "f'}}]}]",
        "anthropic",
        "1 role: written as the assistant, because it calls tools; 1 name: absent, written as "
        "unknown; 1 message: a turn of the user was put before it; 2 name"},
    {NULL, NULL, "chat", "2 name; 2 content: absent, written as an empty text"},
    {NULL, NULL, "openai",
        "1 role: written as the assistant, because it calls tools; 1 name: absent, written as "
        "unknown; 2 name"},
    {NULL, NULL, "responses",
        "1 role: written as the assistant, because it calls tools; 1 name: absent, written as "
        "unknown; 2 name"},
    {NULL, NULL, "view:gemini",
        "1 role: written as the assistant, because it calls tools; 1 name: absent, written as "
        "unknown; 2 name: written as the name of its call; 1 message: a turn of the user was put "
        "before it"},
    {"openai", "[{'role':'developer'}]", "anthropic",
        "1 content: empty, which the format refuses; 1 role: written as user"},
    {NULL, NULL, "gemini", "1 content: empty, which the format refuses; 1 role: written as user"},
    {"openai", "[{'role':'user','name':1}]", "acontext", "1 name"},
    {NULL, NULL, "anthropic", "1 content: empty, which the format refuses; 1 name"},
    {NULL, NULL, "gemini", "1 content: empty, which the format refuses; 1 name"},
    {NULL, NULL, "responses", "1 name"},
    {NULL, NULL, "view:openai", "1 name: empty or of a type that the format refuses"},
    {"openai", "[{'role':'user','name':'a'}]", "anthropic",
        "1 content: empty, which the format refuses; 1 name"},
    {NULL, NULL, "chat", "1 name"},
    {NULL, NULL, "gemini", "1 content: empty, which the format refuses; 1 name"},
    {NULL, NULL, "responses", "1 name"},
    {NULL, NULL, "toolmessage", "1 name"},
    {"openai", "[{'role':'user','content':[{}]}]", "view:openai",
        "1 content: a part that the format refuses, written as a text"},
    {"openai", "[{'role':'assistant','refusal':'n'}]", "anthropic",
        "1 message: a turn of the user was put before it; 1 refusal: written as text"},
    {NULL, NULL, "chat", "1 refusal: written as text"},
    {NULL, NULL, "gemini",
        "1 message: a turn of the user was put before it; 1 refusal: written as text"},
    {NULL, NULL, "toolmessage", "1 refusal: written as text"},
    {"openai", "[{'role':'assistant','reasoning_content':'h'}]", "gemini", "1 thinking"},
    {NULL, NULL, "legacy", "1 thinking"},
    {NULL, NULL, "responses", "1 thinking"},
    {"openai", "[{'role':'assistant','content':'</function_call>'}]", "legacy",
        "1 content: text that looks like a call"},
    {"openai", "[{'role':'assistant','tool_calls':[{'type':'o'}]}]", "view:openai",
        "!1 unrecorded; 1 name: absent, written as unknown; 1 tool_calls: a member that the format "
        "refuses"},
    {"openai",
        "[{'role':'user','content':[{'type':'image_url','image_url':{'url':'https://x/"
        "h','detail':'l'}}]}]",
        "anthropic", "1 detail"},
    {NULL, NULL, "gemini", "1 detail"},
    {"openai",
        "[{'role':'assistant','content':[{'type':'text','text':'a'},{'type':'text','text':'b'}]}]",
        "legacy", "1 content: several texts, joined"},
    {"openai",
        "[{'role':'assistant','tool_calls':[{'id':'k'}]},{'role':'tool','tool_call_id':'k','x':[]}"
        "]",
        "chat", "2 content: absent, written as an empty text; 2 x"},
    {NULL, NULL, "legacy", "2 content: absent, written as an empty text; 2 x"},
    {NULL, NULL, "responses", "1 name: absent, written as unknown; 2 x"},
    {"openai",
        "[{'role':'assistant','tool_calls':[{'id':'k'}]},{'role':'tool','tool_call_id':'k','"
        "content':null}]",
        "acontext", "2 content: null, written as an empty text"},
    {"openai",
        "[{'role':'assistant','tool_calls':[{'id':'k'}]},{'role':'tool','tool_call_id':'k','"
        "content':[{},{}]}]",
        "acontext",
        "2 part: a part of a type that the format does not have; 2 part: a part of a type that the "
        "format does not have; 2 content: several texts, joined"},
    {NULL, NULL, "anthropic",
        "1 name: absent, written as unknown; 1 message: a turn of the user was put before it; 2 "
        "content: the format has no place for any part of it"},
    {NULL, NULL, "gemini",
        "1 name: absent, written as unknown; 1 message: a turn of the user was put before it; 2 "
        "part: a part of a type that the format does not have; 2 part: a part of a type that the "
        "format does not have; 2 content: several texts, joined"},
    {"openai",
        "[{'role':'assistant','tool_calls':[{'function':{},'extra_content':{'google':{'thought_"
        "signature':'c'}}}]}]",
        "anthropic",
        "!1 unrecorded; 1 name: absent, written as unknown; 1 message: a turn of the user was put "
        "before it; 1 signature"},
    {NULL, NULL, "chat", "1 signature"},
    {NULL, NULL, "legacy", "1 signature"},
    {NULL, NULL, "responses", "!1 unrecorded; 1 name: absent, written as unknown; 1 signature"},
    {NULL, NULL, "toolmessage", "1 signature"},
    {"responses", "[{'role':'assistant'},{'type':'function_call','id':'m'}]", "acontext", "2 id"},
    {"responses", "[{'role':'assistant'},{'type':'function_call','x':null}]", "acontext", "2 x"},
    {"responses",
        "[{'type':'message','role':'user','content':[{'type':'input_file','file_id':'F','file_url':"
        "'https://x/a.pdf'}]}]",
        "gemini", "1 file_id"},
    {"responses",
        "[{'type':'function_call','call_id':'k'},{'type':'function_call_output','call_id':'k','"
        "output':[{},{'type':'input_image','image_url':'https://x/d'}]}]",
        "anthropic",
        "1 name: absent, written as unknown; 1 message: a turn of the user was put before it; 2 "
        "part: a part of a type that the format does not have"},
    {NULL, NULL, "openai",
        "1 name: absent, written as unknown; 2 image: moved into a user message after it; 2 part: "
        "a part of a type that the format does not have"},
    {"responses",
        "[{'type':'function_call','call_id':'k'},{'type':'function_call','call_id':'l'},{'type':'"
        "function_call_output','call_id':'l'},{'type':'function_call_output','call_id':'k'}]",
        "chat",
        "3 content: absent, written as an empty text; 4 message: in the order of the calls; 4 "
        "content: absent, written as an empty text"},
    {"toolmessage", "[{'role':'tool','content':[{}]}]", "chat",
        "1 part: a part of a type that the format does not have"},
    {NULL, NULL, "legacy", "1 part: a part of a type that the format does not have"},
    {"toolmessage", "[{'role':'tool','createdAt':'x'}]", "acontext", "1 createdAt"},
    {NULL, NULL, "chat", "1 createdAt"},
    {NULL, NULL, "legacy", "1 createdAt"},
    {NULL, NULL, "responses",
        "1 content: an empty message, which the provider refuses; 1 createdAt"},
    {"toolmessage",
        "[{'role':'assistant','content':[{'type':'tool_use','id':'k'}]},{'role':'user','content':[{"
        "'type':'tool_result','id':'k','result':{}}]}]",
        "acontext", "2 result: data, written as text"},
    {"toolmessage",
        "[{'role':'assistant','content':[{'type':'tool_use','id':'k'}]},{'role':'user','content':[{"
        "'type':'tool_result','id':'k','result':{'llmContent':{},'isError':true}}]}]",
        "gemini",
        "1 name: absent, written as unknown; 1 message: a turn of the user was put before it; 2 "
        "is_error"},
    {"toolmessage",
        "[{'role':'assistant','content':[{'type':'tool_use','id':'k'}]},{'role':'user','content':[{"
        "'type':'tool_result','id':'k','result':{'llmContent':'1','returnDisplay':'*'}}]}]",
        "chat", ""},
    {NULL, NULL, "legacy", "2 returnDisplay"},
    {"toolmessage2", "[{'role':'assistant','content':[{'type':'reasoning','text':'h'}]}]", "openai",
        "1 thinking"},
};

static int drop(void *ctx, const void *p, size_t n)
{
        (void)ctx, (void)p, (void)n;
        return 0;
}

static char *convert(const char *from, const char *to, const struct buf *in)
{
        char *report = NULL;
        struct steno_error err = {0};
        if (steno_convert(from, to, in->p, in->n, drop, NULL, &report, &err))
                fail_msg("%s to %s: %s", from, to, err.msg);
        return report;
}

/* The writer of a view, without a store. */
static char *view(const char *from, const char *to, const struct buf *in)
{
        const struct format *f = format_find(to);
        bool provider = f->flags & FORMAT_PROVIDER;
        struct report r;
        struct json j;
        struct arena arena;
        struct history h, repaired;
        struct buf out, text;
        json_init(&j);
        arena_init(&arena);
        report_init(&r);
        buf_init(&out, 0);
        buf_init(&text, 0);
        struct repair_options opt = {
            .synthesize = provider, .on_note = report_repair, .note_ctx = &r};
        struct writer w = {.out = &out,
            .arena = &arena,
            .valid = provider,
            .strip_own = provider,
            .on_loss = report_loss,
            .loss_ctx = &r,
            .on_repair = report_repair,
            .repair_ctx = &r};
        assert_int_equal(json_parse(&j, in->p, in->n, NULL, NULL), 0);
        assert_int_equal(format_read_history(format_find(from), &j, 0, &arena, &h, NULL), 0);
        assert_int_equal(repair_history(&h, &opt, &arena, &repaired), 0);
        assert_int_equal(format_write_history(f, &w, &repaired, NULL), 0);
        struct jsonw jw = jsonw_to(&text);
        jsonw_object(&jw);
        report_write(&r, &jw);
        jsonw_object_end(&jw);
        json_release(&j);
        arena_release(&arena);
        report_release(&r);
        buf_release(&out);
        return buf_take(&text, NULL);
}

static void put_member(struct buf *out, const struct json *j, json_ref of, const char *key)
{
        json_string(j, json_get(j, of, key), out, NULL);
}

/* A report in the form that a row has. */
static void shorten(const char *report, struct buf *out)
{
        static const char *const LISTS[] = {"repairs", "losses"};
        struct json j;
        json_init(&j);
        assert_int_equal(json_parse(&j, report, strlen(report), NULL, NULL), 0);
        for (int k = 0; k < 2; k++) {
                json_ref list = json_get(&j, 0, LISTS[k]);
                for (json_ref e = json_child(&j, list); e != JSON_NONE;
                     e = json_next(&j, list, e)) {
                        uint64_t seq = 0;
                        json_u64(&j, json_get(&j, e, "seq"), &seq);
                        buf_printf(out, "%s%s%llu ", out->n ? "; " : "", k ? "" : "!",
                            (unsigned long long)seq);
                        put_member(out, &j, e, k ? "field" : "class");
                        if (!k || json_is(&j, json_get(&j, e, "why"), NO_PLACE))
                                continue;
                        buf_puts(out, ": ");
                        put_member(out, &j, e, "why");
                }
        }
        json_release(&j);
}

/* Counts the rows that give another report, and shows them. */
static int differing(bool views)
{
        const char *from = NULL;
        struct buf in, got;
        int wrong = 0;
        buf_init(&in, 0);
        buf_init(&got, 0);
        for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
                const struct row *row = &ROWS[i];
                if (row->in) {
                        from = row->from;
                        buf_clear(&in);
                        for (const char *p = row->in; *p; p++)
                                buf_putc(&in, *p == '\'' ? '"' : *p);
                }
                bool is_view = strncmp(row->to, VIEW, sizeof VIEW - 1) == 0;
                if (is_view != views)
                        continue;
                char *report = views ? view(from, row->to + sizeof VIEW - 1, &in)
                                     : convert(from, row->to, &in);
                buf_clear(&got);
                shorten(report, &got);
                free(report);
                if (strcmp(buf_cstr(&got), row->report) == 0)
                        continue;
                wrong++;
                print_message("# %s to %s: %s\n#   want %s\n#   got  %s\n", from, row->to,
                    buf_cstr(&in), row->report, buf_cstr(&got));
        }
        buf_release(&in);
        buf_release(&got);
        return wrong;
}

static void a_conversion_reports_each_change(void **state)
{
        (void)state;
        assert_int_equal(differing(false), 0);
}

static void a_view_reports_each_change(void **state)
{
        (void)state;
        assert_int_equal(differing(true), 0);
}

/* So many messages that their neutral form lies in several blocks of memory. */
static void results_in_the_order_of_their_calls_are_no_loss_wherever_the_calls_lie(void **state)
{
        enum { CALLS = 300 };
        struct buf in;
        (void)state;
        buf_init(&in, 0);
        buf_puts(&in, "[{\"role\":\"user\",\"content\":\"q\"}");
        for (int i = 0; i < CALLS; i++)
                buf_printf(&in,
                    ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"t\"}],"
                    "\"tool_calls\":[{\"id\":\"k%d\",\"type\":\"function\",\"function\":{\"name\":"
                    "\"t\",\"arguments\":\"{}\"}}]}",
                    i);
        for (int i = 0; i < CALLS; i++)
                buf_printf(
                    &in, ",{\"role\":\"tool\",\"tool_call_id\":\"k%d\",\"content\":\"x\"}", i);
        buf_putc(&in, ']');
        char *converted = convert("openai", "chat", &in), *viewed = view("openai", "chat", &in);
        assert_null(strstr(converted, "in the order of the calls"));
        assert_null(strstr(viewed, "in the order of the calls"));
        free(converted);
        free(viewed);
        buf_release(&in);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_conversion_reports_each_change),
            cmocka_unit_test(a_view_reports_each_change),
            cmocka_unit_test(
                results_in_the_order_of_their_calls_are_no_loss_wherever_the_calls_lie),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
