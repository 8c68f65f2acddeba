/*
 * backend_removal.h - trash, purge and forks.
 *
 * A removed conversation stays whole in the trash until it is restored or destroyed. A purge
 * removes the bytes of deleted and superseded messages and leaves tombstones.
 */
#ifndef STORE_BACKEND_REMOVAL_H
#define STORE_BACKEND_REMOVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/backend_records.h"

#define TRASH_NAME 65

struct trash_item {
        char name[TRASH_NAME]; /* in the trash: a ULID, so that one id can be there several times */
        char *project;
        char *id;
        char folder[65]; /* the name of its folder where it was, "" when that is not known */
        char deleted_at[TIME_TEXT];
        uint64_t bytes;
        bool found; /* by backend_trash_find */
};

struct trash_list {
        struct trash_item *items; /* newest first */
        size_t count;
        size_t cap;
};

/* Moves a conversation to the trash, as `name`. Waits for a running append; later ones are refused.
 */
int backend_trash_put(struct backend_conv *conv, char name[TRASH_NAME], struct steno_error *err);
/* What is there. `sizes` counts the bytes of each, which may have to look at all of it. */
int backend_trash_list(
    struct backend_store *store, bool sizes, struct trash_list *out, struct steno_error *err);
void backend_trash_list_release(struct trash_list *list);
/* Marks the conversations that a caller means: those with this id, newest first, or else the one
 * with that name. Returns how many. */
size_t backend_trash_find(struct trash_list *list, struct str project, const char *id);
/* Opens one for reading only. */
int backend_trash_open(struct backend_store *store, const struct trash_item *item,
    struct backend_conv **out, struct steno_error *err);
/* Moves one back to its place, or to that of the id `as` (may be NULL). STENO_ECONFLICT: the id is
 * in use. STENO_ENOTFOUND: it has left the trash meanwhile. */
int backend_trash_put_back(struct backend_store *store, const struct trash_item *item,
    const char *as, struct steno_error *err);
/* Removes it for good. */
int backend_trash_destroy(
    struct backend_store *store, const struct trash_item *item, struct steno_error *err);
/* Finishes what an earlier destruction left. */
int backend_trash_sweep(struct backend_store *store, struct steno_error *err);
struct purge_result {
        uint64_t messages; /* that became tombstones */
        uint64_t bytes;    /* that are gone */
        uint64_t damaged;  /* places that stay, whatever they held */
};

int backend_purge(struct backend_conv *conv, struct purge_result *out, struct steno_error *err);
struct fork_request {
        struct str project; /* of the new one */
        struct str id;
        bool to_end;      /* all of it, else */
        uint64_t seq;     /* the last record to take; 0: none */
        bool whole_batch; /* a cut inside a batch takes all of that, else it is STENO_ECONFLICT */
};

/* Makes a new conversation with the history of another. Records keep seq, id, time and bytes.
 * Deleted messages become tombstones. Idempotency keys and journals are not copied. Outputs are
 * shared; their bytes are freed with the last conversation that has them. *seq (may be NULL): the
 * last record that was taken. STENO_ECORRUPT: the origin is damaged before that. */
int backend_fork(struct backend_conv *origin, const struct fork_request *request,
    struct backend_conv **out, uint64_t *seq, struct steno_error *err);

#endif
