/* backup_log.c - the log of a conversation that is copied; see backup_work.h */
#include "store/files/backup_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "store/files/conv.h"

/* ---- its end ---- */

/* The same in a store that we may not write to: a torn end stays where it is. Others may write
 * there, and hold the lock while they do. */
static int find_end_read_only(struct backup_copying *c)
{
        struct files_conv *conv = c->conv;
        struct log_end end = {0};
        struct ids ids;
        struct stat st;
        c->log = c->fs->open(c->fs, conv->dir, "messages.jsonl", O_RDONLY, 0);
        int sys = c->log < 0 ? c->log : c->fs->fstat(c->fs, c->log, &st);
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        int rc = conv_find_end(conv, c->log, NULL, &ids, &end, c->err);
        if (rc)
                return rc;
        rc = conv_refuse_changed(conv, c->log, &ids, &end, c->err);
        ids_close(&ids);
        c->fs->fdatasync(c->fs, c->log); /* which a disk that cannot be written to may refuse */
        c->ino = st.st_ino;
        c->end = end.end;
        c->last_seq = end.last_seq;
        return rc;
}

/* Notes the end, under the lock and synced (K1). */
int backup_find_end(struct backup_copying *c)
{
        struct files_conv *conv = c->conv;
        struct stat st;
        int rc = conv_refresh(conv, c->err);
        if (rc == STENO_EDENIED)
                return find_end_read_only(c);
        if (rc)
                return rc;
        int sys = c->fs->fdatasync(c->fs, conv->log);
        if (sys == 0) {
                c->log = c->fs->open(c->fs, conv->dir, "messages.jsonl", O_RDONLY, 0);
                sys = c->log < 0 ? c->log : c->fs->fstat(c->fs, c->log, &st);
        }
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        c->ino = c->laid ? c->laid->log : st.st_ino;
        c->end = conv->at.end;
        c->last_seq = conv->at.last_seq;
        return 0;
}

/* ---- its bytes, and what they refer to ---- */

static int note_parts(const struct record *rec, struct arena *arena, struct buf *names)
{
        struct about about;
        if (!rec->x.n || !memmem(rec->x.p, rec->x.n, "\"part", 5))
                return 0;
        arena_reset(arena);
        int rc = about_read(rec->x, arena, &about, NULL);
        for (size_t i = 0; rc == 0 && i < about_part_slots(&about); i++) {
                struct str name = about_part_at(&about, i).name;
                if (name.n && name.n < SHA256_HEX) {
                        buf_printf(
                            names, "%llu %.*s", (unsigned long long)rec->seq, (int)name.n, name.p);
                        buf_putc(names, '\0');
                }
        }
        return rc == STENO_ENOMEM ? rc : 0;
}

/* Places of a log that cannot be read, and where the first is. `parts` (may be NULL) gets the names
 * of those that its records refer to. */
static int count_damage(struct backup_copying *c, int fd, uint64_t at, uint64_t end,
    struct buf *parts, uint64_t *count, uint64_t *first)
{
        struct log_cursor cursor;
        struct log_line line;
        struct arena arena;
        int rc, bad = 0;
        *count = 0;
        arena_init(&arena);
        log_cursor_init(&cursor, c->fs, fd, at, end);
        while ((rc = log_next(&cursor, &line, c->err)) == 1 && bad == 0) {
                *first = line.damaged && !*count ? line.at : *first;
                *count += line.damaged;
                if (parts && !line.damaged)
                        bad = note_parts(&line.rec, &arena, parts);
        }
        log_cursor_release(&cursor);
        arena_release(&arena);
        return bad ? error_nomem(c->err) : rc;
}

/* Does what the copy has of the log count? Where the two differ, one of them has rotted, and the
 * copy stays when it is that of the conversation. */
static int verify_log(struct backup_copying *c, uint64_t *known)
{
        bool same = false;
        uint64_t here = 0, there = 0, at = 0;
        int fd = c->fs->open(c->fs, c->to, "messages.jsonl", O_RDONLY, 0);
        int sys = fd < 0 ? fd : backup_has_bytes(c, c->log, fd, *known, &same);
        int rc = sys && sys != -EIO ? backup_failed(c, sys, "messages.jsonl") : 0;
        if (rc == 0 && sys == 0 && !same) {
                rc = count_damage(c, c->log, 0, *known, NULL, &here, &at);
                if (rc == 0)
                        rc = count_damage(c, fd, 0, *known, NULL, &there, &at);
                same = here && !there;
        }
        if (fd >= 0)
                c->fs->close(c->fs, fd);
        if (rc == 0 && !same)
                *known = 0;
        return rc;
}

int backup_copy_log(struct backup_copying *c)
{
        bool differs;
        uint64_t known = backup_known_end(c, &differs), from = known, count = 0, at = 0;
        int sys, rc = from && (c->verify || differs) ? verify_log(c, &from) : 0;
        if (rc)
                return rc;
        c->grew = known && !differs;
        c->lost = false;
        c->mended += known && !from && !differs;
        if (from) {
                int fd = c->fs->open(c->fs, c->to, "messages.jsonl", O_RDWR, 0);
                sys = fd < 0 ? fd : backup_copy_bytes(c, c->log, from, c->end, fd, NULL);
                if (fd >= 0)
                        c->fs->close(c->fs, fd);
        } else {
                sys = backup_copy_file(c, c->log, c->end, c->to, "messages.jsonl", NULL);
        }
        if (sys)
                return backup_failed(c, sys, "messages.jsonl");
        bool all = c->verify || differs || c->log_damaged;
        buf_clear(&c->parts);
        rc = count_damage(c, c->log, all ? 0 : from, c->end, &c->parts, &count, &at);
        c->log_damaged = count;
        if (rc == 0 && count)
                backup_tell(c,
                    "%llu place%s of messages.jsonl cannot be read (the first at byte %llu)",
                    (unsigned long long)count, count == 1 ? "" : "s", (unsigned long long)at);
        return rc;
}

/* Tells of parts that the conversation has lost; copies of them stay. */
int backup_look_for_parts(struct backup_copying *c)
{
        char path[sizeof "artifacts/parts/" + SHA256_HEX], *name;
        uint64_t count, at;
        int rc = 0;
        if (c->lost) {
                buf_clear(&c->parts);
                rc = count_damage(c, c->log, 0, c->end, &c->parts, &count, &at);
        }
        if (rc == 0)
                rc = buf_check(&c->parts, c->err);
        for (const char *p = c->parts.p; rc == 0 && p && p < c->parts.p + c->parts.n;
             p = name + strlen(name) + 1) {
                struct stat st;
                unsigned long long seq = strtoull(p, &name, 10);
                snprintf(path, sizeof path, "artifacts/parts/%.*s", SHA256_HEX, ++name);
                if (c->fs->stat(c->fs, c->conv->dir, path, &st) == -ENOENT) {
                        backup_tell_of(
                            c, seq, "it refers to part %.40s, which is missing or not whole", name);
                        c->log_damaged = true;
                }
        }
        return rc;
}
