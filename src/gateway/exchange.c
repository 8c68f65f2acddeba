/*
 * exchange.c - see exchange.h
 */
#include "gateway/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/wait.h"

#define MAGIC "steno-exchange 1 "
#define SYNC_MS 50
#define NAMES_MAX 100000
/* An answer that is larger stays as it is, in its file. */
#define LOAD_MAX (512 * MIB)
#define NOTES_MAX (64 * MIB)
#define NOTES_NAME (EXCHANGE_ID + 4)
#define FATE "fate " /* a line of the notes that begins so */
#define MEMORY_MAX (64 * MIB)
#define CREATE_TRIES 10

struct exchange {
        struct exchanges *all;
        struct exchange *next, *prev; /* the exchange is in the list of those being written */
        char id[EXCHANGE_ID];
        int fd;
        uint64_t answer_at; /* where the answer's body begins; 0: not yet */
        atomic_ullong size; /* of the answer's body */
        uint64_t end;       /* of the file */
        atomic_bool dirty;
        bool syncing; /* under the folder's mutex */
        int notes;    /* descriptor of the file beside; -1: there is none */
        bool best_effort;
        pthread_mutex_t lock; /* of the next two */
        bool in_memory;       /* the file could not be written, and `memory` has all of it */
        struct buf memory;
};

struct exchanges {
        const struct env *env;
        int dir;
        pthread_mutex_t mutex;
        pthread_cond_t wake;
        pthread_cond_t synced;
        struct exchange *first;
        pthread_t syncer;
        bool closing;
};

/* ---- syncing ---- */

static struct exchange *find_dirty(struct exchanges *all)
{
        struct exchange *x = all->first;
        while (x && !atomic_load(&x->dirty))
                x = x->next;
        return x;
}

/* Under the mutex, which is not held while the disk works. */
static void sync_all(struct exchanges *all)
{
        const struct fs *fs = all->env->fs;
        struct exchange *x;
        while ((x = find_dirty(all))) {
                atomic_store(&x->dirty, false);
                x->syncing = true;
                pthread_mutex_unlock(&all->mutex);
                fs->fdatasync(fs, x->fd);
                pthread_mutex_lock(&all->mutex);
                x->syncing = false;
                pthread_cond_broadcast(&all->synced);
        }
}

static void *sync_now_and_then(void *arg)
{
        struct exchanges *all = arg;
        pthread_mutex_lock(&all->mutex);
        while (!all->closing) {
                if (!find_dirty(all)) {
                        pthread_cond_wait(&all->wake, &all->mutex);
                        continue;
                }
                /* Everything that arrives until then is synced together. */
                int64_t then = time_monotonic_ms() + SYNC_MS;
                while (!all->closing && wait_until(&all->wake, &all->mutex, then))
                        ;
                sync_all(all);
        }
        pthread_mutex_unlock(&all->mutex);
        return NULL;
}

/* ---- the folder ---- */

int exchanges_open(
    const struct env *env, const char *path, struct exchanges **out, struct steno_error *err)
{
        const struct fs *fs = env->fs;
        int root = fs->open_root(fs, path, false);
        if (root < 0)
                return error_sys(err, -root, "opening the store for the gateway");
        int dir = fs_open_dir(fs, root, "gateway", true);
        fs->close(fs, root);
        if (dir < 0)
                return error_sys(err, -dir, "opening the gateway's folder");
        /* SQLite gives its files the mode that these have. */
        static const char *const names[] = {"lineage.db", "seams.db"};
        for (size_t i = 0; i < 2; i++) {
                int db = fs->open(fs, dir, names[i], O_RDWR | O_CREAT, 0600);
                if (db >= 0)
                        fs->close(fs, db);
        }
        struct exchanges *all = calloc(1, sizeof *all);
        if (!all) {
                fs->close(fs, dir);
                return error_nomem(err);
        }
        all->env = env;
        all->dir = dir;
        pthread_mutex_init(&all->mutex, NULL);
        wait_init(&all->wake);
        wait_init(&all->synced);
        if (pthread_create(&all->syncer, NULL, sync_now_and_then, all) != 0) {
                fs->close(fs, dir);
                free(all);
                return error_nomem(err);
        }
        *out = all;
        return 0;
}

void exchanges_close(struct exchanges *all)
{
        if (!all)
                return;
        pthread_mutex_lock(&all->mutex);
        all->closing = true;
        pthread_cond_signal(&all->wake);
        pthread_mutex_unlock(&all->mutex);
        pthread_join(all->syncer, NULL);
        all->env->fs->close(all->env->fs, all->dir);
        pthread_mutex_destroy(&all->mutex);
        pthread_cond_destroy(&all->wake);
        pthread_cond_destroy(&all->synced);
        free(all);
}

struct names {
        char (*list)[EXCHANGE_ID];
        size_t count, cap;
};

static int collect_name(void *ctx, const char *name, unsigned char type)
{
        struct names *n = ctx;
        (void)type;
        if (strncmp(name, "ex_", 3) != 0 || strlen(name) >= EXCHANGE_ID || n->count == NAMES_MAX)
                return 0;
        if (n->count == n->cap) {
                size_t cap = n->cap ? 2 * n->cap : 64;
                void *list = realloc(n->list, cap * EXCHANGE_ID);
                if (!list)
                        return STENO_ENOMEM;
                n->list = list;
                n->cap = cap;
        }
        snprintf(n->list[n->count++], EXCHANGE_ID, "%s", name);
        return 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(a, b); /* an id begins with its time */
}

int exchanges_each(struct exchanges *all, int (*each)(void *ctx, const char *id), void *ctx,
    struct steno_error *err)
{
        struct names names = {0};
        int rc = all->env->fs->list(all->env->fs, all->dir, collect_name, &names);
        if (rc == STENO_ENOMEM)
                rc = error_nomem(err);
        else if (rc < 0)
                rc = error_sys(err, -rc, "reading the gateway's folder");
        if (names.count)
                qsort(names.list, names.count, EXCHANGE_ID, by_name);
        for (size_t i = 0; i < names.count && rc == 0; i++)
                rc = each(ctx, names.list[i]);
        free(names.list);
        return rc;
}

/* ---- one ---- */

static struct exchange *new_exchange(struct exchanges *all, int fd, const char *id)
{
        struct exchange *x = calloc(1, sizeof *x);
        if (!x)
                return NULL;
        x->all = all;
        x->fd = fd;
        x->notes = -1;
        pthread_mutex_init(&x->lock, NULL);
        buf_init(&x->memory, MEMORY_MAX);
        snprintf(x->id, sizeof x->id, "%s", id);
        pthread_mutex_lock(&all->mutex);
        x->next = all->first;
        if (x->next)
                x->next->prev = x;
        all->first = x;
        pthread_mutex_unlock(&all->mutex);
        return x;
}

const char *exchange_id(const struct exchange *x)
{
        return x->id;
}

void exchange_close(struct exchange *x)
{
        if (!x)
                return;
        struct exchanges *all = x->all;
        pthread_mutex_lock(&all->mutex);
        while (x->syncing)
                pthread_cond_wait(&all->synced, &all->mutex);
        if (x->prev)
                x->prev->next = x->next;
        else
                all->first = x->next;
        if (x->next)
                x->next->prev = x->prev;
        pthread_mutex_unlock(&all->mutex);
        if (x->fd >= 0)
                all->env->fs->close(all->env->fs, x->fd);
        if (x->notes >= 0)
                all->env->fs->close(all->env->fs, x->notes);
        pthread_mutex_destroy(&x->lock);
        buf_release(&x->memory);
        free(x);
}

static void name_notes(const struct exchange *x, char out[NOTES_NAME])
{
        snprintf(out, NOTES_NAME, "ro_%s", x->id);
}

void exchange_remove(struct exchange *x)
{
        const struct fs *fs = x->all->env->fs;
        char notes[NOTES_NAME];
        name_notes(x, notes);
        fs->unlink(fs, x->all->dir, notes, 0);
        fs->unlink(fs, x->all->dir, x->id, 0);
        exchange_close(x);
}

void exchange_set_aside(struct exchange *x)
{
        const struct fs *fs = x->all->env->fs;
        char kept[EXCHANGE_ID + 8];
        snprintf(kept, sizeof kept, "kept_%s", x->id);
        fs->rename(fs, x->all->dir, x->id, x->all->dir, kept);
        exchange_close(x);
}

static int code_of(int sys)
{
        return sys == -ENOSPC || sys == -EDQUOT || sys == -EFBIG ? STENO_EFULL : STENO_EIO;
}

/* Copies what the file has so far to memory; nothing more is written to the file. */
static int turn_to_memory(struct exchange *x)
{
        const struct fs *fs = x->all->env->fs;
        pthread_mutex_lock(&x->lock);
        char *p = x->end ? buf_reserve(&x->memory, (size_t)x->end) : NULL;
        ssize_t n = p ? fs_pread_all(fs, x->fd, p, (size_t)x->end, 0) : 0;
        if (n > 0)
                x->memory.n += (size_t)n;
        x->in_memory = n >= 0 && (uint64_t)n == x->end;
        int rc = x->in_memory ? 0 : STENO_EIO;
        pthread_mutex_unlock(&x->lock);
        return rc;
}

static int put_in_memory(struct exchange *x, const void *p, size_t n)
{
        pthread_mutex_lock(&x->lock);
        buf_put(&x->memory, p, n);
        int rc = x->memory.failed;
        pthread_mutex_unlock(&x->lock);
        if (rc == 0)
                x->end += n;
        return rc;
}

bool exchange_in_memory(const struct exchange *x)
{
        struct exchange *mine = (struct exchange *)x;
        pthread_mutex_lock(&mine->lock);
        bool is = x->in_memory;
        pthread_mutex_unlock(&mine->lock);
        return is;
}

static int put(struct exchange *x, const void *p, size_t n)
{
        const struct fs *fs = x->all->env->fs;
        if (exchange_in_memory(x))
                return put_in_memory(x, p, n);
        int rc = fs_pwrite_all(fs, x->fd, p, n, (off_t)x->end);
        if (rc && x->best_effort && turn_to_memory(x) == 0)
                return put_in_memory(x, p, n);
        if (rc)
                return code_of(rc);
        x->end += n;
        if (!atomic_exchange(&x->dirty, true)) {
                pthread_mutex_lock(&x->all->mutex);
                pthread_cond_signal(&x->all->wake);
                pthread_mutex_unlock(&x->all->mutex);
        }
        return 0;
}

/* Makes a file that no other process takes over. A process that looks for files of a killed server
 * may have found this one before it was locked. It keeps that file, which is empty, and another one
 * is made here. */
static int create_file(struct exchanges *all, char id[EXCHANGE_ID])
{
        const struct fs *fs = all->env->fs;
        int rc = -EWOULDBLOCK;
        for (int i = 0; rc == -EWOULDBLOCK && i < CREATE_TRIES; i++) {
                id_make(all->env, "ex_", id);
                int fd = fs->open(fs, all->dir, id, O_RDWR | O_CREAT | O_EXCL, 0600);
                rc = fd < 0 ? fd : fs->flock(fs, fd, LOCK_EX | LOCK_NB);
                if (rc != -EWOULDBLOCK)
                        return fd; /* without locks, no other process can have it */
                fs->close(fs, fd);
        }
        return rc;
}

int exchange_create(struct exchanges *all, struct str head, struct str body, bool best_effort,
    struct exchange **out, struct steno_error *err)
{
        const struct fs *fs = all->env->fs;
        char id[EXCHANGE_ID], line[80];
        int fd = create_file(all, id);
        if (fd < 0 && !best_effort)
                return error_sys(err, -fd, "making a file for a request");
        struct exchange *x = new_exchange(all, fd < 0 ? -1 : fd, id);
        if (!x) {
                if (fd >= 0)
                        fs->close(fs, fd);
                fs->unlink(fs, all->dir, id, 0);
                return error_nomem(err);
        }
        x->best_effort = best_effort;
        x->in_memory = fd < 0;
        int n = snprintf(line, sizeof line, MAGIC "%zu %zu\n", head.n, body.n);
        int rc = put(x, line, (size_t)n);
        if (rc == 0)
                rc = put(x, head.p, head.n);
        if (rc == 0 && body.n)
                rc = put(x, body.p, body.n);
        if (rc) {
                exchange_remove(x);
                return error_set(err, rc, "the request could not be recorded");
        }
        *out = x;
        return 0;
}

int exchange_open(
    struct exchanges *all, const char *id, struct exchange **out, struct steno_error *err)
{
        const struct fs *fs = all->env->fs;
        int fd = fs->open(fs, all->dir, id, O_RDWR, 0);
        if (fd < 0)
                return error_sys(err, -fd, "opening a recorded request");
        /* Since it was opened, it may have been recorded and removed. */
        struct stat st = {0};
        if (fs->flock(fs, fd, LOCK_EX | LOCK_NB) < 0 || fs->fstat(fs, fd, &st) < 0 ||
            st.st_nlink == 0) {
                fs->close(fs, fd);
                return error_set(err, STENO_ECONFLICT, "another process has this request");
        }
        *out = new_exchange(all, fd, id);
        if (!*out) {
                fs->close(fs, fd);
                return error_nomem(err);
        }
        return 0;
}

int exchange_answer(struct exchange *x, struct str head)
{
        char line[32];
        int n = snprintf(line, sizeof line, "%zu\n", head.n);
        int rc = put(x, line, (size_t)n);
        if (rc == 0)
                rc = put(x, head.p, head.n);
        if (rc == 0)
                x->answer_at = x->end;
        return rc;
}

int exchange_put(struct exchange *x, const void *p, size_t n)
{
        int rc = put(x, p, n);
        if (rc == 0)
                atomic_fetch_add(&x->size, n);
        return rc;
}

int exchange_note(struct exchange *x, struct str line)
{
        const struct fs *fs = x->all->env->fs;
        char name[NOTES_NAME];
        name_notes(x, name);
        if (x->notes < 0)
                x->notes = fs->open(fs, x->all->dir, name, O_WRONLY | O_APPEND | O_CREAT, 0600);
        int rc = x->notes < 0 ? x->notes : fs_write_all(fs, x->notes, line.p, line.n);
        if (rc == 0)
                rc = fs_write_all(fs, x->notes, "\n", 1);
        return rc ? code_of(rc) : 0;
}

int exchange_note_fate(struct exchange *x, struct str fate)
{
        struct buf line;
        buf_init(&line, 4 * KIB);
        buf_puts(&line, "\n" FATE); /* behind what may be torn */
        buf_put_str(&line, fate);
        int rc = line.failed ? line.failed : exchange_note(x, buf_str(&line));
        buf_release(&line);
        return rc;
}

uint64_t exchange_size(const struct exchange *x)
{
        return atomic_load(&((struct exchange *)x)->size);
}

ssize_t exchange_read(const struct exchange *x, uint64_t at, void *p, size_t n)
{
        const struct fs *fs = x->all->env->fs;
        uint64_t size = exchange_size(x);
        if (at >= size)
                return 0;
        if (n > size - at)
                n = (size_t)(size - at);
        struct exchange *mine = (struct exchange *)x;
        ssize_t got = 0;
        pthread_mutex_lock(&mine->lock);
        bool in_memory = x->in_memory;
        if (in_memory) {
                memcpy(p, x->memory.p + x->answer_at + at, n);
                got = (ssize_t)n;
        }
        pthread_mutex_unlock(&mine->lock);
        if (!in_memory)
                got = fs_pread_all(fs, x->fd, p, n, (off_t)(x->answer_at + at));
        return got == 0 ? -EIO : got;
}

/* ---- reading it back ---- */

/* A number and the byte behind it. */
static bool take_number(struct str *s, char behind, uint64_t *out)
{
        size_t i = 0;
        uint64_t v = 0;
        for (; i < s->n && i < 18 && s->p[i] >= '0' && s->p[i] <= '9'; i++)
                v = v * 10 + (uint64_t)(s->p[i] - '0');
        if (i == 0 || i == s->n || s->p[i] != behind)
                return false;
        *out = v;
        *s = str_span(s->p + i + 1, s->n - i - 1);
        return true;
}

static bool take_bytes(struct str *s, uint64_t n, struct str *out)
{
        if (n > s->n)
                return false;
        *out = str_span(s->p, (size_t)n);
        *s = str_span(s->p + n, s->n - (size_t)n);
        return true;
}

static bool split(struct exchange_parts *out)
{
        struct str s = buf_str(&out->whole);
        uint64_t head, body;
        if (!str_starts(s, MAGIC))
                return false;
        s = str_span(s.p + sizeof MAGIC - 1, s.n - (sizeof MAGIC - 1));
        if (!take_number(&s, ' ', &head) || !take_number(&s, '\n', &body) ||
            !take_bytes(&s, head, &out->head) || !take_bytes(&s, body, &out->body))
                return false;
        if (take_number(&s, '\n', &head) && take_bytes(&s, head, &out->answer_head))
                out->answer_body = s;
        return true;
}

/* The lines of a file of notes. A line without its end is torn: nothing was done because of it. */
static void split_notes(struct str text, struct exchange_parts *out)
{
        const char *end;
        while (text.n && (end = memchr(text.p, '\n', text.n))) {
                struct str line = str_span(text.p, (size_t)(end - text.p));
                if (str_starts(line, FATE)) {
                        size_t n = sizeof FATE - 1;
                        buf_clear(&out->fate);
                        buf_put_str(&out->fate, str_span(line.p + n, line.n - n));
                } else if (line.n) {
                        buf_put(&out->notes, line.p, line.n + 1);
                }
                text = str_span(end + 1, text.n - line.n - 1);
        }
}

/* A missing file means that there are no notes. */
static int load_notes(const struct exchange *x, struct exchange_parts *out, struct steno_error *err)
{
        const struct fs *fs = x->all->env->fs;
        char name[NOTES_NAME];
        char *text = NULL;
        size_t n = 0;
        name_notes(x, name);
        int rc = fs_slurp(fs, x->all->dir, name, NOTES_MAX, &text, &n);
        if (rc == -ENOENT)
                return 0;
        if (rc)
                return error_sys(err, -rc, "reading the notes of a recorded request");
        split_notes(str_span(text, n), out);
        free(text);
        rc = buf_check(&out->fate, err);
        return rc ? rc : buf_check(&out->notes, err);
}

int exchange_load(const struct exchange *x, struct exchange_parts *out, struct steno_error *err)
{
        const struct fs *fs = x->all->env->fs;
        struct stat st;
        *out = (struct exchange_parts){0};
        buf_init(&out->whole, LOAD_MAX);
        buf_init(&out->notes, NOTES_MAX);
        buf_init(&out->fate, NOTES_MAX);
        if (exchange_in_memory(x)) {
                buf_put_str(&out->whole, buf_str(&x->memory));
                if (buf_check(&out->whole, err))
                        return out->whole.failed;
                return split(out) ? load_notes(x, out, err)
                                  : error_set(err, STENO_ECORRUPT, "a recorded request is torn");
        }
        int rc = fs->fstat(fs, x->fd, &st);
        if (rc < 0)
                return error_sys(err, -rc, "reading a recorded request");
        char *p = st.st_size ? buf_reserve(&out->whole, (size_t)st.st_size) : NULL;
        if (!p)
                return st.st_size ? buf_check(&out->whole, err)
                                  : error_set(err, STENO_ECORRUPT, "a recorded request is empty");
        ssize_t n = fs_pread_all(fs, x->fd, p, (size_t)st.st_size, 0);
        if (n < 0)
                return error_sys(err, (int)-n, "reading a recorded request");
        out->whole.n += (size_t)n;
        if (!split(out))
                return error_set(err, STENO_ECORRUPT, "a recorded request is torn");
        return load_notes(x, out, err);
}

void exchange_parts_release(struct exchange_parts *parts)
{
        buf_release(&parts->whole);
        buf_release(&parts->notes);
        buf_release(&parts->fate);
        *parts = (struct exchange_parts){0};
}
