/*
 * cmd_context.c - steno context list, read, tail, grep: one operation of the library each.
 */
#include <string.h>

#include "base/env.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/cli_follow.h"
#include "cli/term.h"

struct context_opts {
        struct opt_number limit;
        struct opt_number offset;
        struct opt_number line;
        struct opt_number count;
        struct opt_number lines;
        struct opt_number max;
        struct opt_number context;
        struct opt_number from;
        const char *kind;
        bool all;
        bool follow;
        bool match_case;
        bool back;
};

static void put_number(struct jsonw *w, const char *key, const struct opt_number *n)
{
        if (!n->set)
                return;
        jsonw_field_u64(w, key, n->v);
}

static void put_text(struct jsonw *w, const char *key, const char *value)
{
        if (value == NULL)
                return;
        jsonw_field_cstr(w, key, value);
}

typedef int (*print_fn)(struct cli *c, const struct json *j, const struct context_opts *o);

/* The operation, then JSON as it came, or `print`. `args` has its closing brace. */
static int context_op(struct cli *c, const char *op, const struct buf *args, print_fn print,
    const struct context_opts *o)
{
        struct steno_error err = {0};
        struct json j;
        char *answer = NULL;
        int rc = buf_check(args, &err);

        json_init(&j);
        if (rc == 0)
                rc = steno_context(c->conv, op, args->p, args->n, &answer, &err);
        if (rc == 0)
                rc = json_parse(&j, answer, strlen(answer), NULL, &err);
        if (rc < 0) {
                rc = cli_fail(c, &err);
        } else {
                if (c->json) {
                        out_text(&c->out, str_of(answer));
                        out_puts(&c->out, "\n");
                }
                rc = print(c, &j, o);
        }
        json_release(&j);
        steno_free(answer);
        return rc;
}

/* ---- list ---- */

static void list_row(struct buf *b, const struct json *j, json_ref item, int64_t now)
{
        struct buf text;
        uint64_t n = 0;
        char iso[TIME_TEXT];

        buf_init(&text, 0);
        json_string(j, json_get(j, item, "id"), &text, NULL);
        term_cell(b, buf_str(&text), 32);
        buf_clear(&text);
        json_u64(j, json_get(j, item, "byteSize"), &n);
        text_put_size(&text, n);
        term_cell_right(b, buf_str(&text), 9);
        buf_puts(b, "  ");
        buf_clear(&text);
        json_string(j, json_get(j, item, "mimeType"), &text, NULL);
        term_cell(b, buf_str(&text), 18);
        buf_clear(&text);
        buf_puts(b, "  ");
        n = 0;
        if (json_u64(j, json_get(j, item, "createdAt"), &n)) {
                time_format((int64_t)n, iso);
                term_ago(&text, str_of(iso), now);
        }
        term_cell(b, buf_str(&text), 12);
        buf_clear(&text);
        buf_puts(b, "  ");
        json_string(j, json_get(j, item, "hint"), &text, NULL);
        term_cell(b, buf_str(&text), 0);
        buf_putc(b, '\n');
        buf_release(&text);
}

static int print_list(struct cli *c, const struct json *j, const struct context_opts *o)
{
        const struct env *env = env_real();
        json_ref items = json_get(j, 0, "items");
        struct buf b;

        (void)o;
        if (c->json)
                return EXIT_DONE;
        buf_init(&b, 0);
        for (json_ref i = json_child(j, items); i != JSON_NONE; i = json_next(j, items, i))
                list_row(&b, j, i, env->now(env));
        out_str(&c->out, buf_str(&b));
        buf_release(&b);
        if (json_count(j, items) == 0)
                cli_say(c, "no stored outputs here: all results are small");
        return EXIT_DONE;
}

static int run_list(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct context_opts *o = opts;
        struct buf args;
        struct jsonw w = jsonw_to(&args);
        int rc = cli_open_conv(c, argv[0]);

        (void)argc;
        if (rc != 0)
                return rc;
        buf_init(&args, 0);
        jsonw_object(&w);
        put_number(&w, "limit", &o->limit);
        put_text(&w, "kind", o->kind);
        jsonw_object_end(&w);
        rc = context_op(c, "list", &args, print_list, o);
        buf_release(&args);
        return rc;
}

/* ---- read and tail ---- */

static int base64_digit(char ch)
{
        static const char digits[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *at = ch != 0 ? strchr(digits, ch) : NULL;

        return at != NULL ? (int)(at - digits) : -1;
}

static void put_base64(struct buf *b, struct str s)
{
        uint32_t bits = 0;
        unsigned have = 0;

        for (size_t i = 0; i < s.n; i++) {
                int d = base64_digit(s.p[i]);
                if (d < 0)
                        continue;
                bits = bits << 6 | (uint32_t)d;
                have += 6;
                if (have >= 8) {
                        have -= 8;
                        buf_putc(b, (char)(bits >> have & 0xFF));
                }
        }
}

static void put_content(struct cli *c, const struct json *j)
{
        struct buf b;

        buf_init(&b, 0);
        if (json_is(j, json_get(j, 0, "encoding"), "base64"))
                put_base64(&b, json_inner(j, json_get(j, 0, "content")));
        else
                json_string(j, json_get(j, 0, "content"), &b, NULL);
        out_text(&c->out, buf_str(&b));
        if (c->out.tty && b.n > 0 && b.p[b.n - 1] != '\n')
                out_puts(&c->out, "\n");
        buf_release(&b);
}

/* Tells the person about numbers that were clamped. The library made the sentence; which member has
 * it depends on the operation. */
static void say_note(struct cli *c, const struct json *j)
{
        struct buf b;

        buf_init(&b, 0);
        if (json_string(j, json_get(j, 0, "notes"), &b, NULL) && buf_cstr(&b) != NULL)
                cli_say(c, "steno: %s: %s", c->cmd->name, b.p);
        buf_release(&b);
}

static int print_read(struct cli *c, const struct json *j, const struct context_opts *o)
{
        uint64_t next = 0, total = 0;

        (void)o;
        if (c->json)
                return EXIT_DONE;
        put_content(c, j);
        out_flush(&c->out);
        say_note(c, j);
        if (!json_bool(j, json_get(j, 0, "done"), true) &&
            json_u64(j, json_get(j, 0, "next_offset"), &next) &&
            json_u64(j, json_get(j, 0, "total_bytes"), &total))
                cli_say(c,
                    "steno: %s: up to byte %llu of %llu; continue with --offset %llu, or --all",
                    c->cmd->name, (unsigned long long)next, (unsigned long long)total,
                    (unsigned long long)next);
        return EXIT_DONE;
}

static int read_all(struct cli *c, const char *ref, const struct context_opts *o)
{
        struct steno_error err = {0};

        if (steno_context_raw(c->conv, ref, o->offset.v, 0, out_sink, &c->out, &err) < 0)
                return cli_fail(c, &err);
        out_text_end(&c->out);
        return EXIT_DONE;
}

static int run_read(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct context_opts *o = opts;
        struct buf args;
        struct jsonw w = jsonw_to(&args);
        int rc;

        (void)argc;
        bool lines = o->line.set || o->count.set;
        if (lines && (o->offset.set || o->all || (o->limit.set && o->count.set)))
                return cli_usage(
                    c, "use either bytes (--offset, --limit, --all) or lines (--line, --count)");
        if (o->all && (o->limit.set || c->json))
                return cli_usage(c, "with --all, only --offset can be used");
        rc = cli_open_conv(c, argv[0]);
        if (rc != 0)
                return rc;
        if (o->all)
                return read_all(c, argv[1], o);
        buf_init(&args, 0);
        jsonw_object(&w);
        put_text(&w, "ref", argv[1]);
        put_number(&w, "offset", &o->offset);
        put_number(&w, lines ? "count" : "limit", &o->limit);
        put_number(&w, "line", &o->line);
        put_number(&w, "count", &o->count);
        jsonw_object_end(&w);
        rc = context_op(c, "read", &args, print_read, o);
        buf_release(&args);
        return rc;
}

static int print_tail(struct cli *c, const struct json *j, const struct context_opts *o)
{
        (void)o;
        if (c->json)
                return EXIT_DONE;
        put_content(c, j);
        out_flush(&c->out);
        say_note(c, j);
        return EXIT_DONE;
}

static int run_tail(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct context_opts *o = opts;
        struct buf args;
        struct jsonw w = jsonw_to(&args);
        int rc;

        (void)argc;
        if (o->follow && c->json)
                return cli_usage(c, "-f and --json cannot be used together");
        rc = cli_open_conv(c, argv[0]);
        if (rc != 0)
                return rc;
        if (o->follow)
                return cli_follow_artifact(c, argv[1], o->lines.set ? o->lines.v : 10);
        buf_init(&args, 0);
        jsonw_object(&w);
        put_text(&w, "ref", argv[1]);
        put_number(&w, "lines", &o->lines);
        jsonw_object_end(&w);
        rc = context_op(c, "tail", &args, print_tail, o);
        buf_release(&args);
        return rc;
}

/* ---- grep ---- */

static void put_line(struct cli *c, uint64_t number, char mark, struct str text)
{
        out_style(&c->out, "32");
        out_printf(&c->out, "%llu", (unsigned long long)number);
        out_plain(&c->out);
        out_put(&c->out, &mark, 1);
        out_text(&c->out, text);
        out_puts(&c->out, "\n");
}

/* Lines around a match: an array of strings, or of {line, content}. */
static void put_around(struct cli *c, const struct json *j, json_ref lines, uint64_t first)
{
        struct buf b;

        buf_init(&b, 0);
        for (json_ref l = json_child(j, lines); l != JSON_NONE; l = json_next(j, lines, l)) {
                buf_clear(&b);
                if (!json_string(j, l, &b, NULL))
                        json_string(j, json_get(j, l, "content"), &b, NULL);
                put_line(c, first++, '-', buf_str(&b));
        }
        buf_release(&b);
}

static void put_match(struct cli *c, const struct json *j, json_ref m)
{
        json_ref before = json_get(j, m, "before");
        uint64_t line = 0;
        struct buf b;

        json_u64(j, json_get(j, m, "line"), &line);
        buf_init(&b, 0);
        if (json_is(j, json_get(j, m, "encoding"), "base64"))
                put_base64(&b, json_inner(j, json_get(j, m, "content")));
        else
                json_string(j, json_get(j, m, "content"), &b, NULL);
        put_around(c, j, before, line - json_count(j, before));
        put_line(c, line, ':', buf_str(&b));
        put_around(c, j, json_get(j, m, "after"), line + 1);
        buf_release(&b);
}

static int print_grep(struct cli *c, const struct json *j, const struct context_opts *o)
{
        json_ref matches = json_get(j, 0, "matches");
        bool first = true;
        uint64_t total = 0, next = 0;

        json_u64(j, json_get(j, 0, "total_matches"), &total);
        json_u64(j, json_get(j, 0, "next_line"), &next);

        for (json_ref m = json_child(j, matches); m != JSON_NONE && !c->json;
             m = json_next(j, matches, m)) {
                if (!first && o->context.v > 0)
                        out_puts(&c->out, "--\n");
                first = false;
                put_match(c, j, m);
        }
        if (!c->json) {
                out_flush(&c->out);
                say_note(c, j);
                if (json_bool(j, json_get(j, 0, "truncated"), false))
                        cli_say(c,
                            "steno: %s: %u matches of %llu are shown; continue with --from %llu%s",
                            c->cmd->name, json_count(j, matches), (unsigned long long)total,
                            (unsigned long long)next, o->back ? " --back" : "");
        }
        return json_count(j, matches) > 0 ? EXIT_DONE : EXIT_NOT_FOUND;
}

static int run_grep(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct context_opts *o = opts;
        struct buf args;
        struct jsonw w = jsonw_to(&args);
        int rc = cli_open_conv(c, argv[0]);

        (void)argc;
        if (rc != 0)
                return rc;
        buf_init(&args, 0);
        jsonw_object(&w);
        put_text(&w, "ref", argv[1]);
        put_text(&w, "pattern", argv[2]);
        put_number(&w, "max_results", &o->max);
        put_number(&w, "context_lines", &o->context);
        put_number(&w, "from_line", &o->from);
        put_text(&w, "direction", o->back ? "backward" : NULL);
        jsonw_field_bool(&w, "case_sensitive", o->match_case);
        jsonw_object_end(&w);
        rc = context_op(c, "grep", &args, print_grep, o);
        buf_release(&args);
        return rc;
}

/* ---- rows ---- */

#define AT(field) offsetof(struct context_opts, field)

static const struct opt list_table[] = {
    {"limit", 'n', OPT_NUMBER, "N", AT(limit), "how many, newest first; 50 by default"},
    {"kind", 0, OPT_TEXT, "K", AT(kind), "only this kind"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

static const struct opt read_table[] = {
    {"offset", 0, OPT_NUMBER, "B", AT(offset), "from this byte on; 0 by default"},
    {"line", 0, OPT_NUMBER, "N", AT(line), "from this line on; the first line is 1"},
    {"limit", 'n', OPT_NUMBER, "N", AT(limit),
        "at most this many bytes (8192 by default, 12288 at most), or lines with --line"},
    {"count", 0, OPT_NUMBER, "N", AT(count), NULL},
    {"all", 0, OPT_FLAG, NULL, AT(all), "every byte, unchanged"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

static const struct opt tail_table[] = {
    {"limit", 'n', OPT_NUMBER, "N", AT(lines), "how many lines; 200 by default (10 with -f)"},
    {"lines", 0, OPT_NUMBER, "N", AT(lines), NULL},
    {"follow", 'f', OPT_FLAG, NULL, AT(follow),
        "print what is added, until the output is complete"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

static const struct opt grep_table[] = {
    {"limit", 'n', OPT_NUMBER, "N", AT(max), "at most this many matches; 50 by default"},
    {"max", 'm', OPT_NUMBER, "N", AT(max), NULL},
    {"context", 'C', OPT_NUMBER, "N", AT(context), "lines around each match"},
    {"case", 0, OPT_FLAG, NULL, AT(match_case), "distinguish upper and lower case"},
    {"from", 0, OPT_NUMBER, "N", AT(from), "only matches from this line on"},
    {"back", 0, OPT_FLAG, NULL, AT(back),
        "the last matches up to the line of --from, or of the whole output"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_context_list = {
    .name = "context list",
    .group = GROUP_CONTEXT,
    .usage = "CONV",
    .summary = "lists the large outputs of a conversation, newest first",
    .example = "steno context list demo\n"
               "steno context list demo --json | jq -r '.items[0].id'",
    .opts = list_table,
    .opts_size = sizeof(struct context_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_list,
};

const struct command cmd_context_read = {
    .name = "context read",
    .group = GROUP_CONTEXT,
    .usage = "CONV REF",
    .summary = "prints a part of an output, by bytes or by lines",
    .example = "steno context read demo ctx_01J... --line 800 --limit 40\n"
               "steno context read demo ctx_01J... --all > output.txt",
    .opts = read_table,
    .opts_size = sizeof(struct context_opts),
    .min_args = 2,
    .max_args = 2,
    .run = run_read,
};

const struct command cmd_context_tail = {
    .name = "context tail",
    .group = GROUP_CONTEXT,
    .usage = "CONV REF",
    .summary = "prints the last lines of an output, also while it grows",
    .example = "steno context tail demo ctx_01J... --limit 50\n"
               "steno context tail demo ctx_01J... -f",
    .opts = tail_table,
    .opts_size = sizeof(struct context_opts),
    .min_args = 2,
    .max_args = 2,
    .run = run_tail,
};

const struct command cmd_context_grep = {
    .name = "context grep",
    .group = GROUP_CONTEXT,
    .usage = "CONV REF PATTERN",
    .summary = "searches an output for a regular expression",
    .detail = "Exit code 1 means that nothing matches. A pattern that takes too long is stopped.",
    .example = "steno context grep demo ctx_01J... 'error|exception' --context 2",
    .opts = grep_table,
    .opts_size = sizeof(struct context_opts),
    .min_args = 3,
    .max_args = 3,
    .run = run_grep,
};
