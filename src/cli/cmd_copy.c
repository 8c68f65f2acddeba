/*
 * cmd_copy.c - steno copy and steno migrate: a store into another one of whatever kind, and a store
 * of an earlier version.
 */
#include <string.h>

#include "cli/command.h"
#include "steno_copy.h"

struct copy_opts {
        const char *from;
        const char *to;
};

static int copy(struct cli *c, struct steno_store *from, struct steno_store *to)
{
        struct steno_error err = {0};
        struct term_progress bar;
        char *report = NULL;
        struct steno_copy_options opt = {.size = sizeof(opt),
            .project = cli_told_project(c),
            .progress = term_progress_step,
            .progress_ctx = &bar};

        term_progress_init(&bar, c->quiet);
        int rc = steno_copy(from, to, &opt, &report, &err);
        term_progress_end(&bar);
        if (rc != 0)
                return cli_fail(c, &err);
        bool whole = strstr(report, "\"conflicts\":[]") != NULL;
        rc = cli_print_json(c, report);
        return rc != 0 || whole ? rc : EXIT_REFUSED;
}

static int run_copy(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct copy_opts *o = opts;
        struct steno_open_options existing = {
            .size = sizeof(existing), .flags = STENO_OPEN_EXISTING};
        struct steno_store *from = NULL, *to = NULL;
        struct steno_error err = {0};
        const char *url = o->from ? o->from : cli_store_url(c);

        (void)argc, (void)argv;
        if (o->to == NULL)
                return cli_usage(c, "--to is missing: the store to copy to");
        if (url == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        if (strcmp(url, o->to) == 0)
                return cli_refuse(c, EXIT_USAGE, "--from and --to are the same store");
        if (steno_open(url, &existing, &from, &err) != 0)
                return cli_fail(c, &err);
        int rc = steno_open(o->to, NULL, &to, &err);
        rc = rc != 0 ? cli_fail(c, &err) : copy(c, from, to);
        if (to != NULL)
                steno_close(to);
        steno_close(from);
        return rc;
}

static const struct opt copy_table[] = {
    {"from", 0, OPT_TEXT, "STORE", offsetof(struct copy_opts, from),
        "the store to copy; that of --store by default"},
    {"to", 0, OPT_TEXT, "STORE", offsetof(struct copy_opts, to),
        "the store to copy to; it is made if it does not exist"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_copy = {
    .name = "copy",
    .group = GROUP_KEEP,
    .usage = "--to STORE",
    .summary = "copies a store into another one, also of a different kind",
    .detail =
        "Copies from files to PostgreSQL, from PostgreSQL to files, or between two stores of one\n"
        "kind. Each conversation is copied whole or not at all, and is compared afterwards. A\n"
        "second copy continues the first one and adds what is new. If a conversation has\n"
        "different records in the target, it is not copied: the report names it, and the exit\n"
        "code is 3. The trash, disks, tokens, settings of projects and the log of seals are\n"
        "copied, too. With --project, only that project is copied.",
    .example = "steno copy --to 'postgres://steno@db/steno'",
    .opts = copy_table,
    .opts_size = sizeof(struct copy_opts),
    .run = run_copy,
};

static int run_migrate(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        const char *url = cli_store_url(c);
        char *report = NULL;

        (void)opts, (void)argc, (void)argv;
        if (url == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        return steno_migrate(url, &report, &err) != 0 ? cli_fail(c, &err)
                                                      : cli_print_json(c, report);
}

const struct command cmd_migrate = {
    .name = "migrate",
    .group = GROUP_KEEP,
    .usage = "",
    .summary = "brings the tables of a store in PostgreSQL up to this version",
    .detail =
        "This is one transaction: everything is changed, or nothing. Stop the servers first,\n"
        "because earlier versions refuse the new tables. Stores of files need no migration.",
    .example = "steno --store 'postgres://steno@db/steno' migrate",
    .run = run_migrate,
};
