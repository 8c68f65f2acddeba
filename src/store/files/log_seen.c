/* log_seen.c - see log_seen.h */
#include "store/files/log_seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/files/conv.h"

/* A log with more of them is walked, or its index asked, each time. */
#define AMENDS_KEPT 1024
#define TRACE 64

/* All under the mutex of its conversation, but for the descriptor, which is constant. */
struct log_seen {
        unsigned refs; /* one of the conversation, one of each reader */
        int fd;
        dev_t dev;
        ino_t ino;
        struct log_end at; /* V1; size 0: not known */
        struct timespec changed;
        uint64_t state;        /* grows with every other end */
        uint64_t amends_state; /* V2: when they were found; 0: they are not known */
        struct log_end amends_at;
        char amends_trace[TRACE]; /* the bytes before its synced mark */
        uint64_t *amends;
        size_t amend_count;
};

/* Gives a reference back. Under the mutex, or when nobody else has the conversation. */
void log_seen_release(const struct fs *fs, struct log_seen *seen)
{
        if (!seen || --seen->refs)
                return;
        fs->close(fs, seen->fd);
        free(seen->amends);
        free(seen);
}

void log_seen_abandon(const struct fs *fs, const struct log_seen *seen)
{
        if (seen)
                fs->close(fs, seen->fd);
}

static bool is_same_time(struct timespec a, struct timespec b)
{
        return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Takes a reference of what is open already where the name still leads to it. True: r->at is
 * known. */
static bool take_seen(struct log_reader *r, const struct stat *st)
{
        struct files_conv *c = r->conv;
        bool known = false;
        conv_touch(c->store, st->st_ctim);
        pthread_mutex_lock(&c->mutex);
        struct log_seen *seen = c->seen;
        if (seen && seen->ino == st->st_ino && seen->dev == st->st_dev) {
                seen->refs++;
                r->seen = seen;
                r->at = seen->at;
                known = seen->at.size && seen->at.size == (uint64_t)st->st_size &&
                        is_same_time(seen->changed, st->st_ctim);
                r->state = known ? seen->state : 0;
        }
        pthread_mutex_unlock(&c->mutex);
        return known;
}

/* Opens the file that has the name now. 0, also where there is none, or a negative errno. */
static int open_anew(struct log_reader *r, struct stat *st)
{
        struct files_conv *c = r->conv;
        int fd = r->fs->open(r->fs, c->dir, "messages.jsonl", O_RDONLY, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        int rc = r->fs->fstat(r->fs, fd, st);
        struct log_seen *seen = rc ? NULL : calloc(1, sizeof *seen);
        if (!seen) {
                r->fs->close(r->fs, fd);
                return rc ? rc : -ENOMEM;
        }
        *seen = (struct log_seen){.refs = 2, .fd = fd, .dev = st->st_dev, .ino = st->st_ino};
        pthread_mutex_lock(&c->mutex);
        log_seen_release(r->fs, c->seen);
        c->seen = r->seen = seen;
        pthread_mutex_unlock(&c->mutex);
        return 0;
}

/* `st` is from before the look. */
static void keep_end(struct log_reader *r, const struct stat *st)
{
        const struct log_end *at = &r->at;
        bool plain = at->last_seq && at->end == at->size && !at->inside_line && !at->lacks_end;
        if (!r->seen || !plain || at->size != (uint64_t)st->st_size)
                return;
        pthread_mutex_lock(&r->conv->mutex);
        r->seen->at = *at;
        r->seen->changed = st->st_ctim;
        r->state = ++r->seen->state;
        pthread_mutex_unlock(&r->conv->mutex);
}

int log_reader_open(struct files_conv *c, struct log_reader *r, struct steno_error *err)
{
        struct stat st = {0};
        *r = (struct log_reader){.conv = c, .fs = c->store->env->fs, .fd = -1};
        int sys = r->fs->stat(r->fs, c->dir, "messages.jsonl", &st);
        bool known = sys == 0 && S_ISREG(st.st_mode) && take_seen(r, &st);
        sys = r->seen ? 0 : open_anew(r, &st);
        if (sys)
                return error_sys(err, sys, "reading messages.jsonl");
        r->fd = r->seen ? r->seen->fd : -1;
        int rc = known ? 0 : conv_find_end(c, r->fd, NULL, &r->ids, &r->at, err);
        if (rc == 0 && !known)
                keep_end(r, &st);
        if (rc)
                log_reader_close(r);
        return rc;
}

struct ids *log_reader_ids(struct log_reader *r)
{
        struct files_conv *c = r->conv;
        if (!r->ids.env)
                ids_open(&r->ids, c->store->env, c->store->boot, c->dir, r->seen->ino);
        return &r->ids;
}

void log_reader_close(struct log_reader *r)
{
        ids_close(&r->ids);
        if (!r->seen)
                return;
        pthread_mutex_lock(&r->conv->mutex);
        log_seen_release(r->fs, r->seen);
        pthread_mutex_unlock(&r->conv->mutex);
}

/* ---- amendments ---- */

/* The last bytes before `at`, the sum of a record among them. */
static bool read_trace(const struct log_reader *r, uint64_t at, char out[TRACE])
{
        size_t n = at < TRACE ? (size_t)at : TRACE;
        memset(out, 0, TRACE);
        return fs_pread_all(r->fs, r->fd, out, n, (off_t)(at - n)) == (ssize_t)n;
}

/* Is the log still the one that it was up to the mark (V2)? */
static bool has_trace(const struct log_reader *r, uint64_t at, const char trace[TRACE])
{
        char now[TRACE];
        return read_trace(r, at, now) && memcmp(now, trace, TRACE) == 0;
}

/* How many of them are up to this seq. */
static size_t count_upto(const uint64_t *seqs, size_t count, uint64_t seq)
{
        while (count && seqs[count - 1] > seq)
                count--;
        return count;
}

bool log_reader_amends(const struct log_reader *r, uint64_t *upto, uint64_t **seqs, size_t *count)
{
        const struct log_seen *seen = r->seen;
        uint64_t *copy = NULL;
        size_t n = 0;
        bool known = false, same = false;
        char trace[TRACE];
        if (!seen)
                return false;
        pthread_mutex_lock(&r->conv->mutex);
        if (seen->amends_state) {
                struct log_mark mark = seen->amends_at.synced;
                same = r->state == seen->amends_state;
                *upto = same ? seen->amends_at.end : mark.size;
                n = same ? seen->amend_count
                         : count_upto(seen->amends, seen->amend_count, mark.seq);
                copy = n ? malloc(n * sizeof *copy) : NULL;
                known = *upto && *upto <= r->at.end && (copy || !n);
                memcpy(trace, seen->amends_trace, TRACE);
        }
        if (known && n)
                memcpy(copy, seen->amends, n * sizeof *copy);
        pthread_mutex_unlock(&r->conv->mutex);
        known = known && (same || has_trace(r, *upto, trace));
        if (known) {
                *seqs = copy;
                *count = n;
        } else {
                free(copy);
        }
        return known;
}

static bool is_news(const struct log_reader *r)
{
        if (!r->state)
                return false;
        pthread_mutex_lock(&r->conv->mutex);
        bool news = r->state > r->seen->amends_state;
        pthread_mutex_unlock(&r->conv->mutex);
        return news;
}

void log_reader_keep_amends(const struct log_reader *r, const uint64_t *seqs, size_t count)
{
        char trace[TRACE];
        if (!is_news(r) || count > AMENDS_KEPT || !read_trace(r, r->at.synced.size, trace))
                return;
        uint64_t *copy = count ? malloc(count * sizeof *copy) : NULL;
        if (count && !copy)
                return;
        if (count)
                memcpy(copy, seqs, count * sizeof *copy);
        pthread_mutex_lock(&r->conv->mutex);
        if (r->state > r->seen->amends_state) {
                uint64_t *before = r->seen->amends;
                r->seen->amends = copy;
                r->seen->amend_count = count;
                r->seen->amends_at = r->at;
                r->seen->amends_state = r->state;
                memcpy(r->seen->amends_trace, trace, TRACE);
                copy = before;
        }
        pthread_mutex_unlock(&r->conv->mutex);
        free(copy);
}
