/*
 * relist.c - the closing line of an artifact that the manifest has lost, made anew. What the line
 * said of the artifact is in the message's ref, and what it said of the bytes is in the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "store/files/conv.h"
#include "store/files/manifest.h"
#include "store/files/whole.h"

/* How many names of a call id are looked at. */
#define NAMES 16

/* ---- its file ---- */

struct search {
        const struct fs *fs;
        int artifacts;
        struct artifact_info *list; /* of the manifest */
        size_t count;
        struct artifact_info *out;
        int found;
};

static int base_size(const char *name)
{
        const char *dot = strrchr(name, '.');
        return dot ? (int)(dot - name) : (int)strlen(name);
}

/* No two artifacts share a name, whatever it ends in (A2). */
static bool is_claimed(const struct search *s, const char *kind, const char *base)
{
        for (size_t i = 0; i < s->count; i++) {
                const struct artifact_info *a = &s->list[i];
                if (a->state != ARTIFACT_DELETED && strcmp(a->kind, kind) == 0 &&
                    strcmp(a->id, s->out->id) != 0 &&
                    str_is(str_span(a->name, (size_t)base_size(a->name)), base))
                        return true;
        }
        return false;
}

/* Looks at a name with each of its ends. */
static int try_name(struct search *s, const char *kind, const char *base)
{
        char name[sizeof s->out->name], path[sizeof name + 16];
        struct stat st;
        if (is_claimed(s, kind, base))
                return 0;
        for (int i = 0; i < ARTIFACT_SUFFIXES; i++) {
                snprintf(name, sizeof name, "%s%s", base, artifact_suffixes[i]);
                snprintf(path, sizeof path, "%s/%s", kind, name);
                int sys = s->fs->stat(s->fs, s->artifacts, path, &st);
                if (sys && sys != -ENOENT)
                        return sys;
                if (sys || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != s->out->size)
                        continue;
                s->found++;
                snprintf(s->out->kind, sizeof s->out->kind, "%s", kind);
                snprintf(s->out->name, sizeof s->out->name, "%s", name);
        }
        return 0;
}

/* The name that its first line gave it, else what its call would have been called. */
static int search(struct search *s, struct str call, struct steno_error *err)
{
        static const char *const KINDS[] = {"tool", "terminal"};
        char base[BACKEND_ARTIFACT_NAME];
        int sys = 0;
        for (size_t i = 0; i < s->count; i++) {
                const struct artifact_info *a = &s->list[i];
                if (strcmp(a->id, s->out->id) != 0)
                        continue;
                snprintf(base, sizeof base, "%.*s", base_size(a->name), a->name);
                sys = try_name(s, a->kind, base);
                return sys ? error_sys(err, sys, "looking for an artifact") : 0;
        }
        for (size_t k = 0; call.n && k < sizeof KINDS / sizeof *KINDS; k++) {
                for (int n = 0; sys == 0 && n < NAMES; n++) {
                        if (backend_artifact_name(call, n, base))
                                return error_nomem(err);
                        if (n != 1 || id_is_plain(call)) /* else it is that of 0 */
                                sys = try_name(s, KINDS[k], base);
                }
        }
        return sys ? error_sys(err, sys, "looking for an artifact") : 0;
}

/* ---- its line ---- */

struct measures {
        struct sha256 sha;
        struct text_utf8 utf8;
        uint64_t feeds;
        char last;
};

static int look_at(void *ctx, const void *p, size_t n)
{
        struct measures *f = ctx;
        const char *at = p, *end = at + n, *lf;
        hash_sha256_update(&f->sha, p, n);
        text_utf8_feed(&f->utf8, p, n);
        f->last = end[-1];
        while ((lf = memchr(at, '\n', (size_t)(end - at)))) {
                f->feeds++;
                at = lf + 1;
        }
        return 0;
}

int relist_measure(const struct fs *fs, int fd, struct artifact_info *info, struct steno_error *err)
{
        struct measures f = {.last = '\n'};
        unsigned char sum[SHA256_SIZE];
        char known[SHA256_HEX];
        memcpy(known, info->sha256, sizeof known);
        struct whole w = {.what = info->id, .size = info->size, .sha256 = known};
        if (hash_sha256_init(&f.sha))
                return error_nomem(err);
        int rc = whole_read(fs, fd, &w, look_at, &f, err);
        hash_sha256_finish(&f.sha, sum);
        hash_hex(sum, sizeof sum, info->sha256);
        info->lines = f.feeds + (f.last != '\n');
        info->utf8 = !f.utf8.bad && text_utf8_finish(&f.utf8);
        return rc;
}

static int put_line(
    struct files_conv *conv, int artifacts, struct artifact_info *info, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        uint64_t size;
        struct buf line;
        int fd;
        int rc = artifact_open(conv, info, &fd, &size, err);
        if (rc)
                return rc;
        rc = relist_measure(fs, fd, info, err);
        fs->close(fs, fd);
        buf_init(&line, 64 * KIB);
        backend_manifest_put(&line, info);
        if (rc == 0)
                rc = buf_check(&line, err);
        if (rc == 0)
                rc = manifest_append(fs, artifacts, buf_str(&line), true, err);
        buf_release(&line);
        return rc;
}

int relist(struct files_conv *conv, const struct artifact_info *said, struct str call, bool *done,
    struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct artifact_info info = *said;
        struct search s = {.fs = fs, .out = &info};
        *done = false;
        s.artifacts = fs->open(fs, conv->dir, "artifacts", O_RDONLY | O_DIRECTORY, 0);
        if (s.artifacts < 0)
                return s.artifacts == -ENOENT ? 0
                                              : error_sys(err, s.artifacts, "opening artifacts");
        int rc = manifest_read(fs, s.artifacts, &s.list, &s.count, err);
        if (rc == 0)
                rc = search(&s, call, err);
        if (rc == 0 && s.found == 1) {
                rc = put_line(conv, s.artifacts, &info, err);
                *done = rc == 0;
                rc = rc == STENO_ECORRUPT ? 0 : rc;
        }
        free(s.list);
        fs->close(fs, s.artifacts);
        return rc;
}
