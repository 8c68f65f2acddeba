/*
 * view_ahead.h - a message with calls, and its results, that stand in the buffer before the sink
 * already, though they may have to be taken back.
 *
 * Whether a message with calls can be copied is known only when its results are there. In nearly
 * all histories they come right behind it and it can, so the bytes go to the buffer at once, and
 * only what would be lost with the record is kept beside them: a few ids. While they can be taken
 * back the buffer is not flushed. Knows nothing of what makes a message fit to be copied.
 */
#ifndef API_VIEW_AHEAD_H
#define API_VIEW_AHEAD_H

#include "api/view_feed.h"
#include "api/view_segments.h"

struct view_out;

#define AHEAD_CALLS 8 /* more calls than this in one message are rare, and are held */
#define AHEAD_TEXT 1024

struct view_ahead_item {
        struct feed_item item; /* its id in `text`, its message in the buffer, without about */
        struct str *ids;       /* of the calls of the first, of the one answer of the others */
        size_t count;
};

struct view_ahead {
        struct view_out *out;
        size_t count; /* messages; 0: none is ahead */
        size_t open;  /* calls of the first that have no result yet */
        /* the rest is its own */
        size_t start; /* where the buffer ended before the first, */
        bool comma;   /* and its comma */
        struct view_ahead_item list[1 + AHEAD_CALLS];
        struct str ids[2 * AHEAD_CALLS];
        size_t id_count;
        char text[AHEAD_TEXT];
        size_t text_used;
};

/* Puts a message with calls into the buffer. 1: it is there; 0: it has to be held; or a negative
 * code. None is ahead, and the message may be copied if its results follow it. */
int view_ahead_begin(struct view_ahead *a, const struct feed_item *item);
/* Puts the result of an open call behind it; false: it is none, or it does not fit. It may be
 * copied. */
bool view_ahead_answer(struct view_ahead *a, const struct feed_item *item);
/* Takes everything out of the buffer and has it held, as messages of `fmt`. 0 or a negative code.
 */
int view_ahead_take_back(struct view_ahead *a, struct str fmt, struct view_segments *held);

#endif
