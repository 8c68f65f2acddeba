/*
 * bench_postgres.c - what storing in PostgreSQL costs beside plain libpq, in one run.
 *
 *   bench_postgres URL       (bench/postgres.py starts a server of its own; without a URL: nothing)
 *
 * Appends: 64 threads, each to a conversation of its own, with a pool of 64, beside 64 connections
 * that insert rows of the same bytes, a statement and a commit each. Reading: a conversation of
 * 10,000 messages, beside COPY of the same rows. Rounds are interleaved, and ratios are medians.
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "steno.h"

#define ROUNDS 7
#define THREADS 64
#define MESSAGES 10000
#define SECONDS 1.0

static char message[1025];

struct worker {
        const char *url;
        int number;
        PGconn *pq;
        struct steno_conv *conv;
        double until;
        long count;
};

static struct steno_error err;

static void must(int rc, const char *what)
{
        if (rc)
                die(what, err.msg);
}

static void *plain(void *arg)
{
        struct worker *w = arg;
        for (w->count = 0; now() < w->until; w->count++) {
                static long next;
                char seq[24], id[40], uid[40];
                long n = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
                snprintf(seq, sizeof seq, "%ld", n);
                snprintf(id, sizeof id, "msg_%026ld", n);
                snprintf(uid, sizeof uid, "%026d", w->number);
                const char *values[] = {"default", uid, seq, id, message};
                int lengths[] = {0, 0, 0, 0, 1024}, formats[] = {0, 0, 0, 0, 1};
                Oid types[] = {25, 25, 20, 25, 17};
                PGresult *r = PQexecParams(w->pq,
                    "INSERT INTO plain.record VALUES ($1, $2, $3, $4, NULL, false, $5)", 5, types,
                    values, lengths, formats, 1);
                if (PQresultStatus(r) != PGRES_COMMAND_OK)
                        die("insert", PQerrorMessage(w->pq));
                PQclear(r);
        }
        return NULL;
}

static void *ours(void *arg)
{
        struct worker *w = arg;
        for (w->count = 0; now() < w->until; w->count++) {
                struct steno_error why;
                if (steno_append(w->conv, message, 1024, NULL, NULL, &why))
                        die("append", why.msg);
        }
        return NULL;
}

static double rate(struct worker *w, void *(*work)(void *))
{
        pthread_t threads[THREADS];
        long n = 0;
        double begun = now();
        for (int i = 0; i < THREADS; i++) {
                w[i].until = begun + SECONDS;
                pthread_create(&threads[i], NULL, work, &w[i]);
        }
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i], NULL);
                n += w[i].count;
        }
        return (double)n / (now() - begun);
}

static void run(PGconn *pq, const char *sql)
{
        PGresult *r = PQexec(pq, sql);
        if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
                die(sql, PQerrorMessage(pq));
        PQclear(r);
}

static size_t copied(PGconn *pq)
{
        size_t bytes = 0;
        char *line;
        int n;
        PGresult *r = PQexec(pq, "COPY (SELECT line FROM steno.record WHERE uid = (SELECT uid FROM"
                                 " steno.conv WHERE id = 'long') ORDER BY seq) TO STDOUT (FORMAT"
                                 " binary)");
        if (PQresultStatus(r) != PGRES_COPY_OUT)
                die("copy", PQerrorMessage(pq));
        PQclear(r);
        while ((n = PQgetCopyData(pq, &line, 0)) > 0) {
                bytes += (size_t)n;
                PQfreemem(line);
        }
        while ((r = PQgetResult(pq)))
                PQclear(r);
        return bytes;
}

static int add(void *ctx, const void *p, size_t n)
{
        (void)p;
        *(size_t *)ctx += n;
        return 0;
}

static size_t viewed(struct steno_conv *conv)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = "stored"};
        size_t bytes = 0;
        must(steno_view(conv, &opt, add, &bytes, NULL, &err), "view");
        return bytes;
}

static void fill(struct steno_conv *conv)
{
        char *batch = malloc(1030 * 1000 + 2);
        if (!batch)
                die("fill", "out of memory");
        for (int k = 0; k < MESSAGES / 1000; k++) {
                size_t n = 0;
                for (int i = 0; i < 1000; i++) {
                        batch[n++] = i ? ',' : '[';
                        memcpy(batch + n, message, 1024);
                        n += 1024;
                }
                batch[n++] = ']';
                must(steno_append(conv, batch, n, NULL, NULL, &err), "fill");
        }
        free(batch);
}

int main(int argc, char **argv)
{
        struct worker w[THREADS] = {0};
        double a[ROUNDS], b[ROUNDS], r[ROUNDS], c[ROUNDS], v[ROUNDS], s[ROUNDS];
        char url[400];
        struct steno_store *store;
        struct steno_conv *conv;
        if (argc < 2)
                return 0;
        int n = snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"");
        memset(message + n, 'x', 1024 - (size_t)n - 2);
        memcpy(message + 1022, "\"}", 3);
        snprintf(url, sizeof url, "%s?pool=%d", argv[1], THREADS);
        must(steno_open(url, NULL, &store, &err), url);
        for (int i = 0; i < THREADS; i++) {
                char id[16];
                snprintf(id, sizeof id, "c%d", i);
                w[i].number = i;
                w[i].pq = PQconnectdb(argv[1]);
                must(steno_conv_create(store, NULL, id, NULL, &w[i].conv, &err), id);
        }
        run(w[0].pq, "DROP SCHEMA IF EXISTS plain CASCADE; CREATE SCHEMA plain; CREATE TABLE"
                     " plain.record (LIKE steno.record INCLUDING ALL)");
        must(steno_conv_create(store, NULL, "long", NULL, &conv, &err), "long");
        fill(conv);
        for (int i = 0; i < ROUNDS; i++) {
                a[i] = rate(w, plain);
                b[i] = rate(w, ours);
                r[i] = b[i] / a[i];
        }
        for (int i = 0; i < ROUNDS; i++) {
                double t = now();
                double bytes = (double)copied(w[0].pq);
                c[i] = bytes / (now() - t) / 1e6;
                t = now();
                bytes = (double)viewed(conv);
                v[i] = bytes / (now() - t) / 1e6;
                s[i] = v[i] / c[i];
        }
        printf("{\"plainInserts\":%.0f,\"appends\":%.0f,\"appendsOfPlain\":%.2f,\"copyMBs\":%.0f,"
               "\"readMBs\":%.0f,\"readOfCopy\":%.2f}\n",
            median(a, ROUNDS), median(b, ROUNDS), median(r, ROUNDS), median(c, ROUNDS),
            median(v, ROUNDS), median(s, ROUNDS));
        steno_conv_close(conv);
        for (int i = 0; i < THREADS; i++) {
                steno_conv_close(w[i].conv);
                PQfinish(w[i].pq);
        }
        steno_close(store);
        return 0;
}
