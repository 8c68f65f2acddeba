/*
 * out.c - see out.h.
 */
#include "cli/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/text.h"
#include "cli/interrupt.h"

#define OUT_CHUNK (64 * KIB) /* one pipe's worth */

void out_init(struct out *o, int fd)
{
        memset(o, 0, sizeof(*o));
        o->fd = fd;
        buf_init(&o->b, 0);
}

void out_release(struct out *o)
{
        buf_release(&o->b);
}

static void send(struct out *o, const char *p, size_t n)
{
        while (o->sys == 0 && n > 0) {
                ssize_t k = write(o->fd, p, n);
                if (k >= 0) {
                        p += k;
                        n -= (size_t)k;
                } else if (errno != EINTR || (interrupt_pending() && !o->steady)) {
                        o->sys = errno;
                }
        }
}

int out_flush(struct out *o)
{
        if (o->sys == 0 && o->b.failed)
                o->sys = ENOMEM;
        send(o, o->b.p, o->b.n);
        buf_clear(&o->b);
        return o->sys;
}

void out_put(struct out *o, const void *p, size_t n)
{
        if (o->sys != 0)
                return;
        if (n >= OUT_CHUNK / 2) { /* as it is, without a copy */
                out_flush(o);
                send(o, p, n);
                return;
        }
        buf_put(&o->b, p, n);
        if (o->b.n >= OUT_CHUNK || o->b.failed)
                out_flush(o);
}

void out_str(struct out *o, struct str s)
{
        out_put(o, s.p, s.n);
}

void out_puts(struct out *o, const char *z)
{
        out_put(o, z, strlen(z));
}

void out_printf(struct out *o, const char *fmt, ...)
{
        char small[512];
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(small, sizeof(small), fmt, ap);
        va_end(ap);
        if (n < 0)
                return;
        if ((size_t)n < sizeof(small)) {
                out_put(o, small, (size_t)n);
                return;
        }
        char *room = buf_reserve(&o->b, (size_t)n + 1);
        if (room == NULL)
                return;
        va_start(ap, fmt);
        vsnprintf(room, (size_t)n + 1, fmt, ap);
        va_end(ap);
        o->b.n += (size_t)n;
}

void out_text(struct out *o, struct str s)
{
        if (o->sys != 0)
                return;
        if (!o->tty || o->raw) {
                out_str(o, s);
                return;
        }
        text_for_terminal(&o->b, s, o->colours);
        out_plain(o);
        out_put(o, "", 0);
}

/* Bytes at the end of `s` that begin a character but do not finish it. */
static size_t cut_character(struct str s)
{
        for (size_t back = 1; back <= 3 && back <= s.n; back++) {
                unsigned char c = (unsigned char)s.p[s.n - back];
                if ((c & 0xC0) == 0x80)
                        continue;
                size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
                return need > back ? back : 0;
        }
        return 0;
}

void out_text_piece(struct out *o, struct str s)
{
        if (o->sys != 0)
                return;
        if (!o->tty || o->raw) {
                out_str(o, s);
                return;
        }
        struct buf whole;
        buf_init(&whole, 0);
        buf_put(&whole, o->tail, o->tail_n);
        buf_put_str(&whole, s);
        size_t held = cut_character(buf_str(&whole));
        size_t n = whole.n - held;
        /* Colours could be cut by the end of a piece as well, so none pass here. */
        text_for_terminal(&o->b, str_span(whole.p, n), false);
        if (held > 0)
                memcpy(o->tail, whole.p + n, held);
        o->tail_n = (unsigned)held;
        buf_release(&whole);
        out_put(o, "", 0);
}

void out_text_end(struct out *o)
{
        if (o->tail_n > 0 && o->sys == 0)
                text_for_terminal(&o->b, str_span(o->tail, o->tail_n), false);
        o->tail_n = 0;
}

void out_style(struct out *o, const char *sgr)
{
        if (!o->colours)
                return;
        out_puts(o, "\033[");
        out_puts(o, sgr);
        out_puts(o, "m");
}

void out_plain(struct out *o)
{
        out_style(o, "0");
}

int out_sink(void *ctx, const void *p, size_t n)
{
        struct out *o = ctx;

        out_text_piece(o, str_span(p, n));
        return o->sys != 0 || interrupt_pending();
}
