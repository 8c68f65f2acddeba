/*
 * meta.c - meta.json: what is known of a conversation beside its messages. Replaced as a whole,
 * under the conversation's lock.
 *
 * It says id and project too, for people and for folders with a hashed name. If the file is lost or
 * belongs to another conversation (conv_names.c), readers get the correct names, and the next
 * change of the conversation writes them.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

static bool says(const struct json *j, const char *key, const char *text)
{
        return json_is(j, json_get(j, 0, key), text);
}

/* What a meta.json has to say. */
struct names {
        const char *id;
        const char *project;
        const char *created; /* added where it is missing; "": not known */
};

/* An object with these names and everything else that `old` (an object, or empty) has. */
static void put_named(struct buf *out, const struct json *old, const struct names *names)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", names->id);
        jsonw_field_cstr(&w, "project", names->project);
        if (names->created[0] && json_get(old, 0, "createdAt") == JSON_NONE) {
                jsonw_field_cstr(&w, "createdAt", names->created);
        }
        for (json_ref k = json_child(old, 0); k != JSON_NONE; k = json_next_key(old, 0, k)) {
                if (json_is(old, k, "id") || json_is(old, k, "project"))
                        continue;
                jsonw_copy_member(&w, old, k);
        }
        jsonw_object_end(&w);
        buf_putc(out, '\n');
}

/*
 * meta.json with the right names, and the time where one is given: 1 and `out`, when the file lacks
 * them; 0 and *text, when it is right or no object at all; or a negative errno.
 */
static int read_named(const struct fs *fs, int dir, const struct names *names, char **text,
    size_t *n, struct buf *out)
{
        struct json j;
        int sys = fs_slurp(fs, dir, "meta.json", META_MAX, text, n);
        if (sys && sys != -ENOENT)
                return sys;
        json_init(&j);
        int rc = sys ? json_parse(&j, "{}", 2, NULL, NULL) : json_parse(&j, *text, *n, NULL, NULL);
        bool wrong = rc == 0 && json_type(&j, 0) == JSON_OBJECT &&
                     (!says(&j, "id", names->id) || !says(&j, "project", names->project) ||
                         (names->created[0] && json_get(&j, 0, "createdAt") == JSON_NONE));
        if (wrong)
                put_named(out, &j, names);
        json_release(&j);
        return rc == STENO_ENOMEM || out->failed ? -ENOMEM : wrong;
}

int files_conv_meta(struct files_conv *c, char **json, size_t *n, struct steno_error *err)
{
        char *text = NULL;
        struct buf out;
        buf_init(&out, META_MAX);
        struct names names = {c->id, c->project_id, ""};
        int rc = read_named(c->store->env->fs, c->dir, &names, &text, n, &out);
        if (rc == 1) {
                free(text);
                text = buf_take(&out, n);
                rc = text ? 0 : -ENOMEM;
        }
        buf_release(&out);
        if (rc) {
                free(text);
                return error_sys(err, rc, "reading meta.json");
        }
        *json = text;
        return 0;
}

bool meta_created(const struct fs *fs, int dir, char out[TIME_TEXT])
{
        struct stat st;
        struct buf line;
        struct record first;
        memset(out, 0, TIME_TEXT);
        buf_init(&line, 0);
        int log = fs->open(fs, dir, "messages.jsonl", O_RDONLY, 0);
        if (log >= 0 && fs->fstat(fs, log, &st) == 0 &&
            log_read_at(fs, log, (uint64_t)st.st_size, 0, &line, &first, NULL) == 0 &&
            first.at.n == TIME_TEXT - 1)
                memcpy(out, first.at.p, first.at.n);
        if (log >= 0)
                fs->close(fs, log);
        buf_release(&line);
        return out[0] != '\0';
}

int meta_set_names(const struct fs *fs, int dir, const char *id, const char *project)
{
        char *text = NULL, created[TIME_TEXT];
        size_t n = 0;
        struct buf out;
        buf_init(&out, META_MAX);
        meta_created(fs, dir, created);
        struct names names = {id, project, created};
        int rc = read_named(fs, dir, &names, &text, &n, &out);
        if (rc == 1)
                rc = fs_replace(fs, dir, "meta.json", out.p, out.n);
        free(text);
        buf_release(&out);
        return rc;
}

void meta_refresh(struct files_conv *c)
{
        if (c->meta_stale && c->named &&
            meta_set_names(c->store->env->fs, c->dir, c->id, c->project_id) == 0)
                c->meta_stale = false;
}

static void put_with_uid(const struct json *j, const char *uid, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k))
                if (!json_is(j, k, "uid"))
                        jsonw_copy_member(&w, j, k);
        jsonw_field_cstr(&w, "uid", uid);
        jsonw_object_end(&w);
        buf_putc(out, '\n');
}

int meta_uid(struct files_conv *c, char out[META_UID], struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        char *text = NULL;
        size_t n = 0;
        struct json j;
        struct buf b;
        meta_refresh(c);
        int rc = files_conv_meta(c, &text, &n, err);
        if (rc)
                return rc;
        json_init(&j);
        buf_init(&b, META_MAX);
        rc = json_parse(&j, text, n, NULL, err);
        if (rc == 0 && json_type(&j, 0) != JSON_OBJECT)
                rc = STENO_EPROTO;
        if (rc == STENO_EPROTO)
                rc = error_set(err, STENO_ECORRUPT, "meta.json is not a JSON object");
        struct str uid = json_inner(&j, json_get(&j, 0, "uid"));
        if (rc == 0 && uid.n == META_UID - 1 && id_is_plain(uid)) {
                snprintf(out, META_UID, "%.*s", (int)uid.n, uid.p);
        } else if (rc == 0) {
                id_make(c->store->env, "", out);
                put_with_uid(&j, out, &b);
                rc = buf_check(&b, err);
                int sys = rc ? 0 : fs_replace(fs, c->dir, "meta.json", b.p, b.n);
                rc = sys ? error_sys(err, sys, "writing meta.json") : rc;
        }
        json_release(&j);
        buf_release(&b);
        free(text);
        return rc;
}

int meta_rename(const struct env *env, int dir, const char *id, const char *project)
{
        char *text = NULL, uid[META_UID];
        size_t n = 0;
        struct json j;
        struct buf b;
        int sys = fs_slurp(env->fs, dir, "meta.json", META_MAX, &text, &n);
        if (sys)
                return sys;
        json_init(&j);
        buf_init(&b, META_MAX);
        if (json_parse(&j, text, n, NULL, NULL) || json_type(&j, 0) != JSON_OBJECT) {
                sys = -EINVAL;
        } else {
                struct jsonw w = jsonw_to(&b);
                id_make(env, "", uid);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "id", id);
                jsonw_field_cstr(&w, "project", project);
                for (json_ref k = json_child(&j, 0); k != JSON_NONE; k = json_next_key(&j, 0, k))
                        if (!json_is(&j, k, "id") && !json_is(&j, k, "project") &&
                            !json_is(&j, k, "uid"))
                                jsonw_copy_member(&w, &j, k);
                jsonw_field_cstr(&w, "uid", uid);
                jsonw_object_end(&w);
                buf_putc(&b, '\n');
                sys = b.failed ? -ENOMEM : fs_replace(env->fs, dir, "meta.json", b.p, b.n);
        }
        json_release(&j);
        buf_release(&b);
        free(text);
        return sys;
}

int files_conv_change_meta(struct files_conv *c,
    int (*change)(void *ctx, struct str old, struct buf *out, struct steno_error *err), void *ctx,
    struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        struct buf out;
        char *old = NULL;
        size_t n = 0;
        int rc = files_conv_lock(c, err);
        if (rc)
                return rc;
        buf_init(&out, META_MAX);
        meta_refresh(c);
        rc = files_conv_meta(c, &old, &n, err);
        if (rc == 0)
                rc = change(ctx, str_span(old, n), &out, err);
        if (rc == 0)
                rc = buf_check(&out, err);
        if (rc == 0)
                rc = recent_note(c, err);
        if (rc == 0) {
                int sys = fs_replace(fs, c->dir, "meta.json", out.p, out.n);
                if (sys)
                        rc = error_sys(err, sys, "writing meta.json");
        }
        files_conv_unlock(c);
        buf_release(&out);
        free(old);
        return rc;
}
