/*
 * cmd_log.c - steno log: the transcript for a person, or the records as lines of JSON.
 */
#include <string.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/term.h"
#include "cli/transcript.h"

#define WAIT_MS 500 /* how long Ctrl-C may have to wait while following */

struct log_opts {
        struct opt_number last;
        struct opt_number after;
        bool full;
        bool follow;
        bool no_pager;
};

struct logging {
        struct cli *c;
        struct transcript t;
        struct steno_error *err;
        uint64_t seen; /* the last seq that was printed */
};

static int learn(void *ctx, const struct steno_record *r)
{
        struct logging *l = ctx;

        return transcript_learn(&l->t, r);
}

static int put_json(struct logging *l, const struct steno_record *r)
{
        struct buf b;
        struct jsonw w = jsonw_to(&b);
        struct str about;
        char *message = NULL;
        size_t n = 0;

        buf_init(&b, 0);
        jsonw_object(&w);
        jsonw_field_u64(&w, "seq", steno_record_seq(r));
        jsonw_field_cstr(&w, "id", steno_record_id(r));
        jsonw_field_cstr(&w, "at", steno_record_at(r));
        jsonw_field_cstr(&w, "kind", steno_record_kind(r));
        jsonw_field_cstr(&w, "format", steno_record_format(r));
        jsonw_field_cstr(&w, "target", steno_record_target(r));
        about.p = steno_record_about(r, &about.n);
        if (about.p != NULL && about.n > 0) {
                jsonw_field_raw(&w, "about", about);
        }
        if (strcmp(steno_record_kind(r), "damaged") != 0) {
                struct steno_error why = {0};
                bool got = steno_record_message(r, &message, &n, &why) == 0;
                jsonw_key(&w, got ? "message" : "damaged");
                if (got)
                        jsonw_raw(&w, str_span(message, n));
                else
                        jsonw_cstr(&w, why.msg);
        }
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        out_text(&l->c->out, buf_str(&b));
        steno_free(message);
        int rc = buf_check(&b, l->err);
        buf_release(&b);
        return rc;
}

static int show(void *ctx, const struct steno_record *r)
{
        struct logging *l = ctx;
        int rc = l->c->json ? put_json(l, r) : transcript_record(&l->t, r, l->err);

        l->seen = steno_record_seq(r) > l->seen ? steno_record_seq(r) : l->seen;
        if (rc == 0 && (l->c->out.sys != 0 || interrupt_pending()))
                rc = STENO_EINTERRUPTED;
        return rc;
}

static int follow(struct logging *l)
{
        int rc = 0;

        while (rc >= 0 && out_flush(&l->c->out) == 0 && !interrupt_pending()) {
                rc = steno_conv_wait(l->c->conv, l->seen, WAIT_MS, l->err);
                if (rc > 0)
                        rc = steno_read(l->c->conv, l->seen, 0, show, l, l->err);
        }
        return rc;
}

static int print_all(struct logging *l, const struct log_opts *o)
{
        uint64_t after = o->after.v, last = 0;
        int rc = steno_conv_last_seq(l->c->conv, &last, l->err);

        if (rc < 0)
                return cli_fail(l->c, l->err);
        if (o->last.set && last > o->last.v && last - o->last.v > after)
                after = last - o->last.v;
        rc = steno_read(l->c->conv, after, 0, learn, l, l->err);
        if (rc == 0 && !l->c->json && transcript_heading(&l->t) != 0)
                return EXIT_IO;
        if (rc == 0 && !l->c->json)
                transcript_learn_open(&l->t);
        l->seen = after;
        if (rc == 0)
                rc = steno_read(l->c->conv, after, 0, show, l, l->err);
        if (rc == 0 && o->follow)
                rc = follow(l);
        return rc < 0 ? cli_fail(l->c, l->err) : EXIT_DONE;
}

static int run_log(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct log_opts *o = opts;
        struct steno_error err = {0};
        struct logging l = {.c = c, .err = &err};
        pid_t pager = 0;
        int rc = cli_open_conv(c, argv[0]);

        (void)argc;
        if (rc != 0)
                return rc;
        transcript_init(&l.t, c, o->full);
        if (!o->no_pager && !o->follow && !c->json)
                pager = term_pager_start(&c->out);
        rc = print_all(&l, o);
        if (pager != 0 && c->out.sys != 0)
                rc = EXIT_DONE; /* the pager was left early */
        term_pager_end(&c->out, pager);
        transcript_release(&l.t);
        return rc;
}

static const struct opt log_table[] = {
    {"limit", 'n', OPT_NUMBER, "N", offsetof(struct log_opts, last), "only the last N records"},
    {"number", 0, OPT_NUMBER, "N", offsetof(struct log_opts, last), NULL},
    {"last", 0, OPT_NUMBER, "N", offsetof(struct log_opts, last), NULL},
    {"after", 0, OPT_NUMBER, "SEQ", offsetof(struct log_opts, after),
        "only records after this seq"},
    {"full", 0, OPT_FLAG, NULL, offsetof(struct log_opts, full),
        "whole results, arguments and thoughts"},
    {"follow", 'f', OPT_FLAG, NULL, offsetof(struct log_opts, follow),
        "show also what is appended later, until Ctrl-C"},
    {"no-pager", 0, OPT_FLAG, NULL, offsetof(struct log_opts, no_pager), "no pager"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_log = {
    .name = "log",
    .group = GROUP_READ,
    .usage = "CONV",
    .summary = "shows the transcript: messages, tool calls, results, errors",
    .detail =
        "On a terminal, the transcript has colours and goes through $STENO_PAGER, $PAGER or less.\n"
        "Control characters of recorded text are made visible; --raw prints them unchanged. With\n"
        "--json, every record is printed as a line.",
    .example = "steno log demo\n"
               "steno log demo -n 5 --full\n"
               "steno log demo -f",
    .opts = log_table,
    .opts_size = sizeof(struct log_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_log,
};
