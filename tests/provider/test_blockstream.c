/*
 * Replies of Anthropic's Messages API, as literal bytes, cut at every place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "net/sse.h"
#include "provider/blockstream.h"

struct feed {
        struct blockstream b;
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
        return blockstream_event(&f->b, data);
}

static void feed_init(struct feed *f)
{
        *f = (struct feed){.made = 0};
        buf_init(&f->text, 0);
        buf_init(&f->thinking, 0);
        struct reply_hooks hooks = {make_id, piece, f};
        blockstream_init(&f->b, &hooks);
}

static void end(struct feed *f, struct reply *r)
{
        blockstream_release(&f->b);
        buf_release(&f->text);
        buf_release(&f->thinking);
        reply_release(r);
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
        assert_int_equal(blockstream_finish(&f->b, r, NULL), 0);
}

/* The message is the same wherever the bytes are cut. *r gets the last reply. */
static void check(struct str bytes, const char *message, struct feed *f, struct reply *r)
{
        for (size_t cut = 0;; cut++) {
                stream(f, bytes, cut, r);
                assert_string_equal(buf_cstr(&r->message), message);
                assert_true(str_eq(buf_str(&f->text), buf_str(&r->text)));
                assert_true(str_eq(buf_str(&f->thinking), buf_str(&r->thinking)));
                if (cut == bytes.n)
                        return;
                end(f, r);
        }
}

#define E(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"
#define START                                                                                      \
        E("message_start",                                                                         \
            ",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\","          \
            "\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"          \
            "\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"output_tokens\":1}}")
#define BLOCK(i, json) E("content_block_start", ",\"index\":" #i ",\"content_block\":" json)
#define DELTA(i, json) E("content_block_delta", ",\"index\":" #i ",\"delta\":" json)
#define SHUT(i) E("content_block_stop", ",\"index\":" #i)
#define STOP(why)                                                                                  \
        E("message_delta", ",\"delta\":{\"stop_reason\":\"" why "\",\"stop_sequence\":null},"      \
                           "\"usage\":{\"output_tokens\":7}")                                      \
        E("message_stop", "")
#define TEXT(i, words)                                                                             \
        BLOCK(i, "{\"type\":\"text\",\"text\":\"\"}")                                              \
        DELTA(i, "{\"type\":\"text_delta\",\"text\":\"" words "\"}") SHUT(i)

static void text_and_usage(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(START E("ping", "") BLOCK(0, "{\"type\":\"text\",\"text\":\"\"}") DELTA(
                  0, "{\"type\":\"text_delta\",\"text\":\"a\\ud83d\"}") DELTA(0,
                  "{\"type\":\"text_delta\",\"text\":\"\\ude00\\\"b\"}") SHUT(0) STOP("end_turn")),
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
            "\"a\\ud83d\\ude00\\\"b\"}]}",
            &f, &r);
        assert_string_equal(buf_cstr(&r.text), "a\xF0\x9F\x98\x80\"b");
        assert_int_equal(r.finish, FINISH_STOP);
        assert_int_equal(r.total_tokens, 22);
        assert_string_equal(buf_cstr(&r.usage),
            "{\"input_tokens\":10,\"cache_read_input_tokens\":5,\"output_tokens\":7}");
        assert_null(r.fault.code);
        end(&f, &r);
}

static void thinking_and_calls(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(START BLOCK(0, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}")
                      DELTA(0, "{\"type\":\"thinking_delta\",\"thinking\":\"Let \"}") DELTA(
                          0, "{\"type\":\"thinking_delta\",\"thinking\":\"me.\"}") DELTA(0,
                          "{\"type\":\"signature_delta\",\"signature\":\"Eq==\"}") SHUT(0)
                          BLOCK(1, "{\"type\":\"redacted_thinking\",\"data\":\"xyz\"}") SHUT(
                              1) TEXT(2, "I look.") BLOCK(3,
                              "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":"
                              "\"ls\",\"input\":{},\"caller\":{\"type\":\"direct\"}}") DELTA(3,
                              "{\"type\":\"input_json_delta\",\"partial_json\":"
                              "\"\"}") DELTA(3, "{\"type\":\"input_json_delta\",\"partial_json\":"
                                                "\"{\\\"path\\\": \\\"/a\"}") DELTA(3,
                              "{\"type\":\"input_json_delta\",\"partial_json\":"
                              "\"b\\\",\\\"n\\\":1.0}\"}") SHUT(3)
                              BLOCK(4, "{\"type\":\"tool_use\",\"id\":\"toolu_1\","
                                       "\"name\":\"pwd\",\"input\":{}}") SHUT(4) STOP("tool_use")),
            "{\"role\":\"assistant\",\"content\":["
            "{\"type\":\"thinking\",\"thinking\":\"Let me.\",\"signature\":\"Eq==\"},"
            "{\"type\":\"redacted_thinking\",\"data\":\"xyz\"},"
            "{\"type\":\"text\",\"text\":\"I look.\"},"
            "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"ls\","
            "\"input\":{\"path\": \"/ab\",\"n\":1.0},\"caller\":{\"type\":\"direct\"}},"
            "{\"type\":\"tool_use\",\"id\":\"made_1\",\"name\":\"pwd\",\"input\":{}}]}",
            &f, &r);
        assert_int_equal(r.count, 2);
        assert_string_equal(r.calls[0].name, "ls");
        assert_string_equal(buf_cstr(&r.calls[0].args), "{\"path\": \"/ab\",\"n\":1.0}");
        assert_int_equal(r.calls[0].state, CALL_OK);
        assert_string_equal(r.calls[1].id, "made_1");
        assert_int_equal(r.calls[1].state, CALL_OK);
        assert_int_equal(r.finish, FINISH_TOOLS);
        end(&f, &r);
}

/* The part before the NUL would be the id of another call, or the name of an existing tool. */
static void words_with_nul(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"t\\u0000x\",\"name\":"
                                 "\"ls\\u0000x\",\"input\":{}}") SHUT(0) STOP("tool_use")),
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"made_1\","
            "\"name\":\"ls\\u0000x\",\"input\":{}}]}",
            &f, &r);
        assert_string_equal(r.calls[0].id, "made_1");
        assert_string_equal(r.calls[0].name, "");
        end(&f, &r);
}

#define CALL(fragment, why)                                                                        \
        START BLOCK(0, "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{}}")         \
            DELTA(0, "{\"type\":\"input_json_delta\",\"partial_json\":\"" fragment "\"}") SHUT(0)  \
                STOP(why)

static void broken_input(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(CALL("{\\\"a\\\":", "max_tokens")),
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t\","
            "\"name\":\"n\",\"input\":\"{\\\"a\\\":\"}]}",
            &f, &r);
        assert_int_equal(r.calls[0].state, CALL_CUT);
        assert_int_equal(r.finish, FINISH_LENGTH);
        end(&f, &r);
        stream(&f, STR(CALL("nonsense", "tool_use")), 0, &r);
        assert_int_equal(r.calls[0].state, CALL_INVALID);
        end(&f, &r);
        stream(&f, STR(CALL("[1]", "tool_use")), 0, &r);
        assert_int_equal(r.calls[0].state, CALL_INVALID);
        end(&f, &r);
}

static void unknown_blocks_and_deltas(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        check(STR(START BLOCK(0, "{\"type\":\"text\",\"text\":\"\",\"citations\":[]}") DELTA(
                  0, "{\"type\":\"citations_delta\",\"citation\":{\"cited_text\":\"x\"}}")
                      DELTA(0, "{\"type\":\"citations_delta\",\"citation\":{\"cited_text\":\"y\"}}")
                          DELTA(0, "{\"type\":\"text_delta\",\"text\":\"cited\"}") SHUT(0) BLOCK(1,
                              "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"web_"
                              "search\",\"input\":{}}") DELTA(1,
                              "{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"q\\\":1}\"}")
                              SHUT(1) BLOCK(2, "{\"type\":\"later\",\"state\":\"a\"}") DELTA(
                                  2, "{\"type\":\"later_delta\",\"state\":\"b\",\"more\":[1]}")
                                  SHUT(2) STOP("pause_turn")),
            "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"cited\","
            "\"citations\":[{\"cited_text\":\"x\"},{\"cited_text\":\"y\"}]},"
            "{\"type\":\"server_tool_use\",\"id\":\"srvtoolu_1\",\"name\":\"web_search\","
            "\"input\":{\"q\":1}},{\"type\":\"later\",\"state\":\"ab\",\"more\":[1]}]}",
            &f, &r);
        assert_int_equal(r.count, 0); /* the endpoint runs a hosted tool itself */
        assert_int_equal(r.finish, FINISH_OTHER);
        end(&f, &r);
}

static void cut_and_errors(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        stream(&f, STR(START TEXT(0, "half")), 0, &r);
        assert_string_equal(r.fault.code, "LLM_NETWORK");
        assert_string_equal(buf_cstr(&r.text), "half");
        end(&f, &r);
        stream(&f,
            STR(START TEXT(0, "half") E("error", ",\"error\":{\"type\":\"overloaded_error\","
                                                 "\"message\":\"Overloaded\"}")),
            0, &r);
        assert_string_equal(r.fault.code, "LLM_SERVER");
        assert_true(r.fault.retryable);
        assert_non_null(strstr(r.fault.message, "Overloaded"));
        assert_string_equal(buf_cstr(&r.text), "half");
        end(&f, &r);
        stream(&f, STR(START STOP("end_turn")), 0, &r);
        assert_string_equal(r.fault.code, "LLM_EMPTY");
        end(&f, &r);
        stream(&f, STR(START STOP("refusal")), 0, &r);
        assert_null(r.fault.code);
        assert_int_equal(r.finish, FINISH_FILTER);
        end(&f, &r);
        stream(&f, STR("event: x\ndata: not json\n\n"), 0, &r);
        assert_string_equal(r.fault.code, "LLM_BAD_REPLY");
        end(&f, &r);
}

static void whole_body(void **state)
{
        (void)state;
        struct feed f;
        struct reply r;
        feed_init(&f);
        reply_init(&r);
        assert_int_equal(
            blockstream_body(&f.b,
                STR("{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","
                    "\"content\":[{\"type\":\"text\",\"text\":\"Yes\"},{\"type\":\"tool_use\","
                    "\"id\":\"t\",\"name\":\"n\",\"input\":{\"a\" : 1}}],\"stop_reason\":"
                    "\"tool_use\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2},"
                    "\"vendor\":{\"x\":1}}")),
            0);
        assert_int_equal(blockstream_finish(&f.b, &r, NULL), 0);
        assert_string_equal(buf_cstr(&r.message),
            "{\"role\":\"assistant\",\"vendor\":{\"x\":1},\"content\":[{\"type\":\"text\","
            "\"text\":\"Yes\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":"
            "{\"a\" : 1}}]}");
        assert_string_equal(buf_cstr(&r.calls[0].args), "{\"a\" : 1}");
        assert_int_equal(r.total_tokens, 3);
        assert_string_equal(buf_cstr(&f.text), "Yes");
        end(&f, &r);
        feed_init(&f);
        reply_init(&r);
        assert_int_equal(blockstream_body(&f.b, STR("{\"choices\":[]}")), 0);
        assert_int_equal(blockstream_finish(&f.b, &r, NULL), 0);
        assert_string_equal(r.fault.code, "LLM_BAD_REPLY");
        end(&f, &r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            {"text comes piece by piece, and the last usage that was sent counts", text_and_usage,
                NULL, NULL, NULL},
            {"thinking keeps its signature, and calls their input byte for byte",
                thinking_and_calls, NULL, NULL, NULL},
            {"an id or a name with a NUL is not taken for its first half", words_with_nul, NULL,
                NULL, NULL},
            {"input that is cut off or not an object is kept and not run", broken_input, NULL, NULL,
                NULL},
            {"blocks and deltas of unknown kinds are kept whole", unknown_blocks_and_deltas, NULL,
                NULL, NULL},
            {"a cut stream, an error inside it and an empty reply are faults", cut_and_errors, NULL,
                NULL, NULL},
            {"a whole body gives the same message as a stream", whole_body, NULL, NULL, NULL},
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests_name("blockstream", tests, NULL, NULL);
}
