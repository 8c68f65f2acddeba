/*
 * cmd_export.c - steno export: conversations as a bundle, or one of them for people to read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/named_file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"

struct export_opts {
        const char *output;
        const char *max_artifact;
        bool all;
        bool html;
        bool md;
        bool partial;
};

static int take_bytes(void *ctx, const void *p, size_t n)
{
        return named_file_write(ctx, p, n, interrupt_pending);
}

/* Keeps the file or removes it; an exit code. */
static int end_file(struct cli *c, struct named_file *t, int rc)
{
        const char *path = t->path ? t->path : "output";
        int sys = -named_file_end(t, rc == 0);

        if (sys == EPIPE)
                return EXIT_DONE;
        return sys != 0 ? cli_refuse(c, EXIT_IO, "cannot write %s: %s", path, strerror(sys)) : rc;
}

static int parse_size(struct cli *c, const char *text, uint64_t *out)
{
        static const char UNITS[] = "KMGT";
        char *end;
        const char *unit;

        if (text == NULL)
                return 0;
        *out = strtoull(text, &end, 10);
        unit = *end != '\0' ? strchr(UNITS, *end) : NULL;
        for (const char *u = UNITS; unit != NULL && u <= unit; u++)
                *out *= 1024;
        if (end == text || text[0] == '-' || *out == 0 || (*end != '\0' && (!unit || end[1])))
                return cli_usage(c, "--max-artifact takes a size such as 500K, 10M or 2G");
        return 0;
}

static int export_bundle(
    struct cli *c, const struct export_opts *o, int argc, char **argv, struct named_file *t)
{
        struct steno_export_options opt = {.size = sizeof(opt)};
        struct steno_error err = {0};
        struct term_progress bar;
        char *report = NULL;
        int rc = parse_size(c, o->max_artifact, &opt.max_artifact);

        if (rc != 0)
                return rc;
        term_progress_init(&bar, c->quiet);
        if (o->partial)
                opt.flags |= STENO_EXPORT_PARTIAL;
        opt.progress = term_progress_step;
        opt.progress_ctx = &bar;
        rc = steno_export(c->store, c->project, o->all ? NULL : (const char *const *)argv,
            (size_t)argc, &opt, take_bytes, t, &report, &err);
        term_progress_end(&bar);
        if (rc < 0)
                return t->sys != 0 ? EXIT_IO : cli_fail(c, &err);
        if (t->path != NULL)
                return cli_print_json(c, report);
        steno_free(report);
        return 0;
}

static int export_view(
    struct cli *c, const struct export_opts *o, const char *id, struct named_file *t)
{
        struct steno_error err = {0};
        int rc = cli_open_conv(c, id);

        if (rc != 0)
                return rc;
        rc = steno_export_as(c->conv,
            o->html ? "html"
            : o->md ? "md"
                    : "json",
            take_bytes, t, &err);
        return rc < 0 && t->sys == 0 ? cli_fail(c, &err) : rc < 0 ? EXIT_IO : 0;
}

static int run_export(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct export_opts *o = opts;
        struct named_file t;
        bool view = o->html || o->md || c->json;
        int sys = 0;

        if (o->all ? argc > 0 || view : argc == 0)
                return cli_usage(c, o->all ? "--all takes no conversation, and makes a bundle"
                                           : "no conversation given: name some, or use --all");
        if (view && (argc != 1 || o->html + o->md + c->json > 1 || o->partial || o->max_artifact))
                return cli_usage(c, "--html, --md and --json take one conversation, and exclude "
                                    "each other and the options of bundles");
        if (!view && o->output == NULL)
                return cli_usage(c, "no file given: use -o FILE.tar.zst, or -o - for standard "
                                    "output");
        int rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc == 0)
                sys = -named_file_begin(&t, o->output);
        if (sys != 0) {
                named_file_end(&t, false);
                return cli_refuse(c, EXIT_IO, "cannot write %s: %s", o->output, strerror(sys));
        }
        if (rc != 0)
                return rc;
        rc = view ? export_view(c, o, argv[0], &t) : export_bundle(c, o, argc, argv, &t);
        return end_file(c, &t, rc);
}

static const struct opt export_table[] = {
    {"output", 'o', OPT_TEXT, "FILE", offsetof(struct export_opts, output),
        "the file to write; - is standard output"},
    {"all", 0, OPT_FLAG, NULL, offsetof(struct export_opts, all),
        "every conversation of the project"},
    {"html", 0, OPT_FLAG, NULL, offsetof(struct export_opts, html),
        "one HTML file that needs nothing else"},
    {"md", 0, OPT_FLAG, NULL, offsetof(struct export_opts, md), "Markdown"},
    {"max-artifact", 0, OPT_TEXT, "SIZE", offsetof(struct export_opts, max_artifact),
        "leave out outputs that are larger: 500K, 10M, 2G"},
    {"partial", 0, OPT_FLAG, NULL, offsetof(struct export_opts, partial),
        "go on where bytes are lost, and leave tombstones"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_export = {
    .name = "export",
    .group = GROUP_KEEP,
    .usage = "CONV...",
    .summary = "writes conversations with all their outputs to one file",
    .detail = "A bundle is a .tar.zst that plain tar opens and steno import takes back, byte for\n"
              "byte. The same conversations give the same file. --html, --md and --json (every\n"
              "record as it is stored) write one conversation for people and other programs, to\n"
              "standard output unless -o is given.",
    .example = "steno export demo -o demo.tar.zst\n"
               "steno export --all -o everything.tar.zst\n"
               "steno export demo --html -o demo.html",
    .opts = export_table,
    .opts_size = sizeof(struct export_opts),
    .max_args = -1,
    .run = run_export,
};
