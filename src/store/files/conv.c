/*
 * conv.c - an open conversation: taking turns, the lock, and knowing what the files say now.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

const char *files_conv_id(const struct files_conv *c)
{
        return c->id;
}

const char *files_conv_project(const struct files_conv *c)
{
        return c->project_id;
}

struct files_store *files_conv_store(const struct files_conv *c)
{
        return c->store;
}

int files_conv_dir(const struct files_conv *c)
{
        return c->dir;
}

/* ---- turns and the lock ---- */

void conv_enter(struct files_conv *c)
{
        pthread_mutex_lock(&c->mutex);
        while (c->busy)
                pthread_cond_wait(&c->turn, &c->mutex);
        c->busy = true;
        pthread_mutex_unlock(&c->mutex);
}

void conv_leave(struct files_conv *c)
{
        pthread_mutex_lock(&c->mutex);
        c->busy = false;
        pthread_cond_broadcast(&c->turn);
        pthread_mutex_unlock(&c->mutex);
}

#define NS_PER_S 1000000000LL

void conv_touch(struct files_store *store, struct timespec changed)
{
        int64_t ns = changed.tv_sec * NS_PER_S + changed.tv_nsec;
        if (ns > __atomic_load_n(&store->touched, __ATOMIC_RELAXED))
                __atomic_store_n(&store->touched, ns, __ATOMIC_RELAXED);
}

struct timespec conv_touched(const struct files_store *store)
{
        int64_t ns = __atomic_load_n(&store->touched, __ATOMIC_RELAXED);
        return (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
}

/* A lock that is not released would block every other process, so releasing is tried again. */
void conv_funlock(struct files_conv *c)
{
        const struct fs *fs = c->store->env->fs;
        for (int tries = 0; tries < 8 && fs->flock(fs, c->dir, LOCK_UN) != 0; tries++)
                ;
}

int conv_flock(struct files_conv *c, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        if (!files_is_ours(c->store))
                return error_set(err, STENO_EINVAL,
                    "the store was opened before fork(); open it again in this process");
        int rc = fs->flock(fs, c->dir, LOCK_EX);
        if (rc)
                return error_sys(err, rc, "locking conversation \"%.100s\"", c->id);
        rc = fs->fstat(fs, c->dir, &st);
        if (rc == 0) {
                c->dir_changed = st.st_ctim;
                if (fs_stamp_is(c->dir_seen, st.st_ctim))
                        return 0;
                rc = fs->stat(fs, c->project->conversations, c->folder, &st);
        }
        if (rc == 0 && st.st_ino == c->dir_ino && st.st_dev == c->dir_dev)
                return 0;
        conv_funlock(c);
        if (rc == 0 || rc == -ENOENT)
                return error_set(
                    err, STENO_ENOTFOUND, "conversation \"%.100s\" was removed", c->id);
        return error_sys(err, rc, "looking for conversation \"%.100s\"", c->id);
}

int files_conv_lock(struct files_conv *c, struct steno_error *err)
{
        conv_enter(c);
        int rc = c->poisoned
                     ? error_set(err, STENO_EPOISONED,
                           "a sync failed earlier on conversation \"%.100s\"; open it again", c->id)
                     : conv_flock(c, err);
        if (rc)
                conv_leave(c);
        return rc;
}

void files_conv_unlock(struct files_conv *c)
{
        conv_funlock(c);
        conv_leave(c);
}

/* ---- what the files say ---- */

void conv_forget(struct files_conv *c)
{
        c->known = false;
        c->dir_seen = (struct fs_stamp){{0}};
        if (c->pairing)
                pairing_free(c->pairing);
        c->pairing = NULL;
}

/* The last seq that ids.idx knows of, whatever log it was about (I4). */
static uint64_t seq_of_any_log(struct files_conv *c)
{
        struct ids ids;
        ids_open(&ids, c->store->env, c->store->boot, c->dir, 0);
        uint64_t seq = ids.mark.seq;
        ids_close(&ids);
        return seq;
}

int conv_find_end(struct files_conv *c, int log, const struct ids *known, struct ids *ids,
    struct log_end *out, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st = {0};
        int sys = log >= 0 ? fs->fstat(fs, log, &st) : 0;
        if (sys == 0 && log >= 0 && !S_ISREG(st.st_mode))
                return error_set(err, STENO_ECORRUPT,
                    "messages.jsonl of conversation \"%.100s\" is not a file", c->id);
        ids_open(ids, c->store->env, c->store->boot, c->dir, st.st_size ? st.st_ino : 0);
        ids->log = st.st_ino;
        if (known && known->log == st.st_ino && known->mark.size > ids->mark.size)
                ids->mark = known->mark;
        /* The mark may be younger than the size that was read; then the size is larger by now. */
        if (sys == 0 && log >= 0 && ids->mark.size > (uint64_t)st.st_size)
                sys = fs->fstat(fs, log, &st);
        int rc = sys ? error_sys(err, sys, "looking at messages.jsonl")
                     : log_find_end(fs, log, (uint64_t)st.st_size, ids->mark, out, err);
        /* This is another file than the one that was written, perhaps a copy of it. Seqs that had
         * receipts are not used again, and their records are not torn, whatever is before them. */
        bool other = rc == 0 && out->size && !ids->mark.size;
        uint64_t known_seq = other ? seq_of_any_log(c) : 0;
        if (known_seq)
                rc = log_find_end_known(fs, log, known_seq, out, err);
        if (rc)
                ids_close(ids);
        if (rc || !other)
                return rc;
        out->lacks_end = out->last_seq && known_seq > out->last_seq;
        if (known_seq > out->last_seq)
                out->last_seq = known_seq;
        return 0;
}

int conv_lacks_log(struct files_conv *c, uint64_t last_seq, struct steno_error *err)
{
        /* All that comes after the log; a seal, outputs and journals outlive a lost meta.json. */
        static const char *const SIGNS[] = {"meta.json", "seal", "artifacts", "runs"};
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        bool had = false;
        for (size_t i = 0; !last_seq && !had && i < sizeof SIGNS / sizeof *SIGNS; i++)
                had = fs->stat(fs, c->dir, SIGNS[i], &st) == 0;
        if (!had)
                return 0;
        return error_set(err, STENO_ECORRUPT,
            "messages.jsonl of conversation \"%.100s\" is missing; put it back, or start over with "
            "steno check --repair",
            c->id);
}

int conv_refuse_changed(struct files_conv *c, int log, const struct ids *ids,
    const struct log_end *e, struct steno_error *err)
{
        struct record rec;
        struct buf line;
        if (e->end || !e->size)
                return 0;
        buf_init(&line, 0);
        int rc = log_read_at(c->store->env->fs, log, e->size, 0, &line, &rec, err);
        const char *lf = rc == STENO_ECORRUPT ? memchr(line.p, '\n', line.n) : NULL;
        bool torn = !lf || memchr(line.p, 0, (size_t)(lf - line.p));
        buf_release(&line);
        if (rc && rc != STENO_ECORRUPT)
                return rc;
        if (torn && (e->last_seq == 0 || ids->mark.seq))
                return 0;
        return error_set(err, STENO_ECORRUPT,
            "no record of conversation \"%.100s\" can be read: were the line ends of "
            "messages.jsonl changed? Put it back, or start over with steno check --repair",
            c->id);
}

/* Opens the log, making it where a folder has none; keeps the open one while it is the same. */
static int open_log(struct files_conv *c, struct stat *st, bool repair, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        bool seen = c->log >= 0 && fs_stamp_is(c->dir_seen, c->dir_changed);
        int rc = seen ? fs->fstat(fs, c->log, st) : fs->stat(fs, c->dir, "messages.jsonl", st);
        if (rc == 0)
                conv_touch(c->store, c->log_changed = st->st_ctim);
        if (rc == 0 && c->log >= 0 && st->st_ino == c->log_ino) {
                if (!seen)
                        c->dir_seen = fs_stamp_of(c->dir_changed, st->st_ctim);
                return 0;
        }
        if (rc && rc != -ENOENT)
                return error_sys(err, rc, "opening messages.jsonl");
        bool made = rc == -ENOENT;
        rc = made && !repair ? conv_lacks_log(c, seq_of_any_log(c), err) : 0;
        if (rc)
                return rc;
        conv_forget(c);
        ids_close(&c->ids);
        if (c->log >= 0)
                fs->close(fs, c->log);
        c->log = fs->open(fs, c->dir, "messages.jsonl", O_RDWR | (made ? O_CREAT : 0), 0600);
        rc = c->log < 0 ? c->log : fs->fstat(fs, c->log, st);
        if (rc == 0 && made)
                rc = fs->fsync(fs, c->dir); /* S3 */
        if (rc)
                return error_sys(err, rc, "opening messages.jsonl");
        c->log_ino = st->st_ino;
        return 0;
}

static int follow_record(
    struct files_conv *c, const struct record *rec, struct arena *arena, struct buf *id)
{
        struct about about;
        int rc = about_read(rec->x, arena, &about, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? rc : 0;
        struct pairing_match *m = arena_alloc(arena, (about.answer_count + 1) * sizeof *m);
        buf_clear(id);
        json_unescape(rec->id, id, NULL);
        if (!m || id->failed)
                return STENO_ENOMEM;
        return pairing_follow(c->pairing, rec->seq, buf_str(id), &about, m, NULL);
}

/* Adds records behind what is known to the pairing window. */
static int follow_pairing(struct files_conv *c, uint64_t from, uint64_t to, struct steno_error *err)
{
        struct log_cursor cursor;
        struct log_line line;
        struct arena arena;
        struct buf id;
        int rc;
        arena_init(&arena);
        buf_init(&id, 0);
        log_cursor_init(&cursor, c->store->env->fs, c->log, from, to);
        while ((rc = log_next(&cursor, &line, err)) == 1) {
                rc = line.damaged ? 0 : follow_record(c, &line.rec, &arena, &id);
                if (rc)
                        break;
                arena_reset(&arena);
        }
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        log_cursor_release(&cursor);
        buf_release(&id);
        arena_release(&arena);
        return rc;
}

int conv_load_pairing(struct files_conv *c, struct steno_error *err)
{
        uint64_t from;
        if (c->pairing)
                return 0;
        c->pairing = pairing_new();
        if (!c->pairing)
                return error_nomem(err);
        int rc = log_seek_last(c->store->env->fs, c->log, c->at.end, PAIRING_WINDOW, &from, err);
        if (rc == 0)
                rc = follow_pairing(c, from, c->at.end, err);
        if (rc) {
                pairing_free(c->pairing);
                c->pairing = NULL;
        }
        return rc;
}

/* A torn tail goes to the quarantine; then the log ends where it is whole. */
static int cut_tail(struct files_conv *c, struct log_end *e, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        int rc = quarantine_log(c, e->end, e->size, "torn tail", err);
        if (rc)
                return rc;
        rc = fs->ftruncate(fs, c->log, (off_t)e->end);
        if (rc == 0) {
                /* Before anything is written there: else a whole record of the torn span could
                 * come back behind a new one of the right length. */
                rc = fs->fdatasync(fs, c->log);
                if (rc)
                        c->poisoned = true; /* S5 */
        }
        if (rc)
                return error_sys(err, rc, "cutting a torn tail off messages.jsonl");
        e->size = e->end;
        e->synced = (struct log_mark){e->end, e->last_seq};
        return 0;
}

/*
 * There is damage at the end, or records are missing there. The next record must not share a line
 * with the damage. It must not be in one span with the records before it either, because a gap in a
 * span counts as torn (L4).
 */
static int close_span(struct files_conv *c, struct log_end *e, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        char last = '\n';
        ssize_t got = e->end ? fs_pread_all(fs, c->log, &last, 1, (off_t)e->end - 1) : 0;
        int rc = got < 0 ? (int)got : 0;
        if (rc == 0 && last != '\n') {
                rc = fs_pwrite_all(fs, c->log, "\n", 1, (off_t)e->end);
                e->end += rc == 0;
        }
        if (rc == 0) {
                rc = fs->fdatasync(fs, c->log);
                c->poisoned = rc != 0; /* S5 */
        }
        if (rc)
                return error_sys(err, rc, "ending a damaged line of messages.jsonl");
        e->size = e->end;
        e->synced = (struct log_mark){e->end, e->last_seq};
        return 0;
}

/* A process that reserved blocks may have been killed before it gave them back. */
static bool has_spare_blocks(const struct stat *st)
{
        return (uint64_t)st->st_blocks * 512 > (uint64_t)st->st_size + 8 * KIB;
}

/* Makes the log end where its last whole batch does, and ids.idx with it. */
static int mend_end(struct files_conv *c, struct log_end *e, struct steno_error *err)
{
        int rc = 0;
        if (e->last_seq < c->highest_seq) { /* cut off, or replaced, under us */
                e->last_seq = c->highest_seq;
                e->lacks_end = true;
        }
        if (e->end < e->size)
                rc = cut_tail(c, e, err);
        if (rc == 0 && (e->inside_line || e->lacks_end))
                rc = close_span(c, e, err);
        if (rc == 0 && c->ids.mark.size > e->end) {
                rc = ids_restart(&c->ids, (struct log_mark){e->end, e->last_seq});
                if (rc)
                        error_sys(err, rc, "writing ids.idx");
        }
        if (rc)
                return rc;
        if (ids_covered(&c->ids) > e->end)
                ids_reset(&c->ids, true);
        if (c->ids.mark.size < e->synced.size)
                c->ids.mark = e->synced;
        return 0;
}

/* Other processes have appended behind `from`, perhaps calls and results. 0: the known state is not
 * valid any more. */
static void mend_pairing(struct files_conv *c, uint64_t from, uint64_t end)
{
        if (!c->pairing)
                return;
        if (from == 0 || from > end || follow_pairing(c, from, end, NULL) != 0) {
                pairing_free(c->pairing);
                c->pairing = NULL;
        }
}

static int refresh(struct files_conv *c, bool repair, struct steno_error *err)
{
        struct stat st;
        int rc = open_log(c, &st, repair, err);
        if (rc)
                return rc;
        if (c->known && (uint64_t)st.st_size == c->at.end)
                return 0;
        uint64_t known_end = c->known && (uint64_t)st.st_size > c->at.end ? c->at.end : 0;
        struct log_end e;
        c->known = false;
        c->spare = has_spare_blocks(&st);
        ids_close(&c->ids);
        struct ids known = c->ids;
        rc = conv_find_end(c, c->log, &known, &c->ids, &e, err);
        if (rc == 0 && !repair)
                rc = conv_refuse_changed(c, c->log, &c->ids, &e, err);
        if (rc == 0)
                rc = mend_end(c, &e, err);
        if (rc)
                return rc;
        mend_pairing(c, known_end, e.end);
        c->at = e;
        c->known = true;
        c->highest_seq = e.last_seq;
        return 0;
}

int conv_refresh(struct files_conv *c, struct steno_error *err)
{
        return refresh(c, false, err);
}

int conv_repair(struct files_conv *c, struct steno_error *err)
{
        return refresh(c, true, err);
}

bool conv_has_strange(const struct files_conv *c, const char *name)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        return fs->stat(fs, c->dir, name, &st) == 0 && !S_ISREG(st.st_mode);
}

void conv_settle(struct files_conv *c)
{
        const struct fs *fs = c->store->env->fs;
        struct stat st;
        bool ids = c->ids.env && !ids_is_flushed(&c->ids);
        if (!(ids || c->spare) || !c->known || c->poisoned)
                return;
        if (fs->flock(fs, c->dir, LOCK_EX | LOCK_NB) != 0)
                return; /* the process that has it reads what is missing */
        if (fs->stat(fs, c->dir, "messages.jsonl", &st) == 0 && st.st_ino == c->log_ino &&
            (uint64_t)st.st_size == c->at.end) {
                if (ids)
                        ids_flush(&c->ids);
                if (has_spare_blocks(&st))
                        fs->ftruncate(fs, c->log, st.st_size);
        }
        conv_funlock(c);
}
