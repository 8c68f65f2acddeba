/*
 * cmd_chat.c - steno chat: line by line, each answered by the loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/interrupt.h"
#include "cli/prompt.h"
#include "cli/talk.h"
#include "cli/term.h"

#define LINE_MAX_CHAT ((size_t)1 << 20)
#define RECALLED 1000 /* records looked through for earlier prompts */
#define PATIENCE 3    /* so many Ctrl-C in one turn end the program */

struct chat_opts {
        struct talk_opts talk;
        const char *title;
        const char *prompt;
};

static int new_conversation(struct cli *c, const struct chat_opts *o)
{
        struct steno_error err = {0};
        struct buf meta;
        int rc = 0;
        buf_init(&meta, 0);
        struct jsonw w = jsonw_to(&meta);
        jsonw_object(&w);
        if (o->title) {
                jsonw_field_cstr(&w, "title", o->title);
        }
        jsonw_object_end(&w);
        const char *json = buf_cstr(&meta);
        if (!json)
                rc = cli_refuse(c, EXIT_IO, "out of memory");
        else if (steno_conv_create(c->store, c->project, NULL, json, &c->conv, &err) < 0)
                rc = cli_fail(c, &err);
        buf_release(&meta);
        if (rc == 0)
                cli_say(c, "conversation %s", steno_conv_id(c->conv));
        return rc;
}

/* ---- history: what the user said before in this conversation ---- */

static int remember(void *ctx, const struct steno_record *r)
{
        char *json = NULL;
        size_t n = 0;
        struct json j;
        if (strcmp(steno_record_kind(r), "message") != 0 ||
            steno_record_message(r, &json, &n, NULL) != 0)
                return 0;
        json_init(&j);
        if (json_parse(&j, json, n, NULL, NULL) == 0 &&
            json_is(&j, json_get(&j, 0, "role"), "user")) {
                char *line = json_dup_string(&j, json_get(&j, 0, "content"));
                if (line)
                        prompt_remember(ctx, line);
                free(line);
        }
        json_release(&j);
        steno_free(json);
        return 0;
}

static void recall(struct cli *c, struct prompt *p)
{
        uint64_t last = 0;
        if (steno_conv_last_seq(c->conv, &last, NULL) == 0)
                steno_read(c->conv, last > RECALLED ? last - RECALLED : 0, 0, remember, p, NULL);
}

/* ---- turns ---- */

static const char help[] =
    "  /continue  continues after an error or a stop\n"
    "  /help      shows this list\n"
    "  /exit      ends it, as Ctrl-D does\n"
    "Ctrl-C stops a reply, or clears the line. Everything else is said to the model.";

/* One line of input. Returns an exit code, or -1 to end the chat. */
static int take_line(struct talk *t, struct str text)
{
        const char *line = text.p;
        if (strcmp(line, "/exit") == 0 || strcmp(line, "/quit") == 0)
                return -1;
        if (strcmp(line, "/help") == 0) {
                cli_say(t->c, "%s", help);
                return EXIT_DONE;
        }
        bool go_on = strcmp(line, "/continue") == 0;
        return talk_run(t, &(struct talk_turn){go_on ? (struct str){0} : text, "chat", NULL});
}

static bool is_blank(const char *line)
{
        return line[strspn(line, " \t")] == '\0';
}

/* A person goes on after a failure and a Ctrl-C; a script does not. */
static int chat_lines(struct talk *t, struct prompt *p, bool person)
{
        struct buf line;
        int rc = EXIT_DONE;
        buf_init(&line, LINE_MAX_CHAT);
        for (;;) {
                enum prompt_got got = prompt_read(p, talk_stop_fd(t), &line);
                if (got == PROMPT_INTERRUPTED && person && interrupt_take())
                        continue;
                if (got == PROMPT_FAILED)
                        rc = cli_refuse(t->c, EXIT_IO, "standard input: %s",
                            errno == EMSGSIZE ? "a line is too long" : strerror(errno));
                const char *z = got == PROMPT_LINE ? buf_cstr(&line) : NULL;
                if (!z)
                        break;
                if (is_blank(z))
                        continue;
                prompt_remember(p, z);
                rc = take_line(t, buf_str(&line));
                if (rc < 0)
                        break;
                if (person && (!interrupt_pending() || interrupt_take()))
                        rc = EXIT_DONE;
                if (rc != EXIT_DONE || t->c->out.sys)
                        break;
                if (person)
                        term_stderr(STR("\n"));
        }
        buf_release(&line);
        return rc < 0 ? EXIT_DONE : rc;
}

static int converse(struct talk *t)
{
        bool person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
        struct prompt *p = prompt_new(person, t->events.colours);
        if (!p)
                return cli_refuse(t->c, EXIT_IO, "out of memory");
        if (person) {
                interrupt_patience(PATIENCE);
                t->c->out.steady = true;
                t->go_on = "/continue";
                recall(t->c, p);
                cli_say(t->c, "/help lists the commands; Ctrl-D ends the chat\n");
        }
        int rc = chat_lines(t, p, person);
        prompt_free(p);
        return rc;
}

/* Before the first line is typed, and before there is a conversation without one. */
static int need_model(struct talk *t)
{
        const struct config *config = &t->session.config;
        bool scripted = config->provider && strcmp(config->provider, "script") == 0;
        if (scripted || (config->model && config->model[0]))
                return 0;
        return cli_refuse(t->c, EXIT_USAGE, "no model given: use --model NAME or set STENO_MODEL");
}

static int run_chat(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct chat_opts *o = opts;
        struct talk t;
        c->sealing = true;
        int rc = argc > 0 ? cli_open_conv(c, argv[0]) : cli_open_store(c, CLI_CREATE);
        if (rc != 0)
                return rc;
        rc = talk_open(&t, c, &o->talk);
        t.go_on = "steno continue";
        if (rc == 0)
                rc = need_model(&t);
        if (rc == 0 && argc == 0) /* not before: a wrong option would leave an empty one */
                rc = new_conversation(c, o);
        if (rc == 0)
                rc = o->prompt ? talk_run(&t, &(struct talk_turn){str_of(o->prompt), "chat", NULL})
                               : converse(&t);
        talk_close(&t);
        return rc;
}

static const struct opt chat_table[] = {
    {"title", 0, OPT_TEXT, "T", offsetof(struct chat_opts, title),
        "the title of the new conversation, when no CONV is given"},
    {"prompt", 'p', OPT_TEXT, "T", offsetof(struct chat_opts, prompt),
        "send this, wait for the reply, and end"},
    TALK_ROWS(struct chat_opts),
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_chat = {
    .name = "chat",
    .group = GROUP_RUN,
    .usage = "[CONV]",
    .summary = "talks with a model, line by line, with tools",
    .detail =
        "Without CONV, a new conversation is made. Each line is a prompt. On a terminal you edit\n"
        "it as in a shell, with the conversation's earlier prompts as history. Ctrl-C stops a\n"
        "reply and keeps the part that has arrived. Ctrl-D or /exit ends the chat. In scripts,\n"
        "use --prompt or lines on standard input, and --json for the events.",
    .example = "steno chat --model gpt-4o-mini\n"
               "steno chat demo --prompt \"What is in this folder?\" --yes --json",
    .opts = chat_table,
    .opts_size = sizeof(struct chat_opts),
    .max_args = 1,
    .run = run_chat,
};
