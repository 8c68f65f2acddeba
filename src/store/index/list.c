/*
 * list.c - what is asked of the index: lists, totals, and where a run is (index.h).
 */
#include "store/index/work.h"

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

/* The statement for a query: conditions are added as they are needed. */
static void query_sql(
    const struct backend_query *q, const char *const *words, size_t word_count, struct buf *sql)
{
        buf_puts(sql, "SELECT id,project,title,created,updated,messages,last_seq,"
                      "c.bytes+coalesce(o.bytes,0) FROM conv c LEFT JOIN outputs o"
                      " USING (project_folder,folder) WHERE NOT unreadable");
        if (q->project)
                buf_puts(sql, " AND project=?1");
        if (q->cursor)
                buf_puts(sql, " AND (updated<?2 OR (updated=?2 AND (project,id)>(?3,?4)))");
        for (size_t i = 0; i < word_count; i++) {
                (void)words;
                buf_printf(sql,
                    " AND (instr(lower(title),lower(?%zu)) OR instr(lower(id),lower(?%zu)))",
                    10 + i, 10 + i);
        }
        buf_puts(sql, " ORDER BY updated DESC, project, id LIMIT ?5");
}

int index_list(struct index *x, const struct backend_query *q, char **json, struct steno_error *err)
{
        char cursor_text[2048];
        const char *part[3] = {0};
        char *words = NULL;
        const char *word[16];
        size_t word_count = 0;
        uint32_t limit = q->limit == 0 ? LIST_DEFAULT : q->limit > LIST_MAX ? LIST_MAX : q->limit;
        struct buf sql, out;
        sqlite3_stmt *s = NULL;
        int rc = q->cursor ? read_cursor(q->cursor, cursor_text, part, err) : 0;
        if (rc)
                return rc;
        buf_init(&sql, 64 * KIB);
        buf_init(&out, 64 * MIB);
        if (q->words) {
                words = strdup(q->words);
                char *save = NULL;
                for (char *w = words ? strtok_r(words, " \t\n", &save) : NULL; w && word_count < 16;
                     w = strtok_r(NULL, " \t\n", &save))
                        word[word_count++] = w;
        }
        query_sql(q, word, word_count, &sql);
        pthread_mutex_lock(&x->mutex);
        const char *text = buf_cstr(&sql);
        if ((q->words && !words) || !text) {
                rc = error_nomem(err);
                goto out;
        }
        rc = index_prepare(x, text, &s, err);
        if (rc)
                goto out;
        if (q->project)
                index_bind(s, 1, q->project);
        for (int i = 0; q->cursor && i < 3; i++)
                index_bind(s, 2 + i, part[i]);
        sqlite3_bind_int64(s, 5, (sqlite3_int64)limit + 1);
        for (size_t i = 0; i < word_count; i++)
                index_bind(s, 10 + (int)i, word[i]);
        struct jsonw w = jsonw_to(&out);
        char *last[3] = {0};
        uint32_t count = 0;
        int step_rc;
        jsonw_object(&w);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        while ((step_rc = sqlite3_step(s)) == SQLITE_ROW && count < limit) {
                put_item(&w, s);
                if (++count == limit) {
                        last[0] = strdup((const char *)sqlite3_column_text(s, 4));
                        last[1] = strdup((const char *)sqlite3_column_text(s, 1));
                        last[2] = strdup((const char *)sqlite3_column_text(s, 0));
                }
        }
        jsonw_array_end(&w);
        if (step_rc == SQLITE_ROW && last[0] && last[1] && last[2])
                put_cursor(&w, last[0], last[1], last[2]);
        jsonw_object_end(&w);
        for (int i = 0; i < 3; i++)
                free(last[i]);
        if (step_rc != SQLITE_ROW && step_rc != SQLITE_DONE)
                rc = index_error(x, err);
        else
                rc = buf_check(&out, err);
        if (rc == 0) {
                *json = buf_take(&out, NULL);
                rc = *json ? 0 : error_nomem(err);
        }
out:
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        free(words);
        buf_release(&sql);
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
