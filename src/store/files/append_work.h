/*
 * append_work.h - what the files of an append share. Nobody else includes it.
 */
#ifndef STORE_FILES_APPEND_WORK_H
#define STORE_FILES_APPEND_WORK_H

#include "base/arena.h"
#include "store/files/conv.h"

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

/* An id or a key, and where its record will be. */
struct noted {
        uint64_t hash;
        uint64_t at;
};

struct group {
        struct files_conv *conv;
        uint64_t seq;        /* last seq, the admitted batches included */
        uint64_t amend;      /* seq of the last amendment, likewise */
        struct noted *noted; /* ids and keys of the admitted batches */
        size_t noted_count;
        size_t noted_cap;
        struct noted few[4]; /* where `noted` begins */
        struct buf out;      /* the records of the admitted batches */
        struct buf x;        /* scratch */
        bool sync;           /* someone asked for full durability */
        bool replay_sync;
        char at[TIME_TEXT];
        struct arena arena;
        unsigned char salts[16 * ABOUT_SALT]; /* random bytes for the next records, */
        size_t salt_count;                    /* and for how many there are some left */
};

/* Looks for the record with an id, or with an idempotency key. */
struct candidate {
        struct files_conv *conv;
        struct str want;
        bool key; /* `want` is an idempotency key, not an id */
        struct buf line;
        struct buf text;
        struct record rec;
        uint64_t at; /* its offset */
        int rc;
        struct steno_error *err;
};

void replay_candidate_init(struct candidate *c, struct group *g, struct steno_error *err);
void replay_candidate_release(struct candidate *c);
/* 1: c->rec is the record; 0: there is none. */
int replay_candidate_find(struct candidate *c);

/* What becomes of a batch that is not refused. */
enum admission {
        ADMIT_NEW = 0, /* its records are to be written */
        ADMIT_REPLAY,  /* it is in the log already, and its receipt is filled */
        ADMIT_LATER,   /* it depends on a batch of this very group: it waits for the next group */
};

/* replay.c: an admission, or negative: refused. */
int replay_admit_ids(struct group *g, struct append_request *q);
/* admit.c: amendments know their targets by the ids that the log has for them. */
int admit_names(struct group *g, struct append_request *q);
/* admit.c: is all that came behind `seq` what was completed of a run that died? A writer that had
 * seen everything before has seen all that others wrote. */
bool admit_expected(struct group *g, uint64_t seq);
/* admit.c: the targets of amendments can be seen. ADMIT_NEW, ADMIT_LATER when another amendment
 * goes first, or negative. */
int admit_targets(struct group *g, struct append_request *q);
/* admit.c: every result has its call; a recording append gets its marks. */
int admit_pairing(struct group *g, struct append_request *q);

#endif
