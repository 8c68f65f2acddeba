/*
 * api_run.h - what the files of this folder share about runs: finding a journal by its run's id,
 * and what journals know of calls that have no result.
 */
#ifndef API_API_RUN_H
#define API_API_RUN_H

#include "base/arena.h"
#include "model/repair.h"
#include "api/api_store.h"

/*
 * The conversation that a run belongs to (released by the caller) and the journal's name there.
 * STENO_ENOTFOUND.
 */
int api_run_find(struct steno_store *store, const char *project, const char *run_id,
    struct backend_conv **conv, char name[65], struct steno_error *err);

/* What is known of one run: its dispatches and outcomes, read once. */
struct run_facts;

/*
 * Reads journals as they are asked for and keeps them: make one for a view, use it, release it.
 * Not thread-safe.
 */
struct api_run_knowledge {
        struct backend_conv *conv; /* borrowed */
        struct run_facts *runs;
        struct backend_conv *origin; /* where the journals of a fork's earlier runs are */
        bool looked;                 /* for the origin */
};

void api_run_knowledge_init(struct api_run_knowledge *k, struct backend_conv *conv);
void api_run_knowledge_release(struct api_run_knowledge *k);

/*
 * The class of a call that has no result in the log: `run` is the run of the message that made it
 * (about.run, may be empty), `seq` that message's. Unreadable or unknown journals answer
 * REPAIR_UNRECORDED. *facts (may be NULL) live as long as `k`.
 */
enum repair_class api_run_classify(struct api_run_knowledge *k, struct str run, uint64_t seq,
    struct str call, struct repair_facts *facts);

/* What the run holds of its conversation; NULL when it has ended. STENO_EINVAL: the run is of
 * another conversation. */
int api_run_claim(const struct steno_run *run, const struct steno_conv *conv,
    const struct backend_claim **out, struct steno_error *err);

/* An outcome in a journal. */
struct run_outcome {
        uint64_t seq;
        uint64_t request;
        uint64_t of;        /* seq of the message with the call, 0: not known */
        struct str call;    /* text */
        struct str message; /* JSON */
};

/* Calls `each` with every outcome of a journal, in order. */
int api_run_each_outcome(struct backend_conv *conv, const char *name,
    int (*each)(void *ctx, const struct run_outcome *o), void *ctx, struct steno_error *err);

/* A line of the mailbox (api_mail.c): tells `fn` when it is for this run. */
void api_mail_read(struct str line, const char *run, steno_run_mail_fn fn, void *ctx);

/* Writes steno_run_info's object for a journal. */
struct jsonw;
int api_run_put_info(struct backend_conv *conv, const char *name, struct jsonw *w,
    char at[TIME_TEXT], struct steno_error *err);

#endif
