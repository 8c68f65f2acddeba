/*
 * cmd_check.c - steno check: verifies every checksum, pair and ref.
 */
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"
#include "http/identities.h"

struct check_opts {
        bool repair;
        bool accept;
};

struct checking {
        struct cli *c;
        uint64_t open;       /* findings that were not repaired */
        uint64_t repairable; /* of which so many can be, */
        uint64_t accepted;   /* losses that were noted */
        uint64_t trashed;    /* of the open ones in the trash, where nothing is repaired */
        bool tokens;         /* tokens.json is not a file, and a finding has said so */
};

static void put_finding(struct cli *c, const struct json *j)
{
        struct buf b;
        uint64_t seq;
        bool repaired = json_bool(j, json_get(j, 0, "repaired"), false);
        bool note = json_bool(j, json_get(j, 0, "note"), false);

        buf_init(&b, 0);
        if (json_string(j, json_get(j, 0, "project"), &b, NULL)) {
                json_ref conv = json_get(j, 0, "conversation");
                if (conv != JSON_NONE)
                        buf_putc(&b, '/');
                json_string(j, conv, &b, NULL);
                if (json_u64(j, json_get(j, 0, "seq"), &seq))
                        buf_printf(&b, " seq %llu", (unsigned long long)seq);
                buf_puts(&b, ": ");
        }
        json_string(j, json_get(j, 0, "what"), &b, NULL);
        bool accepted = json_bool(j, json_get(j, 0, "accepted"), false);
        if (note)
                buf_puts(&b, " (a note: nothing is damaged here)");
        if (repaired)
                buf_puts(&b, " (repaired)");
        if (accepted)
                buf_puts(&b, " (accepted as lost)");
        if (json_bool(j, json_get(j, 0, "trash"), false))
                buf_puts(&b, " (in the trash)");
        out_style(&c->out, note ? "2" : repaired || accepted ? "33" : "31");
        out_text(&c->out, buf_str(&b));
        out_plain(&c->out);
        out_puts(&c->out, "\n");
        buf_release(&b);
}

static bool is_tokens(const struct json *j)
{
        struct buf b;

        buf_init(&b, 0);
        json_string(j, json_get(j, 0, "what"), &b, NULL);
        bool yes = str_starts(buf_str(&b), "tokens.json is ");
        buf_release(&b);
        return yes;
}

static int take_finding(void *ctx, const char *json)
{
        struct checking *k = ctx;
        struct json j;

        json_init(&j);
        if (json_parse(&j, json, strlen(json), NULL, NULL) == 0) {
                bool note = json_bool(&j, json_get(&j, 0, "note"), false);
                bool accepted = json_bool(&j, json_get(&j, 0, "accepted"), false);
                k->accepted += accepted;
                bool open =
                    !note && !accepted && !json_bool(&j, json_get(&j, 0, "repaired"), false);
                k->open += open;
                if (json_bool(&j, json_get(&j, 0, "repairable"), false))
                        k->repairable++;
                k->trashed += open && json_bool(&j, json_get(&j, 0, "trash"), false);
                k->tokens = k->tokens || ((open || accepted) && is_tokens(&j));
                if (!k->c->json)
                        put_finding(k->c, &j);
        }
        json_release(&j);
        if (k->c->json) {
                out_text(&k->c->out, str_of(json));
                out_puts(&k->c->out, "\n");
        }
        return k->c->out.sys != 0 || interrupt_pending();
}

/* The tokens belong to the server and not to the library, so they are checked here. */
static int check_tokens(struct checking *k, bool repair, int *findings, struct steno_error *err)
{
        struct identities *ids;
        size_t readable;
        struct buf b;
        int rc = identities_open(k->c->store, &ids, err);

        if (rc < 0)
                return rc;
        if (identities_damaged(ids, &readable)) {
                rc = repair ? identities_mend(ids, err) : 0;
                buf_init(&b, 0);
                buf_printf(&b,
                    "{\"what\":\"tokens.json is damaged: %zu of its tokens can be read\","
                    "\"repairable\":true,\"repaired\":%s}",
                    readable, repair ? "true" : "false");
                const char *json = buf_cstr(&b);
                if (rc == 0 && json) {
                        take_finding(k, json);
                        ++*findings;
                }
                buf_release(&b);
        }
        identities_close(ids);
        return rc;
}

static int run_check(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct check_opts *o = opts;
        struct steno_check_options opt = {.size = sizeof(opt)};
        struct checking k = {.c = c};
        struct steno_error err = {0};
        struct term_progress bar;
        if (o->accept && !o->repair)
                return cli_usage(c, "--accept needs --repair");
        int rc = cli_open_store(c, CLI_REPAIR);

        if (rc != 0)
                return rc;
        term_progress_init(&bar, c->quiet);
        opt.project = argc > 0 ? c->project : NULL;
        opt.id = argc > 0 ? argv[0] : NULL;
        opt.repair = o->repair;
        opt.accept = o->accept;
        opt.progress = term_progress_step;
        opt.progress_ctx = &bar;
        rc = steno_check(c->store, &opt, take_finding, &k, &err);
        term_progress_end(&bar);
        int findings = rc;
        if (rc >= 0 && argc == 0 && !k.tokens)
                rc = check_tokens(&k, o->repair, &findings, &err);
        if (rc < 0)
                return cli_fail(c, &err);
        if (findings == 0)
                cli_say(c, "everything%s is in order", k.accepted > 0 ? " else" : "");
        else if (k.open > k.trashed)
                cli_say(c, "%d finding%s; steno check --repair%s", findings,
                    findings == 1 ? "" : "s",
                    k.repairable > 0 ? " quarantines what is damaged"
                                     : " --accept accepts what is lost");
        if (k.accepted > 0)
                cli_say(c, "%llu loss%s accepted", (unsigned long long)k.accepted,
                    k.accepted == 1 ? " is" : "es are");
        if (k.trashed > 0)
                cli_say(c, "conversations in the trash are not repaired: restore them (steno trash "
                           "--restore) and check again, remove them (steno purge), or accept their "
                           "losses (steno check --repair --accept)");
        return k.open > 0 ? EXIT_CORRUPT : EXIT_DONE;
}

static const struct opt check_table[] = {
    {"repair", 0, OPT_FLAG, NULL, offsetof(struct check_opts, repair),
        "move torn or damaged data to quarantine, and rebuild derived files; deletes nothing"},
    {"accept", 0, OPT_FLAG, NULL, offsetof(struct check_opts, accept),
        "with --repair: note what cannot be repaired as an accepted loss"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_check = {
    .name = "check",
    .group = GROUP_KEEP,
    .usage = "[CONV]",
    .summary = "verifies every checksum, call, result and ref; prints one line for each finding",
    .detail =
        "Exit code 4 means that something is damaged or lost, and was neither repaired nor\n"
        "accepted. Every check reports a loss until --accept notes it. An accepted loss is still\n"
        "shown, and views still name it, but it no longer counts as a failure.",
    .example = "steno check\n"
               "steno check --repair",
    .opts = check_table,
    .opts_size = sizeof(struct check_opts),
    .max_args = 1,
    .run = run_check,
};
