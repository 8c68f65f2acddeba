/*
 * repair.h - makes a history in which every call has one result and every result has a call.
 *
 * Histories get damaged: a process dies between a call and its result, a resume adds a result
 * twice, a result comes late (F1, F2, F3). A repaired history is what a view writes; the stored one
 * is never touched. A callback gets each repair, in order.
 *
 * Pieces of one message are joined first (join.h). Results are moved behind the message that made
 * their calls (of items of one turn, behind the last of them), in the order in which they came.
 * Orphans and duplicates are left out. An open call gets a synthetic result whose text tells the
 * truth about its class. Its message id is "syn_<seq>_<n>" for the n-th call of message seq, so the
 * same history always gives the same bytes.
 *
 * Works on the hub alone; knows no format and no store. What the journal of a run knows of a call
 * comes through `classify`.
 */
#ifndef MODEL_REPAIR_H
#define MODEL_REPAIR_H

#include "base/arena.h"
#include "model/about.h"
#include "model/message.h"
#include "steno.h"

/* Of an open call; the order is also that of repair_class_name. */
enum repair_class {
        REPAIR_UNRECORDED,     /* no result was stored and nothing more is known */
        REPAIR_NOT_DISPATCHED, /* the tool was never started */
        REPAIR_INDETERMINATE,  /* it was started and the process died: effects unknown */
        REPAIR_CUT,            /* the arguments were cut off, so it was not run */
        REPAIR_INTERRUPTED,    /* stopped */
        REPAIR_RUNNING,        /* a live run holds it */
        REPAIR_WAITING,        /* a live run holds it, and has not started the tool yet */
        /* what else is reported */
        REPAIR_ORPHAN,    /* a result without a call: left out */
        REPAIR_DUPLICATE, /* a second result: left out */
        REPAIR_MOVED,     /* a result that came late: moved to its call */
        REPAIR_RENAMED,   /* a call whose id the provider would not take: it got another */
};

/* "unrecorded", "not_dispatched" ... */
const char *repair_class_name(enum repair_class c);
/* What a model reads in place of the result; plain text that needs no escapes. */
const char *repair_class_text(enum repair_class c);

/* The same text for a stray result, which is left out or kept (repair_options.keep_strays): for the
 * report. */
const char *repair_stray_text(enum repair_class c, bool kept);

/* What is known of an open call beside its class: raw JSON values, absent where they are not known.
 */
struct repair_facts {
        struct str run;        /* the run's id */
        struct str steps;      /* an array */
        struct str invoked_at; /* a string */
        struct str ref;        /* the artifact that holds what had arrived of its output */
        struct str ref_id;     /* its id, as text that needs no escapes */
};

struct repair_note {
        enum repair_class class;
        uint64_t seq;    /* of the call, or of the result that was left out or moved */
        struct str call; /* the call's id: a string of message.h, absent where there is none */
        const char *text;
};

struct repair_options {
        /* Open calls get a result. Else they stay open, which a page wants and a model refuses; the
         * call then says its state and what is known of it. */
        bool synthesize;
        /* Results without a call, and second ones, stay where they are, without a peer. Else they
         * are left out. */
        bool keep_strays;
        /* The class of an open call; NULL: unrecorded. `id` is text. The arguments of an unrecorded
         * call may show that it was cut off. */
        enum repair_class (*classify)(
            void *ctx, uint64_t seq, struct str id, struct repair_facts *facts);
        void *classify_ctx;
        void (*on_note)(void *ctx, const struct repair_note *note); /* may be NULL */
        void *note_ctx;
};

/*
 * Sets the peers of all calls and results in `h`, leaving everything where it is. seqs must grow.
 * Results without a peer are orphans or duplicates. 0 or STENO_ENOMEM.
 */
int repair_link(struct history *h, struct arena *arena);

/*
 * *out becomes the repaired history, in the arena; messages that did not change are shared with
 * `h`, whose peers are set. 0 or STENO_ENOMEM.
 */
int repair_history(
    struct history *h, const struct repair_options *opt, struct arena *arena, struct history *out);

/* The ids that pairing sees: a call's id as text, the tool's name where it has none. */
struct str repair_id(const struct part *p, struct arena *arena);
/* The calls and answers of a message, for pairing.h. `ids` and `calls` have room for one entry for
 * each of its parts, and are borrowed. */
void repair_describe(const struct message *m, struct str *ids, uint32_t *calls, struct arena *arena,
    struct about *out);

#endif
