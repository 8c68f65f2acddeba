/*
 * pg_check.c - a check of a store in PostgreSQL: every record, what it refers to, and what the
 * tables say of it. Nothing here is derived from files, so there is nothing that a repair could
 * rebuild; what is lost is named.
 */
#include "store/postgres/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/state_folder.h"
#include "model/about.h"
#include "store/set_aside.h"

struct checking {
        struct backend_store *store;
        struct backend_check *asked;
        struct backend_conv *conv; /* at work */
        struct arena arena;
        uint64_t seq;
        struct steno_error *err;
};

static int tell(struct checking *c, uint64_t seq, const char *what)
{
        return c->asked->each(
            c->asked->ctx, &(struct check_finding){.project = pg_conv_project(c->conv),
                               .conversation = pg_conv_id(c->conv),
                               .seq = seq,
                               .what = what});
}

/* ---- records ---- */

/* The error of one object: damage that is told of, or a failure that ends the check. */
static int judge(
    struct checking *c, uint64_t seq, int rc, const struct steno_error *why, const char *of)
{
        char what[340];
        if (rc != STENO_ECORRUPT && rc != STENO_ENOTFOUND) {
                if (rc && c->err)
                        *c->err = *why;
                return rc;
        }
        snprintf(what, sizeof what, "%s: %s", of, why->msg);
        return tell(c, seq, what);
}

static int tell_missing(struct checking *c, uint64_t seq, const char *kind, struct str name)
{
        char what[160];
        snprintf(what, sizeof what, "it refers to %s %.*s, which is missing or not whole", kind,
            (int)(name.n > 80 ? 80 : name.n), name.p);
        return tell(c, seq, what);
}

static int check_part(struct checking *c, uint64_t seq, struct str name)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT 1 FROM part WHERE project = $1 AND uid = $2 AND name = $3");
        pg_key(&q, (struct pg_conv *)c->conv);
        pg_text(&q, name);
        int rc = pg_run((struct pg_store *)c->store, &q, &r, c->err);
        if (rc)
                return rc;
        bool there = libpq.ntuples(r) > 0;
        libpq.clear(r);
        return there ? 0 : tell_missing(c, seq, "part", name);
}

static int check_refs(struct checking *c, uint64_t seq, const struct about *about)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < about_ref_slots(about); i++) {
                struct artifact_info info;
                struct str ref = about_ref_at(about, i);
                rc = ref.n ? pg_artifact_find(c->conv, ref, &info, c->err) : 0;
                if (rc == STENO_ENOTFOUND)
                        rc = tell_missing(c, seq, "artifact", ref);
        }
        for (size_t i = 0; rc == 0 && i < about_part_slots(about); i++) {
                struct str name = about_part_at(about, i).name;
                rc = name.n ? check_part(c, seq, name) : 0;
        }
        return rc;
}

static int check_record(void *ctx, const struct backend_record *r)
{
        struct checking *c = ctx;
        struct about about;
        uint64_t seq = r->damaged ? r->first_seq : r->rec.seq;
        int rc = 0;
        if (seq != c->seq + 1)
                rc = tell(c, c->seq + 1, "a record is missing");
        c->seq = seq;
        if (rc == 0 && r->damaged)
                return tell(c, seq, "a record cannot be read");
        arena_reset(&c->arena);
        if (rc || about_read(r->rec.x, &c->arena, &about, NULL))
                return rc ? rc : tell(c, seq, "a record cannot be read");
        return check_refs(c, seq, &about);
}

static int check_tail(struct checking *c)
{
        uint64_t last;
        int rc = pg_look((struct pg_conv *)c->conv, &last, NULL, c->err);
        if (rc)
                return rc;
        /* Others may append meanwhile: more than was read is not damage, less is. */
        return last < c->seq ? tell(c, last, "there are records after the last one that counts")
                             : 0;
}

/* ---- outputs and parts ---- */

static int check_output(void *ctx, const struct artifact_info *info)
{
        struct checking *c = ctx;
        struct steno_error why = {0};
        if (info->state != ARTIFACT_CLOSED)
                return 0;
        int rc = pg_artifact_verify(c->conv, info, &why);
        struct artifact_info now;
        if (rc && pg_artifact_find(c->conv, str_of(info->id), &now, NULL) == 0 &&
            now.state != ARTIFACT_CLOSED)
                return 0; /* it was removed meanwhile */
        char of[64];
        snprintf(of, sizeof of, "artifact %s", info->id);
        return judge(c, 0, rc, &why, of);
}

static int check_parts(struct checking *c)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT name FROM part WHERE project = $1 AND uid = $2 AND"
                          " encode(sha256(bytes), 'hex') <> name");
        q.patience_ms = PG_LONG_MS;
        pg_key(&q, (struct pg_conv *)c->conv);
        int rc = pg_run((struct pg_store *)c->store, &q, &r, c->err);
        if (rc)
                return rc;
        for (int i = 0; rc == 0 && i < libpq.ntuples(r); i++) {
                char what[120];
                struct str name = pg_get(r, i, 0);
                snprintf(what, sizeof what, "part %.*s has other bytes than were stored",
                    (int)(name.n > 64 ? 64 : name.n), name.p);
                rc = tell(c, 0, what);
        }
        libpq.clear(r);
        return rc;
}

/* ---- all of it ---- */

static int check_conv(void *ctx, const char *project, const char *id)
{
        struct checking *c = ctx;
        if ((c->asked->project.n && !str_is(c->asked->project, project)) ||
            (c->asked->id.n && !str_is(c->asked->id, id)))
                return 0;
        int rc = pg_conv_open(c->store, str_of(project), str_of(id), &c->conv, c->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        c->seq = 0;
        rc = pg_read(c->conv, 0, check_record, c, c->err);
        if (rc == 0)
                rc = check_tail(c);
        if (rc == 0)
                rc = pg_artifact_each(c->conv, check_output, c, c->err);
        if (rc == 0)
                rc = check_parts(c);
        if (rc == 0 && c->asked->checked)
                rc = c->asked->checked(c->asked->ctx, c->conv);
        pg_conv_release(c->conv);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

static int tell_of_kept(void *ctx, const char *what)
{
        struct backend_check *check = ctx;
        return check->each(check->ctx, &(struct check_finding){.what = what, .note = true});
}

/* What the recorders of this machine had to set aside. */
static int check_kept(struct pg_store *s, struct backend_check *check)
{
        const struct fs *fs = s->env->fs;
        char *path = NULL;
        int folder = state_folder(s->name, &path, NULL) ? -1 : fs->open_root(fs, path, false);
        free(path);
        if (folder < 0)
                return 0;
        int rc = set_aside_each(fs, folder, tell_of_kept, check);
        fs->close(fs, folder);
        return rc;
}

int pg_check(struct backend_store *store, struct backend_check *check, struct steno_error *err)
{
        struct checking c = {.store = store, .asked = check, .err = err};
        int rc = 0;
        if (check->id.n) {
                struct backend_conv *conv;
                rc = pg_conv_open(store, check->project, check->id, &conv, err);
                if (rc)
                        return rc;
                pg_conv_release(conv);
        }
        arena_init(&c.arena);
        rc = check->project.n ? 0 : check_kept((struct pg_store *)store, check);
        if (rc == 0)
                rc = pg_each_conv(store, NULL, check_conv, &c, err);
        arena_release(&c.arena);
        return rc;
}
