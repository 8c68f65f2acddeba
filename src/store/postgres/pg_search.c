/*
 * pg_search.c - which blocks of text may hold a word, in PostgreSQL: rows with a tsvector, made of
 * the same folded words as in an embedded store, so that the same places are found.
 *
 * Several servers may index. A process that indexes a conversation holds its row of `indexed` until
 * the new rows are stored. Another process finds this row locked, or further than it expected, and
 * skips the conversation.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

#define ROWS_MAX 300
#define PAGE 200
/* Added to the generation of a conversation in `indexed`, so that an index that was made by other
 * rules of what a word is counts as one of another generation, and is made anew. */
#define WORDS (UINT64_C(2) << 48)

static struct pg_store *of(const struct backend_store *store)
{
        return (struct pg_store *)store;
}

/* What is being added, under the store's `search` mutex. */
struct pg_indexing {
        uint64_t seen; /* what backend_search_progress has answered */
        bool begun;
        struct pg_tx tx;
        char *project;
        char uid[PG_UID];
        uint64_t generation;
        struct buf bytes; /* ref, tool, model and words of the rows that wait */
        size_t count;
        struct {
                struct search_block block; /* without its texts, */
                size_t at[4];              /* which end here in `bytes` */
        } rows[ROWS_MAX];
};

/* ---- the lock ---- */

int pg_search_lock(struct backend_store *store, bool wait, struct steno_error *err)
{
        struct pg_store *s = of(store);
        if (!wait && pthread_mutex_trylock(&s->search))
                return error_set(
                    err, STENO_ETIMEOUT, "another thread is building the index of words");
        if (wait)
                pthread_mutex_lock(&s->search);
        s->indexing = calloc(1, sizeof *s->indexing);
        if (s->indexing) {
                buf_init(&s->indexing->bytes, 0);
                return 0;
        }
        pthread_mutex_unlock(&s->search);
        return error_nomem(err);
}

/* Takes back what was not committed. */
static void forget_rows(struct pg_indexing *x)
{
        if (x->begun)
                pg_tx_end(&x->tx, STENO_EINTERRUPTED, NULL);
        x->begun = false;
        x->count = 0;
        buf_clear(&x->bytes);
        free(x->project);
        x->project = NULL;
}

void pg_search_unlock(struct backend_store *store)
{
        struct pg_store *s = of(store);
        forget_rows(s->indexing);
        buf_release(&s->indexing->bytes);
        free(s->indexing);
        s->indexing = NULL;
        pthread_mutex_unlock(&s->search);
}

/* ---- how far it is ---- */

int pg_search_progress(
    struct backend_conv *conv, uint64_t generation, uint64_t *seq, struct steno_error *err)
{
        struct pg_conv *c = (struct pg_conv *)conv;
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT last FROM indexed WHERE project = $1 AND uid = $2 AND generation"
                          " = $3");
        pg_key(&q, c);
        pg_u64(&q, generation + WORDS);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        *seq = libpq.ntuples(r) ? pg_get_u64(r, 0, 0) : 0;
        c->store->indexing->seen = *seq;
        libpq.clear(r);
        return 0;
}

int pg_search_each_conv(
    struct backend_store *store, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT c.project, c.id, t.generation, i.last FROM indexed i JOIN conv c"
                          " USING (project, uid) JOIN tail t USING (project, uid) WHERE c.trash IS"
                          " NULL AND t.generation + $1 = i.generation");
        pg_u64(&q, WORDS);
        int rc = pg_run(of(store), &q, &r, err);
        if (rc)
                return rc;
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                char *project = pg_get_dup(r, i, 0), *id = pg_get_dup(r, i, 1);
                rc = project && id
                         ? each(ctx, project, id, pg_get_u64(r, i, 2), pg_get_u64(r, i, 3))
                         : error_nomem(err);
                free(project);
                free(id);
        }
        libpq.clear(r);
        return rc;
}

/* ---- adding ---- */

static void key(struct pg_query *q, const struct pg_indexing *x)
{
        pg_cstr(q, x->project);
        pg_cstr(q, x->uid);
}

static int run(struct pg_indexing *x, struct pg_query *q, struct steno_error *err)
{
        long n = pg_tx_change(&x->tx, q, err);
        return n < 0 ? (int)n : 0;
}

/* Holds the conversation's row. STENO_ETIMEOUT: somebody else adds to it, or has. */
static int hold_row(struct pg_indexing *x, const struct pg_conv *c, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "INSERT INTO indexed VALUES ($1, $2, $3, $4, 0) ON CONFLICT DO NOTHING");
        key(&q, x);
        pg_cstr(&q, c->id);
        pg_u64(&q, x->generation + WORDS);
        int rc = run(x, &q, err);
        if (rc)
                return rc;
        pg_query_init(&q, "SELECT last, generation FROM indexed WHERE project = $1 AND uid = $2 FOR"
                          " UPDATE SKIP LOCKED");
        key(&q, x);
        rc = pg_tx_run(&x->tx, &q, &r, err);
        if (rc)
                return rc;
        bool there = libpq.ntuples(r) == 1;
        bool older = there && pg_get_u64(r, 0, 1) != x->generation + WORDS;
        bool ours = there && (older || pg_get_u64(r, 0, 0) == x->seen);
        libpq.clear(r);
        if (!ours)
                return error_set(
                    err, STENO_ETIMEOUT, "another process is building the index of words");
        pg_query_init(&q, "DELETE FROM block WHERE project = $1 AND uid = $2");
        key(&q, x);
        return older ? run(x, &q, err) : 0;
}

int pg_search_begin(struct backend_conv *conv, uint64_t generation, struct steno_error *err)
{
        struct pg_conv *c = (struct pg_conv *)conv;
        struct pg_indexing *x = c->store->indexing;
        forget_rows(x);
        x->generation = generation;
        x->project = strdup(c->project);
        memcpy(x->uid, c->uid, sizeof x->uid);
        int rc = x->project ? pg_tx_begin(c->store, &x->tx, err) : error_nomem(err);
        if (rc)
                return rc;
        x->begun = true;
        rc = hold_row(x, c, err);
        if (rc)
                forget_rows(x);
        return rc;
}

static struct str text_of(const struct pg_indexing *x, size_t row, int part)
{
        size_t from = part ? x->rows[row].at[part - 1] : row ? x->rows[row - 1].at[3] : 0;
        return str_span(x->bytes.p + from, x->rows[row].at[part] - from);
}

static void put_row(struct pg_query *q, const struct pg_indexing *x, size_t i)
{
        const struct search_block *b = &x->rows[i].block;
        pg_u64(q, b->seq);
        pg_text(q, text_of(x, i, 0));
        pg_u64(q, b->at);
        pg_u64(q, b->len);
        pg_u64(q, (uint64_t)b->role);
        pg_u64(q, b->error);
        pg_text(q, text_of(x, i, 1));
        pg_text(q, text_of(x, i, 2));
        pg_u64(q, (uint64_t)b->time);
        pg_text(q, text_of(x, i, 3));
}

static int flush(struct pg_indexing *x, struct steno_error *err)
{
        struct buf sql;
        struct pg_query q;
        if (!x->count)
                return 0;
        buf_init(&sql, 0);
        buf_puts(&sql, "INSERT INTO block (project, uid, seq, ref, at, len, role, error, tool,"
                       " model, time, words) VALUES ");
        for (size_t i = 0; i < x->count; i++) {
                buf_printf(&sql, "%s($1, $2", i ? ", " : "");
                for (int k = 0; k < 10; k++)
                        buf_printf(&sql,
                            k == 5   ? ", $%zu::bigint <> 0"
                            : k == 9 ? ", array_to_tsvector(array_remove(string_to_array($%zu,"
                                       " ' '), ''))"
                                     : ", $%zu",
                            3 + 10 * i + (size_t)k);
                buf_puts(&sql, ")");
        }
        const char *text = buf_cstr(&sql);
        pg_query_init(&q, text);
        int rc = text && !x->bytes.failed && pg_query_room(&q, (int)(2 + 10 * x->count))
                     ? 0
                     : error_nomem(err);
        if (rc == 0) {
                key(&q, x);
                for (size_t i = 0; i < x->count; i++)
                        put_row(&q, x, i);
                rc = run(x, &q, err);
        }
        pg_query_release(&q);
        buf_release(&sql);
        x->count = 0;
        buf_clear(&x->bytes);
        return rc;
}

int pg_search_add(
    struct backend_store *store, const struct search_block *b, struct steno_error *err)
{
        struct pg_indexing *x = of(store)->indexing;
        const struct str texts[] = {b->ref, b->tools, b->model, b->words};
        x->rows[x->count].block = *b;
        for (int i = 0; i < 4; i++) {
                buf_put_str(&x->bytes, texts[i]);
                x->rows[x->count].at[i] = x->bytes.n;
        }
        x->count++;
        return x->count == ROWS_MAX ? flush(x, err) : 0;
}

int pg_search_commit(struct backend_store *store, uint64_t seq, struct steno_error *err)
{
        struct pg_indexing *x = of(store)->indexing;
        struct pg_query q;
        int rc = flush(x, err);
        pg_query_init(&q, "UPDATE indexed SET generation = $3, last = $4 WHERE project = $1 AND uid"
                          " = $2");
        key(&q, x);
        pg_u64(&q, x->generation + WORDS);
        pg_u64(&q, seq);
        if (rc == 0)
                rc = run(x, &q, err);
        rc = pg_tx_end(&x->tx, rc, err);
        x->begun = false;
        forget_rows(x);
        return rc;
}

/* ---- forgetting ---- */

int pg_search_forget(
    struct backend_store *store, const char *project, const char *id, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q,
            "WITH gone AS (DELETE FROM indexed WHERE project = $1 AND (id = $2 OR uid IN (SELECT"
            " uid FROM conv WHERE project = $1 AND id = $2)) RETURNING uid) DELETE FROM block b"
            " USING gone WHERE b.project = $1 AND b.uid = gone.uid");
        q.patience_ms = PG_LONG_MS;
        pg_cstr(&q, project);
        pg_cstr(&q, id);
        long n = pg_change(of(store), &q, err);
        return n < 0 ? (int)n : 0;
}

int pg_search_discard(struct backend_store *store, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q, "WITH gone AS (DELETE FROM indexed) DELETE FROM block");
        q.patience_ms = PG_LONG_MS;
        long n = pg_change(of(store), &q, err);
        return n < 0 ? (int)n : 0;
}

/* ---- asking ---- */

/* "a" AND "b"* becomes 'a' & 'b':*. */
static void put_words(struct buf *out, const char *match)
{
        for (const char *p = match; *p;) {
                if (*p != '"') {
                        p++;
                        continue;
                }
                buf_puts(out, out->n ? " & '" : "'");
                for (p++; *p && *p != '"'; p++) {
                        if (*p == '\'' || *p == '\\')
                                buf_putc(out, *p);
                        buf_putc(out, *p);
                }
                buf_puts(out, "'");
                p += *p == '"';
                if (*p == '*')
                        buf_puts(out, ":*");
        }
}

struct asking {
        struct buf sql;
        struct pg_query q;
        int n; /* values so far */
};

static void where_text(struct asking *a, const char *condition, const char *value)
{
        if (!value)
                return;
        buf_printf(&a->sql, " AND %s $%d", condition, ++a->n);
        pg_cstr(&a->q, value);
}

static void where_number(struct asking *a, const char *condition, bool on, uint64_t value)
{
        if (!on)
                return;
        buf_printf(&a->sql, " AND %s $%d", condition, ++a->n);
        pg_u64(&a->q, value);
}

static int ask_page(struct pg_store *s, const struct search_ask *ask, const char *words,
    uint64_t below, PGresult **out, struct steno_error *err)
{
        struct asking a = {.n = 0};
        buf_init(&a.sql, 0);
        pg_query_init(&a.q, NULL);
        buf_puts(&a.sql,
            "SELECT b.place, c.project, c.id, b.seq, b.ref, b.at, b.len, b.role, b.error, b.tool,"
            " b.time FROM block b JOIN conv c USING (project, uid) WHERE c.trash IS NULL");
        if (words) {
                buf_printf(&a.sql, " AND b.words @@ $%d::tsquery", ++a.n);
                pg_cstr(&a.q, words);
        }
        buf_puts(&a.sql, ask->outputs ? " AND b.ref <> ''" : " AND b.ref = ''");
        buf_puts(&a.sql, ask->error ? " AND b.error" : "");
        where_text(&a, "b.project =", ask->project);
        where_text(&a, "c.id =", ask->conversation);
        if (ask->tool) { /* one of several, with line ends between them */
                buf_printf(&a.sql,
                    " AND strpos(chr(10)||b.tool||chr(10),chr(10)||$%d::text||chr(10))>0", ++a.n);
                pg_cstr(&a.q, ask->tool);
        }
        where_text(&a, "b.model =", ask->model);
        where_number(&a, "b.role =", ask->role, (uint64_t)ask->role);
        where_number(&a, "b.time >=", ask->after != INT64_MIN, (uint64_t)ask->after);
        where_number(&a, "b.time <", ask->before != INT64_MIN, (uint64_t)ask->before);
        where_number(&a, "b.place <", below <= INT64_MAX, below);
        buf_printf(&a.sql, " ORDER BY b.place DESC LIMIT %d", PAGE);
        a.q.sql = buf_cstr(&a.sql);
        int rc = a.q.sql ? pg_run(s, &a.q, out, err) : error_nomem(err);
        buf_release(&a.sql);
        return rc;
}

static int hand_hit(const PGresult *r, int row, search_hit_fn each, void *ctx)
{
        char *project = pg_get_dup(r, row, 1), *id = pg_get_dup(r, row, 2);
        char *ref = pg_get_dup(r, row, 4), *tool = pg_get_dup(r, row, 9);
        struct search_hit hit = {.place = pg_get_u64(r, row, 0),
            .project = project,
            .id = id,
            .seq = pg_get_u64(r, row, 3),
            .ref = ref,
            .at = pg_get_u64(r, row, 5),
            .len = pg_get_u64(r, row, 6),
            .role = (int)pg_get_u64(r, row, 7),
            .error = pg_get_bool(r, row, 8),
            .tools = tool,
            .time = (int64_t)pg_get_u64(r, row, 10)};
        int rc = project && id && ref && tool ? each(ctx, &hit) : STENO_ENOMEM;
        free(project);
        free(id);
        free(ref);
        free(tool);
        return rc;
}

int pg_search_each(struct backend_store *store, const struct search_ask *ask, search_hit_fn each,
    void *ctx, struct steno_error *err)
{
        struct buf words;
        uint64_t below = ask->below;
        int rc = 0;
        buf_init(&words, 0);
        if (ask->match)
                put_words(&words, ask->match);
        const char *query = ask->match ? buf_cstr(&words) : NULL;
        if (ask->match && !query)
                rc = error_nomem(err);
        for (bool more = true; rc == 0 && more;) {
                PGresult *r;
                rc = ask_page(of(store), ask, query, below, &r, err);
                if (rc)
                        break;
                more = libpq.ntuples(r) == PAGE;
                for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                        below = pg_get_u64(r, i, 0);
                        rc = hand_hit(r, i, each, ctx);
                }
                libpq.clear(r);
        }
        buf_release(&words);
        return rc == STENO_ENOMEM ? error_nomem(err) : rc;
}
