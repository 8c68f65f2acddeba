/*
 * cmd_demo.c - steno demo: the whole of it offline. A scripted model, a real command with a real
 * large output, a search in it, an error, and a run that is cut off and continued, in a store that
 * can be thrown away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/talk.h"

#define PROMPT "The build is red since this morning. Please find out why."

/* About 2 MB, as a test suite would print it; one line in it says what is wrong. */
#define SUITE                                                                                      \
        "BEGIN { for (i = 1; i <= 31000; i++) { printf \\\"[%5d/31000] unit/case_%05d: step %d "   \
        "... ok\\\\n\\\", i, i, i % 97; if (i == 23117) print \\\"src/parser.c:812:23: error: "    \
        "use of undeclared identifier 'limit'\\\" } print \\\"30999 of 31000 passed, 1 failed\\\"" \
        "; exit 1 }"

#define FIRST_REPLY                                                                                \
        "{\"thinking\":\"The tests will tell. The local settings may matter, too.\","              \
        "\"text\":\"I will run the tests, and look at the local settings.\",\"calls\":["           \
        "{\"name\":\"execute_command\",\"arguments\":{\"argv\":[\"awk\",\"" SUITE "\"]}},"         \
        "{\"name\":\"execute_command\",\"arguments\":{\"argv\":[\"cat\",\"settings.local\"]}}]},"

/* The connection to the model dies in the middle of its second reply. */
static const char until_cut[] =
    "{\"pieceMs\":25,\"replies\":[" FIRST_REPLY
    "{\"text\":\"One test failed. Its output is large, so I\",\"cut\":true}]}";

/* What it says when it is asked again. */
static const char from_there[] =
    "{\"pieceMs\":25,\"replies\":[" FIRST_REPLY
    "{\"text\":\"One test failed. Its output is large, so I search in it.\",\"calls\":["
    "{\"name\":\"context_grep\",\"arguments\":{\"ref\":\"$REF\",\"pattern\":\"error\","
    "\"context_lines\":1}}]},"
    "{\"text\":\"One of 31,000 tests fails to compile: src/parser.c, line 812, uses `limit`, "
    "which nothing declares. There are no local settings; none are needed.\"}]}";

static int make_store(struct cli *c)
{
        const char *tmp = getenv("TMPDIR");
        if (c->store_url)
                return 0;
        if (asprintf(&c->default_url, "%s/steno-demo-XXXXXX", tmp && tmp[0] ? tmp : "/tmp") < 0)
                return cli_refuse(c, EXIT_IO, "out of memory");
        if (!mkdtemp(c->default_url))
                return cli_refuse(c, EXIT_IO, "%s: cannot be made", c->default_url);
        c->store_url = c->default_url;
        return 0;
}

static int make_conversation(struct cli *c)
{
        struct steno_error err = {0};
        int rc = cli_open_store(c, CLI_CREATE);
        if (rc != 0)
                return rc;
        if (steno_conv_create(c->store, c->project, NULL, "{\"title\":\"Why is the build red?\"}",
                &c->conv, &err) < 0)
                return cli_fail(c, &err);
        return 0;
}

static void say_next(struct cli *c)
{
        const char *id = steno_conv_id(c->conv);
        cli_say(c, "\nThis conversation is a folder of plain files. Try next:\n");
        cli_say(c, "  export STENO_STORE=%s", c->store_url);
        cli_say(c, "  steno log %s", id);
        cli_say(c, "  steno messages %s --format anthropic", id);
        cli_say(c, "  steno context list %s", id);
        cli_say(c, "  steno check");
}

static void say(struct cli *c, const char *text)
{
        if (c->json)
                return;
        out_puts(&c->out, text);
        out_flush(&c->out);
}

/* A run that is cut off, and its continuation: no tool runs twice, nothing said is lost. */
static int play(struct cli *c, struct talk *t)
{
        t->allow_all = true; /* the commands are ours */
        t->own_rules = false;
        t->script_json = until_cut;
        say(c, "> " PROMPT "\n");
        talk_run(t, &(struct talk_turn){PROMPT, "run", NULL});
        say(c,
            "\n> steno continue   (the connection died; both tools had run, and run only once)\n");
        t->script_json = from_there;
        return talk_run(t, &(struct talk_turn){NULL, "run", NULL});
}

static int run_demo(struct cli *c, const void *opts, int argc, char **argv)
{
        struct talk t;
        struct talk_opts o = {.provider = "script"};
        (void)opts, (void)argc, (void)argv;
        int rc = make_store(c);
        if (rc == 0)
                rc = make_conversation(c);
        if (rc != 0)
                return rc;
        rc = talk_open(&t, c, &o);
        if (rc == 0)
                rc = play(c, &t);
        talk_close(&t);
        if (rc == 0)
                say_next(c);
        return rc;
}

const struct command cmd_demo = {
    .name = "demo",
    .group = GROUP_RUN,
    .usage = "",
    .summary = "shows the whole of it offline: a scripted model, real tools, a large output",
    .detail = "In a throw-away store, unless --store is given.",
    .example = "steno demo",
    .run = run_demo,
};
