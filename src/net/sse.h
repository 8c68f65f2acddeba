/*
 * sse.h - server-sent events, from bytes to events.
 *
 * A state machine over bytes: feed pieces cut anywhere, get each event once it is complete. It
 * takes LF, CRLF and CR line ends, comments, a byte order mark, and data of several lines. Knows
 * nothing of what events mean, and does no I/O.
 */
#ifndef NET_SSE_H
#define NET_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

/* One event. `name` is "message" when the stream named none; both live until the return. A
 * non-zero return ends the feeding and is returned by it. */
typedef int (*sse_event_fn)(void *ctx, struct str name, struct str data);

struct sse {
        struct buf line;
        struct buf data;
        struct buf name;
        bool has_data;
        bool after_cr;   /* an LF now belongs to the CR before it */
        bool first_line; /* a byte order mark may stand here */
        sse_event_fn event;
        /* Told of fields that are neither data nor event, id and retry among them, as their lines
         * come. NULL unless set after sse_init. */
        void (*other)(void *ctx, struct str field, struct str value);
        /*
         * Takes data of an event that is longer than spill_from, in pieces as it comes; at its end
         * p is NULL. `event` is not told of it then. NULL unless set after sse_init.
         */
        int (*spill)(void *ctx, const char *p, size_t n);
        size_t spill_from;
        bool spilled; /* the event at hand is */
        bool in_spilled_line;
        void *ctx;
};

/* Events and lines are at most `max` bytes (0: MESSAGE_MAX). */
void sse_init(struct sse *s, size_t max, sse_event_fn event, void *ctx);
void sse_release(struct sse *s);

/* 0, what the callback returned, STENO_ELIMIT or STENO_ENOMEM. */
int sse_feed(struct sse *s, const char *p, size_t n);

/*
 * Call it at the end of the stream. The standard drops an event that no blank line closed. Some
 * providers end their streams that way, so such an event is passed on here if it has data.
 */
int sse_finish(struct sse *s);

#endif
