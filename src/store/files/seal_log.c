/* seal_log.c - see seal_log.h */
#include "store/files/seal_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/seal.h"

#define LOG "log.jsonl"
#define NOTES "checkpoints"
#define NAMES "names.jsonl"
#define LOG_MAX (1 * GIB)

/* ---- writing ---- */

struct writing {
        const struct fs *fs;
        int dir; /* <root>/seal */
        int log; /* locked */
        uint64_t size;
        struct steno_error *err;
};

static void writing_end(struct writing *w)
{
        if (w->log >= 0)
                w->fs->close(w->fs, w->log);
        if (w->dir >= 0)
                w->fs->close(w->fs, w->dir);
}

static int put_lines(struct writing *w, const struct buf *lines)
{
        if (lines->failed)
                return buf_check(lines, w->err);
        int sys = fs_pwrite_all(w->fs, w->log, lines->p, lines->n, (off_t)w->size);
        if (sys == 0)
                sys = w->fs->fdatasync(w->fs, w->log);
        if (sys)
                return error_sys(w->err, sys, "writing the log of seals");
        w->size += lines->n;
        return 0;
}

/* A new log says who it is. */
static int begin_log(struct writing *w, const struct env *env)
{
        struct buf b;
        char id[32], at[TIME_TEXT];
        buf_init(&b, 0);
        id_make(env, "", id);
        time_format(env->now(env), at);
        buf_printf(&b, "{\"type\":\"log\",\"id\":\"%s\",\"at\":\"%s\"}\n", id, at);
        int rc = put_lines(w, &b);
        buf_release(&b);
        int sys = rc ? 0 : w->fs->fsync(w->fs, w->dir);
        return sys ? error_sys(w->err, sys, "writing the log of seals") : rc;
}

/* A line that was cut off is ended and stays, because what was signed must never change. */
static int end_torn(struct writing *w)
{
        char last = '\n';
        ssize_t got = w->size ? fs_pread_all(w->fs, w->log, &last, 1, (off_t)w->size - 1) : 0;
        int sys = got < 0 ? (int)got : 0;
        if (sys == 0 && last != '\n') {
                sys = fs_pwrite_all(w->fs, w->log, "\n", 1, (off_t)w->size);
                w->size++;
        }
        return sys ? error_sys(w->err, sys, "writing the log of seals") : 0;
}

static int writing_begin(struct files_store *s, struct writing *w, struct steno_error *err)
{
        struct stat st;
        *w = (struct writing){.fs = s->env->fs, .dir = -1, .log = -1, .err = err};
        w->dir = fs_open_dir(w->fs, s->root, "seal", true);
        int sys = w->dir < 0 ? w->dir : 0;
        if (sys == 0) {
                w->log = w->fs->open(w->fs, w->dir, LOG, O_RDWR | O_CREAT, 0600);
                sys = w->log < 0 ? w->log : w->fs->flock(w->fs, w->log, LOCK_EX);
        }
        if (sys == 0)
                sys = w->fs->fstat(w->fs, w->log, &st);
        int rc = sys ? error_sys(err, sys, "opening the log of seals") : 0;
        if (rc == 0) {
                w->size = (uint64_t)st.st_size;
                rc = end_torn(w);
        }
        if (rc == 0 && w->size == 0)
                rc = begin_log(w, s->env);
        if (rc)
                writing_end(w);
        return rc;
}

static int append(struct files_store *s, struct buf *line, struct steno_error *err)
{
        struct writing w;
        struct steno_error why = {0};
        int rc = buf_check(line, err);
        if (rc == 0)
                rc = writing_begin(s, &w, err ? err : &why);
        if (rc)
                return rc;
        rc = put_lines(&w, line);
        writing_end(&w);
        return rc;
}

static void entry_begin(
    struct files_store *s, const char *type, const char *name, struct buf *b, struct jsonw *w)
{
        char at[TIME_TEXT];
        time_format(s->env->now(s->env), at);
        buf_init(b, 0);
        *w = jsonw_to(b);
        jsonw_object(w);
        jsonw_field_cstr(w, "type", type);
        jsonw_field_cstr(w, "at", at);
        jsonw_field_cstr(w, "conv", name);
}

static int entry_end(struct files_store *s, struct buf *b, struct jsonw *w, struct steno_error *err)
{
        jsonw_object_end(w);
        buf_putc(b, '\n');
        int rc = append(s, b, err);
        buf_release(b);
        return rc;
}

/* ---- names ---- */

static int read_names(struct files_store *s, char **text, size_t *n)
{
        *text = NULL;
        *n = 0;
        int rc = fs_slurp(s->env->fs, s->root, "seal/" NAMES, LOG_MAX, text, n);
        return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
}

/* Finds the line of a name; NULL: there is none. */
static const char *find_name(const char *text, size_t n, const char *name, size_t *line)
{
        char want[96];
        int length = snprintf(want, sizeof want, "{\"conv\":\"%s\"", name);
        const char *at = n ? memmem(text, n, want, (size_t)length) : NULL;
        if (!at || (at > text && at[-1] != '\n'))
                return NULL;
        const char *lf = memchr(at, '\n', n - (size_t)(at - text));
        *line = lf ? (size_t)(lf - at) + 1 : n - (size_t)(at - text);
        return at;
}

/* Best effort: without it reports give the hex. */
static void keep_name(struct files_conv *c, const char *name)
{
        struct files_store *s = c->store;
        const struct fs *fs = s->env->fs;
        char *text, uid[META_UID];
        size_t n, line;
        struct buf b;
        if (read_names(s, &text, &n))
                return;
        bool known = find_name(text, n, name, &line);
        free(text);
        if (known || files_conv_lock(c, NULL))
                return;
        int rc = meta_uid(c, uid, NULL);
        files_conv_unlock(c);
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "conv", name);
        jsonw_field_cstr(&w, "project", c->project_id);
        jsonw_field_cstr(&w, "id", c->id);
        jsonw_field_cstr(&w, "uid", uid);
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        int fd = rc || b.failed
                     ? -1
                     : fs->open(fs, s->root, "seal/" NAMES, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (fd >= 0) {
                fs_write_all(fs, fd, b.p, b.n);
                fs->close(fs, fd);
        }
        buf_release(&b);
}

static void forget_name(struct files_store *s, const char *name)
{
        char *text;
        size_t n, line;
        const char *at = read_names(s, &text, &n) ? NULL : find_name(text, n, name, &line);
        int dir = at ? fs_open_dir(s->env->fs, s->root, "seal", false) : -1;
        if (dir >= 0) {
                memmove((char *)at, at + line, n - (size_t)(at - text) - line);
                fs_replace(s->env->fs, dir, NAMES, text, n - line);
                s->env->fs->close(s->env->fs, dir);
        }
        free(text);
}

void seal_log_call(struct files_store *s, const char *conv, struct buf *out)
{
        char *text;
        size_t n, line;
        struct json j;
        const char *at = read_names(s, &text, &n) ? NULL : find_name(text, n, conv, &line);
        json_init(&j);
        if (at && json_parse(&j, at, line, NULL, NULL) == 0) {
                struct buf said;
                unsigned char sum[SHA256_SIZE];
                char hex[SEAL_CONV];
                struct sha256 sha;
                buf_init(&said, 0);
                json_string(&j, json_get(&j, 0, "project"), &said, NULL);
                buf_putc(&said, '\0');
                json_string(&j, json_get(&j, 0, "id"), &said, NULL);
                buf_putc(&said, '\0');
                json_string(&j, json_get(&j, 0, "uid"), &said, NULL);
                if (!said.failed && hash_sha256_init(&sha) == 0) {
                        hash_sha256_update(&sha, said.p, said.n);
                        hash_sha256_finish(&sha, sum);
                        hash_hex(sum, sizeof sum, hex);
                        if (strcmp(hex, conv) == 0) { /* nobody can put another name there */
                                json_string(&j, json_get(&j, 0, "project"), out, NULL);
                                buf_putc(out, '/');
                                json_string(&j, json_get(&j, 0, "id"), out, NULL);
                                conv = NULL;
                        }
                }
                buf_release(&said);
        }
        if (conv)
                buf_puts(out, conv);
        json_release(&j);
        free(text);
}

/* ---- entries ---- */

int seal_log_head(struct files_conv *c, const char *name, uint64_t size,
    const struct merkle_hash *root, struct steno_error *err)
{
        struct buf b, coded;
        struct jsonw w;
        entry_begin(c->store, "head", name, &b, &w);
        buf_init(&coded, 0);
        base64_put(&coded, root->b, sizeof root->b);
        jsonw_field_u64(&w, "size", size);
        jsonw_field_str(&w, "root", buf_str(&coded));
        buf_release(&coded);
        int rc = entry_end(c->store, &b, &w, err);
        if (rc == 0)
                keep_name(c, name);
        return rc;
}

int seal_log_purged(
    struct files_conv *c, const char *name, struct str seqs, struct steno_error *err)
{
        struct buf b;
        struct jsonw w;
        entry_begin(c->store, "purged", name, &b, &w);
        jsonw_field_str(&w, "seqs", seqs);
        return entry_end(c->store, &b, &w, err);
}

int seal_log_removed(struct files_store *s, const char *name, struct steno_error *err)
{
        struct buf b;
        struct jsonw w;
        entry_begin(s, "removed", name, &b, &w);
        int rc = entry_end(s, &b, &w, err);
        if (rc == 0)
                forget_name(s, name);
        return rc;
}

/* ---- reading ---- */

static void read_entry(struct seal_log *log, const struct json *j, uint64_t index)
{
        struct seal_entry e = {.index = index};
        json_ref type = json_get(j, 0, "type");
        struct str conv = json_inner(j, json_get(j, 0, "conv"));
        struct str seqs = json_inner(j, json_get(j, 0, "seqs"));
        struct str root = json_inner(j, json_get(j, 0, "root"));
        bool right = conv.n == sizeof e.conv - 1;
        if (index == 0 && json_is(j, type, "log")) {
                struct str id = json_inner(j, json_get(j, 0, "id"));
                snprintf(log->id, sizeof log->id, "%.*s", (int)(id.n < 31 ? id.n : 31), id.p);
                return;
        }
        if (right)
                memcpy(e.conv, conv.p, conv.n);
        if (json_is(j, type, "head")) {
                e.type = SEAL_ENTRY_HEAD;
                right = right && json_u64(j, json_get(j, 0, "size"), &e.size) &&
                        base64_take(root, e.root.b, sizeof e.root.b);
        } else if (json_is(j, type, "purged")) {
                e.type = SEAL_ENTRY_PURGED;
                e.seqs = seqs;
        } else if (json_is(j, type, "removed")) {
                e.type = SEAL_ENTRY_REMOVED;
        } else {
                right = false;
        }
        if (right)
                log->entries[log->count++] = e;
        else
                log->strange++;
}

static int by_conv(const void *a, const void *b)
{
        const struct seal_entry *x = a, *y = b;
        int order = memcmp(x->conv, y->conv, sizeof x->conv);
        return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int read_lines(struct seal_log *log, struct steno_error *err)
{
        struct merkle tree;
        struct json j;
        uint64_t lines = 0;
        for (size_t i = 0; i < log->n; i++)
                lines += log->text[i] == '\n';
        log->leaves = malloc((lines + 1) * sizeof *log->leaves);
        log->entries = calloc(lines + 1, sizeof *log->entries);
        if (!log->leaves || !log->entries || merkle_init(&tree))
                return error_nomem(err);
        json_init(&j);
        int rc = 0;
        for (size_t at = 0; rc == 0 && log->lines < lines;) {
                size_t n =
                    (size_t)((char *)memchr(log->text + at, '\n', log->n - at) - (log->text + at));
                log->leaves[log->lines] = merkle_leaf(&tree, log->text + at, n, "", 0);
                int parsed = json_parse(&j, log->text + at, n, NULL, NULL);
                if (parsed == STENO_ENOMEM)
                        rc = error_nomem(err);
                else if (parsed)
                        log->strange++;
                else
                        read_entry(log, &j, log->lines);
                log->lines++;
                at += n + 1;
                log->torn = log->n - at;
        }
        if (lines == 0)
                log->torn = log->n;
        rc = rc == 0 && tree.failed ? error_nomem(err) : rc;
        json_release(&j);
        merkle_release(&tree);
        if (log->count)
                qsort(log->entries, log->count, sizeof *log->entries, by_conv);
        return rc;
}

int seal_log_read(struct files_store *s, struct seal_log *out, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        *out = (struct seal_log){0};
        int sys = fs_slurp(fs, s->root, "seal/" LOG, LOG_MAX, &out->text, &out->n);
        if (sys == -ENOENT || sys == -ENOTDIR)
                sys = 0;
        if (sys == 0) {
                sys = fs_slurp(
                    fs, s->root, "seal/" NOTES, SEAL_NOTES_MAX, &out->notes, &out->notes_n);
                sys = sys == -ENOENT || sys == -ENOTDIR ? 0 : sys;
        }
        int rc = sys ? error_sys(err, sys, "reading the log of seals") : 0;
        if (rc == 0 && out->text)
                rc = read_lines(out, err);
        if (rc)
                backend_seal_log_release(out);
        return rc;
}

const struct seal_entry *seal_log_of(const struct seal_log *log, const char *conv, size_t *count)
{
        size_t lo = 0, hi = log->count;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                if (strcmp(log->entries[mid].conv, conv) < 0)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        *count = 0;
        while (lo + *count < log->count && strcmp(log->entries[lo + *count].conv, conv) == 0)
                ++*count;
        return log->entries + lo;
}

/* ---- signing ---- */

static int write_note(struct writing *w, size_t at, const struct buf *note)
{
        int fd = w->fs->open(w->fs, w->dir, NOTES, O_RDWR | O_CREAT, 0600);
        int sys = fd < 0 ? fd : w->fs->ftruncate(w->fs, fd, (off_t)at);
        if (sys == 0)
                sys = fs_pwrite_all(w->fs, fd, note->p, note->n, (off_t)at);
        if (sys == 0)
                sys = w->fs->fdatasync(w->fs, fd);
        if (sys == 0)
                sys = w->fs->fsync(w->fs, w->dir);
        if (fd >= 0)
                w->fs->close(w->fs, fd);
        return sys ? error_sys(w->err, sys, "signing the log of seals") : 0;
}

/* Under the lock. */
static int sign(struct files_store *s, struct writing *w, const struct note_key *key)
{
        struct seal_log log;
        struct merkle tree;
        struct note last = {0};
        struct buf note;
        char origin[64];
        size_t end = 0;
        int rc = seal_log_read(s, &log, w->err);
        if (rc)
                return rc;
        if (merkle_init(&tree)) {
                backend_seal_log_release(&log);
                return error_nomem(w->err);
        }
        buf_init(&note, 0);
        snprintf(origin, sizeof origin, SEAL_LOG_ORIGIN "%s", log.id);
        bool signed_before = log.notes && note_last(str_span(log.notes, log.notes_n), &last, &end);
        bool right = !signed_before || (str_is(last.origin, origin) && last.size <= log.lines);
        for (uint64_t i = 0; right && i < log.lines; i++) {
                merkle_push(&tree, &log.leaves[i]);
                if (signed_before && tree.size == last.size) {
                        struct merkle_hash root = merkle_root(&tree);
                        right = merkle_same(&root, &last.root);
                }
        }
        struct merkle_hash root = merkle_root(&tree);
        if (!right)
                rc = error_set(w->err, STENO_ECORRUPT,
                    "the store's log of seals is not what was signed; steno verify says more");
        else if (tree.failed)
                rc = error_nomem(w->err);
        else if (!signed_before || last.size < log.lines) {
                rc = note_put(&note, str_of(origin), log.lines, &root, (struct str){0}, key)
                         ? error_nomem(w->err)
                         : 0;
                buf_putc(&note, '\n');
                if (rc == 0)
                        rc = write_note(w, end, &note);
        }
        buf_release(&note);
        merkle_release(&tree);
        backend_seal_log_release(&log);
        return rc;
}

int seal_log_sign(struct files_store *s, const struct note_key *key, struct steno_error *err)
{
        struct steno_error why = {0};
        struct writing w;
        int rc = writing_begin(s, &w, err ? err : &why);
        if (rc)
                return rc;
        rc = sign(s, &w, key);
        writing_end(&w);
        return rc;
}
