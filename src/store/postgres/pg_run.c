/*
 * pg_run.c - runs in PostgreSQL: the claim, which is a lease, and journals as rows.
 *
 * A claim is a row with the run, an epoch and the time until which its holder counts as alive. A
 * thread renews it, and takes the mail out. A journal has an epoch of its own, which grows when it
 * is taken over: a writer that only seemed to be dead changes no row any more.
 */
#include "store/postgres/pg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "model/event.h"

#define MAIL_MS 100       /* how often a run looks whether somebody has written to it, */
#define MAIL_LATE_MS 1000 /* and how often it asks where hints come in, which may be lost */
#define AHEAD 1000        /* numbers that may have been given out and lost with the server */

static struct pg_conv *of(const struct backend_conv *conv)
{
        return (struct pg_conv *)conv;
}

/* ---- one run at a time ---- */

struct pg_claim {
        struct backend_claim base;
        struct pg_conv *conv; /* borrowed */
        uint64_t epoch;
        int64_t renewed; /* monotonic ms */
        bool lost;
        bool ending;
        bool runs;
        run_mail_fn listen;
        void *listen_ctx;
        pthread_t thread;
        pthread_mutex_t mutex;
        pthread_cond_t wake;
};

/* Adds the lease in milliseconds. */
static void put_lease(struct pg_query *q, const struct pg_store *s)
{
        pg_u64(q, (uint64_t)s->lease_ms);
}

/* 0: ours; 1: it has to be completed first; STENO_ECONFLICT: somebody has it. */
static int try_claim(struct pg_claim *k, struct str id, const char *name, struct steno_error *err)
{
        struct pg_conv *c = k->conv;
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "INSERT INTO claim AS k VALUES ($1, $2, $3, $4, 1, clock_timestamp() + $5::bigint *"
            " interval '1 ms', true) ON CONFLICT (project, uid) DO UPDATE SET run = $3, name = $4,"
            " epoch = k.epoch + 1, lease = clock_timestamp() + $5::bigint * interval '1 ms', open ="
            " true WHERE NOT k.open OR (k.lease < clock_timestamp() AND NOT EXISTS (SELECT 1 FROM"
            " run WHERE run.project = $1 AND run.uid = $2 AND run.name = k.name)) RETURNING epoch");
        pg_key(&q, c);
        pg_text(&q, id);
        pg_cstr(&q, name);
        put_lease(&q, c->store);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        bool ours = libpq.ntuples(r) == 1;
        if (ours)
                k->epoch = pg_get_u64(r, 0, 0);
        libpq.clear(r);
        if (ours)
                return 0;
        pg_query_init(&q, "SELECT run, lease > clock_timestamp() FROM claim WHERE project = $1 AND"
                          " uid = $2 AND open");
        pg_key(&q, c);
        rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r) && pg_get_bool(r, 0, 1)) {
                struct str run = pg_get(r, 0, 0);
                rc = error_set(err, STENO_ECONFLICT, "run \"%.*s\" is active in this conversation",
                    (int)(run.n > 100 ? 100 : run.n), run.p);
        } else {
                rc = 1;
        }
        libpq.clear(r);
        return rc;
}

/* The run is ours until another process has the next epoch, or has settled it, even if the lease
 * was over meanwhile. 1: it is ours; 0: not any more; or negative. */
static long extend_lease(struct pg_conv *c, uint64_t epoch)
{
        struct pg_query q;
        pg_query_init(&q, "UPDATE claim SET lease = clock_timestamp() + $3::bigint * interval '1"
                          " ms' WHERE project = $1 AND uid = $2 AND epoch = $4 AND open");
        q.relaxed = q.repeatable = true;
        q.patience_ms = c->store->lease_ms;
        pg_key(&q, c);
        put_lease(&q, c->store);
        pg_u64(&q, epoch);
        return pg_change(c->store, &q, NULL);
}

static void renew(struct pg_claim *k)
{
        int64_t before = time_monotonic_ms();
        long n = extend_lease(k->conv, k->epoch);
        pthread_mutex_lock(&k->mutex);
        if (n == 1)
                k->renewed = before;
        else if (n == 0)
                k->lost = true;
        pthread_mutex_unlock(&k->mutex);
}

/* Each line is handed out once: it is taken out of the table first. */
static void take_mail(struct pg_claim *k, run_mail_fn fn, void *ctx)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "WITH taken AS (DELETE FROM mail WHERE project = $1 AND uid = $2"
                          " RETURNING n, line) SELECT line FROM taken ORDER BY n");
        pg_key(&q, k->conv);
        if (pg_run(k->conv->store, &q, &r, NULL))
                return;
        for (int i = 0; i < libpq.ntuples(r); i++)
                fn(ctx, pg_get(r, i, 0));
        libpq.clear(r);
}

static void *keep_alive(void *arg)
{
        struct pg_claim *k = arg;
        int64_t next = time_monotonic_ms() + k->conv->store->lease_ms / 3, late = 0;
        uint64_t seen = 0;
        run_mail_fn before = NULL;
        pthread_mutex_lock(&k->mutex);
        while (!k->ending) {
                run_mail_fn fn = k->listen;
                void *ctx = k->listen_ctx;
                int64_t now = time_monotonic_ms();
                pthread_mutex_unlock(&k->mutex);
                if (now >= next) {
                        renew(k);
                        next = now + k->conv->store->lease_ms / 3;
                }
                uint64_t count = pg_signal_count(k->conv);
                if (fn && (fn != before || count != seen || now >= late)) {
                        take_mail(k, fn, ctx);
                        late = now + (pg_signal_hears(k->conv) ? MAIL_LATE_MS : MAIL_MS);
                }
                before = fn;
                seen = count;
                pthread_mutex_lock(&k->mutex);
                int64_t pause = fn ? MAIL_MS : next - now;
                if (!k->ending)
                        wait_for(&k->wake, &k->mutex, pause > 0 ? (int)pause : 1);
        }
        pthread_mutex_unlock(&k->mutex);
        return NULL;
}

int pg_run_claim(
    struct backend_conv *conv, struct str id, struct backend_claim **out, struct steno_error *err)
{
        char name[PLAIN_NAME_MAX + 1];
        struct pg_claim *k = calloc(1, sizeof *k);
        if (!k || id_file_name(id, name)) {
                free(k);
                return error_nomem(err);
        }
        k->base.ops = &postgres_backend;
        k->conv = of(conv);
        k->renewed = time_monotonic_ms();
        pthread_mutex_init(&k->mutex, NULL);
        wait_init(&k->wake);
        int rc = try_claim(k, id, name, err);
        if (rc == 0) {
                __atomic_store_n(&k->conv->claimed, k->epoch, __ATOMIC_RELEASE);
                k->runs = pthread_create(&k->thread, NULL, keep_alive, k) == 0;
                rc = k->runs ? 0 : error_nomem(err);
        }
        if (rc) {
                pg_run_claim_release(&k->base, false);
                return rc;
        }
        *out = &k->base;
        return 0;
}

void pg_run_claim_release(struct backend_claim *claim, bool finished)
{
        struct pg_claim *k = (struct pg_claim *)claim;
        struct pg_query q;
        if (k->runs) {
                pthread_mutex_lock(&k->mutex);
                k->ending = true;
                pthread_cond_signal(&k->wake);
                pthread_mutex_unlock(&k->mutex);
                pthread_join(k->thread, NULL);
        }
        if (k->epoch) {
                uint64_t ours = k->epoch;
                __atomic_compare_exchange_n(
                    &k->conv->claimed, &ours, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
                pg_query_init(&q, "UPDATE claim SET open = $4::bigint = 0, lease = '-infinity'"
                                  " WHERE project = $1 AND uid = $2 AND epoch = $3");
                q.repeatable = true;
                pg_key(&q, k->conv);
                pg_u64(&q, k->epoch);
                pg_u64(&q, finished);
                pg_change(k->conv->store, &q, NULL);
        }
        pthread_mutex_destroy(&k->mutex);
        pthread_cond_destroy(&k->wake);
        free(k);
}

static void look(struct pg_claim *k, bool *lost, bool *late)
{
        pthread_mutex_lock(&k->mutex);
        *lost = k->lost;
        *late = time_monotonic_ms() - k->renewed > k->conv->store->lease_ms;
        pthread_mutex_unlock(&k->mutex);
}

static int say_taken(struct steno_error *err)
{
        return error_set(
            err, STENO_ECONFLICT, "this run was taken over: its holder seemed to be dead");
}

/* A machine that stood still for a while asks whether anybody has noticed. */
int pg_run_claim_check(struct backend_claim *claim, struct steno_error *err)
{
        struct pg_claim *k = (struct pg_claim *)claim;
        bool lost, late;
        look(k, &lost, &late);
        if (!lost && late) {
                renew(k);
                look(k, &lost, &late);
        }
        if (lost)
                return say_taken(err);
        if (late)
                return error_set(err, STENO_ECONFLICT,
                    "this run could not renew its lease in time: another server may take it over");
        return 0;
}

uint64_t pg_run_claim_epoch(const struct backend_claim *claim)
{
        return ((const struct pg_claim *)claim)->epoch;
}

int pg_run_claim_ask(const struct backend_claim *claim, struct steno_error *err)
{
        const struct pg_claim *k = (const struct pg_claim *)claim;
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT 1 FROM claim WHERE project = $1 AND uid = $2 AND epoch = $3 AND"
                          " open");
        pg_key(&q, k->conv);
        pg_u64(&q, k->epoch);
        int rc = pg_run(k->conv->store, &q, &r, err);
        if (rc)
                return rc;
        bool ours = libpq.ntuples(r) == 1;
        libpq.clear(r);
        return ours ? 0 : say_taken(err);
}

void pg_run_claim_listen(struct backend_claim *claim, run_mail_fn fn, void *ctx)
{
        struct pg_claim *k = (struct pg_claim *)claim;
        pthread_mutex_lock(&k->mutex);
        k->listen = fn;
        k->listen_ctx = ctx;
        pthread_cond_signal(&k->wake);
        pthread_mutex_unlock(&k->mutex);
}

int pg_run_mail_send(struct backend_conv *conv, struct str line, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q, "INSERT INTO mail (project, uid, line) VALUES ($1, $2, $3)");
        pg_key(&q, of(conv));
        pg_bytes(&q, line);
        long n = pg_change(of(conv)->store, &q, err);
        if (n >= 0)
                pg_signal_say(of(conv));
        return n < 0 ? (int)n : 0;
}

/* ---- what became of it ---- */

int pg_run_last(struct backend_conv *conv, char name[PLAIN_NAME_MAX + 1], enum run_life *out,
    struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        PGresult *r;
        *out = RUN_ENDED;
        name[0] = '\0';
        pg_query_init(&q,
            "SELECT k.name, k.lease > clock_timestamp(), r.finished FROM claim k LEFT JOIN run r"
            " USING (project, uid, name) WHERE k.project = $1 AND k.uid = $2 AND k.open");
        pg_key(&q, c);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r)) {
                struct str found = pg_get(r, 0, 0);
                bool held = pg_get_bool(r, 0, 1), begun = !libpq.getisnull(r, 0, 2);
                if (begun)
                        snprintf(name, PLAIN_NAME_MAX + 1, "%.*s", (int)found.n, found.p);
                if (!begun)
                        *out = held ? RUN_LIVE : RUN_ENDED;
                else if (pg_get_bool(r, 0, 2))
                        *out = held ? RUN_ENDED : RUN_FAILED;
                else
                        *out = held ? RUN_LIVE : RUN_DEAD;
        }
        libpq.clear(r);
        return 0;
}

bool pg_run_is_dead(struct backend_conv *conv, const char *name)
{
        struct run_state s;
        if (pg_run_look(conv, name, &s, NULL))
                return false;
        bool dead = !s.finished && !s.held;
        backend_run_state_release(&s);
        return dead;
}

void pg_run_settle(struct backend_conv *conv, const char *name)
{
        struct pg_query q;
        pg_query_init(&q, "UPDATE claim SET open = false WHERE project = $1 AND uid = $2 AND name ="
                          " $3 AND lease < clock_timestamp()");
        pg_key(&q, of(conv));
        pg_cstr(&q, name);
        pg_change(of(conv)->store, &q, NULL);
}

void pg_run_settle_all(struct backend_conv *conv)
{
        struct pg_query q;
        pg_query_init(&q, "UPDATE claim SET open = false WHERE project = $1 AND uid = $2 AND lease"
                          " < clock_timestamp()");
        pg_key(&q, of(conv));
        pg_change(of(conv)->store, &q, NULL);
}

/* Waits for an append of the holder, which has the row's key locked (pg_append.c), and for nothing
 * else. The lease is over for good then: who takes the journal over looks for that. A process that
 * was stopped for a while does not treat its own run as dead. */
int pg_run_fence(struct backend_conv *conv, const char *name, struct steno_error *err)
{
        struct pg_query q;
        uint64_t ours = __atomic_load_n(&of(conv)->claimed, __ATOMIC_ACQUIRE);
        if (ours)
                extend_lease(of(conv), ours);
        pg_query_init(&q,
            "WITH dead AS (SELECT epoch FROM claim WHERE project = $1 AND uid = $2 AND name = $3 "
            "AND"
            " open AND lease < clock_timestamp() FOR UPDATE) UPDATE claim k SET epoch = k.epoch + "
            "1,"
            " lease = '-infinity' FROM dead WHERE k.project = $1 AND k.uid = $2 AND k.epoch ="
            " dead.epoch");
        q.repeatable = true;
        pg_key(&q, of(conv));
        pg_cstr(&q, name);
        long n = pg_change(of(conv)->store, &q, err);
        return n < 0 ? (int)n : 0;
}

/* ---- journals ---- */

struct pg_log {
        struct backend_run base;
        struct pg_conv *conv;
        char name[PLAIN_NAME_MAX + 1];
        uint64_t epoch;
        pthread_mutex_t mutex; /* calls of a turn write side by side, and each has its number */
        uint64_t seq;          /* of the last event that was written */
};

static int new_log(struct pg_conv *c, const char *name, uint64_t epoch, uint64_t seq,
    struct backend_run **out, struct steno_error *err)
{
        struct pg_log *log = calloc(1, sizeof *log);
        if (!log)
                return error_nomem(err);
        log->base.ops = &postgres_backend;
        log->conv = c;
        log->epoch = epoch;
        log->seq = seq;
        snprintf(log->name, sizeof log->name, "%s", name);
        pthread_mutex_init(&log->mutex, NULL);
        *out = &log->base;
        return 0;
}

static void put_now(struct pg_store *s, char at[TIME_TEXT])
{
        time_format(s->env->now(s->env), at);
}

int pg_run_create(struct backend_conv *conv, struct str id, struct str mode,
    struct backend_run **out, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        char name[PLAIN_NAME_MAX + 1], at[TIME_TEXT];
        struct pg_query q;
        struct buf head;
        if (id_file_name(id, name))
                return error_nomem(err);
        buf_init(&head, 64 * KIB);
        struct jsonw w = jsonw_to(&head);
        jsonw_object(&w);
        jsonw_field_str(&w, "id", id);
        jsonw_field_cstr(&w, "conversation", c->id);
        jsonw_field_cstr(&w, "project", c->project);
        jsonw_field_str(&w, "mode", mode);
        jsonw_object_end(&w);
        put_now(c->store, at);
        pg_query_init(&q, "INSERT INTO run (project, uid, name, at, head) VALUES ($1, $2, $3, $4,"
                          " $5) ON CONFLICT DO NOTHING");
        pg_key(&q, c);
        pg_cstr(&q, name);
        pg_cstr(&q, at);
        pg_bytes(&q, buf_str(&head));
        long n = head.failed ? error_nomem(err) : pg_change(c->store, &q, err);
        buf_release(&head);
        if (n == 0)
                return error_set(err, STENO_ECONFLICT, "run \"%.*s\" exists already",
                    (int)(id.n > 100 ? 100 : id.n), id.p);
        return n < 0 ? (int)n : new_log(c, name, 1, 0, out, err);
}

int pg_run_take_over(
    struct backend_conv *conv, const char *name, struct backend_run **out, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "UPDATE run SET epoch = epoch + 1, seq = seq + $4::bigint WHERE project = $1 AND uid ="
            " $2 AND name = $3 AND NOT EXISTS (SELECT 1 FROM claim k WHERE k.project = $1 AND k.uid"
            " = $2 AND k.name = $3 AND k.open AND k.lease > '-infinity') RETURNING epoch, seq");
        pg_key(&q, c);
        pg_cstr(&q, name);
        pg_u64(&q, AHEAD);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r) ? new_log(c, name, pg_get_u64(r, 0, 0), pg_get_u64(r, 0, 1), out, err)
                              : 1;
        libpq.clear(r);
        return rc;
}

void pg_run_close(struct backend_run *run)
{
        pthread_mutex_destroy(&((struct pg_log *)run)->mutex);
        free(run);
}

static int explain(struct pg_log *log, struct steno_error *err)
{
        struct run_state s;
        int rc = pg_run_look(&log->conv->base, log->name, &s, err);
        if (rc)
                return rc;
        bool finished = s.finished;
        backend_run_state_release(&s);
        return finished ? error_set(err, STENO_EINVAL, "the run is finished") : say_taken(err);
}

/* How many events were written, 1 or 0, or negative. Events that were not waited for and were lost
 * in a failover leave a gap in the numbers, so that no number is ever used twice. */
static long write_event(struct pg_log *log, struct str type, struct str data, bool sync, bool last,
    struct steno_error *err)
{
        struct pg_conv *c = log->conv;
        struct pg_query q;
        char at[TIME_TEXT];
        put_now(c->store, at);
        pg_query_init(&q,
            "WITH up AS (UPDATE run SET seq = $9::bigint + 1, finished = $8::bigint <> 0 WHERE"
            " project = $1 AND uid = $2 AND name = $3 AND epoch = $4 AND seq <= $9::bigint AND NOT"
            " finished RETURNING seq) INSERT INTO event SELECT $1, $2, $3, seq, $5, $6, $7 FROM "
            "up");
        q.relaxed = !sync;
        if (!sync)
                __atomic_store_n(&c->store->unsynced, true, __ATOMIC_RELEASE);
        pg_key(&q, c);
        pg_cstr(&q, log->name);
        pg_u64(&q, log->epoch);
        pg_cstr(&q, at);
        pg_text(&q, type);
        pg_bytes(&q, data);
        pg_u64(&q, last);
        pg_u64(&q, log->seq);
        return pg_change(c->store, &q, err);
}

/* Did it happen, though the connection broke? Its number is given by this writer alone, as long as
 * nobody has taken the journal over; and who asks waits for the standby by a commit of its own. */
static long find_event(struct pg_log *log, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q, "UPDATE run SET epoch = epoch WHERE project = $1 AND uid = $2 AND name ="
                          " $3 AND epoch = $4 AND seq = $5::bigint + 1");
        q.repeatable = true;
        pg_key(&q, log->conv);
        pg_cstr(&q, log->name);
        pg_u64(&q, log->epoch);
        pg_u64(&q, log->seq);
        return pg_change(log->conv->store, &q, err);
}

/* Under the mutex: like write_event, until it is known whether it happened. */
static long write_once(struct pg_log *log, struct str type, struct str data, bool sync, bool last,
    struct steno_error *err)
{
        int64_t until = time_monotonic_ms() + log->conv->store->commit_ms;
        long n = write_event(log, type, data, sync, last, err);
        while (n == STENO_EINDOUBT && err->sys == ECONNRESET && time_monotonic_ms() < until) {
                n = find_event(log, err);
                if (n == 0)
                        n = write_event(log, type, data, sync, last, err);
        }
        return n;
}

int pg_run_write(struct backend_run *run, struct str type, struct str data, bool sync,
    uint64_t *seq, struct steno_error *err)
{
        struct pg_log *log = (struct pg_log *)run;
        bool last = event_is(type, STENO_EVENT_RUN_FINISHED);
        struct steno_error why = {0};
        struct buf escaped;
        buf_init(&escaped, 0);
        json_put_string(&escaped, type);
        long n = buf_check(&escaped, &why);
        struct str name = n ? type : str_span(escaped.p + 1, escaped.n - 2);
        pthread_mutex_lock(&log->mutex);
        if (n == 0)
                n = write_once(log, name, data, sync, last, &why);
        log->seq += n > 0;
        uint64_t number = log->seq;
        pthread_mutex_unlock(&log->mutex);
        buf_release(&escaped);
        if (n < 0 && err)
                *err = why;
        if (n <= 0)
                return n ? (int)n : explain(log, err);
        if (seq)
                *seq = number;
        pg_signal_say(log->conv);
        return 0;
}

static int hand_events(const PGresult *r, uint64_t *after, run_event_fn each, void *ctx)
{
        int rc = 0;
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                struct run_event e = {.seq = pg_get_u64(r, i, 0),
                    .at = pg_get(r, i, 1),
                    .type = pg_get(r, i, 2),
                    .data = pg_get(r, i, 3)};
                *after = e.seq;
                rc = each(ctx, &e);
        }
        return rc;
}

int pg_run_read(struct backend_conv *conv, const char *name, uint64_t after, run_event_fn each,
    void *ctx, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct run_state s;
        int rc = pg_run_look(conv, name, &s, err);
        if (rc)
                return rc;
        backend_run_state_release(&s);
        for (bool more = true; rc == 0 && more;) {
                struct pg_query q;
                PGresult *r;
                pg_query_init(&q, "SELECT seq, at, type, data FROM event WHERE project = $1 AND uid"
                                  " = $2 AND name = $3 AND seq > $4 ORDER BY seq LIMIT 500");
                pg_key(&q, c);
                pg_cstr(&q, name);
                pg_u64(&q, after);
                rc = pg_run(c->store, &q, &r, err);
                if (rc)
                        break;
                more = libpq.ntuples(r) == 500;
                rc = hand_events(r, &after, each, ctx);
                libpq.clear(r);
        }
        return rc;
}

int pg_run_look(
    struct backend_conv *conv, const char *name, struct run_state *out, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q,
            "SELECT r.at, r.head, r.finished, coalesce(e.seq, 0), e.data, EXISTS (SELECT 1 FROM"
            " claim k WHERE k.project = $1 AND k.uid = $2 AND k.name = $3 AND k.open AND k.lease >"
            " clock_timestamp()) FROM run r LEFT JOIN LATERAL (SELECT seq, data FROM event e WHERE"
            " e.project = $1 AND e.uid = $2 AND e.name = $3 ORDER BY seq DESC LIMIT 1) e ON true"
            " WHERE r.project = $1 AND r.uid = $2 AND r.name = $3");
        pg_key(&q, c);
        pg_cstr(&q, name);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r) == 0) {
                libpq.clear(r);
                return error_set(err, STENO_ENOTFOUND, "no run \"%.100s\"", name);
        }
        struct str at = pg_get(r, 0, 0);
        *out = (struct run_state){.head = pg_get_dup(r, 0, 1),
            .finished = pg_get_bool(r, 0, 2),
            .seq = pg_get_u64(r, 0, 3),
            .last = libpq.getisnull(r, 0, 4) ? strdup("{}") : pg_get_dup(r, 0, 4),
            .held = pg_get_bool(r, 0, 5)};
        snprintf(out->at, sizeof out->at, "%.*s", (int)at.n, at.p);
        libpq.clear(r);
        if (out->head && out->last)
                return 0;
        backend_run_state_release(out);
        return error_nomem(err);
}

int pg_run_wait(struct backend_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        int64_t until = time_monotonic_ms() + timeout_ms;
        for (int pause = 0;;) {
                struct run_state s;
                uint64_t seen = pg_signal_count(c);
                int rc = pg_run_look(conv, name, &s, err);
                if (rc)
                        return rc;
                bool more = s.seq > after;
                backend_run_state_release(&s);
                if (more || time_monotonic_ms() >= until)
                        return more;
                pg_signal_wait(c, seen, &pause, until);
        }
}

int pg_run_each(struct backend_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT name FROM run WHERE project = $1 AND uid = $2");
        pg_key(&q, c);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                char *name = pg_get_dup(r, i, 0);
                rc = name ? each(ctx, name) : error_nomem(err);
                free(name);
        }
        libpq.clear(r);
        return rc;
}

int pg_run_find(struct backend_store *store, struct str project, const char *name,
    struct backend_conv **out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT c.id FROM run r JOIN conv c USING (project, uid) WHERE r.project"
                          " = $1 AND r.name = $2 AND c.trash IS NULL LIMIT 1");
        pg_text(&q, project);
        pg_cstr(&q, name);
        int rc = pg_run((struct pg_store *)store, &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r) ? pg_conv_open(store, project, pg_get(r, 0, 0), out, err)
                              : STENO_ENOTFOUND;
        libpq.clear(r);
        return rc;
}
