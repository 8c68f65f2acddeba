/*
 * cmd_stop.c - steno stop and approve: through the store, whichever process or server holds the
 * run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/callview.h"
#include "cli/command.h"
#include "cli/term.h"
#include "model/event.h"

static int run_stop(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        (void)opts;
        (void)argc;
        int rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        const char *run = cli_run_of(c, argv[0]);
        if (steno_run_stop(c->store, c->project, run, &err) < 0)
                return cli_fail(c, &err);
        cli_say(c, "%s was asked to stop", run);
        return EXIT_DONE;
}

const struct command cmd_stop = {
    .name = "stop",
    .group = GROUP_RUN,
    .usage = "RUN",
    .summary = "stops a run, wherever it is running",
    .detail =
        "The run ends as after Ctrl-C: calls that are running get an interrupted result, and the\n"
        "history can be continued. The id of a conversation stands for its active run.",
    .example = "steno stop run_01J...",
    .min_args = 1,
    .max_args = 1,
    .run = run_stop,
};

/* ---- approve ---- */

struct approve_opts {
        bool deny;
};

/* The last question about a call. */
struct question {
        const char *call;
        char *data; /* of its event; NULL: there is none, or it was answered */
};

static int take_question(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct question *q = ctx;
        struct json j;
        (void)seq;
        (void)at;
        if (event_find(type) != STENO_EVENT_TOOL_CALL_APPROVAL)
                return 0;
        json_init(&j);
        if (json_parse(&j, data, n, NULL, NULL) == 0 &&
            json_is(&j, json_get(&j, 0, "toolCallId"), q->call)) {
                free(q->data);
                bool waits = json_is(&j, json_get(&j, 0, "state"), "pending");
                q->data = waits ? strndup(data, n) : NULL;
        }
        json_release(&j);
        return 0;
}

static char *text_of(const struct json *j, const char *key)
{
        char *text = json_dup_string(j, json_get(j, 0, key));
        return text ? text : strdup("");
}

/* A person must see all of a call before they allow it. */
static void show_call(struct cli *c, const struct json *j)
{
        struct buf shown;
        char *tool = text_of(j, "toolName"), *args = text_of(j, "arguments");
        buf_init(&shown, 0);
        text_for_terminal(&shown, str_of(tool ? tool : ""), false);
        buf_putc(&shown, '\n');
        callview_put_whole(&shown, tool ? tool : "", str_of(args ? args : ""), term_real_width());
        if (!c->quiet)
                term_stderr(buf_str(&shown));
        buf_release(&shown);
        free(tool);
        free(args);
}

static int answer(struct cli *c, const struct approve_opts *o, char **argv, const char *data)
{
        struct steno_error err = {0};
        struct json j;
        int code = EXIT_DONE;
        json_init(&j);
        int rc = json_parse(&j, data, strlen(data), NULL, &err);
        char *approval = rc ? NULL : text_of(&j, "approval");
        if (rc == 0) {
                show_call(c, &j);
                if (!o->deny)
                        code = cli_confirm(c, "let this call run");
        }
        if (rc == 0 && code == EXIT_DONE) {
                rc = steno_run_answer(c->store, c->project, argv[0], argv[1],
                    approval ? approval : "", !o->deny, &err);
                if (rc == 0)
                        cli_say(c, "%s was %s", argv[1], o->deny ? "denied" : "allowed");
                else if (rc > 0)
                        cli_say(c, "the answer was sent; %s has not read it yet", argv[0]);
        }
        free(approval);
        json_release(&j);
        return rc < 0 ? cli_fail(c, &err) : code;
}

static int run_approve(struct cli *c, const void *opts, int argc, char **argv)
{
        struct question q = {.call = argv[1]};
        struct steno_error err = {0};
        (void)argc;
        int rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        argv[0] = (char *)cli_run_of(c, argv[0]);
        rc = steno_run_read(c->store, c->project, argv[0], 0, take_question, &q, &err);
        if (rc == 0 && !q.data) {
                err.code = STENO_ENOTFOUND;
                snprintf(err.msg, sizeof err.msg,
                    "no call \"%.80s\" of run \"%.80s\" waits for "
                    "permission",
                    argv[1], argv[0]);
                rc = err.code;
        }
        int code = rc < 0 ? cli_fail(c, &err) : answer(c, opts, argv, q.data);
        free(q.data);
        return code;
}

static const struct opt approve_table[] = {
    {"deny", 0, OPT_FLAG, NULL, offsetof(struct approve_opts, deny), "do not let it run"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_approve = {
    .name = "approve",
    .group = GROUP_RUN,
    .usage = "RUN CALL",
    .summary = "allows a call that waits for permission",
    .detail =
        "Shows the call and asks; without a terminal, --yes is needed. The answer reaches the run\n"
        "through the store, whichever process or server runs it.",
    .example = "steno approve run_01J... call_0\n"
               "steno approve run_01J... call_0 --deny",
    .opts = approve_table,
    .opts_size = sizeof(struct approve_opts),
    .min_args = 2,
    .max_args = 2,
    .run = run_approve,
};
