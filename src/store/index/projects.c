/*
 * projects.c - what the folders of projects look like, and which names are in them (index_work.h).
 *
 * A folder's looks are its time of change, its number of links and its size. What a person copies
 * in or removes changes them. When a folder looks different its names are compared with the rows,
 * unless what `recent` names explains the difference: a folder has a link for every folder in it.
 */
#include "store/index/index_work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"

/* ---- projects ---- */

static int add_project(struct projects *c, const struct project *p)
{
        if (!grow_room(c->all, c->count, c->room))
                return error_nomem(c->err);
        c->all[c->count++] = *p;
        return 0;
}

static int note_project(void *ctx, const char *folder, const struct stat *st, int sys)
{
        struct projects *c = ctx;
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

struct project *projects_find(struct projects *c, const char *folder)
{
        struct project key;
        snprintf(key.folder, sizeof key.folder, "%s", folder);
        return c->there_count ? bsearch(&key, c->all, c->there_count, sizeof key, by_folder) : NULL;
}

static int recall_project(struct projects *c, sqlite3_stmt *s)
{
        const char *folder = (const char *)sqlite3_column_text(s, 0);
        struct project gone = {0};
        snprintf(gone.folder, sizeof gone.folder, "%s", folder ? folder : "");
        struct project *p = projects_find(c, gone.folder);
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

int projects_look(struct projects *c)
{
        sqlite3_stmt *s = NULL;
        int step = SQLITE_DONE;
        c->count = c->there_count = c->unreadable = 0;
        int rc = files_each_project(c->x->store, note_project, c, c->err);
        if (rc == 0 && c->count)
                qsort(c->all, c->count, sizeof *c->all, by_folder);
        c->there_count = c->count;
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

bool project_looks_same(const struct project *p)
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

int projects_remember(struct projects *c)
{
        sqlite3_stmt *put = NULL, *drop = NULL;
        int rc = index_prepare(
            c->x, "INSERT OR REPLACE INTO project VALUES (?1,?2,?3,?4)", &put, c->err);
        if (rc == 0)
                rc = index_prepare(c->x, "DELETE FROM project WHERE folder=?1", &drop, c->err);
        for (size_t i = 0; rc == 0 && i < c->count; i++) {
                const struct project *p = &c->all[i];
                if (project_looks_same(p) || (p->there && p->now.changed == 0))
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

void projects_put_name(struct buf *list, const char *project_folder, const char *folder)
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
                projects_put_name(n->links, project_folder, folder);
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

/* Both are in order: what only one of them has goes into `list`, the others into `both` unless it
 * is NULL. */
static int merge_names(struct projects *c, const char *project, const struct names *n,
    struct buf *list, struct buf *both)
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
                        projects_put_name(list, project, n->sorted[i]);
                bool known = i < n->count && order == 0;
                struct buf *to = known ? both : list;
                if (to)
                        projects_put_name(to, project, row);
                i += known;
        }
        for (; step == SQLITE_DONE && i < n->count; i++)
                projects_put_name(list, project, n->sorted[i]);
        if (step != SQLITE_DONE)
                rc = index_error(c->x, c->err);
        sqlite3_finalize(s);
        return rc;
}

static int compare_names(struct projects *c, struct project *p, struct buf *list, struct buf *both)
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
                        rc = merge_names(c, p->folder, &n, list, both);
        }
        free(n.sorted);
        buf_release(&n.text);
        return rc;
}

int projects_list_changed(struct projects *c, struct buf *list)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < c->count; i++) {
                struct project *p = &c->all[i];
                if (!project_looks_same(p) && !is_explained(p))
                        rc = compare_names(c, p, list, NULL);
        }
        return rc ? rc : buf_check(list, c->err);
}

int projects_list_all(struct projects *c, struct buf *list, struct buf *both)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < c->count; i++)
                rc = compare_names(c, &c->all[i], list, both);
        if (rc == 0)
                rc = buf_check(list, c->err);
        return rc ? rc : buf_check(both, c->err);
}

void projects_release(struct projects *c)
{
        free(c->all);
        c->all = NULL;
}
