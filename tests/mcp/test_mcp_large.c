/*
 * test_mcp_large.c - answers of MCP servers that are too large to be held: whole, in constant
 * memory, and readable while they come, over every transport and in every order of members.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/text.h"
#include "mcp/mcp_content.h"
#include "mcp/mcp_stream.h"
#include "mcp_rig.h"
#include "support/seed.h"

/* ---- the stream alone, compared with the same result read at once ---- */

static int to_buf(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static void put_text(struct buf *b, struct seed *seed)
{
        static const char *const PIECES[] = {"word ", "\\n", "\\\"", "\\\\", "\\u00e9", "\xC3\xA9",
            "\\ud83d\\ude42", "\\ud83d", "\\ude42x", "\\/", "\xF0\x9F\x99\x82",
            "{}[],:", "\\u0000"};
        size_t want = seed_below(seed, 3) ? seed_below(seed, 200)
                                          : MCP_STREAM_STRING - 500 + seed_below(seed, 100000);
        for (size_t from = b->n; b->n - from < want;)
                buf_puts(b, PIECES[seed_below(seed, 13)]);
}

static void put_part(struct buf *b, struct seed *seed)
{
        switch (seed_below(seed, 5)) {
        case 0:
                buf_puts(b, "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"QUJD\"}");
                return;
        case 1:
                buf_puts(b, "{\"type\":\"resource_link\",\"uri\":\"file:///c\",\"name\":\"c\"}");
                return;
        case 2:
                buf_puts(b, "{ \"text\" : \"");
                put_text(b, seed);
                buf_puts(b, "\" , \"type\":\"text\", \"annotations\":{\"x\":[1,{\"y\":\"z\"}]} }");
                return;
        default:
                buf_puts(b, "{\"type\":\"text\",\"text\":\"");
                put_text(b, seed);
                buf_puts(b, "\"}");
        }
}

static void put_message(struct buf *b, struct seed *seed)
{
        bool last = seed_below(seed, 2);
        buf_puts(b, last ? "{" : "{\"jsonrpc\":\"2.0\",\"id\": 77 ,");
        buf_puts(b, "\"result\": {\"_meta\":{\"a\":\"id\",\"content\":[1]},\"content\":[");
        for (size_t i = 0, n = seed_below(seed, 5); i < n; i++) {
                buf_puts(b, i ? "," : "");
                put_part(b, seed);
        }
        buf_puts(b, "]");
        if (seed_below(seed, 2))
                buf_puts(b, ", \"isError\" : true");
        if (seed_below(seed, 3) == 0)
                buf_puts(b, ",\"structuredContent\":{\"a\":[1,{\"b\":\"c,}\"}],\"id\":9}");
        buf_puts(b, last ? "},\"jsonrpc\":\"2.0\",\"id\":77}" : "}}");
}

static void as_if_it_were_held(void **state)
{
        struct seed seed = seed_start();
        (void)state;
        for (int round = 0; round < seed_rounds(4000); round++) {
                struct buf message, want, got, answer;
                struct mcp_stream s;
                struct json j;
                bool is_error = false;
                buf_init(&message, 0);
                buf_init(&want, 0);
                buf_init(&got, 0);
                buf_init(&answer, 0);
                put_message(&message, &seed);
                json_init(&j);
                assert_int_equal(json_parse(&j, message.p, message.n, NULL, NULL), 0);
                assert_int_equal(mcp_content_write(
                                     &j, json_get(&j, 0, "result"), to_buf, &want, &is_error, NULL),
                    0);
                mcp_stream_init(&s, to_buf, &got);
                for (size_t at = 0, n; at < message.n; at += n) {
                        n = 1 + seed_below(&seed, seed_below(&seed, 2) ? 7 : 70000);
                        n = n < message.n - at ? n : message.n - at;
                        assert_int_equal(mcp_stream_feed(&s, message.p + at, n), 0);
                }
                assert_int_equal(mcp_stream_finish(&s, 77, &answer, NULL), 0);
                assert_true(s.has_id && s.id == 77 && !s.has_method);
                assert_int_equal(s.is_error, is_error);
                assert_int_equal(got.n, want.n);
                assert_memory_equal(got.p, want.p, want.n);
                mcp_stream_release(&s);
                json_release(&j);
                buf_release(&message);
                buf_release(&want);
                buf_release(&got);
                buf_release(&answer);
        }
}

/* ---- over the transports ---- */

/* A call whose output is only counted. */
struct measured {
        struct fake_call fake;
        uint64_t bytes;
        uint64_t blocks_seen; /* bytes of the expected text, in order */
        size_t in_block;
        bool wrong;
        char wait[128]; /* a file that is made with the first bytes; "": none */
        char last[32];
};

static struct buf block; /* what large.py repeats, decoded */

static void load_block(void)
{
        FILE *p = popen("cd " TESTS_DIR "/mcp/servers && PYTHONDONTWRITEBYTECODE=1 python3 -c "
                        "'import large,sys; sys.stdout.buffer.write(large.BLOCK.encode())'",
            "r");
        char page[4096];
        size_t n;
        buf_init(&block, 0);
        while ((n = fread(page, 1, sizeof page, p)) > 0)
                buf_put(&block, page, n);
        assert_int_equal(pclose(p), 0);
        assert_true(block.n > 60000);
}

static int measure(struct steno_tool_call *call, const void *p, size_t n, struct steno_error *err)
{
        struct measured *m = (struct measured *)call;
        const char *text = p;
        (void)err;
        if (m->wait[0]) {
                close(open(m->wait, O_CREAT | O_WRONLY, 0600));
                m->wait[0] = '\0';
        }
        m->bytes += n;
        size_t keep = n < sizeof m->last - 1 ? n : sizeof m->last - 1;
        memmove(m->last, m->last + keep, sizeof m->last - 1 - keep);
        memcpy(m->last + sizeof m->last - 1 - keep, text + n - keep, keep);
        while (n) {
                size_t take = block.n - m->in_block < n ? block.n - m->in_block : n;
                if (memcmp(block.p + m->in_block, text, take) != 0)
                        m->wrong = true;
                text += take;
                n -= take;
                m->in_block = (m->in_block + take) % block.n;
                m->blocks_seen += m->in_block == 0;
        }
        return 0;
}

static const struct tool_call_ops measuring = {measure, fake_step, fake_ref};

static uint64_t peak_kb(void)
{
        FILE *f = fopen("/proc/self/status", "r");
        char line[200];
        unsigned long kb = 0;
        while (fgets(line, sizeof line, f))
                if (sscanf(line, "VmHWM: %lu", &kb) == 1)
                        break;
        fclose(f);
        return kb;
}

static uint64_t blocks(void)
{
        return getenv("STENO_TEST_LONG") ? 16384 : 800; /* 1 GB, 50 MB */
}

static int run(struct measured *m, const struct rig *r, const char *args)
{
        char tool[80];
        snprintf(tool, sizeof tool, "mcp__%s__large", r->server.name);
        fake_init(&m->fake);
        m->fake.call.ops = &measuring;
        return fake_run(&m->fake, &r->set, tool, args);
}

/* A text of that many blocks, then a line: it is stored whole, can be read while it arrives, and
 * needs little memory. */
static void is_stored_whole(const struct rig *r, const char *more)
{
        struct measured m = {0};
        char args[300];
        snprintf(m.wait, sizeof m.wait, "%s/go%d", r->marks, rand());
        snprintf(args, sizeof args, "{\"blocks\":%llu,\"wait\":\"%s\"%s}",
            (unsigned long long)blocks(), m.wait, more);
        uint64_t before = peak_kb();
        int rc = run(&m, r, args);
        if (rc)
                fail_msg("%s: %d %s", args, rc, m.fake.err.msg);
        assert_int_equal(m.blocks_seen, blocks());
        assert_int_equal(m.bytes, blocks() * block.n + strlen("\nbehind it"));
        assert_string_equal(m.last + sizeof m.last - 1 - 10, "\nbehind it");
        if (!getenv("STENO_TEST_SANITIZER"))
                assert_in_range(peak_kb() - before, 0, 32 * 1024);
        printf("# %llu MB, %llu KB more memory\n", (unsigned long long)(m.bytes >> 20),
            (unsigned long long)(peak_kb() - before));
        fake_release(&m.fake);
}

static void over_stdio(void **state)
{
        struct rig r;
        (void)state;
        rig_fake(&r, "legacy");
        is_stored_whole(&r, "");
        is_stored_whole(&r, ",\"shape\":\"id last\"");
        is_stored_whole(&r, ",\"shape\":\"type last\",\"ascii\":true");
        expect(&r, "mcp__fake__echo", "{}", "{}");
        rig_release(&r);
}

static void rig_web(struct rig *r, struct web *w, const char *mode)
{
        web_start(w, mode);
        rig_init(r, "web", NULL);
        r->server.url = w->url;
        rig_start(r);
        if (r->warnings.n)
                fail_msg("%s", buf_cstr(&r->warnings));
}

static void over_http(void **state)
{
        (void)state;
        for (int modern = 0; modern < 2; modern++) {
                struct web w;
                struct rig r;
                rig_web(&r, &w, modern ? "modern" : "legacy");
                is_stored_whole(&r, "");
                is_stored_whole(&r, ",\"sse\":true,\"shape\":\"id last\"");
                rig_release(&r);
                web_end(&w);
        }
}

/* Content that is not plain text: nothing of it is lost. */
static void other_shapes(void **state)
{
        struct rig r;
        (void)state;
        rig_fake(&r, "legacy");
        for (int i = 0; i < 2; i++) {
                struct measured m = {0};
                assert_int_equal(run(&m, &r,
                                     i ? "{\"blocks\":40,\"shape\":\"image\"}"
                                       : "{\"blocks\":40,\"shape\":\"structured\"}"),
                    0);
                assert_true(m.bytes > 40 * block.n);
                assert_string_equal(m.last + sizeof m.last - 1 - 10, "\nbehind it");
                fake_release(&m.fake);
        }
        rig_release(&r);
}

/* After a caller left without its answer, the next answer may be the one for that caller: until its
 * id arrives, nobody can tell. */
static void after_one_who_left(void **state)
{
        struct rig r;
        struct fake_call f;
        (void)state;
        rig_fake(&r, "legacy");
        fake_init(&f);
        f.call.deadline = time_monotonic_ms() + 100;
        assert_int_equal(fake_run(&f, &r.set, "mcp__fake__hang", "{}"), STENO_ETIMEOUT);
        fake_release(&f);
        for (int i = 0; i < 2; i++) {
                struct measured m = {0};
                uint64_t before = peak_kb();
                assert_int_equal(
                    run(&m, &r, i ? "{\"blocks\":600,\"shape\":\"id last\"}" : "{\"blocks\":600}"),
                    0);
                assert_int_equal(m.blocks_seen, 600);
                assert_int_equal(m.bytes, 600 * block.n + strlen("\nbehind it"));
                if (!getenv("STENO_TEST_SANITIZER"))
                        assert_in_range(peak_kb() - before, 0, 32 * 1024);
                fake_release(&m.fake);
        }
        rig_release(&r);
}

/* ---- a hostile server ---- */

static void hostile(void **state)
{
        static const char *const BROKEN[] = {
            "nonsense", "error", "breaks off", "no content", "another id"};
        struct rig r;
        (void)state;
        rig_fake(&r, "legacy");
        for (size_t i = 0; i < sizeof BROKEN / sizeof *BROKEN; i++) {
                struct measured m = {0};
                char args[80];
                snprintf(args, sizeof args, "{\"blocks\":40,\"shape\":\"%s\"}", BROKEN[i]);
                int rc = run(&m, &r, args);
                if (rc || !m.fake.result.is_error || m.bytes == 0)
                        fail_msg("%s: %d %s", BROKEN[i], rc, m.fake.err.msg);
                fake_release(&m.fake);
                expect(&r, "mcp__fake__echo", "{}", "{}");
        }
        struct measured m = {0};
        assert_int_equal(run(&m, &r, "{\"blocks\":40,\"shape\":\"long key\"}"), 0);
        assert_int_equal(m.bytes, strlen("behind it"));
        fake_release(&m.fake);
        rig_release(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            {"an answer that is not held gives the same result as if it were", as_if_it_were_held,
                NULL, NULL, NULL},
            {"a large answer over stdio is stored whole while it comes, in little memory",
                over_stdio, NULL, NULL, NULL},
            {"a large answer over HTTP is stored whole while it comes, in little memory", over_http,
                NULL, NULL, NULL},
            {"a large answer whose id comes last is given to the right call", after_one_who_left,
                NULL, NULL, NULL},
            {"nothing of a large answer of another kind is lost", other_shapes, NULL, NULL, NULL},
            {"a large answer that is broken is an error, and the server still works", hostile, NULL,
                NULL, NULL},
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
        load_block();
        int rc = cmocka_run_group_tests(tests, NULL, NULL);
        buf_release(&block);
        return rc;
}
