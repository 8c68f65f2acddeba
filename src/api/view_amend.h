/*
 * view_amend.h - what amendments say about messages, for one view.
 *
 * The table holds 16 bytes for each amendment, and the first of the messages that took the place
 * of others; the rest is read from the log when it is asked for. So memory grows with the number of
 * amendments, not with their contents, and very little.
 */
#ifndef API_VIEW_AMEND_H
#define API_VIEW_AMEND_H

#include "api/view_source.h"

/* What became of a message. */
struct amended {
        bool deleted;
        uint64_t by;    /* seq of the record that deleted or replaced it, 0: neither did */
        struct str fmt; /* of what replaces it */
        struct about about;
        struct str m;
        int in_context; /* 1, 0, or -1: nothing was said */
};

/* A message that was recovered late, and where it belongs. */
struct amend_place {
        struct str id; /* of the message, with a NUL behind it */
        uint64_t after;
        uint64_t seq; /* of its record; view_feed.c looks it up */
};

struct amends {
        const struct view_source *source;
        struct amend_entry *list; /* sorted by the hash of the target, newest first */
        size_t count;
        size_t cap;
        struct amend_place *places;
        size_t place_count;
        size_t place_cap;
        uint64_t after;          /* older amendments are of no interest */
        struct amend_kept *kept; /* superseding messages, sorted by seq, newest first, */
        size_t kept_count;       /* as many as AMENDS_HELD bytes */
        size_t kept_cap;
        struct arena held;
        size_t held_bytes;
        struct arena scratch; /* of the last that was found */
        struct amended found;
};

/* Reads the amendments of a conversation that can be of messages behind seq `after`; most have
 * none. */
int view_amends_read(
    struct amends *a, const struct view_source *source, uint64_t after, struct steno_error *err);
void view_amends_release(struct amends *a);
/* *out becomes NULL where nothing happened to the message; else it is good until the next call. */
int view_amends_find(
    struct amends *a, struct str id, const struct amended **out, struct steno_error *err);
/* The metadata of a message: an object, or nothing where no amendment gave it any. */
int view_amends_meta(struct amends *a, struct str id, struct buf *out, struct steno_error *err);

#endif
