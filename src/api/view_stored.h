/*
 * view_stored.h - the view `stored`: every message as its client sent it.
 *
 *   {"seq","id","at","fmt","m","meta"?,"note"?}
 *
 * `m` has every member and token, with the outputs and large tokens that left it put back. What
 * took a message's place stands there; metadata that amendments gave it is `meta`. Nothing is left
 * out but what was deleted: messages that are off the context and results without a call are there,
 * and of what cannot be read there is {"seq","last_seq","damaged":true}. `note` is "rendering only"
 * where an earlier version did not keep the original.
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
 * Writes the elements of the array. With `own` they are the messages alone, which all are of that
 * format; what cannot be read is then only reported.
 */
int view_stored_write(const struct view_source *source, const struct feed_options *opt,
    const struct format *own, struct view_out *out, struct view_report *report,
    struct steno_error *err);

/* Were all messages behind opt->after and before opt->before sent in this format? */
int view_stored_is_all(const struct view_source *source, const struct feed_options *opt,
    const struct format *format, bool *all, struct steno_error *err);

#endif
