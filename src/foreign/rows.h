/*
 * rows.h - reads the database of a tool. The database was opened read-only (foreign.h) and may lack
 * columns that other versions have: a statement that cannot be prepared has no rows.
 */
#ifndef FOREIGN_ROWS_H
#define FOREIGN_ROWS_H

#include <sqlite3.h>

#include "foreign/foreign.h"

/* Does a table have these columns (comma between them)? */
bool rows_have(sqlite3 *db, const char *table, const char *columns);
/* NULL: no such table or column, or out of memory. */
sqlite3_stmt *rows_open(sqlite3 *db, const char *sql);
/* 1: a row; 0: the end; negative: the database cannot be read. */
int rows_next(sqlite3_stmt *s, struct foreign *t);
/* A text column; "" for NULL. Lives until the next row. */
struct str rows_text(sqlite3_stmt *s, int column);
/* The same, parsed into `j`: false where it is not JSON; then *raw is the text all the same. */
bool rows_json(sqlite3_stmt *s, int column, struct json *j, struct str *raw);

#endif
