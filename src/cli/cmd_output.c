/*
 * cmd_output.c - steno output: standard input is a tool's output, stored as it streams.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/input.h"

#define CHUNK (64 * KIB)

struct output_opts {
        const char *tool;
        const char *call;
        const char *server;
        const char *profile;
        struct opt_number max_chars;
        struct opt_number max_bytes;
        struct opt_number duration;
        struct opt_number exit_code;
        bool error;
        bool record;
        bool no_context_tools;
};

/* 0, an exit code, or STENO_EQUOTA: a quota has ended the output, which is stored all the same. */
static int copy_stdin(struct cli *c, struct steno_output *out)
{
        struct steno_error err = {0};
        char *chunk = malloc(CHUNK);
        ssize_t k = 0;
        int rc = 0;

        if (chunk == NULL)
                return cli_refuse(c, EXIT_IO, "out of memory");
        while (rc == 0 && (k = input_read(STDIN_FILENO, chunk, CHUNK)) > 0) {
                rc = steno_output_write(out, chunk, (size_t)k, &err);
                if (rc < 0 && cli_fail(c, &err) && rc != STENO_EQUOTA)
                        rc = cli_exit_code(rc);
        }
        if (k < 0 && errno == EINTR)
                rc = EXIT_INTERRUPTED;
        else if (k < 0)
                rc = cli_refuse(c, EXIT_IO, "standard input: %s", strerror(errno));
        free(chunk);
        return rc;
}

static void put_fields(struct buf *b, const struct output_opts *o)
{
        struct jsonw w = jsonw_to(b);

        jsonw_object(&w);
        if (o->error) {
                jsonw_field_bool(&w, "isError", true);
        }
        if (o->duration.set) {
                jsonw_field_u64(&w, "duration", o->duration.v);
        }
        if (o->exit_code.set) {
                jsonw_field_u64(&w, "exitCode", o->exit_code.v);
        }
        jsonw_object_end(&w);
}

static int put_content(struct cli *c, const char *answer)
{
        struct steno_error err = {0};
        struct json j;
        struct buf text;
        int rc;

        json_init(&j);
        buf_init(&text, 0);
        rc = json_parse(&j, answer, strlen(answer), NULL, &err);
        if (rc == 0) {
                json_ref content = json_get(&j, 0, "content");
                if (!json_string(&j, content, &text, NULL))
                        buf_put_str(&text, json_raw(&j, content));
                if (text.n == 0 || text.p[text.n - 1] != '\n')
                        buf_putc(&text, '\n');
                out_text(&c->out, buf_str(&text));
        }
        buf_release(&text);
        json_release(&j);
        return rc < 0 ? cli_fail(c, &err) : EXIT_DONE;
}

static int finish(struct cli *c, struct steno_output *out, const struct output_opts *o)
{
        struct steno_error err = {0};
        struct buf fields;
        char *answer = NULL;
        int rc;

        buf_init(&fields, 0);
        put_fields(&fields, o);
        rc = steno_output_finish(out, buf_cstr(&fields), &answer, &err);
        buf_release(&fields);
        if (rc < 0)
                return cli_fail(c, &err);
        if (c->json)
                return cli_print_json(c, answer);
        rc = put_content(c, answer);
        steno_free(answer);
        return rc;
}

static int run_output(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct output_opts *o = opts;
        struct steno_output_options opt = {.size = sizeof(opt)};
        struct steno_output *out = NULL;
        struct steno_error err = {0};
        int rc;

        (void)argc;
        if (o->tool == NULL || o->call == NULL)
                return cli_usage(c, "--tool and --call must be given");
        rc = cli_open_conv(c, argv[0]);
        if (rc != 0)
                return rc;
        opt.tool = o->tool;
        opt.call_id = o->call;
        opt.server = o->server;
        opt.flags = o->record ? STENO_RECORD : 0;
        opt.profile = o->profile;
        opt.max_inline_chars = o->max_chars.v;
        opt.max_inline_bytes = o->max_bytes.v;
        opt.context_tools = !o->no_context_tools;
        if (steno_output_begin(c->conv, &opt, &out, &err) < 0)
                return cli_fail(c, &err);
        rc = copy_stdin(c, out);
        if (rc == STENO_EQUOTA)
                rc = finish(c, out, o) ? EXIT_IO : cli_exit_code(STENO_EQUOTA);
        else if (rc == 0)
                rc = finish(c, out, o);
        steno_output_free(out);
        return rc;
}

static const struct opt output_table[] = {
    {"tool", 0, OPT_TEXT, "NAME", offsetof(struct output_opts, tool), "the name of the tool"},
    {"call", 0, OPT_TEXT, "ID", offsetof(struct output_opts, call), "the call that it answers"},
    {"server", 0, OPT_TEXT, "S", offsetof(struct output_opts, server), "the tool's MCP server"},
    {"error", 0, OPT_FLAG, NULL, offsetof(struct output_opts, error), "the tool failed"},
    {"duration", 0, OPT_NUMBER, "MS", offsetof(struct output_opts, duration), "how long it ran"},
    {"exit", 0, OPT_NUMBER, "CODE", offsetof(struct output_opts, exit_code), "its exit code"},
    {"record", 0, OPT_FLAG, NULL, offsetof(struct output_opts, record),
        "store it even if no such call is open, and mark it"},
    {"profile", 0, OPT_TEXT, "P", offsetof(struct output_opts, profile),
        "which outputs get a file of their own: default or runtime-store"},
    {"max-inline-chars", 0, OPT_NUMBER, "N", offsetof(struct output_opts, max_chars),
        "a larger output gets a file of its own"},
    {"max-inline-bytes", 0, OPT_NUMBER, "N", offsetof(struct output_opts, max_bytes),
        "the same, in bytes"},
    {"no-context-tools", 0, OPT_FLAG, NULL, offsetof(struct output_opts, no_context_tools),
        "do not mention the context_* tools, because the model does not have them"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_output = {
    .name = "output",
    .group = GROUP_RECORD,
    .usage = "CONV --tool NAME --call ID",
    .summary = "stores standard input as a tool's output and prints what a model would see",
    .detail =
        "The output may have any size; the memory used stays constant. A large output gets a file\n"
        "of its own while it is read. This file can be read at the same time (steno context tail\n"
        "-f), and survives a kill.",
    .example = "make test 2>&1 | steno output demo --tool run_tests --call call_7f",
    .opts = output_table,
    .opts_size = sizeof(struct output_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_output,
};
