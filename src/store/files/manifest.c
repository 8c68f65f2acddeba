/* manifest.c - see manifest.h */
#include "store/files/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"

static int write_line(const struct fs *fs, int fd, struct str line, bool sync)
{
        struct stat st;
        char last = '\n';
        struct buf b;
        int rc = fs->fstat(fs, fd, &st);
        if (rc == 0 && st.st_size > 0) {
                ssize_t got = fs_pread_all(fs, fd, &last, 1, st.st_size - 1);
                if (got < 0)
                        rc = (int)got;
        }
        if (rc)
                return rc;
        buf_init(&b, 0);
        if (last != '\n')
                buf_putc(&b, '\n'); /* A3: a torn line is ended, never fused with ours */
        buf_put_str(&b, line);
        buf_putc(&b, '\n');
        rc = b.failed ? -ENOMEM : fs_write_all(fs, fd, b.p, b.n);
        if (rc && !b.failed)
                fs->ftruncate(fs, fd, st.st_size);
        if (rc == 0 && sync)
                rc = fs->fdatasync(fs, fd);
        buf_release(&b);
        return rc;
}

int manifest_lock(const struct fs *fs, int artifacts, int flags)
{
        for (;;) {
                struct stat mine, named;
                int fd = fs->open(fs, artifacts, MANIFEST_NAME, flags, 0600);
                if (fd < 0)
                        return fd;
                int rc = fs->flock(fs, fd, LOCK_EX);
                if (rc == 0)
                        rc = fs->fstat(fs, fd, &mine);
                if (rc == 0)
                        rc = fs->stat(fs, artifacts, MANIFEST_NAME, &named);
                if (rc == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev)
                        return fd;
                fs->close(fs, fd);
                if (rc && rc != -ENOENT)
                        return rc;
        }
}

int manifest_append(
    const struct fs *fs, int artifacts, struct str line, bool sync, struct steno_error *err)
{
        int fd = manifest_lock(fs, artifacts, O_RDWR | O_APPEND | O_CREAT);
        int rc = fd < 0 ? fd : write_line(fs, fd, line, sync);
        if (fd >= 0)
                fs->close(fs, fd);
        if (rc == 0 && sync)
                rc = fs->fsync(fs, artifacts);
        return rc ? error_sys(err, rc, "writing the manifest of artifacts") : 0;
}

/* ---- reading ---- */

/* Calls `each` for every readable line, in order; of `only` (may be empty) alone, when it is given:
 * parsing the others would cost more than all the rest. */
static int each_line(const struct fs *fs, int artifacts, struct str only,
    int (*each)(void *ctx, const struct artifact_info *info), void *ctx, struct steno_error *err)
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        int rc = fs_slurp(fs, artifacts, MANIFEST_NAME, BUF_MAX_DEFAULT, &text, &n);
        if (rc == -ENOENT)
                return 0;
        if (rc)
                return error_sys(err, rc, "reading the manifest of artifacts");
        json_init(&j);
        for (char *p = text, *end = text + n; p < end && rc == 0;) {
                char *lf = memchr(p, '\n', (size_t)(end - p));
                struct artifact_info info;
                if (!lf)
                        break;
                if (only.n && !memmem(p, (size_t)(lf - p), only.p, only.n)) {
                        p = lf + 1;
                        continue;
                }
                rc = lf > p ? backend_manifest_read(&j, str_span(p, (size_t)(lf - p)), &info) : 0;
                rc = rc == 1 ? each(ctx, &info) : rc < 0 ? error_nomem(err) : 0;
                p = lf + 1;
        }
        json_release(&j);
        free(text);
        return rc;
}

struct gather {
        struct artifact_info *list;
        size_t count;
        size_t cap;
};

/* Lines of one artifact lie close together: look from the end. */
static int gather_line(void *ctx, const struct artifact_info *info)
{
        struct gather *g = ctx;
        for (size_t i = g->count; info->state != ARTIFACT_OPEN && i-- > 0;) {
                if (strcmp(g->list[i].id, info->id) == 0) {
                        g->list[i] = *info;
                        return 0;
                }
        }
        if (!grow_room(g->list, g->count, g->cap))
                return STENO_ENOMEM;
        g->list[g->count++] = *info;
        return 0;
}

int manifest_read(const struct fs *fs, int artifacts, struct artifact_info **list, size_t *count,
    struct steno_error *err)
{
        struct gather g = {0};
        int rc = each_line(fs, artifacts, (struct str){0}, gather_line, &g, err);
        if (rc) {
                free(g.list);
                return rc == STENO_ENOMEM ? error_nomem(err) : rc;
        }
        *list = g.list;
        *count = g.count;
        return 0;
}

struct find {
        struct str id;
        struct artifact_info *out;
        bool found;
};

static int find_line(void *ctx, const struct artifact_info *info)
{
        struct find *f = ctx;
        if (str_is(f->id, info->id)) {
                *f->out = *info;
                f->found = true;
        }
        return 0;
}

int manifest_find(const struct fs *fs, int artifacts, struct str id, struct artifact_info *out,
    struct steno_error *err)
{
        struct find f = {.id = id, .out = out};
        int rc = each_line(fs, artifacts, id, find_line, &f, err);
        if (rc)
                return rc;
        return f.found ? 0 : STENO_ENOTFOUND;
}
