/*
 * acontext_disks.c - /api/v1/disk: Acontext's disks and their artifacts, which are our disks and
 * files (steno_disk.h).
 *
 * Acontext has a path in two parts, the folder ("/notes/") and the file's name. A folder is there
 * while a file is in it.
 */
#include "routes/acontext/acontext_wire.h"
#include "routes/handlers.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/text.h"
#include "http/form.h"
#include "http/http_limits.h"
#include "http/sign.h"
#include "steno_disk.h"

#define DISKS_MAX 200
#define FOUND_DEFAULT 100
#define FOUND_MAX 1000

/* ---- disks ---- */

static void put_disk(struct jsonw *w, const struct request *r, const struct json *j, json_ref disk)
{
        jsonw_object(w);
        jsonw_field_copy(w, "id", j, json_get(j, disk, "id"));
        jsonw_field_cstr(w, "project_id", r->who.project);
        jsonw_field_null(w, "user_id");
        jsonw_field_copy(w, "created_at", j, json_get(j, disk, "createdAt"));
        jsonw_field_copy(w, "updated_at", j, json_get(j, disk, "updatedAt"));
        jsonw_object_end(w);
}

/* Parses what the library gave, which is freed. False: an error was answered. */
static bool take(
    struct request *r, int rc, char **text, struct json *j, const struct steno_error *err)
{
        struct steno_error why = *err;
        if (rc == 0)
                rc = json_parse(j, *text, strlen(*text), NULL, &why);
        if (rc)
                request_failed(r, rc, &why);
        return rc == 0;
}

void acontext_disk_create(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        struct jsonw w;
        char id[37], *text = NULL;
        json_init(&j);
        bool keyed = acontext_new_id(r, "disk", id);
        int rc = steno_disk_create(r->store, r->who.project, id, &text, &err);
        if (rc == STENO_ECONFLICT && keyed)
                rc = steno_disk_get(r->store, r->who.project, id, &text, &err);
        if (take(r, rc, &text, &j, &err)) {
                acontext_begin(r, &w);
                put_disk(&w, r, &j, 0);
                acontext_end(r, &w, 201);
        }
        json_release(&j);
        steno_free(text);
}

static void put_disks(struct request *r, const struct json *j, uint64_t from, uint64_t limit)
{
        struct jsonw w;
        json_ref items = json_get(j, 0, "items");
        uint64_t count = json_count(j, items), i = from;
        bool newest_first = request_flag(r, "time_desc", false);
        acontext_page_begin(r, &w);
        for (; i < count && i - from < limit; i++)
                put_disk(&w, r, j, json_at(j, items, (uint32_t)(newest_first ? count - 1 - i : i)));
        acontext_page_end(r, &w, i, count);
}

void acontext_disk_list(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        uint64_t limit, from;
        char *text = NULL;
        if (!request_number(r, "limit", 20, 1, DISKS_MAX, &limit) || !acontext_cursor(r, &from))
                return;
        json_init(&j);
        int rc = steno_disk_list(r->store, r->who.project, &text, &err);
        if (take(r, rc, &text, &j, &err))
                put_disks(r, &j, from, limit);
        json_release(&j);
        steno_free(text);
}

static void reply_nothing(struct request *r, int rc, const struct steno_error *err)
{
        struct jsonw w;
        if (rc) {
                request_failed(r, rc, err);
                return;
        }
        acontext_begin(r, &w);
        jsonw_raw(&w, STR("{}"));
        acontext_end(r, &w, 200);
}

void acontext_disk_delete(struct request *r)
{
        struct steno_error err = {0};
        int rc = steno_disk_remove(r->store, r->who.project, r->params[0].p, &err);
        reply_nothing(r, rc, &err);
}

/* ---- artifacts ---- */

/* "/a/b.txt" is "/a/" and "b.txt". */
static void split(struct str path, struct str *folder, struct str *name)
{
        size_t at = path.n;
        while (at && path.p[at - 1] != '/')
                at--;
        *folder = str_span(path.p, at);
        *name = str_span(path.p + at, path.n - at);
}

/* The user's metadata, with what Acontext says about the file itself. */
static void put_meta(
    struct jsonw *w, const struct json *j, json_ref file, struct str folder, struct str name)
{
        json_ref meta = json_get(j, file, "meta");
        jsonw_key(w, "meta");
        jsonw_object(w);
        for (json_ref k = json_child(j, meta); k != JSON_NONE; k = json_next_key(j, meta, k))
                if (!json_is(j, k, "__artifact_info__"))
                        jsonw_copy_member(w, j, k);
        jsonw_key(w, "__artifact_info__");
        jsonw_object(w);
        jsonw_field_str(w, "path", folder);
        jsonw_field_str(w, "filename", name);
        jsonw_field_copy(w, "mime", j, json_get(j, file, "mime"));
        jsonw_field_copy(w, "size", j, json_get(j, file, "size"));
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static void put_artifact(struct jsonw *w, struct request *r, const struct json *j, json_ref file)
{
        struct buf path;
        struct str folder, name;
        buf_init(&path, 0);
        json_string(j, json_get(j, file, "path"), &path, NULL);
        split(buf_str(&path), &folder, &name);
        jsonw_object(w);
        jsonw_field_str(w, "disk_id", r->params[0]);
        jsonw_field_str(w, "path", folder);
        jsonw_field_str(w, "filename", name);
        put_meta(w, j, file, folder, name);
        jsonw_field_copy(w, "created_at", j, json_get(j, file, "createdAt"));
        jsonw_field_copy(w, "updated_at", j, json_get(j, file, "updatedAt"));
        jsonw_object_end(w);
        buf_release(&path);
}

/* The folder that a path names: "/a/b.txt" and "/a/" are in "/a/". NULL: no memory. */
static const char *place(struct request *r, struct str given, struct str filename)
{
        struct str folder = STR("/"), name;
        struct buf path;
        buf_init(&path, 0);
        if (given.n)
                split(given, &folder, &name);
        buf_put_str(&path, folder);
        buf_put_str(&path, filename);
        const char *copy = arena_dup(&r->arena, buf_str(&path)).p;
        buf_release(&path);
        return copy;
}

static const char *field(struct request *r, const struct form *f, const char *name)
{
        const struct form_part *p = form_find(f, name);
        return p && p->body.n ? arena_dup(&r->arena, p->body).p : NULL;
}

static bool has_nul(const struct form *f, const char *name)
{
        const struct form_part *p = form_find(f, name);
        return p && p->body.n && memchr(p->body.p, 0, p->body.n);
}

/* Metadata must not use the name that Steno uses for its own data. */
static bool check_meta(struct request *r, const char *meta)
{
        struct json j;
        json_init(&j);
        bool object =
            json_parse(&j, meta, strlen(meta), NULL, NULL) == 0 && json_type(&j, 0) == JSON_OBJECT;
        bool reserved = object && json_get(&j, 0, "__artifact_info__") != JSON_NONE;
        json_release(&j);
        if (!object)
                request_error(r, 400, "bad_request", "meta must be the text of a JSON object");
        else if (reserved)
                request_error(r, 400, "bad_request", "meta must not have __artifact_info__");
        return object && !reserved;
}

static void store_form(struct request *r, const struct form *f)
{
        struct steno_error err = {0};
        struct json j;
        struct jsonw w;
        char *text = NULL;
        const struct form_part *file = form_find(f, "file");
        const char *given = field(r, f, "file_path"), *meta = field(r, f, "meta");
        if (!file || !file->filename.n) {
                request_error(r, 400, "bad_request", "file is missing: it needs a name");
                return;
        }
        if (has_nul(f, "file_path") || has_nul(f, "meta") ||
            memchr(file->filename.p, 0, file->filename.n)) {
                request_error(
                    r, 400, "bad_request", "a path, a name or the metadata has a NUL character");
                return;
        }
        if (meta && !check_meta(r, meta))
                return;
        const char *path = place(r, str_of(given), file->filename);
        const char *mime = arena_dup(&r->arena, file->type).p;
        json_init(&j);
        int rc = path ? steno_disk_put(r->store, r->who.project, r->params[0].p, path, mime, meta,
                            file->body.p, file->body.n, &text, &err)
                      : STENO_ENOMEM;
        if (take(r, rc, &text, &j, &err)) {
                acontext_begin(r, &w);
                put_artifact(&w, r, &j, 0);
                acontext_end(r, &w, 201);
        }
        json_release(&j);
        steno_free(text);
}

void acontext_artifact_upsert(struct request *r)
{
        struct form *f = calloc(1, sizeof *f);
        if (!f) {
                request_error(r, 503, "busy", "out of memory");
                return;
        }
        if (!form_is(r))
                request_error(r, 400, "bad_request", "an artifact is sent as multipart/form-data");
        else if (!form_read(f, r))
                request_error(r, 400, "bad_request", "the form cannot be read");
        else
                store_form(r, f);
        form_release(f);
        free(f);
}

/* The file that the query names. NULL: a 400 was answered. */
static const char *wanted_path(struct request *r)
{
        const char *path = request_query(r, "file_path");
        if (path && *path)
                return path;
        request_error(r, 400, "bad_request", "file_path is missing");
        return NULL;
}

/* What Acontext calls the content of a file that can be read as text. NULL: it cannot. */
static const char *content_type(const char *path, struct str mime, struct str bytes)
{
        static const char *const CODE[] = {".py", ".js", ".ts", ".tsx", ".jsx", ".go", ".rs", ".c",
            ".h", ".cpp", ".java", ".rb", ".sh", ".sql", ".html", ".css", ".yaml", ".yml", ".toml"};
        const char *dot = strrchr(path, '.');
        if (!text_is_utf8(bytes.p, bytes.n) || (bytes.n && memchr(bytes.p, '\0', bytes.n)))
                return NULL;
        if (str_is(mime, "application/json") || (dot && strcmp(dot, ".json") == 0))
                return "json";
        if (str_is(mime, "text/csv") || (dot && strcmp(dot, ".csv") == 0))
                return "csv";
        for (size_t i = 0; dot && i < sizeof CODE / sizeof *CODE; i++)
                if (strcmp(dot, CODE[i]) == 0)
                        return "code";
        return "text";
}

static int put_content(struct request *r, struct jsonw *w, const char *path, const struct json *j,
    struct steno_error *err)
{
        char *bytes = NULL;
        size_t n = 0;
        int rc = steno_disk_read(r->store, r->who.project, r->params[0].p, path, &bytes, &n, err);
        if (rc)
                return rc;
        struct str mime = json_inner(j, json_get(j, 0, "mime"));
        const char *type = content_type(path, mime, str_span(bytes, n));
        if (type) {
                jsonw_key(w, "content");
                jsonw_object(w);
                jsonw_field_cstr(w, "type", type);
                jsonw_field_str(w, "raw", str_span(bytes, n));
                jsonw_object_end(w);
        }
        steno_free(bytes);
        return 0;
}

/* An address that needs no token, for at most an hour. The path stands in it as one part. */
static void put_url(struct request *r, struct jsonw *w, const char *path)
{
        const char *host = request_header(r, "Host");
        struct buf url;
        int64_t expires;
        buf_init(&url, 0);
        buf_puts(&url, "/api/v1/disk/");
        for (const char *c = r->params[0].p; *c; c++)
                buf_printf(&url, "%%%02x", (unsigned char)*c);
        buf_puts(&url, "/file/");
        for (const char *c = path; *c; c++)
                buf_printf(&url, "%%%02x", (unsigned char)*c);
        struct str signed_path = arena_dup(&r->arena, buf_str(&url));
        buf_clear(&url);
        buf_printf(&url, "http://%s", host ? host : "127.0.0.1");
        buf_put_str(&url, signed_path);
        sign_put(r->server, signed_path, r->who.project, &url, &expires);
        jsonw_field_str(w, "public_url", buf_str(&url));
        buf_release(&url);
}

void acontext_artifact_get(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        struct jsonw w;
        char *text = NULL;
        const char *path = wanted_path(r);
        if (!path)
                return;
        json_init(&j);
        int rc = steno_disk_file(r->store, r->who.project, r->params[0].p, path, &text, &err);
        if (take(r, rc, &text, &j, &err)) {
                acontext_begin(r, &w);
                jsonw_object(&w);
                jsonw_key(&w, "artifact");
                put_artifact(&w, r, &j, 0);
                if (request_flag(r, "with_public_url", true))
                        put_url(r, &w, path);
                if (request_flag(r, "with_content", true))
                        rc = put_content(r, &w, path, &j, &err);
                jsonw_object_end(&w);
                if (rc)
                        request_failed(r, rc, &err);
                else
                        acontext_end(r, &w, 200);
        }
        json_release(&j);
        steno_free(text);
}

void acontext_artifact_update(struct request *r)
{
        static const struct body_rule RULES[] = {
            {"file_path", BODY_NAME}, {"meta", BODY_NAME}, {0}};
        struct steno_error err = {0};
        struct json body, j;
        struct jsonw w;
        char *text = NULL;
        json_init(&body);
        json_init(&j);
        if (request_json(r, &body, RULES)) {
                const char *path = request_member(r, &body, 0, "file_path");
                const char *meta = request_member(r, &body, 0, "meta");
                if (!path || !meta) {
                        request_error(r, 400, "bad_request", "file_path and meta must be texts");
                } else if (check_meta(r, meta)) {
                        int rc = steno_disk_set_meta(
                            r->store, r->who.project, r->params[0].p, path, meta, &text, &err);
                        if (take(r, rc, &text, &j, &err)) {
                                acontext_begin(r, &w);
                                jsonw_object(&w);
                                jsonw_key(&w, "artifact");
                                put_artifact(&w, r, &j, 0);
                                jsonw_object_end(&w);
                                acontext_end(r, &w, 200);
                        }
                }
        }
        json_release(&body);
        json_release(&j);
        steno_free(text);
}

void acontext_artifact_delete(struct request *r)
{
        struct steno_error err = {0};
        const char *path = wanted_path(r);
        if (path)
                reply_nothing(r,
                    steno_disk_delete(r->store, r->who.project, r->params[0].p, path, &err), &err);
}

/* ---- bytes ---- */

static void reply_bytes(struct request *r, const char *path)
{
        struct steno_error err = {0};
        char *bytes = NULL;
        size_t n = 0;
        int rc = steno_disk_read(r->store, r->who.project, r->params[0].p, path, &bytes, &n, &err);
        if (rc) {
                request_failed(r, rc, &err);
                return;
        }
        /* Whatever type the file has, a browser must not run it as a page of this server. */
        buf_clear(&r->reply);
        buf_put(&r->reply, bytes, n);
        steno_free(bytes);
        request_header_out(r, "Content-Disposition", "attachment");
        request_header_out(r, "Content-Security-Policy", "sandbox; default-src 'none'");
        r->content_type = "application/octet-stream";
        r->status = 200;
}

void acontext_artifact_download(struct request *r)
{
        const char *path = wanted_path(r);
        if (path)
                reply_bytes(r, path);
}

void acontext_artifact_signed(struct request *r)
{
        /* This route is open to every token. A visitor's reaches its own conversation alone. */
        if (r->who.session[0]) {
                request_error(r, 404, "not_found", "no such disk");
                return;
        }
        reply_bytes(r, r->params[1].p);
}

/* ---- folders and searches ---- */

/* The names of folders directly below the path, each once. Files are sorted by path, so the files
 * of one folder stand together, and it is enough to look at the latest name. */
static void put_folders(struct jsonw *w, const struct json *j, const char *path)
{
        json_ref items = json_get(j, 0, "items");
        struct buf full, latest;
        size_t n = strlen(path);
        buf_init(&full, 0);
        buf_init(&latest, 0);
        jsonw_key(w, "directories");
        jsonw_array(w);
        for (json_ref f = json_child(j, items); f != JSON_NONE; f = json_next(j, items, f)) {
                buf_clear(&full);
                json_string(j, json_get(j, f, "path"), &full, NULL);
                const char *slash = full.n > n && memcmp(full.p, path, n) == 0
                                        ? memchr(full.p + n, '/', full.n - n)
                                        : NULL;
                struct str name =
                    slash ? str_span(full.p + n, (size_t)(slash - full.p) - n) : (struct str){0};
                if (!name.n || str_eq(name, buf_str(&latest)))
                        continue;
                buf_clear(&latest);
                buf_put_str(&latest, name);
                jsonw_str(w, name);
        }
        jsonw_array_end(w);
        buf_release(&full);
        buf_release(&latest);
}

static bool is_directly_in(const struct json *j, json_ref file, const char *path)
{
        struct buf full;
        struct str folder, name;
        buf_init(&full, 0);
        json_string(j, json_get(j, file, "path"), &full, NULL);
        split(buf_str(&full), &folder, &name);
        bool in = str_is(folder, path);
        buf_release(&full);
        return in;
}

void acontext_artifact_ls(struct request *r)
{
        struct steno_error err = {0};
        struct json j;
        struct jsonw w;
        char *text = NULL;
        const char *path = request_query(r, "path");
        if (!path || !*path)
                path = "/";
        if (path[0] != '/' || path[strlen(path) - 1] != '/') {
                request_error(r, 400, "bad_request", "path must begin and end with \"/\"");
                return;
        }
        json_init(&j);
        int rc = steno_disk_files(r->store, r->who.project, r->params[0].p, &text, &err);
        if (take(r, rc, &text, &j, &err)) {
                json_ref items = json_get(&j, 0, "items");
                acontext_begin(r, &w);
                jsonw_object(&w);
                jsonw_key(&w, "artifacts");
                jsonw_array(&w);
                for (json_ref f = json_child(&j, items); f != JSON_NONE;
                     f = json_next(&j, items, f))
                        if (is_directly_in(&j, f, path))
                                put_artifact(&w, r, &j, f);
                jsonw_array_end(&w);
                put_folders(&w, &j, path);
                jsonw_object_end(&w);
                acontext_end(r, &w, 200);
        }
        json_release(&j);
        steno_free(text);
}

/* Does a file match? */
typedef bool (*found_fn)(struct request *r, const char *path, const char *query);

/* The path, or the file's name alone, as shells match names. */
static bool is_glob(struct request *r, const char *path, const char *query)
{
        const char *name = strrchr(path, '/');
        (void)r;
        return fnmatch(query, path, 0) == 0 || fnmatch(query, name ? name + 1 : path, 0) == 0;
}

/* The text stands somewhere in the file. It is not a pattern: a search must not cost more than
 * reading. */
static bool has_text(struct request *r, const char *path, const char *query)
{
        char *bytes = NULL;
        size_t n = 0;
        bool found = steno_disk_read(
                         r->store, r->who.project, r->params[0].p, path, &bytes, &n, NULL) == 0 &&
                     memmem(bytes, n, query, strlen(query)) != NULL;
        steno_free(bytes);
        return found;
}

static void reply_found(struct request *r, found_fn found)
{
        struct steno_error err = {0};
        struct json j;
        struct jsonw w;
        uint64_t limit, count = 0;
        char *text = NULL;
        const char *query = request_query(r, "query");
        if (!query || !*query) {
                request_error(r, 400, "bad_request", "query is missing");
                return;
        }
        if (!request_number(r, "limit", FOUND_DEFAULT, 1, FOUND_MAX, &limit))
                return;
        json_init(&j);
        int rc = steno_disk_files(r->store, r->who.project, r->params[0].p, &text, &err);
        if (take(r, rc, &text, &j, &err)) {
                json_ref items = json_get(&j, 0, "items");
                acontext_begin(r, &w);
                jsonw_array(&w);
                for (json_ref f = json_child(&j, items); f != JSON_NONE && count < limit;
                     f = json_next(&j, items, f)) {
                        char *path = json_dup_string(&j, json_get(&j, f, "path"));
                        if (path && found(r, path, query)) {
                                put_artifact(&w, r, &j, f);
                                count++;
                        }
                        free(path);
                }
                jsonw_array_end(&w);
                acontext_end(r, &w, 200);
        }
        json_release(&j);
        steno_free(text);
}

void acontext_artifact_glob(struct request *r)
{
        reply_found(r, is_glob);
}

void acontext_artifact_grep(struct request *r)
{
        reply_found(r, has_text);
}

/* ---- what is not done here ---- */

void acontext_unsupported(struct request *r)
{
        request_error(r, 501, "unsupported",
            "spaces, blocks, tools and other learning features of Acontext are not part of Steno; "
            "sessions, messages, disks, artifacts and events are");
}
