/*
 * lineage.c - see lineage.h
 */
#include "gateway/lineage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gateway/tables.h"

#define AT_ONCE 32 /* how many beginnings of a history one statement looks up */

struct lineage {
        struct tables *tables;
        bool lost; /* a question has no answer */
};

/* Of the file; PostgreSQL has the same in its own types (store/postgres/pg_schema.c). */
static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS node(rank INTEGER PRIMARY KEY, owner TEXT, grp TEXT, system TEXT,"
    " chain TEXT, conv TEXT, seq INT, replied INT, tip INT, open INT);"
    "CREATE INDEX IF NOT EXISTS node_chain ON node(owner, chain);"
    "CREATE INDEX IF NOT EXISTS node_conv ON node(conv);"
    "CREATE INDEX IF NOT EXISTS node_group ON node(owner, grp) WHERE grp <> '';"
    "CREATE TABLE IF NOT EXISTS name(owner TEXT, id TEXT, digest TEXT, conv TEXT, seq INT,"
    " PRIMARY KEY(owner, id)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS beside(conv TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID;";

int lineage_open(
    struct steno_store *store, const char *path, struct lineage **out, struct steno_error *err)
{
        struct tables_options opt = {
            .store = store, .path = path, .name = "lineage.db", .schema = SCHEMA};
        struct lineage *l = calloc(1, sizeof *l);
        if (!l)
                return error_nomem(err);
        int rc = tables_open(&opt, &l->tables, err);
        if (rc)
                free(l);
        else
                *out = l;
        return rc;
}

void lineage_close(struct lineage *l)
{
        if (!l)
                return;
        tables_close(l->tables);
        free(l);
}

int lineage_begin(struct lineage *l, const char *owner, struct steno_error *err)
{
        return tables_begin(l->tables, owner, err);
}

int lineage_commit(struct lineage *l, struct steno_error *err)
{
        return tables_commit(l->tables, err);
}

void lineage_rollback(struct lineage *l)
{
        tables_rollback(l->tables);
}

void lineage_trust(struct lineage *l)
{
        l->lost = false;
}

int lineage_check(const struct lineage *l, struct steno_error *err)
{
        return l->lost ? error_set(err, STENO_EIO, "the gateway's index could not be read") : 0;
}

/* ---- statements ---- */

static struct steno_value key(const char *z)
{
        return tables_key(str_of(z));
}

static struct steno_value text(const char *z)
{
        return tables_text(str_of(z));
}

/* Runs a statement that gives no rows. */
static int change(struct lineage *l, const char *sql, const struct steno_value *values,
    size_t count, struct steno_error *err)
{
        struct steno_statement st = {.sql = sql, .values = values, .count = count};
        return tables_run(l->tables, &st, err);
}

/* The first row of an answer: a text of at most LINEAGE_CONV characters, and up to two others. */
struct answer {
        bool found;
        char columns[3][LINEAGE_CONV];
};

static int take_row(void *ctx, const struct steno_value *columns, size_t count)
{
        struct answer *a = ctx;
        for (size_t i = 0; !a->found && i < count && i < 3; i++)
                snprintf(a->columns[i], sizeof a->columns[i], "%.*s", (int)columns[i].n,
                    columns[i].text);
        a->found = true;
        return 0;
}

static int ask(struct lineage *l, const char *sql, const struct steno_value *values, size_t count,
    struct answer *out, struct steno_error *err)
{
        struct steno_statement st = {
            .sql = sql, .values = values, .count = count, .each = take_row, .ctx = out};
        *out = (struct answer){0};
        return tables_run(l->tables, &st, err);
}

/* The same; a failure is reported by lineage_check(). */
static bool find(struct lineage *l, const char *sql, const struct steno_value *values, size_t count,
    struct answer *out)
{
        if (ask(l, sql, values, count, out, NULL) == 0)
                return out->found;
        l->lost = true;
        return false;
}

static uint64_t number(const char *column)
{
        return strtoull(column, NULL, 10);
}

/* ---- finding ---- */

enum want {
        WANT_TIP,  /* the last message of a conversation, of this group and system */
        WANT_OPEN, /* the end of a request that may come again, of the same group and system */
        WANT_SHARED_GROUP,
        WANT_SHARED, /* any node behind a reply */
};

#define FIND                                                                                       \
        "SELECT CAST(rank AS TEXT), conv, CAST(seq AS TEXT) FROM node WHERE owner=$1 AND chain=$2"
#define OF_SESSION " AND grp=$3 AND (grp='' OR system=$4)"
#define FIRST " ORDER BY node.rank LIMIT 1"

static const char *const finders[] = {
    [WANT_TIP] = FIND " AND tip=1" OF_SESSION FIRST,
    [WANT_OPEN] = FIND " AND open=1" OF_SESSION FIRST,
    [WANT_SHARED_GROUP] = FIND " AND replied=1" OF_SESSION FIRST,
    [WANT_SHARED] = FIND " AND replied=1" FIRST,
};

/* The same of one conversation, which the request names. */
static const char *const named_finders[] = {
    [WANT_TIP] = FIND " AND conv=$5 AND tip=1" FIRST,
    [WANT_OPEN] = FIND " AND conv=$5 AND open=1" FIRST,
    [WANT_SHARED_GROUP] = FIND " AND conv=$5" FIRST,
    [WANT_SHARED] = FIND " AND conv=$5" FIRST,
};

/* A request whose place is looked for. */
struct sought {
        const struct lineage_who *who;
        const char *only; /* the conversation that it names; NULL: any */
        const struct elements_link *links;
        size_t count;
        bool *known; /* for each link: the history up to there is known */
};

static int find_node(struct lineage *l, const struct sought *k, const char *chain, enum want want,
    struct lineage_place *out, bool *found, struct steno_error *err)
{
        const struct steno_value values[] = {key(k->who->owner), key(chain), key(k->who->group),
            text(k->who->system), text(k->only ? k->only : "")};
        struct answer a;
        int rc = ask(l, (k->only ? named_finders : finders)[want], values, 5, &a, err);
        *found = rc == 0 && a.found;
        if (*found) {
                out->node = (int64_t)number(a.columns[0]);
                memcpy(out->conv, a.columns[1], sizeof out->conv);
                out->seq = number(a.columns[2]);
        }
        return rc;
}

/* The longest beginning of the request that ends at a known node. */
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
                /* A message without content leaves the chain unchanged, so its chain is the same as
                 * that of the message before it. */
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

/* Finds which beginnings of the request are known. Most are new, so one statement looks up many of
 * them before the detailed queries. */
static int mark_known(void *ctx, const struct steno_value *columns, size_t count)
{
        const struct sought *k = ctx;
        (void)count;
        for (size_t i = 0; i < k->count; i++)
                if (strlen(k->links[i].chain) == columns[0].n && columns[0].n &&
                    memcmp(k->links[i].chain, columns[0].text, columns[0].n) == 0)
                        k->known[i] = true;
        return 0;
}

static int find_known(struct lineage *l, const struct sought *k, struct steno_error *err)
{
        struct steno_value values[1 + AT_ONCE] = {key(k->who->owner)};
        struct steno_statement st = {
            .sql = "SELECT DISTINCT chain FROM node WHERE owner=$1 AND chain IN ($2,$3,$4,$5,$6,$7,"
                   "$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,$24,$25,$26,$27,"
                   "$28,$29,$30,$31,$32,$33)",
            .values = values,
            .count = 1 + AT_ONCE,
            .each = mark_known};
        int rc = 0;
        for (size_t at = 0; rc == 0 && at < k->count; at += AT_ONCE) {
                struct sought part = *k;
                part.links += at;
                part.known += at;
                part.count = k->count - at < AT_ONCE ? k->count - at : AT_ONCE;
                for (size_t i = 0; i < AT_ONCE; i++)
                        values[1 + i] = key(i < part.count ? part.links[i].chain : "");
                st.ctx = &part;
                rc = tables_run(l->tables, &st, err);
        }
        return rc;
}

/* The conversation that a session has so far: of the same prompt, since a request for a title has
 * another one; after a request for a compaction, which stands beside the session (gateway.c), the
 * prompt is a new one too. */
static int find_compacted(struct lineage *l, const struct lineage_who *who, char conv[LINEAGE_CONV],
    struct steno_error *err)
{
        struct buf side;
        struct answer a;
        buf_init(&side, 0);
        buf_puts(&side, "side/");
        buf_puts(&side, who->group);
        const struct steno_value values[] = {
            key(who->owner), key(who->group), text(who->system), tables_key(buf_str(&side))};
        int rc = buf_check(&side, err);
        if (rc == 0)
                rc = ask(l,
                    "SELECT conv FROM node WHERE owner=$1 AND grp=$2 AND replied=1 AND (system=$3"
                    " OR EXISTS(SELECT 1 FROM node WHERE owner=$1 AND grp=$4))"
                    " ORDER BY node.rank DESC LIMIT 1",
                    values, 4, &a, err);
        if (rc == 0 && a.found)
                memcpy(conv, a.columns[0], LINEAGE_CONV);
        buf_release(&side);
        return rc;
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
        k.known = calloc(count + 1, sizeof *k.known);
        int rc = k.known ? find_known(l, &k, err) : error_nomem(err);
        for (size_t i = 0; i < sizeof order / sizeof *order && rc == 0; i++) {
                struct lineage_place p = {.kind = order[i].kind};
                bool found = false;
                rc = find_longest(l, &k, order[i].want, &p, &found, err);
                /* A repeated request is either the same as before, or also has finished items of
                 * the failed reply, which are a tip. */
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
                return find_compacted(l, who, out->compacted_from, err);
        return 0;
}

/* ---- noting ---- */

int lineage_add(struct lineage *l, const struct lineage_who *who, const struct lineage_node *node,
    struct steno_error *err)
{
        const struct steno_value values[] = {key(who->owner), key(who->group), text(who->system),
            key(node->chain), text(node->conv), tables_number(node->seq),
            tables_number(node->replied), tables_number(node->tip), tables_number(node->open)};
        return change(l,
            "INSERT INTO node(owner,grp,system,chain,conv,seq,replied,tip,open)"
            " VALUES($1,$2,$3,$4,$5,$6,$7,$8,$9)",
            values, 9, err);
}

int lineage_forget(struct lineage *l, const char *owner, const char *conv, struct steno_error *err)
{
        const struct steno_value values[] = {text(conv), key(owner)};
        struct steno_statement st = {
            .sql = "DELETE FROM node WHERE conv=$1 AND owner=$2", .values = values, .count = 2};
        int rc = change(l, "DELETE FROM beside WHERE conv=$1", values, 1, err);
        if (rc == 0)
                rc = tables_run(l->tables, &st, err);
        /* Names have no index by conversation, so they are searched only where one was there. */
        if (rc == 0 && st.changed > 0)
                rc = change(l, "DELETE FROM name WHERE conv=$1 AND owner=$2", values, 2, err);
        return rc;
}

int lineage_continued(struct lineage *l, const char *conv, struct steno_error *err)
{
        const struct steno_value values[] = {text(conv)};
        return change(
            l, "UPDATE node SET tip=0, open=0 WHERE conv=$1 AND (tip=1 OR open=1)", values, 1, err);
}

int lineage_set_open(struct lineage *l, int64_t node, bool open, struct steno_error *err)
{
        const struct steno_value values[] = {tables_number((uint64_t)node), tables_number(open)};
        return change(l, "UPDATE node SET open=$2 WHERE rank=$1", values, 2, err);
}

int lineage_add_id(struct lineage *l, const char *owner, struct str id, const char *digest,
    const char *conv, uint64_t seq, struct steno_error *err)
{
        const struct steno_value values[] = {
            key(owner), tables_key(id), text(digest), text(conv), tables_number(seq)};
        return change(l,
            "INSERT INTO name(owner,id,digest,conv,seq) VALUES($1,$2,$3,$4,$5) ON "
            "CONFLICT(owner,id)"
            " DO UPDATE SET digest=excluded.digest, conv=excluded.conv, seq=excluded.seq",
            values, 5, err);
}

bool lineage_find_id(struct lineage *l, const char *owner, struct str id,
    char digest[ELEMENTS_CHAIN], char conv[LINEAGE_CONV], uint64_t *seq)
{
        const struct steno_value values[] = {key(owner), tables_key(id)};
        struct answer a;
        if (!find(l, "SELECT digest, conv, CAST(seq AS TEXT) FROM name WHERE owner=$1 AND id=$2",
                values, 2, &a))
                return false;
        snprintf(digest, ELEMENTS_CHAIN, "%.*s", ELEMENTS_CHAIN - 1, a.columns[0]);
        if (conv)
                memcpy(conv, a.columns[1], LINEAGE_CONV);
        if (seq)
                *seq = number(a.columns[2]);
        return true;
}

bool lineage_is_tip(struct lineage *l, const char *conv, const char *chain)
{
        const struct steno_value values[] = {text(conv), key(chain)};
        struct answer a;
        return find(
            l, "SELECT conv FROM node WHERE conv=$1 AND chain=$2 AND tip=1 LIMIT 1", values, 2, &a);
}

bool lineage_find_chain(
    struct lineage *l, const char *owner, const char *chain, char conv[LINEAGE_CONV], uint64_t *seq)
{
        const struct steno_value values[] = {key(owner), key(chain)};
        struct answer a;
        if (!find(l, FIND FIRST, values, 2, &a))
                return false;
        memcpy(conv, a.columns[1], LINEAGE_CONV);
        *seq = number(a.columns[2]);
        return true;
}

int lineage_changed(
    struct lineage *l, const char *conv, const char *digest, bool *is, struct steno_error *err)
{
        const struct steno_value values[] = {text(conv), text(digest)};
        struct answer a;
        int rc = ask(l, "SELECT digest FROM beside WHERE conv=$1", values, 1, &a, err);
        *is = !a.found || strcmp(a.columns[0], digest) != 0;
        if (rc || !*is)
                return rc;
        return change(l,
            "INSERT INTO beside(conv,digest) VALUES($1,$2) ON CONFLICT(conv) DO UPDATE SET"
            " digest=excluded.digest",
            values, 2, err);
}
