/*
 * pg_schema.c - the tables of a store, by version. Opening a store makes them; those of another
 * version are refused.
 */
#include "store/postgres/pg.h"

#include <stdio.h>

#include "base/error.h"

#define VERSION 1

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
};

/* 0: there is no schema of ours. */
static int read_version(struct pg_store *s, uint64_t *version, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        *version = 0;
        pg_query_init(&q, "SELECT to_regclass($1 || '.version') IS NOT NULL");
        pg_cstr(&q, s->schema);
        int rc = pg_run(s, &q, &r, err);
        if (rc)
                return rc;
        bool there = pg_get_bool(r, 0, 0);
        libpq.clear(r);
        if (!there)
                return 0;
        pg_query_init(&q, "SELECT max(version) FROM version");
        rc = pg_run(s, &q, &r, err);
        if (rc)
                return rc;
        *version = pg_get_u64(r, 0, 0);
        libpq.clear(r);
        return 0;
}

/* Another one may be at it: then it is done when the lock is ours. */
static int make(struct pg_store *s, uint64_t from, struct steno_error *err)
{
        int rc = 0;
        for (uint64_t v = from; rc == 0 && v < VERSION; v++) {
                struct buf sql;
                buf_init(&sql, 0);
                buf_printf(&sql,
                    "BEGIN; SELECT pg_advisory_xact_lock(7369742);"
                    "CREATE SCHEMA IF NOT EXISTS %s;",
                    s->schema);
                buf_puts(&sql, STEPS[v]);
                buf_puts(&sql, "COMMIT");
                const char *text = buf_cstr(&sql);
                rc = text ? pg_script(s, text, err) : error_nomem(err);
                if (rc)
                        pg_script(s, "ROLLBACK", NULL);
                buf_release(&sql);
        }
        uint64_t now = 0;
        if (rc && read_version(s, &now, NULL) == 0 && now == VERSION)
                rc = 0;
        return rc;
}

int pg_schema_prepare(struct pg_store *s, bool create, struct steno_error *err)
{
        uint64_t version;
        int rc = read_version(s, &version, err);
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
                    "program",
                    (unsigned long long)version, VERSION);
        return make(s, version, err);
}
