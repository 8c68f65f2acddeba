/*
 * pg_value.c - the values that go into a statement, and those that come out of its answer.
 */
#include "store/postgres/pg.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- in ---- */

void pg_query_init(struct pg_query *q, const char *sql)
{
        q->sql = sql;
        q->count = 0;
        q->prepared = PG_UNPREPARED;
        q->patience_ms = 0;
        q->relaxed = q->repeatable = q->failed = false;
        q->values = q->few_values;
        q->lengths = q->few_lengths;
        q->formats = q->few_formats;
        q->types = q->few_types;
        q->numbers = q->few_numbers;
        q->room = 16;
}

bool pg_query_room(struct pg_query *q, int values)
{
        if (values <= q->room)
                return true;
        size_t n = (size_t)values;
        q->values = calloc(n, sizeof *q->values);
        q->lengths = calloc(n, sizeof *q->lengths);
        q->formats = calloc(n, sizeof *q->formats);
        q->types = calloc(n, sizeof *q->types);
        q->numbers = calloc(n, sizeof *q->numbers);
        q->room = values;
        if (q->values && q->lengths && q->formats && q->types && q->numbers)
                return true;
        pg_query_release(q);
        return false;
}

void pg_query_release(struct pg_query *q)
{
        if (q->values == q->few_values)
                return;
        free(q->values);
        free(q->lengths);
        free(q->formats);
        free(q->types);
        free(q->numbers);
        pg_query_init(q, q->sql);
}

static void put(struct pg_query *q, Oid type, const char *p, int n, int format)
{
        if (q->count == q->room) {
                q->failed = true;
                return;
        }
        q->types[q->count] = type;
        q->values[q->count] = p;
        q->lengths[q->count] = n;
        q->formats[q->count++] = format;
}

/* Binary, so that it needs no NUL behind it. */
void pg_text(struct pg_query *q, struct str text)
{
        put(q, 25, text.p ? text.p : "", (int)text.n, 1);
}

void pg_cstr(struct pg_query *q, const char *text)
{
        put(q, 25, text, 0, 0);
}

void pg_u64(struct pg_query *q, uint64_t n)
{
        if (q->count < q->room)
                snprintf(q->numbers[q->count], sizeof q->numbers[0], "%lld", (long long)n);
        put(q, 20, q->count < q->room ? q->numbers[q->count] : "", 0, 0);
}

void pg_bytes(struct pg_query *q, struct str bytes)
{
        put(q, 17, bytes.p ? bytes.p : "", (int)bytes.n, 1);
}

void pg_null(struct pg_query *q)
{
        put(q, 0, NULL, 0, 0);
}

void pg_null_bytes(struct pg_query *q)
{
        put(q, 17, NULL, 0, 0);
}

/* ---- out ---- */

struct str pg_get(const PGresult *r, int row, int column)
{
        if (libpq.getisnull(r, row, column))
                return (struct str){0};
        return str_span(libpq.getvalue(r, row, column), (size_t)libpq.getlength(r, row, column));
}

uint64_t pg_get_u64(const PGresult *r, int row, int column)
{
        uint64_t n = 0;
        struct str v = pg_get(r, row, column);
        if (v.n == sizeof n) {
                memcpy(&n, v.p, sizeof n);
                return be64toh(n);
        }
        if (v.n == sizeof(uint32_t)) {
                uint32_t small;
                memcpy(&small, v.p, sizeof small);
                return ntohl(small);
        }
        return 0;
}

bool pg_get_bool(const PGresult *r, int row, int column)
{
        struct str v = pg_get(r, row, column);
        return v.n == 1 && v.p[0];
}

char *pg_get_dup(const PGresult *r, int row, int column)
{
        struct str v = pg_get(r, row, column);
        char *copy = malloc(v.n + 1);
        if (copy && v.n)
                memcpy(copy, v.p, v.n); /* a document may hold NUL bytes: a key does */
        if (copy)
                copy[v.n] = 0;
        return copy;
}
