/*
 * The figures of a conversation while a run is working: at whatever moment they are read, they
 * include everything that the run has used once it is over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/env.h"
#include "http/digests.h"
#include "steno.h"
#include "support/scratch.h"

struct place {
        struct scratch scratch;
        struct steno_store *store;
        struct steno_conv *conv;
        struct digests *digests;
};

static void place_open(struct place *p)
{
        char url[512];
        scratch_make(&p->scratch);
        assert_int_equal(steno_open(scratch_store(&p->scratch, url), NULL, &p->store, NULL), 0);
        assert_int_equal(steno_conv_create(p->store, NULL, "c", NULL, &p->conv, NULL), 0);
        p->digests = digests_new();
        assert_non_null(p->digests);
}

static void place_close(struct place *p)
{
        digests_free(p->digests);
        steno_conv_close(p->conv);
        steno_close(p->store);
        scratch_remove(&p->scratch);
}

static uint64_t tokens_in(struct place *p)
{
        const struct digest *d = NULL;
        assert_int_equal(digests_open(p->digests, p->store, p->conv, 60000, &d, NULL), 0);
        assert_true(d->whole);
        uint64_t tokens = d->tokens.in;
        digests_close(p->digests, d);
        return tokens;
}

static bool is_known(struct place *p, uint64_t seq)
{
        const struct digest *d = digests_known(p->digests, steno_conv_project(p->conv), "c", seq);
        digests_close(p->digests, d);
        return d != NULL;
}

static void append(struct place *p, const char *message)
{
        assert_int_equal(steno_append(p->conv, message, strlen(message), NULL, NULL, NULL), 0);
}

static void say(struct steno_run *run, const char *type, const char *data)
{
        assert_int_equal(
            steno_run_event(run, type, data, strlen(data), STENO_PROCESS, NULL, NULL), 0);
}

static void counts_a_run_that_was_read_before_it_ended(void **state)
{
        struct place p;
        struct steno_run *run;
        uint64_t seq = 0;
        (void)state;
        place_open(&p);
        for (uint64_t i = 1; i <= 3; i++) {
                append(&p, "{\"role\":\"user\",\"content\":\"q\"}");
                assert_int_equal(steno_run_begin(p.conv, NULL, "chat", &run, NULL), 0);
                say(run, "reply_usage",
                    "{\"messageId\":\"m\",\"model\":\"m\",\"usage\":{\"prompt_tokens\":7}}");
                append(&p, "{\"role\":\"assistant\",\"content\":\"a\"}");
                assert_int_equal(steno_conv_last_seq(p.conv, &seq, NULL), 0);
                /* The last message is there, but not the end of the run. */
                tokens_in(&p);
                assert_false(is_known(&p, seq));
                say(run, "run_finished", "{\"reason\":\"stop\"}");
                steno_run_close(run);
                assert_int_equal(tokens_in(&p), 7);
                assert_true(is_known(&p, seq));
        }
        place_close(&p);
}

/* Would a run still have to begin the calls of the newest reply, stored at `at`? */
static bool is_at_newest(struct place *p, int64_t at)
{
        const struct digest *d = NULL;
        assert_int_equal(digests_open(p->digests, p->store, p->conv, 60000, &d, NULL), 0);
        assert_int_equal(d->last_reply, d->seq);
        bool is = doing_newest(&d->doing, at);
        digests_close(p->digests, d);
        return is;
}

/* A page that reads at this moment must not take such calls for running: nothing is stored when the
 * run reports them, so the page would not look again. */
static void knows_whose_calls_come_before_the_run_tells_of_them(void **state)
{
        struct place p;
        struct steno_run *run;
        int64_t from = env_real()->now(env_real());
        (void)state;
        place_open(&p);
        append(&p, "{\"role\":\"user\",\"content\":\"q\"}");
        append(&p, "{\"role\":\"assistant\",\"content\":\"an old one\"}");
        assert_false(is_at_newest(&p, from));
        assert_int_equal(steno_run_begin(p.conv, NULL, "agent", &run, NULL), 0);
        say(run, "request", "{\"messages\":2}");
        append(&p, "{\"role\":\"assistant\",\"content\":\"a\"}");
        assert_false(is_at_newest(&p, from - 1));
        assert_true(is_at_newest(&p, env_real()->now(env_real())));
        say(run, "run_finished", "{\"reason\":\"stop\"}");
        assert_false(is_at_newest(&p, env_real()->now(env_real())));
        steno_run_close(run);
        assert_false(is_at_newest(&p, env_real()->now(env_real())));
        place_close(&p);
}

/* Somebody continues the conversation: the model is asked, and nothing was stored since. */
static void knows_of_a_run_that_begins_without_a_message(void **state)
{
        struct place p;
        struct steno_run *run;
        const struct digest *d = NULL;
        uint64_t seq = 0;
        (void)state;
        place_open(&p);
        append(&p, "{\"role\":\"user\",\"content\":\"q\"}");
        tokens_in(&p);
        assert_int_equal(steno_conv_last_seq(p.conv, &seq, NULL), 0);
        assert_true(is_known(&p, seq));
        assert_int_equal(steno_run_begin(p.conv, NULL, "agent", &run, NULL), 0);
        say(run, "request", "{\"messageId\":\"m\"}");
        digests_at_work(p.digests, steno_conv_project(p.conv), "c");
        assert_false(is_known(&p, seq));
        assert_int_equal(digests_open(p.digests, p.store, p.conv, 60000, &d, NULL), 0);
        assert_true(d->doing.asked_at > 0);
        digests_close(p.digests, d);
        say(run, "run_finished", "{\"reason\":\"stop\"}");
        steno_run_close(run);
        tokens_in(&p);
        assert_true(is_known(&p, seq));
        place_close(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(counts_a_run_that_was_read_before_it_ended),
            cmocka_unit_test(knows_of_a_run_that_begins_without_a_message),
            cmocka_unit_test(knows_whose_calls_come_before_the_run_tells_of_them),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
