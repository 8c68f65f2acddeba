/* rows.c - see rows.h */
#include "foreign/rows.h"

#include <stdio.h>

#include "base/error.h"

sqlite3_stmt *rows_open(sqlite3 *db, const char *sql)
{
        sqlite3_stmt *s = NULL;
        return sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? s : NULL;
}

bool rows_have(sqlite3 *db, const char *table, const char *columns)
{
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT %s FROM %s LIMIT 0", columns, table);
        sqlite3_stmt *s = rows_open(db, sql);
        sqlite3_finalize(s);
        return s != NULL;
}

int rows_next(sqlite3_stmt *s, struct foreign *t)
{
        int rc = sqlite3_step(s);
        if (rc == SQLITE_ROW)
                return 1;
        if (rc == SQLITE_DONE)
                return 0;
        return error_set(t->err, rc == SQLITE_NOMEM ? STENO_ENOMEM : STENO_ECORRUPT, "%.120s: %s",
            t->path, sqlite3_errmsg(sqlite3_db_handle(s)));
}

struct str rows_text(sqlite3_stmt *s, int column)
{
        const char *p = (const char *)sqlite3_column_text(s, column);
        return p ? str_span(p, (size_t)sqlite3_column_bytes(s, column)) : STR("");
}

bool rows_json(sqlite3_stmt *s, int column, struct json *j, struct str *raw)
{
        *raw = rows_text(s, column);
        return raw->n && json_parse(j, raw->p, raw->n, NULL, NULL) == 0;
}
