/*
 * cmd_exec.c - steno exec: runs a command as execute_command does and keeps its output.
 *
 * The history gets a call and its result, as if a model had asked for it, so it stays valid and
 * says what was run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "loop/config.h"
#include "exec/exec.h"
#include "exec/exec_modes.h"

struct exec_opts {
        struct opt_number seconds;
        const char *directory;
};

struct running {
        struct cli *c;
        struct steno_output *out;
        struct steno_error err;
        bool unstarted; /* there is no such program, or it may not be run */
};

/* Output goes to the artifact and, without --json, to standard output. */
static int take(void *ctx, const void *p, size_t n)
{
        struct running *r = ctx;
        if (steno_output_write(r->out, p, n, &r->err))
                return 1;
        if (!r->c->json) {
                out_text_piece(&r->c->out, str_span(p, n));
                out_flush(&r->c->out);
        }
        return 0;
}

static bool stopped(void *ctx)
{
        (void)ctx;
        return interrupt_pending();
}

static void put_argv(struct buf *b, char **argv)
{
        struct jsonw w = jsonw_to(b);
        jsonw_object(&w);
        jsonw_key(&w, "argv");
        jsonw_array(&w);
        for (; *argv; argv++)
                jsonw_cstr(&w, *argv);
        jsonw_array_end(&w);
        jsonw_object_end(&w);
}

/* The call that the command answers. */
static int append_call(struct cli *c, char **argv, const char *call)
{
        struct steno_error err = {0};
        struct buf args, message;
        buf_init(&args, 0);
        buf_init(&message, 0);
        put_argv(&args, argv);
        struct jsonw w = jsonw_to(&message);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        jsonw_field_null(&w, "content");
        jsonw_key(&w, "tool_calls");
        jsonw_array(&w);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", call);
        jsonw_field_cstr(&w, "type", "function");
        jsonw_key(&w, "function");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "name", "execute_command");
        jsonw_field_str(&w, "arguments", buf_str(&args));
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        int rc = message.failed || args.failed
                     ? STENO_ENOMEM
                     : steno_append(c->conv, message.p, message.n, NULL, NULL, &err);
        buf_release(&args);
        buf_release(&message);
        return rc ? cli_fail(c, &err) : 0;
}

static int run_command(struct cli *c, const struct exec_opts *o, char **argv, struct running *r,
    struct exec_result *result)
{
        struct steno_error err = {0};
        char **env = NULL;
        const char *folder = cli_store_folder(c);
        char *store = folder ? realpath(folder, NULL) : NULL;
        char *config = config_home_make((const char *const *)environ);
        /* The list ends at the first NULL. */
        const char *hidden[] = {store ? store : config, store ? config : NULL, NULL};
        struct exec_modes *modes = NULL;
        exec_conceal();
        int rc = exec_modes_note(hidden, &modes, &err);
        if (rc == 0)
                rc = exec_env((const char *const *)environ, NULL, NULL, &env, &err);
        if (rc == 0) {
                struct exec_spec spec = {.argv = (const char *const *)argv,
                    .directory = o->directory,
                    .env = (const char *const *)env,
                    .hidden = hidden};
                struct exec_options opt = {.timeout_ms = o->seconds.set ? o->seconds.v * 1000 : 0,
                    .sink = take,
                    .sink_ctx = r,
                    .stop_fd = -1,
                    .stopped = stopped};
                rc = exec_run(&spec, &opt, result, &err);
                if (result->shield != EXEC_SHIELD_NAMESPACE && exec_modes_restore(modes))
                        cli_say(c, "the command had changed file modes of the store or the "
                                   "configuration; they were put back");
                if (r->err.code)
                        err = r->err; /* storing the output failed, and that ended the command */
        }
        if (rc && !r->err.code) {
                /* The command could not be started: the error message becomes its result. */
                steno_output_write(r->out, err.msg, strlen(err.msg), NULL);
                cli_refuse(c, 127, "%s", err.msg);
                result->exit_code = 127;
                r->unstarted = true; /* and why was said */
                rc = 0;
        }
        exec_env_free(env);
        exec_modes_free(modes);
        free(store);
        free(config);
        if (r->err.code == STENO_EQUOTA) { /* its output says so, and is stored up to there */
                cli_fail(c, &r->err);
                result->exit_code = result->exit_code ? result->exit_code : EXIT_IO;
                return 0;
        }
        return rc ? cli_fail(c, &err) : 0;
}

/* How it ended, in words. */
static void put_end(const struct exec_opts *o, const struct exec_result *r, char out[80])
{
        if (r->timed_out)
                snprintf(out, 80, "timed out after %llu s and was stopped",
                    (unsigned long long)o->seconds.v);
        else if (r->stopped)
                snprintf(out, 80, "was interrupted");
        else if (r->signal)
                snprintf(out, 80, "was ended by signal %d (%s)", r->signal, strsignal(r->signal));
        else
                snprintf(out, 80, "exit %d", r->exit_code);
}

static int finish(
    struct cli *c, const struct exec_opts *o, struct running *r, const struct exec_result *result)
{
        struct steno_error err = {0};
        struct buf fields;
        char *json = NULL;
        bool failed = result->exit_code != 0 || result->timed_out || result->stopped;
        buf_init(&fields, 0);
        buf_printf(&fields, "{\"exitCode\":%d,\"duration\":%llu%s%s%s}", result->exit_code,
            (unsigned long long)result->duration_ms, failed ? ",\"isError\":true" : "",
            result->timed_out ? ",\"timedOut\":true" : "",
            result->stopped ? ",\"interrupted\":true" : "");
        const char *text = buf_cstr(&fields);
        int rc = text ? steno_output_finish(r->out, text, &json, &err) : STENO_ENOMEM;
        buf_release(&fields);
        if (rc)
                return cli_fail(c, &err);
        if (c->json)
                return cli_print_json(c, json);
        out_text_end(&c->out);
        char end[80];
        put_end(o, result, end);
        if (!r->unstarted)
                cli_say(c, "%s, %llu bytes in %llu ms, kept as %s", end,
                    (unsigned long long)result->bytes, (unsigned long long)result->duration_ms,
                    steno_output_ref(r->out));
        steno_free(json);
        return 0;
}

static int run_exec(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        struct running r = {.c = c};
        struct exec_result result = {0};
        char call[48];
        argv[argc] = NULL; /* options_parse() moved the arguments to the front; their old places
                              stand behind them */
        int rc = cli_open_conv(c, argv[0]);
        if (rc != 0)
                return rc;
        id_make(env_real(), "call_", call);
        struct steno_output_options o = {.size = sizeof o,
            .tool = "execute_command",
            .call_id = call,
            .terminal = true,
            .context_tools = true};
        rc = append_call(c, argv + 1, call);
        if (rc == 0 && steno_output_begin(c->conv, &o, &r.out, &err))
                rc = cli_fail(c, &err);
        if (rc == 0)
                rc = run_command(c, opts, argv + 1, &r, &result);
        if (rc == 0)
                rc = finish(c, opts, &r, &result);
        steno_output_free(r.out);
        if (rc == 0 && result.stopped)
                return EXIT_INTERRUPTED;
        return rc ? rc : result.signal ? 128 + result.signal : result.exit_code;
}

static const struct opt exec_table[] = {
    {"seconds", 0, OPT_NUMBER, "N", offsetof(struct exec_opts, seconds),
        "stop the command and all its children after this time"},
    {"dir", 0, OPT_TEXT, "DIR", offsetof(struct exec_opts, directory),
        "the directory to run it in"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_exec = {
    .name = "exec",
    .group = GROUP_RUN,
    .usage = "CONV -- ARGV...",
    .summary = "runs a command as execute_command and keeps its whole output",
    .detail = "The history gets the call and its result. The command gets only some environment\n"
              "variables, and cannot reach the store. The exit code is the command's.",
    .example = "steno exec build-42 -- make -j2",
    .opts = exec_table,
    .opts_size = sizeof(struct exec_opts),
    .min_args = 2,
    .max_args = -1,
    .run = run_exec,
};
