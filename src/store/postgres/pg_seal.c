/*
 * pg_seal.c - seals of conversations in PostgreSQL, and the log of them.
 *
 * A conversation's leaves and notes are a row; the store's log, its notes and its names are
 * documents (seal/log.jsonl and so on). They are made and verified by the code of the embedded
 * store, on a copy of the conversation as files: what one kind of store has sealed verifies on the
 * other. Whoever changes them holds the lock "seal".
 */
#include "store/postgres/pg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define LOG "seal/log.jsonl"
#define NAMES "seal/names.jsonl"
#define TEXT_MAX ((size_t)GIB)
#define PATIENCE_MS 10000

static const char *const FILES[] = {LOG, "seal/checkpoints", NAMES};
#define FILE_COUNT (sizeof FILES / sizeof *FILES)

static struct pg_conv *of(const struct backend_conv *conv)
{
        return (struct pg_conv *)conv;
}

static struct pg_store *of_store(const struct backend_store *store)
{
        return (struct pg_store *)store;
}

/* ---- the store's files, in a scratch store ---- */

static int open_root(struct pg_scratch *x, struct steno_error *err)
{
        int root = x->fs.open_root(&x->fs, x->path, false);
        return root < 0 ? error_sys(err, root, "opening a temporary folder") : root;
}

int pg_seal_lay_out(struct pg_store *s, struct pg_scratch *x, struct steno_error *err)
{
        int root = open_root(x, err), rc = 0;
        if (root < 0)
                return root;
        int sys = x->fs.mkdir(&x->fs, root, "seal", 0700);
        int dir = sys ? sys : x->fs.open(&x->fs, root, "seal", O_RDONLY | O_DIRECTORY, 0);
        for (size_t i = 0; dir >= 0 && rc == 0 && sys == 0 && i < FILE_COUNT; i++) {
                char *text = NULL;
                size_t n = 0;
                rc = pg_document_read(&s->base, FILES[i], TEXT_MAX, &text, &n, NULL, err);
                if (rc == 0)
                        sys = fs_replace(&x->fs, dir, FILES[i] + sizeof "seal", text, n);
                rc = rc == STENO_ENOTFOUND ? 0 : rc;
                free(text);
        }
        if (dir >= 0)
                x->fs.close(&x->fs, dir);
        x->fs.close(&x->fs, root);
        return dir < 0 || sys ? error_sys(err, sys ? sys : dir, "laying out the log of seals") : rc;
}

static int put_document(
    struct pg_tx *tx, const char *name, struct str text, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q, "INSERT INTO document AS d VALUES ($1, $2, 1) ON CONFLICT (name) DO"
                          " UPDATE SET text = $2, version = d.version + 1 WHERE d.text <> $2");
        pg_cstr(&q, name);
        pg_bytes(&q, text);
        long n = pg_tx_change(tx, &q, err);
        return n < 0 ? (int)n : 0;
}

int pg_seal_take_back(struct pg_tx *tx, struct pg_scratch *x, struct steno_error *err)
{
        int root = open_root(x, err), rc = 0;
        if (root < 0)
                return root;
        for (size_t i = 0; rc == 0 && i < FILE_COUNT; i++) {
                char *text = NULL;
                size_t n = 0;
                int sys = fs_slurp(&x->fs, root, FILES[i], TEXT_MAX, &text, &n);
                if (sys == 0)
                        rc = put_document(tx, FILES[i], str_span(text, n), err);
                else if (sys != -ENOENT)
                        rc = error_sys(err, sys, "reading %s", FILES[i]);
                free(text);
        }
        x->fs.close(&x->fs, root);
        return rc;
}

/* A scratch store with the log. */
static int open_log(struct pg_store *s, struct pg_scratch **out, struct steno_error *err)
{
        int rc = pg_scratch_open(s, out, err);
        if (rc)
                return rc;
        rc = pg_seal_lay_out(s, *out, err);
        if (rc)
                pg_scratch_close(*out);
        return rc;
}

/* ---- a conversation's row ---- */

/* The files of its seal; {NULL} where there is none. */
struct seal_files {
        struct str leaves;
        struct str notes;
        struct str purged;
};

static void seal_files_release(struct seal_files *f)
{
        free((char *)f->leaves.p);
        free((char *)f->notes.p);
        free((char *)f->purged.p);
}

static int read_files(
    struct pg_layout *l, struct pg_conv *c, struct seal_files *f, struct steno_error *err)
{
        const struct fs *fs = &l->scratch->fs;
        struct {
                const char *name;
                struct str *to;
        } const files[] = {{"seal/leaves", &f->leaves}, {"seal/checkpoints", &f->notes},
            {"seal/purged", &f->purged}};
        *f = (struct seal_files){0};
        int dir = pg_layout_folder(l, c, err), sys = 0;
        if (dir < 0)
                return dir;
        for (size_t i = 0; sys == 0 && i < sizeof files / sizeof *files; i++) {
                char *text = NULL;
                size_t n = 0;
                sys = fs_slurp(fs, dir, files[i].name, TEXT_MAX, &text, &n);
                if (sys == 0)
                        *files[i].to = str_span(text, n);
                sys = sys == -ENOENT || sys == -ENOTDIR ? 0 : sys;
        }
        fs->close(fs, dir);
        if (sys)
                seal_files_release(f);
        return sys ? error_sys(err, sys, "reading the seal of a copy") : 0;
}

/* What is sealed is what the copy had; {0, 0} is sealed anew next time. */
static int put_row(struct pg_tx *tx, const struct pg_conv *c, const struct seal_files *f,
    uint64_t last_seq, uint64_t generation, struct steno_error *err)
{
        struct pg_query q;
        pg_query_init(&q,
            "INSERT INTO seal VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (project, uid) DO"
            " UPDATE SET notes = $3, leaves = $4, purged = $5, last_seq = $6, generation = $7");
        pg_key(&q, c);
        pg_bytes(&q, f->notes);
        pg_bytes(&q, f->leaves);
        if (f->purged.p)
                pg_bytes(&q, f->purged);
        else
                pg_null(&q);
        pg_u64(&q, last_seq);
        pg_u64(&q, generation);
        long n = pg_tx_change(tx, &q, err);
        return n < 0 ? (int)n : 0;
}

int pg_seal_keep(
    struct pg_tx *tx, struct pg_conv *c, struct pg_layout *l, bool fresh, struct steno_error *err)
{
        struct seal_files f;
        int rc = read_files(l, c, &f, err);
        if (rc)
                return rc;
        if (f.notes.p)
                rc = put_row(tx, c, &f, fresh ? l->last_seq : 0, fresh ? l->generation : 0, err);
        seal_files_release(&f);
        return rc ? rc : pg_seal_take_back(tx, l->scratch, err);
}

bool pg_seal_exists(struct pg_conv *c)
{
        struct pg_query q;
        PGresult *r;
        pg_query_init(&q, "SELECT 1 FROM seal WHERE project = $1 AND uid = $2");
        pg_key(&q, c);
        if (pg_run(c->store, &q, &r, NULL))
                return false;
        bool there = libpq.ntuples(r) > 0;
        libpq.clear(r);
        return there;
}

/* ---- sealing ---- */

static int seal_copy(
    struct pg_conv *c, const struct note_key *key, struct seal_result *out, struct steno_error *err)
{
        struct pg_layout l;
        struct pg_tx tx;
        int rc = pg_conv_give_uid(c, err);
        if (rc == 0)
                rc = pg_layout_open(c, PG_LAYOUT_SEAL, &l, err);
        if (rc)
                return rc;
        rc = files_backend.seal(l.conv, key, out, err);
        if (rc == 0)
                rc = pg_tx_begin(c->store, &tx, err);
        if (rc == 0)
                rc = pg_tx_end(&tx, pg_seal_keep(&tx, c, &l, true, err), err);
        pg_layout_close(&l);
        return rc;
}

int pg_seal(struct backend_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err)
{
        struct backend_lock *lock;
        int rc = pg_lock(&of(conv)->store->base, "seal", &lock, err);
        if (rc)
                return rc;
        rc = seal_copy(of(conv), key, out, err);
        pg_unlock(lock);
        return rc;
}

enum seal_standing pg_seal_standing(struct backend_conv *conv)
{
        struct pg_conv *c = of(conv);
        struct pg_query q;
        PGresult *r;
        enum seal_standing standing = SEAL_DUE;
        pg_query_init(&q,
            "SELECT t.last_seq, coalesce(s.last_seq = t.last_seq AND s.generation = t.generation"
            " AND s.purged IS NULL, false) FROM tail t LEFT JOIN seal s USING (project, uid) WHERE"
            " t.project = $1 AND t.uid = $2");
        pg_key(&q, c);
        if (pg_run(c->store, &q, &r, NULL))
                return SEAL_DUE;
        if (libpq.ntuples(r) == 0 || pg_get_u64(r, 0, 0) == 0)
                standing = SEAL_EMPTY;
        else if (pg_get_bool(r, 0, 1))
                standing = SEAL_FRESH;
        libpq.clear(r);
        return standing;
}

int pg_seal_notes(struct backend_conv *conv, char **text, size_t *n, struct steno_error *err)
{
        struct pg_query q;
        PGresult *r;
        *text = NULL;
        *n = 0;
        pg_query_init(&q, "SELECT notes FROM seal WHERE project = $1 AND uid = $2");
        pg_key(&q, of(conv));
        int rc = pg_run(of(conv)->store, &q, &r, err);
        if (rc)
                return rc;
        if (libpq.ntuples(r)) {
                *text = pg_get_dup(r, 0, 0);
                *n = pg_get(r, 0, 0).n;
                rc = *text ? 0 : error_nomem(err);
        }
        libpq.clear(r);
        return rc;
}

uint64_t pg_seal_size(struct backend_conv *conv)
{
        char *text;
        size_t n, end;
        struct note last;
        if (pg_seal_notes(conv, &text, &n, NULL) || !text)
                return 0;
        uint64_t size = note_last(str_span(text, n), &last, &end) ? last.size : 0;
        free(text);
        return size;
}

int pg_seal_prove(struct backend_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err)
{
        struct pg_layout l;
        int rc = pg_layout_open(of(conv), PG_LAYOUT_SEAL, &l, err);
        if (rc)
                return rc;
        rc = files_backend.seal_prove(l.conv, seq, out, err);
        pg_layout_close(&l);
        return rc;
}

int pg_seal_name(struct backend_conv *conv, char out[SEAL_CONV], struct steno_error *err)
{
        char *text;
        size_t n;
        struct json j;
        out[0] = '\0';
        int rc = pg_conv_meta(conv, &text, &n, err);
        if (rc)
                return rc;
        json_init(&j);
        rc = json_parse(&j, text, n, NULL, NULL);
        struct str uid = rc ? (struct str){0} : json_inner(&j, json_get(&j, 0, "uid"));
        if (rc != STENO_ENOMEM)
                rc = uid.n ? backend_seal_conv_name(
                                 str_of(of(conv)->project), str_of(of(conv)->id), uid, out)
                           : 0;
        json_release(&j);
        free(text);
        return rc ? error_nomem(err) : 0;
}

/* ---- the log ---- */

bool pg_seal_has_log(struct backend_store *store)
{
        uint64_t stamp = 0;
        return pg_document_stamp(store, LOG, &stamp, NULL) == 0 && stamp;
}

int pg_seal_log_read(struct backend_store *store, struct seal_log *out, struct steno_error *err)
{
        struct pg_scratch *x;
        int rc = open_log(of_store(store), &x, err);
        if (rc)
                return rc;
        rc = files_backend.seal_log_read(x->store, out, err);
        pg_scratch_close(x);
        return rc;
}

void pg_seal_log_call(struct backend_store *store, const char *conv, struct buf *out)
{
        struct pg_scratch *x;
        if (open_log(of_store(store), &x, NULL)) {
                buf_puts(out, conv);
                return;
        }
        files_backend.seal_log_call(x->store, conv, out);
        pg_scratch_close(x);
}

static int sign_log(struct pg_store *s, const struct note_key *key, struct steno_error *err)
{
        struct pg_scratch *x;
        struct pg_tx tx;
        int rc = open_log(s, &x, err);
        if (rc)
                return rc;
        rc = files_backend.seal_log_sign(x->store, key, err);
        if (rc == 0)
                rc = pg_tx_begin(s, &tx, err);
        if (rc == 0)
                rc = pg_tx_end(&tx, pg_seal_take_back(&tx, x, err), err);
        pg_scratch_close(x);
        return rc;
}

int pg_seal_log_sign(
    struct backend_store *store, const struct note_key *key, struct steno_error *err)
{
        struct backend_lock *lock;
        int rc = pg_lock(store, "seal", &lock, err);
        if (rc)
                return rc;
        rc = sign_log(of_store(store), key, err);
        pg_unlock(lock);
        return rc;
}

struct removal {
        const char *name;
        const struct env *env;
};

static int add_removed(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        const struct removal *r = ctx;
        char at[TIME_TEXT];
        (void)err;
        time_format(r->env->now(r->env), at);
        buf_put_str(out, old);
        buf_printf(out, "{\"type\":\"removed\",\"at\":\"%s\",\"conv\":\"%s\"}\n", at, r->name);
        return 0;
}

static int drop_name(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        const struct removal *r = ctx;
        char begin[SEAL_CONV + 16];
        (void)err;
        snprintf(begin, sizeof begin, "{\"conv\":\"%s\"", r->name);
        while (old.n) {
                const char *lf = memchr(old.p, '\n', old.n);
                size_t n = lf ? (size_t)(lf - old.p) + 1 : old.n;
                if (!str_starts(str_span(old.p, n), begin))
                        buf_put(out, old.p, n);
                old = str_span(old.p + n, old.n - n);
        }
        return 0;
}

int pg_seal_remove(struct pg_conv *c, struct steno_error *err)
{
        char name[SEAL_CONV];
        struct removal r = {name, c->store->env};
        struct backend_lock *lock;
        if (!pg_seal_exists(c))
                return 0;
        int rc = pg_seal_name(&c->base, name, err);
        if (rc || !name[0])
                return rc;
        rc = pg_lock(&c->store->base, "seal", &lock, err);
        if (rc)
                return rc;
        rc = pg_document_change(&c->store->base, LOG, TEXT_MAX, PATIENCE_MS, add_removed, &r, err);
        if (rc == 0)
                rc = pg_document_change(
                    &c->store->base, NAMES, TEXT_MAX, PATIENCE_MS, drop_name, &r, err);
        pg_unlock(lock);
        return rc;
}

/* ---- verifying ---- */

int pg_seal_verify(
    struct backend_conv *conv, const char *name, struct seal_check *check, struct steno_error *err)
{
        struct pg_layout l;
        int rc = pg_layout_open(of(conv), PG_LAYOUT_ALL, &l, err);
        if (rc)
                return rc;
        rc = files_backend.seal_verify(l.conv, name, check, err);
        pg_layout_close(&l);
        return rc;
}

bool pg_seal_is_known(struct backend_conv *conv, const char *name, const struct seal_log *log)
{
        if (pg_seal_exists(of(conv)))
                return true;
        for (size_t i = 0; log && name[0] && i < log->count; i++)
                if (strcmp(log->entries[i].conv, name) == 0)
                        return true;
        return false;
}

int pg_seal_verify_log(
    struct backend_store *store, struct seal_check *check, struct steno_error *err)
{
        return files_backend.seal_verify_log(store, check, err);
}
