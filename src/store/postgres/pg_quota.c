/*
 * pg_quota.c - how much room the outputs of a store in PostgreSQL may take. What is used is asked
 * of the tables now and then, and what this process adds is counted meanwhile: it is not exact, as
 * in an embedded store.
 */
#include "store/postgres/pg.h"

#include <stdio.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"

#define WARN_PERCENT 80
#define CONV_MS 2000
#define STORE_MS 10000

void pg_set_quota(
    struct backend_store *store, const struct quota *quota, quota_warn_fn warn, void *ctx)
{
        struct pg_store *s = (struct pg_store *)store;
        s->quota = *quota;
        s->quota_warn = warn;
        s->quota_ctx = ctx;
}

static int refuse(const char *whose, uint64_t limit, struct steno_error *err)
{
        struct buf size;
        buf_init(&size, 64);
        text_put_size(&size, limit);
        int rc =
            error_set(err, STENO_EQUOTA, "the quota of %s is reached: %.*s (steno init sets it)",
                whose, (int)size.n, size.n ? size.p : "");
        buf_release(&size);
        return rc;
}

uint64_t pg_quota_count(struct pg_store *s, const struct pg_conv *c)
{
        struct pg_query q;
        PGresult *r;
        uint64_t n = 0;
        pg_query_init(&q,
            c ? "SELECT ((SELECT coalesce(sum(size), 0) FROM artifact WHERE project = $1 AND uid ="
                " $2 AND state < 2) + (SELECT coalesce(sum(octet_length(bytes)), 0) FROM part WHERE"
                " project = $1 AND uid = $2))::bigint"
              : "SELECT ((SELECT coalesce(sum(size), 0) FROM artifact JOIN conv USING (project, "
                "uid)"
                " WHERE state < 2 AND trash IS NULL) + (SELECT coalesce(sum(octet_length(bytes)), "
                "0)"
                " FROM part JOIN conv USING (project, uid) WHERE trash IS NULL))::bigint");
        if (c)
                pg_key(&q, c);
        if (pg_run(s, &q, &r, NULL))
                return 0;
        n = pg_get_u64(r, 0, 0);
        libpq.clear(r);
        return n;
}

struct limit {
        struct pg_usage *usage;
        const struct pg_conv *conv; /* NULL: the store */
        uint64_t max;
        const char *refused;
        const char *warned;
        int fresh_ms;
};

/* Is there room? It is counted anew before somebody is refused. */
static bool has_room(struct pg_store *s, const struct limit *l, uint64_t n)
{
        int64_t now = time_monotonic_ms();
        pthread_mutex_lock(&s->mutex);
        struct pg_usage seen = *l->usage;
        pthread_mutex_unlock(&s->mutex);
        bool old = !seen.looked || now - seen.looked > l->fresh_ms;
        if (!l->max || (!old && seen.bytes + n <= l->max))
                return true;
        seen.bytes = pg_quota_count(s, l->conv);
        seen.looked = now;
        pthread_mutex_lock(&s->mutex);
        *l->usage = seen;
        pthread_mutex_unlock(&s->mutex);
        return seen.bytes + n <= l->max;
}

static void add(struct pg_store *s, const struct limit *l, uint64_t n)
{
        char line[160];
        uint64_t mark = l->max / 100 * WARN_PERCENT;
        pthread_mutex_lock(&s->mutex);
        uint64_t before = l->usage->bytes;
        l->usage->bytes += n;
        pthread_mutex_unlock(&s->mutex);
        if (!l->max || !s->quota_warn || before >= mark || before + n < mark)
                return;
        snprintf(line, sizeof line, "%s take %d %% of their quota of %llu bytes", l->warned,
            WARN_PERCENT, (unsigned long long)l->max);
        s->quota_warn(s->quota_ctx, line);
}

int pg_quota_take(struct pg_conv *c, uint64_t n, struct steno_error *err)
{
        struct pg_store *s = c->store;
        const struct limit limits[] = {
            {&c->usage, c, s->quota.conversation, "the outputs of this conversation",
                "the outputs of a conversation", CONV_MS},
            {&s->usage, NULL, s->quota.store, "the outputs of this store",
                "the outputs of the store", STORE_MS}};
        for (size_t i = 0; i < 2; i++)
                if (!has_room(s, &limits[i], n))
                        return refuse(limits[i].refused, limits[i].max, err);
        for (size_t i = 0; i < 2; i++)
                add(s, &limits[i], n);
        return 0;
}

int pg_quota_take_output(struct pg_conv *c, uint64_t used, uint64_t n, struct steno_error *err)
{
        uint64_t max = c->store->quota.output;
        return max && used + n > max ? refuse("one output", max, err) : pg_quota_take(c, n, err);
}

int pg_quota_take_conv(struct pg_store *s, uint64_t n, struct steno_error *err)
{
        const struct limit all = {&s->usage, NULL, s->quota.store, "the outputs of this store",
            "the outputs of the store", STORE_MS};
        if (s->quota.conversation && n > s->quota.conversation)
                return refuse("the outputs of one conversation", s->quota.conversation, err);
        if (!has_room(s, &all, n))
                return refuse(all.refused, all.max, err);
        add(s, &all, n);
        return 0;
}
