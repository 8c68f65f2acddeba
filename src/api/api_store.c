/*
 * api_store.c - opening a store, its settings, and the small calls that need none.
 */
#include "api/api_store.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/note.h"
#include "output/policy.h"

const char *steno_version(void)
{
        return STENO_VERSION;
}

void steno_free(void *p)
{
        free(p);
}

const char *steno_code_name(int code)
{
        static const char *const NAMES[] = {"ok", "out of memory", "invalid", "protocol",
            "conflict", "not found", "corrupt", "i/o", "full", "limit", "poisoned", "denied",
            "timeout", "interrupted", "unsupported", "quota", "in_doubt"};
        size_t i = (size_t)-code;
        return code <= 0 && i < sizeof NAMES / sizeof *NAMES ? NAMES[i] : "unknown";
}

/* ---- settings ---- */

static int known_profile(struct str name, struct steno_error *err)
{
        enum policy_profile known;
        if (name.n && policy_profile_parse(name, &known))
                return 0;
        struct buf names;
        buf_init(&names, 4 * KIB);
        for (int i = 0; i < POLICY_PROFILE_COUNT; i++)
                buf_printf(&names, "%s%s", i ? " or " : "", policy_profile_name(i));
        const char *list = buf_cstr(&names);
        error_set(err, STENO_EINVAL, "unknown profile \"%.*s\": use %s",
            (int)(name.n > 40 ? 40 : name.n), name.p, list ? list : "");
        buf_release(&names);
        return STENO_EINVAL;
}

static const struct {
        const char *key;
        uint64_t start;
} QUOTAS[] = {
    {"maxOutputBytes", QUOTA_OUTPUT},
    {"maxConversationBytes", QUOTA_CONVERSATION},
    {"maxStoreBytes", QUOTA_STORE},
};
#define QUOTA_COUNT (sizeof QUOTAS / sizeof *QUOTAS)

/* Which of them a key names; QUOTA_COUNT: none. */
static size_t quota_of(const struct json *j, json_ref key)
{
        size_t i = 0;
        while (i < QUOTA_COUNT && !json_is(j, key, QUOTAS[i].key))
                i++;
        return i;
}

/* Reads what is set in `json` over what is in `s`. */
static int apply_settings(
    const char *json, size_t n, struct store_settings *s, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, json, n, NULL, err);
        if (rc == 0 && json_type(&j, 0) != JSON_OBJECT)
                rc = error_set(err, STENO_EINVAL, "settings must be an object");
        for (json_ref k = rc ? JSON_NONE : json_child(&j, 0); k != JSON_NONE && rc == 0;
             k = json_next_key(&j, 0, k)) {
                json_ref v = json_value(&j, k);
                bool ok = true;
                if (json_is(&j, k, "profile")) {
                        struct str name = json_inner(&j, v);
                        rc = known_profile(name, err);
                        if (rc == 0)
                                snprintf(
                                    s->profile, sizeof s->profile, "%.*s", (int)name.n, name.p);
                } else if (json_is(&j, k, "maxInlineChars")) {
                        ok = json_u64(&j, v, &s->max_inline_chars);
                } else if (json_is(&j, k, "maxInlineBytes")) {
                        ok = json_u64(&j, v, &s->max_inline_bytes);
                } else if (quota_of(&j, k) < QUOTA_COUNT) {
                        ok = json_u64(&j, v, &s->quota[quota_of(&j, k)]);
                } else if (!json_is(&j, k, "version")) {
                        rc = error_set(err, STENO_EINVAL, "unknown setting %.*s",
                            (int)(json_raw(&j, k).n > 60 ? 60 : json_raw(&j, k).n),
                            json_raw(&j, k).p);
                }
                if (!ok)
                        rc = error_set(err, STENO_EINVAL, "setting %.*s must be a whole number",
                            (int)json_raw(&j, k).n, json_raw(&j, k).p);
        }
        json_release(&j);
        return rc;
}

static void write_settings(const struct store_settings *s, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_u64(&w, "version", 1);
        jsonw_field_cstr(&w, "profile", s->profile);
        if (s->max_inline_chars) {
                jsonw_field_u64(&w, "maxInlineChars", s->max_inline_chars);
        }
        if (s->max_inline_bytes) {
                jsonw_field_u64(&w, "maxInlineBytes", s->max_inline_bytes);
        }
        for (size_t i = 0; i < QUOTA_COUNT; i++)
                if (s->quota[i] != STORE_QUOTA_UNSET)
                        jsonw_field_u64(&w, QUOTAS[i].key, s->quota[i]);
        jsonw_object_end(&w);
}

/* Settings that cannot be read are replaced by the defaults, with a warning. */
static int load_settings(struct steno_store *store, bool repair, struct steno_error *err)
{
        struct store_settings s = {.profile = "default",
            .quota = {STORE_QUOTA_UNSET, STORE_QUOTA_UNSET, STORE_QUOTA_UNSET}};
        struct steno_error why = {0};
        char *json = NULL;
        int rc = backend_settings(store->backend, &json, &why);
        store->settings = s;
        if (rc == 0)
                rc = apply_settings(json, strlen(json), &s, &why);
        if (rc == 0)
                store->settings = s;
        free(json);
        if (rc == STENO_EINVAL || rc == STENO_EPROTO)
                rc = error_prefix(&why, STENO_ECORRUPT, "store.json");
        if (rc != STENO_ECORRUPT && rc != STENO_ENOTFOUND) {
                if (rc && err)
                        *err = why;
                return rc;
        }
        snprintf(store->settings_problem, sizeof store->settings_problem, "%s", why.msg);
        if (repair)
                return 0;
        if (rc == STENO_ECORRUPT)
                return error_set(err, rc,
                    "%.150s; steno check --repair puts it aside and writes the defaults", why.msg);
        api_store_warn(store, "store.json is missing: the defaults hold until steno init or steno "
                              "check --repair writes it");
        return 0;
}

int steno_init(const char *url, const char *settings_json, struct steno_error *err)
{
        struct steno_store *store;
        struct buf out;
        buf_init(&out, 64 * KIB);
        int rc = steno_open(url, NULL, &store, err);
        if (rc)
                return rc;
        struct store_settings s = store->settings;
        rc = apply_settings(settings_json, strlen(settings_json), &s, err);
        if (rc == 0) {
                write_settings(&s, &out);
                buf_putc(&out, '\n');
                rc = buf_check(&out, err);
        }
        if (rc == 0)
                rc = backend_set_settings(store->backend, out.p, out.n, err);
        buf_release(&out);
        steno_close(store);
        return rc;
}

int steno_settings(struct steno_store *store, char **json, struct steno_error *err)
{
        struct buf out;
        buf_init(&out, 64 * KIB);
        write_settings(&store->settings, &out);
        char *text = buf_take(&out, NULL);
        buf_release(&out);
        if (!text)
                return error_nomem(err);
        *json = text;
        return 0;
}

/* ---- opening ---- */

static int take_key(struct steno_store *store, const char *text, struct steno_error *err)
{
        if (!text)
                return 0;
        store->seal_key = calloc(1, sizeof *store->seal_key);
        if (!store->seal_key)
                return error_nomem(err);
        int rc = note_key_read(str_of(text), store->seal_key, err);
        if (rc == 0 && !store->seal_key->private)
                rc = error_set(
                    err, STENO_EINVAL, "this is a public key, and sealing needs the private one");
        return rc;
}

static void warn_of_quota(void *ctx, const char *line)
{
        api_store_warn(ctx, "%s", line);
}

static void apply_quota(struct steno_store *store)
{
        uint64_t of[QUOTA_COUNT];
        for (size_t i = 0; i < QUOTA_COUNT; i++)
                of[i] = store->settings.quota[i] == STORE_QUOTA_UNSET ? QUOTAS[i].start
                                                                      : store->settings.quota[i];
        backend_set_quota(
            store->backend, &(struct quota){of[0], of[1], of[2]}, warn_of_quota, store);
}

int api_store_open_on(const struct steno_backend *kind, const struct env *env, const char *where,
    const struct steno_open_options *opt, struct steno_store **out, struct steno_error *err)
{
        uint32_t flags = OPTION(opt, struct steno_open_options, flags, 0);
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        if (flags & ~(uint32_t)(STENO_OPEN_EXISTING | STENO_OPEN_REPAIR))
                return error_set(err, STENO_EINVAL, "open has no flag 0x%x", flags);
        struct steno_store *store = calloc(1, sizeof *store);
        if (!store)
                return error_nomem(err);
        store->refs = 1;
        store->env = env;
        store->progress = OPTION(opt, struct steno_open_options, progress, NULL);
        store->progress_ctx = OPTION(opt, struct steno_open_options, progress_ctx, NULL);
        store->warning = OPTION(opt, struct steno_open_options, warning, NULL);
        store->warning_ctx = OPTION(opt, struct steno_open_options, warning_ctx, NULL);
        pthread_mutex_init(&store->mutex, NULL);
        rc = take_key(store, OPTION(opt, struct steno_open_options, seal_key, NULL), err);
        if (rc == 0)
                rc = kind->open(env, where, flags, &store->backend, err);
        if (rc == 0)
                rc = load_settings(store, flags & STENO_OPEN_REPAIR, err);
        if (rc == 0)
                apply_quota(store);
        if (rc) {
                steno_close(store);
                return rc;
        }
        *out = store;
        return 0;
}

int api_store_around(struct backend_store *backend, const struct env *env, struct steno_store **out,
    struct steno_error *err)
{
        struct steno_store *store = calloc(1, sizeof *store);
        if (!store) {
                backend_close(backend);
                return error_nomem(err);
        }
        *store = (struct steno_store){.refs = 1, .env = env, .backend = backend};
        pthread_mutex_init(&store->mutex, NULL);
        int rc = load_settings(store, false, err);
        if (rc) {
                steno_close(store);
                return rc;
        }
        *out = store;
        return 0;
}

int api_store_open_in(const struct env *env, const char *url, const struct steno_open_options *opt,
    struct steno_store **out, struct steno_error *err)
{
        const struct steno_backend *kind;
        char *where = NULL;
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc == 0)
                rc = backend_find(url, &kind, &where, err);
        if (rc == 0)
                rc = api_store_open_on(kind, env, where, opt, out, err);
        free(where);
        return rc;
}

int steno_open(const char *url, const struct steno_open_options *opt, struct steno_store **out,
    struct steno_error *err)
{
        return api_store_open_in(env_real(), url, opt, out, err);
}

void api_store_hold(struct steno_store *store)
{
        __atomic_add_fetch(&store->refs, 1, __ATOMIC_RELAXED);
}

void api_store_release(struct steno_store *store)
{
        if (__atomic_sub_fetch(&store->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        backend_close(store->backend);
        pthread_mutex_destroy(&store->mutex);
        if (store->seal_key)
                note_key_wipe(store->seal_key);
        free(store->seal_key);
        free(store);
}

void steno_close(struct steno_store *store)
{
        if (!store)
                return;
        if (store->backend && !backend_is_ours(store->backend)) {
                api_store_release(store);
                return;
        }
        /* From here on nobody receives warnings, and handles that are open may never be closed. */
        pthread_mutex_lock(&store->mutex);
        store->progress = NULL;
        __atomic_store_n(&store->warning, NULL, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&store->mutex);
        if (store->backend)
                backend_sync(store->backend);
        api_store_release(store);
}

uint64_t steno_quarantined(const struct steno_store *store)
{
        return store ? backend_quarantined(store->backend) : 0;
}

void api_store_warn(struct steno_store *store, const char *fmt, ...)
{
        char what[400];
        va_list ap;
        steno_warning warning = __atomic_load_n(&store->warning, __ATOMIC_RELAXED);
        if (!warning)
                return;
        va_start(ap, fmt);
        vsnprintf(what, sizeof what, fmt, ap);
        va_end(ap);
        warning(store->warning_ctx, what);
}

static int catch_up(struct steno_store *store, bool at_once, bool *behind, struct steno_error *err)
{
        struct backend_caught_up up = {0};
        pthread_mutex_lock(&store->mutex);
        steno_progress progress = store->progress;
        void *progress_ctx = store->progress_ctx;
        pthread_mutex_unlock(&store->mutex);
        int rc = backend_catch_up(store->backend, at_once, progress, progress_ctx, &up, err);
        uint64_t unreadable = up.unreadable;
        *behind = up.behind;
        pthread_mutex_lock(&store->mutex);
        bool more = rc == 0 && unreadable > store->unreadable;
        if (rc == 0)
                store->unreadable = unreadable;
        pthread_mutex_unlock(&store->mutex);
        if (more)
                api_store_warn(store, "%llu conversation%s cannot be read; steno check says why",
                    (unsigned long long)unreadable, unreadable == 1 ? "" : "s");
        return rc;
}

int api_store_catch_up(struct steno_store *store, struct steno_error *err)
{
        bool behind;
        return catch_up(store, false, &behind, err);
}

int api_store_catch_up_at_once(struct steno_store *store, bool *behind, struct steno_error *err)
{
        return catch_up(store, true, behind, err);
}

int api_store_project(const char *project, struct str *out, struct steno_error *err)
{
        struct str p = str_of(project ? project : "default");
        if (!id_is_legal(p, ID_MAX))
                return error_set(err, STENO_EINVAL,
                    "a project is 1 to %d bytes of UTF-8 without control characters", ID_MAX);
        *out = p;
        return 0;
}
