/*
 * view_tail.h - the way of a view with a budget or a token limit: it reads from the end.
 *
 * Such a view shows the end of a history, and of what is before it only the system messages and a
 * note that says how much there is. So only so much of the end is held as the limit lets through,
 * twice that at most. The rest is read once, to count it, one segment (view_segments.h) at a time;
 * where neither a note nor a report tells of it, it is not read at all. The view is the same, byte
 * for byte, as if the whole history had been held.
 */
#ifndef API_VIEW_TAIL_H
#define API_VIEW_TAIL_H

#include "api/view_hub.h"

/* Is this a view that shows only the end of its page? */
bool view_tail_is_for(const struct view_hub *hub, const struct feed_options *opt);

/* Makes it: *json as in view_hub_write. `last_id` (a buffer) gets the id of the last message. */
int view_tail_write(struct view_hub *hub, const struct feed_options *opt, struct feed_page *page,
    struct buf *last_id, struct str *json);

#endif
