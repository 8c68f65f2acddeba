/*
 * bench_store.c - what storing costs, beside the bare minimum and beside SQLite, in one run.
 *
 *   bench_store [DIRECTORY]      (or STENO_BENCH_DIR; the present one)
 *
 * Messages are 1 KB. Baselines: a loop of write and fdatasync on a growing file; the same in 32
 * threads on files of their own; SQLite (WAL) with synchronous=FULL, batched by the application
 * (whoever waits while a transaction commits is in the next one), and synchronous=NORMAL. Rounds
 * of all are short and interleaved, and the ratios are medians over rounds, because a disk that is
 * shared is never twice the same. Prints one line of JSON.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "steno.h"

#define ROUNDS 21
#define MESSAGE 1024
#define THREADS 32
#define CONVERSATIONS 1000
#define SECONDS 0.15

static double middle(const double *v)
{
        double sorted[ROUNDS];
        memcpy(sorted, v, sizeof sorted);
        return median(sorted, ROUNDS);
}

static double ratio(const double *a, const double *b)
{
        double v[ROUNDS];
        for (int i = 0; i < ROUNDS; i++)
                v[i] = a[i] / b[i];
        return median(v, ROUNDS);
}

static char message[MESSAGE + 1];

static void make_message(void)
{
        int n = snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"");
        memset(message + n, 'x', MESSAGE - (size_t)n - 2);
        memcpy(message + MESSAGE - 2, "\"}", 3);
}

/* ---- bare files ---- */

struct bare {
        char path[300];
        double until;
        long count;
};

static void *bare_loop(void *arg)
{
        struct bare *b = arg;
        int fd = open(b->path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (fd < 0)
                die(b->path, "cannot open");
        while (now() < b->until) {
                if (write(fd, message, MESSAGE) != MESSAGE || fdatasync(fd))
                        die(b->path, "cannot write");
                b->count++;
        }
        close(fd);
        return NULL;
}

static double bare(const char *dir, int threads)
{
        struct bare b[THREADS];
        pthread_t t[THREADS];
        double start = now();
        long total = 0;
        for (int i = 0; i < threads; i++) {
                b[i] = (struct bare){.until = start + SECONDS};
                snprintf(b[i].path, sizeof b[i].path, "%s/bare-%d-%d", dir, threads, i);
                pthread_create(&t[i], NULL, bare_loop, &b[i]);
        }
        for (int i = 0; i < threads; i++) {
                pthread_join(t[i], NULL);
                total += b[i].count;
        }
        return (double)total / (now() - start);
}

/* ---- steno ---- */

struct writer {
        struct steno_conv **convs;
        int count;
        int durability;
        unsigned chance;
        double until;
        long done;
};

static void *steno_loop(void *arg)
{
        struct writer *w = arg;
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt, .durability = w->durability};
        while (now() < w->until) {
                struct steno_conv *c = w->convs[rand_r(&w->chance) % w->count];
                if (steno_append(c, message, MESSAGE, &opt, NULL, &err))
                        die("append", err.msg);
                w->done++;
        }
        return NULL;
}

static double steno(struct steno_conv **convs, int count, int threads, int durability)
{
        struct writer w[THREADS];
        pthread_t t[THREADS];
        double start = now();
        long total = 0;
        for (int i = 0; i < threads; i++) {
                w[i] = (struct writer){
                    convs, count, durability, (unsigned)i * 7919 + 1, start + SECONDS, 0};
                pthread_create(&t[i], NULL, steno_loop, &w[i]);
        }
        for (int i = 0; i < threads; i++) {
                pthread_join(t[i], NULL);
                total += w[i].done;
        }
        return (double)total / (now() - start);
}

/* ---- SQLite ---- */

struct lite {
        sqlite3 *db;
        sqlite3_stmt *begin, *put, *commit;
        pthread_mutex_t mutex;
        pthread_cond_t turn;
        bool busy;
        int waiting[THREADS * 2]; /* conversations of the writers that wait */
        int wait_count;
        uint64_t taken; /* of the transaction that is being formed */
        uint64_t done;  /* transactions that are complete */
        long seq;
        double until;
        bool batched;
};

static void lite_step(struct lite *l, sqlite3_stmt *s)
{
        if (sqlite3_step(s) != SQLITE_DONE)
                die("sqlite", sqlite3_errmsg(l->db));
        sqlite3_reset(s);
}

static void lite_insert(struct lite *l, int conv)
{
        sqlite3_bind_int(l->put, 1, conv);
        sqlite3_bind_int64(l->put, 2, ++l->seq);
        sqlite3_bind_text(l->put, 3, message, MESSAGE, SQLITE_STATIC);
        lite_step(l, l->put);
}

/* A writer that finds no other one committing commits for all that wait. */
static void lite_append(struct lite *l, int conv)
{
        pthread_mutex_lock(&l->mutex);
        l->waiting[l->wait_count++] = conv;
        uint64_t mine = l->taken;
        while (l->done <= mine && l->busy)
                pthread_cond_wait(&l->turn, &l->mutex);
        if (l->done <= mine) {
                int list[THREADS * 2];
                int n = l->wait_count;
                memcpy(list, l->waiting, (size_t)n * sizeof *list);
                l->wait_count = 0;
                l->taken++;
                l->busy = true;
                pthread_mutex_unlock(&l->mutex);
                lite_step(l, l->begin);
                for (int i = 0; i < n; i++)
                        lite_insert(l, list[i]);
                lite_step(l, l->commit);
                pthread_mutex_lock(&l->mutex);
                l->done = l->taken;
                l->busy = false;
                pthread_cond_broadcast(&l->turn);
        }
        pthread_mutex_unlock(&l->mutex);
}

struct lite_writer {
        struct lite *l;
        unsigned chance;
        long done;
};

static void *lite_loop(void *arg)
{
        struct lite_writer *w = arg;
        while (now() < w->l->until) {
                lite_append(w->l, rand_r(&w->chance) % CONVERSATIONS);
                w->done++;
        }
        return NULL;
}

static void lite_open(struct lite *l, const char *dir, const char *name, const char *level)
{
        char text[400];
        *l = (struct lite){.done = 0};
        pthread_mutex_init(&l->mutex, NULL);
        pthread_cond_init(&l->turn, NULL);
        snprintf(text, sizeof text, "%s/%s.db", dir, name);
        if (sqlite3_open(text, &l->db))
                die(text, "cannot open");
        snprintf(text, sizeof text,
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s;"
            "CREATE TABLE m (conv INTEGER, seq INTEGER, body TEXT, PRIMARY KEY (conv, seq))"
            " WITHOUT ROWID;",
            level);
        if (sqlite3_exec(l->db, text, NULL, NULL, NULL) ||
            sqlite3_prepare_v2(l->db, "BEGIN IMMEDIATE", -1, &l->begin, NULL) ||
            sqlite3_prepare_v2(l->db, "INSERT INTO m VALUES (?1,?2,?3)", -1, &l->put, NULL) ||
            sqlite3_prepare_v2(l->db, "COMMIT", -1, &l->commit, NULL))
                die("sqlite", sqlite3_errmsg(l->db));
}

static void lite_close(struct lite *l)
{
        sqlite3_finalize(l->begin);
        sqlite3_finalize(l->put);
        sqlite3_finalize(l->commit);
        sqlite3_close(l->db);
}

static double lite(struct lite *l, int threads)
{
        struct lite_writer w[THREADS];
        pthread_t t[THREADS];
        double start = now();
        long total = 0;
        l->until = start + SECONDS;
        for (int i = 0; i < threads; i++) {
                w[i] = (struct lite_writer){l, (unsigned)i * 7919 + 1, 0};
                pthread_create(&t[i], NULL, lite_loop, &w[i]);
        }
        for (int i = 0; i < threads; i++) {
                pthread_join(t[i], NULL);
                total += w[i].done;
        }
        return (double)total / (now() - start);
}

/* ---- the length of a log ---- */

static struct steno_conv *conversation(struct steno_store *store, const char *name)
{
        struct steno_error err = {0};
        struct steno_conv *c;
        if (steno_conv_create(store, NULL, name, NULL, &c, &err))
                die(name, err.msg);
        return c;
}

static void fill(struct steno_conv *c, int count)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        size_t room = (size_t)500 * (MESSAGE + 2);
        char *batch = malloc(room);
        for (int done = 0; done < count;) {
                size_t n = 0;
                for (int i = 0; i < 500 && done < count; i++, done++) {
                        batch[n++] = i ? ',' : '[';
                        memcpy(batch + n, message, MESSAGE);
                        n += MESSAGE;
                }
                batch[n++] = ']';
                if (steno_append(c, batch, n, &opt, NULL, NULL))
                        die("filling", "failed");
        }
        free(batch);
}

/* Microseconds for an append, synced. */
static double append_cost(struct steno_conv *c, int count)
{
        double start = now();
        for (int i = 0; i < count; i++)
                if (steno_append(c, message, MESSAGE, NULL, NULL, NULL))
                        die("append", "failed");
        return (now() - start) / count * 1e6;
}

static long long bytes_written(void)
{
        FILE *f = fopen("/proc/self/io", "r");
        char line[100];
        long long n = 0;
        while (f && fgets(line, sizeof line, f))
                sscanf(line, "wchar: %lld", &n);
        if (f)
                fclose(f);
        return n;
}

/* Bytes written for each byte of a message, from the first append on: derived files grow in
 * steps. */
static double bytes_of_appends(struct steno_conv *c, int count)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        long long before = bytes_written();
        for (int i = 0; i < count; i++)
                if (steno_append(c, message, MESSAGE, &opt, NULL, NULL))
                        die("append", "failed");
        steno_conv_close(c);
        return (double)(bytes_written() - before) / ((double)count * MESSAGE);
}

int main(int argc, char **argv)
{
        static struct steno_conv *convs[CONVERSATIONS];
        double one_bare[ROUNDS], one[ROUNDS], many_bare[ROUNDS], many[ROUNDS], many_lite[ROUNDS];
        double process[ROUNDS], normal[ROUNDS], shorter[ROUNDS], longer[ROUNDS];
        struct steno_store *store;
        struct steno_error err = {0};
        struct lite full, fast;
        char dir[280], root[300], name[32];
        make_folder(dir, sizeof dir, argc > 1 ? argv[1] : NULL);
        make_message();
        snprintf(root, sizeof root, "%s/store", dir);
        if (steno_open(root, NULL, &store, &err))
                die("open", err.msg);
        for (int i = 0; i < CONVERSATIONS; i++) {
                snprintf(name, sizeof name, "c%d", i);
                convs[i] = conversation(store, name);
        }
        struct steno_conv *alone = conversation(store, "alone");
        struct steno_conv *loose = conversation(store, "loose");
        struct steno_conv *small = conversation(store, "short");
        struct steno_conv *large = conversation(store, "long");
        lite_open(&full, dir, "full", "FULL");
        lite_open(&fast, dir, "fast", "NORMAL");
        fill(small, 100);
        fill(large, 100000);
        append_cost(large, 20);
        append_cost(small, 20);
        for (int r = 0; r < ROUNDS; r++) {
                one_bare[r] = bare(dir, 1);
                one[r] = steno(&alone, 1, 1, STENO_FULL);
                many_bare[r] = bare(dir, THREADS);
                many[r] = steno(convs, CONVERSATIONS, THREADS, STENO_FULL);
                many_lite[r] = lite(&full, THREADS);
                normal[r] = lite(&fast, 1);
                process[r] = steno(&loose, 1, 1, STENO_PROCESS);
                shorter[r] = append_cost(small, 100);
                longer[r] = append_cost(large, 100);
        }
        double written = bytes_of_appends(conversation(store, "fresh"), 20000);
        printf(
            "{\"bench\":\"store\",\"one_writer\":%.0f,\"bare_one\":%.0f,\"one_writer_ratio\":%.2f,"
            "\"writers_32\":%.0f,\"bare_32\":%.0f,\"sqlite_full_32\":%.0f,"
            "\"writers_32_ratio\":%.2f,\"writers_32_to_sqlite\":%.2f,",
            middle(one), middle(one_bare), ratio(one, one_bare), middle(many), middle(many_bare),
            middle(many_lite), ratio(many, many_bare), ratio(many, many_lite));
        printf("\"process\":%.0f,\"sqlite_normal\":%.0f,\"process_to_sqlite\":%.2f,"
               "\"append_us_at_100\":%.0f,\"append_us_at_100000\":%.0f,"
               "\"append_long_to_short\":%.2f,\"bytes_written_per_byte\":%.2f}\n",
            middle(process), middle(normal), ratio(process, normal), middle(shorter),
            middle(longer), ratio(longer, shorter), written);
        for (int i = 0; i < CONVERSATIONS; i++)
                steno_conv_close(convs[i]);
        steno_conv_close(alone);
        steno_conv_close(loose);
        steno_conv_close(small);
        steno_conv_close(large);
        steno_close(store);
        lite_close(&full);
        lite_close(&fast);
        remove_folder(dir);
        return 0;
}
