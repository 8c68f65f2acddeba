/*
 * api_conv.c - conversations: making, opening, their metadata, listing them.
 */
#include "api/api_recover.h"
#include "api/api_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

int api_conv_wrap(struct steno_store *store, struct backend_conv *backend, struct steno_conv **out,
    struct steno_error *err)
{
        struct steno_conv *conv = malloc(sizeof *conv);
        if (!conv) {
                backend_conv_release(backend);
                return error_nomem(err);
        }
        *conv = (struct steno_conv){1, store, backend};
        api_store_hold(store);
        *out = conv;
        return 0;
}

int api_conv_check_id(struct str id, struct steno_error *err)
{
        if (id_is_legal(id, ID_MAX))
                return 0;
        return error_set(err, STENO_EINVAL,
            "a conversation id is 1 to %d bytes of UTF-8 without control characters", ID_MAX);
}

/* ---- meta.json ---- */

/* Members that Steno sets itself and a caller cannot change. */
static bool is_fixed(const struct json *j, json_ref key)
{
        return json_is(j, key, "id") || json_is(j, key, "project") ||
               json_is(j, key, "createdAt") || json_is(j, key, "uid") || json_is(j, key, "origin");
}

static int check_meta(const struct json *j, struct steno_error *err)
{
        if (json_type(j, 0) != JSON_OBJECT)
                return error_set(err, STENO_EPROTO, "metadata must be an object");
        json_ref title = json_get(j, 0, "title");
        enum json_type t = json_type(j, title);
        if (t != JSON_NOTHING && t != JSON_STRING && t != JSON_NULL)
                return error_set(err, STENO_EPROTO, "title must be a string");
        if (json_raw(j, title).n > TITLE_MAX)
                return error_set(err, STENO_ELIMIT, "title is longer than %zu bytes", TITLE_MAX);
        return 0;
}

/* Writes `patch` over `old` (tapes of objects; old may be NULL): null removes. */
static void merge(struct jsonw *w, const struct json *old, const struct json *patch)
{
        for (json_ref k = old ? json_child(old, 0) : JSON_NONE; k != JSON_NONE;
             k = json_next_key(old, 0, k)) {
                struct buf name;
                buf_init(&name, 0);
                json_string(old, k, &name, NULL);
                const char *z = buf_cstr(&name);
                json_ref p = z ? json_get(patch, 0, z) : JSON_NONE;
                bool fixed = is_fixed(old, k);
                buf_release(&name);
                if (!fixed && p != JSON_NONE)
                        continue;
                jsonw_copy_member(w, old, k);
        }
        for (json_ref k = json_child(patch, 0); k != JSON_NONE; k = json_next_key(patch, 0, k)) {
                json_ref v = json_value(patch, k);
                if (is_fixed(patch, k) || json_type(patch, v) == JSON_NULL)
                        continue;
                jsonw_copy_member(w, patch, k);
        }
}

static int first_meta(struct steno_store *store, struct str project, struct str id,
    const char *given, struct buf *out, struct steno_error *err)
{
        struct json j;
        char at[TIME_TEXT];
        json_init(&j);
        int rc = given ? json_parse(&j, given, strlen(given), NULL, err) : 0;
        if (rc == 0 && given)
                rc = check_meta(&j, err);
        if (rc == 0) {
                struct jsonw w = jsonw_to(out);
                time_format(store->env->now(store->env), at);
                jsonw_object(&w);
                jsonw_field_str(&w, "id", id);
                jsonw_field_str(&w, "project", project);
                jsonw_field_cstr(&w, "createdAt", at);
                if (given)
                        merge(&w, NULL, &j);
                jsonw_object_end(&w);
                buf_putc(out, '\n');
                rc = buf_check(out, err);
        }
        json_release(&j);
        return rc;
}

/* ---- making and opening ---- */

int steno_conv_create(struct steno_store *store, const char *project, const char *id,
    const char *meta_json, struct steno_conv **out, struct steno_error *err)
{
        char made[48];
        struct str p, name;
        struct buf meta;
        struct backend_conv *backend;
        if (!id) {
                id_make(store->env, "conv_", made);
                id = made;
        }
        name = str_of(id);
        int rc = api_store_project(project, &p, err);
        if (rc == 0)
                rc = api_conv_check_id(name, err);
        if (rc)
                return rc;
        buf_init(&meta, META_MAX);
        rc = first_meta(store, p, name, meta_json, &meta, err);
        if (rc == 0)
                rc = backend_conv_create(store->backend, p, name, buf_str(&meta), &backend, err);
        if (rc == 0)
                rc = api_conv_wrap(store, backend, out, err);
        buf_release(&meta);
        return rc;
}

int steno_conv_open(struct steno_store *store, const char *project, const char *id,
    struct steno_conv **out, struct steno_error *err)
{
        struct str p;
        struct backend_conv *backend;
        int rc = api_store_project(project, &p, err);
        if (rc == 0)
                rc = api_conv_check_id(str_of(id), err);
        if (rc == 0)
                rc = backend_conv_open(store->backend, p, str_of(id), &backend, err);
        if (rc == 0)
                rc = api_conv_wrap(store, backend, out, err);
        if (rc == 0) /* where this fails, readers get an error later */
                api_recover(*out, NULL);
        return rc;
}

void steno_conv_keep(struct steno_conv *conv)
{
        __atomic_add_fetch(&conv->refs, 1, __ATOMIC_RELAXED);
}

void steno_conv_close(struct steno_conv *conv)
{
        if (!conv || __atomic_sub_fetch(&conv->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        backend_conv_release(conv->backend);
        api_store_release(conv->store);
        free(conv);
}

const char *steno_conv_id(const struct steno_conv *conv)
{
        return backend_conv_id(conv->backend);
}

const char *steno_conv_project(const struct steno_conv *conv)
{
        return backend_conv_project(conv->backend);
}

int steno_conv_last_seq(struct steno_conv *conv, uint64_t *seq, struct steno_error *err)
{
        return backend_last(conv->backend, seq, NULL, err);
}

int steno_conv_size(struct steno_conv *conv, uint64_t *bytes, struct steno_error *err)
{
        uint64_t seq;
        return backend_last(conv->backend, &seq, bytes, err);
}

int steno_conv_wait(
    struct steno_conv *conv, uint64_t after_seq, int timeout_ms, struct steno_error *err)
{
        return backend_wait(conv->backend, after_seq, timeout_ms, err);
}

int steno_conv_meta(struct steno_conv *conv, char **json, struct steno_error *err)
{
        size_t n;
        char *text = NULL;
        int rc = backend_conv_meta(conv->backend, &text, &n, err);
        if (rc)
                return rc;
        if (!json_valid(text, n, NULL) || text[strspn(text, " \t\r\n")] != '{') {
                free(text);
                return error_set(err, STENO_ECORRUPT,
                    "meta.json is damaged: it is not a JSON object; run steno check --repair");
        }
        if (n > 0 && text[n - 1] == '\n') /* of the file, not of the answer */
                text[n - 1] = 0;
        *json = text;
        return 0;
}

struct patch {
        struct json j;
};

static int apply_patch(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        struct patch *patch = ctx;
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, old.p, old.n, NULL, err);
        if (rc == 0) {
                struct jsonw w = jsonw_to(out);
                jsonw_object(&w);
                merge(&w, &j, &patch->j);
                jsonw_object_end(&w);
                buf_putc(out, '\n');
        } else if (rc == STENO_EPROTO) {
                rc = error_prefix(err, STENO_ECORRUPT, "meta.json");
        }
        json_release(&j);
        return rc;
}

int steno_conv_set_meta(struct steno_conv *conv, const char *patch_json, struct steno_error *err)
{
        struct patch patch;
        json_init(&patch.j);
        int rc = json_parse(&patch.j, patch_json, strlen(patch_json), NULL, err);
        if (rc == 0)
                rc = check_meta(&patch.j, err);
        if (rc == 0)
                rc = backend_conv_change_meta(conv->backend, apply_patch, &patch, err);
        json_release(&patch.j);
        return rc;
}

/* More unfinished runs than this are not completed by a list; readers of the conversations complete
 * them. */
#define LISTED_RUNS 256

static int catch_up_to_list(
    struct steno_store *store, bool complete, bool *behind, struct steno_error *err)
{
        *behind = false;
        return complete ? api_store_catch_up(store, err)
                        : api_store_catch_up_at_once(store, behind, err);
}

int steno_list(struct steno_store *store, const char *project, const struct steno_list_options *opt,
    char **json, struct steno_error *err)
{
        struct backend_query q = {
            .project = project,
            .limit = OPTION(opt, struct steno_list_options, limit, 0),
            .cursor = OPTION(opt, struct steno_list_options, cursor, NULL),
            .words = OPTION(opt, struct steno_list_options, query, NULL),
        };
        bool complete = OPTION(opt, struct steno_list_options, complete, 0);
        struct str legal;
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc == 0 && project)
                rc = api_store_project(project, &legal, err);
        if (rc == 0)
                rc = catch_up_to_list(store, complete, &q.behind, err);
        if (rc == 0 && api_recover_listed(store, project, LISTED_RUNS))
                rc = catch_up_to_list(store, complete, &q.behind, err);
        if (rc == 0)
                rc = backend_list(store->backend, &q, json, err);
        if (rc == STENO_ECORRUPT && (rc = catch_up_to_list(store, complete, &q.behind, err)) == 0)
                rc = backend_list(store->backend, &q, json, err); /* it was made anew */
        return rc;
}
