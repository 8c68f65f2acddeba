/*
 * index.h - index.db: which conversations there are, by activity, title and project.
 *
 * It is an SQLite file, derived from the other files. A commit never waits for it, and it can be
 * deleted at any time. It is caught up before each use: from `recent` (store/files/recent.c) and
 * from folders whose looks have changed while the machine has not booted since, from a scan of all
 * folders else. Several processes may do so at once. After a boot the scan takes a while. A caller
 * that wants an answer at once gets it from the present index, with a note. Where it cannot be kept
 * in the store - a full disk, no right to write - it is made in memory, by a scan for each use.
 */
#ifndef STORE_INDEX_INDEX_H
#define STORE_INDEX_INDEX_H

#include <stdint.h>

#include "steno.h"
#include "store/files/files.h"

struct index;

int index_open(struct files_store *store, struct index **out, struct steno_error *err);
void index_close(struct index *index);

/* Indexes what has changed. `progress` may be NULL. A damaged or missing database is rebuilt. With
 * `at_once`, a scan after a boot continues in the background, and out->behind says so. */
int index_catch_up(struct index *index, bool at_once, steno_progress progress, void *progress_ctx,
    struct backend_caught_up *out, struct steno_error *err);

/* Makes one from nothing, in memory, and compares: how many conversations differ, but for those
 * that are being changed, and the first of them. */
struct index_difference {
        uint64_t count;
        char first[140]; /* "<project folder>/<folder>" */
};
int index_compare(struct index *index, struct index_difference *out, struct steno_error *err);
/* Deletes the index and rebuilds it. */
int index_rebuild(struct index *index, struct steno_error *err);

/* {"items":[...],"next_cursor"?} as in steno_list. STENO_EINVAL: not a cursor of ours.
 * STENO_ECORRUPT, here and below: the database is damaged; the next catch-up makes it anew. */
int index_list(
    struct index *index, const struct backend_query *q, char **json, struct steno_error *err);

/* Every conversation that can be read, oldest activity first. A non-zero return of `each` ends it
 * and is returned. */
struct index_row {
        const char *project_folder;
        const char *folder;
        const char *project;
        const char *id;
        uint64_t last_seq;
};
int index_each(struct index *index, int (*each)(void *ctx, const struct index_row *row), void *ctx,
    struct steno_error *err);

/* Conversations, messages that are shown, bytes of logs and outputs. */
int index_totals(struct index *index, struct backend_totals *out, struct steno_error *err);

/*
 * Conversations with a run that may not have come to its end, at most `max`: JSON
 * [[project,id],...]. `project` NULL: of all.
 */
int index_unfinished(
    struct index *index, const char *project, uint32_t max, char **json, struct steno_error *err);

/* The conversation that a run belongs to, by its folders' names. STENO_ENOTFOUND. */
int index_find_run(struct index *index, const char *project, const char *run, char folder[65],
    struct steno_error *err);

#endif
