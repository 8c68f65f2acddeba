/* test_pairing.c - each result finds its call by the rule, and in no other way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/limits.h"
#include "support/seed.h"
#include "model/pairing.h"

static struct pairing_match matches[8];

static struct pairing_match give(
    struct pairing *p, uint64_t seq, const char *calls, const char *answers)
{
        struct str c[8], r[8];
        struct about a = {.calls = c, .answers = r};
        for (; *calls; calls++)
                c[a.call_count++] = str_span(calls, 1);
        for (; *answers; answers++)
                r[a.answer_count++] = str_span(answers, 1);
        assert_int_equal(pairing_add(p, seq, &a, matches), 0);
        return matches[0];
}

static int count_open(void *ctx, uint64_t seq, uint32_t index, struct str id)
{
        char *to = ctx;
        sprintf(to + strlen(to), "%d.%d%.*s ", (int)seq, (int)index, (int)id.n, id.p);
        return 0;
}

static const char *open_calls(const struct pairing *p)
{
        static char text[4096];
        text[0] = '\0';
        pairing_each_open(p, count_open, text);
        return text;
}

static void results_pair_in_any_order(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "abc", "");
        assert_string_equal(open_calls(p), "1.0a 1.1b 1.2c ");
        struct pairing_match m = give(p, 2, "", "c");
        assert_int_equal(m.verdict, PAIRING_OK);
        assert_int_equal(m.call_seq, 1);
        assert_int_equal(m.call_index, 2);
        give(p, 3, "", "ba");
        assert_int_equal(matches[0].call_index, 1);
        assert_int_equal(matches[1].call_index, 0);
        assert_string_equal(open_calls(p), "");
        pairing_free(p);
}

static void a_second_result_is_a_duplicate_that_names_the_first(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "a", "");
        give(p, 2, "", "a");
        struct pairing_match m = give(p, 3, "", "a");
        assert_int_equal(m.verdict, PAIRING_DUPLICATE);
        assert_int_equal(m.call_seq, 1);
        assert_int_equal(m.result_seq, 2);
        pairing_free(p);
}

static void a_result_without_a_call_is_an_orphan(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        assert_int_equal(give(p, 1, "", "a").verdict, PAIRING_ORPHAN);
        assert_int_equal(matches[0].block_seq, 0);
        give(p, 2, "b", "");
        assert_int_equal(give(p, 3, "", "a").verdict, PAIRING_ORPHAN);
        assert_int_equal(matches[0].block_seq, 2);
        pairing_free(p);
}

static void reused_ids_pair_with_the_latest_block(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        for (uint64_t seq = 1; seq < 3000; seq += 2) {
                give(p, seq, "a", "");
                assert_int_equal(give(p, seq + 1, "", "a").call_seq, seq);
        }
        give(p, 3001, "a", "");
        give(p, 3002, "", "");
        give(p, 3003, "a", "");
        assert_int_equal(give(p, 3004, "", "a").call_seq, 3003);
        assert_int_equal(give(p, 3005, "", "a").call_seq, 3001);
        assert_int_equal(give(p, 3006, "", "a").verdict, PAIRING_DUPLICATE);
        pairing_free(p);
}

static void inside_a_block_the_earliest_open_call_is_answered(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "ab", "");
        give(p, 2, "a", "");
        assert_int_equal(give(p, 3, "", "a").call_seq, 1);
        assert_int_equal(matches[0].block_seq, 1);
        assert_int_equal(give(p, 4, "", "a").call_seq, 2);
        /* A call that follows results begins a new block. */
        give(p, 5, "b", "");
        assert_int_equal(give(p, 6, "", "b").block_seq, 5);
        assert_int_equal(give(p, 7, "", "b").block_seq, 1);
        pairing_free(p);
}

static void a_late_result_is_found_behind_other_messages(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "a", "");
        give(p, 2, "", "");
        give(p, 3, "", "");
        assert_int_equal(give(p, 4, "", "a").call_seq, 1);
        pairing_free(p);
}

static void a_call_that_carries_its_result_answers_itself(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "a", "");
        assert_int_equal(give(p, 2, "a", "a").call_seq, 2);
        assert_string_equal(open_calls(p), "1.0a ");
        pairing_free(p);
}

static void calls_leave_the_window(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "ab", "");
        for (uint64_t seq = 2; seq <= PAIRING_WINDOW; seq++)
                give(p, seq, "", "");
        assert_int_equal(give(p, 1 + PAIRING_WINDOW, "", "a").verdict, PAIRING_OK);
        assert_int_equal(give(p, 2 + PAIRING_WINDOW, "", "b").verdict, PAIRING_ORPHAN);
        assert_string_equal(open_calls(p), "");
        pairing_free(p);
}

static void a_clone_does_not_touch_its_original(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        give(p, 1, "ab", "");
        struct pairing *c = pairing_clone(p);
        give(c, 2, "", "a");
        give(c, 3, "xyz", "");
        assert_string_equal(open_calls(c), "1.1b 3.0x 3.1y 3.2z ");
        assert_string_equal(open_calls(p), "1.0a 1.1b ");
        pairing_free(c);
        assert_int_equal(give(p, 2, "", "a").verdict, PAIRING_OK);
        pairing_clear(p);
        assert_int_equal(give(p, 3, "", "b").verdict, PAIRING_ORPHAN);
        pairing_free(p);
}

/* ---- amendments ---- */

/* A record "<n>" of a log; `target` is 0, or the n of what it is about. */
static struct pairing_match follow(struct pairing *p, uint64_t seq, const char *kind,
    uint64_t target, const char *calls, const char *answers)
{
        struct str c[8], r[8];
        char id[24], of[24];
        struct about a = {.kind = str_of(kind), .calls = c, .answers = r};
        snprintf(id, sizeof id, "%llu", (unsigned long long)seq);
        snprintf(of, sizeof of, "%llu", (unsigned long long)target);
        if (target)
                a.target = str_of(of);
        for (; *calls; calls++)
                c[a.call_count++] = str_span(calls, 1);
        for (; *answers; answers++)
                r[a.answer_count++] = str_span(answers, 1);
        assert_int_equal(pairing_follow(p, seq, str_of(id), &a, matches, NULL), 0);
        return matches[0];
}

static void a_deleted_result_opens_its_call(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        follow(p, 1, "", 0, "a", "");
        follow(p, 2, "", 0, "", "a");
        follow(p, 3, "meta", 2, "", "");
        assert_string_equal(open_calls(p), "");
        follow(p, 4, "delete", 2, "", "");
        assert_string_equal(open_calls(p), "1.0a ");
        assert_int_equal(follow(p, 5, "", 0, "", "a").verdict, PAIRING_OK);
        /* The one of the two that is left over takes the place of the other. */
        assert_int_equal(follow(p, 6, "", 0, "", "a").verdict, PAIRING_DUPLICATE);
        follow(p, 7, "delete", 5, "", "");
        assert_int_equal(follow(p, 8, "", 0, "", "a").result_seq, 6);
        pairing_free(p);
}

static void a_deleted_call_is_not_answered(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        follow(p, 1, "", 0, "a", "");
        follow(p, 2, "", 0, "b", "");
        follow(p, 3, "delete", 1, "", "");
        assert_string_equal(open_calls(p), "2.0b ");
        assert_int_equal(follow(p, 4, "", 0, "", "a").verdict, PAIRING_ORPHAN);
        assert_true(matches[0].gone);
        assert_int_equal(follow(p, 5, "", 0, "", "x").verdict, PAIRING_ORPHAN);
        assert_false(matches[0].gone);
        pairing_free(p);
}

static void a_replacement_stands_where_its_target_stood(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        follow(p, 1, "", 0, "ab", "");
        follow(p, 2, "", 0, "", "a");
        assert_int_equal(follow(p, 3, "supersede", 2, "", "a").verdict, PAIRING_OK);
        assert_int_equal(follow(p, 4, "", 0, "", "a").result_seq, 2);
        assert_int_equal(follow(p, 5, "supersede", 2, "", "b").verdict, PAIRING_OK);
        /* The same for calls: later ones with the same id are still the latest. */
        follow(p, 6, "", 0, "xx", "");
        follow(p, 7, "supersede", 1, "bxb", "");
        assert_string_equal(open_calls(p), "1.0b 1.1x 1.2b 6.0x 6.1x ");
        assert_int_equal(follow(p, 8, "", 0, "", "x").call_seq, 6);
        /* It answers from its own place, where later calls had not been made yet. */
        assert_int_equal(follow(p, 9, "supersede", 2, "", "x").call_seq, 1);
        pairing_free(p);
}

static void a_purged_log_pairs_as_before(void **state)
{
        (void)state;
        const char *kinds[] = {"supersede", "tombstone"};
        for (int i = 0; i < 2; i++) {
                struct pairing *p = pairing_new();
                follow(p, 1, i ? "tombstone" : "", 0, "a", "");
                follow(p, 2, kinds[i], 1, "b", "");
                follow(p, 3, "supersede", 1, "c", "");
                follow(p, 4, i ? "tombstone" : "", 0, "", "c");
                follow(p, 5, "delete", 4, "", "");
                assert_string_equal(open_calls(p), "1.0c ");
                pairing_free(p);
        }
}

static void what_left_the_window_is_not_judged(void **state)
{
        (void)state;
        struct pairing *p = pairing_new();
        follow(p, 1, "", 0, "a", "");
        follow(p, 2, "", 0, "", "a");
        for (uint64_t seq = 3; seq <= PAIRING_WINDOW + 1; seq++)
                follow(p, seq, "", 0, "", "");
        /* The call has left, its result has not. */
        assert_int_equal(
            follow(p, PAIRING_WINDOW + 2, "supersede", 2, "", "a").verdict, PAIRING_OK);
        assert_int_equal(
            follow(p, PAIRING_WINDOW + 3, "supersede", 2, "", "x").verdict, PAIRING_OK);
        assert_int_equal(
            follow(p, PAIRING_WINDOW + 4, "supersede", 5, "", "x").verdict, PAIRING_ORPHAN);
        pairing_free(p);
}

/* Compared with a model without windows, blocks and chains, in which every call has its own id. */
struct modelled {
        char call, answer; /* ids, or 0 */
        bool noted;        /* when the answer came, it had a call */
        bool gone;
};

static enum pairing_verdict modelled_verdict(
    const struct modelled *log, uint64_t count, uint64_t place, char id)
{
        bool call = false, answered = false;
        for (uint64_t i = 1; i < count; i++) {
                call = call || (!log[i].gone && log[i].call == id && i <= place);
                answered = answered || (!log[i].gone && log[i].noted && log[i].answer == id);
        }
        return !call ? PAIRING_ORPHAN : answered ? PAIRING_DUPLICATE : PAIRING_OK;
}

static void random_amendments_are_followed(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int round = 0; round < seed_rounds(400); round++) {
                struct pairing *p = pairing_new();
                struct modelled log[200] = {{0}};
                char next = 1;
                for (uint64_t seq = 1; seq < 200; seq++) {
                        char calls[2] = {0}, answers[2] = {0};
                        uint64_t target = seq > 1 ? 1 + seed_below(&s, seq - 1) : 0;
                        bool live =
                            target && !log[target].gone && (log[target].call || log[target].answer);
                        unsigned what = (unsigned)seed_below(&s, 4);
                        if (live && what == 0) {
                                follow(p, seq, "delete", target, "", "");
                                log[target].gone = true;
                                continue;
                        }
                        if (next < 120 && seed_below(&s, 2))
                                calls[0] = next++;
                        else if (next > 1)
                                answers[0] = (char)(1 + seed_below(&s, (uint64_t)next - 1));
                        bool replaces = live && what == 1;
                        uint64_t place = replaces ? target : seq;
                        bool kept =
                            replaces && log[target].noted && log[target].answer == answers[0];
                        log[place] = (struct modelled){.call = calls[0]};
                        enum pairing_verdict want = modelled_verdict(log, seq, place, answers[0]);
                        bool was_result = kept && want == PAIRING_ORPHAN;
                        enum pairing_verdict got = follow(p, seq, replaces ? "supersede" : "",
                            replaces ? target : 0, calls, answers)
                                                       .verdict;
                        if (answers[0] && !was_result)
                                assert_int_equal(got, want);
                        log[place].answer = answers[0];
                        log[place].noted = answers[0] && got != PAIRING_ORPHAN;
                        if (seed_below(&s, 20) == 0) {
                                struct pairing *copy = pairing_clone(p);
                                pairing_free(p);
                                p = copy;
                        }
                }
                pairing_free(p);
        }
}

/* Long enough for everything to leave the window and free its memory, with ids that come again. */
static void a_long_log_keeps_its_order(void **state)
{
        (void)state;
        struct seed s = seed_start();
        struct pairing *p = pairing_new();
        for (uint64_t seq = 1; seq < 20000; seq++) {
                uint64_t target = 1 + seed_below(&s, seq);
                char calls[4] = {0}, answers[2] = {0};
                for (uint64_t i = 0; i < seed_below(&s, 4); i++)
                        calls[i] = (char)('a' + seed_below(&s, 26));
                if (!calls[0])
                        answers[0] = (char)('a' + seed_below(&s, 26));
                if (seq > PAIRING_WINDOW && target < seq - PAIRING_WINDOW)
                        target = seq - 1 - seed_below(&s, 900);
                const char *kinds[] = {"", "", "", "delete", "supersede", "tombstone"};
                const char *kind = kinds[seed_below(&s, 6)];
                if (!strcmp(kind, "delete"))
                        calls[0] = answers[0] = 0;
                struct pairing_match m = follow(p, seq, kind, *kind ? target : 0, calls, answers);
                if (answers[0] && m.verdict == PAIRING_DUPLICATE)
                        assert_true(
                            m.result_seq && m.result_seq <= seq && m.call_seq <= m.result_seq);
        }
        pairing_free(p);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(results_pair_in_any_order),
            cmocka_unit_test(a_second_result_is_a_duplicate_that_names_the_first),
            cmocka_unit_test(a_result_without_a_call_is_an_orphan),
            cmocka_unit_test(reused_ids_pair_with_the_latest_block),
            cmocka_unit_test(inside_a_block_the_earliest_open_call_is_answered),
            cmocka_unit_test(a_late_result_is_found_behind_other_messages),
            cmocka_unit_test(a_call_that_carries_its_result_answers_itself),
            cmocka_unit_test(calls_leave_the_window),
            cmocka_unit_test(a_clone_does_not_touch_its_original),
            cmocka_unit_test(a_deleted_result_opens_its_call),
            cmocka_unit_test(a_deleted_call_is_not_answered),
            cmocka_unit_test(a_replacement_stands_where_its_target_stood),
            cmocka_unit_test(a_purged_log_pairs_as_before),
            cmocka_unit_test(what_left_the_window_is_not_judged),
            cmocka_unit_test(random_amendments_are_followed),
            cmocka_unit_test(a_long_log_keeps_its_order),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
