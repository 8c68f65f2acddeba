/*
 * part.c - artifacts/parts: large tokens of messages, raw, named by their sha256, so that the same
 * screenshot in ten messages is one file (F14). They are written once and never change, and their
 * bytes are held against their name whenever they are read or counted on.
 */
#include "store/files/artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/whole.h"

static int open_parts(struct files_conv *conv, bool create)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        int artifacts = fs_open_dir(fs, files_conv_dir(conv), "artifacts", create);
        if (artifacts < 0)
                return artifacts;
        int parts = fs_open_dir(fs, artifacts, "parts", create);
        int rc = create && parts >= 0 ? fs->fsync(fs, artifacts) : 0; /* S3 */
        if (rc == 0 && create && parts >= 0)
                rc = fs->fsync(fs, files_conv_dir(conv));
        fs->close(fs, artifacts);
        if (rc) {
                fs->close(fs, parts);
                return rc;
        }
        return parts;
}

static int open_part(struct files_conv *conv, const char *name)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        int parts = strchr(name, '/') || name[0] == '.' ? -ENOENT : open_parts(conv, false);
        int fd = parts < 0 ? parts : fs->open(fs, parts, name, O_RDONLY | O_NONBLOCK, 0);
        if (parts >= 0)
                fs->close(fs, parts);
        return fd;
}

static int read_part(const struct fs *fs, int fd, const char *name, uint64_t size, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        char what[32];
        snprintf(what, sizeof what, "part %.16s...", name);
        return whole_read(
            fs, fd, &(struct whole){.what = what, .size = size, .sha256 = name}, sink, ctx, err);
}

/* Wrong bytes are moved to the quarantine and never overwritten: somebody may still need them. */
static int set_aside(
    struct files_conv *conv, int fd, const char *name, const char *why, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        char file[sizeof "artifacts/parts/" + PART_NAME];
        struct stat st;
        snprintf(file, sizeof file, "artifacts/parts/%s", name);
        int rc = fs->fstat(fs, fd, &st);
        return rc ? error_sys(err, rc, "looking at a part")
                  : quarantine_bytes(conv, fd, file, 0, (uint64_t)st.st_size, why, err);
}

/* 1: the part is there with its bytes; 0: it has to be written. */
static int look_at_existing(
    struct files_conv *conv, int parts, const char *name, uint64_t size, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct steno_error why = {0};
        int fd = fs->open(fs, parts, name, O_RDONLY | O_NONBLOCK, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : error_sys(err, fd, "opening a part");
        int rc = read_part(fs, fd, name, size, NULL, NULL, &why);
        if (rc == 0)
                rc = 1;
        else if (rc == STENO_ECORRUPT)
                rc = set_aside(conv, fd, name, why.msg, err);
        else if (rc == STENO_EIO)
                rc = 0; /* nothing can be read from it */
        else
                error_set(err, rc, "%s", why.msg);
        fs->close(fs, fd);
        return rc;
}

int part_put(
    struct files_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        if (hash_sha256_hex(token.p, token.n, name))
                return error_nomem(err);
        int parts = open_parts(conv, true);
        if (parts < 0)
                return error_sys(err, parts, "opening the folder of parts");
        int rc = look_at_existing(conv, parts, name, token.n, err);
        bool there = rc > 0;
        if (rc == 0)
                rc = quota_take_part(conv, token.n, err);
        if (rc >= 0) {
                int sys = there
                              ? fs->fsync(fs, parts) /* its first writer may not have come so far */
                              : fs_replace(fs, parts, name, token.p, token.n);
                rc = sys ? error_sys(err, sys, "storing a large token") : 0;
                if (sys && !there)
                        quota_give_back(conv, token.n);
        }
        fs->close(fs, parts);
        return rc;
}

int part_get(struct files_conv *conv, struct str name, uint64_t size, steno_sink sink, void *ctx,
    struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        char file[PART_NAME];
        snprintf(file, sizeof file, "%.*s", (int)name.n, name.p);
        int fd = open_part(conv, file);
        if (fd < 0)
                return error_set(
                    err, STENO_ECORRUPT, "part %.16s... of a message is missing", file);
        int rc = read_part(fs, fd, file, size, sink, ctx, err);
        fs->close(fs, fd);
        return rc;
}

/* The part's own bytes may have come back since it was looked at: under the lock, once more. */
static int drop_wrong(
    struct files_conv *conv, int parts, const char *name, bool *dropped, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct steno_error why = {0};
        struct stat st = {0};
        int fd = fs->open(fs, parts, name, O_RDONLY | O_NONBLOCK, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : error_sys(err, fd, "opening a part");
        int sys = fs->fstat(fs, fd, &st);
        int rc = sys ? error_sys(err, sys, "looking at a part")
                     : read_part(fs, fd, name, (uint64_t)st.st_size, NULL, NULL, &why);
        if (rc == STENO_ECORRUPT) {
                rc = set_aside(conv, fd, name, why.msg, err);
                sys = rc ? 0 : fs->unlink(fs, parts, name, 0);
                if (sys == 0 && rc == 0)
                        sys = fs->fsync(fs, parts);
                *dropped = rc == 0 && sys == 0;
                if (*dropped)
                        quota_give_back(conv, (uint64_t)st.st_size);
                rc = sys ? error_sys(err, sys, "removing a part") : rc;
        } else if (rc && !sys) {
                error_set(err, rc, "%s", why.msg);
        }
        fs->close(fs, fd);
        return rc;
}

int part_drop_wrong(
    struct files_conv *conv, const char *name, bool *dropped, struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        *dropped = false;
        int parts = open_parts(conv, false);
        if (parts < 0)
                return parts == -ENOENT ? 0 : error_sys(err, parts, "opening the folder of parts");
        int rc = files_conv_lock(conv, err);
        if (rc == 0) {
                rc = drop_wrong(conv, parts, name, dropped, err);
                files_conv_unlock(conv);
        }
        fs->close(fs, parts);
        return rc;
}
