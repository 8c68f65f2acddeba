/* seal.c - see seal.h */
#include "store/files/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/conv.h"
#include "store/files/seal_log.h"

#define PURGED_MAX (16 * MIB)
#define RETRIES 8 /* a purge or repair may replace the log while it is read */

/* ---- names ---- */

int seal_name(struct files_conv *conv, char out[SEAL_CONV], struct steno_error *err)
{
        char uid[META_UID];
        int rc = meta_uid(conv, uid, err);
        if (rc)
                return rc;
        rc = backend_seal_conv_name(str_of(conv->project_id), str_of(conv->id), str_of(uid), out);
        return rc ? error_nomem(err) : 0;
}

int seal_name_at(
    const struct fs *fs, int dir, struct str project, struct str id, char out[SEAL_CONV])
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        out[0] = '\0';
        int rc = fs_slurp(fs, dir, "meta.json", META_MAX, &text, &n);
        if (rc)
                return rc == -ENOMEM ? rc : 0;
        json_init(&j);
        rc = json_parse(&j, text, n, NULL, NULL);
        struct str uid = rc ? (struct str){0} : json_inner(&j, json_get(&j, 0, "uid"));
        rc = rc == STENO_ENOMEM ? -ENOMEM : 0;
        if (rc == 0 && uid.n == META_UID - 1 && id_is_plain(uid))
                rc = backend_seal_conv_name(project, id, uid, out) ? -ENOMEM : 0;
        json_release(&j);
        free(text);
        return rc;
}

/* ---- reading ---- */

int seal_read_notes(struct files_conv *conv, char **text, size_t *n, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        *text = NULL;
        *n = 0;
        int rc = fs_slurp(fs, conv->dir, "seal/checkpoints", SEAL_NOTES_MAX, text, n);
        return rc && rc != -ENOENT && rc != -ENOTDIR
                   ? error_sys(err, rc, "reading seal/checkpoints")
                   : 0;
}

int seal_read_leaves(struct files_conv *conv, uint64_t count, struct merkle_hash **leaves,
    uint64_t *have, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct stat st;
        *leaves = NULL;
        *have = 0;
        int fd = fs->open(fs, conv->dir, "seal/leaves", O_RDONLY, 0);
        if (fd == -ENOENT || fd == -ENOTDIR)
                return 0;
        int rc = fd < 0 ? fd : fs->fstat(fs, fd, &st);
        uint64_t there = rc ? 0 : (uint64_t)st.st_size / SHA256_SIZE;
        count = there < count ? there : count;
        struct merkle_hash *list = rc ? NULL : malloc(count * SHA256_SIZE + 1);
        ssize_t got = list ? fs_pread_all(fs, fd, list, count * SHA256_SIZE, 0) : 0;
        if (fd >= 0)
                fs->close(fs, fd);
        if (rc == 0 && !list)
                return error_nomem(err);
        if (rc == 0 && got < 0)
                rc = (int)got;
        if (rc) {
                free(list);
                return error_sys(err, rc, "reading seal/leaves");
        }
        *leaves = list;
        *have = (uint64_t)got / SHA256_SIZE;
        return 0;
}

uint64_t seal_size(struct files_conv *conv)
{
        char *text;
        size_t n, end;
        struct note last = {0};
        if (seal_read_notes(conv, &text, &n, NULL) || !text)
                return 0;
        uint64_t size = note_last(str_span(text, n), &last, &end) ? last.size : 0;
        free(text);
        return size;
}

bool seal_leaf_at(struct files_conv *conv, uint64_t seq, struct merkle_hash *out)
{
        const struct fs *fs = conv->store->env->fs;
        int fd = fs->open(fs, conv->dir, "seal/leaves", O_RDONLY, 0);
        if (fd < 0)
                return false;
        ssize_t got = fs_pread_all(fs, fd, out->b, sizeof out->b, (off_t)((seq - 1) * SHA256_SIZE));
        fs->close(fs, fd);
        return got == (ssize_t)sizeof out->b;
}

/* ---- sealing ---- */

struct sealing {
        struct files_conv *conv;
        const struct fs *fs;
        const struct note_key *key;
        int dir; /* seal/ */
        int log;
        ino_t inode;
        uint64_t end;
        uint64_t last_seq;
        char *notes; /* the file, and of it */
        size_t notes_end;
        struct note last; /* the last one; size 0: none */
        struct note_ranges purged;
        char *pending; /* seal/purged as it was read */
        size_t pending_n;
        struct merkle tree;
        struct merkle_hash *leaves; /* new ones, behind the `kept` that the file has */
        uint64_t kept;
        uint64_t count;
        uint64_t cap;
        char name[SEAL_CONV];
        char origin[sizeof SEAL_ORIGIN + SEAL_CONV];
        struct steno_error *err;
};

/* E1: notes what there is, synced. */
static int take_state(struct sealing *s)
{
        struct files_conv *c = s->conv;
        struct stat st;
        int rc = files_conv_lock(c, s->err);
        if (rc)
                return rc;
        rc = conv_refresh(c, s->err);
        if (rc == 0)
                rc = seal_name(c, s->name, s->err);
        if (rc == 0) {
                snprintf(s->origin, sizeof s->origin, SEAL_ORIGIN "%s", s->name);
                s->end = c->at.end;
                s->last_seq = c->at.last_seq;
                s->log = s->fs->open(s->fs, c->dir, "messages.jsonl", O_RDONLY, 0);
                int sys = s->log == -ENOENT ? 0 : s->log < 0 ? s->log : 0;
                if (s->log >= 0)
                        sys = s->fs->fdatasync(s->fs, s->log);
                if (sys == 0 && s->log >= 0)
                        sys = s->fs->fstat(s->fs, s->log, &st);
                s->inode = s->log >= 0 ? st.st_ino : 0;
                rc = sys ? error_sys(s->err, sys, "syncing messages.jsonl") : 0;
        }
        files_conv_unlock(c);
        return rc;
}

static int push_leaf(struct sealing *s, const struct merkle_hash *leaf)
{
        if (!grow_room(s->leaves, s->count, s->cap))
                return error_nomem(s->err);
        s->leaves[s->count++] = *leaf;
        merkle_push(&s->tree, leaf);
        return 0;
}

static int take_record(struct sealing *s, const struct log_line *line, struct buf *scratch)
{
        struct merkle_hash leaf;
        uint64_t seq = s->kept + s->count + 1;
        if (line->damaged || line->rec.seq != seq)
                return error_set(s->err, STENO_ECORRUPT,
                    "record %llu cannot be read: steno check --repair first",
                    (unsigned long long)(line->damaged && line->first_seq ? line->first_seq : seq));
        if (!leaf_of(&s->tree, &line->rec, scratch, &leaf))
                return error_nomem(s->err);
        /* A tombstone that was there before its seq was first sealed is not a change. */
        if (seq > s->last.size && str_starts(line->rec.x, "{\"kind\":\"tombstone\"") &&
            note_ranges_add(&s->purged, seq, seq))
                return error_nomem(s->err);
        return push_leaf(s, &leaf);
}

/* Hashes the records behind those that the tree has. */
static int hash_records(struct sealing *s)
{
        struct log_cursor cursor;
        struct log_line line;
        struct buf scratch;
        uint64_t at = 0;
        int rc = s->log >= 0 && s->kept
                     ? log_seek_after(s->fs, s->log, s->end, s->kept, &at, s->err)
                     : 0;
        if (rc || s->log < 0)
                return rc;
        buf_init(&scratch, 0);
        log_cursor_init(&cursor, s->fs, s->log, at, s->end);
        while ((rc = log_next(&cursor, &line, s->err)) == 1) {
                rc = take_record(s, &line, &scratch);
                if (rc)
                        break;
        }
        log_cursor_release(&cursor);
        buf_release(&scratch);
        if (rc == 0 && s->kept + s->count != s->last_seq)
                rc = error_set(s->err, STENO_ECORRUPT,
                    "record %llu is missing: steno check --repair first",
                    (unsigned long long)(s->kept + s->count + 1));
        return rc;
}

/* Begins with the leaves of the file, where they give the root of the last note (E3). */
static int take_leaves(struct sealing *s)
{
        struct merkle_hash *leaves;
        uint64_t have;
        int rc = seal_read_leaves(s->conv, s->last.size, &leaves, &have, s->err);
        if (rc)
                return rc;
        for (uint64_t i = 0; i < have; i++)
                merkle_push(&s->tree, &leaves[i]);
        free(leaves);
        struct merkle_hash root = merkle_root(&s->tree);
        s->kept = have;
        if (have != s->last.size || !merkle_same(&root, &s->last.root)) {
                merkle_clear(&s->tree);
                s->kept = 0;
        }
        return 0;
}

/* Where the leaves had to be made anew: are they those that were sealed? */
static int compare_roots(struct sealing *s)
{
        if (s->kept || s->last.size == 0)
                return 0;
        merkle_clear(&s->tree);
        for (uint64_t i = 0; i < s->last.size && i < s->count; i++)
                merkle_push(&s->tree, &s->leaves[i]);
        struct merkle_hash root = merkle_root(&s->tree);
        if (s->count < s->last.size || !merkle_same(&root, &s->last.root))
                return error_set(s->err, STENO_ECORRUPT,
                    "its first %llu records are not those that were sealed; steno verify says more",
                    (unsigned long long)s->last.size);
        for (uint64_t i = s->last.size; i < s->count; i++)
                merkle_push(&s->tree, &s->leaves[i]);
        return 0;
}

static int read_before(struct sealing *s)
{
        size_t n = 0;
        int rc = seal_read_notes(s->conv, &s->notes, &n, s->err);
        if (rc)
                return rc;
        s->last = (struct note){0};
        if (s->notes && !note_last(str_span(s->notes, n), &s->last, &s->notes_end))
                s->last.size = 0;
        if (s->last.size && !str_is(s->last.origin, s->origin))
                return error_set(s->err, STENO_ECORRUPT,
                    "its seal is of another conversation, or meta.json has lost its uid");
        if (!note_ranges_read(&s->purged, s->last.purged))
                return error_set(s->err, STENO_ECORRUPT, "seal/checkpoints is not valid");
        rc = fs_slurp(s->fs, s->conv->dir, "seal/purged", PURGED_MAX, &s->pending, &s->pending_n);
        if (rc && rc != -ENOENT && rc != -ENOTDIR)
                return error_sys(s->err, rc, "reading seal/purged");
        struct str pending = str_span(s->pending, s->pending ? s->pending_n : 0);
        while (pending.n) { /* a line for each purge */
                const char *lf = memchr(pending.p, '\n', pending.n);
                size_t line = lf ? (size_t)(lf - pending.p) : pending.n;
                if (!note_ranges_read(&s->purged, str_span(pending.p, line)))
                        return error_set(s->err, STENO_ECORRUPT, "seal/purged is not valid");
                pending =
                    str_span(pending.p + line + (lf != NULL), pending.n - line - (lf != NULL));
        }
        return take_leaves(s);
}

static int write_at(struct sealing *s, const char *name, uint64_t at, const void *p, size_t n)
{
        int fd = s->fs->open(s->fs, s->dir, name, O_RDWR | O_CREAT, 0600);
        int rc = fd < 0 ? fd : s->fs->ftruncate(s->fs, fd, (off_t)at);
        if (rc == 0)
                rc = fs_pwrite_all(s->fs, fd, p, n, (off_t)at);
        if (rc == 0)
                rc = s->fs->fdatasync(s->fs, fd);
        if (fd >= 0)
                s->fs->close(s->fs, fd);
        return rc;
}

static void write_state(struct sealing *s)
{
        char state[80];
        int n =
            snprintf(state, sizeof state, "%" PRIu64 " %" PRIu64 "\n", (uint64_t)s->inode, s->end);
        fs_replace(
            s->fs, s->dir, "state", state, (size_t)n); /* derived: without it we look again */
}

/* E2. */
static int write_note(struct sealing *s, const struct merkle_hash *root)
{
        struct buf note, purged;
        buf_init(&note, 0);
        buf_init(&purged, 0);
        note_ranges_put(&s->purged, &purged);
        int sys =
            write_at(s, "leaves", s->kept * SHA256_SIZE, s->leaves, s->count * sizeof *s->leaves);
        int rc = sys ? error_sys(s->err, sys, "writing seal/leaves") : 0;
        if (rc == 0 && (purged.failed || note_put(&note, str_of(s->origin), s->kept + s->count,
                                             root, buf_str(&purged), s->key)))
                rc = error_nomem(s->err);
        buf_putc(&note, '\n');
        if (rc == 0)
                sys = write_at(s, "checkpoints", s->notes_end, note.p, note.n);
        if (rc == 0 && sys == 0)
                sys = s->fs->fsync(s->fs, s->dir);
        if (rc == 0 && sys)
                rc = error_sys(s->err, sys, "writing seal/checkpoints");
        buf_release(&note);
        buf_release(&purged);
        return rc;
}

/* The note says now what was purged; what came meanwhile stays. */
static int drop_pending(struct sealing *s)
{
        char *now = NULL;
        size_t n = 0;
        int rc = s->pending ? files_conv_lock(s->conv, s->err) : 0;
        if (rc || !s->pending)
                return rc;
        int sys = fs_slurp(s->fs, s->dir, "purged", PURGED_MAX, &now, &n);
        if (sys == 0 && n == s->pending_n && memcmp(now, s->pending, n) == 0)
                sys = s->fs->unlink(s->fs, s->dir, "purged", 0);
        files_conv_unlock(s->conv);
        free(now);
        return sys && sys != -ENOENT ? error_sys(s->err, sys, "removing seal/purged") : 0;
}

/* Whoever seals at the same time waits: `dir` is locked. */
static int open_folder(struct sealing *s)
{
        s->dir = fs_open_dir(s->fs, s->conv->dir, "seal", true);
        int rc = s->dir < 0 ? s->dir : s->fs->flock(s->fs, s->dir, LOCK_EX);
        return rc ? error_sys(s->err, rc, "opening the seal") : 0;
}

/* 1: the log was replaced meanwhile. */
static int was_replaced(struct sealing *s)
{
        struct stat st;
        return s->log >= 0 &&
               (s->fs->stat(s->fs, s->conv->dir, "messages.jsonl", &st) || st.st_ino != s->inode);
}

static int seal_once(struct sealing *s, struct seal_result *out)
{
        int rc = read_before(s);
        if (rc == 0)
                rc = hash_records(s);
        if (rc == 0)
                rc = compare_roots(s);
        if (rc == 0 && was_replaced(s))
                return 1;
        if (rc)
                return rc;
        struct merkle_hash root = merkle_root(&s->tree);
        if (s->tree.failed)
                return error_nomem(s->err);
        out->size = s->kept + s->count;
        out->added = out->size - s->last.size;
        out->root = root;
        out->changed = out->size > s->last.size || s->pending || s->notes_end == 0;
        memcpy(out->conv, s->name, sizeof out->conv);
        if (out->changed || s->kept < s->last.size)
                rc = write_note(s, &root);
        if (rc == 0) /* also when nothing changed: the one before may have been cut off here */
                rc = seal_log_head(s->conv, s->name, out->size, &root, s->err);
        if (rc == 0)
                rc = drop_pending(s);
        if (rc == 0)
                write_state(s);
        return rc;
}

static void sealing_clear(struct sealing *s)
{
        if (s->log >= 0)
                s->fs->close(s->fs, s->log);
        if (s->dir >= 0)
                s->fs->close(s->fs, s->dir);
        free(s->notes);
        free(s->pending);
        free(s->leaves);
        note_ranges_release(&s->purged);
        merkle_release(&s->tree);
}

int seal_conv(struct files_conv *conv, const struct note_key *key, struct seal_result *out,
    struct steno_error *err)
{
        struct steno_error why = {0};
        struct seal_result result = {0};
        int rc = 1;
        for (int i = 0; rc == 1 && i < RETRIES; i++) {
                struct sealing s = {.conv = conv,
                    .fs = conv->store->env->fs,
                    .key = key,
                    .dir = -1,
                    .log = -1,
                    .err = err ? err : &why};
                rc = merkle_init(&s.tree) ? error_nomem(s.err) : 0;
                if (rc == 0)
                        rc = open_folder(&s);
                if (rc == 0)
                        rc = take_state(&s);
                if (rc == 0)
                        rc = seal_once(&s, &result);
                sealing_clear(&s);
        }
        if (rc == 1)
                return error_set(
                    err, STENO_ECONFLICT, "the log is being replaced again and again; try later");
        if (rc == 0)
                *out = result;
        return rc;
}

bool seal_is_fresh(struct files_conv *conv)
{
        const struct fs *fs = conv->store->env->fs;
        char *text = NULL;
        size_t n = 0;
        struct stat st, pending;
        uint64_t inode = 0, end = 0;
        if (fs_slurp(fs, conv->dir, "seal/state", 200, &text, &n))
                return false;
        bool fresh = sscanf(text, "%" SCNu64 " %" SCNu64, &inode, &end) == 2 &&
                     fs->stat(fs, conv->dir, "messages.jsonl", &st) == 0 && st.st_ino == inode &&
                     (uint64_t)st.st_size == end &&
                     fs->stat(fs, conv->dir, "seal/purged", &pending) == -ENOENT;
        free(text);
        return fresh;
}

/* ---- purging ---- */

int seal_note_purge(
    struct files_conv *conv, const uint64_t *seqs, size_t count, struct steno_error *err)
{
        const struct fs *fs = conv->store->env->fs;
        struct note_ranges ranges = {0};
        struct buf text;
        char name[SEAL_CONV];
        uint64_t sealed = seal_size(conv);
        int rc = 0, sys = 0;
        buf_init(&text, 0);
        for (size_t i = 0; rc == 0 && i < count && seqs[i] <= sealed; i++)
                rc = note_ranges_add(&ranges, seqs[i], seqs[i]) ? error_nomem(err) : 0;
        if (rc == 0 && ranges.count) {
                note_ranges_put(&ranges, &text);
                rc = buf_check(&text, err);
                if (rc == 0)
                        rc = seal_name(conv, name, err);
                if (rc == 0)
                        rc = seal_log_purged(conv, name, buf_str(&text), err);
                buf_putc(&text, '\n');
                int fd = rc ? -1
                            : fs->open(fs, conv->dir, "seal/purged", O_WRONLY | O_CREAT | O_APPEND,
                                  0600);
                if (rc == 0)
                        sys = fd < 0 ? fd : fs_write_all(fs, fd, text.p, text.n);
                if (rc == 0 && sys == 0)
                        sys = fs->fsync(fs, fd);
                if (fd >= 0)
                        fs->close(fs, fd);
                rc = sys ? error_sys(err, sys, "writing seal/purged") : rc;
        }
        note_ranges_release(&ranges);
        buf_release(&text);
        return rc;
}
