/*
 * bench_ids.c - an append with an id in a long conversation: as usual, after a new boot, and when
 * ids.idx is missing; and what writers without ids notice of it.
 *
 *   bench_ids [DIRECTORY]      (or STENO_BENCH_DIR; STENO_BENCH_MESSAGES, a million else)
 *
 * Messages are 1 KB. Every figure is the first append of a handle that was opened for it, with
 * receipts at full durability. Before each, 200 messages were written whose ids would not last a
 * power cut. Prints one line of JSON; times in milliseconds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api_store.h"
#include "bench.h"
#include "boot.h"
#include "steno.h"

#define ROUNDS 21
#define BATCH 1000
#define TAIL 200
#define WRITES 100000

static struct env env;
static char folder[300];
static long next_id;

struct handle {
        struct steno_store *store;
        struct steno_conv *conv;
};

static struct handle open_handle(void)
{
        struct steno_error err = {0};
        struct handle h;
        if (api_store_open_in(&env, folder, NULL, &h.store, &err))
                die("open", err.msg);
        if (steno_conv_open(h.store, NULL, "c", &h.conv, NULL) &&
            steno_conv_create(h.store, NULL, "c", NULL, &h.conv, &err))
                die("create", err.msg);
        return h;
}

static void close_handle(struct handle h)
{
        steno_conv_close(h.conv);
        steno_close(h.store);
}

static void append(struct handle h, long count, bool ids, int durability)
{
        static char json[BATCH * 1200];
        static const char filling[] = "0123456789abcdef0123456789abcdef0123456789abcdef";
        struct steno_error err = {0};
        struct steno_append_options opt = {.size = sizeof opt, .durability = durability};
        char *p = json;
        for (long i = 0; i < count; i++) {
                p += sprintf(p, "%c{", i ? ',' : '[');
                if (ids)
                        p += sprintf(p, "\"id\":\"m%ld\",", next_id++);
                p += sprintf(p, "\"role\":\"user\",\"content\":\"");
                for (int k = 0; k < 18; k++)
                        p += sprintf(p, "%s", filling);
                p += sprintf(p, "\"}");
        }
        *p++ = ']';
        if (steno_append(h.conv, json, (size_t)(p - json), &opt, NULL, &err))
                die("append", err.msg);
}

static double first_append(void)
{
        struct handle h = open_handle();
        double start = now();
        append(h, 1, true, STENO_FULL);
        double took = now() - start;
        close_handle(h);
        return took * 1e3;
}

static void write_tail(void)
{
        struct handle h = open_handle();
        append(h, TAIL, true, STENO_FULL);
        close_handle(h);
}

static void remove_index(void)
{
        char path[400];
        snprintf(path, sizeof path, "%s/projects/default/conversations/c/ids.idx", folder);
        unlink(path);
}

/* ---- another writer ---- */

static struct {
        bool stop;
        double took[WRITES];
        size_t count;
} other;

static void *write_on(void *arg)
{
        static const char one[] = "{\"role\":\"user\",\"content\":\"x\"}";
        struct steno_error err = {0};
        struct handle h = open_handle();
        (void)arg;
        other.count = 0;
        while (!__atomic_load_n(&other.stop, __ATOMIC_RELAXED) && other.count < WRITES) {
                double start = now();
                if (steno_append(h.conv, one, sizeof one - 1, NULL, NULL, &err))
                        die("append", err.msg);
                other.took[other.count++] = (now() - start) * 1e3;
        }
        close_handle(h);
        return NULL;
}

/* Runs `what` beside another writer. *p50, *p99 and *most are the times of the other writer. */
static double beside(double (*what)(void), double *p50, double *p99, double *most)
{
        pthread_t t;
        other.stop = false;
        pthread_create(&t, NULL, write_on, NULL);
        usleep(50000);
        double took = what();
        __atomic_store_n(&other.stop, true, __ATOMIC_RELAXED);
        pthread_join(t, NULL);
        *p50 = quantile(other.took, other.count, 0.5);
        *p99 = quantile(other.took, other.count, 0.99);
        *most = quantile(other.took, other.count, 1);
        return took;
}

static double pause_only(void)
{
        usleep(1500000);
        return 0;
}

int main(int argc, char **argv)
{
        const char *want = getenv("STENO_BENCH_MESSAGES");
        long count = want ? atol(want) : 1000000;
        double usual[ROUNDS], booted[ROUNDS], quiet[3], busy[3];
        make_folder(folder, sizeof folder, argc > 1 ? argv[1] : NULL);
        env = booted_env();
        struct handle h = open_handle();
        for (long i = 0; i < count; i += BATCH)
                append(h, BATCH, true, STENO_PROCESS);
        close_handle(h);
        for (int i = 0; i < ROUNDS; i++) {
                write_tail();
                usual[i] = first_append();
                write_tail();
                boots++;
                booted[i] = first_append();
        }
        beside(pause_only, &quiet[0], &quiet[1], &quiet[2]);
        remove_index();
        double missing = beside(first_append, &busy[0], &busy[1], &busy[2]);
        double u = median(usual, ROUNDS), b = median(booted, ROUNDS);
        printf("{\"name\":\"ids\",\"messages\":%ld,\"usual_ms\":%.3f,\"after_boot_ms\":%.3f,"
               "\"ratio\":%.2f,\"without_index_ms\":%.1f,"
               "\"other_writer_ms\":{\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f},"
               "\"other_writer_meanwhile_ms\":{\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f}}\n",
            count, u, b, b / u, missing, quiet[0], quiet[1], quiet[2], busy[0], busy[1], busy[2]);
        remove_folder(folder);
        return 0;
}
