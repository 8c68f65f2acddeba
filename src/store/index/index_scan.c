/*
 * index_scan.c - looking at every conversation: for a new index, and after a boot (index_work.h).
 *
 * A scan goes over the names in pieces. A piece is one transaction; its folders are read by several
 * threads while the write lock is held, so that nobody writes a newer row in between. How far the
 * scan has come is in `state` ("scan"), by which a scan goes on where another ended, and several
 * processes that scan at once share the work. Names that only the folders or only the rows have
 * come first, and each scan looks at its own, because they say nothing about how far it is.
 *
 * `recent` is taken away before the scan looks: what it names is looked at anyway.
 */
#include "store/index/index_work.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/wait.h"

/* Others wait for the write lock as long as a piece takes. */
#define PIECE 256
#define PAUSE_MS 1
#define PROGRESS_MS 50

/* ---- reading in several threads ---- */

struct crew {
        struct index *x;
        pthread_mutex_t mutex;
        pthread_cond_t go;
        pthread_cond_t done;
        pthread_t thread[INDEX_THREADS_MAX];
        int threads;
        bool ends;
        unsigned round;
        int busy;
        struct row_look *looks;
        size_t count;
        size_t next; /* atomic */
};

static void read_some(struct crew *crew)
{
        size_t i;
        while ((i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->count)
                row_read(crew->x, &crew->looks[i]);
}

static void *help(void *arg)
{
        struct crew *crew = arg;
        unsigned round = 0;
        pthread_mutex_lock(&crew->mutex);
        while (!crew->ends) {
                if (crew->round == round) {
                        pthread_cond_wait(&crew->go, &crew->mutex);
                        continue;
                }
                round = crew->round;
                pthread_mutex_unlock(&crew->mutex);
                read_some(crew);
                pthread_mutex_lock(&crew->mutex);
                if (--crew->busy == 0)
                        pthread_cond_signal(&crew->done);
        }
        pthread_mutex_unlock(&crew->mutex);
        return NULL;
}

/* A program that handles signals in one thread does not know of these. */
static bool start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        bool runs = pthread_create(thread, NULL, run, arg) == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        return runs;
}

/* Without helpers the one that asks does it all. */
static void crew_begin(struct crew *crew, struct index *x, uint64_t work)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        *crew = (struct crew){.x = x};
        pthread_mutex_init(&crew->mutex, NULL);
        wait_init(&crew->go);
        wait_init(&crew->done);
        while (work > PIECE / 4 && crew->threads + 1 < cores && crew->threads < INDEX_THREADS_MAX &&
               start_thread(&crew->thread[crew->threads], help, crew))
                crew->threads++;
}

static void crew_read(struct crew *crew, struct row_look *looks, size_t count)
{
        pthread_mutex_lock(&crew->mutex);
        crew->looks = looks;
        crew->count = count;
        crew->next = 0;
        crew->busy = crew->threads;
        crew->round++;
        pthread_cond_broadcast(&crew->go);
        pthread_mutex_unlock(&crew->mutex);
        read_some(crew);
        pthread_mutex_lock(&crew->mutex);
        while (crew->busy)
                pthread_cond_wait(&crew->done, &crew->mutex);
        pthread_mutex_unlock(&crew->mutex);
}

static void crew_end(struct crew *crew)
{
        pthread_mutex_lock(&crew->mutex);
        crew->ends = true;
        pthread_cond_broadcast(&crew->go);
        pthread_mutex_unlock(&crew->mutex);
        for (int i = 0; i < crew->threads; i++)
                pthread_join(crew->thread[i], NULL);
        pthread_cond_destroy(&crew->go);
        pthread_cond_destroy(&crew->done);
        pthread_mutex_destroy(&crew->mutex);
}

/* ---- a scan ---- */

struct scan {
        /* Of the thread; the index's mutex guards the rest. */
        struct index *x; /* the index that asked */
        pthread_t thread;
        pthread_cond_t ended;
        bool runs; /* not joined yet */
        bool is_over;
        bool failed; /* the last one */
        bool stop;   /* atomic */
        char boot[40];
        int rc;
        struct steno_error err;
        uint64_t done;  /* atomic */
        uint64_t total; /* atomic */
};

struct work {
        struct index *x; /* whose database is written */
        const char *boot;
        struct projects projects;
        struct row_writer rows;
        struct buf odd;  /* names that only the folders or only the rows have, and links */
        struct buf both; /* the others, in order */
        size_t odd_at;
        size_t both_at;
        struct taken taken;
        ino_t ino; /* of the database */
        bool finished;
        struct crew crew;
        struct row_look looks[PIECE];
        size_t count;
        char at[2 * PLAIN_NAME_MAX + 2]; /* how far it is: the last name */
        struct steno_error *err;
};

static uint64_t count_lines(const struct buf *list)
{
        uint64_t n = 0;
        for (const char *p = list->p, *end = p + list->n;
             p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
                n++;
        return n;
}

/* The order of merge_names: by project, then by folder. */
static int order_of(const char *a, size_t a_n, const char *b, size_t b_n)
{
        const char *a_slash = memchr(a, '/', a_n), *b_slash = memchr(b, '/', b_n);
        if (!a_slash || !b_slash)
                return 1;
        struct str part[4] = {{a, (size_t)(a_slash - a)}, {b, (size_t)(b_slash - b)},
            {a_slash + 1, a_n - (size_t)(a_slash - a) - 1},
            {b_slash + 1, b_n - (size_t)(b_slash - b) - 1}};
        for (int i = 0; i < 4; i += 2) {
                size_t n = part[i].n < part[i + 1].n ? part[i].n : part[i + 1].n;
                int order = memcmp(part[i].p, part[i + 1].p, n);
                if (order || part[i].n != part[i + 1].n)
                        return order ? order : part[i].n < part[i + 1].n ? -1 : 1;
        }
        return 0;
}

static void take_recent(struct work *w)
{
        const struct fs *fs = files_env(w->x->store)->fs;
        int root = files_root(w->x->store);
        struct stat st;
        if (w->x->in_memory)
                return;
        if (fs->stat(fs, root, "recent.old", &st) == -ENOENT)
                fs->rename(fs, root, "recent", root, "recent.old");
        index_taken_hold(w->x, &w->taken);
}

static int list_names(struct work *w)
{
        int rc = index_run(w->x, "BEGIN IMMEDIATE", w->err);
        if (rc)
                return rc;
        take_recent(w);
        /* After that: what is made from now on changes its folder's looks once more. */
        rc = projects_look(&w->projects);
        if (rc == 0)
                rc = projects_list_all(&w->projects, &w->odd, &w->both);
        sqlite3_exec(w->x->db, "ROLLBACK", NULL, NULL, NULL);
        return rc;
}

/* Where this boot's scan is, into w->at. */
static void recall_place(struct work *w)
{
        size_t n = strlen(w->boot);
        char *state = index_state(w->x, "scan");
        if (state && strncmp(state, w->boot, n) == 0 && state[n] == ' ')
                snprintf(w->at, sizeof w->at, "%s", state + n + 1);
        else
                w->at[0] = '\0';
        free(state);
}

static int remember_place(struct work *w)
{
        char text[sizeof w->at + 48];
        snprintf(text, sizeof text, "%s %s", w->boot, w->at);
        return index_set_state(w->x, "scan", text, w->err);
}

/* Adds the names from *at on to the piece; those up to w->at are passed over when `known`. */
static int add_names(struct work *w, const struct buf *list, size_t *at, bool known)
{
        int rc = 0;
        while (rc == 0 && *at < list->n && w->count < PIECE) {
                const char *line = list->p + *at;
                const char *lf = memchr(line, '\n', list->n - *at);
                size_t n = lf ? (size_t)(lf - line) : list->n - *at;
                const char *slash = memchr(line, '/', n);
                char project[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1];
                *at += n + 1;
                if (!slash || (known && order_of(line, n, w->at, strlen(w->at)) <= 0))
                        continue;
                snprintf(project, sizeof project, "%.*s", (int)(slash - line), line);
                snprintf(folder, sizeof folder, "%.*s", (int)(n - (size_t)(slash + 1 - line)),
                    slash + 1);
                if (known)
                        snprintf(w->at, sizeof w->at, "%s/%s", project, folder);
                row_look_at(&w->looks[w->count], project, folder);
                rc = row_recall(&w->rows, &w->looks[w->count], w->err);
                w->count++;
        }
        return rc;
}

static int finish(struct work *w)
{
        w->finished = true;
        int rc = projects_remember(&w->projects);
        if (rc == 0)
                rc = index_run(w->x, "DELETE FROM state WHERE key='scan'", w->err);
        return rc ? rc : index_set_state(w->x, "boot", w->boot, w->err);
}

/* Somebody may have begun from the start, because a list of changes was lost. */
static bool went_back(const char *now, const char *before)
{
        return *before && (!*now || order_of(now, strlen(now), before, strlen(before)) < 0);
}

/* Inside the transaction. */
static int look_at_piece(struct work *w)
{
        struct row_change change;
        char before[sizeof w->at];
        if (index_state_is(w->x, "boot", w->boot)) { /* somebody else came to the end */
                w->finished = true;
                return 0;
        }
        memcpy(before, w->at, sizeof before);
        recall_place(w);
        if (went_back(w->at, before))
                w->odd_at = w->both_at = 0;
        int rc = add_names(w, &w->odd, &w->odd_at, false);
        if (rc == 0 && w->odd_at >= w->odd.n)
                rc = add_names(w, &w->both, &w->both_at, true);
        if (rc == 0)
                crew_read(&w->crew, w->looks, w->count);
        for (size_t i = 0; rc == 0 && i < w->count; i++)
                rc = row_write(&w->rows, &w->looks[i], &change, w->err);
        if (rc == 0 && w->at[0])
                rc = remember_place(w);
        if (rc == 0 && w->odd_at >= w->odd.n && w->both_at >= w->both.n)
                rc = finish(w);
        return rc;
}

static int do_piece(struct work *w)
{
        int rc = index_run(w->x, "BEGIN IMMEDIATE", w->err);
        if (rc)
                return rc;
        w->count = 0;
        rc = look_at_piece(w);
        for (size_t i = 0; i < w->count; i++)
                row_look_release(&w->looks[i]);
        if (rc == 0)
                rc = index_run(w->x, "COMMIT", w->err);
        if (rc)
                sqlite3_exec(w->x->db, "ROLLBACK", NULL, NULL, NULL);
        else if (w->finished)
                index_taken_drop(w->x, &w->taken);
        return rc;
}

typedef bool (*scan_goes_on)(void *ctx, uint64_t done, uint64_t total);

/* Scans everything. If the database was replaced meanwhile, it ends early without an error; the
 * caller sees that the scan is not complete. */
static int scan_run(
    struct index *x, const char *boot, scan_goes_on goes_on, void *ctx, struct steno_error *err)
{
        struct work *w = calloc(1, sizeof *w);
        if (!w)
                return error_nomem(err);
        *w = (struct work){.x = x,
            .boot = boot,
            .projects = {.x = x, .err = err},
            .taken = {.fd = -1},
            .ino = x->ino,
            .err = err};
        buf_init(&w->odd, 0);
        buf_init(&w->both, 0);
        int rc = list_names(w);
        uint64_t total = count_lines(&w->odd) + count_lines(&w->both), done = 0;
        crew_begin(&w->crew, x, total);
        if (rc == 0)
                rc = row_writer_init(&w->rows, x, err);
        while (rc == 0 && !w->finished) {
                if (!x->in_memory && !index_is_present(x))
                        break;
                rc = do_piece(w);
                done += w->count;
                /* Asked behind the first piece, so that every scan gets on. */
                if (rc == 0 && !goes_on(ctx, done, total) && !w->finished)
                        rc = error_set(err, STENO_EINTERRUPTED, "stopped");
        }
        row_writer_release(&w->rows);
        crew_end(&w->crew);
        index_taken_release(x, &w->taken);
        projects_release(&w->projects);
        buf_release(&w->odd);
        buf_release(&w->both);
        free(w);
        return rc;
}

/* ---- in this thread ---- */

struct here {
        steno_progress progress;
        void *ctx;
        uint64_t *done;
};

static bool tell_here(void *ctx, uint64_t done, uint64_t total)
{
        struct here *h = ctx;
        *h->done = done;
        return !h->progress || !h->progress(h->ctx, "index", done, total);
}

int index_scan_here(struct index *x, const char *boot, steno_progress progress, void *progress_ctx,
    uint64_t *done, struct steno_error *err)
{
        struct here h = {progress, progress_ctx, done};
        /* One in memory is made anew for each use. */
        int rc = index_run(x, "DELETE FROM state WHERE key IN ('boot','scan')", err);
        return rc ? rc : scan_run(x, boot, tell_here, &h, err);
}

/* ---- in a thread of its own ---- */

static bool tell_waiting(void *ctx, uint64_t done, uint64_t total)
{
        struct scan *s = ctx;
        __atomic_store_n(&s->done, done, __ATOMIC_RELAXED);
        __atomic_store_n(&s->total, total, __ATOMIC_RELAXED);
        if (__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
                return false;
        if (done < total)
                wait_sleep(PAUSE_MS); /* others want the write lock, too */
        return true;
}

static void *run(void *arg)
{
        struct scan *s = arg;
        struct index *own = NULL;
        struct steno_error err = {0};
        int rc = index_open(s->x->store, &own, &err);
        if (rc == 0)
                rc = index_open_file(own, &err);
        if (rc == 0)
                rc = scan_run(own, s->boot, tell_waiting, s, &err);
        pthread_mutex_lock(&s->x->mutex);
        s->rc = rc;
        s->err = err;
        s->failed = rc != 0 && rc != STENO_EINTERRUPTED;
        if (own && own->failed)
                s->x->failed = true;
        if (own && own->damaged)
                s->x->damaged = true;
        s->is_over = true;
        pthread_cond_broadcast(&s->ended);
        pthread_mutex_unlock(&s->x->mutex);
        index_close(own);
        return NULL;
}

static void join(struct scan *s)
{
        if (s->runs)
                pthread_join(s->thread, NULL);
        s->runs = false;
}

int index_scan_start(struct index *x, const char *boot, struct steno_error *err)
{
        struct scan *s = x->scan;
        if (!s) {
                s = calloc(1, sizeof *s);
                if (!s)
                        return error_nomem(err);
                s->x = x;
                wait_init(&s->ended);
                x->scan = s;
        }
        if (s->runs && !s->is_over)
                return 0;
        join(s); /* it has nothing to do any more that needs the mutex */
        snprintf(s->boot, sizeof s->boot, "%s", boot);
        s->is_over = s->stop = false;
        s->done = s->total = 0;
        s->runs = start_thread(&s->thread, run, s);
        return s->runs ? 0 : error_nomem(err);
}

int index_scan_wait(struct index *x, steno_progress progress, void *progress_ctx, uint64_t *done,
    struct steno_error *err)
{
        struct scan *s = x->scan;
        while (s->runs && !s->is_over) {
                wait_for(&s->ended, &x->mutex, PROGRESS_MS);
                *done = __atomic_load_n(&s->done, __ATOMIC_RELAXED);
                uint64_t total = __atomic_load_n(&s->total, __ATOMIC_RELAXED);
                if (progress && *done >= 64 && progress(progress_ctx, "index", *done, total)) {
                        __atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
                        return error_set(err, STENO_EINTERRUPTED, "stopped");
                }
        }
        *done = __atomic_load_n(&s->done, __ATOMIC_RELAXED);
        if (s->rc == STENO_EINTERRUPTED) /* another that waited did not want to wait any longer */
                return 0;
        if (s->rc && err)
                *err = s->err;
        return s->rc;
}

bool index_scan_has_failed(const struct index *x)
{
        return x->scan && x->scan->failed;
}

void index_scan_stop(struct index *x)
{
        pthread_mutex_lock(&x->mutex);
        struct scan *s = x->scan;
        if (s)
                __atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
        while (s && s->runs && !s->is_over)
                pthread_cond_wait(&s->ended, &x->mutex);
        if (s)
                join(s);
        pthread_mutex_unlock(&x->mutex);
}

void index_scan_release(struct index *x)
{
        index_scan_stop(x);
        if (x->scan)
                pthread_cond_destroy(&x->scan->ended);
        free(x->scan);
        x->scan = NULL;
}
