/*
 * test_ahead.c - a view that copies messages with calls before it knows their results shows what
 * one shows that holds them all.
 *
 * Tokens are counted only of messages that went the long way, so a view that counts them is the
 * other side. Histories are random: results in order, in another order, late, missing, twice or of
 * several in one message, and messages long enough that the buffer before the sink fills up.
 */
#include "api/rig.h"

#define RECORDS 1500

struct sent {
        struct rig *rig;
        struct seed *rnd;
        struct buf text;
        size_t records;
        int calls;
};

static unsigned pick(struct sent *s, unsigned n)
{
        return (unsigned)seed_below(s->rnd, n);
}

static void put_words(struct sent *s)
{
        unsigned n = pick(s, 30) ? pick(s, 200) : pick(s, 40000);
        for (unsigned i = 0; i < n; i++)
                buf_putc(&s->text, i % 7 ? 'x' : ' ');
        buf_putc(&s->text, 'x');
}

static void open_message(struct sent *s)
{
        buf_puts(&s->text, s->text.n ? "," : "[");
        s->records++;
}

static void put_said(struct sent *s, const char *role)
{
        open_message(s);
        buf_printf(&s->text, "{\"role\":\"%s\",\"content\":\"", role);
        put_words(s);
        buf_puts(&s->text, "\"}");
}

static void put_result(struct sent *s, int call)
{
        open_message(s);
        buf_printf(&s->text, "{\"role\":\"tool\",\"tool_call_id\":\"call_%d\",%s\"content\":\"",
            call, pick(s, 20) ? "" : "\"toolName\":\"f\",\"duration\":3,");
        put_words(s);
        buf_puts(&s->text, "\"}");
}

static void put_calls(struct sent *s)
{
        int n = 1 + (int)(pick(s, 3) ? pick(s, 3) : pick(s, 12)), first = s->calls;
        bool again = pick(s, 20) == 0; /* ids of before */
        s->calls += n;
        open_message(s);
        buf_puts(&s->text, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[");
        for (int i = 0; i < n; i++)
                buf_printf(&s->text,
                    "%s{\"id\":\"call_%d\",\"type\":\"function\",\"function\":{\"name\":\"f\","
                    "\"arguments\":\"{}\"}}",
                    i ? "," : "", again && i == 0 ? (int)pick(s, 3) : first + i);
        buf_puts(&s->text, "]}");
        bool backwards = pick(s, 6) == 0;
        unsigned odd = pick(s, 8);
        for (int i = 0; i < n; i++) {
                if (odd == 0 && i == n - 1)
                        put_said(s, "user");
                if (odd == 1 && pick(s, 3) == 0)
                        continue;
                put_result(s, first + (backwards ? n - 1 - i : i));
                if (odd == 2)
                        put_result(s, first + i);
                if (odd == 3 && i == 0 && n > 1)
                        put_calls(s);
        }
}

static void send(struct sent *s)
{
        struct steno_append_options opt = {
            .size = sizeof opt, .durability = STENO_PROCESS, .flags = STENO_RECORD};
        while (s->text.n < 60000)
                switch (pick(s, 4)) {
                case 0:
                        put_said(s, "user");
                        break;
                case 1:
                        put_said(s, "assistant");
                        break;
                default:
                        put_calls(s);
                }
        buf_putc(&s->text, ']');
        OK(steno_append(s->rig->conv, buf_cstr(&s->text), s->text.n, &opt, NULL, &err));
        buf_clear(&s->text);
}

static int to_buf(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

static char *view(struct rig *r, struct steno_view_options *opt, char **report)
{
        struct buf out;
        buf_init(&out, 0);
        OK(steno_view(r->conv, opt, to_buf, &out, report, &err));
        return buf_take(&out, NULL);
}

/* Repairs, losses, damage and ids; not the count. */
static char *member(char *report, const char *name)
{
        char *from = strstr(report, name);
        assert_non_null(from);
        char *end = strchr(from, ']');
        assert_non_null(end);
        *end = '\0';
        return from;
}

static void compare(struct rig *r, struct steno_view_options *opt)
{
        char *report = NULL, *held_report = NULL;
        opt->count_tokens = 0;
        char *ahead = view(r, opt, &report);
        opt->count_tokens = 1;
        char *held = view(r, opt, &held_report);
        size_t i = 0;
        while (ahead[i] && ahead[i] == held[i])
                i++;
        if (ahead[i] || held[i])
                fail_msg("after %llu, limit %llu: at byte %zu\n%.400s\n-- instead of\n%.400s",
                    (unsigned long long)opt->after_seq, (unsigned long long)opt->limit, i,
                    ahead + (i > 200 ? i - 200 : 0), held + (i > 200 ? i - 200 : 0));
        assert_string_equal(member(report, "\"ids\""), member(held_report, "\"ids\""));
        assert_string_equal(member(report, "\"repairs\""), member(held_report, "\"repairs\""));
        steno_free(report);
        steno_free(held_report);
        free(ahead);
        free(held);
}

static void what_is_copied_ahead_is_what_would_have_been_held(void **state)
{
        struct rig *r = *state;
        struct seed rnd = seed_start();
        for (int round = 0; round < seed_rounds(40); round++) {
                struct sent s = {.rig = r, .rnd = &rnd};
                buf_init(&s.text, 0);
                while (s.records < RECORDS)
                        send(&s);
                struct steno_view_options opt = {.size = sizeof opt, .format = "openai"};
                compare(r, &opt);
                for (int i = 0; i < 8; i++) {
                        opt.after_seq = seed_below(&rnd, RECORDS);
                        opt.limit = 1 + seed_below(&rnd, 60);
                        compare(r, &opt);
                }
                buf_release(&s.text);
                rig_close(r);
                scratch_remove(&r->scratch);
                assert_int_equal(scratch_make(&r->scratch), 0);
                rig_open(r);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                what_is_copied_ahead_is_what_would_have_been_held, rig_setup, rig_teardown),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests_name("ahead", tests, NULL, NULL);
}
