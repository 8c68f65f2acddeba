/* Messages that are too long for a log line: what is stored elsewhere is returned byte for byte,
 * and is stored once, however often it is sent. */
#include "api/rig.h"

#include "base/hash.h"
#include "base/limits.h"
#include "output/legacy_carrier.h"

/* ---- helpers ---- */

static void put_digits(struct buf *b, size_t n)
{
        char *to = buf_reserve(b, n);
        assert_non_null(to);
        for (size_t i = 0; i < n; i++)
                to[i] =
                    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[i * 31 % 61];
        b->n += n;
}

/* The longest line of the log. */
static size_t longest_line(struct rig *r)
{
        char path[400], *line = NULL;
        size_t cap = 0, longest = 0;
        snprintf(path, sizeof path, "%s/projects/default/conversations/c/messages.jsonl",
            r->scratch.path);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        for (ssize_t n; (n = getline(&line, &cap, f)) > 0;)
                longest = (size_t)n > longest ? (size_t)n : longest;
        free(line);
        fclose(f);
        return longest;
}

struct sum {
        struct sha256 sha;
        size_t n;
        size_t largest;
};

static int add(void *ctx, const void *p, size_t n)
{
        struct sum *s = ctx;
        hash_sha256_update(&s->sha, p, n);
        s->n += n;
        s->largest = n > s->largest ? n : s->largest;
        return 0;
}

/* A view of only this message is the message, in brackets. */
static void assert_comes_back(struct rig *r, struct str message)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai"};
        struct sum got = {0}, want = {0};
        unsigned char a[SHA256_SIZE], b[SHA256_SIZE];
        hash_sha256_init(&got.sha);
        hash_sha256_init(&want.sha);
        OK(steno_view(r->conv, &opt, add, &got, NULL, &err));
        add(&want, "[", 1);
        add(&want, message.p, message.n);
        add(&want, "]", 1);
        assert_int_equal(got.n, want.n);
        hash_sha256_finish(&got.sha, a);
        hash_sha256_finish(&want.sha, b);
        assert_memory_equal(a, b, sizeof a);
}

static void append(struct rig *r, struct str message)
{
        OK(steno_append(r->conv, message.p, message.n, NULL, NULL, &err));
}

static size_t list_count(struct rig *r)
{
        struct json j;
        char *json = rig_context(r, "list", "{}");
        rig_parse(&j, json);
        size_t n = json_count(&j, json_get(&j, 0, "items"));
        json_release(&j);
        steno_free(json);
        return n;
}

/* ---- large tokens ---- */

static void an_image_of_20_mb_comes_back_byte_for_byte(void **state)
{
        struct rig *r = *state;
        struct buf m;
        buf_init(&m, 0);
        buf_puts(&m,
            "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"look \\u00e9\"},"
            "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,");
        put_digits(&m, 20 * MIB);
        buf_puts(&m, "\",\"n\":1.50}}]}");
        append(r, buf_str(&m));
        assert_comes_back(r, buf_str(&m));
        assert_true(longest_line(r) < 4096);
        rig_check(r);
        buf_release(&m);
}

static void many_medium_strings_leave_the_line_together(void **state)
{
        struct rig *r = *state;
        struct buf m;
        buf_init(&m, 0);
        buf_puts(&m, "{\"role\":\"user\",\"content\":\"x\",\"extra\":{");
        for (int i = 0; i < 200; i++) {
                buf_printf(&m, "%s\"k%d\":\"%d ", i ? "," : "", i, i);
                put_digits(&m, 20000 + (size_t)i);
                buf_puts(&m, "\\ud83d\\ude00\\/\"");
        }
        buf_puts(&m, "}}");
        append(r, buf_str(&m));
        assert_comes_back(r, buf_str(&m));
        assert_true(longest_line(r) < LINE_MAX_BYTES);
        rig_check(r);
        buf_release(&m);
}

static void sixty_megabytes_of_small_tokens_come_back(void **state)
{
        struct rig *r = *state;
        struct buf m;
        buf_init(&m, 0);
        size_t size = (getenv("STENO_TEST_LONG") ? 60 : 6) * MIB;
        int wide = size > 6 * MIB ? 150 : 1; /* a message has at most a million values */
        buf_puts(&m, "{\"role\":\"user\",\"content\":\"x\",\"numbers\":[0");
        for (int i = 1; m.n < size; i++)
                buf_printf(&m, ",%d.%02d,\"%0*x\"", i, i % 100, wide, (unsigned)i);
        buf_puts(&m, "]}");
        append(r, buf_str(&m));
        assert_comes_back(r, buf_str(&m));
        assert_true(longest_line(r) < LINE_MAX_BYTES);
        rig_check(r);
        buf_release(&m);
}

/* Each token is looked at a fixed number of times, wherever it stands. */
static void the_cost_of_many_tokens_is_their_number(void **state)
{
        struct rig *r = *state;
        struct buf m;
        clock_t begun = clock();
        buf_init(&m, 0);
        for (int object = 0; object < 2; object++) {
                buf_clear(&m);
                buf_puts(&m, "{\"role\":\"user\",\"content\":\"x\",\"list\":");
                buf_putc(&m, "[{"[object]);
                for (int i = 0; i < 80000; i++) {
                        buf_puts(&m, i ? "," : "");
                        if (object)
                                buf_printf(&m, "\"k%d\":", i);
                        buf_puts(&m, "\"");
                        put_digits(&m, 600);
                        buf_puts(&m, "\"");
                }
                buf_putc(&m, "]}"[object]);
                buf_putc(&m, '}');
                append(r, buf_str(&m));
        }
        assert_true(clock() - begun < 8 * CLOCKS_PER_SEC);
        assert_true(longest_line(r) < LINE_MAX_BYTES);
        buf_release(&m);
}

static void long_keys_stay_keys(void **state)
{
        struct rig *r = *state;
        struct buf m;
        buf_init(&m, 0);
        buf_puts(&m, "{\"role\":\"user\",\"content\":\"x\",\"deep\":{\"");
        put_digits(&m, 100000);
        buf_puts(&m, "\":[[{\"k\":\"");
        put_digits(&m, 50000);
        buf_puts(&m, "\"}]]}}");
        append(r, buf_str(&m));
        assert_comes_back(r, buf_str(&m));
        assert_true(longest_line(r) < LINE_MAX_BYTES);
        buf_release(&m);
}

static void the_same_picture_is_stored_once(void **state)
{
        struct rig *r = *state;
        struct buf m;
        char command[600];
        buf_init(&m, 0);
        buf_puts(&m, "{\"role\":\"user\",\"content\":\"");
        put_digits(&m, 100000);
        buf_puts(&m, "\"}");
        for (int i = 0; i < 5; i++)
                append(r, buf_str(&m));
        snprintf(command, sizeof command,
            "test $(ls '%s/projects/default/conversations/c/artifacts/parts' | wc -l) = 1",
            r->scratch.path);
        assert_int_equal(system(command), 0);
        rig_check(r);
        buf_release(&m);
}

/* ---- the same again ---- */

static void put_tool(struct buf *m, const char *id, const char *call, char fill, size_t n)
{
        buf_clear(m);
        buf_printf(
            m, "{\"id\":\"%s\",\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":\"", id, call);
        for (size_t i = 0; i < n; i++)
                buf_putc(m, i % 80 == 79 ? ' ' : fill);
        buf_puts(m, "\"}");
}

static void a_large_output_that_is_sent_again_is_stored_once(void **state)
{
        struct rig *r = *state;
        struct buf m;
        struct steno_receipt *first, *again;
        struct steno_error why = {0};
        buf_init(&m, 0);
        rig_call_in(r->conv, "one");
        put_tool(&m, "m1", "one", 'x', 50000);
        OK(steno_append(r->conv, m.p, m.n, NULL, &first, &err));
        assert_int_equal(list_count(r), 1);
        OK(steno_append(r->conv, m.p, m.n, NULL, &again, &err));
        assert_true(steno_receipt_replayed(again));
        assert_string_equal(steno_receipt_json(first), steno_receipt_json(again));
        assert_int_equal(list_count(r), 1);
        steno_receipt_free(first);
        steno_receipt_free(again);
        put_tool(&m, "m1", "one", 'y', 50000);
        assert_int_equal(steno_append(r->conv, m.p, m.n, NULL, NULL, &why), STENO_ECONFLICT);
        assert_int_equal(list_count(r), 1);
        /* The same with a key, where the message has no id. */
        struct steno_append_options opt = {.size = sizeof opt, .idempotency_key = "k"};
        rig_call_in(r->conv, "two");
        put_tool(&m, "x", "two", 'z', 50000);
        buf_drop_front(&m, strlen("{\"id\":\"x\","));
        struct buf bare;
        buf_init(&bare, 0);
        buf_putc(&bare, '{');
        buf_put_str(&bare, buf_str(&m));
        OK(steno_append(r->conv, bare.p, bare.n, &opt, &first, &err));
        OK(steno_append(r->conv, bare.p, bare.n, &opt, &again, &err));
        assert_string_equal(steno_receipt_json(first), steno_receipt_json(again));
        assert_int_equal(list_count(r), 2);
        steno_receipt_free(first);
        steno_receipt_free(again);
        rig_check(r);
        buf_release(&m);
        buf_release(&bare);
}

static void a_refused_append_leaves_no_file(void **state)
{
        struct rig *r = *state;
        struct buf m;
        struct steno_error why = {0};
        buf_init(&m, 0);
        put_tool(&m, "m1", "never_called", 'x', 50000);
        assert_int_equal(steno_append(r->conv, m.p, m.n, NULL, NULL, &why), STENO_EPROTO);
        assert_int_equal(list_count(r), 0);
        rig_check(r);
        buf_release(&m);
}

static int take_message(void *ctx, const struct steno_record *rec)
{
        char *json;
        size_t n;
        OK(steno_record_message(rec, &json, &n, &err));
        buf_put(ctx, json, n);
        steno_free(json);
        return 0;
}

static void a_client_that_stores_in_full_gets_it_in_full(void **state)
{
        struct rig *r = *state;
        struct buf m, out, again;
        buf_init(&m, 0);
        buf_init(&out, 0);
        buf_init(&again, 0);
        rig_call_in(r->conv, "one");
        put_tool(&m, "m1", "one", 'x', 50000);
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_KEEP_OUTPUTS};
        OK(steno_append(r->conv, m.p, m.n, &opt, NULL, &err));
        OK(steno_read_id(r->conv, "m1", take_message, &again, &err));
        assert_same(buf_str(&m), buf_str(&again));
        rig_last_content(r, STENO_OUTPUTS_DEFAULT, &out); /* what a model reads */
        assert_true(out.n < 16384);
        rig_last_content(r, STENO_OUTPUTS_FULL, &out);
        assert_int_equal(out.n, 50000);
        assert_true(longest_line(r) < 16384);
        buf_release(&again);
        buf_release(&m);
        buf_release(&out);
}

static void answers_of_context_tools_and_stubs_stay_as_they_are(void **state)
{
        struct rig *r = *state;
        struct buf m, out;
        buf_init(&m, 0);
        buf_init(&out, 0);
        static const char *const NAMES[] = {"context_read", "context.tail", "context_grep"};
        for (int i = 0; i < 3; i++) {
                char call[16], id[16], name[64];
                snprintf(call, sizeof call, "c%d", i);
                snprintf(id, sizeof id, "m%d", i);
                rig_call_in(r->conv, call);
                put_tool(&m, id, call, 'x', 12000);
                m.n--;
                snprintf(name, sizeof name, ",\"toolName\":\"%s\"}", NAMES[i]);
                buf_puts(&m, name);
                append(r, buf_str(&m));
                rig_last_content(r, STENO_OUTPUTS_STUB, &out);
                assert_int_equal(out.n, 12000);
        }
        assert_int_equal(list_count(r), 0);
        /* A stub that another program made, and that is too large to be inline. */
        struct streamed got;
        struct buf text;
        buf_init(&text, 0);
        for (int i = 0; i < 3000; i++)
                buf_printf(&text, "error: line %d of many that fail in some way\n", i);
        struct steno_output_options opt = rig_options(rig_call(r));
        rig_stream(r, &opt, text.p, text.n, NULL, &got);
        assert_true(got.content.n > 4000);
        rig_call_in(r->conv, "again");
        buf_clear(&m);
        buf_puts(&m, "{\"role\":\"tool\",\"tool_call_id\":\"again\",\"content\":");
        json_put_string(&m, buf_str(&got.content));
        buf_puts(&m, "}");
        append(r, buf_str(&m));
        rig_last_content(r, STENO_OUTPUTS_STUB, &out);
        assert_same(buf_str(&got.content), buf_str(&out));
        assert_int_equal(list_count(r), 1);
        streamed_release(&got);
        buf_release(&text);
        buf_release(&m);
        buf_release(&out);
}

/* ---- calls in the text ---- */

static void put_response(struct buf *b, int kind, int lines)
{
        if (kind == 1)
                buf_puts(b, "{\"rows\":[0");
        for (int i = 0; i < lines; i++)
                buf_printf(
                    b, kind == 1 ? ",{\"row\":%d}" : "line %d </function_call> \xC3\xA9\n", i);
        if (kind == 1)
                buf_puts(b, "]}");
}

/* An assistant's text with three calls: a large text, a large JSON value, a small text. */
static void put_calls(struct buf *text, struct buf *a, struct buf *b)
{
        struct buf call;
        buf_init(&call, 0);
        put_response(a, 0, 2000);
        put_response(b, 1, 2000);
        buf_puts(text, "I will look.\n");
        buf_puts(&call, "{\"id\":\"l1\",\"name\":\"cat\",\"arguments\":{\"x\":1},\"response\":");
        json_put_string(&call, buf_str(a));
        buf_putc(&call, '}');
        legacy_put_call(text, buf_str(&call));
        buf_clear(&call);
        buf_puts(text, " and ");
        buf_puts(&call, "{\"id\":\"l2\",\"name\":\"query\",\"response\":");
        buf_put_str(&call, buf_str(b));
        buf_puts(&call, ",\"last\":true}");
        legacy_put_call(text, buf_str(&call));
        legacy_put_call(text, STR("{\"id\":\"l3\",\"name\":\"ls\",\"response\":\"small\"}"));
        buf_puts(text, "\nDone.");
        buf_release(&call);
}

static void large_responses_in_the_text_are_taken_out_of_it(void **state)
{
        struct rig *r = *state;
        static const char *const FORMATS[] = {NULL, "legacy"};
        for (int i = 0; i < 2; i++) {
                struct buf text, a, b, m, out, id, view;
                struct buf *all[] = {&text, &a, &b, &m, &out, &id, &view};
                for (size_t k = 0; k < 7; k++)
                        buf_init(all[k], 0);
                put_calls(&text, &a, &b);
                buf_printf(&m, "{\"id\":\"legacy%d\",\"role\":\"assistant\",\"content\":", i);
                json_put_string(&m, buf_str(&text));
                buf_puts(&m, "}");
                struct steno_append_options opt = {.size = sizeof opt, .format = FORMATS[i]};
                struct steno_view_options v = {.size = sizeof v,
                    .format = i ? "legacy" : "openai",
                    .last = 1,
                    .outputs = STENO_OUTPUTS_FULL};
                OK(steno_append(r->conv, m.p, m.n, &opt, NULL, &err));
                assert_int_equal(list_count(r), 2 * (size_t)(i + 1));
                OK(steno_append(r->conv, m.p, m.n, &opt, NULL, &err)); /* a replay */
                assert_int_equal(list_count(r), 2 * (size_t)(i + 1));
                /* A full view has what was sent. */
                OK(steno_view(r->conv, &v, rig_gather, &view, NULL, &err));
                struct json j;
                rig_parse(&j, buf_cstr(&view));
                buf_clear(&out);
                json_string(&j, json_get(&j, json_at(&j, 0, 0), "content"), &out, NULL);
                json_release(&j);
                assert_same(buf_str(&text), buf_str(&out));
                /* A view with stubs is small, has whole calls, and each has its ref. */
                v.outputs = STENO_OUTPUTS_DEFAULT;
                buf_clear(&view);
                OK(steno_view(r->conv, &v, rig_gather, &view, NULL, &err));
                rig_parse(&j, buf_cstr(&view));
                buf_clear(&out);
                json_string(&j, json_get(&j, json_at(&j, 0, 0), "content"), &out, NULL);
                json_release(&j);
                assert_true(out.n * 2 < text.n);
                size_t at = 0, start, calls = 0;
                struct str call;
                while (legacy_next(buf_str(&out), &at, &start, &call)) {
                        struct buf whole;
                        OK(json_parse(&j, call.p, call.n, NULL, &err));
                        json_ref ref = json_get(&j, 0, "ref");
                        assert_int_equal(ref != JSON_NONE, calls < 2);
                        buf_clear(&id);
                        buf_init(&whole, 0);
                        if (json_string(&j, json_get(&j, ref, "id"), &id, NULL)) {
                                rig_raw(r, buf_cstr(&id), &whole);
                                assert_same(buf_str(calls ? &b : &a), buf_str(&whole));
                        }
                        buf_release(&whole);
                        json_release(&j);
                        calls++;
                }
                assert_int_equal(calls, 3);
                for (size_t k = 0; k < 7; k++)
                        buf_release(all[k]);
        }
        /* Both are removed with their message. */
        char *report = NULL;
        OK(steno_amend(r->conv, "delete", "legacy0", NULL, 0, NULL, NULL, &err));
        OK(steno_purge(r->store, NULL, "c", &report, &err));
        steno_free(report);
        assert_int_equal(list_count(r), 2);
        rig_check(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
        const struct CMUnitTest tests[] = {
            TEST(an_image_of_20_mb_comes_back_byte_for_byte),
            TEST(many_medium_strings_leave_the_line_together),
            TEST(sixty_megabytes_of_small_tokens_come_back),
            TEST(the_cost_of_many_tokens_is_their_number),
            TEST(long_keys_stay_keys),
            TEST(the_same_picture_is_stored_once),
            TEST(a_large_output_that_is_sent_again_is_stored_once),
            TEST(a_refused_append_leaves_no_file),
            TEST(a_client_that_stores_in_full_gets_it_in_full),
            TEST(answers_of_context_tools_and_stubs_stay_as_they_are),
            TEST(large_responses_in_the_text_are_taken_out_of_it),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
