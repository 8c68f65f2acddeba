/*
 * projection.h - how the events of a run are written for a kind of reader.
 *
 * The journal of a run is one list of events (steno_events.h). A projection turns them, one after
 * the other, into the bytes of an event stream: as they are, or as another protocol words them. It
 * is a file in src/routes and a row in routes/projections.c, and it is chosen with ?format=NAME.
 *
 * A projection is a function of the events alone. Whoever reads a run twice, or comes back after
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
         * What one reader's translation has to remember between two events; NULL: out of memory.
         * A projection without it (NULL) can begin behind any event; one with it is shown the run
         * from its first event on, also when the reader wants a later part.
         */
        void *(*begin)(void);
        void (*end)(void *state); /* NULL: free() */
        /* Appends what the reader gets for this event, which may be nothing. `state` is begin's.
         * False: the event cannot be shown, and the reader is cut off. */
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
