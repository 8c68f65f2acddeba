/*
 * pg_schema.c - the tables of a store, by version. Opening a store makes them; those of another
 * version are refused.
 */
#include "store/postgres/pg.h"

#include <stdio.h>

#include "base/error.h"

#define VERSION 4

/* One text a version. bytea, because jsonb drops duplicate keys and refuses \u0000; EXTERNAL,
 * because lengths and pieces are asked for and messages compress badly twice. */
static const char *const STEPS[VERSION] = {
    "CREATE TABLE version (version bigint NOT NULL);"
    "INSERT INTO version VALUES (1);"
    "CREATE TABLE conv (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " id text COLLATE \"C\" NOT NULL, meta bytea NOT NULL, meta_version bigint NOT NULL DEFAULT 1,"
    " title text NOT NULL, created text COLLATE \"C\" NOT NULL,"
    " trash text, deleted_at text, PRIMARY KEY (project, uid));"
    "CREATE UNIQUE INDEX conv_id ON conv (project, id) WHERE trash IS NULL;"
    "CREATE UNIQUE INDEX conv_trash ON conv (trash) WHERE trash IS NOT NULL;"
    /* The row that every append changes has no index but its key, so that changing it is cheap. */
    "CREATE TABLE tail (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " last_seq bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0,"
    " last_amend bigint NOT NULL DEFAULT 0, updated text NOT NULL DEFAULT '',"
    " generation bigint NOT NULL DEFAULT 1, touched bigint NOT NULL DEFAULT 0,"
    " removed boolean NOT NULL DEFAULT false, PRIMARY KEY (project, uid))"
    " WITH (fillfactor = 50);"
    "CREATE TABLE record (project text COLLATE \"C\" NOT NULL,"
    " uid text COLLATE \"C\" NOT NULL, seq bigint NOT NULL, id text COLLATE \"C\" NOT NULL,"
    " key text COLLATE \"C\", amends boolean NOT NULL, line bytea NOT NULL,"
    " PRIMARY KEY (project, uid, seq));"
    "ALTER TABLE record ALTER COLUMN line SET STORAGE EXTERNAL;"
    "CREATE UNIQUE INDEX record_id ON record (project, uid, id);"
    "CREATE UNIQUE INDEX record_key ON record (project, uid, key) WHERE key IS NOT NULL;"
    "CREATE INDEX record_amends ON record (project, uid, seq) WHERE amends;"
    "CREATE TABLE part (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " name text COLLATE \"C\" NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (project, uid, name));"
    "ALTER TABLE part ALTER COLUMN bytes SET STORAGE EXTERNAL;"
    "CREATE TABLE artifact (project text COLLATE \"C\" NOT NULL,"
    " uid text COLLATE \"C\" NOT NULL, ref text COLLATE \"C\" NOT NULL, kind text NOT NULL,"
    " base text COLLATE \"C\" NOT NULL, name text NOT NULL, mime text NOT NULL,"
    " state bigint NOT NULL, utf8 boolean NOT NULL, size bigint NOT NULL, lines bigint NOT NULL,"
    " sha256 text NOT NULL, created bigint NOT NULL, hint text NOT NULL, deleted_at bigint NOT"
    " NULL, deleted_by text NOT NULL, lease timestamptz, line_index bytea,"
    " PRIMARY KEY (project, uid, ref));"
    "CREATE UNIQUE INDEX artifact_name ON artifact (project, uid, kind, base);"
    "CREATE TABLE chunk (project text COLLATE \"C\" NOT NULL,"
    " uid text COLLATE \"C\" NOT NULL, ref text COLLATE \"C\" NOT NULL, at bigint NOT NULL,"
    " bytes bytea NOT NULL, PRIMARY KEY (project, uid, ref, at));"
    "ALTER TABLE chunk ALTER COLUMN bytes SET STORAGE EXTERNAL;"
    "CREATE TABLE claim (project text COLLATE \"C\" NOT NULL,"
    " uid text COLLATE \"C\" NOT NULL, run text NOT NULL, name text NOT NULL,"
    " epoch bigint NOT NULL, lease timestamptz NOT NULL, open boolean NOT NULL,"
    " PRIMARY KEY (project, uid));"
    "CREATE TABLE run (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " name text COLLATE \"C\" NOT NULL, at text NOT NULL, head bytea NOT NULL,"
    " seq bigint NOT NULL DEFAULT 0, epoch bigint NOT NULL DEFAULT 1,"
    " finished boolean NOT NULL DEFAULT false, PRIMARY KEY (project, uid, name));"
    "CREATE INDEX run_name ON run (project, name);"
    "CREATE TABLE event (project text COLLATE \"C\" NOT NULL,"
    " uid text COLLATE \"C\" NOT NULL, name text COLLATE \"C\" NOT NULL, seq bigint NOT NULL,"
    " at text NOT NULL, type text NOT NULL, data bytea NOT NULL,"
    " PRIMARY KEY (project, uid, name, seq));"
    "CREATE TABLE mail (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " n bigint GENERATED ALWAYS AS IDENTITY, line bytea NOT NULL, PRIMARY KEY (project, uid, n));"
    "CREATE TABLE document (name text PRIMARY KEY, text bytea NOT NULL,"
    " version bigint NOT NULL);"
    "CREATE TABLE figure (name text PRIMARY KEY, n bigint NOT NULL);",
    /* 2: purges, words, seals, who is connected, disks */
    "UPDATE version SET version = 2;"
    "ALTER TABLE part ADD COLUMN uses bigint NOT NULL DEFAULT 0;"
    "CREATE TABLE indexed (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " id text COLLATE \"C\" NOT NULL, generation bigint NOT NULL, last bigint NOT NULL,"
    " PRIMARY KEY (project, uid));"
    "CREATE TABLE block (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " place bigint GENERATED ALWAYS AS IDENTITY, seq bigint NOT NULL, ref text NOT NULL, at bigint"
    " NOT NULL, len bigint NOT NULL, role bigint NOT NULL, error boolean NOT NULL, tool text NOT"
    " NULL, model text NOT NULL, time bigint NOT NULL, words tsvector NOT NULL,"
    " PRIMARY KEY (project, uid, place));"
    "CREATE INDEX block_place ON block (place);"
    "CREATE INDEX block_words ON block USING gin (words);"
    "CREATE TABLE seal (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " notes bytea NOT NULL, leaves bytea NOT NULL, purged bytea, last_seq bigint NOT NULL,"
    " generation bigint NOT NULL, PRIMARY KEY (project, uid));"
    "ALTER TABLE seal ALTER COLUMN leaves SET STORAGE EXTERNAL;"
    "CREATE TABLE watcher (project text COLLATE \"C\" NOT NULL, id text NOT NULL,"
    " lease timestamptz NOT NULL, PRIMARY KEY (project, id));"
    "CREATE TABLE disk (project text COLLATE \"C\" NOT NULL, id text COLLATE \"C\" NOT NULL,"
    " created text NOT NULL, updated text NOT NULL, PRIMARY KEY (project, id));"
    "CREATE TABLE disk_file (project text COLLATE \"C\" NOT NULL, disk text COLLATE \"C\" NOT NULL,"
    " path text COLLATE \"C\" NOT NULL, mime text NOT NULL, meta bytea NOT NULL, sha256 text NOT"
    " NULL, created text NOT NULL, updated text NOT NULL, bytes bytea NOT NULL,"
    " PRIMARY KEY (project, disk, path));"
    "ALTER TABLE disk_file ALTER COLUMN bytes SET STORAGE EXTERNAL;",
    /* 3: outputs in a bucket, and what of it belongs to nobody */
    "UPDATE version SET version = 3;"
    "ALTER TABLE artifact ADD COLUMN blob text COLLATE \"C\", ADD COLUMN etag text;"
    "CREATE TABLE stray (project text COLLATE \"C\" NOT NULL, uid text COLLATE \"C\" NOT NULL,"
    " blob text COLLATE \"C\" NOT NULL, upload text NOT NULL, lease timestamptz NOT NULL,"
    " PRIMARY KEY (project, uid, blob));",
    /* 4: what the gateways of all servers derive (gateway/lineage.h, gateway/seams.h). Names that
     * clients choose are bytes, because they need not be UTF-8. */
    "UPDATE version SET version = 4;"
    "CREATE TABLE node (rank bigint GENERATED ALWAYS AS IDENTITY, owner bytea NOT NULL,"
    " grp bytea NOT NULL, system bytea NOT NULL, chain bytea NOT NULL, conv bytea NOT NULL,"
    " seq bigint NOT NULL, replied bigint NOT NULL, tip bigint NOT NULL, open bigint NOT NULL,"
    " PRIMARY KEY (owner, rank));"
    "CREATE INDEX node_chain ON node (owner, chain);"
    "CREATE INDEX node_conv ON node (conv);"
    "CREATE INDEX node_group ON node (owner, grp) WHERE grp <> '';"
    "CREATE TABLE name (owner bytea NOT NULL, id bytea NOT NULL, digest bytea NOT NULL,"
    " conv bytea NOT NULL, seq bigint NOT NULL, PRIMARY KEY (owner, id));"
    "CREATE TABLE beside (conv bytea PRIMARY KEY, digest bytea NOT NULL);"
    "CREATE TABLE seam (owner bytea NOT NULL, after bytea NOT NULL, before bytea NOT NULL,"
    " messages bytea NOT NULL, lead bytea NOT NULL, PRIMARY KEY (owner, after));"
    "CREATE TABLE pin (owner bytea NOT NULL, grp bytea NOT NULL, chars bigint NOT NULL,"
    " bytes bigint NOT NULL, PRIMARY KEY (owner, grp));",
};

/* 0: there is no schema of ours. */
static int read_version(struct pg_tx *tx, uint64_t *version, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        *version = 0;
        pg_query_init(&q, "SELECT to_regclass('\"' || $1 || '\".version') IS NOT NULL");
        pg_cstr(&q, tx->store->schema);
        int rc = pg_tx_run(tx, &q, &r, err);
        if (rc)
                return rc;
        bool there = pg_get_bool(r, 0, 0);
        libpq.clear(r);
        if (!there)
                return 0;
        pg_query_init(&q, "SELECT max(version) FROM version");
        rc = pg_tx_run(tx, &q, &r, err);
        if (rc)
                return rc;
        *version = pg_get_u64(r, 0, 0);
        libpq.clear(r);
        return 0;
}

/* Others may be at it: whoever gets the lock looks at what there is then. */
static int lock(struct pg_tx *tx, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q, "SELECT pg_advisory_xact_lock(7369742)");
        return pg_tx_run(tx, &q, NULL, err);
}

static int bring_up(struct pg_tx *tx, uint64_t *from, struct steno_error *err)
{
        char sql[100];
        int rc = lock(tx, err);
        if (rc == 0)
                rc = read_version(tx, from, err);
        if (rc == 0 && *from > VERSION)
                rc = error_set(err, STENO_EUNSUPPORTED,
                    "the database has schema version %llu; this program knows version %d",
                    (unsigned long long)*from, VERSION);
        snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS \"%s\"", tx->store->schema);
        if (rc == 0 && *from == 0)
                rc = pg_tx_script(tx, sql, err);
        for (uint64_t v = *from; rc == 0 && v < VERSION; v++)
                rc = pg_tx_script(tx, STEPS[v], err);
        return rc;
}

int pg_schema_migrate(struct pg_store *s, uint64_t *from, uint64_t *to, struct steno_error *err)
{
        struct pg_tx tx;
        int rc = pg_tx_begin(s, &tx, err);
        if (rc)
                return rc;
        rc = pg_tx_end(&tx, bring_up(&tx, from, err), err);
        *to = VERSION;
        return rc;
}

int pg_schema_prepare(struct pg_store *s, bool create, struct steno_error *err)
{
        uint64_t version, ignored;
        struct pg_tx tx;
        int rc = pg_tx_begin(s, &tx, err);
        if (rc == 0)
                rc = pg_tx_end(&tx, read_version(&tx, &version, err), err);
        if (rc)
                return rc;
        if (version > VERSION)
                return error_set(err, STENO_EUNSUPPORTED,
                    "the database has schema version %llu; this program knows version %d",
                    (unsigned long long)version, VERSION);
        if (version == VERSION)
                return 0;
        if (!create && version == 0)
                return error_set(err, STENO_ENOTFOUND, "there is no store in this database");
        if (version)
                return error_set(err, STENO_EUNSUPPORTED,
                    "the database has schema version %llu, which is older than version %d of this "
                    "program: steno migrate brings it up to date",
                    (unsigned long long)version, VERSION);
        return pg_schema_migrate(s, &version, &ignored, err);
}
