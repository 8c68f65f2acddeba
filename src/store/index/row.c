/*
 * row.c - one conversation's row, and the runs that are in its folder (work.h).
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

/* What a row says of the log, so that what did not change is not counted again. */
struct known {
        bool there;
        int64_t bytes;
        int64_t log_changed; /* ns */
        struct hidden hidden;
        bool unreadable;
        int64_t outputs;         /* bytes of them */
        int64_t outputs_changed; /* 0: they were never counted */
};

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

/* A statement whose first two parameters are the folders' names. */
static int step_named(struct row_writer *w, sqlite3_stmt *s, const char *project_folder,
    const char *folder, struct steno_error *err)
{
        index_bind(s, 1, project_folder);
        index_bind(s, 2, folder);
        return index_step(w->x, s, err);
}

static int get_known(struct row_writer *w, const char *project_folder, const char *folder,
    struct known *out, struct steno_error *err)
{
        *out = (struct known){0};
        index_bind(w->get, 1, project_folder);
        index_bind(w->get, 2, folder);
        int step = sqlite3_step(w->get);
        if (step == SQLITE_ROW)
                *out = (struct known){true, sqlite3_column_int64(w->get, 0),
                    sqlite3_column_int64(w->get, 1),
                    {(uint64_t)sqlite3_column_int64(w->get, 2),
                        (uint64_t)sqlite3_column_int64(w->get, 3)},
                    sqlite3_column_int64(w->get, 4) != 0, sqlite3_column_int64(w->get, 5),
                    sqlite3_column_int64(w->get, 6)};
        int rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : index_error(w->x, err);
        sqlite3_reset(w->get);
        return rc;
}

/* ---- runs ---- */

struct run_walk {
        struct row_writer *w;
        const char *project;
        const char *folder;
        struct steno_error *err;
        int rc;
};

static int put_run(void *ctx, const char *name, unsigned char type)
{
        struct run_walk *r = ctx;
        sqlite3_stmt *s = r->w->put_run;
        size_t n = strlen(name);
        (void)type;
        if (n <= 6 || strcmp(name + n - 6, ".jsonl") != 0)
                return 0;
        sqlite3_bind_text(s, 1, name, (int)n - 6, SQLITE_TRANSIENT);
        index_bind(s, 2, r->project);
        index_bind(s, 3, r->folder);
        r->rc = index_step(r->w->x, s, r->err);
        return r->rc != 0;
}

static int put_runs(
    struct row_writer *w, struct files_conv *conv, const char *folder, struct steno_error *err)
{
        const struct fs *fs = files_env(w->x->store)->fs;
        struct run_walk r = {
            .w = w, .project = files_conv_project(conv), .folder = folder, .err = err};
        int dir = fs->open(fs, files_conv_dir(conv), "runs", O_RDONLY | O_DIRECTORY, 0);
        if (dir < 0)
                return 0;
        fs->list(fs, dir, put_run, &r);
        fs->close(fs, dir);
        return r.rc;
}

/* ---- outputs ---- */

static int put_outputs(struct row_writer *w, const char *project_folder, const char *folder,
    struct files_conv *conv, const struct known *known, struct steno_error *err)
{
        int64_t changed = files_outputs_changed(conv);
        if (changed && known->there && changed == known->outputs_changed)
                return 0;
        index_bind(w->put_outputs, 1, project_folder);
        index_bind(w->put_outputs, 2, folder);
        sqlite3_bind_int64(
            w->put_outputs, 3, changed ? (sqlite3_int64)files_outputs_size(conv) : 0);
        sqlite3_bind_int64(w->put_outputs, 4, changed);
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
        struct known never = {0};
        sqlite3_stmt *all = NULL;
        if (outputs_are_counted(x))
                return 0;
        int rc = row_writer_init(&w, x, err);
        if (rc == 0)
                rc = index_prepare(
                    x, "SELECT project_folder,folder FROM conv WHERE NOT unreadable", &all, err);
        while (rc == 0 && sqlite3_step(all) == SQLITE_ROW) {
                const char *project_folder = (const char *)sqlite3_column_text(all, 0);
                const char *folder = (const char *)sqlite3_column_text(all, 1);
                struct files_conv *conv;
                if (files_conv_open_folder(x->store, project_folder, folder, &conv, NULL))
                        continue;
                rc = put_outputs(&w, project_folder, folder, conv, &never, err);
                files_conv_release(conv);
        }
        sqlite3_finalize(all);
        row_writer_release(&w);
        return rc ? rc : index_run(x, "INSERT OR REPLACE INTO state VALUES ('outputs','1')", err);
}

/* A run that may not have come to its end: whoever lists looks at it. */
static int put_unfinished(struct row_writer *w, const char *project_folder, const char *folder,
    struct files_conv *conv, struct steno_error *err)
{
        char name[PLAIN_NAME_MAX + 1];
        enum run_life life;
        if (run_last(conv, name, &life, NULL) || life == RUN_ENDED)
                return 0;
        index_bind(w->put_unfinished, 1, project_folder);
        index_bind(w->put_unfinished, 2, folder);
        index_bind(w->put_unfinished, 3, files_conv_project(conv));
        index_bind(w->put_unfinished, 4, files_conv_id(conv));
        return index_step(w->x, w->put_unfinished, err);
}

/* ---- the row ---- */

struct facts {
        char *title;
        char *created;
        char updated[40];
        uint64_t seq;
        uint64_t bytes;
        int64_t log_changed;
        struct hidden hidden;
};

static void facts_release(struct facts *f)
{
        free(f->title);
        free(f->created);
}

static int note_time(void *ctx, const struct backend_record *r)
{
        struct facts *f = ctx;
        if (!r->damaged)
                snprintf(f->updated, sizeof f->updated, "%.*s", (int)r->rec.at.n, r->rec.at.p);
        return 0;
}

static int read_meta(struct files_conv *conv, struct facts *f, struct steno_error *err)
{
        char *meta = NULL;
        size_t n = 0;
        struct json j;
        json_init(&j);
        int rc = files_conv_meta(conv, &meta, &n, err);
        if (rc == 0 && json_parse(&j, meta, n, NULL, NULL) == STENO_ENOMEM)
                rc = error_nomem(err);
        if (rc == 0) {
                f->title = title_dup(&j, 0);
                f->created = json_dup_string(&j, json_get(&j, 0, "createdAt"));
        }
        json_release(&j);
        free(meta);
        return rc;
}

static int64_t log_changed(struct row_writer *w, struct files_conv *conv)
{
        const struct fs *fs = files_env(w->x->store)->fs;
        struct stat st;
        if (fs->stat(fs, files_conv_dir(conv), "messages.jsonl", &st) != 0)
                return 0;
        return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static int read_facts(struct row_writer *w, struct files_conv *conv, const struct known *known,
    struct facts *f, struct steno_error *err)
{
        int rc = read_meta(conv, f, err);
        /* Taken before the log is read: a write that comes meanwhile changes the time, and the log
         * is read again next time. */
        f->log_changed = log_changed(w, conv);
        if (rc == 0)
                rc = files_last(conv, &f->seq, &f->bytes, err);
        if (rc == 0)
                rc = files_read_last(conv, 1, note_time, f, err);
        f->hidden = known->hidden;
        bool same = known->there && known->bytes == (int64_t)f->bytes && f->log_changed &&
                    known->log_changed == f->log_changed;
        if (rc == 0 && !same && f->seq)
                rc = hidden_count(conv, &f->hidden, err);
        return rc;
}

static int put_facts(struct row_writer *w, const char *project_folder, const char *folder,
    struct files_conv *conv, const struct facts *f, struct steno_error *err)
{
        const char *created = f->created ? f->created : f->updated;
        uint64_t shown = f->seq > f->hidden.records ? f->seq - f->hidden.records : 0;
        index_bind(w->put, 1, project_folder);
        index_bind(w->put, 2, folder);
        index_bind(w->put, 3, files_conv_project(conv));
        index_bind(w->put, 4, files_conv_id(conv));
        index_bind(w->put, 5, f->title ? f->title : "");
        index_bind(w->put, 6, created);
        index_bind(w->put, 7, f->updated[0] ? f->updated : created);
        sqlite3_bind_int64(w->put, 8, (sqlite3_int64)shown);
        sqlite3_bind_int64(w->put, 9, (sqlite3_int64)f->seq);
        sqlite3_bind_int64(w->put, 10, (sqlite3_int64)f->bytes);
        sqlite3_bind_int64(w->put, 11, f->log_changed);
        sqlite3_bind_int64(w->put, 12, (sqlite3_int64)f->hidden.amended);
        sqlite3_bind_int64(w->put, 13, (sqlite3_int64)f->hidden.records);
        int rc = index_step(w->x, w->put, err);
        return rc ? rc : put_runs(w, conv, folder, err);
}

/* R1 (store/files/recent.c): a writer that found its name in the old list has committed before we
 * read, or its lock is still held; then it is looked at again next time. */
static bool is_being_written(struct row_writer *w, struct files_conv *conv)
{
        const struct fs *fs = files_env(w->x->store)->fs;
        int probe = fs->open(fs, files_conv_dir(conv), ".", O_RDONLY | O_DIRECTORY, 0);
        bool held = probe >= 0 && fs->flock(fs, probe, LOCK_SH | LOCK_NB) != 0;
        if (probe >= 0)
                fs->close(fs, probe);
        return held;
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

/* Reads it and writes its row; *readable is false when the folder is the reason for failing. */
static int update_open(struct row_writer *w, const char *project_folder, const char *folder,
    struct files_conv *conv, const struct known *known, bool *readable, struct steno_error *err)
{
        struct facts f = {0};
        bool writing = !w->x->in_memory && is_being_written(w, conv);
        int rc = read_facts(w, conv, known, &f, err);
        *readable = rc == 0 || rc == STENO_ENOMEM;
        if (rc == 0)
                rc = put_facts(w, project_folder, folder, conv, &f, err);
        if (rc == 0)
                rc = put_outputs(w, project_folder, folder, conv, known, err);
        if (rc == 0)
                rc = put_unfinished(w, project_folder, folder, conv, err);
        if (rc == 0 && writing)
                look_again(w, project_folder, folder);
        facts_release(&f);
        return rc;
}

int row_update(struct row_writer *w, const char *project_folder, const char *folder,
    struct row_change *change, struct steno_error *err)
{
        struct files_conv *conv;
        struct known known;
        bool readable = true;
        int rc = get_known(w, project_folder, folder, &known, err);
        if (rc == 0 && known.there)
                rc = step_named(w, w->drop_runs, project_folder, folder, err);
        if (rc == 0)
                rc = step_named(w, w->drop_unfinished, project_folder, folder, err);
        if (rc)
                return rc;
        change->unsure = known.unreadable;
        rc = files_conv_open_folder(w->x->store, project_folder, folder, &conv, err);
        change->more = rc == STENO_ENOTFOUND ? -known.there : !known.there;
        if (rc == STENO_ENOTFOUND && known.there) {
                rc = step_named(w, w->drop_outputs, project_folder, folder, err);
                return rc ? rc : step_named(w, w->drop, project_folder, folder, err);
        }
        if (rc == STENO_ENOTFOUND)
                return 0;
        if (rc == 0) {
                rc = update_open(w, project_folder, folder, conv, &known, &readable, err);
                files_conv_release(conv);
        } else {
                readable = rc == STENO_ENOMEM;
        }
        change->unsure = change->unsure || !readable;
        return readable ? rc : step_named(w, w->put_unreadable, project_folder, folder, err);
}
