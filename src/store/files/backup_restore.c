/*
 * backup_restore.c - a store from a backup: from its folder, or from the stream that
 * backup_store_stream() has sent.
 */
#include "store/files/backup_store_work.h"

#include <fcntl.h>
#include <string.h>

#include "base/error.h"
#include "store/files/archive.h"

#define DEPTH_MAX 16

struct restoring {
        const struct fs *fs;
        int from;
        int to;
        int depth;
        uint64_t files;
        uint64_t bytes;
};

/* Neither the backup's own notes, nor what a look into it has left there. */
static bool is_wanted(const char *name, int depth)
{
        if (depth > 0)
                return name[0] != '.' && strncmp(name, "ids.idx", 7) != 0;
        return archive_is_top(name);
}

static int restore_entry(void *ctx, const char *name, unsigned char type)
{
        struct restoring *r = ctx;
        struct stat st;
        (void)type;
        int rc = r->fs->stat(r->fs, r->from, name, &st);
        if (rc || !is_wanted(name, r->depth))
                return rc;
        if (S_ISREG(st.st_mode)) {
                int fd = r->fs->open(r->fs, r->from, name, O_RDONLY, 0);
                rc = fd < 0 ? fd : fs_copy_new(r->fs, fd, (uint64_t)st.st_size, r->to, name);
                if (fd >= 0)
                        r->fs->close(r->fs, fd);
                r->files++;
                r->bytes += (uint64_t)st.st_size;
                return rc;
        }
        if (!S_ISDIR(st.st_mode) || r->depth >= DEPTH_MAX)
                return 0; /* no backup has such things */
        struct restoring below = {.fs = r->fs, .depth = r->depth + 1};
        below.from = r->fs->open(r->fs, r->from, name, O_RDONLY | O_DIRECTORY, 0);
        below.to = below.from < 0 ? below.from : fs_open_dir(r->fs, r->to, name, true);
        rc = below.to < 0 ? below.to : r->fs->list(r->fs, below.from, restore_entry, &below);
        if (rc == 0)
                rc = r->fs->fsync(r->fs, below.to);
        if (below.to >= 0)
                r->fs->close(r->fs, below.to);
        if (below.from >= 0)
                r->fs->close(r->fs, below.from);
        r->files += below.files;
        r->bytes += below.bytes;
        return rc;
}

static int remove_entry(void *ctx, const char *name, unsigned char type)
{
        struct restoring *r = ctx;
        struct stat st;
        (void)type;
        if (r->fs->stat(r->fs, r->to, name, &st))
                return 0;
        return S_ISDIR(st.st_mode) ? fs_remove_tree(r->fs, r->to, name)
                                   : r->fs->unlink(r->fs, r->to, name, 0);
}

static int restore(struct restoring *r, const char *path, const char *to, struct steno_error *err)
{
        struct stat st;
        bool any = false;
        if (r->from < 0)
                return error_sys(err, r->from, "opening %.150s", path);
        if (r->fs->stat(r->fs, r->from, BACKUP_KIND_FILE, &st))
                return error_set(err, STENO_EPROTO, "%.150s is not a backup of Steno", path);
        if (r->fs->stat(r->fs, r->from, BACKUP_COMPLETE_FILE, &st))
                return error_set(err, STENO_ECORRUPT,
                    "%.120s is not complete: its last backup was cut off; make it again", path);
        if (r->to < 0)
                return error_sys(err, r->to, "opening %.150s", to);
        int sys = r->fs->list(r->fs, r->to, backup_note_any, &any);
        if (sys == 0 && any)
                return error_set(
                    err, STENO_ECONFLICT, "%.150s is not empty; restore into a new folder", to);
        if (sys == 0)
                sys = r->fs->list(r->fs, r->from, restore_entry, r);
        if (sys == 0)
                sys = r->fs->fsync(r->fs, r->to);
        if (sys) {
                r->fs->list(r->fs, r->to, remove_entry, r);
                return error_sys(err, sys, "restoring %.150s", path);
        }
        return 0;
}

static int report_restore(uint64_t files, uint64_t bytes, char **report, struct steno_error *err)
{
        struct buf b;
        if (!report)
                return 0;
        buf_init(&b, 0);
        buf_printf(&b, "{\"files\":%llu,\"bytes\":%llu}", (unsigned long long)files,
            (unsigned long long)bytes);
        *report = buf_take(&b, NULL);
        buf_release(&b);
        return *report ? 0 : error_nomem(err);
}

int backup_restore_stream(
    steno_source source, void *ctx, const char *to, char **report, struct steno_error *err)
{
        bool any = false;
        const struct fs *fs = env_real()->fs;
        uint64_t files = 0, bytes = 0;
        struct restoring r = {.fs = fs, .from = -1, .to = fs->open_root(fs, to, true)};
        int sys = r.to < 0 ? r.to : fs->list(fs, r.to, backup_note_any, &any);
        int rc = sys ? error_sys(err, sys, "opening %.150s", to) : 0;
        if (any)
                rc = error_set(
                    err, STENO_ECONFLICT, "%.150s is not empty; restore into a new folder", to);
        if (rc == 0) {
                rc = archive_in(fs, r.to, source, ctx, &files, &bytes, err);
                if (rc)
                        fs->list(fs, r.to, remove_entry, &r);
        }
        if (r.to >= 0)
                fs->close(fs, r.to);
        return rc ? rc : report_restore(files, bytes, report, err);
}

int backup_restore(const char *path, const char *to, char **report, struct steno_error *err)
{
        const struct fs *fs = env_real()->fs;
        struct restoring r = {.fs = fs, .from = fs->open_root(fs, path, false), .to = -1};
        if (r.from >= 0)
                r.to = fs->open_root(fs, to, true);
        int rc = restore(&r, path, to, err);
        if (rc == 0)
                rc = report_restore(r.files, r.bytes, report, err);
        if (r.to >= 0)
                fs->close(fs, r.to);
        if (r.from >= 0)
                fs->close(fs, r.from);
        return rc;
}
