/*
 * test_fork.c - forks: the same records up to the cut, and two conversations that do not depend on
 * each other.
 */
#include "bundle/history.h"

#include <sys/stat.h>

#include "base/json.h"
#include "store/play.h"

/* ---- what a fork contains ---- */

struct reading {
        struct buf lines;
        uint64_t upto;
};

static int note_record(void *ctx, const struct steno_record *r)
{
        struct reading *g = ctx;
        char *m = NULL;
        size_t n = 0;
        if (steno_record_seq(r) > g->upto)
                return 1;
        buf_printf(&g->lines, "%llu %s %s ", (unsigned long long)steno_record_seq(r),
            steno_record_id(r), steno_record_at(r));
        if (strcmp(steno_record_kind(r), "tombstone") != 0) {
                OK(steno_record_message(r, &m, &n, &err));
                buf_put(&g->lines, m, n);
        }
        steno_free(m);
        buf_putc(&g->lines, '\n');
        return 0;
}

static void read_records(struct steno_conv *conv, uint64_t upto, struct buf *out)
{
        struct reading g = {.upto = upto};
        buf_init(&g.lines, 0);
        int rc = steno_read(conv, 0, 0, note_record, &g, NULL);
        assert_true(rc >= 0);
        *out = g.lines;
}

/* Every line of the fork is a line of the origin, or its beginning: a tombstone has no message. */
static void assert_begins(struct buf *origin, struct buf *fork, uint64_t records)
{
        const char *a = buf_cstr(origin), *b = buf_cstr(fork);
        uint64_t n = 0;
        while (*b) {
                size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");
                if (strncmp(a, b, lb) != 0)
                        fail_msg("%.*s\nis not\n%.*s", (int)lb, b, (int)la, a);
                assert_true(lb == la || b[lb - 1] == ' ');
                a += la + 1;
                b += lb + 1;
                n++;
        }
        assert_int_equal(n, records);
}

static uint64_t last_seq(struct steno_conv *conv)
{
        uint64_t seq = 0;
        OK(steno_conv_last_seq(conv, &seq, &err));
        return seq;
}

static struct steno_conv *fork_at(struct fixture *f, uint64_t seq)
{
        struct steno_fork_options opt = {
            .size = sizeof opt, .at_seq = seq, .flags = STENO_FORK_WHOLE_BATCH};
        struct steno_conv *fork;
        OK(steno_fork(f->conv, &opt, &fork, &err));
        return fork;
}

static int delete_message(void *ctx, const struct steno_record *r)
{
        struct steno_conv *conv = ctx;
        struct steno_receipt *receipt = NULL;
        if (strcmp(steno_record_kind(r), "message") == 0)
                steno_amend(conv, "delete", steno_record_id(r), NULL, 0, NULL, &receipt, NULL);
        steno_receipt_free(receipt);
        return 0;
}

static void empty(struct fixture *f, struct steno_conv *conv)
{
        OK(steno_read(conv, 0, last_seq(conv), delete_message, conv, &err));
        OK(steno_purge(f->store, NULL, steno_conv_id(conv), NULL, &err));
}

static void forks_of_random_histories(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        struct buf before, after, origin, fork_lines;
        buf_init(&before, 0);
        buf_init(&after, 0);
        for (int round = 0; round < seed_rounds(200); round++) {
                char id[24];
                snprintf(id, sizeof id, "h%d", round);
                steno_conv_close(f->conv);
                OK(steno_conv_create(f->store, NULL, id, NULL, &f->conv, &err));
                struct history h = {.conv = f->conv, .seed = &seed};
                for (int i = 0; i < 12; i++)
                        history_step(&h);
                uint64_t last = last_seq(f->conv);
                history_view(f->conv, &before);
                for (uint64_t seq = 1; seq <= last; seq++) {
                        struct steno_conv *fork = fork_at(f, seq);
                        uint64_t cut = last_seq(fork);
                        assert_true(cut >= seq && cut <= last);
                        read_records(f->conv, cut, &origin);
                        read_records(fork, UINT64_MAX, &fork_lines);
                        assert_begins(&origin, &fork_lines, cut);
                        history_view(fork, &after);
                        if (seq == last) /* nothing was left out */
                                assert_string_equal(buf_cstr(&before), buf_cstr(&after));
                        if (seq % 3 == 0) /* the origin keeps what the fork loses */
                                empty(f, fork);
                        if (seq % 3 == 1)
                                OK(steno_remove(f->store, NULL, steno_conv_id(fork), NULL, &err));
                        buf_release(&origin);
                        buf_release(&fork_lines);
                        steno_conv_close(fork);
                        history_view(f->conv, &after);
                        assert_string_equal(buf_cstr(&before), buf_cstr(&after));
                }
                /* The fork keeps what the origin loses. */
                struct steno_conv *fork = fork_at(f, last);
                empty(f, f->conv);
                history_view(fork, &after);
                assert_string_equal(buf_cstr(&before), buf_cstr(&after));
                OK(steno_trash_empty(f->store, 0, &(uint64_t){0}, &err));
                history_check(f->store);
                OK(steno_remove(f->store, NULL, id, NULL, &err));
                OK(steno_trash_empty(f->store, 0, &(uint64_t){0}, &err));
                history_view(fork, &after);
                assert_string_equal(buf_cstr(&before), buf_cstr(&after));
                steno_conv_close(fork);
        }
        buf_release(&before);
        buf_release(&after);
}

/* ---- refusals ---- */

static void a_cut_inside_a_batch_names_its_ends(void **state)
{
        struct fixture *f = *state;
        struct steno_fork_options opt = {.size = sizeof opt, .at_seq = 3};
        struct steno_conv *fork = NULL;
        struct steno_error why = {0};
        fixture_append(f, "{\"role\":\"user\",\"content\":\"1\"}");
        fixture_append(f, "[{\"role\":\"user\",\"content\":\"2\"},{\"role\":\"user\",\"content\":"
                          "\"3\"},{\"role\":\"user\",\"content\":\"4\"}]");
        assert_int_equal(steno_fork(f->conv, &opt, &fork, &why), STENO_ECONFLICT);
        assert_non_null(strstr(why.msg, "records 2 to 4"));
        opt.at_seq = 5;
        assert_int_equal(steno_fork(f->conv, &opt, &fork, &why), STENO_ENOTFOUND);
        opt.at_seq = 3;
        opt.flags = STENO_FORK_WHOLE_BATCH;
        OK(steno_fork(f->conv, &opt, &fork, &err));
        assert_int_equal(last_seq(fork), 4);
        steno_conv_close(fork);
        opt.id = "c";
        assert_int_equal(steno_fork(f->conv, &opt, &fork, &why), STENO_ECONFLICT);
        opt.flags = 8;
        assert_int_equal(steno_fork(f->conv, &opt, &fork, &why), STENO_EINVAL);
}

static void a_refused_fork_leaves_nothing(void **state)
{
        struct fixture *f = *state;
        char command[400];
        a_cut_inside_a_batch_names_its_ends(state);
        snprintf(command, sizeof command, "ls -A '%s' | grep -q '^[.]import'", f->scratch.path);
        assert_int_not_equal(system(command), 0);
}

static void what_a_dead_fork_left_is_removed_by_repair(void **state)
{
        struct fixture *f = *state;
        struct steno_check_options repair = {.size = sizeof repair, .repair = true};
        char command[400];
        snprintf(command, sizeof command, "mkdir -p '%s/.import-X/0/artifacts'", f->scratch.path);
        assert_int_equal(system(command), 0);
        assert_int_equal(steno_check(f->store, NULL, NULL, NULL, NULL), 1);
        assert_int_equal(steno_check(f->store, &repair, NULL, NULL, NULL), 1);
        history_check(f->store);
}

static void keys_and_later_amendments_stay_behind(void **state)
{
        struct fixture *f = *state;
        static const char ONE[] = "{\"id\":\"m1\",\"role\":\"user\",\"content\":\"one\"}";
        struct steno_append_options keyed = {.size = sizeof keyed, .idempotency_key = "k\"1"};
        struct steno_fork_options opt = {.size = sizeof opt, .at = "m1"};
        struct steno_receipt *r = NULL;
        struct steno_conv *fork;
        struct buf view;
        buf_init(&view, 0);
        OK(steno_append(f->conv, ONE, strlen(ONE), &keyed, &r, &err));
        steno_receipt_free(r);
        OK(steno_amend(f->conv, "delete", "m1", NULL, 0, NULL, &r, &err));
        steno_receipt_free(r);
        OK(steno_fork(f->conv, &opt, &fork, &err));
        history_view(fork, &view);
        assert_non_null(strstr(buf_cstr(&view), "one"));
        static const char TWO[] = "{\"role\":\"user\",\"content\":\"two\"}";
        OK(steno_append(fork, TWO, strlen(TWO), &keyed, &r, &err)); /* the key is free here */
        assert_false(steno_receipt_replayed(r));
        steno_receipt_free(r);
        steno_conv_close(fork);
        buf_release(&view);
        history_check(f->store);
}

static void before_leaves_room_for_an_edited_message(void **state)
{
        struct fixture *f = *state;
        struct steno_fork_options opt = {.size = sizeof opt, .before = "m2", .id = "edited"};
        struct steno_conv *fork;
        char *meta = NULL;
        struct json j;
        fixture_append(f, "{\"id\":\"m1\",\"role\":\"user\",\"content\":\"1\"}");
        fixture_append(f, "{\"id\":\"m2\",\"role\":\"user\",\"content\":\"2\"}");
        OK(steno_fork(f->conv, &opt, &fork, &err));
        assert_int_equal(last_seq(fork), 1);
        OK(steno_append(fork, "{\"role\":\"user\",\"content\":\"2b\"}", 30, NULL, NULL, &err));
        OK(steno_conv_meta(fork, &meta, &err));
        json_init(&j);
        assert_int_equal(json_parse(&j, meta, strlen(meta), NULL, NULL), 0);
        json_ref origin = json_get(&j, 0, "origin");
        uint64_t seq = 0;
        assert_true(json_is(&j, json_get(&j, origin, "conversation"), "c"));
        assert_true(json_u64(&j, json_get(&j, origin, "seq"), &seq) && seq == 1);
        assert_int_equal(json_inner(&j, json_get(&j, origin, "uid")).n, 26);
        json_release(&j);
        steno_free(meta);
        steno_conv_close(fork);
        /* The first message can be edited too: nothing comes before it. */
        opt.before = "m1";
        opt.id = "empty";
        OK(steno_fork(f->conv, &opt, &fork, &err));
        assert_int_equal(last_seq(fork), 0);
        steno_conv_close(fork);
        history_check(f->store);
}

static void an_unfinished_output_is_closed_in_the_fork(void **state)
{
        struct fixture *f = *state;
        struct steno_output_options opt = {
            .size = sizeof opt, .tool = "ls", .call_id = "call_1", .terminal = true};
        struct steno_output *o;
        struct steno_conv *fork;
        struct buf bytes;
        buf_init(&bytes, 0);
        fixture_append(f, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":"
                          "\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"ls\","
                          "\"arguments\":\"{}\"}}]}");
        OK(steno_output_begin(f->conv, &opt, &o, &err));
        OK(steno_output_write(o, "first half\n", 11, &err));
        char ref[64];
        snprintf(ref, sizeof ref, "%s", steno_output_ref(o));
        OK(steno_fork(f->conv, NULL, &fork, &err));
        OK(steno_output_write(o, "second half\n", 12, &err));
        OK(steno_context_raw(fork, ref, 0, 0, history_take, &bytes, &err));
        assert_string_equal(buf_cstr(&bytes), "first half\n");
        buf_clear(&bytes);
        char *json = NULL;
        OK(steno_output_finish(o, NULL, &json, &err));
        steno_free(json);
        OK(steno_context_raw(f->conv, ref, 0, 0, history_take, &bytes, &err));
        assert_string_equal(buf_cstr(&bytes), "first half\nsecond half\n");
        steno_output_free(o);
        steno_conv_close(fork);
        buf_release(&bytes);
        history_check(f->store);
}

static void runs_of_the_origin_are_known_in_the_fork(void **state)
{
        struct fixture *f = *state;
        struct steno_run *run;
        struct steno_conv *fork;
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai"};
        struct buf view;
        char *report = NULL;
        buf_init(&view, 0);
        OK(steno_run_begin(f->conv, "run_1", "chat", &run, &err));
        fixture_append(f, "{\"role\":\"assistant\",\"content\":null,\"runId\":\"run_1\","
                          "\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\",\"function\":"
                          "{\"name\":\"ls\",\"arguments\":\"{}\"}}]}");
        OK(steno_run_dispatch(run, 1, "call_1", "ls", "{}", 2, &err));
        OK(steno_fork(f->conv, NULL, &fork, &err));
        OK(steno_view(fork, &opt, history_take, &view, &report, &err));
        assert_non_null(strstr(report, "indeterminate"));
        steno_free(report);
        steno_run_close(run);
        steno_conv_close(fork);
        buf_release(&view);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        const struct CMUnitTest tests[] = {
            TEST(forks_of_random_histories),
            TEST(a_cut_inside_a_batch_names_its_ends),
            TEST(a_refused_fork_leaves_nothing),
            TEST(what_a_dead_fork_left_is_removed_by_repair),
            TEST(keys_and_later_amendments_stay_behind),
            TEST(before_leaves_room_for_an_edited_message),
            TEST(an_unfinished_output_is_closed_in_the_fork),
            TEST(runs_of_the_origin_are_known_in_the_fork),
        };
        return cmocka_run_group_tests_name("forks", tests, NULL, NULL);
}
