/*
 * search.c - the shards of search.h.
 *
 * Rows of messages have ids from 1 on, rows of outputs from OUTPUTS on, so that either kind is a
 * range of ids, which FTS5 walks backwards without sorting.
 */
#include "store/search/search.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/file_url.h"

#define OUTPUTS ((int64_t)1 << 40)
#define BUSY_MS 10000
/* 2: what failures say is indexed; 3: every tool of a message; 4: outputs know whether they are
 * indexed in part, and case is folded in all scripts; 5: NFC and NFD are the same word */
#define VERSION 5
#define TEXT(macro) TEXT_OF(macro)
#define TEXT_OF(text) #text
#define SHARDS_MAX 4096
#define PLACE_BITS 44 /* of a row; the rest is the shard */

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

struct search_shard {
        unsigned number;
        sqlite3 *db;
        ino_t ino;
        /* The last question, ready to be asked again: to prepare one takes longer than a page. */
        sqlite3_stmt *asked;
        char *asked_sql;
};

struct search {
        struct files_store *store;
        char *path; /* of the folder */
        pthread_mutex_t mutex;
        struct search_shard *shards; /* by number */
        size_t count;
        int lock;
        unsigned long owner; /* the thread that has the lock, 0: none; atomic */
        /* while something is added */
        struct search_shard *to;
        int64_t conv;
        sqlite3_stmt *add_block;
        sqlite3_stmt *add_words;
        sqlite3_stmt *get_name;
        sqlite3_stmt *add_name;
        int64_t next_message;
        int64_t next_output;
        uint64_t bytes; /* added */
};

/* ---- shards ---- */

static int search_failed(sqlite3 *db, struct steno_error *err)
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

static int search_exec(sqlite3 *db, const char *sql, struct steno_error *err)
{
        return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : search_failed(db, err);
}

static int search_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **out, struct steno_error *err)
{
        return sqlite3_prepare_v2(db, sql, -1, out, NULL) == SQLITE_OK ? 0 : search_failed(db, err);
}

static int64_t search_number(sqlite3 *db, const char *sql)
{
        sqlite3_stmt *s = NULL;
        int64_t n = -1;
        if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
                n = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
        return n;
}

static void search_shard_close(struct search_shard *x)
{
        sqlite3_finalize(x->asked);
        free(x->asked_sql);
        sqlite3_close_v2(x->db);
}

static void search_shards_close(struct search *s)
{
        for (size_t i = 0; i < s->count; i++)
                search_shard_close(&s->shards[i]);
        s->count = 0;
}

static void search_shard_remove(struct search *s, unsigned number)
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

static int search_shard_add(struct search *s, unsigned number, bool create, struct steno_error *err)
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
static int search_shards_refresh(struct search *s, struct steno_error *err)
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

int search_open(struct files_store *store, struct search **out, struct steno_error *err)
{
        struct search *s = calloc(1, sizeof *s);
        if (!s || asprintf(&s->path, "%s/search", files_path(store)) < 0) {
                free(s);
                return error_nomem(err);
        }
        s->store = store;
        s->lock = -1;
        pthread_mutex_init(&s->mutex, NULL);
        *out = s;
        return 0;
}

void search_close(struct search *s)
{
        if (!s)
                return;
        search_rollback(s);
        search_shards_close(s);
        pthread_mutex_destroy(&s->mutex);
        free(s->shards);
        free(s->path);
        free(s);
}

/* ---- the lock ---- */

int search_lock(struct search *s, bool wait, struct steno_error *err)
{
        const struct fs *fs = files_env(s->store)->fs;
        pthread_mutex_lock(&s->mutex);
        int dir = fs_open_dir(fs, files_root(s->store), "search", true);
        int fd = dir < 0 ? dir : fs->open(fs, dir, "lock", O_RDWR | O_CREAT, 0600);
        if (dir >= 0)
                fs->close(fs, dir);
        int rc = fd < 0 ? fd : fs->flock(fs, fd, LOCK_EX | (wait ? 0 : LOCK_NB));
        if (rc < 0) {
                if (fd >= 0)
                        fs->close(fs, fd);
                pthread_mutex_unlock(&s->mutex);
                return rc == -EWOULDBLOCK ? error_set(err, STENO_ETIMEOUT,
                                                "another process is building the index of words")
                                          : error_sys(err, rc, "locking the index of words");
        }
        s->lock = fd;
        __atomic_store_n(&s->owner, (unsigned long)pthread_self(), __ATOMIC_RELEASE);
        rc = search_shards_refresh(s, err);
        if (rc)
                search_unlock(s);
        return rc;
}

void search_unlock(struct search *s)
{
        const struct fs *fs = files_env(s->store)->fs;
        search_rollback(s);
        if (s->lock >= 0)
                fs->close(fs, s->lock);
        s->lock = -1;
        __atomic_store_n(&s->owner, 0, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&s->mutex);
}

/* ---- adding ---- */

static void search_bind(sqlite3_stmt *q, int i, struct str text)
{
        sqlite3_bind_text(q, i, text.p ? text.p : "", (int)text.n, SQLITE_STATIC);
}

int search_progress(struct search *s, const char *project_folder, const char *folder, uint64_t log,
    uint64_t *seq, struct steno_error *err)
{
        int rc = 0;
        *seq = 0;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                sqlite3_stmt *q = NULL;
                rc = search_prepare(s->shards[i].db,
                    "SELECT last FROM conv WHERE project_folder=?1 AND folder=?2 AND log=?3"
                    " AND live",
                    &q, err);
                if (rc)
                        break;
                search_bind(q, 1, str_of(project_folder));
                search_bind(q, 2, str_of(folder));
                sqlite3_bind_int64(q, 3, (sqlite3_int64)log);
                while (sqlite3_step(q) == SQLITE_ROW) {
                        uint64_t last = (uint64_t)sqlite3_column_int64(q, 0);
                        *seq = last > *seq ? last : *seq;
                }
                sqlite3_finalize(q);
        }
        return rc;
}

static int each_conv(struct search *s, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                sqlite3_stmt *q = NULL;
                rc = search_prepare(
                    s->shards[i].db, "SELECT project,id,log,last FROM conv WHERE live", &q, err);
                while (rc == 0 && sqlite3_step(q) == SQLITE_ROW)
                        rc = each(ctx, (const char *)sqlite3_column_text(q, 0),
                            (const char *)sqlite3_column_text(q, 1),
                            (uint64_t)sqlite3_column_int64(q, 2),
                            (uint64_t)sqlite3_column_int64(q, 3));
                sqlite3_finalize(q);
        }
        return rc;
}

int search_each_conv(struct search *s, backend_progress_fn each, void *ctx, struct steno_error *err)
{
        if (__atomic_load_n(&s->owner, __ATOMIC_ACQUIRE) == (unsigned long)pthread_self())
                return each_conv(s, each, ctx, err);
        pthread_mutex_lock(&s->mutex);
        int rc = search_shards_refresh(s, err);
        if (rc == 0)
                rc = each_conv(s, each, ctx, err);
        pthread_mutex_unlock(&s->mutex);
        return rc;
}

/* The shard to write to: the last one, unless it is full. */
static int choose_shard(struct search *s, struct steno_error *err)
{
        unsigned next = s->count ? s->shards[s->count - 1].number + 1 : 1;
        bool full = s->count && search_number(s->shards[s->count - 1].db,
                                    "SELECT bytes FROM size") >= (int64_t)SEARCH_SHARD_BYTES;
        int rc = s->count && !full ? 0 : search_shard_add(s, next, true, err);
        s->to = rc ? NULL : &s->shards[s->count - 1];
        return rc;
}

/* Rows of an earlier log of that name are worth nothing; what they said stays in the words until
 * the shard is dropped. */
static int retire_others(struct search *s, const struct search_conv *c, struct steno_error *err)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                sqlite3_stmt *q = NULL;
                bool any = false;
                rc = search_prepare(s->shards[i].db,
                    "SELECT 1 FROM conv WHERE project_folder=?1 AND folder=?2 AND log<>?3 AND live",
                    &q, err);
                if (rc)
                        return rc;
                search_bind(q, 1, str_of(c->project_folder));
                search_bind(q, 2, str_of(c->folder));
                sqlite3_bind_int64(q, 3, (sqlite3_int64)c->log);
                any = sqlite3_step(q) == SQLITE_ROW;
                sqlite3_finalize(q);
                if (!any)
                        continue;
                /* In this order: what is not live is not shown, and is indexed again. */
                static const char *const SQL[] = {
                    "UPDATE conv SET live=0 WHERE project_folder=?1 AND folder=?2 AND log<>?3",
                    "DELETE FROM block WHERE conv IN (SELECT key FROM conv WHERE project_folder=?1"
                    " AND folder=?2 AND log<>?3)"};
                for (size_t k = 0; rc == 0 && k < 2; k++) {
                        rc = search_prepare(s->shards[i].db, SQL[k], &q, err);
                        if (rc)
                                break;
                        search_bind(q, 1, str_of(c->project_folder));
                        search_bind(q, 2, str_of(c->folder));
                        sqlite3_bind_int64(q, 3, (sqlite3_int64)c->log);
                        if (sqlite3_step(q) != SQLITE_DONE)
                                rc = search_failed(s->shards[i].db, err);
                        sqlite3_finalize(q);
                }
        }
        return rc;
}

/* The key of the conversation in the shard that is written to. */
static int conv_key(struct search *s, const struct search_conv *c, struct steno_error *err)
{
        sqlite3 *db = s->to->db;
        sqlite3_stmt *q = NULL;
        int rc = search_prepare(db,
            "SELECT key FROM conv WHERE project_folder=?1 AND folder=?2 AND log=?3 AND live", &q,
            err);
        if (rc)
                return rc;
        search_bind(q, 1, str_of(c->project_folder));
        search_bind(q, 2, str_of(c->folder));
        sqlite3_bind_int64(q, 3, (sqlite3_int64)c->log);
        s->conv = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
        sqlite3_finalize(q);
        if (s->conv)
                return 0;
        rc = search_prepare(db,
            "INSERT INTO conv (project_folder,folder,project,id,log,last,live)"
            " VALUES (?1,?2,?3,?4,?5,0,1)",
            &q, err);
        if (rc)
                return rc;
        search_bind(q, 1, str_of(c->project_folder));
        search_bind(q, 2, str_of(c->folder));
        search_bind(q, 3, str_of(c->project));
        search_bind(q, 4, str_of(c->id));
        sqlite3_bind_int64(q, 5, (sqlite3_int64)c->log);
        if (sqlite3_step(q) != SQLITE_DONE)
                rc = search_failed(db, err);
        sqlite3_finalize(q);
        s->conv = sqlite3_last_insert_rowid(db);
        return rc;
}

int search_begin(struct search *s, const struct search_conv *c, struct steno_error *err)
{
        int rc = retire_others(s, c, err);
        if (rc == 0)
                rc = choose_shard(s, err);
        sqlite3 *db = rc ? NULL : s->to->db;
        if (rc == 0)
                rc = search_exec(db, "BEGIN IMMEDIATE", err);
        if (rc == 0)
                rc = conv_key(s, c, err);
        if (rc == 0)
                rc = search_prepare(db,
                    "INSERT INTO block VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)", &s->add_block,
                    err);
        if (rc == 0)
                rc = search_prepare(
                    db, "INSERT INTO ft (rowid,text) VALUES (?1,?2)", &s->add_words, err);
        if (rc == 0)
                rc = search_prepare(db, "SELECT id FROM name WHERE text=?1", &s->get_name, err);
        if (rc == 0)
                rc = search_prepare(db, "INSERT INTO name (text) VALUES (?1)", &s->add_name, err);
        if (rc) {
                search_rollback(s);
                return rc;
        }
        char sql[100];
        snprintf(sql, sizeof sql, "SELECT max(id) FROM block WHERE id<%lld", (long long)OUTPUTS);
        s->next_message = search_number(db, sql) + 1;
        s->next_output = search_number(db, "SELECT max(id) FROM block") + 1;
        s->next_message = s->next_message > 0 ? s->next_message : 1;
        s->next_output = s->next_output > OUTPUTS ? s->next_output : OUTPUTS;
        /* Rows may have been deleted whose words are still there. */
        int64_t docs = search_number(db, "SELECT max(id) FROM ft_docsize");
        if (docs >= OUTPUTS && docs >= s->next_output)
                s->next_output = docs + 1;
        snprintf(
            sql, sizeof sql, "SELECT max(id) FROM ft_docsize WHERE id<%lld", (long long)OUTPUTS);
        docs = search_number(db, sql);
        if (docs >= s->next_message)
                s->next_message = docs + 1;
        s->bytes = 0;
        return 0;
}

static int64_t name_id(struct search *s, struct str text)
{
        if (!text.n)
                return 0;
        search_bind(s->get_name, 1, text);
        int64_t id =
            sqlite3_step(s->get_name) == SQLITE_ROW ? sqlite3_column_int64(s->get_name, 0) : 0;
        sqlite3_reset(s->get_name);
        if (id)
                return id;
        search_bind(s->add_name, 1, text);
        if (sqlite3_step(s->add_name) == SQLITE_DONE)
                id = sqlite3_last_insert_rowid(s->to->db);
        sqlite3_reset(s->add_name);
        return id;
}

int search_add(struct search *s, const struct search_block *b, struct steno_error *err)
{
        int64_t id = b->ref.n ? s->next_output++ : s->next_message++;
        sqlite3_stmt *q = s->add_block;
        sqlite3_bind_int64(q, 1, id);
        sqlite3_bind_int64(q, 2, s->conv);
        sqlite3_bind_int64(q, 3, (sqlite3_int64)b->seq);
        if (b->ref.n)
                search_bind(q, 4, b->ref);
        else
                sqlite3_bind_null(q, 4);
        sqlite3_bind_int64(q, 5, (sqlite3_int64)b->at);
        sqlite3_bind_int64(q, 6, (sqlite3_int64)b->len);
        sqlite3_bind_int(q, 7, b->role);
        sqlite3_bind_int(q, 8, b->error);
        sqlite3_bind_int64(q, 9, name_id(s, b->tools));
        sqlite3_bind_int64(q, 10, name_id(s, b->model));
        sqlite3_bind_int64(q, 11, b->time);
        int rc = sqlite3_step(q) == SQLITE_DONE ? 0 : search_failed(s->to->db, err);
        sqlite3_reset(q);
        if (rc)
                return rc;
        q = s->add_words;
        sqlite3_bind_int64(q, 1, id);
        search_bind(q, 2, b->words);
        rc = sqlite3_step(q) == SQLITE_DONE ? 0 : search_failed(s->to->db, err);
        sqlite3_reset(q);
        s->bytes += b->len;
        return rc;
}

static void end_adding(struct search *s)
{
        sqlite3_finalize(s->add_block);
        sqlite3_finalize(s->add_words);
        sqlite3_finalize(s->get_name);
        sqlite3_finalize(s->add_name);
        s->add_block = s->add_words = s->get_name = s->add_name = NULL;
        s->to = NULL;
}

int search_commit(struct search *s, uint64_t seq, struct steno_error *err)
{
        char sql[200];
        snprintf(sql, sizeof sql,
            "UPDATE conv SET last=%llu WHERE key=%lld; UPDATE size SET bytes=bytes+%llu; COMMIT",
            (unsigned long long)seq, (long long)s->conv, (unsigned long long)s->bytes);
        sqlite3 *db = s->to->db;
        int rc = search_exec(db, sql, err);
        if (rc)
                search_rollback(s);
        else
                end_adding(s);
        return rc;
}

void search_rollback(struct search *s)
{
        if (s->to) {
                sqlite3 *db = s->to->db;
                end_adding(s);
                sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        }
}

/* ---- forgetting ---- */

static bool has_held(struct search_shard *x, const char *project_folder, const char *folder)
{
        sqlite3_stmt *q = NULL;
        if (search_prepare(
                x->db, "SELECT 1 FROM conv WHERE project_folder=?1 AND folder=?2", &q, NULL))
                return true; /* nobody can say */
        search_bind(q, 1, str_of(project_folder));
        search_bind(q, 2, str_of(folder));
        int step = sqlite3_step(q);
        sqlite3_finalize(q);
        return step != SQLITE_DONE;
}

/* What else was in a shard that goes must be indexed anew: its rows elsewhere go as well, so that
 * nothing is found twice. */
static int reset_others(struct search *s, size_t gone, struct steno_error *err)
{
        sqlite3_stmt *q = NULL;
        int rc = search_prepare(s->shards[gone].db,
            "SELECT DISTINCT project_folder,folder FROM conv WHERE live", &q, err);
        while (rc == 0 && sqlite3_step(q) == SQLITE_ROW) {
                struct search_conv c = {.project_folder = (const char *)sqlite3_column_text(q, 0),
                    .folder = (const char *)sqlite3_column_text(q, 1)};
                rc = retire_others(s, &c, err);
        }
        sqlite3_finalize(q);
        return rc == STENO_ECORRUPT ? 0 : rc;
}

int search_forget(
    struct search *s, const char *project_folder, const char *folder, struct steno_error *err)
{
        const struct fs *fs = files_env(s->store)->fs;
        struct stat st;
        if (fs->stat(fs, files_root(s->store), "search", &st) != 0)
                return 0;
        int rc = search_lock(s, true, err);
        if (rc)
                return rc;
        for (size_t i = 0; rc == 0 && i < s->count; i++) {
                if (!has_held(&s->shards[i], project_folder, folder))
                        continue;
                rc = reset_others(s, i, err);
        }
        for (size_t i = 0; rc == 0 && i < s->count;) {
                if (!has_held(&s->shards[i], project_folder, folder)) {
                        i++;
                        continue;
                }
                search_shard_close(&s->shards[i]);
                search_shard_remove(s, s->shards[i].number);
                memmove(&s->shards[i], &s->shards[i + 1], (s->count - i - 1) * sizeof *s->shards);
                s->count--;
        }
        search_unlock(s);
        return rc;
}

int search_discard(struct search *s, struct steno_error *err)
{
        int rc = search_lock(s, true, err);
        if (rc)
                return rc;
        for (size_t i = 0; i < s->count; i++) {
                search_shard_close(&s->shards[i]);
                search_shard_remove(s, s->shards[i].number);
        }
        s->count = 0;
        search_unlock(s);
        return 0;
}

/* ---- asking ---- */

static void put_condition(struct buf *sql, bool on, const char *text)
{
        if (on)
                buf_puts(sql, text);
}

/* Rows of a shard that are asked for: from `from` on, and below `to`. */
struct rows {
        int64_t from, to;
};

/* False: none, since all of the shard lies behind ask->below. */
static bool find_rows(const struct search_shard *x, const struct search_ask *ask, struct rows *out)
{
        const uint64_t last = (UINT64_C(1) << PLACE_BITS) - 1;
        uint64_t number = ask->below >> PLACE_BITS;
        bool all = ask->below == UINT64_MAX || number > x->number;
        int64_t below = (int64_t)(all ? last : ask->below & last);
        *out = (struct rows){0, OUTPUTS};
        if (ask->outputs)
                *out = (struct rows){OUTPUTS, INT64_MAX};
        if (below < out->to)
                out->to = below;
        return all || number == x->number;
}

static void put_sql(const struct search_ask *ask, struct buf *sql)
{
        buf_puts(sql,
            "SELECT b.id,c.project,c.id,b.seq,b.ref,b.at,b.len,b.role,b.error,t.text,b.time FROM ");
        buf_puts(sql, ask->match ? "ft CROSS JOIN block b ON b.id=ft.rowid" : "block b");
        buf_puts(sql, " CROSS JOIN conv c ON c.key=b.conv LEFT JOIN name t ON t.id=b.tool WHERE ");
        put_condition(sql, ask->match, "ft MATCH ?1 AND ft.rowid>=?2 AND ft.rowid<?3");
        put_condition(sql, !ask->match, "b.id>=?2 AND b.id<?3");
        buf_puts(sql, " AND c.live");
        put_condition(sql, ask->project, " AND c.project=?4");
        put_condition(sql, ask->conversation, " AND c.id=?5");
        put_condition(sql, ask->role, " AND b.role=?6");
        put_condition(sql, ask->error, " AND b.error");
        put_condition(sql, ask->tool, /* one of several, with line ends between them */
            " AND instr(char(10)||t.text||char(10),char(10)||?7||char(10))");
        put_condition(sql, ask->after != INT64_MIN, " AND b.time>=?8");
        put_condition(sql, ask->before != INT64_MIN, " AND b.time<?9");
        put_condition(sql, ask->model, " AND b.model IN (SELECT id FROM name WHERE text=?10)");
        buf_puts(sql, ask->match ? " ORDER BY ft.rowid DESC" : " ORDER BY b.id DESC");
}

static void bind_ask(sqlite3_stmt *q, const struct search_ask *ask, const struct rows *rows)
{
        sqlite3_bind_text(q, 1, ask->match, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 2, rows->from);
        sqlite3_bind_int64(q, 3, rows->to);
        sqlite3_bind_text(q, 4, ask->project, -1, SQLITE_STATIC);
        sqlite3_bind_text(q, 5, ask->conversation, -1, SQLITE_STATIC);
        sqlite3_bind_int(q, 6, ask->role);
        sqlite3_bind_text(q, 7, ask->tool, -1, SQLITE_STATIC);
        sqlite3_bind_int64(q, 8, ask->after);
        sqlite3_bind_int64(q, 9, ask->before);
        sqlite3_bind_text(q, 10, ask->model, -1, SQLITE_STATIC);
}

static struct search_hit hit_of(const struct search_shard *x, sqlite3_stmt *q)
{
        const char *ref = (const char *)sqlite3_column_text(q, 4);
        const char *tool = (const char *)sqlite3_column_text(q, 9);
        return (struct search_hit){
            .place = (uint64_t)x->number << PLACE_BITS | (uint64_t)sqlite3_column_int64(q, 0),
            .project = (const char *)sqlite3_column_text(q, 1),
            .id = (const char *)sqlite3_column_text(q, 2),
            .seq = (uint64_t)sqlite3_column_int64(q, 3),
            .ref = ref ? ref : "",
            .at = (uint64_t)sqlite3_column_int64(q, 5),
            .len = (uint64_t)sqlite3_column_int64(q, 6),
            .role = sqlite3_column_int(q, 7),
            .error = sqlite3_column_int(q, 8),
            .tools = tool ? tool : "",
            .time = sqlite3_column_int64(q, 10)};
}

/* The statement for what is asked, which stays the shard's. */
static int question(struct search_shard *x, const struct search_ask *ask, sqlite3_stmt **out,
    struct steno_error *err)
{
        struct buf sql;
        buf_init(&sql, 0);
        put_sql(ask, &sql);
        const char *text = buf_cstr(&sql);
        int rc = text ? 0 : error_nomem(err);
        if (rc == 0 && !(x->asked && strcmp(x->asked_sql, text) == 0)) {
                sqlite3_finalize(x->asked);
                free(x->asked_sql);
                x->asked = NULL;
                x->asked_sql = strdup(text);
                rc = x->asked_sql ? search_prepare(x->db, text, &x->asked, err) : error_nomem(err);
        }
        buf_release(&sql);
        if (rc == 0)
                *out = x->asked;
        return rc;
}

static int ask_shard(struct search_shard *x, const struct search_ask *ask, search_hit_fn each,
    void *ctx, struct steno_error *err)
{
        struct rows rows;
        sqlite3_stmt *q;
        int step = SQLITE_DONE;
        if (!find_rows(x, ask, &rows))
                return 0;
        int rc = question(x, ask, &q, err);
        if (rc)
                return rc;
        bind_ask(q, ask, &rows);
        while (rc == 0 && (step = sqlite3_step(q)) == SQLITE_ROW) {
                struct search_hit hit = hit_of(x, q);
                rc = each(ctx, &hit);
        }
        if (rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
                rc = search_failed(x->db, err);
        sqlite3_reset(q); /* what it reads may be changed and removed again */
        sqlite3_clear_bindings(q);
        return rc;
}

int search_each(struct search *s, const struct search_ask *ask, search_hit_fn each, void *ctx,
    struct steno_error *err)
{
        int rc;
        pthread_mutex_lock(&s->mutex);
        rc = search_shards_refresh(s, err);
        for (size_t i = s->count; rc == 0 && i-- > 0;)
                rc = ask_shard(&s->shards[i], ask, each, ctx, err);
        pthread_mutex_unlock(&s->mutex);
        return rc;
}
