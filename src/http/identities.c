/*
 * identities.c - see identities.h
 *
 *   I1  A check waits at most for the exchange of a pointer: while `lock` is held for writing, no
 *       file is read and no other process is waited for.
 *   I2  A change of the tokens waits at most SERVER_LOCK_MS for another process, and all changes
 *       that wait behind it do not wait longer.
 */
#include "http/identities.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "http/http_limits.h"
#include "steno_document.h"

#define FILE_NAME "tokens.json"
#define DAMAGED_NAME "tokens.damaged.json"
#define OWN_NAME "server.token"
#define KEY_NAME "server.key"
#define FILE_MAX (16 * MIB)
#define LABEL_MAX 200

struct token {
        char id[40];
        char project[257];
        char session[257];
        char label[LABEL_MAX + 1];
        char hash[SHA256_HEX];
        char created[TIME_TEXT + 7];
};

struct identities {
        const struct env *env;
        struct steno_store *store; /* borrowed */
        pthread_mutex_t mutex;     /* reading the document, and `changing` */
        pthread_cond_t changed;
        bool changing;
        uint64_t given_up; /* changes that gave up on another process's lock; those who wait behind
                              one give up, too */
        pthread_rwlock_t lock; /* what follows; taken after the mutex (I1) */
        struct token *list;
        size_t count;
        uint64_t stamp; /* of the document that the list is */
        uint64_t version;
        bool damaged; /* the document is not whole: the list is what could be read of it */
        char lent_hash[SHA256_HEX]; /* "": none */
        char lent_project[257];
};

/* ---- the document ---- */

/* Members of a token. One that is not known may restrict it, and a damaged name may be "session":
 * a token with such a member does not count. */
static bool read_member(struct token *t, struct str key, struct str text)
{
        const struct {
                const char *key;
                char *to;
                size_t size;
        } members[] = {{"id", t->id, sizeof t->id}, {"project", t->project, sizeof t->project},
            {"session", t->session, sizeof t->session}, {"label", t->label, sizeof t->label},
            {"hash", t->hash, sizeof t->hash}, {"createdAt", t->created, sizeof t->created}};
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
                if (!str_is(key, members[i].key))
                        continue;
                bool fits = text.n < members[i].size && !members[i].to[0] && text.n > 0;
                if (fits)
                        memcpy(members[i].to, text.p, text.n);
                return fits;
        }
        return false;
}

static bool read_token(const struct json *j, json_ref e, struct token *t)
{
        struct buf key, text;
        bool sound = json_type(j, e) == JSON_OBJECT;
        *t = (struct token){0};
        buf_init(&key, KIB);
        buf_init(&text, KIB);
        for (json_ref k = sound ? json_child(j, e) : JSON_NONE; sound && k != JSON_NONE;
             k = json_next_key(j, e, k)) {
                json_ref v = json_value(j, k);
                buf_clear(&key);
                buf_clear(&text);
                sound = json_string(j, k, &key, NULL) && json_string(j, v, &text, NULL) &&
                        !key.failed && !text.failed &&
                        read_member(t, str_span(key.p, key.n), str_span(text.p, text.n));
        }
        buf_release(&key);
        buf_release(&text);
        return sound && t->id[0] && t->project[0] && strlen(t->hash) == SHA256_HEX - 1;
}

/* Reads each token of a file that is not JSON any more, as far as its object is whole. A token is a
 * flat object, so each ends at the next bracket. */
static size_t salvage(const char *text, size_t n, struct token *list, size_t room)
{
        size_t k = 0;
        const char *end = text + n;
        for (const char *p = text; k < room && (p = memchr(p, '{', (size_t)(end - p))); p++) {
                const char *close = memchr(p, '}', (size_t)(end - p));
                struct json j;
                json_init(&j);
                if (close && json_parse(&j, p, (size_t)(close - p) + 1, NULL, NULL) == 0)
                        k += read_token(&j, 0, &list[k]);
                json_release(&j);
        }
        return k;
}

/* A token that cannot be read is lost; the others must not be lost with it. */
static int parse(const char *text, size_t n, struct token **list, size_t *count, bool *damaged,
    struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, text, n, NULL, err);
        json_ref all = rc ? JSON_NONE : json_get(&j, 0, "tokens");
        bool whole = rc == 0 && (all == JSON_NONE || json_type(&j, all) == JSON_ARRAY);
        size_t k = 0, room = whole ? json_count(&j, all) : n / SHA256_HEX;
        struct token *t = rc == STENO_ENOMEM ? NULL : calloc(room + 1, sizeof *t);
        *damaged = !whole;
        if (t && !whole)
                k = salvage(text, n, t, room);
        for (json_ref e = t && whole ? json_child(&j, all) : JSON_NONE; e != JSON_NONE;
             e = json_next(&j, all, e)) {
                bool sound = read_token(&j, e, &t[k]);
                k += sound;
                *damaged = *damaged || !sound;
        }
        json_release(&j);
        if (!t)
                return error_nomem(err);
        *list = t;
        *count = k;
        return 0;
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
        if (!*text)
                return;
        jsonw_field_cstr(w, key, text);
}

static void put_token(struct jsonw *w, const struct token *t, bool hash)
{
        jsonw_object(w);
        put_text(w, "id", t->id);
        put_text(w, "project", t->project);
        put_text(w, "session", t->session);
        put_text(w, "label", t->label);
        if (hash)
                put_text(w, "hash", t->hash);
        put_text(w, "createdAt", t->created);
        jsonw_object_end(w);
}

static void put_tokens(struct buf *b, const struct token *list, size_t count)
{
        struct jsonw w = jsonw_to(b);
        jsonw_object(&w);
        jsonw_key(&w, "tokens");
        jsonw_array(&w);
        for (size_t i = 0; i < count; i++)
                put_token(&w, &list[i], true);
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        buf_putc(b, '\n');
}

/* Makes these the tokens that count. Under the mutex. */
static void install(
    struct identities *ids, struct token *list, size_t count, bool damaged, uint64_t stamp)
{
        pthread_rwlock_wrlock(&ids->lock);
        struct token *old = ids->list;
        ids->list = list;
        ids->count = count;
        ids->damaged = damaged;
        ids->stamp = stamp;
        ids->version++;
        pthread_rwlock_unlock(&ids->lock);
        free(old);
}

/* Reads the document when it is not the one that was read last. Under the mutex. */
static int reload(struct identities *ids, struct steno_error *err)
{
        uint64_t stamp = 0;
        char *text = NULL;
        size_t n = 0;
        int rc = steno_document_stamp(ids->store, FILE_NAME, &stamp, err);
        if (rc || (stamp && stamp == ids->stamp))
                return rc;
        if (stamp)
                rc = steno_document_read(ids->store, FILE_NAME, FILE_MAX, &text, &n, &stamp, err);
        if (!stamp || rc == STENO_ENOTFOUND) {
                if (ids->list)
                        install(ids, NULL, 0, false, 0);
                return 0;
        }
        if (rc)
                return rc;
        struct token *list = NULL;
        size_t count = 0;
        bool damaged;
        rc = parse(text, n, &list, &count, &damaged, err);
        steno_free(text);
        if (rc == 0)
                install(ids, list, count, damaged, stamp);
        return rc;
}

/* How many of the oldest visitors' tokens have to go before there is room for another. */
static size_t visitors_over(const struct token *list, size_t count)
{
        size_t visitors = 0;
        for (size_t i = 0; i < count; i++)
                visitors += list[i].session[0] != '\0';
        return visitors >= SERVER_VISITORS_MAX ? visitors - SERVER_VISITORS_MAX + 1 : 0;
}

static int replace_text(
    void *ctx, const char *old, size_t n, char **text, size_t *text_n, struct steno_error *err)
{
        struct str *now = ctx;
        (void)old, (void)n;
        *text = malloc(now->n + 1);
        if (!*text)
                return error_nomem(err);
        memcpy(*text, now->p, now->n);
        *text_n = now->n;
        return 0;
}

/* What a damaged document held stays beside it, for a person to look at. */
static void keep_damaged(struct identities *ids)
{
        char *text = NULL;
        size_t n = 0;
        if (steno_document_read(ids->store, FILE_NAME, FILE_MAX, &text, &n, NULL, NULL))
                return;
        struct str whole = str_span(text, n);
        steno_document_change(
            ids->store, DAMAGED_NAME, FILE_MAX, SERVER_LOCK_MS, replace_text, &whole, NULL);
        steno_free(text);
}

struct changing {
        const struct token *add;
        const char *drop;
};

/* The tokens with one more or one less. */
static int make_text(
    void *ctx, const char *old, size_t n, char **text, size_t *text_n, struct steno_error *err)
{
        const struct changing *c = ctx;
        struct token *list = NULL;
        size_t count = 0, kept = 0;
        bool damaged, dropped = false;
        struct buf b;
        int rc = n ? parse(old, n, &list, &count, &damaged, err) : 0;
        struct token *next = rc ? NULL : calloc(count + 1, sizeof *next);
        if (rc == 0 && !next)
                rc = error_nomem(err);
        size_t over = rc == 0 && c->add && c->add->session[0] ? visitors_over(list, count) : 0;
        for (size_t i = 0; rc == 0 && i < count; i++) {
                if (c->drop && strcmp(list[i].id, c->drop) == 0)
                        dropped = true;
                else if (over && list[i].session[0])
                        over--;
                else
                        next[kept++] = list[i];
        }
        if (rc == 0 && c->add)
                next[kept++] = *c->add;
        if (rc == 0 && c->drop && !dropped)
                rc = error_set(err, STENO_ENOTFOUND, "no token \"%.40s\"", c->drop);
        buf_init(&b, FILE_MAX);
        if (rc == 0) {
                put_tokens(&b, next, kept);
                rc = buf_check(&b, err);
        }
        if (rc == 0 && !(*text = buf_take(&b, text_n)))
                rc = error_nomem(err);
        buf_release(&b);
        free(list);
        free(next);
        return rc;
}

static int locked_out(struct steno_error *err)
{
        return error_set(err, STENO_ETIMEOUT, "another process keeps the store locked");
}

/* One change at a time in this process; the document keeps those of others apart. The mutex is left
 * for as long as it waits (I2). */
static int change(
    struct identities *ids, const struct token *add, const char *drop, struct steno_error *err)
{
        struct changing c = {add, drop};
        pthread_mutex_lock(&ids->mutex);
        uint64_t given_up = ids->given_up;
        while (ids->changing && given_up == ids->given_up)
                pthread_cond_wait(&ids->changed, &ids->mutex);
        if (given_up != ids->given_up) {
                pthread_mutex_unlock(&ids->mutex);
                return locked_out(err);
        }
        ids->changing = true;
        bool damaged = reload(ids, NULL) == 0 && ids->damaged;
        pthread_mutex_unlock(&ids->mutex);
        if (damaged)
                keep_damaged(ids);
        int rc = steno_document_change(
            ids->store, FILE_NAME, FILE_MAX, SERVER_LOCK_MS, make_text, &c, err);
        pthread_mutex_lock(&ids->mutex);
        ids->given_up += rc == STENO_ETIMEOUT;
        if (rc == 0)
                rc = reload(ids, err);
        ids->changing = false;
        pthread_cond_broadcast(&ids->changed);
        pthread_mutex_unlock(&ids->mutex);
        return rc;
}

int identities_open(struct steno_store *store, struct identities **out, struct steno_error *err)
{
        struct identities *ids = calloc(1, sizeof *ids);
        if (!ids)
                return error_nomem(err);
        ids->env = env_real();
        ids->store = store;
        pthread_mutex_init(&ids->mutex, NULL);
        pthread_rwlock_init(&ids->lock, NULL);
        wait_init(&ids->changed);
        int rc = reload(ids, err);
        if (rc) {
                identities_close(ids);
                return rc;
        }
        *out = ids;
        return 0;
}

void identities_close(struct identities *ids)
{
        if (!ids)
                return;
        pthread_mutex_destroy(&ids->mutex);
        pthread_rwlock_destroy(&ids->lock);
        pthread_cond_destroy(&ids->changed);
        free(ids->list);
        free(ids);
}

/* ---- tokens ---- */

static void hash_token(struct str token, char hex[SHA256_HEX])
{
        if (hash_sha256_hex(token.p, token.n, hex))
                hex[0] = '\0'; /* matches nothing */
}

static void random_hex(const struct env *env, char *out, size_t bytes)
{
        unsigned char raw[64];
        env->random(env, raw, bytes);
        hash_hex(raw, bytes, out);
}

static int make(struct identities *ids, const char *project, const char *session, const char *label,
    const char *id, const char *token, struct steno_error *err)
{
        struct token t = {0};
        struct str p = str_of(project);
        if (!id_is_legal(p, ID_MAX))
                return error_set(err, STENO_EINVAL,
                    "a project is 1 to %d bytes of UTF-8 without control characters", ID_MAX);
        if (label && !id_is_legal(str_of(label), LABEL_MAX))
                return error_set(err, STENO_EINVAL,
                    "a label is 1 to %d bytes of UTF-8 without control characters", LABEL_MAX);
        snprintf(t.label, sizeof t.label, "%s", label ? label : "");
        snprintf(t.id, sizeof t.id, "%s", id);
        snprintf(t.project, sizeof t.project, "%s", project);
        snprintf(t.session, sizeof t.session, "%s", session ? session : "");
        hash_token(str_of(token), t.hash);
        time_format(ids->env->now(ids->env), t.created);
        return change(ids, &t, NULL, err);
}

int identities_add(struct identities *ids, const char *project, const char *session,
    const char *label, char token[TOKEN_TEXT], struct steno_error *err)
{
        char secret[65], id[40];
        id_make(ids->env, "tok_", id);
        random_hex(ids->env, secret, 24);
        snprintf(token, TOKEN_TEXT, TOKEN_PREFIX "%s", secret);
        return make(ids, project, session, label, id, token, err);
}

int identities_list(struct identities *ids, struct buf *out, struct steno_error *err)
{
        pthread_mutex_lock(&ids->mutex);
        int rc = reload(ids, err);
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        for (size_t i = 0; rc == 0 && i < ids->count; i++)
                put_token(&w, &ids->list[i], false);
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        pthread_mutex_unlock(&ids->mutex);
        return rc ? rc : buf_check(out, err);
}

int identities_remove(struct identities *ids, const char *token_id, struct steno_error *err)
{
        return change(ids, NULL, token_id, err);
}

int identities_own(struct identities *ids, char token[TOKEN_TEXT], struct steno_error *err)
{
        char *text = NULL;
        size_t n = 0;
        struct identity known;
        if (steno_document_read(ids->store, OWN_NAME, 4 * KIB, &text, &n, NULL, NULL) == 0) {
                snprintf(token, TOKEN_TEXT, "%.*s", (int)strcspn(text, "\r\n"), text);
                steno_free(text);
                identities_check(ids, str_of(token), &known);
                if (known.known)
                        return 0; /* else it was revoked: a new one */
        }
        int rc = identities_add(ids, "default", NULL, NULL, token, err);
        if (rc)
                return rc;
        struct str whole = str_of(token);
        return steno_document_change(
            ids->store, OWN_NAME, 4 * KIB, SERVER_LOCK_MS, replace_text, &whole, err);
}

/* The first server makes the key; all servers of a store sign with the same one. */
static int keep_key(
    void *ctx, const char *old, size_t n, char **text, size_t *text_n, struct steno_error *err)
{
        struct str key = n == 32 ? str_span(old, n) : str_span(ctx, 32);
        return replace_text(&key, NULL, 0, text, text_n, err);
}

int identities_signing_key(struct identities *ids, unsigned char key[32], struct steno_error *err)
{
        char *text = NULL;
        size_t n = 0;
        int rc = steno_document_read(ids->store, KEY_NAME, 4 * KIB, &text, &n, NULL, NULL);
        if (rc || n != 32) {
                steno_free(rc ? NULL : text);
                text = NULL;
                ids->env->random(ids->env, key, 32);
                rc = steno_document_change(
                    ids->store, KEY_NAME, 4 * KIB, SERVER_LOCK_MS, keep_key, key, err);
                if (rc == 0)
                        rc = steno_document_read(
                            ids->store, KEY_NAME, 4 * KIB, &text, &n, NULL, err);
        }
        if (rc)
                return rc;
        memcpy(key, text, n < 32 ? n : 32);
        steno_free(text);
        return 0;
}

/* ---- checking ---- */

void identities_refresh(struct identities *ids)
{
        pthread_mutex_lock(&ids->mutex);
        reload(ids, NULL);
        pthread_mutex_unlock(&ids->mutex);
}

void identities_lend(struct identities *ids, const char *token, const char *project)
{
        hash_token(str_of(token), ids->lent_hash);
        snprintf(ids->lent_project, sizeof ids->lent_project, "%s", project);
}

void identities_check(struct identities *ids, struct str token, struct identity *out)
{
        char hex[SHA256_HEX];
        *out = (struct identity){0};
        if (!token.n)
                return;
        hash_token(token, hex);
        if (ids->lent_hash[0] && CRYPTO_memcmp(ids->lent_hash, hex, SHA256_HEX - 1) == 0) {
                out->known = out->lent = true;
                snprintf(out->token_id, sizeof out->token_id, "record");
                memcpy(out->project, ids->lent_project, sizeof out->project);
                return;
        }
        pthread_rwlock_rdlock(&ids->lock);
        out->version = ids->version;
        for (size_t i = 0; i < ids->count; i++) {
                const struct token *t = &ids->list[i];
                /* All are compared, each in constant time. */
                if (CRYPTO_memcmp(t->hash, hex, SHA256_HEX - 1) == 0 && !out->known) {
                        out->known = true;
                        memcpy(out->token_id, t->id, sizeof out->token_id);
                        memcpy(out->project, t->project, sizeof out->project);
                        memcpy(out->session, t->session, sizeof out->session);
                }
        }
        pthread_rwlock_unlock(&ids->lock);
}

bool identities_valid(struct identities *ids, const char *token_id)
{
        bool found = false;
        pthread_rwlock_rdlock(&ids->lock);
        for (size_t i = 0; i < ids->count && !found; i++)
                found = strcmp(ids->list[i].id, token_id) == 0;
        pthread_rwlock_unlock(&ids->lock);
        return found;
}

bool identities_damaged(struct identities *ids, size_t *readable)
{
        pthread_rwlock_rdlock(&ids->lock);
        bool damaged = ids->damaged;
        *readable = ids->count;
        pthread_rwlock_unlock(&ids->lock);
        return damaged;
}

int identities_mend(struct identities *ids, struct steno_error *err)
{
        return change(ids, NULL, NULL, err);
}

uint64_t identities_version(struct identities *ids)
{
        pthread_rwlock_rdlock(&ids->lock);
        uint64_t version = ids->version;
        pthread_rwlock_unlock(&ids->lock);
        return version;
}
