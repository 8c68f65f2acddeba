/*
 * cmd_search.c - steno search: words in everything that was said, called and returned.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/term.h"

struct search_opts {
        struct opt_number limit;
        const char *cursor;
        bool all;
};

static struct str field(const struct json *j, json_ref item, const char *name, struct buf *b)
{
        buf_clear(b);
        json_string(j, json_get(j, item, name), b, NULL);
        return buf_str(b);
}

/* The snippet, its matches in bold. */
static void print_snippet(struct cli *c, const struct json *j, json_ref item, struct buf *b)
{
        struct str text = field(j, item, "snippet", b);
        json_ref matches = json_get(j, item, "matches");
        size_t at = 0;

        for (json_ref m = json_child(j, matches); m != JSON_NONE; m = json_next(j, matches, m)) {
                uint64_t from = 0, end = 0;

                json_u64(j, json_at(j, m, 0), &from);
                json_u64(j, json_at(j, m, 1), &end);
                if (from < at || end > text.n || from > end)
                        continue;
                out_text(&c->out, str_span(text.p + at, (size_t)from - at));
                out_style(&c->out, "1");
                out_text(&c->out, str_span(text.p + from, (size_t)(end - from)));
                out_plain(&c->out);
                at = (size_t)end;
        }
        out_text(&c->out, str_span(text.p + at, text.n - at));
        out_puts(&c->out, "\n");
}

static void print_item(struct cli *c, const struct json *j, json_ref item, bool projects)
{
        struct buf b;
        uint64_t seq = 0, line = 0;

        buf_init(&b, 0);
        json_u64(j, json_get(j, item, "seq"), &seq);
        json_u64(j, json_get(j, item, "line"), &line);
        if (projects) {
                out_text(&c->out, field(j, item, "project", &b));
                out_puts(&c->out, "/");
        }
        out_style(&c->out, "36");
        out_text(&c->out, field(j, item, "conversation", &b));
        out_plain(&c->out);
        out_printf(&c->out, ":%llu  ", (unsigned long long)seq);
        out_text(&c->out, field(j, item, "role", &b));
        if (field(j, item, "tool", &b).n > 0) {
                out_puts(&c->out, " ");
                out_text(&c->out, buf_str(&b));
        }
        out_puts(&c->out, "  ");
        out_text(&c->out, field(j, item, "at", &b));
        if (field(j, item, "ref", &b).n > 0) {
                out_puts(&c->out, "  ");
                out_text(&c->out, buf_str(&b));
                out_printf(&c->out, " line %llu", (unsigned long long)line);
        }
        out_puts(&c->out, "\n    ");
        print_snippet(c, j, item, &b);
        buf_release(&b);
}

static int print_answer(struct cli *c, const char *text, bool projects)
{
        struct json j;
        uint64_t missing = 0;

        json_init(&j);
        if (json_parse(&j, text, strlen(text), NULL, NULL) != 0) {
                json_release(&j);
                return cli_refuse(c, EXIT_IO, "out of memory");
        }
        json_ref items = json_get(&j, 0, "items");
        json_u64(&j, json_get(&j, 0, "missing"), &missing);
        if (c->json) {
                out_text(&c->out, str_of(text));
                out_puts(&c->out, "\n");
        } else {
                for (json_ref i = json_child(&j, items); i != JSON_NONE;
                     i = json_next(&j, items, i))
                        print_item(c, &j, i, projects);
        }
        int rc = json_count(&j, items) > 0 ? EXIT_DONE : EXIT_NOT_FOUND;
        bool denied = json_bool(&j, json_get(&j, 0, "denied"), false);
        if (denied && rc == EXIT_NOT_FOUND)
                rc = EXIT_REFUSED;
        if (missing > 0 && denied) /* told even when quiet: the answer is not one to rely on */
                cli_refuse(c, 0,
                    "%llu conversation%s not indexed and not searched, because the store cannot be "
                    "written to",
                    (unsigned long long)missing, missing == 1 ? " is" : "s are");
        else if (missing > 0 && !c->quiet)
                fprintf(stderr, "steno: search: %llu conversation%s not indexed yet\n",
                    (unsigned long long)missing, missing == 1 ? " is" : "s are");
        uint64_t in_part = 0;
        json_u64(&j, json_get(&j, 0, "partial"), &in_part);
        if (in_part > 0 && !c->quiet)
                fprintf(stderr,
                    "steno: search: %llu output%s larger than 128 MiB; only the first and the last "
                    "64 MiB are searched\n",
                    (unsigned long long)in_part, in_part == 1 ? " is" : "s are");
        json_release(&j);
        return rc;
}

static int run_search(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct search_opts *o = opts;
        struct steno_search_options opt = {.size = sizeof(opt), .cursor = o->cursor};
        struct steno_error err = {0};
        struct buf query;
        char *answer = NULL;

        if (o->limit.set && o->limit.v == 0)
                return cli_usage(c, "-n must be 1 or more");
        int rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        opt.limit = o->limit.v > 1000 ? 1000 : (uint32_t)o->limit.v;
        buf_init(&query, 0);
        for (int i = 0; i < argc; i++) {
                /* What the shell kept together is a phrase, unless it is marked as something else.
                 */
                bool phrase =
                    strchr(argv[i], ' ') != NULL && argc > 1 && strpbrk(argv[i], "\"/:") == NULL;

                buf_puts(&query, i > 0 ? " " : "");
                buf_puts(&query, phrase ? "\"" : "");
                buf_puts(&query, argv[i]);
                buf_puts(&query, phrase ? "\"" : "");
        }
        opt.query = buf_cstr(&query);
        opt.project = o->all ? NULL : c->project;
        rc = opt.query != NULL ? steno_search(c->store, &opt, &answer, &err)
                               : cli_refuse(c, EXIT_IO, "out of memory");
        buf_release(&query);
        if (rc > 0)
                return rc;
        if (rc < 0)
                return cli_fail(c, &err);
        rc = print_answer(c, answer, o->all);
        steno_free(answer);
        return rc;
}

static const struct opt search_table[] = {
    {"limit", 'n', OPT_NUMBER, "N", offsetof(struct search_opts, limit),
        "how many hits; 20 by default"},
    {"cursor", 0, OPT_TEXT, "CURSOR", offsetof(struct search_opts, cursor),
        "the next_cursor of the previous page"},
    {"all", 0, OPT_FLAG, NULL, offsetof(struct search_opts, all), "in all projects"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_search = {
    .name = "search",
    .group = GROUP_READ,
    .usage = "WORDS...",
    .summary = "finds words in messages, calls, results and outputs",
    .detail =
        "WORDS are words, \"phrases\", prefixes (wor*), -words that must not occur (in one\n"
        "argument with others, or after --) and one /regular expression/; a hit matches all.\n"
        "Filters: role:user|assistant|tool|system, tool:NAME, conversation:ID, model:NAME,\n"
        "is:error, in:output, after:2026-11-01, before:2026-12-01, and with --all project:NAME.\n\n"
        "A hit names its conversation and record, and for an output its ref and line. Messages\n"
        "come before outputs, and new ones first. Before it searches, Steno updates the index for\n"
        "up to two seconds; standard error says what is not indexed yet. Exit code 1 means no\n"
        "match.",
    .example = "steno search timeout role:tool is:error\n"
               "steno search '\"connection refused\" -localhost after:2026-11-01'\n"
               "steno search '/ERR_[A-Z]+_FAILED/ in:output'",
    .opts = search_table,
    .opts_size = sizeof(struct search_opts),
    .min_args = 1,
    .max_args = -1,
    .run = run_search,
};
