/*
 * cmd_rm.c - steno rm, trash and purge: out of sight, back again, and gone.
 */
#include <string.h>

#include "base/env.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/term.h"

/* {"removed":"c"} with --json, else a remark. */
static void say_done(struct cli *c, const char *word, const char *id, const char *remark)
{
        struct buf b;
        struct jsonw w = jsonw_to(&b);

        if (!c->json) {
                cli_say(c, "%s %s", id, remark);
                return;
        }
        buf_init(&b, 0);
        jsonw_object(&w);
        jsonw_key(&w, word);
        jsonw_cstr(&w, id);
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        out_text(&c->out, buf_str(&b));
        buf_release(&b);
}

static int run_rm(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        (void)opts;
        for (int i = 0; i < argc && rc == 0; i++) {
                if (steno_remove(c->store, c->project, argv[i], &err) < 0)
                        rc = cli_fail(c, &err);
                else
                        say_done(c, "removed", argv[i],
                            "is in the trash; steno trash --restore brings it back");
        }
        return rc;
}

const struct command cmd_rm = {
    .name = "rm",
    .group = GROUP_KEEP,
    .usage = "CONV...",
    .summary = "moves conversations to the trash",
    .example = "steno rm demo\n"
               "steno trash --restore demo",
    .min_args = 1,
    .max_args = -1,
    .run = run_rm,
};

/* ---- trash ---- */

struct trash_opts {
        const char *restore;
        struct opt_number days;
        bool empty;
};

static void put_item(struct buf *b, const struct json *j, json_ref item, int64_t now)
{
        struct buf text;
        uint64_t bytes = 0;

        buf_init(&text, 0);
        json_string(j, json_get(j, item, "id"), &text, NULL);
        term_cell(b, buf_str(&text), 32);
        buf_clear(&text);
        buf_puts(b, "  ");
        json_string(j, json_get(j, item, "project"), &text, NULL);
        term_cell(b, buf_str(&text), 12);
        buf_clear(&text);
        json_u64(j, json_get(j, item, "bytes"), &bytes);
        text_put_size(&text, bytes);
        buf_puts(b, "  ");
        term_cell_right(b, buf_str(&text), 9);
        buf_puts(b, "  deleted ");
        term_ago(b, json_inner(j, json_get(j, item, "deletedAt")), now);
        buf_putc(b, '\n');
        buf_release(&text);
}

static int list_trash(struct cli *c)
{
        struct steno_error err = {0};
        const struct env *env = env_real();
        struct json j;
        struct buf b;
        char *json = NULL;
        int rc;

        if (steno_trash_list(c->store, &json, &err) < 0)
                return cli_fail(c, &err);
        if (c->json)
                return cli_print_json(c, json);
        json_init(&j);
        buf_init(&b, 0);
        rc = json_parse(&j, json, strlen(json), NULL, &err);
        if (rc == 0) {
                json_ref items = json_get(&j, 0, "items");
                for (json_ref i = json_child(&j, items); i != JSON_NONE;
                     i = json_next(&j, items, i))
                        put_item(&b, &j, i, env->now(env));
                out_str(&c->out, buf_str(&b));
                if (json_count(&j, items) == 0)
                        cli_say(c, "the trash is empty");
        }
        buf_release(&b);
        json_release(&j);
        steno_free(json);
        return rc < 0 ? cli_fail(c, &err) : EXIT_DONE;
}

static int empty_trash(struct cli *c, const struct trash_opts *o)
{
        struct steno_error err = {0};
        uint64_t count = 0;
        int rc = o->days.set
                     ? cli_confirm(c, "remove what was deleted more than %llu days ago for good",
                           (unsigned long long)o->days.v)
                     : cli_confirm(c, "remove everything in the trash for good");

        if (rc != 0)
                return rc;
        if (steno_trash_empty(c->store, (unsigned)o->days.v, &count, &err) < 0)
                return cli_fail(c, &err);
        if (c->json)
                out_printf(&c->out, "{\"removed\":%llu}\n", (unsigned long long)count);
        else
                cli_say(c, "%llu conversation%s removed", (unsigned long long)count,
                    count == 1 ? "" : "s");
        return EXIT_DONE;
}

static int run_trash(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct trash_opts *o = opts;
        struct steno_error err = {0};
        int rc;

        (void)argc, (void)argv;
        if (o->restore != NULL && o->empty)
                return cli_usage(c, "--restore and --empty do not go together");
        if (o->days.set && !o->empty)
                return cli_usage(c, "--days goes with --empty");
        if (o->days.v > 36500)
                return cli_usage(c, "--days: more than a hundred years");
        rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        if (o->empty)
                return empty_trash(c, o);
        if (o->restore == NULL)
                return list_trash(c);
        if (steno_trash_restore(c->store, c->project, o->restore, &err) < 0)
                return cli_fail(c, &err);
        say_done(c, "restored", o->restore, "is back");
        return EXIT_DONE;
}

static const struct opt trash_table[] = {
    {"restore", 0, OPT_TEXT, "CONV", offsetof(struct trash_opts, restore), "bring it back"},
    {"empty", 0, OPT_FLAG, NULL, offsetof(struct trash_opts, empty),
        "remove for good what is in the trash; asks, or needs --yes"},
    {"days", 0, OPT_NUMBER, "N", offsetof(struct trash_opts, days),
        "with --empty: only what was deleted more than N days ago"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_trash = {
    .name = "trash",
    .group = GROUP_KEEP,
    .usage = "",
    .summary = "lists the trash, brings a conversation back, or empties it",
    .example = "steno trash\n"
               "steno trash --restore demo\n"
               "steno trash --empty --days 30 --yes",
    .opts = trash_table,
    .opts_size = sizeof(struct trash_opts),
    .run = run_trash,
};

/* ---- purge ---- */

static int run_purge(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        char *report = NULL;
        int rc;

        (void)opts, (void)argc;
        rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc == 0)
                rc = cli_confirm(c, "drop the deleted bytes of %s from the disk", argv[0]);
        if (rc != 0)
                return rc;
        if (steno_purge(c->store, c->project, argv[0], &report, &err) < 0)
                return cli_fail(c, &err);
        return cli_print_json(c, report);
}

const struct command cmd_purge = {
    .name = "purge",
    .group = GROUP_KEEP,
    .usage = "CONV",
    .summary = "drops the bytes of deleted messages from the disk",
    .detail = "The seqs stay, as tombstones. A conversation that is in the trash is removed\n"
              "altogether. Asks on a terminal, needs --yes elsewhere.",
    .example = "steno purge demo --yes",
    .min_args = 1,
    .max_args = 1,
    .run = run_purge,
};
