/*
 * cmd_rm.c - steno rm, trash and purge: to the trash, back from it, and deleted for good.
 */
#include <string.h>

#include "base/env.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/term.h"

/* {"removed":"c","trashId":"..."} with --json, else a remark. */
static void say_done(
    struct cli *c, const char *word, const char *id, const char *trash_id, const char *remark)
{
        struct buf b;
        struct jsonw w = jsonw_to(&b);

        if (!c->json) {
                cli_say(c, "%s %s", id, remark);
                return;
        }
        buf_init(&b, 0);
        jsonw_object(&w);
        jsonw_field_cstr(&w, word, id);
        if (trash_id != NULL) {
                jsonw_field_cstr(&w, "trashId", trash_id);
        }
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        out_text(&c->out, buf_str(&b));
        buf_release(&b);
}

static int remove_one(struct cli *c, const char *id)
{
        struct steno_error err = {0};
        struct buf remark;
        char *trash_id = NULL;

        if (steno_remove(c->store, c->project, id, &trash_id, &err) < 0)
                return cli_fail(c, &err);
        buf_init(&remark, 0);
        buf_printf(&remark, "is in the trash; steno trash --restore %s brings it back", id);
        say_done(c, "removed", id, trash_id, buf_cstr(&remark) ? remark.p : "is in the trash");
        buf_release(&remark);
        steno_free(trash_id);
        return EXIT_DONE;
}

/* A conversation that does not exist does not keep the others from being removed. */
static int run_rm(struct cli *c, const void *opts, int argc, char **argv)
{
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        (void)opts;
        if (rc != 0)
                return rc;
        for (int i = 0; i < argc; i++) {
                int failed = remove_one(c, argv[i]);
                rc = rc ? rc : failed;
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
        const char *as;
        struct opt_number days;
        bool empty;
};

static void put_cell(struct buf *b, const struct json *j, json_ref item, const char *key, int width)
{
        struct buf text;

        buf_init(&text, 0);
        json_string(j, json_get(j, item, key), &text, NULL);
        term_cell(b, buf_str(&text), width);
        buf_puts(b, "  ");
        buf_release(&text);
}

static void put_item(struct buf *b, const struct json *j, json_ref item, int64_t now)
{
        struct buf text;
        uint64_t bytes = 0;

        put_cell(b, j, item, "id", 24);
        put_cell(b, j, item, "project", 10);
        buf_init(&text, 0);
        json_u64(j, json_get(j, item, "bytes"), &bytes);
        text_put_size(&text, bytes);
        term_cell_right(b, buf_str(&text), 9);
        buf_puts(b, "  ");
        put_cell(b, j, item, "trashId", 26);
        buf_puts(b, "deleted ");
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

static int restore(struct cli *c, const struct trash_opts *o)
{
        struct steno_error err = {0};

        if (steno_trash_restore(c->store, c->project, o->restore, o->as, &err) < 0) {
                if (err.code != STENO_ECONFLICT)
                        return cli_fail(c, &err);
                return cli_refuse(c, EXIT_REFUSED, "%s with --as", err.msg);
        }
        say_done(c, "restored", o->as ? o->as : o->restore, NULL, "is back");
        return EXIT_DONE;
}

static int run_trash(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct trash_opts *o = opts;
        int rc;

        (void)argc, (void)argv;
        if (o->restore != NULL && o->empty)
                return cli_usage(c, "--restore and --empty cannot be used together");
        if (o->as != NULL && o->restore == NULL)
                return cli_usage(c, "--as needs --restore");
        if (o->days.set && !o->empty)
                return cli_usage(c, "--days needs --empty");
        if (o->days.v > 36500)
                return cli_usage(c, "--days: more than a hundred years");
        c->sealing = true;
        rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        if (o->empty)
                return empty_trash(c, o);
        return o->restore != NULL ? restore(c, o) : list_trash(c);
}

static const struct opt trash_table[] = {
    {"restore", 0, OPT_TEXT, "CONV", offsetof(struct trash_opts, restore),
        "bring back the newest conversation with that id, or the one with that trash id"},
    {"as", 0, OPT_TEXT, "ID", offsetof(struct trash_opts, as),
        "with --restore: give it another id"},
    {"empty", 0, OPT_FLAG, NULL, offsetof(struct trash_opts, empty),
        "remove everything in the trash for good; asks, or needs --yes"},
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
               "steno trash --restore demo --as demo-2\n"
               "steno trash --empty --days 30 --yes",
    .opts = trash_table,
    .opts_size = sizeof(struct trash_opts),
    .run = run_trash,
};

/* ---- purge ---- */

/* How many conversations in the trash an id or a trash id means. */
static int count_in_trash(struct cli *c, const char *id, unsigned *count)
{
        struct steno_error err = {0};
        struct json j;
        char *json = NULL;

        if (steno_trash_list(c->store, &json, &err) < 0)
                return cli_fail(c, &err);
        json_init(&j);
        int rc = json_parse(&j, json, strlen(json), NULL, &err);
        json_ref items = rc == 0 ? json_get(&j, 0, "items") : JSON_NONE;
        for (json_ref i = json_child(&j, items); i != JSON_NONE; i = json_next(&j, items, i))
                *count += json_is(&j, json_get(&j, i, "project"), c->project) &&
                          (json_is(&j, json_get(&j, i, "id"), id) ||
                              json_is(&j, json_get(&j, i, "trashId"), id));
        json_release(&j);
        steno_free(json);
        return rc < 0 ? cli_fail(c, &err) : 0;
}

static int confirm_purge(struct cli *c, const char *id)
{
        struct steno_conv *conv;
        unsigned count = 0;

        if (steno_conv_open(c->store, c->project, id, &conv, NULL) == 0) {
                steno_conv_close(conv);
                return cli_confirm(c, "drop the deleted bytes of %s from the disk", id);
        }
        int rc = count_in_trash(c, id, &count);
        if (rc != 0)
                return rc;
        if (count > 1)
                return cli_confirm(
                    c, "remove %u conversations called %s from the trash for good", count, id);
        return cli_confirm(c, "remove %s from the trash for good", id);
}

static uint64_t damaged_places(const char *report)
{
        struct json j;
        uint64_t n = 0;

        json_init(&j);
        if (json_parse(&j, report, strlen(report), NULL, NULL) == 0)
                json_u64(&j, json_get(&j, 0, "damaged"), &n);
        json_release(&j);
        return n;
}

static int run_purge(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        char *report = NULL;
        uint64_t damaged;
        int rc;

        (void)opts, (void)argc;
        c->sealing = true;
        rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc == 0)
                rc = confirm_purge(c, argv[0]);
        if (rc != 0)
                return rc;
        if (steno_purge(c->store, c->project, argv[0], &report, &err) < 0)
                return cli_fail(c, &err);
        damaged = damaged_places(report);
        rc = cli_print_json(c, report);
        return rc != 0 || damaged == 0
                   ? rc
                   : cli_refuse(c, EXIT_CORRUPT,
                         "%llu damaged place%s in the log could not be purged, and may hold "
                         "deleted bytes (steno check --repair moves such bytes to quarantine/)",
                         (unsigned long long)damaged, damaged == 1 ? "" : "s");
}

const struct command cmd_purge = {
    .name = "purge",
    .group = GROUP_KEEP,
    .usage = "CONV",
    .summary = "removes the bytes of deleted messages from the disk",
    .detail =
        "Each deleted message leaves a tombstone with its seq. If no conversation has the id,\n"
        "those with that id or trash id are removed from the trash for good. On a terminal it\n"
        "asks; elsewhere it needs --yes. Damaged bytes are not removed, and the exit code is 4:\n"
        "run steno check --repair first, and look into quarantine/.",
    .example = "steno purge demo --yes",
    .min_args = 1,
    .max_args = 1,
    .run = run_purge,
};
