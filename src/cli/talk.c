/*
 * talk.c - the loop from the command line: settings, permission asked on the terminal, events
 * printed, an exit code for each way a run can end.
 */
#include "cli/talk.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/env.h"
#include "base/json.h"
#include "base/state_folder.h"
#include "base/text.h"
#include "cli/callview.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/prompt.h"
#include "cli/term.h"
#include "model/event.h"
#include "otel/otel.h"

#define OTEL_LAST_MS 1000 /* for the collector, when everything has been said */

static void say_warnings(struct cli *c, struct buf *warnings)
{
        const char *z = buf_cstr(warnings);
        while (z && *z) {
                size_t n = strcspn(z, "\n");
                if (n)
                        cli_say(c, "steno: warning: %.*s", (int)n, z);
                z += n + (z[n] == '\n');
        }
}

#define LOOK_FOR_WATCHERS_MS 500

static bool can_ask(void)
{
        return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static int open_otel(struct talk *t)
{
        struct steno_error err = {0};
        char *path = NULL;
        int rc = state_folder(cli_store_url(t->c), &path, &err);
        struct otel_options opt = {.store = t->c->store,
            .path = path,
            .config = t->session.config.otlp,
            .provider = t->session.config.provider,
            .env = (const char *const *)environ};
        if (rc == 0)
                rc = otel_new(&opt, &t->otel, &err);
        free(path);
        return rc ? cli_fail(t->c, &err) : 0;
}

static int open_session(struct talk *t)
{
        struct steno_error err = {0};
        char *directory = getcwd(NULL, 0);
        struct session_options opt = {
            .env = (const char *const *)environ,
            .directory = directory,
            .store_path = cli_store_folder(t->c),
            .no_tools = t->o->no_tools,
            .tool_calls = t->o->tools_as,
            .strict = t->o->strict,
            .provider = t->o->script ? "script" : t->o->provider,
            .base_url = t->o->base_url,
            .model = t->o->model,
            .system = t->o->system,
        };
        int rc = session_open(&t->session, &opt, &err);
        free(directory);
        if (rc)
                return cli_fail(t->c, &err);
        say_warnings(t->c, &t->session.warnings);
        return t->session.config.otlp ? open_otel(t) : 0;
}

/* Tells who collects traces of the run that an event or result is of. */
static void tell_collector(struct talk *t, struct str text,
    void (*tell)(struct otel *x, const char *project, const char *run))
{
        struct json j;
        json_init(&j);
        char *run = json_parse(&j, text.p, text.n, NULL, NULL) == 0
                        ? json_dup_string(&j, json_get(&j, 0, "runId"))
                        : NULL;
        if (run)
                tell(t->otel, steno_conv_project(t->c->conv), run);
        free(run);
        json_release(&j);
}

int talk_open(struct talk *t, struct cli *c, const struct talk_opts *o)
{
        struct steno_error err = {0};
        *t = (struct talk){.c = c, .o = o, .allow_all = c->yes, .own_rules = true};
        buf_init(&t->script, 0);
        t->events = (struct events){.out = &c->out,
            .json = c->json,
            .quiet = c->quiet || c->json,
            .colours = term_colours(STDERR_FILENO, c->color),
            .width = isatty(STDERR_FILENO) ? term_width() : 0,
            .asks = can_ask() || c->yes};
        if (steno_stop_new(&t->stop, &err) < 0)
                return cli_fail(c, &err);
        interrupt_stop(t->stop);
        if (o->script) {
                int rc = input_slurp(c, o->script, &t->script);
                if (rc)
                        return rc;
                t->script_json = buf_cstr(&t->script);
        }
        return open_session(t);
}

void talk_close(struct talk *t)
{
        interrupt_stop(NULL);
        otel_free(t->otel, OTEL_LAST_MS);
        session_close(&t->session);
        steno_stop_free(t->stop);
        buf_release(&t->script);
}

/* ---- permission ---- */

/* The ids that `steno approve` in another terminal needs, each in a row of its own that is never
 * wrapped.
 */
static void put_id(struct buf *b, const char *what, const char *id)
{
        unsigned columns = term_width() ? term_width() : 80;
        unsigned used = 5 + (unsigned)strlen(what);
        buf_printf(b, "  (%s ", what);
        callview_put_row(b, "", str_of(id), columns > used + 8 ? columns - used : 8);
        buf_puts(b, ")\n");
}

static void put_question(
    struct buf *b, const struct talk *t, const struct steno_permission_request *r)
{
        const char *bold = t->events.colours ? "\033[1;33m" : "";
        const char *plain = t->events.colours ? "\033[0m" : "";
        buf_printf(b, "%s? May ", bold);
        text_for_decision(b, str_of(r->tool));
        buf_printf(b, " run this?%s\n", plain);
        callview_put_whole(b, r->tool, str_span(r->args, r->args_n), term_real_width());
        put_id(b, "run", r->run);
        put_id(b, "call", r->call_id);
        buf_printf(b, "%s  [y]es, [a]lways this exact call, [N]o:%s ", bold, plain);
}

static bool means(const char *answer, const char *letter, const char *word)
{
        return strcasecmp(answer, letter) == 0 || strcasecmp(answer, word) == 0;
}

/* There is no terminal here. The flag is set when an answer comes through the store. */
static int ask_elsewhere(
    const struct talk *t, const struct steno_permission_request *r, char reason[240])
{
        int64_t patience = (int64_t)t->session.config.limits.approval_seconds * 1000;
        int64_t now = time_monotonic_ms(), watched = now;
        struct pollfd stop = {.fd = steno_stop_fd(r->stop), .events = POLLIN};
        while (!steno_stop_requested(r->stop)) {
                if (steno_watched(t->c->store, t->c->project))
                        watched = now;
                else if (now - watched >= patience)
                        break;
                poll(&stop, 1, LOOK_FOR_WATCHERS_MS);
                now = time_monotonic_ms();
        }
        snprintf(reason, 240, "nobody was there to ask");
        return STENO_ASK;
}

static int ask(void *ctx, const struct steno_permission_request *r, char reason[240])
{
        struct talk *t = ctx;
        if (t->allow_all)
                return STENO_ALLOW;
        if (!can_ask())
                return ask_elsewhere(t, r, reason);
        struct buf question;
        char answer[16] = "";
        buf_init(&question, 0);
        put_question(&question, t, r);
        out_flush(&t->c->out);
        enum prompt_got got = PROMPT_FAILED;
        if (!question.failed)
                got = prompt_ask(buf_str(&question), steno_stop_fd(r->stop), answer);
        buf_release(&question);
        if (got == PROMPT_LINE && means(answer, "y", "yes"))
                return STENO_ALLOW;
        if (got == PROMPT_LINE && means(answer, "a", "always") &&
            permission_approve(&t->session.permission.approvals, r->repeat, NULL) == 0)
                return STENO_ALLOW;
        snprintf(reason, 240, "the user said no");
        return got == PROMPT_LINE ? STENO_DENY : STENO_ASK;
}

static int always_ask(void *ctx, const struct steno_permission_request *r, char reason[240])
{
        (void)ctx, (void)r, (void)reason;
        return STENO_ASK;
}

/* ---- a run ---- */

static void on_event(void *ctx, uint64_t seq, const char *type, const char *data, size_t n)
{
        struct talk *t = ctx;
        events_print(&t->events, seq, type, data, n);
        if (t->otel && strcmp(type, event_name(STENO_EVENT_RUN_STARTED)) == 0)
                tell_collector(t, str_span(data, n), otel_began);
        if (t->c->out.sys) /* the reader closed the pipe: as any filter, we stop */
                steno_stop_request(t->stop);
}

/* What the end of a run means for the caller; other reasons are limits that were reached. */
static const struct ending {
        const char *reason;
        int code;
        bool complete; /* there is nothing to continue */
} endings[] = {
    {"stop", EXIT_DONE, true},
    {"length", EXIT_DONE, false},
    {"content_filter", EXIT_DONE, false},
    {"required_tool", EXIT_REFUSED, true},
    {"interrupted", EXIT_INTERRUPTED, false},
    {"error", EXIT_IO, false},
};

static struct ending ending_of(const char *result)
{
        struct ending end = {NULL, EXIT_REFUSED, false};
        struct json j;
        json_init(&j);
        if (json_parse(&j, result, strlen(result), NULL, NULL) == 0) {
                json_ref reason = json_get(&j, 0, "reason");
                for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
                        if (json_is(&j, reason, endings[i].reason))
                                end = endings[i];
                /* A key that was refused will be refused again. */
                if (json_is(&j, json_get(&j, json_get(&j, 0, "error"), "code"), "LLM_AUTH"))
                        end.code = EXIT_REFUSED;
        }
        json_release(&j);
        return end;
}

static uint32_t number(const struct opt_number *n, uint32_t scale)
{
        return n->v > UINT32_MAX / scale ? UINT32_MAX : (uint32_t)(n->v * scale);
}

/* A stop is for one run. */
static int renew_stop(struct talk *t, struct steno_error *err)
{
        struct steno_stop *fresh = NULL;
        if (!steno_stop_requested(t->stop) || interrupt_pending())
                return 0;
        if (steno_stop_new(&fresh, err) < 0)
                return -1;
        interrupt_stop(fresh);
        steno_stop_free(t->stop);
        t->stop = fresh;
        return 0;
}

int talk_stop_fd(struct talk *t)
{
        return renew_stop(t, NULL) == 0 ? steno_stop_fd(t->stop) : -1;
}

static void say_how_to_go_on(struct talk *t)
{
        if (t->c->json || !t->go_on || t->c->out.sys)
                return;
        bool command = t->go_on[0] != '/';
        cli_say(t->c, "  %s%s%s continues from here", t->go_on, command ? " " : "",
            command ? steno_conv_id(t->c->conv) : "");
}

/* The prompt as a message, where it has a NUL: a C string would end there. */
static const char *message_of(struct str prompt, struct buf *b)
{
        struct jsonw w = jsonw_to(b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "user");
        jsonw_field_str(&w, "content", prompt);
        jsonw_object_end(&w);
        return buf_cstr(b);
}

static int run_turn(struct talk *t, const struct talk_turn *turn, const char *message)
{
        struct steno_error err = {0};
        char *result = NULL;
        if (renew_stop(t, &err) < 0)
                return cli_fail(t->c, &err);
        struct steno_loop_options opt = {
            .size = sizeof(opt),
            .flags = (turn->prompt.p ? 0u : STENO_LOOP_CONTINUE) |
                     (t->o->no_stream ? STENO_LOOP_NO_STREAM : 0u),
            .store = t->c->store,
            .conv = t->c->conv,
            .prompt = message ? NULL : turn->prompt.p,
            .message_json = message,
            .mode = turn->mode,
            .run_id = turn->run_id,
            .require_tool = t->o->require_tool,
            .script_json = t->script_json,
            .budget = t->o->budget.v,
            .max_turns = number(&t->o->turns, 1),
            .max_ms = number(&t->o->seconds, 1000),
            .max_tokens = t->o->tokens.v,
            .permit = t->own_rules ? NULL : always_ask,
            .ask = ask,
            .ask_ctx = t,
            .stop = t->stop,
            .on_event = on_event,
            .ctx = t,
        };
        if (!session_is_ready(&t->session))
                cli_say(t->c, "  waiting for MCP servers that are starting");
        session_fill(&t->session, &opt);
        if (session_is_ready(&t->session)) {
                say_warnings(t->c, &t->session.late_warnings);
                buf_clear(&t->session.late_warnings);
        }
        if (steno_chat_loop(&opt, &result, &err) < 0)
                return cli_fail(t->c, &err);
        if (t->otel)
                tell_collector(t, str_of(result), otel_ended);
        struct ending end = ending_of(result);
        if (interrupt_is_term())
                cli_say(t->c, "  ended by SIGTERM");
        if (!end.complete)
                say_how_to_go_on(t);
        steno_free(result);
        return end.code;
}

int talk_run(struct talk *t, const struct talk_turn *turn)
{
        struct buf b;
        buf_init(&b, 0);
        bool whole = turn->prompt.p && memchr(turn->prompt.p, 0, turn->prompt.n);
        const char *message = whole ? message_of(turn->prompt, &b) : NULL;
        int rc = whole && !message ? cli_refuse(t->c, EXIT_IO, "out of memory")
                                   : run_turn(t, turn, message);
        buf_release(&b);
        return rc;
}
