/*
 * test_continue.c - when steno_chat_loop goes on and when it refuses to: each way a history can
 * end in each format, and each way a run can end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "steno_loop.h"

#define OK(call)                                                                                   \
        do {                                                                                       \
                struct steno_error err = {0};                                                      \
                if ((call) != 0)                                                                   \
                        fail_msg("%s: %s", #call, err.msg);                                        \
        } while (0)

struct world {
        struct scratch scratch;
        struct steno_store *store;
        struct steno_conv *conv;
        int count; /* conversations made */
        struct steno_error why;
};

static int setup(void **state)
{
        struct world *w = calloc(1, sizeof *w);
        *state = w;
        if (!w || scratch_make(&w->scratch))
                return -1;
        OK(steno_open(w->scratch.path, NULL, &w->store, &err));
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;
        steno_conv_close(w->conv);
        steno_close(w->store);
        scratch_remove(&w->scratch);
        free(w);
        return 0;
}

static void new_conversation(struct world *w)
{
        char id[16];
        steno_conv_close(w->conv);
        w->conv = NULL;
        snprintf(id, sizeof id, "c%d", ++w->count);
        OK(steno_conv_create(w->store, NULL, id, NULL, &w->conv, &err));
}

/* For a format whose messages have no id, the caller gives the id. */
static const char *id_of(const char *json)
{
        static const char *const ids[] = {"u", "a", "k", "r"};
        static char word[16];
        for (size_t i = 0; i < 4; i++) {
                snprintf(word, sizeof word, "\"id\":\"%s\"", ids[i]);
                if (strstr(json, word))
                        return ids[i];
        }
        return NULL;
}

static void append(struct world *w, const char *format, const char *json)
{
        struct steno_append_options opt = {
            .size = sizeof opt, .format = format, .message_id = id_of(json)};
        OK(steno_append(w->conv, json, strlen(json), &opt, NULL, &err));
}

static void amend(struct world *w, const char *kind, const char *target, const char *json)
{
        struct steno_append_options opt = {.size = sizeof opt};
        OK(steno_amend(w->conv, kind, target, json, json ? strlen(json) : 0, &opt, NULL, &err));
}

static int run(struct world *w, const char *prompt, const char *script, uint32_t turns)
{
        struct steno_loop_options opt = {.size = sizeof opt,
            .store = w->store,
            .conv = w->conv,
            .provider = "script",
            .script_json = script,
            .prompt = prompt,
            .flags = prompt ? 0 : STENO_LOOP_CONTINUE,
            .retries = UINT32_MAX,
            .max_turns = turns};
        w->why = (struct steno_error){0};
        return steno_chat_loop(&opt, NULL, &w->why);
}

static int into_text(void *ctx, const void *p, size_t n)
{
        char *to = ctx;
        size_t at = strlen(to);
        if (at + n >= 64000)
                return -1;
        memcpy(to + at, p, n);
        to[at + n] = '\0';
        return 0;
}

static const char *view(struct world *w, const char *format)
{
        static char text[64000];
        text[0] = '\0';
        struct steno_view_options opt = {.size = sizeof opt, .format = format};
        OK(steno_view(w->conv, &opt, into_text, text, NULL, &err));
        return text;
}

#define GONE_ON "{\"replies\":[{\"text\":\"GONE ON\"}]}"

static void goes_on(struct world *w, const char *what)
{
        int rc = run(w, NULL, GONE_ON, 0);
        if (rc)
                fail_msg("%s: %s", what, w->why.msg);
        if (!strstr(view(w, "openai"), "GONE ON"))
                fail_msg("%s: nothing came", what);
}

static void is_refused(struct world *w, const char *what, const char *words)
{
        uint64_t before, after;
        char want[80];
        OK(steno_conv_last_seq(w->conv, &before, &err));
        int rc = run(w, NULL, GONE_ON, 0);
        OK(steno_conv_last_seq(w->conv, &after, &err));
        snprintf(want, sizeof want, "steno run %s --prompt", steno_conv_id(w->conv));
        if (rc != STENO_EPROTO || !strstr(w->why.msg, words) || !strstr(w->why.msg, want))
                fail_msg("%s: %d %s", what, rc, w->why.msg);
        assert_int_equal(before, after);
}

/* ---- histories of every format ---- */

static const struct row {
        const char *format;
        const char *user;
        const char *reply;
        const char *call;
        const char *result;
} rows[] = {
    {"openai", "{\"role\":\"user\",\"content\":\"Q\",\"id\":\"u\"}",
        "{\"role\":\"assistant\",\"content\":\"A\",\"id\":\"a\"}",
        "{\"role\":\"assistant\",\"content\":null,\"id\":\"k\",\"tool_calls\":[{\"id\":\"c1\","
        "\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}",
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"R\",\"id\":\"r\"}"},
    {"responses",
        "{\"type\":\"message\",\"role\":\"user\",\"id\":\"u\",\"content\":[{\"type\":"
        "\"input_text\",\"text\":\"Q\"}]}",
        "{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"a\",\"status\":\"completed\","
        "\"content\":[{\"type\":\"output_text\",\"text\":\"A\",\"annotations\":[]}]}",
        "{\"type\":\"function_call\",\"id\":\"k\",\"call_id\":\"c1\",\"name\":\"t\","
        "\"arguments\":\"{}\"}",
        "{\"type\":\"function_call_output\",\"id\":\"r\",\"call_id\":\"c1\",\"output\":\"R\"}"},
    {"anthropic", "{\"role\":\"user\",\"content\":\"Q\",\"id\":\"u\"}",
        "{\"role\":\"assistant\",\"id\":\"a\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}]}",
        "{\"role\":\"assistant\",\"id\":\"k\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\","
        "\"name\":\"t\",\"input\":{}}]}",
        "{\"role\":\"user\",\"id\":\"r\",\"content\":[{\"type\":\"tool_result\","
        "\"tool_use_id\":\"c1\",\"content\":\"R\"}]}"},
    {"gemini", "{\"role\":\"user\",\"id\":\"u\",\"parts\":[{\"text\":\"Q\"}]}",
        "{\"role\":\"model\",\"id\":\"a\",\"parts\":[{\"text\":\"A\"}]}",
        "{\"role\":\"model\",\"id\":\"k\",\"parts\":[{\"functionCall\":{\"id\":\"c1\","
        "\"name\":\"t\",\"args\":{}}}]}",
        "{\"role\":\"user\",\"id\":\"r\",\"parts\":[{\"functionResponse\":{\"id\":\"c1\","
        "\"name\":\"t\",\"response\":{\"output\":\"R\"}}}]}"},
    {"acontext", "{\"role\":\"user\",\"id\":\"u\",\"parts\":[{\"type\":\"text\",\"text\":\"Q\"}]}",
        "{\"role\":\"assistant\",\"id\":\"a\",\"parts\":[{\"type\":\"text\",\"text\":\"A\"}]}",
        "{\"role\":\"assistant\",\"id\":\"k\",\"parts\":[{\"type\":\"tool-call\",\"meta\":{\"id\":"
        "\"c1\",\"name\":\"t\",\"arguments\":\"{}\"}}]}",
        "{\"role\":\"user\",\"id\":\"r\",\"parts\":[{\"type\":\"tool-result\",\"text\":\"R\","
        "\"meta\":{\"tool_call_id\":\"c1\"}}]}"},
    {"toolmessage2", "{\"role\":\"user\",\"id\":\"u\",\"content\":\"Q\"}",
        "{\"role\":\"assistant\",\"id\":\"a\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}]}",
        "{\"role\":\"assistant\",\"id\":\"k\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\","
        "\"name\":\"t\",\"input\":{}}]}",
        "{\"role\":\"tool\",\"id\":\"r\",\"content\":[{\"type\":\"tool-result\",\"toolCallId\":"
        "\"c1\",\"toolName\":\"t\",\"input\":{},\"result\":{\"llmContent\":\"R\"}}]}"},
    {"toolmessage", "{\"role\":\"user\",\"id\":\"u\",\"content\":\"Q\"}",
        "{\"role\":\"assistant\",\"id\":\"a\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}]}",
        "{\"role\":\"assistant\",\"id\":\"k\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\","
        "\"name\":\"t\",\"input\":{}}]}",
        "{\"role\":\"user\",\"id\":\"r\",\"content\":[{\"type\":\"tool_result\",\"id\":\"c1\","
        "\"name\":\"t\",\"input\":{},\"result\":{\"llmContent\":\"R\"}}]}"},
    /* In these three formats results are in the message of their calls. */
    {"chat", "{\"id\":\"u\",\"role\":\"user\",\"content\":\"Q\"}",
        "{\"id\":\"a\",\"role\":\"assistant\",\"content\":\"A\"}",
        "{\"id\":\"k\",\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[{\"id\":\"c1\","
        "\"name\":\"t\",\"arguments\":\"{}\",\"state\":\"pending\"}]}",
        NULL},
    {"legacy", "{\"id\":\"u\",\"role\":\"user\",\"content\":\"Q\"}",
        "{\"id\":\"a\",\"role\":\"assistant\",\"content\":\"A\"}",
        "{\"id\":\"k\",\"role\":\"assistant\",\"content\":\"<function_call>{\\\"id\\\":\\\"c1\\\","
        "\\\"name\\\":\\\"t\\\",\\\"arguments\\\":{}}</function_call>\"}",
        NULL},
    {"uimessage", "{\"id\":\"u\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"Q\"}]}",
        "{\"id\":\"a\",\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":\"A\"}]}",
        "{\"id\":\"k\",\"role\":\"assistant\",\"parts\":[{\"type\":\"tool-t\",\"toolCallId\":"
        "\"c1\","
        "\"state\":\"input-available\",\"input\":{}}]}",
        NULL},
    {"modelmessage", "{\"role\":\"user\",\"id\":\"u\",\"content\":\"Q\"}",
        "{\"role\":\"assistant\",\"id\":\"a\",\"content\":\"A\"}",
        "{\"role\":\"assistant\",\"id\":\"k\",\"content\":[{\"type\":\"tool-call\",\"toolCallId\":"
        "\"c1\",\"toolName\":\"t\",\"input\":{}}]}",
        "{\"role\":\"tool\",\"id\":\"r\",\"content\":[{\"type\":\"tool-result\",\"toolCallId\":"
        "\"c1\",\"toolName\":\"t\",\"output\":{\"type\":\"text\",\"value\":\"R\"}}]}"},
    {"langchain", "{\"type\":\"human\",\"data\":{\"id\":\"u\",\"content\":\"Q\"}}",
        "{\"type\":\"ai\",\"data\":{\"id\":\"a\",\"content\":\"A\"}}",
        "{\"type\":\"ai\",\"data\":{\"id\":\"k\",\"content\":\"\",\"tool_calls\":[{\"name\":\"t\","
        "\"args\":{},\"id\":\"c1\",\"type\":\"tool_call\"}]}}",
        "{\"type\":\"tool\",\"data\":{\"id\":\"r\",\"content\":\"R\",\"tool_call_id\":\"c1\"}}"},
};

#define EACH_ROW(r) for (const struct row *r = rows; r < rows + sizeof rows / sizeof *rows; r++)

static void a_complete_reply_is_refused(void **state)
{
        struct world *w = *state;
        EACH_ROW(r)
        {
                new_conversation(w);
                append(w, r->format, r->user);
                append(w, r->format, r->reply);
                is_refused(w, r->format, "the last reply is complete");
        }
}

static void a_question_without_a_reply_goes_on(void **state)
{
        struct world *w = *state;
        EACH_ROW(r)
        {
                new_conversation(w);
                append(w, r->format, r->user);
                goes_on(w, r->format);
        }
}

static void an_open_call_is_settled_and_goes_on(void **state)
{
        struct world *w = *state;
        EACH_ROW(r)
        {
                new_conversation(w);
                append(w, r->format, r->user);
                append(w, r->format, r->call);
                goes_on(w, r->format);
                const char *seen = view(w, "openai");
                const char *result = strstr(seen, "\"role\":\"tool\"");
                if (!result || !strstr(result, "GONE ON"))
                        fail_msg(
                            "%s: the call has no result before the reply: %s", r->format, seen);
        }
}

static void a_result_that_nobody_commented_goes_on(void **state)
{
        struct world *w = *state;
        EACH_ROW(r)
        {
                if (!r->result)
                        continue;
                new_conversation(w);
                append(w, r->format, r->user);
                append(w, r->format, r->call);
                append(w, r->format, r->result);
                goes_on(w, r->format);
        }
}

static void a_deleted_reply_is_asked_again(void **state)
{
        struct world *w = *state;
        EACH_ROW(r)
        {
                new_conversation(w);
                append(w, r->format, r->user);
                append(w, r->format, r->reply);
                amend(w, "delete", "a", NULL);
                goes_on(w, r->format);
        }
}

static void amendments_behind_the_end_change_nothing(void **state)
{
        struct world *w = *state;
        EACH_ROW(r)
        {
                for (int complete = 0; complete < 2; complete++) {
                        new_conversation(w);
                        append(w, r->format, r->user);
                        if (complete)
                                append(w, r->format, r->reply);
                        for (int i = 0; i < 70; i++)
                                amend(w, "meta", "u", "{\"seen\":true}");
                        if (complete)
                                is_refused(w, r->format, "the last reply is complete");
                        else
                                goes_on(w, r->format);
                }
        }
}

static void what_took_the_place_of_a_reply_decides(void **state)
{
        struct world *w = *state;
        static const char CUT[] = "{\"role\":\"assistant\",\"content\":\"A and\","
                                  "\"finishReason\":\"length\"}";
        static const char WHOLE[] = "{\"role\":\"assistant\",\"content\":\"B\","
                                    "\"finishReason\":\"stop\"}";
        new_conversation(w);
        append(w, "openai", rows[0].user);
        append(w, "openai", rows[0].reply);
        amend(w, "supersede", "a", CUT);
        goes_on(w, "a reply that was replaced by half of one");
        new_conversation(w);
        append(w, "openai", rows[0].user);
        append(w, "openai",
            "{\"role\":\"assistant\",\"content\":\"A\",\"id\":\"a\",\"finishReason\":\"length\"}");
        amend(w, "supersede", "a", WHOLE);
        is_refused(w, "half a reply that was replaced by a whole one", "complete");
}

static void an_empty_conversation_is_refused(void **state)
{
        struct world *w = *state;
        new_conversation(w);
        is_refused(w, "empty", "the conversation is empty");
        append(w, "openai", rows[0].user);
        amend(w, "delete", "u", NULL);
        is_refused(w, "all deleted", "the conversation is empty");
}

/* ---- every way a run can end ---- */

static void each_way_a_run_can_end(void **state)
{
        struct world *w = *state;
        static const struct {
                const char *what;
                const char *reply;
                uint32_t turns;
                bool goes_on;
        } ends[] = {
            {"stop", "{\"text\":\"A\"}", 0, false},
            {"a reason that nobody knows", "{\"text\":\"A\",\"finish\":\"eos\"}", 0, false},
            {"length", "{\"text\":\"A\",\"finish\":\"length\"}", 0, true},
            {"content_filter", "{\"text\":\"A\",\"finish\":\"content_filter\"}", 0, true},
            {"an error before any text", "{\"error\":{\"message\":\"no\"}}", 0, true},
            {"a stream that dies in the text", "{\"text\":\"A\",\"cut\":true}", 0, true},
            {"a limit of turns", "{\"calls\":[{\"name\":\"t\",\"arguments\":{}}]}", 1, true},
            {"a call that was cut off",
                "{\"calls\":[{\"name\":\"t\",\"arguments\":\"{\\\"a\"}],\"finish\":\"length\"}", 1,
                true},
        };
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
                char script[400];
                new_conversation(w);
                snprintf(script, sizeof script, "{\"replies\":[%s]}", ends[i].reply);
                if (run(w, "Q", script, ends[i].turns))
                        fail_msg("%s: %s", ends[i].what, w->why.msg);
                if (ends[i].goes_on)
                        goes_on(w, ends[i].what);
                else
                        is_refused(w, ends[i].what, "the last reply is complete");
        }
}

/* A run that died while its reply was arriving, or right behind it; others may write meanwhile. */
static void a_run_that_died_goes_on(void **state)
{
        struct world *w = *state;
        EACH_ROW(r)
        {
                for (int others = 0; others < 2; others++) {
                        struct steno_run *run;
                        static const char HALF[] = "{\"messageId\":\"half\",\"text\":\"HALF\"}";
                        static const char ASKED[] = "{\"messageId\":\"half\",\"after\":1}";
                        new_conversation(w);
                        append(w, r->format, r->user);
                        OK(steno_run_begin(w->conv, NULL, "chat", &run, &err));
                        OK(steno_run_event(
                            run, "request", ASKED, strlen(ASKED), STENO_PROCESS, NULL, &err));
                        OK(steno_run_event(
                            run, "message", HALF, strlen(HALF), STENO_PROCESS, NULL, &err));
                        if (others)
                                append(w, "openai", "{\"role\":\"user\",\"content\":\"OTHER\"}");
                        steno_run_close(run);
                        goes_on(w, r->format);
                        const char *seen = view(w, "openai");
                        const char *half = strstr(seen, "HALF");
                        if (!half || !strstr(half, "GONE ON") ||
                            (others && !strstr(half, "OTHER")) || strstr(half + 4, "HALF"))
                                fail_msg("%s: %s", r->format, seen);
                }
        }
}

static void the_finish_reason_is_stored_and_not_sent(void **state)
{
        struct world *w = *state;
        new_conversation(w);
        assert_int_equal(
            run(w, "Q", "{\"replies\":[{\"text\":\"A\",\"finish\":\"length\"}]}", 0), 0);
        assert_non_null(strstr(view(w, "stored"), "\"finishReason\":\"length\""));
        assert_null(strstr(view(w, "openai"), "finishReason"));
}

static void an_old_reply_has_the_reason_of_its_run(void **state)
{
        struct world *w = *state;
        static const struct {
                const char *reason;
                bool goes_on;
        } ends[] = {{"length", true}, {"content_filter", true}, {"stop", false}, {NULL, false}};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
                struct steno_run *old;
                char id[16], data[64], message[200];
                new_conversation(w);
                snprintf(id, sizeof id, "run_%zu", i);
                append(w, "openai", rows[0].user);
                snprintf(message, sizeof message,
                    "{\"role\":\"assistant\",\"content\":\"A\",\"runId\":\"%s\"}", id);
                append(w, "openai", message);
                if (ends[i].reason) {
                        int n = snprintf(data, sizeof data, "{\"reason\":\"%s\"}", ends[i].reason);
                        OK(steno_run_begin(w->conv, id, "chat", &old, &err));
                        OK(steno_run_event(
                            old, "run_finished", data, (size_t)n, STENO_FULL, NULL, &err));
                        steno_run_close(old);
                }
                if (ends[i].goes_on)
                        goes_on(w, ends[i].reason);
                else
                        is_refused(w, "an old reply", "the last reply is complete");
        }
}

static void messages_off_the_context_do_not_count(void **state)
{
        struct world *w = *state;
        static const char NOTE[] =
            "{\"role\":\"%s\",\"content\":\"a note\",\"includeInContext\":false}";
        static const char *const roles[] = {"user", "assistant"};
        for (int complete = 0; complete < 2; complete++) {
                for (int i = 0; i < 2; i++) {
                        char note[100];
                        new_conversation(w);
                        append(w, "openai", rows[0].user);
                        if (complete)
                                append(w, "openai", rows[0].reply);
                        snprintf(note, sizeof note, NOTE, roles[i]);
                        append(w, "openai", note);
                        if (complete)
                                is_refused(w, roles[i], "the last reply is complete");
                        else
                                goes_on(w, roles[i]);
                }
        }
}

/* ---- empty replies, and replies that were cut off ---- */

struct reply {
        const char *format;
        const char *json;
};

/* No view of a model has any of these, so a history ends with the question before it. */
static const struct reply silent[] = {
    {"openai", "{\"role\":\"assistant\",\"content\":\"\"}"},
    {"openai", "{\"role\":\"assistant\",\"content\":null}"},
    {"anthropic", "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\","
                  "\"signature\":\"s\"}]}"},
    {"anthropic", "{\"role\":\"assistant\",\"content\":[]}"},
    {"gemini", "{\"role\":\"model\",\"parts\":[]}"},
    {"gemini", "{\"role\":\"model\",\"parts\":[{\"executableCode\":{\"language\":\"PYTHON\","
               "\"code\":\"1\"}}]}"},
    {"responses", "{\"type\":\"reasoning\",\"id\":\"a\",\"summary\":[]}"},
    {"responses", "{\"type\":\"mcp_approval_request\",\"id\":\"a\",\"name\":\"n\",\"server_label\":"
                  "\"s\",\"arguments\":\"{}\"}"},
};

static const struct reply cut_off[] = {
    {"openai",
        "{\"role\":\"assistant\",\"content\":\"A\",\"id\":\"a\",\"finishReason\":\"length\"}"},
    {"openai",
        "{\"role\":\"assistant\",\"content\":\"A\",\"id\":\"a\",\"finish_reason\":\"length\"}"},
    {"openai", "{\"role\":\"assistant\",\"content\":\"A\",\"id\":\"a\",\"finish_reason\":\"content_"
               "filter\"}"},
    {"anthropic", "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}],\"stop_"
                  "reason\":\"max_tokens\"}"},
    {"anthropic", "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}],\"stop_"
                  "reason\":\"model_context_window_exceeded\"}"},
    {"anthropic", "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}],\"stop_"
                  "reason\":\"pause_turn\"}"},
    {"gemini", "{\"role\":\"model\",\"parts\":[{\"text\":\"A\"}],\"finishReason\":\"MAX_TOKENS\"}"},
    {"responses",
        "{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"a\",\"status\":\"incomplete\","
        "\"content\":[{\"type\":\"output_text\",\"text\":\"A\",\"annotations\":[]}]}"},
    {"uimessage", "{\"id\":\"a\",\"role\":\"assistant\",\"metadata\":{\"finishReason\":\"length\"},"
                  "\"parts\":[{\"type\":\"text\",\"text\":\"A\"}]}"},
    {"langchain", "{\"type\":\"ai\",\"data\":{\"content\":\"A\",\"response_metadata\":{\"finish_"
                  "reason\":\"length\"}}}"},
    {"langchain", "{\"type\":\"ai\",\"data\":{\"content\":\"A\",\"response_metadata\":{\"stop_"
                  "reason\":\"max_tokens\"}}}"},
};

static const struct reply whole[] = {
    {"openai",
        "{\"role\":\"assistant\",\"content\":\"A\",\"id\":\"a\",\"finish_reason\":\"stop\"}"},
    {"anthropic", "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"A\"}],\"stop_"
                  "reason\":\"end_turn\"}"},
    {"gemini", "{\"role\":\"model\",\"parts\":[{\"text\":\"A\"}],\"finishReason\":\"STOP\"}"},
    {"responses",
        "{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"a\",\"status\":\"completed\","
        "\"content\":[{\"type\":\"output_text\",\"text\":\"A\",\"annotations\":[]}]}"},
    {"langchain", "{\"type\":\"ai\",\"data\":{\"content\":\"A\",\"response_metadata\":{\"finish_"
                  "reason\":\"stop\"}}}"},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static void ask(struct world *w, const struct reply *replies, size_t count)
{
        new_conversation(w);
        append(w, "openai", "{\"role\":\"user\",\"content\":\"Q\",\"id\":\"u\"}");
        for (size_t i = 0; i < count; i++)
                append(w, replies[i].format, replies[i].json);
}

static void a_reply_that_says_nothing_is_asked_for_again(void **state)
{
        struct world *w = *state;
        for (size_t i = 0; i < COUNT(silent); i++) {
                ask(w, &silent[i], 1);
                goes_on(w, silent[i].json);
        }
        /* Also where many follow each other, but not where text came before them. */
        new_conversation(w);
        append(w, "openai", "{\"role\":\"user\",\"content\":\"Q\",\"id\":\"u\"}");
        for (int i = 0; i < 20; i++)
                append(w, "openai", silent[0].json);
        goes_on(w, "many empty replies");
        ask(w, &whole[0], 1);
        append(w, "openai", silent[0].json);
        is_refused(w, "an empty reply behind a whole one", "the last reply is complete");
}

static void a_reply_that_was_cut_off_goes_on_in_every_formats_words(void **state)
{
        struct world *w = *state;
        for (size_t i = 0; i < COUNT(cut_off); i++) {
                ask(w, &cut_off[i], 1);
                goes_on(w, cut_off[i].json);
        }
        for (size_t i = 0; i < COUNT(whole); i++) {
                ask(w, &whole[i], 1);
                is_refused(w, whole[i].json, "the last reply is complete");
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                a_reply_that_says_nothing_is_asked_for_again, setup, teardown),
            cmocka_unit_test_setup_teardown(
                a_reply_that_was_cut_off_goes_on_in_every_formats_words, setup, teardown),
            T(a_complete_reply_is_refused),
            T(a_question_without_a_reply_goes_on),
            T(an_open_call_is_settled_and_goes_on),
            T(a_result_that_nobody_commented_goes_on),
            T(a_deleted_reply_is_asked_again),
            T(amendments_behind_the_end_change_nothing),
            T(what_took_the_place_of_a_reply_decides),
            T(an_empty_conversation_is_refused),
            T(each_way_a_run_can_end),
            T(a_run_that_died_goes_on),
            T(the_finish_reason_is_stored_and_not_sent),
            T(an_old_reply_has_the_reason_of_its_run),
            T(messages_off_the_context_do_not_count),
        };
#undef T
        return cmocka_run_group_tests(tests, NULL, NULL);
}
