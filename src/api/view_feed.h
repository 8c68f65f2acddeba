/*
 * view_feed.h - the messages of a page, one by one, as a view has them to show.
 *
 * Applies amendments, leaves out what is off the context, and cuts the page so that no call is
 * parted from its result (F3):
 *
 *   - Results that stand right behind their calls belong to the page of the calls, whatever the
 *     limit says.
 *   - So does what a model said right behind its reasoning.
 *   - A result that came later is given with the page of its call, and does not count.
 *   - A result whose call is before the page or off the context is not given. One whose call was
 *     deleted or replaced, or is not there at all, is given as lost.
 *
 * What was recovered of a run that died may stand in the log behind what others wrote meanwhile. A
 * view of the whole conversation shows it where it belongs; pages go by seqs.
 *
 * Reads no more of the log than the page, the window that a late result may lie in, and the
 * amendments. Of formats it knows only which messages are nothing but reasoning.
 */
#ifndef API_VIEW_FEED_H
#define API_VIEW_FEED_H

#include "api/view_source.h"

struct feed_item {
        uint64_t seq;
        struct str id; /* decoded */
        struct str fmt;
        const struct about *about;
        struct str m;
        bool replaced;     /* fmt, about and m are of what was put in its place */
        bool hidden;       /* a result that is off the context, of a call that is not */
        size_t answered;   /* how many open calls of the page it answers */
        uint64_t oldest;   /* seq of the oldest of those calls, 0: none */
        bool after_result; /* a result that is not given stood between it and the one before */
        bool apart;        /* a message that is not given, or was replaced, stood before it, */
        bool bereft;       /* and that was reasoning which belongs to it */
        bool lost;         /* nothing but results without a call: told of, not shown */
        bool placed;       /* was recovered late: `seq` is that of what it stands behind */
        bool damaged;      /* cannot be read; stands for [seq, last_seq]; nothing else is set */
        uint64_t last_seq;
        /* of paging */
        bool counts;    /* one of the limit */
        uint64_t start; /* seq where the block begins that it belongs to */
};

/* Everything in an item lives until the callback returns. Non-zero ends the feed. */
typedef int (*feed_fn)(void *ctx, const struct feed_item *item);

struct feed_options {
        uint64_t after;
        uint64_t before; /* 0: no bound */
        uint64_t limit;  /* 0: all */
        uint64_t last;   /* 0: all */
        bool all_messages;
};

struct feed_page {
        uint64_t last_seq; /* nothing up to here is missing from the page */
        bool has_more;
};

struct view_feed;

/* Reads the amendments of the conversation, of records behind `after` only: no page of this feed
 * may begin before. */
int view_feed_open(const struct view_source *source, uint64_t after, struct view_feed **out,
    struct steno_error *err);
void view_feed_close(struct view_feed *f);
/* Gives a page; any number of times. 0, the non-zero return of `each`, or a negative code. */
int view_feed_read(struct view_feed *f, const struct feed_options *opt, feed_fn each, void *ctx,
    struct feed_page *page, struct steno_error *err);

#endif
