/*
 * cmd_export.c - steno export: conversations as a bundle, or one of them for people to read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/named_file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"

#define RULES_MAX ((size_t)1024 * 1024)

struct export_opts {
        const char *output;
        const char *max_artifact;
        const char *redact;
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
static int end_file(struct cli *c, struct named_file *t, const char *path, int rc)
{
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

/* Rules as the library takes them: a list of "secrets" and of files with rules. */
static int read_rules(struct cli *c, const char *list, struct buf *out)
{
        while (list != NULL && *list != 0) {
                size_t n = strcspn(list, ",");
                char path[1024];

                snprintf(path, sizeof(path), "%.*s", (int)n, list);
                list += n + (list[n] == ',');
                if (strcmp(path, "secrets") == 0) {
                        buf_puts(out, "secrets\n");
                        continue;
                }
                char *text = NULL;
                size_t size = 0;
                int sys = named_file_slurp(path, RULES_MAX, &text, &size);
                if (sys != 0)
                        return cli_refuse(c, sys == -ENOENT ? EXIT_NOT_FOUND : EXIT_IO,
                            "--redact takes \"secrets\" or files of rules: cannot read %s: %s",
                            path, strerror(-sys));
                buf_put(out, text, size);
                buf_putc(out, '\n');
                free(text);
        }
        return out->failed || buf_cstr(out) == NULL ? cli_refuse(c, EXIT_IO, "out of memory") : 0;
}

static int export_bundle(
    struct cli *c, const struct export_opts *o, int argc, char **argv, struct named_file *t)
{
        struct steno_export_options opt = {.size = sizeof(opt)};
        struct steno_error err = {0};
        struct term_progress bar;
        struct buf rules;
        char *report = NULL;
        int rc = parse_size(c, o->max_artifact, &opt.max_artifact);

        buf_init(&rules, RULES_MAX * 2);
        if (rc == 0)
                rc = read_rules(c, o->redact, &rules);
        if (rc != 0) {
                buf_release(&rules);
                return rc;
        }
        if (o->redact != NULL)
                opt.redact = buf_cstr(&rules);
        term_progress_init(&bar, c->quiet);
        if (o->partial)
                opt.flags |= STENO_EXPORT_PARTIAL;
        opt.progress = term_progress_step;
        opt.progress_ctx = &bar;
        rc = steno_export(c->store, c->project, o->all ? NULL : (const char *const *)argv,
            (size_t)argc, &opt, take_bytes, t, &report, &err);
        buf_release(&rules);
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
        struct buf rules;
        char *report = NULL;
        const char *format = o->html ? "html" : o->md ? "md" : "json";

        buf_init(&rules, RULES_MAX * 2);
        int rc = cli_open_conv(c, id);
        if (rc == 0)
                rc = read_rules(c, o->redact, &rules);
        if (rc == 0 && o->redact != NULL)
                rc = steno_export_redacted(
                    c->conv, format, buf_cstr(&rules), take_bytes, t, &report, &err);
        else if (rc == 0)
                rc = steno_export_as(c->conv, format, take_bytes, t, &err);
        if (rc == 0 && report != NULL)
                cli_say(c, "%s", report); /* standard output may be the document */
        steno_free(report);
        buf_release(&rules);
        if (rc > 0)
                return rc;
        return rc < 0 && t->sys == 0 ? cli_fail(c, &err) : rc < 0 ? EXIT_IO : 0;
}

static int run_export(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct export_opts *o = opts;
        struct named_file t;
        bool view = o->html || o->md || c->json;
        int sys = 0;

        if (o->all ? argc > 0 || view : argc == 0)
                return cli_usage(c, o->all ? "--all exports every conversation to a bundle: name "
                                             "no conversation, and use no other format"
                                           : "no conversation given: name some, or use --all");
        if (view && (argc != 1 || o->html + o->md + c->json > 1 || o->partial || o->max_artifact))
                return cli_usage(c, "use only one of --html, --md and --json, with one "
                                    "conversation and without --partial and --max-artifact");
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
        return end_file(c, &t, o->output && strcmp(o->output, "-") != 0 ? o->output : "output", rc);
}

static const struct opt export_table[] = {
    {"output", 'o', OPT_TEXT, "FILE", offsetof(struct export_opts, output),
        "the file to write; - is standard output"},
    {"all", 0, OPT_FLAG, NULL, offsetof(struct export_opts, all),
        "every conversation of the project"},
    {"html", 0, OPT_FLAG, NULL, offsetof(struct export_opts, html),
        "write one HTML file that needs nothing else"},
    {"md", 0, OPT_FLAG, NULL, offsetof(struct export_opts, md), "Markdown"},
    {"max-artifact", 0, OPT_TEXT, "SIZE", offsetof(struct export_opts, max_artifact),
        "leave out outputs that are larger: 500K, 10M, 2G"},
    {"redact", 0, OPT_TEXT, "RULES", offsetof(struct export_opts, redact),
        "mask secrets by these rules: \"secrets\" or files of rules, separated by commas"},
    {"partial", 0, OPT_FLAG, NULL, offsetof(struct export_opts, partial),
        "export even if bytes are lost, with a tombstone in the place of each loss"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_export = {
    .name = "export",
    .group = GROUP_KEEP,
    .usage = "CONV...",
    .summary = "writes conversations with all their outputs to one file",
    .detail =
        "A bundle is a .tar.zst file. Plain tar opens it, and steno import restores it byte for\n"
        "byte. The same conversations always give the same file. --html, --md and --json (every\n"
        "record as it is stored) write one conversation for people and other programs, to\n"
        "standard output unless -o is given.\n\n"
        "--redact secrets masks keys, tokens and passwords of the usual kinds with *, and reports\n"
        "what it masked. A file of rules has a name and a regular expression on each line. The\n"
        "store keeps the original. Check the file before you send it: no rule finds every secret.",
    .example = "steno export demo -o demo.tar.zst\n"
               "steno export --all -o everything.tar.zst\n"
               "steno export demo --html -o demo.html\n"
               "steno export demo --redact secrets -o demo.tar.zst",
    .opts = export_table,
    .opts_size = sizeof(struct export_opts),
    .max_args = -1,
    .run = run_export,
};
