/*
 * report.h - writes what a conversion changed, as JSON: {"repairs":[{"call","class","seq","text"}],
 * "losses":[{"seq","field","why"}],"more_losses"?:n}. Its functions are the callbacks of repair.h
 * and format.h.
 */
#ifndef FORMAT_REPORT_H
#define FORMAT_REPORT_H

#include "base/buf.h"
#include "format/format.h"
#include "model/repair.h"

/* More losses than these are only counted, but losses of calls and results are always listed. */
#define REPORT_LOSSES 100
/* Is it the loss of a whole call or result? */
bool report_is_grave(struct str field, const char *why);

struct report {
        struct buf repairs; /* the elements, separated by commas */
        struct buf losses;
        size_t repair_count;
        size_t loss_count;
        size_t more_losses; /* the number of losses that were not listed */
};

void report_init(struct report *r);
void report_release(struct report *r);

/* `ctx` is the struct report. */
void report_loss(void *ctx, uint64_t seq, struct str field, const char *why);
void report_repair(void *ctx, const struct repair_note *note);

/* Writes the members `"repairs":[...],"losses":[...]` into an open object. */
void report_write(const struct report *r, struct jsonw *w);

#endif
