/*
 * term.c - see term.h. The pager and the progress bar are in files of their own.
 */
#include "cli/term.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/env.h"
#include "base/text.h"

#define MINUTE 60
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

bool term_colours(int fd, const char *when)
{
        const char *no = getenv("NO_COLOR");
        const char *term = getenv("TERM");

        if (when != NULL && strcmp(when, "auto") != 0)
                return strcmp(when, "always") == 0;
        if (no != NULL && no[0] != 0)
                return false;
        return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

unsigned term_width(void)
{
        struct winsize ws;
        const char *columns = getenv("COLUMNS");
        long n = columns ? strtol(columns, NULL, 10) : 0;

        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20)
                return ws.ws_col;
        return n >= 20 && n <= 1000 ? (unsigned)n : 80;
}

/* The question may be on standard error while the output goes elsewhere. */
unsigned term_real_width(void)
{
        unsigned least = 0;
        struct winsize ws;

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (ioctl(fd, TIOCGWINSZ, &ws) == 0 && ws.ws_col && (!least || ws.ws_col < least))
                        least = ws.ws_col;
        return least ? least : term_width();
}

static unsigned char_columns(uint32_t cp)
{
        int w = cp < 0x7F ? 1 : wcwidth((wchar_t)cp);

        return w < 0 ? 1 : (unsigned)w;
}

unsigned term_columns(struct str s)
{
        unsigned columns = 0;
        uint32_t cp;

        for (size_t i = 0, k; (k = text_decode(s.p + i, s.n - i, &cp)) > 0; i += k)
                columns += char_columns(cp);
        return columns;
}

size_t term_fit(struct str s, unsigned columns)
{
        unsigned used = 0;
        size_t i = 0;
        uint32_t cp;

        for (size_t k; (k = text_decode(s.p + i, s.n - i, &cp)) > 0; i += k) {
                used += char_columns(cp);
                if (used > columns)
                        break;
        }
        return i;
}

void term_ago(struct buf *b, struct str iso, int64_t now_ms)
{
        int64_t then_ms;

        if (!time_parse(iso.p, iso.n, &then_ms))
                return;
        int64_t s = (now_ms - then_ms) / 1000;
        if (s < 5)
                buf_puts(b, "just now");
        else if (s < MINUTE)
                buf_printf(b, "%d s ago", (int)s);
        else if (s < HOUR)
                buf_printf(b, "%d min ago", (int)(s / MINUTE));
        else if (s < DAY)
                buf_printf(b, "%d h ago", (int)(s / HOUR));
        else if (s < 14 * DAY)
                buf_printf(b, "%d day%s ago", (int)(s / DAY), s < 2 * DAY ? "" : "s");
        else
                buf_printf(b, "%.10s", iso.n >= 10 ? iso.p : "");
}

void term_duration(struct buf *b, double ms)
{
        if (ms < 1000)
                buf_printf(b, "%.0f ms", ms);
        else if (ms < 60000)
                buf_printf(b, "%.1f s", ms / 1000);
        else
                buf_printf(b, "%.0f min %.0f s", (double)(long)(ms / 60000),
                    (double)((long)(ms / 1000) % 60));
}

/* One line, nothing in it that a terminal would obey. */
static void cell_text(struct buf *b, struct str s)
{
        size_t from = b->n;

        text_for_terminal(b, s, false);
        for (size_t i = from; i < b->n; i++) {
                if (b->p[i] == '\n' || b->p[i] == '\t')
                        b->p[i] = ' ';
        }
}

void term_cell(struct buf *b, struct str s, unsigned width)
{
        struct buf safe;

        buf_init(&safe, 0);
        cell_text(&safe, s);
        unsigned columns = term_columns(buf_str(&safe));
        if (columns > width && width > 0) {
                safe.n = term_fit(buf_str(&safe), width - 1);
                columns = term_columns(buf_str(&safe)) + 1;
                buf_puts(&safe, "…");
        }
        buf_put_str(b, buf_str(&safe));
        for (; columns < width; columns++)
                buf_putc(b, ' ');
        buf_release(&safe);
}

void term_cell_right(struct buf *b, struct str s, unsigned width)
{
        for (unsigned columns = term_columns(s); columns < width; columns++)
                buf_putc(b, ' ');
        buf_put_str(b, s);
}

void term_stderr(struct str s)
{
        while (s.n > 0) {
                ssize_t k = write(STDERR_FILENO, s.p, s.n);
                if (k < 0 && errno == EINTR)
                        continue; /* Ctrl-C often comes while something is printed */
                if (k <= 0)
                        return;
                s.p += k;
                s.n -= (size_t)k;
        }
}
