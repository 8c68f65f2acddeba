/*
 * pg_conv.c - conversations in PostgreSQL: making, opening, their metadata, and the trash.
 */
#include "store/postgres/pg.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/title.h"

static struct pg_conv *of(const struct backend_conv *conv)
{
        return (struct pg_conv *)conv;
}

static struct pg_store *of_store(const struct backend_store *store)
{
        return (struct pg_store *)store;
}

void pg_key(struct pg_query *q, const struct pg_conv *c)
{
        pg_cstr(q, c->project);
        pg_cstr(q, c->uid);
}

/* ---- handles ---- */

/* Handles of one conversation are one, so that its appends know the same tail. */
static int hold(struct pg_store *s, struct str project, struct str id, struct str uid, bool trashed,
    struct backend_conv **out, struct steno_error *err)
{
        pthread_mutex_lock(&s->mutex);
        struct pg_conv *c = s->convs;
        while (c && !(str_is(uid, c->uid) && str_is(id, c->id) && c->trashed == trashed))
                c = c->next;
        if (!c && (c = calloc(1, sizeof *c))) {
                c->base.ops = &postgres_backend;
                c->store = s;
                c->project = strndup(project.p, project.n);
                c->id = strndup(id.p, id.n);
                memcpy(c->uid, uid.p, uid.n < PG_UID ? uid.n : PG_UID - 1);
                c->trashed = trashed;
                pthread_mutex_init(&c->mutex, NULL);
                c->next = s->convs;
                s->convs = c;
        }
        if (c)
                c->refs++;
        pthread_mutex_unlock(&s->mutex);
        if (!c || !c->project || !c->id) {
                if (c)
                        pg_conv_release(&c->base);
                return error_nomem(err);
        }
        *out = &c->base;
        return 0;
}

void pg_conv_release(struct backend_conv *conv)
{
        struct pg_conv *c = of(conv);
        struct pg_store *s = c->store;
        if (!pg_is_ours(&s->base))
                return;
        pthread_mutex_lock(&s->mutex);
        bool last = --c->refs == 0;
        if (last) {
                struct pg_conv **at = &s->convs;
                while (*at != c)
                        at = &(*at)->next;
                *at = c->next;
        }
        pthread_mutex_unlock(&s->mutex);
        if (!last)
                return;
        if (c->pairing)
                pairing_free(c->pairing);
        pthread_mutex_destroy(&c->mutex);
        free(c->project);
        free(c->id);
        free(c);
}

const char *pg_conv_id(const struct backend_conv *conv)
{
        return of(conv)->id;
}

const char *pg_conv_project(const struct backend_conv *conv)
{
        return of(conv)->project;
}

struct backend_store *pg_conv_store(const struct backend_conv *conv)
{
        return &of(conv)->store->base;
}

/* ---- making and opening ---- */

int pg_facts_read(struct str meta, struct pg_facts *out, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        *out = (struct pg_facts){0};
        if (json_parse(&j, meta.p, meta.n, NULL, NULL) == 0) {
                out->title = title_dup(&j, 0);
                out->created = json_dup_string(&j, json_get(&j, 0, "createdAt"));
        }
        json_release(&j);
        out->title = out->title ? out->title : strdup("");
        out->created = out->created ? out->created : strdup("");
        return out->title && out->created ? 0 : error_nomem(err);
}

void pg_facts_release(struct pg_facts *f)
{
        free(f->title);
        free(f->created);
}

int pg_conv_create(struct backend_store *store, struct str project, struct str id, struct str meta,
    struct backend_conv **out, struct steno_error *err)
{
        struct pg_store *s = of_store(store);
        struct pg_query q;
        struct pg_facts facts;
        char uid[48];
        int rc = pg_facts_read(meta, &facts, err);
        if (rc) {
                pg_facts_release(&facts);
                return rc;
        }
        id_make(s->env, "", uid);
        pg_query_init(&q,
            "WITH made AS (INSERT INTO conv (project, uid, id, meta, title, created)"
            " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING project, uid)"
            " INSERT INTO tail (project, uid) SELECT project, uid FROM made");
        pg_text(&q, project);
        pg_cstr(&q, uid);
        pg_text(&q, id);
        pg_bytes(&q, meta);
        pg_cstr(&q, facts.title);
        pg_cstr(&q, facts.created);
        long n = pg_change(s, &q, err);
        pg_facts_release(&facts);
        if (n < 0)
                return (int)n;
        if (n == 0 || n == PG_UNIQUE)
                return error_set(err, STENO_ECONFLICT, "conversation \"%.*s\" exists already",
                    (int)(id.n > 100 ? 100 : id.n), id.p);
        return hold(s, project, id, str_of(uid), false, out, err);
}

int pg_conv_open(struct backend_store *store, struct str project, struct str id,
    struct backend_conv **out, struct steno_error *err)
{
        struct pg_store *s = of_store(store);
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT uid FROM conv WHERE project = $1 AND id = $2 AND trash IS NULL");
        pg_text(&q, project);
        pg_text(&q, id);
        int rc = pg_run(s, &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r)
                 ? hold(s, project, id, pg_get(r, 0, 0), false, out, err)
                 : error_set(err, STENO_ENOTFOUND, "no conversation \"%.*s\" in project \"%.*s\"",
                       (int)(id.n > 100 ? 100 : id.n), id.p,
                       (int)(project.n > 100 ? 100 : project.n), project.p);
        libpq.clear(r);
        return rc;
}

/* ---- metadata ---- */

static int read_meta(
    struct pg_conv *c, char **json, size_t *n, uint64_t *version, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT meta, meta_version FROM conv WHERE project = $1 AND uid = $2");
        pg_key(&q, c);
        int rc = pg_run(c->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r) == 0)
                rc = error_set(err, STENO_ENOTFOUND, "conversation \"%.100s\" was removed", c->id);
        char *copy = rc ? NULL : pg_get_dup(r, 0, 0);
        if (rc == 0 && !copy)
                rc = error_nomem(err);
        if (rc == 0) {
                *json = copy;
                *n = pg_get(r, 0, 0).n;
                *version = pg_get_u64(r, 0, 1);
        }
        libpq.clear(r);
        return rc;
}

/* Says the names that it has now: it may have come back from the trash under another one. */
static int put_names(const struct pg_conv *c, struct str old, struct buf *out)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, old.p, old.n, NULL, NULL);
        if (rc || (json_is(&j, json_get(&j, 0, "id"), c->id) &&
                      json_is(&j, json_get(&j, 0, "project"), c->project))) {
                json_release(&j);
                return rc == STENO_ENOMEM ? rc : 0;
        }
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", c->id);
        jsonw_field_cstr(&w, "project", c->project);
        for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                if (!json_is(&j, k, "id") && !json_is(&j, k, "project"))
                        jsonw_copy_member(&w, &j, k);
        jsonw_object_end(&w);
        buf_putc(out, '\n');
        json_release(&j);
        return out->failed;
}

int pg_conv_meta(struct backend_conv *conv, char **json, size_t *n, struct steno_error *err)
{
        uint64_t version;
        struct buf named;
        int rc = read_meta(of(conv), json, n, &version, err);
        if (rc)
                return rc;
        buf_init(&named, META_MAX);
        if (put_names(of(conv), str_span(*json, *n), &named))
                rc = error_nomem(err);
        if (rc || named.n) {
                free(*json);
                *json = rc ? NULL : buf_take(&named, n);
        }
        buf_release(&named);
        return rc || *json ? rc : error_nomem(err);
}

int pg_conv_change_meta(
    struct backend_conv *conv, backend_change_fn change, void *ctx, struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        for (;;) {
                char *old = NULL;
                size_t n = 0;
                uint64_t version = 0;
                struct pg_query q;
                struct buf out;
                int rc = read_meta(c, &old, &n, &version, err);
                if (rc)
                        return rc;
                buf_init(&out, META_MAX);
                rc = change(ctx, str_span(old, n), &out, err);
                if (rc == 0)
                        rc = buf_check(&out, err);
                long changed = 0;
                struct pg_facts facts = {0};
                if (rc == 0)
                        rc = pg_facts_read(buf_str(&out), &facts, err);
                if (rc == 0) {
                        pg_query_init(&q, "UPDATE conv SET meta = $3, meta_version = $4 + 1, title"
                                          " = $5, created = $6 WHERE project = $1 AND uid = $2 AND"
                                          " meta_version = $4 AND trash IS NULL");
                        pg_key(&q, c);
                        pg_bytes(&q, buf_str(&out));
                        pg_u64(&q, version);
                        pg_cstr(&q, facts.title);
                        pg_cstr(&q, facts.created);
                        changed = pg_change(c->store, &q, err);
                }
                pg_facts_release(&facts);
                buf_release(&out);
                free(old);
                if (rc || changed)
                        return rc ? rc : changed < 0 ? (int)changed : 0;
                if (c->trashed)
                        return error_set(
                            err, STENO_ENOTFOUND, "conversation \"%.100s\" was removed", c->id);
        }
}

static int put_uid(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, old.p, old.n, NULL, err);
        bool has = rc == 0 && json_get(&j, 0, "uid") != JSON_NONE;
        struct jsonw w = jsonw_to(out);
        if (rc == 0 && !has) {
                jsonw_object(&w);
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                        jsonw_copy_member(&w, &j, k);
                jsonw_field_cstr(&w, "uid", ctx);
                jsonw_object_end(&w);
                buf_putc(out, '\n');
        }
        json_release(&j);
        return rc ? rc : has; /* 1: nothing to do */
}

int pg_conv_give_uid(struct pg_conv *c, struct steno_error *err)
{
        int rc = pg_conv_change_meta(&c->base, put_uid, c->uid, err);
        return rc == 1 ? 0 : rc;
}

/* What was lost in files is not lost here; one at a time in this process is enough. */
int pg_conv_exclusively(
    struct backend_conv *conv, int (*work)(void *ctx), void *ctx, struct steno_error *err)
{
        (void)conv, (void)err;
        return work(ctx);
}

int pg_each_conv(struct backend_store *store, const char *project, backend_conv_fn each, void *ctx,
    struct steno_error *err)
{
        char *after_project = strdup(project ? project : "");
        char *after_id = strdup("");
        int rc = after_project && after_id ? 0 : error_nomem(err);
        for (bool more = true; rc == 0 && more;) {
                struct pg_query q;
                PGresult *r;
                pg_query_init(&q, "SELECT project, id FROM conv WHERE trash IS NULL AND"
                                  " (project, id) > ($1, $2) AND ($3 = '' OR project = $3)"
                                  " ORDER BY project, id LIMIT 500");
                pg_cstr(&q, after_project);
                pg_cstr(&q, after_id);
                pg_cstr(&q, project ? project : "");
                rc = pg_run(of_store(store), &q, &r, err);
                if (rc)
                        break;
                int n = libpq.ntuples(r);
                more = n == 500;
                for (int i = 0; rc == 0 && i < n; i++) {
                        free(after_project);
                        free(after_id);
                        after_project = pg_get_dup(r, i, 0);
                        after_id = pg_get_dup(r, i, 1);
                        rc = after_project && after_id ? each(ctx, after_project, after_id)
                                                       : error_nomem(err);
                }
                libpq.clear(r);
        }
        free(after_project);
        free(after_id);
        return rc;
}

/* ---- the trash ---- */

int pg_trash_put(struct backend_conv *conv, char name[TRASH_NAME], struct steno_error *err)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        char made[48], at[TIME_TEXT];
        id_make(c->store->env, "", made);
        time_format(c->store->env->now(c->store->env), at);
        /* The tail first: an append that runs is waited for, and the next one is refused. */
        pg_query_init(&q,
            "WITH gone AS (UPDATE tail SET removed = true WHERE project = $1 AND uid = $2 AND NOT"
            " removed RETURNING uid) UPDATE conv SET trash = $3, deleted_at = $4 FROM gone WHERE"
            " conv.project = $1 AND conv.uid = $2 AND trash IS NULL");
        pg_key(&q, c);
        pg_cstr(&q, made);
        pg_cstr(&q, at);
        long n = pg_change(c->store, &q, err);
        if (n < 0)
                return (int)n;
        if (n == 0)
                return error_set(
                    err, STENO_ENOTFOUND, "conversation \"%.100s\" was removed", c->id);
        memset(name, 0, TRASH_NAME);
        memcpy(name, made, strlen(made));
        return 0;
}

int pg_trash_list(
    struct backend_store *store, bool sizes, struct trash_list *out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        (void)sizes;
        pg_query_init(&q, "SELECT c.trash, c.project, c.id, c.deleted_at, t.bytes FROM conv c JOIN"
                          " tail t USING (project, uid) WHERE c.trash IS NOT NULL ORDER BY"
                          " c.trash DESC");
        int rc = pg_run(of_store(store), &q, &r, err);
        if (rc)
                return rc;
        size_t n = (size_t)libpq.ntuples(r);
        struct trash_list list = {.items = calloc(n ? n : 1, sizeof *list.items), .cap = n};
        for (size_t i = 0; list.items && i < n; i++) {
                struct trash_item *it = &list.items[list.count++];
                struct str name = pg_get(r, (int)i, 0), at = pg_get(r, (int)i, 3);
                memcpy(it->name, name.p, name.n < TRASH_NAME ? name.n : TRASH_NAME - 1);
                it->project = pg_get_dup(r, (int)i, 1);
                it->id = pg_get_dup(r, (int)i, 2);
                memcpy(it->deleted_at, at.p, at.n < TIME_TEXT ? at.n : TIME_TEXT - 1);
                it->bytes = pg_get_u64(r, (int)i, 4);
                if (!it->project || !it->id)
                        rc = error_nomem(err);
        }
        libpq.clear(r);
        if (rc == 0 && !list.items)
                rc = error_nomem(err);
        if (rc)
                backend_trash_list_release(&list);
        else
                *out = list;
        return rc;
}

int pg_trash_open(struct backend_store *store, const struct trash_item *item,
    struct backend_conv **out, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT uid FROM conv WHERE trash = $1");
        pg_cstr(&q, item->name);
        int rc = pg_run(of_store(store), &q, &r, err);
        if (rc)
                return rc;
        rc = libpq.ntuples(r) ? hold(of_store(store), str_of(item->project), str_of(item->id),
                                    pg_get(r, 0, 0), true, out, err)
                              : error_set(err, STENO_ENOTFOUND, "it is not in the trash any more");
        libpq.clear(r);
        return rc;
}

/* Its seal is of the name that it had: under another one it begins a seal of its own, and one that
 * leaves for good is entered in the log. */
static int end_seal(
    struct backend_store *store, const struct trash_item *item, struct steno_error *err)
{
        struct backend_conv *conv;
        struct pg_query q;
        int rc = pg_trash_open(store, item, &conv, err);
        if (rc)
                return rc;
        rc = pg_seal_remove(of(conv), err);
        pg_query_init(&q, "DELETE FROM seal WHERE project = $1 AND uid = $2");
        pg_key(&q, of(conv));
        long n = rc ? rc : pg_change(of_store(store), &q, err);
        pg_conv_release(conv);
        return n < 0 ? (int)n : 0;
}

int pg_trash_put_back(struct backend_store *store, const struct trash_item *item, const char *as,
    struct steno_error *err)
{
        struct pg_query q;
        const char *id = as ? as : item->id;
        int rc = as && strcmp(as, item->id) != 0 ? end_seal(store, item, err) : 0;
        if (rc)
                return rc;
        pg_query_init(&q,
            "WITH back AS (UPDATE conv SET trash = NULL, deleted_at = NULL, id = $2 WHERE trash ="
            " $1 RETURNING project, uid) UPDATE tail SET removed = false FROM back WHERE"
            " tail.project = back.project AND tail.uid = back.uid");
        pg_cstr(&q, item->name);
        pg_cstr(&q, id);
        long n = pg_change(of_store(store), &q, err);
        if (n == PG_UNIQUE)
                return error_set(
                    err, STENO_ECONFLICT, "conversation \"%.100s\" exists already", id);
        if (n == 0)
                return error_set(err, STENO_ENOTFOUND, "it is not in the trash any more");
        return n < 0 ? (int)n : 0;
}

int pg_trash_destroy(
    struct backend_store *store, const struct trash_item *item, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q,
            "WITH gone AS (DELETE FROM conv WHERE trash = $1 RETURNING project, uid),"
            " a AS (DELETE FROM tail x USING gone g WHERE x.project = g.project AND x.uid = g.uid),"
            " b AS (DELETE FROM record x USING gone g WHERE x.project = g.project AND x.uid ="
            " g.uid), c AS (DELETE FROM part x USING gone g WHERE x.project = g.project AND x.uid ="
            " g.uid), d AS (DELETE FROM artifact x USING gone g WHERE x.project = g.project AND"
            " x.uid = g.uid RETURNING x.project, x.uid, x.blob), k AS (INSERT INTO stray SELECT"
            " project, uid, blob, '', '-infinity' FROM d WHERE blob IS NOT NULL), e AS (DELETE "
            "FROM chunk x USING gone g WHERE x.project = g.project"
            " AND x.uid = g.uid), f AS (DELETE FROM claim x USING gone g WHERE x.project ="
            " g.project AND x.uid = g.uid), h AS (DELETE FROM run x USING gone g WHERE x.project ="
            " g.project AND x.uid = g.uid), i AS (DELETE FROM event x USING gone g WHERE x.project"
            " = g.project AND x.uid = g.uid), j AS (DELETE FROM mail x USING gone g WHERE"
            " x.project = g.project AND x.uid = g.uid) SELECT count(*) FROM gone");
        PGresult *r;
        int rc = end_seal(store, item, err);
        q.patience_ms = PG_LONG_MS;
        pg_cstr(&q, item->name);
        if (rc == 0)
                rc = pg_run(of_store(store), &q, &r, err);
        if (rc)
                return rc;
        if (pg_get_u64(r, 0, 0) == 0)
                rc = error_set(err, STENO_ENOTFOUND, "it is not in the trash any more");
        libpq.clear(r);
        return rc ? rc : pg_blob_collect(of_store(store), err);
}

int pg_trash_sweep(struct backend_store *store, struct steno_error *err)
{
        return pg_blob_collect(of_store(store), err); /* all else is one transaction */
}
