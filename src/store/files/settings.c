/*
 * settings.c - store.json: the version of a store and its settings; place.json: where it belongs.
 *
 * A store without it is recognised by its conversations, and has the default settings. A store.json
 * that cannot be used is moved aside by a repair and never overwritten, because the settings that
 * somebody made are in it.
 */
#include "store/files/conv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define SETTINGS_MAX (1 * MIB)
#define PLACE_MAX (4 * KIB)

static const char DEFAULTS[] = "{\"version\":1,\"profile\":\"default\"}\n";

/* Versions are numbered so that one changed bit never makes one of another: behind 1 come 2, 4 and
 * 7. Otherwise a changed bit would make a store look like one of a later program, which must not be
 * repaired. */
static bool is_changed_bit(uint64_t version)
{
        uint64_t differ = version ^ 1;
        return version < 10 && (differ & (differ - 1)) == 0;
}

/* Is it ours, and not from the future? */
static int check_settings(const char *json, size_t n, struct steno_error *err)
{
        struct json j;
        uint64_t version;
        json_init(&j);
        int rc = json_parse(&j, json, n, NULL, err);
        if (rc)
                rc = rc == STENO_ENOMEM ? rc : error_prefix(err, STENO_ECORRUPT, "store.json");
        else if (!json_u64(&j, json_get(&j, 0, "version"), &version))
                rc = error_set(err, STENO_ECORRUPT, "store.json has no version");
        else if (version != 1 && is_changed_bit(version))
                rc = error_set(err, STENO_ECORRUPT,
                    "store.json says version %llu, and there is none", (unsigned long long)version);
        else if (version != 1)
                rc = error_set(err, STENO_EUNSUPPORTED,
                    "the store has format version %llu; this program knows version 1",
                    (unsigned long long)version);
        json_release(&j);
        return rc;
}

int files_settings(struct files_store *s, char **json, struct steno_error *err)
{
        size_t n = 0;
        *json = NULL;
        int sys = fs_slurp(s->env->fs, s->root, "store.json", SETTINGS_MAX, json, &n);
        if (sys == -ENOENT)
                return error_set(err, STENO_ENOTFOUND, "store.json is missing");
        if (sys == -EISDIR || sys == -ELOOP || sys == -EFBIG)
                return error_set(
                    err, STENO_ECORRUPT, "store.json is not a file, or is larger than 1 MiB");
        if (sys)
                return error_sys(err, sys, "reading store.json");
        int rc = check_settings(*json, n, err);
        if (rc) {
                free(*json);
                *json = NULL;
        }
        return rc;
}

int files_set_settings(struct files_store *s, const char *json, size_t n, struct steno_error *err)
{
        int rc = check_settings(json, n, err);
        if (rc)
                return rc;
        rc = fs_replace(s->env->fs, s->root, "store.json", json, n);
        return rc ? error_sys(err, rc, "writing store.json") : 0;
}

static int note_any(void *ctx, const char *project_folder, const struct stat *st, int sys)
{
        (void)ctx, (void)project_folder, (void)st;
        return sys != -ELOOP;
}

/* Has it projects, though it has no store.json? */
static bool is_store(struct files_store *s)
{
        s->projects_dir = fs_open_dir(s->env->fs, s->root, "projects", false);
        if (s->projects_dir < 0)
                return false;
        bool any = files_each_project(s, note_any, NULL, NULL) == 1;
        s->env->fs->close(s->env->fs, s->projects_dir);
        s->projects_dir = -1;
        return any;
}

bool files_is_copied(struct files_store *s)
{
        const struct fs *fs = s->env->fs;
        struct stat st;
        struct json j;
        char *text = NULL;
        size_t n = 0;
        uint64_t inode;
        if (fs_slurp(fs, s->root, "place.json", PLACE_MAX, &text, &n))
                return false;
        json_init(&j);
        bool copied = json_parse(&j, text, n, NULL, NULL) == 0 &&
                      json_u64(&j, json_get(&j, 0, "inode"), &inode) &&
                      fs->fstat(fs, s->root, &st) == 0 && inode != (uint64_t)st.st_ino;
        json_release(&j);
        free(text);
        return copied;
}

int files_settle_place(struct files_store *s, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        struct stat st;
        char text[64];
        int sys = fs->fstat(fs, s->root, &st);
        if (sys == 0) {
                int n = snprintf(
                    text, sizeof text, "{\"inode\":%llu}\n", (unsigned long long)st.st_ino);
                sys = fs_replace(fs, s->root, "place.json", text, (size_t)n);
        }
        return sys ? error_sys(err, sys, "writing place.json") : 0;
}

/* The settings come last: a store that has them is whole. */
static int make_store(struct files_store *s, struct steno_error *err)
{
        int rc = files_settle_place(s, err);
        return rc ? rc : files_set_settings(s, DEFAULTS, sizeof DEFAULTS - 1, err);
}

int settings_prepare(struct files_store *s, bool create, struct steno_error *err)
{
        char *json = NULL;
        int rc = files_settings(s, &json, err);
        free(json);
        if (rc == STENO_ECORRUPT || (rc == STENO_ENOTFOUND && is_store(s)))
                return 0; /* calls that need them report the error */
        if (rc == STENO_ENOTFOUND && create)
                return make_store(s, err);
        if (rc == STENO_ENOTFOUND)
                return error_set(err, rc, "there is no store at %s", s->path);
        return rc;
}

int files_renew_settings(struct files_store *s, const char *why, struct steno_error *err)
{
        struct stat st;
        int sys = s->env->fs->stat(s->env->fs, s->root, "store.json", &st);
        int rc = sys == -ENOENT ? 0 : quarantine_file(s, "store.json", why, err);
        return rc ? rc : files_set_settings(s, DEFAULTS, sizeof DEFAULTS - 1, err);
}
