/*
 * The loop over a tracing store and a scripted model: order, limits, stops, failures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_store.h"
#include "base/json.h"
#include "support/patience.h"
#include "tool/tool.h"

struct world {
        struct steno_tools *tools;
        struct steno_stop *stop;
        struct steno_loop_options opt;
        struct steno_error err;
        char *result;
        int told_unstored; /* messages that a callback got and the store does not have */
        int asked;
        int answer;     /* of the permission hook `ask` */
        bool elsewhere; /* somebody allows the call elsewhere, before that hook returns */
        char approval[65];
};

/* ---- tools ---- */

static int echo(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        fake_trace("tool %s", steno_tool_call_id(call));
        int rc = steno_tool_call_step(call, "half", 1, 2, err);
        if (rc)
                return rc;
        return steno_tool_call_write(call, "done", 4, err);
}

/* What `nap` does once it has written something; NULL: nothing. */
static struct steno_stop *stop_in_nap;

/* Sleeps for {"ms":n}, noticing a stop. */
static int nap(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        size_t n;
        const char *args = steno_tool_call_args(call, &n);
        long ms = strtol(args + strcspn(args, "0123456789"), NULL, 10);
        steno_tool_call_write(call, "zzz", 3, err);
        if (stop_in_nap)
                steno_stop_request(stop_in_nap);
        for (long i = 0; i < ms; i++) {
                if (steno_tool_call_stopped(call))
                        return steno_stop_requested(call->stop) ? STENO_EINTERRUPTED
                                                                : STENO_ETIMEOUT;
                usleep(1000);
        }
        fake_trace("tool %s", steno_tool_call_id(call));
        return 0;
}

/* Waits until the call {"call":"ID"} has its outcome. */
static int after(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        (void)err;
        size_t n;
        const char *args = steno_tool_call_args(call, &n);
        char id[16], line[32];
        assert_int_equal(sscanf(args, "{\"call\":\"%15[a-z]", id), 1);
        snprintf(line, sizeof(line), "outcome 1 %s\n", id);
        while (!fake_traced(line)) {
                if (steno_tool_call_stopped(call))
                        return STENO_ETIMEOUT;
                usleep(1000);
        }
        fake_trace("tool %s", steno_tool_call_id(call));
        return 0;
}

/* Which of them the tool `deaf` has reached. */
enum deaf_state { DEAF_NOT_CALLED, DEAF_ASLEEP, DEAF_WAKE, DEAF_GONE };
static _Atomic enum deaf_state deaf_state;

static void deaf_wait(enum deaf_state wanted)
{
        while (deaf_state != wanted)
                usleep(1000);
}

/* Ignores stops and limits; sleeps until the test wakes it. */
static int deaf(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        (void)err;
        deaf_state = DEAF_ASLEEP;
        deaf_wait(DEAF_WAKE);
        steno_tool_call_write(call, "too late", 8, NULL);
        deaf_state = DEAF_GONE;
        return 0;
}

static int broken(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        (void)call;
        snprintf(err->msg, sizeof(err->msg), "the server died");
        return STENO_EIO;
}

/* ---- callbacks ---- */

static void on_assistant(void *ctx, const char *json, size_t n)
{
        struct world *w = ctx;
        fake_trace("told assistant");
        w->told_unstored += !fake_has(json, n);
}

static void on_tool(void *ctx, const char *json, size_t n)
{
        struct world *w = ctx;
        fake_trace("told tool");
        w->told_unstored += !fake_has(json, n);
}

static int allow(void *ctx, const struct steno_permission_request *r, char reason[240])
{
        (void)ctx;
        (void)r;
        (void)reason;
        return STENO_ALLOW;
}

static int ask(void *ctx, const struct steno_permission_request *r, char reason[240])
{
        struct world *w = ctx;
        w->asked++;
        memcpy(w->approval, r->repeat, sizeof(w->approval));
        fake_trace("ask %s", r->tool);
        if (w->elsewhere)
                fake_mail(r->approval, true);
        if (w->answer == STENO_DENY)
                snprintf(reason, 240, "not today");
        return w->answer;
}

/* ---- a world ---- */

static void world_init(struct world *w, const char *script)
{
        fake_reset();
        *w = (struct world){0};
        assert_int_equal(steno_tools_new(&w->tools, NULL), 0);
        assert_int_equal(steno_stop_new(&w->stop, NULL), 0);
        struct steno_tools *t = w->tools;
        uint32_t p = STENO_TOOL_PARALLEL;
        assert_int_equal(steno_tools_add(t, "echo", "echoes", NULL, 0, echo, NULL, NULL), 0);
        assert_int_equal(steno_tools_add(t, "nap", NULL, NULL, p, nap, NULL, NULL), 0);
        assert_int_equal(steno_tools_add(t, "deaf", NULL, NULL, p, deaf, NULL, NULL), 0);
        assert_int_equal(steno_tools_add(t, "broken", NULL, NULL, 0, broken, NULL, NULL), 0);
        w->opt = (struct steno_loop_options){
            .size = sizeof(w->opt),
            .store = fake_store(),
            .conv = fake_conv(),
            .prompt = "go",
            .provider = "script",
            .script_json = script,
            .tools = w->tools,
            .permit = allow,
            .ask = ask,
            .ask_ctx = w,
            .stop = w->stop,
            .on_assistant_message = on_assistant,
            .on_tool_message = on_tool,
            .ctx = w,
        };
}

static int world_run(struct world *w)
{
        steno_free(w->result);
        w->result = NULL;
        return steno_chat_loop(&w->opt, &w->result, &w->err);
}

static void world_end(struct world *w)
{
        assert_int_equal(w->told_unstored, 0);
        steno_free(w->result);
        steno_tools_free(w->tools);
        steno_stop_free(w->stop);
        fake_reset();
}

static bool has(const char *text, const char *part)
{
        if (text && strstr(text, part))
                return true;
        print_message("# looked for: %s\n# in: %s\n", part, text ? text : "(null)");
        return false;
}

#define CALL(id, name, args) "{\"id\":\"" id "\",\"name\":\"" name "\",\"arguments\":" args "}"
#define ONE(call) "{\"calls\":[" call "]}"
#define SAY(text) "{\"text\":\"" text "\"}"
#define SCRIPT(replies) "{\"replies\":[" replies "]}"

/* ---- tests ---- */

static void order(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT("{\"text\":\"let me see\",\"calls\":[" CALL(
                           "c1", "echo", "{\"a\": 1}") "]}," SAY("all done")));
        assert_int_equal(world_run(&w), 0);
        assert_string_equal(fake_trace_text(), "append user\n"
                                               "event run_started\n"
                                               "view\n"
                                               "event message\n"
                                               "append assistant\n"
                                               "told assistant\n"
                                               "event tool_call_start\n"
                                               "dispatch 1 c1 echo {\"a\": 1}\n"
                                               "event tool_call_running\n"
                                               "tool c1\n"
                                               "event tool_call_step\n"
                                               "outcome 1 c1\n"
                                               "append tool c1\n"
                                               "told tool\n"
                                               "event tool_call_complete\n"
                                               "view\n"
                                               "event message\n"
                                               "append assistant\n"
                                               "told assistant\n"
                                               "event final_message\n"
                                               "event run_finished\n");
        assert_true(has(w.result, "\"reason\":\"stop\""));
        assert_true(has(w.result, "\"text\":\"all done\""));
        assert_true(has(fake_message(2), "\"content\":\"done\",\"isError\":false,\"duration\":"));
        assert_true(has(fake_message(2), "\"steps\":[{\"text\":\"half\",\"progress\":1,\"total\":2"
                                         "}]"));
        assert_true(has(fake_message(1),
            "\"mode\":\"chat\",\"runId\":\"run_1\",\"finishReason\":\"tool_calls\",\"role\":"
            "\"assistant\",\"content\":\"let me see\""));
        assert_true(has(fake_event("final_message", 0),
            "\"text\":\"all done\",\"message\":\"all done\",\"toolCalls\":[{\"id\":\"c1\",\"name\":"
            "\"echo\",\"arguments\":\"{\\\"a\\\": 1}\",\"state\":\"complete\",\"result\":\"done\","
            "\"invokedAt\":"));
        assert_true(has(fake_event("final_message", 0),
            "\"steps\":[{\"text\":\"half\",\"progress\":1,\"total\":2}]"));
        assert_true(has(fake_event("message", 1), "\"text\":\"all done\""));
        world_end(&w);
}

static void parallel(void **state)
{
        (void)state;
        struct world w;
        world_init(
            &w, SCRIPT(ONE(CALL("slow", "after", "{\"call\":\"mid\"}") "," CALL("quick", "nap",
                    "{\"ms\":1}") "," CALL("mid", "after", "{\"call\":\"quick\"}")) "," SAY("ok")));
        assert_int_equal(
            steno_tools_add(w.tools, "after", NULL, NULL, STENO_TOOL_PARALLEL, after, NULL, NULL),
            0);
        w.opt.tool_ms = PATIENCE_MS;
        fake_trace_without("event");
        fake_trace_without("dispatch"); /* a later call's may follow an outcome */
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_trace_text(), "tool quick\noutcome 1 quick\ntool mid\n"
                                           "outcome 1 mid\ntool slow\noutcome 1 slow\n"
                                           "append tool slow\ntold tool\nappend tool quick\n"
                                           "told tool\nappend tool mid\ntold tool\n"));
        world_end(&w);
}

static void serial(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT(ONE(CALL("a", "echo", "{}") "," CALL(
                           "b", "nap", "{\"ms\":20}") "," CALL("c", "echo", "{}")) "," SAY("ok")));
        fake_trace_without("told");
        fake_trace_without("event tool_call_step");
        fake_trace_without("event tool_call_complete");
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_trace_text(),
            "event tool_call_start\nevent tool_call_start\nevent tool_call_start\n"
            "dispatch 1 a echo {}\nevent tool_call_running\ntool a\noutcome 1 a\nappend tool a\n"
            "dispatch 1 b nap {\"ms\":20}\nevent tool_call_running\ntool b\noutcome 1 b\n"
            "append tool b\ndispatch 1 c echo {}\nevent tool_call_running\ntool c\noutcome 1 c\n"
            "append tool c\n"));
        assert_true(has(fake_event("tool_call_running", 1),
            "\"toolCallId\":\"b\",\"toolName\":\"nap\",\"invokedAt\":"));
        world_end(&w);
}

static void required(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT("[" SAY("no need") "," ONE(CALL("c1", "echo", "{}")) "]," SAY("ok")));
        w.opt.require_tool = "echo";
        fake_trace_without("event message\n");
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_trace_text(), "view\nevent message\nevent message_dropped\n"
                                           "append assistant\ntold assistant\n"
                                           "event tool_call_start\n"));
        assert_null(strstr(fake_message(1), "no need"));
        assert_true(has(w.result, "\"reason\":\"stop\""));
        assert_int_equal(fake_count(), 4);
        world_end(&w);

        world_init(&w, SCRIPT(SAY("never")));
        w.opt.require_tool = "any";
        assert_int_equal(world_run(&w), 0);
        assert_true(has(w.result, "\"reason\":\"required_tool\""));
        assert_int_equal(fake_count(), 2);
        world_end(&w);
}

static void cut_call(void **state)
{
        (void)state;
        struct world w;
        world_init(
            &w, SCRIPT("{\"calls\":[" CALL("c1", "echo",
                    "\"{\\\"path\\\": \\\"/e\"") "],\"finish\":\"length\"}," SAY("shorter then")));
        assert_int_equal(world_run(&w), 0);
        assert_null(strstr(fake_trace_text(), "dispatch"));
        assert_null(strstr(fake_trace_text(), "tool c1\nev"));
        assert_true(has(fake_message(1), "\"arguments\":\"{\\\"path\\\": \\\"/e\""));
        assert_true(has(fake_message(2), "cut off"));
        assert_true(has(fake_message(2), "\"isError\":true"));
        world_end(&w);
}

static void mistakes(void **state)
{
        (void)state;
        struct world w;
        world_init(
            &w, SCRIPT(ONE(CALL("c1", "nothere", "{}") "," CALL("c2", "echo", "\"[1]\"") "," CALL(
                    "c3", "broken", "{}") "," CALL("c4", "context.read", "{}")) "," SAY("ok")));
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_message(2), "no tool named \\\"nothere\\\""));
        assert_true(has(fake_message(2), "echo, nap, deaf, broken, context_read"));
        assert_true(has(fake_message(3), "not a JSON object"));
        assert_true(has(fake_message(4), "[failed] the server died"));
        assert_true(has(fake_message(4), "\"isError\":true"));
        assert_true(has(fake_message(5), "answer of context_read"));
        assert_true(has(w.result, "\"reason\":\"stop\""));
        world_end(&w);
}

static int with_extra(const struct tool *self, struct steno_tool_call *call,
    struct tool_result *result, struct steno_error *err)
{
        buf_puts(&result->extra, self->ctx);
        result->has_exit = true;
        result->exit_code = 3;
        return tool_call_puts(call, "out", err);
}

static void extras(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT(ONE(CALL("a", "good", "{}") "," CALL("b", "sly", "{}") "," CALL(
                           "c", "torn", "{}")) "," SAY("ok")));
        static char good[] = "\"structuredContent\":{\"a\":1},\"x\":[]";
        static char sly[] = "\"x\":1,\"content\":\"other\"";
        static char torn[] = "\"x\":";
        const struct tool tools[] = {
            {.name = "good", .call = with_extra, .ctx = good},
            {.name = "sly", .call = with_extra, .ctx = sly},
            {.name = "torn", .call = with_extra, .ctx = torn},
        };
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(toolset_add(w.tools, &tools[i], NULL), 0);
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_message(2), "\"structuredContent\":{\"a\":1},\"x\":[]}"));
        assert_true(has(fake_message(2), "\"exitCode\":3"));
        assert_null(strstr(fake_message(3), "other"));
        assert_null(strstr(fake_message(4), "\"x\""));
        world_end(&w);
}

static void repeats(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT("{\"calls\":[{\"name\":\"echo\",\"arguments\":{}}]}"));
        fake_trace_without("event");
        assert_int_equal(world_run(&w), 0);
        assert_true(has(w.result, "\"reason\":\"repeated_calls\""));
        int ran = 0;
        for (const char *p = fake_trace_text(); (p = strstr(p, "dispatch")); p++)
                ran++;
        assert_int_equal(ran, 2);
        assert_int_equal(fake_count(), 1 + 4 * 2 + 1);
        assert_true(has(fake_message(6), "exactly the same arguments"));
        assert_true(has(fake_message(9), "\"code\":\"LIMIT_REPEATED\""));
        assert_true(has(fake_message(9), "\"includeInContext\":false"));
        world_end(&w);
}

static void limits(void **state)
{
        (void)state;
        struct world w;
        const char *script = SCRIPT(ONE(CALL("a", "nap", "{\"ms\":30}")) "," ONE(CALL(
            "a", "nap", "{\"ms\":31}")) "," ONE(CALL("a", "nap", "{\"ms\":32}")) "," SAY("ok"));
        world_init(&w, script);
        w.opt.max_turns = 2;
        assert_int_equal(world_run(&w), 0);
        assert_true(has(w.result, "\"reason\":\"max_turns\""));
        assert_true(has(fake_message(fake_count() - 1), "LIMIT_TURNS"));
        assert_int_equal(fake_count(), 1 + 2 * 2 + 1);
        world_end(&w);

        /* On a busy machine the time limit may pass before the second call has begun. */
        bool in_time = false;
        for (uint32_t ms = 500; !in_time; ms *= 2) {
                assert_true(ms < PATIENCE_MS);
                world_init(&w, SCRIPT(ONE(CALL("a", "nap", "{\"ms\":30}")) "," ONE(
                                   CALL("a", "nap", "{\"ms\":600000}")) "," SAY("ok")));
                w.opt.max_ms = ms;
                assert_int_equal(world_run(&w), 0);
                assert_true(has(w.result, "\"reason\":\"max_time\""));
                in_time =
                    fake_count() == 1 + 2 * 2 + 1 && has(fake_message(4), "zzz\\n[timed out]");
                world_end(&w);
        }

        world_init(&w, script);
        w.opt.max_tokens = 10;
        assert_int_equal(world_run(&w), 0);
        assert_true(has(w.result, "\"reason\":\"max_tokens\""));
        assert_int_equal(fake_count(), 4);
        world_end(&w);
}

static void stop_in_tools(void **state)
{
        (void)state;
        struct world w;
        world_init(
            &w, SCRIPT(ONE(CALL("a", "nap", "{\"ms\":600000}") "," CALL("b", "echo", "{}"))));
        int64_t begun = time_monotonic_ms();
        stop_in_nap = w.stop;
        assert_int_equal(world_run(&w), 0);
        stop_in_nap = NULL;
        assert_true(time_monotonic_ms() - begun < PATIENCE_MS);
        assert_true(has(w.result, "\"reason\":\"interrupted\""));
        assert_true(has(fake_message(2), "zzz\\n[interrupted]"));
        assert_true(has(fake_message(3), "[interrupted]"));
        assert_true(has(fake_message(2), "\"interrupted\":true"));
        assert_true(has(fake_message(3), "\"interrupted\":true"));
        assert_true(has(fake_message(3), "\"tool_call_id\":\"b\""));
        assert_null(strstr(fake_trace_text(), "dispatch 1 b"));
        world_end(&w);
}

/* Three pieces of text are stored. */
static void stop_after_three(void *ctx, const char *type)
{
        struct world *w = ctx;
        if (strcmp(type, "message") == 0 && fake_event("message", 2))
                steno_stop_request(w->stop);
}

static void stop_in_stream(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, "{\"pieceMs\":20,\"pieceChars\":1,\"replies\":[{\"text\":"
                       "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\"}]}");
        fake_on_event(stop_after_three, &w);
        assert_int_equal(world_run(&w), 0);
        assert_true(has(w.result, "\"reason\":\"interrupted\""));
        assert_true(has(fake_message(1), "\"content\":\"abc"));
        assert_true(has(fake_message(1), "\"partType\":\"error\""));
        assert_null(strstr(fake_message(1), "xyz"));
        world_end(&w);
}

static void model_errors(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT("{\"text\":\"so far\",\"error\":{\"message\":\"overload\",\"code\":"
                              "503}}"));
        assert_int_equal(world_run(&w), 0);
        assert_true(has(w.result, "\"reason\":\"error\""));
        assert_true(has(fake_message(1), "\"content\":\"so far\""));
        assert_true(
            has(fake_message(1), "\"partType\":\"error\",\"error\":{\"code\":\"LLM_SERVER\""));
        assert_true(has(fake_event("run_error", 0), "LLM_SERVER"));
        assert_true(has(fake_event("run_finished", 0), "\"reason\":\"error\""));
        world_end(&w);

        world_init(&w,
            SCRIPT("{\"thinking\":\"hm\",\"calls\":[" CALL("c", "echo", "{}") "],\"cut\":true}"));
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_message(1), "LLM_NETWORK"));
        assert_true(has(fake_message(1), "\"reasoning_content\":\"hm\""));
        assert_null(strstr(fake_message(1), "tool_calls"));
        world_end(&w);
}

static void permissions(void **state)
{
        (void)state;
        struct world w;
        const char *script = SCRIPT(
            ONE(CALL("a", "echo", "{\"x\":1}") "," CALL("b", "context_read", "{}")) "," SAY("ok"));
        world_init(&w, script);
        w.opt.permit = NULL;
        w.answer = STENO_DENY;
        assert_int_equal(world_run(&w), 0);
        assert_int_equal(w.asked, 1);
        assert_true(has(fake_message(2), "Permission denied: the call was not run. Reason: not "
                                         "today"));
        assert_true(has(fake_message(2), "\"isError\":true,\"denied\":true"));
        assert_true(has(fake_event("tool_call_error", 0), "\"state\":\"denied\""));
        assert_true(has(fake_event("tool_call_approval", 0), "\"state\":\"pending\""));
        assert_true(has(fake_event("tool_call_approval", 1), "\"state\":\"denied\""));
        char want[65];
        assert_int_equal(toolset_approval(STR("echo"), STR("{\"x\":1}"), want), 0);
        assert_string_equal(w.approval, want);
        assert_true(has(fake_trace_text(), "event tool_call_approval\nask echo\n"
                                           "event tool_call_approval\nevent tool_call_start\n"
                                           "append tool a\n"));
        assert_null(strstr(fake_trace_text(), "dispatch 1 a"));
        world_end(&w);

        world_init(&w, script);
        w.opt.permit = NULL;
        w.answer = STENO_ALLOW;
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_trace_text(), "dispatch 1 a"));
        world_end(&w);

        world_init(&w, script);
        w.opt.permit = NULL;
        w.opt.ask = NULL;
        assert_int_equal(world_run(&w), 0);
        assert_true(has(fake_message(2), "nobody was there to ask"));
        world_end(&w);
}

/* Two answers in one moment: who answered here was told that it counts. */
static void answered_elsewhere(void **state)
{
        (void)state;
        const char *script = SCRIPT(ONE(CALL("a", "echo", "{\"x\":1}")) "," SAY("ok"));
        for (int answer = STENO_ALLOW; answer <= STENO_DENY; answer++) {
                struct world w;
                world_init(&w, script);
                w.opt.permit = NULL;
                w.answer = answer;
                w.elsewhere = true;
                assert_int_equal(world_run(&w), 0);
                assert_int_equal(fake_traced("dispatch 1 a"), answer != STENO_DENY);
                assert_true(has(fake_event("tool_call_approval", 1),
                    answer == STENO_DENY ? "\"state\":\"denied\"" : "\"state\":\"allowed\""));
                world_end(&w);
        }
}

/* While a person thinks about the second call, the first must not finish unstored. */
static void all_decided_first(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT(ONE(CALL("a", "echo", "{\"x\":1}") "," CALL(
                           "b", "echo", "{\"x\":2}")) "," SAY("ok")));
        w.opt.permit = NULL;
        w.answer = STENO_ALLOW;
        assert_int_equal(world_run(&w), 0);
        assert_int_equal(w.asked, 2);
        const char *first = strstr(fake_trace_text(), "dispatch ");
        assert_non_null(first);
        assert_null(strstr(first, "ask echo"));
        world_end(&w);
}

static void left_behind(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT(ONE(CALL("a", "deaf", "{}")) "," SAY("went on")));
        w.opt.tool_ms = 200;
        int64_t begun = time_monotonic_ms();
        assert_int_equal(world_run(&w), 0);
        assert_true(time_monotonic_ms() - begun >= 2200);
        deaf_wait(DEAF_ASLEEP); /* its thread may have begun later */
        assert_true(has(fake_message(2), "[timed out]"));
        assert_true(has(w.result, "went on"));
        deaf_state = DEAF_WAKE; /* when everything is gone, of which it must touch nothing */
        deaf_wait(DEAF_GONE);
        world_end(&w);
}

/* Something that a set owns and a tool reads. */
struct source {
        char word[8];
        atomic_bool *closed;
};

static void source_close(void *thing)
{
        struct source *s = thing;
        *s->closed = true;
        free(s);
}

static int deaf_reader(const struct tool *self, struct steno_tool_call *call,
    struct tool_result *result, struct steno_error *err)
{
        (void)call;
        (void)result;
        (void)err;
        const struct source *s = self->ctx;
        deaf_state = DEAF_ASLEEP;
        deaf_wait(DEAF_WAKE);
        /* By now everybody else has closed and freed what this reads. */
        bool whole = strcmp(s->word, "whole") == 0 && strcmp(self->name, "reader") == 0;
        deaf_state = whole ? DEAF_GONE : DEAF_NOT_CALLED;
        return 0;
}

static void left_behind_reads(void **state)
{
        (void)state;
        static atomic_bool closed;
        struct world w;
        world_init(&w, SCRIPT(ONE(CALL("a", "reader", "{}")) "," SAY("went on")));
        struct source *s = malloc(sizeof(*s));
        assert_non_null(s);
        *s = (struct source){"whole", &closed};
        struct tool tool = {
            .name = toolset_strdup(w.tools, STR("reader")), .call = deaf_reader, .ctx = s};
        assert_int_equal(toolset_own(w.tools, s, source_close, NULL), 0);
        assert_int_equal(toolset_add(w.tools, &tool, NULL), 0);
        w.opt.tool_ms = 100;
        int before = fake_conv_holds();
        assert_int_equal(world_run(&w), 0);
        deaf_wait(DEAF_ASLEEP);
        world_end(&w);
        assert_false(closed);
        assert_int_equal(fake_conv_holds(), before + 1);
        deaf_state = DEAF_WAKE;
        deaf_wait(DEAF_GONE);
        while (!closed || fake_conv_holds() != before)
                usleep(1000);
}

static void merging(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, "{\"pieceMs\":10,\"pieceChars\":1,\"replies\":[{\"text\":"
                       "\"abcdefghijklmnopqrstuvwxyzabcd\"}]}");
        int64_t begun = time_monotonic_ms();
        assert_int_equal(world_run(&w), 0);
        int64_t took = time_monotonic_ms() - begun;
        int n = 0;
        while (fake_event("message", (size_t)n))
                n++;
        /* A piece comes after 10 ms or later, so at most six of them are one event; and there is
         * no event within 50 ms of the one before, save the first and the last. */
        assert_in_range(n, 30 / 6, took / 50 + 2);
        world_end(&w);
}

static void live_run(void **state)
{
        (void)state;
        struct world w;
        struct steno_run *other;
        world_init(&w, SCRIPT(SAY("x")));
        assert_int_equal(steno_run_begin(fake_conv(), "other", "run", &other, NULL), 0);
        assert_int_equal(world_run(&w), STENO_ECONFLICT);
        assert_int_equal(fake_count(), 0);
        world_end(&w);
}

static void options(void **state)
{
        (void)state;
        struct world w;
        world_init(&w, SCRIPT(SAY("x")));
        w.opt.flags = STENO_LOOP_CONTINUE;
        assert_int_equal(world_run(&w), STENO_EINVAL);
        w.opt.flags = 0;
        w.opt.require_tool = "nothere";
        assert_int_equal(world_run(&w), STENO_EINVAL);
        w.opt.require_tool = NULL;
        w.opt.mode = "walk";
        assert_int_equal(world_run(&w), STENO_EINVAL);
        w.opt.mode = NULL;
        w.opt.params_json = "[1]";
        assert_int_equal(world_run(&w), STENO_EINVAL);
        w.opt.params_json = NULL;
        w.opt.prompt = NULL;
        w.opt.flags = STENO_LOOP_CONTINUE;
        assert_int_equal(world_run(&w), STENO_EPROTO);
        assert_int_equal(fake_writes(), 0);
        world_end(&w);
}

static void every_write_fails(void **state)
{
        (void)state;
        const char *script = SCRIPT("{\"text\":\"a\",\"calls\":[" CALL("a", "echo", "{}") "," CALL(
            "b", "nap", "{\"ms\":3}") "," CALL("c", "nap", "{\"ms\":4}") "]}," SAY("ok"));
        struct world w;
        world_init(&w, script);
        assert_int_equal(world_run(&w), 0);
        unsigned total = fake_writes();
        world_end(&w);
        assert_true(total > 30);
        for (unsigned n = 1; n <= total; n++) {
                world_init(&w, script);
                fake_fail_after(n);
                assert_int_equal(world_run(&w), STENO_EFULL);
                assert_null(w.result);
                world_end(&w); /* no event or message was reported that is not stored */
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"everything is stored before it is reported, dispatch before the tool", order, 0, 0,
                0},
            {"parallel calls overlap and are stored in the order of the calls", parallel, 0, 0, 0},
            {"a call that may not run beside others runs alone", serial, 0, 0, 0},
            {"a required tool is insisted on once, and the dropped reply is not a message",
                required, 0, 0, 0},
            {"a call cut off by length is not run and says so (F4)", cut_call, 0, 0, 0},
            {"unknown tools, bad arguments and failing tools become results", mistakes, 0, 0, 0},
            {"a tool's own members join its message unless they are the loop's or torn", extras, 0,
                0, 0},
            {"identical calls are corrected after two and stopped after four", repeats, 0, 0, 0},
            {"limits of turns, time and tokens end the run with a stored reason", limits, 0, 0, 0},
            {"a stop gives running and waiting calls an interrupted result", stop_in_tools, 0, 0,
                0},
            {"a stop inside a reply keeps the text that had arrived", stop_in_stream, 0, 0, 0},
            {"a failed model call is an assistant message with its text", model_errors, 0, 0, 0},
            {"permission is asked, bound to the exact bytes, and denied where nobody can answer",
                permissions, 0, 0, 0},
            {"an answer from elsewhere counts where nobody has decided here", answered_elsewhere, 0,
                0, 0},
            {"all calls of a reply are decided before the first one starts", all_decided_first, 0,
                0, 0},
            {"a tool that never returns is left behind and the loop goes on", left_behind, 0, 0, 0},
            {"what a call that was left behind reads is closed when it returns", left_behind_reads,
                0, 0, 0},
            {"pieces of text are merged over at most 50 ms", merging, 0, 0, 0},
            {"a conversation with a live run is refused", live_run, 0, 0, 0},
            {"wrong options write nothing", options, 0, 0, 0},
            {"whichever write fails, nothing is reported that is not stored", every_write_fails, 0,
                0, 0},
        };
        return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
