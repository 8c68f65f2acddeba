/* ids.c - see ids.h */
#include "store/files/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"

#define NAME "ids.idx"
#define TMP_NAME "ids.idx.tmp"
#define FIRST_SLOTS 256
#define PROBE 16
/* A table is written as a whole when that costs no more than this many bytes an entry. */
#define WHOLE_TABLE 96
/* So much of the log may be synced before the mark is written again. */
#define MARK_EVERY (256 * KIB)

struct header {
        char magic[8];
        uint64_t boot;
        uint64_t slots;
        uint64_t count;
        uint64_t covered;
        uint64_t mark_size;
        uint64_t mark_seq;
        uint64_t last_amend;
        uint64_t log;
        uint64_t unused[2];
        uint32_t version;
        uint32_t crc;
};
_Static_assert(sizeof(struct header) == 96, "the header is 96 bytes on the disk");

static const char MAGIC[8] = {'S', 't', 'e', 'n', 'o', 'I', 'd', 's'};

static uint32_t header_crc(const struct header *h)
{
        return hash_crc32c(0, h, offsetof(struct header, crc));
}

static off_t slot_at(uint64_t slot)
{
        return (off_t)(sizeof(struct header) + slot * sizeof(struct ids_entry));
}

static void forget_file(struct ids *ids)
{
        if (ids->fd >= 0)
                ids->env->fs->close(ids->env->fs, ids->fd);
        ids->fd = -1;
        ids->slots = ids->count = ids->covered = ids->last_amend = 0;
        ids->pending_count = 0;
        ids->pending_covered = 0;
}

uint64_t ids_boot(const struct env *env)
{
        char boot[40];
        env->boot(env, boot);
        return hash_64(boot, strlen(boot));
}

void ids_open(struct ids *ids, const struct env *env, uint64_t boot, int dir, uint64_t log)
{
        const struct fs *fs = env->fs;
        struct header h;
        *ids = (struct ids){.env = env, .dir = dir, .fd = -1, .boot = boot, .log = log};
        int fd = fs->open(fs, dir, NAME, O_RDWR, 0);
        if (fd < 0)
                return;
        ssize_t got = fs_pread_all(fs, fd, &h, sizeof h, 0);
        if (got != (ssize_t)sizeof h || memcmp(h.magic, MAGIC, sizeof MAGIC) != 0 ||
            h.version != 1 || h.crc != header_crc(&h) || h.log != log) { /* I4 */
                fs->close(fs, fd);
                return;
        }
        ids->mark = (struct log_mark){h.mark_size, h.mark_seq};
        ids->mark_written = h.mark_size;
        struct stat st;
        bool whole = fs->fstat(fs, fd, &st) == 0 && st.st_size >= slot_at(h.slots);
        if (h.boot != ids->boot || h.slots == 0 || (h.slots & (h.slots - 1)) || !whole) { /* I2 */
                fs->close(fs, fd);
                return;
        }
        ids->fd = fd;
        ids->slots = h.slots;
        ids->count = h.count;
        ids->covered = ids->pending_covered = h.covered;
        ids->last_amend = h.last_amend;
}

void ids_close(struct ids *ids)
{
        if (!ids->env)
                return;
        forget_file(ids);
        free(ids->pending);
        ids->pending = NULL;
}

uint64_t ids_hash_id(struct str id)
{
        return hash_64(id.p, id.n);
}

uint64_t ids_hash_key(struct str key)
{
        return hash_64(key.p, key.n) ^ UINT64_C(0x9E3779B97F4A7C15);
}

uint64_t ids_covered(const struct ids *ids)
{
        return ids->pending_covered;
}

/* ---- looking up ---- */

int ids_lookup(struct ids *ids, uint64_t hash, int (*each)(void *ctx, uint64_t at), void *ctx)
{
        const struct fs *fs = ids->env->fs;
        for (unsigned i = 0; i < ids->pending_count; i++) {
                if (ids->pending[i].hash != hash)
                        continue;
                int rc = each(ctx, ids->pending[i].at - 1);
                if (rc)
                        return rc;
        }
        if (ids->fd < 0)
                return 0;
        uint64_t slot = hash & (ids->slots - 1);
        for (uint64_t seen = 0; seen < ids->slots;) {
                struct ids_entry e[PROBE];
                uint64_t n = ids->slots - slot < PROBE ? ids->slots - slot : PROBE;
                ssize_t got = fs_pread_all(fs, ids->fd, e, n * sizeof *e, slot_at(slot));
                if (got != (ssize_t)(n * sizeof *e)) {
                        forget_file(ids);
                        return got < 0 ? (int)got : -EIO;
                }
                for (uint64_t i = 0; i < n; i++) {
                        if (e[i].at == 0)
                                return 0;
                        int rc = e[i].hash == hash ? each(ctx, e[i].at - 1) : 0;
                        if (rc)
                                return rc;
                }
                seen += n;
                slot = (slot + n) & (ids->slots - 1);
        }
        return 0;
}

/* ---- adding ---- */

static int write_header(struct ids *ids, int fd)
{
        struct header h = {.boot = ids->boot,
            .slots = ids->slots,
            .count = ids->count,
            .covered = ids->covered,
            .mark_size = ids->mark.size,
            .mark_seq = ids->mark.seq,
            .last_amend = ids->last_amend,
            .log = ids->log,
            .version = 1};
        memcpy(h.magic, MAGIC, sizeof MAGIC);
        h.crc = header_crc(&h);
        int rc = fs_pwrite_all(ids->env->fs, fd, &h, sizeof h, 0);
        if (rc == 0)
                ids->mark_written = ids->mark.size;
        return rc;
}

static void place(struct ids_entry *table, uint64_t slots, struct ids_entry e)
{
        uint64_t slot = e.hash & (slots - 1);
        while (table[slot].at)
                slot = (slot + 1) & (slots - 1);
        table[slot] = e;
}

/* Moves to a new file with room for `count` entries: the old one stays whole for its readers. */
static int grow(struct ids *ids, uint64_t count)
{
        const struct fs *fs = ids->env->fs;
        uint64_t slots = ids->slots ? ids->slots : FIRST_SLOTS;
        while (slots < count * 2)
                slots *= 4;
        struct ids_entry *table = calloc(slots, sizeof *table);
        struct ids_entry *old = ids->slots ? calloc(ids->slots, sizeof *old) : NULL;
        int fd = -1;
        int rc = -ENOMEM;
        if (!table || (ids->slots && !old))
                goto out;
        if (ids->slots) {
                size_t size = ids->slots * sizeof *old;
                ssize_t got = fs_pread_all(fs, ids->fd, old, size, slot_at(0));
                if (got != (ssize_t)size) {
                        rc = -EIO;
                        goto out;
                }
                for (uint64_t i = 0; i < ids->slots; i++)
                        if (old[i].at)
                                place(table, slots, old[i]);
        }
        fd = fs->open(fs, ids->dir, TMP_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (fd < 0) {
                rc = fd;
                goto out;
        }
        rc = fs_pwrite_all(fs, fd, table, slots * sizeof *table, slot_at(0));
        if (rc)
                goto out;
        uint64_t old_slots = ids->slots;
        ids->slots = slots;
        rc = write_header(ids, fd);
        if (rc == 0)
                rc = fs->rename(fs, ids->dir, TMP_NAME, ids->dir, NAME);
        if (rc) {
                ids->slots = old_slots;
                goto out;
        }
        if (ids->fd >= 0)
                fs->close(fs, ids->fd);
        ids->fd = fd;
        fd = -1;
out:
        if (fd >= 0)
                fs->close(fs, fd);
        free(table);
        free(old);
        return rc;
}

/* Writes one entry into the first free slot of its chain. */
static int insert(struct ids *ids, struct ids_entry add)
{
        const struct fs *fs = ids->env->fs;
        uint64_t slot = add.hash & (ids->slots - 1);
        for (uint64_t seen = 0; seen < ids->slots;) {
                struct ids_entry e[PROBE];
                uint64_t n = ids->slots - slot < PROBE ? ids->slots - slot : PROBE;
                ssize_t got = fs_pread_all(fs, ids->fd, e, n * sizeof *e, slot_at(slot));
                if (got != (ssize_t)(n * sizeof *e))
                        return -EIO;
                for (uint64_t i = 0; i < n; i++) {
                        if (e[i].hash == add.hash && e[i].at == add.at)
                                return 0;
                        if (e[i].at)
                                continue;
                        ids->count++;
                        return fs_pwrite_all(fs, ids->fd, &add, sizeof add, slot_at(slot + i));
                }
                seen += n;
                slot = (slot + n) & (ids->slots - 1);
        }
        return -EIO;
}

/* All of them at once, into a table that is small enough to be written as a whole. */
static int insert_whole(struct ids *ids)
{
        const struct fs *fs = ids->env->fs;
        size_t size = ids->slots * sizeof(struct ids_entry);
        struct ids_entry *table = malloc(size);
        if (!table)
                return -ENOMEM;
        ssize_t got = fs_pread_all(fs, ids->fd, table, size, slot_at(0));
        int rc = got == (ssize_t)size ? 0 : -EIO;
        for (unsigned i = 0; rc == 0 && i < ids->pending_count; i++) {
                struct ids_entry e = ids->pending[i];
                uint64_t slot = e.hash & (ids->slots - 1), seen = 0;
                while (table[slot].at && !(table[slot].hash == e.hash && table[slot].at == e.at) &&
                       seen++ < ids->slots)
                        slot = (slot + 1) & (ids->slots - 1);
                if (seen >= ids->slots)
                        rc = -EIO;
                else if (!table[slot].at)
                        ids->count++;
                table[slot] = e;
        }
        if (rc == 0)
                rc = fs_pwrite_all(fs, ids->fd, table, size, slot_at(0));
        free(table);
        return rc;
}

static bool flush(struct ids *ids)
{
        int rc = 0;
        if (ids->fd < 0 || (ids->count + ids->pending_count) * 2 > ids->slots)
                rc = grow(ids, ids->count + ids->pending_count + 1);
        /* I1: before the header. */
        if (rc == 0 && ids->slots * sizeof *ids->pending <= ids->pending_count * WHOLE_TABLE)
                rc = insert_whole(ids);
        else
                for (unsigned i = 0; rc == 0 && i < ids->pending_count; i++)
                        rc = insert(ids, ids->pending[i]);
        if (rc == 0) {
                ids->pending_count = 0;
                ids->covered = ids->pending_covered;
                rc = write_header(ids, ids->fd);
        }
        if (rc)
                ids_reset(ids, true);
        return rc == 0;
}

void ids_flush(struct ids *ids)
{
        flush(ids);
}

bool ids_is_flushed(const struct ids *ids)
{
        return ids->pending_count == 0 && ids->mark_written == ids->mark.size;
}

bool ids_add(struct ids *ids, uint64_t hash, uint64_t at)
{
        if (!ids->pending)
                ids->pending = malloc(IDS_PENDING * sizeof *ids->pending);
        if (!ids->pending) {
                ids_reset(ids, true);
                return false;
        }
        if (ids->pending_count == IDS_PENDING && !flush(ids))
                return false;
        ids->pending[ids->pending_count++] = (struct ids_entry){hash, at + 1};
        return true;
}

bool ids_cover(struct ids *ids, uint64_t from, uint64_t to)
{
        if (ids->pending_covered != from)
                return false;
        ids->pending_covered = to;
        return true;
}

void ids_set_amend(struct ids *ids, uint64_t seq)
{
        ids->last_amend = seq;
}

void ids_set_mark(struct ids *ids, struct log_mark mark)
{
        ids->mark = mark;
        if (mark.size - ids->mark_written < MARK_EVERY)
                return;
        if (ids->fd < 0)
                flush(ids);
        else if (write_header(ids, ids->fd))
                ids_reset(ids, true);
}

void ids_reset(struct ids *ids, bool keep_mark)
{
        const struct fs *fs = ids->env->fs;
        forget_file(ids);
        fs->unlink(fs, ids->dir, NAME, 0);
        ids->mark_written = 0;
        if (!keep_mark)
                ids->mark = (struct log_mark){0};
}
