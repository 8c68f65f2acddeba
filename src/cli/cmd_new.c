/*
 * cmd_new.c - steno new: makes a conversation and prints its id.
 */
#include "base/json.h"
#include "cli/command.h"

struct new_opts {
        const char *id;
        const char *title;
};

static int run_new(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct new_opts *o = opts;
        struct steno_error err = {0};
        struct buf meta;
        struct jsonw w = jsonw_to(&meta);
        int rc = cli_open_store(c, CLI_CREATE);

        (void)argc, (void)argv;
        if (rc != 0)
                return rc;
        buf_init(&meta, 0);
        jsonw_object(&w);
        if (o->title != NULL) {
                jsonw_field_cstr(&w, "title", o->title);
        }
        jsonw_object_end(&w);
        const char *json = buf_cstr(&meta);
        if (json == NULL)
                rc = cli_refuse(c, EXIT_IO, "out of memory");
        else if (steno_conv_create(c->store, c->project, o->id, json, &c->conv, &err) < 0)
                rc = cli_fail(c, &err);
        buf_release(&meta);
        if (rc != 0)
                return rc;
        if (!c->json) {
                out_text(&c->out, str_of(steno_conv_id(c->conv)));
                out_puts(&c->out, "\n");
                return EXIT_DONE;
        }
        char *answer;
        if (steno_conv_meta(c->conv, &answer, &err) < 0)
                return cli_fail(c, &err);
        return cli_print_json(c, answer);
}

static const struct opt new_table[] = {
    {"id", 0, OPT_TEXT, "ID", offsetof(struct new_opts, id),
        "an id of your own: 1 to 256 bytes of UTF-8 without control characters"},
    {"title", 0, OPT_TEXT, "T", offsetof(struct new_opts, title), "a title for people"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_new = {
    .name = "new",
    .group = GROUP_RECORD,
    .usage = "",
    .summary = "makes a conversation and prints its id",
    .example = "steno new --title \"Fix the build\"\n"
               "steno new --id build-42",
    .opts = new_table,
    .opts_size = sizeof(struct new_opts),
    .run = run_new,
};
