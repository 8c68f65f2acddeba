/*
 * view_stream.h - the caller's sink, and the short way of a view to it: messages for a reader of
 * their own format.
 *
 * Messages that nothing has to be done to are copied from the log to the sink. Calls with their
 * results right behind them are copied ahead (view_ahead.h). Other calls are held until they are
 * answered (view_segments.h); a segment that is in order is copied as well, and any other goes
 * through the hub.
 */
#ifndef API_VIEW_STREAM_H
#define API_VIEW_STREAM_H

#include "api/view_ahead.h"
#include "api/view_hub.h"
#include "api/view_segments.h"
#include "base/str.h"
#include "steno.h"

/* ---- the sink ---- */

/* A buffer stands before the sink, so that it is not called for every comma. Large pieces go past
 * the buffer. */
#define VIEW_OUT_BYTES 65536

struct view_out {
        steno_sink sink;
        void *ctx;
        struct steno_error *err;
        size_t used;
        bool comma; /* something was put into the array */
        char held[VIEW_OUT_BYTES];
};

/* 0 or STENO_EINTERRUPTED. */
int view_out_put(struct view_out *o, struct str s);
/* A comma where one is needed, before an element of the array. */
int view_out_next(struct view_out *o);
/* The elements of an array that is "[...]". */
int view_out_elements(struct view_out *o, struct str array);
int view_out_flush(struct view_out *o);
/* The same as a steno_sink; ctx is the view_out. */
int view_out_sink(void *ctx, const void *p, size_t n);

/* ---- the short way ---- */

struct view_stream {
        struct view_hub *hub;
        struct view_out *out;
        bool copy; /* may copy; else everything goes through the hub */
        /* the rest is its own */
        struct str name; /* of the hub's format, once there is an item */
        struct view_segments held;
        struct view_ahead ahead; /* not while anything is held */
};

/* Set hub and out before; the stream must stay where it is. */
void view_stream_init(struct view_stream *s);
void view_stream_release(struct view_stream *s);
/* A feed_fn. */
int view_stream_take(void *ctx, const struct feed_item *item);
/* What is still held. */
int view_stream_end(struct view_stream *s);

#endif
