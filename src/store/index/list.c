/*
 * list.c - what is asked of the index: lists, totals, and where a run is (index.h).
 */
#include "store/index/index_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define LIST_DEFAULT 20
#define LIST_MAX 1000

/* A cursor is the last row's place: "<updated>|<project>|<id>", as hex so that it is opaque. */
static void put_cursor(struct jsonw *w, const char *updated, const char *project, const char *id)
{
        struct buf b;
        buf_init(&b, 0);
        char hex[3];
        const char *parts[] = {updated, "\x1f", project, "\x1f", id};
        for (size_t i = 0; i < 5; i++)
                for (const char *p = parts[i]; *p; p++) {
                        snprintf(hex, sizeof hex, "%02x", (unsigned char)*p);
                        buf_puts(&b, hex);
                }
        jsonw_field_str(w, "next_cursor", buf_str(&b));
        buf_release(&b);
}

static int nibble(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Splits a cursor into three texts inside `out`. */
static int read_cursor(
    const char *cursor, char out[2048], const char *part[3], struct steno_error *err)
{
        size_t n = strlen(cursor), k = 0, o = 0;
        if (n % 2 || n / 2 >= 2047)
                goto bad;
        part[0] = out;
        for (size_t i = 0; i < n; i += 2) {
                int hi = nibble(cursor[i]), lo = nibble(cursor[i + 1]);
                if (hi < 0 || lo < 0)
                        goto bad;
                char c = (char)(hi << 4 | lo);
                if (c == '\x1f') {
                        if (++k > 2)
                                goto bad;
                        out[o++] = '\0';
                        part[k] = out + o;
                } else {
                        out[o++] = c;
                }
        }
        out[o] = '\0';
        if (k == 2)
                return 0;
bad:
        return error_set(err, STENO_EINVAL, "not a cursor of this list");
}

static void put_item(struct jsonw *w, sqlite3_stmt *s)
{
        static const char *const TEXTS[] = {"id", "project", "title", "createdAt", "updatedAt"};
        static const char *const NUMBERS[] = {"messages", "lastSeq", "bytes"};
        jsonw_object(w);
        for (int i = 0; i < 5; i++) {
                jsonw_field_cstr(w, TEXTS[i], (const char *)sqlite3_column_text(s, i));
        }
        for (int i = 0; i < 3; i++) {
                jsonw_field_u64(w, NUMBERS[i], (uint64_t)sqlite3_column_int64(s, 5 + i));
        }
        jsonw_object_end(w);
}

/* A query taken apart. */
struct asked {
        const struct backend_query *query;
        uint32_t limit;
        char cursor_text[2048];
        const char *cursor[3]; /* points into it */
        char *words_text;
        const char *words[16]; /* likewise */
        size_t word_count;
};

static int take_apart(struct asked *a, const struct backend_query *q, struct steno_error *err)
{
        uint32_t limit = q->limit ? q->limit : LIST_DEFAULT;
        a->query = q;
        a->limit = limit > LIST_MAX ? LIST_MAX : limit;
        a->word_count = 0;
        a->words_text = NULL;
        int rc = q->cursor ? read_cursor(q->cursor, a->cursor_text, a->cursor, err) : 0;
        if (rc || !q->words)
                return rc;
        char *save = NULL;
        a->words_text = strdup(q->words);
        if (!a->words_text)
                return error_nomem(err);
        for (char *w = strtok_r(a->words_text, " \t\n", &save); w && a->word_count < 16;
             w = strtok_r(NULL, " \t\n", &save))
                a->words[a->word_count++] = w;
        return 0;
}

/* The statement for a query: conditions are added as they are needed. */
static void put_sql(const struct asked *a, struct buf *sql)
{
        buf_puts(sql, "SELECT id,project,title,created,updated,messages,last_seq,"
                      "c.bytes+coalesce(o.bytes,0) FROM conv c LEFT JOIN outputs o"
                      " USING (project_folder,folder) WHERE NOT unreadable");
        if (a->query->project)
                buf_puts(sql, " AND project=?1");
        if (a->query->cursor)
                buf_puts(sql, " AND (updated<?2 OR (updated=?2 AND (project,id)>(?3,?4)))");
        for (size_t i = 0; i < a->word_count; i++)
                buf_printf(sql,
                    " AND (instr(lower(title),lower(?%zu)) OR instr(lower(id),lower(?%zu)))",
                    10 + i, 10 + i);
        buf_puts(sql, " ORDER BY updated DESC, project, id LIMIT ?5");
}

static int prepare(
    struct index *x, const struct asked *a, sqlite3_stmt **out, struct steno_error *err)
{
        struct buf sql;
        buf_init(&sql, 64 * KIB);
        put_sql(a, &sql);
        const char *text = buf_cstr(&sql);
        int rc = text ? index_prepare(x, text, out, err) : error_nomem(err);
        buf_release(&sql);
        if (rc)
                return rc;
        if (a->query->project)
                index_bind(*out, 1, a->query->project);
        for (int i = 0; a->query->cursor && i < 3; i++)
                index_bind(*out, 2 + i, a->cursor[i]);
        sqlite3_bind_int64(
            *out, 5, (sqlite3_int64)a->limit + 1); /* one more: is there a next page? */
        for (size_t i = 0; i < a->word_count; i++)
                index_bind(*out, 10 + (int)i, a->words[i]);
        return 0;
}

static int put_page(struct index *x, const struct asked *a, sqlite3_stmt *s, struct buf *out,
    struct steno_error *err)
{
        static const int CURSOR[] = {4, 1, 0}; /* columns of the last row */
        struct jsonw w = jsonw_to(out);
        char *last[3] = {0};
        uint32_t count = 0;
        int step;
        jsonw_object(&w);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        while ((step = sqlite3_step(s)) == SQLITE_ROW && count < a->limit) {
                put_item(&w, s);
                for (int i = 0; count + 1 == a->limit && i < 3; i++)
                        last[i] = strdup((const char *)sqlite3_column_text(s, CURSOR[i]));
                count++;
        }
        jsonw_array_end(&w);
        if (step == SQLITE_ROW && last[0] && last[1] && last[2])
                put_cursor(&w, last[0], last[1], last[2]);
        if (a->query->behind)
                jsonw_field_bool(&w, "catching_up", true);
        jsonw_object_end(&w);
        for (int i = 0; i < 3; i++)
                free(last[i]);
        return step == SQLITE_ROW || step == SQLITE_DONE ? buf_check(out, err)
                                                         : index_error(x, err);
}

int index_list(struct index *x, const struct backend_query *q, char **json, struct steno_error *err)
{
        struct asked a;
        struct buf out;
        sqlite3_stmt *s = NULL;
        int rc = take_apart(&a, q, err);
        if (rc)
                return rc;
        buf_init(&out, 64 * MIB);
        pthread_mutex_lock(&x->mutex);
        rc = prepare(x, &a, &s, err);
        if (rc == 0)
                rc = put_page(x, &a, s, &out, err);
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        if (rc == 0) {
                char *text = buf_take(&out, NULL);
                rc = text ? 0 : error_nomem(err);
                if (text)
                        *json = text;
        }
        free(a.words_text);
        buf_release(&out);
        return rc;
}

int index_totals(struct index *x, struct backend_totals *out, struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        pthread_mutex_lock(&x->mutex);
        int rc = index_prepare(x,
            "SELECT count(*),sum(messages),sum(c.bytes+coalesce(o.bytes,0)) FROM conv c"
            " LEFT JOIN outputs o USING (project_folder,folder) WHERE NOT unreadable",
            &s, err);
        if (rc == 0 && sqlite3_step(s) != SQLITE_ROW)
                rc = index_error(x, err);
        if (rc == 0)
                *out = (struct backend_totals){(uint64_t)sqlite3_column_int64(s, 0),
                    (uint64_t)sqlite3_column_int64(s, 1), (uint64_t)sqlite3_column_int64(s, 2)};
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        return rc;
}

int index_find_run(
    struct index *x, const char *project, const char *run, char folder[65], struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        pthread_mutex_lock(&x->mutex);
        int rc = index_prepare(x, "SELECT folder FROM run WHERE id=?1 AND project=?2", &s, err);
        if (rc == 0) {
                index_bind(s, 1, run);
                index_bind(s, 2, project);
                if (sqlite3_step(s) == SQLITE_ROW)
                        snprintf(folder, 65, "%s", (const char *)sqlite3_column_text(s, 0));
                else
                        rc = error_set(err, STENO_ENOTFOUND, "no run \"%.100s\"", run);
        }
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        return rc;
}

int index_unfinished(
    struct index *x, const char *project, uint32_t max, char **json, struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        struct buf out;
        buf_init(&out, 64 * MIB);
        struct jsonw w = jsonw_to(&out);
        jsonw_array(&w);
        pthread_mutex_lock(&x->mutex);
        int rc = index_prepare(
            x, "SELECT project,id FROM unfinished WHERE ?1='' OR project=?1 LIMIT ?2", &s, err);
        if (rc == 0) {
                int step;
                index_bind(s, 1, project ? project : "");
                sqlite3_bind_int64(s, 2, max);
                while ((step = sqlite3_step(s)) == SQLITE_ROW) {
                        jsonw_array(&w);
                        jsonw_cstr(&w, (const char *)sqlite3_column_text(s, 0));
                        jsonw_cstr(&w, (const char *)sqlite3_column_text(s, 1));
                        jsonw_array_end(&w);
                }
                rc = step == SQLITE_DONE ? 0 : index_error(x, err);
        }
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        jsonw_array_end(&w);
        if (rc == 0)
                rc = buf_check(&out, err);
        if (rc == 0) {
                *json = buf_take(&out, NULL);
                rc = *json ? 0 : error_nomem(err);
        }
        buf_release(&out);
        return rc;
}

int index_each(struct index *x, int (*each)(void *ctx, const struct index_row *row), void *ctx,
    struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        int step = SQLITE_DONE;
        pthread_mutex_lock(&x->mutex);
        int rc = index_prepare(x,
            "SELECT project_folder,folder,project,id,last_seq FROM conv WHERE NOT"
            " coalesce(unreadable,0) ORDER BY updated,project,id",
            &s, err);
        while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
                struct index_row row = {(const char *)sqlite3_column_text(s, 0),
                    (const char *)sqlite3_column_text(s, 1),
                    (const char *)sqlite3_column_text(s, 2),
                    (const char *)sqlite3_column_text(s, 3), (uint64_t)sqlite3_column_int64(s, 4)};
                rc = each(ctx, &row);
        }
        if (rc == 0 && step != SQLITE_DONE)
                rc = index_error(x, err);
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        return rc;
}
