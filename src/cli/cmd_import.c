/*
 * cmd_import.c - steno import: what was kept elsewhere. The first bytes of a file decide what it
 * is; a kind is a row of IMPORTERS.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/named_file.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"

struct import_opts {
        const char *on_conflict;
        const char *into;
        bool new_ids;
        bool trusted;
};

/* A file whose first bytes were looked at. */
struct source {
        const char *path;
        int fd;
        char head[4096];
        size_t head_n;
        size_t given; /* of them */
};

static long source_read(void *ctx, void *p, size_t n)
{
        struct source *s = ctx;
        size_t left = s->head_n - s->given;
        ssize_t got;

        if (left > 0) {
                n = n < left ? n : left;
                memcpy(p, s->head + s->given, n);
                s->given += n;
                return (long)n;
        }
        do
                got = read(s->fd, p, n);
        while (got < 0 && errno == EINTR && !interrupt_pending());
        return got < 0 ? -errno : (long)got;
}

static int source_open(struct cli *c, struct source *s, const char *path)
{
        ssize_t got = 1;

        *s = (struct source){.path = path, .fd = STDIN_FILENO};
        if (strcmp(path, "-") != 0)
                s->fd = named_file_open(path);
        if (s->fd < 0)
                return cli_refuse(c, s->fd == -ENOENT ? EXIT_NOT_FOUND : EXIT_IO,
                    "cannot open %s: %s", path, strerror(-s->fd));
        while (s->head_n < sizeof(s->head) && got > 0) {
                got = read(s->fd, s->head + s->head_n, sizeof(s->head) - s->head_n);
                if (got > 0)
                        s->head_n += (size_t)got;
        }
        return got < 0 ? cli_refuse(c, EXIT_IO, "cannot read %s: %s", path, strerror(errno)) : 0;
}

static void source_close(struct source *s)
{
        if (s->fd > STDIN_FILENO)
                close(s->fd);
}

/* ---- bundles ---- */

static bool is_bundle(const struct source *s)
{
        return steno_is_bundle(s->head, s->head_n);
}

static uint64_t skipped(const char *report)
{
        struct json j;
        uint64_t n = 0;

        json_init(&j);
        if (json_parse(&j, report, strlen(report), NULL, NULL) == 0)
                json_u64(&j, json_get(&j, 0, "skipped"), &n);
        json_release(&j);
        return n;
}

static int import_bundle(struct cli *c, const struct import_opts *o, struct source *s)
{
        struct steno_import_options opt = {.size = sizeof(opt), .project = o->into};
        struct steno_error err = {0};
        struct term_progress bar;
        char *report = NULL;

        if (o->new_ids)
                opt.flags |= STENO_IMPORT_NEW_IDS;
        if (o->trusted)
                opt.flags |= STENO_IMPORT_TRUSTED;
        if (o->on_conflict != NULL)
                opt.on_conflict = strcmp(o->on_conflict, "both") == 0      ? STENO_CONFLICT_BOTH
                                  : strcmp(o->on_conflict, "replace") == 0 ? STENO_CONFLICT_REPLACE
                                                                           : STENO_CONFLICT_SKIP;
        term_progress_init(&bar, c->quiet);
        opt.progress = term_progress_step;
        opt.progress_ctx = &bar;
        int rc = steno_import_bundle(c->store, &opt, source_read, s, &report, &err);
        term_progress_end(&bar);
        if (rc < 0)
                return cli_fail(c, &err);
        uint64_t n = skipped(report);
        rc = cli_print_json(c, report);
        return rc != 0 || n == 0
                   ? rc
                   : cli_refuse(c, EXIT_REFUSED,
                         "%llu conversation%s there with another history, and stayed as %s "
                         "(--on-conflict both|replace)",
                         (unsigned long long)n, n == 1 ? " is" : "s are",
                         n == 1 ? "it is" : "they are");
}

/* ---- the command ---- */

static const struct {
        bool (*is)(const struct source *s);
        int (*import)(struct cli *c, const struct import_opts *o, struct source *s);
} IMPORTERS[] = {
    {is_bundle, import_bundle},
};

static int import_path(struct cli *c, const struct import_opts *o, const char *path)
{
        struct source s;
        int rc = source_open(c, &s, path);

        if (rc != 0)
                return rc;
        rc = -1;
        for (size_t i = 0; rc < 0 && i < sizeof(IMPORTERS) / sizeof(IMPORTERS[0]); i++)
                if (IMPORTERS[i].is(&s))
                        rc = IMPORTERS[i].import(c, o, &s);
        if (rc < 0)
                rc = cli_refuse(c, EXIT_REFUSED, "%s: not a file that can be imported", path);
        source_close(&s);
        return rc;
}

static int run_import(struct cli *c, const void *opts, int argc, char **argv)
{
        int rc = cli_open_store(c, CLI_CREATE);

        for (int i = 0; rc == 0 && i < argc; i++)
                rc = import_path(c, opts, argv[i]);
        return rc;
}

static const struct opt import_table[] = {
    {"on-conflict", 0, OPT_CHOICE, "skip|both|replace", offsetof(struct import_opts, on_conflict),
        "where the id is taken by another history; replaced ones go to the trash"},
    {"new-ids", 0, OPT_FLAG, NULL, offsetof(struct import_opts, new_ids),
        "give every conversation a new id"},
    {"into", 0, OPT_TEXT, "PROJECT", offsetof(struct import_opts, into),
        "the project they go to; their own unless told"},
    {"trusted", 0, OPT_FLAG, NULL, offsetof(struct import_opts, trusted),
        "lift the limits on how far a bundle expands and on the size of records"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_import = {
    .name = "import",
    .group = GROUP_KEEP,
    .usage = "FILE...",
    .summary = "takes in what steno export wrote",
    .detail =
        "A bundle is unpacked aside, held against its checksums and checked; all of it comes\n"
        "into the store, or nothing. Importing twice changes nothing. A FILE of - is\n"
        "standard input. Exit code 3 when a bundle is refused, or a conversation was skipped\n"
        "because its id is taken by another history.",
    .example = "steno import demo.tar.zst\n"
               "steno import demo.tar.zst --on-conflict both",
    .opts = import_table,
    .opts_size = sizeof(struct import_opts),
    .min_args = 1,
    .max_args = -1,
    .run = run_import,
};
