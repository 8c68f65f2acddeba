/*
 * cmd_token.c - steno token: who may use the server.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "cli/command.h"
#include "base/json.h"
#include "http/identities.h"

/* Opens the tokens of the store. The store is made if there is none, because a token may be made
 * before anything else. */
static int open_tokens(struct cli *c, struct identities **out)
{
        struct steno_error err = {0};
        int rc = cli_open_store(c, CLI_CREATE);
        if (rc != 0)
                return rc;
        return identities_open(c->store, out, &err) ? cli_fail(c, &err) : 0;
}

struct new_opts {
        const char *label;
};

static int run_new(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct new_opts *o = opts;
        struct steno_error err = {0};
        struct identities *ids;
        char token[TOKEN_TEXT];
        (void)argc, (void)argv;
        int rc = open_tokens(c, &ids);
        if (rc != 0)
                return rc;
        rc = identities_add(ids, c->project, NULL, o->label, token, &err);
        identities_close(ids);
        if (rc)
                return cli_fail(c, &err);
        out_printf(&c->out, c->json ? "{\"token\":\"%s\"}\n" : "%s\n", token);
        return EXIT_DONE;
}

static int run_ls(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        struct identities *ids;
        struct buf b;
        struct json j;
        (void)opts, (void)argc, (void)argv;
        int rc = open_tokens(c, &ids);
        if (rc != 0)
                return rc;
        buf_init(&b, 0);
        json_init(&j);
        rc = identities_list(ids, &b, &err);
        if (rc == 0 && c->json) {
                out_text(&c->out, buf_str(&b));
                out_puts(&c->out, "\n");
        } else if (rc == 0) {
                rc = json_parse(&j, b.p, b.n, NULL, &err);
                json_ref items = json_get(&j, 0, "items");
                for (json_ref e = json_child(&j, items); rc == 0 && e != JSON_NONE;
                     e = json_next(&j, items, e)) {
                        static const char *const KEYS[] = {"id", "project", "createdAt", "label"};
                        for (int i = 0; i < 4; i++) {
                                char *text = json_dup_string(&j, json_get(&j, e, KEYS[i]));
                                out_text(&c->out, str_of(text ? text : ""));
                                out_puts(&c->out, i < 3 ? "  " : "\n");
                                free(text);
                        }
                }
        }
        json_release(&j);
        buf_release(&b);
        identities_close(ids);
        return rc ? cli_fail(c, &err) : EXIT_DONE;
}

static int run_rm(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        struct identities *ids;
        (void)opts, (void)argc;
        int rc = open_tokens(c, &ids);
        if (rc != 0)
                return rc;
        rc = identities_remove(ids, argv[0], &err);
        identities_close(ids);
        return rc ? cli_fail(c, &err) : EXIT_DONE;
}

static const struct opt new_table[] = {
    {"label", 0, OPT_TEXT, "TEXT", offsetof(struct new_opts, label),
        "what the token is for; token ls shows this"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_token_new = {
    .name = "token new",
    .group = GROUP_SERVE,
    .usage = "",
    .summary = "makes a token for the project and prints it this once",
    .detail = "Only its hash is stored. A running server accepts it within a second.",
    .example = "steno token new --project research --label 'the laptop'",
    .opts = new_table,
    .opts_size = sizeof(struct new_opts),
    .run = run_new,
};

const struct command cmd_token_ls = {
    .name = "token ls",
    .group = GROUP_SERVE,
    .usage = "",
    .summary = "lists the tokens by id",
    .example = "steno token ls",
    .run = run_ls,
};

const struct command cmd_token_rm = {
    .name = "token rm",
    .group = GROUP_SERVE,
    .usage = "TOKEN_ID",
    .summary = "revokes a token; its open streams end within a second",
    .example = "steno token rm tok_01J8Z0000000000000000000AA",
    .min_args = 1,
    .max_args = 1,
    .run = run_rm,
};
