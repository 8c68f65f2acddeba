/*
 * cmd_init.c - steno init: a store with other settings than the defaults.
 */
#include "base/json.h"
#include "cli/command.h"

struct init_opts {
        const char *profile;
        struct opt_number max_chars;
        struct opt_number max_bytes;
        struct opt_number max_output;
        struct opt_number max_conversation;
        struct opt_number max_store;
};

static void put_settings(struct buf *b, const struct init_opts *o)
{
        struct jsonw w = jsonw_to(b);

        jsonw_object(&w);
        if (o->profile != NULL) {
                jsonw_field_cstr(&w, "profile", o->profile);
        }
        if (o->max_chars.set) {
                jsonw_field_u64(&w, "maxInlineChars", o->max_chars.v);
        }
        if (o->max_bytes.set) {
                jsonw_field_u64(&w, "maxInlineBytes", o->max_bytes.v);
        }
        if (o->max_output.set) {
                jsonw_field_u64(&w, "maxOutputBytes", o->max_output.v);
        }
        if (o->max_conversation.set) {
                jsonw_field_u64(&w, "maxConversationBytes", o->max_conversation.v);
        }
        if (o->max_store.set) {
                jsonw_field_u64(&w, "maxStoreBytes", o->max_store.v);
        }
        jsonw_object_end(&w);
}

static int run_init(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        struct buf settings;
        char *answer = NULL;
        const char *url = cli_store_url(c);
        int rc = 0;

        (void)argc, (void)argv;
        if (url == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        buf_init(&settings, 0);
        put_settings(&settings, opts);
        const char *json = buf_cstr(&settings);
        if (json == NULL)
                rc = cli_refuse(c, EXIT_IO, "out of memory");
        else if (steno_init(url, json, &err) < 0)
                rc = cli_fail(c, &err);
        buf_release(&settings);
        if (rc == 0)
                rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        if (steno_settings(c->store, &answer, &err) < 0)
                return cli_fail(c, &err);
        return cli_print_json(c, answer);
}

static const struct opt init_table[] = {
    {"profile", 0, OPT_TEXT, "P", offsetof(struct init_opts, profile),
        "which outputs get a file of their own: default or runtime-store"},
    {"max-inline-chars", 0, OPT_NUMBER, "N", offsetof(struct init_opts, max_chars),
        "larger tool outputs get a file of their own; 4000 by default"},
    {"max-inline-bytes", 0, OPT_NUMBER, "N", offsetof(struct init_opts, max_bytes),
        "the same, in bytes; 16384 by default"},
    {"max-output-bytes", 0, OPT_NUMBER, "N", offsetof(struct init_opts, max_output),
        "cut an output off at this size, and mark it; 4 GiB by default, 0 for no limit"},
    {"max-conversation-bytes", 0, OPT_NUMBER, "N", offsetof(struct init_opts, max_conversation),
        "the same for all outputs of a conversation; 64 GiB by default"},
    {"max-store-bytes", 0, OPT_NUMBER, "N", offsetof(struct init_opts, max_store),
        "the same for all outputs of the store; 512 GiB by default"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_init = {
    .name = "init",
    .group = GROUP_KEEP,
    .usage = "",
    .summary = "makes a store with settings of your own, or changes the settings of a store",
    .detail =
        "You do not have to call it: a store is made on first use. Stored data does not change.",
    .example = "steno --store ./agents init --profile runtime-store",
    .opts = init_table,
    .opts_size = sizeof(struct init_opts),
    .run = run_init,
};
