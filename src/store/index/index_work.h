/*
 * index_work.h - what the files of this folder share. Nobody else includes it.
 */
#ifndef STORE_INDEX_INDEX_WORK_H
#define STORE_INDEX_INDEX_WORK_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/limits.h"
#include "store/index/index.h"

#define INDEX_BUSY_MS 60000 /* how long one waits for another that writes */

struct scan;

struct index {
        struct files_store *store;
        pthread_mutex_t mutex;
        struct scan *scan; /* of this process, or NULL (index_scan.c) */
        char *path;
        sqlite3 *db; /* NULL: to be opened */
        ino_t ino;   /* of index.db as it was opened */
        bool in_memory;
        bool failed;  /* SQLite did: to be opened anew */
        bool damaged; /* and because of what is in the file: to be made anew */
};

/* Says what SQLite said last, and marks the database as failed. */
int index_error(struct index *x, struct steno_error *err);
int index_run(struct index *x, const char *sql, struct steno_error *err);
int index_prepare(struct index *x, const char *sql, sqlite3_stmt **out, struct steno_error *err);
void index_bind(sqlite3_stmt *s, int i, const char *text);
/* Runs a statement that answers no row, and makes it ready for the next time. */
int index_step(struct index *x, sqlite3_stmt *s, struct steno_error *err);

/* Opens the database in the store, if it is not open and whole. */
int index_open_file(struct index *x, struct steno_error *err);
/* Opens an empty one that is never written, in its place. */
int index_open_memory(struct index *x, struct steno_error *err);
/* Is the file that is open still the one of that name? */
bool index_is_present(struct index *x);
/* Closes it and removes its files; they are derived. */
void index_discard(struct index *x);

bool index_state_is(struct index *x, const char *key, const char *value);
/* The value as a text to be freed; NULL when there is none. */
char *index_state(struct index *x, const char *key);
int index_set_state(struct index *x, const char *key, const char *value, struct steno_error *err);

/* An index in memory, from a scan: catch_up.c. Under no lock. */
int index_scan(struct index *x, struct steno_error *err);

/* ---- the list of changes that was taken (recent.old): catch_up.c ---- */

struct taken {
        int fd; /* stays open, so that no other file can have its inode; -1: none */
        ino_t ino;
};

/* Under the write lock, like index_taken_drop. */
void index_taken_hold(struct index *x, struct taken *t);
/* Removes it, when what it names was looked at and committed. Another that has come into its place
 * meanwhile stays. */
void index_taken_drop(struct index *x, const struct taken *t);
void index_taken_release(struct index *x, struct taken *t);

/* ---- projects.c ---- */

struct looks {
        int64_t changed; /* ns */
        int64_t links;
        int64_t size;
};

struct project {
        char folder[PLAIN_NAME_MAX + 1];
        bool there; /* on the disk */
        bool known; /* to the index */
        struct looks now;
        struct looks then;
        int64_t more;     /* rows that came, less those that went, by what `recent` names */
        uint64_t changes; /* of either kind */
        bool unsure;      /* its number of links says nothing about them */
};

struct projects {
        struct index *x;
        struct project *all; /* those on the disk, by name; then those that are gone */
        size_t count;
        size_t there_count;
        size_t room;
        uint64_t unreadable;
        struct steno_error *err;
};

/* Looks at the folders as they are now and as the index remembers them. */
int projects_look(struct projects *c);
void projects_release(struct projects *c);
/* One that is on the disk, or NULL. */
struct project *projects_find(struct projects *c, const char *folder);
bool project_looks_same(const struct project *p);
/* Makes the index remember what projects_look saw. */
int projects_remember(struct projects *c);
/* Lists, as lines "<project folder>/<folder>", what is in the folder of a project or in its rows,
 * and not in both: of those that look different and are not explained; or of all, with what is in
 * both, sorted by project and folder, in `both`. Links are always in `list`. */
int projects_list_changed(struct projects *c, struct buf *list);
int projects_list_all(struct projects *c, struct buf *list, struct buf *both);
void projects_put_name(struct buf *list, const char *project_folder, const char *folder);

/* ---- index_scan.c ---- */

/* Starts a scan of all folders in a thread of its own, unless one runs. x->mutex is held. */
int index_scan_start(struct index *x, const char *boot, struct steno_error *err);
/* Waits for its end; x->mutex is held, but not while it waits. *done: how many conversations were
 * looked at. When it failed because of the database, x is marked as failed. */
int index_scan_wait(struct index *x, steno_progress progress, void *progress_ctx, uint64_t *done,
    struct steno_error *err);
/* Did the last one of this process fail? */
bool index_scan_has_failed(const struct index *x);
/* Ends it soon, without its result. What it has looked at stays. x->mutex is not held. */
void index_scan_stop(struct index *x);
/* The same, when the index is not used any more. */
void index_scan_release(struct index *x);
/* In this thread, into a database that nobody else uses. */
int index_scan_here(struct index *x, const char *boot, steno_progress progress, void *progress_ctx,
    uint64_t *done, struct steno_error *err);

/* ---- rows: row.c ---- */

/* Of the records of a conversation: how many show no message, because they are amendments or
 * because they were deleted. */
struct hidden {
        uint64_t amended; /* seq of the last amendment, 0: none */
        uint64_t records;
};

struct row_writer {
        struct index *x;
        sqlite3_stmt *get;
        sqlite3_stmt *put;
        sqlite3_stmt *put_unreadable;
        sqlite3_stmt *drop;
        sqlite3_stmt *put_run;
        sqlite3_stmt *drop_runs;
        sqlite3_stmt *put_outputs;
        sqlite3_stmt *drop_outputs;
        sqlite3_stmt *put_unfinished;
        sqlite3_stmt *drop_unfinished;
};

int row_writer_init(struct row_writer *w, struct index *x, struct steno_error *err);
void row_writer_release(struct row_writer *w);

/* What the index says of a conversation, so that what did not change is not counted again. */
struct row_known {
        bool there;
        int64_t bytes;
        int64_t log_changed; /* ns */
        struct hidden hidden;
        bool unreadable;
        int64_t outputs;         /* bytes of them */
        int64_t outputs_changed; /* 0: they were never counted */
};

enum row_state { ROW_GONE, ROW_UNREADABLE, ROW_READ };

/* A look at a conversation's folder. */
struct row_look {
        char project_folder[PLAIN_NAME_MAX + 1];
        char folder[PLAIN_NAME_MAX + 1];
        struct row_known known;
        enum row_state state;
        bool nomem;   /* there was no memory to look */
        bool writing; /* somebody writes to it, so it is to be looked at again */
        bool unfinished;
        bool outputs_same;
        char *title;
        char *created;
        char *project;
        char *id;
        char updated[40];
        uint64_t seq;
        uint64_t bytes;
        int64_t log_changed;
        struct hidden hidden;
        struct buf runs; /* their names, ended by NULs */
        uint64_t outputs;
        int64_t outputs_changed;
};

/* The steps of row_update: names it, asks the index, reads the folder (in any thread; no database
 * is used), and makes the row say what the folder says. */
void row_look_at(struct row_look *l, const char *project_folder, const char *folder);
int row_recall(struct row_writer *w, struct row_look *l, struct steno_error *err);
void row_read(struct index *x, struct row_look *l);
struct row_change;
int row_write(struct row_writer *w, const struct row_look *l, struct row_change *change,
    struct steno_error *err);
void row_look_release(struct row_look *l);

struct row_change {
        int more;    /* 1: it is a new one; -1: there is none any more */
        bool unsure; /* it may be or have been a link instead of a folder: none of the project's
                        links */
};

/* Makes a conversation's row say what its folder says. One that cannot be read gets a row that
 * says so. */
int row_update(struct row_writer *w, const char *project_folder, const char *folder,
    struct row_change *change, struct steno_error *err);

/* Counts the outputs of all conversations, in a database of a version that did not. */
int row_fill_outputs(struct index *x, struct steno_error *err);

/* ---- hidden.c ---- */

/* `h` has what was known, or zeros; nothing is counted again unless there are new amendments. */
int hidden_count(struct files_conv *conv, struct hidden *h, struct steno_error *err);

#endif
