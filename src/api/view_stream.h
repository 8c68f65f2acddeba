/*
 * view_stream.h - the short way of a view: openai messages for an openai reader.
 *
 * Messages that nothing has to be done to are copied from the log to the sink. Calls are held
 * until they are answered (view_segments.h); a segment that is in order is copied as well, and any
 * other goes through the hub.
 */
#ifndef API_VIEW_STREAM_H
#define API_VIEW_STREAM_H

#include "api/view_hub.h"
#include "api/view_out.h"
#include "api/view_segments.h"

struct view_stream {
        struct view_hub *hub;
        struct view_out *out;
        bool copy; /* may copy; else everything goes through the hub */
        /* the rest is its own */
        struct view_segments held;
};

/* Set hub and out before; the stream must stay where it is. */
void view_stream_init(struct view_stream *s);
void view_stream_release(struct view_stream *s);
/* A feed_fn. */
int view_stream_take(void *ctx, const struct feed_item *item);
/* What is still held. */
int view_stream_end(struct view_stream *s);

#endif
