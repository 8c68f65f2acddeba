/*
 * exec_tool.c - a model's call of execute_command: arguments, run, result.
 */
#include "exec/exec_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "exec/exec.h"
#include "exec/exec_args.h"
#include "exec/exec_modes.h"

static const char description[] =
    "Runs a command and returns its output (stdout and stderr together), exit code and duration. "
    "Give argv for a program with arguments; give shell only where a pipe, redirection or "
    "expansion is needed. stdin is empty, there is no terminal, and processes that are left behind "
    "are ended with the command.";

static int to_call(void *ctx, const void *p, size_t n)
{
        return tool_call_write(ctx, p, n, NULL);
}

static bool call_is_over(void *ctx)
{
        return steno_stop_requested(((struct steno_tool_call *)ctx)->stop);
}

/* Words that the model can act on. */
static int refuse(struct steno_tool_call *call, struct tool_result *result, const char *words,
    struct steno_error *err)
{
        result->is_error = true;
        return tool_call_puts(call, words, err);
}

/* The part of `directory` beneath `base`; NULL when its spelling leads elsewhere. Links are found
 * out when it is entered. */
static const char *beneath(const char *base, const char *directory)
{
        size_t n = base ? strlen(base) : 0;

        if (directory[0] != '/')
                return directory;
        while (n && base[n - 1] == '/')
                n--;
        if (!base || base[0] != '/' || strncmp(directory, base, n) != 0 ||
            (directory[n] && directory[n] != '/'))
                return NULL;
        directory += n + strspn(directory + n, "/");
        return *directory ? directory : ".";
}

/* A call may ask for less time than the configuration gives, never for more. */
static uint64_t time_limit(const struct exec_tool_options *o, const struct exec_args *a,
    const struct steno_tool_call *call)
{
        uint64_t asked = a->seconds * 1000;
        uint64_t limit =
            asked && (o->timeout_ms == 0 || asked < o->timeout_ms) ? asked : o->timeout_ms;
        int left = tool_call_left_ms(call);

        /* A little before the call's own end, so that ending the tree fits in. */
        if (left >= 0 && (limit == 0 || (uint64_t)left < limit))
                limit = left > 1 ? (uint64_t)left : 1;
        return limit;
}

static void report_oddities(struct steno_tool_call *call, const struct exec_result *r)
{
        char text[120];

        if (r->shield == EXEC_SHIELD_NONE)
                tool_call_step(call,
                    "ran without Landlock or a namespace: only file modes protect the store", 0, 0,
                    NULL);
        if (r->leftover) {
                snprintf(
                    text, sizeof(text), "%u processes it had left behind were ended", r->leftover);
                tool_call_step(call, text, 0, 0, NULL);
        }
}

/* The output ends with a mark, so that nobody takes it for whole. */
static void put_end(struct steno_tool_call *call, uint64_t bytes)
{
        char text[120];
        int n = snprintf(text, sizeof(text),
            "\n[The command was ended here, because it had printed %llu bytes.]\n",
            (unsigned long long)bytes);
        to_call(call, text, (size_t)n);
}

static int conclude(struct steno_tool_call *call, const struct exec_result *r, uint64_t limit,
    struct tool_result *result, struct steno_error *err)
{
        report_oddities(call, r);
        if (r->overflowed)
                put_end(call, r->bytes);
        result->has_exit = r->signal == 0;
        result->exit_code = r->exit_code;
        result->signal = r->signal;
        result->is_error = r->exit_code != 0;
        if (r->stopped)
                return error_set(err, STENO_EINTERRUPTED, "the command was stopped");
        if (r->timed_out)
                return error_set(err, STENO_ETIMEOUT, "the command was ended after %.1f s",
                    (double)limit / 1000);
        return 0;
}

static int run(const struct exec_tool_options *o, const struct exec_args *a,
    struct steno_tool_call *call, struct tool_result *result, struct steno_error *err)
{
        char **env = NULL;
        struct exec_modes *modes = NULL;
        const char *inside = a->directory ? beneath(o->directory, a->directory) : NULL;
        uint64_t limit = time_limit(o, a, call);
        struct exec_result r;

        if (a->directory && !inside)
                return refuse(
                    call, result, "directory must be a path in the session's directory", err);
        int rc = exec_env(o->env, o->environment, NULL, &env, err);
        if (rc == 0)
                rc = exec_modes_note(o->hidden, &modes, err);
        if (rc == 0) {
                struct exec_spec spec = {.argv = (const char *const *)a->argv,
                    .shell = a->shell,
                    .directory = o->directory ? o->directory : ".",
                    .inside = inside,
                    .env = (const char *const *)env,
                    .hidden = o->hidden,
                    .memory_bytes = o->memory_bytes,
                    .cpu_seconds = o->cpu_seconds,
                    .in = -1,
                    .out = -1,
                    .err = -1};
                struct exec_options opt = {.timeout_ms = limit,
                    .sink = to_call,
                    .sink_ctx = call,
                    .output_max = COMMAND_OUTPUT_MAX,
                    .stop_fd = steno_stop_fd(call->stop),
                    .stopped = call_is_over,
                    .stopped_ctx = call};
                rc = exec_run(&spec, &opt, &r, err);
                if (r.shield != EXEC_SHIELD_NAMESPACE)
                        exec_modes_tell(call, exec_modes_restore(modes));
                if (rc == 0)
                        rc = conclude(call, &r, limit, result, err);
                else if (rc == STENO_ENOTFOUND || rc == STENO_EDENIED)
                        rc = refuse(call, result, err->msg, err);
        }
        exec_modes_free(modes);
        exec_env_free(env);
        return rc;
}

static int execute(const struct tool *self, struct steno_tool_call *call,
    struct tool_result *result, struct steno_error *err)
{
        struct steno_error mine = {0};
        struct exec_args a;

        if (!err)
                err = &mine;
        int rc = exec_args_parse(&a, call->args, err);
        if (rc == STENO_ENOMEM)
                return rc;
        if (rc < 0)
                return refuse(call, result, err->msg, err);
        rc = run(self->ctx, &a, call, result, err);
        exec_args_release(&a);
        return rc;
}

static int put_names(char **env, struct buf *out, struct steno_error *err)
{
        struct jsonw w = jsonw_to(out);

        jsonw_array(&w);
        for (size_t i = 0; env[i]; i++)
                jsonw_str(&w, str_span(env[i], strcspn(env[i], "=")));
        jsonw_array_end(&w);
        return buf_check(out, err);
}

/* Arguments that cannot be read are refused when they are run. */
static int terms(
    const struct tool *self, struct str args, struct tool_terms *t, struct steno_error *err)
{
        const struct exec_tool_options *o = self->ctx;
        struct exec_args a;
        char **env = NULL;
        uint64_t asked = 0;

        if (exec_args_parse(&a, args, NULL) == 0) {
                asked = a.seconds * 1000;
                exec_args_release(&a);
        }
        if (o->timeout_ms && o->timeout_ms < t->ms)
                t->ms = o->timeout_ms;
        if (asked && asked < t->ms)
                t->ms = asked;
        t->output_bytes = COMMAND_OUTPUT_MAX;
        t->memory_bytes = o->memory_bytes;
        t->cpu_seconds = o->cpu_seconds;
        int rc = exec_env(o->env, o->environment, NULL, &env, err);
        if (rc == 0)
                rc = put_names(env, &t->environment, err);
        exec_env_free(env);
        return rc;
}

int exec_tool_add(
    struct steno_tools *set, const struct exec_tool_options *opt, struct steno_error *err)
{
        struct exec_tool_options *copy = malloc(sizeof(*copy));

        if (!copy)
                return error_nomem(err);
        *copy = *opt;
        int rc = toolset_own(set, copy, free, err);
        if (rc < 0)
                return rc;
        copy->directory = opt->directory ? toolset_strdup(set, str_of(opt->directory)) : NULL;
        copy->environment = toolset_strings(set, opt->environment);
        copy->hidden = toolset_strings(set, opt->hidden);
        if ((opt->directory && !copy->directory) || !copy->environment || !copy->hidden)
                return error_nomem(err);
        struct tool tool = {.name = "execute_command",
            .description = description,
            .schema = str_of(exec_args_schema),
            .flags = TOOL_TERMINAL | (opt->visitors ? TOOL_VISITORS : 0u),
            .call = execute,
            .terms = terms,
            .ctx = copy};
        return toolset_add(set, &tool, err);
}
