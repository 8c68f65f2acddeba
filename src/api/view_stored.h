/*
 * view_stored.h - the view `stored`: every message as its client sent it.
 *
 *   {"seq","id","at","fmt","m","meta"?,"note"?}
 *
 * `m` has every member and token, with the outputs and large tokens that left it put back. What
 * took a message's place stands there; metadata that amendments gave it is `meta`. Nothing is left
 * out but what was deleted: messages that are off the context and results without a call are there,
 * and of what cannot be read there is {"seq","last_seq","damaged":true}. `note` is "rendering only"
 * where an earlier version did not keep the original. Where an output is missing or not whole, `m`
 * has its stub, beside "damaged":true.
 *
 * Reads the log once, or twice for the last n, and holds one record.
 */
#ifndef API_VIEW_STORED_H
#define API_VIEW_STORED_H

#include "api/view_feed.h"
#include "format/format.h"
#include "api/view_report.h"
#include "api/view_stream.h"

/*
 * Writes the elements of the array. With `own` they are the messages alone: those of that format as
 * they came, and others, for which `hub` is needed, written in it; what cannot be read is then only
 * reported. `hub` is empty and of that format, or NULL.
 */
int view_stored_write(const struct view_source *source, const struct feed_options *opt,
    const struct format *own, struct view_hub *hub, struct view_out *out,
    struct view_report *report, struct steno_error *err);

/* Are there messages behind opt->after and before opt->before that were sent in this format, and
 * such that were not? */
int view_stored_look(const struct view_source *source, const struct feed_options *opt,
    const struct format *format, bool *own, bool *other, struct steno_error *err);

#endif
