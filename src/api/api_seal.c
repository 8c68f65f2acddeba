/*
 * api_seal.c - keys, sealing and proofs (store/backend_seals.h).
 */
#include "api/api_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/note.h"

/* ---- keys ---- */

static int give_key(struct buf *b, char **out, struct steno_error *err)
{
        char *text = buf_take(b, NULL);
        buf_release(b);
        if (!text)
                return error_nomem(err);
        *out = text;
        return 0;
}

int steno_key_new(const char *name, char **private_key, struct steno_error *err)
{
        const struct env *env = env_real();
        struct note_key key;
        unsigned char seed[ED25519_SEED], tag[4];
        char made[32], hex[9];
        struct buf b;
        env->random(env, seed, sizeof seed);
        env->random(env, tag, sizeof tag);
        hash_hex(tag, sizeof tag, hex);
        snprintf(made, sizeof made, "steno-%s", hex);
        int rc = note_key_make(str_of(name ? name : made), seed, &key, err);
        ed25519_wipe(seed, sizeof seed);
        if (rc)
                return rc;
        buf_init(&b, 0);
        note_key_put_private(&b, &key);
        note_key_wipe(&key);
        return give_key(&b, private_key, err);
}

int steno_key_public(const char *private_key, char **public_key, struct steno_error *err)
{
        struct note_key key;
        struct buf b;
        int rc = note_key_read(str_of(private_key), &key, err);
        if (rc)
                return rc;
        buf_init(&b, 0);
        note_key_put_public(&b, &key);
        note_key_wipe(&key);
        return give_key(&b, public_key, err);
}

/* ---- sealing ---- */

struct sealing {
        struct steno_store *store;
        steno_progress progress;
        void *progress_ctx;
        uint64_t conversations;
        uint64_t changed;
        uint64_t records;
        struct steno_error first; /* of a conversation that cannot be sealed */
        struct steno_error *err;
};

static int seal_one(struct sealing *s, struct backend_conv *conv)
{
        struct seal_result r;
        int rc = backend_seal(conv, s->store->seal_key, &r, s->err);
        if (rc)
                return error_prefix(s->err, rc, "%.60s", backend_conv_id(conv));
        s->conversations++;
        s->changed += r.changed;
        s->records += r.added;
        return 0;
}

static int seal_each(void *ctx, const char *project, const char *id)
{
        struct sealing *s = ctx;
        struct backend_conv *conv;
        if (s->progress && s->progress(s->progress_ctx, "seal", s->conversations, 0))
                return error_set(s->err, STENO_EINTERRUPTED, "stopped by the caller");
        int rc = backend_conv_open(s->store->backend, str_of(project), str_of(id), &conv, s->err);
        if (rc == 0) {
                enum seal_standing standing = backend_seal_standing(conv);
                s->conversations += standing == SEAL_FRESH;
                if (standing == SEAL_DUE)
                        rc = seal_one(s, conv);
                backend_conv_release(conv);
        }
        /* A conversation that is damaged, or was removed meanwhile, does not stop the others from
         * being sealed. */
        if (rc == STENO_ECORRUPT && !s->first.code)
                s->first = *s->err;
        return rc == STENO_ECORRUPT || rc == STENO_ENOTFOUND ? 0 : rc;
}

/* The last checkpoint of the store's log, as it stands. */
static int put_checkpoint(struct steno_store *store, struct jsonw *w, struct steno_error *err)
{
        struct seal_log log;
        struct note note;
        size_t end;
        int rc = backend_seal_log_read(store->backend, &log, err);
        if (rc)
                return rc;
        if (log.notes && note_last(str_span(log.notes, log.notes_n), &note, &end))
                jsonw_field_str(w, "checkpoint",
                    str_span(note.text.p,
                        (size_t)(note.signatures.p + note.signatures.n - note.text.p)));
        backend_seal_log_release(&log);
        return 0;
}

static int report_seal(struct sealing *s, char **report)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_u64(&w, "conversations", s->conversations);
        jsonw_field_u64(&w, "changed", s->changed);
        jsonw_field_u64(&w, "records", s->records);
        int rc = put_checkpoint(s->store, &w, s->err);
        jsonw_object_end(&w);
        char *text = rc ? NULL : buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return rc ? rc : error_nomem(s->err);
        *report = text;
        return 0;
}

int steno_seal(struct steno_store *store, const char *project, const char *id,
    steno_progress progress, void *progress_ctx, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct sealing s = {.store = store,
            .progress = progress,
            .progress_ctx = progress_ctx,
            .err = err ? err : &why};
        struct backend_conv *conv;
        struct str p;
        if (!store->seal_key)
                return error_set(s.err, STENO_EDENIED, "there is no key to seal with");
        int rc = id ? api_store_project(project, &p, s.err) : 0;
        if (rc)
                return rc;
        if (id) {
                rc = backend_conv_open(store->backend, p, str_of(id), &conv, s.err);
                if (rc == 0) {
                        rc = seal_one(&s, conv);
                        backend_conv_release(conv);
                }
        } else {
                rc = backend_each_conv(store->backend, NULL, seal_each, &s, s.err);
        }
        if (rc == 0)
                rc = backend_seal_log_sign(store->backend, store->seal_key, s.err);
        if (rc == 0 && s.first.code) {
                *s.err = s.first;
                rc = s.first.code;
        }
        return rc == 0 && report ? report_seal(&s, report) : rc;
}

int api_seal_sign(struct steno_store *store, struct backend_conv *conv, struct steno_error *err)
{
        struct seal_result r;
        if (!store->seal_key || !backend_seal_has_log(store->backend))
                return 0;
        int rc = conv && backend_seal_size(conv) ? backend_seal(conv, store->seal_key, &r, err) : 0;
        return rc ? rc : backend_seal_log_sign(store->backend, store->seal_key, err);
}

/* ---- one record ---- */

int steno_prove(struct steno_conv *conv, uint64_t seq, char **json, struct steno_error *err)
{
        struct buf b;
        buf_init(&b, 0);
        int rc = backend_seal_prove(conv->backend, seq, &b, err);
        char *text = rc ? NULL : buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return rc ? rc : error_nomem(err);
        *json = text;
        return 0;
}

int steno_prove_check(const char *json, size_t n, const char *key, struct steno_error *err)
{
        struct note_key k;
        int rc = note_key_read(str_of(key), &k, err);
        if (rc == 0) {
                rc = backend_seal_prove_check(str_span(json, n), &k, err);
                note_key_wipe(&k);
        }
        return rc;
}

int steno_seal_state(struct steno_conv *conv, char **json, struct steno_error *err)
{
        char *notes;
        size_t n, end;
        uint64_t last = 0;
        struct note note;
        struct buf b;
        int rc = steno_conv_last_seq(conv, &last, err);
        if (rc == 0)
                rc = backend_seal_notes(conv->backend, &notes, &n, err);
        if (rc)
                return rc;
        bool sealed = notes && note_last(str_span(notes, n), &note, &end);
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_u64(&w, "sealed", sealed ? note.size : 0);
        jsonw_field_u64(&w, "lastSeq", last);
        if (sealed)
                jsonw_field_str(&w, "checkpoint",
                    str_span(note.text.p,
                        (size_t)(note.signatures.p + note.signatures.n - note.text.p)));
        else
                jsonw_field_null(&w, "checkpoint");
        jsonw_object_end(&w);
        free(notes);
        char *text = buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return error_nomem(err);
        *json = text;
        return 0;
}
