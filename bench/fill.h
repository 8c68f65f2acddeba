/*
 * fill.h - histories and stores for benchmarks: messages of 1 KB, conversations by the thousand.
 */
#ifndef BENCH_FILL_H
#define BENCH_FILL_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "steno.h"

#define MESSAGE 1024

/* MESSAGE bytes: `first`, then x, then `last`. */
static inline void pad(char *to, const char *first, const char *last)
{
        size_t n = strlen(first), k = strlen(last);
        memcpy(to, first, n);
        memset(to + n, 'x', MESSAGE - n - k);
        memcpy(to + MESSAGE - k, last, k);
}

static inline void prompt(int i, char *to)
{
        (void)i;
        pad(to, "{\"role\":\"user\",\"content\":\"", "\"}");
}

/* Appends messages that `make` makes, from number `from` up to `to`, without a sync for each. */
static inline void fill(struct steno_conv *c, int from, int to, void (*make)(int i, char *to))
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        struct steno_error err = {0};
        char *batch = malloc((size_t)500 * (MESSAGE + 2));
        if (!batch)
                die("filling", "no memory");
        for (int done = from; done < to;) {
                size_t n = 0;
                for (int i = 0; i < 500 && done < to; i++, done++) {
                        batch[n++] = i ? ',' : '[';
                        make(done, batch + n);
                        n += MESSAGE;
                }
                batch[n++] = ']';
                if (steno_append(c, batch, n, &opt, NULL, &err))
                        die("filling", err.msg);
        }
        free(batch);
}

static inline struct steno_conv *filled(
    struct steno_store *store, const char *name, int count, void (*make)(int i, char *to))
{
        struct steno_error err = {0};
        struct steno_conv *c;
        if (steno_conv_create(store, NULL, name, NULL, &c, &err))
                die(name, err.msg);
        fill(c, 0, count, make);
        return c;
}

static inline void put(const char *path, const char *text, size_t n)
{
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        if (fd < 0 || write(fd, text, n) != (ssize_t)n)
                die(path, "cannot write");
        close(fd);
}

/* Conversations as they are in a store, without the syncs that making so many would need. */
static inline void populate(const char *root, int count)
{
        char path[400], meta[200], *log = NULL;
        struct steno_store *store;
        struct steno_error err = {0};
        size_t n = 0;
        int dir;
        if (steno_open(root, NULL, &store, &err))
                die(root, err.msg);
        steno_conv_close(filled(store, "first", 1, prompt));
        steno_close(store);
        const struct fs *fs = fs_real();
        snprintf(path, sizeof path, "%s/projects/default/conversations/first", root);
        dir = fs->open_root(fs, path, false);
        if (dir < 0 || fs_slurp(fs, dir, "messages.jsonl", 1 << 20, &log, &n))
                die(path, "cannot read");
        fs->close(fs, dir);
        for (int i = 1; i < count; i++) {
                int at =
                    snprintf(path, sizeof path, "%s/projects/default/conversations/c%07d", root, i);
                int m = snprintf(meta, sizeof meta,
                    "{\"id\":\"c%07d\",\"project\":\"default\",\"createdAt\":"
                    "\"2026-01-01T00:%02d:%02d.000Z\",\"title\":\"number %d\"}\n",
                    i, i / 60 % 60, i % 60, i);
                if (mkdir(path, 0700))
                        die(path, "cannot make it");
                snprintf(path + at, sizeof path - (size_t)at, "/meta.json");
                put(path, meta, (size_t)m);
                snprintf(path + at, sizeof path - (size_t)at, "/messages.jsonl");
                put(path, log, n);
        }
        free(log);
}

#endif
