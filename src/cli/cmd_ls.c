/*
 * cmd_ls.c - steno ls: conversations, newest activity first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/term.h"

#define LS_DEFAULT 20
#define PAGE_MAX 1000 /* of steno_list */
#define ID_COLUMN_MIN 12
#define TITLE_COLUMN_MIN 16
#define WIDE_ENOUGH(id) (term_width() > (id) + 53 ? term_width() : (id) + 53)

struct ls_opts {
        struct opt_number n;
        const char *query;
        bool all;
        bool wait;
};

struct listing {
        struct cli *c;
        struct buf json; /* the items of all pages, comma-separated */
        uint64_t left;
        char *cursor;
        bool behind; /* a page says that it may be of before the machine booted */
};

/* One page into l->json. 1 when another follows, 0 at the end, or a negative code. */
static int take_page(struct listing *l, const struct ls_opts *o, struct steno_error *err)
{
        struct steno_list_options opt = {.size = sizeof(opt)};
        struct json j;
        char *page = NULL;
        int rc;

        json_init(&j);
        opt.limit = (uint32_t)(l->left < PAGE_MAX ? l->left : PAGE_MAX);
        opt.cursor = l->cursor;
        opt.query = o->query;
        opt.complete = o->wait;
        rc = steno_list(l->c->store, o->all ? NULL : l->c->project, &opt, &page, err);
        if (rc == 0)
                rc = json_parse(&j, page, strlen(page), NULL, err);
        if (rc < 0)
                goto out;
        json_ref items = json_get(&j, 0, "items");
        struct str inside = json_raw(&j, items);
        uint32_t count = json_count(&j, items);
        if (count > 0 && inside.n > 2) {
                if (l->json.n > 0)
                        buf_putc(&l->json, ',');
                buf_put(&l->json, inside.p + 1, inside.n - 2);
        }
        l->left -= count < l->left ? count : l->left;
        free(l->cursor);
        l->cursor = json_dup_string(&j, json_get(&j, 0, "next_cursor"));
        l->behind = l->behind || json_bool(&j, json_get(&j, 0, "catching_up"), false);
        rc = l->cursor != NULL && l->left > 0 && count > 0;
out:
        json_release(&j);
        steno_free(page);
        return rc;
}

/* Which columns fit. A narrow terminal shows two lines for each conversation instead. */
struct columns {
        unsigned id, title;
        bool messages, size;
        bool narrow;
};

#define MESSAGES_COLUMN 10
#define SIZE_COLUMN 11
#define ACTIVITY_COLUMN 14

static struct columns choose_columns(unsigned id, unsigned width)
{
        struct columns k = {.id = id, .messages = true, .size = true};
        unsigned needed = id + 2 + TITLE_COLUMN_MIN + ACTIVITY_COLUMN;
        k.size = needed + MESSAGES_COLUMN + SIZE_COLUMN <= width;
        k.messages = needed + MESSAGES_COLUMN <= width;
        k.narrow = needed > width;
        unsigned taken = needed - TITLE_COLUMN_MIN + (k.messages ? MESSAGES_COLUMN : 0) +
                         (k.size ? SIZE_COLUMN : 0);
        k.title = taken + TITLE_COLUMN_MIN < width ? width - taken : TITLE_COLUMN_MIN;
        if (k.narrow)
                k.title = width > 4 + ACTIVITY_COLUMN ? width - 2 - ACTIVITY_COLUMN : 2;
        return k;
}

static void put_row(
    struct buf *b, const struct json *j, json_ref item, const struct columns *k, int64_t now)
{
        struct buf text;
        uint64_t number = 0;

        buf_init(&text, 0);
        json_string(j, json_get(j, item, "id"), &text, NULL);
        if (k->narrow) {
                text_for_terminal(b, buf_str(&text), false);
                buf_puts(b, "\n  ");
        } else {
                term_cell(b, buf_str(&text), k->id);
                buf_puts(b, "  ");
        }
        buf_clear(&text);
        json_string(j, json_get(j, item, "title"), &text, NULL);
        term_cell(b, buf_str(&text), k->title);
        if (k->messages) {
                buf_clear(&text);
                json_u64(j, json_get(j, item, "messages"), &number);
                text_put_grouped(&text, number);
                buf_puts(b, "  ");
                term_cell_right(b, buf_str(&text), 8);
        }
        if (k->size) {
                buf_clear(&text);
                number = 0;
                json_u64(j, json_get(j, item, "bytes"), &number);
                text_put_size(&text, number);
                buf_puts(b, "  ");
                term_cell_right(b, buf_str(&text), 9);
        }
        buf_puts(b, "  ");
        term_ago(b, json_inner(j, json_get(j, item, "updatedAt")), now);
        buf_putc(b, '\n');
        buf_release(&text);
}

/* Ids are shown whole, because they are there to be copied; titles take what is left. */
static unsigned widest_id(const struct json *j, json_ref items)
{
        unsigned widest = ID_COLUMN_MIN;

        for (json_ref i = json_child(j, items); i != JSON_NONE; i = json_next(j, items, i)) {
                struct buf id, safe;
                buf_init(&id, 0);
                buf_init(&safe, 0);
                json_string(j, json_get(j, i, "id"), &id, NULL);
                text_for_terminal(&safe, buf_str(&id), false);
                unsigned columns = term_columns(buf_str(&safe));
                widest = columns > widest ? columns : widest;
                buf_release(&safe);
                buf_release(&id);
        }
        return widest;
}

static void put_table(struct cli *c, const struct json *j)
{
        const struct env *env = env_real();
        json_ref items = json_get(j, 0, "items");
        /* What is not a terminal has room for everything. */
        struct columns k = choose_columns(
            widest_id(j, items), c->out.tty ? term_width() : WIDE_ENOUGH(widest_id(j, items)));
        struct buf b;

        buf_init(&b, 0);
        term_cell(&b, STR("ID"), k.narrow ? 2 : k.id);
        buf_puts(&b, "  ");
        term_cell(&b, STR("TITLE"), k.narrow ? k.title - 2 : k.title);
        buf_puts(&b, k.messages ? "  MESSAGES" : "");
        buf_puts(&b, k.size ? "       SIZE" : "");
        buf_puts(&b, "  ACTIVITY");
        out_style(&c->out, "1");
        out_str(&c->out, buf_str(&b));
        out_plain(&c->out);
        out_puts(&c->out, "\n");
        buf_clear(&b);
        for (json_ref i = json_child(j, items); i != JSON_NONE; i = json_next(j, items, i))
                put_row(&b, j, i, &k, env->now(env));
        out_str(&c->out, buf_str(&b));
        buf_release(&b);
}

/* Printed for a person instead of an empty table. A warning before it may say why it is empty. */
static void say_none(struct cli *c, const struct ls_opts *o)
{
        if (o->query != NULL)
                cli_say(c, "no conversation has these words in its title or id");
        else if ((!o->n.set || o->n.v > 0) && !c->warned)
                cli_say(c, "no conversations here yet; steno new makes one");
}

static int put_listing(struct cli *c, struct listing *l, const struct ls_opts *o)
{
        struct steno_error err = {0};
        struct json j;
        struct buf doc;
        int rc;

        json_init(&j);
        buf_init(&doc, 0);
        buf_puts(&doc, "{\"items\":[");
        buf_put_str(&doc, buf_str(&l->json));
        buf_puts(&doc, "]");
        if (l->cursor != NULL) {
                buf_puts(&doc, ",\"next_cursor\":");
                json_put_string(&doc, str_of(l->cursor));
        }
        if (l->behind)
                buf_puts(&doc, ",\"catching_up\":true");
        buf_puts(&doc, "}");
        rc = buf_check(&doc, &err);
        if (rc == 0 && c->json) {
                out_text(&c->out, buf_str(&doc));
                out_puts(&c->out, "\n");
        } else if (rc == 0 && l->json.n == 0) {
                say_none(c, o);
        } else if (rc == 0 && (rc = json_parse(&j, doc.p, doc.n, NULL, &err)) == 0) {
                put_table(c, &j);
        }
        buf_release(&doc);
        json_release(&j);
        if (rc < 0)
                return cli_fail(c, &err);
        return o->query != NULL && l->json.n == 0 ? EXIT_NOT_FOUND : EXIT_DONE;
}

static int take_all(struct listing *l, const struct ls_opts *o, struct steno_error *err)
{
        int rc = l->left > 0;
        while (rc == 1)
                rc = take_page(l, o, err);
        return rc;
}

/* The printed list is the one from before the boot. This updates the index now, because the user
 * already has an answer; Ctrl-C does no harm. */
static int catch_up(struct cli *c, const struct listing *shown, const struct ls_opts *o)
{
        struct ls_opts again = *o;
        struct listing l = {.c = c, .left = o->n.set ? o->n.v : LS_DEFAULT};
        struct steno_error err = {0};

        again.wait = true;
        buf_init(&l.json, 0);
        if (out_flush(&c->out) == 0)
                cli_say(c, "the machine was restarted: this list may be out of date, and is being "
                           "updated");
        int rc = take_all(&l, &again, &err);
        if (rc == 0)
                cli_say(c, "%s",
                    str_eq(buf_str(&l.json), buf_str(&shown->json))
                        ? "the list was up to date"
                        : "the list has changed: run steno ls again");
        buf_release(&l.json);
        free(l.cursor);
        return rc < 0 ? cli_fail(c, &err) : EXIT_DONE;
}

/* In a pipe or with --quiet, an outdated list would look like any other. */
static bool is_marked(const struct cli *c)
{
        return c->json || (c->out.tty && !c->quiet);
}

static int run_ls(struct cli *c, const void *opts, int argc, char **argv)
{
        struct ls_opts o = *(const struct ls_opts *)opts;
        struct listing l = {.c = c, .left = o.n.set ? o.n.v : LS_DEFAULT};
        struct steno_error err = {0};
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        (void)argc, (void)argv;
        if (rc != 0)
                return rc;
        buf_init(&l.json, 0);
        o.wait = o.wait || !is_marked(c);
        rc = take_all(&l, &o, &err);
        /* The exit code says that no conversation has the words, so this must be certain. */
        if (rc == 0 && l.behind && l.json.n == 0 && o.query) {
                o.wait = true;
                l.behind = false;
                rc = take_all(&l, &o, &err);
        }
        rc = rc < 0 ? cli_fail(c, &err) : put_listing(c, &l, &o);
        if (l.behind && (rc == EXIT_DONE || rc == EXIT_NOT_FOUND)) {
                int caught_up = catch_up(c, &l, &o);
                rc = caught_up == EXIT_DONE ? rc : caught_up;
        }
        buf_release(&l.json);
        free(l.cursor);
        return rc;
}

static const struct opt ls_table[] = {
    {"limit", 'n', OPT_NUMBER, "N", offsetof(struct ls_opts, n), "how many; 20 by default"},
    {"number", 0, OPT_NUMBER, "N", offsetof(struct ls_opts, n), NULL},
    {"query", 'q', OPT_TEXT, "WORDS", offsetof(struct ls_opts, query),
        "only conversations whose title or id contains these words"},
    {"all", 'a', OPT_FLAG, NULL, offsetof(struct ls_opts, all), "conversations of every project"},
    {"wait", 0, OPT_FLAG, NULL, offsetof(struct ls_opts, wait),
        "after a start of the machine, wait until the list is up to date"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_ls = {
    .name = "ls",
    .group = GROUP_READ,
    .usage = "",
    .summary = "lists conversations, newest activity first",
    .detail =
        "Exit code 1 means that no conversation has the words of --query. After the machine was\n"
        "restarted, the first list may be out of date. It says so (\"catching_up\" with --json),\n"
        "and Steno brings it up to date after it has been printed. With --wait, with --quiet and\n"
        "in a pipe without --json, steno ls waits for the complete list.",
    .example = "steno ls -n 5\n"
               "steno ls -q build --json | jq -r '.items[].id'",
    .opts = ls_table,
    .opts_size = sizeof(struct ls_opts),
    .run = run_ls,
};
