/*
 * lineage.c - see lineage.h
 */
#include "gateway/lineage.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

struct lineage {
        sqlite3 *db;
        sqlite3_stmt *add; /* of lineage_add(), which a long history calls for each message */
};

static const char SCHEMA[] =
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
    "CREATE TABLE IF NOT EXISTS node(rank INTEGER PRIMARY KEY, owner TEXT, grp TEXT, system TEXT,"
    " chain TEXT, conv TEXT, seq INT, replied INT, tip INT, open INT);"
    "CREATE INDEX IF NOT EXISTS node_chain ON node(owner, chain);"
    "CREATE INDEX IF NOT EXISTS node_conv ON node(conv);"
    "CREATE INDEX IF NOT EXISTS node_group ON node(owner, grp) WHERE grp <> '';"
    "CREATE TABLE IF NOT EXISTS name(owner TEXT, id TEXT, digest TEXT, conv TEXT, seq INT,"
    " PRIMARY KEY(owner, id)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS beside(conv TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID;";

static int failed(struct lineage *l, struct steno_error *err)
{
        return error_set(err, STENO_EIO, "the gateway's index: %s", sqlite3_errmsg(l->db));
}

static int run(struct lineage *l, const char *sql, struct steno_error *err)
{
        return sqlite3_exec(l->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(l, err);
}

int lineage_open(const char *path, struct lineage **out, struct steno_error *err)
{
        char *name = NULL;
        struct lineage *l = calloc(1, sizeof *l);
        if (!l || asprintf(&name, "%s/gateway/lineage.db", path) < 0) {
                free(l);
                return error_nomem(err);
        }
        int rc =
            sqlite3_open_v2(name, &l->db,
                SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK
                ? 0
                : failed(l, err);
        free(name);
        if (rc == 0) {
                sqlite3_busy_timeout(l->db, 10000);
                rc = run(l, SCHEMA, err);
        }
        if (rc) {
                lineage_close(l);
                return rc;
        }
        *out = l;
        return 0;
}

void lineage_close(struct lineage *l)
{
        if (!l)
                return;
        sqlite3_finalize(l->add);
        sqlite3_close(l->db);
        free(l);
}

int lineage_begin(struct lineage *l, struct steno_error *err)
{
        return run(l, "BEGIN IMMEDIATE", err);
}

int lineage_commit(struct lineage *l, struct steno_error *err)
{
        return run(l, "COMMIT", err);
}

void lineage_rollback(struct lineage *l)
{
        run(l, "ROLLBACK", NULL);
}

/* ---- statements ---- */

static void bind_str(sqlite3_stmt *s, int at, struct str v)
{
        sqlite3_bind_text(s, at, v.p ? v.p : "", (int)v.n, SQLITE_TRANSIENT);
}

static void bind(sqlite3_stmt *s, int at, const char *z)
{
        bind_str(s, at, str_of(z));
}

static sqlite3_stmt *prepare(struct lineage *l, const char *sql)
{
        sqlite3_stmt *s = NULL;
        sqlite3_prepare_v2(l->db, sql, -1, &s, NULL);
        return s;
}

/* Runs a statement that gives no rows. */
static int finish(struct lineage *l, sqlite3_stmt *s, struct steno_error *err)
{
        int step = s ? sqlite3_step(s) : SQLITE_ERROR;
        int rc = step == SQLITE_DONE ? 0 : failed(l, err);
        sqlite3_finalize(s);
        return rc;
}

/* ---- finding ---- */

enum want {
        WANT_TIP,  /* the last message of a conversation, of this group and system */
        WANT_OPEN, /* the end of a request that may come again, likewise */
        WANT_SHARED_GROUP,
        WANT_SHARED, /* any node behind a reply */
};

static const char *const conditions[] = {
    [WANT_TIP] = " AND tip=1 AND grp=?3 AND (grp='' OR system=?4)",
    [WANT_OPEN] = " AND open=1 AND grp=?3 AND (grp='' OR system=?4)",
    [WANT_SHARED_GROUP] = " AND replied=1 AND grp=?3 AND (grp='' OR system=?4)",
    [WANT_SHARED] = " AND replied=1",
};

/* A request whose place is looked for. */
struct sought {
        const struct lineage_who *who;
        const char *only; /* the conversation that it names; NULL: any */
        const struct elements_link *links;
        size_t count;
        bool *known; /* for each link: somebody has seen the history up to there */
};

static int find_node(struct lineage *l, const struct sought *k, const char *chain, enum want want,
    struct lineage_place *out, bool *found, struct steno_error *err)
{
        const char *only = k->only;
        char sql[400];
        snprintf(sql, sizeof sql,
            "SELECT rank, conv, seq FROM node WHERE owner=?1 AND chain=?2%s%s ORDER BY rank LIMIT "
            "1",
            only ? " AND conv=?5" : conditions[want],
            only && want == WANT_TIP    ? " AND tip=1"
            : only && want == WANT_OPEN ? " AND open=1"
                                        : "");
        sqlite3_stmt *s = prepare(l, sql);
        if (!s)
                return failed(l, err);
        bind(s, 1, k->who->owner);
        bind(s, 2, chain);
        if (only) {
                bind(s, 5, only);
        } else if (want != WANT_SHARED) {
                bind(s, 3, k->who->group);
                bind(s, 4, k->who->system);
        }
        int step = sqlite3_step(s);
        *found = step == SQLITE_ROW;
        if (*found) {
                out->node = sqlite3_column_int64(s, 0);
                snprintf(out->conv, sizeof out->conv, "%s", sqlite3_column_text(s, 1));
                out->seq = (uint64_t)sqlite3_column_int64(s, 2);
        }
        int rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : failed(l, err);
        sqlite3_finalize(s);
        return rc;
}

/* The longest beginning of the request that ends at such a node. */
static int find_longest(struct lineage *l, const struct sought *k, enum want want,
    struct lineage_place *out, bool *found, struct steno_error *err)
{
        const struct elements_link *links = k->links;
        size_t count = k->count;
        *found = false;
        for (size_t i = count; i > 0; i--) {
                if (links[i - 1].system || links[i - 1].chain[0] == '\0')
                        break;
                if (!k->known[i - 1])
                        continue;
                /* A message that says nothing leaves the chain as it is: its end is that of the
                 * one before it, too. */
                if (i < count && strcmp(links[i].chain, links[i - 1].chain) == 0)
                        continue;
                int rc = find_node(l, k, links[i - 1].chain, want, out, found, err);
                if (rc)
                        return rc;
                if (*found) {
                        out->from = i;
                        while (out->from < count &&
                               strcmp(links[out->from].chain, links[i - 1].chain) == 0)
                                out->from++;
                        return 0;
                }
        }
        return 0;
}

/* Which beginnings of the request anybody has seen. Most are new, so one statement asks for all of
 * them before the finer questions are put. NULL: it failed. */
static bool *find_known(struct lineage *l, const struct sought *k, struct steno_error *err)
{
        const struct elements_link *links = k->links;
        bool *known = calloc(k->count + 1, sizeof *known);
        sqlite3_stmt *s = prepare(l, "SELECT 1 FROM node WHERE owner=?1 AND chain=?2 LIMIT 1");
        if (!known || !s) {
                if (known)
                        failed(l, err);
                else
                        error_nomem(err);
                sqlite3_finalize(s);
                free(known);
                return NULL;
        }
        bind(s, 1, k->who->owner);
        for (size_t i = 0; i < k->count; i++) {
                sqlite3_bind_text(s, 2, links[i].chain, -1, SQLITE_STATIC);
                known[i] = links[i].chain[0] && sqlite3_step(s) == SQLITE_ROW;
                sqlite3_reset(s);
        }
        sqlite3_finalize(s);
        return known;
}

/* The conversation that a session has so far: of the same prompt, since a request for a title has
 * another one; after a request for a compaction, which stands beside the session (gateway.c), the
 * prompt is a new one too. */
static int find_compacted(struct lineage *l, const struct lineage_who *who, char conv[LINEAGE_CONV])
{
        sqlite3_stmt *s = prepare(l,
            "SELECT conv FROM node WHERE owner=?1 AND grp=?2 AND replied=1 AND (system=?3 OR "
            "EXISTS(SELECT 1 FROM node WHERE owner=?1 AND grp='side/'||?2)) "
            "ORDER BY rank DESC LIMIT 1");
        if (!s)
                return STENO_EIO;
        bind(s, 1, who->owner);
        bind(s, 2, who->group);
        bind(s, 3, who->system);
        if (sqlite3_step(s) == SQLITE_ROW)
                snprintf(conv, LINEAGE_CONV, "%s", sqlite3_column_text(s, 0));
        sqlite3_finalize(s);
        return 0;
}

int lineage_find(struct lineage *l, const struct lineage_who *who, const char *only,
    const struct elements_link *links, size_t count, struct lineage_place *out,
    struct steno_error *err)
{
        static const struct {
                enum want want;
                enum lineage_kind kind;
        } order[] = {{WANT_TIP, LINEAGE_CONTINUE}, {WANT_OPEN, LINEAGE_AGAIN},
            {WANT_SHARED_GROUP, LINEAGE_FORK}, {WANT_SHARED, LINEAGE_FORK}};
        struct lineage_place best = {.kind = LINEAGE_NEW};
        struct sought k = {.who = who, .only = only, .links = links, .count = count};
        k.known = find_known(l, &k, err);
        int rc = k.known ? 0 : STENO_EIO;
        for (size_t i = 0; i < sizeof order / sizeof *order && rc == 0; i++) {
                struct lineage_place p = {.kind = order[i].kind};
                bool found = false;
                rc = find_longest(l, &k, order[i].want, &p, &found, err);
                /* A request comes again only as it was, or with finished items of the failed
                 * reply, which are a tip. */
                bool fits = found && (p.kind != LINEAGE_AGAIN || p.from == count);
                if (fits && (best.kind == LINEAGE_NEW || p.from > best.from))
                        best = p;
                if (best.kind != LINEAGE_NEW && order[i].want == WANT_OPEN)
                        break; /* continued or repeated: no fork */
                if (only && order[i].want == WANT_SHARED_GROUP)
                        break;
        }
        free(k.known);
        if (rc)
                return rc;
        *out = best;
        if (best.kind == LINEAGE_NEW && who->group[0])
                return find_compacted(l, who, out->compacted_from) ? failed(l, err) : 0;
        return 0;
}

/* ---- noting ---- */

int lineage_add(struct lineage *l, const struct lineage_who *who, const struct lineage_node *node,
    struct steno_error *err)
{
        if (!l->add)
                l->add =
                    prepare(l, "INSERT INTO node(owner,grp,system,chain,conv,seq,replied,tip,open)"
                               " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)");
        sqlite3_stmt *s = l->add;
        if (!s)
                return failed(l, err);
        bind(s, 1, who->owner);
        bind(s, 2, who->group);
        bind(s, 3, who->system);
        bind(s, 4, node->chain);
        bind(s, 5, node->conv);
        sqlite3_bind_int64(s, 6, (sqlite3_int64)node->seq);
        sqlite3_bind_int(s, 7, node->replied);
        sqlite3_bind_int(s, 8, node->tip);
        sqlite3_bind_int(s, 9, node->open);
        int rc = sqlite3_step(s) == SQLITE_DONE ? 0 : failed(l, err);
        sqlite3_reset(s);
        return rc;
}

static int forget_in(struct lineage *l, const char *sql, const char *owner, const char *conv,
    struct steno_error *err)
{
        sqlite3_stmt *s = prepare(l, sql);
        if (!s)
                return failed(l, err);
        bind(s, 1, conv);
        if (owner)
                bind(s, 2, owner);
        return finish(l, s, err);
}

int lineage_forget(struct lineage *l, const char *owner, const char *conv, struct steno_error *err)
{
        int rc = forget_in(l, "DELETE FROM beside WHERE conv=?1", NULL, conv, err);
        if (rc == 0)
                rc = forget_in(l, "DELETE FROM node WHERE conv=?1 AND owner=?2", owner, conv, err);
        /* Names have no index by conversation, so they are searched only where one was there. */
        if (rc == 0 && sqlite3_changes(l->db) > 0)
                rc = forget_in(l, "DELETE FROM name WHERE conv=?1 AND owner=?2", owner, conv, err);
        return rc;
}

int lineage_continued(struct lineage *l, const char *conv, struct steno_error *err)
{
        sqlite3_stmt *s =
            prepare(l, "UPDATE node SET tip=0, open=0 WHERE conv=?1 AND (tip=1 OR open=1)");
        if (!s)
                return failed(l, err);
        bind(s, 1, conv);
        return finish(l, s, err);
}

int lineage_set_open(struct lineage *l, int64_t node, bool open, struct steno_error *err)
{
        sqlite3_stmt *s = prepare(l, "UPDATE node SET open=?2 WHERE rank=?1");
        if (!s)
                return failed(l, err);
        sqlite3_bind_int64(s, 1, node);
        sqlite3_bind_int(s, 2, open);
        return finish(l, s, err);
}

int lineage_add_id(struct lineage *l, const char *owner, struct str id, const char *digest,
    const char *conv, uint64_t seq, struct steno_error *err)
{
        sqlite3_stmt *s = prepare(l, "REPLACE INTO name(owner,id,digest,conv,seq)"
                                     " VALUES(?1,?2,?3,?4,?5)");
        if (!s)
                return failed(l, err);
        bind(s, 1, owner);
        bind_str(s, 2, id);
        bind(s, 3, digest);
        bind(s, 4, conv);
        sqlite3_bind_int64(s, 5, (sqlite3_int64)seq);
        return finish(l, s, err);
}

bool lineage_find_id(struct lineage *l, const char *owner, struct str id,
    char digest[ELEMENTS_CHAIN], char conv[LINEAGE_CONV], uint64_t *seq)
{
        sqlite3_stmt *s = prepare(l, "SELECT digest, conv, seq FROM name WHERE owner=?1 AND id=?2");
        if (!s)
                return false;
        bind(s, 1, owner);
        bind_str(s, 2, id);
        bool found = sqlite3_step(s) == SQLITE_ROW;
        if (found) {
                snprintf(digest, ELEMENTS_CHAIN, "%s", sqlite3_column_text(s, 0));
                if (conv)
                        snprintf(conv, LINEAGE_CONV, "%s", sqlite3_column_text(s, 1));
                if (seq)
                        *seq = (uint64_t)sqlite3_column_int64(s, 2);
        }
        sqlite3_finalize(s);
        return found;
}

bool lineage_is_tip(struct lineage *l, const char *conv, const char *chain)
{
        sqlite3_stmt *s =
            prepare(l, "SELECT 1 FROM node WHERE conv=?1 AND chain=?2 AND tip=1 LIMIT 1");
        if (!s)
                return false;
        bind(s, 1, conv);
        bind(s, 2, chain);
        bool is = sqlite3_step(s) == SQLITE_ROW;
        sqlite3_finalize(s);
        return is;
}

bool lineage_find_chain(
    struct lineage *l, const char *owner, const char *chain, char conv[LINEAGE_CONV], uint64_t *seq)
{
        sqlite3_stmt *s = prepare(
            l, "SELECT conv, seq FROM node WHERE owner=?1 AND chain=?2 ORDER BY rank LIMIT 1");
        if (!s)
                return false;
        bind(s, 1, owner);
        bind(s, 2, chain);
        bool found = sqlite3_step(s) == SQLITE_ROW;
        if (found) {
                snprintf(conv, LINEAGE_CONV, "%s", sqlite3_column_text(s, 0));
                *seq = (uint64_t)sqlite3_column_int64(s, 1);
        }
        sqlite3_finalize(s);
        return found;
}

int lineage_changed(
    struct lineage *l, const char *conv, const char *digest, bool *is, struct steno_error *err)
{
        sqlite3_stmt *s = prepare(l, "SELECT digest FROM beside WHERE conv=?1");
        if (!s)
                return failed(l, err);
        bind(s, 1, conv);
        *is = sqlite3_step(s) != SQLITE_ROW ||
              strcmp((const char *)sqlite3_column_text(s, 0), digest) != 0;
        sqlite3_finalize(s);
        if (!*is)
                return 0;
        s = prepare(l, "REPLACE INTO beside(conv,digest) VALUES(?1,?2)");
        if (!s)
                return failed(l, err);
        bind(s, 1, conv);
        bind(s, 2, digest);
        return finish(l, s, err);
}
