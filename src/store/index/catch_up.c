/*
 * catch_up.c - updates the index from the folders (index.h).
 *
 * Steno's writers put a name into `recent`. What a person copies in or removes changes the looks of
 * the folder that holds the conversations (projects.c). After a boot neither can be relied on, and
 * everything is scanned (index_scan.c); a caller that wants an answer at once gets it from the
 * present index.
 *
 * Catching up holds SQLite's write lock (BEGIN IMMEDIATE), so two processes do not take `recent`
 * away from each other; the rows they would write are the same anyway. An index in memory leaves
 * `recent` to those that can keep what it says, and looks at everything.
 */
#include "store/index/index_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* While a scan runs, an answer at once does not wait longer for the write lock, and looks at no
 * longer list of changes. */
#define AT_ONCE_MS 40
#define AT_ONCE_RECENT (16 * KIB)
#define SCAN_TRIES 3

struct catch_up {
        struct index *x;
        struct row_writer rows;
        struct projects projects;
        bool at_once;
        bool behind; /* a scan is under way */
        bool rescan; /* the list of changes was lost */
        struct taken taken;
        steno_progress progress;
        void *progress_ctx;
        uint64_t done;
        uint64_t total;
        struct steno_error *err;
};

/* ---- conversations ---- */

static int look_at(struct catch_up *c, const char *project_folder, const char *folder)
{
        struct row_change change = {0};
        c->done++;
        if (c->progress && c->done % 64 == 0 &&
            c->progress(c->progress_ctx, "index", c->done, c->total))
                return error_set(c->err, STENO_EINTERRUPTED, "stopped");
        int rc = row_update(&c->rows, project_folder, folder, &change, c->err);
        struct project *p = rc == 0 ? projects_find(&c->projects, project_folder) : NULL;
        if (p) {
                p->more += change.more;
                p->changes += change.more != 0;
                p->unsure = p->unsure || change.unsure;
        }
        return rc;
}

static uint64_t count_lines(struct str list)
{
        uint64_t n = 0;
        for (size_t i = 0; i < list.n; i++)
                n += list.p[i] == '\n';
        return n;
}

/* Everything in a list of lines "<project folder>/<folder>". What is no such line is passed over:
 * a person can write to `recent`. */
static int look_at_listed(struct catch_up *c, struct buf *list)
{
        int rc = 0;
        char *end = list->p + list->n;
        c->total += count_lines(buf_str(list));
        for (char *line = list->p, *next; line < end && rc == 0; line = next) {
                char *lf = memchr(line, '\n', (size_t)(end - line));
                if (!lf)
                        break;
                next = lf + 1;
                char *slash = memchr(line, '/', (size_t)(lf - line));
                if (!slash || !id_is_file_name((struct str){line, (size_t)(slash - line)}) ||
                    !id_is_file_name((struct str){slash + 1, (size_t)(lf - slash - 1)}))
                        continue;
                *slash = *lf = '\0';
                rc = look_at(c, line, slash + 1);
        }
        return rc;
}

/* ---- what there is to do ---- */

static int list_unreadable(struct catch_up *c, struct buf *list)
{
        sqlite3_stmt *s = NULL;
        int step = SQLITE_DONE;
        int rc = index_prepare(
            c->x, "SELECT project_folder,folder FROM conv WHERE unreadable", &s, c->err);
        while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
                projects_put_name(list, (const char *)sqlite3_column_text(s, 0),
                    (const char *)sqlite3_column_text(s, 1));
        if (rc == 0 && step != SQLITE_DONE)
                rc = index_error(c->x, c->err);
        sqlite3_finalize(s);
        return rc ? rc : buf_check(list, c->err);
}

bool index_state_is(struct index *x, const char *key, const char *value)
{
        sqlite3_stmt *s = NULL;
        bool same = false;
        if (index_prepare(x, "SELECT 1 FROM state WHERE key=?1 AND value=?2", &s, NULL) == 0) {
                index_bind(s, 1, key);
                index_bind(s, 2, value);
                same = sqlite3_step(s) == SQLITE_ROW;
        }
        sqlite3_finalize(s);
        return same;
}

char *index_state(struct index *x, const char *key)
{
        sqlite3_stmt *s = NULL;
        char *value = NULL;
        if (index_prepare(x, "SELECT value FROM state WHERE key=?1", &s, NULL) == 0) {
                index_bind(s, 1, key);
                if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_text(s, 0))
                        value = strdup((const char *)sqlite3_column_text(s, 0));
        }
        sqlite3_finalize(s);
        return value;
}

int index_set_state(struct index *x, const char *key, const char *value, struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        int rc = index_prepare(x, "INSERT OR REPLACE INTO state VALUES (?1,?2)", &s, err);
        if (rc == 0) {
                index_bind(s, 1, key);
                index_bind(s, 2, value);
                rc = index_step(x, s, err);
        }
        sqlite3_finalize(s);
        return rc;
}

void index_taken_hold(struct index *x, struct taken *t)
{
        const struct fs *fs = files_env(x->store)->fs;
        struct stat st;
        index_taken_release(x, t);
        t->fd = fs->open(fs, files_root(x->store), "recent.old", O_RDONLY, 0);
        if (t->fd >= 0 && fs->fstat(fs, t->fd, &st))
                index_taken_release(x, t);
        else if (t->fd >= 0)
                t->ino = st.st_ino;
}

/* Others remove and rename it under the write lock only. Without the lock it stays, and is read
 * once more. */
void index_taken_drop(struct index *x, const struct taken *t)
{
        const struct fs *fs = files_env(x->store)->fs;
        int root = files_root(x->store);
        struct stat st;
        if (t->fd < 0 || sqlite3_exec(x->db, "BEGIN IMMEDIATE", NULL, NULL, NULL))
                return;
        if (fs->stat(fs, root, "recent.old", &st) == 0 && st.st_ino == t->ino)
                fs->unlink(fs, root, "recent.old", 0);
        sqlite3_exec(x->db, "ROLLBACK", NULL, NULL, NULL);
}

void index_taken_release(struct index *x, struct taken *t)
{
        const struct fs *fs = files_env(x->store)->fs;
        if (t->fd >= 0)
                fs->close(fs, t->fd);
        t->fd = -1;
}

/* Takes `recent` away from its writers and reads it. */
static int take_recent(struct catch_up *c, struct buf *list)
{
        const struct fs *fs = files_env(c->x->store)->fs;
        int root = files_root(c->x->store);
        struct stat st;
        char *text = NULL;
        size_t n = 0;
        /* recent.old is there when an earlier catch-up died: it is read first. */
        if (fs->stat(fs, root, "recent.old", &st) == -ENOENT) {
                int sys = fs->rename(fs, root, "recent", root, "recent.old");
                /* Without a list of changes, what is kept here would soon be wrong. */
                c->x->failed = sys && sys != -ENOENT;
                if (c->x->failed)
                        return error_sys(c->err, sys, "taking the list of changes");
        }
        index_taken_hold(c->x, &c->taken);
        int sys = fs_slurp(fs, root, "recent.old", BUF_MAX_DEFAULT, &text, &n);
        if (sys == 0)
                buf_put(list, text, n);
        else if (sys != -ENOENT)
                c->rescan = true; /* whatever it was to say */
        free(text);
        return buf_check(list, c->err);
}

static bool nothing_new(struct catch_up *c, const char *boot)
{
        const struct fs *fs = files_env(c->x->store)->fs;
        int root = files_root(c->x->store);
        struct stat st;
        struct buf unreadable;
        buf_init(&unreadable, 0);
        bool none = fs->stat(fs, root, "recent", &st) == -ENOENT &&
                    fs->stat(fs, root, "recent.old", &st) == -ENOENT &&
                    index_state_is(c->x, "boot", boot) && list_unreadable(c, &unreadable) == 0 &&
                    unreadable.n == 0 && projects_look(&c->projects) == 0;
        buf_release(&unreadable);
        for (size_t i = 0; none && i < c->projects.count; i++)
                none = project_looks_same(&c->projects.all[i]);
        return none;
}

/* The work, inside the transaction. */
static int look_at_changes(struct catch_up *c)
{
        struct buf list;
        buf_init(&list, 0);
        int rc = row_writer_init(&c->rows, c->x, c->err);
        if (rc == 0)
                rc = take_recent(c, &list);
        /* After that: what is made from now on changes its folder's looks once more. */
        if (rc == 0)
                rc = projects_look(&c->projects);
        if (rc == 0)
                rc = list_unreadable(c, &list);
        if (rc == 0)
                rc = look_at_listed(c, &list);
        buf_clear(&list);
        if (rc == 0)
                rc = projects_list_changed(&c->projects, &list);
        if (rc == 0)
                rc = look_at_listed(c, &list);
        if (rc == 0)
                rc = projects_remember(&c->projects);
        if (rc == 0 && c->rescan)
                rc = index_set_state(c->x, "boot", "", c->err);
        buf_release(&list);
        row_writer_release(&c->rows);
        return rc;
}

static int in_transaction(struct catch_up *c, int (*work)(struct catch_up *c))
{
        int rc = work(c);
        if (rc == 0)
                rc = index_run(c->x, "COMMIT", c->err);
        if (rc)
                sqlite3_exec(c->x->db, "ROLLBACK", NULL, NULL, NULL);
        return rc;
}

/* What writers have noted since the boot, as far as that is little. The list of changes stays where
 * it is. */
static int look_at_newest(struct catch_up *c)
{
        const struct fs *fs = files_env(c->x->store)->fs;
        struct buf list;
        char *text = NULL;
        size_t n = 0;
        if (fs_slurp(fs, files_root(c->x->store), "recent", AT_ONCE_RECENT, &text, &n))
                return 0;
        buf_init(&list, 0);
        buf_put(&list, text, n);
        free(text);
        int rc = buf_check(&list, c->err);
        if (rc == 0)
                rc = row_writer_init(&c->rows, c->x, c->err);
        if (rc == 0)
                rc = look_at_listed(c, &list);
        row_writer_release(&c->rows);
        buf_release(&list);
        return rc;
}

/* If another process has the write lock, the index is used in its present state. */
static int answer_at_once(struct catch_up *c, const char *boot)
{
        int rc = index_scan_start(c->x, boot, c->err);
        c->behind = true;
        if (rc)
                return rc;
        sqlite3_busy_timeout(c->x->db, AT_ONCE_MS);
        bool mine = sqlite3_exec(c->x->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
        sqlite3_busy_timeout(c->x->db, INDEX_BUSY_MS);
        return mine ? in_transaction(c, look_at_newest) : 0;
}

/* Makes sure that everything was looked at since the boot. The index may be another file after it.
 */
static int scan_all(struct catch_up *c, const char *boot)
{
        int rc = 0;
        for (int tries = 0; rc == 0 && !index_state_is(c->x, "boot", boot); tries++) {
                if (tries == SCAN_TRIES)
                        return error_set(
                            c->err, STENO_EIO, "the index (index.db) is replaced again and again");
                rc = index_scan_start(c->x, boot, c->err);
                if (rc == 0)
                        rc = index_scan_wait(c->x, c->progress, c->progress_ctx, &c->done, c->err);
                if (rc == 0)
                        rc = index_open_file(c->x, c->err);
        }
        return rc;
}

/* Is there something to answer from before everything was looked at? */
static bool has_rows(struct catch_up *c)
{
        char *boot = index_state(c->x, "boot");
        bool has = boot && *boot;
        free(boot);
        return has;
}

static int bring_up_to_date(struct catch_up *c)
{
        const struct env *env = files_env(c->x->store);
        char boot[40];
        env->boot(env, boot);
        if (c->x->in_memory)
                return index_scan_here(c->x, boot, c->progress, c->progress_ctx, &c->done, c->err);
        if (nothing_new(c, boot))
                return 0;
        if (c->at_once && !index_state_is(c->x, "boot", boot) && has_rows(c) &&
            !index_scan_has_failed(c->x))
                return answer_at_once(c, boot);
        int rc = scan_all(c, boot);
        if (rc || nothing_new(c, boot))
                return rc;
        rc = index_run(c->x, "BEGIN IMMEDIATE", c->err);
        if (rc == 0)
                rc = in_transaction(c, look_at_changes);
        if (rc == 0 && c->taken.fd >= 0)
                index_taken_drop(c->x, &c->taken);
        else if (rc == 0 && c->rescan) /* nobody can read it; the scan looks at everything */
                env->fs->unlink(env->fs, files_root(c->x->store), "recent.old", 0);
        return rc || !c->rescan ? rc : scan_all(c, boot);
}

static int count_unreadable(struct catch_up *c, uint64_t *out)
{
        struct buf list;
        buf_init(&list, 0);
        int rc = list_unreadable(c, &list);
        *out = c->projects.unreadable + count_lines(buf_str(&list));
        buf_release(&list);
        return rc;
}

int index_catch_up(struct index *x, bool at_once, steno_progress progress, void *progress_ctx,
    struct backend_caught_up *out, struct steno_error *err)
{
        struct catch_up c = {.x = x,
            .projects = {.x = x, .err = err},
            .taken = {.fd = -1},
            .at_once = at_once,
            .progress = progress,
            .progress_ctx = progress_ctx,
            .err = err};
        pthread_mutex_lock(&x->mutex);
        int rc = index_open_file(x, err);
        if (rc == 0)
                rc = bring_up_to_date(&c);
        if (rc && rc != STENO_ENOMEM && x->failed) {
                c.done = c.total = 0;
                c.behind = false;
                rc = index_open_memory(x, err);
                if (rc == 0)
                        rc = bring_up_to_date(&c);
        }
        if (rc == 0 && progress && c.done >= 64)
                progress(progress_ctx, "index", c.done, c.done);
        out->behind = c.behind;
        if (rc == 0)
                rc = count_unreadable(&c, &out->unreadable);
        projects_release(&c.projects);
        index_taken_release(x, &c.taken);
        pthread_mutex_unlock(&x->mutex);
        return rc;
}

int index_scan(struct index *x, struct steno_error *err)
{
        uint64_t done;
        char boot[40];
        const struct env *env = files_env(x->store);
        env->boot(env, boot);
        int rc = index_open_memory(x, err);
        return rc ? rc : index_scan_here(x, boot, NULL, NULL, &done, err);
}

int index_rebuild(struct index *x, struct steno_error *err)
{
        struct backend_caught_up up;
        index_scan_stop(x);
        pthread_mutex_lock(&x->mutex);
        index_discard(x);
        pthread_mutex_unlock(&x->mutex);
        return index_catch_up(x, false, NULL, NULL, &up, err);
}
