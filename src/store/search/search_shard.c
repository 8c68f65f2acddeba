/* search_shard.c - see search_shard.h */
#include "store/search/search_shard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_url.h"

#define BUSY_MS 10000
/* 2: what failures say is indexed; 3: every tool of a message; 4: outputs know whether they are
 * indexed in part, and case is folded in all scripts; 5: NFC and NFD are the same word */
#define VERSION 5
#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(text) #text
#define SHARDS_MAX 4096

static const char SCHEMA[] =
    "CREATE TABLE conv (key INTEGER PRIMARY KEY, project_folder TEXT, folder TEXT, project TEXT,"
    " id TEXT, log INTEGER, last INTEGER, live INTEGER);"
    "CREATE INDEX conv_name ON conv (project_folder, folder);"
    "CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
    "CREATE TABLE block (id INTEGER PRIMARY KEY, conv INTEGER, seq INTEGER, ref TEXT, at INTEGER,"
    " len INTEGER, role INTEGER, error INTEGER, tool INTEGER, model INTEGER, time INTEGER);"
    "CREATE INDEX block_conv ON block (conv);"
    "CREATE TABLE size (bytes INTEGER);"
    "INSERT INTO size VALUES (0);"
    "CREATE VIRTUAL TABLE ft USING fts5 (text, content='', detail=none,"
    " tokenize=\"ascii tokenchars '_'\");";

/* ---- SQLite ---- */

int search_failed(sqlite3 *db, struct steno_error *err)
{
        int code = db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
        /* It cannot make the file beside the index that readers share. */
        bool no_room_beside = db && sqlite3_extended_errcode(db) == SQLITE_IOERR_SHMSIZE;
        if (code == SQLITE_NOMEM)
                return error_nomem(err);
        return error_set(err,
            code == SQLITE_FULL || no_room_beside             ? STENO_EFULL
            : code == SQLITE_BUSY || code == SQLITE_LOCKED    ? STENO_ETIMEOUT
            : code == SQLITE_READONLY || code == SQLITE_PERM  ? STENO_EDENIED
            : code == SQLITE_CANTOPEN                         ? STENO_EDENIED
            : code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? STENO_ECORRUPT
                                                              : STENO_EIO,
            "the index of words (search/): %s", db ? sqlite3_errmsg(db) : "out of memory");
}

int search_exec(sqlite3 *db, const char *sql, struct steno_error *err)
{
        return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : search_failed(db, err);
}

int search_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct steno_error *err)
{
        return sqlite3_prepare_v2(db, sql, -1, out, NULL) == SQLITE_OK ? 0 : search_failed(db, err);
}

int64_t search_number(sqlite3 *db, const char *sql)
{
        sqlite3_stmt *s = NULL;
        int64_t n = -1;
        if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
                n = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
        return n;
}

void search_bind(sqlite3_stmt *q, int i, struct str text)
{
        sqlite3_bind_text(q, i, text.p ? text.p : "", (int)text.n, SQLITE_STATIC);
}

/* ---- shards ---- */

void search_shard_close(struct search_shard *x)
{
        sqlite3_finalize(x->asked);
        free(x->asked_sql);
        sqlite3_close_v2(x->db);
}

void search_shards_close(struct search *s)
{
        for (size_t i = 0; i < s->count; i++)
                search_shard_close(&s->shards[i]);
        s->count = 0;
}

void search_shard_remove(struct search *s, unsigned number)
{
        static const char *const ENDS[] = {"", "-wal", "-shm", "-journal"};
        const struct fs *fs = files_env(s->store)->fs;
        char name[64];
        for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
                snprintf(name, sizeof name, "search/%u.db%s", number, ENDS[i]);
                fs->unlink(fs, files_root(s->store), name, 0);
        }
}

/* For a store that we may not write to, or that has no room. SQLite would make files beside it,
 * even to read, unless it is told that nobody writes. */
static int open_unchanging(const char *path, sqlite3 **out, struct steno_error *err)
{
        struct buf url;
        buf_init(&url, 0);
        file_url_put(&url, path);
        buf_puts(&url, "?immutable=1");
        const char *z = buf_cstr(&url);
        sqlite3_close_v2(*out);
        *out = NULL;
        int rc = !z ? error_nomem(err)
                 : sqlite3_open_v2(
                       z, out, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX, NULL)
                     ? search_failed(*out, err)
                     : 0;
        buf_release(&url);
        return rc;
}

static int open_db(
    struct search *s, unsigned number, bool create, sqlite3 **out, struct steno_error *err)
{
        const struct fs *fs = files_env(s->store)->fs;
        char *path = NULL, name[64];
        snprintf(name, sizeof name, "search/%u.db", number);
        if (create) { /* SQLite would make it readable for all */
                int fd = fs->open(fs, files_root(s->store), name, O_RDWR | O_CREAT | O_EXCL, 0600);
                if (fd >= 0)
                        fs->close(fs, fd);
        }
        if (asprintf(&path, "%s/%u.db", s->path, number) < 0)
                return error_nomem(err);
        int rc = 0;
        if (sqlite3_open_v2(path, out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL))
                rc = search_failed(*out, err);
        if (rc == 0)
                sqlite3_busy_timeout(*out, BUSY_MS);
        if (rc == 0)
                rc = search_exec(*out,
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                    "PRAGMA secure_delete=ON; PRAGMA cache_size=-8000;",
                    err);
        if ((rc == STENO_EDENIED || rc == STENO_EFULL) && !create)
                rc = open_unchanging(path, out, err);
        free(path);
        if (rc == 0 && create) {
                rc = search_exec(*out, "BEGIN IMMEDIATE", err);
                if (rc == 0)
                        rc = search_exec(*out, SCHEMA, err);
                if (rc == 0)
                        rc =
                            search_exec(*out, "PRAGMA user_version=" TEXT(VERSION) "; COMMIT", err);
        }
        if (rc == 0 && search_number(*out, "PRAGMA user_version") != VERSION)
                rc = error_set(err, STENO_ECORRUPT, "the index of words has another version");
        return rc;
}

int search_shard_add(struct search *s, unsigned number, bool create, struct steno_error *err)
{
        struct search_shard *list = realloc(s->shards, (s->count + 1) * sizeof *list);
        struct search_shard x = {.number = number};
        struct stat st;
        char name[64];
        const struct fs *fs = files_env(s->store)->fs;
        if (!list)
                return error_nomem(err);
        s->shards = list;
        int rc = open_db(s, number, create, &x.db, err);
        if (rc) {
                sqlite3_close_v2(x.db);
                return rc;
        }
        snprintf(name, sizeof name, "search/%u.db", number);
        x.ino = fs->stat(fs, files_root(s->store), name, &st) == 0 ? st.st_ino : 0;
        s->shards[s->count++] = x;
        return 0;
}

struct names {
        unsigned list[SHARDS_MAX];
        size_t count;
};

static int note_name(void *ctx, const char *name, unsigned char type)
{
        struct names *n = ctx;
        char *end;
        (void)type;
        unsigned long number = strtoul(name, &end, 10);
        if (end != name && strcmp(end, ".db") == 0 && number < 1000000 && n->count < SHARDS_MAX)
                n->list[n->count++] = (unsigned)number;
        return 0;
}

static int by_number(const void *a, const void *b)
{
        unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
        return x < y ? -1 : x > y;
}

static bool are_current(struct search *s, const struct names *n)
{
        const struct fs *fs = files_env(s->store)->fs;
        if (n->count != s->count)
                return false;
        for (size_t i = 0; i < n->count; i++) {
                struct stat st;
                char name[64];
                snprintf(name, sizeof name, "search/%u.db", n->list[i]);
                if (s->shards[i].number != n->list[i] ||
                    fs->stat(fs, files_root(s->store), name, &st) || st.st_ino != s->shards[i].ino)
                        return false;
        }
        return true;
}

/* Opens what is there now; others may have dropped or made shards. A damaged one is dropped. */
int search_shards_refresh(struct search *s, struct steno_error *err)
{
        const struct fs *fs = files_env(s->store)->fs;
        struct names *n = calloc(1, sizeof *n);
        int rc = 0;
        if (!n)
                return error_nomem(err);
        int dir = fs->open(fs, files_root(s->store), "search", O_RDONLY | O_DIRECTORY, 0);
        if (dir >= 0) {
                fs->list(fs, dir, note_name, n);
                fs->close(fs, dir);
        }
        qsort(n->list, n->count, sizeof *n->list, by_number);
        if (!are_current(s, n)) {
                search_shards_close(s);
                for (size_t i = 0; rc == 0 && i < n->count; i++) {
                        rc = search_shard_add(s, n->list[i], false, err);
                        if (rc == STENO_ECORRUPT && s->lock >= 0) {
                                search_shard_remove(s, n->list[i]);
                                rc = 0;
                        } else if (rc == STENO_ECORRUPT || rc == STENO_EDENIED) {
                                rc = 0; /* whoever has the lock will see to it */
                        }
                }
        }
        free(n);
        return rc;
}
