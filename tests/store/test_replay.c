/*
 * test_replay.c - a message that is sent again gets its receipt again, and only such a message
 * does.
 */
#include "fixture.h"

#define LOG CONV_FOLDER "messages.jsonl"

static const struct steno_append_options NOTHING = {.size = sizeof NOTHING};

static int send(struct fixture *f, const char *json, const struct steno_append_options *opt,
    uint64_t *seq, struct steno_error *err)
{
        struct steno_receipt *r = NULL;
        int rc = steno_append(f->conv, json, strlen(json), opt, &r, err);
        *seq = rc ? 0 : steno_receipt_first_seq(r);
        steno_receipt_free(r);
        return rc;
}

static void answers(struct fixture *f, const char *json, uint64_t seq)
{
        uint64_t got;
        OK(send(f, json, &NOTHING, &got, &err));
        assert_int_equal(got, seq);
}

static void refuses(struct fixture *f, const char *json, const char *words)
{
        struct steno_error err = {0};
        uint64_t seq;
        assert_int_equal(send(f, json, &NOTHING, &seq, &err), STENO_ECONFLICT);
        if (!strstr(err.msg, words))
                fail_msg("%s", err.msg);
}

static int amend(struct fixture *f, const char *kind, const char *target, const char *json,
    const struct steno_append_options *opt, struct steno_error *err)
{
        return steno_amend(f->conv, kind, target, json, json ? strlen(json) : 0, opt, NULL, err);
}

static uint64_t last(struct fixture *f)
{
        uint64_t seq;
        OK(steno_conv_last_seq(f->conv, &seq, &err));
        return seq;
}

#define USER(id, text) "{\"id\":\"" id "\",\"role\":\"user\",\"content\":\"" text "\"}"

static void five(struct fixture *f)
{
        fixture_append(f, USER("m1", "one"));
        fixture_append(f, USER("m2", "two"));
        fixture_append(f, USER("m3", "three"));
        fixture_append(f, USER("m4", "four"));
        fixture_append(f, USER("m5", "five"));
}

static void amendments_of_two_messages_are_two(void **state)
{
        struct fixture *f = *state;
        struct steno_append_options id = {.size = sizeof id, .message_id = "del"};
        struct steno_append_options key = {.size = sizeof key, .idempotency_key = "k"};
        struct steno_error err = {0};
        five(f);
        assert_int_equal(amend(f, "delete", "m1", NULL, &id, &err), 0);
        assert_int_equal(amend(f, "delete", "m1", NULL, &id, &err), 0);
        assert_int_equal(amend(f, "delete", "m2", NULL, &id, &err), STENO_ECONFLICT);
        assert_non_null(strstr(err.msg, "another message"));
        assert_int_equal(amend(f, "meta", "m2", "{\"a\":1}", &key, &err), 0);
        assert_int_equal(amend(f, "meta", "m2", "{\"a\":1}", &key, &err), 0);
        assert_int_equal(amend(f, "meta", "m3", "{\"a\":1}", &key, &err), STENO_ECONFLICT);
        assert_int_equal(last(f), 7);
}

static void a_replacement_is_known_by_either_name_of_its_target(void **state)
{
        struct fixture *f = *state;
        struct steno_error err = {0};
        five(f);
        assert_int_equal(amend(f, "supersede", "m1", USER("r1", "x"), NULL, &err), 0);
        assert_int_equal(amend(f, "supersede", "r1", USER("r2", "y"), NULL, &err), 0);
        assert_int_equal(amend(f, "supersede", "r1", USER("r2", "y"), NULL, &err), 0);
        assert_int_equal(amend(f, "supersede", "m1", USER("r2", "y"), NULL, &err), 0);
        assert_int_equal(last(f), 7);
        /* r1 is no longer there; its place is, under its first name and its last one. */
        assert_int_equal(amend(f, "supersede", "r1", USER("r3", "z"), NULL, &err), STENO_ENOTFOUND);
        assert_non_null(strstr(err.msg, "no message \"r1\" to replace"));
        assert_int_equal(amend(f, "meta", "r2", "{\"a\":1}", NULL, &err), 0);
        assert_int_equal(amend(f, "supersede", "m1", USER("r3", "z"), NULL, &err), 0);
        assert_int_equal(amend(f, "delete", "m1", NULL, NULL, &err), 0);
        assert_int_equal(amend(f, "meta", "r3", "{\"a\":1}", NULL, &err), STENO_ENOTFOUND);
}

static void damage_beside_a_message_does_not_make_it_another(void **state)
{
        struct fixture *f = *state;
        static char text[4000];
        five(f);
        size_t n = fixture_slurp(f, LOG, text, sizeof text);
        strstr(text, "four")[0] = 'F';
        fixture_spit(f, LOG, text, n);
        answers(f, USER("m5", "five"), 5);
        answers(f, USER("m3", "three"), 3);
        /* The line feed after m2 is lost as well: m3 follows it and is whole. */
        *strchr(strstr(text, "two"), '\n') = ' ';
        fixture_spit(f, LOG, text, n);
        answers(f, USER("m3", "three"), 3);
        answers(f, USER("m5", "five"), 5);
        assert_int_equal(last(f), 5);
}

static void a_damaged_batch_says_so(void **state)
{
        struct fixture *f = *state;
        static char text[4000];
        fixture_append(f, "[" USER("b1", "one") "," USER("b2", "two") "," USER("b3", "three") "]");
        fixture_append(f, USER("m", "x"));
        size_t n = fixture_slurp(f, LOG, text, sizeof text);
        strstr(text, "two")[0] = 'T';
        fixture_spit(f, LOG, text, n);
        refuses(f, "[" USER("b1", "one") "," USER("b2", "two") "," USER("b3", "three") "]",
            "in a batch that is damaged");
        answers(f, USER("b3", "three"), 3);
}

static void a_damaged_batch_says_so_after_its_repair(void **state)
{
        struct fixture *f = *state;
        static char text[4000];
        static const char BATCH[] = "[" USER("b1", "one") "," USER("b2", "two") "]";
        struct steno_check_options repair = {.size = sizeof repair, .repair = true};
        struct steno_append_options key = {.size = sizeof key, .idempotency_key = "k"};
        struct steno_append_options none = {.size = sizeof none};
        uint64_t seq;
        OK(send(f, BATCH, &key, &seq, &err));
        fixture_append(f, USER("m", "x"));
        size_t n = fixture_slurp(f, LOG, text, sizeof text);
        strstr(text, "two")[0] = 'T';
        fixture_spit(f, LOG, text, n);
        struct steno_error why = {0};
        assert_int_equal(steno_check(f->store, &repair, NULL, NULL, &why), 2);
        assert_int_equal(send(f, BATCH, &key, &seq, &why), STENO_ECONFLICT);
        assert_string_equal(
            why.msg, "the idempotency key \"k\" was used for a batch that is damaged");
        assert_int_equal(send(f, BATCH, &none, &seq, &why), STENO_ECONFLICT);
        assert_non_null(strstr(why.msg, "in a batch that is damaged"));
}

static void a_purged_id_says_so(void **state)
{
        struct fixture *f = *state;
        five(f);
        OK(amend(f, "delete", "m2", NULL, NULL, &err));
        OK(steno_purge(f->store, NULL, "c", NULL, &err));
        refuses(f, USER("m2", "two"), "id \"m2\" was used for a message that is purged");
        answers(f, USER("m3", "three"), 3);
}

static void white_space_is_no_part_of_a_message(void **state)
{
        struct fixture *f = *state;
        static char text[50000], spaced[50001];
        fixture_append(f, USER("m1", "a \\\" b"));
        answers(f, " { \"id\" : \"m1\",\n\t\"role\":\"user\" , \"content\":\"a \\\" b\"\r\n} ", 1);
        refuses(f, USER("m1", "a  \\\" b"), "with other bytes");
        refuses(f, USER("m1", "a \\u0022 b"), "with other bytes");
        /* Large tokens that are stored separately are compared as a whole. */
        int n = snprintf(text, sizeof text, "{\"id\":\"m2\",\"role\":\"user\",\"content\":\"");
        memset(text + n, 'u', 40000);
        strcat(text + n, "\"}");
        snprintf(spaced, sizeof spaced, "{ %s", text + 1);
        fixture_append(f, text);
        answers(f, text, 2);
        refuses(f, spaced, "with other bytes");
        text[n] = 'x';
        refuses(f, text, "with other bytes");
}

static int durability_of(struct fixture *f, const char *json, int wanted)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = wanted};
        struct steno_receipt *r = NULL;
        OK(steno_append(f->conv, json, strlen(json), &opt, &r, &err));
        int got = steno_receipt_durability(r);
        steno_receipt_free(r);
        return got;
}

static void a_replay_says_how_durable_it_is(void **state)
{
        struct fixture *f = *state;
        assert_int_equal(durability_of(f, USER("m1", "one"), STENO_FULL), STENO_FULL);
        assert_int_equal(durability_of(f, USER("m1", "one"), STENO_PROCESS), STENO_FULL);
        assert_int_equal(durability_of(f, USER("m2", "two"), STENO_PROCESS), STENO_PROCESS);
        assert_int_equal(durability_of(f, USER("m2", "two"), STENO_FULL), STENO_FULL);
        assert_int_equal(durability_of(f, USER("m2", "two"), STENO_PROCESS), STENO_FULL);
}

static void texts_of_refused_amendments(void **state)
{
        struct fixture *f = *state;
        struct steno_error err = {0};
        five(f);
        assert_int_equal(amend(f, "meta", "m1", NULL, NULL, &err), STENO_EINVAL);
        assert_string_equal(err.msg, "an amendment \"meta\" needs an object with the metadata");
        assert_int_equal(amend(f, "supersede", "m1", NULL, NULL, &err), STENO_EINVAL);
        assert_string_equal(
            err.msg, "an amendment \"supersede\" needs the message that takes the place");
        assert_int_equal(amend(f, "delete", "m1", "{}", NULL, &err), STENO_EINVAL);
        assert_string_equal(err.msg, "an amendment \"delete\" takes no JSON");
        assert_int_equal(amend(f, "meta", "u1", "{}", NULL, &err), STENO_ENOTFOUND);
        assert_string_equal(err.msg, "no message \"u1\" to give metadata to");
}

#define CALL(call)                                                                                 \
        "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" call                 \
        "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define RESULT(call) "{\"role\":\"tool\",\"tool_call_id\":\"" call "\",\"content\":\"done\"}"

static void a_refused_batch_names_its_own_messages(void **state)
{
        struct fixture *f = *state;
        struct steno_error err = {0};
        uint64_t seq;
        fixture_append(f, USER("m1", "one"));
        const char *twice = "[" CALL("k") "," RESULT("k") "," RESULT("k") "]";
        assert_int_equal(send(f, twice, &NOTHING, &seq, &err), STENO_EPROTO);
        assert_string_equal(err.msg,
            "message 3: tool_call_id \"k\" was already answered at message 2 of this batch");
        const char *other = "[" CALL("k") "," RESULT("j") "]";
        assert_int_equal(send(f, other, &NOTHING, &seq, &err), STENO_EPROTO);
        assert_string_equal(err.msg, "message 2: tool_call_id \"j\" answers no call of the block "
                                     "at message 1 of this batch");
        fixture_append(f, "[" CALL("k") "," RESULT("k") "]");
        assert_int_equal(send(f, RESULT("k"), &NOTHING, &seq, &err), STENO_EPROTO);
        assert_string_equal(err.msg, "message 1: tool_call_id \"k\" was already answered at seq 3");
}

/* Clients of a recording append send again what they have: some of it is there, some is not. */
static void a_recording_append_takes_a_batch_that_is_partly_there(void **state)
{
        struct fixture *f = *state;
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_RECORD};
        struct steno_receipt *r;
        struct steno_error err = {0};
        const char *both = "[" USER("m1", "one") "," USER("m2", "two") "]";
        const char *part =
            "[" USER("m2", "two") "," USER("m3", "three") "," USER("m3", "three") "]";
        uint64_t seq;
        fixture_append(f, both);
        assert_int_equal(send(f, part, &NOTHING, &seq, &err), STENO_ECONFLICT);
        assert_int_equal(steno_append(f->conv, both, strlen(both), &opt, &r, &err), 0);
        assert_true(steno_receipt_replayed(r));
        steno_receipt_free(r);
        assert_int_equal(steno_append(f->conv, part, strlen(part), &opt, &r, &err), 0);
        assert_int_equal(steno_receipt_first_seq(r), 3);
        assert_int_equal(steno_receipt_last_seq(r), 5);
        assert_string_not_equal(steno_receipt_id(r, 0), "m2");
        assert_string_equal(steno_receipt_id(r, 1), "m3");
        assert_string_not_equal(steno_receipt_id(r, 2), "m3");
        steno_receipt_free(r);
}

#define T(f)                                                                                       \
        {                                                                                          \
#f, f, fixture_setup, fixture_teardown, NULL                                       \
        }

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            T(amendments_of_two_messages_are_two),
            T(a_recording_append_takes_a_batch_that_is_partly_there),
            T(a_replacement_is_known_by_either_name_of_its_target),
            T(damage_beside_a_message_does_not_make_it_another),
            T(a_damaged_batch_says_so),
            T(a_damaged_batch_says_so_after_its_repair),
            T(a_purged_id_says_so),
            T(white_space_is_no_part_of_a_message),
            T(a_replay_says_how_durable_it_is),
            T(texts_of_refused_amendments),
            T(a_refused_batch_names_its_own_messages),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
