/*
 * projection.h - how the events of a run are written for a kind of reader.
 *
 * The journal of a run is one list of events (steno_events.h). A projection turns them, one after
 * the other, into the bytes of an event stream: unchanged, or in the form of another protocol. It
 * is a file in src/routes and a row in routes/projections.c, and it is chosen with ?format=NAME.
 *
 * A projection depends on the events only. So a client that reads a run twice, or comes back after
 * the server died, gets the same bytes again.
 */
#ifndef HTTP_PROJECTION_H
#define HTTP_PROJECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"

struct projected {
        const char *run;
        uint64_t seq;
        const char *type; /* a name of steno_events.h, also one that is not for readers */
        const char *data; /* a JSON object */
        size_t n;
};

struct projection {
        const char *name;      /* of ?format=; the default has the name "" */
        const char *header[2]; /* sent with the answer; NULL: none */
        /*
         * Makes the state that one reader's translation keeps between two events; NULL: out of
         * memory. A projection without this function (NULL) can begin at any event. A projection
         * with it gets all events from the first one on, also when the reader wants a later part.
         */
        void *(*begin)(void);
        void (*end)(void *state); /* NULL: free() */
        /* Appends what the reader gets for this event, which may be nothing. `state` is begin's.
         * False: the event cannot be shown, and the reader is disconnected. */
        bool (*event)(void *state, const struct projected *e, struct buf *out);
};

/* One event of a stream whose data are objects with a "type": begin it, write further members with
 * `w`, end it. */
static inline void projection_begin(struct jsonw *w, struct buf *out, const char *type)
{
        buf_puts(out, "data: ");
        *w = jsonw_to(out);
        jsonw_object(w);
        jsonw_field_cstr(w, "type", type);
}

static inline void projection_end(struct jsonw *w, struct buf *out)
{
        jsonw_object_end(w);
        buf_puts(out, "\n\n");
}

/* All of them; the last has no name. */
const struct projection *const *projections_table(void);
/* NULL and "" give the default. NULL: there is none of that name. */
const struct projection *projection_find(const char *name);

#endif
