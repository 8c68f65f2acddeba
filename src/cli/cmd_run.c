/*
 * cmd_run.c - steno run and steno continue: one run of the tool loop.
 */
#include "cli/input.h"
#include "cli/talk.h"

struct run_opts {
        struct talk_opts talk;
        const char *prompt;
        const char *run_id;
        const char *mode;
};

/* Without a prompt: continue. */
static int run_loop(struct cli *c, const struct run_opts *o, struct str prompt)
{
        struct talk t;
        struct talk_turn turn = {prompt, o->mode ? o->mode : "run", o->run_id};
        int rc = talk_open(&t, c, &o->talk);
        t.go_on = "steno continue";
        if (rc == 0)
                rc = talk_run(&t, &turn);
        talk_close(&t);
        return rc;
}

static int run_run(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct run_opts *o = opts;
        struct buf text;
        (void)argc;
        c->sealing = true;
        int rc = cli_open_conv(c, argv[0]);
        if (rc != 0)
                return rc;
        if (o->prompt)
                return run_loop(c, o, str_of(o->prompt));
        buf_init(&text, 0);
        rc = input_slurp(c, NULL, &text);
        if (rc == 0 && (buf_cstr(&text) == NULL || text.n == 0))
                rc = cli_usage(c, "no prompt given: use --prompt or standard input");
        if (rc == 0)
                rc = run_loop(c, o, buf_str(&text));
        buf_release(&text);
        return rc;
}

static int run_continue(struct cli *c, const void *opts, int argc, char **argv)
{
        (void)argc;
        c->sealing = true;
        int rc = cli_open_conv(c, argv[0]);
        return rc != 0 ? rc : run_loop(c, opts, (struct str){0});
}

#define RUN_ROWS                                                                                   \
        {"mode", 0, OPT_CHOICE, "chat|agent|run", offsetof(struct run_opts, mode),                 \
            "the mode that the messages are marked with (run by default)"},                        \
            {"run-id", 0, OPT_TEXT, "ID", offsetof(struct run_opts, run_id),                       \
                "an id of your own for this run, for steno watch"},                                \
            TALK_ROWS(struct run_opts),                                                            \
        {                                                                                          \
                NULL, 0, OPT_FLAG, NULL, 0, NULL                                                   \
        }

static const struct opt run_table[] = {
    {"prompt", 'p', OPT_TEXT, "T", offsetof(struct run_opts, prompt),
        "what the user says; standard input by default"},
    RUN_ROWS,
};

static const struct opt continue_table[] = {RUN_ROWS};

const struct command cmd_run = {
    .name = "run",
    .group = GROUP_RUN,
    .usage = "CONV --prompt T",
    .summary = "runs the conversation against a model with tools until the model is done",
    .detail =
        "The model's text goes to standard output as it arrives, and the tools' activity to\n"
        "standard error. If no rule of the configuration allows a call, you are asked on the\n"
        "terminal; without a terminal the call is denied, unless --yes is given. With --json, the\n"
        "run's events are printed as lines. Whatever ends the run, even a kill: steno continue\n"
        "continues from there.",
    .example = "steno run demo --prompt \"Why is the build red?\" --model gpt-4o-mini\n"
               "steno run demo -p \"Go on\" --max-turns 5 --json",
    .opts = run_table,
    .opts_size = sizeof(struct run_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_run,
};

const struct command cmd_continue = {
    .name = "continue",
    .group = GROUP_RUN,
    .usage = "CONV",
    .summary = "continues after a crash, an error or a stop",
    .detail =
        "A tool that has finished is not run again. A tool that was running when the program died\n"
        "is not run again automatically either: the model is told that its effects are unknown.",
    .example = "steno continue demo",
    .opts = continue_table,
    .opts_size = sizeof(struct run_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_continue,
};
