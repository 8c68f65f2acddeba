/* manifest.c - see manifest.h */
#include "store/files/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/sealed.h"

static const char *const STATES[] = {"open", "closed", "deleted"};

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

void manifest_put(struct buf *out, const struct artifact_info *a)
{
        char at[TIME_TEXT];
        size_t start = out->n;
        struct jsonw w = jsonw_to(out);
        time_format(a->created, at);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "id", a->id);
        jsonw_field_cstr(&w, "kind", a->kind);
        jsonw_field_cstr(&w, "name", a->name);
        jsonw_field_cstr(&w, "state", STATES[a->state]);
        jsonw_field_cstr(&w, "created", at);
        jsonw_field_cstr(&w, "hint", a->hint);
        if (a->state != ARTIFACT_OPEN) {
                jsonw_field_u64(&w, "size", a->size);
                jsonw_field_u64(&w, "lines", a->lines);
                jsonw_field_cstr(&w, "mime", a->mime);
                jsonw_field_bool(&w, "utf8", a->utf8);
                jsonw_field_cstr(&w, "sha256", a->sha256);
        }
        if (a->state == ARTIFACT_DELETED) {
                time_format(a->deleted_at, at);
                jsonw_field_cstr(&w, "deleted", at);
                jsonw_field_cstr(&w, "by", a->deleted_by);
        }
        sealed_finish(out, start);
        if (!out->failed)
                out->n--; /* the line feed is its caller's */
}

/* Lines of earlier versions have no sum. */
static bool has_wrong_sum(struct str line)
{
        static const char MEMBER[] = ",\"crc\":\"";
        return line.n > SEALED_BYTES &&
               memcmp(line.p + line.n - SEALED_BYTES, MEMBER, sizeof MEMBER - 1) == 0 &&
               !sealed_check(line);
}

/* ---- reading ---- */

static bool text_of(const struct json *j, json_ref object, const char *key, char *to, size_t size)
{
        struct buf b;
        buf_init(&b, 64 * KIB);
        json_string(j, json_get(j, object, key), &b, NULL);
        size_t n = b.n ? text_floor(b.p, b.n, size - 1) : 0;
        if (n)
                memcpy(to, b.p, n);
        to[n] = '\0';
        bool failed = b.failed == STENO_ENOMEM;
        buf_release(&b);
        return failed;
}

int manifest_line(struct json *j, struct str line, struct artifact_info *out)
{
        char state[64], created[64], deleted[64];
        const struct {
                const char *key;
                char *to;
                size_t size;
        } texts[] = {{"id", out->id, sizeof out->id}, {"kind", out->kind, sizeof out->kind},
            {"name", out->name, sizeof out->name}, {"mime", out->mime, sizeof out->mime},
            {"hint", out->hint, sizeof out->hint}, {"sha256", out->sha256, sizeof out->sha256},
            {"by", out->deleted_by, sizeof out->deleted_by}, {"state", state, sizeof state},
            {"created", created, sizeof created}, {"deleted", deleted, sizeof deleted}};
        if (has_wrong_sum(line))
                return 0;
        int rc = json_parse(j, line.p, line.n, NULL, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? rc : 0;
        *out = (struct artifact_info){0};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                if (text_of(j, 0, texts[i].key, texts[i].to, texts[i].size))
                        return STENO_ENOMEM;
        time_parse(created, strlen(created), &out->created);
        time_parse(deleted, strlen(deleted), &out->deleted_at);
        json_u64(j, json_get(j, 0, "size"), &out->size);
        json_u64(j, json_get(j, 0, "lines"), &out->lines);
        out->utf8 = json_bool(j, json_get(j, 0, "utf8"), false);
        for (size_t i = 0; i < sizeof STATES / sizeof *STATES; i++)
                if (strcmp(state, STATES[i]) == 0)
                        out->state = (enum artifact_state)i;
        /* A name is a file of ours, never a path. */
        return out->id[0] && out->name[0] && !strchr(out->name, '/') && out->name[0] != '.';
}

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
                rc = lf > p ? manifest_line(&j, str_span(p, (size_t)(lf - p)), &info) : 0;
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
        if (g->count == g->cap) {
                size_t cap = g->cap ? g->cap * 2 : 16;
                struct artifact_info *list = realloc(g->list, cap * sizeof *list);
                if (!list)
                        return STENO_ENOMEM;
                g->list = list;
                g->cap = cap;
        }
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
