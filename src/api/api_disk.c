/*
 * api_disk.c - disks (steno_disk.h): names are checked here, the rest is store/backend_disks.h.
 */
#include "steno_disk.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_store.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

/* ---- names ---- */

static bool is_legal_path(struct str path)
{
        if (path.n < 2 || path.n > DISK_PATH_MAX || path.p[0] != '/')
                return false;
        for (struct str rest = str_span(path.p + 1, path.n - 1);;) {
                const char *slash = memchr(rest.p, '/', rest.n);
                struct str part = str_span(rest.p, slash ? (size_t)(slash - rest.p) : rest.n);
                if (part.n == 0 || str_is(part, ".") || str_is(part, ".."))
                        return false;
                if (!slash)
                        break;
                rest = str_span(slash + 1, rest.n - part.n - 1);
        }
        for (size_t i = 0; i < path.n; i++)
                if ((unsigned char)path.p[i] < 0x20 || path.p[i] == 0x7f)
                        return false;
        return text_is_utf8(path.p, path.n);
}

struct named {
        struct backend_disk disk;
        struct str path;
        const struct backend_disks *calls;
};

static int find_calls(
    struct steno_store *store, const struct backend_disks **out, struct steno_error *err)
{
        *out = store->backend->ops->disks;
        return *out ? 0 : error_set(err, STENO_EUNSUPPORTED, "this kind of store has no disks");
}

/* `path` NULL: a disk, not a file. */
static int check_names(struct steno_store *store, const char *project, const char *id,
    const char *path, struct named *out, struct steno_error *err)
{
        *out = (struct named){
            .disk = {.store = store->backend, .id = str_of(id)}, .path = str_of(path)};
        int rc = find_calls(store, &out->calls, err);
        if (rc == 0)
                rc = api_store_project(project, &out->disk.project, err);
        if (rc)
                return rc;
        if (!id || !id_is_legal(out->disk.id, ID_MAX))
                return error_set(err, STENO_EINVAL, "not the id of a disk");
        if (path && !is_legal_path(out->path))
                return error_set(err, STENO_EINVAL,
                    "a path begins with \"/\", has no empty part, no \".\" and no \"..\", and at "
                    "most %d bytes",
                    DISK_PATH_MAX);
        return 0;
}

static int check_meta(const char *meta, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = meta ? json_parse(&j, meta, strlen(meta), NULL, err) : 0;
        if (rc == 0 && meta && json_type(&j, 0) != JSON_OBJECT)
                rc = error_set(err, STENO_EINVAL, "the metadata is not a JSON object");
        json_release(&j);
        return rc;
}

static int give(struct buf *text, int rc, char **json, struct steno_error *err)
{
        if (rc == 0 && json) {
                *json = buf_take(text, NULL);
                if (!*json)
                        rc = error_nomem(err);
        }
        buf_release(text);
        return rc;
}

/* ---- disks ---- */

int steno_disk_create(struct steno_store *store, const char *project, const char *id, char **json,
    struct steno_error *err)
{
        struct named n;
        struct buf text;
        buf_init(&text, 0);
        int rc = check_names(store, project, id, NULL, &n, err);
        if (rc == 0)
                rc = n.calls->create(&n.disk, &text, err);
        return give(&text, rc, json, err);
}

int steno_disk_get(struct steno_store *store, const char *project, const char *id, char **json,
    struct steno_error *err)
{
        struct named n;
        struct buf text;
        buf_init(&text, 0);
        int rc = check_names(store, project, id, NULL, &n, err);
        if (rc == 0)
                rc = n.calls->get(&n.disk, &text, err);
        return give(&text, rc, json, err);
}

int steno_disk_remove(
    struct steno_store *store, const char *project, const char *id, struct steno_error *err)
{
        struct named n;
        int rc = check_names(store, project, id, NULL, &n, err);
        return rc ? rc : n.calls->remove(&n.disk, err);
}

/* ---- lists, sorted ---- */

struct entry {
        char *key; /* to sort by */
        char *json;
};

struct entries {
        struct entry *list;
        size_t count;
        size_t cap;
        const char *key; /* the member, and a second one where it is the same */
        const char *more;
};

static int add_entry(void *ctx, struct str json)
{
        struct entries *e = ctx;
        struct json j;
        struct buf key;
        if (!grow_room(e->list, e->count, e->cap))
                return STENO_ENOMEM;
        json_init(&j);
        buf_init(&key, 0);
        if (json_parse(&j, json.p, json.n, NULL, NULL) == 0) {
                json_string(&j, json_get(&j, 0, e->key), &key, NULL);
                json_string(&j, json_get(&j, 0, e->more), &key, NULL);
        }
        json_release(&j);
        struct entry *to = &e->list[e->count];
        to->key = buf_take(&key, NULL);
        to->json = strndup(json.p, json.n);
        e->count++;
        return to->key && to->json ? 0 : STENO_ENOMEM;
}

static int by_key(const void *a, const void *b)
{
        return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

/* Writes {"items":[...]} and frees the list. */
static int put_entries(struct entries *e, int rc, char **json, struct steno_error *err)
{
        struct buf text;
        buf_init(&text, 0);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        if (rc == 0) {
                if (e->count)
                        qsort(e->list, e->count, sizeof *e->list, by_key);
                struct jsonw w = jsonw_to(&text);
                jsonw_object(&w);
                jsonw_key(&w, "items");
                jsonw_array(&w);
                for (size_t i = 0; i < e->count; i++)
                        jsonw_raw(&w, str_of(e->list[i].json));
                jsonw_array_end(&w);
                jsonw_object_end(&w);
        }
        for (size_t i = 0; i < e->count; i++) {
                free(e->list[i].key);
                free(e->list[i].json);
        }
        free(e->list);
        return give(&text, rc, json, err);
}

int steno_disk_list(
    struct steno_store *store, const char *project, char **json, struct steno_error *err)
{
        struct entries e = {.key = "createdAt", .more = "id"};
        const struct backend_disks *calls;
        struct str p;
        int rc = find_calls(store, &calls, err);
        if (rc == 0)
                rc = api_store_project(project, &p, err);
        if (rc == 0)
                rc = calls->each(store->backend, p, add_entry, &e, err);
        return put_entries(&e, rc, json, err);
}

int steno_disk_files(struct steno_store *store, const char *project, const char *id, char **json,
    struct steno_error *err)
{
        struct entries e = {.key = "path", .more = ""};
        struct named n;
        int rc = check_names(store, project, id, NULL, &n, err);
        if (rc == 0)
                rc = n.calls->each_file(&n.disk, add_entry, &e, err);
        return put_entries(&e, rc, json, err);
}

/* ---- files ---- */

int steno_disk_put(struct steno_store *store, const char *project, const char *id, const char *path,
    const char *mime, const char *meta, const void *bytes, size_t n, char **json,
    struct steno_error *err)
{
        struct named name;
        struct buf text;
        buf_init(&text, 0);
        int rc = check_names(store, project, id, path ? path : "", &name, err);
        if (rc == 0)
                rc = check_meta(meta, err);
        struct backend_disk_file file = {.path = name.path,
            .mime = str_of(mime),
            .meta = str_of(meta),
            .bytes = str_span(bytes, n)};
        if (rc == 0)
                rc = name.calls->put(&name.disk, &file, &text, err);
        return give(&text, rc, json, err);
}

int steno_disk_set_meta(struct steno_store *store, const char *project, const char *id,
    const char *path, const char *meta, char **json, struct steno_error *err)
{
        struct named name;
        struct buf text;
        buf_init(&text, 0);
        int rc = check_names(store, project, id, path ? path : "", &name, err);
        if (rc == 0)
                rc = check_meta(meta ? meta : "", err);
        struct backend_disk_file file = {
            .path = name.path, .meta = str_of(meta), .keep_bytes = true};
        if (rc == 0)
                rc = name.calls->put(&name.disk, &file, &text, err);
        return give(&text, rc, json, err);
}

int steno_disk_file(struct steno_store *store, const char *project, const char *id,
    const char *path, char **json, struct steno_error *err)
{
        struct named name;
        struct buf text;
        buf_init(&text, 0);
        int rc = check_names(store, project, id, path ? path : "", &name, err);
        if (rc == 0)
                rc = name.calls->file(&name.disk, name.path, &text, err);
        return give(&text, rc, json, err);
}

int steno_disk_read(struct steno_store *store, const char *project, const char *id,
    const char *path, char **bytes, size_t *n, struct steno_error *err)
{
        struct named name;
        int rc = check_names(store, project, id, path ? path : "", &name, err);
        return rc ? rc : name.calls->read(&name.disk, name.path, bytes, n, err);
}

int steno_disk_delete(struct steno_store *store, const char *project, const char *id,
    const char *path, struct steno_error *err)
{
        struct named name;
        int rc = check_names(store, project, id, path ? path : "", &name, err);
        return rc ? rc : name.calls->unlink(&name.disk, name.path, err);
}
