/*
 * rows.h - reads the database of a tool. The database was opened read-only (foreign.h). It may lack
 * columns that other versions of the tool have, so a statement that cannot be prepared counts as
 * one without rows.
 */
#ifndef FOREIGN_ROWS_H
#define FOREIGN_ROWS_H

#include <sqlite3.h>

#include "foreign/foreign.h"

/* Does a table have these columns? They are separated by commas. */
bool rows_have(sqlite3 *db, const char *table, const char *columns);
/* Opens a statement. NULL: no such table or column, or out of memory. */
sqlite3_stmt *rows_open(sqlite3 *db, const char *sql);
/* Returns 1 for a row, 0 at the end, negative if the database cannot be read. */
int rows_next(sqlite3_stmt *s, struct foreign *t);
/* Returns a text column, "" for NULL. It lives until the next row. */
struct str rows_text(sqlite3_stmt *s, int column);
/* Parses a text column into `j`. False: it is not JSON. *raw is set to the text in both cases. */
bool rows_json(sqlite3_stmt *s, int column, struct json *j, struct str *raw);

#endif
