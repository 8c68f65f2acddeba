/*
 * cmd_convert.c - steno convert and steno check-history: histories that need no store.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/input.h"

struct convert_opts {
        const char *from;
        const char *to;
        bool report;
        bool strict;
};

static int run_convert(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct convert_opts *o = opts;
        struct steno_error err = {0};
        struct buf in;
        char *report = NULL;
        int rc;

        if (o->to == NULL)
                return cli_usage(c, "--to is missing: the format to write");
        buf_init(&in, 0);
        rc = input_slurp(c, argc > 0 ? argv[0] : NULL, &in);
        struct steno_convert_options opt = {
            .size = sizeof opt, .from = o->from, .to = o->to, .strict = o->strict};
        if (rc == 0 &&
            steno_convert_with(&opt, in.p ? in.p : "", in.n, out_sink, &c->out, &report, &err) < 0)
                rc = cli_fail(c, &err);
        buf_release(&in);
        if (rc != 0)
                return rc;
        cli_end_view(c, o->report ? report : NULL);
        if (!o->report)
                cli_say_lost(c, report);
        steno_free(report);
        return EXIT_DONE;
}

static const struct opt convert_table[] = {
    {"from", 0, OPT_TEXT, "F", offsetof(struct convert_opts, from),
        "the format of the input; detected by default"},
    {"to", 0, OPT_TEXT, "F", offsetof(struct convert_opts, to),
        "the format to write: openai, responses, anthropic, gemini, ..."},
    {"strict", 0, OPT_FLAG, NULL, offsetof(struct convert_opts, strict),
        "only members that the provider's own types have"},
    {"report", 0, OPT_FLAG, NULL, offsetof(struct convert_opts, report),
        "repairs and losses as JSON on standard error"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_convert = {
    .name = "convert",
    .group = GROUP_READ,
    .usage = "--from F --to F [FILE]",
    .summary = "converts a history from one format into another; needs no store",
    .example = "steno convert --from openai --to anthropic history.json\n"
               "steno messages demo | steno convert --from openai --to gemini --report",
    .opts = convert_table,
    .opts_size = sizeof(struct convert_opts),
    .max_args = 1,
    .run = run_convert,
};

/* ---- check-history ---- */

struct history_opts {
        const char *provider;
};

static int view_into(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;

        buf_put(b, p, n);
        return b->failed != 0;
}

/* A file with that name comes first; "./name" is always a file. */
static int load_history(struct cli *c, const char *provider, const char *arg, struct buf *in)
{
        struct steno_view_options opt = {.size = sizeof(opt), .format = provider};
        struct steno_error err = {0};
        struct stat st;
        int rc;

        if (arg == NULL || strcmp(arg, "-") == 0 || strchr(arg, '/') != NULL || stat(arg, &st) == 0)
                return input_slurp(c, arg, in);
        rc = cli_open_conv(c, arg);
        if (rc == 0 && steno_view(c->conv, &opt, view_into, in, NULL, &err) < 0)
                rc = cli_fail(c, &err);
        return rc;
}

static void put_violation(struct cli *c, const struct json *j, json_ref v)
{
        struct buf text;
        uint64_t message;

        if (c->json) {
                out_text(&c->out, json_raw(j, v));
                out_puts(&c->out, "\n");
                return;
        }
        buf_init(&text, 0);
        /* People count from one. */
        if (json_u64(j, json_get(j, v, "message"), &message))
                buf_printf(&text, "message %llu: ", (unsigned long long)message + 1);
        if (json_string(j, json_get(j, v, "call"), &text, NULL))
                buf_puts(&text, ": ");
        json_string(j, json_get(j, v, "text"), &text, NULL);
        buf_puts(&text, " (");
        json_string(j, json_get(j, v, "rule"), &text, NULL);
        buf_puts(&text, ")\n");
        out_text(&c->out, buf_str(&text));
        buf_release(&text);
}

static int put_violations(struct cli *c, const char *json, const char *provider)
{
        struct steno_error err = {0};
        struct json j;
        uint32_t n = 0;

        json_init(&j);
        if (json_parse(&j, json, strlen(json), NULL, &err) < 0) {
                json_release(&j);
                return cli_fail(c, &err);
        }
        n = json_count(&j, 0);
        for (json_ref v = json_child(&j, 0); v != JSON_NONE; v = json_next(&j, 0, v))
                put_violation(c, &j, v);
        json_release(&j);
        if (n == 0)
                cli_say(c, "%s accepts this history", provider);
        return n == 0 ? EXIT_DONE : EXIT_REFUSED;
}

static int run_check_history(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct history_opts *o = opts;
        const char *provider = o->provider ? o->provider : "openai";
        struct steno_error err = {0};
        struct buf in;
        char *violations = NULL;
        int rc;

        buf_init(&in, 0);
        rc = load_history(c, provider, argc > 0 ? argv[0] : NULL, &in);
        if (rc == 0 && steno_check_history(provider, in.p ? in.p : "", in.n, &violations, &err) < 0)
                rc = cli_fail(c, &err);
        if (rc == 0)
                rc = put_violations(c, violations, provider);
        steno_free(violations);
        buf_release(&in);
        return rc;
}

static const struct opt history_table[] = {
    {"for", 0, OPT_CHOICE, "openai|responses|anthropic|gemini",
        offsetof(struct history_opts, provider),
        "the provider whose rules apply; the history is in its format"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_check_history = {
    .name = "check-history",
    .group = GROUP_READ,
    .usage = "[FILE|CONV]",
    .summary = "says whether a provider would accept a history; prints one line for each violation",
    .detail =
        "Checks a file, standard input or the view of a conversation. Exit code 3 means that\n"
        "there is a violation.",
    .example = "steno check-history --for anthropic history.json\n"
               "steno check-history demo",
    .opts = history_table,
    .opts_size = sizeof(struct history_opts),
    .max_args = 1,
    .run = run_check_history,
};
