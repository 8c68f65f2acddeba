/*
 * view_segments.h - a history in pieces that can be repaired one by one.
 *
 * A *segment* is a message with calls and all that comes until none of its calls is open, or a
 * message that stands alone. A result is never parted from its call, so repairing each segment
 * gives what repairing the whole history gives. Memory is a segment, which cannot be longer than
 * the window of pairing, however long the history is, unless `goes_on` makes it longer.
 */
#ifndef API_VIEW_SEGMENTS_H
#define API_VIEW_SEGMENTS_H

#include "api/view_feed.h"

struct segments_item {
        struct feed_item item; /* copies, in the arena; item.about is `about` */
        struct about about;
        uint64_t open; /* calls of it that have no result yet */
};

struct view_segments {
        void *ctx;
        /* Takes a whole segment; non-zero ends the feed. */
        int (*leave)(void *ctx, const struct segments_item *list, size_t count);
        /* Must this item stay with the one before it, though no call is open? */
        bool (*goes_on)(void *ctx, const struct feed_item *before, const struct feed_item *item);
        bool always; /* also where a call is open that can no longer be answered */
        struct steno_error *err;
        /* the rest is its own */
        struct arena arena[2]; /* what is held, and where it moves when much of it has left */
        int live;
        struct segments_item *all;
        size_t cap;
        size_t gone;                /* the first of them, which have left */
        struct segments_item *list; /* the others */
        size_t count;
        uint64_t open; /* calls held that are open and can still be answered */
};

/* Set the first members before. */
void view_segments_init(struct view_segments *s);
void view_segments_release(struct view_segments *s);
/* Lets the segment before this item leave, if it is whole. Call it before view_segments_hold. */
int view_segments_advance(struct view_segments *s, const struct feed_item *item);
/* Holds an item. */
int view_segments_hold(struct view_segments *s, const struct feed_item *item);
/* Lets all that is held leave. */
int view_segments_end(struct view_segments *s);

/* Copies an item with all that it points to. False: out of memory. */
bool view_segments_copy(
    struct segments_item *to, const struct feed_item *item, struct arena *arena);

#endif
