/*
 * admission.h - whether a batch may be appended to a conversation: which of its messages are stored
 * already, which messages its amendments change, which seq its writer expected, and whether its
 * results have calls. There is one implementation for every kind of store; each kind supplies
 * functions that find and read its records.
 *
 * No other process writes to the conversation meanwhile, or else the admission is tried again. A
 * refused batch leaves no trace.
 */
#ifndef STORE_ADMISSION_H
#define STORE_ADMISSION_H

#include "base/arena.h"
#include "base/env.h"
#include "model/pairing.h"
#include "store/backend_records.h"

struct admission;

/* How a kind of store looks at its own records. */
struct admission_ops {
        /* The record with this id, or with this idempotency key: 1 and *rec, whose spans live as
         * long as what is in `line`; 0: there is none. */
        int (*find)(struct admission *a, struct str want, bool key, struct buf *line,
            struct record *rec, struct steno_error *err);
        /* Is it of a batch that was admitted and is not written yet? */
        bool (*is_admitted)(struct admission *a, struct str want, bool key);
        /* As backend_read and backend_read_amendments, of what is written. */
        int (*read)(struct admission *a, uint64_t after, backend_record_fn each, void *ctx,
            struct steno_error *err);
        int (*read_amendments)(
            struct admission *a, backend_record_fn each, void *ctx, struct steno_error *err);
        /* *a->pairing has seen the last records (model/pairing.h). */
        int (*load_pairing)(struct admission *a, struct steno_error *err);
};

struct admission {
        const struct admission_ops *ops;
        uint64_t stored;          /* last seq that is written */
        uint64_t seq;             /* last seq, the admitted batches included */
        uint64_t last_amend;      /* seq of the last amendment that is written, */
        uint64_t amend;           /* and of the last one of the admitted batches; 0: none */
        struct pairing **pairing; /* *pairing is NULL until it is loaded */
        bool replayed_full;       /* somebody wants a replay to be durable */
        struct arena arena;
};

/* One batch on its way in. */
struct append_request {
        struct append_request *next;
        struct backend_batch *batch;
        struct backend_receipt receipt;
        struct steno_error err;
        int rc;
        bool done;
        bool admitted; /* its records are in the group's write */
        bool patient;  /* ids.idx is brought up to date under the lock, however long it takes */
};

/* What becomes of a batch that is not refused. */
enum admission_result {
        ADMIT_NEW = 0, /* its records are to be written */
        ADMIT_REPLAY,  /* it is there already, and its receipt is filled */
        ADMIT_LATER,   /* it depends on a batch that is admitted and not written yet */
};

/* A result, or negative: refused, and q->err says why. */
int admission_admit(struct admission *a, struct append_request *q);
/* Checks that results have their calls; a recording append gets its marks. Call it after all other
 * checks. */
int admission_pair(struct admission *a, struct append_request *q);

/* What a record gets from the moment in which it is written. */
struct admission_stamp {
        const char *now;  /* as text */
        uint64_t group;   /* as in struct record */
        const char *salt; /* hex */
};
/* The time of the next record: now, or `last`, the time of the record before it ("": there is
 * none), where that was written by a clock that goes ahead. So later records do not have earlier
 * times. */
void admission_time(const struct env *env, const char *last, char out[TIME_TEXT]);
/* The line of the i-th record of an admitted batch, and its line feed. `x` is room to work in. */
void admission_put(const struct admission *a, struct append_request *q, size_t i,
    const struct admission_stamp *stamp, struct buf *x, struct buf *out);

/* ---- between admission.c and admission_replay.c ---- */

int admission_replay(struct admission *a, struct append_request *q);

#endif
