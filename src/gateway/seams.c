/*
 * seams.c - see seams.h
 */
#include "gateway/seams.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "gateway/tables.h"

#define AT_ONCE 100 /* chains in a question; tables.c takes so many values */

struct seams {
        struct tables *tables;
        struct buf find; /* the statement that asks for AT_ONCE of them */
};

/* Of the file; PostgreSQL has the same in its own types (store/postgres/pg_schema.c). */
static const char SCHEMA[] =
    "CREATE TABLE IF NOT EXISTS seam(owner TEXT, after TEXT, before TEXT, messages TEXT, lead TEXT,"
    " PRIMARY KEY(owner, after)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS pin(owner TEXT, grp TEXT, chars INT, bytes INT,"
    " PRIMARY KEY(owner, grp)) WITHOUT ROWID;";

static int put_find(struct seams *s, struct steno_error *err)
{
        buf_init(&s->find, 0);
        buf_puts(&s->find, "SELECT after, before, messages, lead FROM seam WHERE owner=$1 AND after"
                           " IN (");
        for (int i = 0; i < AT_ONCE; i++)
                buf_printf(&s->find, "%s$%d", i ? "," : "", i + 2);
        buf_puts(&s->find, ")");
        buf_cstr(&s->find);
        return buf_check(&s->find, err);
}

int seams_open(
    struct steno_store *store, const char *path, struct seams **out, struct steno_error *err)
{
        struct tables_options opt = {
            .store = store, .path = path, .name = "seams.db", .schema = SCHEMA};
        struct seams *s = calloc(1, sizeof *s);
        if (!s)
                return error_nomem(err);
        int rc = put_find(s, err);
        if (rc == 0)
                rc = tables_open(&opt, &s->tables, err);
        if (rc)
                seams_close(s);
        else
                *out = s;
        return rc;
}

void seams_close(struct seams *s)
{
        if (!s)
                return;
        tables_close(s->tables);
        buf_release(&s->find);
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

static struct str column(const struct steno_value *v)
{
        return str_span(v->text, v->n);
}

struct finding {
        struct seam *seam;
        bool found;
};

static int take_seam(void *ctx, const struct steno_value *columns, size_t count)
{
        struct finding *f = ctx;
        struct str before = column(&columns[0]);
        (void)count;
        buf_clear(&f->seam->messages);
        buf_clear(&f->seam->lead);
        snprintf(f->seam->before, sizeof f->seam->before, "%.*s", (int)before.n, before.p);
        buf_put_str(&f->seam->messages, column(&columns[1]));
        buf_put_str(&f->seam->lead, column(&columns[2]));
        f->found = true;
        return 0;
}

bool seams_find(struct seams *s, const char *owner, struct str after, struct seam *out)
{
        const struct steno_value values[] = {tables_key(str_of(owner)), tables_key(after)};
        struct finding f = {.seam = out};
        struct steno_statement st = {
            .sql = "SELECT before, messages, lead FROM seam WHERE owner=$1 AND after=$2",
            .values = values,
            .count = 2,
            .each = take_seam,
            .ctx = &f};
        return tables_run(s->tables, &st, NULL) == 0 && f.found && !out->messages.failed &&
               !out->lead.failed;
}

struct telling {
        seam_fn each;
        void *ctx;
};

static int tell_seam(void *ctx, const struct steno_value *columns, size_t count)
{
        struct telling *t = ctx;
        (void)count;
        t->each(t->ctx, column(&columns[0]), column(&columns[1]), column(&columns[2]),
            column(&columns[3]));
        return 0;
}

int seams_find_all(struct seams *s, const char *owner, const struct str *after, size_t count,
    seam_fn each, void *ctx)
{
        struct steno_value values[1 + AT_ONCE];
        struct telling t = {.each = each, .ctx = ctx};
        struct steno_statement st = {
            .sql = s->find.p, .values = values, .count = 1 + AT_ONCE, .each = tell_seam, .ctx = &t};
        int rc = 0;
        values[0] = tables_key(str_of(owner));
        for (size_t at = 0; rc == 0 && at < count; at += AT_ONCE) {
                for (size_t i = 0; i < AT_ONCE; i++) /* the last one fills it up */
                        values[1 + i] = tables_key(after[at + i < count ? at + i : count - 1]);
                rc = tables_run(s->tables, &st, NULL);
        }
        return rc;
}

int seams_add(struct seams *s, const char *owner, struct str after, const struct seam *seam,
    struct steno_error *err)
{
        const struct steno_value values[] = {tables_key(str_of(owner)), tables_key(after),
            tables_text(str_of(seam->before)), tables_text(buf_str(&seam->messages)),
            tables_text(buf_str(&seam->lead))};
        struct steno_statement st = {
            .sql = "INSERT INTO seam(owner,after,before,messages,lead) VALUES($1,$2,$3,$4,$5)"
                   " ON CONFLICT(owner,after) DO UPDATE SET before=excluded.before,"
                   " messages=excluded.messages, lead=excluded.lead",
            .values = values,
            .count = 5};
        return tables_run(s->tables, &st, err);
}

static int take_pin(void *ctx, const struct steno_value *columns, size_t count)
{
        uint64_t **limits = ctx;
        for (size_t i = 0; i < count; i++)
                *limits[i] = strtoull(columns[i].text, NULL, 10);
        return 0;
}

int seams_pin(struct seams *s, const char *owner, struct str group, uint64_t *chars,
    uint64_t *bytes, struct steno_error *err)
{
        const struct steno_value values[] = {tables_key(str_of(owner)), tables_key(group),
            tables_number(*chars), tables_number(*bytes)};
        uint64_t *limits[] = {chars, bytes};
        struct steno_statement pin = {
            .sql = "INSERT INTO pin(owner,grp,chars,bytes) VALUES($1,$2,$3,$4)"
                   " ON CONFLICT(owner,grp) DO NOTHING",
            .values = values,
            .count = 4};
        struct steno_statement look = {
            .sql = "SELECT CAST(chars AS TEXT), CAST(bytes AS TEXT) FROM pin"
                   " WHERE owner=$1 AND grp=$2",
            .values = values,
            .count = 2,
            .each = take_pin,
            .ctx = limits};
        int rc = tables_run(s->tables, &pin, err);
        return rc ? rc : tables_run(s->tables, &look, err);
}
