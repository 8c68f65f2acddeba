/*
 * cmd_demo.c - steno demo: all features without a network. A scripted model, a real command with a
 * real large output, a search in it, an error, and a run that is cut off and continued, in a store
 * that can be thrown away.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "cli/talk.h"

#define PROMPT "The build is red since this morning. Please find out why."

/* A test suite that prints about 1.4 MB; one line in it says what is wrong. */
static const char suite[] =
    "exec awk 'BEGIN { for (i = 1; i <= 31000; i++) {\n"
    "        printf \"[%5d/31000] unit/case_%05d: step %d ... ok\\n\", i, i, i % 97\n"
    "        if (i == 23117)\n"
    "                print \"src/parser.c:812:23: error: use of undeclared identifier "
    "\\047limit\\047\" }\n"
    "        print \"30999 of 31000 passed, 1 failed\"; exit 1 }'\n";

#define FIRST_REPLY                                                                                \
        "{\"thinking\":\"The tests will tell. The local settings may matter, too.\","              \
        "\"text\":\"I will run the tests, and look at the local settings.\",\"calls\":["           \
        "{\"name\":\"execute_command\",\"arguments\":{\"argv\":[\"sh\",\"run-tests\"]}},"          \
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

/* ---- places ---- */

/* <name>-XXXXXX among temporary files; NULL, reported. */
static char *make_folder(struct cli *c, const char *name)
{
        const char *tmp = getenv("TMPDIR");
        char *path = NULL;
        if (asprintf(&path, "%s/%s-XXXXXX", tmp && tmp[0] ? tmp : "/tmp", name) < 0) {
                cli_refuse(c, EXIT_IO, "out of memory");
                return NULL;
        }
        if (!mkdtemp(path)) {
                cli_refuse(c, EXIT_IO, "%s: %s", path, strerror(errno));
                free(path);
                return NULL;
        }
        return path;
}

static int make_store(struct cli *c)
{
        if (c->store_url)
                return 0;
        c->store_url = c->default_url = make_folder(c, "steno-demo");
        return c->store_url ? 0 : EXIT_IO;
}

/* The demonstration leaves the working directory, by which the store may have been named. */
static void name_store_whole(struct cli *c)
{
        char *whole = realpath(cli_store_path(c), NULL);
        if (!whole)
                return;
        free(c->default_url);
        c->store_url = c->default_url = whole;
}

/* The folder in which the model works, with the tests that it is to run. */
static char *make_project(struct cli *c)
{
        char *path = make_folder(c, "project");
        FILE *f = NULL;
        bool ok = path && chdir(path) == 0 && (f = fopen("run-tests", "we")) != NULL;
        if (f) {
                ok = fputs(suite, f) >= 0;
                ok = fclose(f) == 0 && ok;
        }
        if (path && !ok) {
                cli_refuse(c, EXIT_IO, "%s: %s", path, strerror(errno));
                free(path);
                return NULL;
        }
        return path;
}

static void remove_project(char *path)
{
        if (path && unlink("run-tests") == 0 && chdir("/") == 0)
                rmdir(path);
        free(path);
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

/* ---- what is said to the person ---- */

static void say(struct cli *c, const char *sgr, const char *text)
{
        if (c->json || c->quiet)
                return;
        out_style(&c->out, sgr);
        out_puts(&c->out, text);
        out_plain(&c->out);
        out_flush(&c->out);
}

#define TITLE "1"
#define SPOKEN "1;36"

static void say_next(struct cli *c)
{
        const char *id = steno_conv_id(c->conv);
        if (c->json || c->quiet)
                return;
        say(c, TITLE, "\n3. Everything is in a folder of plain files, byte for byte.\n\n");
        out_printf(&c->out, "  to look at it yourself    export STENO_STORE=%s\n", c->store_url);
        out_printf(&c->out, "  the transcript            steno log %s\n", id);
        out_printf(
            &c->out, "  for another model         steno messages %s --format anthropic\n", id);
        out_printf(&c->out, "  the whole outputs         steno context list %s\n", id);
        out_puts(&c->out, "  every checksum            steno check\n");
        out_puts(&c->out, "  with a model of your own  steno chat --model NAME  "
                          "(OPENAI_API_KEY, OPENAI_BASE_URL)\n");
}

/* A run that is cut off, and its continuation: no tool runs twice, nothing said is lost. */
static int play(struct cli *c, struct talk *t)
{
        t->allow_all = true; /* the commands are ours */
        t->own_rules = false;
        t->script_json = until_cut;
        say(c, TITLE,
            "Steno is the record of what an agent and its tools said. The model below is a\n"
            "script, and the tools are real. You need no network and no key.\n");
        say(c, TITLE,
            "\n1. A tool prints 1.4 MB. All of it is kept; the model gets the part that "
            "matters.\n\n");
        say(c, SPOKEN, "you> " PROMPT "\n");
        talk_run(t, &(struct talk_turn){STR(PROMPT), "run", NULL});
        if (interrupt_pending())
                return EXIT_INTERRUPTED;
        say(c, TITLE,
            "\n2. The connection died in the middle of a reply. Its text is kept, the tools are "
            "not\n"
            "   run again, and the model searches the part that it was not shown.\n\n");
        say(c, SPOKEN, "$ steno continue\n");
        t->script_json = from_there;
        return talk_run(t, &(struct talk_turn){{0}, "run", NULL});
}

static int run_demo(struct cli *c, const void *opts, int argc, char **argv)
{
        struct talk t;
        struct talk_opts o = {.provider = "script"};
        char *project = NULL;
        (void)opts, (void)argc, (void)argv;
        int rc = make_store(c);
        if (rc == 0)
                rc = make_conversation(c);
        if (rc == 0) {
                name_store_whole(c);
                project = make_project(c);
                rc = project ? 0 : EXIT_IO;
        }
        if (rc != 0)
                return rc;
        rc = talk_open(&t, c, &o);
        if (rc == 0)
                rc = play(c, &t);
        talk_close(&t);
        remove_project(project);
        if (rc == 0)
                say_next(c);
        return rc;
}

const struct command cmd_demo = {
    .name = "demo",
    .group = GROUP_RUN,
    .usage = "",
    .summary = "shows how Steno works, offline: a scripted model, real tools, a large output",
    .detail = "Uses a temporary store, unless --store is given.",
    .example = "steno demo",
    .run = run_demo,
};
