/*
 * term_progress.c - a bar on standard error: what is done, how much of it, how fast, and the time
 * left.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/term.h"

#define BAR_WIDTH 24
#define DRAW_EVERY_MS 100
#define FIRST_DRAW_MS 300 /* work shorter than this is over before a bar could be read */

static int64_t now(void)
{
        return env_real()->now(env_real());
}

void term_progress_init(struct term_progress *t, bool quiet)
{
        memset(t, 0, sizeof(*t));
        t->on = !quiet && isatty(STDERR_FILENO);
        t->started = now();
}

static void put_bar(struct buf *b, uint64_t done, uint64_t total)
{
        unsigned filled = (unsigned)((double)done / (double)total * BAR_WIDTH);

        for (unsigned i = 0; i < BAR_WIDTH; i++)
                buf_puts(b, i < filled ? "█" : "░");
        buf_printf(b, " %3u %%", (unsigned)((double)done / (double)total * 100));
}

static void draw(struct buf *b, const char *what, uint64_t done, uint64_t total, double seconds)
{
        buf_printf(b, "\r\033[K%s  ", what ? what : "");
        if (total > 0)
                put_bar(b, done > total ? total : done, total);
        buf_puts(b, "  ");
        text_put_grouped(b, done);
        if (seconds <= 0.5 || done == 0)
                return;
        double rate = (double)done / seconds;
        buf_puts(b, "  ");
        text_put_grouped(b, (uint64_t)rate);
        buf_puts(b, "/s");
        if (total > done) {
                uint64_t left = (uint64_t)((double)(total - done) / rate);
                buf_printf(b, "  %u:%02u left", (unsigned)(left / 60), (unsigned)(left % 60));
        }
}

int term_progress_step(void *ctx, const char *what, uint64_t done, uint64_t total)
{
        struct term_progress *t = ctx;
        struct buf line;
        int64_t at;

        if (interrupt_pending())
                return 1;
        if (!t->on)
                return 0;
        if (total > 0 && done >= total) {
                term_progress_end(t);
                return 0;
        }
        at = now();
        if (at - t->started < FIRST_DRAW_MS || at - t->last < DRAW_EVERY_MS)
                return 0;
        t->last = at;
        t->drawn = true;
        buf_init(&line, 0);
        draw(&line, what, done, total, (double)(at - t->started) / 1000);
        if (!line.failed)
                term_stderr(buf_str(&line));
        buf_release(&line);
        return 0;
}

void term_progress_end(struct term_progress *t)
{
        if (t->drawn)
                term_stderr(STR("\r\033[K"));
        t->drawn = false;
}
