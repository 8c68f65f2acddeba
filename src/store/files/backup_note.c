/* backup_note.c - the file .backup of a copy; see backup.h and backup_work.h */
#include "store/files/backup_work.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/backup_stamp.h"

#define TAIL (64 * KIB)
#define NOTE_MAX (4 * KIB)

static int hash_tail(struct backup_copying *c, int fd, uint64_t end, char hex[SHA256_HEX])
{
        char *block = malloc(TAIL);
        uint64_t from = end > TAIL ? end - TAIL : 0;
        if (!block)
                return -ENOMEM;
        ssize_t got = fs_pread_all(c->fs, fd, block, (size_t)(end - from), (off_t)from);
        int rc = got < 0 ? (int)got : (uint64_t)got < end - from ? -EIO : 0;
        if (rc == 0 && hash_sha256_hex(block, (size_t)got, hex))
                rc = -ENOMEM;
        free(block);
        return rc;
}

static bool has_size(struct backup_copying *c, int dir, const char *name, uint64_t size)
{
        struct stat st;
        return c->fs->stat(c->fs, dir, name, &st) == 0 && S_ISREG(st.st_mode) &&
               (uint64_t)st.st_size == size;
}

/* How much of the log is in the copy already, 0: nothing that can be used. *differs: the last of it
 * is not what the log has in that place now. */
uint64_t backup_known_end(struct backup_copying *c, bool *differs)
{
        char *text = NULL, hex[SHA256_HEX];
        size_t n = 0;
        uint64_t ino = 0, end = 0;
        struct json j;
        json_init(&j);
        bool ok = fs_slurp(c->fs, c->to, BACKUP_NOTE, NOTE_MAX, &text, &n) == 0 &&
                  json_parse(&j, text, n, NULL, NULL) == 0 &&
                  json_u64(&j, json_get(&j, 0, "inode"), &ino) && ino == c->ino &&
                  json_u64(&j, json_get(&j, 0, "end"), &end) && end <= c->end &&
                  has_size(c, c->to, "messages.jsonl", end) && end &&
                  hash_tail(c, c->log, end, hex) == 0;
        *differs = ok && !json_is(&j, json_get(&j, 0, "tail"), hex);
        c->log_damaged = ok && json_bool(&j, json_get(&j, 0, "damaged"), false);
        json_release(&j);
        free(text);
        return ok ? end : 0;
}

int backup_write_note(struct backup_copying *c)
{
        char hex[SHA256_HEX] = "", copy[SHA256_HEX];
        struct buf b;
        int rc = c->log >= 0 ? hash_tail(c, c->log, c->end, hex) : 0;
        if (rc)
                return backup_failed(c, rc, "messages.jsonl");
        buf_init(&b, NOTE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "backup", c->mark);
        jsonw_field_u64(&w, "inode", c->ino);
        jsonw_field_u64(&w, "end", c->end);
        jsonw_field_cstr(&w, "tail", hex);
        jsonw_field_u64(&w, "records", c->last_seq);
        if (c->log_damaged)
                jsonw_field_bool(&w, "damaged", true);
        /* What is damaged is looked at again, and told of again. */
        if (*c->stamp && !c->damaged.n && backup_stamp(c->fs, c->to, NULL, copy) == 0) {
                jsonw_field_cstr(&w, "source", c->stamp);
                jsonw_field_cstr(&w, "copy", copy);
        }
        jsonw_object_end(&w);
        rc = b.failed ? -ENOMEM : fs_replace(c->fs, c->to, BACKUP_NOTE, b.p, b.n);
        buf_release(&b);
        return rc ? backup_failed(c, rc, BACKUP_NOTE) : buf_check(&c->damaged, c->err);
}

bool backup_is_unchanged(const struct fs *fs, const char *stamp, int to, uint64_t *records)
{
        char *text = NULL, copy[SHA256_HEX];
        size_t n = 0;
        struct json j;
        json_init(&j);
        bool same = fs_slurp(fs, to, BACKUP_NOTE, NOTE_MAX, &text, &n) == 0 &&
                    json_parse(&j, text, n, NULL, NULL) == 0 &&
                    json_u64(&j, json_get(&j, 0, "records"), records) &&
                    json_is(&j, json_get(&j, 0, "source"), stamp) &&
                    backup_stamp(fs, to, NULL, copy) == 0 &&
                    json_is(&j, json_get(&j, 0, "copy"), copy);
        json_release(&j);
        free(text);
        return same;
}
