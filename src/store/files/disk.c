/* disk.c - see disk.h */
#include "store/files/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/conv.h"

#define NAME 32       /* hexadecimal digits of a file's name, and of its contents' */
#define DATA_NAME 100 /* "<name>.<contents>" */

/* ---- folders ---- */

static struct files_store *store_of(const struct backend_disk *disk)
{
        return (struct files_store *)disk->store;
}

/* The folder of a project's disks, or a negative errno. */
static int open_disks(struct files_store *s, struct str project, bool create)
{
        const struct fs *fs = s->env->fs;
        char folder[PLAIN_NAME_MAX + 1];
        if (s->projects_dir < 0)
                return -ENOENT;
        int rc = id_file_name(project, folder);
        int dir = rc ? -EINVAL : fs_open_dir(fs, s->projects_dir, folder, create);
        if (dir < 0)
                return dir;
        int disks = fs_open_dir(fs, dir, "disks", create);
        fs->close(fs, dir);
        return disks;
}

/* A disk that is there, for reading or under its lock. */
static int open_disk(const struct backend_disk *disk, bool lock, int *out, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        struct str project = disk->project, id = disk->id;
        const struct fs *fs = s->env->fs;
        char folder[PLAIN_NAME_MAX + 1];
        struct stat a, b;
        int disks = open_disks(s, project, false);
        int fd = disks < 0                  ? disks
                 : id_file_name(id, folder) ? -EINVAL
                                            : fs_open_dir(fs, disks, folder, false);
        int rc = fd < 0 ? fd : lock ? fs->flock(fs, fd, LOCK_EX) : 0;
        /* It may have been removed while we waited. */
        if (rc == 0 && lock &&
            (fs->stat(fs, disks, folder, &a) || fs->fstat(fs, fd, &b) || a.st_ino != b.st_ino))
                rc = -ENOENT;
        if (disks >= 0)
                fs->close(fs, disks);
        if (rc == 0) {
                *out = fd;
                return 0;
        }
        if (fd >= 0)
                fs->close(fs, fd);
        return rc == -ENOENT ? error_set(err, STENO_ENOTFOUND, "no disk \"%.*s\"", (int)id.n, id.p)
                             : error_sys(err, rc, "opening disk \"%.*s\"", (int)id.n, id.p);
}

static void put_now(struct files_store *s, struct jsonw *w, const char *key)
{
        char at[TIME_TEXT];
        time_format(s->env->now(s->env), at);
        jsonw_field_cstr(w, key, at);
}

static int disk_get(const struct backend_disk *disk, struct buf *out, struct steno_error *err);

static int disk_create(const struct backend_disk *disk, struct buf *out, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        struct str project = disk->project, id = disk->id;
        const struct fs *fs = s->env->fs;
        char folder[PLAIN_NAME_MAX + 1], aside[80];
        struct buf text;
        int rc = files_lacks_projects(s, err);
        if (rc)
                return rc;
        int disks = open_disks(s, project, true);
        int sys = disks < 0 ? disks : id_file_name(id, folder) ? -EINVAL : 0;
        buf_init(&text, META_MAX);
        struct jsonw w = jsonw_to(&text);
        jsonw_object(&w);
        jsonw_field_u64(&w, "v", 1);
        jsonw_field_str(&w, "id", id);
        put_now(s, &w, "createdAt");
        jsonw_object_end(&w);
        if (sys == 0 && text.failed)
                sys = -ENOMEM;
        /* It appears whole: made aside, synced, renamed. */
        id_make(s->env, ".new-", aside);
        int dir = sys ? sys : fs_open_dir(fs, disks, aside, true);
        if (sys == 0)
                sys = dir < 0 ? dir : fs_replace(fs, dir, "disk.json", text.p, text.n);
        if (sys == 0)
                sys = fs->rename_new(fs, disks, aside, disks, folder);
        if (sys == 0)
                sys = fs->fsync(fs, disks);
        else if (dir >= 0)
                fs_remove_tree(fs, disks, aside);
        if (dir >= 0)
                fs->close(fs, dir);
        if (disks >= 0)
                fs->close(fs, disks);
        buf_release(&text);
        if (sys == -EEXIST || sys == -ENOTEMPTY)
                return error_set(
                    err, STENO_ECONFLICT, "there is a disk \"%.*s\" already", (int)id.n, id.p);
        return sys ? error_sys(err, sys, "making disk \"%.*s\"", (int)id.n, id.p)
                   : disk_get(disk, out, err);
}

/* {"id","createdAt","updatedAt"} of an open disk. Its folder changes with every file. */
static int put_disk(struct files_store *s, int dir, struct buf *out, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        struct json j;
        struct stat st;
        char *text = NULL, at[TIME_TEXT];
        size_t n = 0;
        json_init(&j);
        int sys = fs_slurp(fs, dir, "disk.json", META_MAX, &text, &n);
        if (sys == 0)
                sys = fs->fstat(fs, dir, &st);
        int rc =
            sys ? error_sys(err, sys, "reading disk.json") : json_parse(&j, text, n, NULL, err);
        if (rc == 0) {
                struct jsonw w = jsonw_to(out);
                time_format((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000, at);
                jsonw_object(&w);
                jsonw_field_copy(&w, "id", &j, json_get(&j, 0, "id"));
                jsonw_field_copy(&w, "createdAt", &j, json_get(&j, 0, "createdAt"));
                jsonw_field_cstr(&w, "updatedAt", at);
                jsonw_object_end(&w);
                rc = buf_check(out, err);
        }
        json_release(&j);
        free(text);
        return rc;
}

static int disk_get(const struct backend_disk *disk, struct buf *out, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        int dir;
        int rc = open_disk(disk, false, &dir, err);
        if (rc)
                return rc;
        rc = put_disk(s, dir, out, err);
        s->env->fs->close(s->env->fs, dir);
        return rc;
}

static int disk_remove(const struct backend_disk *disk, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        struct str project = disk->project, id = disk->id;
        const struct fs *fs = s->env->fs;
        char folder[PLAIN_NAME_MAX + 1], aside[80];
        int dir;
        int rc = open_disk(disk, true, &dir, err);
        if (rc)
                return rc;
        int disks = open_disks(s, project, false);
        id_make(s->env, ".gone-", aside);
        int sys = disks < 0                  ? disks
                  : id_file_name(id, folder) ? -EINVAL
                                             : fs->rename_new(fs, disks, folder, disks, aside);
        if (sys == 0)
                sys = fs->fsync(fs, disks);
        if (sys == 0)
                fs_remove_tree(fs, disks, aside); /* what is left has no name any more */
        if (disks >= 0)
                fs->close(fs, disks);
        fs->close(fs, dir);
        return sys ? error_sys(err, sys, "removing disk \"%.*s\"", (int)id.n, id.p) : 0;
}

struct disk_walk {
        struct files_store *store;
        int dir;
        backend_disk_fn each;
        void *ctx;
        struct steno_error *err;
        int rc;
};

static int each_disk(void *ctx, const char *name, unsigned char type)
{
        struct disk_walk *w = ctx;
        const struct fs *fs = w->store->env->fs;
        struct buf text;
        (void)type;
        if (!id_is_file_name(str_of(name)))
                return 0;
        int dir = fs_open_dir(fs, w->dir, name, false);
        if (dir < 0)
                return 0; /* removed meanwhile, or no disk */
        buf_init(&text, META_MAX);
        if (put_disk(w->store, dir, &text, NULL) == 0)
                w->rc = w->each(w->ctx, buf_str(&text));
        buf_release(&text);
        fs->close(fs, dir);
        return w->rc != 0;
}

static int disk_each(struct backend_store *store, struct str project, backend_disk_fn each,
    void *ctx, struct steno_error *err)
{
        struct files_store *s = (struct files_store *)store;
        const struct fs *fs = s->env->fs;
        struct disk_walk w = {.store = s, .each = each, .ctx = ctx, .err = err};
        w.dir = open_disks(s, project, false);
        if (w.dir == -ENOENT)
                return 0;
        int sys = w.dir < 0 ? w.dir : fs->list(fs, w.dir, each_disk, &w);
        if (w.dir >= 0)
                fs->close(fs, w.dir);
        return sys < 0 ? error_sys(err, sys, "listing disks") : w.rc;
}

/* ---- files ---- */

/* "<name>.json" of a path. */
static int info_name(struct str path, char out[NAME + 6], struct steno_error *err)
{
        char hex[SHA256_HEX];
        if (hash_sha256_hex(path.p, path.n, hex))
                return error_nomem(err);
        snprintf(out, NAME + 6, "%.*s.json", NAME, hex);
        return 0;
}

static int no_file(struct str path, struct steno_error *err)
{
        return error_set(
            err, STENO_ENOTFOUND, "no file \"%.*s\"", (int)(path.n > 150 ? 150 : path.n), path.p);
}

/* The .json of a file: STENO_ENOTFOUND when there is none. */
static int read_info(struct files_store *s, int dir, struct str path, struct json *j, char **text,
    struct steno_error *err)
{
        char name[NAME + 6];
        size_t n = 0;
        int rc = info_name(path, name, err);
        if (rc)
                return rc;
        int sys = fs_slurp(s->env->fs, dir, name, META_MAX, text, &n);
        if (sys == -ENOENT)
                return no_file(path, err);
        if (sys)
                return error_sys(err, sys, "reading %s", name);
        rc = json_parse(j, *text, n, NULL, err);
        return rc ? error_set(err, STENO_ECORRUPT, "%s of a disk is damaged", name) : 0;
}

/* What the outside sees of it. */
static void put_info(struct buf *out, const struct json *j)
{
        static const char *const SHOWN[] = {
            "path", "mime", "size", "sha256", "meta", "createdAt", "updatedAt"};
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        for (size_t i = 0; i < sizeof SHOWN / sizeof *SHOWN; i++)
                jsonw_field_copy(&w, SHOWN[i], j, json_get(j, 0, SHOWN[i]));
        jsonw_object_end(&w);
}

struct counting {
        size_t files;
};

static int count_file(void *ctx, const char *name, unsigned char type)
{
        struct counting *c = ctx;
        size_t n = strlen(name);
        (void)type;
        c->files += n == NAME + 5 && strcmp(name + NAME, ".json") == 0;
        return 0;
}

/* The new .json, from the old one (may be empty) and what is put. */
static int write_info(struct files_store *s, const struct json *old,
    const struct backend_disk_file *f, const char *data, const char *sha256, struct buf *out,
    struct steno_error *err)
{
        bool had = old->count > 0;
        json_ref meta = had ? json_get(old, 0, "meta") : JSON_NONE;
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_u64(&w, "v", 1);
        jsonw_field_str(&w, "path", f->path);
        if (f->keep_bytes) {
                static const char *const KEPT[] = {"mime", "size", "sha256", "data"};
                for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++)
                        jsonw_field_copy(&w, KEPT[i], old, json_get(old, 0, KEPT[i]));
        } else {
                jsonw_field_str(&w, "mime", f->mime.n ? f->mime : STR("application/octet-stream"));
                jsonw_field_u64(&w, "size", f->bytes.n);
                jsonw_field_cstr(&w, "sha256", sha256);
                jsonw_field_cstr(&w, "data", data);
        }
        jsonw_field_raw(&w, "meta",
            f->meta.p           ? f->meta
            : meta != JSON_NONE ? json_raw(old, meta)
                                : STR("{}"));
        if (had)
                jsonw_field_copy(&w, "createdAt", old, json_get(old, 0, "createdAt"));
        else
                put_now(s, &w, "createdAt");
        put_now(s, &w, "updatedAt");
        jsonw_object_end(&w);
        return buf_check(out, err);
}

/* Writes the bytes, unless they are there. */
static int write_data(struct files_store *s, int dir, const char *name, struct str bytes)
{
        const struct fs *fs = s->env->fs;
        struct stat st;
        if (fs->stat(fs, dir, name, &st) == 0 && (uint64_t)st.st_size == bytes.n)
                return 0;
        return fs_replace(fs, dir, name, bytes.p, bytes.n);
}

/* Under the lock. */
static int put_locked(struct files_store *s, int dir, const struct backend_disk_file *f,
    const struct json *old, struct buf *out, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char name[NAME + 6], sha256[SHA256_HEX], data[DATA_NAME];
        struct buf text;
        struct json made;
        int rc = info_name(f->path, name, err);
        if (rc == 0 && hash_sha256_hex(f->bytes.n ? f->bytes.p : "", f->bytes.n, sha256))
                rc = error_nomem(err);
        if (rc)
                return rc;
        snprintf(data, sizeof data, "%.*s.%.*s", NAME, name, NAME, sha256);
        buf_init(&text, META_MAX);
        json_init(&made);
        int sys = f->keep_bytes ? 0 : write_data(s, dir, data, f->bytes);
        rc = sys ? error_sys(err, sys, "writing a file of a disk")
                 : write_info(s, old, f, data, sha256, &text, err);
        if (rc == 0 && (sys = fs_replace(fs, dir, name, text.p, text.n)) != 0)
                rc = error_sys(err, sys, "writing a file of a disk");
        if (rc == 0)
                rc = json_parse(&made, text.p, text.n, NULL, err);
        if (rc == 0) {
                /* The bytes before them have no name any more. */
                char *before = old->count ? json_dup_string(old, json_get(old, 0, "data")) : NULL;
                if (before && !f->keep_bytes && strcmp(before, data) != 0)
                        fs->unlink(fs, dir, before, 0);
                free(before);
                put_info(out, &made);
                rc = buf_check(out, err);
        }
        json_release(&made);
        buf_release(&text);
        return rc;
}

static int has_room(struct files_store *s, int dir, struct steno_error *err)
{
        struct counting c = {0};
        int sys = s->env->fs->list(s->env->fs, dir, count_file, &c);
        if (sys < 0)
                return error_sys(err, sys, "listing a disk");
        return c.files < DISK_FILES_MAX
                   ? 0
                   : error_set(err, STENO_ELIMIT, "a disk has at most %d files", DISK_FILES_MAX);
}

static int disk_put(const struct backend_disk *disk, const struct backend_disk_file *f,
    struct buf *out, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        struct json old;
        char *text = NULL;
        int dir;
        if (f->bytes.n > DISK_FILE_MAX)
                return error_set(err, STENO_ELIMIT, "a file of a disk has at most 16 MiB");
        int rc = open_disk(disk, true, &dir, err);
        if (rc)
                return rc;
        json_init(&old);
        rc = read_info(s, dir, f->path, &old, &text, err);
        if (rc == STENO_ENOTFOUND && !f->keep_bytes)
                rc = has_room(s, dir, err);
        if (rc == 0)
                rc = put_locked(s, dir, f, &old, out, err);
        json_release(&old);
        free(text);
        s->env->fs->close(s->env->fs, dir);
        return rc;
}

static int disk_file(
    const struct backend_disk *disk, struct str path, struct buf *out, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        struct json j;
        char *text = NULL;
        int dir;
        int rc = open_disk(disk, false, &dir, err);
        if (rc)
                return rc;
        json_init(&j);
        rc = read_info(s, dir, path, &j, &text, err);
        if (rc == 0) {
                put_info(out, &j);
                rc = buf_check(out, err);
        }
        json_release(&j);
        free(text);
        s->env->fs->close(s->env->fs, dir);
        return rc;
}

static int disk_read(const struct backend_disk *disk, struct str path, char **bytes, size_t *n,
    struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        const struct fs *fs = s->env->fs;
        struct json j;
        char *text = NULL, *data = NULL;
        int dir, sys = -ENOENT;
        int rc = open_disk(disk, false, &dir, err);
        if (rc)
                return rc;
        /* Between the two reads the file may be replaced, and its bytes go: look again. */
        for (int tries = 0; rc == 0 && sys == -ENOENT && tries < 3; tries++) {
                json_init(&j);
                rc = read_info(s, dir, path, &j, &text, err);
                data = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "data"));
                if (data)
                        sys = fs_slurp(fs, dir, data, DISK_FILE_MAX, bytes, n);
                free(data);
                json_release(&j);
                free(text);
                text = NULL;
        }
        if (rc == 0 && sys)
                rc = error_sys(err, sys, "reading a file of a disk");
        fs->close(fs, dir);
        return rc;
}

static int disk_delete(const struct backend_disk *disk, struct str path, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        const struct fs *fs = s->env->fs;
        struct json j;
        char name[NAME + 6], *text = NULL;
        int dir;
        int rc = open_disk(disk, true, &dir, err);
        if (rc)
                return rc;
        json_init(&j);
        rc = read_info(s, dir, path, &j, &text, err);
        if (rc == 0)
                rc = info_name(path, name, err);
        if (rc == 0) {
                char *data = json_dup_string(&j, json_get(&j, 0, "data"));
                int sys = fs->unlink(fs, dir, name, 0);
                if (sys == 0)
                        sys = fs->fsync(fs, dir);
                if (sys == 0 && data)
                        fs->unlink(fs, dir, data, 0);
                rc = sys ? error_sys(err, sys, "removing a file of a disk") : 0;
                free(data);
        }
        json_release(&j);
        free(text);
        fs->close(fs, dir);
        return rc;
}

static int each_file(void *ctx, const char *name, unsigned char type)
{
        struct disk_walk *w = ctx;
        struct counting is_info = {0};
        struct json j;
        struct buf out;
        char *text = NULL;
        size_t n = 0;
        count_file(&is_info, name, type);
        if (!is_info.files || fs_slurp(w->store->env->fs, w->dir, name, META_MAX, &text, &n))
                return 0; /* removed meanwhile */
        json_init(&j);
        buf_init(&out, META_MAX);
        if (json_parse(&j, text, n, NULL, NULL) == 0) {
                put_info(&out, &j);
                w->rc = out.failed ? error_nomem(w->err) : w->each(w->ctx, buf_str(&out));
        }
        buf_release(&out);
        json_release(&j);
        free(text);
        return w->rc != 0;
}

static int disk_each_file(
    const struct backend_disk *disk, backend_disk_fn each, void *ctx, struct steno_error *err)
{
        struct files_store *s = store_of(disk);
        const struct fs *fs = s->env->fs;
        struct disk_walk w = {.store = s, .each = each, .ctx = ctx, .err = err};
        int rc = open_disk(disk, false, &w.dir, err);
        if (rc)
                return rc;
        int sys = fs->list(fs, w.dir, each_file, &w);
        fs->close(fs, w.dir);
        return sys < 0 ? error_sys(err, sys, "listing a disk") : w.rc;
}

const struct backend_disks disk_calls = {
    .create = disk_create,
    .get = disk_get,
    .remove = disk_remove,
    .each = disk_each,
    .put = disk_put,
    .file = disk_file,
    .read = disk_read,
    .unlink = disk_delete,
    .each_file = disk_each_file,
};

/* ---- backups ---- */

struct disk_copying {
        const struct fs *fs;
        int from;
        int to;
        int depth; /* what is listed: 0 projects, 3 a project, 1 its disks, 2 a disk */
        uint64_t *bytes;
};

static int copy_below(void *ctx, const char *name, unsigned char type);

/* A folder of the store into the folder of the same name of the backup. */
static int copy_folder(struct disk_copying *c, const char *name, bool afresh, int depth)
{
        const struct fs *fs = c->fs;
        int from = fs_open_dir(fs, c->from, name, false);
        if (from < 0)
                return from == -ENOENT || from == -ENOTDIR || from == -ELOOP ? 0 : from;
        int rc = depth == 2 ? fs->flock(fs, from, LOCK_EX) : 0;
        if (rc == 0 && afresh) {
                rc = fs_remove_tree(fs, c->to, name);
                rc = rc == -ENOENT ? 0 : rc;
        }
        int to = rc ? rc : fs_open_dir(fs, c->to, name, true);
        struct disk_copying below = {
            .fs = fs, .from = from, .to = to, .depth = depth, .bytes = c->bytes};
        rc = to < 0 ? to : fs->list(fs, from, copy_below, &below);
        if (rc == 0)
                rc = fs->fsync(fs, to);
        if (to >= 0)
                fs->close(fs, to);
        fs->close(fs, from);
        return rc;
}

static int copy_below(void *ctx, const char *name, unsigned char type)
{
        struct disk_copying *c = ctx;
        struct stat st;
        (void)type;
        if (c->depth == 0)
                return id_is_file_name(str_of(name)) ? copy_folder(c, name, false, 3) : 0;
        if (c->depth == 3) /* a project: its disks, whole, so that removed ones go */
                return strcmp(name, "disks") == 0 ? copy_folder(c, name, true, 1) : 0;
        if (c->depth == 1)
                return id_is_file_name(str_of(name)) ? copy_folder(c, name, false, 2) : 0;
        if (c->fs->stat(c->fs, c->from, name, &st) || !S_ISREG(st.st_mode))
                return 0;
        *c->bytes += (uint64_t)st.st_size;
        return fs_share(c->fs, c->from, name, c->to, name);
}

int disk_backup(struct files_store *s, int to, uint64_t *bytes)
{
        struct disk_copying c = {.fs = s->env->fs, .from = s->root, .to = to, .bytes = bytes};
        return s->projects_dir < 0 ? 0 : copy_folder(&c, "projects", false, 0);
}
