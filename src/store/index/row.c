/*
 * row.c - one conversation's row, and the runs that are in its folder (index_work.h).
 *
 * A row is made in three steps: what the index says already, what the folder says, and writing what
 * is new. The second is most of the work and uses no database, so that a scan does it in several
 * threads (index_scan.c).
 */
#include "store/index/index_work.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/json.h"
#include "base/title.h"
#include "store/files/run.h"

int row_writer_init(struct row_writer *w, struct index *x, struct steno_error *err)
{
        *w = (struct row_writer){.x = x};
        struct {
                sqlite3_stmt **s;
                const char *sql;
        } all[] = {
            {&w->get, "SELECT c.bytes,log_changed,amended,hidden,unreadable,o.bytes,changed"
                      " FROM conv c LEFT JOIN outputs o USING (project_folder,folder)"
                      " WHERE project_folder=?1 AND folder=?2"},
            {&w->put, "INSERT OR REPLACE INTO conv VALUES"
                      " (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,0)"},
            {&w->put_unreadable, "INSERT OR REPLACE INTO conv VALUES"
                                 " (?1,?2,?1,?2,'','','',0,0,0,0,0,0,1)"},
            {&w->drop, "DELETE FROM conv WHERE project_folder=?1 AND folder=?2"},
            {&w->put_run, "INSERT OR REPLACE INTO run VALUES (?1,?2,?3)"},
            {&w->drop_runs, "DELETE FROM run WHERE folder=?2 AND project=(SELECT project FROM conv"
                            " WHERE project_folder=?1 AND folder=?2)"},
            {&w->put_outputs, "INSERT OR REPLACE INTO outputs VALUES (?1,?2,?3,?4)"},
            {&w->drop_outputs, "DELETE FROM outputs WHERE project_folder=?1 AND folder=?2"},
            {&w->put_unfinished, "INSERT OR REPLACE INTO unfinished VALUES (?1,?2,?3,?4)"},
            {&w->drop_unfinished, "DELETE FROM unfinished WHERE project_folder=?1 AND folder=?2"},
        };
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < sizeof all / sizeof *all; i++)
                rc = index_prepare(x, all[i].sql, all[i].s, err);
        return rc;
}

void row_writer_release(struct row_writer *w)
{
        sqlite3_finalize(w->get);
        sqlite3_finalize(w->put);
        sqlite3_finalize(w->put_unreadable);
        sqlite3_finalize(w->drop);
        sqlite3_finalize(w->put_run);
        sqlite3_finalize(w->drop_runs);
        sqlite3_finalize(w->put_outputs);
        sqlite3_finalize(w->drop_outputs);
        sqlite3_finalize(w->put_unfinished);
        sqlite3_finalize(w->drop_unfinished);
}

void row_look_at(struct row_look *l, const char *project_folder, const char *folder)
{
        *l = (struct row_look){0};
        snprintf(l->project_folder, sizeof l->project_folder, "%s", project_folder);
        snprintf(l->folder, sizeof l->folder, "%s", folder);
}

/* A statement whose first two parameters are the folders' names. */
static int step_named(struct row_writer *w, sqlite3_stmt *s, const char *project_folder,
    const char *folder, struct steno_error *err)
{
        index_bind(s, 1, project_folder);
        index_bind(s, 2, folder);
        return index_step(w->x, s, err);
}

static int get_known(struct row_writer *w, const char *project_folder, const char *folder,
    struct row_known *out, struct steno_error *err)
{
        *out = (struct row_known){0};
        index_bind(w->get, 1, project_folder);
        index_bind(w->get, 2, folder);
        int step = sqlite3_step(w->get);
        if (step == SQLITE_ROW)
                *out = (struct row_known){true, sqlite3_column_int64(w->get, 0),
                    sqlite3_column_int64(w->get, 1),
                    {(uint64_t)sqlite3_column_int64(w->get, 2),
                        (uint64_t)sqlite3_column_int64(w->get, 3)},
                    sqlite3_column_int64(w->get, 4) != 0, sqlite3_column_int64(w->get, 5),
                    sqlite3_column_int64(w->get, 6)};
        int rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : index_error(w->x, err);
        sqlite3_reset(w->get);
        return rc;
}

int row_recall(struct row_writer *w, struct row_look *l, struct steno_error *err)
{
        return get_known(w, l->project_folder, l->folder, &l->known, err);
}

/* ---- what the folder says ---- */

void row_look_release(struct row_look *l)
{
        free(l->title);
        free(l->created);
        free(l->project);
        free(l->id);
        buf_release(&l->runs);
        *l = (struct row_look){0};
}

static int note_time(void *ctx, const struct backend_record *r)
{
        struct row_look *l = ctx;
        if (!r->damaged)
                snprintf(l->updated, sizeof l->updated, "%.*s", (int)r->rec.at.n, r->rec.at.p);
        return 0;
}

static int read_meta(struct files_conv *conv, struct row_look *l)
{
        char *meta = NULL;
        size_t n = 0;
        struct json j;
        json_init(&j);
        int rc = files_conv_meta(conv, &meta, &n, NULL);
        if (rc == 0 && json_parse(&j, meta, n, NULL, NULL) == STENO_ENOMEM)
                rc = STENO_ENOMEM;
        if (rc == 0) {
                l->title = title_dup(&j, 0);
                l->created = json_dup_string(&j, json_get(&j, 0, "createdAt"));
                l->project = strdup(files_conv_project(conv));
                l->id = strdup(files_conv_id(conv));
                rc = l->project && l->id ? 0 : STENO_ENOMEM;
        }
        json_release(&j);
        free(meta);
        return rc;
}

static int64_t log_changed(const struct fs *fs, struct files_conv *conv)
{
        struct stat st;
        if (fs->stat(fs, files_conv_dir(conv), "messages.jsonl", &st) != 0)
                return 0;
        return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static int read_log(const struct fs *fs, struct files_conv *conv, struct row_look *l)
{
        const struct row_known *known = &l->known;
        /* Taken before the log is read: a write that comes meanwhile changes the time, and the log
         * is read again next time. */
        l->log_changed = log_changed(fs, conv);
        int rc = files_last(conv, &l->seq, &l->bytes, NULL);
        if (rc == 0)
                rc = files_read_last(conv, 1, note_time, l, NULL);
        l->hidden = known->hidden;
        bool same = known->there && known->bytes == (int64_t)l->bytes && l->log_changed &&
                    known->log_changed == l->log_changed;
        if (rc == 0 && !same && l->seq)
                rc = hidden_count(conv, &l->hidden, NULL);
        return rc;
}

static int note_run(void *ctx, const char *name, unsigned char type)
{
        struct row_look *l = ctx;
        size_t n = strlen(name);
        (void)type;
        if (n <= 6 || strcmp(name + n - 6, ".jsonl") != 0)
                return 0;
        buf_put(&l->runs, name, n - 6);
        buf_putc(&l->runs, '\0');
        return l->runs.failed;
}

static int read_runs(const struct fs *fs, struct files_conv *conv, struct row_look *l)
{
        char name[PLAIN_NAME_MAX + 1];
        enum run_life life;
        int dir = fs->open(fs, files_conv_dir(conv), "runs", O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return 0;
        fs->list(fs, dir, note_run, l);
        fs->close(fs, dir);
        l->unfinished = l->runs.n && run_last(conv, name, &life, NULL) == 0 && life != RUN_ENDED;
        return l->runs.failed ? STENO_ENOMEM : 0;
}

static void read_outputs(struct files_conv *conv, struct row_look *l)
{
        l->outputs_changed = files_outputs_changed(conv);
        l->outputs_same =
            l->outputs_changed && l->known.there && l->outputs_changed == l->known.outputs_changed;
        if (!l->outputs_same && l->outputs_changed)
                l->outputs = files_outputs_size(conv);
}

/* R1 (store/files/recent.c): a writer that found its name in the old list has committed before we
 * read, or its lock is still held; then it is looked at again next time. */
static bool is_being_written(const struct fs *fs, struct files_conv *conv)
{
        int probe = fs->open(fs, files_conv_dir(conv), ".", O_RDONLY | O_DIRECTORY, 0);
        bool held = probe >= 0 && fs->flock(fs, probe, LOCK_SH | LOCK_NB) != 0;
        if (probe >= 0)
                fs->close(fs, probe);
        return held;
}

void row_read(struct index *x, struct row_look *l)
{
        const struct fs *fs = files_env(x->store)->fs;
        struct files_conv *conv;
        buf_init(&l->runs, 0);
        int rc = files_conv_open_folder(x->store, l->project_folder, l->folder, &conv, NULL);
        if (rc == 0) {
                l->writing = !x->in_memory && is_being_written(fs, conv);
                rc = read_meta(conv, l);
                if (rc == 0)
                        rc = read_log(fs, conv, l);
                if (rc == 0)
                        rc = read_runs(fs, conv, l);
                if (rc == 0)
                        read_outputs(conv, l);
                files_conv_release(conv);
                /* It is there, whatever was not found in it. */
                rc = rc == STENO_ENOTFOUND ? STENO_EIO : rc;
        }
        l->nomem = rc == STENO_ENOMEM;
        l->state = rc == 0 ? ROW_READ : rc == STENO_ENOTFOUND ? ROW_GONE : ROW_UNREADABLE;
}

/* ---- writing ---- */

static int put_outputs(struct row_writer *w, const struct row_look *l, struct steno_error *err)
{
        if (l->outputs_same)
                return 0;
        index_bind(w->put_outputs, 1, l->project_folder);
        index_bind(w->put_outputs, 2, l->folder);
        sqlite3_bind_int64(w->put_outputs, 3, (sqlite3_int64)l->outputs);
        sqlite3_bind_int64(w->put_outputs, 4, l->outputs_changed);
        return index_step(w->x, w->put_outputs, err);
}

static bool outputs_are_counted(struct index *x)
{
        sqlite3_stmt *s = NULL;
        bool yes = index_prepare(x, "SELECT 1 FROM state WHERE key='outputs'", &s, NULL) == 0 &&
                   sqlite3_step(s) == SQLITE_ROW;
        sqlite3_finalize(s);
        return yes;
}

int row_fill_outputs(struct index *x, struct steno_error *err)
{
        struct row_writer w = {0};
        sqlite3_stmt *all = NULL;
        if (outputs_are_counted(x))
                return 0;
        int rc = row_writer_init(&w, x, err);
        if (rc == 0)
                rc = index_prepare(
                    x, "SELECT project_folder,folder FROM conv WHERE NOT unreadable", &all, err);
        while (rc == 0 && sqlite3_step(all) == SQLITE_ROW) {
                struct row_look l = {0};
                struct files_conv *conv;
                row_look_at(&l, (const char *)sqlite3_column_text(all, 0),
                    (const char *)sqlite3_column_text(all, 1));
                if (files_conv_open_folder(x->store, l.project_folder, l.folder, &conv, NULL))
                        continue;
                read_outputs(conv, &l);
                files_conv_release(conv);
                rc = put_outputs(&w, &l, err);
        }
        sqlite3_finalize(all);
        row_writer_release(&w);
        return rc ? rc : index_run(x, "INSERT OR REPLACE INTO state VALUES ('outputs','1')", err);
}

static int put_runs(struct row_writer *w, const struct row_look *l, struct steno_error *err)
{
        int rc = 0;
        const char *end = l->runs.p + l->runs.n;
        for (const char *run = l->runs.p; rc == 0 && run < end; run += strlen(run) + 1) {
                index_bind(w->put_run, 1, run);
                index_bind(w->put_run, 2, l->project);
                index_bind(w->put_run, 3, l->folder);
                rc = index_step(w->x, w->put_run, err);
        }
        return rc;
}

/* A run that may not have ended: a list looks at it. */
static int put_unfinished(struct row_writer *w, const struct row_look *l, struct steno_error *err)
{
        if (!l->unfinished)
                return 0;
        index_bind(w->put_unfinished, 1, l->project_folder);
        index_bind(w->put_unfinished, 2, l->folder);
        index_bind(w->put_unfinished, 3, l->project);
        index_bind(w->put_unfinished, 4, l->id);
        return index_step(w->x, w->put_unfinished, err);
}

static int put_row(struct row_writer *w, const struct row_look *l, struct steno_error *err)
{
        const char *created = l->created ? l->created : l->updated;
        uint64_t shown = l->seq > l->hidden.records ? l->seq - l->hidden.records : 0;
        index_bind(w->put, 1, l->project_folder);
        index_bind(w->put, 2, l->folder);
        index_bind(w->put, 3, l->project);
        index_bind(w->put, 4, l->id);
        index_bind(w->put, 5, l->title ? l->title : "");
        index_bind(w->put, 6, created);
        index_bind(w->put, 7, l->updated[0] ? l->updated : created);
        sqlite3_bind_int64(w->put, 8, (sqlite3_int64)shown);
        sqlite3_bind_int64(w->put, 9, (sqlite3_int64)l->seq);
        sqlite3_bind_int64(w->put, 10, (sqlite3_int64)l->bytes);
        sqlite3_bind_int64(w->put, 11, l->log_changed);
        sqlite3_bind_int64(w->put, 12, (sqlite3_int64)l->hidden.amended);
        sqlite3_bind_int64(w->put, 13, (sqlite3_int64)l->hidden.records);
        int rc = index_step(w->x, w->put, err);
        if (rc == 0)
                rc = put_runs(w, l, err);
        if (rc == 0)
                rc = put_outputs(w, l, err);
        return rc ? rc : put_unfinished(w, l, err);
}

static int drop_row(struct row_writer *w, const struct row_look *l, struct steno_error *err)
{
        int rc =
            l->known.there ? step_named(w, w->drop_outputs, l->project_folder, l->folder, err) : 0;
        return rc || !l->known.there ? rc
                                     : step_named(w, w->drop, l->project_folder, l->folder, err);
}

static void look_again(struct row_writer *w, const char *project_folder, const char *folder)
{
        const struct fs *fs = files_env(w->x->store)->fs;
        char line[140];
        int n = snprintf(line, sizeof line, "%s/%s\n", project_folder, folder);
        int fd =
            fs->open(fs, files_root(w->x->store), "recent", O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (fd >= 0) {
                fs_write_all(fs, fd, line, (size_t)n);
                fs->close(fs, fd);
        }
}

int row_write(struct row_writer *w, const struct row_look *l, struct row_change *change,
    struct steno_error *err)
{
        int rc = l->nomem ? error_nomem(err) : 0;
        change->unsure = l->known.unreadable || l->state == ROW_UNREADABLE;
        change->more = l->state == ROW_GONE ? -l->known.there : !l->known.there;
        if (rc == 0 && l->known.there)
                rc = step_named(w, w->drop_runs, l->project_folder, l->folder, err);
        if (rc == 0)
                rc = step_named(w, w->drop_unfinished, l->project_folder, l->folder, err);
        if (rc)
                return rc;
        if (l->state == ROW_GONE)
                return drop_row(w, l, err);
        if (l->state == ROW_UNREADABLE)
                return step_named(w, w->put_unreadable, l->project_folder, l->folder, err);
        rc = put_row(w, l, err);
        if (rc == 0 && l->writing)
                look_again(w, l->project_folder, l->folder);
        return rc;
}

int row_update(struct row_writer *w, const char *project_folder, const char *folder,
    struct row_change *change, struct steno_error *err)
{
        struct row_look l = {0};
        row_look_at(&l, project_folder, folder);
        int rc = row_recall(w, &l, err);
        if (rc == 0) {
                row_read(w->x, &l);
                rc = row_write(w, &l, change, err);
        }
        row_look_release(&l);
        return rc;
}
