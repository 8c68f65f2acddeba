/*
 * view_report.h - what a view tells beside its messages: repairs, losses, damage, edits, ids.
 * Written while the view is made; nothing is kept when nobody asked.
 */
#ifndef API_VIEW_REPORT_H
#define API_VIEW_REPORT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "model/repair.h"
#include "steno.h"

struct view_list {
        struct buf text;
        struct jsonw w;
};

/* Ranges that are named; the rest is counted. */
#define VIEW_REPORT_RANGES 1000
/* Repairs that are named of messages which a limit left out; the rest is counted. */
#define VIEW_REPORT_REPAIRS 1000

/* Seqs that cannot be read. Neighbours are one range, so a range is written when it ends. */
struct view_damage {
        struct view_list list;
        uint64_t from, to; /* the range that may still grow; 0: none */
        uint64_t ranges;   /* before it */
        uint64_t count;    /* of records */
};

struct view_report {
        bool wanted;
        bool no_ids;
        struct view_list repairs, losses, edits, ids;
        size_t loss_count, more_losses; /* listed, and only counted */
        size_t repairs_left_out, more_repairs;
        struct view_damage damage;
        uint64_t first_seq, last_seq;
        bool has_more;
        bool counted;
        uint64_t tokens;
        struct buf edit_at; /* id of the last message that strategies saw */
};

void view_report_init(struct view_report *r, bool wanted);
void view_report_release(struct view_report *r);
/* Forgets all but what was asked for and where edits end: the view is made again. */
void view_report_restart(struct view_report *r);

/* Callbacks of repair_history and of writers; ctx is the report. */
void view_report_repair(void *ctx, const struct repair_note *note);
void view_report_repair_left_out(struct view_report *r, const struct repair_note *note);
void view_report_loss(void *ctx, uint64_t seq, struct str field, const char *why);

/* In order of seqs. */
void view_report_damage(struct view_report *r, uint64_t first, uint64_t last);
/* A message of the view: its record's id (text), and its seq. */
void view_report_id(struct view_report *r, struct str id);
void view_report_seq(struct view_report *r, uint64_t seq);

/* The JSON object of steno_view. */
int view_report_json(struct view_report *r, char **json, struct steno_error *err);

#endif
