/*
 * cmd_backup.c - steno backup and steno restore: a consistent copy of a store that is being
 * written, and a store from one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/named_file.h"
#include "cli/command.h"
#include "cli/term.h"

/* Would the copy be a part of what is copied? The folder itself may not be there yet. */
static bool is_inside(const char *store, const char *path)
{
        char *root = realpath(store, NULL), *at = named_file_absolute(path), *real = NULL;
        while (at && at[0] && !(real = realpath(at, NULL))) {
                char *slash = strrchr(at, '/');
                if (slash == at)
                        break;
                *slash = '\0';
        }
        size_t n = root ? strlen(root) : 0;
        bool inside =
            root && real && strncmp(real, root, n) == 0 && (real[n] == '\0' || real[n] == '/');
        free(root);
        free(at);
        free(real);
        return inside;
}

static int run_backup(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        struct term_progress bar;
        char *report = NULL;
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        (void)opts, (void)argc;
        if (rc != 0)
                return rc;
        if (is_inside(cli_store_path(c), argv[0]))
                return cli_refuse(
                    c, EXIT_REFUSED, "%s is inside the store: a backup belongs elsewhere", argv[0]);
        term_progress_init(&bar, c->quiet);
        rc = steno_backup(c->store, argv[0], term_progress_step, &bar, &report, &err);
        term_progress_end(&bar);
        return rc < 0 ? cli_fail(c, &err) : cli_print_json(c, report);
}

const struct command cmd_backup = {
    .name = "backup",
    .group = GROUP_KEEP,
    .usage = "DIR",
    .summary = "copies the store, while it is being written, into a folder",
    .detail =
        "Everything that was acknowledged before it began is in the copy, and every ref has\n"
        "its bytes. Made again into the same folder it copies what changed, and removes what\n"
        "was purged. steno --store DIR check verifies it; steno restore makes a store of it.",
    .example = "steno backup /mnt/backup/steno",
    .min_args = 1,
    .max_args = 1,
    .run = run_backup,
};

struct restore_opts {
        const char *into;
};

static int run_restore(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct restore_opts *o = opts;
        struct steno_error err = {0};
        const char *into = o->into ? o->into : cli_store_url(c);
        char *report = NULL;

        (void)argc;
        if (into == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        if (steno_restore(argv[0], into, &report, &err) < 0)
                return cli_fail(c, &err);
        return cli_print_json(c, report);
}

static const struct opt restore_table[] = {
    {"into", 0, OPT_TEXT, "STORE", offsetof(struct restore_opts, into),
        "the folder to restore to; the store of --store unless told"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_restore = {
    .name = "restore",
    .group = GROUP_KEEP,
    .usage = "DIR",
    .summary = "makes a store from a backup",
    .detail = "The store must be empty or not there yet. The backup stays as it is.",
    .example = "steno restore /mnt/backup/steno --into ./restored",
    .opts = restore_table,
    .opts_size = sizeof(struct restore_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_restore,
};
