/*
 * quarantine.c - what cannot be read is moved aside, never deleted.
 *
 *   quarantine/<id>.bytes   the bytes as they were (a folder, where one stood in a file's place)
 *   quarantine/<id>.json    where they came from: project, conversation, file, offset, why, when
 */
#include "store/files/conv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

static int copy_range(const struct fs *fs, int from_fd, uint64_t from, uint64_t to, int to_fd)
{
        char block[65536];
        while (from < to) {
                size_t want = to - from < sizeof block ? (size_t)(to - from) : sizeof block;
                ssize_t got = fs_pread_all(fs, from_fd, block, want, (off_t)from);
                if (got <= 0)
                        return got < 0 ? (int)got : -EIO;
                int rc = fs_write_all(fs, to_fd, block, (size_t)got);
                if (rc)
                        return rc;
                from += (uint64_t)got;
        }
        return 0;
}

/* `c` is NULL for a file of the store. */
static void describe(const struct env *env, struct files_conv *c, const char *file, uint64_t from,
    uint64_t to, const char *why, struct buf *out)
{
        char at[TIME_TEXT];
        struct jsonw w = jsonw_to(out);
        time_format(env->now(env), at);
        jsonw_object(&w);
        if (c) {
                jsonw_field_cstr(&w, "project", c->project_id);
                jsonw_field_cstr(&w, "conversation", c->id);
        }
        jsonw_field_cstr(&w, "file", file);
        jsonw_field_u64(&w, "offset", from);
        jsonw_field_u64(&w, "bytes", to - from);
        jsonw_field_cstr(&w, "why", why);
        jsonw_field_cstr(&w, "at", at);
        jsonw_object_end(&w);
        buf_putc(out, '\n');
}

int quarantine_bytes(struct files_conv *c, int from_fd, const char *file, uint64_t from,
    uint64_t to, const char *why, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        char id[40], name[64];
        struct buf note;
        int fd = -1;
        buf_init(&note, 64 * KIB);
        id_make(c->store->env, "", id);
        int dir = fs_open_dir(fs, c->store->root, "quarantine", true);
        int rc = dir < 0 ? dir : 0;
        if (rc == 0) {
                snprintf(name, sizeof name, "%s.bytes", id);
                fd = fs->open(fs, dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
                rc = fd < 0 ? fd : copy_range(fs, from_fd, from, to, fd);
        }
        if (rc == 0)
                rc = fs->fsync(fs, fd);
        if (rc == 0) {
                describe(c->store->env, c, file, from, to, why, &note);
                snprintf(name, sizeof name, "%s.json", id);
                rc = note.failed ? -ENOMEM : fs_replace(fs, dir, name, note.p, note.n);
        }
        if (rc && fd >= 0) {
                snprintf(name, sizeof name, "%s.bytes", id);
                fs->unlink(fs, dir, name, 0);
        }
        if (rc == 0)
                __atomic_fetch_add(&c->store->quarantined, to - from, __ATOMIC_RELAXED);
        if (fd >= 0)
                fs->close(fs, fd);
        if (dir >= 0)
                fs->close(fs, dir);
        buf_release(&note);
        return rc ? error_sys(err, rc, "moving a torn tail to quarantine") : 0;
}

int quarantine_log(
    struct files_conv *c, uint64_t from, uint64_t to, const char *why, struct steno_error *err)
{
        return quarantine_bytes(c, c->log, "messages.jsonl", from, to, why, err);
}

uint64_t files_quarantined(const struct files_store *store)
{
        return __atomic_load_n(&store->quarantined, __ATOMIC_RELAXED);
}

/* Moves an entry of `from` there, called `file` in its note; `c` is NULL for one of the store's
 * root. */
static int move_entry(struct files_store *s, struct files_conv *c, int from, const char *entry,
    const char *file, const char *why, struct steno_error *err)
{
        const struct fs *fs = s->env->fs;
        char id[40], note_name[64], name[64];
        struct buf note;
        struct stat st;
        buf_init(&note, 64 * KIB);
        id_make(s->env, "", id);
        snprintf(name, sizeof name, "%s.bytes", id);
        snprintf(note_name, sizeof note_name, "%s.json", id);
        int dir = fs_open_dir(fs, s->root, "quarantine", true);
        int rc = dir < 0 ? dir : fs->stat(fs, from, entry, &st);
        if (rc == 0) {
                describe(s->env, c, file, 0, (uint64_t)st.st_size, why, &note);
                rc = note.failed ? -ENOMEM : fs_replace(fs, dir, note_name, note.p, note.n);
        }
        if (rc == 0) {
                rc = fs->rename_new(fs, from, entry, dir, name);
                if (rc)
                        fs->unlink(fs, dir, note_name, 0);
        }
        if (rc == 0)
                rc = fs->fsync(fs, dir);
        if (rc == 0)
                rc = fs->fsync(fs, from);
        if (dir >= 0)
                fs->close(fs, dir);
        buf_release(&note);
        if (rc == 0)
                __atomic_fetch_add(&s->quarantined, (uint64_t)st.st_size, __ATOMIC_RELAXED);
        return rc ? error_sys(err, rc, "moving %s to quarantine", file) : 0;
}

int quarantine_entry(
    struct files_conv *c, const char *file, const char *why, struct steno_error *err)
{
        const struct fs *fs = c->store->env->fs;
        const char *slash = strrchr(file, '/');
        char folder[64];
        if (!slash)
                return move_entry(c->store, c, c->dir, file, file, why, err);
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - file), file);
        int from = fs->open(fs, c->dir, folder, O_RDONLY | O_DIRECTORY, 0);
        if (from < 0)
                return error_sys(err, from, "opening %s", folder);
        int rc = move_entry(c->store, c, from, slash + 1, file, why, err);
        fs->close(fs, from);
        return rc;
}

int quarantine_file(
    struct files_store *s, const char *file, const char *why, struct steno_error *err)
{
        return move_entry(s, NULL, s->root, file, file, why, err);
}
