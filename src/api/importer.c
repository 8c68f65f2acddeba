/*
 * importer.c - transcripts of other tools: which files there are, and what became of them.
 *
 * An importer remembers how the files looked that it has read (inode, size, time), so that running
 * it again costs a look at each; that is how --watch follows them. What was read of a file is
 * remembered in the conversation as well, for the next importer.
 */
#include "api/importing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "base/named_file.h"

#define DEPTH_MAX 32 /* folders below what was named */

/* How a file looked when it was read. */
struct looks {
        char *path;
        ino_t ino;
        off_t size;
        struct timespec changed;
        off_t wal; /* of the database's log */
        struct timespec wal_changed;
        struct timespec beside; /* of other files that belong to it */
        int refused;            /* why it could not be read the last time, 0: it could */
};

struct steno_importer {
        struct steno_store *store;
        char *project;
        steno_progress progress;
        void *progress_ctx;
        char **paths;
        size_t count;
        struct looks *known; /* an open table by hash of the path */
        size_t known_count;
        size_t known_cap;
};

/* ---- what was read ---- */

static struct looks *looks_slot(struct looks *table, size_t cap, const char *path)
{
        size_t i = (size_t)hash_64(path, strlen(path)) & (cap - 1);
        while (table[i].path && strcmp(table[i].path, path) != 0)
                i = (i + 1) & (cap - 1);
        return &table[i];
}

static struct looks *looks_of(struct steno_importer *m, const char *path)
{
        if (m->known_count * 2 >= m->known_cap) {
                size_t cap = m->known_cap ? m->known_cap * 2 : 256;
                struct looks *table = calloc(cap, sizeof *table);
                if (!table)
                        return NULL;
                for (size_t i = 0; i < m->known_cap; i++)
                        if (m->known[i].path)
                                *looks_slot(table, cap, m->known[i].path) = m->known[i];
                free(m->known);
                m->known = table;
                m->known_cap = cap;
        }
        struct looks *l = looks_slot(m->known, m->known_cap, path);
        if (!l->path) {
                l->path = strdup(path);
                if (!l->path)
                        return NULL;
                m->known_count++;
        }
        return l;
}

static bool same_time(struct timespec a, struct timespec b)
{
        return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static void look_at_wal(const char *path, struct looks *now)
{
        const struct fs *fs = fs_real();
        char *wal = NULL;
        struct stat st;
        if (asprintf(&wal, "%s-wal", path) < 0)
                return;
        int fd = named_file_open(wal);
        if (fd >= 0 && fs->fstat(fs, fd, &st) == 0) {
                now->wal = st.st_size;
                now->wal_changed = st.st_mtim;
        }
        if (fd >= 0)
                fs->close(fs, fd);
        free(wal);
}

/* ---- files ---- */

static void put_error(struct import_run *run, const char *path, const struct steno_error *why)
{
        struct jsonw w = run->errors.n ? jsonw_behind(&run->errors) : jsonw_to(&run->errors);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "path", path);
        jsonw_field_cstr(&w, "message", why->msg);
        jsonw_object_end(&w);
}

/* What is not there, or gone meanwhile, is not an error: it is looked for again next time. What
 * nobody may read is one, because it is not the same as nothing; who watches is told of it once. */
static void put_unreadable(
    struct steno_importer *m, struct import_run *run, const char *path, int sys)
{
        struct steno_error why = {0};
        struct looks *l = sys == -ENOENT ? NULL : looks_of(m, path);
        if (sys == -ENOENT || (l && l->refused == sys))
                return;
        if (l)
                l->refused = sys;
        error_sys(&why, sys, "cannot open it");
        put_error(run, path, &why);
}

/* Errors of the store end a run; those of a file do not. */
static bool is_fatal(int rc)
{
        return rc == STENO_ENOMEM || rc == STENO_EFULL || rc == STENO_EINTERRUPTED ||
               rc == STENO_EPOISONED || rc == STENO_EDENIED;
}

static int import_file(struct steno_importer *m, struct import_run *run, const char *path)
{
        const struct fs *fs = fs_real();
        struct steno_error why = {0}, *err = run->err;
        struct stat st;
        int fd = named_file_open(path);
        if (fd < 0 || fs->fstat(fs, fd, &st) || !S_ISREG(st.st_mode)) {
                if (fd >= 0)
                        fs->close(fs, fd);
                if (fd < 0)
                        put_unreadable(m, run, path, fd);
                return 0;
        }
        struct looks *known = looks_of(m, path);
        struct looks now = {.ino = st.st_ino, .size = st.st_size, .changed = st.st_mtim};
        look_at_wal(path, &now);
        now.beside = foreign_changed(path);
        if (!known) {
                fs->close(fs, fd);
                return error_nomem(err);
        }
        if (known->ino == now.ino && known->size == now.size &&
            same_time(known->changed, now.changed) && known->wal == now.wal &&
            same_time(known->wal_changed, now.wal_changed) &&
            same_time(known->beside, now.beside)) {
                fs->close(fs, fd);
                return 0;
        }
        struct import_source source = {
            .path = path, .fd = fd, .size = (uint64_t)st.st_size, .inode = (uint64_t)st.st_ino};
        run->err = &why;
        int rc = import_source_read(run, &source);
        run->err = err;
        fs->close(fs, fd);
        now.path = known->path;
        *known = now;
        run->counts.files += rc == 1;
        run->counts.unknown += rc == 0;
        if (rc >= 0)
                return 0;
        if (is_fatal(rc)) {
                known->ino = 0;
                if (err)
                        *err = why;
                return rc;
        }
        put_error(run, path, &why);
        return 0;
}

/* ---- folders ---- */

struct walk {
        struct steno_importer *m;
        struct import_run *run;
        const char *folder;
        char **names; /* sorted before they are looked at, so that a run is the same each time */
        size_t count;
        size_t cap;
        bool failed;
};

static bool is_candidate(const char *name)
{
        static const char *const ENDS[] = {".jsonl", ".jsonl.zst", ".json", ".db", ".sqlite", NULL};
        size_t n = strlen(name);
        for (size_t i = 0; ENDS[i]; i++) {
                size_t k = strlen(ENDS[i]);
                if (n > k && strcmp(name + n - k, ENDS[i]) == 0)
                        return true;
        }
        return false;
}

/* Folders that hold no sessions. Those of opencode's storage/ are read with the sessions that they
 * belong to. */
static bool is_passed_over(const char *folder, const char *name)
{
        const char *slash = strrchr(folder, '/');
        bool storage = slash && strcmp(slash, "/storage") == 0;
        return strcmp(name, "node_modules") == 0 || strcmp(name, ".git") == 0 ||
               (storage && (strcmp(name, "message") == 0 || strcmp(name, "part") == 0));
}

static int note_name(void *ctx, const char *name, unsigned char type)
{
        struct walk *w = ctx;
        bool folder = type == DT_DIR;
        if (folder ? is_passed_over(w->folder, name) : type != DT_REG || !is_candidate(name))
                return 0;
        if (!grow_room(w->names, w->count, w->cap)) {
                w->failed = true;
                return 1;
        }
        char *full = NULL;
        if (asprintf(&full, "%s/%s%s", w->folder, name, folder ? "/" : "") < 0) {
                w->failed = true;
                return 1;
        }
        w->names[w->count++] = full;
        return 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int import_folder(
    struct steno_importer *m, struct import_run *run, const char *folder, unsigned depth);

static int import_named(
    struct steno_importer *m, struct import_run *run, char *path, unsigned depth)
{
        size_t n = strlen(path);
        if (n && path[n - 1] == '/') {
                path[n - 1] = '\0';
                return depth < DEPTH_MAX ? import_folder(m, run, path, depth + 1) : 0;
        }
        return import_file(m, run, path);
}

static int import_folder(
    struct steno_importer *m, struct import_run *run, const char *folder, unsigned depth)
{
        const struct fs *fs = fs_real();
        struct walk w = {.m = m, .run = run, .folder = folder};
        int rc = 0;
        int dir = fs->open_root(fs, folder, false);
        if (dir < 0) {
                put_unreadable(m, run, folder, dir);
                return 0;
        }
        if (m->known_cap)
                looks_slot(m->known, m->known_cap, folder)->refused = 0;
        int sys = fs->list(fs, dir, note_name, &w);
        fs->close(fs, dir);
        if (sys < 0) /* the files that were seen are imported all the same */
                put_unreadable(m, run, folder, sys);
        if (w.failed)
                rc = error_nomem(run->err);
        if (w.count)
                qsort(w.names, w.count, sizeof *w.names, by_name);
        for (size_t i = 0; i < w.count; i++) {
                if (rc == 0)
                        rc = import_named(m, run, w.names[i], depth);
                free(w.names[i]);
        }
        free(w.names);
        return rc;
}

static int import_path(struct steno_importer *m, struct import_run *run, const char *path)
{
        const struct fs *fs = fs_real();
        struct stat st;
        int fd = named_file_open(path);
        if (fd < 0) {
                put_unreadable(m, run, path, fd);
                return 0;
        }
        bool folder = fs->fstat(fs, fd, &st) == 0 && S_ISDIR(st.st_mode);
        fs->close(fs, fd);
        return folder ? import_folder(m, run, path, 0) : import_file(m, run, path);
}

/* ---- the report ---- */

static void run_init(struct import_run *run, struct steno_store *store,
    const struct steno_importer_options *opt, struct steno_error *err)
{
        *run = (struct import_run){.store = store, .err = err};
        run->project = OPTION(opt, struct steno_importer_options, project, NULL);
        run->progress = OPTION(opt, struct steno_importer_options, progress, NULL);
        run->progress_ctx = OPTION(opt, struct steno_importer_options, progress_ctx, NULL);
        buf_init(&run->changed, 0);
        buf_init(&run->errors, 0);
}

static void run_release(struct import_run *run)
{
        buf_release(&run->changed);
        buf_release(&run->errors);
}

static void put_list(struct jsonw *w, const char *key, const struct buf *items)
{
        jsonw_key(w, key);
        jsonw_array(w);
        if (items->n)
                jsonw_raw(w, buf_str(items));
        jsonw_array_end(w);
}

static int run_report(const struct import_run *run, char **report)
{
        const struct import_counts *c = &run->counts;
        const struct {
                const char *name;
                uint64_t n;
        } rows[] = {{"files", c->files}, {"conversations", c->conversations},
            {"messages", c->messages}, {"calls", c->calls}, {"results", c->results},
            {"replaced", c->replaced}, {"forks", c->forks}, {"other", c->other},
            {"skipped", c->skipped}, {"damaged", c->damaged}, {"torn", c->torn},
            {"unknown", c->unknown}};
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                jsonw_field_u64(&w, rows[i].name, rows[i].n);
        put_list(&w, "changed", &run->changed);
        put_list(&w, "errors", &run->errors);
        jsonw_object_end(&w);
        if (run->changed.failed || run->errors.failed)
                b.failed = STENO_ENOMEM;
        *report = buf_take(&b, NULL);
        buf_release(&b);
        return *report ? 0 : error_nomem(run->err);
}

/* One import of a store at a time: two that read the same file would store it twice. */
static int lock_imports(
    struct steno_store *store, struct backend_lock **out, struct steno_error *err)
{
        return backend_lock(store->backend, "import", out, err);
}

/* ---- the public calls ---- */

int steno_importer_new(struct steno_store *store, const struct steno_importer_options *opt,
    struct steno_importer **out, struct steno_error *err)
{
        struct str legal;
        int rc = optstruct_check(opt, sizeof *opt, err);
        const char *project = rc ? NULL : OPTION(opt, struct steno_importer_options, project, NULL);
        if (rc == 0)
                rc = api_store_project(project, &legal, err);
        if (rc)
                return rc;
        struct steno_importer *m = calloc(1, sizeof *m);
        if (m && project)
                m->project = strdup(project);
        if (!m || (project && !m->project)) {
                free(m);
                return error_nomem(err);
        }
        m->store = store;
        m->progress = OPTION(opt, struct steno_importer_options, progress, NULL);
        m->progress_ctx = OPTION(opt, struct steno_importer_options, progress_ctx, NULL);
        api_store_hold(store);
        *out = m;
        return 0;
}

static int add_path(struct steno_importer *m, const char *path, struct steno_error *err)
{
        char **paths = realloc(m->paths, (m->count + 1) * sizeof *paths);
        if (!paths)
                return error_nomem(err);
        m->paths = paths;
        char *full = named_file_absolute(path);
        if (!full)
                return error_nomem(err);
        for (size_t n = strlen(full); n > 1 && full[n - 1] == '/'; n--)
                full[n - 1] = '\0';
        m->paths[m->count++] = full;
        return 0;
}

int steno_importer_add(struct steno_importer *m, const char *path, struct steno_error *err)
{
        int fd = named_file_open(path);
        if (fd < 0)
                return fd == -ENOENT ? error_set(err, STENO_ENOTFOUND, "there is no %.180s", path)
                                     : error_sys(err, fd, "cannot open %.180s", path);
        fs_real()->close(fs_real(), fd);
        return add_path(m, path, err);
}

static int add_place(struct steno_importer *m, const struct foreign_place *p, const char *home,
    struct steno_error *err)
{
        const char *folder = p->variable ? getenv(p->variable) : NULL;
        char *path = NULL;
        int n;
        if (folder && *folder)
                n = asprintf(&path, "%s%s%s", folder, *p->below ? "/" : "", p->below);
        else if (p->home && home)
                n = asprintf(&path, "%s/%s", home, p->home);
        else
                return 0;
        if (n < 0)
                return error_nomem(err);
        int rc = add_path(m, path, err);
        free(path);
        return rc;
}

int steno_importer_add_known(struct steno_importer *m, const char *home, struct steno_error *err)
{
        int rc = 0;
        home = home ? home : getenv("HOME");
        for (size_t i = 0; rc == 0 && foreign_at(i); i++)
                for (const struct foreign_place *p = foreign_at(i)->places;
                     rc == 0 && p && (p->variable || p->below || p->home); p++)
                        rc = add_place(m, p, home, err);
        return rc;
}

int steno_importer_run(struct steno_importer *m, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct steno_importer_options opt = {.size = sizeof opt,
            .project = m->project,
            .progress = m->progress,
            .progress_ctx = m->progress_ctx};
        struct import_run run;
        run_init(&run, m->store, &opt, err ? err : &why);
        struct backend_lock *lock = NULL;
        int rc = lock_imports(m->store, &lock, run.err);
        for (size_t i = 0; rc == 0 && i < m->count; i++)
                rc = import_path(m, &run, m->paths[i]);
        backend_unlock(lock);
        if (rc == 0 && report)
                rc = run_report(&run, report);
        run_release(&run);
        return rc;
}

void steno_importer_free(struct steno_importer *m)
{
        if (!m)
                return;
        for (size_t i = 0; i < m->count; i++)
                free(m->paths[i]);
        for (size_t i = 0; i < m->known_cap; i++)
                free(m->known[i].path);
        free(m->known);
        free(m->paths);
        free(m->project);
        api_store_release(m->store);
        free(m);
}

static int import_one(struct steno_store *store, const struct steno_importer_options *opt,
    const struct import_source *source, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct import_run run;
        struct str legal;
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        run_init(&run, store, opt, err ? err : &why);
        rc = api_store_project(run.project, &legal, run.err);
        struct backend_lock *lock = NULL;
        if (rc == 0)
                rc = lock_imports(store, &lock, run.err);
        if (rc == 0)
                rc = import_source_read(&run, source);
        run.counts.files = rc == 1;
        if (rc == 0)
                rc = error_set(run.err, STENO_EPROTO, "this is not a transcript that Steno knows");
        backend_unlock(lock);
        if (rc > 0)
                rc = report ? run_report(&run, report) : 0;
        run_release(&run);
        return rc;
}

int steno_import_transcript(struct steno_store *store, const struct steno_importer_options *opt,
    const char *name, const char *text, size_t n, char **report, struct steno_error *err)
{
        struct import_source source = {
            .path = name ? name : "upload", .fd = -1, .text = {text, n}, .size = n};
        return import_one(store, opt, &source, report, err);
}

int steno_import_file(struct steno_store *store, const struct steno_importer_options *opt,
    const char *name, int fd, char **report, struct steno_error *err)
{
        struct stat st;
        int rc = fs_real()->fstat(fs_real(), fd, &st);
        if (rc)
                return error_sys(err, rc, "looking at %.150s", name ? name : "the file");
        struct import_source source = {.path = name ? name : "upload",
            .fd = fd,
            .size = (uint64_t)st.st_size,
            .nameless = true};
        return import_one(store, opt, &source, report, err);
}
