/*
 * transcript.h - prints records for a person: who, when, what, and how the tools ended.
 */
#ifndef CLI_TRANSCRIPT_H
#define CLI_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "cli/command.h"

#define TRANSCRIPT_CALLS 64 /* open calls whose names are remembered for their results */

struct transcript_call {
        char id[128];
        char name[128];
};

struct transcript_change {
        char *target; /* id of the message that an amendment is about */
        uint64_t seq; /* of the amendment */
        bool deleted; /* else superseded */
};

struct transcript {
        struct cli *c;
        unsigned width;
        bool full; /* nothing is collapsed */
        int day;   /* of the last heading, as YYYYMMDD */
        struct transcript_call calls[TRANSCRIPT_CALLS];
        size_t next_call;
        struct transcript_change *changes;
        size_t change_count, change_cap;
        char *open; /* what steno_conv_recover says of calls without a result, and its tape */
        struct json open_json;
};

void transcript_init(struct transcript *t, struct cli *c, bool full);
void transcript_release(struct transcript *t);

/* Title, id and figures above the first record. 0 or an exit code. */
int transcript_heading(struct transcript *t);
/* First pass: remembers what was deleted or replaced. 0 or a negative code. */
int transcript_learn(struct transcript *t, const struct steno_record *r);
/* Also called before the second pass: finds the calls without a result, and why. Failures are
 * ignored; such calls are then shown without a reason. */
void transcript_learn_open(struct transcript *t);
/* Second pass: prints. 0 or a negative code. */
int transcript_record(struct transcript *t, const struct steno_record *r, struct steno_error *err);

/* ---- shared by the two files of this noun ---- */

struct piece;

/* What a piece is shown with. */
struct transcript_entry {
        struct transcript *t;
        const struct steno_record *r;
        struct str ref;    /* of a materialized result, or "" */
        bool heading_done; /* the record's own heading stands above already */
        bool dim;          /* system and developer messages */
};

/* seq, label, details and time on one row. `label` and `details` are made safe here. */
void transcript_row(struct transcript *t, const struct steno_record *r, const char *sgr,
    const char *mark, struct str label, struct str details);
/* A piece_fn; ctx is a struct transcript_entry. */
void transcript_piece(void *ctx, const struct piece *p);

#endif
