/*
 * cmd_trust.c - steno trust: lets a folder's steno.json start programs and set rules.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "cli/command.h"
#include "loop/config.h"
#include "loop/trust.h"

struct trust_opts {
        bool forget;
};

static void put_json(struct cli *c, const char *path, const char *hash)
{
        struct buf b;
        struct jsonw w = jsonw_to(&b);
        buf_init(&b, 0);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "path", path);
        jsonw_field_bool(&w, "trusted", hash != NULL);
        if (hash)
                jsonw_field_cstr(&w, "sha256", hash);
        jsonw_object_end(&w);
        out_text(&c->out, buf_str(&b));
        out_puts(&c->out, "\n");
        buf_release(&b);
}

/* A file with a mistake is trusted all the same: the mistake may only be a variable that is not set
 * now. */
static void warn_of_mistakes(struct cli *c, const char *path)
{
        struct steno_error err = {0};
        struct config config = {0};
        char *directory = strndup(path, strlen(path) - strlen("/steno.json"));
        struct config_sources from = {.env = (const char *const *)environ, .directory = directory};
        if (directory && config_load(&config, &from, &err))
                cli_say(c, "it is trusted, but no command works with it: %s", err.msg);
        else if (directory)
                config_release(&config);
        free(directory);
}

/* Folders of a clone have names from outside. */
static void put_line(struct cli *c, const char *path, const char *hash)
{
        out_printf(&c->out, "%s  ", hash);
        out_text(&c->out, str_of(path));
        out_puts(&c->out, "\n");
}

static bool has_file(const char *folder)
{
        const struct fs *fs = fs_real();
        struct stat st;
        int dir = fs->open_root(fs, folder, false);
        bool there = dir >= 0 && fs->stat(fs, dir, "steno.json", &st) == 0;
        if (dir >= 0)
                fs->close(fs, dir);
        return there;
}

static int run_trust(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct trust_opts *o = opts;
        struct steno_error err = {0};
        char *home = NULL, *named = NULL, *path = NULL, *hash = NULL;
        char *folder = realpath(argc ? argv[0] : ".", NULL);
        int rc = 0;
        if (asprintf(&named, "%s/steno.json", argc ? argv[0] : ".") < 0 ||
            (folder &&
                asprintf(&path, "%s/steno.json", strcmp(folder, "/") == 0 ? "" : folder) < 0))
                return cli_refuse(c, EXIT_IO, "out of memory");
        /* The file itself is not resolved: where it is a link, trust_record says so. */
        if (!path || !has_file(folder))
                rc = cli_refuse(c, EXIT_NOT_FOUND, "there is no %s", named);
        else if (config_home((const char *const *)environ, &home, &err) ||
                 (o->forget ? trust_forget(home, path, &err)
                            : trust_record(home, path, &hash, &err)))
                rc = cli_fail(c, &err);
        else if (c->json)
                put_json(c, path, o->forget ? NULL : hash);
        else if (o->forget)
                cli_say(c, "%s is not trusted any more", path);
        else
                put_line(c, path, hash);
        if (rc == 0 && !o->forget)
                warn_of_mistakes(c, path);
        free(home);
        free(named);
        free(folder);
        free(path);
        free(hash);
        return rc;
}

static const struct opt trust_table[] = {
    {"forget", 0, OPT_FLAG, NULL, offsetof(struct trust_opts, forget), "no longer trust it"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_trust = {
    .name = "trust",
    .group = GROUP_RUN,
    .usage = "[DIR]",
    .summary = "trusts a folder's steno.json as it is now",
    .detail =
        "Before that, Steno ignores its settings, because those of a cloned folder could start\n"
        "programs or give instructions to the model. A changed file has to be trusted again.",
    .example = "steno trust\n"
               "steno trust --forget",
    .opts = trust_table,
    .opts_size = sizeof(struct trust_opts),
    .max_args = 1,
    .run = run_trust,
};
