/*
 * view_stream.h - the short way of a view: openai messages for an openai reader.
 *
 * Messages that nothing has to be done to are copied from the log to the sink. Calls are held
 * until they are answered: a *segment* is a message with calls and all that comes until none of
 * its calls is open. One that is in order is copied as well; any other goes through the hub. So
 * memory is a segment, which cannot be longer than the window of pairing, however long the
 * history is.
 */
#ifndef API_VIEW_STREAM_H
#define API_VIEW_STREAM_H

#include "api/view_hub.h"
#include "api/view_out.h"

struct held;

struct view_stream {
        struct view_hub *hub;
        struct view_out *out;
        bool copy; /* may copy; else everything goes through the hub */
        /* the rest is its own */
        struct arena arena[2]; /* what is held, and where it moves when its front leaves */
        int live;
        struct held *list;
        size_t count;
        size_t cap;
        uint64_t open; /* calls held that are open and can still be answered */
};

void view_stream_init(struct view_stream *s);
void view_stream_release(struct view_stream *s);
/* A feed_fn. */
int view_stream_take(void *ctx, const struct feed_item *item);
/* What is still held. */
int view_stream_end(struct view_stream *s);

#endif
