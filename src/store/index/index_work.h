/*
 * index_work.h - what the files of this folder share. Nobody else includes it.
 */
#ifndef STORE_INDEX_INDEX_WORK_H
#define STORE_INDEX_INDEX_WORK_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <sys/types.h>

#include "store/index/index.h"

struct index {
        struct files_store *store;
        pthread_mutex_t mutex;
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
/* Closes it and removes its files; they are derived. */
void index_discard(struct index *x);

/* An index in memory, from a scan: catch_up.c. Under no lock. */
int index_scan(struct index *x, struct steno_error *err);

/* ---- rows: row.c ---- */

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

struct row_change {
        int more;    /* 1: it is a new one; -1: there is none any more */
        bool unsure; /* it is or was no folder perhaps, but a link: none of the project's links */
};

/* Makes a conversation's row say what its folder says. One that cannot be read gets a row that
 * says so. */
int row_update(struct row_writer *w, const char *project_folder, const char *folder,
    struct row_change *change, struct steno_error *err);

/* Counts the outputs of all conversations, in a database of a version that did not. */
int row_fill_outputs(struct index *x, struct steno_error *err);

/* ---- hidden.c ---- */

/* Of the records of a conversation: how many show no message, because they are amendments or
 * because they were deleted. */
struct hidden {
        uint64_t amended; /* seq of the last amendment, 0: none */
        uint64_t records;
};

/* `h` has what was known, or zeros; nothing is counted again unless there are new amendments. */
int hidden_count(struct files_conv *conv, struct hidden *h, struct steno_error *err);

#endif
