/*
 * prompt.c - libedit on a terminal, plain lines elsewhere (prompt.h).
 *
 * libedit gets its characters from take_key(), which waits for the input and for a signal at the
 * same time: its own handling of signals would raise them again for the whole process group.
 */
#include "cli/prompt.h"

#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "base/terminal.h"
#include "cli/interrupt.h"
#include "cli/term.h"

#define HISTORY_LINES 500
#define ANSWER_BYTES 4096
#define TO_THE_END 5 /* Ctrl-E */

struct prompt {
        EditLine *el; /* NULL: plain lines */
        History *history;
        bool person;
        bool colours;
        int in; /* standard input, or its terminal opened again */
        int stop_fd;
        enum prompt_got why; /* the reason why take_key() ended the line */
};

/* ---- bytes ---- */

static int open_input(void)
{
        int fd = terminal_open_again(STDIN_FILENO);
        return fd >= 0 ? fd : STDIN_FILENO;
}

static void close_input(int in)
{
        if (in != STDIN_FILENO)
                close(in);
}

static bool readable(int fd)
{
        struct pollfd p = {.fd = fd, .events = POLLIN};
        return poll(&p, 1, 0) > 0;
}

/* 1 with a byte, 0 at the end, -1 on failure, -2 when the stop descriptor is readable, -3 when the
 * terminal changed meanwhile. */
static int next_byte(int in, int stop_fd, char *byte)
{
        for (;;) {
                struct pollfd p[2] = {
                    {.fd = in, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
                int n = poll(p, 2, -1);
                if (n < 0 && errno != EINTR)
                        return -1;
                if (n > 0 && p[1].revents)
                        return -2;
                if (interrupt_terminal_changed())
                        return -3;
                if (n <= 0)
                        continue;
                /* A signal that came before the byte is handled when poll() returns, too late for
                 * p[1]. The byte was typed after the Ctrl-C and belongs to the next line. */
                if (readable(stop_fd))
                        return -2;
                ssize_t k = read(in, byte, 1);
                if (k >= 0)
                        return (int)k;
                if (errno == EIO) /* the terminal is gone */
                        return 0;
                if (errno != EINTR && errno != EAGAIN)
                        return -1;
        }
}

static enum prompt_got got_of(int rc)
{
        if (rc == -2)
                return PROMPT_INTERRUPTED;
        return rc == 0 ? PROMPT_END : PROMPT_FAILED;
}

static enum prompt_got read_plain(int in, int stop_fd, struct buf *line)
{
        char byte;
        for (;;) {
                int rc = next_byte(in, stop_fd, &byte);
                if (rc == -3)
                        continue;
                if (rc == 0 && line->n > 0)
                        return PROMPT_LINE;
                if (rc <= 0)
                        return got_of(rc);
                if (byte == '\n')
                        break;
                buf_putc(line, byte);
                if (line->failed) {
                        errno = EMSGSIZE;
                        return PROMPT_FAILED;
                }
        }
        if (line->n > 0 && line->p[line->n - 1] == '\r')
                line->n--;
        return PROMPT_LINE;
}

/* ---- libedit ---- */

/* Back from Ctrl-Z the terminal is in the shell's mode, and after a change of its size the line
 * is to be drawn anew. */
static void draw_again(EditLine *el)
{
        el_set(el, EL_PREP_TERM, 0);
        el_set(el, EL_PREP_TERM, 1);
        el_resize(el);
        el_set(el, EL_REFRESH);
}

static int take_key(EditLine *el, wchar_t *key)
{
        struct prompt *p = NULL;
        char bytes[8];
        size_t n = 0;
        el_wget(el, EL_CLIENTDATA, &p);
        for (;;) {
                int rc = next_byte(p->in, p->stop_fd, &bytes[n]);
                if (rc == -3) {
                        draw_again(el);
                        continue;
                }
                if (rc == -2 && p->why != PROMPT_INTERRUPTED) {
                        p->why = PROMPT_INTERRUPTED;
                        *key = TO_THE_END; /* what is printed next must not run over the line */
                        return 1;
                }
                if (rc <= 0) {
                        p->why = got_of(rc);
                        return rc == 0 ? 0 : -1;
                }
                mbstate_t state;
                memset(&state, 0, sizeof(state));
                size_t used = mbrtowc(key, bytes, ++n, &state);
                if (used == (size_t)-2 && n < 4)
                        continue; /* a character comes in several bytes */
                if (used == (size_t)-1 || used == (size_t)-2)
                        *key = 0xfffd;
                return 1;
        }
}

/* \1 encloses what takes no columns. */
static char *prompt_text(EditLine *el)
{
        static char plain[] = "you> ";
        static char coloured[] = "\1\033[1;36m\1you>\1\033[0m\1 ";
        struct prompt *p = NULL;
        el_get(el, EL_CLIENTDATA, &p);
        return p->colours ? coloured : plain;
}

static bool can_edit(void)
{
        const char *term = getenv("TERM");
        return term && term[0] && strcmp(term, "dumb") != 0;
}

static void bind_keys(EditLine *el)
{
        static const char *const keys[][2] = {
            {"^R", "em-inc-search-prev"},
            {"\\e[1;5C", "em-next-word"},
            {"\\e[1;5D", "ed-prev-word"},
            {"\\e[3~", "ed-delete-next-char"},
            {"\\e[H", "ed-move-to-beg"},
            {"\\e[F", "ed-move-to-end"},
            {"\\e[1~", "ed-move-to-beg"},
            {"\\e[4~", "ed-move-to-end"},
        };
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                el_set(el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

static void start_editing(struct prompt *p)
{
        HistEvent ev;
        p->history = history_init();
        p->el = p->history ? el_init("steno", stdin, stderr, stderr) : NULL;
        if (!p->el)
                return; /* plain lines will do */
        history(p->history, &ev, H_SETSIZE, HISTORY_LINES);
        history(p->history, &ev, H_SETUNIQUE, 1);
        el_set(p->el, EL_CLIENTDATA, p);
        el_set(p->el, EL_SIGNAL, 0);
        el_set(p->el, EL_EDITOR, "emacs");
        el_set(p->el, EL_PROMPT_ESC, prompt_text, '\1');
        el_set(p->el, EL_HIST, history, p->history);
        el_wset(p->el, EL_GETCFN, take_key);
        bind_keys(p->el);
        el_source(p->el, NULL);
}

struct prompt *prompt_new(bool person, bool colours)
{
        struct prompt *p = calloc(1, sizeof(*p));
        if (!p)
                return NULL;
        p->person = person;
        p->colours = colours;
        p->in = open_input();
        if (person && can_edit())
                start_editing(p);
        return p;
}

void prompt_free(struct prompt *p)
{
        if (!p)
                return;
        if (p->el)
                el_end(p->el);
        if (p->history)
                history_end(p->history);
        close_input(p->in);
        free(p);
}

void prompt_remember(struct prompt *p, const char *line)
{
        HistEvent ev;
        if (!p->history || !line[0])
                return;
        for (const char *z = line; *z; z++)
                if ((unsigned char)*z < 0x20 || *z == 0x7f)
                        return;
        history(p->history, &ev, H_ENTER, line);
}

static enum prompt_got read_edited(struct prompt *p, struct buf *line)
{
        int n = 0;
        p->why = PROMPT_END; /* libedit handles Ctrl-D itself, and then take_key() sets nothing */
        el_resize(p->el);
        const char *z = el_gets(p->el, &n);
        if (!z || n <= 0) {
                el_reset(p->el);
                term_stderr(p->why == PROMPT_INTERRUPTED ? STR("^C\n") : STR("\n"));
                return p->why;
        }
        while (n > 0 && (z[n - 1] == '\n' || z[n - 1] == '\r'))
                n--;
        buf_put(line, z, (size_t)n);
        if (line->failed) {
                errno = EMSGSIZE;
                return PROMPT_FAILED;
        }
        return PROMPT_LINE;
}

enum prompt_got prompt_read(struct prompt *p, int stop_fd, struct buf *line)
{
        p->stop_fd = stop_fd;
        buf_clear(line);
        interrupt_watch_terminal(true);
        enum prompt_got got;
        if (p->el) {
                got = read_edited(p, line);
        } else {
                if (p->person)
                        term_stderr(STR("you> "));
                got = read_plain(p->in, stop_fd, line);
                if (p->person && got != PROMPT_LINE)
                        term_stderr(STR("\n"));
        }
        interrupt_watch_terminal(false);
        return got;
}

enum prompt_got prompt_ask(struct str question, int stop_fd, char answer[16])
{
        struct buf line;
        buf_init(&line, ANSWER_BYTES);
        tcflush(STDIN_FILENO, TCIFLUSH);
        term_stderr(question);
        int in = open_input();
        enum prompt_got got = read_plain(in, stop_fd, &line);
        close_input(in);
        answer[0] = '\0';
        if (got == PROMPT_LINE && line.n < 16) {
                memcpy(answer, line.p ? line.p : "", line.n);
                answer[line.n] = '\0';
        }
        if (got != PROMPT_LINE)
                term_stderr(STR("\n"));
        buf_release(&line);
        return got;
}
