/*
 * cmd_fork.c - steno fork: a new conversation with the history of another up to some record.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/command.h"

struct fork_opts {
        const char *at;
        const char *before;
        const char *id;
        bool whole_batch;
};

/* A number is taken as a seq, so a message whose id is a number cannot be named by its id. */
static bool is_seq(const char *text, uint64_t *seq)
{
        char *end;

        if (*text == '\0' || strspn(text, "0123456789") != strlen(text))
                return false;
        *seq = strtoull(text, &end, 10);
        return *seq > 0;
}

static int run_fork(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct fork_opts *o = opts;
        struct steno_fork_options opt = {.size = sizeof(opt), .before = o->before, .id = o->id};
        struct steno_error err = {0};
        struct steno_conv *fork = NULL;
        uint64_t seq = 0;
        int rc = cli_open_conv(c, argv[0]);

        (void)argc;
        if (rc != 0)
                return rc;
        if (o->whole_batch)
                opt.flags |= STENO_FORK_WHOLE_BATCH;
        if (o->at != NULL && !is_seq(o->at, &opt.at_seq))
                opt.at = o->at;
        if (steno_fork(c->conv, &opt, &fork, &err) < 0)
                return cli_fail(c, &err);
        if (c->json) {
                struct buf b;
                struct jsonw w = jsonw_to(&b);
                buf_init(&b, 0);
                steno_conv_last_seq(fork, &seq, NULL);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "id", steno_conv_id(fork));
                jsonw_field_cstr(&w, "origin", argv[0]);
                jsonw_field_u64(&w, "lastSeq", seq);
                jsonw_object_end(&w);
                rc = cli_print_json(c, buf_take(&b, NULL));
                buf_release(&b);
        } else {
                out_text(&c->out, str_of(steno_conv_id(fork)));
                out_puts(&c->out, "\n");
        }
        steno_conv_close(fork);
        return rc;
}

static const struct opt fork_table[] = {
    {"at", 0, OPT_TEXT, "SEQ|MSG", offsetof(struct fork_opts, at),
        "the last record or message to take; all of them by default"},
    {"before", 0, OPT_TEXT, "MSG", offsetof(struct fork_opts, before),
        "take the messages before this one, to put another in its place"},
    {"id", 0, OPT_TEXT, "ID", offsetof(struct fork_opts, id), "id of the fork"},
    {"whole-batch", 0, OPT_FLAG, NULL, offsetof(struct fork_opts, whole_batch),
        "if the cut is inside a batch, take all of that batch"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_fork = {
    .name = "fork",
    .group = GROUP_RECORD,
    .usage = "CONV",
    .summary = "makes a conversation with the history of another, up to a chosen record",
    .detail =
        "Prints the id of the fork. Records keep their seqs and ids, and deleted messages are\n"
        "tombstones. Outputs take no more disk space where the file system can share blocks.\n"
        "Purging one of the two conversations does not change the other. A cut inside a batch is\n"
        "refused.",
    .example = "steno fork demo --at 4 --id demo-2\n"
               "steno fork demo --before msg_01J0000000000000000000000",
    .opts = fork_table,
    .opts_size = sizeof(struct fork_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_fork,
};
