/*
 * run_read.c - reading, following and listing journals (run.h), and finding lines in them
 * (run_read.h). Takes no lock, except to see for a moment whether a writer has one.
 */
#include "store/files/run_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/watch.h"
#include "model/event.h"
#include "store/files/conv.h"

#define PATH_SIZE (PLAIN_NAME_MAX + 16)
#define SUFFIX ".jsonl"
#define BLOCK (64 * KIB)

/* ---- walking ---- */

void run_cursor_init(struct run_cursor *c, const struct fs *fs, int fd, uint64_t at, uint64_t end)
{
        *c = (struct run_cursor){.damaged = 0};
        line_reader_init(&c->in, fs, fd, BLOCK, at, end);
}

void run_cursor_release(struct run_cursor *c)
{
        line_reader_release(&c->in);
}

int run_next(struct run_cursor *c, struct run_event *out, struct steno_error *err)
{
        struct str line;
        uint64_t at;
        int rc;
        while ((rc = line_reader_next(&c->in, &line, &at, err)) > 0) {
                if (rc == 1 && backend_event_read(line, out))
                        return 1;
                c->damaged++; /* J3 */
        }
        return rc;
}

/* ---- searching ---- */

int run_last_line(const struct fs *fs, int fd, uint64_t size, struct buf *line,
    struct run_event *out, uint64_t *end, struct steno_error *err)
{
        uint64_t behind, start;
        int rc = line_reader_feed_before(fs, fd, size, 1, &behind, err);
        for (; rc == 0 && behind > 0; behind = start) {
                rc = line_reader_feed_before(fs, fd, behind - 1, 1, &start, err);
                if (rc)
                        break;
                if (behind - start > LINE_READ_MAX)
                        continue;
                buf_clear(line);
                char *to = buf_reserve(line, (size_t)(behind - start));
                if (!to)
                        return buf_check(line, err);
                ssize_t got = fs_pread_all(fs, fd, to, (size_t)(behind - start), (off_t)start);
                if (got < 0)
                        return error_sys(err, (int)got, "reading a run's journal");
                line->n = (size_t)got;
                if (line->n && backend_event_read(str_span(line->p, line->n - 1), out)) {
                        *end = behind;
                        return 1;
                }
        }
        if (rc == 0)
                *end = 0;
        return rc;
}

int run_seek(
    const struct fs *fs, int fd, uint64_t size, uint64_t seq, uint64_t *at, struct steno_error *err)
{
        /* Every line that begins before lo has a seq <= seq. */
        uint64_t lo = 0, hi = seq ? size : 0;
        int rc = 0;
        while (rc == 0 && hi > lo && hi - lo > BLOCK) {
                uint64_t mid = lo + (hi - lo) / 2;
                uint64_t start;
                struct run_cursor c;
                struct run_event e;
                rc = line_reader_feed_before(fs, fd, mid, 1, &start, err);
                if (rc)
                        break;
                if (start < lo)
                        start = lo;
                run_cursor_init(&c, fs, fd, start, size);
                rc = run_next(&c, &e, err);
                if (rc == 1 && e.seq <= seq && c.in.next > lo)
                        lo = c.in.next;
                else if (rc >= 0)
                        hi = mid;
                if (rc > 0)
                        rc = 0;
                run_cursor_release(&c);
        }
        if (rc == 0)
                *at = lo;
        return rc;
}

/* ---- a journal ---- */

/* The open journal and its size, or a negative code. */
static int open_journal(
    struct files_conv *conv, const char *name, uint64_t *size, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        char path[PATH_SIZE];
        struct stat st;
        snprintf(path, sizeof path, "runs/%s" SUFFIX, name);
        int fd = fs->open(fs, conv->dir, path, O_RDONLY, 0);
        if (fd == -ENOENT)
                return error_set(err, STENO_ENOTFOUND, "no run \"%s\"", name);
        int rc = fd < 0 ? fd : fs->fstat(fs, fd, &st);
        if (rc) {
                if (fd >= 0)
                        fs->close(fs, fd);
                return error_sys(err, rc, "opening a run's journal");
        }
        *size = (uint64_t)st.st_size;
        return fd;
}

int run_read(struct files_conv *conv, const char *name, uint64_t after, run_event_fn each,
    void *ctx, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct run_cursor c;
        struct run_event e;
        uint64_t size, from = 0;
        int fd = open_journal(conv, name, &size, err);
        if (fd < 0)
                return fd;
        int rc = run_seek(fs, fd, size, after, &from, err);
        run_cursor_init(&c, fs, fd, from, size);
        while (rc == 0 && (rc = run_next(&c, &e, err)) == 1)
                rc = e.seq > after ? each(ctx, &e) : 0;
        run_cursor_release(&c);
        fs->close(fs, fd);
        return rc;
}

/* ---- following ---- */

static int last_seq(
    const struct fs *fs, int fd, struct buf *line, uint64_t *seq, struct steno_error *err)
{
        struct run_event e;
        struct stat st;
        uint64_t end;
        int rc = fs->fstat(fs, fd, &st);
        if (rc)
                return error_sys(err, rc, "looking at a run's journal");
        rc = run_last_line(fs, fd, (uint64_t)st.st_size, line, &e, &end, err);
        *seq = rc == 1 ? e.seq : 0;
        return rc < 0 ? rc : 0;
}

int run_wait(struct files_conv *conv, const char *name, uint64_t after, int timeout_ms,
    struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct watch watch;
        struct buf line;
        uint64_t size, seq = 0;
        int fd = open_journal(conv, name, &size, err);
        if (fd < 0)
                return fd;
        int rc;
        buf_init(&line, 0);
        watch_begin(&watch, fd, timeout_ms);
        do
                rc = last_seq(fs, fd, &line, &seq, err);
        while (rc == 0 && seq <= after && watch_wait(&watch));
        watch_end(&watch);
        buf_release(&line);
        fs->close(fs, fd);
        return rc ? rc : seq > after;
}

/* ---- looking ---- */

static char *dup_data(struct str s)
{
        char *z = malloc(s.n + 1);
        if (!z)
                return NULL;
        memcpy(z, s.p, s.n);
        z[s.n] = '\0';
        return z;
}

static int read_head(
    const struct fs *fs, int fd, uint64_t size, struct run_state *s, struct steno_error *err)
{
        struct run_cursor c;
        struct run_event e;
        run_cursor_init(&c, fs, fd, 0, size);
        int rc = run_next(&c, &e, err);
        bool is_head = rc == 1 && e.seq == 0 && str_is(e.type, "run");
        if (rc >= 0) {
                s->head = dup_data(is_head ? e.data : STR("{}"));
                if (is_head)
                        snprintf(s->at, sizeof s->at, "%.*s", (int)e.at.n, e.at.p);
                rc = s->head ? 0 : error_nomem(err);
        }
        run_cursor_release(&c);
        return rc;
}

static int read_last(
    const struct fs *fs, int fd, uint64_t size, struct run_state *s, struct steno_error *err)
{
        struct buf line;
        struct run_event e;
        uint64_t end;
        buf_init(&line, 0);
        int rc = run_last_line(fs, fd, size, &line, &e, &end, err);
        if (rc >= 0) {
                bool event = rc == 1 && e.seq > 0;
                s->last = dup_data(event ? e.data : STR("{}"));
                s->seq = event ? e.seq : 0;
                s->finished = event && event_is(e.type, STENO_EVENT_RUN_FINISHED);
                rc = s->last ? 0 : error_nomem(err);
        }
        buf_release(&line);
        return rc;
}

int run_look(
    struct files_conv *conv, const char *name, struct run_state *out, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct run_state s = {0};
        struct stat st;
        uint64_t size;
        int fd = open_journal(conv, name, &size, err);
        if (fd < 0)
                return fd;
        /* First the lock, then the size: a writer that ended in between has written its last line
         * by the time the size is read. */
        s.held = fs->flock(fs, fd, LOCK_SH | LOCK_NB) == -EWOULDBLOCK;
        int rc = fs->fstat(fs, fd, &st);
        if (rc)
                rc = error_sys(err, rc, "looking at a run's journal");
        if (rc == 0)
                rc = read_head(fs, fd, (uint64_t)st.st_size, &s, err);
        if (rc == 0)
                rc = read_last(fs, fd, (uint64_t)st.st_size, &s, err);
        fs->close(fs, fd);
        if (rc)
                backend_run_state_release(&s);
        else
                *out = s;
        return rc;
}

int run_verify(
    struct files_conv *conv, const char *name, struct run_damage *out, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct run_cursor c;
        struct run_event e;
        uint64_t size, good = 0, end = 0, seq = 0;
        int fd = open_journal(conv, name, &size, err);
        if (fd < 0)
                return fd;
        run_cursor_init(&c, fs, fd, 0, size);
        int rc;
        while ((rc = run_next(&c, &e, err)) == 1) {
                if (end > 0 && e.seq <= seq)
                        c.damaged++;
                seq = e.seq;
                end = c.in.next;
                good = c.damaged;
        }
        run_cursor_release(&c);
        fs->close(fs, fd);
        /* What cannot be read behind the last good line is the tail, not damage before it. */
        if (rc == 0)
                *out = (struct run_damage){.lines = good, .tail = size - end};
        return rc;
}

/* ---- listing ---- */

struct names {
        int (*each)(void *ctx, const char *name);
        void *ctx;
        bool all; /* also what is not a file */
};

static int hand_name(void *ctx, const char *name, unsigned char type)
{
        struct names *w = ctx;
        char bare[PLAIN_NAME_MAX + 1];
        size_t n = strlen(name), suffix = sizeof SUFFIX - 1;
        if (!w->all && (type == DT_DIR || type == DT_LNK))
                return 0; /* no journal; steno check tells of it */
        if (name[0] == '.' || n <= suffix || n - suffix > PLAIN_NAME_MAX ||
            strcmp(name + n - suffix, SUFFIX) != 0)
                return 0;
        memcpy(bare, name, n - suffix);
        bare[n - suffix] = '\0';
        return w->each(w->ctx, bare);
}

static int list_runs(struct files_conv *conv, struct names w, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        int dir = fs->open(fs, conv->dir, "runs", O_RDONLY | O_DIRECTORY, 0);
        if (dir == -ENOENT)
                return 0;
        if (dir < 0)
                return error_sys(err, dir, "listing runs");
        int sys;
        int rc = fs_each(fs, dir, hand_name, &w, &sys);
        fs->close(fs, dir);
        return sys ? error_sys(err, sys, "listing runs") : rc;
}

int run_each(struct files_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err)
{
        return list_runs(conv, (struct names){each, ctx, false}, err);
}

int run_each_name(struct files_conv *conv, int (*each)(void *ctx, const char *name), void *ctx,
    struct steno_error *err)
{
        return list_runs(conv, (struct names){each, ctx, true}, err);
}

bool run_exists(struct files_conv *conv, const char *name)
{
        const struct fs *fs = conv->store->env->fs;
        char path[PATH_SIZE];
        struct stat st;
        snprintf(path, sizeof path, "runs/%s" SUFFIX, name);
        return fs->stat(fs, conv->dir, path, &st) == 0;
}
