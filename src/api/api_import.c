/*
 * api_import.c - a bundle on its way in.
 *
 * A bundle is untrusted input. The manifest of a conversation lists the files that follow; exactly
 * these must follow, in that order. They are unpacked in a temporary place (incoming.h). The
 * conversations move to their places only after the last byte of the bundle was read and all of
 * them were checked without findings.
 */
#include "api/api_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/tarball.h"

#define BLOCK ((size_t)64 * 1024)
#define HEAD_MAX (64 * KIB)

enum fate { IMPORTED, REPLACED, COPIED, UNCHANGED, SKIPPED };
static const char *const FATES[] = {"imported", "replaced", "copied", "unchanged", "skipped"};

struct arrival {
        char *project;
        char *id;
        char *was; /* its id in the bundle */
        enum fate fate;
        uint64_t last_seq;
};

struct importing {
        struct steno_store *store;
        const char *project; /* all go there; NULL: as the bundle says */
        bool new_ids;
        bool trusted;
        int on_conflict;
        steno_progress progress;
        void *progress_ctx;
        struct tarball_reader *tar;
        struct backend_incoming *in;
        struct arrival *list;
        size_t count;
        size_t cap;
        uint64_t bytes;
        char *block;
        bool kept; /* the conversation at work is unpacked, not only looked at */
        struct steno_error *err;
};

static int refuse(struct importing *m, const char *what, const char *name)
{
        return error_set(m->err, STENO_EPROTO, "not a bundle that can be imported: %s%s%.120s",
            what, name ? ": " : "", name ? name : "");
}

/* ---- files ---- */

/* Reads the file at work into memory; at most `max` bytes. */
static int read_text(struct importing *m, uint64_t size, size_t max, struct buf *out)
{
        ssize_t got;
        if (size > max)
                return refuse(m, "its description is too large", NULL);
        buf_clear(out);
        while ((got = tarball_read(m->tar, m->block, BLOCK, m->err)) > 0)
                buf_put(out, m->block, (size_t)got);
        return got < 0 ? (int)got : buf_check(out, m->err);
}

/* Takes the file at work, which must have these bytes; `keep` false: only looks. */
static int take_bytes(
    struct importing *m, bool keep, const char *name, uint64_t size, struct str sha256)
{
        unsigned char sum[SHA256_SIZE];
        char hex[SHA256_HEX];
        struct sha256 sha;
        uint64_t done = 0;
        ssize_t got;
        int rc = 0;
        if (hash_sha256_init(&sha))
                return error_nomem(m->err);
        while (rc == 0 && (got = tarball_read(m->tar, m->block, BLOCK, m->err)) > 0) {
                hash_sha256_update(&sha, m->block, (size_t)got);
                done += (uint64_t)got;
                if (keep)
                        rc = backend_incoming_write(m->in, m->block, (size_t)got, m->err);
                m->bytes += (uint64_t)got;
                if (m->progress && m->progress(m->progress_ctx, "import", m->bytes, 0)) {
                        hash_sha256_release(&sha);
                        return error_set(m->err, STENO_EINTERRUPTED, "stopped by the caller");
                }
        }
        hash_sha256_finish(&sha, sum);
        hash_hex(sum, sizeof sum, hex);
        if (rc == 0 && got == 0 && keep)
                rc = backend_incoming_file_end(m->in, m->err);
        if (rc || got < 0)
                return rc ? rc : (int)got;
        return done == size && str_is(sha256, hex)
                   ? 0
                   : refuse(m, "a file has other bytes than its manifest says", name);
}

/* ---- one conversation ---- */

/* The next file of the bundle must be `prefix`/`name`, of this size. */
static int take_entry(struct importing *m, const char *prefix, const char *name, uint64_t size,
    struct str sha256, bool drop)
{
        const char *found;
        char want[400];
        uint64_t has;
        bool keep = m->kept && !drop;
        int rc = tarball_next(m->tar, &found, &has, m->err);
        if (rc < 0)
                return rc;
        snprintf(want, sizeof want, "%s/%s", prefix, name);
        if (rc == 0)
                return refuse(m, "a file is missing", want);
        if (strcmp(found, want) != 0)
                return refuse(m, "a file is not the one that its manifest names", found);
        if (has != size)
                return refuse(m, "a file has another size than its manifest says", found);
        rc = keep ? backend_incoming_file(m->in, name, m->err) : 0;
        return rc ? rc : take_bytes(m, keep, name, size, sha256);
}

/* Transcripts are for people; seals are about this project and id. */
static bool is_dropped(const struct arrival *a, const char *name)
{
        return strcmp(name, "transcript.md") == 0 || (a->was && strncmp(name, "seal/", 5) == 0);
}

static int take_entries(struct importing *m, const struct json *j, const char *prefix)
{
        const struct arrival *a = &m->list[m->count - 1];
        json_ref entries = json_get(j, 0, "entries");
        char *before = NULL;
        int rc = 0;
        if (json_type(j, entries) != JSON_ARRAY || json_count(j, entries) > BUNDLE_FILES_MAX)
                return refuse(m, "a manifest has no entries, or too many", prefix);
        for (json_ref e = json_child(j, entries); rc == 0 && e != JSON_NONE;
             e = json_next(j, entries, e)) {
                uint64_t size = 0;
                struct str sha256 = json_inner(j, json_get(j, e, "sha256"));
                char *name = json_dup_string(j, json_get(j, e, "name"));
                if (!name || !backend_bundle_is_name(name) || sha256.n != SHA256_HEX - 1 ||
                    !json_u64(j, json_get(j, e, "size"), &size))
                        rc = refuse(m, "a manifest names what no conversation has", name);
                else if (before && backend_bundle_compare(before, name) >= 0)
                        rc = refuse(m, "the files of a manifest are not in order", name);
                else
                        rc = take_entry(m, prefix, name, size, sha256, is_dropped(a, name));
                free(before);
                before = name;
        }
        free(before);
        return rc;
}

/* Does a conversation of this store have the log that the manifest describes? */
static int has_same_log(
    struct importing *m, struct backend_conv *conv, const struct json *j, bool *same)
{
        json_ref entries = json_get(j, 0, "entries");
        struct bundle_options opt = {.partial = true};
        struct backend_bundle *bundle;
        *same = false;
        int rc = backend_bundle_prepare(conv, &opt, &bundle, m->err);
        if (rc)
                /* A conversation that cannot be read at the moment may be the same; a damaged one
                 * is not. */
                return rc == STENO_ENOMEM || rc == STENO_EIO || rc == STENO_EDENIED ? rc : 0;
        const struct bundle_view *b = backend_bundle_view(bundle);
        for (json_ref e = json_child(j, entries); e != JSON_NONE; e = json_next(j, entries, e))
                if (json_is(j, json_get(j, e, "name"), "messages.jsonl"))
                        for (size_t i = 0; i < b->count; i++)
                                *same =
                                    *same ||
                                    (strcmp(b->entries[i].name, "messages.jsonl") == 0 &&
                                        json_is(j, json_get(j, e, "sha256"), b->entries[i].sha256));
        backend_bundle_release(bundle);
        return 0;
}

static int take_new_id(struct importing *m, struct arrival *a)
{
        char made[48];
        id_make(m->store->env, "conv_", made);
        if (!a->was)
                a->was = a->id;
        else
                free(a->id);
        a->id = strdup(made);
        return a->id ? 0 : error_nomem(m->err);
}

/* Decides what happens to the conversation, given what is in the store. */
static int decide(struct importing *m, const struct json *j, struct arrival *a)
{
        struct backend_conv *conv;
        bool same;
        if (m->new_ids)
                return take_new_id(m, a);
        int rc =
            backend_conv_open(m->store->backend, str_of(a->project), str_of(a->id), &conv, NULL);
        if (rc == STENO_ENOTFOUND)
                return 0;
        if (rc)
                return error_set(m->err, rc, "conversation \"%.100s\" cannot be opened", a->id);
        rc = has_same_log(m, conv, j, &same);
        backend_conv_release(conv);
        if (rc)
                return rc;
        a->fate = same                                       ? UNCHANGED
                  : m->on_conflict == STENO_CONFLICT_REPLACE ? REPLACED
                  : m->on_conflict == STENO_CONFLICT_BOTH    ? COPIED
                                                             : SKIPPED;
        return a->fate == COPIED ? take_new_id(m, a) : 0;
}

static struct arrival *add_arrival(struct importing *m)
{
        if (!grow_room(m->list, m->count, m->cap))
                return NULL;
        m->list[m->count] = (struct arrival){0};
        return &m->list[m->count++];
}

/* Reads names of a manifest; they must be those of its folder. */
static int read_names(struct importing *m, const struct json *j, const char *prefix)
{
        char project[PLAIN_NAME_MAX + 1], folder[PLAIN_NAME_MAX + 1], want[2 * PLAIN_NAME_MAX + 4];
        uint64_t version = 0;
        struct arrival *a = add_arrival(m);
        if (!a)
                return error_nomem(m->err);
        json_u64(j, json_get(j, 0, "version"), &version);
        if (version != 1)
                return refuse(m, "a manifest is of another version", prefix);
        a->project = json_dup_string(j, json_get(j, 0, "project"));
        a->id = json_dup_string(j, json_get(j, 0, "id"));
        json_u64(j, json_get(j, 0, "lastSeq"), &a->last_seq);
        if (!a->project || !a->id || !id_is_legal(str_of(a->project), ID_MAX) ||
            !id_is_legal(str_of(a->id), ID_MAX))
                return refuse(m, "a manifest has no valid project and id", prefix);
        if (id_file_name(str_of(a->project), project) || id_file_name(str_of(a->id), folder))
                return error_nomem(m->err);
        snprintf(want, sizeof want, "%s/%s", project, folder);
        if (strcmp(want, prefix) != 0)
                return refuse(m, "a manifest names another conversation than its folder", prefix);
        if (m->project && strcmp(m->project, a->project) != 0) {
                a->was = strdup(a->id);
                free(a->project);
                a->project = strdup(m->project);
                if (!a->was || !a->project)
                        return error_nomem(m->err);
        }
        return 0;
}

static int take_conv(struct importing *m, const char *prefix, struct buf *manifest)
{
        struct json j;
        uint32_t number = (uint32_t)m->count;
        json_init(&j);
        int rc = json_parse(&j, manifest->p, manifest->n, NULL, m->err);
        if (rc == STENO_EPROTO || (rc == 0 && json_type(&j, 0) != JSON_OBJECT))
                rc = refuse(m, "a manifest is not a JSON object", prefix);
        if (rc == 0)
                rc = read_names(m, &j, prefix);
        struct arrival *a = rc ? NULL : &m->list[m->count - 1];
        if (rc == 0)
                rc = decide(m, &j, a);
        m->kept = rc == 0 && a->fate <= COPIED;
        if (m->kept)
                rc = backend_incoming_begin(m->in, number, m->err);
        if (rc == 0)
                rc = take_entries(m, &j, prefix);
        json_release(&j);
        buf_release(manifest); /* checking needs memory of its own */
        if (rc == 0 && m->kept)
                rc = backend_incoming_end(
                    m->in, str_of(a->project), str_of(a->id), a->was, m->trusted, m->err);
        return rc;
}

/* ---- the bundle ---- */

static size_t count_commas(struct str text)
{
        size_t n = 0;
        for (size_t i = 0; i < text.n; i++)
                n += text.p[i] == ',';
        return n;
}

static int take_head(struct importing *m, uint64_t *conversations)
{
        const char *name;
        uint64_t size, version = 0;
        struct json j;
        struct buf text;
        int rc = tarball_next(m->tar, &name, &size, m->err);
        if (rc < 0)
                return rc;
        if (rc == 0 || strcmp(name, "bundle.json") != 0)
                return refuse(m, "it does not begin with bundle.json", rc ? name : NULL);
        json_init(&j);
        buf_init(&text, HEAD_MAX);
        rc = read_text(m, size, HEAD_MAX, &text);
        if (rc == 0 && json_parse(&j, text.p, text.n, NULL, NULL))
                rc = refuse(m, "bundle.json is not JSON", NULL);
        if (rc == 0 && (!json_u64(&j, json_get(&j, 0, "version"), &version) || version != 1))
                rc = refuse(m, "its version is unknown", NULL);
        if (rc == 0 && (!json_u64(&j, json_get(&j, 0, "conversations"), conversations) ||
                           *conversations > BUNDLE_CONVERSATIONS_MAX))
                rc = refuse(m, "bundle.json does not say how many conversations follow", NULL);
        json_release(&j);
        buf_release(&text);
        return rc;
}

static int take_convs(struct importing *m, uint64_t conversations)
{
        static const char SUFFIX[] = "/manifest.json";
        const char *name;
        char prefix[2 * PLAIN_NAME_MAX + 4], before[sizeof prefix] = "";
        uint64_t size;
        int rc;
        while ((rc = tarball_next(m->tar, &name, &size, m->err)) == 1) {
                struct buf manifest;
                size_t n = strlen(name), suffix = sizeof SUFFIX - 1;
                if (n <= suffix || n - suffix >= sizeof prefix ||
                    strcmp(name + n - suffix, SUFFIX) != 0)
                        return refuse(m, "a manifest was expected", name);
                snprintf(prefix, sizeof prefix, "%.*s", (int)(n - suffix), name);
                if (strcmp(before, prefix) >= 0)
                        return refuse(m, "the conversations are not in order", name);
                memcpy(before, prefix, sizeof before);
                buf_init(&manifest, BUNDLE_MANIFEST_MAX);
                rc = read_text(m, size, BUNDLE_MANIFEST_MAX, &manifest);
                if (rc == 0 && count_commas(buf_str(&manifest)) > BUNDLE_MANIFEST_VALUES)
                        rc = refuse(m, "its manifest has too many values", name);
                if (rc == 0)
                        rc = take_conv(m, prefix, &manifest);
                buf_release(&manifest);
                if (rc)
                        return rc;
        }
        if (rc == 0 && m->count != conversations)
                rc = refuse(m, "it has not as many conversations as it says", NULL);
        return rc;
}

/* ---- into their places ---- */

static int move_old_away(struct importing *m, const struct arrival *a)
{
        struct backend_conv *conv;
        char name[TRASH_NAME];
        int rc =
            backend_conv_open(m->store->backend, str_of(a->project), str_of(a->id), &conv, m->err);
        if (rc)
                return rc == STENO_ENOTFOUND ? 0 : rc;
        rc = backend_trash_put(conv, name, m->err);
        backend_conv_release(conv);
        return rc;
}

static int install_all(struct importing *m)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < m->count; i++) {
                struct arrival *a = &m->list[i];
                if (a->fate > COPIED)
                        continue;
                if (a->fate == REPLACED)
                        rc = move_old_away(m, a);
                if (rc == 0)
                        rc = backend_incoming_install(
                            m->in, (uint32_t)i, str_of(a->project), str_of(a->id), m->err);
        }
        return rc;
}

static int report_import(const struct importing *m, char **report)
{
        uint64_t counts[sizeof FATES / sizeof *FATES] = {0};
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "conversations");
        jsonw_array(&w);
        for (size_t i = 0; i < m->count; i++) {
                const struct arrival *a = &m->list[i];
                counts[a->fate]++;
                jsonw_object(&w);
                jsonw_field_cstr(&w, "project", a->project);
                jsonw_field_cstr(&w, "id", a->id);
                if (a->was)
                        jsonw_field_cstr(&w, "was", a->was);
                jsonw_field_cstr(&w, "state", FATES[a->fate]);
                jsonw_field_u64(&w, "lastSeq", a->last_seq);
                jsonw_object_end(&w);
        }
        jsonw_array_end(&w);
        for (size_t i = 0; i < sizeof FATES / sizeof *FATES; i++)
                jsonw_field_u64(&w, FATES[i], counts[i]);
        jsonw_object_end(&w);
        *report = buf_take(&b, NULL);
        buf_release(&b);
        return *report ? 0 : error_nomem(m->err);
}

static int import_all(struct importing *m)
{
        uint64_t conversations = 0;
        int rc = take_head(m, &conversations);
        if (rc == 0)
                rc = backend_incoming_open(m->store->backend, &m->in, m->err);
        if (rc == 0)
                rc = take_convs(m, conversations);
        if (rc == 0)
                rc = install_all(m);
        backend_incoming_close(m->in);
        return rc;
}

bool steno_is_bundle(const void *p, size_t n)
{
        return tarball_is(p, n);
}

int steno_import_bundle(struct steno_store *store, const struct steno_import_options *opt,
    steno_source source, void *ctx, char **report, struct steno_error *err)
{
        struct steno_error why = {0};
        struct str legal;
        uint32_t flags = OPTION(opt, struct steno_import_options, flags, 0);
        struct importing m = {.store = store, .err = err ? err : &why};
        m.project = OPTION(opt, struct steno_import_options, project, NULL);
        m.on_conflict = OPTION(opt, struct steno_import_options, on_conflict, 0);
        m.progress = OPTION(opt, struct steno_import_options, progress, NULL);
        m.progress_ctx = OPTION(opt, struct steno_import_options, progress_ctx, NULL);
        m.new_ids = flags & STENO_IMPORT_NEW_IDS;
        m.trusted = flags & STENO_IMPORT_TRUSTED;
        if (flags & ~(uint32_t)(STENO_IMPORT_NEW_IDS | STENO_IMPORT_TRUSTED))
                return error_set(err, STENO_EINVAL, "import has no flag 0x%x", flags);
        int rc = m.project ? api_store_project(m.project, &legal, m.err) : 0;
        if (rc)
                return rc;
        m.block = malloc(BLOCK);
        rc = m.block ? tarball_reader_new(source, ctx, m.trusted, &m.tar, m.err)
                     : error_nomem(m.err);
        if (rc == 0)
                rc = import_all(&m);
        if (rc == 0 && report)
                rc = report_import(&m, report);
        for (size_t i = 0; i < m.count; i++) {
                free(m.list[i].project);
                free(m.list[i].id);
                free(m.list[i].was);
        }
        tarball_reader_free(m.tar);
        free(m.list);
        free(m.block);
        return rc;
}
