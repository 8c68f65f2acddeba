/*
 * test_kinds.c - what every kind of store promises (store/backend.h), through the public calls. The
 * same tests run on files, and on PostgreSQL by tests/store/postgres.test; none asks which it has.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "api/api_store.h"
#include "base/buf.h"
#include "base/env.h"
#include "base/json.h"
#include "fixture.h"
#include "support/seed.h"

/* ---- help ---- */

static int send(struct fixture *f, const char *json, const struct steno_append_options *opt,
    struct steno_receipt **receipt, struct steno_error *err)
{
        return steno_append(f->conv, json, strlen(json), opt, receipt, err);
}

static uint64_t last_seq(struct fixture *f)
{
        uint64_t seq = 0;
        OK(steno_conv_last_seq(f->conv, &seq, &err));
        return seq;
}

static int note_line(void *ctx, const struct steno_record *r)
{
        struct buf *b = ctx;
        char *json = NULL;
        size_t n = 0;
        assert_int_equal(steno_record_message(r, &json, &n, NULL), 0);
        buf_printf(b, "%llu:", (unsigned long long)steno_record_seq(r));
        buf_put(b, json, n);
        buf_putc(b, '\n');
        steno_free(json);
        return 0;
}

static int take(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static void view(struct fixture *f, struct buf *out)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai"};
        buf_clear(out);
        OK(steno_view(f->conv, &opt, take, out, NULL, &err));
        assert_non_null(buf_cstr(out));
}

#define USER(id, text) "{\"id\":\"" id "\",\"role\":\"user\",\"content\":\"" text "\"}"
#define CALL(id)                                                                                   \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id                   \
        "\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}"

/* ---- appends ---- */

static void a_batch_goes_in_whole_or_not_at_all(void **state)
{
        struct fixture *f = *state;
        struct steno_error why = {0};
        fixture_append(f, "[" USER("a", "1") "," USER("b", "2") "," USER("c", "3") "]");
        assert_int_equal(last_seq(f), 3);
        assert_int_equal(send(f,
                             "[" USER("d", "4") ",{\"role\":\"tool\",\"tool_call_id\":\"none\","
                                                "\"content\":\"x\"}]",
                             NULL, NULL, &why),
            STENO_EPROTO);
        assert_non_null(strstr(why.msg, "message 2"));
        assert_int_equal(last_seq(f), 3);
        fixture_append(f, USER("d", "5"));
        assert_int_equal(last_seq(f), 4);
}

static void a_batch_of_a_thousand_goes_in_once(void **state)
{
        struct fixture *f = *state;
        struct buf b;
        buf_init(&b, 0);
        for (int i = 0; i < 1000; i++)
                buf_printf(&b, "%s" USER("m%d", "x"), i ? "," : "[", i);
        buf_putc(&b, ']');
        assert_non_null(buf_cstr(&b));
        fixture_append(f, buf_cstr(&b));
        assert_int_equal(last_seq(f), 1000);
        fixture_append(f, buf_cstr(&b)); /* its retry */
        assert_int_equal(last_seq(f), 1000);
        buf_release(&b);
}

static void the_same_id_is_stored_once(void **state)
{
        struct fixture *f = *state;
        struct steno_receipt *r = NULL;
        struct steno_error why = {0};
        static const char BATCH[] = "[" USER("a", "1") "," USER("b", "2") "]";
        OK(send(f, BATCH, NULL, &r, &err));
        assert_false(steno_receipt_replayed(r));
        steno_receipt_free(r);
        OK(send(f, BATCH, NULL, &r, &err));
        assert_true(steno_receipt_replayed(r));
        assert_int_equal(steno_receipt_first_seq(r), 1);
        assert_int_equal(steno_receipt_last_seq(r), 2);
        assert_string_equal(steno_receipt_id(r, 1), "b");
        steno_receipt_free(r);
        assert_int_equal(send(f, USER("b", "other"), NULL, NULL, &why), STENO_ECONFLICT);
        assert_non_null(strstr(why.msg, "with other bytes"));
        assert_int_equal(last_seq(f), 2);
}

static void the_same_key_gives_the_same_receipt(void **state)
{
        struct fixture *f = *state;
        struct steno_append_options key = {.size = sizeof key, .idempotency_key = "k1"};
        struct steno_receipt *r = NULL;
        struct steno_error why = {0};
        static const char NO_ID[] = "{\"role\":\"user\",\"content\":\"x\"}";
        char id[64];
        OK(send(f, NO_ID, &key, &r, &err));
        snprintf(id, sizeof id, "%s", steno_receipt_id(r, 0));
        steno_receipt_free(r);
        OK(send(f, NO_ID, &key, &r, &err));
        assert_true(steno_receipt_replayed(r));
        assert_string_equal(steno_receipt_id(r, 0), id);
        steno_receipt_free(r);
        assert_int_equal(send(f, USER("z", "y"), &key, NULL, &why), STENO_ECONFLICT);
        assert_non_null(strstr(why.msg, "idempotency key"));
        assert_int_equal(last_seq(f), 1);
}

#define HOUR (3600 * 1000)

static int64_t skew;

static int64_t skewed_now(const struct env *env)
{
        (void)env;
        return env_real()->now(env_real()) + skew;
}

/* By another machine, whose clock is `ahead` of ours. */
static void append_ahead(struct fixture *f, int64_t ahead, const char *json)
{
        struct env env = *env_real();
        struct fixture other = {.scratch = f->scratch};
        char url[512];
        env.now = skewed_now;
        skew = ahead;
        OK(api_store_open_in(&env, scratch_store(&f->scratch, url), NULL, &other.store, &err));
        OK(steno_conv_open(other.store, NULL, "c", &other.conv, &err));
        fixture_append(&other, json);
        fixture_close(&other);
}

struct times {
        char at[8][TIME_TEXT];
        size_t count;
};

static int note_time(void *ctx, const struct steno_record *r)
{
        struct times *t = ctx;
        snprintf(t->at[t->count++], TIME_TEXT, "%s", steno_record_at(r));
        return 0;
}

static void times_do_not_fall_when_clocks_differ(void **state)
{
        struct fixture *f = *state;
        struct times t = {0};
        fixture_append(f, USER("a", "1"));
        append_ahead(f, HOUR, USER("b", "2"));
        fixture_append(f, USER("c", "3"));
        append_ahead(f, 0, "[" USER("d", "4") "," USER("e", "5") "]");
        append_ahead(f, -HOUR, USER("f", "6"));
        OK(steno_read(f->conv, 0, 100, note_time, &t, &err));
        assert_int_equal(t.count, 6);
        for (size_t i = 1; i < t.count; i++)
                assert_true(strcmp(t.at[i - 1], t.at[i]) <= 0);
        assert_string_equal(t.at[1], t.at[5]); /* and it is the time of the one that is ahead */
        assert_true(strcmp(t.at[0], t.at[1]) < 0);
        /* A time that is too far ahead is not followed. */
        append_ahead(f, 1000L * 24 * HOUR, USER("g", "7"));
        fixture_append(f, USER("h", "8"));
        t.count = 0;
        OK(steno_read(f->conv, 0, 100, note_time, &t, &err));
        assert_int_equal(t.count, 8);
        assert_true(strcmp(t.at[7], t.at[6]) < 0);
}

static void an_expected_seq_is_compared(void **state)
{
        struct fixture *f = *state;
        struct steno_append_options expect = {
            .size = sizeof expect, .flags = STENO_EXPECT_SEQ, .expected_seq = 0};
        struct steno_error why = {0};
        OK(send(f, USER("a", "1"), &expect, NULL, &err));
        assert_int_equal(send(f, USER("b", "2"), &expect, NULL, &why), STENO_ECONFLICT);
        assert_string_equal(why.msg, "expected seq 0, the last is 1");
        expect.expected_seq = 1;
        OK(send(f, USER("b", "2"), &expect, NULL, &err));
}

static void results_have_their_calls(void **state)
{
        struct fixture *f = *state;
        struct steno_error why = {0};
        static const char RESULT[] =
            "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"done\"}";
        assert_int_equal(send(f, RESULT, NULL, NULL, &why), STENO_EPROTO);
        fixture_append(f, CALL("c1"));
        /* Another handle, which has not seen the call, finds it. */
        struct fixture other = *f;
        fixture_open(&other);
        OK(send(&other, RESULT, NULL, NULL, &err));
        fixture_close(&other);
        assert_int_equal(send(f, RESULT, NULL, NULL, &why), STENO_EPROTO);
        assert_non_null(strstr(why.msg, "already answered at seq 2"));
}

#define WRITERS 6
#define EACH 15

struct writer {
        struct fixture own;
        int number;
        pthread_t thread;
        int failures;
};

static void *write_some(void *arg)
{
        struct writer *w = arg;
        for (int i = 0; i < EACH; i++) {
                char json[128];
                snprintf(json, sizeof json,
                    "{\"id\":\"w%d-%d\",\"role\":\"user\",\"content\":\"%d\"}", w->number, i, i);
                w->failures += steno_append(w->own.conv, json, strlen(json), NULL, NULL, NULL) != 0;
        }
        return NULL;
}

static void writers_at_once_leave_no_gap_and_no_repeat(void **state)
{
        struct fixture *f = *state;
        struct writer writers[WRITERS] = {0};
        struct buf lines;
        for (int i = 0; i < WRITERS; i++) {
                writers[i].own = *f;
                writers[i].number = i;
                if (i % 2) /* half of them with a store of their own, like another process */
                        fixture_open(&writers[i].own);
                pthread_create(&writers[i].thread, NULL, write_some, &writers[i]);
        }
        for (int i = 0; i < WRITERS; i++) {
                pthread_join(writers[i].thread, NULL);
                assert_int_equal(writers[i].failures, 0);
                if (i % 2)
                        fixture_close(&writers[i].own);
        }
        assert_int_equal(last_seq(f), WRITERS * EACH);
        buf_init(&lines, 0);
        OK(steno_read(f->conv, 0, 0, note_line, &lines, &err));
        const char *text = buf_cstr(&lines), *at = text;
        for (int seq = 1; seq <= WRITERS * EACH; seq++) {
                assert_int_equal(strtol(at, NULL, 10), seq);
                at = strchr(at, '\n') + 1;
        }
        for (int i = 0; i < WRITERS; i++) {
                const char *before = text;
                for (int k = 0; k < EACH; k++) { /* those of each writer are in its order, once */
                        char id[64];
                        snprintf(id, sizeof id, "\"w%d-%d\"", i, k);
                        before = strstr(before, id);
                        assert_non_null(before);
                        assert_null(strstr(before + 1, id));
                }
        }
        buf_release(&lines);
}

static void messages_come_back_byte_for_byte(void **state)
{
        struct fixture *f = *state;
        static const char *const SAID[] = {
            "{\"role\":\"user\",\"content\":\"\\u0000 \\ud83d\\ude00 \xf0\x9f\x98\x80\"}",
            "{\"role\":\"user\",\"content\":\"a\",\"n\":1.50e+01,\"n\":15,\"x\":{\"z\":1,\"a\":2}}",
            "{\"role\":\"user\",\"content\":\"\\\\' OR 1=1; -- \\\" \\u0001\"}",
        };
        struct buf lines, large;
        buf_init(&lines, 0);
        buf_init(&large, 0);
        buf_puts(&large, "{\"role\":\"user\",\"content\":\"");
        for (int i = 0; i < 200000; i++)
                buf_puts(&large, "0123456789");
        buf_puts(&large, "\"}");
        for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++)
                fixture_append(f, SAID[i]);
        OK(steno_append(f->conv, large.p, large.n, NULL, NULL, &err));
        OK(steno_read(f->conv, 0, 0, note_line, &lines, &err));
        const char *at = buf_cstr(&lines);
        for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++) {
                at = strchr(at, ':') + 1;
                assert_memory_equal(at, SAID[i], strlen(SAID[i]));
                at = strchr(at, '\n') + 1;
        }
        at = strchr(at, ':') + 1;
        assert_memory_equal(at, large.p, large.n);
        buf_release(&lines);
        buf_release(&large);
}

static void a_range_is_read_in_order(void **state)
{
        struct fixture *f = *state;
        struct buf lines;
        buf_init(&lines, 0);
        for (int batch = 0; batch < 7; batch++) {
                struct buf b;
                buf_init(&b, 0);
                for (int i = 0; i < 200; i++)
                        buf_printf(&b, "%c{\"role\":\"user\",\"content\":\"%d\"}", i ? ',' : '[',
                            batch * 200 + i + 1);
                buf_putc(&b, ']');
                OK(steno_append(f->conv, b.p, b.n, NULL, NULL, &err));
                buf_release(&b);
        }
        OK(steno_read(f->conv, 700, 0, note_line, &lines, &err));
        const char *at = buf_cstr(&lines);
        for (long seq = 701; seq <= 1400; seq++) {
                char want[32];
                assert_int_equal(strtol(at, NULL, 10), seq);
                snprintf(want, sizeof want, "\"%ld\"}\n", seq);
                at = strstr(at, want);
                assert_non_null(at);
                at += strlen(want);
        }
        assert_int_equal(*at, '\0');
        buf_clear(&lines);
        OK(steno_read(f->conv, 5, 2, note_line, &lines, &err));
        assert_int_equal(strtol(buf_cstr(&lines), NULL, 10), 6);
        buf_release(&lines);
}

static void a_message_is_deleted_and_replaced(void **state)
{
        struct fixture *f = *state;
        struct buf out;
        struct steno_error why = {0};
        buf_init(&out, 0);
        fixture_append(f, "[" USER("a", "one") "," USER("b", "two") "," USER("c", "three") "]");
        OK(steno_amend(f->conv, "delete", "a", NULL, 0, NULL, NULL, &err));
        static const char NEW[] = "{\"role\":\"user\",\"content\":\"TWO\"}";
        OK(steno_amend(f->conv, "supersede", "b", NEW, sizeof NEW - 1, NULL, NULL, &err));
        view(f, &out);
        assert_null(strstr(out.p, "one"));
        assert_null(strstr(out.p, "two"));
        assert_true(strstr(out.p, "TWO") < strstr(out.p, "three"));
        assert_int_equal(
            steno_amend(f->conv, "delete", "a", NULL, 0, NULL, NULL, &why), STENO_ENOTFOUND);
        buf_release(&out);
}

/* ---- waiting ---- */

static void *write_later(void *arg)
{
        struct fixture *f = arg;
        steno_conv_wait(f->conv, 100, 50, NULL);
        steno_append(f->conv, USER("x", "1"), strlen(USER("x", "1")), NULL, NULL, NULL);
        return NULL;
}

static void a_reader_waits_for_a_writer_elsewhere(void **state)
{
        struct fixture *f = *state, other = *f;
        pthread_t thread;
        assert_int_equal(steno_conv_wait(f->conv, 0, 1, NULL), 0);
        fixture_open(&other);
        pthread_create(&thread, NULL, write_later, &other);
        assert_int_equal(steno_conv_wait(f->conv, 0, 60000, NULL), 1);
        pthread_join(thread, NULL);
        fixture_close(&other);
}

/* ---- runs ---- */

static int note_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        (void)seq, (void)at, (void)n;
        buf_printf(ctx, "%s%s;", type, data);
        return 0;
}

static void one_run_at_a_time(void **state)
{
        struct fixture *f = *state, other = *f;
        struct steno_run *run = NULL, *second = NULL;
        struct steno_error why = {0};
        struct buf events;
        char *info = NULL;
        buf_init(&events, 0);
        fixture_open(&other);
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        assert_int_equal(steno_run_begin(other.conv, "r2", "chat", &second, &why), STENO_ECONFLICT);
        assert_non_null(strstr(why.msg, "r1"));
        OK(steno_run_event(run, "note", "{\"a\":1}", 7, STENO_PROCESS, NULL, &err));
        OK(steno_run_event(run, "note", "{\"a\":2}", 7, STENO_FULL, NULL, &err));
        assert_int_equal(steno_run_wait(other.store, NULL, "r1", 0, 60000, NULL), 1);
        OK(steno_run_event(
            run, "run_finished", "{\"reason\":\"stop\"}", 17, STENO_FULL, NULL, &err));
        assert_int_equal(
            steno_run_event(run, "note", "{}", 2, STENO_FULL, NULL, NULL), STENO_EINVAL);
        steno_run_close(run);
        OK(steno_run_read(other.store, NULL, "r1", 0, note_event, &events, &err));
        assert_string_equal(
            buf_cstr(&events), "note{\"a\":1};note{\"a\":2};run_finished{\"reason\":\"stop\"};");
        OK(steno_run_info(other.store, NULL, "r1", &info, &err));
        assert_non_null(strstr(info, "\"finished\""));
        steno_free(info);
        OK(steno_run_begin(other.conv, "r2", "chat", &second, &err));
        OK(steno_run_event(
            second, "run_finished", "{\"reason\":\"stop\"}", 17, STENO_FULL, NULL, &err));
        steno_run_close(second);
        assert_int_equal(steno_run_begin(other.conv, "r1", "chat", &second, &why), STENO_ECONFLICT);
        fixture_close(&other);
        buf_release(&events);
}

#define TOOLS 8
#define EVENTS 12

struct tool {
        pthread_t thread;
        struct steno_run *run;
        uint64_t seqs[EVENTS];
        struct steno_error err;
};

static void *report_progress(void *arg)
{
        struct tool *t = arg;
        for (int i = 0; i < EVENTS && t->err.code == 0; i++)
                steno_run_event(t->run, "note", "{}", 2, i % 2 ? STENO_FULL : STENO_PROCESS,
                    &t->seqs[i], &t->err);
        return NULL;
}

static void calls_side_by_side_write_events_of_their_own_numbers(void **state)
{
        struct fixture *f = *state;
        struct tool tools[TOOLS] = {0};
        bool seen[TOOLS * EVENTS + 1] = {0};
        struct steno_run *run = NULL;
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        for (int i = 0; i < TOOLS; i++) {
                tools[i].run = run;
                pthread_create(&tools[i].thread, NULL, report_progress, &tools[i]);
        }
        for (int i = 0; i < TOOLS; i++)
                pthread_join(tools[i].thread, NULL);
        for (int i = 0; i < TOOLS; i++) {
                assert_string_equal(tools[i].err.msg, "");
                for (int k = 0; k < EVENTS; k++) {
                        uint64_t seq = tools[i].seqs[k];
                        assert_true(seq >= 1 && seq <= TOOLS * EVENTS && !seen[seq]);
                        seen[seq] = true;
                }
        }
        OK(steno_run_event(
            run, "run_finished", "{\"reason\":\"stop\"}", 17, STENO_FULL, NULL, &err));
        steno_run_close(run);
}

static void what_a_dead_run_left_is_completed_by_another(void **state)
{
        struct fixture *f = *state, other = *f;
        struct steno_run *run = NULL;
        struct buf out;
        static const char RESULT[] = "{\"id\":\"t1\",\"role\":\"tool\",\"tool_call_id\":\"c1\","
                                     "\"content\":\"it was done\"}";
        buf_init(&out, 0);
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        fixture_append(f, CALL("c1"));
        OK(steno_run_dispatch(run, 1, "c1", "t", "{}", 2, &err));
        OK(steno_run_outcome(run, 1, "c1", RESULT, sizeof RESULT - 1, &err));
        steno_run_close(run); /* without a last event: it is dead */
        fixture_open(&other);
        view(&other, &out);
        assert_non_null(strstr(out.p, "it was done"));
        OK(steno_run_begin(other.conv, "r2", "chat", &run, &err));
        steno_run_close(run);
        fixture_close(&other);
        buf_release(&out);
}

static atomic_int stopped;

static void hear(void *ctx, const char *approval, bool allow)
{
        (void)ctx, (void)allow;
        if (!approval)
                atomic_fetch_add(&stopped, 1);
}

static void a_run_is_stopped_through_the_store(void **state)
{
        struct fixture *f = *state, other = *f;
        struct steno_run *run = NULL;
        atomic_store(&stopped, 0);
        OK(steno_run_begin(f->conv, "r1", "chat", &run, &err));
        steno_run_listen(run, hear, NULL);
        fixture_open(&other);
        OK(steno_run_stop(other.store, NULL, "r1", &err));
        for (int i = 0; i < 6000 && !atomic_load(&stopped); i++)
                steno_conv_wait(f->conv, 100, 10, NULL);
        assert_int_equal(atomic_load(&stopped), 1);
        fixture_close(&other);
        steno_run_close(run);
}

/* ---- outputs ---- */

static void an_output_is_read_while_it_grows_and_after(void **state)
{
        struct fixture *f = *state, other = *f;
        struct steno_output_options opt = {
            .size = sizeof opt, .tool = "t", .call_id = "c1", .terminal = true};
        struct steno_output *o = NULL;
        struct buf got, all;
        char ref[64], args[160], *json = NULL;
        buf_init(&got, 0);
        buf_init(&all, 0);
        fixture_append(f, CALL("c1"));
        OK(steno_output_begin(f->conv, &opt, &o, &err));
        for (int i = 0; i < 3000; i++)
                buf_printf(&all, "line %d\n", i);
        OK(steno_output_write(o, all.p, 20000, &err));
        snprintf(ref, sizeof ref, "%s", steno_output_ref(o) ? steno_output_ref(o) : "");
        assert_true(ref[0]);
        fixture_open(&other);
        OK(steno_context_raw(other.conv, ref, 0, 0, take, &got, &err));
        assert_int_equal(got.n, 20000);
        assert_memory_equal(got.p, all.p, got.n);
        OK(steno_output_write(o, all.p + 20000, all.n - 20000, &err));
        OK(steno_output_finish(o, NULL, &json, &err));
        steno_free(json);
        steno_output_free(o);
        buf_clear(&got);
        OK(steno_context_raw(other.conv, ref, 0, 0, take, &got, &err));
        assert_int_equal(got.n, all.n);
        assert_memory_equal(got.p, all.p, all.n);
        buf_clear(&got);
        OK(steno_context_raw(other.conv, ref, 19990, 100, take, &got, &err));
        assert_int_equal(got.n, 100);
        assert_memory_equal(got.p, all.p + 19990, 100);
        snprintf(args, sizeof args, "{\"ref\":\"%s\",\"pattern\":\"line 2999\"}", ref);
        OK(steno_context(other.conv, "grep", args, strlen(args), &json, &err));
        assert_non_null(strstr(json, "\"total_matches\":1"));
        steno_free(json);
        OK(steno_context(other.conv, "tail", args, strlen(args), &json, &err));
        assert_non_null(strstr(json, "line 2999"));
        steno_free(json);
        OK(steno_context(other.conv, "list", "{}", 2, &json, &err));
        assert_non_null(strstr(json, ref));
        steno_free(json);
        fixture_close(&other);
        buf_release(&got);
        buf_release(&all);
}

/* ---- conversations ---- */

static void lists_page_by_activity(void **state)
{
        struct fixture *f = *state;
        struct steno_list_options opt = {.size = sizeof opt, .limit = 3};
        char *json = NULL, *cursor = NULL;
        int pages = 0, items = 0;
        for (int i = 0; i < 7; i++) {
                struct steno_conv *conv;
                char id[16];
                snprintf(id, sizeof id, "l%d", i);
                OK(steno_conv_create(f->store, "p", id, "{\"title\":\"Title\"}", &conv, &err));
                OK(steno_append(conv, USER("m", "x"), strlen(USER("m", "x")), NULL, NULL, &err));
                steno_conv_close(conv);
        }
        do {
                struct json j;
                opt.cursor = cursor;
                OK(steno_list(f->store, "p", &opt, &json, &err));
                free(cursor);
                json_init(&j);
                OK(json_parse(&j, json, strlen(json), NULL, &err));
                items += (int)json_count(&j, json_get(&j, 0, "items"));
                cursor = json_dup_string(&j, json_get(&j, 0, "next_cursor"));
                json_release(&j);
                steno_free(json);
                pages++;
        } while (cursor && pages < 10);
        assert_int_equal(pages, 3);
        assert_int_equal(items, 7);
        opt = (struct steno_list_options){.size = sizeof opt, .query = "l3 title"};
        OK(steno_list(f->store, "p", &opt, &json, &err));
        assert_non_null(strstr(json, "\"l3\""));
        assert_null(strstr(json, "\"l4\""));
        assert_non_null(strstr(json, "\"messages\":1"));
        steno_free(json);
}

static void a_removed_conversation_comes_back_whole(void **state)
{
        struct fixture *f = *state;
        struct steno_conv *conv = NULL;
        struct steno_error why = {0};
        char *json = NULL;
        fixture_append(f, USER("a", "one"));
        OK(steno_remove(f->store, NULL, "c", NULL, &err));
        assert_int_equal(steno_conv_open(f->store, NULL, "c", &conv, NULL), STENO_ENOTFOUND);
        assert_int_equal(send(f, USER("b", "two"), NULL, NULL, NULL), STENO_ENOTFOUND);
        assert_int_equal(last_seq(f), 1); /* an open handle can still read */
        OK(steno_conv_create(f->store, NULL, "c", NULL, &conv, &err)); /* the id is free */
        steno_conv_close(conv);
        assert_int_equal(steno_trash_restore(f->store, NULL, "c", NULL, &why), STENO_ECONFLICT);
        OK(steno_trash_restore(f->store, NULL, "c", "old", &err));
        OK(steno_conv_open(f->store, NULL, "old", &conv, &err));
        uint64_t seq = 0;
        OK(steno_conv_last_seq(conv, &seq, &err));
        assert_int_equal(seq, 1);
        steno_conv_close(conv);
        OK(steno_remove(f->store, NULL, "old", NULL, &err));
        OK(steno_trash_empty(f->store, 0, NULL, &err));
        OK(steno_trash_list(f->store, &json, &err));
        assert_string_equal(json, "{\"items\":[]}");
        steno_free(json);
}

struct setter {
        struct fixture own;
        int number;
        pthread_t thread;
        int failures;
};

static void *set_some(void *arg)
{
        struct setter *s = arg;
        for (int i = 0; i < 10; i++) {
                char patch[64];
                snprintf(patch, sizeof patch, "{\"k%d_%d\":%d}", s->number, i, i);
                s->failures += steno_conv_set_meta(s->own.conv, patch, NULL) != 0;
        }
        return NULL;
}

static void no_change_of_metadata_is_lost(void **state)
{
        struct fixture *f = *state;
        struct setter setters[4] = {0};
        char *meta = NULL;
        for (int i = 0; i < 4; i++) {
                setters[i].own = *f;
                setters[i].number = i;
                fixture_open(&setters[i].own);
                pthread_create(&setters[i].thread, NULL, set_some, &setters[i]);
        }
        for (int i = 0; i < 4; i++) {
                pthread_join(setters[i].thread, NULL);
                assert_int_equal(setters[i].failures, 0);
                fixture_close(&setters[i].own);
        }
        OK(steno_conv_meta(f->conv, &meta, &err));
        for (int i = 0; i < 40; i++) {
                char key[32];
                snprintf(key, sizeof key, "\"k%d_%d\":", i / 10, i % 10);
                assert_non_null(strstr(meta, key));
        }
        steno_free(meta);
}

static int count_up(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        (void)ctx, (void)err;
        buf_printf(out, "%ld", (old.n ? strtol(old.p, NULL, 10) : 0) + 1);
        return 0;
}

static void a_document_is_changed_by_one_at_a_time(void **state)
{
        struct fixture *f = *state;
        char *text = NULL;
        size_t n = 0;
        uint64_t before = 0, after = 0;
        OK(backend_document_stamp(f->store->backend, "count.json", &before, &err));
        assert_int_equal(before, 0);
        assert_int_equal(
            backend_document_read(f->store->backend, "count.json", 100, &text, &n, NULL, NULL),
            STENO_ENOTFOUND);
        for (int i = 0; i < 3; i++)
                OK(backend_document_change(
                    f->store->backend, "count.json", 100, 1000, count_up, NULL, &err));
        OK(backend_document_read(f->store->backend, "count.json", 100, &text, &n, &after, &err));
        assert_string_equal(text, "3");
        assert_int_not_equal(before, after);
        free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
            TEST(a_batch_goes_in_whole_or_not_at_all),
            TEST(a_batch_of_a_thousand_goes_in_once),
            TEST(the_same_id_is_stored_once),
            TEST(the_same_key_gives_the_same_receipt),
            TEST(times_do_not_fall_when_clocks_differ),
            TEST(an_expected_seq_is_compared),
            TEST(results_have_their_calls),
            TEST(writers_at_once_leave_no_gap_and_no_repeat),
            TEST(messages_come_back_byte_for_byte),
            TEST(a_range_is_read_in_order),
            TEST(a_message_is_deleted_and_replaced),
            TEST(a_reader_waits_for_a_writer_elsewhere),
            TEST(one_run_at_a_time),
            TEST(calls_side_by_side_write_events_of_their_own_numbers),
            TEST(what_a_dead_run_left_is_completed_by_another),
            TEST(a_run_is_stopped_through_the_store),
            TEST(an_output_is_read_while_it_grows_and_after),
            TEST(lists_page_by_activity),
            TEST(a_removed_conversation_comes_back_whole),
            TEST(no_change_of_metadata_is_lost),
            TEST(a_document_is_changed_by_one_at_a_time),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
