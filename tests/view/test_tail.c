/*
 * test_tail.c - views that read from the end show what views of the whole history show.
 *
 * A page with a limit is held as a whole, so a limit that nothing reaches gives the same view made
 * the long way. Histories are random: calls of every state, large outputs, system messages, four
 * formats, amendments.
 */
#include "api/rig.h"

#define RECORDS 4200

struct talk {
        struct rig *rig;
        struct seed *rnd;
        struct buf text;
        struct buf ids; /* offsets of ids, NUL behind each */
        size_t *at;
        size_t count;
        int calls;
};

static unsigned pick(struct talk *t, unsigned n)
{
        return (unsigned)seed_below(t->rnd, n);
}

static void say(struct talk *t, unsigned words)
{
        static const char *const some[] = {
            "the", "log", "says", "that", "nothing", "was", "found", "in", "file", "42", "éß"};
        for (unsigned i = 0; i < words; i++)
                buf_printf(&t->text, "%s%s", i ? " " : "", some[pick(t, 11)]);
}

static void send(struct talk *t, const char *format)
{
        struct steno_append_options opt = {.size = sizeof opt,
            .format = format,
            .durability = STENO_PROCESS,
            .flags = STENO_RECORD};
        struct steno_receipt *receipt = NULL;
        OK(steno_append(t->rig->conv, buf_cstr(&t->text), t->text.n, &opt, &receipt, &err));
        for (size_t i = 0; i < steno_receipt_count(receipt); i++) {
                t->at[t->count++] = t->ids.n;
                buf_puts(&t->ids, steno_receipt_id(receipt, i));
                buf_putc(&t->ids, '\0');
        }
        steno_receipt_free(receipt);
        buf_clear(&t->text);
}

static void send_words(struct talk *t, const char *role)
{
        buf_printf(&t->text, "[{\"role\":\"%s\",\"content\":\"", role);
        say(t, 1 + pick(t, 30));
        buf_puts(&t->text, "\"}]");
        send(t, NULL);
}

static void put_result(struct talk *t, int call)
{
        buf_printf(&t->text, ",{\"role\":\"tool\",\"tool_call_id\":\"call_%d\",%s\"content\":\"",
            call, pick(t, 3) ? "" : "\"toolName\":\"f\",\"duration\":3,");
        say(t, pick(t, 40) ? 1 + pick(t, 60) : 1500);
        buf_puts(&t->text, "\"}");
}

/* Calls and their results, now and then out of order, late, missing or too many. */
static void send_calls(struct talk *t)
{
        int first = t->calls, n = 1 + (int)pick(t, 3);
        t->calls += n;
        buf_puts(&t->text, "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[");
        for (int i = 0; i < n; i++) {
                buf_printf(&t->text,
                    "%s{\"id\":\"call_%d\",\"type\":\"function\",\"function\":{\"name\":\"f\","
                    "\"arguments\":\"{\\\"text\\\":\\\"",
                    i ? "," : "", first + i);
                say(t, pick(t, 10));
                buf_puts(&t->text, "\\\"}\"}}");
        }
        buf_puts(&t->text, "]}");
        bool late = pick(t, 15) == 0;
        if (late)
                buf_puts(&t->text, ",{\"role\":\"user\",\"content\":\"are you there?\"}");
        for (int i = 0; i < n; i++) {
                if (pick(t, 12) == 0)
                        continue;
                put_result(t, first + (late ? n - 1 - i : i));
                if (pick(t, 25) == 0)
                        put_result(t, first + i);
        }
        if (pick(t, 40) == 0)
                put_result(t, first > 40 ? first - 40 : 9999999);
        buf_puts(&t->text, "]");
        send(t, NULL);
}

static void send_foreign(struct talk *t)
{
        int call = t->calls++;
        switch (pick(t, 3)) {
        case 0:
                buf_printf(&t->text,
                    "[{\"role\":\"assistant\",\"id\":\"resp_%d\",\"content\":[{\"type\":\"text\","
                    "\"text\":\"let me look\"}]}]",
                    call);
                send(t, "anthropic");
                buf_printf(&t->text,
                    "[{\"role\":\"assistant\",\"id\":\"resp_%d\",\"content\":[{\"type\":\"tool_"
                    "use\","
                    "\"id\":\"call_%d\",\"name\":\"f\",\"input\":{}}]},"
                    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"
                    "\"call_%d\",\"content\":\"found\"}]}]",
                    call, call, call);
                send(t, "anthropic");
                break;
        case 1:
                buf_printf(&t->text,
                    "[{\"type\":\"reasoning\",\"id\":\"rs_%d\",\"summary\":[]},"
                    "{\"type\":\"function_call\",\"call_id\":\"call_%d\",\"name\":\"f\","
                    "\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":"
                    "\"call_%d\",\"output\":\"found\"}]",
                    call, call, call);
                send(t, "responses");
                break;
        default:
                buf_puts(&t->text,
                    "[{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{}"
                    "}}]},{\"role\":\"user\",\"parts\":[{\"functionResponse\":{\"name\":\"f\","
                    "\"response\":{\"output\":\"found\"}}}]}]");
                send(t, "gemini");
        }
}

static void amend(struct talk *t)
{
        static const char *const kinds[] = {"delete", "supersede", "meta"};
        unsigned kind = pick(t, 3);
        const char *id = t->ids.p + t->at[pick(t, (unsigned)t->count)];
        const char *m = kind == 0   ? NULL
                        : kind == 1 ? "{\"role\":\"assistant\",\"content\":\"better said\"}"
                                    : "{\"includeInContext\":false}";
        /* What was deleted already is not there. */
        steno_amend(t->rig->conv, kinds[kind], id, m, m ? strlen(m) : 0, NULL, NULL, NULL);
}

static void fill(struct talk *t, size_t records)
{
        bool long_turns = pick(t, 3) == 0;
        unsigned leads = pick(t, 3) ? 200 : 8; /* one in so many */
        while (t->count < records) {
                if (pick(t, leads) == 0 || !t->count)
                        send_words(t, pick(t, 2) ? "system" : "developer");
                if (!long_turns || pick(t, 400) == 0)
                        send_words(t, "user");
                for (unsigned i = pick(t, 4); i > 0; i--) {
                        if (pick(t, 12) == 0)
                                send_foreign(t);
                        else
                                send_calls(t);
                }
                if (pick(t, 3))
                        send_words(t, "assistant");
                if (pick(t, 4) == 0)
                        amend(t);
        }
}

static struct talk *talk_open(struct rig *r, struct seed *rnd, size_t records)
{
        struct talk *t = calloc(1, sizeof *t);
        assert_non_null(t);
        t->rig = r;
        t->rnd = rnd;
        t->at = calloc(records + 64, sizeof *t->at);
        assert_non_null(t->at);
        buf_init(&t->text, 0);
        buf_init(&t->ids, 0);
        fill(t, records);
        return t;
}

static void talk_close(struct talk *t)
{
        buf_release(&t->text);
        buf_release(&t->ids);
        free(t->at);
        free(t);
}

static int to_buf(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

/* Freed with free(). */
static char *view(struct rig *r, const struct steno_view_options *opt, char **report)
{
        struct buf out;
        buf_init(&out, 0);
        OK(steno_view(r->conv, opt, to_buf, &out, report, &err));
        return buf_take(&out, NULL);
}

static char *without_repairs(char *report)
{
        /* Some repairs of what a limit leaves out are only counted. */
        char *from = strstr(report, "\"losses\"");
        assert_non_null(from);
        return from;
}

static void assert_equal_views(
    const char *a, const char *b, const struct steno_view_options *opt, const char *what)
{
        size_t i = 0;
        while (a[i] && a[i] == b[i])
                i++;
        size_t from = i > 300 ? i - 300 : 0;
        if (a[i] || b[i])
                fail_msg("%s, budget %llu, format %s, after %llu, before %llu, pin %s:\n%.600s\n"
                         "-- instead of\n%.600s",
                    what, (unsigned long long)opt->budget, opt->format,
                    (unsigned long long)opt->after_seq, (unsigned long long)opt->before_seq,
                    opt->pin ? opt->pin : "none", a + from, b + from);
}

static void compare(struct rig *r, struct steno_view_options *opt, const char *what)
{
        char *report = NULL, *long_report = NULL;
        char *tail = view(r, opt, &report);
        char *silent = view(r, opt, NULL);
        opt->limit = 1000000;
        char *whole = view(r, opt, &long_report);
        assert_equal_views(tail, whole, opt, what);
        assert_equal_views(silent, whole, opt, "without a report");
        assert_equal_views(
            without_repairs(report), without_repairs(long_report), opt, "the report");
        steno_free(report);
        steno_free(long_report);
        free(tail);
        free(silent);
        free(whole);
}

static void the_end_is_shown_as_in_a_view_of_everything(void **state)
{
        struct rig *r = *state;
        struct seed rnd = seed_start();
        static const char *const formats[] = {"openai", "anthropic", "gemini", "responses", "chat"};
        static const char *const edits[] = {NULL, NULL, NULL, "auto",
            "[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":300}}]",
            "[{\"type\":\"token_limit\",\"params\":{\"limit_tokens\":20000}},{\"type\":"
            "\"remove_tool_result\"}]",
            "[{\"type\":\"remove_tool_result\",\"params\":{\"keep_recent_n_tool_results\":1}},"
            "{\"type\":\"remove_tool_call_params\",\"params\":{\"gt_token\":4}}]"};
        static const uint64_t budgets[] = {1, 40, 200, 700, 3000, 20000, 90000};
        for (unsigned round = 0; (int)round < seed_rounds(20); round++) {
                struct talk *t = talk_open(r, &rnd, RECORDS);
                for (unsigned i = 0; i < 12; i++) {
                        struct steno_view_options opt = {.size = sizeof opt};
                        opt.format = formats[seed_below(&rnd, 5)];
                        opt.edit_strategies = edits[seed_below(&rnd, 7)];
                        opt.budget = budgets[seed_below(&rnd, 7)];
                        bool limits =
                            opt.edit_strategies && (strstr(opt.edit_strategies, "limit") ||
                                                       strcmp(opt.edit_strategies, "auto") == 0);
                        if (limits && seed_below(&rnd, 2))
                                opt.budget = 0;
                        if (seed_below(&rnd, 3) == 0)
                                opt.after_seq = seed_below(&rnd, 1500);
                        if (seed_below(&rnd, 4) == 0)
                                opt.before_seq = 3000 + seed_below(&rnd, 1500);
                        if (opt.edit_strategies && seed_below(&rnd, 3) == 0)
                                opt.pin = t->ids.p + t->at[seed_below(&rnd, t->count)];
                        compare(r, &opt, opt.edit_strategies ? opt.edit_strategies : "no edits");
                }
                talk_close(t);
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
                the_end_is_shown_as_in_a_view_of_everything, rig_setup, rig_teardown),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
