/*
 * api_project.c - settings of a project: projects.json, a document of the store.
 *
 *   {"default":{"outputs":"stub"},"shop":{}}
 *
 * If the file cannot be read, only the settings are lost: views use their defaults, and a change is
 * refused, because it would overwrite what others have set.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "api/api_store.h"

#define NAME "projects.json"
#define FILE_MAX (4 * MIB)
#define PATIENCE_MS 10000 /* with another process that writes there */

static struct str project_of(const char *project)
{
        return str_of(project && *project ? project : "default");
}

/* ---- reading ---- */

static int load(struct backend_store *store, struct json *j, char **text, struct steno_error *err)
{
        size_t n = 0;
        int rc = backend_document_read(store, NAME, FILE_MAX, text, &n, NULL, err);
        if (rc)
                return rc;
        if (json_parse(j, *text, n, NULL, NULL) || json_type(j, 0) != JSON_OBJECT)
                return error_set(err, STENO_ECORRUPT, "%s is not a JSON object", NAME);
        return 0;
}

static json_ref find(const struct json *j, struct str project)
{
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k)) {
                char *name = json_dup_string(j, k);
                bool same = name && str_eq(str_of(name), project);
                free(name);
                if (same)
                        return json_value(j, k);
        }
        return JSON_NONE;
}

int steno_project_settings(
    struct steno_store *store, const char *project, char **json, struct steno_error *err)
{
        struct json j;
        char *text = NULL, *copy = NULL;
        json_init(&j);
        int rc = load(store->backend, &j, &text, err);
        json_ref set = rc ? JSON_NONE : find(&j, project_of(project));
        if (rc == STENO_ENOTFOUND)
                rc = 0;
        if (rc == 0) {
                struct str raw = set == JSON_NONE ? STR("{}") : json_raw(&j, set);
                copy = strndup(raw.p, raw.n);
                rc = copy ? 0 : error_nomem(err);
        }
        if (rc == 0)
                *json = copy;
        json_release(&j);
        free(text);
        return rc;
}

static int outputs_named(const struct json *j, json_ref v)
{
        return json_is(j, v, "stub")   ? STENO_OUTPUTS_STUB
               : json_is(j, v, "full") ? STENO_OUTPUTS_FULL
                                       : STENO_OUTPUTS_DEFAULT;
}

int steno_conv_outputs(struct steno_conv *conv, int *outputs, struct steno_error *err)
{
        struct json j;
        char *meta = NULL, *set = NULL;
        int found = STENO_OUTPUTS_DEFAULT;
        json_init(&j);
        int rc = steno_conv_meta(conv, &meta, err);
        if (rc == 0 && json_parse(&j, meta, strlen(meta), NULL, NULL) == 0)
                found = outputs_named(&j, json_get(&j, json_get(&j, 0, "configs"), "outputs"));
        if (rc == 0 && found == STENO_OUTPUTS_DEFAULT &&
            steno_project_settings(conv->store, steno_conv_project(conv), &set, NULL) == 0 &&
            json_parse(&j, set, strlen(set), NULL, NULL) == 0)
                found = outputs_named(&j, json_get(&j, 0, "outputs"));
        if (rc == 0)
                *outputs = found;
        json_release(&j);
        steno_free(meta);
        steno_free(set);
        return rc;
}

/* ---- changing ---- */

struct change {
        struct str project;
        const struct json *patch;
        struct buf settings; /* of the project, as they are now */
};

static int check_patch(const struct json *j, struct steno_error *err)
{
        if (json_type(j, 0) != JSON_OBJECT)
                return error_set(err, STENO_EINVAL, "settings of a project must be an object");
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k)) {
                json_ref v = json_value(j, k);
                if (!json_is(j, k, "outputs"))
                        return error_set(err, STENO_EINVAL,
                            "a project has no setting \"%.*s\"; it has outputs",
                            (int)(json_inner(j, k).n > 60 ? 60 : json_inner(j, k).n),
                            json_inner(j, k).p);
                if (json_type(j, v) != JSON_NULL && outputs_named(j, v) == STENO_OUTPUTS_DEFAULT)
                        return error_set(
                            err, STENO_EINVAL, "outputs must be \"stub\", \"full\" or null");
        }
        return 0;
}

/* The old settings with the patch over them; null removes. */
static void put_settings(struct change *c, const struct json *old, json_ref set)
{
        struct jsonw w = jsonw_to(&c->settings);
        jsonw_object(&w);
        for (json_ref k = set == JSON_NONE ? JSON_NONE : json_child(old, set); k != JSON_NONE;
             k = json_next_key(old, set, k)) {
                char *name = json_dup_string(old, k);
                if (name && json_get(c->patch, 0, name) == JSON_NONE)
                        jsonw_copy_member(&w, old, k);
                free(name);
        }
        for (json_ref k = json_child(c->patch, 0); k != JSON_NONE;
             k = json_next_key(c->patch, 0, k))
                if (json_type(c->patch, json_value(c->patch, k)) != JSON_NULL)
                        jsonw_copy_member(&w, c->patch, k);
        jsonw_object_end(&w);
}

static int change_document(void *ctx, struct str before, struct buf *out, struct steno_error *err)
{
        struct change *c = ctx;
        struct json old;
        json_init(&old);
        before = before.n ? before : STR("{}");
        int rc = json_parse(&old, before.p, before.n, NULL, NULL);
        if (rc || json_type(&old, 0) != JSON_OBJECT) {
                json_release(&old);
                return error_set(err, STENO_ECORRUPT,
                    "%s is not a JSON object: repair or remove it, then set this again", NAME);
        }
        json_ref set = find(&old, c->project);
        put_settings(c, &old, json_type(&old, set) == JSON_OBJECT ? set : JSON_NONE);
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(&old, 0); k != JSON_NONE; k = json_next_key(&old, 0, k))
                if (json_value(&old, k) != set)
                        jsonw_copy_member(&w, &old, k);
        if (c->settings.n > 2) {
                jsonw_key_str(&w, c->project);
                jsonw_raw(&w, buf_str(&c->settings));
        }
        jsonw_object_end(&w);
        buf_putc(out, '\n');
        json_release(&old);
        return buf_check(&c->settings, err);
}

int steno_project_change(struct steno_store *store, const char *project, const char *json, size_t n,
    char **settings, struct steno_error *err)
{
        struct json patch;
        struct change c = {.project = project_of(project), .patch = &patch};
        json_init(&patch);
        buf_init(&c.settings, FILE_MAX);
        int rc = json_parse(&patch, json, n, NULL, err);
        if (rc == 0)
                rc = check_patch(&patch, err);
        if (rc == 0)
                rc = backend_document_change(
                    store->backend, NAME, FILE_MAX, PATIENCE_MS, change_document, &c, err);
        char *text = rc || !settings ? NULL : buf_take(&c.settings, NULL);
        if (rc == 0 && settings && !text)
                rc = error_nomem(err);
        if (text)
                *settings = text;
        json_release(&patch);
        buf_release(&c.settings);
        return rc;
}
