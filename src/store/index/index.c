/*
 * index.c - opening and closing the database (index.h).
 *
 * A power cut may cost it its last changes, but leaves it whole (synchronous=NORMAL), because after
 * a boot lists are answered from it before everything was looked at. Losing it costs a scan. A
 * damaged one, and one of another version, is deleted. Where it cannot be written - a full disk, a
 * store that belongs to someone else - an empty one in memory takes its place, so that everybody
 * who can read a store can list it.
 */
#include "store/index/index_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

/* A change of the schema is a new number: the old database is thrown away. */
#define SCHEMA_VERSION 3

static const char SCHEMA[] =
    "CREATE TABLE conv (project_folder TEXT, folder TEXT, project TEXT, id TEXT, title TEXT,"
    " created TEXT, updated TEXT, messages INTEGER, last_seq INTEGER, bytes INTEGER,"
    " log_changed INTEGER, amended INTEGER, hidden INTEGER, unreadable INTEGER,"
    " PRIMARY KEY (project_folder, folder)) WITHOUT ROWID;"
    "CREATE INDEX conv_activity ON conv (updated DESC, project, id);"
    "CREATE INDEX conv_project ON conv (project, updated DESC, id);"
    "CREATE INDEX conv_unreadable ON conv (project_folder, folder) WHERE unreadable;"
    "CREATE TABLE run (id TEXT, project TEXT, folder TEXT, PRIMARY KEY (id, project))"
    " WITHOUT ROWID;"
    "CREATE INDEX run_conv ON run (project, folder);"
    "CREATE TABLE project (folder TEXT PRIMARY KEY, changed INTEGER, links INTEGER, size INTEGER)"
    " WITHOUT ROWID;"
    "CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;";

/* Came later, and is missing in databases that are otherwise as good as new. */
static const char SCHEMA_LATER[] = "CREATE TABLE IF NOT EXISTS unfinished (project_folder TEXT, "
                                   "folder TEXT, project TEXT, id TEXT,"
                                   " PRIMARY KEY (project_folder, folder)) WITHOUT ROWID;"
                                   "CREATE TABLE IF NOT EXISTS outputs (project_folder TEXT,"
                                   " folder TEXT, bytes INTEGER, changed INTEGER,"
                                   " PRIMARY KEY (project_folder, folder)) WITHOUT ROWID;";

/* ---- statements ---- */

static int code_of(int sqlite)
{
        switch (sqlite & 0xff) {
        case SQLITE_FULL:
                return STENO_EFULL;
        case SQLITE_PERM:
        case SQLITE_READONLY:
        case SQLITE_CANTOPEN:
        case SQLITE_AUTH:
                return STENO_EDENIED;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return STENO_ETIMEOUT;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
        case SQLITE_ERROR: /* a table is missing: it is not ours */
                return STENO_ECORRUPT;
        default:
                return STENO_EIO;
        }
}

int index_error(struct index *x, struct steno_error *err)
{
        int code = x->db ? sqlite3_errcode(x->db) : SQLITE_NOMEM;
        if (code == SQLITE_NOMEM)
                return error_nomem(err);
        x->failed = true;
        x->damaged = code_of(code) == STENO_ECORRUPT;
        return error_set(err, code_of(code), "the index (index.db): %s", sqlite3_errmsg(x->db));
}

int index_run(struct index *x, const char *sql, struct steno_error *err)
{
        return sqlite3_exec(x->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : index_error(x, err);
}

int index_prepare(struct index *x, const char *sql, sqlite3_stmt **out, struct steno_error *err)
{
        bool ok = x->db && sqlite3_prepare_v2(x->db, sql, -1, out, NULL) == SQLITE_OK;
        return ok ? 0 : index_error(x, err);
}

void index_bind(sqlite3_stmt *s, int i, const char *text)
{
        sqlite3_bind_text(s, i, text, -1, SQLITE_TRANSIENT);
}

int index_step(struct index *x, sqlite3_stmt *s, struct steno_error *err)
{
        int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : index_error(x, err);
        sqlite3_reset(s);
        sqlite3_clear_bindings(s);
        return rc;
}

/* ---- opening ---- */

static void close_db(struct index *x)
{
        sqlite3_close_v2(x->db);
        x->db = NULL;
        x->failed = x->damaged = false;
}

void index_discard(struct index *x)
{
        static const char *const NAMES[] = {"index.db", "index.db-wal", "index.db-shm"};
        const struct fs *fs = files_env(x->store)->fs;
        close_db(x);
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                fs->unlink(fs, files_root(x->store), NAMES[i], 0);
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

/* The inode of what is called index.db now; 0: nothing is. */
static ino_t present_file(struct index *x)
{
        const struct fs *fs = files_env(x->store)->fs;
        struct stat st;
        return fs->stat(fs, files_root(x->store), "index.db", &st) == 0 ? st.st_ino : 0;
}

bool index_is_present(struct index *x)
{
        return present_file(x) == x->ino;
}

static int schema_version(struct index *x, int *version, struct steno_error *err)
{
        sqlite3_stmt *s = NULL;
        int rc = index_prepare(x, "PRAGMA user_version", &s, err);
        if (rc == 0 && sqlite3_step(s) == SQLITE_ROW)
                *version = sqlite3_column_int(s, 0);
        else if (rc == 0)
                rc = index_error(x, err);
        sqlite3_finalize(s);
        return rc;
}

/* Two may find it empty at once: the second finds what the first has made. */
static int make_schema(struct index *x, struct steno_error *err)
{
        char set_version[64];
        int version = 0;
        snprintf(set_version, sizeof set_version, "PRAGMA user_version=%d", SCHEMA_VERSION);
        int rc = index_run(x, "BEGIN IMMEDIATE", err);
        if (rc == 0)
                rc = schema_version(x, &version, err);
        if (rc == 0 && version == 0)
                rc = index_run(x, SCHEMA, err);
        if (rc == 0 && version == 0)
                rc = index_run(x, set_version, err);
        if (rc == 0)
                rc = index_run(x, "COMMIT", err);
        return rc;
}

static int open_db(struct index *x, const char *path, struct steno_error *err)
{
        int version = 0;
        if (sqlite3_open_v2(path, &x->db,
                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL))
                return index_error(x, err);
        sqlite3_busy_timeout(x->db, INDEX_BUSY_MS);
        int rc = index_run(x, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;", err);
        if (rc == 0)
                rc = schema_version(x, &version, err);
        if (rc == 0 && version != 0 && version != SCHEMA_VERSION)
                return error_set(err, STENO_ECORRUPT, "the index (index.db) has another version");
        if (rc == 0 && version == 0)
                rc = make_schema(x, err);
        /* Both write nothing in the common case. */
        if (rc == 0)
                rc = index_run(x, SCHEMA_LATER, err);
        return rc ? rc : row_fill_outputs(x, err);
}

static int open_file(struct index *x, struct steno_error *err)
{
        close_db(x);
        x->in_memory = false;
        make_private(x);
        x->ino = present_file(x);
        return open_db(x, x->path, err);
}

int index_open_file(struct index *x, struct steno_error *err)
{
        /* Someone may have removed it, or made it anew. */
        if (x->db && !x->in_memory && !x->failed && index_is_present(x))
                return 0;
        if (x->damaged && !x->in_memory)
                index_discard(x);
        int rc = open_file(x, err);
        if (rc == STENO_ECORRUPT) {
                index_discard(x);
                rc = open_file(x, err);
        }
        x->failed = rc != 0;
        return rc;
}

int index_open_memory(struct index *x, struct steno_error *err)
{
        close_db(x);
        x->in_memory = true;
        return open_db(x, ":memory:", err);
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
        *out = x;
        return 0;
}

void index_close(struct index *x)
{
        if (!x)
                return;
        index_scan_release(x);
        close_db(x);
        pthread_mutex_destroy(&x->mutex);
        free(x->path);
        free(x);
}
