/* Permission rules: they are exact, have an order, and cannot be tricked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "loop/permission.h"
#include "tool/tool.h"
#include "permission_bypass.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct permission_rules rules_of(const char *text)
{
        struct permission_rules rules;
        struct steno_error err = {0};
        struct json j;

        permission_rules_init(&rules);
        json_init(&j);
        assert_int_equal(json_parse(&j, text, strlen(text), NULL, &err), 0);
        if (permission_rules_read(&rules, &j, 0, "permissions", &err) != 0)
                fail_msg("%s", err.msg);
        json_release(&j);
        return rules;
}

static enum steno_permission ask(const struct permission_rules *rules, const char *tool,
    const char *server, const char *raw, struct str args)
{
        char approval[65];
        struct steno_permission_request q = {.size = sizeof(q),
            .tool = tool,
            .server = server,
            .raw_name = raw,
            .args = args.p,
            .args_n = args.n,
            .repeat = approval};

        assert_int_equal(toolset_approval(str_of(tool), args, approval), 0);
        return permission_check(rules, &q, NULL);
}

static enum steno_permission execute(const struct permission_rules *rules, const char *args)
{
        return ask(rules, "execute_command", NULL, NULL, str_of(args));
}

static const char fence[] =
    "[{\"tool\":\"execute_command\",\"action\":\"allow\",\"argvPrefix\":[\"git\",\"status\"]},"
    "{\"tool\":\"execute_command\",\"action\":\"allow\",\"argvPrefix\":[\"ls\"]},"
    "{\"tool\":\"execute_command\",\"action\":\"allow\",\"shell\":\"make test\"}]";

static void what_the_rules_name_is_allowed(void **state)
{
        (void)state;
        struct permission_rules rules = rules_of(fence);
        static const char *const good[] = {
            "{\"argv\":[\"git\",\"status\"]}",
            " { \"argv\" : [ \"git\" , \"status\" ] } ",
            "{\"argv\":[\"git\",\"status\",\"--short\"]}",
            "{\"argv\":[\"git\",\"status\",\"; rm -rf /\"]}",
            "{\"argv\":[\"\\u0067it\",\"status\"]}",
            "{\"\\u0061rgv\":[\"ls\"]}",
            "{\"argv\":[\"ls\",\"-la\"],\"directory\":\"src\"}",
            "{\"argv\":[\"ls\"],\"directory\":\"./a..b/...\"}",
            "{\"argv\":[\"ls\"],\"timeout_seconds\":5}",
            "{\"shell\":\"make test\"}",
            "{\"shell\":\"make\\u0020test\",\"directory\":\"sub\"}",
        };

        for (size_t i = 0; i < COUNT(good); i++)
                if (execute(&rules, good[i]) != STENO_ALLOW)
                        fail_msg("not allowed: %s", good[i]);
        permission_rules_release(&rules);
}

/* The shapes a payload is put into. %s is the payload as a JSON string. */
static const char *const shapes[] = {
    "{\"shell\":%s}",
    "{\"argv\":[%s]}",
    "{\"argv\":[\"git\",%s]}",
    "{\"argv\":[%s,\"status\"]}",
    "{\"argv\":[\"sh\",\"-c\",%s]}",
    "{\"argv\":[\"git\",\"status\"],\"shell\":%s}",
    "{\"argv\":[\"git\",\"status\"],%s:1}",
};

static void put_shape(struct buf *b, const char *shape, const char *payload)
{
        const char *at = strstr(shape, "%s");

        buf_clear(b);
        buf_put(b, shape, (size_t)(at - shape));
        json_put_string(b, str_of(payload));
        buf_puts(b, at + 2);
}

static void no_trick_gets_past_the_rules(void **state)
{
        (void)state;
        struct permission_rules rules = rules_of(fence);
        struct buf b;
        size_t tried = 0;

        buf_init(&b, 0);
        for (size_t i = 0; i < COUNT(payloads); i++)
                for (size_t s = 0; s < COUNT(shapes); s++, tried++) {
                        put_shape(&b, shapes[s], payloads[i]);
                        if (execute(&rules, buf_cstr(&b)) == STENO_ALLOW)
                                fail_msg("allowed: %s", buf_cstr(&b));
                }
        for (size_t i = 0; i < COUNT(whole); i++, tried++)
                if (execute(&rules, whole[i]) == STENO_ALLOW)
                        fail_msg("allowed: %s", whole[i]);
        print_message("# %zu payloads, %zu calls in full, %zu calls tried\n", COUNT(payloads),
            COUNT(whole), tried);
        assert_true(COUNT(payloads) + COUNT(whole) >= 300);
        buf_release(&b);
        permission_rules_release(&rules);
}

static void no_unreadable_call_is_allowed_by_a_rule_for_the_tool(void **state)
{
        (void)state;
        struct permission_rules rules =
            rules_of("[{\"tool\":\"execute_command\",\"action\":\"allow\"}]");

        assert_int_equal(execute(&rules, "{\"shell\":\"anything\"}"), STENO_ALLOW);
        assert_int_equal(execute(&rules, "{\"argv\":[\"a\"],\"argv\":[\"b\"]}"), STENO_ASK);
        assert_int_equal(execute(&rules, "{\"argv\":[\"a\"]"), STENO_ASK);
        assert_int_equal(execute(&rules, "{\"argv\":[\"a\\u0000\"]}"), STENO_ASK);
        assert_int_equal(execute(&rules, "[]"), STENO_ASK);
        assert_int_equal(
            ask(&rules, "execute_command", NULL, NULL, str_span("{\"argv\":[\"a\"]}\0{}", 17)),
            STENO_ASK);
        permission_rules_release(&rules);
}

static void a_deny_holds_for_unreadable_calls_too(void **state)
{
        (void)state;
        struct permission_rules rules =
            rules_of("[{\"tool\":\"execute_command\",\"action\":\"deny\"},"
                     "{\"tool\":\"*\",\"action\":\"allow\"}]");

        assert_int_equal(execute(&rules, "garbage"), STENO_DENY);
        assert_int_equal(execute(&rules, "{\"shell\":\"x\"}"), STENO_DENY);
        assert_int_equal(ask(&rules, "other", NULL, NULL, STR("{}")), STENO_ALLOW);
        permission_rules_release(&rules);
}

static void the_first_match_wins_and_the_default_is_ask(void **state)
{
        (void)state;
        struct permission_rules rules = rules_of(
            "[{\"tool\":\"execute_command\",\"action\":\"deny\",\"argvPrefix\":[\"git\",\"push\"]},"
            "{\"tool\":\"execute_command\",\"action\":\"ask\",\"argvPrefix\":[\"git\",\"fetch\"]},"
            "{\"tool\":\"execute_command\",\"action\":\"allow\",\"argvPrefix\":[\"git\"]},"
            "{\"tool\":\"execute_command\",\"action\":\"deny\",\"argvPrefix\":[\"git\",\"log\"]}]");

        assert_int_equal(execute(&rules, "{\"argv\":[\"git\",\"push\",\"-f\"]}"), STENO_DENY);
        assert_int_equal(execute(&rules, "{\"argv\":[\"git\",\"fetch\"]}"), STENO_ASK);
        assert_int_equal(execute(&rules, "{\"argv\":[\"git\",\"log\"]}"), STENO_ALLOW);
        assert_int_equal(execute(&rules, "{\"argv\":[\"make\"]}"), STENO_ASK);
        assert_int_equal(ask(&rules, "other", NULL, NULL, STR("{}")), STENO_ASK);
        assert_int_equal(
            execute(&rules, "{\"argv\":[\"git\",\"push\"],\"directory\":\"/\"}"), STENO_DENY);
        permission_rules_release(&rules);
}

static void a_shell_string_is_asked_where_a_prefix_denies(void **state)
{
        (void)state;
        struct permission_rules rules =
            rules_of("[{\"tool\":\"execute_command\",\"action\":\"deny\",\"argvPrefix\":[\"rm\"]},"
                     "{\"tool\":\"execute_command\",\"action\":\"allow\"}]");

        assert_int_equal(execute(&rules, "{\"argv\":[\"ls\"]}"), STENO_ALLOW);
        assert_int_equal(execute(&rules, "{\"argv\":[\"rm\",\"x\"]}"), STENO_DENY);
        assert_int_equal(execute(&rules, "{\"shell\":\"rm x\"}"), STENO_ASK);
        assert_int_equal(execute(&rules, "{\"shell\":\"ls\"}"), STENO_ASK);
        permission_rules_release(&rules);
}

static void a_server_rule_covers_its_tools_and_no_others(void **state)
{
        (void)state;
        struct permission_rules rules =
            rules_of("[{\"server\":\"fs\",\"tool\":\"write.file\",\"action\":\"deny\"},"
                     "{\"server\":\"fs\",\"action\":\"allow\"},"
                     "{\"tool\":\"mcp__web__get\",\"action\":\"allow\"}]");

        assert_int_equal(
            ask(&rules, "mcp__fs__write_file", "fs", "write.file", STR("{}")), STENO_DENY);
        assert_int_equal(ask(&rules, "mcp__fs__read", "fs", "read", STR("{}")), STENO_ALLOW);
        assert_int_equal(ask(&rules, "mcp__fs__read", "fs__", "read", STR("{}")), STENO_ASK);
        assert_int_equal(ask(&rules, "mcp__fs__read", NULL, NULL, STR("{}")), STENO_ASK);
        assert_int_equal(ask(&rules, "mcp__web__get", "web", "get", STR("{}")), STENO_ALLOW);
        assert_int_equal(ask(&rules, "mcp__web__get", "web", "get", STR("nonsense")), STENO_ASK);
        permission_rules_release(&rules);
}

static void a_server_cannot_pose_as_execute_command(void **state)
{
        (void)state;
        struct permission_rules rules = rules_of(fence);

        assert_int_equal(ask(&rules, "execute_command", "evil", "execute_command",
                             STR("{\"argv\":[\"git\",\"status\"]}")),
            STENO_ASK);
        permission_rules_release(&rules);
}

static void a_visitor_gets_what_is_public_word_for_word_and_nothing_else(void **state)
{
        (void)state;
        static const char open[] =
            "[{\"tool\":\"execute_command\",\"action\":\"allow\",\"argvPrefix\":[\"uptime\"],"
            "\"public\":true},"
            "{\"tool\":\"execute_command\",\"action\":\"allow\",\"shell\":\"df | sort\","
            "\"public\":true},"
            "{\"tool\":\"execute_command\",\"action\":\"allow\",\"argvPrefix\":[\"ls\"]},"
            "{\"server\":\"s\",\"tool\":\"drop\",\"action\":\"deny\"},"
            "{\"server\":\"s\",\"tool\":\"send\",\"action\":\"ask\"},"
            "{\"tool\":\"*\",\"action\":\"allow\"}]";
        static const char fenced[] =
            "[{\"tool\":\"execute_command\",\"action\":\"deny\",\"argvPrefix\":[\"df\"]},"
            "{\"tool\":\"execute_command\",\"action\":\"allow\",\"shell\":\"df | sort\","
            "\"public\":true}]";
        static const struct {
                const char *rules, *tool, *server, *raw, *args;
                bool open;
        } rows[] = {
            {open, "execute_command", NULL, NULL, "{\"argv\":[\"uptime\"]}", true},
            {open, "execute_command", NULL, NULL, "{\"shell\":\"df | sort\"}", true},
            {open, "execute_command", NULL, NULL, "{\"argv\":[\"uptime\",\"-p\"]}", false},
            {open, "execute_command", NULL, NULL, "{\"argv\":[\"uptime\"],\"directory\":\"..\"}",
                false},
            {open, "execute_command", NULL, NULL, "{\"shell\":\"uptime\"}", false},
            {open, "execute_command", NULL, NULL, "{\"shell\":\"df | sort \"}", false},
            {open, "execute_command", NULL, NULL, "{\"argv\":[\"ls\"]}", false},
            {open, "execute_command", NULL, NULL, "{\"argv\":[\"uptime\"]", false},
            {open, "mcp__s__look", "s", "look", "{}", true},
            {open, "mcp__s__look", "s", "look", "no object", false},
            {open, "mcp__s__drop", "s", "drop", "{}", false},
            {open, "mcp__s__send", "s", "send", "{}", false},
            {open, "execute_command", "s", "execute_command", "{\"argv\":[\"uptime\"]}", true},
            /* Nobody knows what a shell text runs, so a rule that denies a program closes it. */
            {fenced, "execute_command", NULL, NULL, "{\"shell\":\"df | sort\"}", false},
            {"[]", "execute_command", NULL, NULL, "{\"argv\":[\"uptime\"]}", false},
            {"[]", "mcp__s__look", "s", "look", "{}", true},
        };

        for (size_t i = 0; i < COUNT(rows); i++) {
                struct permission_rules rules = rules_of(rows[i].rules);
                struct steno_permission_request q = {.size = sizeof(q),
                    .tool = rows[i].tool,
                    .server = rows[i].server,
                    .raw_name = rows[i].raw,
                    .args = rows[i].args,
                    .args_n = strlen(rows[i].args)};
                if (permission_check_visitor(&rules, &q) != rows[i].open)
                        fail_msg("row %zu: %s %s", i, rows[i].tool, rows[i].args);
                permission_rules_release(&rules);
        }
}

static void an_approval_is_for_the_exact_bytes(void **state)
{
        (void)state;
        struct permission p = {0};
        char approval[65], other[65], reason[240] = "";
        const char *args = "{\"shell\":\"make\"}";
        struct steno_permission_request q = {.size = sizeof(q),
            .tool = "execute_command",
            .args = args,
            .args_n = strlen(args),
            .repeat = approval};

        toolset_approval(STR("execute_command"), str_of(args), approval);
        assert_int_equal(permission_decide(&p, &q, reason), STENO_ASK);
        assert_int_equal(permission_approve(&p.approvals, approval, NULL), 0);
        assert_int_equal(permission_decide(&p, &q, reason), STENO_ALLOW);

        static const char *const near[] = {"{\"shell\": \"make\"}", "{\"shell\":\"make\"} ",
            "{\"shell\":\"mak\\u0065\"}", "{\"shell\":\"make \"}", ""};
        for (size_t i = 0; i < COUNT(near); i++) {
                toolset_approval(STR("execute_command"), str_of(near[i]), other);
                q.args = near[i];
                q.args_n = strlen(near[i]);
                q.repeat = other;
                assert_int_equal(permission_decide(&p, &q, reason), STENO_ASK);
        }
        toolset_approval(STR("execute_commanD"), str_of(args), other);
        q.repeat = other;
        assert_int_equal(permission_decide(&p, &q, reason), STENO_ASK);
        permission_release(&p);
}

static void an_approval_does_not_overrule_a_deny(void **state)
{
        (void)state;
        struct permission p = {
            .rules = rules_of("[{\"tool\":\"execute_command\",\"action\":\"deny\"}]")};
        char approval[65], reason[240] = "";
        struct steno_permission_request q = {.size = sizeof(q),
            .tool = "execute_command",
            .args = "{}",
            .args_n = 2,
            .repeat = approval};

        toolset_approval(STR("execute_command"), STR("{}"), approval);
        permission_approve(&p.approvals, approval, NULL);
        assert_int_equal(permission_decide(&p, &q, reason), STENO_DENY);
        assert_non_null(strstr(reason, "rule 1"));
        permission_release(&p);
}

static void bad_rules_are_refused_with_their_place(void **state)
{
        (void)state;
        static const struct {
                const char *text;
                const char *says;
        } bad[] = {
            {"[{\"tool\":\"x\",\"action\":\"permit\"}]", "permissions[0]: \"action\""},
            {"[{\"tool\":\"x\"}]", "\"action\" must be"},
            {"[{\"action\":\"deny\"}]", "needs \"tool\""},
            {"[{\"tool\":\"x\",\"action\":\"deny\"},{\"tool\":\"x\",\"acton\":\"deny\"}]",
                "permissions[1]: unknown key \"acton\", did you mean \"action\"?"},
            {"[{\"tool\":\"x\",\"action\":\"deny\",\"argv_prefix\":[]}]",
                "did you mean \"argvPrefix\"?"},
            {"[{\"tool\":\"x\",\"action\":\"deny\",\"action\":\"allow\"}]", "occurs twice"},
            {"[{\"tool\":\"execute_command\",\"action\":\"allow\",\"argvPrefix\":[]}]",
                "match everything"},
            {"[{\"tool\":\"x\",\"action\":\"allow\",\"argvPrefix\":[\"ls\"]}]", "only for"},
            {"[{\"tool\":\"execute_command\",\"action\":\"allow\",\"argvPrefix\":\"ls\"}]",
                "list of strings"},
            {"[{\"tool\":\"execute_command\",\"action\":\"allow\",\"public\":true}]",
                "\"public\" is for"},
            {"[{\"tool\":\"execute_command\",\"action\":\"deny\",\"shell\":\"ls\",\"public\":true}"
             "]",
                "\"public\" is for"},
            {"[{\"tool\":\"execute_command\",\"action\":\"allow\",\"shell\":\"ls\",\"public\":1}]",
                "\"public\" is for"},
            {"[{\"tool\":\"x\",\"action\":\"allow\",\"public\":true}]", "\"public\" is for"},
            {"{\"tool\":\"x\"}", "must be a list"},
            {"[[]]", "not an object"},
        };

        for (size_t i = 0; i < COUNT(bad); i++) {
                struct permission_rules rules;
                struct steno_error err = {0};
                struct json j;
                permission_rules_init(&rules);
                json_init(&j);
                assert_int_equal(json_parse(&j, bad[i].text, strlen(bad[i].text), NULL, &err), 0);
                assert_int_equal(
                    permission_rules_read(&rules, &j, 0, "permissions", &err), STENO_EINVAL);
                if (!strstr(err.msg, bad[i].says))
                        fail_msg("%s: %s", bad[i].text, err.msg);
                assert_int_equal(rules.count, 0);
                json_release(&j);
                permission_rules_release(&rules);
        }
}

static void an_approval_is_bound_to_run_request_id_and_bytes(void **state)
{
        (void)state;
        static const struct {
                const char *run;
                uint64_t request;
                const char *id, *tool, *args;
        } calls[] = {{"r", 1, "c", "t", "{}"}, {"r2", 1, "c", "t", "{}"}, {"r", 2, "c", "t", "{}"},
            {"r", 1, "c2", "t", "{}"}, {"r", 1, "c", "t2", "{}"}, {"r", 1, "c", "t", "{ }"},
            {"r1", 1, "", "c", "t{}"}, {"r", 11, "c", "t", "{}"}};
        char seen[8][65];

        for (size_t i = 0; i < 8; i++) {
                assert_int_equal(toolset_call_approval(calls[i].run, calls[i].request, calls[i].id,
                                     str_of(calls[i].tool), str_of(calls[i].args), seen[i]),
                    0);
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(seen[i], seen[k]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_approval_is_bound_to_run_request_id_and_bytes),
            cmocka_unit_test(what_the_rules_name_is_allowed),
            cmocka_unit_test(no_trick_gets_past_the_rules),
            cmocka_unit_test(no_unreadable_call_is_allowed_by_a_rule_for_the_tool),
            cmocka_unit_test(a_deny_holds_for_unreadable_calls_too),
            cmocka_unit_test(the_first_match_wins_and_the_default_is_ask),
            cmocka_unit_test(a_shell_string_is_asked_where_a_prefix_denies),
            cmocka_unit_test(a_server_rule_covers_its_tools_and_no_others),
            cmocka_unit_test(a_server_cannot_pose_as_execute_command),
            cmocka_unit_test(a_visitor_gets_what_is_public_word_for_word_and_nothing_else),
            cmocka_unit_test(an_approval_is_for_the_exact_bytes),
            cmocka_unit_test(an_approval_does_not_overrule_a_deny),
            cmocka_unit_test(bad_rules_are_refused_with_their_place),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
