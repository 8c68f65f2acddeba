/*
 * backend_catalogue.h - which conversations there are, and which words are in them.
 *
 * Lists and searches are derived from the records and may be behind them; backend_catch_up brings
 * the list up to date. The index of words proposes, the records confirm: it is given blocks of text
 * (api/api_search_index.c) and answers with places where words may be.
 */
#ifndef STORE_BACKEND_CATALOGUE_H
#define STORE_BACKEND_CATALOGUE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/backend_records.h"

/* ---- the list ---- */

struct backend_caught_up {
        uint64_t unreadable; /* conversations and projects that could not be looked into; they are
                                left out */
        bool behind;         /* what changed before the machine booted may not be seen yet */
};

/* Indexes what has changed. With `at_once`, the slow scan after a boot continues in the background,
 * and out->behind says so. `progress` may be NULL. Several threads may call it at once.
 */
int backend_catch_up(struct backend_store *store, bool at_once, steno_progress progress,
    void *progress_ctx, struct backend_caught_up *out, struct steno_error *err);
struct backend_query {
        const char *project; /* NULL: all */
        uint32_t limit;      /* 20 when 0 */
        const char *cursor;  /* NULL: from the newest */
        const char *words;   /* all must occur in the title or id; NULL: any */
        bool behind;         /* to be said in the answer */
};

/* {"items":[...],"next_cursor"?,"catching_up"?} as in steno_list. STENO_EINVAL: not a cursor of
 * ours. STENO_ECORRUPT, here and below: a derived file is damaged; the next backend_catch_up
 * rebuilds it. */
int backend_list(struct backend_store *store, const struct backend_query *q, char **json,
    struct steno_error *err);
struct backend_listed {
        const char *project;
        const char *id;
        uint64_t last_seq;
};

/* Every conversation that can be read, oldest activity first. A non-zero return of `each` ends it
 * and is returned. */
int backend_list_each(struct backend_store *store,
    int (*each)(void *ctx, const struct backend_listed *row), void *ctx, struct steno_error *err);
struct backend_totals {
        uint64_t conversations;
        uint64_t messages; /* that are shown */
        uint64_t bytes;
};

int backend_totals(
    struct backend_store *store, struct backend_totals *out, struct steno_error *err);
struct backend_tally {
        uint64_t artifacts; /* outputs and parts */
        uint64_t artifact_bytes;
        uint64_t quarantine; /* things that were put aside */
};

/* Figures that need a look at everything. */
int backend_tally(struct backend_store *store, struct backend_tally *out, struct steno_error *err);
/* Conversations with a run that may not have come to its end, at most `max`: JSON
 * [[project,id],...]. `project` NULL: of all. */
int backend_unfinished(struct backend_store *store, const char *project, uint32_t max, char **json,
    struct steno_error *err);

/* ---- words: indexing, between backend_search_lock and backend_search_unlock ---- */

#define SEARCH_BLOCK ((size_t)16 * 1024)
#define SEARCH_OVERLAP ((size_t)256) /* of two blocks, so that no phrase is cut */

/* One at a time of all who use the store. `wait` false: STENO_ETIMEOUT when somebody else has it.
 */
int backend_search_lock(struct backend_store *store, bool wait, struct steno_error *err);
void backend_search_unlock(struct backend_store *store);
/* What is indexed of a conversation: records up to *seq of its generation. 0: nothing. */
int backend_search_progress(
    struct backend_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err);
typedef int (*backend_progress_fn)(
    void *ctx, const char *project, const char *id, uint64_t generation, uint64_t last);

/* The same of all; one that is in several places comes several times. */
int backend_search_each_conv(
    struct backend_store *store, backend_progress_fn each, void *ctx, struct steno_error *err);
/* Begins to add to a conversation, in a transaction. */
int backend_search_begin(struct backend_conv *conv, uint64_t generation, struct steno_error *err);
enum search_role {
        SEARCH_USER = 1,
        SEARCH_ASSISTANT,
        SEARCH_TOOL,
        SEARCH_SYSTEM,
};

struct search_block {
        uint64_t seq;
        struct str ref; /* of an output; "": of the message */
        uint64_t at;    /* where the block begins in the text */
        uint64_t len;
        int role; /* enum search_role */
        bool error;
        struct str tools; /* names, with line ends between them */
        struct str model;
        int64_t time;     /* ms */
        struct str words; /* folded, with spaces */
};

int backend_search_add(
    struct backend_store *store, const struct search_block *b, struct steno_error *err);
/* Commits; everything up to `seq` is indexed. */
int backend_search_commit(struct backend_store *store, uint64_t seq, struct steno_error *err);
/* Removes all words of the conversations that have or had this name. Takes the lock. */
int backend_search_forget(
    struct backend_store *store, const char *project, const char *id, struct steno_error *err);
/* Removes everything. Takes the lock. */
int backend_search_discard(struct backend_store *store, struct steno_error *err);

/* ---- words: asking ---- */

struct search_ask {
        const char *match;   /* words and operators as FTS5 has them; NULL: every block */
        const char *project; /* NULL: all */
        const char *conversation;
        const char *tool;
        const char *model;
        int role;      /* 0: any */
        bool error;    /* only failures */
        bool outputs;  /* outputs, else messages */
        int64_t after; /* ms; INT64_MIN: no bound */
        int64_t before;
        uint64_t below; /* only rows before this place (see search_hit); UINT64_MAX: all */
};

struct search_hit {
        uint64_t place; /* newer ones are greater */
        const char *project;
        const char *id;
        uint64_t seq;
        const char *ref; /* "": the message */
        uint64_t at;
        uint64_t len;
        int role;
        bool error;
        const char *tools; /* names, with line ends between them */
        int64_t time;
};

typedef int (*search_hit_fn)(void *ctx, const struct search_hit *hit);

/* Candidates, newest first. A non-zero return of `each` ends it and is returned. */
int backend_search_each(struct backend_store *store, const struct search_ask *ask,
    search_hit_fn each, void *ctx, struct steno_error *err);

#endif
