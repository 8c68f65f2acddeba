/*
 * index.c - see index.h.
 *
 * Catching up holds SQLite's write lock (BEGIN IMMEDIATE), so two processes do not take `recent`
 * away from each other; the rows they would write are the same anyway. The database is never
 * synced: losing it costs a scan.
 */
#include "store/index/index.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define LIST_DEFAULT 20
#define LIST_MAX 1000
#define BUSY_MS 60000

/* A change of the schema is a new number: the old database is thrown away. */
#define SCHEMA_VERSION 1

static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS conv (project_folder TEXT, folder TEXT, project TEXT, id TEXT,"
    " title TEXT, created TEXT, updated TEXT, messages INTEGER, last_seq INTEGER, bytes INTEGER,"
    " gone INTEGER DEFAULT 0, PRIMARY KEY (project_folder, folder)) WITHOUT ROWID;"
    "CREATE INDEX IF NOT EXISTS conv_activity ON conv (updated DESC, project, id);"
    "CREATE INDEX IF NOT EXISTS conv_project ON conv (project, updated DESC, id);"
    "CREATE TABLE IF NOT EXISTS run (id TEXT, project TEXT, folder TEXT, PRIMARY KEY (id, project))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;";

struct index {
        struct files_store *store;
        pthread_mutex_t mutex;
        sqlite3 *db;
        char *path;
};

/* ---- opening ---- */

static int db_error(struct index *x, struct steno_error *err, const char *what)
{
        int code = x->db ? sqlite3_errcode(x->db) : SQLITE_NOMEM;
        if (code == SQLITE_NOMEM)
                return error_nomem(err);
        return error_set(err, code == SQLITE_FULL ? STENO_EFULL : STENO_EIO, "index.db: %s: %s",
            what, x->db ? sqlite3_errmsg(x->db) : "cannot open");
}

static int run_sql(struct index *x, const char *sql, struct steno_error *err)
{
        return sqlite3_exec(x->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_error(x, err, sql);
}

/* SQLite would make it readable for all. Only one that was made here is closed: closing another
 * would drop the locks that this process holds on it. */
static void make_private(struct index *x)
{
        const struct fs *fs = files_env(x->store)->fs;
        int fd = fs->open(fs, files_root(x->store), "index.db", O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd >= 0)
                fs->close(fs, fd);
}

/* 0 for a database that is empty, -1 for one that cannot be read. */
static int schema_version(struct index *x)
{
        sqlite3_stmt *s = NULL;
        int version = -1;
        if (sqlite3_prepare_v2(x->db, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
            sqlite3_step(s) == SQLITE_ROW)
                version = sqlite3_column_int(s, 0);
        sqlite3_finalize(s);
        return version;
}

static int open_db(struct index *x, struct steno_error *err)
{
        char version[64];
        make_private(x);
        if (sqlite3_open_v2(x->path, &x->db,
                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL))
                return db_error(x, err, "opening");
        sqlite3_busy_timeout(x->db, BUSY_MS);
        int rc = run_sql(x, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;", err);
        int found = rc ? 0 : schema_version(x);
        if (rc || found == SCHEMA_VERSION)
                return rc; /* the common case writes nothing */
        if (found != 0)
                return error_set(err, STENO_ECORRUPT, "index.db has schema %d", found);
        snprintf(version, sizeof version, "PRAGMA user_version=%d", SCHEMA_VERSION);
        rc = run_sql(x, SCHEMA, err);
        return rc ? rc : run_sql(x, version, err);
}

static void close_db(struct index *x)
{
        sqlite3_close_v2(x->db);
        x->db = NULL;
}

/* It is derived: one that cannot be used is made anew. */
static int open_or_remake(struct index *x, struct steno_error *err)
{
        static const char *const NAMES[] = {"index.db", "index.db-wal", "index.db-shm"};
        const struct fs *fs = files_env(x->store)->fs;
        int rc = open_db(x, err);
        if (rc == 0 || rc == STENO_ENOMEM || rc == STENO_EFULL)
                return rc;
        close_db(x);
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                fs->unlink(fs, files_root(x->store), NAMES[i], 0);
        return open_db(x, err);
}

int index_open(struct files_store *store, struct index **out, struct steno_error *err)
{
        struct index *x = calloc(1, sizeof *x);
        if (!x || asprintf(&x->path, "%s/index.db", files_path(store)) < 0) {
                free(x);
                return error_nomem(err);
        }
        x->store = store;
        pthread_mutex_init(&x->mutex, NULL);
        int rc = open_or_remake(x, err);
        if (rc) {
                index_close(x);
                return rc;
        }
        *out = x;
        return 0;
}

void index_close(struct index *x)
{
        if (!x)
                return;
        close_db(x);
        pthread_mutex_destroy(&x->mutex);
        free(x->path);
        free(x);
}

/* ---- catching up ---- */

struct catch_up {
        struct index *x;
        sqlite3_stmt *put;
        sqlite3_stmt *drop;
        sqlite3_stmt *put_run;
        sqlite3_stmt *drop_runs;
        steno_progress progress;
        void *progress_ctx;
        uint64_t done;
        uint64_t total;
        struct steno_error *err;
};

static void bind_text(sqlite3_stmt *s, int i, const char *z)
{
        sqlite3_bind_text(s, i, z, -1, SQLITE_TRANSIENT);
}

static int step(struct catch_up *c, sqlite3_stmt *s)
{
        int rc = sqlite3_step(s);
        sqlite3_reset(s);
        sqlite3_clear_bindings(s);
        return rc == SQLITE_DONE ? 0 : db_error(c->x, c->err, "writing");
}

struct last_time {
        char at[40];
};

static int note_time(void *ctx, const struct files_record *r)
{
        struct last_time *t = ctx;
        if (!r->damaged)
                snprintf(t->at, sizeof t->at, "%.*s", (int)r->rec.at.n, r->rec.at.p);
        return 0;
}

struct run_walk {
        struct catch_up *c;
        const char *project;
        const char *folder;
};

static int put_run(void *ctx, const char *name, unsigned char type)
{
        struct run_walk *w = ctx;
        size_t n = strlen(name);
        (void)type;
        if (n <= 6 || strcmp(name + n - 6, ".jsonl") != 0)
                return 0;
        sqlite3_bind_text(w->c->put_run, 1, name, (int)n - 6, SQLITE_TRANSIENT);
        bind_text(w->c->put_run, 2, w->project);
        bind_text(w->c->put_run, 3, w->folder);
        return step(w->c, w->c->put_run);
}

static int put_runs(struct catch_up *c, struct files_conv *conv, const char *folder)
{
        const struct fs *fs = files_env(c->x->store)->fs;
        struct run_walk w = {c, files_conv_project(conv), folder};
        bind_text(c->drop_runs, 1, w.project);
        bind_text(c->drop_runs, 2, folder);
        int rc = step(c, c->drop_runs);
        int dir = rc ? -1 : fs->open(fs, files_conv_dir(conv), "runs", O_RDONLY | O_DIRECTORY, 0);
        if (rc == 0 && dir >= 0) {
                rc = fs->list(fs, dir, put_run, &w);
                fs->close(fs, dir);
        }
        return rc;
}

static int put_conv(
    struct catch_up *c, const char *project_folder, const char *folder, struct files_conv *conv)
{
        char *meta = NULL;
        size_t n = 0;
        uint64_t seq = 0, bytes = 0;
        struct last_time last = {""};
        struct json j;
        struct steno_error ignored;
        json_init(&j);
        int rc = files_conv_meta(conv, &meta, &n, c->err);
        if (rc == 0 && json_parse(&j, meta, n, NULL, &ignored) == STENO_ENOMEM)
                rc = error_nomem(c->err);
        if (rc == 0)
                rc = files_last(conv, &seq, &bytes, c->err);
        if (rc == 0)
                rc = files_read_last(conv, 1, note_time, &last, c->err);
        if (rc == 0) {
                char *title = json_dup_string(&j, json_get(&j, 0, "title"));
                char *created = json_dup_string(&j, json_get(&j, 0, "createdAt"));
                bind_text(c->put, 1, project_folder);
                bind_text(c->put, 2, folder);
                bind_text(c->put, 3, files_conv_project(conv));
                bind_text(c->put, 4, files_conv_id(conv));
                bind_text(c->put, 5, title ? title : "");
                bind_text(c->put, 6, created ? created : last.at);
                bind_text(c->put, 7, last.at[0] ? last.at : created ? created : "");
                sqlite3_bind_int64(c->put, 8, (sqlite3_int64)seq);
                sqlite3_bind_int64(c->put, 9, (sqlite3_int64)seq);
                sqlite3_bind_int64(c->put, 10, (sqlite3_int64)bytes);
                rc = step(c, c->put);
                free(title);
                free(created);
        }
        if (rc == 0)
                rc = put_runs(c, conv, folder);
        json_release(&j);
        free(meta);
        return rc;
}

/* Brings one conversation's row up to date. */
static int look_at(void *ctx, const char *project_folder, const char *folder)
{
        struct catch_up *c = ctx;
        const struct fs *fs = files_env(c->x->store)->fs;
        struct files_conv *conv;
        c->done++;
        if (c->progress && c->done % 64 == 0 &&
            c->progress(c->progress_ctx, "index", c->done, c->total))
                return error_set(c->err, STENO_EINTERRUPTED, "stopped");
        int rc = files_conv_open_folder(c->x->store, project_folder, folder, &conv, c->err);
        if (rc == STENO_ENOTFOUND) {
                bind_text(c->drop, 1, project_folder);
                bind_text(c->drop, 2, folder);
                return step(c, c->drop);
        }
        if (rc)
                return rc;
        /* R1: a writer that found its name in the old list has committed before we read, or its
         * lock is still held; then it is looked at again next time. */
        int probe = fs->open(fs, files_conv_dir(conv), ".", O_RDONLY | O_DIRECTORY, 0);
        bool writing = probe >= 0 && fs->flock(fs, probe, LOCK_SH | LOCK_NB) != 0;
        rc = put_conv(c, project_folder, folder, conv);
        if (probe >= 0)
                fs->close(fs, probe);
        if (rc == 0 && writing) {
                char line[140];
                int fd = fs->open(
                    fs, files_root(c->x->store), "recent", O_WRONLY | O_APPEND | O_CREAT, 0600);
                int n = snprintf(line, sizeof line, "%s/%s\n", project_folder, folder);
                if (fd >= 0) {
                        fs_write_all(fs, fd, line, (size_t)n);
                        fs->close(fs, fd);
                }
        }
        files_conv_release(conv);
        return rc;
}

/* Every name in the taken list, once. */
static int look_at_listed(struct catch_up *c, char *list, size_t n)
{
        int rc = 0;
        char *end = list + n;
        for (char *line = list, *next; line < end && rc == 0; line = next) {
                char *lf = memchr(line, '\n', (size_t)(end - line));
                next = lf ? lf + 1 : end;
                if (!lf)
                        break;
                *lf = '\0';
                char *slash = strchr(line, '/');
                if (!slash || slash - line > PLAIN_NAME_MAX || lf - slash - 1 > PLAIN_NAME_MAX)
                        continue;
                *slash = '\0';
                rc = look_at(c, line, slash + 1);
        }
        return rc;
}

static int count_conv(void *ctx, const char *project_folder, const char *folder)
{
        (void)project_folder;
        (void)folder;
        ++*(uint64_t *)ctx;
        return 0;
}

static int scan_all(struct catch_up *c)
{
        int rc = run_sql(c->x, "DELETE FROM conv; DELETE FROM run;", c->err);
        if (rc == 0 && c->progress)
                rc = files_each_conv(c->x->store, count_conv, &c->total, c->err);
        return rc ? rc : files_each_conv(c->x->store, look_at, c, c->err);
}

static bool state_is(struct index *x, const char *key, const char *value)
{
        sqlite3_stmt *s = NULL;
        bool same = false;
        if (sqlite3_prepare_v2(x->db, "SELECT 1 FROM state WHERE key=?1 AND value=?2", -1, &s,
                NULL) == SQLITE_OK) {
                bind_text(s, 1, key);
                bind_text(s, 2, value);
                same = sqlite3_step(s) == SQLITE_ROW;
        }
        sqlite3_finalize(s);
        return same;
}

static int set_state(struct index *x, const char *key, const char *value, struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        int rc =
            sqlite3_prepare_v2(x->db, "INSERT OR REPLACE INTO state VALUES (?1,?2)", -1, &s, NULL);
        if (rc == SQLITE_OK) {
                bind_text(s, 1, key);
                bind_text(s, 2, value);
                rc = sqlite3_step(s);
        }
        sqlite3_finalize(s);
        return rc == SQLITE_DONE ? 0 : db_error(x, err, "writing state");
}

static int prepare(struct catch_up *c)
{
        sqlite3 *db = c->x->db;
        if (sqlite3_prepare_v2(db,
                "INSERT OR REPLACE INTO conv VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,0)", -1,
                &c->put, NULL) ||
            sqlite3_prepare_v2(
                db, "DELETE FROM conv WHERE project_folder=?1 AND folder=?2", -1, &c->drop, NULL) ||
            sqlite3_prepare_v2(
                db, "INSERT OR REPLACE INTO run VALUES (?1,?2,?3)", -1, &c->put_run, NULL) ||
            sqlite3_prepare_v2(
                db, "DELETE FROM run WHERE project=?1 AND folder=?2", -1, &c->drop_runs, NULL))
                return db_error(c->x, c->err, "preparing");
        return 0;
}

/* The work, inside the transaction. */
static int catch_up(struct catch_up *c, const char *boot)
{
        const struct fs *fs = files_env(c->x->store)->fs;
        int root = files_root(c->x->store);
        char *list = NULL;
        size_t n = 0;
        int rc = prepare(c);
        if (rc)
                return rc;
        /* recent.old is there when an earlier catch-up died: it is read first. */
        struct stat st;
        if (fs->stat(fs, root, "recent.old", &st) == -ENOENT) {
                rc = fs->rename(fs, root, "recent", root, "recent.old");
                if (rc && rc != -ENOENT)
                        return error_sys(c->err, rc, "taking the list of changes");
        }
        if (!state_is(c->x, "boot", boot)) {
                rc = scan_all(c);
                if (rc == 0)
                        rc = set_state(c->x, "boot", boot, c->err);
        } else {
                rc = fs_slurp(fs, root, "recent.old", BUF_MAX_DEFAULT, &list, &n);
                if (rc == 0)
                        rc = look_at_listed(c, list, n);
                else if (rc == -ENOENT)
                        rc = 0;
                else
                        rc = error_sys(c->err, rc, "reading the list of changes");
        }
        free(list);
        return rc;
}

static bool nothing_new(struct index *x, const char *boot)
{
        const struct fs *fs = files_env(x->store)->fs;
        struct stat st;
        return fs->stat(fs, files_root(x->store), "recent", &st) == -ENOENT &&
               fs->stat(fs, files_root(x->store), "recent.old", &st) == -ENOENT &&
               state_is(x, "boot", boot);
}

int index_catch_up(
    struct index *x, steno_progress progress, void *progress_ctx, struct steno_error *err)
{
        const struct fs *fs = files_env(x->store)->fs;
        struct catch_up c = {
            .x = x, .progress = progress, .progress_ctx = progress_ctx, .err = err};
        char boot[40];
        files_env(x->store)->boot(files_env(x->store), boot);
        pthread_mutex_lock(&x->mutex);
        int rc = 0;
        if (nothing_new(x, boot))
                goto out;
        rc = run_sql(x, "BEGIN IMMEDIATE", err);
        if (rc)
                goto out;
        rc = catch_up(&c, boot);
        sqlite3_finalize(c.put);
        sqlite3_finalize(c.drop);
        sqlite3_finalize(c.put_run);
        sqlite3_finalize(c.drop_runs);
        if (rc == 0)
                rc = run_sql(x, "COMMIT", err);
        if (rc)
                sqlite3_exec(x->db, "ROLLBACK", NULL, NULL, NULL);
        else
                fs->unlink(fs, files_root(x->store), "recent.old", 0);
        if (rc == 0 && progress && c.done >= 64)
                progress(progress_ctx, "index", c.done, c.done);
out:
        pthread_mutex_unlock(&x->mutex);
        return rc;
}

/* ---- listing ---- */

/* A cursor is the last row's place: "<updated>|<project>|<id>", as hex so that it is opaque. */
static void put_cursor(struct jsonw *w, const char *updated, const char *project, const char *id)
{
        struct buf b;
        buf_init(&b, 0);
        char hex[3];
        const char *parts[] = {updated, "\x1f", project, "\x1f", id};
        for (size_t i = 0; i < 5; i++)
                for (const char *p = parts[i]; *p; p++) {
                        snprintf(hex, sizeof hex, "%02x", (unsigned char)*p);
                        buf_puts(&b, hex);
                }
        jsonw_key(w, "next_cursor");
        jsonw_str(w, buf_str(&b));
        buf_release(&b);
}

static int nibble(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Splits a cursor into three texts inside `out`. */
static int read_cursor(
    const char *cursor, char out[2048], const char *part[3], struct steno_error *err)
{
        size_t n = strlen(cursor), k = 0, o = 0;
        if (n % 2 || n / 2 >= 2047)
                goto bad;
        part[0] = out;
        for (size_t i = 0; i < n; i += 2) {
                int hi = nibble(cursor[i]), lo = nibble(cursor[i + 1]);
                if (hi < 0 || lo < 0)
                        goto bad;
                char c = (char)(hi << 4 | lo);
                if (c == '\x1f') {
                        if (++k > 2)
                                goto bad;
                        out[o++] = '\0';
                        part[k] = out + o;
                } else {
                        out[o++] = c;
                }
        }
        out[o] = '\0';
        if (k == 2)
                return 0;
bad:
        return error_set(err, STENO_EINVAL, "not a cursor of this list");
}

static void put_item(struct jsonw *w, sqlite3_stmt *s)
{
        static const char *const TEXTS[] = {"id", "project", "title", "createdAt", "updatedAt"};
        static const char *const NUMBERS[] = {"messages", "lastSeq", "bytes"};
        jsonw_object(w);
        for (int i = 0; i < 5; i++) {
                jsonw_key(w, TEXTS[i]);
                jsonw_cstr(w, (const char *)sqlite3_column_text(s, i));
        }
        for (int i = 0; i < 3; i++) {
                jsonw_key(w, NUMBERS[i]);
                jsonw_u64(w, (uint64_t)sqlite3_column_int64(s, 5 + i));
        }
        jsonw_object_end(w);
}

/* The statement for a query: conditions are added as they are needed. */
static void query_sql(
    const struct index_query *q, const char *const *words, size_t word_count, struct buf *sql)
{
        buf_puts(sql, "SELECT id,project,title,created,updated,messages,last_seq,bytes FROM conv"
                      " WHERE 1");
        if (q->project)
                buf_puts(sql, " AND project=?1");
        if (q->cursor)
                buf_puts(sql, " AND (updated<?2 OR (updated=?2 AND (project,id)>(?3,?4)))");
        for (size_t i = 0; i < word_count; i++) {
                (void)words;
                buf_printf(sql,
                    " AND (instr(lower(title),lower(?%zu)) OR instr(lower(id),lower(?%zu)))",
                    10 + i, 10 + i);
        }
        buf_puts(sql, " ORDER BY updated DESC, project, id LIMIT ?5");
}

int index_list(struct index *x, const struct index_query *q, char **json, struct steno_error *err)
{
        char cursor_text[2048];
        const char *part[3] = {0};
        char *words = NULL;
        const char *word[16];
        size_t word_count = 0;
        uint32_t limit = q->limit == 0 ? LIST_DEFAULT : q->limit > LIST_MAX ? LIST_MAX : q->limit;
        struct buf sql, out;
        sqlite3_stmt *s = NULL;
        int rc = q->cursor ? read_cursor(q->cursor, cursor_text, part, err) : 0;
        if (rc)
                return rc;
        buf_init(&sql, 64 * KIB);
        buf_init(&out, 64 * MIB);
        if (q->words) {
                words = strdup(q->words);
                char *save = NULL;
                for (char *w = words ? strtok_r(words, " \t\n", &save) : NULL; w && word_count < 16;
                     w = strtok_r(NULL, " \t\n", &save))
                        word[word_count++] = w;
        }
        query_sql(q, word, word_count, &sql);
        pthread_mutex_lock(&x->mutex);
        const char *text = buf_cstr(&sql);
        if ((q->words && !words) || !text) {
                rc = error_nomem(err);
                goto out;
        }
        if (sqlite3_prepare_v2(x->db, text, -1, &s, NULL)) {
                rc = db_error(x, err, "listing");
                goto out;
        }
        if (q->project)
                bind_text(s, 1, q->project);
        for (int i = 0; q->cursor && i < 3; i++)
                bind_text(s, 2 + i, part[i]);
        sqlite3_bind_int64(s, 5, (sqlite3_int64)limit + 1);
        for (size_t i = 0; i < word_count; i++)
                bind_text(s, 10 + (int)i, word[i]);
        struct jsonw w = jsonw_to(&out);
        char *last[3] = {0};
        uint32_t count = 0;
        int step_rc;
        jsonw_object(&w);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        while ((step_rc = sqlite3_step(s)) == SQLITE_ROW && count < limit) {
                put_item(&w, s);
                if (++count == limit) {
                        last[0] = strdup((const char *)sqlite3_column_text(s, 4));
                        last[1] = strdup((const char *)sqlite3_column_text(s, 1));
                        last[2] = strdup((const char *)sqlite3_column_text(s, 0));
                }
        }
        jsonw_array_end(&w);
        if (step_rc == SQLITE_ROW && last[0] && last[1] && last[2])
                put_cursor(&w, last[0], last[1], last[2]);
        jsonw_object_end(&w);
        for (int i = 0; i < 3; i++)
                free(last[i]);
        if (step_rc != SQLITE_ROW && step_rc != SQLITE_DONE)
                rc = db_error(x, err, "listing");
        else
                rc = buf_check(&out, err);
        if (rc == 0) {
                *json = buf_take(&out, NULL);
                rc = *json ? 0 : error_nomem(err);
        }
out:
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        free(words);
        buf_release(&sql);
        buf_release(&out);
        return rc;
}

int index_totals(struct index *x, struct index_totals *out, struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        int rc = 0;
        pthread_mutex_lock(&x->mutex);
        if (sqlite3_prepare_v2(
                x->db, "SELECT count(*),sum(messages),sum(bytes) FROM conv", -1, &s, NULL) ||
            sqlite3_step(s) != SQLITE_ROW)
                rc = db_error(x, err, "counting");
        else
                *out = (struct index_totals){(uint64_t)sqlite3_column_int64(s, 0),
                    (uint64_t)sqlite3_column_int64(s, 1), (uint64_t)sqlite3_column_int64(s, 2)};
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        return rc;
}

int index_find_run(
    struct index *x, const char *project, const char *run, char folder[65], struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        int rc;
        pthread_mutex_lock(&x->mutex);
        if (sqlite3_prepare_v2(
                x->db, "SELECT folder FROM run WHERE id=?1 AND project=?2", -1, &s, NULL)) {
                rc = db_error(x, err, "looking for a run");
        } else {
                bind_text(s, 1, run);
                bind_text(s, 2, project);
                if (sqlite3_step(s) == SQLITE_ROW) {
                        snprintf(folder, 65, "%s", (const char *)sqlite3_column_text(s, 0));
                        rc = 0;
                } else {
                        rc = error_set(err, STENO_ENOTFOUND, "no run \"%.100s\"", run);
                }
        }
        sqlite3_finalize(s);
        pthread_mutex_unlock(&x->mutex);
        return rc;
}
