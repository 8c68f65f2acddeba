/*
 * run.c - writing a run's journal: making it, taking it over, events from several threads, and
 * writing it anew for purge.
 *
 * Lines are written one behind the other under a mutex; syncs happen outside of it, so that one
 * sync serves everybody who wrote before it began (J5).
 */
#include "store/files/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "model/event.h"
#include "store/files/conv.h"
#include "store/files/run_read.h"

#define NAME_SIZE (PLAIN_NAME_MAX + 8)
#define BLANK "{\"purged\":true}"
#define NEW_NAME ".purge"

struct run_log {
        struct backend_run base;
        const struct env *env;
        int fd;
        pthread_mutex_t mutex;
        pthread_cond_t synced_more;
        struct buf line;
        uint64_t end;
        uint64_t seq; /* the last that was given out */
        uint64_t synced_end;
        uint64_t synced_seq;
        bool syncing;
        bool poisoned;
        bool finished; /* run_finished is written: nothing follows it */
};

static struct run_log *log_new(const struct env *env, int fd)
{
        struct run_log *log = calloc(1, sizeof *log);
        if (!log)
                return NULL;
        log->base.ops = &files_backend;
        log->env = env;
        log->fd = fd;
        pthread_mutex_init(&log->mutex, NULL);
        wait_init(&log->synced_more);
        buf_init(&log->line, 0);
        return log;
}

static void log_free(struct run_log *log)
{
        if (log->fd >= 0)
                log->env->fs->close(log->env->fs, log->fd); /* lets go of the lock as well (J2) */
        pthread_mutex_destroy(&log->mutex);
        pthread_cond_destroy(&log->synced_more);
        buf_release(&log->line);
        free(log);
}

/* ---- making one ---- */

static int first_line(struct files_conv *conv, struct str id, struct str mode, struct buf *out)
{
        char at[TIME_TEXT], boot[40];
        struct buf data;
        buf_init(&data, 64 * KIB);
        struct jsonw w = jsonw_to(&data);
        conv->store->env->boot(conv->store->env, boot);
        time_format(conv->store->env->now(conv->store->env), at);
        jsonw_object(&w);
        jsonw_field_u64(&w, "v", 1);
        jsonw_field_str(&w, "id", id);
        jsonw_field_cstr(&w, "project", conv->project_id);
        jsonw_field_cstr(&w, "conversation", conv->id);
        jsonw_field_str(&w, "mode", mode);
        jsonw_field_cstr(&w, "boot", boot);
        jsonw_object_end(&w);
        backend_event_put(
            out, &(struct run_event){.at = str_of(at), .type = STR("run"), .data = buf_str(&data)});
        int rc = data.failed ? data.failed : out->failed;
        buf_release(&data);
        return rc;
}

/* Writes the first line aside, locked, and gives it its name (J1). */
static int place(struct files_conv *conv, int dir, const char *name, struct run_log *log)
{
        const struct fs *fs = log->env->fs;
        char aside[64];
        id_make(log->env, ".new-", aside);
        log->fd = fs->open(fs, dir, aside, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (log->fd < 0)
                return log->fd;
        int rc = fs->flock(fs, log->fd, LOCK_EX);
        if (rc == 0)
                rc = fs_pwrite_all(fs, log->fd, log->line.p, log->line.n, 0);
        if (rc == 0)
                rc = fs->fdatasync(fs, log->fd);
        if (rc == 0 && recent_note(conv, NULL))
                rc = -EIO;
        if (rc == 0)
                rc = fs->rename_new(fs, dir, aside, dir, name);
        if (rc)
                fs->unlink(fs, dir, aside, 0);
        else
                rc = fs->fsync(fs, dir);
        return rc;
}

int run_create(struct files_conv *conv, struct str id, struct str mode, struct run_log **out,
    struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        char name[NAME_SIZE];
        struct run_log *log = log_new(conv->store->env, -1);
        if (!log || id_file_name(id, name) || first_line(conv, id, mode, &log->line)) {
                if (log)
                        log_free(log);
                return error_nomem(err);
        }
        snprintf(name + strlen(name), 7, ".jsonl");
        int rc = files_conv_lock(conv, err);
        if (rc) {
                log_free(log);
                return rc;
        }
        int dir = fs_open_dir(fs, conv->dir, "runs", true);
        int sys = dir < 0 ? dir : place(conv, dir, name, log);
        if (dir >= 0)
                fs->close(fs, dir);
        files_conv_unlock(conv);
        if (sys) {
                log_free(log);
                return sys == -EEXIST ? error_set(err, STENO_ECONFLICT,
                                            "run \"%.*s\" exists already", (int)id.n, id.p)
                                      : error_sys(err, sys, "making a run's journal");
        }
        log->end = log->synced_end = log->line.n;
        *out = log;
        return 0;
}

/* ---- taking one over ---- */

/* 0: it is ours; 1: a writer has it. Processes that only look hold a shared lock for a moment. */
static int lock_journal(const struct fs *fs, int fd)
{
        for (;;) {
                int rc = fs->flock(fs, fd, LOCK_EX | LOCK_NB);
                if (rc != -EWOULDBLOCK)
                        return rc;
                rc = fs->flock(fs, fd, LOCK_SH | LOCK_NB);
                if (rc == -EWOULDBLOCK)
                        return 1;
                if (rc)
                        return rc;
                fs->flock(fs, fd, LOCK_UN);
        }
}

/* Moves a torn end to the quarantine, and continues behind every number that was used. */
static int find_end(
    struct files_conv *conv, const char *name, struct run_log *log, struct steno_error *err)
{
        const struct fs *fs = log->env->fs;
        struct run_event last;
        struct stat st;
        char file[NAME_SIZE + 16];
        int rc = fs->fstat(fs, log->fd, &st);
        if (rc)
                return error_sys(err, rc, "looking at a run's journal");
        rc = run_last_line(fs, log->fd, (uint64_t)st.st_size, &log->line, &last, &log->end, err);
        if (rc < 0)
                return rc;
        log->seq = (rc ? last.seq : 0) + RUN_AHEAD; /* J4 */
        log->synced_seq = log->seq;
        if (log->end < (uint64_t)st.st_size) {
                snprintf(file, sizeof file, "runs/%s.jsonl", name);
                rc = quarantine_bytes(conv, log->fd, file, log->end, (uint64_t)st.st_size,
                    "torn tail of a journal", err);
                if (rc < 0)
                        return rc;
                rc = fs->ftruncate(fs, log->fd, (off_t)log->end);
        } else {
                rc = 0;
        }
        return rc ? error_sys(err, rc, "cutting a torn tail off a run's journal") : 0;
}

int run_take_over(
    struct files_conv *conv, const char *name, struct run_log **out, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        char path[NAME_SIZE + 16];
        snprintf(path, sizeof path, "runs/%s.jsonl", name);
        int fd = fs->open(fs, conv->dir, path, O_RDWR, 0);
        if (fd == -ENOENT)
                return error_set(err, STENO_ENOTFOUND, "no run \"%s\"", name);
        if (fd < 0)
                return error_sys(err, fd, "opening a run's journal");
        struct run_log *log = NULL;
        int rc = lock_journal(fs, fd);
        if (rc == 0) {
                log = log_new(conv->store->env, fd);
                rc = log ? find_end(conv, name, log, err) : error_nomem(err);
        } else if (rc < 0) {
                rc = error_sys(err, rc, "locking a run's journal");
        }
        if (rc && log)
                log_free(log);
        else if (rc)
                fs->close(fs, fd);
        else
                *out = log;
        return rc;
}

/* ---- events ---- */

static int is_poisoned(struct steno_error *err)
{
        return error_set(err, STENO_EPOISONED, "a sync of the run's journal failed earlier");
}

/* Returns when all before `end` is synced. The caller holds the mutex, which is released while the
 * sync runs. */
static int sync_to(struct run_log *log, uint64_t end, struct steno_error *err)
{
        const struct fs *fs = log->env->fs;
        while (!log->poisoned && log->synced_end < end) {
                if (log->syncing) {
                        pthread_cond_wait(&log->synced_more, &log->mutex);
                        continue;
                }
                uint64_t to_end = log->end, to_seq = log->seq;
                log->syncing = true;
                pthread_mutex_unlock(&log->mutex);
                int rc = fs->fdatasync(fs, log->fd);
                pthread_mutex_lock(&log->mutex);
                log->syncing = false;
                if (rc) {
                        log->poisoned = true;
                } else {
                        log->synced_end = to_end;
                        log->synced_seq = to_seq;
                }
                pthread_cond_broadcast(&log->synced_more);
                if (rc)
                        return error_sys(err, rc, "syncing a run's journal");
        }
        return log->poisoned && log->synced_end < end ? is_poisoned(err) : 0;
}

/* One line at the end. Under the mutex. */
static int put_line(struct run_log *log, struct str type, struct str data, struct steno_error *err)
{
        const struct fs *fs = log->env->fs;
        char at[TIME_TEXT];
        struct buf escaped;
        buf_init(&escaped, 64 * KIB);
        json_put_escaped(&escaped, type);
        time_format(log->env->now(log->env), at);
        buf_clear(&log->line);
        backend_event_put(&log->line,
            &(struct run_event){
                .seq = log->seq + 1, .at = str_of(at), .type = buf_str(&escaped), .data = data});
        int rc = escaped.failed ? buf_check(&escaped, err) : buf_check(&log->line, err);
        buf_release(&escaped);
        if (rc)
                return rc;
        int sys = fs_pwrite_all(fs, log->fd, log->line.p, log->line.n, (off_t)log->end);
        if (sys) {
                if (fs->ftruncate(fs, log->fd, (off_t)log->end) != 0)
                        log->poisoned = true;
                return error_sys(err, sys, "writing a run's journal");
        }
        log->seq++;
        log->end += log->line.n;
        if (log->line.cap > MIB)
                buf_release(&log->line);
        return 0;
}

int run_write(struct run_log *log, struct str type, struct str data, bool sync, uint64_t *seq,
    struct steno_error *err)
{
        uint64_t mine = 0;
        pthread_mutex_lock(&log->mutex);
        int rc = log->poisoned ? is_poisoned(err) : 0;
        if (rc == 0 && log->finished)
                rc = error_set(err, STENO_EINVAL, "the run has finished: no event can follow");
        while (rc == 0 && log->seq + 1 > log->synced_seq + RUN_AHEAD) /* J4 */
                rc = sync_to(log, log->end, err);
        if (rc == 0)
                rc = put_line(log, type, data, err);
        if (rc == 0)
                log->finished = event_is(type, STENO_EVENT_RUN_FINISHED);
        mine = log->seq;
        if (rc == 0 && sync)
                rc = sync_to(log, log->end, err);
        pthread_mutex_unlock(&log->mutex);
        if (rc == 0 && seq)
                *seq = mine;
        return rc;
}

void run_log_close(struct run_log *log)
{
        if (!log)
                return;
        pthread_mutex_lock(&log->mutex);
        sync_to(log, log->end, NULL);
        pthread_mutex_unlock(&log->mutex);
        log_free(log);
}

/* ---- without what was said in it ---- */

/* A journal is written anew beside the old one, which it replaces. Events keep their seq, time and
 * type; the data of those that may quote a message becomes {"purged":true}. Events that only say
 * how the run went are kept. */

/* A run_error may quote a provider, which may quote the message. */
static const enum steno_event KEPT[] = {STENO_EVENT_REQUEST, STENO_EVENT_DISPATCH,
    STENO_EVENT_OUTPUT, STENO_EVENT_RUN_STARTED, STENO_EVENT_RUN_FINISHED};

static bool is_kept(const struct run_event *e)
{
        for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++)
                if (event_is(e->type, KEPT[i]))
                        return true;
        return str_is(e->type, "run") || str_is(e->data, BLANK);
}

/*
 * The new text in `out`; *changed when it differs. Lines that cannot be read do not stay. 1: the
 * run did not finish, so its outcomes may still be needed.
 */
static int blank_lines(const struct fs *fs, int fd, uint64_t size, struct buf *out, bool *changed,
    struct steno_error *err)
{
        struct run_cursor c;
        struct run_event e;
        int rc;
        bool finished = false;
        run_cursor_init(&c, fs, fd, 0, size);
        *changed = false;
        while ((rc = run_next(&c, &e, err)) == 1) {
                finished = event_is(e.type, STENO_EVENT_RUN_FINISHED);
                if (!is_kept(&e)) {
                        e.data = STR(BLANK);
                        *changed = true;
                }
                backend_event_put(out, &e);
        }
        run_cursor_release(&c);
        if (rc == 0 && !finished)
                return 1;
        return rc ? rc : buf_check(out, err);
}

static int replace(const struct fs *fs, int dir, const char *file, const struct buf *text)
{
        int fd = fs->open(fs, dir, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
        int rc = fd < 0 ? fd : fs_pwrite_all(fs, fd, text->p, text->n, 0);
        if (rc == 0)
                rc = fs->fdatasync(fs, fd);
        if (rc == 0)
                rc = fs->rename(fs, dir, NEW_NAME, dir, file);
        if (rc == 0)
                rc = fs->fsync(fs, dir);
        if (fd >= 0)
                fs->close(fs, fd);
        return rc;
}

int run_blank(struct files_conv *conv, const char *name, uint64_t *bytes, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        char file[PLAIN_NAME_MAX + 8];
        struct stat st;
        struct buf text;
        bool changed = false;
        snprintf(file, sizeof file, "%s.jsonl", name);
        int dir = fs->open(fs, conv->dir, "runs", O_RDONLY | O_DIRECTORY, 0);
        int fd = dir < 0 ? dir : fs->open(fs, dir, file, O_RDWR, 0);
        if (fd < 0) {
                if (dir >= 0)
                        fs->close(fs, dir);
                return fd == -ENOENT ? STENO_ENOTFOUND
                                     : error_sys(err, fd, "opening a run's journal");
        }
        buf_init(&text, 0);
        int rc = fs->flock(fs, fd, LOCK_EX | LOCK_NB) == 0 ? 0 : 1;
        if (rc == 0) {
                int sys = fs->fstat(fs, fd, &st);
                rc = sys ? error_sys(err, sys, "looking at a run's journal")
                         : blank_lines(fs, fd, (uint64_t)st.st_size, &text, &changed, err);
        }
        if (rc == 0 && changed) {
                int sys = replace(fs, dir, file, &text);
                if (sys)
                        rc = error_sys(err, sys, "rewriting a run's journal");
                else if ((uint64_t)st.st_size > text.n)
                        *bytes += (uint64_t)st.st_size - text.n;
        }
        buf_release(&text);
        fs->close(fs, fd);
        fs->close(fs, dir);
        return rc;
}
