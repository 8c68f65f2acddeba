/*
 * cmd_stats.c - steno stats: the figures of a store, as JSON or as a list for a person.
 */
#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/term.h"

/* "savedBytes" as "saved bytes": the names are stable in the JSON and words for a person. */
static void put_words(struct buf *b, struct str name)
{
        for (size_t i = 0; i < name.n; i++) {
                if (isupper((unsigned char)name.p[i]))
                        buf_putc(b, ' ');
                char ch = name.p[i] == '_' ? ' ' : name.p[i];
                buf_putc(b, (char)tolower((unsigned char)ch));
        }
}

static bool names_bytes(struct str name)
{
        return (name.n >= 5 && memcmp(name.p + name.n - 5, "bytes", 5) == 0) ||
               (name.n >= 5 && memcmp(name.p + name.n - 5, "Bytes", 5) == 0);
}

static void put_figure(struct buf *b, const struct json *j, json_ref key, json_ref value)
{
        uint64_t n;

        if (!json_u64(j, value, &n)) {
                if (!json_string(j, value, b, NULL))
                        buf_put_str(b, json_raw(j, value));
                return;
        }
        text_put_grouped(b, n);
        if (names_bytes(json_inner(j, key)) && n >= 1000) {
                buf_puts(b, " (");
                text_put_size(b, n);
                buf_puts(b, ")");
        }
}

static void put_object(struct cli *c, const struct json *j, json_ref obj, unsigned depth)
{
        struct buf name, value;

        buf_init(&name, 0);
        buf_init(&value, 0);
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k)) {
                json_ref v = json_value(j, k);
                buf_clear(&name);
                buf_clear(&value);
                for (unsigned i = 0; i < depth; i++)
                        buf_puts(&name, "  ");
                put_words(&name, json_inner(j, k));
                if (json_type(j, v) == JSON_OBJECT) {
                        buf_putc(&name, '\n');
                        out_style(&c->out, "1");
                        out_text(&c->out, buf_str(&name));
                        out_plain(&c->out);
                        put_object(c, j, v, depth + 1);
                        continue;
                }
                put_figure(&value, j, k, v);
                buf_putc(&value, '\n');
                struct buf row;
                buf_init(&row, 0);
                term_cell(&row, buf_str(&name), 32);
                out_str(&c->out, buf_str(&row));
                out_text(&c->out, buf_str(&value));
                buf_release(&row);
        }
        buf_release(&value);
        buf_release(&name);
}

static int run_stats(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        struct json j;
        char *json = NULL;
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        (void)opts, (void)argc, (void)argv;
        if (rc != 0)
                return rc;
        if (steno_stats(c->store, &json, &err) < 0)
                return cli_fail(c, &err);
        if (c->json)
                return cli_print_json(c, json);
        json_init(&j);
        rc = json_parse(&j, json, strlen(json), NULL, &err);
        if (rc == 0)
                put_object(c, &j, 0, 0);
        json_release(&j);
        steno_free(json);
        return rc < 0 ? cli_fail(c, &err) : EXIT_DONE;
}

const struct command cmd_stats = {
    .name = "stats",
    .group = GROUP_KEEP,
    .usage = "",
    .summary = "prints the figures of the store",
    .example = "steno stats\n"
               "steno stats --json | jq .outputs",
    .run = run_stats,
};
