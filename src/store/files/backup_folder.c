/*
 * backup_folder.c - the folders of a conversation whose files come and go: outputs, parts, runs and
 * seals; see backup_work.h
 */
#include "store/files/backup_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/files/artifact.h"
#include "store/files/conv.h"
#include "store/files/manifest.h"
#include "store/files/run.h"
#include "store/files/run_read.h"

struct folder {
        struct backup_copying *c;
        int from; /* -1: there is none */
        int to;
        const char *path;
        const struct artifact_info *listed; /* outputs that the conversation should have */
        size_t listed_count;
        int sys;
};

/* What the copy has of a folder that the conversation lacks is of another one, which had its id. */
static int drop_folder(struct backup_copying *c, const char *path)
{
        int sys = fs_remove_tree(c->fs, c->to, path);
        return sys && sys != -ENOENT ? backup_failed(c, sys, path) : 0;
}

static bool is_strange(struct backup_copying *c, const char *path, bool folder)
{
        char what[BACKUP_WORDS];
        bool strange = backup_is_strange(c->fs, c->conv->dir, path, folder, what);
        if (strange)
                backup_tell(c, "%s", what);
        return strange;
}

static int open_both(struct backup_copying *c, const char *path, struct folder *f)
{
        char name[32];
        *f = (struct folder){.c = c, .from = -1, .to = -1, .path = path};
        const char *slash = strchr(path, '/');
        f->from = c->fs->open(c->fs, c->conv->dir, path, O_RDONLY | O_DIRECTORY, 0);
        if (f->from == -ENOENT)
                return drop_folder(c, path);
        if (f->from < 0 && is_strange(c, path, true)) {
                f->from = -1;
                return 0;
        }
        snprintf(
            name, sizeof name, "%.*s", (int)(slash ? slash - path : (ptrdiff_t)strlen(path)), path);
        int top = f->from < 0 ? f->from : fs_open_dir(c->fs, c->to, name, true);
        f->to = top;
        if (top >= 0 && slash) {
                f->to = fs_open_dir(c->fs, top, slash + 1, true);
                c->fs->close(c->fs, top);
        }
        return f->to < 0 ? backup_failed(c, f->to, path) : 0;
}

static void close_both(struct folder *f)
{
        if (f->from >= 0)
                f->c->fs->close(f->c->fs, f->from);
        if (f->to >= 0)
                f->c->fs->close(f->c->fs, f->to);
}

static bool is_part(const struct folder *f, const char *name)
{
        return strcmp(f->path, "artifacts/parts") == 0 && strlen(name) == SHA256_HEX - 1;
}

/* What was not purged, and is missing all the same: then the copy may be all there is. A purge
 * leaves another log. */
static bool is_lost(const struct folder *f, const char *name)
{
        if (f->c->grew && is_part(f, name))
                return f->c->lost = true;
        for (size_t i = 0; i < f->listed_count; i++)
                if (f->listed[i].state == ARTIFACT_CLOSED && strcmp(f->listed[i].name, name) == 0)
                        return true;
        return false;
}

/* Names of the copy that the conversation no longer has. */
static int drop_stale(void *ctx, const char *name, unsigned char type)
{
        struct folder *f = ctx;
        struct stat st;
        (void)type;
        if (f->c->fs->stat(f->c->fs, f->from, name, &st) == -ENOENT && !is_lost(f, name))
                f->sys = f->c->fs->unlink(f->c->fs, f->to, name, 0);
        return f->sys;
}

/* ---- parts, runs and seals ---- */

static int copy_part(void *ctx, const char *name, unsigned char type)
{
        struct folder *f = ctx;
        struct backup_copying *c = f->c;
        bool whole = true;
        char path[320];
        (void)type;
        if (name[0] == '.')
                return 0;
        snprintf(path, sizeof path, "%s/%s", f->path, name);
        if (is_strange(c, path, false))
                return 0;
        struct backup_item it = {.folder = f->path,
            .name = name,
            .sum = is_part(f, name) ? name : NULL,
            .fd = c->fs->open(c->fs, f->from, name, O_RDONLY | O_NONBLOCK, 0),
            .to = f->to};
        f->sys = it.fd < 0 ? it.fd : c->fs->fstat(c->fs, it.fd, &it.st);
        it.size = f->sys ? 0 : (uint64_t)it.st.st_size;
        if (f->sys == 0 && S_ISREG(it.st.st_mode))
                f->sys = backup_bring(c, &it, &whole);
        if (it.fd >= 0)
                c->fs->close(c->fs, it.fd);
        if (!whole)
                backup_tell(c, "part %.16s... has other bytes than its name says", name);
        f->sys = f->sys == -ENOENT ? 0 : f->sys; /* purged: the log tells (K2) */
        return f->sys;
}

static int copy_run(void *ctx, const char *run)
{
        struct folder *f = ctx;
        struct backup_copying *c = f->c;
        char name[96];
        struct buf line;
        struct run_event e;
        bool whole;
        snprintf(name, sizeof name, "%s.jsonl", run);
        struct backup_item it = {.folder = f->path, .name = name, .to = f->to};
        it.fd = c->fs->open(c->fs, f->from, name, O_RDONLY | O_NONBLOCK, 0);
        if (it.fd < 0)
                return it.fd == -ENOENT ? 0 : backup_failed(c, it.fd, name);
        buf_init(&line, 0);
        int sys = c->fs->fstat(c->fs, it.fd, &it.st);
        int rc =
            sys ? backup_failed(c, sys, name)
                : run_last_line(c->fs, it.fd, (uint64_t)it.st.st_size, &line, &e, &it.size, c->err);
        if (rc >= 0) {
                sys = backup_bring(c, &it, &whole);
                rc = sys ? backup_failed(c, sys, name) : 0;
        }
        buf_release(&line);
        c->fs->close(c->fs, it.fd);
        return rc < 0 ? rc : 0;
}

int backup_copy_folder(struct backup_copying *c, const char *path, bool runs)
{
        struct folder f;
        int rc = open_both(c, path, &f);
        if (rc == 0 && f.from >= 0) {
                int sys = 0;
                if (runs)
                        rc = run_each(c->conv, copy_run, &f, c->err);
                else
                        sys = c->fs->list(c->fs, f.from, copy_part, &f);
                if (rc == 0 && sys == 0)
                        sys = c->fs->list(c->fs, f.to, drop_stale, &f);
                if (rc == 0 && sys == 0)
                        sys = c->fs->fsync(c->fs, f.to);
                if (sys)
                        rc = backup_failed(c, sys, path);
        }
        close_both(&f);
        return rc;
}

/* ---- outputs ---- */

static int copy_output(struct backup_copying *c, const struct artifact_info *info, struct folder *f)
{
        bool whole = true;
        struct backup_item it = {.folder = f->path, .name = info->name, .fd = -1, .to = f->to};
        if (info->state == ARTIFACT_DELETED)
                return 0;
        int rc = artifact_open(c->conv, info, &it.fd, &it.size, c->err);
        if (rc == STENO_ECORRUPT || (rc && files_is_foreign(-c->err->sys))) {
                /* Or it was purged a moment ago: then the log tells (K2). */
                if (rc == STENO_ECORRUPT && info->state == ARTIFACT_CLOSED)
                        backup_tell(c, "artifact %s (%s) cannot be opened: %s", info->id,
                            info->name, c->err->msg);
                return 0;
        }
        if (rc)
                return rc;
        uint64_t size = it.size;
        if (info->state == ARTIFACT_CLOSED) {
                it.sum = *info->sha256 ? info->sha256 : NULL;
                it.size = size > info->size ? info->size : size;
        }
        int sys = c->fs->fstat(c->fs, it.fd, &it.st);
        if (sys == 0)
                sys = backup_bring(c, &it, &whole);
        c->fs->close(c->fs, it.fd);
        if (!whole && size != info->size)
                backup_tell(c, "artifact %s (%s) has %llu bytes; the manifest says %llu", info->id,
                    info->name, (unsigned long long)size, (unsigned long long)info->size);
        else if (!whole)
                backup_tell(c, "artifact %s (%s) has other bytes than the manifest says", info->id,
                    info->name);
        return sys ? backup_failed(c, sys, info->name) : 0;
}

static int copy_outputs(
    struct backup_copying *c, const char *kind, const struct artifact_info *list, size_t count)
{
        char path[32];
        struct folder f;
        snprintf(path, sizeof path, "artifacts/%s", kind);
        int rc = open_both(c, path, &f);
        for (size_t i = 0; rc == 0 && f.from >= 0 && i < count; i++)
                if (strcmp(list[i].kind, kind) == 0)
                        rc = copy_output(c, &list[i], &f);
        f.listed = list;
        f.listed_count = count;
        if (rc == 0 && f.from >= 0) {
                int sys = c->fs->list(c->fs, f.to, drop_stale, &f);
                if (sys == 0)
                        sys = c->fs->fsync(c->fs, f.to);
                rc = sys ? backup_failed(c, sys, path) : 0;
        }
        close_both(&f);
        return rc;
}

/* The list first, then what it names, then the list into the copy: a name that is in the copy has
 * its bytes there. */
int backup_copy_artifacts(struct backup_copying *c)
{
        struct artifact_info *list = NULL;
        size_t count = 0;
        struct buf lines;
        struct folder f;
        int rc = open_both(c, "artifacts", &f);
        if (rc || f.from < 0) {
                close_both(&f);
                return rc;
        }
        buf_init(&lines, 0);
        rc = manifest_read(c->fs, f.from, &list, &count, c->err);
        if (rc == 0)
                rc = copy_outputs(c, "tool", list, count);
        if (rc == 0)
                rc = copy_outputs(c, "terminal", list, count);
        for (size_t i = 0; rc == 0 && i < count; i++) {
                backend_manifest_put(&lines, &list[i]);
                buf_putc(&lines, '\n');
        }
        if (rc == 0)
                rc = buf_check(&lines, c->err);
        if (rc == 0) {
                int sys = count ? fs_replace(c->fs, f.to, MANIFEST_NAME, lines.p, lines.n)
                                : c->fs->unlink(c->fs, f.to, MANIFEST_NAME, 0);
                rc = sys && (count || sys != -ENOENT) ? backup_failed(c, sys, MANIFEST_NAME) : 0;
        }
        buf_release(&lines);
        free(list);
        close_both(&f);
        return rc;
}
