/*
 * seams.c - see seams.h
 */
#include "gateway/seams.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"

struct seams {
        sqlite3 *db;
        pthread_mutex_t mutex;
};

static const char SCHEMA[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE IF NOT EXISTS seam(owner TEXT, after TEXT, before TEXT, messages TEXT, lead TEXT,"
    " PRIMARY KEY(owner, after)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS pin(owner TEXT, grp TEXT, chars INT, bytes INT,"
    " PRIMARY KEY(owner, grp)) WITHOUT ROWID;";

static int failed(struct seams *s, struct steno_error *err)
{
        return error_set(
            err, STENO_EIO, "the gateway's index of hidden rounds: %s", sqlite3_errmsg(s->db));
}

int seams_open(const char *path, struct seams **out, struct steno_error *err)
{
        char *name = NULL;
        struct seams *s = calloc(1, sizeof *s);
        if (!s || asprintf(&name, "%s/gateway/seams.db", path) < 0) {
                free(s);
                return error_nomem(err);
        }
        pthread_mutex_init(&s->mutex, NULL);
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
        int rc = sqlite3_open_v2(name, &s->db, flags, NULL) == SQLITE_OK ? 0 : failed(s, err);
        free(name);
        if (rc == 0) {
                sqlite3_busy_timeout(s->db, 10000);
                if (sqlite3_exec(s->db, SCHEMA, NULL, NULL, NULL) != SQLITE_OK)
                        rc = failed(s, err);
        }
        if (rc) {
                seams_close(s);
                return rc;
        }
        *out = s;
        return 0;
}

void seams_close(struct seams *s)
{
        if (!s)
                return;
        sqlite3_close(s->db);
        pthread_mutex_destroy(&s->mutex);
        free(s);
}

void seam_init(struct seam *s)
{
        *s = (struct seam){0};
        buf_init(&s->messages, 0);
        buf_init(&s->lead, 0);
}

void seam_release(struct seam *s)
{
        buf_release(&s->messages);
        buf_release(&s->lead);
}

/* ---- statements, under the mutex ---- */

static sqlite3_stmt *prepare(struct seams *s, const char *sql, const char *owner, struct str second)
{
        sqlite3_stmt *q = NULL;
        if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK)
                return NULL;
        sqlite3_bind_text(q, 1, owner, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(q, 2, second.n ? second.p : "", (int)second.n, SQLITE_TRANSIENT);
        return q;
}

static void take_column(sqlite3_stmt *q, int at, struct buf *out)
{
        buf_put(out, sqlite3_column_text(q, at), (size_t)sqlite3_column_bytes(q, at));
}

static int finish(struct seams *s, sqlite3_stmt *q, struct steno_error *err)
{
        int rc = q && sqlite3_step(q) == SQLITE_DONE ? 0 : failed(s, err);
        sqlite3_finalize(q);
        return rc;
}

bool seams_find(struct seams *s, const char *owner, struct str after, struct seam *out)
{
        pthread_mutex_lock(&s->mutex);
        sqlite3_stmt *q = prepare(
            s, "SELECT before, messages, lead FROM seam WHERE owner=?1 AND after=?2", owner, after);
        bool found = q && sqlite3_step(q) == SQLITE_ROW;
        if (found) {
                buf_clear(&out->messages);
                buf_clear(&out->lead);
                snprintf(out->before, sizeof out->before, "%s", sqlite3_column_text(q, 0));
                take_column(q, 1, &out->messages);
                take_column(q, 2, &out->lead);
        }
        sqlite3_finalize(q);
        pthread_mutex_unlock(&s->mutex);
        return found && !out->messages.failed && !out->lead.failed;
}

static void bind_buf(sqlite3_stmt *q, int at, const struct buf *b)
{
        sqlite3_bind_text(q, at, b->n ? b->p : "", (int)b->n, SQLITE_TRANSIENT);
}

int seams_add(struct seams *s, const char *owner, struct str after, const struct seam *seam,
    struct steno_error *err)
{
        pthread_mutex_lock(&s->mutex);
        sqlite3_stmt *q =
            prepare(s, "REPLACE INTO seam(owner,after,before,messages,lead) VALUES(?1,?2,?3,?4,?5)",
                owner, after);
        if (q) {
                sqlite3_bind_text(q, 3, seam->before, -1, SQLITE_TRANSIENT);
                bind_buf(q, 4, &seam->messages);
                bind_buf(q, 5, &seam->lead);
        }
        int rc = finish(s, q, err);
        pthread_mutex_unlock(&s->mutex);
        return rc;
}

int seams_pin(struct seams *s, const char *owner, struct str group, uint64_t *chars,
    uint64_t *bytes, struct steno_error *err)
{
        pthread_mutex_lock(&s->mutex);
        sqlite3_stmt *q =
            prepare(s, "SELECT chars, bytes FROM pin WHERE owner=?1 AND grp=?2", owner, group);
        int rc = 0;
        bool known = q && sqlite3_step(q) == SQLITE_ROW;
        if (known) {
                *chars = (uint64_t)sqlite3_column_int64(q, 0);
                *bytes = (uint64_t)sqlite3_column_int64(q, 1);
        }
        sqlite3_finalize(q);
        if (!known) {
                q = prepare(
                    s, "REPLACE INTO pin(owner,grp,chars,bytes) VALUES(?1,?2,?3,?4)", owner, group);
                if (q) {
                        sqlite3_bind_int64(q, 3, (sqlite3_int64)*chars);
                        sqlite3_bind_int64(q, 4, (sqlite3_int64)*bytes);
                }
                rc = finish(s, q, err);
        }
        pthread_mutex_unlock(&s->mutex);
        return rc;
}
