/*
 * A recorder that is killed between its last append and the end of its transaction, and the one
 * that records the exchange at the next start: whatever the first one knew of how the exchange
 * ended, the second stores nothing that differs, and is not refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "base/env.h"
#include "gateway/recording.h"
#include "support/scratch.h"

/* ---- what an exchange may contain, and how it may end ---- */

static const char whole[] =
    "{\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\","
    "\"message\":{\"role\":\"assistant\",\"content\":\"yes\"}}],\"usage\":{\"prompt_tokens\":1}}";
static const char streamed[] =
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"yes\"}}]}\n\n"
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: [DONE]\n\n";
static const char half[] =
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ye\"}}]}\n\n";

struct answer {
        int status; /* 0: none came */
        bool stream;
        const char *body;
};

static const struct answer answers[] = {
    {200, false, whole},
    {200, true, streamed},
    {200, true, half},
    {200, false, "no JSON"},
    {500, false, "{\"error\":{\"message\":\"broken\"}}"},
    {0, false, ""},
};

static const struct recorder_fate fates[] = {
    {0},
    {.gone = true, .delivered = 7},
    {.cut = true, .why = "the endpoint ended the connection"},
    {.cut = true, .gone = true, .delivered = 3, .why = "the client left \"early\"\n\xc3\xa9"},
    {.cut = true, .known = true, .why = "the model gave no answer"},
};

/* What is known of an exchange that another process has left. */
static const struct recorder_fate killed = {.cut = true,
    .killed = true,
    .gone = true,
    .why = "the gateway was killed while the answer came"};

/* ---- a store ---- */

struct place {
        struct scratch scratch;
        struct steno_store *store;
        struct exchanges *all;
        unsigned lineages;
};

static struct lineage *new_lineage(struct place *p)
{
        char path[320];
        struct lineage *l = NULL;
        snprintf(path, sizeof path, "%s/lineage%u", p->scratch.path, p->lineages);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/lineage%u/gateway", p->scratch.path, p->lineages);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/lineage%u", p->scratch.path, p->lineages++);
        assert_int_equal(lineage_open(p->store, path, &l, NULL), 0);
        return l;
}

static void place_open(struct place *p)
{
        char path[320];
        *p = (struct place){0};
        assert_int_equal(scratch_make(&p->scratch), 0);
        snprintf(path, sizeof path, "%s/store", p->scratch.path);
        assert_int_equal(steno_open(path, NULL, &p->store, NULL), 0);
        assert_int_equal(exchanges_open(env_real(), path, &p->all, NULL), 0);
}

static void place_close(struct place *p)
{
        exchanges_close(p->all);
        steno_close(p->store);
        scratch_remove(&p->scratch);
}

static struct exchange *create(struct place *p, const struct answer *a)
{
        static const char head[] =
            "{\"at\":\"2026-01-01T00:00:00.000Z\",\"project\":\"default\",\"owner\":\"me\","
            "\"upstream\":\"openai\",\"wire\":\"chat\",\"method\":\"POST\","
            "\"path\":\"/chat/completions\"}";
        static const char body[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
                                   "\"content\":\"is it?\"}]}";
        char line[160];
        struct exchange *x = NULL;
        assert_int_equal(exchange_create(p->all, STR(head), STR(body), false, &x, NULL), 0);
        if (a->status == 0)
                return x;
        snprintf(line, sizeof line,
            "{\"status\":%d,\"at\":\"2026-01-01T00:00:01.000Z\",\"stream\":%s,\"encoded\":false}",
            a->status, a->stream ? "true" : "false");
        assert_int_equal(exchange_answer(x, str_of(line)), 0);
        assert_int_equal(exchange_put(x, a->body, strlen(a->body)), 0);
        return x;
}

static uint64_t records_of(struct place *p, const char *exchange)
{
        struct steno_conv *conv = NULL;
        char id[64];
        uint64_t seq = 0;
        snprintf(id, sizeof id, "conv_%s", exchange + 3);
        assert_int_equal(steno_conv_open(p->store, "default", id, &conv, NULL), 0);
        assert_int_equal(steno_conv_last_seq(conv, &seq, NULL), 0);
        steno_conv_close(conv);
        return seq;
}

/* One attempt, by a process that finds nothing of earlier ones in the lineage. */
static void record(struct place *p, struct exchange *x, const struct recorder_fate *fate, bool gap)
{
        struct steno_error err = {0};
        struct recording_outcome outcome = {0};
        struct recording_target to = {.store = p->store, .lineage = new_lineage(p)};
        if (gap)
                gaps_note(&to.gaps, "me", STR("2026-01-01T00:00:00.000Z"));
        if (recording_store(&to, x, fate, &outcome, &err) != 0)
                fail_msg("%s", err.msg);
        assert_true(outcome.understood);
        gaps_release(&to.gaps);
        lineage_close(to.lineage);
}

static void check_exchange(
    struct place *p, const struct answer *a, const struct recorder_fate *fate, bool gap)
{
        char id[EXCHANGE_ID];
        struct exchange *x = create(p, a);
        snprintf(id, sizeof id, "%s", exchange_id(x));
        record(p, x, fate, gap);
        uint64_t records = records_of(p, id);
        assert_true(records > (gap ? 3 : 2));
        for (int i = 0; i < (a->body == whole ? 2 : 1); i++) {
                exchange_close(x); /* with its process */
                assert_int_equal(exchange_open(p->all, id, &x, NULL), 0);
                record(p, x, &killed, false);
                assert_int_equal(records_of(p, id), records);
        }
        exchange_remove(x);
}

static void what_the_first_try_knew_is_what_the_second_one_stores(void **state)
{
        struct place p;
        (void)state;
        place_open(&p);
        for (size_t a = 0; a < sizeof answers / sizeof *answers; a++)
                for (size_t f = 0; f < sizeof fates / sizeof *fates; f++)
                        check_exchange(&p, &answers[a], &fates[f], false);
        place_close(&p);
}

static void a_gap_that_only_the_first_try_knew_of_changes_nothing_else(void **state)
{
        struct place p;
        (void)state;
        place_open(&p);
        for (size_t a = 0; a < sizeof answers / sizeof *answers; a++)
                check_exchange(&p, &answers[a], &fates[1], true);
        place_close(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_the_first_try_knew_is_what_the_second_one_stores),
            cmocka_unit_test(a_gap_that_only_the_first_try_knew_of_changes_nothing_else),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
