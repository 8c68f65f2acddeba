/*
 * catch_up.c - making the index say what the folders say (index.h).
 *
 * Steno's writers put a name into `recent`. What a person copies in or removes changes the folder
 * that holds the conversations, so its looks are remembered: its time, its number of links and its
 * size. When it looks different its names are compared with the rows, unless what `recent` names
 * explains the difference: a folder has a link for every folder in it.
 *
 * Catching up holds SQLite's write lock (BEGIN IMMEDIATE), so two processes do not take `recent`
 * away from each other; the rows they would write are the same anyway. An index in memory leaves
 * `recent` to those that can keep what it says, and looks at everything.
 */
#include "store/index/index_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

struct looks {
        int64_t changed; /* ns */
        int64_t links;
        int64_t size;
};

struct project {
        char folder[PLAIN_NAME_MAX + 1];
        bool there; /* on the disk */
        bool known; /* to the index */
        struct looks now;
        struct looks then;
        int64_t more;     /* rows that came, less those that went, by what `recent` names */
        uint64_t changes; /* of either kind */
        bool unsure;      /* its number of links says nothing about them */
};

struct catch_up {
        struct index *x;
        struct row_writer rows;
        struct project *projects; /* those on the disk, by name; then those that are gone */
        size_t project_count;
        size_t there_count;
        size_t project_room;
        uint64_t unreadable; /* projects */
        bool all;            /* look at everything */
        steno_progress progress;
        void *progress_ctx;
        uint64_t done;
        uint64_t total;
        struct steno_error *err;
};

/* ---- projects ---- */

static int add_project(struct catch_up *c, const struct project *p)
{
        if (c->project_count == c->project_room) {
                size_t room = c->project_room ? c->project_room * 2 : 16;
                struct project *more = realloc(c->projects, room * sizeof *more);
                if (!more)
                        return error_nomem(c->err);
                c->projects = more;
                c->project_room = room;
        }
        c->projects[c->project_count++] = *p;
        return 0;
}

static int note_project(void *ctx, const char *folder, const struct stat *st, int sys)
{
        struct catch_up *c = ctx;
        struct project p = {.there = true};
        if (sys == -ELOOP) { /* nothing behind a link is ours, whatever was there before */
                c->unreadable++;
                return 0;
        }
        snprintf(p.folder, sizeof p.folder, "%s", folder);
        if (sys)
                c->unreadable++;
        else
                p.now =
                    (struct looks){(int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
                        (int64_t)st->st_nlink, (int64_t)st->st_size};
        return add_project(c, &p);
}

static int by_folder(const void *a, const void *b)
{
        return strcmp(((const struct project *)a)->folder, ((const struct project *)b)->folder);
}

static struct project *project_of(struct catch_up *c, const char *folder)
{
        struct project key;
        snprintf(key.folder, sizeof key.folder, "%s", folder);
        return c->there_count ? bsearch(&key, c->projects, c->there_count, sizeof key, by_folder)
                              : NULL;
}

static int recall_project(struct catch_up *c, sqlite3_stmt *s)
{
        const char *folder = (const char *)sqlite3_column_text(s, 0);
        struct project gone = {0};
        snprintf(gone.folder, sizeof gone.folder, "%s", folder ? folder : "");
        struct project *p = project_of(c, gone.folder);
        if (!p)
                p = &gone;
        p->known = true;
        p->then = (struct looks){
            sqlite3_column_int64(s, 1), sqlite3_column_int64(s, 2), sqlite3_column_int64(s, 3)};
        /* One that cannot be looked into now stays as it was. */
        if (p->there && p->now.changed == 0)
                p->now = p->then;
        return p == &gone ? add_project(c, p) : 0;
}

static int look_at_projects(struct catch_up *c)
{
        sqlite3_stmt *s = NULL;
        int step = SQLITE_DONE;
        c->project_count = c->there_count = c->unreadable = 0;
        int rc = files_each_project(c->x->store, note_project, c, c->err);
        if (rc == 0 && c->project_count)
                qsort(c->projects, c->project_count, sizeof *c->projects, by_folder);
        c->there_count = c->project_count;
        if (rc == 0)
                rc = index_prepare(
                    c->x, "SELECT folder,changed,links,size FROM project", &s, c->err);
        while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
                rc = recall_project(c, s);
        if (rc == 0 && step != SQLITE_DONE)
                rc = index_error(c->x, c->err);
        sqlite3_finalize(s);
        return rc;
}

static bool looks_same(const struct project *p)
{
        return p->there == p->known && p->now.changed == p->then.changed &&
               p->now.links == p->then.links && p->now.size == p->then.size;
}

/* A link count of 1 says nothing: this file system does not count links. */
static bool is_explained(const struct project *p)
{
        return p->there && p->known && p->changes && !p->unsure && p->now.links > 1 &&
               p->then.links > 1 && p->now.links - p->then.links == p->more;
}

static int remember_projects(struct catch_up *c)
{
        sqlite3_stmt *put = NULL, *drop = NULL;
        int rc = index_prepare(
            c->x, "INSERT OR REPLACE INTO project VALUES (?1,?2,?3,?4)", &put, c->err);
        if (rc == 0)
                rc = index_prepare(c->x, "DELETE FROM project WHERE folder=?1", &drop, c->err);
        for (size_t i = 0; rc == 0 && i < c->project_count; i++) {
                const struct project *p = &c->projects[i];
                if (looks_same(p) || (p->there && p->now.changed == 0))
                        continue;
                sqlite3_stmt *s = p->there ? put : drop;
                index_bind(s, 1, p->folder);
                if (p->there) {
                        sqlite3_bind_int64(s, 2, p->now.changed);
                        sqlite3_bind_int64(s, 3, p->now.links);
                        sqlite3_bind_int64(s, 4, p->now.size);
                }
                rc = index_step(c->x, s, c->err);
        }
        sqlite3_finalize(put);
        sqlite3_finalize(drop);
        return rc;
}

/* ---- conversations ---- */

static int look_at(struct catch_up *c, const char *project_folder, const char *folder)
{
        struct row_change change = {0};
        c->done++;
        if (c->progress && c->done % 64 == 0 &&
            c->progress(c->progress_ctx, "index", c->done, c->total))
                return error_set(c->err, STENO_EINTERRUPTED, "stopped");
        int rc = row_update(&c->rows, project_folder, folder, &change, c->err);
        struct project *p = rc == 0 ? project_of(c, project_folder) : NULL;
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

static void list_name(struct buf *list, const char *project_folder, const char *folder)
{
        buf_puts(list, project_folder);
        buf_putc(list, '/');
        buf_puts(list, folder);
        buf_putc(list, '\n');
}

/* ---- names ---- */

struct names {
        struct buf text; /* ended by NULs */
        size_t count;
        const char **sorted;
        struct buf *links; /* lines of what is looked at in any case */
};

static int note_name(void *ctx, const char *project_folder, const char *folder, bool link)
{
        struct names *n = ctx;
        if (link) /* that its name is known says nothing: it was a folder then, perhaps */
                list_name(n->links, project_folder, folder);
        buf_put(&n->text, folder, strlen(folder) + 1);
        n->count++;
        return n->text.failed;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int sort_names(struct names *n, struct steno_error *err)
{
        n->sorted = malloc((n->count + 1) * sizeof *n->sorted);
        if (!n->sorted || n->text.failed)
                return error_nomem(err);
        const char *at = n->text.p;
        for (size_t i = 0; i < n->count; i++, at += strlen(at) + 1)
                n->sorted[i] = at;
        qsort(n->sorted, n->count, sizeof *n->sorted, by_name);
        return 0;
}

/* Both are in order: what only one of them has goes into `list`, with c->all everything. */
static int merge_names(
    struct catch_up *c, const char *project, const struct names *n, struct buf *list)
{
        sqlite3_stmt *s = NULL;
        size_t i = 0;
        int step = SQLITE_ROW;
        int rc = index_prepare(
            c->x, "SELECT folder FROM conv WHERE project_folder=?1 ORDER BY folder", &s, c->err);
        if (rc)
                return rc;
        index_bind(s, 1, project);
        while ((step = sqlite3_step(s)) == SQLITE_ROW) {
                const char *row = (const char *)sqlite3_column_text(s, 0);
                int order = 1;
                for (; i < n->count && (order = strcmp(n->sorted[i], row)) < 0; i++)
                        list_name(list, project, n->sorted[i]);
                bool both = i < n->count && order == 0;
                if (!both || c->all)
                        list_name(list, project, row);
                i += both;
        }
        for (; step == SQLITE_DONE && i < n->count; i++)
                list_name(list, project, n->sorted[i]);
        if (step != SQLITE_DONE)
                rc = index_error(c->x, c->err);
        sqlite3_finalize(s);
        return rc;
}

/* Lists what is in the folder of a project or in its rows, and not in both. */
static int compare_names(struct catch_up *c, struct project *p, struct buf *list)
{
        struct names n = {.links = list};
        struct steno_error why;
        buf_init(&n.text, 0);
        int rc = p->there ? files_each_in(c->x->store, p->folder, note_name, &n, &why) : 0;
        if (rc < 0 && rc != STENO_ENOMEM) {
                c->unreadable += p->now.changed != 0;
                p->now.changed = 0; /* looked at again next time */
                rc = 0;
        } else {
                rc = sort_names(&n, c->err);
                if (rc == 0)
                        rc = merge_names(c, p->folder, &n, list);
        }
        free(n.sorted);
        buf_release(&n.text);
        return rc;
}

static int list_changed_folders(struct catch_up *c, struct buf *list)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < c->project_count; i++) {
                struct project *p = &c->projects[i];
                bool changed = !looks_same(p) && !is_explained(p);
                if (changed || c->all)
                        rc = compare_names(c, p, list);
        }
        return rc ? rc : buf_check(list, c->err);
}

/* ---- what there is to do ---- */

static int list_unreadable(struct catch_up *c, struct buf *list)
{
        sqlite3_stmt *s = NULL;
        int step = SQLITE_DONE;
        int rc = index_prepare(
            c->x, "SELECT project_folder,folder FROM conv WHERE unreadable", &s, c->err);
        while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
                list_name(list, (const char *)sqlite3_column_text(s, 0),
                    (const char *)sqlite3_column_text(s, 1));
        if (rc == 0 && step != SQLITE_DONE)
                rc = index_error(c->x, c->err);
        sqlite3_finalize(s);
        return rc ? rc : buf_check(list, c->err);
}

static bool state_is(struct index *x, const char *key, const char *value)
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

static int set_state(struct index *x, const char *key, const char *value, struct steno_error *err)
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
        int sys = fs_slurp(fs, root, "recent.old", BUF_MAX_DEFAULT, &text, &n);
        if (sys == 0)
                buf_put(list, text, n);
        else if (sys != -ENOENT)
                c->all = true; /* whatever it was to say */
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
                    state_is(c->x, "boot", boot) && list_unreadable(c, &unreadable) == 0 &&
                    unreadable.n == 0 && look_at_projects(c) == 0;
        buf_release(&unreadable);
        for (size_t i = 0; none && i < c->project_count; i++)
                none = looks_same(&c->projects[i]);
        return none;
}

/* The work, inside the transaction. */
static int catch_up(struct catch_up *c, const char *boot)
{
        struct buf list;
        buf_init(&list, 0);
        c->all = !state_is(c->x, "boot", boot);
        int rc = row_writer_init(&c->rows, c->x, c->err);
        if (rc == 0 && !c->x->in_memory)
                rc = take_recent(c, &list);
        /* After that: what is made from now on changes its folder's looks once more. */
        if (rc == 0)
                rc = look_at_projects(c);
        if (rc == 0 && !c->all) {
                rc = list_unreadable(c, &list);
                if (rc == 0)
                        rc = look_at_listed(c, &list);
        }
        buf_clear(&list);
        if (rc == 0)
                rc = list_changed_folders(c, &list);
        if (rc == 0)
                rc = look_at_listed(c, &list);
        if (rc == 0)
                rc = remember_projects(c);
        if (rc == 0 && c->all)
                rc = set_state(c->x, "boot", boot, c->err);
        buf_release(&list);
        row_writer_release(&c->rows);
        return rc;
}

static int bring_up_to_date(struct catch_up *c)
{
        const struct env *env = files_env(c->x->store);
        char boot[40];
        env->boot(env, boot);
        if (nothing_new(c, boot))
                return 0;
        int rc = index_run(c->x, "BEGIN IMMEDIATE", c->err);
        if (rc)
                return rc;
        rc = catch_up(c, boot);
        if (rc == 0)
                rc = index_run(c->x, "COMMIT", c->err);
        if (rc)
                sqlite3_exec(c->x->db, "ROLLBACK", NULL, NULL, NULL);
        else if (!c->x->in_memory)
                env->fs->unlink(env->fs, files_root(c->x->store), "recent.old", 0);
        return rc;
}

static int count_unreadable(struct catch_up *c, uint64_t *out)
{
        struct buf list;
        buf_init(&list, 0);
        int rc = list_unreadable(c, &list);
        *out = c->unreadable + count_lines(buf_str(&list));
        buf_release(&list);
        return rc;
}

int index_catch_up(struct index *x, steno_progress progress, void *progress_ctx,
    uint64_t *unreadable, struct steno_error *err)
{
        struct catch_up c = {
            .x = x, .progress = progress, .progress_ctx = progress_ctx, .err = err};
        pthread_mutex_lock(&x->mutex);
        int rc = index_open_file(x, err);
        if (rc == 0)
                rc = bring_up_to_date(&c);
        if (rc && rc != STENO_ENOMEM && x->failed) {
                c.done = c.total = 0;
                rc = index_open_memory(x, err);
                if (rc == 0)
                        rc = bring_up_to_date(&c);
        }
        if (rc == 0 && progress && c.done >= 64)
                progress(progress_ctx, "index", c.done, c.done);
        if (rc == 0)
                rc = count_unreadable(&c, unreadable);
        free(c.projects);
        pthread_mutex_unlock(&x->mutex);
        return rc;
}

int index_scan(struct index *x, struct steno_error *err)
{
        struct catch_up c = {.x = x, .err = err};
        int rc = index_open_memory(x, err);
        if (rc == 0)
                rc = bring_up_to_date(&c);
        free(c.projects);
        return rc;
}

int index_rebuild(struct index *x, struct steno_error *err)
{
        uint64_t unreadable;
        pthread_mutex_lock(&x->mutex);
        index_discard(x);
        pthread_mutex_unlock(&x->mutex);
        return index_catch_up(x, NULL, NULL, &unreadable, err);
}
