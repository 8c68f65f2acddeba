/*
 * search_shard.h - the shards of search/ and the calls of SQLite on them. Only the files of this
 * folder include it.
 *
 * A shard is open while its file is the one that was opened: another process may drop a shard or
 * make one, and search_shards_refresh() notices that by the inodes. It comes before whatever walks
 * the shards. Whoever calls anything here holds the mutex of `struct search`.
 *
 * Rows of messages have ids from 1 on, rows of outputs from SEARCH_OUTPUTS on, so that either kind
 * is a range of ids, which FTS5 walks backwards without sorting.
 */
#ifndef STORE_SEARCH_SEARCH_SHARD_H
#define STORE_SEARCH_SEARCH_SHARD_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/search/search.h"

#define SEARCH_OUTPUTS ((int64_t)1 << 40)

struct search_shard {
        unsigned number;
        sqlite3 *db;
        ino_t ino;
        /* The last question, ready to be asked again: to prepare one takes longer than a page. */
        sqlite3_stmt *asked;
        char *asked_sql;
};

struct search {
        struct files_store *store;
        char *path; /* of the folder */
        pthread_mutex_t mutex;
        struct search_shard *shards; /* by number */
        size_t count;
        int lock;
        unsigned long owner; /* the thread that has the lock, 0: none; atomic */
        /* while something is added */
        struct search_shard *to;
        int64_t conv;
        sqlite3_stmt *add_block;
        sqlite3_stmt *add_words;
        sqlite3_stmt *get_name;
        sqlite3_stmt *add_name;
        int64_t next_message;
        int64_t next_output;
        uint64_t bytes; /* added */
};

/* ---- search_shard.c: the shards ---- */

/* Opens what is there now; others may have dropped or made shards. A damaged one is dropped by
 * whoever has the lock, and left out by everybody else. */
int search_shards_refresh(struct search *s, struct steno_error *err);
void search_shards_close(struct search *s);
/* Opens a shard, or makes it, behind those that are open. */
int search_shard_add(struct search *s, unsigned number, bool create, struct steno_error *err);
void search_shard_close(struct search_shard *x);
/* Removes its files. */
void search_shard_remove(struct search *s, unsigned number);

/* ---- SQLite ---- */

/* What failed last there, as an error of ours. */
int search_failed(sqlite3 *db, struct steno_error *err);
int search_exec(sqlite3 *db, const char *sql, struct steno_error *err);
/* *out is finalized by the caller. */
int search_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct steno_error *err);
/* The text stays as it is until the statement is reset. */
void search_bind(sqlite3_stmt *q, int i, struct str text);
/* The number that a statement answers with, -1: it has none. */
int64_t search_number(sqlite3 *db, const char *sql);

#endif
