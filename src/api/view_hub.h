/*
 * view_hub.h - the long way of a view: items become hub messages, are repaired, edited, fitted to
 * a budget and written in a format. Holds what it is given until it is written: a page, or one
 * segment of it.
 */
#ifndef API_VIEW_HUB_H
#define API_VIEW_HUB_H

#include "format/format.h"
#include "api/view_feed.h"
#include "api/view_report.h"
#include "view/budget.h"
#include "view/strategies.h"

struct hub_item {
        uint64_t seq;
        struct str id;
        struct str ref;
        struct str run;
        bool duplicate; /* it was marked as a second result when it came */
};

struct view_hub {
        const struct view_source *source;
        const struct format *format;
        int outputs;
        const char *edit_strategies;
        uint64_t pin;
        uint64_t budget;
        bool count_tokens;
        bool strict;    /* only what the provider's table has (format/rules.h) */
        struct str via; /* the endpoint that will read it (model/via.h); absent: not known */
        bool every;     /* each message is shown: a text stands for what the format cannot carry */
        bool left_out;  /* what is added is not shown: of its repairs the first are named */
        struct view_report *report;
        struct steno_error *err;
        /* the rest is its own */
        struct arena arena;
        struct format_charge charge; /* of what it holds */
        struct json tape;
        struct buf text;
        struct history h;
        size_t cap;
        struct hub_item *items; /* beside h.list */
        struct buf out;
};

/* Set the first members before. */
void view_hub_init(struct view_hub *v);
void view_hub_release(struct view_hub *v);

/* Do its edits have a strategy of this kind? */
bool view_hub_has(const struct view_hub *v, enum strategy_kind kind);

/* Which files are not whole that this message needs? */
enum view_lack view_hub_lack(const struct view_hub *v, const struct about *about);

/* Adds a message, in order of seqs. */
int view_hub_add(struct view_hub *v, const struct feed_item *item);
/* Tells of a lost one (view_feed.h) as of any result without a call. */
int view_hub_tell_lost(struct view_hub *v, const struct feed_item *item);

/* Adds it as a text. */
int view_hub_add_lost(struct view_hub *v, const struct feed_item *item);

/* Makes the view of what was added: *json is "[...]", valid until the next call. Empty again
 * afterwards. */
int view_hub_write(struct view_hub *v, struct str *json);

/*
 * The same where what was added is the end of a longer history, and the edits or the budget leave
 * out what is before it. *more: they would show messages that are not there; then, and where
 * before->guess is set, nothing is written.
 */
int view_hub_write_end(
    struct view_hub *v, const struct budget_before *before, bool *more, struct str *json);

/*
 * For pages on which each message stands as it came: link finds out which result answers which call
 * of those that were added, and write_one writes the message of that seq alone, in the hub's format
 * and without a repair: *json is "[...]", valid until the next call, with `count` messages. It has
 * none where nothing was added under that seq.
 */
int view_hub_link(struct view_hub *v);
int view_hub_write_one(struct view_hub *v, uint64_t seq, struct str *json, size_t *count);

/* What was added, repaired as the view repairs it. It lives until view_hub_forget. */
int view_hub_repair(struct view_hub *v, struct history *out);
void view_hub_forget(struct view_hub *v);
/* A work to weigh messages of this hub with; release it with work_release. */
struct work view_hub_work(struct view_hub *v, struct history *h);

#endif
