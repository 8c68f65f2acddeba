/*
 * term.h - the terminal: how wide, whether colours, a pager, a progress bar.
 */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/out.h"

/* Colours on `fd`? `when` is "auto" (or NULL), "always" or "never". */
bool term_colours(int fd, const char *when);
/* Columns of the terminal, $COLUMNS, or 80. */
unsigned term_width(void);
/* The same, without a minimum for narrow terminals: for rows that the terminal must not wrap. */
unsigned term_real_width(void);
/* Columns that a text without control characters takes. */
unsigned term_columns(struct str s);
/* Bytes of the longest beginning that fits in `columns`. */
size_t term_fit(struct str s, unsigned columns);

/* "just now", "5 min ago", "3 days ago", or a date; from ISO 8601. */
void term_ago(struct buf *b, struct str iso, int64_t now_ms);
/* "850 ms", "4.2 s", "3 min 5 s". */
void term_duration(struct buf *b, double ms);
/* A column of a table: `s` made safe, then spaces up to `width`; cut with an ellipsis. */
void term_cell(struct buf *b, struct str s, unsigned width);
/* The same for a number, flush right. */
void term_cell_right(struct buf *b, struct str s, unsigned width);

/* Writes all of it to standard error. Errors are ignored, because there is nowhere to report
 * them. */
void term_stderr(struct str s);

/* Sends `o` through the user's pager when it is a terminal; the pager's process, or 0 when there is
 * no pager and `o` is printed directly. */
pid_t term_pager_start(struct out *o);
/* Flushes, then waits until the person has read. */
void term_pager_end(struct out *o, pid_t pid);

/* A progress bar on standard error, only where it is a terminal and not --quiet. */
struct term_progress {
        bool on;
        bool drawn;
        int64_t started; /* ms */
        int64_t last;    /* ms of the last drawing */
};
void term_progress_init(struct term_progress *t, bool quiet);
/* A steno_progress. Answers non-zero after Ctrl-C. */
int term_progress_step(void *ctx, const char *what, uint64_t done, uint64_t total);
void term_progress_end(struct term_progress *t);

#endif
