/*
 * test_pairs.c - calls and results when messages are deleted, replaced and purged: what a strict
 * append takes, a check accepts and a view shows. Every story is told to a handle that stays open
 * and to one that is opened for each word.
 */
#include "fixture.h"

struct teller {
        struct fixture *f;
        bool cold;
};

static void settle(struct teller *t)
{
        if (t->cold) {
                fixture_close(t->f);
                fixture_open(t->f);
        }
}

#define CALL(id, call)                                                                             \
        "{\"id\":\"" id                                                                            \
        "\",\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" call               \
        "\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define RESULT(id, call)                                                                           \
        "{\"id\":\"" id "\",\"role\":\"tool\",\"tool_call_id\":\"" call "\",\"content\":\"" id "\"}"
#define WORDS(id) "{\"id\":\"" id "\",\"role\":\"assistant\",\"content\":\"" id "\"}"

static int count_finding(void *ctx, const char *json)
{
        print_message("# %s\n", json);
        ++*(int *)ctx;
        return 0;
}

static void is_in_order(struct teller *t)
{
        int count = 0;
        struct steno_check_options opt = {.size = sizeof opt};
        OK(steno_check(t->f->store, &opt, count_finding, &count, &err));
        assert_int_equal(count, 0);
}

static void takes(struct teller *t, const char *json)
{
        settle(t);
        fixture_append(t->f, json);
        is_in_order(t);
}

static void refuses(struct teller *t, const char *json, const char *words)
{
        struct steno_error err = {0};
        settle(t);
        assert_int_equal(
            steno_append(t->f->conv, json, strlen(json), NULL, NULL, &err), STENO_EPROTO);
        if (!strstr(err.msg, words))
                fail_msg("%s", err.msg);
}

static void amend(struct teller *t, const char *kind, const char *target, const char *json)
{
        settle(t);
        OK(steno_amend(t->f->conv, kind, target, json, json ? strlen(json) : 0, NULL, NULL, &err));
        is_in_order(t);
}

static void purge(struct teller *t)
{
        OK(steno_purge(t->f->store, NULL, "c", NULL, &err));
        is_in_order(t);
}

static int gather(void *ctx, const void *p, size_t n)
{
        char *to = ctx;
        size_t at = strlen(to);
        assert_true(at + n < 4000);
        memcpy(to + at, p, n);
        to[at + n] = '\0';
        return 0;
}

/* The view shows these words, in order, and reports these repairs ("<class> <seq>,"). */
static void shows(struct teller *t, const char *words, const char *repairs)
{
        char text[4000] = "", told[400] = "", *report;
        const char *at = text;
        struct steno_view_options opt = {.size = sizeof opt};
        settle(t);
        OK(steno_view(t->f->conv, &opt, gather, text, &report, &err));
        char list[200];
        snprintf(list, sizeof list, "%s", words);
        for (char *w = strtok(list, " "); w; w = strtok(NULL, " ")) {
                char want[40];
                snprintf(want, sizeof want, "\"%s\"", w);
                at = strstr(at, want);
                if (!at)
                        fail_msg("no %s in %s", w, text);
        }
        for (const char *c = report; (c = strstr(c, "\"class\":\"")); c++) {
                char class[40];
                unsigned long long seq;
                assert_int_equal(sscanf(c, "\"class\":\"%39[a-z]\",\"seq\":%llu", class, &seq), 2);
                snprintf(told + strlen(told), sizeof told - strlen(told), "%s %llu,", class, seq);
        }
        assert_string_equal(told, repairs);
        steno_free(report);
}

static void a_result_is_corrected(struct teller *t)
{
        takes(t, "[" CALL("a1", "k") "," RESULT("t1", "k") "]");
        amend(t, "supersede", "t1", RESULT("t1b", "k"));
        shows(t, "k t1b", "");
        refuses(t, RESULT("t2", "k"), "\"k\" was already answered at seq 2");
        amend(t, "supersede", "t1b", RESULT("t1c", "k"));
        shows(t, "k t1c", "");
        struct steno_error err = {0};
        const char *other = RESULT("t1d", "x");
        assert_int_equal(
            steno_amend(t->f->conv, "supersede", "t1", other, strlen(other), NULL, NULL, &err),
            STENO_EPROTO);
        purge(t);
        shows(t, "k t1c", "");
        refuses(t, RESULT("t2", "k"), "\"k\" was already answered at seq 2");
}

static void a_result_is_deleted_and_comes_again(struct teller *t)
{
        takes(t, "[" CALL("a1", "k") "," RESULT("t1", "k") "]");
        amend(t, "delete", "t1", NULL);
        shows(t, "k", "unrecorded 1,");
        takes(t, RESULT("t2", "k"));
        shows(t, "k t2", "");
        refuses(t, RESULT("t3", "k"), "\"k\" was already answered at seq 4");
        purge(t);
        refuses(t, RESULT("t3", "k"), "\"k\" was already answered at seq 4");
        amend(t, "delete", "t2", NULL);
        purge(t);
        takes(t, RESULT("t3", "k"));
        shows(t, "k t3", "");
}

static void a_call_is_deleted(struct teller *t)
{
        takes(t, CALL("a0", "k"));
        takes(t, WORDS("w"));
        takes(t, "[" CALL("a1", "k") "," RESULT("t1", "k") "]");
        amend(t, "delete", "a1", NULL);
        /* t1 does not become the result of a0. */
        shows(t, "k w", "orphan 4,unrecorded 1,");
        purge(t);
        shows(t, "k w", "orphan 4,unrecorded 1,");
        takes(t, RESULT("t0", "k"));
        shows(t, "k t0 w", "orphan 4,moved 6,");
        amend(t, "delete", "a0", NULL);
        shows(t, "w", "orphan 4,orphan 6,");
        refuses(t, RESULT("t2", "k"), "\"k\" answers a call that was deleted or replaced");
        takes(t, "[" CALL("a2", "k") "," RESULT("t2", "k") "]");
        shows(t, "w k t2", "orphan 4,orphan 6,");
}

static void a_call_is_replaced(struct teller *t)
{
        takes(t, "[" CALL("a1", "k") "," RESULT("t1", "k") "]");
        amend(t, "supersede", "a1", CALL("a1b", "j"));
        shows(t, "j", "orphan 2,unrecorded 1,");
        refuses(t, RESULT("t2", "k"), "\"k\" answers a call that was deleted or replaced");
        takes(t, RESULT("t2", "j"));
        shows(t, "j t2", "orphan 2,");
        amend(t, "supersede", "a1", CALL("a1c", "i"));
        purge(t);
        refuses(t, RESULT("t3", "j"), "\"j\" answers a call that was deleted or replaced");
        takes(t, RESULT("t3", "i"));
        shows(t, "i t3", "orphan 2,orphan 4,");
        amend(t, "supersede", "a1", WORDS("w"));
        shows(t, "w", "orphan 2,orphan 4,orphan 6,");
}

#define NO_ID_CALL                                                                                 \
        "{\"id\":\"a1\",\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"type\":"        \
        "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define NO_ID_RESULT_2 "{\"id\":\"t2\",\"role\":\"tool\",\"content\":\"t2\"}"
#define NO_ID_RESULT "{\"id\":\"t1\",\"role\":\"tool\",\"content\":\"t1\"}"

static void ids_are_missing(struct teller *t)
{
        refuses(t, NO_ID_RESULT, "message 1: tool_call_id is missing, and no call is open");
        takes(t, NO_ID_CALL);
        takes(t, NO_ID_RESULT);
        shows(t, "f tool t1", "");
        refuses(t, NO_ID_RESULT_2, "message 1: tool_call_id is missing, and no call is open");
}

static void ids_are_missing_in_one_batch(struct teller *t)
{
        struct steno_append_options opt = {.size = sizeof opt, .flags = STENO_RECORD};
        const char *both = "[" NO_ID_CALL "," NO_ID_RESULT "," NO_ID_RESULT_2 "]";
        OK(steno_append(t->f->conv, both, strlen(both), &opt, NULL, &err));
        is_in_order(t);
        shows(t, "f tool t1", "orphan 3,");
}

/* The older form of calls has no ids; its result may even come without the name. */
static void a_function_message_has_no_name(struct teller *t)
{
        takes(t, "{\"id\":\"a1\",\"role\":\"assistant\",\"content\":null,\"function_call\":{"
                 "\"name\":\"f\",\"arguments\":\"{}\"}}");
        takes(t, "{\"id\":\"t1\",\"role\":\"function\",\"name\":\"\",\"content\":\"t1\"}");
        shows(t, "f tool t1", "");
}

/* The receipt names the ids that were made, and names the same ones again. */
static void a_receipt_tells_made_ids(struct teller *t)
{
        struct steno_receipt *first, *again;
        OK(steno_append(t->f->conv, NO_ID_CALL, strlen(NO_ID_CALL), NULL, &first, &err));
        settle(t);
        OK(steno_append(t->f->conv, NO_ID_CALL, strlen(NO_ID_CALL), NULL, &again, &err));
        assert_non_null(
            strstr(steno_receipt_json(first), "\"calls\":[{\"message\":0,\"ids\":[\"call_"));
        assert_string_equal(steno_receipt_json(first), steno_receipt_json(again));
        steno_receipt_free(first);
        steno_receipt_free(again);
}

static void tell(void **state, void (*story)(struct teller *t))
{
        for (int cold = 0; cold < 2; cold++) {
                struct teller t = {*state, cold};
                story(&t);
                OK(steno_remove(t.f->store, NULL, "c", NULL, &err));
                fixture_close(t.f);
                fixture_open(t.f);
        }
}

#define STORY(name)                                                                                \
        static void told_##name(void **state)                                                      \
        {                                                                                          \
                tell(state, name);                                                                 \
        }
STORY(a_result_is_corrected)
STORY(a_result_is_deleted_and_comes_again)
STORY(a_call_is_deleted)
STORY(a_call_is_replaced)
STORY(ids_are_missing)
STORY(ids_are_missing_in_one_batch)
STORY(a_function_message_has_no_name)
STORY(a_receipt_tells_made_ids)

#define T(f)                                                                                       \
        {                                                                                          \
#f, told_##f, fixture_setup, fixture_teardown, NULL                                \
        }

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            T(a_result_is_corrected),
            T(a_result_is_deleted_and_comes_again),
            T(a_call_is_deleted),
            T(a_call_is_replaced),
            T(ids_are_missing),
            T(ids_are_missing_in_one_batch),
            T(a_function_message_has_no_name),
            T(a_receipt_tells_made_ids),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
