/*
 * repair.h - makes a history in which every call has one result and every result has a call.
 *
 * Histories get damaged: a process dies between a call and its result, a resume adds a result
 * twice, a result comes late (F1, F2, F3). Views write the repaired history; the stored history is
 * never changed. A callback gets each repair, in order.
 *
 * Pieces of one message are joined first (join.h). Results are moved behind the message that made
 * their calls, in the order in which they came. If several items of one turn made calls, the
 * results are moved behind the last item. Orphans and duplicates are left out. An open call gets a
 * synthetic result whose text tells the truth about its class. Its message id is "syn_<seq>_<n>"
 * for the n-th call of message seq, so the same history always gives the same bytes.
 *
 * This file works on the hub alone and knows no format and no store. `classify` tells it what the
 * journal of a run knows about a call.
 */
#ifndef MODEL_REPAIR_H
#define MODEL_REPAIR_H

#include "base/arena.h"
#include "model/about.h"
#include "model/message.h"
#include "steno.h"

/* The classes of an open call. The order is also that of repair_class_name. */
enum repair_class {
        REPAIR_UNRECORDED,     /* no result was stored, and nothing more is known */
        REPAIR_NOT_DISPATCHED, /* the tool was never started */
        REPAIR_INDETERMINATE,  /* it was started and the process died: effects unknown */
        REPAIR_CUT,            /* the arguments were cut off, so it was not run */
        REPAIR_INTERRUPTED,    /* the call was stopped */
        REPAIR_RUNNING,        /* a live run is executing the call */
        REPAIR_WAITING,        /* a live run has the call, but has not started the tool yet */
        /* repairs of other kinds that are reported */
        REPAIR_ORPHAN,    /* a result without a call: left out */
        REPAIR_DUPLICATE, /* a second result: left out */
        REPAIR_MOVED,     /* a result that came late: moved to its call */
        REPAIR_RENAMED,   /* a call whose id the provider would not accept: it got another id */
};

/* "unrecorded", "not_dispatched" ... */
const char *repair_class_name(enum repair_class c);
/* The text that a model reads in place of the result. It is plain and needs no escapes. */
const char *repair_class_text(enum repair_class c);

/* The text for the report about a result without a call or a second result. `kept`: it stays in the
 * history (repair_options.keep_strays). */
const char *repair_stray_text(enum repair_class c, bool kept);

/* More facts about an open call, beside its class. They are raw JSON values, absent if not
 * known. */
struct repair_facts {
        struct str run;        /* the run's id */
        struct str steps;      /* an array */
        struct str invoked_at; /* a string */
        struct str ref;        /* the artifact that holds the output so far */
        struct str ref_id;     /* its id, as text that needs no escapes */
};

struct repair_note {
        enum repair_class class;
        uint64_t seq;    /* seq of the call, or of the result that was left out or moved */
        struct str call; /* the call's id: a string of message.h, absent if there is none */
        const char *text;
};

struct repair_options {
        /* Open calls get a result. Otherwise they stay open, and each has its state and the known
         * facts. A page needs open calls; a model refuses them. */
        bool synthesize;
        /* Results without a call and second results stay where they are, without a peer. Otherwise
         * they are left out. */
        bool keep_strays;
        /* Returns the class of an open call; NULL: all are unrecorded. `id` is text. An unrecorded
         * call whose arguments are incomplete becomes REPAIR_CUT. */
        enum repair_class (*classify)(
            void *ctx, uint64_t seq, struct str id, struct repair_facts *facts);
        void *classify_ctx;
        void (*on_note)(void *ctx, const struct repair_note *note); /* may be NULL */
        void *note_ctx;
};

/*
 * Sets the peers of all calls and results in `h` and moves nothing. The seqs must grow. Results
 * without a peer are orphans or duplicates. 0 or STENO_ENOMEM.
 */
int repair_link(struct history *h, struct arena *arena);

/*
 * Writes the repaired history to *out, in the arena. Messages that did not change are shared with
 * `h`, whose peers are set. 0 or STENO_ENOMEM.
 */
int repair_history(
    struct history *h, const struct repair_options *opt, struct arena *arena, struct history *out);

/* Returns the id that pairing uses for a part: the id as text, or the tool's name if it has no
 * id. */
struct str repair_id(const struct part *p, struct arena *arena);
/* Lists the calls and answers of a message for pairing.h. `ids` and `calls` need room for one entry
 * for each part of the message; *out borrows them. */
void repair_describe(const struct message *m, struct str *ids, uint32_t *calls, struct arena *arena,
    struct about *out);

#endif
