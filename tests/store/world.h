/*
 * world.h - a store with one conversation, played without syncs and with reads that are counted,
 * for tests that change its files behind its back.
 */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "support/seed.h"
#include "play.h"
#include "api/api_store.h"

#define FOLDER "projects/default/conversations/conv-0"

struct world {
        struct scratch scratch;
        struct play play;
        struct fs counting; /* counts bytes that are read */
        char log[600];
        char ids[600];
};

static uint64_t bytes_read;

static inline ssize_t counting_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        (void)self;
        ssize_t got = fs_real()->pread(fs_real(), fd, p, n, at);
        bytes_read += got > 0 ? (uint64_t)got : 0;
        return got;
}

static inline int world_make(void **state)
{
        struct world *w = malloc(sizeof *w);
        if (scratch_make(&w->scratch))
                return -1;
        w->counting = *play_fs();
        w->counting.pread = counting_pread;
        play_init(&w->play, &w->counting, w->scratch.path);
        snprintf(w->log, sizeof w->log, "%s/" FOLDER "/messages.jsonl", w->scratch.path);
        snprintf(w->ids, sizeof w->ids, "%s/" FOLDER "/ids.idx", w->scratch.path);
        *state = w;
        return play_open(&w->play) || play_create(&w->play, 0);
}

static inline int world_drop(void **state)
{
        struct world *w = *state;
        play_release(&w->play);
        scratch_remove(&w->scratch);
        free(w);
        return 0;
}

static inline off_t size_of(const char *path)
{
        struct stat st;
        return stat(path, &st) ? -1 : st.st_size;
}

static inline char *slurp(const char *path, size_t *n)
{
        off_t size = size_of(path);
        *n = size < 0 ? 0 : (size_t)size;
        char *p = malloc(*n + 1);
        assert_non_null(p);
        int fd = open(path, O_RDONLY);
        assert_int_equal(read(fd, p, *n), (ssize_t)*n);
        close(fd);
        return p;
}

static inline void spill(const char *path, const char *p, size_t n)
{
        int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
        assert_int_equal(write(fd, p, n), (ssize_t)n);
        close(fd);
}

/* Files in the quarantine, and the bytes in the last of them. */
static inline int quarantined(struct world *w, char **bytes, size_t *n)
{
        char path[900];
        int count = 0;
        snprintf(path, sizeof path, "%s/quarantine", w->scratch.path);
        DIR *d = opendir(path);
        for (struct dirent *e; d && (e = readdir(d));) {
                size_t len = strlen(e->d_name);
                if (len < 6 || strcmp(e->d_name + len - 6, ".bytes") != 0)
                        continue;
                count++;
                snprintf(path, sizeof path, "%s/quarantine/%s", w->scratch.path, e->d_name);
                if (bytes)
                        *bytes = slurp(path, n);
                unlink(path);
                memcpy(path + strlen(path) - 6, ".json", 6);
                assert_true(size_of(path) > 0);
        }
        if (d)
                closedir(d);
        return count;
}

struct count {
        uint64_t good;
        uint64_t damaged;
};

static inline int count_record(void *ctx, const struct steno_record *r)
{
        struct count *c = ctx;
        if (strcmp(steno_record_kind(r), "damaged") == 0)
                c->damaged++;
        else
                c->good++;
        return 0;
}

static inline struct count reopen_and_count(struct world *w)
{
        struct count c = {0};
        play_close(&w->play);
        assert_int_equal(play_open(&w->play), 0);
        assert_int_equal(play_reopen(&w->play, 0), 0);
        assert_int_equal(steno_read(w->play.open[0], 0, 0, count_record, &c, NULL), 0);
        return c;
}

#endif
