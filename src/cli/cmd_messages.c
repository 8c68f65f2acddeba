/*
 * cmd_messages.c - steno messages: a view of a conversation as JSON.
 */
#include <string.h>

#include "base/json.h"
#include "cli/command.h"

struct messages_opts {
        const char *format;
        struct opt_list edit;
        const char *pin;
        const char *outputs;
        struct opt_number budget;
        struct opt_number last;
        struct opt_number after;
        struct opt_number before;
        struct opt_number limit;
        bool report;
        bool strict;
        bool all;
};

/* Several --edit become one array: each is an object, an array of them, or "auto". */
static const char *join_edits(const struct opt_list *edit, struct buf *b)
{
        if (edit->n == 0)
                return NULL;
        if (edit->n == 1 && edit->v[0][0] != '{')
                return edit->v[0];
        buf_putc(b, '[');
        for (size_t i = 0; i < edit->n; i++) {
                struct str s = str_of(edit->v[i]);
                if (s.n >= 2 && s.p[0] == '[' && s.p[s.n - 1] == ']')
                        s = str_span(s.p + 1, s.n - 2);
                if (b->n > 1 && s.n > 0)
                        buf_putc(b, ',');
                buf_put_str(b, s);
        }
        buf_putc(b, ']');
        return buf_cstr(b);
}

/* Ranges of seqs that are named on one line. */
#define RANGES_SAID 10

/* "3, 12 to 764" of the report's [3,{"from":12,"to":764}] */
static void put_ranges(struct buf *b, const struct json *j, json_ref list)
{
        uint32_t said = 0;

        for (json_ref r = json_child(j, list); r != JSON_NONE; r = json_next(j, list, r)) {
                uint64_t from = 0, to = 0;

                if (said++ == RANGES_SAID) {
                        buf_puts(b, ", ...");
                        return;
                }
                buf_puts(b, said > 1 ? ", " : "");
                if (json_u64(j, r, &from)) {
                        buf_printf(b, "%llu", (unsigned long long)from);
                        continue;
                }
                json_u64(j, json_get(j, r, "from"), &from);
                json_u64(j, json_get(j, r, "to"), &to);
                buf_printf(b, "%llu to %llu", (unsigned long long)from, (unsigned long long)to);
        }
}

/* Damage is always reported, even without --report. */
static void say_damage(struct cli *c, const struct json *report)
{
        struct buf ranges;
        uint64_t n = 0;

        if (!json_u64(report, json_get(report, 0, "damaged_count"), &n) || n == 0)
                return;
        buf_init(&ranges, 0);
        put_ranges(&ranges, report, json_get(report, 0, "damaged"));
        cli_refuse(c, 0, "%llu damaged record%s, left out or incomplete: seq %s (steno check)",
            (unsigned long long)n, n == 1 ? "" : "s", buf_cstr(&ranges));
        buf_release(&ranges);
}

/* As in Acontext, an id that does not exist pins nothing. A warning says so. */
static void say_lost_pin(struct cli *c, const struct json *report, const char *pin)
{
        json_ref at = json_get(report, 0, "edit_at_message_id");

        if (pin != NULL && (at == JSON_NONE || !json_is(report, at, pin)))
                cli_refuse(c, 0, "no message \"%s\": nothing is pinned", pin);
}

static void say_what_matters(struct cli *c, const struct messages_opts *o, const char *report)
{
        struct json j;

        json_init(&j);
        if (json_parse(&j, report, strlen(report), NULL, NULL) == 0) {
                say_damage(c, &j);
                cli_say_lost(c, report);
                say_lost_pin(c, &j, o->pin);
        }
        json_release(&j);
}

/* The library takes 0 for "not given", but a person who types 0 wants no messages. */
static bool wants_none(const struct opt_number *n)
{
        return n->set && n->v == 0;
}

static int run_messages(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct messages_opts *o = opts;
        struct steno_view_options opt = {.size = sizeof(opt)};
        struct steno_error err = {0};
        struct buf edits;
        char *report = NULL;
        int rc = cli_open_conv(c, argv[0]);

        (void)argc;
        if (rc != 0)
                return rc;
        buf_init(&edits, 0);
        opt.format = o->format;
        opt.edit_strategies = join_edits(&o->edit, &edits);
        opt.pin = o->pin;
        opt.budget = wants_none(&o->budget) ? 1 : o->budget.v;
        opt.after_seq = o->after.v;
        opt.before_seq = o->before.v;
        opt.limit = o->limit.v;
        opt.last = o->last.v;
        if (wants_none(&o->last) || wants_none(&o->limit) || wants_none(&o->before))
                opt.before_seq = 1;
        opt.count_tokens = o->report;
        opt.all_messages = o->all;
        opt.no_ids = !o->report;
        opt.strict = o->strict;
        if (o->outputs != NULL)
                opt.outputs =
                    strcmp(o->outputs, "full") == 0 ? STENO_OUTPUTS_FULL : STENO_OUTPUTS_STUB;
        rc = steno_view(c->conv, &opt, out_sink, &c->out, &report, &err);
        buf_release(&edits);
        if (rc < 0)
                return cli_fail(c, &err);
        cli_end_view(c, o->report ? report : NULL);
        if (!o->report)
                say_what_matters(c, o, report);
        steno_free(report);
        return EXIT_DONE;
}

static const struct opt messages_table[] = {
    {"format", 0, OPT_TEXT, "F", offsetof(struct messages_opts, format),
        "openai (default), responses, anthropic, gemini, chat, uimessage, stored, ..."},
    {"edit", 0, OPT_LIST, "JSON", offsetof(struct messages_opts, edit),
        "an edit strategy, an array of them, or auto; can be repeated"},
    {"pin", 0, OPT_TEXT, "MSG", offsetof(struct messages_opts, pin),
        "edit as if the history ended at this message, so that a prompt cache stays valid"},
    {"budget", 0, OPT_NUMBER, "N", offsetof(struct messages_opts, budget), "at most N tokens"},
    {"last", 0, OPT_NUMBER, "N", offsetof(struct messages_opts, last), "only the last N messages"},
    {"after", 0, OPT_NUMBER, "SEQ", offsetof(struct messages_opts, after),
        "only messages after this seq"},
    {"before", 0, OPT_NUMBER, "SEQ", offsetof(struct messages_opts, before),
        "only messages before this seq"},
    {"limit", 'n', OPT_NUMBER, "N", offsetof(struct messages_opts, limit),
        "at most N messages, oldest first"},
    {"outputs", 0, OPT_CHOICE, "stub|full", offsetof(struct messages_opts, outputs),
        "large tool outputs as a model sees them, or whole"},
    {"all", 0, OPT_FLAG, NULL, offsetof(struct messages_opts, all),
        "include messages that are kept out of contexts"},
    {"strict", 0, OPT_FLAG, NULL, offsetof(struct messages_opts, strict),
        "only members that the provider's own types have"},
    {"report", 0, OPT_FLAG, NULL, offsetof(struct messages_opts, report),
        "repairs, losses and tokens as JSON on standard error"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_messages = {
    .name = "messages",
    .group = GROUP_READ,
    .usage = "CONV",
    .summary = "prints a view of a conversation: a JSON array of messages",
    .detail =
        "A view is always valid for its format: each call has one result, and each result has a\n"
        "call. --report says what was repaired for that. --format stored is not for a model: it\n"
        "prints every message exactly as it was sent.",
    .example = "steno messages demo\n"
               "steno messages demo --format anthropic --budget 8000 --report",
    .opts = messages_table,
    .opts_size = sizeof(struct messages_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_messages,
};
