/*
 * out.h - standard output: buffered, its failures remembered, its styles optional.
 *
 * Every byte a command prints goes through one of these, so that a full disk or a reader that
 * went away is noticed once, at the end, and never mistaken for success. Text that came from
 * outside goes through out_text(), which lets no control sequence reach a terminal.
 */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

struct out {
        int fd;
        struct buf b;
        int sys;      /* errno of the first failed write; later puts do nothing */
        bool tty;     /* a person reads it (also through a pager) */
        bool colours; /* styles are written */
        bool raw;     /* text from outside passes untouched */
        bool steady;  /* a signal ends no write, because the program goes on after Ctrl-C */
        char tail[4]; /* a character cut by the end of a piece */
        unsigned tail_n;
};

void out_init(struct out *o, int fd);
void out_release(struct out *o);

void out_put(struct out *o, const void *p, size_t n);
void out_str(struct out *o, struct str s);
void out_puts(struct out *o, const char *z);
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes text from outside: control sequences are made harmless for a terminal; elsewhere it is
 * written byte for byte. */
void out_text(struct out *o, struct str s);
/* The same for a stream that may be cut anywhere; out_text_end() writes the bytes that were held
 * back. */
void out_text_piece(struct out *o, struct str s);
void out_text_end(struct out *o);

/* An SGR parameter such as "1;31", and the end of it; nothing without colours. */
void out_style(struct out *o, const char *sgr);
void out_plain(struct out *o);

/* Writes what is buffered. 0, or the errno that is also kept in `sys`. */
int out_flush(struct out *o);

/* A steno_sink over struct out: stops on a failed write and on an interrupt. */
int out_sink(void *ctx, const void *p, size_t n);

#endif
