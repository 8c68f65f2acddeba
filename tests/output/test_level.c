/* The children of a JSON value are found while its text streams by, in pieces of any size and from
 * any place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "output/level.h"

/* What a walk reported, as one line: key=type@offset+bytes:head for each child. */
struct told {
        struct buf text;
        uint64_t most;
        uint64_t seen;
};

static int tell(void *ctx, const struct level_child *c)
{
        struct told *t = ctx;
        buf_printf(&t->text, "%llu %.*s=%s@%llu+%llu:%.*s;", (unsigned long long)c->index,
            (int)c->key.n, c->key.p ? c->key.p : "", level_type_name(c->type),
            (unsigned long long)c->offset, (unsigned long long)c->bytes, (int)c->head.n, c->head.p);
        return ++t->seen >= t->most;
}

/* Walks from `at` on, with the text in pieces of `piece` bytes; `out` gets the report and the
 * end. */
static enum level_state walk(
    const char *json, uint64_t at, size_t piece, uint64_t most, struct buf *out)
{
        struct told t = {.most = most};
        struct level l;
        size_t n = strlen(json);
        buf_init(&t.text, 0);
        level_init(&l, at, 8, tell, &t);
        while (l.state == LEVEL_MORE && l.pos < n) {
                size_t left = n - (size_t)l.pos;
                /* In a separate allocation, so that reading beyond it is noticed. */
                size_t take = left < piece ? left : piece;
                char *copy = malloc(take);
                assert_non_null(copy);
                memcpy(copy, json + l.pos, take);
                level_feed(&l, copy, take);
                free(copy);
        }
        enum level_state s = level_finish(&l);
        assert_false(level_failed(&l));
        buf_printf(&t.text, "%s",
            s == LEVEL_DONE      ? "done"
            : s == LEVEL_STOPPED ? "stopped"
            : s == LEVEL_BAD     ? "bad"
                                 : "more");
        if (s == LEVEL_DONE)
                buf_printf(&t.text, " %s %llu-%llu", level_type_name(l.type),
                    (unsigned long long)l.start, (unsigned long long)l.end);
        if (s == LEVEL_STOPPED)
                buf_printf(&t.text, " at %llu, %llu", (unsigned long long)l.pos,
                    (unsigned long long)l.child.index);
        buf_put_str(out, buf_str(&t.text));
        buf_release(&t.text);
        level_release(&l);
        return s;
}

static const struct {
        const char *json;
        uint64_t at;
        uint64_t most;
        const char *want;
} WALKS[] = {
    {"{}", 0, 99, "done object 0-2"},
    {" [ ] ", 0, 99, "done array 1-4"},
    {"[1,2.50,-0e1]", 0, 99,
        "0 =number@1+1:1;1 =number@3+4:2.50;2 =number@8+4:-0e1;done array 0-13"},
    {"{\"a\":1,\"a\":2}", 0, 99, "0 \"a\"=number@5+1:1;1 \"a\"=number@11+1:2;done object 0-13"},
    {"{ \"k\\\"]\" : [1,{\"x\":\"}\"}] , \"\" : true }", 0, 99,
        "0 \"k\\\"]\"=array@11+13:[1,{\"x\":;1 \"\"=boolean@32+4:true;done object 0-38"},
    {"[null,false,\"a,b\\\\\",{}]", 0, 99,
        "0 =null@1+4:null;1 =boolean@6+5:false;2 =string@12+7:\"a,b\\\\\";3 =object@20+2:{};done "
        "array 0-23"},
    {"[[1,2],[3]]", 1, 99, "0 =number@2+1:1;1 =number@4+1:2;done array 1-6"},
    {"[1,2,3]", 0, 2, "0 =number@1+1:1;1 =number@3+1:2;stopped at 5, 2"},
    {"[1,2]", 0, 2, "0 =number@1+1:1;1 =number@3+1:2;done array 0-5"},
    {"\"a\\u00e9]\"", 0, 99, "done string 0-10"},
    {"12345678901234567890", 0, 99, "done number 0-20"},
    {"[12,3]", 1, 99, "done number 1-3"},
    {"[true]", 1, 99, "done boolean 1-5"},
    {"[\"a\",1]", 1, 99, "done string 1-4"},
    {"[1,2] {\"more\":1}", 0, 99, "0 =number@1+1:1;1 =number@3+1:2;done array 0-5"},
    {"", 0, 99, "more"},
    {"  ", 0, 99, "more"},
    {"[1,2", 0, 99, "0 =number@1+1:1;more"},
    {"[\"a", 0, 99, "more"},
    {"{\"a\":", 0, 99, "more"},
    {"12.", 0, 99, "more"},
    {"[1,]", 0, 99, "0 =number@1+1:1;bad"},
    {"[1 2]", 0, 99, "bad"},
    {"[01]", 0, 99, "bad"},
    {"{\"a\" 1}", 0, 99, "bad"},
    {"{a:1}", 0, 99, "bad"},
    {"{\"a\":1,}", 0, 99, "0 \"a\"=number@5+1:1;bad"},
    {"[{]}]", 0, 99, "bad"},
    {"[\"\\x\"]", 0, 99, "bad"},
    {"[\"a\nb\"]", 0, 99, "bad"},
    {"tru]", 0, 99, "bad"},
    {"hello", 0, 99, "bad"},
    {"]", 0, 99, "bad"},
};

static void children_are_the_same_in_pieces_of_any_size_and_what_is_no_json_is_noticed(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof WALKS / sizeof *WALKS; i++) {
                for (size_t piece = 1; piece <= strlen(WALKS[i].json) + 1; piece++) {
                        struct buf got;
                        buf_init(&got, 0);
                        walk(WALKS[i].json, WALKS[i].at, piece, WALKS[i].most, &got);
                        if (strcmp(buf_cstr(&got), WALKS[i].want) != 0)
                                fail_msg("%s in pieces of %zu: %s, not %s", WALKS[i].json, piece,
                                    got.p, WALKS[i].want);
                        buf_release(&got);
                }
        }
}

static void a_walk_that_goes_on_gives_what_one_walk_gives(void **state)
{
        static const char *const TEXTS[] = {"[1, [2,\"],\"] ,{\"a\":3},\"x\",null]",
            "{\"a\":1, \"b\" : [2,3],\"b\":\"}\" ,\"\\\"\":{}}"};
        (void)state;
        for (size_t i = 0; i < 2; i++) {
                enum level_type type = i ? LEVEL_OBJECT : LEVEL_ARRAY;
                struct told whole = {.most = 99}, parts = {.most = 1};
                struct level l;
                buf_init(&whole.text, 0);
                buf_init(&parts.text, 0);
                level_init(&l, 0, 8, tell, &whole);
                assert_int_equal(level_feed(&l, TEXTS[i], strlen(TEXTS[i])), LEVEL_DONE);
                level_release(&l);
                uint64_t at = 0, index = 0;
                enum level_state s = LEVEL_STOPPED;
                while (s == LEVEL_STOPPED) {
                        level_init(&l, at, 8, tell, &parts);
                        if (at)
                                level_resume(&l, at, type, index);
                        s = level_feed(&l, TEXTS[i] + at, strlen(TEXTS[i]) - at);
                        assert_true(l.pos > at);
                        at = l.pos;
                        index = l.child.index;
                        level_release(&l);
                        parts.seen = 0;
                }
                assert_int_equal(s, LEVEL_DONE);
                assert_string_equal(buf_cstr(&parts.text), buf_cstr(&whole.text));
                buf_release(&whole.text);
                buf_release(&parts.text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(
                children_are_the_same_in_pieces_of_any_size_and_what_is_no_json_is_noticed),
            cmocka_unit_test(a_walk_that_goes_on_gives_what_one_walk_gives),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
