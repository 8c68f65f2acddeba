/*
 * search_ask.c - asking the shards of search.h: the statement for a question, and its rows.
 */
#include "store/search/search_shard.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PLACE_BITS 44 /* of a row; the rest is the shard */

static void put_condition(struct buf *sql, bool on, const char *text)
{
        if (on)
                buf_puts(sql, text);
}

/* Rows of a shard that are asked for: from `from` on, and below `to`. */
struct rows {
        int64_t from, to;
};

/* False: none, since all of the shard lies behind ask->below. */
static bool find_rows(const struct search_shard *x, const struct search_ask *ask, struct rows *out)
{
        const uint64_t last = (UINT64_C(1) << PLACE_BITS) - 1;
        uint64_t number = ask->below >> PLACE_BITS;
        bool all = ask->below == UINT64_MAX || number > x->number;
        int64_t below = (int64_t)(all ? last : ask->below & last);
        *out = (struct rows){0, SEARCH_OUTPUTS};
        if (ask->outputs)
                *out = (struct rows){SEARCH_OUTPUTS, INT64_MAX};
        if (below < out->to)
                out->to = below;
        return all || number == x->number;
}

static void put_sql(const struct search_ask *ask, struct buf *sql)
{
        buf_puts(sql,
            "SELECT b.id,c.project,c.id,b.seq,b.ref,b.at,b.len,b.role,b.error,t.text,b.time FROM ");
        buf_puts(sql, ask->match ? "ft CROSS JOIN block b ON b.id=ft.rowid" : "block b");
        buf_puts(sql, " CROSS JOIN conv c ON c.key=b.conv LEFT JOIN name t ON t.id=b.tool WHERE ");
        put_condition(sql, ask->match, "ft MATCH ?1 AND ft.rowid>=?2 AND ft.rowid<?3");
        put_condition(sql, !ask->match, "b.id>=?2 AND b.id<?3");
        buf_puts(sql, " AND c.live");
        put_condition(sql, ask->project, " AND c.project=?4");
        put_condition(sql, ask->conversation, " AND c.id=?5");
        put_condition(sql, ask->role, " AND b.role=?6");
        put_condition(sql, ask->error, " AND b.error");
        put_condition(sql, ask->tool, /* one of several, with line ends between them */
            " AND instr(char(10)||t.text||char(10),char(10)||?7||char(10))");
        put_condition(sql, ask->after != INT64_MIN, " AND b.time>=?8");
        put_condition(sql, ask->before != INT64_MIN, " AND b.time<?9");
        put_condition(sql, ask->model, " AND b.model IN (SELECT id FROM name WHERE text=?10)");
        buf_puts(sql, ask->match ? " ORDER BY ft.rowid DESC" : " ORDER BY b.id DESC");
}

static void bind_ask(sqlite3_stmt *q, const struct search_ask *ask, const struct rows *rows)
{
        sqlite3_bind_text(q, 1, ask->match, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 2, rows->from);
        sqlite3_bind_int64(q, 3, rows->to);
        sqlite3_bind_text(q, 4, ask->project, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 5, ask->conversation, -1, SQLITE_STATIC);
        sqlite3_bind_int(q, 6, ask->role);
        sqlite3_bind_text(q, 7, ask->tool, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 8, ask->after);
        sqlite3_bind_int64(q, 9, ask->before);
        sqlite3_bind_text(q, 10, ask->model, -1, SQLITE_STATIC);
}

static struct search_hit hit_of(const struct search_shard *x, sqlite3_stmt *q)
{
        const char *ref = (const char *)sqlite3_column_text(q, 4);
        const char *tool = (const char *)sqlite3_column_text(q, 9);
        return (struct search_hit){
            .place = (uint64_t)x->number << PLACE_BITS | (uint64_t)sqlite3_column_int64(q, 0),
            .project = (const char *)sqlite3_column_text(q, 1),
            .id = (const char *)sqlite3_column_text(q, 2),
            .seq = (uint64_t)sqlite3_column_int64(q, 3),
            .ref = ref ? ref : "",
            .at = (uint64_t)sqlite3_column_int64(q, 5),
            .len = (uint64_t)sqlite3_column_int64(q, 6),
            .role = sqlite3_column_int(q, 7),
            .error = sqlite3_column_int(q, 8),
            .tools = tool ? tool : "",
            .time = sqlite3_column_int64(q, 10)};
}

/* The statement for what is asked, which stays the shard's. */
static int question(struct search_shard *x, const struct search_ask *ask, sqlite3_stmt **out,
    struct steno_error *err)
{
        struct buf sql;
        buf_init(&sql, 0);
        put_sql(ask, &sql);
        const char *text = buf_cstr(&sql);
        int rc = text ? 0 : error_nomem(err);
        if (rc == 0 && !(x->asked && strcmp(x->asked_sql, text) == 0)) {
                sqlite3_finalize(x->asked);
                free(x->asked_sql);
                x->asked = NULL;
                x->asked_sql = strdup(text);
                rc = x->asked_sql ? search_prepare(x->db, text, &x->asked, err) : error_nomem(err);
        }
        buf_release(&sql);
        if (rc == 0)
                *out = x->asked;
        return rc;
}

static int ask_shard(struct search_shard *x, const struct search_ask *ask, search_hit_fn each,
    void *ctx, struct steno_error *err)
{
        struct rows rows;
        sqlite3_stmt *q;
        int step = SQLITE_DONE;
        if (!find_rows(x, ask, &rows))
                return 0;
        int rc = question(x, ask, &q, err);
        if (rc)
                return rc;
        bind_ask(q, ask, &rows);
        while (rc == 0 && (step = sqlite3_step(q)) == SQLITE_ROW) {
                struct search_hit hit = hit_of(x, q);
                rc = each(ctx, &hit);
        }
        if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
                rc = search_failed(x->db, err);
        sqlite3_reset(q); /* what it reads may be changed and removed again */
        sqlite3_clear_bindings(q);
        return rc;
}

int search_each(struct search *s, const struct search_ask *ask, search_hit_fn each, void *ctx,
    struct steno_error *err)
{
        int rc;
        pthread_mutex_lock(&s->mutex);
        rc = search_shards_refresh(s, err);
        for (size_t i = s->count; rc == 0 && i-- > 0;)
                rc = ask_shard(&s->shards[i], ask, each, ctx, err);
        pthread_mutex_unlock(&s->mutex);
        return rc;
}
