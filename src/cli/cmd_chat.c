/*
 * cmd_chat.c - steno chat: line by line, each answered by the loop.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/talk.h"
#include "cli/term.h"

#define LINE_MAX_CHAT ((size_t)1 << 20)

struct chat_opts {
        struct talk_opts talk;
        const char *title;
};

static int open_conversation(struct cli *c, const struct chat_opts *o, const char *id)
{
        struct steno_error err = {0};
        if (id)
                return cli_open_conv(c, id);
        int rc = cli_open_store(c, CLI_CREATE);
        if (rc != 0)
                return rc;
        struct buf meta;
        buf_init(&meta, 0);
        struct jsonw w = jsonw_to(&meta);
        jsonw_object(&w);
        if (o->title) {
                jsonw_key(&w, "title");
                jsonw_cstr(&w, o->title);
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

/* A line without its end: 1, 0 at the end of the input, or -1. Reads byte by byte, because a
 * question about permission reads from the same input. */
static int read_line(struct buf *line)
{
        char byte;
        buf_clear(line);
        for (;;) {
                ssize_t n = input_read(STDIN_FILENO, &byte, 1);
                if (n < 0)
                        return -1;
                if (n == 0)
                        return line->n > 0;
                if (byte == '\n')
                        return 1;
                buf_putc(line, byte);
                if (line->failed)
                        return -1;
        }
}

static int chat_lines(struct talk *t, struct cli *c)
{
        bool person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
        struct buf line;
        int rc = EXIT_DONE;
        buf_init(&line, LINE_MAX_CHAT);
        for (;;) {
                if (person)
                        term_stderr(STR("\nyou> "));
                int got = read_line(&line);
                if (got < 0 && !interrupt_pending())
                        rc = cli_refuse(c, EXIT_IO, "standard input: %s",
                            line.failed ? "a line that is too long" : strerror(errno));
                if (got <= 0 || interrupt_pending())
                        break;
                const char *prompt = buf_cstr(&line);
                if (!prompt || line.n == 0)
                        continue;
                if (strcmp(prompt, "/exit") == 0 || strcmp(prompt, "/quit") == 0)
                        break;
                rc = talk_run(t, &(struct talk_turn){prompt, "chat", NULL});
                if (rc == EXIT_INTERRUPTED || (rc != EXIT_DONE && !person))
                        break;
        }
        buf_release(&line);
        return rc;
}

static int run_chat(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct chat_opts *o = opts;
        struct talk t;
        int rc = open_conversation(c, o, argc > 0 ? argv[0] : NULL);
        if (rc != 0)
                return rc;
        rc = talk_open(&t, c, &o->talk);
        if (rc == 0)
                rc = chat_lines(&t, c);
        talk_close(&t);
        return rc;
}

static const struct opt chat_table[] = {
    {"title", 0, OPT_TEXT, "T", offsetof(struct chat_opts, title),
        "of a new conversation, when no CONV is given"},
    TALK_ROWS(struct chat_opts),
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_chat = {
    .name = "chat",
    .group = GROUP_RUN,
    .usage = "[CONV]",
    .summary = "talks with a model, line by line, with tools",
    .detail = "Without CONV a new conversation is made. Each line is a prompt; an empty input,\n"
              "Ctrl-D or /exit ends it. Ctrl-C stops the reply; what had come of it is kept.",
    .example = "steno chat --model gpt-4o-mini\n"
               "echo \"What is in this folder?\" | steno chat demo --yes",
    .opts = chat_table,
    .opts_size = sizeof(struct chat_opts),
    .max_args = 1,
    .run = run_chat,
};
