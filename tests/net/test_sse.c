/*
 * Server-sent events from literal bytes, cut at every place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net/sse.h"

static int collect(void *ctx, struct str name, struct str data)
{
        struct buf *out = ctx;
        buf_put_str(out, name);
        buf_putc(out, '=');
        buf_put_str(out, data);
        buf_putc(out, '|');
        return 0;
}

/* The events of `bytes`, fed as [0, cut) and [cut, n). */
static void events(struct str bytes, size_t cut, struct buf *out)
{
        struct sse s;
        sse_init(&s, 0, collect, out);
        assert_int_equal(sse_feed(&s, bytes.p, cut), 0);
        assert_int_equal(sse_feed(&s, bytes.p + cut, bytes.n - cut), 0);
        assert_int_equal(sse_finish(&s), 0);
        sse_release(&s);
}

static void check(struct str bytes, const char *want)
{
        for (size_t cut = 0; cut <= bytes.n; cut++) {
                struct buf got;
                buf_init(&got, 0);
                events(bytes, cut, &got);
                assert_string_equal(buf_cstr(&got), want);
                buf_release(&got);
        }
}

static void line_ends(void **state)
{
        (void)state;
        check(STR("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n"),
            "message=a|message=b|message=c|message=d|");
}

static void fields(void **state)
{
        (void)state;
        check(STR("\xEF\xBB\xBF: hello\nevent: error\nid: 7\nretry: 5\ndata:  x\ndata:y\ndata\n\n"
                  ": only a comment\n\nevent: nothing\n\ndata: z\n\n"),
            "error= x\ny\n|message=z|");
}

static void unfinished(void **state)
{
        (void)state;
        check(STR("data: a\n\ndata: [DONE]"), "message=a|message=[DONE]|");
        check(STR("data: a\n\n: bye"), "message=a|");
}

static int refuse(void *ctx, struct str name, struct str data)
{
        (void)name;
        (void)data;
        ++*(int *)ctx;
        return -99;
}

static void callback_ends_it(void **state)
{
        (void)state;
        int seen = 0;
        struct sse s;
        sse_init(&s, 0, refuse, &seen);
        assert_int_equal(sse_feed(&s, "data: a\n\ndata: b\n\n", 18), -99);
        assert_int_equal(seen, 1);
        sse_release(&s);
}

static void limits(void **state)
{
        (void)state;
        struct buf got;
        struct sse s;
        buf_init(&got, 0);
        sse_init(&s, 16, collect, &got);
        assert_int_equal(sse_feed(&s, "data: 0123456789abcdef0123456789", 32), STENO_ELIMIT);
        sse_release(&s);
        buf_release(&got);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"lines may end in LF, CRLF or CR, and pieces may be cut anywhere", line_ends, 0, 0, 0},
            {"comments, names, a byte order mark and several data lines are understood", fields, 0,
                0, 0},
            {"an event whose blank line never came is given out at the end", unfinished, 0, 0, 0},
            {"a callback that refuses ends the feeding", callback_ends_it, 0, 0, 0},
            {"a line longer than the limit is refused", limits, 0, 0, 0},
        };
        return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
