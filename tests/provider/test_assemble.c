/*
 * Replies of OpenAI-compatible endpoints, as literal bytes, cut at every place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "support/seed.h"
#include "provider/assemble.h"
#include "net/sse.h"

struct feed {
        struct assemble a;
        struct buf text;
        struct buf thinking;
        int made;
};

static void make_id(void *ctx, char out[64])
{
        struct feed *f = ctx;
        snprintf(out, 64, "made_%d", ++f->made);
}

static int piece(void *ctx, enum reply_piece kind, struct str text)
{
        struct feed *f = ctx;
        buf_put_str(kind == REPLY_TEXT ? &f->text : &f->thinking, text);
        return 0;
}

static int event(void *ctx, struct str name, struct str data)
{
        (void)name;
        struct feed *f = ctx;
        return assemble_chunk(&f->a, data);
}

static void feed_init(struct feed *f)
{
        *f = (struct feed){.made = 0};
        buf_init(&f->text, 0);
        buf_init(&f->thinking, 0);
        struct reply_hooks hooks = {make_id, piece, f};
        assemble_init(&f->a, &hooks);
}

static void feed_release(struct feed *f)
{
        assemble_release(&f->a);
        buf_release(&f->text);
        buf_release(&f->thinking);
}

static void stream(struct feed *f, struct str bytes, size_t cut, struct reply *r)
{
        struct sse s;
        feed_init(f);
        sse_init(&s, 0, event, f);
        assert_int_equal(sse_feed(&s, bytes.p, cut), 0);
        assert_int_equal(sse_feed(&s, bytes.p + cut, bytes.n - cut), 0);
        assert_int_equal(sse_finish(&s), 0);
        sse_release(&s);
        reply_init(r);
        assert_int_equal(assemble_finish(&f->a, r, NULL), 0);
}

/* The message is the same wherever the bytes are cut. *r gets the last reply. */
static void check(struct str bytes, const char *message, struct feed *f, struct reply *r)
{
        for (size_t cut = 0;; cut++) {
                stream(f, bytes, cut, r);
                assert_string_equal(buf_cstr(&r->message), message);
                assert_true(str_eq(buf_str(&f->text), buf_str(&r->text)));
                if (cut == bytes.n)
                        return;
                feed_release(f);
                reply_release(r);
        }
}

static void end(struct feed *f, struct reply *r)
{
        feed_release(f);
        reply_release(r);
}

#define D(json) "data: " json "\n\n"
#define DELTA(json) D("{\"choices\":[{\"index\":0,\"delta\":" json ",\"finish_reason\":null}]}")
#define FINISH(why) D("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" why "\"}]}")
#define DONE D("[DONE]")
#define CALL(more) DELTA("{\"tool_calls\":[" more "]}")

static void plain_text(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(DELTA("{\"role\":\"assistant\",\"content\":\"\"}") DELTA(
                  "{\"content\":\"Gr\xC3"
                  "\xBC\xC3\x9F \"}") ": keep-alive\r\n\r\n" DELTA("{\"content\":\"\\u0041\\\"\"}")
                      FINISH("stop") D("{\"choices\":[],\"usage\":{\"prompt_tokens\":3,"
                                       "\"completion_tokens\":4,\"total_tokens\":7}}") DONE),
            "{\"role\":\"assistant\",\"content\":\"Gr\xC3\xBC\xC3\x9F \\u0041\\\"\"}", &f, &r);
        assert_string_equal(buf_cstr(&r.text), "Gr\xC3\xBC\xC3\x9F A\"");
        assert_int_equal(r.finish, FINISH_STOP);
        assert_int_equal(r.total_tokens, 7);
        assert_null(r.fault.code);
        end(&f, &r);
}

static void surrogates(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(DELTA("{\"content\":\"a\\ud83d\"}") DELTA("{\"content\":\"\\ude00b\"}")
                      FINISH("stop") DONE),
            "{\"role\":\"assistant\",\"content\":\"a\\ud83d\\ude00b\"}", &f, &r);
        assert_string_equal(buf_cstr(&f.text), "a\xF0\x9F\x98\x80"
                                               "b");
        end(&f, &r);
}

static void calls_by_index(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(
            STR(DELTA("{\"role\":\"assistant\",\"content\":null}") CALL(
                "{\"index\":0,\"id\":\"c_a\",\"type\":\"function\",\"function\":{\"name\":"
                "\"one\",\"arguments\":\"\"}}")
                    CALL("{\"index\":0,\"function\":{\"arguments\":\"{\\\"x\\\":\"}}") CALL(
                        "{\"index\":1,\"id\":\"c_b\",\"type\":\"function\",\"function\":{\"name\":"
                        "\"two\",\"arguments\":\"\"}}")
                        CALL("{\"index\":0,\"function\":{\"arguments\":\" 1.50}\"}}")
                            CALL("{\"index\":1,\"function\":{\"arguments\":\"{}\"}}")
                                FINISH("tool_calls") DONE),
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c_a\",\"type\":"
            "\"function\",\"function\":{\"name\":\"one\",\"arguments\":\"{\\\"x\\\": 1.50}\"}},"
            "{\"id\":\"c_b\",\"type\":\"function\",\"function\":{\"name\":\"two\",\"arguments\":"
            "\"{}\"}}]}",
            &f, &r);
        assert_int_equal(r.count, 2);
        assert_string_equal(r.calls[0].args.p, "{\"x\": 1.50}");
        assert_int_equal(r.calls[0].state, CALL_OK);
        assert_int_equal(r.finish, FINISH_TOOLS);
        end(&f, &r);
}

static void no_index(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(CALL("{\"id\":\"c1\",\"function\":{\"name\":\"one\",\"arguments\":\"{\"}}")
                      CALL("{\"function\":{\"arguments\":\"}\"}}")
                          CALL("{\"id\":\"c2\",\"function\":{\"name\":\"one\",\"arguments\":\"\"}}")
                              CALL("{\"function\":{\"arguments\":\"{}\"}}") FINISH("stop") DONE),
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":"
            "\"function\",\"function\":{\"name\":\"one\",\"arguments\":\"{}\"}},{\"id\":\"c2\","
            "\"type\":\"function\",\"function\":{\"name\":\"one\",\"arguments\":\"{}\"}}]}",
            &f, &r);
        assert_int_equal(r.finish, FINISH_STOP);
        assert_int_equal(r.count, 2);
        end(&f, &r);
}

static void index_zero_always(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":"
                       "\"{\\\"q\\\":1}\"}}")
                      CALL("{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"n\",\"arguments\":"
                           "\"{\\\"q\\\":2}\"}}") FINISH("tool_calls") DONE),
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":"
            "\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{\\\"q\\\":1}\"}},{\"id\":"
            "\"b\",\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":"
            "\"{\\\"q\\\":2}\"}}]}",
            &f, &r);
        end(&f, &r);
}

static void ids_made(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(
            STR(CALL("{\"index\":0,\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}")
                    CALL("{\"index\":0,\"function\":{\"name\":\"m\",\"arguments\":\"{}\"}}") CALL(
                        "{\"index\":1,\"id\":\"\",\"function\":{\"name\":\"n\",\"arguments\":"
                        "\"{}\"}}")
                        CALL("{\"index\":2,\"id\":\"x\",\"function\":{\"name\":\"n\",\"arguments\":"
                             "\"{}\"}}") CALL("{\"index\":3,\"id\":\"x\",\"function\":{\"name\":"
                                              "\"n\",\"arguments\":"
                                              "\"{}\"}}") FINISH("tool_calls") DONE),
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
            "{\"id\":\"made_1\",\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":"
            "\"{}\"}},{\"id\":\"made_2\",\"type\":\"function\",\"function\":{\"name\":\"m\","
            "\"arguments\":\"{}\"}},{\"id\":\"made_3\",\"type\":\"function\",\"function\":{"
            "\"name\":\"n\",\"arguments\":\"{}\"}},{\"id\":\"x\",\"type\":\"function\","
            "\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}},{\"id\":\"made_4\",\"type\":"
            "\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]}",
            &f, &r);
        assert_string_equal(r.calls[4].id, "made_4");
        end(&f, &r);
}

static void opaque(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(DELTA("{\"reasoning_content\":\"I th\"}") DELTA("{\"reasoning_content\":\"ink\"}")
                      DELTA("{\"role\":\"assistant\",\"content\":null,\"x_num\":1.0e0}")
                          DELTA("{\"reasoning_details\":[{\"t\": 1}]}") DELTA(
                              "{\"reasoning_details\":[{\"t\":2}],\"reasoning_content\":null}")
                              CALL("{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"extra_"
                                   "content\":{"
                                   "\"google\":{\"thought_signature\":\"A\\/"
                                   "b==\"}},\"function\":{\"name\":"
                                   "\"n\",\"arguments\":\"{}\",\"odd\":[ 1 ]}}")
                                  FINISH("tool_calls") DONE),
            "{\"role\":\"assistant\",\"reasoning_content\":\"I think\",\"content\":null,\"x_num\":"
            "1.0e0,\"reasoning_details\":[{\"t\": 1},{\"t\":2}],\"tool_calls\":[{\"id\":\"c\","
            "\"type\":\"function\",\"extra_content\":{\"google\":{\"thought_signature\":"
            "\"A\\/b==\"}},\"function\":{\"name\":\"n\",\"arguments\":\"{}\",\"odd\":[ 1 ]}}]}",
            &f, &r);
        assert_string_equal(buf_cstr(&f.thinking), "I think");
        end(&f, &r);
}

static void bad_arguments(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(
            STR(CALL("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"n\",\"arguments\":"
                     "\"x=1\"}}")
                    CALL("{\"index\":1,\"id\":\"d\",\"function\":{\"name\":\"n\",\"arguments\":{"
                         "\"a\": [1]}}}")
                        CALL("{\"index\":2,\"id\":\"e\",\"function\":{\"name\":\"n\"}}") CALL(
                            "{\"index\":3,\"id\":\"f\",\"function\":{\"name\":\"n\",\"arguments\":"
                            "\"[1]\"}}") FINISH("stop") DONE),
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":"
            "\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"x=1\"}},{\"id\":\"d\","
            "\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":"
            "\"{\\\"a\\\": [1]}\"}},{\"id\":\"e\",\"type\":\"function\",\"function\":{\"name\":"
            "\"n\",\"arguments\":\"\"}},{\"id\":\"f\",\"type\":\"function\",\"function\":{"
            "\"name\":\"n\",\"arguments\":\"[1]\"}}]}",
            &f, &r);
        assert_int_equal(r.calls[0].state, CALL_INVALID);
        assert_int_equal(r.calls[1].state, CALL_OK);
        assert_int_equal(r.calls[2].state, CALL_OK);
        assert_int_equal(r.calls[3].state, CALL_INVALID);
        end(&f, &r);
}

static void cut_by_length(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(CALL("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"n\",\"arguments\":"
                       "\"{\\\"a\\\":1}\"}}")
                      CALL("{\"index\":1,\"id\":\"d\",\"function\":{\"name\":\"n\",\"arguments\":"
                           "\"{\\\"path\\\":\\\"/et\"}}") FINISH("length") DONE),
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":"
            "\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{\\\"a\\\":1}\"}},{\"id\":"
            "\"d\",\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":"
            "\"{\\\"path\\\":\\\"/et\"}}]}",
            &f, &r);
        assert_int_equal(r.finish, FINISH_LENGTH);
        assert_int_equal(r.calls[0].state, CALL_OK);
        assert_int_equal(r.calls[1].state, CALL_CUT);
        end(&f, &r);
}

static void repeated_name(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(CALL("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"n\",\"arguments\":"
                       "\"{\\\"a\\\"\"}}")
                      CALL("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"n\",\"arguments\":"
                           "\":1}\"}}") FINISH("tool_calls") DONE),
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":"
            "\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{\\\"a\\\":1}\"}}]}",
            &f, &r);
        end(&f, &r);
}

static void ends(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(DELTA("{\"content\":\"hi\"}") FINISH("stop")),
            "{\"role\":\"assistant\",\"content\":\"hi\"}", &f, &r);
        assert_null(r.fault.code);
        end(&f, &r);
        check(STR(DELTA("{\"content\":\"hi\"}") DONE),
            "{\"role\":\"assistant\",\"content\":\"hi\"}", &f, &r);
        assert_null(r.fault.code);
        end(&f, &r);
        check(STR(DELTA("{\"content\":\"hi\"}")), "{\"role\":\"assistant\",\"content\":\"hi\"}", &f,
            &r);
        assert_string_equal(r.fault.code, "LLM_NETWORK");
        assert_string_equal(buf_cstr(&r.text), "hi");
        end(&f, &r);
        check(STR(DELTA("{\"role\":\"assistant\"}") FINISH("stop") DONE),
            "{\"role\":\"assistant\",\"content\":\"\"}", &f, &r);
        assert_string_equal(r.fault.code, "LLM_EMPTY");
        end(&f, &r);
}

static void error_inside(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(DELTA("{\"content\":\"half\"}") D("{\"error\":{\"message\":\"overloaded\","
                                                    "\"code\":503}}")
                      DELTA("{\"content\":\" more\"}")),
            "{\"role\":\"assistant\",\"content\":\"half\"}", &f, &r);
        assert_string_equal(r.fault.code, "LLM_SERVER");
        assert_true(r.fault.retryable);
        assert_non_null(strstr(r.fault.message, "overloaded"));
        assert_null(strstr(r.fault.message, "HTTP")); /* the status of the stream was another */
        end(&f, &r);
        check(STR(D("<html>no</html>")), "{\"role\":\"assistant\",\"content\":\"\"}", &f, &r);
        assert_string_equal(r.fault.code, "LLM_BAD_REPLY");
        end(&f, &r);
}

static void body(struct feed *f, struct str text, struct reply *r)
{
        feed_init(f);
        assert_int_equal(assemble_body(&f->a, text), 0);
        reply_init(r);
        assert_int_equal(assemble_finish(&f->a, r, NULL), 0);
}

static void whole_bodies(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        body(&f,
            STR("{\"id\":\"x\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                "\"content\":\"hi\",\"refusal\":null,\"tool_calls\":[{\"id\":\"a\",\"type\":"
                "\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}},{\"type\":"
                "\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]},"
                "\"finish_reason\":\"tool_calls\"}],\"usage\":{\"total_tokens\":9}}\n"),
            &r);
        assert_string_equal(buf_cstr(&r.message),
            "{\"role\":\"assistant\",\"content\":\"hi\",\"refusal\":null,\"tool_calls\":[{\"id\":"
            "\"a\",\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}},{"
            "\"type\":\"function\",\"id\":\"made_1\",\"function\":{\"name\":\"n\",\"arguments\":"
            "\"{}\"}}]}");
        assert_int_equal(r.total_tokens, 9);
        assert_null(r.fault.code);
        end(&f, &r);

        body(&f,
            STR("{\"choices\":[{\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
                "{\"type\":\"text\",\"text\":\"b\"}]},\"finish_reason\":\"stop\"}]}"),
            &r);
        assert_string_equal(buf_cstr(&r.text), "ab");
        end(&f, &r);

        body(&f,
            STR("{\"choices\":[{\"message\":{\"content\":null,\"function_call\":{\"name\":"
                "\"n\",\"arguments\":\"{}\"}},\"finish_reason\":\"function_call\"}]}"),
            &r);
        assert_int_equal(r.count, 1);
        assert_string_equal(r.calls[0].name, "n");
        assert_int_equal(r.finish, FINISH_TOOLS);
        end(&f, &r);

        body(&f, STR("{\"ok\":true}"), &r);
        assert_string_equal(r.fault.code, "LLM_BAD_REPLY");
        end(&f, &r);
        body(&f, STR("{\"error\":\"model not loaded\"}"), &r);
        assert_string_equal(r.fault.code, "LLM_ERROR");
        end(&f, &r);
}

static void http_faults(void **state)
{
        (void)state;
        static const struct {
                long status;
                const char *body;
                const char *code;
                bool retryable;
        } table[] = {
            {401, "{\"error\":{\"message\":\"bad key\"}}", "LLM_AUTH", false},
            {403, "", "LLM_AUTH", false},
            {408, "", "LLM_TIMEOUT", true},
            {429, "slow down", "LLM_RATE_LIMIT", true},
            {500, "<html>\n</html>", "LLM_SERVER", true},
            {504, "", "LLM_TIMEOUT", true},
            {400, "{\"error\":{\"message\":\"no\",\"code\":\"context_length_exceeded\"}}",
                "LLM_CONTEXT", false},
            {404, "{\"error\":{\"message\":\"no such model\"}}", "LLM_ERROR", false},
        };
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                struct reply_fault f = {0};
                reply_fault_http(&f, table[i].status, str_of(table[i].body));
                assert_string_equal(f.code, table[i].code);
                assert_int_equal(f.retryable, table[i].retryable);
                assert_null(strchr(f.message, '\n'));
        }
}

/* ---- chance ---- */

/* Fragments as endpoints send them, correct and wrong ones, in any order. */
static const char *const fragments[] = {
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"t\\ud83d\"}}]}",
    "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ude00\"}}]}",
    "{\"choices\":[{\"delta\":{\"content\":null,\"role\":\"assistant\",\"id\":7}}]}",
    "{\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"p\"}]}}]}",
    "{\"choices\":[{\"delta\":{\"content\":{\"odd\":true},\"x\":1}}]}",
    "{\"choices\":[{\"delta\":{\"x\":\"s\",\"x\":[1],\"reasoning\":\"r\"}}]}",
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":"
    "\"n\",\"arguments\":\"{\"}}]}}]}",
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}}]"
    "}",
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"m\",\"arguments\":{}}}]}}]"
    "}",
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"\\u0001\"},5,null,{\"function\":3}]}}]}",
    "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":9,\"id\":\"a\",\"type\":null,"
    "\"function\":{\"name\":null,\"arguments\":null}}]}}]}",
    "{\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"{}\"}}}]}",
    "{\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":1}}",
    "{\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}",
    "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}",
};

static void build(struct seed *s, struct buf *out)
{
        size_t n = 1 + seed_below(s, 12);
        for (size_t i = 0; i < n; i++) {
                size_t k = seed_below(s, sizeof(fragments) / sizeof(fragments[0]));
                buf_puts(out, "data: ");
                buf_puts(out, fragments[k]);
                buf_puts(out, seed_below(s, 2) ? "\n\n" : "\r\n\r\n");
        }
        if (seed_below(s, 2))
                buf_puts(out, "data: [DONE]\n\n");
        for (size_t k = seed_below(s, 4); k > 1; k--)
                out->p[seed_below(s, out->n)] = (char)seed_below(s, 256);
}

/* Whatever came, the message can be stored: it is JSON, and its calls have different ids. Names and
 * arguments stay as they came; views change them into what can be sent. */
static void check_sound(struct reply *r)
{
        struct json j;
        json_init(&j);
        assert_int_equal(json_parse(&j, r->message.p, r->message.n, NULL, NULL), 0);
        assert_true(json_is(&j, json_get(&j, 0, "role"), "assistant"));
        json_ref calls = json_get(&j, 0, "tool_calls");
        assert_int_equal(json_count(&j, calls), r->count);
        for (size_t i = 0; i < r->count; i++) {
                json_ref c = json_at(&j, calls, (uint32_t)i);
                json_ref f = json_get(&j, c, "function");
                assert_true(json_is(&j, json_get(&j, c, "id"), r->calls[i].id));
                if (json_get(&j, c, "custom") == JSON_NONE)
                        assert_true(json_get(&j, f, "arguments") != JSON_NONE);
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(r->calls[i].id, r->calls[k].id);
        }
        json_release(&j);
}

static void chance(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int i = seed_rounds(100000); i > 0; i--) {
                struct feed f;
                struct reply whole, cut;
                struct buf bytes;
                buf_init(&bytes, 0);
                build(&s, &bytes);
                stream(&f, buf_str(&bytes), 0, &whole);
                check_sound(&whole);
                feed_release(&f);
                stream(&f, buf_str(&bytes), seed_below(&s, bytes.n), &cut);
                assert_true(str_eq(buf_str(&whole.message), buf_str(&cut.message)));
                end(&f, &cut);
                reply_release(&whole);
                buf_release(&bytes);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"text is joined token by token, and usage is read", plain_text, 0, 0, 0},
            {"a surrogate pair that came in two deltas is one character", surrogates, 0, 0, 0},
            {"interleaved calls are told apart by their index", calls_by_index, 0, 0, 0},
            {"without an index an id opens a call and arguments continue it", no_index, 0, 0, 0},
            {"index 0 on every call with another id is another call", index_zero_always, 0, 0, 0},
            {"a missing, empty or repeated call id is replaced by a made one", ids_made, 0, 0, 0},
            {"opaque members of message, call and function keep their bytes", opaque, 0, 0, 0},
            {"arguments that are not a JSON object are kept and marked, objects become strings",
                bad_arguments, 0, 0, 0},
            {"a call that the length limit cut is marked, the ones before it are not",
                cut_by_length, 0, 0, 0},
            {"a name repeated with every fragment is one name", repeated_name, 0, 0, 0},
            {"finish_reason or [DONE] ends a reply, neither means it was cut off", ends, 0, 0, 0},
            {"an error inside a 200 stream is a fault and keeps the text before it", error_inside,
                0, 0, 0},
            {"bodies that were not streamed give the same messages", whole_bodies, 0, 0, 0},
            {"whatever comes, in whatever pieces, the message is sound JSON with distinct calls",
                chance, 0, 0, 0},
            {"HTTP answers map to codes that say whether to retry", http_faults, 0, 0, 0},
        };
        return cmocka_run_group_tests_name("assemble", tests, NULL, NULL);
}
