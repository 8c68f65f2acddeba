/*
 * cmd_record.c - steno record: runs a program whose calls to a model are recorded.
 *
 * A server that has only the gateway listens on a free port, and the program finds it through the
 * environment variables that clients of models read. The addresses contain the token, so the
 * program's own keys are passed to the endpoint unchanged. The token is valid as long as the
 * program runs.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"
#include "base/wait.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "http/server.h"

#define TOKEN_BYTES 24

/* Variables by which clients find an endpoint, and what stands for them. */
static const struct address {
        const char *variable;
        const char *upstream;
        const char *path; /* behind the token */
} addresses[] = {
    {"OPENAI_BASE_URL", "openai", "/openai/v1"},
    {"OPENAI_API_BASE", "openai", "/openai/v1"},
    {"ANTHROPIC_BASE_URL", "anthropic", "/anthropic"},
    {"GOOGLE_GEMINI_BASE_URL", "gemini", "/gemini"},
};

#define ADDRESSES (sizeof addresses / sizeof *addresses)

/* If the user has set an endpoint already, requests go there. */
static void put_upstreams(struct buf *out)
{
        const char *last = "";
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (size_t i = 0; i < ADDRESSES; i++) {
                const char *url = getenv(addresses[i].variable);
                if (!url || !*url || strcmp(last, addresses[i].upstream) == 0)
                        continue;
                last = addresses[i].upstream;
                jsonw_key(&w, last);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "url", url);
                jsonw_object_end(&w);
        }
        jsonw_object_end(&w);
}

static void make_token(char out[2 * TOKEN_BYTES + 8])
{
        unsigned char random[TOKEN_BYTES];
        const struct env *env = env_real();
        env->random(env, random, sizeof random);
        int n = snprintf(out, 8, "rec-");
        for (size_t i = 0; i < sizeof random; i++)
                n += snprintf(out + n, 3, "%02x", random[i]);
}

/* The program's environment: ours, but for the variables that are set here. */
struct variables {
        char **list; /* NULL-terminated */
        size_t inherited;
        size_t count;
        bool failed;
};

#define ADDED 8 /* ADDRESSES, NO_PROXY twice, and one more at most */
_Static_assert(ADDRESSES + 3 < ADDED + 1, "room for every variable that is added");

static const char *const also_set[] = {"NO_PROXY", "no_proxy", "OPENAI_AGENTS_DISABLE_TRACING"};

static bool is_named(const char *variable, const char *name)
{
        size_t n = strlen(name);
        return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

static bool is_replaced(const char *variable)
{
        for (size_t i = 0; i < ADDRESSES; i++)
                if (is_named(variable, addresses[i].variable))
                        return true;
        for (size_t i = 0; i < sizeof also_set / sizeof *also_set; i++)
                if (is_named(variable, also_set[i]))
                        return true;
        return false;
}

static void inherit(struct variables *v)
{
        size_t n = 0;
        while (environ[n])
                n++;
        v->list = calloc(n + ADDED + 1, sizeof *v->list);
        v->failed = v->list == NULL;
        for (size_t i = 0; i < n && v->list; i++)
                if (!is_replaced(environ[i]))
                        v->list[v->count++] = environ[i];
        v->inherited = v->count;
}

static void add_variable(struct variables *v, const char *name, const char *a, const char *b)
{
        char *text = NULL;
        if (v->failed || asprintf(&text, "%s=%s%s", name, a, b) < 0)
                v->failed = true;
        else
                v->list[v->count++] = text;
}

/* The program must reach the gateway directly. */
static void add_no_proxy(struct variables *v, const char *name)
{
        const char *old = getenv(name);
        bool any = old && *old;
        add_variable(v, name, any ? old : "", any ? ",127.0.0.1,localhost" : "127.0.0.1,localhost");
}

static void set_variables(struct variables *v, const char *base)
{
        inherit(v);
        for (size_t i = 0; i < ADDRESSES; i++)
                add_variable(v, addresses[i].variable, base, addresses[i].path);
        add_no_proxy(v, "NO_PROXY");
        add_no_proxy(v, "no_proxy");
        add_variable(v, "OPENAI_AGENTS_DISABLE_TRACING", "1", "");
}

static void release_variables(struct variables *v)
{
        for (size_t i = v->inherited; i < v->count; i++)
                free(v->list[i]);
        free(v->list);
}

/* Codex reads no such variable, so it gets an option. */
static char **with_codex_option(char **argv, int argc, const char *base, char **option)
{
        const char *slash = strrchr(argv[0], '/');
        char **list = calloc((size_t)argc + 3, sizeof *list);
        size_t n = 0;
        if (!list)
                return NULL;
        list[n++] = argv[0];
        if (strcmp(slash ? slash + 1 : argv[0], "codex") == 0) {
                if (asprintf(option, "openai_base_url=\"%s/openai/v1\"", base) < 0) {
                        free(list);
                        return NULL;
                }
                list[n++] = "-c";
                list[n++] = *option;
        }
        for (int i = 1; i < argc; i++)
                list[n++] = argv[i];
        return list;
}

#define LOOK_MS 10 /* between two looks at the program and at signals */

/* The program gets Ctrl-C, too, and decides what to do. A SIGTERM is passed on. This polls for it,
 * because a signal that comes before the wait, or on another thread, would not end the wait. */
static int wait_for_program(pid_t pid)
{
        int status;
        bool told = false;
        for (;;) {
                if (interrupt_is_term() && !told) {
                        kill(pid, SIGTERM);
                        told = true;
                }
                pid_t ended = waitpid(pid, &status, WNOHANG);
                if (ended == pid)
                        break;
                if (ended < 0 && errno != EINTR)
                        return EXIT_IO;
                wait_sleep(LOOK_MS);
        }
        interrupt_take();
        if (interrupt_is_term())
                interrupt_obeyed();
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* *started: it ran, however it ended. */
static int run_program(struct cli *c, int argc, char **argv, const char *base, bool *started)
{
        char *option = NULL;
        char **list = with_codex_option(argv, argc, base, &option);
        struct variables v = {0};
        pid_t pid;
        int rc;
        set_variables(&v, base);
        if (!list || v.failed) {
                rc = cli_refuse(c, EXIT_IO, "out of memory");
        } else {
                interrupt_patience(1000);
                int failed = posix_spawnp(&pid, list[0], NULL, NULL, list, v.list);
                *started = failed == 0;
                if (failed)
                        rc = cli_refuse(c, failed == EACCES ? 126 : 127, "cannot run \"%s\": %s",
                            list[0],
                            failed == ENOENT ? "no such program in PATH" : strerror(failed));
                else
                        rc = wait_for_program(pid);
        }
        release_variables(&v);
        free(list);
        free(option);
        return rc;
}

static void report(struct cli *c, const struct server_tally *tally)
{
        if (tally->recorded == 0 && tally->unrecorded == 0)
                cli_warn(c, "no request was recorded; does the program take its endpoint from "
                            "OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL?");
        else
                cli_say(c, "recorded %llu %s", (unsigned long long)tally->recorded,
                    tally->recorded == 1 ? "request" : "requests");
        if (tally->unrecorded)
                cli_warn(c, "some requests could not be recorded; `steno check` names those that "
                            "never can be, and the others are tried again when the next gateway "
                            "starts on this store");
}

static int run_record(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        struct server *s = NULL;
        struct server_tally tally = {0};
        struct buf upstreams;
        char token[2 * TOKEN_BYTES + 8];
        char base[120];
        bool started = false;
        (void)opts;
        argv[argc] = NULL;
        int rc = cli_open_store(c, CLI_CREATE);
        if (rc)
                return rc;
        buf_init(&upstreams, 0);
        put_upstreams(&upstreams);
        make_token(token);
        struct server_options o = {.store = cli_store_url(c),
            .listen = "127.0.0.1:0",
            .log_path = "",
            .upstreams = buf_cstr(&upstreams),
            .env = (const char *const *)environ,
            .lent_token = token,
            .lent_project = c->project ? c->project : "default",
            .tally = &tally};
        if (!o.upstreams || server_start(&o, &s, &err))
                rc = cli_fail(c, &err);
        if (rc == 0) {
                snprintf(base, sizeof base, "http://127.0.0.1:%d/~%s", server_port(s), token);
                rc = run_program(c, argc, argv, base, &started);
                server_stop(s);
                if (started)
                        report(c, &tally);
        }
        buf_release(&upstreams);
        return rc;
}

const struct command cmd_record = {
    .name = "record",
    .group = GROUP_RECORD,
    .usage = "-- CMD ARGV...",
    .summary = "runs a program and records its calls to a model",
    .detail =
        "A gateway listens on a free port while the program runs. The program finds it through\n"
        "OPENAI_BASE_URL, OPENAI_API_BASE, ANTHROPIC_BASE_URL and GOOGLE_GEMINI_BASE_URL. The\n"
        "gateway sends the requests to the addresses that these variables had before. The\n"
        "program's own keys are passed on and never stored. The exit code is the program's.",
    .example = "steno record -- codex exec 'run the tests'\n"
               "steno ls",
    .min_args = 1,
    .max_args = -1,
    .run = run_record,
};
