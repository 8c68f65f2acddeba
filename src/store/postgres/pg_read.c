/*
 * pg_read.c - reading a conversation of PostgreSQL: pages of records, in bounded memory.
 */
#include "store/postgres/pg.h"

#include <stdlib.h>

#include "base/error.h"

#define PAGE_ROWS 500
#define PAGE_BYTES (4 * 1024 * 1024)

static struct pg_conv *of(const struct backend_conv *conv)
{
        return (struct pg_conv *)conv;
}

/* One row; who has a removed conversation open can still read it, but not write. */
static int tail_of(struct pg_conv *c, bool write, PGresult **out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT last_seq, bytes, last_amend, updated, removed FROM tail WHERE"
                          " project = $1 AND uid = $2");
        pg_key(&q, c);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r) == 0 || (write && pg_get_bool(r, 0, 4))) {
                libpq.clear(r);
                return error_set(
                    err, STENO_ENOTFOUND, "conversation \"%.100s\" was removed", c->id);
        }
        *out = r;
        return 0;
}

int pg_look(struct pg_conv *c, uint64_t *seq, uint64_t *bytes, struct steno_error *err)
{
        PGresult *r;
        int rc = tail_of(c, false, &r, err);
        if (rc)
                return rc;
        if (seq)
                *seq = pg_get_u64(r, 0, 0);
        if (bytes)
                *bytes = pg_get_u64(r, 0, 1);
        libpq.clear(r);
        return 0;
}

int pg_learn(struct pg_conv *c, struct steno_error *err)
{
        PGresult *r;
        int rc = tail_of(c, true, &r, err);
        if (rc)
                return rc;
        struct str at = pg_get(r, 0, 3);
        c->last_seq = pg_get_u64(r, 0, 0);
        c->last_amend = pg_get_u64(r, 0, 2);
        snprintf(c->last_at, sizeof c->last_at, "%.*s", (int)at.n, at.p);
        libpq.clear(r);
        return 0;
}

int pg_last(struct backend_conv *conv, uint64_t *seq, uint64_t *bytes, struct steno_error *err)
{
        int rc = pg_look(of(conv), seq, bytes, err);
        if (rc == 0 && bytes)
                *bytes += pg_quota_count(of(conv)->store, of(conv));
        return rc;
}

uint64_t pg_generation(struct backend_conv *conv)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT generation FROM tail WHERE project = $1 AND uid = $2");
        pg_key(&q, c);
        if (pg_run(c->store, &q, &r, NULL))
                return 0;
        uint64_t n = libpq.ntuples(r) ? pg_get_u64(r, 0, 0) : 0;
        libpq.clear(r);
        return n;
}

/* A line that is not what was written is damage, and named. */
static int hand_out(const PGresult *r, int row, backend_record_fn each, void *ctx)
{
        struct str line = pg_get(r, row, 1);
        uint64_t seq = pg_get_u64(r, row, 0);
        struct backend_record rec = {0};
        if (line.n && line.p[line.n - 1] == '\n')
                line.n--;
        if (!record_read(line, &rec.rec) || rec.rec.seq != seq)
                rec = (struct backend_record){.damaged = true, .first_seq = seq, .last_seq = seq};
        else
                rec.damaged = about_is_lost(rec.rec.x);
        return each(ctx, &rec);
}

/* Pages of (after, upto]. The sum is over lengths, which are known without the bytes. */
static int read_pages(struct pg_conv *c, uint64_t after, uint64_t upto,
    int (*hand)(const PGresult *r, int row, void *ctx), void *ctx, struct steno_error *err)
{
        int rc = 0;
        while (rc == 0 && after < upto) {
                struct pg_query q;
                PGresult *r;
                pg_query_init(&q,
                    "SELECT seq, line FROM (SELECT seq, line, sum(octet_length(line)) OVER (ORDER"
                    " BY seq) - octet_length(line) AS before FROM (SELECT seq, line FROM record"
                    " WHERE project = $1 AND uid = $2 AND seq > $3 AND seq <= $4 ORDER BY seq"
                    " LIMIT $5) page) sized WHERE before < $6 ORDER BY seq");
                pg_key(&q, c);
                pg_u64(&q, after);
                pg_u64(&q, upto);
                pg_u64(&q, PAGE_ROWS);
                pg_u64(&q, PAGE_BYTES);
                rc = pg_run(c->store, &q, &r, err);
                if (rc)
                        return rc;
                int n = libpq.ntuples(r);
                for (int i = 0; rc == 0 && i < n; i++) {
                        after = pg_get_u64(r, i, 0);
                        rc = hand(r, i, ctx);
                }
                libpq.clear(r);
                if (n == 0)
                        break;
        }
        return rc;
}

struct reading {
        backend_record_fn each;
        void *ctx;
};

static int hand_record(const PGresult *r, int row, void *ctx)
{
        struct reading *reading = ctx;
        return hand_out(r, row, reading->each, reading->ctx);
}

struct copying {
        pg_line_fn each;
        void *ctx;
};

static int hand_line(const PGresult *r, int row, void *ctx)
{
        struct copying *copying = ctx;
        return copying->each(copying->ctx, pg_get_u64(r, row, 0), pg_get(r, row, 1));
}

int pg_each_line(struct pg_conv *c, uint64_t after, uint64_t upto, pg_line_fn each, void *ctx,
    struct steno_error *err)
{
        struct copying copying = {each, ctx};
        return read_pages(c, after, upto, hand_line, &copying, err);
}

int pg_read(struct backend_conv *conv, uint64_t after, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        uint64_t last = 0;
        int rc = pg_look(of(conv), &last, NULL, err);
        struct reading reading = {each, ctx};
        return rc ? rc : read_pages(of(conv), after, last, hand_record, &reading, err);
}

int pg_read_last(struct backend_conv *conv, uint64_t count, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        uint64_t last = 0;
        int rc = pg_look(of(conv), &last, NULL, err);
        if (rc || !count)
                return rc;
        struct reading reading = {each, ctx};
        return read_pages(
            of(conv), last > count ? last - count : 0, last, hand_record, &reading, err);
}

int pg_read_id(struct backend_conv *conv, struct str id, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        PGresult *r;
        pg_query_init(
            &q, "SELECT seq, line FROM record WHERE project = $1 AND uid = $2 AND id = $3");
        pg_key(&q, c);
        pg_text(&q, id);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r) ? hand_out(r, 0, each, ctx)
                              : error_set(err, STENO_ENOTFOUND, "no record \"%.*s\"",
                                    (int)(id.n > 100 ? 100 : id.n), id.p);
        libpq.clear(r);
        return rc;
}

struct pg_lookup {
        struct backend_lookup base;
        struct pg_conv *conv;
};

int pg_lookup_open(struct backend_conv *conv, struct backend_lookup **out, struct steno_error *err)
{
        struct pg_lookup *l = calloc(1, sizeof *l);
        if (!l)
                return error_nomem(err);
        *l = (struct pg_lookup){{&postgres_backend}, of(conv)};
        *out = &l->base;
        return 0;
}

int pg_lookup_record(struct backend_lookup *l, uint64_t seq, backend_record_fn each, void *ctx,
    struct steno_error *err)
{
        struct pg_conv *c = ((struct pg_lookup *)l)->conv;
        struct pg_query q;
        PGresult *r;
        pg_query_init(
            &q, "SELECT seq, line FROM record WHERE project = $1 AND uid = $2 AND seq = $3");
        pg_key(&q, c);
        pg_u64(&q, seq);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r) ? hand_out(r, 0, each, ctx) : 0;
        libpq.clear(r);
        return rc;
}

void pg_lookup_close(struct backend_lookup *l)
{
        free(l);
}

int pg_read_amendments(
    struct backend_conv *conv, backend_record_fn each, void *ctx, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        uint64_t before = INT64_MAX;
        int rc = 0;
        for (bool more = true; rc == 0 && more;) {
                struct pg_query q;
                PGresult *r;
                pg_query_init(&q, "SELECT seq, line FROM record WHERE project = $1 AND uid = $2 AND"
                                  " amends AND seq < $3 ORDER BY seq DESC LIMIT 200");
                pg_key(&q, c);
                pg_u64(&q, before);
                rc = pg_run(c->store, &q, &r, err);
                if (rc)
                        break;
                int n = libpq.ntuples(r);
                more = n == 200;
                for (int i = 0; rc == 0 && i < n; i++) {
                        before = pg_get_u64(r, i, 0);
                        rc = hand_out(r, i, each, ctx);
                }
                libpq.clear(r);
        }
        return rc;
}

int pg_wait(struct backend_conv *conv, uint64_t after, int timeout_ms, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        int64_t until = time_monotonic_ms() + timeout_ms;
        for (int pause = 0;;) {
                uint64_t last = 0, seen = pg_signal_count(c);
                int rc = pg_look(c, &last, NULL, err);
                if (rc || last > after)
                        return rc ? rc : 1;
                if (time_monotonic_ms() >= until)
                        return 0;
                pg_signal_wait(c, seen, &pause, until);
        }
}
