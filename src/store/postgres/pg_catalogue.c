/*
 * pg_catalogue.c - lists of a store in PostgreSQL. They are asked of the tables themselves, so that
 * nothing has to catch up.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define LIST_DEFAULT 20
#define LIST_MAX 1000
#define WORDS_MAX 8

static struct pg_store *of(const struct backend_store *store)
{
        return (struct pg_store *)store;
}

int pg_catch_up(struct backend_store *store, bool at_once, steno_progress progress,
    void *progress_ctx, struct backend_caught_up *out, struct steno_error *err)
{
        (void)store, (void)at_once, (void)progress, (void)progress_ctx, (void)err;
        *out = (struct backend_caught_up){0};
        return 0;
}

/* ---- the list ---- */

/* What is shown of a conversation: amendments show nothing, and a deleted message neither. */
#define ROWS                                                                                       \
        "SELECT c.id, c.project, c.title, c.created, coalesce(nullif(t.updated, ''), c.created)"   \
        " AS changed, t.last_seq, t.bytes FROM conv c JOIN tail t USING (project, uid) WHERE"      \
        " c.trash IS NULL"

struct shown {
        uint64_t amendments;
        uint64_t deleted;
};

static int count_hidden(void *ctx, const struct backend_record *r)
{
        struct shown *s = ctx;
        s->amendments++;
        s->deleted += !r->damaged && str_starts(r->rec.x, "{\"kind\":\"delete\"");
        return 0;
}

static int put_item(
    struct pg_store *s, const PGresult *r, int row, struct jsonw *w, struct steno_error *err)
{
        struct backend_conv *conv;
        struct shown hidden = {0};
        uint64_t last = pg_get_u64(r, row, 5);
        static const char *const TEXTS[] = {"id", "project", "title", "createdAt", "updatedAt"};
        int rc = pg_conv_open(&s->base, pg_get(r, row, 1), pg_get(r, row, 0), &conv, err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        rc = pg_read_amendments(conv, count_hidden, &hidden, err);
        uint64_t outputs = pg_quota_count(s, (struct pg_conv *)conv);
        pg_conv_release(conv);
        if (rc)
                return rc;
        uint64_t gone = hidden.amendments + hidden.deleted;
        jsonw_object(w);
        for (int i = 0; i < 5; i++)
                jsonw_field_str(w, TEXTS[i], pg_get(r, row, i));
        jsonw_field_u64(w, "messages", last > gone ? last - gone : 0);
        jsonw_field_u64(w, "lastSeq", last);
        jsonw_field_u64(w, "bytes", pg_get_u64(r, row, 6) + outputs);
        jsonw_object_end(w);
        return 0;
}

/* A cursor is the last row's place, as hex so that it is opaque. */
static void put_cursor(struct jsonw *w, const PGresult *r, int row)
{
        static const int PARTS[] = {4, 1, 0};
        struct buf b;
        char hex[3];
        buf_init(&b, 0);
        for (int i = 0; i < 3; i++) {
                struct str part = pg_get(r, row, PARTS[i]);
                if (i)
                        buf_puts(&b, "1f");
                for (size_t k = 0; k < part.n; k++) {
                        snprintf(hex, sizeof hex, "%02x", (unsigned char)part.p[k]);
                        buf_puts(&b, hex);
                }
        }
        jsonw_field_str(w, "next_cursor", buf_str(&b));
        buf_release(&b);
}

static int read_cursor(
    const char *cursor, char out[2048], const char *part[3], struct steno_error *err)
{
        size_t n = strlen(cursor), k = 0, o = 0;
        bool bad = n % 2 || n / 2 >= 2047;
        part[0] = out;
        for (size_t i = 0; !bad && i < n; i += 2) {
                char digits[3] = {cursor[i], cursor[i + 1], '\0'}, *end;
                char c = (char)strtoul(digits, &end, 16);
                bad = *end || !c || (c == '\x1f' && k == 2);
                out[o++] = c == '\x1f' ? '\0' : c;
                if (c == '\x1f' && !bad)
                        part[++k] = out + o;
        }
        out[o] = '\0';
        return !bad && k == 2 ? 0 : error_set(err, STENO_EINVAL, "not a cursor of this list");
}

/* Adds the conditions and their values. */
static void put_conditions(struct pg_query *q, struct buf *sql, const struct backend_query *ask,
    const char *const part[3], char *words)
{
        char *save = NULL;
        int n = 1;
        buf_puts(sql, "SELECT * FROM (" ROWS ") list WHERE true");
        if (ask->project) {
                buf_printf(sql, " AND project = $%d", n++);
                pg_cstr(q, ask->project);
        }
        if (part[0]) {
                buf_printf(sql,
                    " AND (changed COLLATE \"C\" < $%d OR (changed = $%d AND (project, id) > ($%d,"
                    " $%d)))",
                    n, n, n + 1, n + 2);
                n += 3;
                for (int i = 0; i < 3; i++)
                        pg_cstr(q, part[i]);
        }
        char *w = words ? strtok_r(words, " \t\n", &save) : NULL;
        for (int i = 0; w && i < WORDS_MAX; i++, w = strtok_r(NULL, " \t\n", &save)) {
                buf_printf(sql,
                    " AND (strpos(lower(title), lower($%d)) > 0 OR strpos(lower(id),"
                    " lower($%d)) > 0)",
                    n, n);
                n++;
                pg_cstr(q, w);
        }
        buf_printf(sql, " ORDER BY changed COLLATE \"C\" DESC, project, id LIMIT $%d", n);
}

int pg_list(struct backend_store *store, const struct backend_query *ask, char **json,
    struct steno_error *err)
{
        char text[2048];
        const char *part[3] = {0};
        uint32_t limit = ask->limit == 0         ? LIST_DEFAULT
                         : ask->limit > LIST_MAX ? LIST_MAX
                                                 : ask->limit;
        char *words = ask->words ? strdup(ask->words) : NULL;
        struct buf sql, out;
        struct pg_query q;
        PGresult *r = NULL;
        int rc = ask->words && !words ? error_nomem(err) : 0;
        if (rc == 0 && ask->cursor)
                rc = read_cursor(ask->cursor, text, part, err);
        buf_init(&sql, 0);
        buf_init(&out, 64 * MIB);
        pg_query_init(&q, NULL);
        if (rc == 0) {
                put_conditions(&q, &sql, ask, part, words);
                pg_u64(&q, (uint64_t)limit + 1);
                q.sql = buf_cstr(&sql);
                rc = q.sql ? pg_run(of(store), &q, &r, err) : error_nomem(err);
        }
        if (rc == 0) {
                int n = libpq.ntuples(r), shown = n > (int)limit ? (int)limit : n;
                struct jsonw w = jsonw_to(&out);
                jsonw_object(&w);
                jsonw_key(&w, "items");
                jsonw_array(&w);
                for (int i = 0; rc == 0 && i < shown; i++)
                        rc = put_item(of(store), r, i, &w, err);
                jsonw_array_end(&w);
                if (n > shown)
                        put_cursor(&w, r, shown - 1);
                jsonw_object_end(&w);
                libpq.clear(r);
        }
        if (rc == 0)
                rc = buf_check(&out, err);
        if (rc == 0 && !(*json = buf_take(&out, NULL)))
                rc = error_nomem(err);
        buf_release(&sql);
        buf_release(&out);
        free(words);
        return rc;
}

int pg_list_each(struct backend_store *store,
    int (*each)(void *ctx, const struct backend_listed *row), void *ctx, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT * FROM (" ROWS ") list ORDER BY changed COLLATE \"C\", project,"
                          " id");
        int rc = pg_run(of(store), &q, &r, err);
        if (rc)
                return rc;
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                char *project = pg_get_dup(r, i, 1), *id = pg_get_dup(r, i, 0);
                struct backend_listed row = {project, id, pg_get_u64(r, i, 5)};
                rc = project && id ? each(ctx, &row) : error_nomem(err);
                free(project);
                free(id);
        }
        libpq.clear(r);
        return rc;
}

/* ---- figures ---- */

int pg_totals(struct backend_store *store, struct backend_totals *out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "SELECT count(*), coalesce(sum(t.last_seq), 0)::bigint - coalesce(sum((SELECT count(*)"
            " FROM record x WHERE x.project = t.project AND x.uid = t.uid AND x.amends)),"
            " 0)::bigint, coalesce(sum(t.bytes), 0)::bigint FROM conv c JOIN tail t USING (project,"
            " uid) WHERE c.trash IS NULL");
        int rc = pg_run(of(store), &q, &r, err);
        if (rc)
                return rc;
        *out = (struct backend_totals){pg_get_u64(r, 0, 0), pg_get_u64(r, 0, 1),
            pg_get_u64(r, 0, 2) + pg_quota_count(of(store), NULL)};
        libpq.clear(r);
        return 0;
}

int pg_tally(struct backend_store *store, struct backend_tally *out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "SELECT (SELECT count(*) FROM artifact WHERE state < 2) + (SELECT count(*) FROM part),"
            " ((SELECT coalesce(sum(size), 0) FROM artifact WHERE state < 2) + (SELECT"
            " coalesce(sum(octet_length(bytes)), 0) FROM part))::bigint");
        int rc = pg_run(of(store), &q, &r, err);
        if (rc)
                return rc;
        *out = (struct backend_tally){pg_get_u64(r, 0, 0), pg_get_u64(r, 0, 1), 0};
        libpq.clear(r);
        return 0;
}

int pg_unfinished(struct backend_store *store, const char *project, uint32_t max, char **json,
    struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        struct buf out;
        pg_query_init(&q, "SELECT c.project, c.id FROM claim k JOIN conv c USING (project, uid)"
                          " WHERE k.open AND c.trash IS NULL AND ($1 = '' OR c.project = $1) LIMIT"
                          " $2");
        pg_cstr(&q, project ? project : "");
        pg_u64(&q, max);
        int rc = pg_run(of(store), &q, &r, err);
        if (rc)
                return rc;
        buf_init(&out, 64 * MIB);
        struct jsonw w = jsonw_to(&out);
        jsonw_array(&w);
        for (int i = 0; i < libpq.ntuples(r); i++) {
                jsonw_array(&w);
                jsonw_str(&w, pg_get(r, i, 0));
                jsonw_str(&w, pg_get(r, i, 1));
                jsonw_array_end(&w);
        }
        jsonw_array_end(&w);
        libpq.clear(r);
        rc = buf_check(&out, err);
        if (rc == 0 && !(*json = buf_take(&out, NULL)))
                rc = error_nomem(err);
        buf_release(&out);
        return rc;
}
