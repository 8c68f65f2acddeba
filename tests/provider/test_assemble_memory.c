/*
 * Assembling a reply while each allocation fails in turn gives an error or the right reply. Half of
 * a reply would be stored and acted on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "support/failalloc.h"
#include "provider/assemble.h"
#include "provider/blockstream.h"
#include "net/sse.h"
#include "tool/tool.h"

static const char bytes[] =
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"a long enough text to "
    "grow a buffer, and then some\",\"reasoning_content\":\"hm\"}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"parts\"}]}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\"more\",\"o\":{\"id\":\"i\",\"s\":\"1\"}}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"content\":\" text\",\"o\":{\"id\":\"i\",\"s\":\"2\"}}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"x\":{\"y\":1},"
    "\"function\":{\"name\":\"n\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":"
    "\"1}\"}},{\"index\":1,\"function\":{\"name\":\"m\",\"arguments\":{\"k\":[]}}},{\"index\":2,"
    "\"id\":\"c\",\"function\":{}}]}}]}\n\n"
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{"
    "\"total_tokens\":5}}\n\ndata: [DONE]\n\n";

static const char message[] =
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a long enough text to grow "
    "a buffer, and then some\"},{\"type\":\"text\",\"text\":\"parts\"},{\"type\":\"text\",\"text\":"
    "\"more text\"}],\"reasoning_content\":\"hm\",\"o\":{\"id\":\"i\",\"s\":\"12\"},"
    "\"tool_calls\":[{\"id\":\"c\",\"x\":{\"y\":1},\"type\":\"function\",\"function\":{"
    "\"name\":\"n\",\"arguments\":\"{\\\"a\\\":1}\"}},{\"id\":\"made\",\"type\":\"function\","
    "\"function\":{\"name\":\"m\",\"arguments\":\"{\\\"k\\\":[]}\"}},{\"id\":\"made\",\"type\":"
    "\"function\",\"function\":{\"arguments\":\"\"}}]}";

static void make_id(void *ctx, char out[64])
{
        (void)ctx;
        snprintf(out, 64, "made");
}

static int piece(void *ctx, enum reply_piece kind, struct str text)
{
        (void)ctx;
        (void)kind;
        (void)text;
        return 0;
}

static int event(void *ctx, struct str name, struct str data)
{
        (void)name;
        return assemble_chunk(ctx, data);
}

/* 0 when everything worked; then the reply must be right. */
static int assemble(void)
{
        struct assemble a;
        struct reply r;
        struct sse s;
        struct reply_hooks hooks = {make_id, piece, NULL};
        assemble_init(&a, &hooks);
        reply_init(&r);
        sse_init(&s, 0, event, &a);
        int rc = sse_feed(&s, bytes, sizeof(bytes) - 1);
        if (rc == 0)
                rc = sse_finish(&s);
        if (rc == 0)
                rc = assemble_finish(&a, &r, NULL);
        if (rc == 0) {
                assert_string_equal(buf_cstr(&r.message), message);
                assert_int_equal(r.count, 3);
                assert_string_equal(r.calls[0].args.p, "{\"a\":1}");
                assert_null(r.fault.code);
                assert_int_equal(r.total_tokens, 5);
        }
        sse_release(&s);
        reply_release(&r);
        assemble_release(&a);
        return rc;
}

static const char blocks[] =
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[],\"x\":[1],"
    "\"usage\":{\"input_tokens\":3}}}\n\n"
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
    "\"text\":\"\"}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
    "\"text\":\"a text\"}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
    "\"citations_delta\",\"citation\":{\"c\":1}}}\n\n"
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":"
    "\"tool_use\",\"id\":\"\",\"name\":\"n\",\"input\":{}}}\n\n"
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":"
    "\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\n"
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{"
    "\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n";

static const char blocks_message[] =
    "{\"role\":\"assistant\",\"x\":[1],\"content\":[{\"type\":\"text\",\"text\":\"a text\","
    "\"citations\":[{\"c\":1}]},{\"type\":\"tool_use\",\"id\":\"made\",\"name\":\"n\","
    "\"input\":{\"a\":1}}]}";

static int block_event(void *ctx, struct str name, struct str data)
{
        (void)name;
        return blockstream_event(ctx, data);
}

static int assemble_blocks(void)
{
        struct blockstream b;
        struct reply r;
        struct sse s;
        struct reply_hooks hooks = {make_id, piece, NULL};
        blockstream_init(&b, &hooks);
        reply_init(&r);
        sse_init(&s, 0, block_event, &b);
        int rc = sse_feed(&s, blocks, sizeof(blocks) - 1);
        if (rc == 0)
                rc = sse_finish(&s);
        if (rc == 0)
                rc = blockstream_finish(&b, &r, NULL);
        if (rc == 0) {
                assert_string_equal(buf_cstr(&r.message), blocks_message);
                assert_int_equal(r.count, 1);
                assert_null(r.fault.code);
                assert_int_equal(r.total_tokens, 5);
        }
        sse_release(&s);
        reply_release(&r);
        blockstream_release(&b);
        return rc;
}

static int no_tool(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        (void)call;
        (void)err;
        return 0;
}

static int offer(void)
{
        struct steno_tools *tools = NULL;
        int rc = steno_tools_new(&tools, NULL);
        for (int i = 0; i < 20 && rc == 0; i++) {
                char name[16];
                snprintf(name, sizeof(name), "tool_%d", i);
                rc = steno_tools_add(
                    tools, name, "what it does", "{\"type\":\"object\"}", 0, no_tool, NULL, NULL);
        }
        if (rc == 0)
                assert_int_equal(tools->count, 20);
        steno_tools_free(tools);
        return rc;
}

static void sweep(int (*work)(void))
{
        assert_int_equal(work(), 0);
        for (long n = 1;; n++) {
                failalloc_start(n);
                int rc = work();
                if (!failalloc_stop()) {
                        assert_int_equal(rc, 0);
                        assert_true(n > 10);
                        return;
                }
                if (rc != STENO_ENOMEM && rc != 0)
                        print_message("# allocation %ld: %d\n", n, rc);
                assert_true(rc == STENO_ENOMEM || rc == 0);
        }
}

static void replies(void **state)
{
        (void)state;
        sweep(assemble);
        sweep(assemble_blocks);
}

static void tools(void **state)
{
        (void)state;
        sweep(offer);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"a reply is assembled right or not at all when memory runs out", replies, 0, 0, 0},
            {"a set of tools is built or refused when memory runs out", tools, 0, 0, 0},
        };
        return cmocka_run_group_tests_name("assemble memory", tests, NULL, NULL);
}
