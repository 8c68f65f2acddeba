/* archive.c - see archive.h */
#include "store/files/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"

#define PATH_MAX_OURS 400
#define DEPTH_MAX 8
#define BLOCK ((size_t)64 * 1024)
#define SMALL_MAX (64 * KIB)
#define COMPLETE_FILE "complete.json"
#define KIND_FILE "backup.json"

bool archive_is_top(const char *name)
{
        static const char *const NAMES[] = {"projects", "trash", "seal", "store.json",
            "projects.json", "tokens.json", "accepted.jsonl"};
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
                if (strcmp(name, NAMES[i]) == 0)
                        return true;
        return false;
}

static void sum_header(struct sha256 *sha, const char *name, uint64_t size)
{
        char text[32];
        int n = snprintf(text, sizeof text, "%llu", (unsigned long long)size);
        hash_sha256_update(sha, name, strlen(name) + 1);
        hash_sha256_update(sha, text, (size_t)n + 1);
}

/* ---- writing ---- */

int archive_out_open(
    struct archive_out *a, const struct fs *fs, steno_sink sink, void *ctx, struct steno_error *err)
{
        *a = (struct archive_out){.fs = fs};
        if (hash_sha256_init(&a->sha))
                return error_nomem(err);
        int rc = tarball_writer_new(sink, ctx, &a->tar, err);
        if (rc)
                hash_sha256_release(&a->sha);
        return rc;
}

void archive_out_release(struct archive_out *a)
{
        tarball_writer_free(a->tar);
        hash_sha256_release(&a->sha);
}

struct sending {
        struct archive_out *a;
        struct steno_error err;
};

static int send_piece(void *ctx, const void *p, size_t n)
{
        struct sending *s = ctx;
        hash_sha256_update(&s->a->sha, p, n);
        return tarball_write(s->a->tar, p, n, &s->err);
}

static int send_file(struct archive_out *a, int dir, const char *name, const char *path,
    uint64_t size, struct steno_error *err)
{
        struct sending s = {.a = a};
        uint64_t sent = 0;
        int fd = a->fs->open(a->fs, dir, name, O_RDONLY, 0);
        if (fd < 0)
                return error_sys(err, fd, "reading %s", path);
        int rc = tarball_add(a->tar, path, size, err);
        if (rc == 0) {
                sum_header(&a->sha, path, size);
                int sys = fs_copy_out(a->fs, fd, 0, size, send_piece, &s, &sent);
                if (s.err.code) {
                        *err = s.err;
                        rc = s.err.code;
                } else if (sys || sent != size) {
                        rc = error_sys(err, sys ? sys : -EIO, "reading %s", path);
                }
        }
        a->fs->close(a->fs, fd);
        a->files++;
        a->bytes += size;
        return rc;
}

struct moving {
        struct archive_out *a;
        int dir;
        const char *path; /* of it, "" the root */
        int depth;
        bool keep; /* do not remove what was sent */
        char **names;
        size_t count;
        size_t cap;
        struct steno_error *err;
};

static int note_name(void *ctx, const char *name, unsigned char type)
{
        struct moving *m = ctx;
        (void)type;
        if (name[0] == '.' || (!*m->path && !archive_is_top(name)))
                return 0;
        if (!grow_room(m->names, m->count, m->cap))
                return -ENOMEM;
        m->names[m->count] = strdup(name);
        return m->names[m->count] ? (m->count++, 0) : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int move_folder(struct moving *m);

static int move_entry(struct moving *m, const char *name)
{
        const struct fs *fs = m->a->fs;
        char path[PATH_MAX_OURS];
        struct stat st;
        snprintf(path, sizeof path, "%s%s%s", m->path, *m->path ? "/" : "", name);
        int sys = fs->stat(fs, m->dir, name, &st);
        if (sys)
                return error_sys(m->err, sys, "looking at %s", path);
        if (S_ISREG(st.st_mode)) {
                int rc = send_file(m->a, m->dir, name, path, (uint64_t)st.st_size, m->err);
                /* What stayed would be sent again with the rest of the root. */
                if (rc == 0 && !m->keep)
                        sys = fs->unlink(fs, m->dir, name, 0);
                return sys ? error_sys(m->err, sys, "removing the copy of %s", path) : rc;
        }
        if (!S_ISDIR(st.st_mode) || m->depth >= DEPTH_MAX)
                return 0;
        struct moving below = {
            .a = m->a, .path = path, .depth = m->depth + 1, .keep = m->keep, .err = m->err};
        below.dir = fs->open(fs, m->dir, name, O_RDONLY | O_DIRECTORY, 0);
        if (below.dir < 0)
                return error_sys(m->err, below.dir, "looking at %s", path);
        int rc = move_folder(&below);
        fs->close(fs, below.dir);
        return rc;
}

/* Sorted, so that the same files give the same stream. */
static int move_folder(struct moving *m)
{
        int sys = m->a->fs->list(m->a->fs, m->dir, note_name, m);
        int rc = sys ? error_sys(m->err, sys, "looking at %s", m->path) : 0;
        if (m->count)
                qsort(m->names, m->count, sizeof *m->names, by_name);
        for (size_t i = 0; i < m->count; i++) {
                if (rc == 0)
                        rc = move_entry(m, m->names[i]);
                free(m->names[i]);
        }
        free(m->names);
        return rc;
}

int archive_out_begin(struct archive_out *a, int root, const char *kind, struct steno_error *err)
{
        struct stat st;
        int sys = a->fs->stat(a->fs, root, kind, &st);
        return sys ? error_sys(err, sys, "looking at %s", kind)
                   : send_file(a, root, kind, kind, (uint64_t)st.st_size, err);
}

int archive_out_move(
    struct archive_out *a, int dir, const char *above, const char *folder, struct steno_error *err)
{
        char path[PATH_MAX_OURS];
        snprintf(path, sizeof path, "%s/%s", above, folder);
        struct moving m = {.a = a, .dir = dir, .path = path, .depth = 1, .err = err};
        return move_folder(&m);
}

int archive_out_end(struct archive_out *a, int root, struct str report, struct steno_error *err)
{
        struct moving m = {.a = a, .dir = root, .path = "", .err = err};
        unsigned char sum[SHA256_SIZE];
        char hex[SHA256_HEX];
        struct buf text;
        int rc = move_folder(&m);
        if (rc)
                return rc;
        hash_sha256_peek(&a->sha, sum);
        hash_hex(sum, sizeof sum, hex);
        buf_init(&text, SMALL_MAX);
        buf_put(&text, report.p, report.n - 1); /* without its brace */
        buf_printf(&text, ",\"files\":%llu,\"bytes\":%llu,\"sha256\":\"%s\"}\n",
            (unsigned long long)a->files, (unsigned long long)a->bytes, hex);
        rc = buf_check(&text, err);
        if (rc == 0)
                rc = tarball_add(a->tar, COMPLETE_FILE, text.n, err);
        if (rc == 0)
                rc = tarball_write(a->tar, text.p, text.n, err);
        if (rc == 0)
                rc = tarball_finish(a->tar, err);
        buf_release(&text);
        return rc;
}

/* ---- reading ---- */

struct reading {
        const struct fs *fs;
        int to;
        struct tarball_reader *tar;
        struct sha256 sha;
        char *block;
        uint64_t files;
        uint64_t bytes;
        struct steno_error *err;
};

static int refuse(struct reading *r, int code, const char *why, const char *name)
{
        return error_set(r->err, code, "not a backup that can be restored: %s%s%.120s", why,
            name ? ": " : "", name ? name : "");
}

/* Plain names with '/' between them, the first of them one of a backup's root. */
static bool is_path(const char *path)
{
        char top[64];
        int depth = 0;
        size_t n = strcspn(path, "/");
        if (strlen(path) >= PATH_MAX_OURS || n >= sizeof top)
                return false;
        snprintf(top, sizeof top, "%.*s", (int)n, path);
        for (const char *at = path;; at++, depth++) {
                if (*at == '\0' || *at == '/' || *at == '.')
                        return false; /* empty, hidden, . or .. */
                at = strchr(at, '/');
                if (!at)
                        break;
        }
        return archive_is_top(top) && depth <= DEPTH_MAX;
}

static int open_file(struct reading *r, const char *path)
{
        char folder[PATH_MAX_OURS];
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
                int rc = r->fs->mkdir(r->fs, r->to, folder, 0700);
                if (rc && rc != -EEXIST)
                        return rc;
        }
        return r->fs->open(r->fs, r->to, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
}

static int take_file(struct reading *r, const char *path, uint64_t size)
{
        uint64_t done = 0;
        ssize_t got;
        int fd = open_file(r, path), sys = 0;
        if (fd == -EEXIST || fd == -EISDIR || fd == -ENOTDIR)
                return refuse(r, STENO_EPROTO, "a file occurs twice", path);
        if (fd < 0)
                return error_sys(r->err, fd, "restoring %s", path);
        sum_header(&r->sha, path, size);
        while (sys == 0 && (got = tarball_read(r->tar, r->block, BLOCK, r->err)) > 0) {
                hash_sha256_update(&r->sha, r->block, (size_t)got);
                sys = fs_write_all(r->fs, fd, r->block, (size_t)got);
                done += (uint64_t)got;
        }
        if (sys == 0 && got == 0)
                sys = r->fs->fsync(r->fs, fd);
        r->fs->close(r->fs, fd);
        if (sys)
                return error_sys(r->err, sys, "restoring %s", path);
        if (got < 0)
                return (int)got;
        r->files++;
        r->bytes += done;
        return done == size ? 0 : refuse(r, STENO_ECORRUPT, "a file is cut off", path);
}

/* The file at work as text. */
static int take_text(struct reading *r, uint64_t size, struct buf *out)
{
        ssize_t got;
        if (size > SMALL_MAX)
                return refuse(r, STENO_EPROTO, "its notes are too large", NULL);
        while ((got = tarball_read(r->tar, r->block, BLOCK, r->err)) > 0)
                buf_put(out, r->block, (size_t)got);
        return got < 0 ? (int)got : buf_check(out, r->err);
}

static int take_kind(struct reading *r)
{
        const char *name;
        uint64_t size;
        struct buf text;
        struct json j;
        int rc = tarball_next(r->tar, &name, &size, r->err);
        if (rc < 0)
                return rc;
        if (rc == 0 || strcmp(name, KIND_FILE) != 0)
                return refuse(r, STENO_EPROTO, "it does not begin with " KIND_FILE, NULL);
        sum_header(&r->sha, KIND_FILE, size);
        buf_init(&text, SMALL_MAX);
        json_init(&j);
        rc = take_text(r, size, &text);
        hash_sha256_update(&r->sha, text.p ? text.p : "", text.n);
        uint64_t version = 0;
        if (rc == 0 && (json_parse(&j, text.p, text.n, NULL, NULL) ||
                           !json_is(&j, json_get(&j, 0, "steno"), "backup") ||
                           !json_u64(&j, json_get(&j, 0, "version"), &version) || version != 1))
                rc = refuse(r, STENO_EPROTO, "its kind or version is unknown", NULL);
        json_release(&j);
        buf_release(&text);
        return rc;
}

/* complete.json, which must say what came. Nothing may follow. */
static int take_end(struct reading *r, uint64_t size)
{
        unsigned char sum[SHA256_SIZE];
        char hex[SHA256_HEX];
        const char *name;
        uint64_t more;
        struct buf text;
        struct json j;
        buf_init(&text, SMALL_MAX);
        json_init(&j);
        int rc = take_text(r, size, &text);
        hash_sha256_peek(&r->sha, sum);
        hash_hex(sum, sizeof sum, hex);
        if (rc == 0 && (json_parse(&j, text.p, text.n, NULL, NULL) ||
                           !json_is(&j, json_get(&j, 0, "sha256"), hex)))
                rc = refuse(r, STENO_ECORRUPT, "its bytes are not those that were written", NULL);
        if (rc == 0) {
                rc = tarball_next(r->tar, &name, &more, r->err);
                if (rc > 0)
                        rc = refuse(r, STENO_EPROTO, "something follows after its end", name);
        }
        json_release(&j);
        buf_release(&text);
        return rc;
}

static int take_all(struct reading *r)
{
        const char *name;
        uint64_t size;
        int rc = take_kind(r);
        while (rc == 0 && (rc = tarball_next(r->tar, &name, &size, r->err)) > 0) {
                if (strcmp(name, COMPLETE_FILE) == 0)
                        return take_end(r, size);
                rc = is_path(name)
                         ? take_file(r, name, size)
                         : refuse(r, STENO_EPROTO, "it has a name that no backup contains", name);
        }
        return rc ? rc : refuse(r, STENO_ECORRUPT, "its end is missing", NULL);
}

/* Syncs the folders, deepest first. */
struct syncing {
        const struct fs *fs;
        int dir;
};

static int sync_below(void *ctx, const char *name, unsigned char type)
{
        struct syncing *s = ctx;
        struct stat st;
        (void)type;
        int rc = s->fs->stat(s->fs, s->dir, name, &st);
        if (rc || !S_ISDIR(st.st_mode))
                return rc;
        struct syncing below = {s->fs, s->fs->open(s->fs, s->dir, name, O_RDONLY | O_DIRECTORY, 0)};
        if (below.dir < 0)
                return below.dir;
        rc = s->fs->list(s->fs, below.dir, sync_below, &below);
        if (rc == 0)
                rc = s->fs->fsync(s->fs, below.dir);
        s->fs->close(s->fs, below.dir);
        return rc;
}

int archive_in(const struct fs *fs, int to, steno_source source, void *ctx, uint64_t *files,
    uint64_t *bytes, struct steno_error *err)
{
        struct steno_error why = {0};
        struct reading r = {.fs = fs, .to = to, .err = err ? err : &why};
        struct syncing all = {fs, to};
        if (hash_sha256_init(&r.sha))
                return error_nomem(err);
        r.block = malloc(BLOCK);
        int rc = r.block ? tarball_reader_new(source, ctx, true, &r.tar, r.err) : error_nomem(err);
        if (rc == 0)
                rc = take_all(&r);
        int sys = rc ? 0 : fs->list(fs, to, sync_below, &all);
        if (rc == 0 && sys == 0)
                sys = fs->fsync(fs, to);
        if (sys)
                rc = error_sys(r.err, sys, "syncing the restored store");
        tarball_reader_free(r.tar);
        hash_sha256_release(&r.sha);
        free(r.block);
        *files = r.files;
        *bytes = r.bytes;
        return rc;
}
