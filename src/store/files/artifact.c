/*
 * artifact.c - see artifact.h: writing artifacts as they stream in, and finding them again.
 */
#include "store/files/artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/manifest.h"
#include "store/files/whole.h"

#define NAME_TRIES 10000
#define LINES_MAX (256 * MIB)

struct artifact {
        struct backend_artifact base;
        struct files_conv *conv;
        const struct fs *fs;
        int artifacts; /* descriptors of the two folders */
        int folder;
        int fd;
        int index; /* descriptor of the line index; -1: not begun, -2: given up */
        struct sha256 sha;
        struct artifact_info info;
        bool broken; /* a write failed: it cannot be closed any more */
        struct quota_share share;
        bool unlimited; /* ignores the quota */
};

const char *const artifact_suffixes[ARTIFACT_SUFFIXES] = {".json", ".txt", ".bin", ".log"};

/* ---- folders and names ---- */

static int open_artifacts(struct files_conv *conv, bool create)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        return fs_open_dir(fs, files_conv_dir(conv), "artifacts", create);
}

static bool is_taken(const struct fs *fs, int folder, const char *base, const char *except)
{
        char name[100];
        struct stat st;
        for (size_t i = 0; i < ARTIFACT_SUFFIXES; i++) {
                snprintf(name, sizeof name, "%s%s", base, artifact_suffixes[i]);
                if (strcmp(artifact_suffixes[i], except) != 0 &&
                    fs->stat(fs, folder, name, &st) != -ENOENT)
                        return true;
        }
        return false;
}

/* A2: whoever makes the file first has the name, with every suffix that it may get. */
static int take_name(struct artifact *a, struct str want, struct steno_error *err)
{
        const char *suffix = strcmp(a->info.kind, "terminal") == 0 ? ".log" : ".txt";
        char base[BACKEND_ARTIFACT_NAME];
        int rc = 0;
        for (int n = 0; n < NAME_TRIES; n++) {
                if (backend_artifact_name(want, n, base))
                        return error_nomem(err);
                snprintf(a->info.name, sizeof a->info.name, "%s%s", base, suffix);
                a->fd =
                    a->fs->open(a->fs, a->folder, a->info.name, O_RDWR | O_CREAT | O_EXCL, 0600);
                if (a->fd == -EEXIST)
                        continue;
                if (a->fd < 0)
                        return error_sys(err, a->fd, "making an artifact");
                if (!is_taken(a->fs, a->folder, base, suffix)) {
                        rc = a->fs->flock(a->fs, a->fd, LOCK_EX | LOCK_NB);
                        return rc ? error_sys(err, rc, "locking an artifact") : 0;
                }
                a->fs->unlink(a->fs, a->folder, a->info.name, 0);
                a->fs->close(a->fs, a->fd);
                a->fd = -1;
        }
        return error_set(err, STENO_ELIMIT, "no free name for an artifact of call \"%.*s\"",
            (int)(want.n > 60 ? 60 : want.n), want.p);
}

/* ---- writing ---- */

static int put_line(struct artifact *a, bool sync, struct steno_error *err)
{
        struct buf line;
        buf_init(&line, 64 * KIB);
        backend_manifest_put(&line, &a->info);
        int rc = buf_check(&line, err);
        if (rc == 0)
                rc = manifest_append(a->fs, a->artifacts, buf_str(&line), sync, err);
        buf_release(&line);
        return rc;
}

/* Makes the file. `announce`: the manifest names it before it is closed. */
static int begin(struct files_conv *conv, const struct artifact_info *as, struct str want,
    bool announce, struct artifact **out, struct steno_error *err)
{
        const struct env *env = files_env(files_conv_store(conv));
        struct artifact *a = calloc(1, sizeof *a);
        if (!a)
                return error_nomem(err);
        int rc;
        a->base.ops = &files_backend;
        a->conv = conv;
        a->fs = env->fs;
        a->fd = a->folder = a->index = -1;
        a->unlimited = !announce; /* its bytes had their room before they were lost */
        memcpy(a->info.id, as->id, sizeof a->info.id);
        memcpy(a->info.kind, as->kind, sizeof a->info.kind);
        memcpy(a->info.hint, as->hint, sizeof a->info.hint);
        a->info.created = as->created;
        a->artifacts = open_artifacts(conv, true);
        if (a->artifacts >= 0)
                a->folder = fs_open_dir(a->fs, a->artifacts, as->kind, true);
        if (a->artifacts < 0 || a->folder < 0) {
                rc = error_sys(err, a->artifacts < 0 ? a->artifacts : a->folder,
                    "opening the folder of artifacts");
                goto fail;
        }
        if (hash_sha256_init(&a->sha)) {
                rc = error_nomem(err);
                goto fail;
        }
        rc = take_name(a, want, err);
        if (rc == 0 && announce)
                rc = put_line(a, false, err);
        if (rc)
                goto fail;
        *out = a;
        return 0;
fail:
        if (a->fd >= 0)
                a->fs->unlink(a->fs, a->folder, a->info.name, 0);
        artifact_free(a);
        return rc;
}

int artifact_begin(struct files_conv *conv, const char *kind, struct str want, struct str hint,
    struct artifact **out, struct steno_error *err)
{
        const struct env *env = files_env(files_conv_store(conv));
        struct artifact_info as = {.created = env->now(env)};
        id_make(env, "ctx_", as.id);
        snprintf(as.kind, sizeof as.kind, "%s", kind);
        snprintf(as.hint, sizeof as.hint, "%.*s", (int)hint.n, hint.p);
        return begin(conv, &as, want, true, out, err);
}

const char *artifact_id(const struct artifact *a)
{
        return a->info.id;
}

int artifact_write(struct artifact *a, const void *p, size_t n, struct steno_error *err)
{
        int rc = a->unlimited ? 0 : quota_take(a->conv, &a->share, n, err);
        if (rc)
                return rc;
        rc = fs_write_all(a->fs, a->fd, p, n);
        if (rc) {
                a->broken = true;
                return error_sys(err, rc, "writing artifact %s", a->info.id);
        }
        hash_sha256_update(&a->sha, p, n);
        a->info.size += n;
        return 0;
}

void artifact_lift_quota(struct artifact *a)
{
        a->unlimited = true;
}

/* Gives it the suffix that its contents call for. */
static int final_name(struct artifact *a, const char *suffix)
{
        char name[sizeof a->info.name];
        char *dot = strrchr(a->info.name, '.');
        if (strcmp(dot, suffix) == 0)
                return 0;
        snprintf(name, sizeof name, "%.*s%s", (int)(dot - a->info.name), a->info.name, suffix);
        int rc = a->fs->rename_new(a->fs, a->folder, a->info.name, a->folder, name);
        if (rc == 0)
                snprintf(a->info.name, sizeof a->info.name, "%s", name);
        return rc;
}

static int open_index(struct artifact *a)
{
        char name[64];
        int dir = fs_open_dir(a->fs, a->artifacts, ".idx", true);
        if (dir < 0)
                return dir;
        snprintf(name, sizeof name, "%s.lines", a->info.id);
        int fd = a->fs->open(a->fs, dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        a->fs->close(a->fs, dir);
        return fd;
}

/* The line index is derived, so an error here is ignored. But nothing may be written behind a gap.
 */
void artifact_index(struct artifact *a, struct str bytes)
{
        if (!bytes.n || a->index == -2)
                return;
        if (a->index == -1)
                a->index = open_index(a);
        if (a->index >= 0 && fs_write_all(a->fs, a->index, bytes.p, bytes.n) == 0)
                return;
        if (a->index >= 0)
                a->fs->close(a->fs, a->index);
        a->index = -2;
}

int artifact_close(struct artifact *a, const struct artifact_end *end, struct artifact_info *info,
    struct steno_error *err)
{
        unsigned char sum[SHA256_SIZE];
        if (a->broken)
                return error_set(err, STENO_EIO, "a write of artifact %s failed", a->info.id);
        int rc = a->fs->fsync(a->fs, a->fd);
        if (rc == 0)
                rc = final_name(a, end->suffix);
        if (rc == 0)
                rc = a->fs->fsync(a->fs, a->folder);
        if (rc == 0)
                rc = a->fs->fsync(a->fs, files_conv_dir(a->conv)); /* artifacts/ itself (S3) */
        if (rc) {
                a->broken = true;
                return error_sys(err, rc, "syncing artifact %s", a->info.id);
        }
        if (a->info.state != ARTIFACT_CLOSED) { /* else this is tried again */
                hash_sha256_finish(&a->sha, sum);
                hash_hex(sum, sizeof sum, a->info.sha256);
                artifact_index(a, end->line_index);
        }
        snprintf(a->info.mime, sizeof a->info.mime, "%s", end->mime);
        if (end->hint.n)
                snprintf(a->info.hint, sizeof a->info.hint, "%.*s", (int)end->hint.n, end->hint.p);
        a->info.lines = end->lines;
        a->info.utf8 = end->utf8;
        a->info.state = ARTIFACT_CLOSED;
        rc = put_line(a, true, err);
        if (rc == 0 && info)
                *info = a->info;
        return rc;
}

void artifact_free(struct artifact *a)
{
        if (!a)
                return;
        hash_sha256_release(&a->sha);
        quota_settle(a->conv, &a->share);
        if (a->index >= 0)
                a->fs->close(a->fs, a->index);
        if (a->fd >= 0)
                a->fs->close(a->fs, a->fd);
        if (a->folder >= 0)
                a->fs->close(a->fs, a->folder);
        if (a->artifacts >= 0)
                a->fs->close(a->fs, a->artifacts);
        free(a);
}

/* ---- reading ---- */

/* Opens the file of an artifact; negative errno. While its last name is not in the manifest yet
 * it may have any of them; no other can have one (A2). */
static int open_file(struct files_conv *conv, const struct artifact_info *info, int flags)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        const char *dot = strrchr(info->name, '.');
        int artifacts = open_artifacts(conv, false);
        if (artifacts < 0)
                return artifacts;
        int folder = fs->open(fs, artifacts, info->kind, O_RDONLY | O_DIRECTORY, 0);
        int fd = folder < 0 ? folder : fs->open(fs, folder, info->name, flags, 0);
        for (size_t i = 0; fd == -ENOENT && info->state == ARTIFACT_OPEN && dot && folder >= 0 &&
                           i < ARTIFACT_SUFFIXES;
             i++) {
                char name[sizeof info->name + 8];
                snprintf(name, sizeof name, "%.*s%s", (int)(dot - info->name), info->name,
                    artifact_suffixes[i]);
                fd = fs->open(fs, folder, name, flags, 0);
        }
        if (folder >= 0)
                fs->close(fs, folder);
        fs->close(fs, artifacts);
        return fd;
}

/* An open artifact's size and whether its writer lives are in the file, not in the manifest.
 * False: a power cut took the file, and nobody had been told of it. */
static bool look_at_open(struct files_conv *conv, struct artifact_info *info)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct stat st;
        if (info->state != ARTIFACT_OPEN)
                return true;
        snprintf(info->mime, sizeof info->mime, "text/plain");
        int fd = open_file(conv, info, O_RDONLY);
        if (fd < 0)
                return fd != -ENOENT;
        if (fs->fstat(fs, fd, &st) == 0)
                info->size = (uint64_t)st.st_size;
        info->live = fs->flock(fs, fd, LOCK_SH | LOCK_NB) == -EWOULDBLOCK;
        fs->close(fs, fd);
        return true;
}

int artifact_find(
    struct files_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        int artifacts = open_artifacts(conv, false);
        int rc = STENO_ENOTFOUND;
        if (artifacts >= 0) {
                rc = manifest_find(fs, artifacts, id, out, err);
                fs->close(fs, artifacts);
        } else if (artifacts != -ENOENT) {
                return error_sys(err, artifacts, "opening the folder of artifacts");
        }
        if (rc == 0 && !look_at_open(conv, out))
                rc = STENO_ENOTFOUND;
        if (rc == STENO_ENOTFOUND)
                return error_set(err, rc, "no ref \"%.*s\" in this conversation",
                    (int)(id.n > 80 ? 80 : id.n), id.p);
        return rc;
}

int artifact_each(struct files_conv *conv, int (*each)(void *ctx, const struct artifact_info *info),
    void *ctx, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct artifact_info *list = NULL;
        size_t count = 0;
        int artifacts = open_artifacts(conv, false);
        if (artifacts == -ENOENT)
                return 0;
        if (artifacts < 0)
                return error_sys(err, artifacts, "opening the folder of artifacts");
        int rc = manifest_read(fs, artifacts, &list, &count, err);
        fs->close(fs, artifacts);
        while (rc == 0 && count-- > 0) {
                if (look_at_open(conv, &list[count]))
                        rc = each(ctx, &list[count]);
        }
        free(list);
        return rc;
}

int artifact_open(struct files_conv *conv, const struct artifact_info *info, int *fd,
    uint64_t *size, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct artifact_info now = *info;
        struct stat st;
        int f = open_file(conv, &now, O_RDONLY);
        /* It may have got its final name since it was looked up. */
        if (f == -ENOENT && info->state == ARTIFACT_OPEN &&
            artifact_find(conv, str_of(info->id), &now, NULL) == 0)
                f = open_file(conv, &now, O_RDONLY);
        if (f == -ENOENT)
                return error_set(err, STENO_ECORRUPT, "the file of ref %s is missing", info->id);
        int rc = f < 0 ? f : fs->fstat(fs, f, &st);
        if (rc) {
                if (f >= 0)
                        fs->close(fs, f);
                return error_sys(err, rc, "opening artifact %s", info->id);
        }
        *fd = f;
        *size = (uint64_t)st.st_size;
        return 0;
}

int artifact_lines(struct files_conv *conv, const struct artifact_info *info, char **p, size_t *n,
    struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        char name[64];
        *p = NULL;
        *n = 0;
        int artifacts = open_artifacts(conv, false);
        int dir =
            artifacts < 0 ? artifacts : fs->open(fs, artifacts, ".idx", O_RDONLY | O_DIRECTORY, 0);
        snprintf(name, sizeof name, "%s.lines", info->id);
        int rc = dir < 0 ? 0 : fs_slurp(fs, dir, name, LINES_MAX, p, n);
        if (dir >= 0)
                fs->close(fs, dir);
        if (artifacts >= 0)
                fs->close(fs, artifacts);
        return rc == -ENOMEM ? error_nomem(err) : 0;
}

int artifact_verify(
    struct files_conv *conv, const struct artifact_info *info, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct whole w = {.what = info->id, .size = info->size, .sha256 = info->sha256};
        uint64_t size;
        int fd;
        int rc = artifact_open(conv, info, &fd, &size, err);
        if (rc)
                return rc;
        rc = whole_read(fs, fd, &w, NULL, NULL, err);
        fs->close(fs, fd);
        return rc;
}

/* ---- removing ---- */

static int remove_file(struct files_conv *conv, const struct artifact_info *info)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        int artifacts = open_artifacts(conv, false);
        int folder = artifacts < 0 ? artifacts
                                   : fs->open(fs, artifacts, info->kind, O_RDONLY | O_DIRECTORY, 0);
        int rc = folder < 0 ? folder : fs->unlink(fs, folder, info->name, 0);
        if (rc == 0)
                rc = fs->fsync(fs, folder);
        if (folder >= 0)
                fs->close(fs, folder);
        if (artifacts >= 0) {
                char index[80];
                snprintf(index, sizeof index, ".idx/%s.lines", info->id);
                fs->unlink(fs, artifacts, index, 0); /* derived: whether it was there or not */
        }
        if (rc == 0)
                quota_give_back(conv, info->size);
        if (artifacts >= 0)
                fs->close(fs, artifacts);
        return rc == -ENOENT ? 0 : rc;
}

int artifact_delete(
    struct files_conv *conv, const char *id, const char *by, struct steno_error *err)
{
        const struct env *env = files_env(files_conv_store(conv));
        struct artifact_info info;
        struct buf line;
        int rc = artifact_find(conv, str_of(id), &info, err);
        if (rc || info.state == ARTIFACT_DELETED)
                return rc;
        info.state = ARTIFACT_DELETED;
        info.deleted_at = env->now(env);
        snprintf(info.deleted_by, sizeof info.deleted_by, "%s", by);
        int artifacts = open_artifacts(conv, false);
        if (artifacts < 0)
                return error_sys(err, artifacts, "opening the folder of artifacts");
        buf_init(&line, 64 * KIB);
        backend_manifest_put(&line, &info);
        rc = buf_check(&line, err);
        /* The tombstone first: a ref never answers "no such file". */
        if (rc == 0)
                rc = manifest_append(env->fs, artifacts, buf_str(&line), true, err);
        if (rc == 0) {
                int sys = remove_file(conv, &info);
                if (sys)
                        rc = error_sys(err, sys, "removing artifact %s", id);
        }
        buf_release(&line);
        env->fs->close(env->fs, artifacts);
        return rc;
}

void artifact_undo(struct files_conv *conv, const char *id)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct artifact_info info;
        if (artifact_find(conv, str_of(id), &info, NULL))
                return;
        if (info.state == ARTIFACT_OPEN) {
                /* On a full disk, this makes the room for the tombstone. */
                int fd = open_file(conv, &info, O_WRONLY);
                if (fd >= 0) {
                        fs->ftruncate(fs, fd, 0);
                        fs->close(fs, fd);
                        quota_give_back(conv, info.size);
                }
        }
        artifact_delete(conv, id, "a failed append", NULL);
}

/* ---- restoring ---- */

struct claim {
        const struct artifact_info *mine;
        bool taken;
};

static int look_for_claim(void *ctx, const struct artifact_info *info)
{
        struct claim *c = ctx;
        c->taken = strcmp(info->id, c->mine->id) != 0 && info->state != ARTIFACT_DELETED &&
                   strcmp(info->kind, c->mine->kind) == 0 && strcmp(info->name, c->mine->name) == 0;
        return c->taken;
}

/* Moves the file with its name to the quarantine, unless it belongs to another artifact that got
 * the name after the file was lost. */
static int set_aside(
    struct files_conv *conv, const struct artifact_info *info, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct claim claim = {.mine = info};
        char file[sizeof "artifacts/" + sizeof info->kind + sizeof info->name];
        struct stat st;
        int rc = info->name[0] ? artifact_each(conv, look_for_claim, &claim, err) : 0;
        if (rc < 0 || claim.taken || !info->name[0])
                return rc < 0 ? rc : 0;
        int fd = open_file(conv, info, O_RDONLY | O_NONBLOCK);
        if (fd < 0)
                return fd == -ENOENT ? 0 : error_sys(err, fd, "opening artifact %s", info->id);
        snprintf(file, sizeof file, "artifacts/%s/%s", info->kind, info->name);
        rc = fs->fstat(fs, fd, &st);
        rc = rc ? error_sys(err, rc, "looking at artifact %s", info->id)
                : quarantine_bytes(conv, fd, file, 0, (uint64_t)st.st_size,
                      "not the bytes that the manifest says", err);
        fs->close(fs, fd);
        int sys = rc ? 0 : remove_file(conv, info);
        return sys ? error_sys(err, sys, "removing artifact %s", info->id) : rc;
}

int artifact_begin_again(struct files_conv *conv, const struct artifact_info *info, struct str want,
    struct artifact **out, struct steno_error *err)
{
        int rc = set_aside(conv, info, err);
        return rc ? rc : begin(conv, info, want, false, out, err);
}
