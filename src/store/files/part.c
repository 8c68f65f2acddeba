/*
 * part.c - artifacts/parts: large tokens of messages, raw, named by their sha256, so that the same
 * screenshot in ten messages is one file (F14). They are written once and never change.
 */
#include "store/files/artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

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

int part_put(
    struct files_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        struct stat st;
        if (sha256_hex(token.p, token.n, name))
                return error_nomem(err);
        int parts = open_parts(conv, true);
        if (parts < 0)
                return error_sys(err, parts, "opening the folder of parts");
        int rc = fs->stat(fs, parts, name, &st);
        if (rc == 0 && (uint64_t)st.st_size == token.n)
                rc = fs->fsync(fs, parts); /* its first writer may not have come so far */
        else if (rc == 0 || rc == -ENOENT)
                rc = fs_replace(fs, parts, name, token.p, token.n);
        fs->close(fs, parts);
        return rc ? error_sys(err, rc, "storing a large token") : 0;
}

int part_get(struct files_conv *conv, struct str name, uint64_t size, steno_sink sink, void *ctx,
    struct steno_error *err)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        char block[65536], file[PART_NAME];
        uint64_t at = 0;
        int rc = 0;
        snprintf(file, sizeof file, "%.*s", (int)name.n, name.p);
        int parts = strchr(file, '/') || file[0] == '.' ? -ENOENT : open_parts(conv, false);
        int fd = parts < 0 ? parts : fs->open(fs, parts, file, O_RDONLY, 0);
        if (parts >= 0)
                fs->close(fs, parts);
        if (fd < 0)
                return error_set(
                    err, STENO_ECORRUPT, "part %.20s... of a message is missing", file);
        while (at < size && rc == 0) {
                size_t want = size - at < sizeof block ? (size_t)(size - at) : sizeof block;
                ssize_t got = fs_pread_all(fs, fd, block, want, (off_t)at);
                if (got < 0)
                        rc = error_sys(err, (int)got, "reading part %.20s", file);
                else if ((size_t)got < want)
                        rc = error_set(err, STENO_ECORRUPT, "part %.20s... is too short", file);
                else if (sink(ctx, block, (size_t)got))
                        rc = error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
                at += (uint64_t)got;
        }
        fs->close(fs, fd);
        return rc;
}

bool part_is_there(struct files_conv *conv, struct str name, uint64_t size)
{
        const struct fs *fs = files_env(files_conv_store(conv))->fs;
        char file[PART_NAME];
        struct stat st;
        snprintf(file, sizeof file, "%.*s", (int)name.n, name.p);
        int parts = strchr(file, '/') || file[0] == '.' ? -ENOENT : open_parts(conv, false);
        int rc = parts < 0 ? parts : fs->stat(fs, parts, file, &st);
        if (parts >= 0)
                fs->close(fs, parts);
        return rc == 0 && (uint64_t)st.st_size >= size;
}
